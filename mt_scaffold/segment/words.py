"""Text → the words that codes find in it, with the spaces that imported codes add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mt_scaffold import _core
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import Text, count_text, load_counts
from mt_scaffold.corpus.documents import DocumentInput, Documents
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.inputs import source_name
from mt_scaffold.errors import UsageError
from mt_scaffold.segment.numbering import Spaces, numbering_of


class Prepared:
    """The lines or documents of a text as imported codes prepare them (``Spaces``), to be read once.

    added: the number of spaces added to those read so far.
    """

    def __init__(self, text: Text, spaces: Spaces) -> None:
        self._text, self._spaces = text, spaces
        self.added = 0

    def __iter__(self) -> Iterator[bytes]:
        for document in _documents(self._text):
            text = document.decode("utf-8", "surrogateescape")
            prepared = self._spaces.prepared(text)
            self.added += len(prepared) > len(text)
            yield prepared.encode("utf-8", "surrogateescape")


def _documents(text: Text) -> Iterator[bytes]:
    if not isinstance(text, list):
        yield from text
        return
    reader = Documents([])
    for source in text:
        yield from reader.documents_of(DocumentInput(source, source_name(source), "lines"))


def spaces_of(codes: Codes) -> Spaces | None:
    """Return how imported codes prepare text; None if it is taken as it is."""
    numbering = None if codes.header.end_of_word else numbering_of(codes)
    return None if numbering is None else numbering.spaces


def words_of_text(
    codes: Codes, text: Text, counts: Sequence[PathLike] | None, num_workers: int | None
) -> _core.WordCounts:
    """Return the words of a text, or of count files in its place, as codes find them when they encode it.

    Raises UsageError for count files with codes that put a space before a text.
    """
    header, spaces = codes.header, spaces_of(codes)
    if counts is not None:
        if spaces not in (None, Spaces()):
            raise UsageError(
                f"{codes.name}: puts a space before each text, which count files lack; give the text itself"
            )
        return load_counts(counts, header)[0]
    if spaces is not None:
        text = iter(Prepared(text, spaces))
    return count_text(text, header, num_workers=num_workers)
