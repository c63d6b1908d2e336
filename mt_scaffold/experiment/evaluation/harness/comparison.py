"""A comparison of systems on tasks, as ``compare_tasks`` writes it and its tables read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mt_scaffold.experiment.evaluation.comparison import (
    SYNTHETIC_NOTE,
    Compared,
    Contrast,
    Spread,
    Unit,
    conclusion,
    notes_on_tests,
)
from mt_scaffold.experiment.evaluation.harness.scores import not_run_lines
from mt_scaffold.experiment.evaluation.significance import Difference
from mt_scaffold.experiment.runtime.result_warnings import GRAVE, ResultWarning, lines_of, of_generated_text

# The paper's figures are means of these, over its last five checkpoints.
_PAPER_SHOTS, _PAPER_CHECKPOINTS = [0, 5], 5
_FEW_QUESTIONS = 20


@dataclass(frozen=True)
class TaskRow:
    """One system on one task, in one group of systems that are compared (None: there are no groups).

    paper_name: the paper's name of the task, if it has it. baseline: the system it was tested against; None for the
    baseline itself. questions: their number. num_fewshot, checkpoints: the numbers of solved questions and the number
    of checkpoints over which a training's score is the mean. main: the metric that is compared first, also with the
    paper's figure; why: the reason. scores: in percent, by metric. tests: by metric, in percentage points; empty for
    the baseline, and for a task of one question.
    """

    group: str | None = field(metadata={"omit_none": True})
    task: str
    paper_name: str | None = field(metadata={"omit_none": True})
    system: str
    baseline: str | None = field(metadata={"omit_none": True})
    seeds: list[int]
    questions: int
    num_fewshot: list[int]
    checkpoints: int
    main: str
    why: str
    scores: dict[str, Spread]
    tests: dict[str, Difference]


@dataclass(frozen=True)
class PaperFigures:
    """The paper's two figures on a task, in percent, with our systems of the same kind.

    group: of ours; None: all are in one. table: the beginning of the caption, and the setting.
    """

    group: str | None = field(metadata={"omit_none": True})
    task: str
    table: str
    bpe: float
    scaffold: float
    our_bpe: str
    our_scaffold: str


@dataclass(frozen=True)
class TaskComparison(Compared):
    """All systems on all tasks, with the facts that a reader needs to interpret the figures.

    comparisons: "main" for those in the main metrics of all tasks, and by name for each other metric. not_compared: the
    tasks without a row, each with the reason. paper: the paper's figures to show next to ours. warnings: the limits of
    the result.
    """

    rows: list[TaskRow]
    paper: list[PaperFigures]
    not_compared: dict[str, str]
    limit: int | None
    task_versions: dict[str, str]
    versions: dict[str, str]
    shortened: dict[str, dict[str, int]] = field(default_factory=dict)
    warnings: list[ResultWarning] = field(default_factory=list)

    @property
    def shown(self) -> TaskComparison:
        """The part that tables show: for synthetic data neither tests nor the paper's figures."""
        if not self.synthetic:
            return self
        rows = [replace(row, tests={}) for row in self.rows]
        return replace(self, rows=rows, paper=[], warnings=of_generated_text(self.warnings))

    @property
    def answer(self) -> str:
        """The result of the tests in the tasks' main metrics, as one sentence."""
        if self.synthetic:
            return SYNTHETIC_NOTE
        tested = [
            Contrast(
                row.system,
                row.baseline,
                ", ".join(filter(None, (row.group, row.paper_name or row.task))),
                row.tests.get(row.main),
            )
            for row in self.rows
            if row.baseline is not None
        ]
        return conclusion(tested, Unit("", "points"), self.warnings)

    @property
    def grave(self) -> bool:
        """Whether one of the warnings puts the result in doubt."""
        return any(warning.kind in GRAVE for warning in self.warnings)

    @property
    def shown_warnings(self) -> list[str]:
        """The warnings as lines, one per kind."""
        return lines_of(self.warnings)

    @property
    def metrics(self) -> list[str]:
        """The metrics of any task, ``acc`` and ``acc_norm`` first."""
        found = dict.fromkeys(metric for row in self.rows for metric in row.scores)
        return sorted(found, key=lambda metric: (metric not in ("acc", "acc_norm"), metric))

    def row(self, group: str | None, task: str, system: str) -> TaskRow | None:
        """Return the row of a system on a task, or None."""
        wanted = (group, task, system)
        return next((row for row in self.rows if (row.group, row.task, row.system) == wanted), None)

    @property
    def notes(self) -> list[str]:
        """The notes on the figures and the tests, as sentences."""
        seeds = sorted({seed for row in self.rows for seed in row.seeds})
        spread = "; mean ± standard deviation over the seeds" if len(seeds) > 1 else "; one training per system"
        notes = [f"Percent of the questions. Seeds: {', '.join(map(str, seeds))}{spread}."]
        notes += [f"{what}." for what in _averaged(self.rows)]
        if self.limit is not None:
            notes.append(f"Only the first {self.limit} questions of each task were asked (limit): a try, no result.")
        few = {row.task: row.questions for row in self.rows if row.questions < _FEW_QUESTIONS}
        notes += [f"{task} has {number} question{'s' if number > 1 else ''}: rough." for task, number in few.items()]
        for task, systems in self.shortened.items():
            counts = ", ".join(f"{system} {count:,}" for system, count in systems.items())
            notes.append(f"{task}: prompts that did not fit, and were read without their beginning: {counts}.")
        notes += [f"Compared first, {row.main}: {tasks}: {row.why}." for tasks, row in _reasons(self.rows)]
        notes += self._notes_on_tests()
        notes += [f"Not compared: {line.removeprefix('Not run: ')}" for line in not_run_lines(self.not_compared)]
        return notes

    @property
    def note_on_the_paper(self) -> str:
        """The note on the paper's figures, for tables that show them."""
        return (
            "THEIRS: copied from the paper, whose figures are means of 0-shot and 5-shot, over its last five "
            f"checkpoints; the metric of each is inferred as said above.{self._unlike_the_paper()}"
        )

    def _notes_on_tests(self) -> list[str]:
        tests = [row.tests[row.main] for row in self.rows if row.main in row.tests]
        fewest = min((len(row.seeds) for row in self.rows), default=0)
        return notes_on_tests(
            tests, "points", self.bootstrap_samples, fewest, units="questions", family="in the metric compared first"
        )

    def _unlike_the_paper(self) -> str:
        shown = {figures.task for figures in self.paper}
        ours = {(tuple(row.num_fewshot), row.checkpoints) for row in self.rows if row.task in shown}
        alike = ours <= {(tuple(_PAPER_SHOTS), _PAPER_CHECKPOINTS)}
        return "" if alike else " Ours are not (see above), so that they do not compare."


def _averaged(rows: Iterable[TaskRow]) -> list[str]:
    """Return phrases on what the scores of the trainings are averaged over, naming the tasks if these differ."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        shots = " and ".join(f"{number}-shot" for number in row.num_fewshot)
        several = f", mean over {row.checkpoints} checkpoints of each training" if row.checkpoints > 1 else ""
        mean = "mean of " if len(row.num_fewshot) > 1 else ""
        kinds.setdefault(f"{mean}{shots}{several}", []).append(row.task)
    found = []
    for what, tasks in kinds.items():
        names = "" if len(kinds) == 1 else f"{', '.join(dict.fromkeys(tasks))}: "
        found.append(names + (what if names else what[0].upper() + what[1:]))
    return found


def _reasons(rows: Iterable[TaskRow]) -> list[tuple[str, TaskRow]]:
    """Return the names of the tasks for each choice of metric and its reason, with one of their rows."""
    found: dict[tuple[str, str], dict[str, TaskRow]] = {}
    for row in rows:
        found.setdefault((row.main, row.why), {})[row.task] = row
    return [(", ".join(tasks), next(iter(tasks.values()))) for tasks in found.values()]


def main_tests(rows: Sequence[TaskRow]) -> list[Difference]:
    """Return the tests in the tasks' main metrics."""
    return [row.tests[row.main] for row in rows if row.main in row.tests]
