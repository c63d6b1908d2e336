"""The progress of a workflow: its steps, weighted by their cost, and the progress of each running training."""

from __future__ import annotations

import itertools
import re
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mt_scaffold.experiment.configuration.layout import TRAINING_COMMAND, TRAINING_LOG
from mt_scaffold.experiment.training.progress import read_progress

# The relative cost of a rule's steps until one of them has ended; a training dominates, as the other steps are short.
_COST = {"train": 100.0, "evaluate_tasks": 30.0, "translate": 10.0, "evaluate": 10.0, "losses": 10.0}
_COST |= {"statistics": 10.0, "average": 3.0, "binarise": 3.0}
_OTHER_COST = 1.0
# The share of a training from which its speed is estimated: includes validation and saving, but not its start.
_ENOUGH = 0.1
# The share of the time left that may be due to rules that have not run yet, whose costs are right to a factor of four.
_GUESSED = 1 / 3
# A target without a command, such as the first rule of a Snakefile.
_NO_STEPS = {"all"}
_WITHIN = r"\bepoch (\d+):\s+(\d+) / (\d+)"
# The number of steps of each rule that earlier runs have finished, as set by the Snakefile in the display's process.
finished_earlier: dict[str, int] = {}
# Returns, for a step's outputs, a score for its line and a table to show below (``interim``); set by the Snakefile.
after_step: list[Callable[[Iterable[str]], tuple[str, str]]] = []
# More than fairseq logs per update, so that the tail contains the last line completely.
_TAIL = 8192


def end_of(log: str | Path, lines: int) -> str:
    """Return the last lines of a log, or the error in brackets if it cannot be read."""
    try:
        return "\n".join(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"({error.strerror})"


def trained(folder: Path) -> float:
    """Return the share of a training that is done, from 0 to 1: as it has recorded, or else from its command and log.

    Only this package's tasks record their progress. Returns 0 if it is unknown.
    """
    if (noted := read_progress(folder)) is not None:
        return noted.share
    try:
        command = _command(folder)
        with (folder / TRAINING_LOG).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - _TAIL))
            log = stream.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return 0.0
    numbers = {name: int(value) for name, value in itertools.pairwise(command) if value.isdecimal() and int(value)}
    limits = {name: numbers[name] for name in ("--max-epoch", "--max-update") if name in numbers}
    # Language models end after tokens or text, but the schedule of the learning rate has the length of the training.
    if "--max-update" not in limits and {"--stop-tokens", "--stop-text"} & numbers.keys():
        period, warmup = numbers.get("--lr-period-updates", 0), numbers.get("--warmup-updates", 0)
        if scheduled := period + warmup if period else numbers.get("--total-num-update", 0):
            limits["--max-update"] = scheduled
    parts = []
    if "--max-update" in limits and (updates := re.findall(r"\bnum_updates[=\s]+(\d+)", log)):
        parts.append(int(updates[-1]) / limits["--max-update"])
    if "--max-epoch" in limits:
        # Within an epoch "epoch 003:  200 / 250 loss=...", at its end "| train | epoch 003 | ...".
        within = [int(epoch) - 1 + int(now) / int(of) for epoch, now, of in re.findall(_WITHIN, log) if int(of)]
        ends = [float(epoch) for epoch in re.findall(r"\| train \| epoch (\d+)", log)]
        if within or ends:
            parts.append(max([*within, *ends]) / limits["--max-epoch"])
    return min(1.0, max(parts, default=0.0))


def _command(folder: Path) -> list[str]:
    return shlex.split((folder / TRAINING_COMMAND).read_text(encoding="utf-8"), comments=True)


def may_end_early(folder: Path) -> bool:
    """Return whether a training may end before its limits, when it no longer improves."""
    try:
        return any(name == "--patience" and value.isdecimal() for name, value in itertools.pairwise(_command(folder)))
    except (OSError, ValueError):
        return False


@dataclass
class Step:
    """One job of the workflow: its rule, wildcards and output files."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: Iterable[str] = ()
    began: float = field(default_factory=lambda: time.monotonic())
    seconds: float = 0.0
    # The share of the step that earlier runs have done.
    before: float = 0.0
    # The time of the first observed progress, and the share then; before that, the training was starting.
    first: tuple[float, float] | None = None

    def __str__(self) -> str:
        values = [f"seed {value}" if name == "seed" else str(value) for name, value in self.wildcards.items()]
        return " ".join([self.rule.replace("_", " "), ", ".join(values)]).strip()

    def shown(self) -> str:
        """Return the step as text, with the progress of a training."""
        noted = read_progress(self.folder) if self.rule == "train" else None
        return str(self) if noted is None else f"{self} ({noted})"

    def look(self) -> float:
        """Return the share that is done, and record when it first increased."""
        share = trained(self.folder) if self.rule == "train" else 0.0
        if self.first is None and share > self.before:
            self.first = (time.monotonic(), share)
        return share

    def seconds_of_whole(self, share: float) -> float | None:
        """Return the seconds of a whole step at the speed of this one, or None if too little has been observed."""
        now = time.monotonic()
        if self.first is None or share - self.first[1] < _ENOUGH or may_end_early(self.folder):
            return None
        return (now - self.first[0]) / (share - self.first[1])

    @property
    def counts(self) -> bool:
        """Whether it runs a command."""
        return self.rule not in _NO_STEPS

    @property
    def cost(self) -> float:
        """Its cost relative to other steps."""
        return _OTHER_COST if self.counts and self.rule not in _COST else _COST.get(self.rule, 0.0)

    @property
    def folder(self) -> Path:
        """The folder of its first output."""
        return Path(next(iter(self.outputs), ".")).parent


class Progress:
    """The steps of one run of the workflow, and those that earlier runs have finished."""

    def __init__(self) -> None:
        self.running: list[Step] = []
        self.steps = self.finished = self.earlier = 0
        self._cost = self._paid = self._shown = 0.0
        # The cost of the steps of earlier runs.
        self._earlier_cost = 0.0
        # By rule: the steps that have not begun, the most that ran at once, the seconds of the finished ones, and the
        # shares of them that this run did.
        self._waiting: Counter[str] = Counter()
        self._at_once: defaultdict[str, int] = defaultdict(lambda: 1)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._shares: defaultdict[str, float] = defaultdict(float)

    def plan(self, counts: Mapping[str, int]) -> None:
        """Set the number of steps of each rule that are still to be run."""
        steps = [Step(rule, {}) for rule, count in counts.items() for _ in range(count)]
        self.steps = self.finished + sum(step.counts for step in steps)
        self._cost = self._paid + sum(step.cost for step in steps)
        self._waiting = Counter(counts) - Counter(step.rule for step in self.running)

    def note_earlier(self, counts: Mapping[str, int]) -> None:
        """Set the number of steps of each rule that earlier runs have finished."""
        steps = [Step(rule, {}) for rule, count in counts.items() for _ in range(count)]
        self.earlier = sum(step.counts for step in steps)
        self._earlier_cost = sum(step.cost for step in steps)

    def start(self, step: Step) -> None:
        """Record that a step has started."""
        step.before = trained(step.folder) if step.rule == "train" else 0.0
        self.running.append(step)
        self._waiting[step.rule] -= 1
        at_once = sum(each.rule == step.rule for each in self.running)
        self._at_once[step.rule] = max(self._at_once[step.rule], at_once)

    def finish(self, step: Step) -> None:
        """Record that a step has finished."""
        self.running.remove(step)
        step.seconds = time.monotonic() - step.began
        self.finished += step.counts
        self._paid += step.cost
        if step.counts and step.before < 1:
            self._seconds[step.rule] += step.seconds
            self._shares[step.rule] += 1 - step.before

    def fail(self, step: Step) -> None:
        """Record that a step has failed; Snakemake may start it again."""
        if step in self.running:
            self.running = [each for each in self.running if each is not step]
            self._waiting[step.rule] += 1

    def done(self) -> float:
        """Return the share of the total cost that is done, including earlier runs: 0 to 1, and never decreasing."""
        running = sum(step.cost * step.look() for step in self.running if step.rule == "train")
        whole = self._earlier_cost + self._cost
        self._shown = max(self._shown, min(1.0, (self._earlier_cost + self._paid + running) / (whole or 1.0)))
        return self._shown

    def left(self) -> float | None:
        """Return the seconds left at the speed of this run, or None while the estimate may be wrong by a factor of two.

        A step is assumed to take as long as finished steps of its rule, or a training as its own speed implies once
        enough of it has been observed. Steps of rules that have not run yet are estimated by their relative cost; if
        they are more than a third of the time left, or nothing is known about a training, the result is None. The
        number of steps of a rule that run at once is the most so far. The work of earlier runs is ignored.
        """
        now = time.monotonic()
        looked = [(step, share := step.look(), step.seconds_of_whole(share)) for step in self.running]
        seconds, done = self._seconds.copy(), self._shares.copy()
        for step, _, whole in looked:
            if whole is not None:
                # Including the time that it took to start.
                seconds[step.rule] += whole + (step.first[0] - step.began if step.first else 0.0)
                done[step.rule] += 1
        cost = sum(Step(rule, {}).cost * number for rule, number in done.items())
        if not cost:
            return None
        unit = sum(seconds.values()) / cost

        def expected(rule: str) -> float:
            return seconds[rule] / done[rule] if done[rule] else unit * Step(rule, {}).cost

        waiting = +self._waiting
        remaining = defaultdict[str, float](float, {rule: number * expected(rule) for rule, number in waiting.items()})
        several, longest = Counter(waiting), 0.0
        for step, share, whole in looked:
            if whole is None:
                rest = max(0.0, expected(step.rule) * (1 - step.before) - (now - step.began))
            else:
                rest = whole * (1 - share)
            remaining[step.rule] += rest
            several[step.rule] += 1
            longest = max(longest, rest)
        if several["train"] and not done["train"]:
            return None
        for rule in remaining:
            remaining[rule] /= min(self._at_once[rule], several[rule])
        guessed = sum(left for rule, left in remaining.items() if not done[rule])
        total = max(longest, sum(remaining.values()))
        return None if guessed > _GUESSED * total else total
