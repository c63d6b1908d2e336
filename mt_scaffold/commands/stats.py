"""``mt-scaffold stats``: how codes segment a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.analysis.stats import format_stats, stats
from mt_scaffold.commands.option_types import Format, InputFiles, Threads, sources
from mt_scaffold.options_from_signature import Option


def run(
    codes: Annotated[Sequence[str], Option("PATH", "-c")],
    input: InputFiles = (),
    languages: Annotated[Sequence[str] | None, Option("PATH")] = None,
    format: Format = "text",
    num_workers: Threads = None,
) -> str:
    """Return the figures of codes.

    codes: codes files, learned or imported
    languages: parallel texts, a file per language: the Gini coefficient between them; without --input also the text
    """
    paths = None if languages is not None and not input else sources(input)
    return format_stats(stats(codes, num_workers=num_workers, paths=paths, languages=languages), format)
