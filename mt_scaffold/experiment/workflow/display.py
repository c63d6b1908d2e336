"""A Snakemake logger: one line per finished step and, on a terminal, a line with the running steps below.

Snakemake finds a logger by the name of a top-level package; ``mt-scaffold run`` registers this one itself. Warnings and
errors are always shown, and for a failed step the end of its log.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from tqdm import tqdm

from mt_scaffold.experiment.workflow.interrupting import interruption
from mt_scaffold.experiment.workflow.progress import Step, end_of
from mt_scaffold.progress import duration

# The name of this logger in Snakemake.
NAME = "mt-scaffold"

# A target without a command: the first rule of the Snakefile.
_NO_STEPS = {"all", "total"}
# The number of steps that earlier runs have finished, as set by the Snakefile.
finished_earlier = 0
# Seconds between updates of the line of running steps, and lines shown of a failed step's log.
_INTERVAL, _LINES = 1.0, 20
# Further messages of Snakemake about a failed step, which is already shown with its log.
_REPEATED = ("RuleException:\nCalledProcessError in file ", "WorkflowError:\nAt least one job did not complete")
# The outputs of the steps that a dry run has shown.
planned: list[str] = []


def register() -> None:
    """Register this logger with Snakemake."""
    planned.clear()
    LoggerPluginRegistry().register_plugin(f"snakemake_logger_plugin_{NAME}", sys.modules[__name__])


class LogHandler(LogHandlerBase):
    """Show the events of Snakemake; a thread updates the line of the running steps between them."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self._steps: dict[int, Step] = {}
        self._running: list[Step] = []
        self._number = self._finished = 0
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
        """Remove the line of the running steps."""
        self._ended.set()
        with self._moving:
            self._close_bar()
        super().close()

    def _show(self, record: Any, event: LogEvent | None) -> None:
        if event == LogEvent.RUN_INFO:
            planned_now = sum(count for rule, count in record.stats.items() if rule not in _NO_STEPS)
            self._number = self._finished + planned_now
            if sys.stdout.isatty() and not self.common_settings.dryrun:
                self._open_bar()
        elif event == LogEvent.JOB_INFO:
            step = Step(record.rule_name, record.wildcards or {}, record.output or [])
            self._steps[record.jobid] = step
            if self.common_settings.dryrun:
                planned.extend(step.outputs)
                self._print(str(step))
            else:
                self._running.append(step)
                self._move()
        elif event == LogEvent.JOB_FINISHED:
            self._finish(self._steps[record.job_id])
        elif event == LogEvent.JOB_ERROR:
            step = self._steps[record.jobid]
            self._drop(step)
            for log in record.log or ["no log"]:
                self._print(f"{step}: failed; the end of {log}:\n{end_of(log, _LINES)}")
        elif record.levelno >= logging.WARNING or (record.msg or "").startswith("Nothing to be done"):
            message = record.getMessage()
            if not message.startswith(_REPEATED):
                self._print(message)

    def _finish(self, step: Step) -> None:
        self._drop(step)
        if step.rule not in _NO_STEPS:
            self._finished += 1
            number = f"[{finished_earlier + self._finished}/{finished_earlier + self._number}]"
            self._print(f"{number} {step}: {duration(time.monotonic() - step.began)}")
        if self._finished < self._number:
            self._move()
        else:
            # The Snakefile prints its closing words next.
            self._close_bar()

    def _drop(self, step: Step) -> None:
        # Snakemake may start a failed step again.
        self._running = [each for each in self._running if each is not step]

    def _print(self, text: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        print(text, flush=True)

    def _open_bar(self) -> None:
        if self._bar is None and self._number:
            self._bar = tqdm(bar_format="{desc}", leave=False, file=sys.stdout, nrows=2)
            threading.Thread(target=self._keep_moving, daemon=True).start()

    def _keep_moving(self) -> None:
        while not self._ended.wait(_INTERVAL):
            with self._moving:
                self._move()

    def _move(self) -> None:
        if interruption.asked:
            self._close_bar()
        if self._bar is not None:
            running = "; ".join(step.shown() for step in self._running) or "starting"
            self._bar.set_description_str(running, refresh=False)
            # Not dynamic_ncols, which shows nothing if the terminal does not report its size.
            self._bar.ncols = shutil.get_terminal_size().columns
            self._bar.refresh()

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
