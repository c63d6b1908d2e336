"""``mt-scaffold count-words``: text → a count file, and count files → one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.commands.arguments import MAX_MEMORY_HELP
from mt_scaffold.commands.option_types import Text, Threads, Words
from mt_scaffold.corpus.count import merge_counts, write_counts
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.errors import UsageError
from mt_scaffold.options_from_signature import Option


def run(
    text: Text,
    merge: Annotated[Sequence[str] | None, Option("PATH")] = None,
    output: Annotated[str | None, Option("PATH", "-o")] = None,
    *,
    words: Words,
    max_memory: Annotated[str | None, Option("SIZE", help=MAX_MEMORY_HELP.format(""))] = None,
    num_workers: Threads = None,
) -> None:
    """Write a count file.

    merge: merge these count files, those of shards (globs too), instead of counting
    output: count file, .gz, .zst too (default: standard output)
    """
    outfile = output_or_standard(output)
    if merge is None:
        write_counts(outfile, None, num_workers, documents=text.documents, max_memory=max_memory, **vars(words))
    elif text.given or words != Words():
        raise UsageError("--merge takes count files, which say how they were counted; omit the options of counting")
    else:
        merge_counts(outfile, merge, max_memory)
