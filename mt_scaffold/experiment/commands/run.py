"""mt-scaffold run and check: see mt_scaffold.experiment.workflow.running and checking."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from mt_scaffold.experiment.configuration.layout import requested_experiment
from mt_scaffold.experiment.configuration.yaml_file import settings_from
from mt_scaffold.experiment.tasks import layout_of
from mt_scaffold.experiment.workflow.checking import Findings, check_experiment
from mt_scaffold.experiment.workflow.fairseq_commands import fairseq_commands
from mt_scaffold.experiment.workflow.running import Settings, run_experiment
from mt_scaffold.options_from_signature import Name, Option


@dataclass(frozen=True)
class ExperimentOptions:
    """Options that change the configuration of an experiment.

    only: only these systems, as if there were no others
    sample: only the first N training pairs or documents
    batch: one of train.batches
    changes: set a dotted key to another value, such as train.options.lr=0.001; may be repeated
    output: folder of the experiment (default: experiments/NAME)
    cache: folder of downloads (default: as for get-data)
    """

    only: Annotated[Sequence[str] | None, Option("SYSTEM")] = None
    sample: int | None = None
    batch: Name | None = None
    changes: Annotated[Sequence[str], Option("KEY=VALUE", name="set", repeated=True)] = ()
    output: Annotated[str | None, Option("DIR")] = None
    cache: Annotated[str | None, Option("DIR")] = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were given, for requested_experiment."""
        named = {name: getattr(self, name) for name in ("only", "sample", "batch", "output", "cache")}
        return settings_from(self.changes) | {name: value for name, value in named.items() if value is not None}


def check(config: Annotated[str, Option("CONFIG")], /, options: ExperimentOptions) -> Findings:
    """Check an experiment, and return the findings.

    Check an experiment without running anything: its configuration and files, the options of fairseq, the models, and
    the disk space that it needs. mt-scaffold run does so first.

    config: the configuration of the experiment, a YAML file
    """
    return check_experiment(config, options.settings)


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
    """Run the experiment, and return the exit status.

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
        asked = requested_experiment([config], options.settings)
        for command in fairseq_commands(layout_of(asked.folder, asked.experiment).of_systems(asked.systems)):
            print(command)
        return 0
    return run_experiment(config, Settings(cores, profile, dry_run, options.settings, shlex.split(snakemake)))
