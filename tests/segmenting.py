"""Helpers for tests of the segmenting core: known results, the reference's codes, text that is hard to segment."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reference.picky import LearnedPicky, learn_picky

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.analysis.reference import Learned, Pair, ReferenceBPE, always, learn_merges
from mt_scaffold.analysis.reference_picky import Event, MergeEvent, ReferencePickyBPE, SplitEvent
from mt_scaffold.corpus.text import bytes_to_notation, notation_to_bytes

VECTORS = Path(__file__).parent / "vectors"
# Text that must not be redistributed with the project.
SHARED = Path(__file__).resolve().parents[2] / "shared"
MULTI30K = SHARED / "data" / "multi30k"


def needs(path: Path) -> pytest.MarkDecorator:
    """Return a mark that skips a test if data from outside the project is missing."""
    return pytest.mark.skipif(not path.exists(), reason=f"{os.path.relpath(path)} is missing")


class Figures(NamedTuple):
    """The results of learning from a text and segmenting it: a row of ``vectors/figures.tsv``."""

    symbols: int
    algorithm: str
    merges: int
    scaffold: int
    restored: int
    tokens: int
    types: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.algorithm}-{self.symbols}"


def figures_of(corpus: str) -> list[Figures]:
    """Return the known figures of a corpus."""
    with open(VECTORS / "figures.tsv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row.pop("corpus") == corpus]
    return [Figures._make(int(field) if field.isdigit() else field for field in row.values()) for row in rows]


def measure(texts: Sequence[Path], symbols: int, algorithm: str) -> Figures:
    """Return the same figures as computed by the core."""
    learned = learn_bpe(paths=texts, num_symbols=symbols, algorithm=algorithm, num_workers=2)
    subwords: Counter[bytes] = Counter()
    bpe = BPE(learned.text)
    for text in texts:
        segmented = io.BytesIO()
        bpe.process_file(text, segmented)
        subwords.update(segmented.getvalue().split())
    digest = hashlib.sha256(learned.text).hexdigest()
    counts = (learned.merges, learned.scaffold, learned.restored, subwords.total(), len(subwords))
    return Figures(symbols, algorithm, *counts, digest)


class Mode(NamedTuple):
    """The kind of base symbols: the first line of such codes, and the notation of symbols in their other lines.

    picky_line: the first line of such codes of PickyBPE.

    The reference represents words and symbols of bytes as text in which each character stands for a byte (latin-1).
    """

    first_line: str
    in_file: Callable[[str], bytes]
    of_file: Callable[[bytes], str]
    picky_line: str

    @property
    def byte_level(self) -> bool:
        return self != CHARACTERS

    @property
    def end_of_word(self) -> bool:
        return self != PRETOKENISED

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``learn_bpe``."""
        return {"pretokenise": "gpt2"} if self == PRETOKENISED else {"byte_level": self.byte_level}

    def word(self, word: str) -> bytes:
        """Return a word of the reference as it is written in the text."""
        return word.encode("latin-1" if self.byte_level else "utf-8")

    def text(self, text: bytes) -> str:
        """Return text in the form of the reference."""
        return text.decode("latin-1" if self.byte_level else "utf-8")

    def subwords(self, pieces: Iterable[str]) -> bytes:
        """Return the subwords of a word as they appear in segmented text."""
        if self.end_of_word:
            return self.word("@@ ".join(pieces))
        return b" ".join(map(self.in_file, pieces))

    @staticmethod
    def of(codes: bytes) -> Mode:
        """Return the mode of a codes file, by its first line; other pre-tokenisers are treated as GPT-2's."""
        first = codes.split(b"\n", 1)[0].decode()
        return next((mode for mode in MODES if first in (mode.first_line, mode.picky_line)), PRETOKENISED)


def _latin(symbol: str) -> bytes:
    return symbol.encode("latin-1")


def _unlatin(symbol: bytes) -> str:
    return symbol.decode("latin-1")


CHARACTERS = Mode("#version: 0.2", str.encode, bytes.decode, "#version: 0.4 picky")
BYTES = Mode("#version: 0.2 byte", _latin, _unlatin, "#version: 0.4 picky byte")
PRETOKENISED = Mode(
    "#version: 0.3 bytes gpt2",
    lambda symbol: bytes_to_notation(_latin(symbol)).encode("utf-8"),
    lambda symbol: _unlatin(notation_to_bytes(symbol.decode("utf-8"))),
    "#version: 0.4 picky bytes gpt2",
)
MODES = [CHARACTERS, BYTES, PRETOKENISED]
MODE_NAMES = ["characters", "bytes", "pretokenised"]


def reference_codes(learned: Learned, mode: Mode = CHARACTERS) -> bytes:
    """Return the codes file with the reference's merges."""
    lines = [mode.first_line.encode()]
    for left, right in learned.merges:
        fields = [mode.in_file(left), mode.in_file(right)] + [b"scaffold"] * (left + right in learned.scaffold)
        lines.append(b" ".join(fields))
    return b"\n".join(lines) + b"\n"


def learn_with_reference(
    counts: dict[str, int], symbols: int, min_frequency: int = 2, algorithm: str = "scaffold", mode: Mode = CHARACTERS
) -> tuple[Learned, bytes]:
    learned = learn_merges(counts, symbols, min_frequency, algorithm, mode.end_of_word)
    return learned, reference_codes(learned, mode)


def reference_of(
    codes: bytes, merges: int = -1, separator: str = "@@", vocabulary: set[str] | None = None, notation: bool = False
) -> ReferenceBPE:
    """Return the reference with the first merges of a codes file and, with PickyBPE, the splits after each.

    notation: symbols are in GPT-2's notation of bytes instead of latin-1.
    """
    first, *rest = codes.split(b"\n")[:-1]
    mode = Mode.of(codes)
    read = (lambda field: bytes_to_notation(_latin(mode.of_file(field)))) if notation else mode.of_file
    lines = [[read(field) for field in line.split(b" ")] for line in rest]
    if b" picky" in first:
        events: list[Event] = []
        for line in lines:
            if len(line) == 2:
                if merges == 0:
                    break
                merges -= 1
            events.append(MergeEvent(*line) if len(line) == 2 else SplitEvent(line[1], tuple(line[2:])))
        return ReferencePickyBPE(events, separator, vocabulary, mode.end_of_word)
    lines = lines if merges == -1 else lines[:merges]
    scaffold = {line[0] + line[1] for line in lines if len(line) == 3}
    pairs = [(line[0], line[1]) for line in lines]
    return ReferenceBPE(pairs, scaffold, separator, vocabulary, mode.end_of_word)


def pairs_of(codes: bytes, mode: Mode) -> list[Pair]:
    """Return the merges in the form of the reference."""
    lines = [line.split(b" ") for line in codes.split(b"\n")[1:-1]]
    return [(mode.of_file(line[0]), mode.of_file(line[1])) for line in lines]


def in_codes(tokens: Iterable[str], mode: Mode) -> set[str]:
    """Return tokens of the reference in the form of ``Codes``."""
    return {bytes_to_notation(token.encode("latin-1")) for token in tokens} if mode.byte_level else set(tokens)


def picky_codes(events: Iterable[Event], mode: Mode = CHARACTERS) -> bytes:
    """Return the codes file with the events of PickyBPE."""
    lines = [mode.picky_line.encode()]
    for event in events:
        if isinstance(event, MergeEvent):
            fields = [mode.in_file(event.left), mode.in_file(event.right)]
        else:
            fields = [b"split", mode.in_file(event.token), *map(mode.in_file, event.pieces)]
        lines.append(b" ".join(fields))
    return b"\n".join(lines) + b"\n"


def learn_picky_with_reference(
    counts: dict[str, int], symbols: int, threshold: float = 0.9, min_frequency: int = 2, mode: Mode = CHARACTERS
) -> tuple[LearnedPicky, bytes]:
    learned = learn_picky(counts, symbols, threshold, min_frequency, mode.end_of_word)
    return learned, picky_codes(learned.events, mode)


def reference_subwords(reference: ReferenceBPE, words: Iterable[bytes], survives: Callable[[], bool] = always) -> str:
    """Return the subwords of a pre-tokeniser's words as they appear in segmented text."""
    pieces = [piece for word in words for piece in reference.segment_word(word.decode("latin-1"), survives)]
    return " ".join(bytes_to_notation(piece.encode("latin-1")) for piece in pieces)


def dictionary_lines(counts: dict[str, int]) -> list[str]:
    """Return words with their counts, as ``--dict-input`` reads them."""
    return [f"{word} {count}" for word, count in counts.items()]


# Letters of one to four bytes, combining marks, spaces that are not word boundaries, and the letters of "</w>".
ALPHABET = [
    *"abcdeenrst",
    "ä", "é", "e\u0301", "ß", "ж", "נּ", "한", "日", "本", "𝔸", "😀", "👩\u200d👧", "\u0301", "\u200b",
    "\u00a0", "\u3000", "\t", "<", "/", "w", ">", "</w>", "@", "@@", "\\", "\x00",
]  # fmt: skip
# Those of them that Python's regular expressions treat as white space.
UNICODE_SPACES = ["\u00a0", "\u3000", "\t"]


def hard_words(generator: random.Random, number: int, alphabet: list[str]) -> list[str]:
    """Return words of a small lexicon with a long tail, so that pairs repeat and many are equally frequent."""
    stems = ["".join(generator.choice(alphabet) for _ in range(generator.randint(1, 4))) for _ in range(60)]
    lexicon = ["".join(generator.choice(stems) for _ in range(generator.randint(1, 3))) for _ in range(number // 5)]
    return [lexicon[min(int(generator.paretovariate(0.7)), len(lexicon)) - 1] for _ in range(number)]


def hard_text(seed: int, words: int, alphabet: list[str] | None = None, long_word: int = 0) -> str:
    """Return text with all kinds of lines: blank, with CR LF, with spaces at the ends and in runs, without final LF."""
    generator = random.Random(seed)
    chosen = hard_words(generator, words, alphabet or ALPHABET)
    if long_word:
        chosen.insert(words // 2, "".join(generator.choice("abä日😀") for _ in range(long_word)))
    ends = ["\n", "\n", "\r\n", "\n\n", "\n \r\n", "\n  \n"]
    parts = []
    first = 0
    while first < len(chosen):
        length = generator.randint(1, 12)
        line = "".join(word + " " * generator.choice([1, 1, 1, 2, 5]) for word in chosen[first : first + length])
        parts += [generator.choice(["", "", "", " ", "   ", "\r", " \r "]), line.rstrip(" ")]
        parts += [generator.choice(["", "", "", " ", "  "]), generator.choice(ends)]
        first += length
    return "".join(parts).rstrip("\n")


def rich_text(seed: int, types: int, alphabet: Sequence[str]) -> list[str]:
    """Return a line for each of many words, mostly rare, repeated by its count, so that there are many merges."""
    generator = random.Random(seed)
    stems = ["".join(generator.choices(alphabet, k=generator.randint(1, 3))) for _ in range(types // 8 + 5)]
    words = ["".join(generator.choices(stems, k=generator.randint(1, 3))) for _ in range(types)]
    return [" ".join([word] * min(int(generator.paretovariate(1)), 99)) for word in words]


def lines_at_lf(text: str) -> list[str]:
    """Return the lines of a text with their LFs; only LF ends a line."""
    return [line + "\n" for line in text.split("\n")[:-1]] + [text.split("\n")[-1]] * (not text.endswith("\n"))
