"""mt-scaffold get-data: see mt_scaffold.experiment.data.parallel."""

from __future__ import annotations

import argparse

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.data.download import CACHE_VARIABLE
from mt_scaffold.experiment.data.parallel import fetch_data, get_data
from mt_scaffold.experiment.runtime.results import write_result

EXAMPLES = """\
mt-scaffold get-data --config configs/multi30k_en_de.yaml --output-dir raw
mt-scaffold get-data --config configs/multi30k_en_de.yaml --fetch-only --cache data-cache
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", "-c", required=True, metavar="FILE", help="experiment configuration (YAML)")
    parser.add_argument("--output-dir", "-o", metavar="DIR", help="folder for the raw text")
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="download cache; a file already there, under its own name and with the right digest, is used without the "
        f"network (default: {CACHE_VARIABLE}, or a folder in the user's cache)",
    )
    parser.add_argument(
        "--fetch-only",
        action="store_true",
        help="fill the cache and write nothing else, for machines without a network",
    )
    parser.add_argument("--report", metavar="FILE", help="write the counts of lines and words to FILE as JSON")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if options.fetch_only:
        for path in fetch_data(load_config(options.config), options.cache):
            print(path)
        return
    if options.output_dir is None:
        raise UsageError("get-data: give --output-dir, or --fetch-only")
    report = get_data(load_config(options.config), options.output_dir, options.cache)
    if options.report:
        write_result(options.report, report)
