"""mt-scaffold check: see mt_scaffold.experiment.workflow.checking."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import ExperimentOptions
from mt_scaffold.experiment.workflow.checking import check_experiment
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold check configs/demo.yaml
mt-scaffold check mine.yaml --set train.options.encoder-layers=12
"""


def run(config: Annotated[str, Option("CONFIG")], /, options: ExperimentOptions) -> None:
    """Check an experiment, and print the findings.

    Check an experiment without running anything: its configuration and files, the options of fairseq, the models, and
    the disk space that it needs. mt-scaffold run does so first.

    config: the configuration of the experiment, a YAML file
    """
    print(check_experiment(config, options.settings).as_text())
