"""The workflow: the steps of an experiment, run by Snakemake."""

from __future__ import annotations

from pathlib import Path


def snakefile() -> Path:
    """Return the path of the Snakefile."""
    return Path(__file__).with_name("Snakefile")
