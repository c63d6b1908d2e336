"""A Snakemake logger: one line per finished step with the time left and, on a terminal, a progress line below.

Snakemake finds a logger by the name of a top-level package; ``mt-scaffold run`` registers this one itself. Warnings and
errors are always shown, and for a failed step the end of its log.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from tqdm import tqdm

from mt_scaffold.experiment.workflow.interrupting import interruption
from mt_scaffold.experiment.workflow.progress import (
    Progress,
    Step,
    after_step,
    end_of,
    finished_earlier,
)
from mt_scaffold.progress import duration

# The name of this logger in Snakemake.
NAME = "mt-scaffold"

# Seconds between updates of the progress line, and lines shown of a failed step's log.
_INTERVAL, _LINES = 1.0, 20
# Further messages of Snakemake about a failed step, which is already shown with its log.
_REPEATED = ("RuleException:\nCalledProcessError in file ", "WorkflowError:\nAt least one job did not complete")
# The outputs of the steps that a dry run has shown.
planned: list[str] = []
_BAR = "{percentage:3.0f}%|{bar}| {elapsed}, {desc}"


def register() -> None:
    """Register this logger with Snakemake."""
    planned.clear()
    LoggerPluginRegistry().register_plugin(f"snakemake_logger_plugin_{NAME}", sys.modules[__name__])


class LogHandler(LogHandlerBase):
    """Show the events of Snakemake; a thread updates the progress line between them."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self._progress = Progress()
        self._steps: dict[int, Step] = {}
        self._bar: Any = None
        self._moving = threading.Lock()
        self._ended = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record; an error here must not stop the workflow."""
        try:
            with self._moving:
                self._show(record, getattr(record, "event", None))
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Remove the progress line."""
        self._ended.set()
        with self._moving:
            self._close_bar()
        super().close()

    def _show(self, record: Any, event: LogEvent | None) -> None:
        if event == LogEvent.RUN_INFO:
            self._progress.plan({rule: count for rule, count in record.stats.items() if rule != "total"})
            if sys.stdout.isatty() and not self.common_settings.dryrun:
                self._open_bar()
        elif event == LogEvent.JOB_INFO:
            step = Step(record.rule_name, record.wildcards or {}, record.output or [])
            self._steps[record.jobid] = step
            if self.common_settings.dryrun:
                planned.extend(step.outputs)
                self._print(str(step))
            else:
                self._progress.start(step)
                self._move()
        elif event == LogEvent.JOB_FINISHED:
            self._finish(self._steps[record.job_id])
        elif event == LogEvent.JOB_ERROR:
            step = self._steps[record.jobid]
            self._progress.fail(step)
            for log in record.log or ["no log"]:
                self._print(f"{step}: failed; the end of {log}:\n{end_of(log, _LINES)}")
        elif record.levelno >= logging.WARNING or (record.msg or "").startswith("Nothing to be done"):
            message = record.getMessage()
            if not message.startswith(_REPEATED):
                self._print(message)

    def _finish(self, step: Step) -> None:
        self._progress.finish(step)
        if step.counts:
            left = self._progress.left() if self._progress.finished < self._progress.steps else None
            more = "" if left is None else f"; {duration(left)} left"
            self._progress.note_earlier(finished_earlier)
            earlier = self._progress.earlier
            number = f"[{earlier + self._progress.finished}/{earlier + self._progress.steps}]"
            score, table = after_step[0](step.outputs) if after_step else ("", "")
            shown = f" ({score})" if score else ""
            self._print(f"{number} {step}: {duration(step.seconds)}{shown}{more}")
            if table:
                self._print(table)
        if self._progress.finished < self._progress.steps:
            self._move()
        else:
            # The Snakefile prints its closing words next.
            self._close_bar()

    def _print(self, text: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        print(text, flush=True)

    def _open_bar(self) -> None:
        if self._bar is None and self._progress.steps:
            # The delay is for the Snakefile to count the steps of earlier runs first.
            self._bar = tqdm(total=1.0, bar_format=_BAR, leave=False, file=sys.stdout, nrows=2, delay=0.001)
            threading.Thread(target=self._keep_moving, daemon=True).start()

    def _keep_moving(self) -> None:
        while not self._ended.wait(_INTERVAL):
            with self._moving:
                self._move()

    def _move(self) -> None:
        if interruption.asked:
            self._close_bar()
        if self._bar is not None:
            self._progress.note_earlier(finished_earlier)
            left = self._progress.left()
            when = "time left not known yet" if left is None else f"{duration(left)} left"
            what = "; ".join(step.shown() for step in self._progress.running) or "starting"
            self._bar.set_description_str(f"{when}: {what}", refresh=False)
            # Not dynamic_ncols, which shows nothing if the terminal does not report its size.
            self._bar.ncols = shutil.get_terminal_size().columns
            self._bar.n = self._progress.done()
            self._bar.refresh()

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
