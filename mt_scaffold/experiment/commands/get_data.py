"""mt-scaffold get-data: see mt_scaffold.experiment.data.parallel."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.corpus.files import refuse_overwriting
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.data.download import CACHE_VARIABLE
from mt_scaffold.experiment.data.parallel import fetch_data, get_data
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options_from_signature import File, Option

_CACHE = (
    "download cache; a file already there, under its own name and with the right digest, is used without the network "
    f"(default: {CACHE_VARIABLE}, or a folder in the user's cache)"
)


def get_text(
    *,
    config: Annotated[str, Option("FILE", "-c")],
    output_dir: Annotated[str | None, Option("DIR", "-o")] = None,
    cache: Annotated[str | None, Option("DIR", help=_CACHE)] = None,
    fetch_only: bool = False,
    report: File | None = None,
) -> str | None:
    """Fetch or generate the raw text; with ``fetch_only``, return the paths in the cache.

    config: experiment configuration (YAML)
    output_dir: folder for the raw text
    fetch_only: only fill the cache, for a later run without a network
    report: write the counts of lines and words to FILE as JSON
    """
    if fetch_only:
        if report or output_dir:
            raise UsageError("get-data: --fetch-only only fills the cache; leave out --report and --output-dir")
        return "\n".join(map(str, fetch_data(load_config(config), cache)))
    if output_dir is None:
        raise UsageError("get-data: give --output-dir, or --fetch-only")
    refuse_overwriting([report], [config])
    counted = get_data(load_config(config), output_dir, cache)
    if report:
        write_result(report, counted)
    return None
