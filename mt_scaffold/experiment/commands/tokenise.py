"""mt-scaffold tokenise: see mt_scaffold.experiment.data.tokenise."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.corpus.files import refuse_overwriting
from mt_scaffold.experiment.commands.arguments import File, OutputFile
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.tokenise import tokenise
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold tokenise --language de < train.raw.de > train.de
"""


def run(
    *,
    input: Annotated[str | None, Option("FILE", "-i")] = None,
    output: OutputFile | None = None,
    language: Annotated[str, Option("CODE", "-l")],
    keep_punctuation: bool = False,
    keep_nonprinting: bool = False,
    keep_dashes: bool = False,
    straight_apostrophes: bool = False,
    lowercase: bool = False,
    num_workers: int = 1,
    report: File | None = None,
) -> None:
    """Tokenise text.

    input: raw text, plain or .gz (default: standard input)
    output: words (default: standard output)
    language: language code such as en or de
    keep_punctuation: do not normalise quotation marks, dashes and so on
    keep_nonprinting: do not replace non-printing characters by spaces
    keep_dashes: do not split words at dashes (well @-@ known)
    straight_apostrophes: first turn U+2019 into an apostrophe
    lowercase: lowercase the words
    num_workers: processes, -1 for all cores
    report: write the counts of lines and words to FILE as JSON
    """
    choices = Tokenise(
        normalise_punctuation=not keep_punctuation,
        remove_nonprinting=not keep_nonprinting,
        aggressive_dash_splitting=not keep_dashes,
        straight_apostrophes=straight_apostrophes,
        lowercase=lowercase,
    )
    source, target = (None if path == "-" else path for path in (input, output))
    refuse_overwriting([target, report], [source])
    counted = tokenise(source, target, language, choices, num_workers=num_workers)
    if report:
        write_result(report, counted)
