"""Compare the offsets of MTScaffoldTokenizer with those of tokenizers, and of plain Python where that has none.

python benchmarks/offsets.py TEXT [--lines 10000] [--symbols 8000]

Codes of bytes after GPT-2's pattern and codes of code points are learned from the lines: plain BPE, exported to
tokenizers, and Scaffold-BPE, which plain Python segments. Prints the lines and those that differ, 1 being returned if
any do.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mt_scaffold import learn_bpe
from mt_scaffold.analysis.reference import ReferenceBPE, pretokenise
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.pretokenise import PATTERNS
from mt_scaffold.corpus.text import LINE_MARGIN, notation_to_bytes
from mt_scaffold.integrations.tokenizers import to_tokenizers
from mt_scaffold.integrations.transformers import MTScaffoldTokenizer

Spans = list[tuple[int, int]]


class PlainOffsets:
    """The characters of each subword of a text, by the plain Python reference."""

    def __init__(self, codes: Codes) -> None:
        self.bytes = codes.header.bytes
        shown = (lambda token: notation_to_bytes(token).decode("latin-1")) if self.bytes else str
        merges = [(shown(merge.left), shown(merge.right)) for merge in codes.merges]
        reference = ReferenceBPE(merges, set(map(shown, codes.scaffold)), end_of_word=not self.bytes)
        self.segment_word = cache(reference.segment_word)

    def __call__(self, text: str) -> Spans:
        """Return where each subword begins and ends; of bytes, all characters of which it has a byte."""
        if not self.bytes:
            return list(self._in_words(text))
        character = [number for number, each in enumerate(text) for _ in each.encode()]
        words = pretokenise(text.encode(), PATTERNS["gpt2"])
        sizes = [len(piece) for word in words for piece in self.segment_word(word.decode("latin-1"))]
        ends = itertools.accumulate(sizes)
        return [(character[end - size], character[end - 1] + 1) for end, size in zip(ends, sizes, strict=True)]

    def _in_words(self, text: str) -> Iterator[tuple[int, int]]:
        place = len(text) - len(text.lstrip(LINE_MARGIN))
        for word in text.strip(LINE_MARGIN).split(" "):
            for piece in self.segment_word(word) if word else []:
                yield place, place + len(piece)
                place += len(piece)
            place += 1


def library_offsets(codes: Codes, texts: list[str]) -> list[Spans]:
    """Return the offsets that tokenizers gives for the exported codes; what special tokens are spelt like is text."""
    exported: Any = to_tokenizers(codes)
    exported.encode_special_tokens = True
    return [each.offsets for each in exported.encode_batch(texts, add_special_tokens=False)]


def our_offsets(codes: Path, texts: list[str]) -> list[Spans]:
    """Return the offsets of the class, likewise."""
    found = MTScaffoldTokenizer(codes)(
        texts, return_offsets_mapping=True, add_special_tokens=False, split_special_tokens=True, verbose=False
    )
    offsets: list[Spans] = found["offset_mapping"]
    return offsets


def main() -> None:
    """Print a line for each kind of codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, metavar="TEXT")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--symbols", type=int, default=8_000)
    options = parser.parse_args()
    with open(options.text, encoding="utf-8", newline="\n") as stream:
        texts = [line.removesuffix("\n") for line in itertools.islice(stream, options.lines)]
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="\n")
        for kind, pattern in (("bytes", "gpt2"), ("code points", "spaces")):
            for algorithm, other in (("bpe", "tokenizers"), ("scaffold", "plain Python")):
                path = Path(folder) / f"{kind}-{algorithm}"
                learn_bpe(
                    paths=[lines], outfile=path, num_symbols=options.symbols, algorithm=algorithm, pretokenise=pattern
                )
                codes, ours = Codes.read(path), our_offsets(path, texts)
                theirs = library_offsets(codes, texts) if algorithm == "bpe" else list(map(PlainOffsets(codes), texts))
                different = sum(mine != other for mine, other in zip(ours, theirs, strict=True))
                tokens = sum(map(len, ours))
                print(f"{kind}, {algorithm}: {len(texts):,} lines, {tokens:,} tokens; {different} differ from {other}")
                differing += different
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
