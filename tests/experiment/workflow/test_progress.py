"""The display of a running workflow: one line per step with the time left and, on a terminal, a progress line."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.training.progress import progress_file, read_progress
from mt_scaffold.experiment.workflow.progress import Progress, Step, trained

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
    """Each finished step with its number, time and the time left, then the closing words; nothing of Snakemake's."""
    arguments = workflow(tmp_path)
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=True)
    *steps, closing = done.stdout.splitlines()
    assert [line.rpartition(":")[0] for line in steps] == STEPS
    # Nobody knows how long a training takes before the first one, nor a report.
    assert [line.endswith(" left") for line in steps] == [False, False, False]
    assert closing == "the closing words" and done.stderr == ""


def test_a_terminal_has_a_moving_line_with_the_time_left_below_the_steps(tmp_path: Path) -> None:
    """It is rewritten in place, and gone before the closing words; an unknown time is not shown as "?"."""
    waiting = "time left not known yet: report"
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
    assert waiting in written.decode() and "?" not in written.decode()


def test_a_failed_step_is_shown_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The reader need not search for the log, or among the exceptions of Snakemake."""
    arguments = workflow(tmp_path, command="exit 3")
    failed = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "get data: failed; the end of get-data.log:\nhello\n" in failed.stdout
    assert "RuleException" not in failed.stdout and "WorkflowError" not in failed.stdout


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
    assert trained(tmp_path) == 0
    (tmp_path / "command.txt").write_text(f"python -m fairseq_cli.train data {limit}\n# data: abc\n")
    (tmp_path / "train.log").write_text(f"begin training\n{log}\n")
    assert trained(tmp_path) == expected


def test_a_training_records_its_progress_after_every_update(tiny_data: Path, tmp_path: Path) -> None:
    """Its log has a line only every --log-interval updates, here never; the share is exact, also by tokens."""
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    from conftest import TINY_MODEL

    from mt_scaffold.experiment.training.train import train

    options = [*TINY_MODEL, "--disable-validation", "--no-epoch-checkpoints", "--log-interval", "100000"]
    train(tiny_data, tmp_path / "updates", [*options, "--max-update", "3"])
    # The first update is always recorded, later ones once per second.
    assert 0.3 < trained(tmp_path / "updates") <= 1
    noted = read_progress(tmp_path / "updates")
    assert noted is not None and noted.epoch == 1 and 1 <= noted.updates <= 3
    assert noted.loss is not None and 1 < noted.loss < 20
    step = Step("train", {"system": "bpe", "seed": "1"}, [str(tmp_path / "updates" / "training.json")])
    assert step.shown() == f"train bpe, seed 1 (epoch 1, update {noted.updates}, loss {noted.loss:.2f})"
    train(tiny_data, tmp_path / "tokens", [*options, "--stop-tokens", "2000"])
    assert 0.1 < trained(tmp_path / "tokens") <= 1


def resumed(folder: Path) -> tuple[Progress, Step]:
    """A run that starts a training of which 80 % are done, after ten steps of earlier runs."""
    (folder / "command.txt").write_text("train --max-epoch 10\n")
    (folder / "train.log").write_text("| INFO | train | epoch 008 |\n")
    progress = Progress()
    progress.plan({"train": 1, "all": 1})
    progress.note_earlier({"clean": 10})
    step = Step("train", {"system": "bpe", "seed": "1"}, [str(folder / "training.json")])
    progress.start(step)
    return progress, step


def test_a_resumed_run_shows_what_earlier_runs_have_done(tmp_path: Path) -> None:
    """It showed 0 % again after every Ctrl-C."""
    progress, step = resumed(tmp_path)
    assert str(step) == "train bpe, seed 1" and (progress.steps, progress.earlier) == (1, 10)
    assert progress.done() == pytest.approx(90 / 110)
    (tmp_path / "train.log").write_text("| INFO | train | epoch 009 |\n")
    assert progress.done() == pytest.approx(100 / 110)
    progress.finish(step)
    assert progress.done() == 1 and progress.left() == 0


def test_the_time_left_follows_from_the_speed_of_this_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the work of earlier runs counts nor the time that a training takes to start."""
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    progress, step = resumed(tmp_path)
    assert progress.left() is None
    for when, share in ((1100.0, 0.82), (1130.0, 0.91), (1160.0, 0.94)):
        clock = when
        progress_file(tmp_path).write_text(f"{share} 9 1200 4.5\n")
        # Until a tenth of the whole has been seen: 60 s for 12 %.
        assert progress.left() == (pytest.approx(30) if share == 0.94 else None)
    assert step.shown() == "train bpe, seed 1 (epoch 9, update 1,200, loss 4.50)"


@pytest.mark.parametrize("slow", [1.0, 30.0])
def test_the_time_left_is_right_within_a_factor_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: float
) -> None:
    """It began at 9 h and fell to 18 min, because a slow start counted as the speed of the training.

    Four trainings in pairs, with their translations, of which none has been timed at first. ``slow``: seconds to start.
    """
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    progress = Progress()
    progress.plan({"train": 4, "translate": 4})
    said = []
    for number in range(2):
        pair = [Step("train", {"seed": f"{number}{side}"}, [str(tmp_path / f"{number}{side}" / "r")]) for side in "ab"]
        for step in pair:
            step.folder.mkdir()
            progress.start(step)
        clock += slow
        for update in range(1, 101):
            clock += 1
            for step in pair:
                progress_file(step.folder).write_text(f"{update / 100} 1 {update}\n")
            said.append((clock, progress.left()))
        for step in pair:
            progress.finish(step)
        both = [Step("translate", {"seed": step.wildcards["seed"]}) for step in pair]
        for step in both:
            progress.start(step)
        clock += 20
        for step in both:
            progress.finish(step)
        said.append((clock, progress.left()))
    known = [(when, left) for when, left in said if left is not None]
    assert known and all((clock - when) / 2 <= left <= 2 * (clock - when) for when, left in known)
    assert known[0][0] < slow + 50


def test_a_training_that_may_end_early_says_nothing_of_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With patience, a tenth of the allowed updates may be nearly all that will be made."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    (tmp_path / "command.txt").write_text("train --max-epoch 100 --patience 3\n")
    progress = Progress()
    progress.plan({"train": 2})
    progress.start(step := Step("train", {}, [str(tmp_path / "training.json")]))
    for when, share in ((10.0, 0.01), (110.0, 0.2)):
        clock = when
        progress_file(tmp_path).write_text(f"{share} 9 1200\n")
        assert progress.left() is None
    progress.finish(step)
    assert progress.left() == pytest.approx(110)


def test_the_time_left_is_unknown_before_a_training_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preparation at a second per step promised minutes, but the trainings took hours."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    progress = Progress()
    progress.plan({"clean": 2, "train": 1})
    progress.start(clean := Step("clean", {}))
    clock = 1.0
    progress.finish(clean)
    assert progress.left() is None
    progress.start(train := Step("train", {}, [str(tmp_path / "training.json")]))
    clock = 2.0
    assert progress.left() is None
    clock = 11.0
    progress.finish(train)
    assert progress.left() == pytest.approx(1)


def test_the_time_left_knows_how_long_steps_of_a_rule_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that take longer than trainings are known once one has run; two at once halve the time."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    progress = Progress()
    progress.plan({"train": 4, "evaluate_tasks": 4})
    for number, (rule, seconds) in enumerate([("train", 10.0), ("evaluate_tasks", 30.0)]):
        pair = [Step(rule, {"seed": str(seed)}, [str(tmp_path / rule / str(seed) / "out")]) for seed in range(2)]
        for step in pair:
            progress.start(step)
        clock += seconds
        for step in pair:
            progress.finish(step)
        # By its relative cost, a task would take 3 s, but two take 30.
        assert progress.left() == [None, pytest.approx(10 + 30)][number]


def test_the_last_step_is_not_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings at once halve the time of others, but not that of a third alone."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    progress = Progress()
    progress.plan({"train": 3})
    for step in (pair := [Step("train", {"seed": str(seed)}) for seed in range(2)]):
        progress.start(step)
    clock = 100.0
    for step in pair:
        progress.finish(step)
    assert progress.left() == pytest.approx(100)


def test_a_step_that_is_tried_again_runs_once(tmp_path: Path) -> None:
    """A training that its time limit ended is submitted again; the failed one is no longer shown as running."""
    progress = Progress()
    progress.plan({"train": 1})
    first, again = (Step("train", {"system": "bpe"}, [str(tmp_path / "training.json")]) for _ in range(2))
    progress.start(first)
    progress.fail(first)
    assert progress.running == []
    progress.start(again)
    progress.finish(again)
    assert (progress.running, progress.finished, progress.done()) == ([], 1, 1)
