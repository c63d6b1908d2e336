"""Training through fairseq: stopping and resuming, and what is refused."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TINY_MODEL
from fairseq_training import fairseq_config

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.runtime.fairseq import gpus_in_all, launcher_command
from mt_scaffold.segment.apply import BPE

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.experiment.fairseq_plugin.experiment_task import check_shards
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.average import last_checkpoints
from mt_scaffold.experiment.training.progress import PROGRESS_FILE
from mt_scaffold.experiment.training.start import write_start
from mt_scaffold.experiment.training.stop_request import STOP_FILE, StopRequest
from mt_scaffold.experiment.training.train import TrainingRecord, _run, start_with, train


def test_a_training_leaves_command_log_checkpoints_and_report(tiny_model: Path, tiny_words: Path) -> None:
    """Whoever finds the folder can see and repeat what was run."""
    command = (tiny_model / "command.txt").read_text()
    assert "fairseq_cli.train" in command and "--seed 7" in command and "--max-epoch 3" in command
    assert "done training" in (tiny_model / "train.log").read_text()
    report = read_result(TrainingRecord, tiny_model / "training.json")
    assert report.epochs == 3 and report.seed == 7 and report.updates > 3
    assert report.parameters > 1000 and report.versions["fairseq-fixed"]
    bpe = BPE(tiny_words / "codes")
    lines = "".join((tiny_words / f"train.{language}").read_text() for language in ("en", "de")).splitlines()
    assert report.subwords == 3 * sum(len(bpe.segment(line).split()) + 1 for line in lines)
    assert report.text_bytes == 3 * sum(len(line.encode()) + 1 for line in lines)
    assert report.stop == "epochs" and report.valid_metric == "loss"
    assert report.command == command and [updates for updates, _ in report.curves["valid"]][-1] == report.updates
    assert (tiny_model / "checkpoints" / "checkpoint3.pt").exists()


def test_on_a_cpu_memory_is_kept_unless_the_user_sets_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """glibc's settings save a fifth of the time of a small model; the user's own settings win."""
    seen: list[dict[str, str]] = []
    monkeypatch.setattr("mt_scaffold.experiment.training.train.run_command", lambda *call: seen.append(call[3]))
    monkeypatch.setenv("MALLOC_TOP_PAD_", "4096")
    for on_cpu in (True, False):
        _run(["true"], tmp_path / "train.log", StopRequest(tmp_path / "stop"), on_cpu)
    assert seen[0]["MALLOC_MMAP_MAX_"] == "0" and seen[0]["MALLOC_TOP_PAD_"] == "4096"
    assert {*seen[1]} == {STOP_FILE, PROGRESS_FILE}


def test_a_stopped_training_resumes_to_the_very_same_model(tiny_data: Path, tiny_model: Path, tmp_path: Path) -> None:
    """Stopped after two epochs, while checkpoint_last.pt was being copied, it must end as if never stopped."""
    import torch

    train(tiny_data, tmp_path, [*TINY_MODEL, "--max-epoch", "2"], seed=7)
    last = tmp_path / "checkpoints" / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:5000])
    report = train(tiny_data, tmp_path, [*TINY_MODEL, "--max-epoch", "3"], seed=7, keep_epochs=2)
    assert report.epochs == 3
    assert (tmp_path / "train.log").read_text().count("begin training epoch 1\n") == 1
    kept = sorted(path.name for path in (tmp_path / "checkpoints").glob("checkpoint[0-9].pt"))
    assert kept == ["checkpoint2.pt", "checkpoint3.pt"]
    stopped = load_checkpoint(last)["model"]
    for name, tensor in load_checkpoint(tiny_model / "checkpoints" / "checkpoint_last.pt")["model"].items():
        assert torch.equal(tensor, stopped[name]), name


def test_a_torn_last_checkpoint_is_replaced_by_the_newest_whole_one(tiny_data: Path, tmp_path: Path) -> None:
    """Killed while copying a checkpoint within an epoch, a training loses no update from before that checkpoint."""
    options = [*TINY_MODEL, "--save-interval-updates", "3", "--keep-interval-updates", "1"]
    epoch = train(tiny_data, tmp_path, [*options, "--max-epoch", "1"], seed=7).updates
    stop = epoch // 3 * 3 + 6
    train(tiny_data, tmp_path, [*options, "--max-update", str(stop)], seed=7)
    assert (tmp_path / "checkpoints" / f"checkpoint_2_{stop}.pt").exists() and epoch < stop < 2 * epoch
    last = tmp_path / "checkpoints" / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:5000])
    train(tiny_data, tmp_path, [*options, "--max-epoch", "2"], seed=7)
    resumed = (tmp_path / "train.log").read_text().split("Loaded checkpoint")[-1]
    assert f"@ {stop} updates" in resumed.splitlines()[0]


def test_averaging_by_updates_includes_the_final_update(tiny_data: Path, tmp_path: Path) -> None:
    """fairseq may end a training between two intervals."""
    options = [*TINY_MODEL, "--save-interval-updates", "3", "--disable-validation", "--max-update", "5"]
    train(tiny_data, tmp_path, options, seed=7)
    found = last_checkpoints(tmp_path / "checkpoints", 2, by_updates=True)
    assert [path.name for path in found] == ["checkpoint_1_3.pt", "checkpoint_last.pt"]


def test_a_training_started_with_other_options_is_not_resumed(
    tiny_data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    """fairseq would load the checkpoint and continue as if nothing had changed."""
    shutil.copytree(tiny_model, tmp_path / "model")
    log = (tmp_path / "model" / "train.log").read_text()
    other = [*TINY_MODEL, "--max-epoch", "3", "--clip-norm", "1.0"]
    with pytest.raises(
        MTScaffoldError, match=r"started with different settings \(--clip-norm 1\.0 instead of none; see"
    ):
        train(tiny_data, tmp_path / "model", other, seed=7)
    with pytest.raises(MTScaffoldError, match=r"\(--seed 8 instead of 7; see"):
        train(tiny_data, tmp_path / "model", [*TINY_MODEL, "--max-epoch", "3"], seed=8)
    shutil.copytree(tiny_data, tmp_path / "data")
    description = tmp_path / "data" / "binarised.json"
    description.write_text(description.read_text().replace('"train": 200', '"train": 201'))
    with pytest.raises(MTScaffoldError, match=r"\(the data; see"):
        train(tmp_path / "data", tmp_path / "model", [*TINY_MODEL, "--max-epoch", "3"], seed=7)
    assert (tmp_path / "model" / "train.log").read_text() == log


EVERY_RESUME = r"acts whenever a training resumes; .* give --finetune-from-model FILE"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        # With --reset-dataloader, a training that is longer than its job would never end.
        *((option, EVERY_RESUME) for option in ("--reset-optimizer", "--reset_dataloader", "--restore-file=model.pt")),
        # A second value would contradict the report of the training.
        *((each, "is set by mt-scaffold itself") for each in ("--seed", "--save-dir=elsewhere", "--user_dir", "--cpu")),
        ("--patience 3", "--patience would stop on the loss per subword"),
        ("--patience 3 --best-checkpoint-metric nll_loss", "--patience would stop on the loss per subword"),
    ],
)
def test_options_that_would_not_do_what_they_say_are_refused(
    tiny_data: Path, tmp_path: Path, options: str, says: str
) -> None:
    """They are refused before anything runs."""
    with pytest.raises(UsageError, match=says):
        train(tiny_data, tmp_path, [*TINY_MODEL, *options.split()])
    with pytest.raises(UsageError, match="a seed must be from 0 to 4000000000"):
        train(tiny_data, tmp_path, TINY_MODEL, seed=2**32 + 1)
    assert not (tmp_path / "train.log").exists()


def test_keep_epochs_does_not_override_fairseqs_own_option(tiny_data: Path, tmp_path: Path) -> None:
    """The option wins in either of its forms."""
    for option in (["--keep-last-epochs", "5"], ["--keep-last-epochs=5"]):
        planned = start_with(tiny_data, tmp_path, [*TINY_MODEL, *option], keep_epochs=2)
        assert planned.options["keep-last-epochs"] == "5"
    assert start_with(tiny_data, tmp_path, TINY_MODEL, keep_epochs=2).options["keep-last-epochs"] == "2"


def test_a_folder_without_a_training_set_is_reported(tiny_data: Path, tmp_path: Path) -> None:
    """In one line instead of fairseq's traceback, and before anything is written."""
    shutil.copytree(tiny_data, tmp_path / "data")
    description = tmp_path / "data" / "binarised.json"
    content = json.loads(description.read_text())
    for name in ("pairs", "counts"):
        content[name] = {"test": content[name]["train"]}
    description.write_text(json.dumps(content))
    with pytest.raises(MTScaffoldError, match=r"no training set in this folder \(it has test\)"):
        train(tmp_path / "data", tmp_path / "model", [*TINY_MODEL, "--max-epoch", "1"])
    assert not (tmp_path / "model").exists()


def test_the_gpus_of_all_nodes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch size depends on their number."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    assert [gpus_in_all(1, 0), gpus_in_all(2, 0), gpus_in_all(2, 4), gpus_in_all(1, 1)] == [8, 16, 8, 1]
    with pytest.raises(UsageError, match="the number of GPUs must be 0"):
        launcher_command("fairseq", 1, -8)


def test_nodes_with_one_gpu_each_train_together(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq would treat each node's GPU as the only one, and every node would train a separate model."""
    monkeypatch.setattr("mt_scaffold.experiment.training.train.sees_gpu", lambda: True)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    start = start_with(tiny_data, tmp_path, TINY_MODEL, launcher="srun", nodes=2, gpus=1)
    assert start.options["distributed-world-size"] == "2"
    given = start_with(tiny_data, tmp_path, [*TINY_MODEL, "--distributed-world-size", "4"], nodes=1, gpus=2)
    assert given.options["distributed-world-size"] == "4"


def test_slurm_does_not_set_the_number_of_processes(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a job with 8 GPUs, fairseq would use all instead of 4, or wait for tasks that nothing starts."""
    from fairseq.distributed import utils as distributed

    monkeypatch.setattr("mt_scaffold.experiment.training.train.sees_gpu", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    monkeypatch.setattr("subprocess.check_output", lambda command: b"node1\n")
    for name, value in {"JOB_NODELIST": "node1", "NNODES": "1", "NODEID": "0", "PROCID": "0", "LOCALID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    for tasks, gpus in ((1, 4), (8, 8), (1, 1), (8, 0)):
        monkeypatch.setenv("SLURM_NTASKS_PER_NODE", str(tasks))
        start = start_with(tiny_data, tmp_path, TINY_MODEL, gpus=gpus)
        arguments = start.command[start.command.index("fairseq_cli.train") + 1 :]
        found = fairseq_config([*arguments]).distributed_training
        if found.distributed_init_method is None:
            distributed.infer_init_method(found)
        assert (start.processes, found.distributed_world_size) == (gpus or 8, gpus or 8)
        assert not found.distributed_no_spawn
        assert (found.distributed_init_method or "tcp://localhost:").startswith("tcp://localhost:")
    own = start_with(tiny_data, tmp_path, [*TINY_MODEL, "--distributed-port", "7000"], gpus=4)
    assert "distributed-init-method" not in own.options


def test_folders_used_in_turn_have_the_same_ids(tiny_data: Path, tmp_path: Path) -> None:
    """Each epoch trains on the next; the digest is of all of them."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        shutil.copytree(tiny_data, folder)
    both = os.pathsep.join(map(str, folders))
    start = start_with(both, tmp_path / "model", TINY_MODEL)
    assert start.data == both and start.data_digest != start_with(folders[0], tmp_path, TINY_MODEL).data_digest
    report = train(both, tmp_path / "model", [*TINY_MODEL, "--max-epoch", "2", "--disable-validation"])
    log = (tmp_path / "model" / "train.log").read_text()
    assert report.epochs == 2 and [f"{folder}/train.en-de.en" in log for folder in folders] == [True, True]
    description = folders[1] / "binarised.json"
    digest = json.loads(description.read_text())["sha256"]["dict.en.txt"]
    description.write_text(description.read_text().replace(digest, "0" * 64))
    for check in (lambda: start_with(both, tmp_path, TINY_MODEL), lambda: check_shards(both)):
        with pytest.raises(MTScaffoldError, match=r"b: its ids are not those of .*a; make it again with the same co"):
            check()
    with pytest.raises(MTScaffoldError, match="nowhere: no such folder"):
        start_with(f"{folders[0]}:{tmp_path / 'nowhere'}", tmp_path, TINY_MODEL)


def test_a_failing_training_shows_the_end_of_its_log_and_where_it_is(tiny_data: Path, tmp_path: Path) -> None:
    """The cause is visible without searching for the log."""
    with pytest.raises(MTScaffoldError) as caught:
        train(tiny_data, tmp_path, [*TINY_MODEL, "--encoder-attention-heads", "3"])
    message = str(caught.value)
    assert "fairseq-train failed (exit status 1)" in message
    assert str(tmp_path / "train.log") in message and "embed_dim must be divisible by num_heads" in message
    assert not (tmp_path / "training.json").exists()


def test_an_option_that_fairseq_rejects_is_one_line(tiny_data: Path, tmp_path: Path) -> None:
    """fairseq's own usage text would hide it."""
    with pytest.raises(UsageError) as caught:
        train(tiny_data, tmp_path, ["--arch", "transfurmer"])
    log = tmp_path / "train.log"
    assert str(caught.value) == f"fairseq-train: argument --arch/-a: invalid choice: 'transfurmer'; whole log: {log}"


def test_too_few_epochs_to_average_are_one_line_before_the_first_update(tiny_data: Path, tmp_path: Path) -> None:
    """The task knows the real batches; the averaging itself would refuse only after the training."""
    with pytest.raises(UsageError) as refusal:
        train(tiny_data, tmp_path, [*TINY_MODEL, "--max-update", "40", "--average-last", "3"])
    assert re.fullmatch(
        r"average\.last: 3 checkpoints are needed, but this training saves 2 \(max-update 40 at 19 updates per epoch: "
        r"2\.1 epochs\); .*; whole log: .*train\.log",
        str(refusal.value),
    )
    assert not list((tmp_path / "checkpoints").iterdir())
    with pytest.raises(UsageError, match="4 checkpoints are needed, but keep-last-epochs in the options keeps 3; keep"):
        train(tiny_data, tmp_path / "kept", [*TINY_MODEL, *"--average-last 4 --keep-last-epochs 3".split()])


def test_a_finished_training_makes_no_further_update(tiny_data: Path, tmp_path: Path) -> None:
    """fairseq would add one at every start, such as after a kill before the report was written."""
    options = [*TINY_MODEL, "--max-update", "3", "--disable-validation"]
    first = train(tiny_data, tmp_path, options, seed=7)
    assert (first.updates, first.epochs, first.stop) == (3, 0, "updates")
    assert train(tiny_data, tmp_path, options, seed=7) == first


CONFIGURATION = """
name: small
languages: {source: en, target: de}
data: {synthetic: {pairs: 100, valid: 10, test: 10}}
codes: {symbols: 50}
systems: {bpe: {algorithm: bpe}}
baseline: bpe
train:
  options: {%s}
  stop: {epochs: 30}
  patience: 2
  patience_on: bleu
average: {last: 0}
translate: {options: {beam: 2, max-len-b: 10}}
"""


def test_bleu_of_the_validation_set_ends_a_training_even_across_a_stop(tiny_data: Path, tmp_path: Path) -> None:
    """fairseq's count of validations without improvement is lost at a stop; here it is part of the checkpoint."""
    options = "arch: transformer, encoder-layers: 1, decoder-layers: 1, encoder-embed-dim: 16, decoder-embed-dim: 16, "
    options += "encoder-attention-heads: 2, decoder-attention-heads: 2, optimizer: adam, lr: 1e-30, max-tokens: 400"
    (tmp_path / "small.yaml").write_text(CONFIGURATION % options)
    command = ["train", "--config", str(tmp_path / "small.yaml"), "--system", "bpe", "--data", str(tiny_data)]
    command += ["--output", str(tmp_path / "model")]
    # Nothing is learned, so the second and the third validation, of whole epochs, are no better than that of the stop.
    assert main([*command, "--", "--max-update", "5"]) == 0
    stopped = read_result(TrainingRecord, tmp_path / "model" / "training.json")
    assert main(command) == 0
    report = read_result(TrainingRecord, tmp_path / "model" / "training.json")
    assert (stopped.stop, stopped.epochs, report.stop, report.epochs) == ("updates", 0, "patience", 2)
    assert report.valid_metric == "bleu" and len(report.curves["valid_bleu"]) == 3
    assert main(command) == 0
    assert read_result(TrainingRecord, tmp_path / "model" / "training.json").updates == report.updates


def test_a_training_that_logs_no_epoch_is_complete(tiny_data: Path, tmp_path: Path) -> None:
    """``--log-format none`` is fairseq's: there are no curves to report, and nothing has failed."""
    report = train(tiny_data, tmp_path, [*TINY_MODEL, "--max-epoch", "1", "--log-format", "none"], seed=7)
    assert report.epochs == 1 and report.curves == {"train": [], "valid": []}
    assert read_result(TrainingRecord, tmp_path / "training.json") == report


def test_a_second_training_in_the_same_folder_waits(tiny_data: Path, tmp_path: Path) -> None:
    """Two at once would overwrite each other's checkpoints, as when the workflow was killed but not its training."""
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "mt_scaffold", "train", "--data", str(tiny_data), "--output", str(tmp_path)]
        command += ["--", "--arch", "transfurmer"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert "another training is running here" in process.stderr.readline()
            assert not (tmp_path / "train.log").exists()
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert "fairseq-train: argument --arch" in process.stderr.read()
    assert process.returncode == 2


def test_a_training_that_waited_checks_again_whether_it_can_resume(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training that it waited for may have been started with other settings."""

    options = [*TINY_MODEL, "--max-update", "1"]

    @contextlib.contextmanager
    def after_another(folder: Path, waiting: str) -> Iterator[None]:
        write_start(folder, start_with(tiny_data, folder, [*options, "--lr", "0.5"]))
        (folder / "checkpoints" / "checkpoint_last.pt").touch()
        yield

    monkeypatch.setattr("mt_scaffold.experiment.training.train.locked", after_another)
    with pytest.raises(MTScaffoldError, match=r"different settings \(--lr 0\.\d+ instead of 0\.5"):
        train(tiny_data, tmp_path, options)
    assert "--lr 0.5" in (tmp_path / "command.txt").read_text() and not (tmp_path / "train.log").exists()


def test_several_processes_report_their_time_as_well(tiny_data: Path, tmp_path: Path) -> None:
    """They save it as a tensor, on which the report of a finished training must not fail."""
    torch = pytest.importorskip("torch", reason="needs the extra 'fairseq'")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "train.log").touch()
    state = {"model": {"w": torch.zeros(1)}, "optimizer_history": [{"num_updates": 3}]}
    state["extra_state"] = {"train_iterator": {"epoch": 2}, "previous_training_time": torch.tensor(12.5)}
    torch.save(state, tmp_path / "checkpoints" / "checkpoint_last.pt")
    assert train(tiny_data, tmp_path, [*TINY_MODEL, "--max-update", "3"]).seconds == 12.5
