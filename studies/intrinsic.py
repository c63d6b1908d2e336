"""python -m studies.intrinsic: measure methods on text without training a model, for docs/results/intrinsic.

It learns every method of studies/intrinsic.yaml at every size from every text, and measures each as ``stats`` does on
that text, on its held-out part and on other text. docs/results/intrinsic explains the tables.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from mt_scaffold._core import WordCounts
from mt_scaffold.analysis.stats import summarise
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import make_folder
from mt_scaffold.corpus.text import END_OF_WORD, read_lines
from mt_scaffold.methods import Method, make_method
from mt_scaffold.methods.base import TooManySymbols
from mt_scaffold.segment.frequencies import INSIDE, Vocabulary
from studies import exit_status

FIGURES = ("words", "bytes", "tokens", "types", "vocabulary_size", "bytes_per_token", "tokens_per_word", "entropy_bits")
# The least frequency of each class → its name.
CLASSES = {0: "0", 1: "1", 2: "2-9", 10: "10-99", 100: "100-999", 1000: "1000+"}

Row = dict[str, Any]


class Model(NamedTuple):
    """A learned model. complete: whether the text had enough words for N. below: as in ``LearnedCodes``."""

    method: Method[Any]
    path: Path
    complete: bool
    below: int | None
    seconds: float

    def undemolished(self) -> Model:
        """Return the model without scaffold tokens, which all are normal."""
        path = self.path.with_name("undemolished.codes")
        path.write_bytes(Codes.read(self.path).with_scaffold(()).text)
        return self._replace(path=path)

    def use(self, part: WordCounts) -> Vocabulary:
        """Return the vocabulary as it segments a text."""
        return self.method.use(self.path, part)

    def segment(self, part: WordCounts) -> list[list[str]]:
        """Return the subwords of each word; with codes, all but the last of a word end in INSIDE."""
        segmenter = self.method.segmenter(self.path, INSIDE if self.method.has_codes else None)
        return [segmenter.segment(word).split(" ") for word, _ in part.items()]


def learn(settings: Mapping[str, Any], size: int, part: WordCounts, path: Path) -> Model:
    """Learn a method with N = ``size`` from counted words; if they are too few, as much as they allow."""
    given = {name: value for name, value in settings.items() if name not in ("algorithm", "texts")}
    method, complete = make_method(settings["algorithm"], **given).with_settings(symbols=size), True
    words = WordCounts()  # a copy, which learning uses up
    words.add(part)
    start = time.process_time()
    try:
        learned = method.learn(words)
    except TooManySymbols as error:
        # Only Unigram, which leaves the words as they are.
        method, complete = method.with_settings(symbols=error.most), False
        learned = method.learn(part)
    seconds = time.process_time() - start
    path = path.with_suffix(method.suffix)
    path.write_bytes(learned.text)
    return Model(method, path, complete and not learned.exhausted, getattr(learned, "marked_below", None), seconds)


def read_parts(text: Mapping[str, Any], folder: Path) -> dict[str, WordCounts]:
    """Return what is learned from, ``train``, and the rest, ``unseen``: all of a text without ``held_out``."""
    train: list[str] = []
    unseen: list[str] = []
    held_out = text.get("held_out", {"every": 1})
    every, block = held_out["every"], held_out.get("lines", 1)
    for name in text["files"].values():
        for number, line in enumerate(read_lines(folder / name)):
            (unseen if number // block % every == every - 1 else train).append(line)
    return {"train": count_words(lines=train), "unseen": count_words(lines=unseen)}


def measure(model: Model, part: WordCounts) -> tuple[Row, Row]:
    """Return the measures of a text, and those of learning from it."""
    start = time.process_time()
    segmented = model.segment(part)
    seconds = time.process_time() - start
    used = model.use(part)
    summary, values = summarise(used), used.frequencies.values()
    under = {limit: sum(1 for value in values if value < limit) for limit in (10, 100)}
    whole = [count for (_, count), subwords in zip(part.items(), segmented, strict=True) if len(subwords) == 1]
    measures = {name: getattr(summary, name) for name in FIGURES}
    measures |= {"redundancy": summary.redundancy, "renyi_efficiency": summary.renyi_efficiency[2.5]}
    measures |= {f"under_{limit}": number for limit, number in under.items()}
    measures |= {f"share_under_{limit}": number / len(values) for limit, number in under.items()}
    measures |= {"whole_types": len(whole) / len(segmented), "whole_words": sum(whole) / used.words}
    learning = {"merged": len(used.normal), "complete": str(model.complete).lower(), "below": model.below}
    return measures, learning | {"seconds_to_learn": model.seconds, "seconds_to_apply": seconds}


def class_of(frequency: int) -> str:
    """Return the name of a frequency's class."""
    return CLASSES[max(least for least in CLASSES if least <= frequency)]


def parts_of(codes: Codes) -> dict[str, int]:
    """Return the number of subwords that each scaffold token is demolished into."""
    counts: dict[str, int] = {}
    scaffold = codes.scaffold
    # If several merges make a token, the shortest result wins. Parts come before the longer tokens they are in.
    for left, right, _ in sorted(codes.merges, key=lambda merge: len(merge.token)):
        if left + right in scaffold:
            total = counts.get(left, 1) + counts.get(right, 1)
            counts[left + right] = min(total, counts.get(left + right, total))
    return counts


def compare(bpe: Model, scaffold: Model, train: WordCounts, part: WordCounts) -> tuple[list[Row], list[Row]]:
    """Return Scaffold-BPE's additional subwords, by the frequency of words and of tokens in the training text.

    Of a word these are gain + cost: the difference before anything is demolished, and what demolishing adds.
    """
    undemolished, parts = scaffold.undemolished(), parts_of(Codes.read(scaffold.path))
    learned_from, frequencies = dict(train.items()), undemolished.use(train).frequencies
    by_word = {label: dict.fromkeys(("types", "words", "bpe", "gain", "cost"), 0) for label in CLASSES.values()}
    by_token = dict.fromkeys(CLASSES.values(), 0)
    segmented = (model.segment(part) for model in (bpe, undemolished, scaffold))
    for (word, count), one, whole, other in zip(part.items(), *segmented, strict=True):
        share = by_word[class_of(learned_from.get(word, 0))]
        added = {"words": 1, "bpe": len(one), "gain": len(whole) - len(one), "cost": len(other) - len(whole)}
        share["types"] += 1
        for name, number in added.items():
            share[name] += number * count
        for subword in whole:
            token = subword.removesuffix(INSIDE) if subword.endswith(INSIDE) else subword + END_OF_WORD
            if token in parts:
                by_token[class_of(frequencies[token])] += count * (parts[token] - 1)
    subwords = {
        name: sum(model.use(part).frequencies.values()) for name, model in (("bpe", bpe), ("scaffold", scaffold))
    }
    both = {"words": part.total(), **subwords}
    words = [{"frequency_in_train": label, **share} for label, share in by_word.items()]
    return words, [both | {"frequency_in_train": label, "cost": cost} for label, cost in by_token.items()]


def intrinsic(config: Path, texts: Path, output: Path) -> None:
    """Measure all methods at all sizes on all texts, and write the tables."""
    study = yaml.safe_load(config.read_text("utf-8"))
    tables: dict[str, list[Row]] = defaultdict(list)
    parts = {name: read_parts(text, texts) for name, text in study["texts"].items()}
    learned = {name: text.get("other", []) for name, text in study["texts"].items() if "held_out" in text}
    with TemporaryDirectory() as folder:
        for name, size in product(learned, study["sizes"]):
            models = {}
            cell = {"text": name, "N": size}
            others = {other: parts[other]["unseen"] for other in learned[name]}
            for each, settings in study["methods"].items():
                if name in settings.get("texts", learned):
                    models[each] = learn(settings, size, parts[name]["train"], Path(folder, each))
                    rows = {on: measure(models[each], part) for on, part in (parts[name] | others).items()}
                    tables["measures"] += [{**cell, "method": each, "on": on, **row} for on, (row, _) in rows.items()]
                    tables["learning"].append({**cell, "method": each, **rows["train"][1]})
            bpe, scaffold = models["bpe"], models["scaffold"]
            for on, part in (parts[name] | others).items() if bpe.complete and scaffold.complete else ():
                by_word, by_token = compare(bpe, scaffold, parts[name]["train"], part)
                tables["subwords_by_word"] += [{**cell, "on": on, **row} for row in by_word]
                tables["subwords_by_token"] += [{**cell, "on": on, **row} for row in by_token]
    make_folder(output)
    for table, entries in tables.items():
        with open(output / f"{table}.csv", "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, entries[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(entries)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.intrinsic", description=__doc__)
    parser.add_argument("config", type=Path, help="such as studies/intrinsic.yaml")
    parser.add_argument("--texts", type=Path, default=Path(), help="folder of the files that the configuration names")
    parser.add_argument("--output", type=Path, required=True, help="folder for the tables")
    options = parser.parse_args()
    intrinsic(options.config, options.texts, options.output)


if __name__ == "__main__":
    sys.exit(exit_status("intrinsic", main))
