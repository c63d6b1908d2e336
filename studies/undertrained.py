"""Compare how well models have trained scaffold tokens, those that replace them, and others as frequent.

python -m studies.undertrained EXPERIMENT [--bpe NAME] [--scaffold NAME] [--test-set NAME]

EXPERIMENT is a folder that mt-scaffold run has finished; its tokens.csv files are read. Removed are the tokens of BPE's
dictionary that Scaffold-BPE's lacks, as they stand in BPE's models; new is the reverse. Each is compared with the
tokens that both have and that occur as often in the training text of the same model, to within 10 %: its figure less
the mean of theirs; a token without any is left out. Printed are means over tokens, and of the differences over the
seeds, with their 95 % interval by Student's t. Figures:

percentile   of the indicator of Land and Bartolo 2024 among the tokens of the model: 0 is the least trained
bits         per occurrence in the test set; only of tokens and peers that occur there
"""

from __future__ import annotations

import argparse
import bisect
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.evaluation.significance import LEVEL, t_quantile
from mt_scaffold.experiment.tasks import read_layout, task_of
from mt_scaffold.tables import decimal, format_table

# How far the counts of two tokens that are called equally frequent may be apart.
CLOSE = 1.1
SHOWN = {"percentile": 1, "bits": 2}


class Token(NamedTuple):
    """One token of a model: how often it occurs, and its figures; None for one that it does not have."""

    times: int
    figures: Mapping[str, float | None]


Tokens = dict[str, Token]


@dataclass(frozen=True)
class Contrast:
    """A class of tokens against others as frequent in one model: means over the tokens that have such peers."""

    tokens: int
    matched: int
    count: float
    own: float
    peers: float


def read_tokens(path: Path, test_set: str) -> Tokens:
    """Return the tokens that one tokens.csv has of the target, or of both sides."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["side"] != "source"]
        return {row["token"]: Token(int(row["count"] or 0), _figures(row, test_set)) for row in rows}
    except OSError as error:
        raise MTScaffoldError(f"{path}: {error.strerror}; run mt-scaffold run, which writes it") from error
    except (KeyError, ValueError) as error:
        raise MTScaffoldError(f"{path}: not as the step tokens writes it ({error}); run that step again") from error


def _figures(row: Mapping[str, str], test_set: str) -> dict[str, float | None]:
    times = int(row[f"occurrences:{test_set}"])
    return {
        "percentile": float(row["percentile"]) if row["percentile"] else None,
        "bits": float(row[f"bits:{test_set}"]) / times if times else None,
    }


def contrast(tokens: Tokens, other: Tokens, figure: str) -> Contrast | None:
    """Compare the tokens that another model lacks with those that both have, of those that occur in training.

    None where none has a peer.
    """
    having = {name: token for name, token in tokens.items() if token.times and token.figures[figure] is not None}
    shared = sorted((token.times, float(token.figures[figure] or 0)) for name, token in having.items() if name in other)
    counts, chosen = [count for count, _ in shared], [token for name, token in having.items() if name not in other]
    pairs = []
    for token in chosen:
        low, high = bisect.bisect_left(counts, token.times / CLOSE), bisect.bisect_right(counts, token.times * CLOSE)
        if low < high:
            pairs.append(
                (token.times, float(token.figures[figure] or 0), fmean(value for _, value in shared[low:high]))
            )
    if not pairs:
        return None
    count, own, peers = (fmean(values) for values in zip(*pairs, strict=True))
    return Contrast(len(chosen), len(pairs), count, own, peers)


def over_seeds(contrasts: Sequence[Contrast]) -> tuple[float, float | None]:
    """Return the mean of the differences of all seeds, and half the width of its interval; None for one seed."""
    differences = [each.own - each.peers for each in contrasts]
    if len(differences) < 2:
        return fmean(differences), None
    error = stdev(differences) / len(differences) ** 0.5
    return fmean(differences), t_quantile(1 - LEVEL / 2, len(differences) - 1) * error


def rows_of(bpe: Mapping[int, Tokens], scaffold: Mapping[int, Tokens]) -> Iterator[list[str]]:
    """Yield the rows of a table, from the tokens of both systems by seed."""
    for name, own, other in (("removed", bpe, scaffold), ("new", scaffold, bpe)):
        # All seeds of a system have the same dictionary.
        lacking = next(iter(other.values()))
        for figure, digits in SHOWN.items():
            found = [each for tokens in own.values() if (each := contrast(tokens, lacking, figure)) is not None]
            if not found:
                continue
            difference, margin = over_seeds(found)
            ends = [] if margin is None else [difference - margin, difference + margin]
            yield [
                *(name, figure, f"{found[0].matched:,} of {found[0].tokens:,}", decimal(found[0].count, 1)),
                *(
                    decimal(fmean(each.own for each in found), digits),
                    decimal(fmean(each.peers for each in found), digits),
                ),
                decimal(difference, digits, signed=True),
                *(" to ".join(decimal(end, digits, signed=True) for end in ends), str(len(found))),
            ]


HEADING = ["tokens", "figure", "with peers", "occurrences", "theirs", "peers'", "difference", "95 % interval", "seeds"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each group of systems that are compared; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.undertrained", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT")
    parser.add_argument("--bpe", default="bpe", metavar="NAME", help="a system with plain BPE (default: bpe)")
    parser.add_argument("--scaffold", default="scaffold", metavar="NAME", help="with Scaffold-BPE (default: scaffold)")
    parser.add_argument("--test-set", metavar="NAME", help="of the bits (default: the first)")
    options = parser.parse_args(arguments)
    try:
        layout = read_layout(options.experiment)
        test_set = options.test_set or next(iter(layout.config.test_sets))
        groups: dict[str, dict[str, dict[int, Tokens]]] = {}
        for group, run in task_of(layout.config).compared(layout):
            if run.system in (options.bpe, options.scaffold):
                tokens = read_tokens(layout.trained_tokens(run), test_set)
                groups.setdefault(group, {}).setdefault(run.system, {})[int(run.seed)] = tokens
        if any(len(systems) < 2 for systems in groups.values()) or not groups:
            known = ", ".join(layout.config.systems)
            raise MTScaffoldError(f"{options.experiment}: not with {options.bpe} and {options.scaffold}, but {known}")
        for group, systems in groups.items():
            title = ", ".join(filter(None, (group, f"bits on {test_set}")))
            table = format_table([HEADING, *rows_of(systems[options.bpe], systems[options.scaffold])], markdown=True)
            print(f"{title}\n\n{table}")
    except MTScaffoldError as error:
        print(f"studies.undertrained: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
