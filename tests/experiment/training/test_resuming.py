"""Stopping and resuming a training: in every precision, on request, with other options and numbers of processes."""

import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from conftest import TINY_MODEL, replace_checkpoint
from fairseq_training import Step, fairseq_config, fairseq_train, load_plugin, run_processes
from fork_server import ForkServer, environment_without_forks

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import torch

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.runtime import fairseq as fairseq_tools
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.training.average import average
from mt_scaffold.experiment.training.last_checkpoint import mend_last_checkpoint
from mt_scaffold.experiment.training.start import Start, check_resumable, read_start, write_start
from mt_scaffold.experiment.training.train import train

# An epoch of the tiny data has 19 updates.
PRECISIONS = {
    "fp32": [],
    # The window makes the loss scale grow before and after the stop.
    "fp16": ["--fp16", "--fp16-scale-window", "4"],
    "fp16 by parameter": ["--fp16", "--fp16-no-flatten-grads", "--fp16-scale-window", "4"],
    "fp16 memory-efficient": ["--memory-efficient-fp16", "--fp16-scale-window", "4"],
    "bf16": ["--bf16"],
    "bf16 memory-efficient": ["--memory-efficient-bf16"],
}


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    load_plugin()


@pytest.fixture(autouse=True)
def no_gpu_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fp16 train on a CPU: it asks for the number of the device, and for a tensor on the GPU at an overflow."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
        monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)


@pytest.fixture
def command(tiny_data: Path) -> list[str]:
    """The options of a training without an end."""
    return [str(tiny_data), *TINY_MODEL, "--seed", "3", "--task", "translation_resumable"]


def losses(steps: list[Step]) -> list[float]:
    return [step.loss for step in steps]


def state(folder: Path) -> dict[str, Any]:
    return load_checkpoint(folder / "checkpoint_last.pt")


@pytest.mark.parametrize(
    "precision",
    [pytest.param(each, marks=[] if each in ("fp32", "fp16") else pytest.mark.long, id=each) for each in PRECISIONS],
)
def test_losses_after_a_stop_are_those_of_an_uninterrupted_training(
    command: list[str], tmp_path: Path, precision: str
) -> None:
    """fairseq itself resumes fp16 and bf16 from rounded parameters, and loses the counters of the loss scale."""
    command = [*command, *PRECISIONS[precision], "--disable-validation", "--save-dir", str(tmp_path)]
    whole = fairseq_train([*command, "--max-update", "22", "--no-save"])
    stopped = fairseq_train([*command, "--max-update", "6"])
    resumed = fairseq_train([*command, "--max-update", "22"])
    # With fp16, a batch whose gradients overflow makes no update.
    assert len(stopped) >= 6 and len(whole) >= 22 and stopped + resumed == whole
    assert len(set(losses(whole))) == len(whole)


@pytest.mark.parametrize("precision", ["fp16", pytest.param("bf16", marks=pytest.mark.long)])
def test_a_checkpoint_without_fp32_copies_resumes_with_a_warning(
    command: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture, precision: str
) -> None:
    """Checkpoints of older releases and of plain fairseq have none; the differing losses show the copies' purpose."""
    command = [*command, *PRECISIONS[precision], "--disable-validation", "--save-dir", str(tmp_path)]
    whole = fairseq_train([*command, "--max-update", "12", "--no-save"])
    fairseq_train([*command, "--max-update", "6"])
    # A model that is only for translating does not have the copies.
    average([tmp_path / "checkpoint_last.pt"], tmp_path / "averaged.pt")
    assert "last_optimizer_state" not in load_checkpoint(tmp_path / "averaged.pt")
    old = state(tmp_path)
    assert [copy.dtype for copy in old["last_optimizer_state"].pop("fp32_params")][:1] == [torch.float32]
    replace_checkpoint(old, tmp_path / "checkpoint_last.pt")
    resumed = fairseq_train([*command, "--max-update", "12"])
    assert caplog.text.count("the checkpoint has no fp32 copy of the parameters") == 1
    assert losses(resumed)[0] == losses(whole)[6] and losses(resumed)[1:] != losses(whole)[7:]


def test_bf16_does_not_require_a_tpu(command: list[str]) -> None:
    """With --bf16 on the command line, fairseq itself expects a TPU, and fails; here only --tpu requests one."""
    from fairseq import options

    def parse(*more: str) -> Any:
        with mock.patch.object(sys, "argv", ["fairseq-train"]):
            return options.parse_args_and_arch(options.get_training_parser(), [*command, *more])

    for name in ("--bf16", "--memory-efficient-bf16"):
        assert parse(name).bf16 and not parse(name).tpu
    assert parse("--bf16", "--tpu").tpu and not parse("--fp16").tpu
    with pytest.raises(UsageError, match="--fp16 and --bf16 exclude each other"):
        parse("--fp16", "--bf16")


def test_a_signal_stops_after_the_update_in_flight_and_the_next_run_resumes(command: list[str], tmp_path: Path) -> None:
    """No batch is lost, and no time on a validation; the signal comes within the first batch of an update."""
    command = [*command, "--update-freq", "2", "--save-dir", str(tmp_path), "--max-epoch", "2"]
    whole = fairseq_train([*command, "--no-save"])
    with mock.patch("fairseq.trainer.Trainer.valid_step", side_effect=AssertionError("validates")):
        stopped = fairseq_train(command, signal_at=5)
    assert len(stopped) == 6 and state(tmp_path)["extra_state"]["train_iterator"]["iterations_in_epoch"] == 6
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_last.pt"]
    assert stopped + fairseq_train(command) == whole


def test_a_signal_in_the_last_update_of_an_epoch_leaves_its_checkpoint(command: list[str], tmp_path: Path) -> None:
    """Validating and saving after that update are not skipped: averaging and early stopping need them."""
    command = [*command, "--save-dir", str(tmp_path), "--max-epoch", "2"]
    whole = fairseq_train([*command, "--no-save"])
    stopped = fairseq_train(command, signal_at=19)
    assert len(stopped) == 19 and state(tmp_path)["extra_state"]["val_loss"] is not None
    assert (tmp_path / "checkpoint1.pt").exists()
    assert stopped + fairseq_train(command) == whole


def updates(ranks: list[list[Step]], update_freq: int) -> list[list[list[int]]]:
    """The batches of each update, as the numbers of their sentences, from all processes; 19 batches are an epoch."""
    batches = [step.ids for steps in zip(*ranks, strict=True) for step in steps]
    together = len(ranks) * update_freq
    return [sorted(batches[first : first + together]) for first in range(0, len(batches), together)]


@pytest.mark.long
def test_two_processes_then_one_then_two_train_on_the_batches_of_one(
    fairseq_programs: ForkServer, command: list[str], tmp_path: Path
) -> None:
    """The batch is the same, and so is every update, also within an epoch. Only one process is asked to stop."""
    command = [*command, "--disable-validation", "--save-dir", str(tmp_path / "checkpoints"), "--dropout", "0"]
    end = ["--max-update", "16"]
    whole = fairseq_train([*command, "--update-freq", "2", "--no-save", *end])
    two = run_processes(fairseq_programs, [*command, *end], tmp_path / "first", signal_at=3)
    assert [len(steps) for steps in two] == [3, 3]
    one = fairseq_train([*command, "--update-freq", "2", "--max-update", "7"])
    again = run_processes(fairseq_programs, [*command, *end], tmp_path / "second")
    # The tenth update, at the end of the epoch, has one batch, and the second process an idle one.
    expected = [sorted(step.ids for step in group) for group in grouped(whole)]
    found = [*updates(two, 1), *updates([one], 2)]
    assert found == expected[:7]
    for update, steps in enumerate(zip(*again, strict=True), start=7):
        batches = sorted(step.ids for step in steps)
        assert batches == expected[update] or (update == 9 and expected[update][0] in batches)
    assert len(again[0]) == 9


def grouped(steps: list[Step]) -> list[list[Step]]:
    """The steps of each update of two batches; the last of the 19 of an epoch is alone."""
    first = [steps[begin : begin + 2] for begin in range(0, 18, 2)]
    return [*first, steps[18:19], *(steps[begin : begin + 2] for begin in range(19, len(steps), 2))]


def test_an_order_by_epoch_is_the_same_after_a_stop(command: list[str], tmp_path: Path) -> None:
    """fairseq adds the number of the epoch in which it starts to the seed, and some pairs would be skipped."""
    command = [*command, "--disable-validation", "--save-dir", str(tmp_path), "--update-ordered-indices-seed"]
    whole = fairseq_train([*command, "--max-update", "45", "--no-save"])
    assert fairseq_train([*command, "--max-update", "42"]) + fairseq_train([*command, "--max-update", "45"]) == whole


def test_other_dictionaries_of_the_same_size_are_refused(tiny_data: Path, command: list[str], tmp_path: Path) -> None:
    """Plain fairseq-train would continue with the embeddings of other subwords."""
    data = tmp_path / "data"
    shutil.copytree(tiny_data, data)
    command = [str(data), *command[1:], "--disable-validation", "--save-dir", str(tmp_path / "model")]
    fairseq_train([*command, "--max-update", "2"])
    for path in data.glob("dict.*.txt"):
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[1], lines[0], *lines[2:], ""]))
    with pytest.raises(MTScaffoldError, match="the checkpoint was trained with other dictionaries"):
        fairseq_train([*command, "--max-update", "4"])


@pytest.mark.parametrize("option", ["--no-save-optimizer-state", "--no-save", "--no-last-checkpoints"])
def test_a_stop_without_a_full_checkpoint_does_not_promise_to_resume(
    command: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture, option: str
) -> None:
    """The log reports that nothing was saved to resume from."""
    caplog.set_level("INFO")
    fairseq_train([*command, "--save-dir", str(tmp_path), option], signal_at=2)
    assert "stopped on request after update 2; nothing was saved to resume from" in caplog.text


def test_a_stop_is_saved_where_fairseq_saves_nothing_yet(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq's checkpoints of updates begin only with --validate-after-updates."""
    from fairseq import checkpoint_utils

    from mt_scaffold.experiment.fairseq_plugin import stopping

    saved: list[int] = []
    config = fairseq_config([*command, "--save-interval-updates", "2", "--validate-after-updates", "4"])
    validated: tuple[list[float | None], bool] = ([None], False)
    for number in (2, 4):
        monkeypatch.setattr(stopping._stop, "asked", True)
        monkeypatch.setattr(checkpoint_utils, "save_checkpoint", lambda *given, number=number: saved.append(number))
        trainer = SimpleNamespace(get_num_updates=lambda number=number: number, device=None)
        arguments = (config, trainer, None, None, ["valid"], False)
        assert stopping._validate_and_save(lambda *given: validated, *arguments) == ([None], True)
    assert saved == [2]


def test_a_lost_lock_ends_a_training_without_asking_the_new_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop request is a file in the folder of both trainings."""
    from mt_scaffold.experiment.training import stop_request

    with stop_request.stopped_by_signal(tmp_path) as taken, taken.stops_training() as request:
        taken.interrupt(signal.SIGINT, None)
        assert request.made and taken.interrupted
        request.withdraw()
        taken.interrupted = False
        monkeypatch.setattr(stop_request, "lock_lost", lost := threading.Event())
        lost.set()
        with pytest.raises(KeyboardInterrupt):
            taken.interrupt(signal.SIGINT, None)
        assert not request.made


def test_a_stop_request_that_cannot_be_written_is_reported_even_within_a_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A signal may interrupt a print, during which Python refuses another one with a RuntimeError."""
    from mt_scaffold.experiment.training import stop_request

    def refuse(text: str) -> int:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter>")

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=refuse))
    with stop_request.stopped_by_signal(tmp_path) as taken, taken.stops_training():
        taken.running = stop_request.StopRequest(tmp_path / "missing" / "file")
        taken.request(signal.SIGUSR1, None)
    assert "missing/file: No such file or directory; cannot stop the training" in capfd.readouterr().err


def test_a_stop_within_an_update_of_other_processes_is_refused(command: list[str], tmp_path: Path) -> None:
    """Rounding would train on a batch twice, or never."""
    command = [*command, "--disable-validation", "--save-dir", str(tmp_path)]
    fairseq_train([*command, "--max-update", "3"])
    checkpoint = state(tmp_path)
    checkpoint["extra_state"]["train_iterator"]["processes"] = 3
    replace_checkpoint(checkpoint, tmp_path / "checkpoint_last.pt")
    with pytest.raises(MTScaffoldError, match=r"after batch 9 of epoch 1, where no update of 1 processes x update-fre"):
        fairseq_train([*command, "--update-freq", "2", "--max-update", "4"])
    assert len(fairseq_train([*command, "--update-freq", "3", "--max-update", "4"])) == 3


def scaffold_train(data: Path, output: Path, *options: str) -> subprocess.Popen[str]:
    arguments = ["train", "--data", str(data), "--output", str(output), "--seed", "7", "--", *TINY_MODEL, *options]
    command = [sys.executable, "-m", "mt_scaffold", *arguments]
    environment = environment_without_forks()
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0, env=environment)


def test_a_training_stopped_on_request_ends_with_status_75_and_resumes(tiny_data: Path, tmp_path: Path) -> None:
    """SLURM can send the signal to all processes of a job; only mt-scaffold train handles it, and no other dies."""
    (tmp_path / "stop-requested").write_text("")  # of a training that was killed before it could stop
    options = ["--num-workers", "1", "--disable-validation", "--no-epoch-checkpoints"]
    with scaffold_train(tiny_data, tmp_path, *options, "--max-update", "100000") as process:
        wait_for(tmp_path / "train.log", "begin training epoch 2", process)
        for pid in processes_below(process.pid):
            os.kill(pid, signal.SIGUSR1)
        assert process.wait(timeout=100) == 75
        assert process.stderr is not None
        (line,) = process.stderr.read().splitlines()
    found = re.fullmatch(r"mt-scaffold: .*: stopped on request after update (\d+); the same command resumes", line)
    assert found and not (tmp_path / "training.json").exists() and not (tmp_path / "stop-requested").exists()
    end = int(found[1]) + 5
    report = train(tiny_data, tmp_path, [*TINY_MODEL, *options, "--max-update", str(end)], seed=7)
    log = (tmp_path / "train.log").read_text()
    assert report.updates == end and f"@ {found[1]} updates)" in log and log.count("begin training epoch 1\n") == 1


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.long)])
def test_ctrl_c_saves_after_the_update_and_the_final_model_is_the_same(
    tiny_data: Path, tmp_path: Path, precision: str
) -> None:
    """A terminal sends it to every process of its group; without saving, up to a whole epoch would be lost."""
    options = [*TINY_MODEL, *PRECISIONS[precision], "--num-workers", "1", "--disable-validation", "--max-update", "40"]
    options.append("--no-epoch-checkpoints")
    train(tiny_data, tmp_path / "whole", options, seed=7)
    with scaffold_train(tiny_data, tmp_path / "stopped", *options[len(TINY_MODEL) :]) as process:
        wait_for(tmp_path / "stopped" / "train.log", "begin training epoch 1", process)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=100) == 128 + signal.SIGINT
        assert process.stderr is not None
        first, last = process.stderr.read().splitlines()
    assert first == "mt-scaffold: saving after this update; Ctrl-C again ends at once"
    found = re.fullmatch(r"mt-scaffold: .*: interrupted after update (\d+); the same command resumes", last)
    log = (tmp_path / "stopped" / "train.log").read_text()
    assert found and int(found[1]) < 40 and "Traceback" not in log
    train(tiny_data, tmp_path / "stopped", options, seed=7)
    assert f"@ {found[1]} updates)" in (tmp_path / "stopped" / "train.log").read_text()
    models = [state(tmp_path / name / "checkpoints")["model"] for name in ("whole", "stopped")]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_a_second_ctrl_c_ends_a_training_at_once(tiny_data: Path, tmp_path: Path) -> None:
    """The first waits for the update in flight, here one that never ends, because its process is stopped."""
    with scaffold_train(tiny_data, tmp_path, "--max-update", "100000") as process:
        wait_for(tmp_path / "train.log", "begin training epoch 1", process)
        (_, training, *_) = processes_below(process.pid)
        os.kill(training, signal.SIGSTOP)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None and "Ctrl-C again" in process.stderr.readline()
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        os.kill(training, signal.SIGCONT)
        assert process.wait(timeout=60) == 128 + signal.SIGINT and process.stderr.read() == ""
    assert not Path(f"/proc/{training}").exists()


def test_ctrl_z_pauses_a_training_too(tiny_data: Path, tmp_path: Path) -> None:
    """It is in a separate process group, to which the terminal sends nothing."""
    with scaffold_train(tiny_data, tmp_path, "--max-update", "100000") as process:
        wait_for(tmp_path / "train.log", "begin training epoch 1", process)
        (_, training, *_) = processes_below(process.pid)
        os.kill(process.pid, signal.SIGTSTP)
        wait_for_state(process.pid, "T")
        wait_for_state(training, "T")
        os.kill(process.pid, signal.SIGCONT)
        wait_for_state(training, "SR")
        process.kill()


def wait_for_state(pid: int, states: str) -> None:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in states:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for(log: Path, text: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 100
    while not log.exists() or text not in log.read_text():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def processes_below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in processes_below(int(child)))]


def test_a_training_that_waits_for_another_stops_without_disturbing_it(tiny_data: Path, tmp_path: Path) -> None:
    """A stop request would stop the training that is running."""
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with scaffold_train(tiny_data, tmp_path) as process:
            assert process.stderr is not None
            assert "another training is running here" in process.stderr.readline()
            process.send_signal(signal.SIGUSR1)
            assert process.wait(timeout=60) == 75
    assert not (tmp_path / "stop-requested").exists()


def start(options: str, processes: int | None = 8, digest: str = "abc", data: str = "out/bpe-100") -> Start:
    words = ["python", "-m", "fairseq_cli.train", data, "--arch", "transformer", *shlex.split(options)]
    return Start(words, digest, processes)


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (start("--save-interval-updates 1000"), start("--save-interval-updates 500 --keep-interval-updates 2"), None),
        (start("--ddp-backend legacy_ddp"), start("--distributed-backend nccl --log-format json"), None),
        (start("--ddp-backend legacy_ddp"), start("--ddp-backend slowmo"), "--ddp-backend"),
        (start("--num-workers 8 --max-update 10"), start("--num-workers 2 --max-update 20"), None),
        (start("--lr-scheduler cosine --max-update 10"), start("--lr-scheduler cosine --max-update 20"), "--max-upd"),
        (start("--max-tokens 3584"), start("--max-tokens 3000"), "--max-tokens 3000 instead of 3584"),
        (start("--fp16"), start("--bf16"), "--bf16 added, --fp16 removed"),
        (start("--update-freq 1"), start("--update-freq 2", 4), None),
        (start(""), start("--update-freq 8", 1), None),
        (start("--update-freq 2,4,4"), start("--update-freq 4,8", 4), None),
        (start("--update-freq 2,4"), start("--update-freq 4", 4), "the batch: 4 processes x update-freq 4 instead of"),
        (start("--update-freq 1"), start("--update-freq 1", 4), "the batch: 4 processes x update-freq 1 instead of 8"),
        (start("--update-freq 1"), start("--update-freq 2"), "the batch: 8 processes x update-freq 2 instead"),
        (start("--grouped-shuffling"), start("--grouped-shuffling --update-freq 2", 4), "4 processes instead of 8"),
        (start("--use-bmuf"), start("--use-bmuf --update-freq 2", 4), "4 processes instead of 8, with --use-bmuf"),
        (
            start("--ddp-backend slowmo"),
            start("--ddp-backend slowmo --update-freq 2", 4),
            "4 processes instead of 8, with --ddp-backend slowmo",
        ),
        # The number of GPUs is unknown until the training starts.
        (start("--update-freq 1"), start("--update-freq 16", None), None),
        (
            start("--lr-scheduler polynomial_decay --total-num-update 9 --max-update 10"),
            start("--lr-scheduler polynomial_decay --total-num-update 9 --max-update 20"),
            None,
        ),
        (start("--eval-bleu --eval-bleu-args a"), start("--eval-bleu --eval-bleu-args b"), None),
        (start(""), start("", digest="other"), "the data"),
        (start(""), start("", digest=""), None),
        (start(""), start("", digest="", data="out/bpe-200"), "the data"),
    ],
)
def test_what_may_change_when_a_training_resumes(tmp_path: Path, before: Start, now: Start, says: str | None) -> None:
    """Everything that leaves batches and model unchanged, GPUs included; any other change is named."""
    write_start(tmp_path, before)
    check_resumable(tmp_path, now)
    save_iterator(tmp_path, epoch=1, iterations_in_epoch=3, processes=8)
    if says is None:
        check_resumable(tmp_path, now)
        return
    with pytest.raises(MTScaffoldError, match=rf"different settings \({re.escape(says)}"):
        check_resumable(tmp_path, now)


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ("--max-update 100", "--max-update 50", "--max-update 50, but the training is at 60"),
        ("--max-update 100", "--max-update 60", None),
        ("--max-update 100", "--stop-tokens 500", "--stop-tokens 500, but the training is at 800"),
        ("--max-epoch 9", "--max-epoch 3", "--max-epoch 3, but the training is at 4"),
        ("--max-epoch 9", "--max-epoch 4", None),
        ("--stop-tokens 900", "--stop-tokens 800", "--stop-tokens 800, but the training is at 800"),
        ("--stop-tokens 700", "--stop-tokens 800", None),
        ("--stop-text 9999", "--stop-text 9000", "--stop-text 9000, but the training is at 9500"),
        ("--patience 9", "--patience 2", "--patience 2, but the training is at 3"),
        ("--patience 9", "--patience 3", None),
    ],
)
def test_a_limit_that_was_already_exceeded_is_refused(tmp_path: Path, before: str, now: str, says: str | None) -> None:
    """The training would be treated as one that ended there, and be compared with those that did."""
    write_start(tmp_path, start(before))
    seen: dict[str, Any] = {"seen": {"subwords": 800, "text_bytes": 9500}}
    seen |= {"without_improvement": {"best": 1.0, "validations": 3}}
    save_iterator(tmp_path, epoch=4, iterations_in_epoch=2, **seen)
    if says is None:
        check_resumable(tmp_path, start(now))
        return
    with pytest.raises(MTScaffoldError, match=rf"different settings \({re.escape(says)}; see"):
        check_resumable(tmp_path, start(now))


def save_iterator(training: Path, name: str = "checkpoint_last.pt", updates: int = 60, **iterator: Any) -> None:
    """Save a checkpoint with only the position in the batches."""
    (training / "checkpoints").mkdir(exist_ok=True)
    state: dict[str, Any] = {"model": {}, "extra_state": {"train_iterator": iterator}}
    state |= {"optimizer_history": [{"num_updates": updates}], "last_optimizer_state": {}}
    torch.save(state, training / "checkpoints" / name)


def test_the_checkpoint_with_the_most_updates_replaces_a_truncated_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever its name, and whether the last one is truncated or was never copied; a message names it."""
    folder = tmp_path / "checkpoints"
    last = folder / "checkpoint_last.pt"
    mend_last_checkpoint(folder)
    folder.mkdir()
    mend_last_checkpoint(folder)
    assert not last.exists() and capsys.readouterr().err == ""
    for name, updates in {"checkpoint1.pt": 10, "checkpoint_2_25.pt": 25, "checkpoint_best.pt": 30}.items():
        save_iterator(tmp_path, name, updates, epoch=2, iterations_in_epoch=5)
    torch.save({"model": {}, "optimizer_history": [{"num_updates": 90}]}, folder / "checkpoint9.pt")  # thinned
    for name, damage in (("checkpoint_best.pt", b"half"), ("checkpoint_2_25.pt", b"half"), ("checkpoint1.pt", None)):
        if damage is not None:
            last.write_bytes(damage)
        mend_last_checkpoint(folder)
        assert last.read_bytes() == (folder / name).read_bytes()
        assert f"{'missing' if damage is None else 'truncated'}; resuming from {name}" in capsys.readouterr().err
        last.unlink()
        (folder / name).unlink()
    last.write_bytes(b"half")
    (folder / "checkpoint9.pt").unlink()
    mend_last_checkpoint(folder)
    assert not last.exists() and "like every other checkpoint; training from the start" in capsys.readouterr().err


def test_mending_follows_no_link(tmp_path: Path) -> None:
    """Neither one in place of the checkpoint nor one planted next to it is followed."""
    folder = tmp_path / "checkpoints"
    save_iterator(tmp_path, "checkpoint1.pt", 10, epoch=2)
    (folder / "checkpoint1.pt").chmod(0o640)
    (tmp_path / "victim").write_text("precious")
    for name in ("checkpoint_last.part", "checkpoint_last.pt.part", "checkpoint_last.pt"):
        (folder / name).symlink_to(tmp_path / "victim")
    mend_last_checkpoint(folder)
    last = folder / "checkpoint_last.pt"
    assert (tmp_path / "victim").read_text() == "precious" and not last.is_symlink()
    assert last.read_bytes() == (folder / "checkpoint1.pt").read_bytes() and last.stat().st_mode & 0o777 == 0o640
    assert not list(folder.glob(".*"))


def test_a_truncated_checkpoint_has_the_batch_of_the_one_that_replaces_it(tmp_path: Path) -> None:
    """Fewer processes are not a reason to train from scratch if the checkpoint of an epoch is intact."""
    write_start(tmp_path, start("--update-freq 1"))
    save_iterator(tmp_path, "checkpoint3.pt", epoch=4, iterations_in_epoch=0)
    (tmp_path / "checkpoints" / "checkpoint_last.pt").write_bytes(b"half")
    check_resumable(tmp_path, start("--update-freq 2", 4))


def test_a_batch_that_other_processes_cannot_find_is_refused(tmp_path: Path) -> None:
    """Checkpoints of fairseq's own tasks count the batches of one process."""
    write_start(tmp_path, start("--update-freq 1"))
    fewer = start("--update-freq 2", 4)
    save_iterator(tmp_path, epoch=2, iterations_in_epoch=3)
    with pytest.raises(MTScaffoldError, match="4 processes instead of 8, from a checkpoint within an epoch that does"):
        check_resumable(tmp_path, fewer)
    check_resumable(tmp_path, start("--update-freq 1"))
    save_iterator(tmp_path, epoch=2, iterations_in_epoch=0)
    check_resumable(tmp_path, fewer)


def test_a_command_that_was_modified_is_named(tmp_path: Path) -> None:
    """The batch depends on the number of processes, which is never assumed."""
    save_iterator(tmp_path, epoch=2, iterations_in_epoch=0)
    write_start(tmp_path, start("--update-freq 2"))
    assert read_start(tmp_path) == start("--update-freq 2")
    path = tmp_path / "command.txt"
    path.write_text(path.read_text().replace("# processes: 8", ""))
    with pytest.raises(MTScaffoldError, match=r"command\.txt: damaged or modified; delete \S+ to train from scratch"):
        check_resumable(tmp_path, start("--update-freq 2"))


def test_a_refused_training_is_left_as_it_was(tiny_data: Path, tiny_model: Path, tmp_path: Path) -> None:
    """No file is written, not even a lock."""
    shutil.copytree(tiny_model, tmp_path / "model")
    (tmp_path / "model" / ".lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "model").rglob("*")}
    with pytest.raises(MTScaffoldError, match=r"\(the batch: 1 processes x update-freq 2 instead of 1 processes x"):
        train(tiny_data, tmp_path / "model", [*TINY_MODEL, "--max-epoch", "3", "--update-freq", "2"], seed=7)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "model").rglob("*")} == before


@pytest.mark.parametrize(
    ("cuda", "driver", "visible", "says"),
    [
        (None, (12, 2), None, r"built for CPUs only; install PyTorch for CUDA 12: pip install torch --index-url "),
        ("13.0", (12, 2), None, r"is built for CUDA 13\.0, and the driver supports CUDA up to 12\.2; update"),
        ("12.6", (12, 2), "", "CUDA_VISIBLE_DEVICES= hides every GPU"),
        ("12.6", (12, 2), None, "its driver reports none"),
    ],
)
def test_the_reason_why_pytorch_finds_no_gpu_is_given(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, driver: tuple[int, int], visible: str | None, says: str
) -> None:
    """The commonest cause, a wheel whose CUDA is newer than the driver's, is reported nowhere else."""
    monkeypatch.setattr(fairseq_tools, "_GPU_DEVICES", ("/dev/null",))
    monkeypatch.setattr(fairseq_tools, "_driver_cuda", lambda: driver)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert re.search(says, fairseq_tools.no_gpu_message())
