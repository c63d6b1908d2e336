"""mt-scaffold detokenise: see mt_scaffold.experiment.data.tokenise."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import OutputFile
from mt_scaffold.experiment.data.tokenise import detokenise_text
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold join < translated.bpe | mt-scaffold detokenise --language de > translated.de
"""


def run(
    *,
    input: Annotated[str | None, Option("FILE", "-i")] = None,
    output: OutputFile | None = None,
    language: Annotated[str, Option("CODE", "-l")],
    num_workers: int = 1,
) -> None:
    """Detokenise text.

    Join words that mt-scaffold tokenise or Moses' tokeniser made into ordinary text, as sacremoses does: escapes
    (&quot;) and split dashes (@-@) are undone. Normalised quotation marks and lowercased words stay as they are.

    input: words, plain or .gz (default: standard input)
    output: text (default: standard output)
    language: language code such as en or de
    num_workers: processes, -1 for all cores
    """
    source, target = (None if path == "-" else path for path in (input, output))
    detokenise_text(source, target, language, num_workers=num_workers)
