"""``mt-scaffold decode``: ids → documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.corpus.files import output_or_standard, standard_input, standard_output
from mt_scaffold.corpus.id_files import DTYPES
from mt_scaffold.errors import UsageError
from mt_scaffold.options_from_signature import CODES, MERGES, SPECIAL, Name, Option
from mt_scaffold.segment.encode import DECODED_FORMATS, decode_documents
from mt_scaffold.segment.streams import decode_stream


def run(
    input: Annotated[str | None, Option("NAME.bin", "-i")] = None,
    stream: bool = False,
    *,
    codes: Annotated[str, CODES],
    merges: Annotated[int, MERGES] = -1,
    output: Annotated[str | None, Option("PATH", "-o")] = None,
    format: Annotated[str, Option(choices=DECODED_FORMATS)] = "lines",
    field: Name = "text",
    dtype: Annotated[str | None, Option(choices=DTYPES)] = None,
    special_tokens: Annotated[Sequence[str], SPECIAL] = (),
    append: Annotated[str | None, Option("TOKEN")] = None,
) -> None:
    """Write the text of ids.

    input: ids (from encode)
    stream: write the text of ids as they arrive on standard input, as in NAME.bin, only in whole characters
    output: output text (default: standard output)
    format: each document followed by a line end, as it is, or in a JSON object, where U+FFFD replaces what is not UTF-8
    field: the key of the text in JSONL
    dtype: type of an id, if there is no NAME.idx (default: uint16, uint32 for codes of more than 65,536 ids)
    append: leave out this token, which encode appended, at the end of documents (default: the one in
        NAME.manifest.json)
    """
    if not stream:
        if not input:
            raise UsageError("--input NAME.bin is missing; or give --stream")
        decode_documents(
            codes,
            input,
            output_or_standard(output),
            format=format,
            field=field,
            merges=merges,
            dtype=dtype,
            special_tokens=special_tokens,
            append=append,
        )
        return
    if input or output or append or merges != -1 or format != "lines":
        raise UsageError(
            "--stream reads standard input and writes standard output; of the other options give only --dtype and "
            "--special"
        )
    decode_stream(codes, standard_input(), standard_output(), dtype=dtype, special_tokens=special_tokens)
