"""Binarised data → checkpoints: run fairseq-train, resuming a stopped training."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, make_folder
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import (
    BinarisedDocuments,
    data_arguments,
    data_digest,
    read_shards,
    subsets,
)
from mt_scaffold.experiment.binarise.pairs_as_ids import Binarised
from mt_scaffold.experiment.configuration.layout import (
    CHECKPOINTS,
    TRAINING_COMMAND,
    TRAINING_LOG,
    TRAINING_RECORD,
)
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS, unfair_patience
from mt_scaffold.experiment.runtime.checkpoints import (
    check_optimiser,
    load_checkpoint,
)
from mt_scaffold.experiment.runtime.fairseq import (
    WHOLE_DATA_SET,
    command_line,
    gpus_in_all,
    has_gpu_device,
    launcher_command,
    no_gpu_message,
    number_of,
    option_arguments,
    options_in,
    refuse_options,
    run_command,
    sees_gpu,
    user_dir,
)
from mt_scaffold.experiment.runtime.locks import locked
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.result_warnings import NOT_CONVERGED, ResultWarning, print_warnings
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.experiment.runtime.schema import OptionValue, check_seed
from mt_scaffold.experiment.training.last_checkpoint import (
    LAST_CHECKPOINT,
    Reached,
    has_made_its_updates,
    mend_last_checkpoint,
    reached,
)
from mt_scaffold.experiment.training.progress import PROGRESS_FILE, progress_file
from mt_scaffold.experiment.training.start import Start, check_resumable, write_start
from mt_scaffold.experiment.training.stop_request import STOP_FILE, StopRequest, stopped_by_signal
from mt_scaffold.experiment.training.training_log import parameters_in_log, read_training_log

_OWN_OPTIONS = {"save-dir", "seed", "source-lang", "target-lang", "user-dir", "cpu"}
HALF_PRECISION = ("fp16", "memory-efficient-fp16")
# These would act again whenever the training resumes.
_OF_ONE_START = {f"reset-{what}" for what in ("dataloader", "lr-scheduler", "meters", "optimizer")} | {"restore-file"}

# Without these, glibc returns the memory of each large tensor to the kernel, and the next update faults it in again: a
# fifth of the processor time of a small model. Results are the same.
_KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**34), "MALLOC_TOP_PAD_": str(2**28)}


@dataclass(frozen=True)
class TrainingRecord:
    """The outcome of a training.

    epochs: completed ones. valid_loss, best_valid_loss: the last and best values of ``valid_metric``, which chooses
    checkpoint_best.pt (loss: in the units of fairseq's criterion); None without validation. parameters: tied ones count
    once. seconds: of all runs together. command: that of the last run. curves: see read_training_log. subwords,
    text_bytes: seen in all, as Stop counts them; None if fairseq's own task trained, which does not count them, or the
    data folder has no sizes. stop: the rule that ended the training: ``updates``, ``epochs``, ``tokens``, ``text``,
    ``patience``, or ``other`` (see train.log).
    """

    seed: int
    updates: int
    epochs: int
    valid_loss: float | None
    best_valid_loss: float | None
    parameters: int
    seconds: float
    versions: dict[str, str]
    command: str
    curves: dict[str, list[tuple[float, float]]]
    subwords: int | None = None
    text_bytes: int | None = None
    stop: str = "other"
    valid_metric: str = "loss"
    warnings: list[ResultWarning] = field(default_factory=list)


def train(
    data: PathLike,
    output: PathLike,
    options: Sequence[str],
    seed: int = 1,
    keep_epochs: int | None = None,
    launcher: str = "fairseq",
    nodes: int = 1,
    gpus: int = 0,
) -> TrainingRecord:
    """Train a model on a data folder of ``binarise``, ``binarise_words`` or ``binarise_documents``, up to a limit.

    Several folders with the same ids, given as ``a:b:c``, are used in turn, one per epoch.
    ``options`` are fairseq-train's own (``["--arch", "transformer", "--max-epoch", "10", ...]``; option_arguments
    makes them from a configuration); data, languages, seed, folders and ``--cpu`` (if PyTorch sees no GPU) are added
    here. ``keep_epochs``: how many of the last epochs' checkpoints stay on disk (default: all).
    ``launcher``, ``nodes`` and ``gpus`` (of each node): see runtime.fairseq.launcher_command.

    ``output`` gets ``command.txt`` (the exact command), ``train.log``, ``checkpoints/``, and at the end
    ``training.json`` (the returned record). A training that was stopped resumes from its last checkpoint; one that was
    started with other data, or with options that change what is learned, is refused before anything is touched. On
    SIGUSR1 the training saves after the update in flight and ends with StoppedOnRequest, on Ctrl-C with Interrupted; on
    a second Ctrl-C it ends at once.

    Raises MTScaffoldError if fairseq fails, with the end of its log, if the data folder has no training set, and if
    GPUs are requested, or fp16 needs one, but there are none; UsageError for an option that is set here, and
    for ``--patience`` on the loss per subword. The plug-in refuses ``--average-last`` of more checkpoints than will be
    saved or kept, before the first update.
    """
    start = start_with(data, output, options, seed, keep_epochs, launcher, nodes, gpus)
    chosen = start.options
    check_gpus(chosen, gpus)
    check_resumable(output, start)
    if "cpu" in chosen and has_gpu_device():
        print(f"mt-scaffold: {output}: training on the CPU: {no_gpu_message()}", file=sys.stderr)
    output = Path(output)
    make_folder(output / CHECKPOINTS)
    # Two trainings must not write into one folder: the second waits, then resumes where the first ended.
    with (
        stopped_by_signal(output) as on_signal,
        locked(output, "another training is running here; waiting until it ends"),
    ):
        check_resumable(output, start)
        write_start(output, start)
        mend_last_checkpoint(output / CHECKPOINTS)
        if not has_made_its_updates(output / CHECKPOINTS, number_of(chosen.get("max-update"))):
            check_optimiser(output / CHECKPOINTS / LAST_CHECKPOINT)
            with on_signal.stops_training() as request:
                updates = _run(start.command, output / TRAINING_LOG, request, "cpu" in chosen)
            if updates is not None:
                raise on_signal.stopped(updates)
        record = _record(output, seed, chosen)
        write_result(output / TRAINING_RECORD, record)
    return record


def start_with(
    data: PathLike,
    output: PathLike,
    options: Sequence[str],
    seed: int = 1,
    keep_epochs: int | None = None,
    launcher: str = "fairseq",
    nodes: int = 1,
    gpus: int = 0,
    expected: Binarised | BinarisedDocuments | None = None,
) -> Start:
    """Return the settings with which ``train``, given the same arguments, starts a training; write nothing.

    ``expected``: the description of a data folder that does not exist yet; its digest is then unknown.
    """
    refuse_options(options, _OWN_OPTIONS, "fairseq-train")
    refuse_options(
        options,
        _OF_ONE_START,
        "fairseq-train",
        "acts whenever a training resumes; to begin with the model of another, give --finetune-from-model FILE",
    )
    check_seed(seed)
    launch = launcher_command(launcher, nodes, gpus)
    binarised = read_shards(data) if expected is None else expected
    if keep_epochs is not None and keep_epochs < 1:
        raise UsageError(f"the number of epochs whose checkpoints are kept must be 1 or more, not {keep_epochs}")
    if "train" not in subsets(binarised):
        held = ", ".join(subsets(binarised))
        raise MTScaffoldError(f"{data}: no training set in this folder (it has {held}); give one made with --train")
    chosen = options_in(options)
    if refusal := unfair_patience(chosen):
        raise UsageError(f"--patience {refusal}")
    own = {"save-dir": str(Path(output) / CHECKPOINTS), "user-dir": str(user_dir()), "seed": seed}
    arguments = [str(data), *option_arguments({**own, "no-progress-bar": True, **WHOLE_DATA_SET})]
    arguments += [*data_arguments(binarised, chosen), *options]
    if keep_epochs and "keep-last-epochs" not in chosen:
        arguments += ["--keep-last-epochs", str(keep_epochs)]
    processes = 1
    if "distributed-world-size" in chosen:
        processes = number_of(chosen["distributed-world-size"])
    elif gpus:
        processes = nodes * gpus
    elif sees_gpu():
        processes = gpus_in_all(nodes, gpus)
    if not gpus and not sees_gpu():
        arguments.append("--cpu")
    elif gpus and (launcher == "fairseq" or nodes > 1) and "distributed-world-size" not in chosen:
        # Without this, fairseq ignores the other nodes if each has one GPU.
        arguments += ["--distributed-world-size", str(nodes * gpus)]
    meeting = {"distributed-init-method", "distributed-port", "distributed-no-spawn"}
    if launcher == "fairseq" and (processes or 1) > 1 and meeting.isdisjoint(chosen):
        # Otherwise fairseq takes the number of processes from the SLURM job, which may differ from the one given here.
        arguments += ["--distributed-init-method", f"tcp://localhost:{_free_port()}"]
    if nodes > 1:
        # Derived from the job's id, so that two jobs on one node use different ports.
        arguments += ["--distributed-port", str(20000 + int(os.environ["SLURM_JOB_ID"]) % 20000)]
    digest = data_digest(data) if expected is None else ""
    return Start(command_line("train", arguments, launch), digest, processes)


def check_gpus(options: Mapping[str, object], gpus: int) -> None:
    """Raise MTScaffoldError if a training needs a GPU, for ``gpus`` or for fp16, and PyTorch finds none.

    options: fairseq-train's. fairseq computes fp16 on GPUs only.
    """
    if sees_gpu():
        return
    if gpus:
        raise MTScaffoldError(
            f"--gpus {gpus}: PyTorch finds no GPU on this machine: {no_gpu_message()}; or train with --gpus 0"
        )
    if problem := missing_gpu(options):
        raise MTScaffoldError(problem)


def missing_gpu(options: Mapping[str, object]) -> str | None:
    """Return why a training with these options of fairseq-train cannot run on this machine, or None if it can."""
    if sees_gpu() or not any(options.get(name) for name in HALF_PRECISION):
        return None
    return (
        f"fp16 needs a GPU, and PyTorch finds none on this machine: {no_gpu_message()}; or train in another precision, "
        "without fp16 in the options of training and batch"
    )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])


def _run(command: Sequence[str], log: Path, request: StopRequest, on_cpu: bool) -> int | None:
    """Run fairseq-train; if this package's own task refuses something, raise the error that it reports.

    Returns the updates after which it stopped on request, or None if it ran to completion.
    """
    variables = {name: os.environ.get(name, value) for name, value in _KEEPS_MEMORY.items()} if on_cpu else {}
    begin = log.stat().st_size if log.exists() else 0
    failure = None
    try:
        variables |= {STOP_FILE: str(request.path), PROGRESS_FILE: str(progress_file(log.parent))}
        run_command("train", command, log, variables)
    except MTScaffoldError as error:
        failure = error
    updates = request.withdraw()
    if failure is not None and updates is None:
        with open(log, "rb") as stream:
            stream.seek(begin)
            text = stream.read().decode("utf-8", "replace")
        if refused := re.search(r"mt_scaffold\.errors\.(UsageError|MTScaffoldError): (.+)", text):
            kind = UsageError if refused[1] == "UsageError" else MTScaffoldError
            raise kind(f"{refused[2]}; whole log: {log}") from failure
        raise failure
    return updates


def _record(output: Path, seed: int, options: Mapping[str, OptionValue]) -> TrainingRecord:
    checkpoints = output / CHECKPOINTS
    last = checkpoints / LAST_CHECKPOINT
    if not last.exists():
        raise MTScaffoldError(
            f"{checkpoints}: fairseq-train wrote no checkpoint_last.pt; remove --no-last-checkpoints from the options"
        )
    state = load_checkpoint(last)
    extra = state["extra_state"]
    so_far = reached(state, last)
    valid_loss, best = extra.get("val_loss"), extra.get("best")
    warnings = []
    if best is not None and valid_loss == best:
        warnings.append(ResultWarning(NOT_CONVERGED, "", f"update {so_far.updates:,}"))
    print_warnings(warnings)
    return TrainingRecord(
        seed=seed,
        updates=so_far.updates,
        epochs=so_far.epochs,
        valid_loss=valid_loss,
        best_valid_loss=best,
        parameters=parameters_in_log(output / TRAINING_LOG) or _count_parameters(state["model"]),
        seconds=round(float(extra.get("previous_training_time", 0.0)), 1),
        versions=versions(),
        command=(output / TRAINING_COMMAND).read_text(encoding="utf-8"),
        curves=read_training_log(output / TRAINING_LOG),
        subwords=so_far.tokens,
        text_bytes=so_far.text,
        stop=_stop(so_far, options),
        valid_metric=str(options.get("best-checkpoint-metric", "loss")),
        warnings=warnings,
    )


def _stop(so_far: Reached, options: Mapping[str, OptionValue]) -> str:
    """Return the rule that ended a training."""
    for rule, option in STOP_OPTIONS.items():
        limit, value = number_of(options.get(option)), getattr(so_far, rule)
        if limit and value is not None and value >= limit:
            return rule
    return "patience" if 0 < number_of(options.get("patience")) <= (so_far.waited or 0) else "other"


def _count_parameters(model: dict[str, Any]) -> int:
    """Count the parameters in a checkpoint; those that share one storage count once.

    Tied embeddings share one in a checkpoint of fp32 on a CPU; fairseq unties them in others.
    """
    return sum({tensor.data_ptr(): tensor.numel() for tensor in model.values()}.values())
