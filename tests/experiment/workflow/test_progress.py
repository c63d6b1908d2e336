"""The display of a running workflow: one line per step and, on a terminal, a line with the running ones."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.training.progress import progress_file, read_progress
from mt_scaffold.experiment.workflow.progress import Step

# What mt-scaffold run does.
PROGRAM = "import sys; from mt_scaffold.experiment.workflow import display; display.register(); "
PROGRAM += "from snakemake.cli import main; main(sys.argv[1:])"
SNAKEFILE = """
rule all:
    input: "report.html"
rule get_data:
    output: "raw.txt"
    log: "get-data.log"
    shell: "echo hello > {log}; COMMAND"
rule train:
    input: "raw.txt"
    output: "{system}/training.json"
    shell: "touch {output}"
rule report:
    input: "bpe/training.json"
    output: "report.html"
    shell: "REPORT"
onsuccess: print("the closing words")
"""
STEPS = ["[1/3] get data", "[2/3] train bpe", "[3/3] report"]


def workflow(folder: Path, command: str = "touch {output}", report: str = "touch {output}") -> list[str]:
    """The command line of a workflow of three steps; the commands of the first and the last."""
    (folder / "Snakefile").write_text(SNAKEFILE.replace("COMMAND", command).replace("REPORT", report))
    return [sys.executable, "-c", PROGRAM, "--cores", "1", "--logger", "mt-scaffold"]


def test_a_log_has_one_line_per_step(tmp_path: Path) -> None:
    """Each finished step with its number and time, then the closing words; nothing of Snakemake's."""
    arguments = workflow(tmp_path)
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=True)
    *steps, closing = done.stdout.splitlines()
    assert [line.rpartition(":")[0] for line in steps] == STEPS
    assert closing == "the closing words" and done.stderr == ""


def test_a_terminal_has_a_moving_line_below_the_steps(tmp_path: Path) -> None:
    """It is rewritten in place, and gone before the closing words."""
    waiting = "\rreport"
    # The last step ends once the line was seen, however slow the machine is.
    arguments = workflow(tmp_path, report="timeout 60 sh -c 'until [ -e seen ]; do sleep 0.1; done'; touch {output}")
    leader, follower = pty.openpty()
    # lm-eval sets this variable in earlier tests, and it would hide the line.
    environment = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        written = b""
        try:
            while part := os.read(leader, 4096):
                written += part
                if waiting.encode() in written:
                    (tmp_path / "seen").touch()
        except OSError:
            # Linux reports that the other side is closed.
            pass
        os.close(leader)
    assert process.returncode == 0, written.decode()
    shown = [line.rstrip("\r").rpartition("\r")[2] for line in written.decode().split("\n")]
    assert [line.partition(":")[0] for line in shown if line.startswith("[")] == STEPS
    assert shown[-2] == "the closing words" and shown[-1] == ""
    assert waiting in written.decode()


def test_a_failed_step_is_shown_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The reader need not search for the log, or among the exceptions of Snakemake."""
    arguments = workflow(tmp_path, command="exit 3")
    failed = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "get data: failed; the end of get-data.log:\nhello\n" in failed.stdout
    assert "RuleException" not in failed.stdout and "WorkflowError" not in failed.stdout


def test_a_training_records_its_progress_after_every_update(tiny_data: Path, tmp_path: Path) -> None:
    """Its log has a line only every --log-interval updates, here never; the share is exact, also by tokens."""
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    from conftest import TINY_MODEL

    from mt_scaffold.experiment.training.train import train

    options = [*TINY_MODEL, "--disable-validation", "--no-epoch-checkpoints", "--log-interval", "100000"]
    train(tiny_data, tmp_path / "updates", [*options, "--max-update", "3"])
    # The first update is always recorded, later ones once per second.
    noted = read_progress(tmp_path / "updates")
    assert noted is not None and noted.epoch == 1 and 1 <= noted.updates <= 3 and 0.3 < noted.share <= 1
    assert noted.loss is not None and 1 < noted.loss < 20
    step = Step("train", {"system": "bpe", "seed": "1"}, [str(tmp_path / "updates" / "training.json")])
    assert step.shown() == f"train bpe, seed 1 (epoch 1, update {noted.updates}, loss {noted.loss:.2f})"
    train(tiny_data, tmp_path / "tokens", [*options, "--stop-tokens", "2000"])
    noted = read_progress(tmp_path / "tokens")
    assert noted is not None and 0.1 < noted.share <= 1


def test_the_time_left_follows_from_the_updates_of_this_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the work of earlier runs counts nor the time that a training takes to start."""
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    progress_file(tmp_path).write_text("0.8 8 1000 4.6\n")
    step = Step("train", {"system": "bpe", "seed": "1"}, [str(tmp_path / "training.json")])
    assert step.shown() == "train bpe, seed 1 (epoch 8, update 1,000, loss 4.60)"
    for when, share in ((1100.0, 0.82), (1130.0, 0.91), (1160.0, 0.94)):
        clock = when
        progress_file(tmp_path).write_text(f"{share} 9 1200 4.5\n")
        # Until a tenth of the whole has been seen: 60 s for 12 %.
        left = "; 30 s left" if share == 0.94 else ""
        assert step.shown() == f"train bpe, seed 1 (epoch 9, update 1,200, loss 4.50{left})"


def test_a_training_that_may_end_early_says_nothing_of_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With patience, a tenth of the allowed updates may be nearly all that will be made."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    (tmp_path / "command.txt").write_text("train --max-epoch 100 --patience 3\n")
    step = Step("train", {}, [str(tmp_path / "training.json")])
    for when, share in ((10.0, 0.01), (110.0, 0.2)):
        clock = when
        progress_file(tmp_path).write_text(f"{share} 9 1200\n")
        assert step.shown() == "train (epoch 9, update 1,200)"
