"""``mt-scaffold compare-vocab``: what Scaffold-BPE changes in a BPE vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.analysis.compare_vocab import compare_sizes, compare_vocab, format_comparison, format_sizes
from mt_scaffold.commands.option_types import Format, InputFiles, Threads, Words, sources
from mt_scaffold.errors import UsageError
from mt_scaffold.options_from_signature import Option

# The number of tokens to list by default.
_TOP = 20


def run(
    bpe: Annotated[str | None, Option("BPE.codes")] = None,
    scaffold: Annotated[str | None, Option("SCAFFOLD.codes")] = None,
    /,
    *,
    sizes: Annotated[Sequence[int] | None, Option("N")] = None,
    words: Words,
    total_symbols: Annotated[bool, Option(short="-t")] = False,
    input: InputFiles = (),
    format: Format = "text",
    top: int | None = None,
    num_workers: Threads = None,
) -> str:
    """Compare two codes files, or codes learned here, and return the table.

    Show which tokens Scaffold-BPE removes from a BPE vocabulary, and adds (scores: compare). Give two codes files, or
    --sizes without them.

    bpe: codes learned with --algorithm bpe; omit both codes files with --sizes
    scaffold: codes learned with --algorithm scaffold
    sizes: instead of two codes files: learn both from the texts with each number of symbols, and compare those
    total_symbols: with --sizes: N counts the base symbols too, as in the paper
    top: list only the N most frequent removed and new tokens; JSON holds all (default: 20)
    """
    if sizes is not None:
        if bpe is not None:
            raise UsageError(f"--sizes learns its own codes; omit {bpe}, or --sizes to compare codes files")
        if top is not None:
            raise UsageError("--sizes lists no tokens; omit --top, or compare two codes files")
        paths = sources(input)
        rows = compare_sizes(sizes, num_workers=num_workers, paths=paths, total_symbols=total_symbols, **vars(words))
        return format_sizes(rows, format)
    if total_symbols or words != Words():
        raise UsageError("codes files say how text becomes words and symbols; omit those options, or give --sizes")
    if bpe is None or scaffold is None:
        raise UsageError("give two codes files, BPE's first, or --sizes to learn them from the text")
    comparison = compare_vocab(bpe, scaffold, num_workers=num_workers, paths=sources(input))
    return format_comparison(comparison, format, _TOP if top is None else top)
