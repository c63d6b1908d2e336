"""The types of arguments that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, BinaryIO

from mt_scaffold.commands import arguments
from mt_scaffold.corpus.documents import DOCUMENT_FORMATS, Documents
from mt_scaffold.corpus.files import input_or_standard
from mt_scaffold.corpus.input_checks import warned_of_segmented
from mt_scaffold.corpus.inputs import Begun
from mt_scaffold.options import FORMATS, WORKERS_HELP
from mt_scaffold.options_from_signature import Option

Format = Annotated[str, Option(choices=FORMATS, help="output format")]
MapFile = Annotated[
    str | None, Option("PATH", help="write which tokens are gone and which are new, for a model's embeddings")
]
NewCodes = Annotated[str | None, Option("PATH", "-o", help="codes file (default: standard output)")]
InputFiles = Annotated[
    Sequence[str],
    Option("PATH", "-i", help="texts of words, .gz and .zst too, read as one (default: standard input)"),
]
Threads = Annotated[int | None, Option(help=WORKERS_HELP)]


def sources(paths: Sequence[str]) -> list[str | BinaryIO | Begun]:
    """Return the given paths, warning of segmented text; standard input without any and for ``-``."""
    return warned_of_segmented([input_or_standard(path) for path in paths] or [input_or_standard(None)])


@dataclass(frozen=True)
class Text:
    """The options of a text as documents."""

    input: Annotated[Sequence[str], Option("PATH", "-i", help=arguments.DOCUMENTS_HELP)] = ()
    format: Annotated[str | None, Option(choices=DOCUMENT_FORMATS, help=arguments.FORMAT_HELP)] = None
    field: Annotated[str | None, Option("NAME", help=arguments.FIELD_HELP)] = None

    @property
    def given(self) -> bool:
        """Whether there is any of these options."""
        return any(vars(self).values())

    @property
    def documents(self) -> Documents:
        """The documents of the files; of standard input without any and for ``-``."""
        return Documents(sources(self.input), self.format, self.field)


@dataclass(frozen=True)
class Words:
    """The options of words and their symbols, as keyword arguments of the functions that count."""

    pretokenise: Annotated[str, Option("NAME", help=arguments.PRETOKENISE_HELP)] = "spaces"
    split_digits: Annotated[bool, Option(help=arguments.SPLIT_DIGITS_HELP)] = False
    byte_level: Annotated[bool, Option(name="bytes", short="-b", help=arguments.BYTES_HELP)] = False
