"""A workflow that is asked to stop: which trainings hear of it."""

from __future__ import annotations

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
    """One that starts withdraws what it finds; a folder that cannot be written to keeps nobody from being asked."""
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
    # What has stopped is not asked again: its answer stays for the one that started it.
    request.answer(7)
    time.sleep(0.1)
    assert request.path.read_text() == "7"
    over.set()
    asking.join()
    interruption.last_words([])
    assert [*folders[1].iterdir()] == [] and not folders[0].exists()
