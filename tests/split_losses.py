"""Split losses with invented figures."""

from pathlib import Path

from mt_scaffold.experiment.evaluation.losses.loss_split import (
    DECADES,
    END,
    FREQUENT,
    OTHER,
    LossSplit,
    Part,
    TokenLosses,
)
from mt_scaffold.experiment.runtime.results import write_result


def write_split(path: Path, system: str, seed: int, frequent: list[float], rare: list[float], sha: str = "0") -> Path:
    """Write the split loss of documents with ten bytes, eight of them in frequent words, from the bits of each kind."""
    size = 10 * len(frequent)
    parts = {
        FREQUENT: Part([8] + [0] * (len(frequent) - 1), [8] * len(frequent), frequent),
        OTHER: Part([2] + [0] * (len(frequent) - 1), [2] * len(frequent), rare),
        END: Part([1] * len(frequent), [0] * len(frequent), [1.0] * len(frequent)),
    }
    bits = sum(sum(part.bits) for part in parts.values())
    by_count = {DECADES[0]: parts[OTHER], DECADES[2]: parts[FREQUENT], END: parts[END]}
    sizes = [10] * len(frequent)
    tokens = TokenLosses([2, 4, 5], [len(frequent), 3, 1], [float(len(frequent)), sum(frequent), sum(rare)])
    split = LossSplit(system, "test", seed, False, "document", bits, size, sizes, "s", sha, parts, by_count, tokens)
    write_result(path, split)
    return path
