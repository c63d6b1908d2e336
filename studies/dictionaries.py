"""Compare the dictionaries of BPE and Scaffold-BPE, with and without dropout: entries, unused entries, running <unk>.

python -m studies.dictionaries MULTI30K MDN > table.md

MULTI30K: the folder of the raw text (train.en.gz, ..., test_2016_flickr.de.gz). MDN: a tokenised text in one language.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mt_scaffold import BPE, count_words
from mt_scaffold._core import WordCounts
from mt_scaffold.experiment.binarise.dictionary import added_by, limited
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.tokenise import tokenise
from mt_scaffold.methods import make_method
from mt_scaffold.methods.learn import learn
from mt_scaffold.segment.draw import Draw
from mt_scaffold.tables import format_table
from studies import exit_status

DROPOUT = Draw("dropout", 0.1)
MULTI30K_SYMBOLS, MDN_SYMBOLS, MDN_LIMIT = 10_000, 32_000, 32_768


class Dictionary(NamedTuple):
    """A dictionary: entries, those that never occur, and running ``<unk>`` in training and in test text."""

    entries: int
    unused: int
    unknown: int
    unknown_test: int | None


def dictionary(
    bpe: BPE, texts: Sequence[WordCounts], tests: Sequence[WordCounts], dropout: bool, limit: int = -1
) -> Dictionary:
    """Make one dictionary of all texts, as ``make_dictionaries`` does, and count."""
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(dict(bpe.count_subwords(text).items()))
    kept = limited(counted, limit)
    added: set[str] = set()
    for text in texts:
        added |= added_by([DROPOUT], bpe, text, kept) if dropout else set()
    forms = kept.keys() | added
    unknown_test = None
    if tests:
        subwords = itertools.chain.from_iterable(bpe.count_subwords(test).items() for test in tests)
        unknown_test = sum(count for form, count in subwords if form not in forms)
    unknown = sum(count for form, count in counted.items() if form not in forms)
    return Dictionary(len(forms), sum(form not in counted for form in forms), unknown, unknown_test)


def codes(algorithm: str, symbols: int, paths: Sequence[Path]) -> BPE:
    """Learn joint codes of all texts."""
    return BPE(learn(paths=paths, method=make_method(algorithm, symbols=symbols)).codes)


def multi30k(folder: Path) -> Iterator[list[str]]:
    """Yield the rows of Multi30k: joint codes, with one dictionary and with one per language."""
    with tempfile.TemporaryDirectory() as words:
        paths = {}
        for part, language in itertools.product(("train", "test_2016_flickr"), ("en", "de")):
            paths[part, language] = Path(words) / f"{part}.{language}"
            tokenise(folder / f"{part}.{language}.gz", paths[part, language], language, Tokenise(), num_workers=2)
        counts = {key: count_words(path) for key, path in paths.items()}
        train, test = ([counts[part, language] for language in ("en", "de")] for part in ("train", "test_2016_flickr"))
        for algorithm in ("bpe", "scaffold"):
            bpe = codes(algorithm, MULTI30K_SYMBOLS, [paths["train", language] for language in ("en", "de")])
            for dropout in (False, True):
                name = algorithm + " + dropout" * dropout
                yield ["Multi30k", name, "joint", *cells(dictionary(bpe, train, test, dropout))]
                for side, language in enumerate(("en", "de")):
                    found = dictionary(bpe, train[side : side + 1], test[side : side + 1], dropout)
                    yield ["Multi30k", name, language, *cells(found)]


def mdn(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a text in one language, with and without a limit."""
    counts = count_words(path, num_workers=2)
    for algorithm in ("bpe", "scaffold"):
        bpe = codes(algorithm, MDN_SYMBOLS, [path])
        for dropout, limit in itertools.product((False, True), (-1, MDN_LIMIT)):
            name = algorithm + " + dropout" * dropout
            kind = f"at most {limit:,}" if limit > 0 else "all"
            yield ["mdn.de", name, kind, *cells(dictionary(bpe, [counts], [], dropout, limit))]


def cells(found: Dictionary) -> list[str]:
    """Return the cells of a dictionary in the table."""
    return ["" if number is None else f"{number:,}" for number in found]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("multi30k", type=Path)
    parser.add_argument("mdn", type=Path)
    options = parser.parse_args()
    heading = ["text", "system", "dictionary", "entries", "never occur", "<unk> in train", "<unk> in test"]
    rows = [heading, *multi30k(options.multi30k), *mdn(options.mdn)]
    print(format_table(rows, markdown=True, figures=False), end="")


if __name__ == "__main__":
    sys.exit(exit_status("studies.dictionaries", main))
