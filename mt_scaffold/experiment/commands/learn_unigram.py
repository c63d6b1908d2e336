"""mt-scaffold learn-unigram: see mt_scaffold.methods.unigram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.methods import Unigram
from mt_scaffold.methods.learn import learn
from mt_scaffold.options import WORKERS_HELP
from mt_scaffold.options_from_signature import Option


def learn_unigram(
    input: Annotated[Sequence[str], Option("PATH", "-i")],
    output: Annotated[str, Option("PATH", "-o")],
    symbols: Annotated[int, Option(short="-s")],
    total_symbols: bool = False,
    num_workers: Annotated[int | None, Option(help=WORKERS_HELP)] = None,
) -> None:
    """Learn a model.

    input: texts of words
    output: model; call it NAME.model
    symbols: pieces besides the single characters
    total_symbols: count the single characters among the N pieces
    """
    learn(method=Unigram(symbols, total_symbols), outfile=output, paths=input, num_workers=num_workers)
