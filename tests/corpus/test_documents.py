"""Documents of a corpus: text, JSONL and Parquet, plain and compressed, whole or damaged."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold.corpus.documents import Documents
from mt_scaffold.errors import MTScaffoldError, UsageError

TEXTS = ["one", "two\nlines\n", "", "drei Ä\u2028\r\n 🦉", " \n", "x" * 300_000, "</w> @@ \0"]


def zstd_module() -> Any:
    """Return Python's own module, or the one of the extra 'documents'."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return pytest.importorskip(name, reason="comes with the extra 'documents'")


def zst(content: bytes) -> bytes:
    return bytes(zstd_module().compress(content))


def jsonl(texts: list[str], field: str = "text") -> bytes:
    return "".join(json.dumps({"id": i, field: text}) + "\n" for i, text in enumerate(texts)).encode()


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow", reason="comes with the extra 'documents'")
    parquet = importlib.import_module("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


PACKING: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zst}


@pytest.mark.parametrize("ending", PACKING)
def test_jsonl_gives_whole_documents(tmp_path: Path, ending: str) -> None:
    """Line feeds within a document stay in it, whatever the compression; blank lines are not documents."""
    path = tmp_path / f"shard.jsonl{ending}"
    path.write_bytes(PACKING[ending](jsonl(TEXTS).replace(b"\n", b"\n \r\n")))
    assert list(Documents([path])) == [text.encode() for text in TEXTS]


@pytest.mark.parametrize("ending", PACKING)
def test_plain_text_is_lines_or_a_file(tmp_path: Path, ending: str) -> None:
    """Only LF ends a line, a final LF does not begin another one, and bytes need not be UTF-8."""
    content = b"a\r\n\n\xff b\x0b\xe2\x80\xa8c\n" + b"y" * 600_000
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACKING[ending](content))
    assert list(Documents([path])) == content.split(b"\n")
    assert list(Documents([path], format="files")) == [content]
    path.write_bytes(PACKING[ending](b"a\n"))
    assert list(Documents([path, io.BytesIO(b""), io.StringIO("ä")])) == [b"a", "ä".encode()]


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "dictionary", "string_view"])
def test_parquet_rows_are_documents(tmp_path: Path, kind: str) -> None:
    """In order, over row groups and pages, whatever the type of the column."""
    pyarrow = pytest.importorskip("pyarrow", reason="comes with the extra 'documents'")
    texts = TEXTS * 30
    if kind == "dictionary":
        column = pyarrow.array(texts).dictionary_encode()
    else:
        column = pyarrow.array(texts, pyarrow.string()).cast(getattr(pyarrow, kind)())
    columns = {"n": list(range(len(texts))), "content": column}
    path = write_parquet(tmp_path / "a.parquet", columns, row_group_size=25, data_page_size=100)
    assert list(Documents([path], field="content")) == [text.encode() for text in texts]


def test_parquet_with_two_columns_of_a_name(tmp_path: Path) -> None:
    """It is unknown which of them holds the documents."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    parquet.write_table(pyarrow.table([["a"], ["b"]], names=["text", "text"]), tmp_path / "a.parquet")
    with pytest.raises(MTScaffoldError, match="2 columns are called 'text'; rename all but one"):
        list(Documents([tmp_path / "a.parquet"]))


def test_a_folder_that_a_glob_means_is_named(tmp_path: Path) -> None:
    """Spark writes folders with the name of a file; other folders are skipped, and a file found twice is read once."""
    (tmp_path / "b.parquet").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.txt").write_text("c\n")
    with pytest.raises(MTScaffoldError, match=r"b\.parquet: a folder that \*\.parquet matches"):
        Documents([tmp_path / "*.parquet"])
    assert list(Documents([tmp_path / "**" / "**" / "*.txt"])) == [b"c"]
    assert list(Documents([tmp_path / "a" / "b" / "*"])) == [b"c"]


def test_parquet_of_no_rows(tmp_path: Path) -> None:
    """An empty shard is not damaged."""
    pyarrow = pytest.importorskip("pyarrow", reason="comes with the extra 'documents'")
    assert list(Documents([write_parquet(tmp_path / "a.parquet", {"text": pyarrow.array([], "string")})])) == []


def test_globs_are_sorted_and_empty_ones_refused(tmp_path: Path) -> None:
    """The order of shards must not depend on the file system, and a typo must not give an empty corpus."""
    for name in ("b.jsonl", "a.jsonl", "10.jsonl", "9.jsonl"):
        (tmp_path / name).write_bytes(jsonl([name]))
    (tmp_path / "a[1]*.txt").write_text("literal")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "c.jsonl").write_bytes(jsonl(["c"]))
    assert list(Documents([tmp_path / "*.jsonl"])) == [b"10.jsonl", b"9.jsonl", b"a.jsonl", b"b.jsonl"]
    assert list(Documents([tmp_path / "deep" / "**" / "*.jsonl"])) == [b"c"]
    assert list(Documents([tmp_path / "a[1]*.txt"])) == [b"literal"]
    with pytest.raises(MTScaffoldError, match=r"\*\.txt: no file matches this pattern"):
        Documents([tmp_path / "deep" / "*.txt"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a"', r"not JSON \(Expecting ',' delimiter at column 13\)"),
        (b"[1]", "not a JSON object with the field 'text'"),
        (b'{"txt": "a", "id": 1}', r"no field 'text'; name another with --field \(fields: id, txt\)"),
        (b"{}", "no field 'text'; there is no field at all"),
        (b'{"\\u001b[2J\\nmt-scaffold: done": "a"}', r"\(fields: .x1b\[2J.nmt-scaffold: done\)"),
        (
            b'{"text": null}',
            "the field 'text' is not a string but null; leave such lines out, or write a string there",
        ),
        (b'{"text": 12, "body": ""}', "is not a string but a number; name another with --field \\(fields: body\\)"),
        (b'{"text": ["a"]}', "the field 'text' is not a string but an array; leave such lines out"),
        (b'{"text": "\\ud800"}', r"the field 'text' holds '\\ud800', a lone surrogate"),
        (b'{"text": "\xe4"}', "byte offset 28: 0xE4 is not UTF-8"),
        (b'{"text": ' + b"1" * 5000 + b"}", "not JSON that Python can read"),
        (b"[" * 200_000, "not JSON that Python can read"),
    ],
    ids=lambda value: value[:24].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_bad_json_is_reported_with_its_line(tmp_path: Path, line: bytes, message: str) -> None:
    """Each kind of fault is one line with its place; the documents before it are yielded."""
    path = tmp_path / "shard.jsonl"
    path.write_bytes(b'{"text": "first"}\n' + line + b"\n")
    documents = iter(Documents([path]))
    assert next(documents) == b"first"
    with pytest.raises(MTScaffoldError, match=message) as caught:
        next(documents)
    assert str(caught.value).startswith(f"{path}: line 2") and "\n" not in str(caught.value)


def test_parquet_errors(tmp_path: Path) -> None:
    """A missing column, one of numbers, a null, a damaged and a cut-off file: each one line."""
    pyarrow = pytest.importorskip("pyarrow", reason="comes with the extra 'documents'")
    texts = [str(random.Random(1).getrandbits(200)) + str(i) for i in range(2000)]
    path = write_parquet(tmp_path / "a.parquet", {"body": texts, "n": list(range(2000))}, row_group_size=500)
    with pytest.raises(MTScaffoldError, match=r"no column 'text'; name another with --field \(columns: body, n\)"):
        list(Documents([path]))
    with pytest.raises(MTScaffoldError, match="the column 'n' holds int64, not strings"):
        list(Documents([path], field="n"))
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", content[:-3], content[:200] + b"\xff" * 3000 + content[3200:]):
        path.write_bytes(damaged)
        with pytest.raises(MTScaffoldError, match=f"{path}: not a complete Parquet file") as caught:
            list(Documents([path], field="body"))
        assert "\n" not in str(caught.value)
    holed = write_parquet(tmp_path / "b.parquet", {"text": ["a"] * 700 + [None]}, row_group_size=500)
    with pytest.raises(
        MTScaffoldError, match="row 701: the column 'text' is not a string but null; leave such rows out"
    ):
        list(Documents([holed]))
    assert pyarrow


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_cut_off_files_are_refused(tmp_path: Path, ending: str, share: float) -> None:
    """Otherwise half a corpus would be learned from without notice."""
    whole = PACKING[ending](random.Random(2).randbytes(400_000))
    path = tmp_path / f"shard{ending}"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(MTScaffoldError, match=r"not a complete (gzip|zstd) file") as caught:
        list(Documents([path]))
    assert str(caught.value).startswith(f"{path}: ")


def test_zst_of_several_frames(tmp_path: Path) -> None:
    """Shards may be concatenated, and pzstd writes skippable frames between; garbage at the end is refused."""
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    path = tmp_path / "text.zst"
    path.write_bytes(zst(b"a\nb") + skippable + zst(b"") + zst(b"c\n") + skippable)
    assert list(Documents([path])) == [b"a", b"bc"]
    path.write_bytes(zst(b"a") + b"garbage")
    with pytest.raises(MTScaffoldError, match="not a complete zstd file"):
        list(Documents([path]))


def test_zst_with_a_long_window_and_a_high_ratio(tmp_path: Path) -> None:
    """``zstd --long`` is how large shards are packed; a gigabyte of one letter must not be decompressed at once."""
    zstd = zstd_module()
    from mt_scaffold.corpus.storage.zstd import ZstdReader

    parameter = zstd.CompressionParameter
    options = {parameter.compression_level: 1, parameter.window_log: 28, parameter.enable_long_distance_matching: 1}
    packed = zstd.ZstdCompressor(options=options)
    content = b"".join(packed.compress(bytes(1 << 20)) for _ in range(64)) + packed.flush()
    reader = ZstdReader(io.BytesIO(content), "zeros")
    buffer = bytearray(1 << 20)
    total = 0
    tracemalloc.start()
    try:
        while count := reader.readinto(buffer):
            total += count
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 64 << 20
    assert most <= 16 << 20


def test_commands_read_and_write_zst(tmp_path: Path) -> None:
    """Every command reads and writes it, an empty file too, complete or not at all."""
    zstd_module()
    from mt_scaffold import BPE, learn_bpe
    from mt_scaffold.corpus.files import read_file

    text = tmp_path / "text.zst"
    text.write_bytes(zst(b"low lower lowest\n" * 1000))
    codes = learn_bpe(text, tmp_path / "codes.zst", 5).codes
    BPE(tmp_path / "codes.zst").process_file(text, tmp_path / "subwords.zst")
    assert read_file(tmp_path / "codes.zst") == codes.text
    assert read_file(tmp_path / "subwords.zst") == (BPE(codes).segment("low lower lowest") + "\n").encode() * 1000
    BPE(codes).process_file(io.BytesIO(b""), tmp_path / "empty.zst")
    assert read_file(tmp_path / "empty.zst") == b"" != (tmp_path / "empty.zst").read_bytes()
    text.write_bytes(text.read_bytes()[:-2])
    with pytest.raises(MTScaffoldError, match="not a complete zstd file"):
        BPE(codes).process_file(text, tmp_path / "more.zst")
    assert not list(tmp_path.glob("*more*"))


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("a.txt", {"format": "csv"}, UsageError, "there is no format 'csv'; choose one of lines, files, jsonl"),
        ("a.txt", {"field": "text"}, UsageError, "a.txt: plain text has no field 'text'; give --format jsonl"),
        ("a.parquet.zst", {}, UsageError, "Parquet is compressed within; decompress the file first"),
        ("missing.jsonl", {}, MTScaffoldError, "missing.jsonl: No such file or directory"),
        ("missing.parquet", {}, OSError, "No such file or directory"),
    ],
)
def test_what_cannot_be_read(
    tmp_path: Path, name: str, options: dict[str, str], error: type[Exception], message: str
) -> None:
    """A wrong option or name is reported before anything is read."""
    with pytest.raises(error, match=message):
        list(Documents([tmp_path / name], **options))


def test_streams(tmp_path: Path) -> None:
    """Standard input is read as lines unless the format says otherwise; Parquet needs a file."""
    assert list(Documents([io.BytesIO(jsonl(["a\nb"]))], format="jsonl")) == [b"a\nb"]
    assert list(Documents([io.StringIO(jsonl(["ä"]).decode())], format="jsonl")) == ["ä".encode()]
    with pytest.raises(UsageError, match="Parquet cannot be read from a stream"):
        Documents([io.BytesIO()], format="parquet")
    with pytest.raises(UsageError, match="documents take a list"):
        Documents("text")


@pytest.mark.parametrize(("module", "ending"), [("backports.zstd", ".zst"), ("pyarrow", ".parquet")])
def test_a_missing_package_names_the_extra(tmp_path: Path, module: str, ending: str) -> None:
    """Both are optional; the error says what to install."""
    if module == "backports.zstd" and sys.version_info >= (3, 14):
        pytest.skip("Python reads .zst itself")
    path = tmp_path / f"shard{ending}"
    path.write_bytes(b"")
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        f"from mt_scaffold.corpus.documents import Documents\nlist(Documents([{str(path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"needs the Python package {module}" in done.stderr and "pip install '.[documents]'" in done.stderr
