"""The display of a running workflow: one moving line on a terminal, one line per step in a log."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

SCRIPTS = ROOT / "scripts"
SNAKEFILE = """
rule all:
    input: "bpe/training.json"
rule get_data:
    output: "raw.txt"
    log: "get-data.log"
    shell: "echo hello > {log}; COMMAND"
rule train:
    input: "raw.txt"
    output: "{system}/training.json"
    shell: "sleep 1.5; touch {output}"
onsuccess: print("the closing words")
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the logger on the path of this process."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


def workflow(folder: Path, command: str = "touch {output}") -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of a workflow of two steps."""
    (folder / "Snakefile").write_text(SNAKEFILE.replace("COMMAND", command))
    arguments = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "steps"]
    return arguments, os.environ | {"PYTHONPATH": f"{SCRIPTS}{os.pathsep}{SCRIPTS.parent}"}


def test_a_log_has_one_line_per_step(tmp_path: Path) -> None:
    """Each finished step with its number and time, then the workflow's closing words, and nothing of Snakemake's."""
    arguments, environment = workflow(tmp_path)
    done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    *steps, closing = done.stdout.splitlines()
    assert [line.rpartition(":")[0] for line in steps] == ["[1/2] get data", "[2/2] train bpe"]
    assert closing == "the closing words" and done.stderr == ""


def test_a_terminal_has_one_moving_line_with_the_time_left(tmp_path: Path) -> None:
    """The line is written over and over, and gone when the closing words are printed."""
    arguments, environment = workflow(tmp_path)
    leader, follower = pty.openpty()
    with subprocess.Popen(arguments, cwd=tmp_path, env=environment, stdout=follower, stderr=follower) as process:
        os.close(follower)
        written = b""
        try:
            while part := os.read(leader, 4096):
                written += part
        except OSError:
            # How Linux tells that the other side is closed.
            pass
        os.close(leader)
    assert process.returncode == 0
    moving, _, closing = written.decode().rpartition("\r \r" if b"\r \r" in written else " \r")
    assert closing == "the closing words\r\n"
    assert "\n" not in moving and "left: get data" in moving and "left: train bpe" in moving


def test_a_failed_step_is_shown_with_the_end_of_its_log(tmp_path: Path) -> None:
    """So that the reader need not look for the log."""
    arguments, environment = workflow(tmp_path, command="exit 3")
    failed = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "get data: failed; the end of get-data.log:\nhello\n" in failed.stdout


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("limit", "log", "expected"),
    [
        ("--max-epoch 4", "epoch 002:     50 / 100 loss=3, num_updates=150", 0.375),
        ("--max-epoch 4", "| INFO | train | epoch 003 | loss 3 | num_updates 300", 0.75),
        ("--max-update 600", "epoch 002:     50 / 100 loss=3, num_updates=150", 0.25),
        ("--max-epoch 0 --max-update 300", "| INFO | train | epoch 003 | loss 3 | num_updates 300", 1.0),
        ("--max-epoch 4", "", 0.0),
        ("--patience 3", "epoch 002:     50 / 100 loss=3, num_updates=150", 0.0),
        # A language model's: it ends by tokens or text, and its schedule with it.
        ("--stop-tokens 9 --lr-period-updates 250 --warmup-updates 50", "50 / 100 loss=3, num_updates=150", 0.5),
        ("--stop-text 9 --total-num-update 600", "epoch 002:     50 / 100 loss=3, num_updates=150", 0.25),
    ],
)
def test_a_trainings_progress_comes_from_its_log(tmp_path: Path, limit: str, log: str, expected: float) -> None:
    """By epochs or by updates, whichever limit the command has; without one it is unknown."""
    from snakemake_logger_plugin_steps.progress import trained

    assert trained(tmp_path) == 0
    (tmp_path / "command.txt").write_text(f"python -m fairseq_cli.train data {limit}\n# data: abc\n")
    (tmp_path / "train.log").write_text(f"begin training\n{log}\n")
    assert trained(tmp_path) == expected


@pytest.mark.usefixtures("scripts")
def test_a_resumed_training_counts_what_is_left_of_it(tmp_path: Path) -> None:
    """The time left follows from this run's speed, to which an earlier run's epochs contribute nothing."""
    from snakemake_logger_plugin_steps.progress import Progress, Step

    (tmp_path / "command.txt").write_text("train --max-epoch 10\n")
    (tmp_path / "train.log").write_text("| INFO | train | epoch 008 |\n")
    progress = Progress()
    progress.plan({"train": 1, "all": 1})
    step = Step("train", {"system": "bpe", "seed": "1"}, [str(tmp_path / "training.json")])
    progress.start(step)
    assert str(step) == "train bpe, seed 1" and progress.done() == 0 and progress.steps == 1
    (tmp_path / "train.log").write_text("| INFO | train | epoch 009 |\n")
    assert progress.done() == pytest.approx(0.5)
    progress.finish(step)
    assert progress.done() == 1


@pytest.mark.usefixtures("scripts")
def test_a_step_that_is_tried_again_runs_once(tmp_path: Path) -> None:
    """A training that its time limit ended is submitted again; the failed one is no longer shown as running."""
    from snakemake_logger_plugin_steps.progress import Progress, Step

    progress = Progress()
    progress.plan({"train": 1})
    first, again = (Step("train", {"system": "bpe"}, [str(tmp_path / "training.json")]) for _ in range(2))
    progress.start(first)
    progress.fail(first)
    assert progress.running == []
    progress.start(again)
    progress.finish(again)
    assert (progress.running, progress.finished, progress.done()) == ([], 1, 1)
