"""mt-scaffold train: see mt_scaffold.experiment.training.train."""

from __future__ import annotations

from typing import Annotated, Literal

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.fairseq import LAUNCHERS, FairseqOptions, gpus_in_all, option_arguments
from mt_scaffold.experiment.training.train import train
from mt_scaffold.options_from_signature import File, Name, Option, OutputFolder


def train_model(
    fairseq_options: FairseqOptions = (),
    *,
    data: Annotated[str, Option("FOLDER", "-d")],
    output: OutputFolder,
    seed: int = 1,
    config: File | None = None,
    system: Name | None = None,
    comparison: Name | None = None,
    baseline_report: File | None = None,
    average_last: int | None = None,
    average_by: Literal["epochs", "updates"] | None = None,
    keep_epochs: int | None = None,
    launcher: Annotated[str, Option(choices=LAUNCHERS)] = "fairseq",
    nodes: int = 1,
    gpus: int = 0,
) -> None:
    """Train a model.

    fairseq_options: options of fairseq-train, after --
    data: the data folder that mt-scaffold binarise made
    output: folder for command, log and checkpoints
    seed: random seed
    config: take fairseq's options from this experiment configuration, including those of resampling
    system: with --config: the system, which may have its own options
    comparison: with --config of language models: the comparison, which ends the training
    baseline_report: training.json of the baseline, for a comparison with as much text as the baseline read
    average_last: refuse to train if fewer than N checkpoints will be saved for mt-scaffold average
    average_by: whether these are checkpoints of epochs or of updates
    keep_epochs: keep the checkpoints of the last N epochs only
    launcher: program that starts a process per GPU: fairseq or torchrun on one node, srun on several of a SLURM job
    nodes: nodes to train on
    gpus: GPUs per node (default: all)
    """
    arguments = list(fairseq_options)
    if average_last is not None:
        arguments += ["--average-last", str(average_last)]
    if average_by is not None:
        arguments += ["--average-by", average_by]
    if config:
        from mt_scaffold.experiment.configuration import load_experiment
        from mt_scaffold.experiment.configuration.layout import Run
        from mt_scaffold.experiment.tasks import task_of

        experiment, trained = load_experiment(config), Run(system or "", seed, comparison or "")
        try:
            chosen = task_of(experiment).options_for(
                experiment, trained, gpus_in_all(nodes, gpus), data, baseline_report
            )
        except UsageError as error:
            raise UsageError(f"{config}: {error}") from None
        if keep_epochs is not None:
            del chosen["keep-last-epochs"]
        arguments = option_arguments(chosen) + arguments
    train(data, output, arguments, seed=seed, keep_epochs=keep_epochs, launcher=launcher, nodes=nodes, gpus=gpus)
