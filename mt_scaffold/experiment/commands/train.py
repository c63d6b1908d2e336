"""mt-scaffold train: see mt_scaffold.experiment.training.train."""

from __future__ import annotations

import argparse

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.fairseq import LAUNCHERS, gpus_in_all, option_arguments
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.experiment.training.train import train

EXAMPLES = """\
mt-scaffold train --data binarised --output model -- --arch transformer --max-epoch 10
mt-scaffold train --data binarised --output model --config configs/demo.yaml --seed 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--data", "-d", required=True, metavar="FOLDER", help="what mt-scaffold binarise made")
    parser.add_argument(
        "--output", "-o", required=True, metavar="FOLDER", help="folder for command, log and checkpoints"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take fairseq's options from this experiment configuration, those of resampling too",
    )
    parser.add_argument("--system", metavar="NAME", help="with --config: the system, which may have its own options")
    parser.add_argument("--comparison", metavar="NAME", help="with --config of language models: what ends the training")
    parser.add_argument(
        "--baseline-report",
        metavar="FILE",
        help="training.json of the baseline, where the comparison takes as much text as it was trained on",
    )
    parser.add_argument(
        "--average-last",
        type=int,
        metavar="N",
        help="refuse to train where fewer than N checkpoints will be saved for mt-scaffold average",
    )
    parser.add_argument("--average-by", choices=("epochs", "updates"), help="whether those are of epochs or updates")
    parser.add_argument("--keep-epochs", type=int, metavar="N", help="keep the checkpoints of the last N epochs only")
    parser.add_argument(
        "--launcher",
        choices=LAUNCHERS,
        default="fairseq",
        help="what starts a process per GPU: fairseq or torchrun on one node, srun on several nodes of a SLURM job",
    )
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="nodes to train on (default: 1)")
    parser.add_argument("--gpus", type=int, default=0, metavar="N", help="GPUs per node (default: all)")
    parser.add_argument("fairseq_options", nargs="*", metavar="-- OPTIONS", help="options of fairseq-train, after --")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    arguments = list(options.fairseq_options)
    for name in ("average-last", "average-by"):
        if (value := getattr(options, name.replace("-", "_"))) is not None:
            arguments += [f"--{name}", str(value)]
    if options.config:
        chosen = _configured(options, gpus_in_all(options.nodes, options.gpus))
        if options.keep_epochs is not None:
            del chosen["keep-last-epochs"]
        arguments = option_arguments(chosen) + arguments
    train(
        options.data,
        options.output,
        arguments,
        seed=options.seed,
        keep_epochs=options.keep_epochs,
        launcher=options.launcher,
        nodes=options.nodes,
        gpus=options.gpus,
    )


def _configured(options: argparse.Namespace, gpus: int) -> dict[str, OptionValue]:
    """Return fairseq-train's options from the experiment configuration."""
    from mt_scaffold.experiment.configuration import load_experiment
    from mt_scaffold.experiment.configuration.layout import Run
    from mt_scaffold.experiment.tasks import task_of

    config = load_experiment(options.config)
    run = Run(options.system or "", options.seed, options.comparison or "")
    try:
        return task_of(config).options_for(config, run, gpus, options.data, options.baseline_report)
    except UsageError as error:
        raise UsageError(f"{options.config}: {error}") from None
