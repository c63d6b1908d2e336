"""JSONL that the core reads itself: the same texts and errors as with Python's json."""

from __future__ import annotations

import gzip
import io
import json
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt_scaffold import BPE
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.jsonl import field_of_line, read_field
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.methods import PlainBPE
from mt_scaffold.segment.encode import decode_documents, encode_documents

# Keys and strings with every character that JSON escapes, and characters of every length.
STRINGS = st.text(st.sampled_from('text"\\/\b\n\r\t\x00\x1f\x7f \u00e4\u2028\ud7ff\U0001f989'), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)
NUMBERS = ["0", "-0", "01", "-", "1.", ".5", "1.5e+07", "1e", "1E-9", "9" * 301, "9" * 5000, "NaN", "-Infinity", "+1"]
WORDS = [
    "true",
    "false",
    "null",
    "True",
    "nul",
    "[]",
    "{}",
    "[1,]",
    "[,1]",
    '{"a":1,}',
    '{"a"}',
    "[[{}]]",
    "]",
    "[" * 70,
]
ESCAPES = [
    "\\u00e4",
    "\\ud83e\\udd89",
    "\\ud800",
    "\\udc00",
    "\\ud83e\\u0041",
    "\\u00g0",
    "\\x",
    "\\",
    "\\/",
    "\\u12",
    "\t",
]


@st.composite
def objects(draw: st.DrawFn) -> str:
    """An object with any number of fields, often the same one, as a program or a person writes it."""
    members = []
    for _ in range(draw(st.integers(0, 4))):
        key = draw(st.sampled_from(['"text"', '"t\\u0065xt"', '"id"', '"Text"', "text"]))
        value = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans()))
        string = '"' + "".join(draw(st.lists(st.sampled_from([*ESCAPES, "a", "ä", " " * 20]), max_size=5))) + '"'
        value = draw(st.sampled_from([value, value, string, draw(st.sampled_from(NUMBERS + WORDS))]))
        space = draw(st.sampled_from(["", " ", "\t \r", "\x0b"])) if draw(st.booleans()) else ""
        members.append(f"{space}{key}{space}:{space}{value}{space}")
    return (
        draw(st.sampled_from(["", " "])) + "{" + ",".join(members) + "}" + draw(st.sampled_from(["", " ", ",", "\r"]))
    )


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line of JSONL, possibly damaged, or any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=20) | st.sampled_from([b"", b" \t\r", b"\x1c", b"\xef\xbb\xbf{}"])).replace(
            b"\n", b""
        )
    line = bytearray(draw(objects()).encode("utf-8", "surrogatepass"))
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(line)))
        line[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b'"', b"\\", b"}", b"\xff", b"\xc3", b"\xed\xa0\x80"])
        )
    return bytes(line).replace(b"\n", b"")


@cache
def codes() -> bytes:
    """Codes of bytes."""
    counts = count_words(io.BytesIO(b"text text"), pretokenise="gpt2", any_bytes=True)
    return PlainBPE(2).learn(counts, CodesHeader.of_options("gpt2", byte_level=True)).text


@cache
def core() -> Any:
    return BPE(codes()).ids_in_core


def read_by_core(text: bytes, left: list[int], workers: int = 1) -> Any:
    """The documents in lines of JSON, or the error; ``left`` collects the numbers of the lines that Python read."""
    ids, sizes = io.BytesIO(), io.BytesIO()

    def fallback(line: bytes, number: int, offset: int) -> bytes | None:
        left.append(number)
        return field_of_line(line, number, offset, "shard", "text")

    encode = partial(core().encode_lines, ("shard", text), ("ids", ids), ("sizes", sizes), "")
    try:
        done = encode(width=2, workers=workers, json=(b"text", fallback))
    except MTScaffoldError as error:
        return str(error)
    values = memoryview(ids.getvalue()).cast("H")
    found, start = [], 0
    for size in memoryview(sizes.getvalue()).cast("i"):
        found.append(core().decode(values[start : start + size]))
        start += size
    assert start == len(values) and done == sum(map(len, found))
    return found


def read_by_python(text: bytes) -> Any:
    """The same, with Python's json."""
    try:
        return list(read_field(text.removesuffix(b"\n").split(b"\n") if text else [], "shard", "text"))
    except MTScaffoldError as error:
        return str(error)


@settings(max_examples=500, deadline=None)
@given(st.lists(lines(), max_size=3), st.booleans())
@example([b'{"text": "a", "text": 1}'], True)
@example([b'{"text": 1, "text": "a"}'], True)
@example([b'{"a": {"text": "b"}, "text": "' + b"x" * 15 + b'\\n"}'], False)
@example([b'{"text": "a"} {'], True)
@example([b'{"text": "a'], False)
def test_the_core_reads_what_python_reads(given: list[bytes], ends: bool) -> None:
    """Every line has the same text or the same error, whatever it holds."""
    text = b"\n".join(given) + b"\n" * ends
    assert read_by_core(text, []) == read_by_python(text)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(STRINGS.filter(lambda key: json.dumps(key, ensure_ascii=False)[1:-1] == key), VALUES), STRINGS)
def test_ordinary_lines_need_no_python(members: dict[str, Any], text: str) -> None:
    """Otherwise the core would be correct but slow."""
    line = json.dumps({**members, "text": text}, ensure_ascii=False, allow_nan=True).encode()
    left: list[int] = []
    assert read_by_core(line, left) == [text.encode()]
    assert not left or b"NaN" in line or b"Infinity" in line


@pytest.mark.parametrize("wrong", [b"", b'{"text": "\xff"}', b'{"text": "a}', b'{"txt": 1}'])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_lines_and_offsets_in_large_files(tmp_path: Path, wrong: bytes, ending: str) -> None:
    """An error beyond the first blocks has the right line and offset, and documents keep their order."""
    text = b"".join(b'{"text": "%d %s"}\n\n' % (i, b"x" * (i % 700)) for i in range(5000))
    text += wrong + b"\n" + text
    expected = read_by_python(text)
    if isinstance(expected, str):
        assert {read_by_core(text, [], workers) for workers in (1, 2, 3)} == {expected}
        return
    assert [read_by_core(text, [], workers) == expected for workers in (1, 2, 3)] == [True] * 3
    path = tmp_path / f"a.jsonl{ending}"
    path.write_bytes(gzip.compress(text) if ending else text)
    encoded = encode_documents(codes(), [path], tmp_path / "a.bin", num_workers=2)
    assert encoded.documents == len(expected) and encoded.bytes == sum(map(len, expected))
    decode_documents(codes(), tmp_path / "a.bin", tmp_path / "b.jsonl", format="jsonl")
    assert list(Documents([tmp_path / "b.jsonl"])) == expected
