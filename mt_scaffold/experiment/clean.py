"""Words → words: drop the pairs that no system should train on, before segmentation.

Cleaning counts words, not subwords, so that every system trains on the same pairs; fairseq's published recipes clean
after BPE, where each segmentation would keep different pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.files import PathLike, open_output, refuse_overwriting
from mt_scaffold.text import read_pairs, word_count


@dataclass
class CleanReport:
    """What cleaning kept and dropped; a dropped pair counts under the first reason that applies.

    ``words_read`` and ``words_kept`` are (source, target).
    """

    pairs_read: int = 0
    pairs_kept: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: {"too short": 0, "too long": 0, "ratio": 0})
    words_read: tuple[int, int] = (0, 0)
    words_kept: tuple[int, int] = (0, 0)


def clean(
    source: PathLike,
    target: PathLike,
    output_source: PathLike,
    output_target: PathLike,
    min_tokens: int = 1,
    max_tokens: int = 250,
    max_ratio: float = 1.5,
) -> CleanReport:
    """Copy the pairs of two parallel tokenised files whose lengths are within bounds, byte for byte and in order.

    A pair is kept where both sides have ``min_tokens`` to ``max_tokens`` words (between ASCII spaces) and neither
    has more than ``max_ratio`` times the words of the other. With ``min_tokens`` 1, an empty side is too short.
    Raises MTScaffoldError where the sides differ in length or no pair is left; UsageError for bounds that no pair can
    meet, or an output that is also another output or an input.
    """
    if min_tokens < 1 or max_tokens < min_tokens or not max_ratio >= 1:
        raise UsageError(
            f"clean: min_tokens {min_tokens}, max_tokens {max_tokens}, max_ratio {max_ratio}: "
            "give 1 <= min_tokens <= max_tokens and max_ratio >= 1"
        )
    refuse_overwriting([output_source, output_target], [source, target])
    report = CleanReport()
    with (
        open_output(output_source) as kept_source,
        open_output(output_target) as kept_target,
    ):
        for source_line, target_line in read_pairs(source, target):
            lengths = word_count(source_line), word_count(target_line)
            report.pairs_read += 1
            report.words_read = _add(report.words_read, lengths)
            shorter, longer = sorted(lengths)
            if shorter < min_tokens:
                report.dropped["too short"] += 1
            elif longer > max_tokens:
                report.dropped["too long"] += 1
            elif longer > max_ratio * shorter:
                report.dropped["ratio"] += 1
            else:
                kept_source.write(source_line.rstrip(b"\n") + b"\n")
                kept_target.write(target_line.rstrip(b"\n") + b"\n")
                report.pairs_kept += 1
                report.words_kept = _add(report.words_kept, lengths)
        if not report.pairs_kept:
            dropped = ", ".join(f"{reason} {count}" for reason, count in report.dropped.items())
            raise MTScaffoldError(
                f"{source}, {target}: cleaning leaves none of {report.pairs_read} pairs (dropped: {dropped}); "
                "relax min_tokens, max_tokens or max_ratio"
            )
    return report


def _add(total: tuple[int, int], lengths: tuple[int, int]) -> tuple[int, int]:
    return total[0] + lengths[0], total[1] + lengths[1]
