"""mt-scaffold run: see mt_scaffold.experiment.workflow.running."""

from __future__ import annotations

import argparse
import shlex

from mt_scaffold.experiment.commands.arguments import add_settings, settings
from mt_scaffold.experiment.workflow.running import Settings, run_experiment

EXAMPLES = """\
mt-scaffold run configs/demo.yaml
mt-scaffold run mine.yaml --cores 8 --set train.options.lr=0.001 --dry-run
mt-scaffold run configs/wmt14_en_de.yaml --profile slurm --only bpe scaffold
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Check an experiment and run it, from raw text to the comparison of its systems. Stop it whenever you like, "
        "with Ctrl-C too: the same command resumes it."
    )
    add_settings(parser)
    parser.add_argument("--cores", type=int, metavar="N", help="cores to use (default: all, or those of the profile)")
    parser.add_argument(
        "--profile", metavar="NAME", help="a Snakemake profile: slurm, local (several GPUs), or a folder with one"
    )
    parser.add_argument("--dry-run", "-n", action="store_true", help="check, and show the steps without running them")
    parser.add_argument(
        "--snakemake",
        default="",
        metavar="OPTIONS",
        help="options of snakemake in one argument, such as --snakemake='--forcerun train', or files to make",
    )


def run(options: argparse.Namespace) -> int:
    """Run the experiment."""
    chosen = Settings(
        options.cores, options.profile, options.dry_run, settings(options), shlex.split(options.snakemake)
    )
    return run_experiment(options.config, chosen)
