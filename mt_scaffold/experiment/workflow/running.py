"""Run an experiment with Snakemake: check it, then run it and show one line per step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_scaffold.cores import usable_cores
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.workflow import snakefile

_PROFILES = snakefile().parent / "profiles"


@dataclass(frozen=True)
class Settings:
    """The settings of one run of an experiment.

    cores: None for those of the profile, or without one all that this process may use. profile: a folder, or the name
    of one in the current folder, in its ``profiles``, in this package (``slurm``, ``local``) or known to Snakemake;
    ``default`` stands for none, as the package's default applies to every run.
    config: the values of Snakemake's ``--config`` (requested_experiment). more: further arguments for Snakemake.
    """

    cores: int | None = None
    profile: str | None = None
    dry_run: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    more: Sequence[str] = ()


def snakemake_arguments(configuration: PathLike, settings: Settings) -> list[str]:
    """Return the arguments of Snakemake for a run of the experiment in ``configuration``.

    Raises UsageError for a profile that does not exist.
    """
    from mt_scaffold.experiment.workflow.display import NAME

    # ``more`` comes first, because --config would consume the names of files that follow it.
    arguments = [*settings.more, "--snakefile", str(snakefile()), "--configfile", str(configuration), "--logger", NAME]
    # The default profile is given as options, because Snakemake prints a line about each profile that it loads.
    arguments += ["--workflow-profile", "none", *_default_options()]
    if settings.cores is not None:
        arguments += ["--cores", str(settings.cores)]
    elif settings.profile in (None, "default"):
        arguments += ["--cores", str(usable_cores())]
    if settings.profile not in (None, "default"):
        arguments += ["--profile", str(_profile(settings.profile))]
    if settings.dry_run:
        arguments.append("--dry-run")
    if settings.config:
        # Not ASCII: Snakemake's YAML would read the JSON escapes of an emoji as two surrogates.
        config = {key: json.dumps(value, ensure_ascii=False) for key, value in settings.config.items()}
        arguments += ["--config", *(f"{key}={value}" for key, value in config.items())]
    return arguments


def _default_options() -> list[str]:
    """Return the options of the workflow's own profile."""
    import yaml

    given = yaml.safe_load((_PROFILES / "default" / "config.yaml").read_text(encoding="utf-8"))
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]


def _profile(name: str) -> Path | str:
    """Return the folder of a profile, or the name of one known to Snakemake; raise UsageError if there is none."""
    from snakemake.cli import get_profile_dir

    if get_profile_dir(name) is not None:
        return name
    for folder in (Path("profiles"), _PROFILES):
        if (folder / name / "config.yaml").is_file():
            return folder / name
    ours = ", ".join(sorted(path.name for path in _PROFILES.iterdir() if path.name != "default"))
    raise UsageError(f"--profile {name}: no folder with a config.yaml, and none of {ours}; see docs/cluster.md")


def run_experiment(configuration: PathLike, settings: Settings) -> int:
    """Check the experiment in ``configuration``, run it, and return the exit status: 130 after Ctrl-C, 143 on SIGTERM.

    Raises MTScaffoldError for problems that the check finds, before anything runs.
    """
    from snakemake.cli import main

    from mt_scaffold.experiment.configuration.layout import requested_experiment
    from mt_scaffold.experiment.tasks import layout_of
    from mt_scaffold.experiment.workflow import display
    from mt_scaffold.experiment.workflow.checking import check_experiment
    from mt_scaffold.experiment.workflow.interrupting import interruption
    from mt_scaffold.experiment.workflow.staleness import check_repeated

    arguments = snakemake_arguments(configuration, settings)
    print(check_experiment(configuration, settings.config).as_text(), flush=True)
    display.register()
    try:
        main(arguments)
    except SystemExit as ended:
        if interruption.asked:
            return interruption.status
        if isinstance(ended.code, str):
            raise MTScaffoldError(ended.code) from None
        if ended.code:
            return ended.code
    if settings.dry_run:
        # Snakemake does not call the Snakefile's onstart in a dry run.
        asked = requested_experiment([configuration], settings.config)
        layout = layout_of(asked.folder, asked.experiment)
        trainings = [(run, 0) for run in layout.runs if str(layout.training_record(run)) in display.planned]
        # With any number of processes, as another machine may train.
        check_repeated(layout, trainings, display.planned, elsewhere=True)
    return 0
