"""Binarised data → checkpoints: fairseq-train, which goes on where it was stopped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise import read_binarised, task_arguments
from mt_scaffold.experiment.checkpoints import epoch_checkpoints, load_checkpoint, update_checkpoints
from mt_scaffold.experiment.fairseq_tools import (
    WHOLE_DATA_SET,
    command_line,
    launcher_command,
    refuse_options,
    run_tool,
    sees_gpu,
    user_dir,
)
from mt_scaffold.experiment.provenance import sha256, versions
from mt_scaffold.files import PathLike, explain_os_error, write_text

_OWN_OPTIONS = {"save-dir", "seed", "source-lang", "target-lang", "user-dir", "cpu", "restore-file"}
# What may change between two runs of one training: how long, what is kept and shown, on how many cores.
_MAY_CHANGE = {"--max-epoch", "--max-update", "--stop-time-hours", "--patience", "--keep-last-epochs", "--cpu"}
_MAY_CHANGE |= {"--log-interval", "--log-format", "--num-workers", "--save-dir", "--user-dir", "--distributed-port"}


def train(
    data: PathLike,
    output: PathLike,
    options: Sequence[str],
    seed: int = 1,
    keep_epochs: int | None = None,
    launcher: str = "fairseq",
    nodes: int = 1,
    gpus: int = 0,
) -> dict[str, Any]:
    """Train a model on the data folder that ``binarise`` or ``binarise_words`` made, to the end that ``options`` set.

    ``options`` are fairseq-train's own (``["--arch", "transformer", "--max-epoch", "10", ...]``; option_arguments
    makes them from a configuration); data, languages, seed, folders and ``--cpu`` (where PyTorch sees no GPU) are added
    here. ``keep_epochs``: only so many of the last epochs' checkpoints stay on disk.
    ``launcher``, ``nodes`` and ``gpus`` (of each node): see fairseq_tools.launcher_command.

    ``output`` gets ``command.txt`` (the exact command), ``train.log``, ``checkpoints/``, and at the end
    ``training.json`` (updates, epochs, validation loss, seconds, versions), which is also returned. A training that was
    stopped goes on from its last checkpoint; one that was started with other options or data is not continued.

    Raises MTScaffoldError, with the end of the log, where fairseq fails, and where GPUs are asked for and there are
    none; UsageError for an option that is set here.
    """
    refuse_options(options, _OWN_OPTIONS, "fairseq-train")
    launch = launcher_command(launcher, nodes, gpus)
    binarised = read_binarised(data)
    output = Path(output)
    checkpoints = output / "checkpoints"
    try:
        checkpoints.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, output) from error

    arguments = [str(data), "--save-dir", str(checkpoints), "--user-dir", str(user_dir())]
    arguments += ["--source-lang", binarised.source, "--target-lang", binarised.target, "--seed", str(seed)]
    arguments += ["--no-progress-bar", *WHOLE_DATA_SET, *task_arguments(binarised, options), *options]
    if keep_epochs and "--keep-last-epochs" not in options:
        arguments += ["--keep-last-epochs", str(keep_epochs)]
    if not sees_gpu():
        if gpus:
            raise MTScaffoldError(f"{gpus} GPUs are asked for, and PyTorch finds none on this machine")
        arguments.append("--cpu")
    elif launcher == "fairseq" and gpus:
        arguments += ["--distributed-world-size", str(gpus)]
    if nodes > 1:
        # Where the nodes meet; two jobs on one node take two ports.
        arguments += ["--distributed-port", str(20000 + int(os.environ["SLURM_JOB_ID"]) % 20000)]

    with _alone_in(output):
        _note_command(
            output, command_line("train", arguments, launch), data_digest=sha256(Path(data) / "binarised.json")
        )
        _mend_last_checkpoint(checkpoints)
        run_tool("train", arguments, output / "train.log", launch)
        report = _report(checkpoints, seed)
        write_text(output / "training.json", json.dumps(report, indent=2) + "\n")
    return report


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two trainings must not write into one folder: the second waits for the first, then goes on from its end."""
    # The kernel gives the lock up when its holder dies, so that no stale lock is ever left.
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"mt-scaffold: {folder}: another training is running here; waiting for its end", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _note_command(output: Path, command: list[str], data_digest: str) -> None:
    """Write command.txt; refuse to continue a training that was begun with other options or data."""
    path = output / "command.txt"
    text = f"{shlex.join(command)}\n# data: {data_digest}\n"
    if path.exists() and any((output / "checkpoints").glob("*.pt")):
        before, _, comment = path.read_text(encoding="utf-8").partition("\n# data: ")
        old, new = _options(shlex.split(before)), _options(command)
        changed = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
        changed = [name for name in changed if name not in _MAY_CHANGE]
        if comment.strip() != data_digest:
            changed.insert(0, "the data")
        if changed:
            raise MTScaffoldError(
                f"{output}: holds a training that was begun with something else ({', '.join(changed)}; see command.txt "
                "there): remove the folder to train anew, or take another"
            )
    write_text(path, text)


def _options(command: Sequence[str]) -> dict[str, list[str]]:
    """Option → its values; what stands before the first option (the program, the data folder) is left out."""
    options: dict[str, list[str]] = {}
    name = None
    for argument in command[command.index("fairseq_cli.train") + 1 :]:
        if argument.startswith("--"):
            name, _, value = argument.partition("=")
            options[name] = [value] if value else []
        elif name:
            options[name].append(argument)
    return options


def _mend_last_checkpoint(checkpoints: Path) -> None:
    """fairseq copies each checkpoint to checkpoint_last.pt; a copy that was cut off gives way to the newest one."""
    last = checkpoints / "checkpoint_last.pt"
    if not last.exists() or zipfile.is_zipfile(last):
        return
    all_checkpoints = [*epoch_checkpoints(checkpoints).values(), *update_checkpoints(checkpoints).values()]
    whole = [path for path in all_checkpoints if zipfile.is_zipfile(path)]
    if not whole:
        last.unlink()
        return
    beside = last.with_suffix(".part")
    shutil.copyfile(max(whole, key=lambda path: path.stat().st_mtime_ns), beside)
    beside.replace(last)


def _report(checkpoints: Path, seed: int) -> dict[str, Any]:
    last = checkpoints / "checkpoint_last.pt"
    if not last.exists():
        raise MTScaffoldError(
            f"{checkpoints}: fairseq-train left no checkpoint_last.pt; take out --no-last-checkpoints"
        )
    state = load_checkpoint(last)
    extra = state["extra_state"]
    iterator = extra["train_iterator"]
    return {
        "seed": seed,
        "updates": state["optimizer_history"][-1]["num_updates"],
        # At the end of an epoch fairseq already stands at the start of the next.
        "epochs": iterator["epoch"] - (1 if iterator["iterations_in_epoch"] == 0 else 0),
        "valid_loss": extra.get("val_loss"),
        "best_valid_loss": extra.get("best"),
        "parameters": _count_parameters(state["model"]),
        "seconds": round(extra.get("previous_training_time", 0.0), 1),
        "versions": versions(),
    }


def _count_parameters(model: dict[str, Any]) -> int:
    """Parameters of a model; those that share one storage (tied embeddings) count once."""
    return sum({tensor.data_ptr(): tensor.numel() for tensor in model.values()}.values())
