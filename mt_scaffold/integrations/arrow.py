"""Arrow tables of documents → counts and ids: what Ray Data maps over batches."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow

from mt_scaffold.corpus.count import merge_counts
from mt_scaffold.corpus.files import Output
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.integrations.documents import DocumentEncoder, WordCounting


class EncodeTable:
    """Adds a column of ids (``LargeList`` of uint16 or uint32) to a table of documents.

    ``dataset.map_batches(EncodeTable, fn_constructor_args=[encoder], batch_format="pyarrow", concurrency=2)``

    column: the documents, strings without nulls. ids: the column that is added.
    """

    def __init__(self, encoder: DocumentEncoder, column: str = "text", ids: str = "ids") -> None:
        self._encoder, self._column, self._ids = encoder, column, ids

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Raise MTScaffoldError for a null, and as ``DocumentEncoder.encode`` does."""
        ids, offsets = self._encoder.encode(_documents(table, self._column))
        return table.append_column(self._ids, pyarrow.LargeListArray.from_arrays(offsets, ids))


class CountTable:
    """Turns a table of documents into one of a single row, whose ``counts`` are their count file.

    A table that is counted again after a failure takes the place of the first, so that no word counts twice.
    """

    def __init__(self, counting: WordCounting | None = None, column: str = "text") -> None:
        self._counting = WordCounting() if counting is None else counting
        self._column = column

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Raise MTScaffoldError for a null, and as ``write_counts`` does."""
        counts = self._counting.counts(_documents(table, self._column))
        return pyarrow.table({"counts": pyarrow.array([counts], pyarrow.large_binary())})


def merge_rows(outfile: Output, rows: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """Merge the rows of ``CountTable``, such as ``dataset.iter_rows()``, into a count file.

    Returns the number of word types and of words. Raises as ``merge_counts`` does.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, row in enumerate(rows):
            paths.append(Path(folder) / f"{number}.counts")
            paths[-1].write_bytes(row["counts"])
        return merge_counts(outfile, paths)


def _documents(table: pyarrow.Table, column: str) -> list[str]:
    if table[column].null_count:
        raise MTScaffoldError(f"column '{column}' has {table[column].null_count:,} nulls; filter them out")
    documents: list[str] = table[column].to_pylist()
    return documents
