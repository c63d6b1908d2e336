"""Stopping a workflow: the trainings that are asked to stop, and its last words."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from mt_scaffold.experiment.training.stop_request import StopRequest
from mt_scaffold.experiment.workflow import interrupting
from mt_scaffold.experiment.workflow.interrupting import Interruption


def wait_until(request: StopRequest) -> None:
    deadline = time.monotonic() + 10
    while not request.made:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_trainings_are_asked_until_they_hear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A starting training withdraws a request; a folder that cannot be written to does not affect the others."""
    monkeypatch.setattr(interrupting, "_ASKS_EVERY", 0.01)
    interruption = Interruption()
    folders = [tmp_path / "gone", tmp_path / "starting"]
    folders[1].mkdir()
    over = threading.Event()

    def trainings() -> list[Path]:
        if over.is_set():
            raise SystemExit  # ends the thread
        return folders

    interruption._trainings = trainings
    asking = threading.Thread(target=interruption._ask_trainings)
    asking.start()
    request = StopRequest.of(folders[1])
    wait_until(request)
    request.withdraw()
    wait_until(request)
    # A training that has stopped is not asked again: its answer stays for the process that started it.
    request.answer(7)
    time.sleep(0.1)
    assert request.path.read_text() == "7"
    over.set()
    asking.join()
    interruption.last_words([])
    assert [*folders[1].iterdir()] == [] and not folders[0].exists()


def test_a_scheduler_may_send_several_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Ctrl-C ends a workflow that waits for its trainings, with the status of the first signal."""
    interruption = Interruption()
    monkeypatch.setattr(interruption, "_ask_trainings", lambda: None)
    monkeypatch.setattr(interruption, "_wait_for_running", lambda: None)
    for _ in range(3):
        interruption._interrupt(signal.SIGTERM, None)
    assert (interruption.asked, interruption.status) == (1, 128 + signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        interruption._interrupt(signal.SIGINT, None)
    assert ended.value.code == 128 + signal.SIGTERM


def test_the_last_words_are_those_of_this_run(tmp_path: Path) -> None:
    """Logs of earlier runs have such lines of trainings that have resumed since."""
    interruption = Interruption()
    logs = {name: tmp_path / f"{name}.log" for name in ("earlier", "now", "ended", "none")}
    says = "stopped on request after update {}; the same command resumes"
    for seconds, name, text in ((-9, "earlier", says.format(1)), (9, "now", says.format(2)), (9, "ended", "done")):
        logs[name].write_text(f"epoch 1\n{text}\n")
        os.utime(logs[name], (time.time() + seconds,) * 2)
    assert interruption.last_words(logs.values()) == [says.format(2)]
    assert interruption.last_words([logs["earlier"]]) == ["mt-scaffold: interrupted; the same command resumes"]
