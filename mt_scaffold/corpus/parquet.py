"""Parquet: documents as the rows of one column, read with pyarrow in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mt_scaffold.corpus.jsonl import fields_shown
from mt_scaffold.errors import MTScaffoldError

# Rows are read in batches of about _BATCH bytes of text, by the mean of their row group, and at most _MOST_ROWS, as
# long ones may come together.
_BATCH = 1 << 22
_MOST_ROWS = 1 << 9
# How much of a column is read ahead.
_BUFFER = 1 << 20


def read_column(path: str, name: str, column: str) -> Iterator[bytes]:
    """Yield the rows of a column of strings or bytes, in order.

    name: of the file, for errors.

    Raises MTScaffoldError if pyarrow is not installed, if the file is cut off, damaged or not Parquet, if it has no
    such column or the column holds something else, and, with the row, counted from 1, for a null.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MTScaffoldError(
            f"{name}: Parquet needs the Python package pyarrow: in the source folder, pip install '.[documents]'"
        ) from error
    try:
        with open(path, "rb") as stream:
            file = pyarrow.parquet.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)
            _check_column(file.schema_arrow, name, column, pyarrow.types)
            done = 0
            for group in range(file.num_row_groups):
                size = _rows_at_once(file.metadata.row_group(group), column)
                for batch in file.iter_batches(size, [group], [column], use_threads=False):
                    yield from _rows(batch.column(0), name, column, done, pyarrow)
                    done += len(batch)
    except pyarrow.ArrowException as error:
        raise _damaged(name, error) from error
    except OSError as error:
        # pyarrow's own errors have no errno; the system's are explained by the caller.
        if error.errno is not None:
            raise
        raise _damaged(name, error) from error


def _damaged(name: str, error: Exception) -> MTScaffoldError:
    return MTScaffoldError(f"{name}: not a complete Parquet file ({str(error).strip().splitlines()[0].rstrip('.')})")


def _check_column(schema: Any, name: str, column: str, types: Any) -> None:
    if column not in schema.names:
        raise MTScaffoldError(f"{name}: no column '{column}'; {fields_shown(schema.names, 'column')}")
    if schema.names.count(column) > 1:
        raise MTScaffoldError(f"{name}: {schema.names.count(column)} columns are called '{column}'; rename all but one")
    kind = schema.field(column).type
    if types.is_dictionary(kind):
        kind = kind.value_type
    checks = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
    if not any(getattr(types, check)(kind) for check in checks):
        raise MTScaffoldError(f"{name}: the column '{column}' holds {kind}, not strings")


def _rows_at_once(group: Any, column: str) -> int:
    chunks = map(group.column, range(group.num_columns))
    sizes = [chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == column]
    mean = sum(sizes) // max(group.num_rows, 1)
    return int(max(1, min(_MOST_ROWS, _BATCH // max(mean, 1))))


def _rows(array: Any, name: str, column: str, before: int, pyarrow: Any) -> Iterator[bytes]:
    if array.null_count:
        row = before + array.is_null().index(True).as_py() + 1
        raise MTScaffoldError(
            f"{name}: row {row}: the column '{column}' is not a string but null; leave such rows out, or write ''"
        )
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    array = array.cast(pyarrow.large_binary())
    _, offsets, data = array.buffers()
    ends = memoryview(offsets).cast("q")[array.offset : array.offset + len(array) + 1]
    text = memoryview(data if data is not None else b"")
    for i in range(len(array)):
        yield bytes(text[ends[i] : ends[i + 1]])
