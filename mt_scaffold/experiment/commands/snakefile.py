"""mt-scaffold snakefile: see mt_scaffold.experiment.workflow.snakefile."""

from __future__ import annotations

import argparse

EXAMPLES = """\
snakemake -s "$(mt-scaffold snakefile)" --configfile configs/multi30k_en_de.yaml --cores 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options, only the description."""
    parser.description = "Print the path of the workflow, for snakemake -s."


def run(options: argparse.Namespace) -> None:
    """Print the path."""
    from mt_scaffold.experiment.workflow import snakefile

    print(snakefile())
