"""The split losses of all trainings → tables of words that show where one system's loss is lower than another's.

The bits of every part are divided by all bytes of the test set, so that the parts of a system add up to its bits per
byte and their differences to the difference. The tests are those of the scores (``significance.compare_trainings``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from mt_scaffold.corpus.files import write_text
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.layout import Layout, Run
from mt_scaffold.experiment.evaluation.comparison import SYNTHETIC_NOTE
from mt_scaffold.experiment.evaluation.comparison_tables import shown_interval
from mt_scaffold.experiment.evaluation.losses.loss_split import (
    ACROSS,
    DECADES,
    END,
    FREQUENT,
    OTHER,
    LossSplit,
    Part,
)
from mt_scaffold.experiment.evaluation.significance import (
    TRAININGS_FOR_P,
    Difference,
    compare_trainings,
    corrected,
    resample_documents,
    shown_p,
)
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.tables import decimal, format_table

NOTE = (
    "Bits per byte of the words of each class, and what the class adds to the difference in bits per byte of the whole "
    "text: the differences of one partition add up to that of the scores."
)
LEFT_OUT_NOTE = (
    "References with <unk> in the dictionary of any system are left out of the losses of words, as of the scores: {}."
)
TOO_LONG_NOTE = "Sentences that are longer than a model takes are left out of all losses: {}."
_RANK, BY_COUNT = "frequency", "occurrences in the training text"
_PARTITIONS: dict[str, Sequence[str]] = {_RANK: [FREQUENT, OTHER], BY_COUNT: DECADES}


@dataclass(frozen=True)
class WordRow:
    """One class of words in the loss of one system.

    partition: the criterion of the classes. words: occurrences in the test set. bytes: of these words. bits_per_byte:
    their bits by their own bytes, the mean over the seeds; None for the ends. test: of their bits by all bytes of the
    test set, against the baseline; None for the baseline itself, and for a test set of one segment.
    """

    group: str
    test_set: str
    partition: str
    name: str
    system: str
    baseline: str | None
    words: int
    bytes: int
    bits_per_byte: float | None
    test: Difference | None


@dataclass(frozen=True)
class LossTables:
    """The split losses of all systems.

    unit: the resampled unit of the tests. without_words: why ``words`` is incomplete, or None. left_out, too_long: test
    set → how many of its references have ``<unk>`` in a system, or are longer than a model takes; ``words`` does not
    count them.
    """

    unit: Literal["document", "sentence"]
    words: list[WordRow]
    without_words: str | None
    left_out: dict[str, str]
    too_long: dict[str, str]


@dataclass(frozen=True)
class Training:
    """The file of the split loss of one training. group: of systems that are compared with each other; may be empty."""

    group: str
    system: str
    path: Path


def tables_of_experiment(layout: Layout[Any], compared: Sequence[tuple[str, Run]], samples: int) -> LossTables:
    """Return the tables of the split losses of a finished experiment.

    compared: the runs, each with the group in which it is compared. samples: the number of bootstrap resamples.
    """
    trainings = [
        Training(group, run.system, layout.losses(run, test))
        for place in dict.fromkeys(group for group, _ in compared)
        for test in layout.config.test_sets
        for group, run in compared
        if group == place
    ]
    return loss_tables(trainings, layout.config.baseline_of, samples)


def loss_tables(
    trainings: Sequence[Training],
    baseline_of: Callable[[str], str | None],
    samples: int,
) -> LossTables:
    """Return the tables of the split losses of an experiment.

    baseline_of: the system that a system is tested against; None for the baseline itself.
    samples: the number of bootstrap resamples.

    Raises MTScaffoldError if a file is missing or malformed, or the splits of one test set are of different text.
    """
    cells: dict[tuple[str, str], dict[str, list[LossSplit]]] = {}
    for training in trainings:
        split = read_result(LossSplit, training.path)
        systems = cells.setdefault((training.group, split.test_set), {})
        first = next(iter(systems.values()))[0] if systems else split
        if (split.data_sha256, split.signature) != (first.data_sha256, first.signature):
            raise MTScaffoldError(
                f"{training.path}: of other text than the losses of {first.system}, or computed differently; run the "
                "step that writes it again"
            )
        systems.setdefault(training.system, []).append(split)
    words: list[WordRow] = []
    lacking = set()
    left_out: dict[str, str] = {}
    longer: dict[str, str] = {}
    for (group, test_set), systems in cells.items():
        undivided = [name for name, splits in systems.items() if any(each.by_rank is None for each in splits)]
        lacking.update(undivided)
        several = [each for splits in systems.values() for each in splits]
        too_long = {number for each in several for number in each.too_long or ()}
        unknown = {number for each in several for number in each.unknown or ()} - too_long
        kept = [number for number in range(len(several[0].sizes)) if number not in unknown | too_long]
        for numbers, counted in ((unknown, left_out), (too_long, longer)):
            if numbers:
                counted[_titled(group, test_set)] = f"{len(numbers):,} of {len(several[0].sizes):,}"
        if kept and not undivided:
            for partition, order in _PARTITIONS.items():
                words += _word_rows(group, test_set, partition, order, systems, kept, baseline_of, samples)
    tests = corrected({place: row.test for place, row in enumerate(words) if row.test is not None})
    words = [replace(row, test=tests.get(place)) for place, row in enumerate(words)]
    unit = next(iter(next(iter(cells.values())).values()))[0].unit if cells else "document"
    missing = f"{', '.join(sorted(lacking))}: the codes do not say which bytes a word is" if lacking else None
    return LossTables(unit, words, missing, left_out, longer)


def _titled(group: str, test_set: str) -> str:
    return ", ".join(filter(None, (group, test_set)))


def _parts(split: LossSplit, partition: str) -> dict[str, Part]:
    found = split.by_rank if partition == _RANK else split.by_count
    assert found is not None
    return found


def _word_rows(
    group: str,
    test_set: str,
    partition: str,
    order: Sequence[str],
    systems: Mapping[str, Sequence[LossSplit]],
    kept: Sequence[int],
    baseline_of: Callable[[str], str | None],
    samples: int,
) -> list[WordRow]:
    """Return the rows of one partition. kept: the indices of the documents or sentences to count."""
    import numpy

    sizes = numpy.array(next(iter(systems.values()))[0].sizes, numpy.float64)[kept]
    rows = []
    for name in (*order, END, ACROSS):
        # All systems have the same words; tokens across words may occur in one system only.
        parts = {system: [_parts(each, partition).get(name) for each in splits] for system, splits in systems.items()}
        words, own_sizes = {}, {}
        for system, own in parts.items():
            words[system] = 0 if own[0] is None else int(numpy.array(own[0].words)[kept].sum())
            own_sizes[system] = 0 if own[0] is None else int(numpy.array(own[0].bytes)[kept].sum())
        if not any(words.values()):
            continue
        empty = [0.0] * len(sizes)
        bits: dict[str, Any] = {
            system: numpy.array(
                [empty if each is None else numpy.array(each.bits)[kept] for each in own], numpy.float64
            )
            for system, own in parts.items()
        }
        drawn = None
        if len(sizes) > 1:
            drawn = iter(resample_documents(numpy.concatenate([*bits.values()]), sizes, samples))
        resampled = {system: [next(drawn) for _ in own] if drawn else [] for system, own in bits.items()}
        for system in systems:
            size = own_sizes[system]
            baseline = baseline_of(system)
            tested = baseline in systems and drawn is not None
            rows.append(
                WordRow(
                    group,
                    test_set,
                    partition,
                    name,
                    system,
                    baseline,
                    words[system],
                    size,
                    fmean(float(row.sum()) / size for row in bits[system]) if size else None,
                    compare_trainings(resampled[system], resampled[str(baseline)]) if tested else None,
                )
            )
    return rows


# -- as rows of text


def word_tables(tables: LossTables) -> dict[str, list[list[str]]]:
    """Return a table of words for each group and test set, by its title: a row per class, a column per system."""
    places = dict.fromkeys((row.group, row.test_set) for row in tables.words)
    return {
        f"Words by their frequency in the training text: {_titled(*place)}": _word_table(
            [row for row in tables.words if (row.group, row.test_set) == place]
        )
        for place in places
    }


def _word_table(rows: Sequence[WordRow]) -> list[list[str]]:
    systems = list(dict.fromkeys(row.system for row in rows))
    tested = [name for name in systems if any(row.system == name and row.test is not None for row in rows)]
    baselines = {row.system: row.baseline for row in rows}
    heading = ["", "class", "words", "% of bytes", *systems]
    for name in tested:
        heading += [f"{name} - {baselines[name]}", "95 % interval", "p, Holm"]
    table = [heading]
    total = sum(row.bytes for row in rows if row.partition == _RANK and row.system == systems[0])
    for partition, name in dict.fromkeys((row.partition, row.name) for row in rows):
        chosen = {row.system: row for row in rows if (row.partition, row.name) == (partition, name)}
        first = chosen[systems[0]]
        line = [partition, name, f"{max(row.words for row in chosen.values()):,}", f"{100 * first.bytes / total:.1f}"]
        line += ["" if (each := chosen[system].bits_per_byte) is None else decimal(each, 4) for system in systems]
        for system in tested:
            if (test := chosen[system].test) is None:
                line += ["", "", ""]
            else:
                line += [decimal(test.difference, 4, signed=True), shown_interval(test, 4), shown_p(test.p_holm)]
        table.append(line)
    return table


def _of_intervals(tests: Sequence[Difference], units: str) -> str:
    if any(test.p is not None for test in tests):
        return (
            f"With their 95 % intervals, over trainings and {units}; p by Holm's method over all classes of the table."
        )
    if any(test.freedom is not None for test in tests):
        return (
            f"With their 95 % intervals over trainings and {units}, too narrow where trainings differ more than "
            f"{units} do; p takes {TRAININGS_FOR_P} trainings of each system."
        )
    if tests:
        return f"With 95 % intervals over {units} alone: they are about these models, not about other trainings."
    return ""


def notes(tables: LossTables) -> list[str]:
    """Return the notes to print above the tables."""
    words = []
    if tables.words:
        tests = [row.test for row in tables.words if row.test is not None]
        words.append(" ".join(filter(None, (NOTE, _of_intervals(tests, f"{tables.unit}s")))))
    for note, counted in ((LEFT_OUT_NOTE, tables.left_out), (TOO_LONG_NOTE, tables.too_long)):
        if counted:
            words.append(note.format("; ".join(f"{place} ({many})" for place, many in counted.items())))
    if tables.without_words:
        words.append(f"Without a table of words ({tables.without_words}).")
    return words


def write_losses(layout: Layout[Any], losses: LossTables) -> None:
    """Write the tables of split losses as text; of generated text, whose frequencies are its grammar's, a note."""
    tables = word_tables(losses).items()
    shown = [f"{title}\n\n{format_table(rows, figures=False)}" for title, rows in tables]
    text = "\n".join([*(f"{line}\n" for line in notes(losses)), *shown])
    if layout.config.synthetic:
        text = f"{SYNTHETIC_NOTE}\n\nLosses are in the .losses.json files of the systems only.\n"
    write_text(layout.loss_table, text)
