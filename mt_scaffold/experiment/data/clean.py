"""Words → words: drop the pairs that no system should train on, before segmentation, and hold out a validation set.

Cleaning counts words, not subwords, so that every system trains on the same pairs; fairseq's WMT'14 recipes clean
after BPE, where each segmentation would keep different pairs.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from mt_scaffold.corpus.files import PathLike, open_output, refuse_overwriting, warn_of_mark
from mt_scaffold.corpus.text import read_parallel, word_count
from mt_scaffold.errors import MTScaffoldError, UsageError

if TYPE_CHECKING:
    import numpy


@dataclass
class CleanRecord:
    """Counts of the pairs that cleaning kept and dropped; a dropped pair counts under the first reason that applies.

    ``words_read`` and ``words_kept`` are (source, target). ``held_out`` is the record of the validation set taken out
    of the text; its pairs count there only.
    """

    pairs_read: int = 0
    pairs_kept: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: {"too short": 0, "too long": 0, "ratio": 0})
    words_read: tuple[int, int] = (0, 0)
    words_kept: tuple[int, int] = (0, 0)
    held_out: CleanRecord | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class HoldOut:
    """A validation set taken out of the text: every ``every``-th pair goes to the two outputs.

    Only pairs that cleaning keeps are counted; with ``before_cleaning``, all are.
    """

    every: int
    output_source: PathLike
    output_target: PathLike
    before_cleaning: bool = False


def clean(
    source: PathLike,
    target: PathLike,
    output_source: PathLike,
    output_target: PathLike,
    min_tokens: int = 1,
    max_tokens: int = 250,
    max_ratio: float = 1.5,
    hold_out: HoldOut | None = None,
) -> CleanRecord:
    """Copy the pairs of two parallel tokenised files whose lengths are within bounds, byte for byte and in order.

    A pair is kept if both sides have ``min_tokens`` to ``max_tokens`` words (between ASCII spaces) and neither has
    more than ``max_ratio`` times the words of the other: the rules of Moses' ``clean-corpus-n.perl``, except its rule
    on words over 1,000 characters. With ``min_tokens`` 1, an empty side is too short.
    Raises MTScaffoldError if the sides differ in number of lines, or no pair is left for an output; UsageError for
    bounds that no pair can meet, or an output that is also another output or an input.
    """
    if min_tokens < 1 or max_tokens < min_tokens or not max_ratio >= 1:
        raise UsageError(
            f"clean: min_tokens {min_tokens}, max_tokens {max_tokens}, max_ratio {max_ratio}: "
            "give 1 <= min_tokens <= max_tokens and max_ratio >= 1"
        )
    if hold_out is not None and hold_out.every < 2:
        raise UsageError(f"clean: holding out one pair in {hold_out.every} leaves none to train on; give 2 or more")
    valid = [] if hold_out is None else [hold_out.output_source, hold_out.output_target]
    refuse_overwriting([output_source, output_target, *valid], [source, target])
    with contextlib.ExitStack() as stack:

        def open_part(*paths: PathLike) -> _Part:
            return _Part(*(stack.enter_context(open_output(path)) for path in paths))

        train = open_part(output_source, output_target)
        held_out = open_part(*valid) if valid else None
        read = counted = 0
        for sides in read_parallel(source, target):
            if not read:
                for path, lines in zip((source, target), sides, strict=True):
                    warn_of_mark(lines[0], str(path))
            pairs = _Pairs(sides, min_tokens, max_tokens, max_ratio)
            read += len(sides[0])
            if hold_out is None or held_out is None:
                train.add(pairs, pairs.every)
                continue
            candidates = pairs.every if hold_out.before_cleaning else pairs.good
            numbers = counted + candidates.cumsum()
            counted = int(numbers[-1])
            taken = candidates & (numbers % hold_out.every == 0)
            train.add(pairs, ~taken)
            held_out.add(pairs, taken)
        _check_filled(train.record, f"{source}, {target}")
        if hold_out is not None and held_out is not None:
            train.record.held_out = held_out.record
            if not held_out.record.pairs_kept:
                raise MTScaffoldError(
                    f"{source}, {target}: no validation pair among {read} pairs, of which one in {hold_out.every} "
                    "is held out; lower data.valid_every, or take a larger sample"
                )
    return train.record


class _Pairs:
    """A block of pairs with, as arrays of one element per pair, their lengths and the reasons to drop them."""

    def __init__(self, sides: tuple[list[bytes], list[bytes]], minimum: int, maximum: int, max_ratio: float) -> None:
        import numpy

        for lines in sides:
            if not lines[-1].endswith(b"\n"):
                lines[-1] += b"\n"
        self.sides = sides
        self.lengths = numpy.stack([word_counts(lines) for lines in sides])
        shorter, longer = self.lengths.min(axis=0), self.lengths.max(axis=0)
        too_short = shorter < minimum
        too_long = ~too_short & (longer > maximum)
        with numpy.errstate(invalid="ignore"):  # an infinite ratio times no words
            ratio = ~too_short & ~too_long & (longer > max_ratio * shorter)
        self.dropped = {"too short": too_short, "too long": too_long, "ratio": ratio}
        self.good = ~(too_short | too_long | ratio)
        self.every = numpy.ones_like(self.good)


class _Part:
    """One part of the text (training or validation): its two outputs and its record."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._outputs = source, target
        self.record = CleanRecord()

    def add(self, pairs: _Pairs, mine: Any) -> None:
        """Count the pairs for which ``mine`` is true, and write those that cleaning keeps."""
        record = self.record
        kept = mine & pairs.good
        record.pairs_read += int(mine.sum())
        record.pairs_kept += int(kept.sum())
        record.words_read = _add(record.words_read, pairs.lengths[:, mine])
        record.words_kept = _add(record.words_kept, pairs.lengths[:, kept])
        for reason, dropped in pairs.dropped.items():
            record.dropped[reason] += int((dropped & mine).sum())
        chosen = kept.tolist()
        for output, lines in zip(self._outputs, pairs.sides, strict=True):
            output.writelines(itertools.compress(lines, chosen))


def _check_filled(record: CleanRecord, origin: str) -> None:
    if not record.pairs_kept:
        dropped = ", ".join(f"{reason} {count}" for reason, count in record.dropped.items())
        raise MTScaffoldError(
            f"{origin}: cleaning leaves none of {record.pairs_read} pairs (dropped: {dropped}); "
            "relax min_tokens, max_tokens or max_ratio"
        )


def _add(total: tuple[int, int], lengths: Any) -> tuple[int, int]:
    source, target = lengths.sum(axis=1).tolist()
    return total[0] + source, total[1] + target


def word_counts(lines: list[bytes]) -> numpy.ndarray:
    """Return the number of words of each line, as word_count counts them; only the last may lack its LF."""
    import numpy

    if not lines:
        return numpy.zeros(0, numpy.int64)
    text = b"".join(lines)
    # In all other text, single spaces separate the words.
    if any(odd in text for odd in (b"  ", b" \n", b"\n ", b"\r")) or text.startswith(b" ") or text.endswith(b" "):
        return numpy.fromiter(map(word_count, lines), numpy.int64, len(lines))
    sizes = numpy.fromiter(map(len, lines), numpy.int64, len(lines))
    ends = sizes.cumsum()
    characters = numpy.frombuffer(text, numpy.uint8)
    spaces = numpy.add.reduceat(characters == ord(" "), ends - sizes, dtype=numpy.int64)
    counts: numpy.ndarray = spaces + (characters[ends - sizes] != ord("\n"))
    return counts
