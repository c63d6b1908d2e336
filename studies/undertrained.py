"""Compare how well models have trained the tokens that Scaffold-BPE removes or adds, and others of equal frequency.

python -m studies.undertrained EXPERIMENT [--bpe NAME] [--scaffold NAME] [--test-set NAME ...] [--csv PATH]
    [--figure PATH]
python -m studies.undertrained FIGURES.csv

EXPERIMENT is a folder that mt-scaffold run has finished; its tokens.csv and averaged.pt files are read. Removed tokens
are those in BPE's dictionary but not in Scaffold-BPE's, measured in BPE's models; new tokens are the reverse. Each is
compared with its peers, the tokens in both dictionaries that occur equally often, to within 10 %, in the training text
of the same model (for bits, in its target side); a token without peers is left out. The first table shows means over
tokens and, for the differences, over the seeds, with their 95 % interval by Student's t.

The paper's argument is that removed tokens are learned badly because they are rare, and matching by frequency takes
just that away. So the second table has both contrasts: each class next to its peers, and new tokens next to the removed
ones that they replace, whatever the frequency of either, with Welch's 95 % interval over the trainings. Figures:

percentile   of the indicator of Land and Bartolo 2024 among the tokens of the model, minus the mean of the peers': 0 is
             the least trained
bits         per occurrence in a test set, minus the mean of the peers'; only of tokens and peers that occur there. The
             interval is over trainings, not over the tokens that a test set happens to have
uniformity   of the input rows of all the tokens (Wang and Isola 2020), minus that of as many peers, one per token, the
             nearest in frequency: the higher, the more clustered

--csv writes the figures of every training, from which both tables follow: such a file can be given instead of the
experiment. --figure draws percentile and bits
(on the first of the test sets) by frequency, for a system's own tokens and for those in both dictionaries.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import io
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import NamedTuple

from mt_scaffold.corpus.files import PathLike, open_input, shown, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.significance import LEVEL, satterthwaite, t_quantile
from mt_scaffold.experiment.report.embeddings import symbol_rows, uniformity
from mt_scaffold.experiment.report.figures import BinnedPanel, Point, by_occurrences
from mt_scaffold.experiment.report.trained_tokens import COLUMNS
from mt_scaffold.experiment.tasks import read_layout, task_of
from mt_scaffold.tables import decimal, format_table

# The largest ratio of the counts of two peers.
CLOSE = 1.1
# Figures are named percentile, bits:TEST and uniformity.
PERCENTILE, PERCENTILE_DIGITS = "percentile", 1
BITS, BITS_DIGITS = "bits:", 2
UNIFORMITY, UNIFORMITY_DIGITS = "uniformity", 3
# Classes of the figure: four per power of ten; those with fewer tokens are not drawn.
CLASSES_TO_TEN, LEAST_TOKENS = 4, 5
LABELS = {PERCENTILE: "percentile of the indicator", BITS: "bits per occurrence"}


def read_trained_tokens(path: PathLike) -> list[dict[str, str]]:
    """Return the lines of a file of ``write_trained_tokens``, by column, without those of a source with its own rows.

    Raises MTScaffoldError if the file is missing or malformed, or written by an earlier version.
    """
    with open_input(path) as stream:
        content = stream.read()
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))
    except (ValueError, csv.Error):
        rows = []
    # A line that is cut off lacks its last values.
    if not rows or any(column not in rows[0] for column in COLUMNS) or any(None in row.values() for row in rows):
        raise MTScaffoldError(
            f"{shown(path)}: not as the step tokens writes it in this version; remove it and run the experiment again"
        )
    return [row for row in rows if row["side"] != "source"]


class Token(NamedTuple):
    """One token of a model.

    times: its occurrences in an epoch of the training text. written: those on the target side. figures: by name; None
    for a missing one. row: of its embedding.
    """

    times: float
    written: float
    figures: Mapping[str, float | None]
    row: int = 0

    def frequency(self, figure: str) -> float:
        """Return its occurrences in the text from which the model learns what the figure measures."""
        return self.written if figure.startswith(BITS) else self.times


Tokens = dict[str, Token]


@dataclass(frozen=True)
class Contrast:
    """A class of tokens against their peers in one model.

    tokens: of the class. matched: those with peers. count, own, peers: means over these.
    """

    tokens: int
    matched: int
    count: float
    own: float
    peers: float


def read_tokens(path: Path, test_sets: Sequence[str]) -> Tokens:
    """Return the tokens of a tokens.csv, without those with the side ``source``.

    Raises MTScaffoldError if the file is missing or malformed.
    """
    if not path.exists():
        raise MTScaffoldError(f"{path}: no such file; run mt-scaffold run, which writes it")
    try:
        return {row["token"]: _token(row, test_sets) for row in read_trained_tokens(path)}
    except (KeyError, ValueError) as error:
        raise MTScaffoldError(f"{path}: not as the step tokens writes it ({error}); run that step again") from error


def _token(row: Mapping[str, str], test_sets: Sequence[str]) -> Token:
    figures = {PERCENTILE: float(row[PERCENTILE]) if row[PERCENTILE] else None}
    for test in test_sets:
        tested = int(row[f"occurrences:{test}"])
        figures[f"{BITS}{test}"] = float(row[f"{BITS}{test}"]) / tested if tested else None
    return Token(float(row["per_epoch"] or 0), float(row["target_per_epoch"] or 0), figures, int(row["id"]))


def contrast(tokens: Tokens, other: Tokens, figure: str) -> Contrast | None:
    """Compare the tokens that are not in another model with their peers, among those that occur in training.

    None if none has a peer.
    """
    having = {
        name: (token.frequency(figure), value)
        for name, token in tokens.items()
        if token.frequency(figure) and (value := token.figures[figure]) is not None
    }
    shared = sorted(having[name] for name in having if name in other)
    counts, chosen = [count for count, _ in shared], [having[name] for name in having if name not in other]
    pairs = []
    for count, value in chosen:
        low, high = bisect.bisect_left(counts, count / CLOSE), bisect.bisect_right(counts, count * CLOSE)
        if low < high:
            pairs.append((count, value, fmean(value for _, value in shared[low:high])))
    if not pairs:
        return None
    times, own, peers = (fmean(values) for values in zip(*pairs, strict=True))
    return Contrast(len(chosen), len(pairs), times, own, peers)


def twins(tokens: Tokens, other: Tokens) -> list[tuple[Token, Token]]:
    """Return the tokens that are not in another model, each with the nearest free peer in frequency."""
    free = sorted((token for name, token in tokens.items() if token.times and name in other), key=_by_frequency)
    pairs = []
    for token in sorted((one for name, one in tokens.items() if one.times and name not in other), key=_by_frequency):
        near = min(free, key=lambda peer: abs(math.log(peer.times / token.times)), default=None)
        if near is not None and token.times / CLOSE <= near.times <= token.times * CLOSE:
            pairs.append((token, near))
            free.remove(near)
    return pairs


def _by_frequency(token: Token) -> tuple[float, int]:
    return token.times, token.row


def spread_contrast(tokens: Tokens, other: Tokens, checkpoint: Path) -> Contrast | None:
    """Compare the uniformity of the rows of tokens that are not in another model with that of their peers.

    None for fewer than two tokens with a peer.
    """
    pairs = twins(tokens, other)
    rows = symbol_rows(checkpoint)["decoder"].read
    own = uniformity(rows[[token.row for token, _ in pairs]])
    peers = uniformity(rows[[peer.row for _, peer in pairs]])
    if own is None or peers is None:
        return None
    chosen = sum(name not in other and token.times > 0 for name, token in tokens.items())
    return Contrast(chosen, len(pairs), fmean(token.times for token, _ in pairs), own, peers)


def over_seeds(contrasts: Sequence[Contrast]) -> tuple[float, float | None]:
    """Return the mean of the differences of all seeds, and half the width of its interval; None for one seed."""
    return mean_and_margin([each.own - each.peers for each in contrasts])


def mean_and_margin(values: Sequence[float]) -> tuple[float, float | None]:
    """Return a mean and half the width of its 95 % interval by Student's t; None for one value."""
    if len(values) < 2:
        return fmean(values), None
    error = stdev(values) / len(values) ** 0.5
    return fmean(values), t_quantile(1 - LEVEL / 2, len(values) - 1) * error


@dataclass(frozen=True)
class Trained:
    """The trainings of one system: tokens and checkpoints, by seed. own: the label of the tokens that only it has."""

    name: str
    own: str
    tokens: dict[int, Tokens]
    checkpoints: dict[int, Path]

    @property
    def dictionary(self) -> Tokens:
        """The tokens of the first training; those of all trainings of a system are the same."""
        return next(iter(self.tokens.values()))

    @property
    def without_checkpoint(self) -> list[Path]:
        """The checkpoints that are missing."""
        return [path for path in self.checkpoints.values() if not path.exists()]

    def contrasts(self, other: Trained) -> Iterator[tuple[str, dict[int, Contrast]]]:
        """Yield each figure, and its contrast in each training that has one, by seed."""
        for figure in next(iter(self.dictionary.values())).figures:
            found = ((seed, contrast(each, other.dictionary, figure)) for seed, each in self.tokens.items())
            yield figure, _known(found)
        if not self.without_checkpoint:
            spreads = (
                (seed, spread_contrast(each, other.dictionary, self.checkpoints[seed]))
                for seed, each in self.tokens.items()
            )
            yield UNIFORMITY, _known(spreads)


def _known(contrasts: Iterable[tuple[int, Contrast | None]]) -> dict[int, Contrast]:
    return {seed: each for seed, each in contrasts if each is not None}


# Group, label of the tokens and figure → seed → contrast.
Contrasts = dict[tuple[str, str, str], dict[int, Contrast]]


def digits_of(figure: str) -> int:
    """Return the decimals that a figure is shown with."""
    return {PERCENTILE: PERCENTILE_DIGITS, UNIFORMITY: UNIFORMITY_DIGITS}.get(figure, BITS_DIGITS)


def rows_of(group: str, contrasts: Contrasts) -> Iterator[list[str]]:
    """Yield the rows of a group's first table: each class of tokens and its peers."""
    for (of, label, figure), found in contrasts.items():
        if of != group:
            continue
        digits, each_seed = digits_of(figure), list(found.values())
        first = each_seed[0]
        yield [
            *(label, figure, f"{first.matched:,} of {first.tokens:,}", decimal(first.count, 1)),
            decimal(fmean(each.own for each in each_seed), digits),
            decimal(fmean(each.peers for each in each_seed), digits),
            *(*_shown(*over_seeds(each_seed), digits), str(len(found))),
        ]


def contrast_rows(group: str, contrasts: Contrasts) -> Iterator[list[str]]:
    """Yield the rows of a group's second table: the contrasts matched by frequency, and the one that is not."""
    for of, label, figure in contrasts:
        sides = [list(contrasts.get((group, each, figure), {}).values()) for each in ("removed", "new")]
        if of == group and label == "removed" and all(sides):
            matched = [", ".join(_shown(*over_seeds(side), digits_of(figure))) for side in sides]
            removed, new = ([each.own for each in side] for side in sides)
            yield [figure, *matched, ", ".join(_shown(*welch(new, removed), digits_of(figure)))]


def welch(new: Sequence[float], removed: Sequence[float]) -> tuple[float, float | None]:
    """Return a difference of means over trainings, and half the width of its interval; None for one training."""
    difference = fmean(new) - fmean(removed)
    if min(len(new), len(removed)) < 2:
        return difference, None
    error, freedom = satterthwaite([(variance(side) / len(side), len(side) - 1.0) for side in (new, removed)])
    return difference, t_quantile(1 - LEVEL / 2, float(freedom)) * float(error)


def _shown(difference: float, margin: float | None, digits: int) -> tuple[str, str]:
    ends = [] if margin is None else [difference - margin, difference + margin]
    return decimal(difference, digits, signed=True), " to ".join(decimal(end, digits, signed=True) for end in ends)


def lines_of(contrasts: Contrasts) -> Iterator[list[object]]:
    """Yield the lines of a CSV file, which has the contrasts of every training."""
    yield [*CSV_HEADING]
    for labels, found in contrasts.items():
        for seed, each in found.items():
            values = (f"{value:.6g}" for value in (each.count, each.own, each.peers))
            yield [*labels, seed, each.tokens, each.matched, *values]


def read_contrasts(path: Path) -> Contrasts:
    """Return the contrasts in a file that --csv wrote. Raises MTScaffoldError if it is another one."""
    contrasts: Contrasts = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                each = Contrast(int(row["of"]), int(row["with_peers"]), *(float(row[key]) for key in CSV_HEADING[-3:]))
                labels = row["group"], row["tokens"], row["figure"]
                contrasts.setdefault(labels, {})[int(row["seed"])] = each
    except OSError as error:
        raise MTScaffoldError(f"{path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise MTScaffoldError(f"{path}: not a file that --csv wrote ({error!r})") from error
    return contrasts


def panel(own: Trained, other: Trained, figure: str) -> BinnedPanel:
    """Return a figure of the system by classes of frequency: tokens that only it has, and those that both have."""
    lines: dict[str, list[Point]] = {}
    for label, shared in ((own.own, False), ("in both", True)):
        by_class: dict[int, list[float]] = {}
        for tokens in own.tokens.values():
            values: dict[int, list[float]] = {}
            for name, token in tokens.items():
                times, value = token.frequency(figure), token.figures[figure]
                if times and value is not None and (name in other.dictionary) == shared:
                    values.setdefault(math.floor(CLASSES_TO_TEN * math.log10(times)), []).append(value)
            for number, each in values.items():
                if len(each) >= LEAST_TOKENS:
                    by_class.setdefault(number, []).append(fmean(each))
        lines[label] = [
            Point(10 ** ((number + 0.5) / CLASSES_TO_TEN), *mean_and_margin(means))
            for number, means in sorted(by_class.items())
        ]
    return BinnedPanel(lines, next(label for name, label in LABELS.items() if figure.startswith(name)), own.name)


CSV_HEADING = ["group", "tokens", "figure", "seed", "of", "with_peers", "occurrences", "theirs", "peers"]
HEADING = ["tokens", "figure", "with peers", "occurrences", "theirs", "peers'", "difference", "95 % interval", "seeds"]
CONTRASTS = ["figure", "removed − peers (matched)", "new − peers (matched)", "new − removed (not matched)"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each group of compared systems; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.undertrained", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT", help="or a file that --csv wrote")
    parser.add_argument("--bpe", default="bpe", metavar="NAME", help="a system with plain BPE (default: bpe)")
    parser.add_argument("--scaffold", default="scaffold", metavar="NAME", help="with Scaffold-BPE (default: scaffold)")
    parser.add_argument("--test-set", nargs="+", metavar="NAME", help="of the bits (default: the first)")
    parser.add_argument("--csv", type=Path, metavar="PATH", help="the figures of every training")
    parser.add_argument("--figure", type=Path, metavar="PATH", help="of the first group, without its suffix")
    options = parser.parse_args(arguments)
    try:
        stored = options.experiment.suffix == ".csv"
        contrasts = read_contrasts(options.experiment) if stored else _measured(options)
    except MTScaffoldError as error:
        print(f"studies.undertrained: {error}", file=sys.stderr)
        return error.exit_status
    for group in dict.fromkeys(group for group, _, _ in contrasts):
        if group:
            print(f"{group}\n")
        print(format_table([HEADING, *rows_of(group, contrasts)], markdown=True))
        print(format_table([CONTRASTS, *contrast_rows(group, contrasts)], markdown=True))
    return 0


def _measured(options: argparse.Namespace) -> Contrasts:
    """Return the contrasts of an experiment, and write the files that the options ask for."""
    layout = read_layout(options.experiment)
    test_sets = options.test_set or [next(iter(layout.config.test_sets))]
    for test_set in test_sets:
        if test_set not in layout.config.test_sets:
            known = ", ".join(layout.config.test_sets)
            raise UsageError(f"--test-set {test_set}: not a test set of {options.experiment} ({known})")
    groups: dict[str, dict[str, Trained]] = {}
    for group, run in task_of(layout.config).compared(layout):
        if run.system in (options.bpe, options.scaffold):
            own = "removed" if run.system == options.bpe else "new"
            of = groups.setdefault(group, {}).setdefault(run.system, Trained(run.system, own, {}, {}))
            of.tokens[int(run.seed)] = read_tokens(layout.trained_tokens(run), test_sets)
            of.checkpoints[int(run.seed)] = layout.averaged(run)
    if any(len(systems) < 2 for systems in groups.values()) or not groups:
        known = ", ".join(layout.config.systems)
        wanted = f"{options.bpe} and {options.scaffold}"
        raise MTScaffoldError(f"{options.experiment}: has {known}, not {wanted}; name two of its systems")
    contrasts: Contrasts = {}
    for group, systems in groups.items():
        both = systems[options.bpe], systems[options.scaffold]
        for one, other in (both, both[::-1]):
            contrasts |= {(group, one.own, figure): found for figure, found in one.contrasts(other) if found}
        for path in (path for each in both for path in each.without_checkpoint[:1]):
            print(f"studies.undertrained: {path}: missing, so that uniformity is left out", file=sys.stderr)
        if options.figure and group == next(iter(groups)):
            drawn = PERCENTILE, f"{BITS}{test_sets[0]}"
            by_occurrences([[panel(*pair, figure) for pair in (both, both[::-1])] for figure in drawn], options.figure)
    if options.csv:
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows(lines_of(contrasts))
        write_text(options.csv, stream.getvalue())
    return contrasts


if __name__ == "__main__":
    sys.exit(main())
