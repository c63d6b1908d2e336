"""Stop on request: save after the update in flight and end, without validating.

A request is SIGUSR1, sent to any process of the training, Ctrl-C, or the file of training/stop_request.py.
"""

import functools
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics

from mt_scaffold.experiment.training.progress import PROGRESS_FILE, Noted, ProgressNotes, share_done
from mt_scaffold.experiment.training.stop_request import STOP_FILE, StopRequest

logger = logging.getLogger(__name__)
# The names under which fairseq's training program may have been loaded.
_PROGRAM = ("__main__", "__mp_main__", "fairseq_cli.train")


class _Stop:
    """Whether this process was asked to stop, and whether any process of the training was."""

    asked = False
    _sent: tuple[torch.Tensor, Any] | None = None

    def agreed(self, device: torch.device) -> bool:
        """Return whether any process was asked; all call this after the same update, and get the same answer.

        On GPUs the answer is that of the previous call, to avoid waiting for the update in flight.
        """
        if not (torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1):
            return self.asked
        answer = torch.full((1,), float(self.asked), device=device)
        torch.distributed.all_reduce(answer)
        if not answer.is_cuda:
            return bool(answer)
        before, done = self._sent, torch.cuda.Event()
        self._sent = answer.to("cpu", non_blocking=True), done
        done.record()
        if before is None:
            return False
        before[1].synchronize()
        return bool(before[0])

    def forget(self) -> None:
        """Reset, for another training in this process."""
        self.asked, self._sent = False, None


_stop = _Stop()
_notes = ProgressNotes()


def make_stoppable() -> None:
    """Have fairseq-train stop on request, if this process runs it."""
    for name in _PROGRAM:
        function = getattr(sys.modules.get(name), "should_stop_early", None)
        # Not vars(module), which are a copy if multiprocessing has loaded the module again.
        names = getattr(function, "__globals__", {})
        original = names.get("validate_and_save")
        if original is not None and not hasattr(original, "__wrapped__"):
            names["validate_and_save"] = functools.wraps(original)(functools.partial(_validate_and_save, original))
        in_main_thread = threading.current_thread() is threading.main_thread()
        # mt-scaffold train handles the signals: under it, SIGUSR1 is ignored here, and only PyTorch sends SIGINT.
        if original is not None and in_main_thread and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            signal.signal(signal.SIGUSR1, _ask)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C, which a terminal sends to every process: a second one ends the first process, and so all."""
    parent = multiprocessing.parent_process()
    if _stop.asked if parent is None else os.getppid() != parent.pid:
        raise KeyboardInterrupt
    _ask(number, frame)


def _ask(number: int, frame: FrameType | None) -> None:
    """Ask this process to stop, and the processes of the training that it has spawned."""
    _stop.asked = True
    for child in multiprocessing.active_children():
        if isinstance(child, SpawnProcess) and child.pid is not None:
            os.kill(child.pid, signal.SIGUSR1)


def _validate_and_save(
    validate_and_save: Callable[..., tuple[list[float | None], bool]],
    cfg: Any,
    trainer: Any,
    task: Any,
    epoch_itr: Any,
    valid_subsets: list[str],
    end_of_epoch: bool,
) -> tuple[list[float | None], bool]:
    """After every update, validate and save if fairseq does, and save at the end; on request, also save, and stop."""
    losses, ends = validate_and_save(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)
    master = distributed.is_master(cfg.distributed_training)
    request = StopRequest(Path(os.environ[STOP_FILE])) if master and STOP_FILE in os.environ else None
    if master and PROGRESS_FILE in os.environ:
        _notes.note(os.environ[PROGRESS_FILE], lambda: _reached(cfg, trainer.get_num_updates(), epoch_itr))
    updates, saving = trainer.get_num_updates(), cfg.checkpoint
    by_updates = saving.save_interval_updates > 0 and updates > 0 and updates % saving.save_interval_updates == 0
    by_updates = by_updates and updates >= cfg.dataset.validate_after_updates
    is_saved = ends or by_updates or (end_of_epoch and epoch_itr.epoch % saving.save_interval == 0)
    if not is_saved and end_of_epoch and _no_epoch_follows(cfg, trainer, epoch_itr):
        # fairseq saves at the end of an epoch only by --save-interval, even at the end of the last one.
        checkpoint_utils.save_checkpoint(saving, trainer, epoch_itr, losses[0])
        is_saved = True
    _stop.asked |= request is not None and request.made
    if not _stop.agreed(trainer.device) or ends:
        return losses, ends
    _stop.forget()
    if not is_saved:
        # Without a loss, because only a checkpoint that fairseq would save may be the best.
        checkpoint_utils.save_checkpoint(saving, trainer, epoch_itr, None)
    saved = not (saving.no_save or saving.no_last_checkpoints or saving.no_save_optimizer_state)
    if request is not None and saved:
        request.answer(updates)
    if master:
        outlook = "the same command resumes the training" if saved else "nothing was saved to resume from"
        logger.info(f"stopped on request after update {updates}; {outlook}")
    return losses, True


def _no_epoch_follows(cfg: Any, trainer: Any, epoch_itr: Any) -> bool:
    """Return whether fairseq will leave its loop over the epochs after this one."""
    ends = cfg.optimization
    last = getattr(epoch_itr, "used_up", False) or 0 < ends.max_epoch <= epoch_itr.epoch
    return bool(last or trainer.get_lr() <= ends.stop_min_lr)


def _reached(cfg: Any, updates: int, epoch_itr: Any) -> Noted:
    """Return the progress of a training."""
    meters = metrics.get_meters("train")
    # None before the first update of an epoch has been logged.
    loss = meters.get_smoothed_value("loss") if meters is not None and "loss" in meters else None
    return Noted(_share_done(cfg, updates, epoch_itr), epoch_itr.epoch, updates, None if loss is None else float(loss))


def _share_done(cfg: Any, updates: int, epoch_itr: Any) -> float:
    """Return the share of a training that is done, by the nearest of its limits."""
    epochs = epoch_itr.epoch - 1 + epoch_itr.iterations_in_epoch / max(1, len(epoch_itr))
    reached = [(updates, cfg.optimization.max_update), (epochs, cfg.optimization.max_epoch)]
    if hasattr(epoch_itr, "seen"):
        subwords, text = epoch_itr.seen.tolist()
        reached += [(subwords, cfg.task.stop_tokens), (text, cfg.task.stop_text)]
    return share_done(reached)
