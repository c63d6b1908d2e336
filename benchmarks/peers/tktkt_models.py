"""TkTkT (Python): its ScaffoldBPE and PickyBPE, on words between spaces, with all characters and tokens of any length.

    tktkt_models.py import - - -                              import it, and no more
    tktkt_models.py learn-scaffold CORPUS MODEL N             learn N merged tokens; learn-picky likewise
    tktkt_models.py apply CORPUS MODEL OUTPUT
    tktkt_models.py words WORDS MODEL OUTPUT                  segment a word a line: its subwords or "!" and the error
    tktkt_models.py examples EXAMPLES - OUTPUT                the examples of tktkt_examples.py, JSON to JSON

Words end in "</w>" for ScaffoldBPE, as in mt_scaffold, and begin with "▁" for PickyBPE, which cannot have another mark
(benchmarks/tktkt.md). TkTkT counts base symbols and its mark as tokens; they are added to N here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tktkt.paths
from tktkt.factories.preprocessors import (
    AddWordBoundary,
    IdentityMapper,
    IsolatedSpaceMarker,
    KudoSpaceMarker,
    OnWhitespace,
    Preprocessor,
    PretokeniserSequence,
    SennrichSpaceMarker,
)
from tktkt.models.bpe.decomposing import CacheableAblatedBPEArtifacts, ScaffoldBPE
from tktkt.models.bpe.picky import CacheablePickyBPEArtifacts, Event, PickyBPE, PickyBPEVocabulariser
from tktkt.models.bpe.scaffold import ScaffoldBPEVocabulariser

SCAFFOLD, PICKY = "scaffold", "picky"
MARKERS = {"</w>": SennrichSpaceMarker, "▁": KudoSpaceMarker, "none": IsolatedSpaceMarker}
USUAL_MARKER = {SCAFFOLD: "</w>", PICKY: "▁"}
THRESHOLD = 0.9
NO_LIMIT = 1_000_000
ALL_CHARACTERS = 1.0


def preprocessor(marker: str) -> Preprocessor:
    """Words between white space, marked; nothing is normalised."""
    splitter = PretokeniserSequence([OnWhitespace(destructive=True), AddWordBoundary(MARKERS[marker])])
    return Preprocessor(IdentityMapper(), IdentityMapper(), splitter)


def alphabet_size(words: Iterable[str], marker: str) -> int:
    """The tokens that TkTkT starts with: base symbols, and the mark by itself."""
    boundary = MARKERS[marker]
    symbols = {boundary.substitute}
    for word in words:
        for pretoken in AddWordBoundary(boundary).split(word):
            symbols.update(boundary.atomise(pretoken))
    return len(symbols)


def learn(algorithm: str, counts: Counter[str], symbols: int, marker: str, threshold: float) -> dict[str, Any]:
    """Learn ``symbols`` merged tokens; returns a model that can be written as JSON."""
    size = symbols + alphabet_size(counts, marker)
    # It keeps a cache of models in the folder it runs in.
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        tktkt.paths.setTkTkToutputRoot(Path(folder))
        if algorithm == SCAFFOLD:
            learner = ScaffoldBPEVocabulariser(preprocessor(marker), size, ALL_CHARACTERS, NO_LIMIT)
            learned = learner.vocabulariseFromCounter(counts)
            return {
                "algorithm": algorithm,
                "marker": marker,
                "types": list(learned._getVocabulary()),
                "merges": [list(pair) for pair in learned.getMerges()],
                "scaffold": sorted(learned.getAblations()),
            }
        learner = PickyBPEVocabulariser(preprocessor(marker), size, threshold, ALL_CHARACTERS, NO_LIMIT)
        learned = learner.vocabulariseFromCounter(counts)
        return {
            "algorithm": algorithm,
            "marker": marker,
            "types": list(learned._getVocabulary()),
            "events": [[event.is_merge, event.tokens] for event in learned.getEvents()],
        }


def tokeniser(model: dict[str, Any]) -> ScaffoldBPE | PickyBPE:
    """TkTkT's tokeniser for a model."""
    before = preprocessor(model["marker"])
    if model["algorithm"] == SCAFFOLD:
        merges = [tuple(pair) for pair in model["merges"]]
        artifacts = CacheableAblatedBPEArtifacts(model["types"], merges, set(model["scaffold"]))
        return ScaffoldBPE(before, artifacts.getVocabulary(), artifacts.getMerges(), artifacts.getAblations())
    events = [Event(tokens, is_merge) for is_merge, tokens in model["events"]]
    artifacts = CacheablePickyBPEArtifacts(model["types"], model["types"], events)
    return PickyBPE(before, artifacts.getVocabulary(), events)


def codes(model: dict[str, Any]) -> list[str]:
    """The lines of a codes file as mt_scaffold writes it, without its first line."""
    if model["algorithm"] == SCAFFOLD:
        scaffold = set(model["scaffold"])
        return [f"{a} {b}" + " scaffold" * (a + b in scaffold) for a, b in model["merges"]]
    return [
        " ".join(tokens) if is_merge else f"split {''.join(tokens)} {' '.join(tokens)}"
        for is_merge, tokens in model["events"]
    ]


def in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def run_example(example: dict[str, Any]) -> dict[str, Any]:
    """What TkTkT makes of an example: its codes, base symbols that are scaffold, segmented words; or its error."""
    counts = Counter(example["words"])
    marker = "none" if example["end_of_word"] is False else example.get("marker", "</w>")
    found: dict[str, Any] = {"codes": []}
    try:
        for _ in range(example.get("runs", 1)):
            threshold = example.get("threshold", THRESHOLD)
            model = learn(example["algorithm"], counts, example["symbols"], marker, threshold)
            if codes(model) not in found["codes"]:
                found["codes"].append(codes(model))
    except Exception as error:
        return {"error": in_words(error)}
    if example["algorithm"] == SCAFFOLD:
        merged = {a + b for a, b in model["merges"]}
        found["scaffold base symbols"] = [token for token in model["scaffold"] if token not in merged]
    segmenter = tokeniser(model)
    for word in example.get("segment", []):
        try:
            # The mark stands alone before the word.
            subwords = list(segmenter.prepareAndTokenise(word))[marker == "none" :]
            found.setdefault("segmented", {})[word] = " ".join(subwords)
        except Exception as error:
            found.setdefault("segmented", {})[word] = in_words(error)
    found["codes"].sort()
    return found


def segment_words(words: str, model: str, output: str) -> None:
    """Segment each word by itself, so that one that fails does not hide the others."""
    segmenter = tokeniser(json.loads(Path(model).read_text(encoding="utf-8")))
    with open(words, encoding="utf-8", newline="\n") as lines, open(output, "w", encoding="utf-8") as out:
        for line in lines:
            try:
                out.write(" ".join(segmenter.prepareAndTokenise(line.rstrip("\n"))) + "\n")
            except Exception as error:
                out.write(f"!{in_words(error)}\n")


def main() -> None:
    # Each merge of a token with itself logs a line otherwise.
    logging.disable(logging.WARNING)
    task, source, model, argument = sys.argv[1:]
    if task.startswith("learn-"):
        counts: Counter[str] = Counter()
        with open(source, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                counts.update(line.split())
        algorithm = task.removeprefix("learn-")
        learned = learn(algorithm, counts, int(argument), USUAL_MARKER[algorithm], THRESHOLD)
        Path(model).write_text(json.dumps(learned, ensure_ascii=False), encoding="utf-8")
    elif task == "apply":
        segmenter = tokeniser(json.loads(Path(model).read_text(encoding="utf-8")))
        with open(source, encoding="utf-8", newline="\n") as lines, open(argument, "w", encoding="utf-8") as out:
            out.writelines(" ".join(segmenter.prepareAndTokenise(line.rstrip("\n"))) + "\n" for line in lines)
    elif task == "words":
        segment_words(source, model, argument)
    elif task == "examples":
        examples = json.loads(Path(source).read_text(encoding="utf-8"))
        results = [run_example(example) for example in examples]
        Path(argument).write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
    # Its libraries' threads are not waited for.
    sys.stdout.flush()
    os._exit(0)
