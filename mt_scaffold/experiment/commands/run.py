"""mt-scaffold run: see mt_scaffold.experiment.workflow.running."""

from __future__ import annotations

import shlex
from typing import Annotated

from mt_scaffold.experiment.commands.arguments import ExperimentOptions, Name
from mt_scaffold.experiment.workflow.running import Settings, run_experiment
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold run configs/demo.yaml
mt-scaffold run mine.yaml --cores 8 --set train.options.lr=0.001 --dry-run
mt-scaffold run configs/wmt14_en_de.yaml --profile slurm --only bpe scaffold
mt-scaffold run configs/wmt14_en_de.yaml --commands --only bpe
"""


def run(
    config: Annotated[str, Option("CONFIG")],
    /,
    options: ExperimentOptions,
    cores: int | None = None,
    profile: Name | None = None,
    dry_run: Annotated[bool, Option(short="-n")] = False,
    commands: bool = False,
    snakemake: Annotated[str, Option("OPTIONS")] = "",
) -> int:
    """Run the experiment.

    Check an experiment and run it, from raw text to the comparison of its systems. You can stop it at any time, also
    with Ctrl-C; the same command resumes it.

    config: the configuration of the experiment, a YAML file
    cores: cores to use (default: all, or those of the profile)
    profile: a Snakemake profile: slurm, local (several GPUs), or a folder with one
    dry_run: check, and show the steps without running them
    commands: print the commands of fairseq for every training and translation, as you could type them; run nothing
    snakemake: options of snakemake in one argument, such as --snakemake='--forcerun train', or files to make
    """
    if commands:
        from mt_scaffold.experiment.configuration.layout import plan_experiment
        from mt_scaffold.experiment.tasks import layout_of
        from mt_scaffold.experiment.workflow.fairseq_commands import fairseq_commands

        plan = plan_experiment([config], options.settings)
        for command in fairseq_commands(layout_of(plan.folder, plan.experiment).of_systems(plan.systems)):
            print(command)
        return 0
    return run_experiment(config, Settings(cores, profile, dry_run, options.settings, shlex.split(snakemake)))
