"""mt-scaffold snakefile: see mt_scaffold.experiment.workflow.snakefile."""

from __future__ import annotations

EXAMPLES = """\
snakemake -s "$(mt-scaffold snakefile)" --configfile configs/multi30k_en_de.yaml --cores 2
"""


def run() -> None:
    """Print the path."""
    from mt_scaffold.experiment.workflow import snakefile

    print(snakefile())
