"""``encode`` and ``decode``: files of ids that fairseq and nanoGPT read, and that decode to the same text."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from reference.ids import NOTATION
from segmenting import hard_text

from mt_scaffold import BPE
from mt_scaffold.cli import main
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.id_files import id_width, read_index
from mt_scaffold.errors import MTScaffoldError, SpecialTokenError, UsageError
from mt_scaffold.methods import Scaffold
from mt_scaffold.segment.encode import decode_documents, encode_documents

numpy = pytest.importorskip("numpy", reason="reads the files of ids")

END = "<|endoftext|>"
LINES = [*hard_text(4, 2500).split("\n"), "", "\r", " a  b \r", "  "]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with codes, and the same documents as lines, compressed lines and JSONL."""
    folder = tmp_path_factory.mktemp("encode")
    text = "".join(f"{line}\n" for line in LINES)
    (folder / "lines.txt").write_bytes(text.encode("utf-8"))
    (folder / "lines.gz").write_bytes(gzip.compress(text.encode("utf-8")))
    (folder / "objects.jsonl").write_text("".join(json.dumps({"body": line}) + "\n" for line in LINES))
    counts = count_words(folder / "lines.txt", pretokenise="gpt2", any_bytes=True)
    header = CodesHeader.of_options("gpt2")
    (folder / "codes").write_bytes(Scaffold(300).learn(counts, header).text)
    return folder


def ids_of(path: Path, kind: str = "u2") -> list[list[int]]:
    """The ids of each document, read as the programs' own loaders do."""
    ids = numpy.memmap(path, dtype=kind, mode="r") if path.stat().st_size else numpy.zeros(0, kind)
    index = path.with_suffix(".idx").read_bytes()
    magic, version, code, number = struct.unpack("<9sQBQ", index[:26])
    assert (magic, version, code) == (b"MMIDIDX\0\0", 1, {"u2": 8, "u4": 9}[kind])
    sizes = numpy.frombuffer(index, "<i4", number, 26)
    pointers = numpy.frombuffer(index, "<i8", number, 26 + 4 * number)
    assert len(index) == 26 + 12 * number
    return [ids[start : start + size].tolist() for start, size in zip(pointers // ids.itemsize, sizes, strict=True)]


def test_the_files_hold_what_bpe_gives(folder: Path, tmp_path: Path) -> None:
    """They have each document's ids and the appended token, the same for any number of workers and input format."""
    codes = folder / "codes"
    bpe = BPE(codes, special_tokens=[END])
    done = encode_documents(codes, [folder / "lines.txt"], tmp_path / "a.bin", append=END, num_workers=1)
    assert ids_of(tmp_path / "a.bin") == [[*bpe.encode(line), bpe.special_tokens[END]] for line in LINES]
    total = (tmp_path / "a.bin").stat().st_size // 2
    assert done == (len(LINES), total, sum(len(line.encode()) for line in LINES), bpe.n_vocab, "uint16")
    for name, field in (("lines.txt", None), ("lines.gz", None), ("objects.jsonl", "body")):
        encode_documents(codes, [folder / name], tmp_path / "b.bin", field=field, append=END, num_workers=3)
        for ending in (".bin", ".idx"):
            assert (tmp_path / "b").with_suffix(ending).read_bytes() == (tmp_path / "a").with_suffix(
                ending
            ).read_bytes()


def test_dropout_numbers_documents_through_all_files(folder: Path, tmp_path: Path) -> None:
    """The ids are those of encode_batch for all documents, whatever the files and their formats."""
    codes, names = folder / "codes", ["lines.txt", "objects.jsonl", "lines.gz"]
    for workers in (1, 3):
        encode_documents(
            codes,
            [folder / name for name in names],
            tmp_path / f"{workers}.bin",
            field="body",
            dropout=0.2,
            seed=5,
            epoch=2,
            num_workers=workers,
            dtype="uint32",
        )
    ids, offsets = BPE(codes).encode_batch(LINES * len(names), dropout=0.2, seed=5, epoch=2)
    expected = [ids[start:end].tolist() for start, end in itertools.pairwise(offsets)]
    assert ids_of(tmp_path / "1.bin", "u4") == ids_of(tmp_path / "3.bin", "u4") == expected


def test_fairseq_reads_the_files(folder: Path, tmp_path: Path) -> None:
    """Its own reader of memory-mapped data sets takes both types, empty documents included."""
    indexed_dataset = pytest.importorskip("fairseq.data.indexed_dataset", reason="comes with the extra 'fairseq'")
    bpe = BPE(folder / "codes")
    for kind in ("uint16", "uint32"):
        encode_documents(folder / "codes", [folder / "lines.txt"], tmp_path / "ids.bin", dtype=kind)
        read = indexed_dataset.MMapIndexedDataset(str(tmp_path / "ids"))
        assert len(read) == len(LINES)
        assert [read[i].tolist() for i in range(len(read))] == [bpe.encode(line) for line in LINES]


@pytest.mark.parametrize("special", [[], ["--append", END]])
def test_text_comes_back_from_the_commands(folder: Path, tmp_path: Path, special: list[str]) -> None:
    """As lines, as JSONL, and as one document without an index, like nanoGPT's own files."""
    codes, source, ids = f"--codes={folder / 'codes'}", folder / "lines.txt", tmp_path / "ids.bin"
    assert main(["encode", codes, "--input", str(source), "--output", str(ids), *special]) == 0
    back = tmp_path / "back"
    decode = ["decode", codes, "--input", str(ids), "--output", str(back), *special]
    assert main(decode) == 0
    assert back.read_bytes() == source.read_bytes()
    assert main([*decode, "--format", "jsonl", "--field", "body"]) == 0
    assert [json.loads(line) for line in back.read_text("utf-8").split("\n")[:-1]] == [{"body": line} for line in LINES]
    assert main(["encode", codes, "--input", str(source), "--output", str(ids), "--format", "files", *special]) == 0
    assert main([*decode, "--format", "files"]) == 0
    assert back.read_bytes() == source.read_bytes()
    ids.with_suffix(".idx").unlink()
    assert main([*decode, "--format", "files", "--dtype", "uint16"]) == 0
    assert back.read_bytes() == source.read_bytes()
    assert main(decode) == 1
    ids.write_bytes(ids.read_bytes()[:-2])
    assert main([*decode, "--format", "files"]) == 1
    assert back.read_bytes() == source.read_bytes()


def test_decoding_with_other_codes_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest has codes, merges and special tokens; with others, decoding would give fluent garbage."""
    codes, other, ids, back = folder / "codes", tmp_path / "other", tmp_path / "x.bin", tmp_path / "back"
    other.write_bytes(b"".join(codes.read_bytes().splitlines(keepends=True)[:20]))
    (tmp_path / "same.gz").write_bytes(gzip.compress(codes.read_bytes()))
    encode_documents(codes, [folder / "lines.txt"], ids, append=END)
    manifest = json.loads((tmp_path / "x.manifest.json").read_text())
    digests = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("x.bin", "x.idx")}
    assert (manifest["kind"], manifest["files"]) == ("ids", digests)
    assert manifest["codes"]["sha256"] == hashlib.sha256(codes.read_bytes()).hexdigest()
    assert (manifest["documents"], manifest["ids"]) == (len(LINES), ids.stat().st_size // 2)
    wrong: tuple[tuple[Path, list[str], str], ...] = (
        (other, [], r"encoded with codes \(sha256 .*\), not with other \(sha256 .*\); decode with those codes"),
        (codes, ["--merges", "20"], "not with codes .*, 20 merges"),
        (codes, ["--append", "<|end|>"], r"encoded with other special tokens \('<\|endoftext\|>'\); omit"),
    )
    for path, options, says in wrong:
        assert main(["decode", "--codes", str(path), "--input", str(ids), "--output", str(back), *options]) == 2
        error = capsys.readouterr().err
        assert re.search(says, error) and error.count("\n") == 1 and not back.exists()
    encode_documents(codes, [folder / "lines.txt"], ids, special_tokens=[END, "<|end|>"], append=END)
    with pytest.raises(UsageError, match=r"encoded with --append <\|endoftext\|>, not <\|end\|>; omit it"):
        decode_documents(codes, ids, back, special_tokens=[END, "<|end|>"], append="<|end|>")
    encode_documents(codes, [folder / "lines.txt"], ids, append=END)
    # The special tokens are the manifest's; with --special, the appended one stays.
    decode_documents(tmp_path / "same.gz", ids, back)
    assert back.read_bytes() == (folder / "lines.txt").read_bytes()
    decode_documents(codes, ids, back, special_tokens=[END])
    assert back.read_text("utf-8").count(END) == len(LINES)
    assert capsys.readouterr().err == ""


def test_a_pair_without_its_manifest_decodes_with_a_notice(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of other tools have none. A manifest of other ids, or a damaged one, is an error."""
    codes, ids, back = folder / "codes", tmp_path / "x.bin", tmp_path / "back"
    encode_documents(codes, [folder / "lines.txt"], ids)
    manifest = tmp_path / "x.manifest.json"
    written = manifest.read_text()
    manifest.unlink()
    decode_documents(codes, ids, back)
    assert back.read_bytes() == (folder / "lines.txt").read_bytes()
    notice = capsys.readouterr().err
    assert notice.startswith("notice: ") and "no x.manifest.json" in notice and notice.count("\n") == 1
    content = json.loads(written)
    for broken, says in (
        ("{", "not JSON"),
        ("[]", "not a manifest of mt-scaffold"),
        (json.dumps(content | {"kind": "packed model"}), "the manifest of something else"),
        (json.dumps(content | {"format": 2}), "of a newer mt-scaffold"),
        (json.dumps(content | {"codes": {"sha256": 1}}), "codes: must be a name, a sha256, merges and ids"),
        (json.dumps(content | {"special_tokens": 1}), "special_tokens: must be tokens and their ids"),
        (json.dumps(content | {"files": {}}), r"not the manifest of .*x\.idx"),
    ):
        manifest.write_text(broken)
        with pytest.raises(MTScaffoldError, match=says):
            decode_documents(codes, ids, back)


def test_special_tokens_in_documents(folder: Path, tmp_path: Path) -> None:
    """They are refused with file and line, and nothing is left behind; on request they are tokens, or text."""
    for name, content, place in (
        ("a.txt", f"one\ntwo {END}\n", "line 2"),
        ("a.jsonl", f'\n{{"text": "one"}}\n \n\n{{"text": "{END}"}}\n\n', "line 5"),
    ):
        text = tmp_path / name
        text.write_text(content)
        before = sorted(tmp_path.iterdir())
        with pytest.raises(SpecialTokenError, match=f"{name}: {place}: the text holds .* byte offset .*--in-text"):
            encode_documents(folder / "codes", [text], tmp_path / "x.bin", special_tokens=[END])
        command = ["encode", f"--codes={folder / 'codes'}", "--special", END, "--input", str(text)]
        # The data is wrong, not the call.
        assert main([*command, "--output", str(tmp_path / "x.bin")]) == 1
        assert sorted(tmp_path.iterdir()) == before
    bpe = BPE(folder / "codes", special_tokens=[END])
    for in_text, states in (("token", {"allowed_special": "all"}), ("text", {"disallowed_special": ()})):
        encode_documents(folder / "codes", [tmp_path / "a.txt"], tmp_path / "x.bin", append=END, in_text=in_text)
        expected = [*bpe.encode(f"two {END}", **states), bpe.special_tokens[END]]
        assert ids_of(tmp_path / "x.bin")[1] == expected


def test_wrong_calls_of_encode(folder: Path, tmp_path: Path) -> None:
    """Each is refused with one line that says what to do, before anything is written."""
    codes, text = folder / "codes", folder / "lines.txt"
    with pytest.raises(UsageError, match=r"x: not a file NAME.bin"):
        encode_documents(codes, [text], tmp_path / "x")
    with pytest.raises(UsageError, match="65,537 ids do not fit into uint16; choose uint32"):
        id_width(65537, "uint16")
    assert (id_width(65536), id_width(65537)) == (2, 4)
    (tmp_path / "points").write_bytes(b"#version: 0.2\na b\n")
    with pytest.raises(MTScaffoldError, match="points: only codes of bytes after a pre-tokeniser have ids") as raised:
        encode_documents(tmp_path / "points", [text], tmp_path / "x.bin")
    assert raised.value.exit_status == 1
    (tmp_path / "in.bin").write_bytes(b"text")
    with pytest.raises(UsageError, match="is an input already"):
        encode_documents(codes, [tmp_path / "in.bin"], tmp_path / "in.bin")
    with pytest.raises(MTScaffoldError, match=r"none\.txt"):
        encode_documents(codes, [tmp_path / "none.txt"], tmp_path / "x.bin")
    assert not [*tmp_path.glob("*x.*")]


def test_a_full_disk(folder: Path, tmp_path: Path) -> None:
    """The message names the output that does not fit, not the documents, and no part of it is left."""
    program = (
        "import resource, signal, sys\n"
        "from mt_scaffold.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
        "sys.exit(main())"
    )
    arguments = ["encode", "--codes", folder / "codes", "--input", folder / "lines.txt", "--output", "ids.bin"]
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and re.fullmatch(r"mt-scaffold: ids\.(bin|idx): File too large\n", done.stderr)
    assert not list(tmp_path.iterdir())


def test_wrong_files_and_calls_of_decode(folder: Path, tmp_path: Path) -> None:
    """A wrong id, a wrong or cut index, documents with line ends as lines: nothing is written."""
    codes, ids, out = folder / "codes", tmp_path / "x.bin", tmp_path / "out"
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": "b\\nc"}\n')

    def fails(message: str, **options: str) -> None:
        with pytest.raises(MTScaffoldError, match=message):
            decode_documents(codes, ids, out, **options)  # type: ignore[arg-type]
        assert not out.exists()

    encode_documents(codes, [tmp_path / "a.jsonl"], ids)
    fails("x.bin: document 2 holds a line end")
    fails("its index has uint16 ids; omit --dtype", dtype="uint32")
    numpy.array([97, 97, 60000, 97], "u2").tofile(ids)
    for format in ("lines", "files", "jsonl"):
        fails("x.bin: document 2: id 60000 at position 1 is out of range", format=format)
    numpy.array([97] * 5, "u2").tofile(ids)
    fails("x.idx: not the index of .*x.bin, which has 10 bytes")
    index = tmp_path / "x.idx"
    index.write_bytes(index.read_bytes()[:-1])
    fails("x.idx: incomplete; encode the text again")
    index.write_bytes(b"TNTIDX\0\0" + bytes(30))
    fails("x.idx: not an index of ids")
    index.unlink()
    (tmp_path / "x.manifest.json").unlink()
    ids.write_bytes(b"abc")
    fails("x.bin: size is not a multiple of 2 bytes; is it complete?")
    fails("no type of ids 'int16'; choose one of uint16, uint32", dtype="int16")
    fails("special_tokens takes a list of tokens, not the string", special_tokens=END)
    with pytest.raises(UsageError, match="special_tokens takes a list of tokens, not the string"):
        encode_documents(codes, [tmp_path / "a.jsonl"], tmp_path / "y.bin", special_tokens=END)
    ids.unlink()
    fails("x.bin: No such file or directory")


def megatron_index(dtype_code: int, sizes: list[int], width: int) -> bytes:
    """Return Megatron's index of documents of one sequence each, as its IndexedDataset reads it.

    34 bytes of header (with one more bound than documents), sizes, starts in bytes, bounds in sequences.
    """
    starts = numpy.cumsum([0, *sizes], dtype="<i8")[:-1] * width
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, dtype_code, len(sizes), len(sizes) + 1)
    return b"".join(
        [header, numpy.array(sizes, "<i4").tobytes(), starts.tobytes(), numpy.arange(len(sizes) + 1).tobytes()]
    )


@pytest.mark.parametrize(("dtype", "code"), [(None, 8), ("uint32", 4)])
def test_an_index_for_megatron(folder: Path, tmp_path: Path, dtype: str | None, code: int) -> None:
    """It has Megatron's layout, with int32 above uint16; the ids are those for fairseq, and decode reads both."""
    codes, text = folder / "codes", folder / "lines.txt"
    encode_documents(codes, [text], tmp_path / "fairseq.bin", append=END, dtype=dtype)
    encode_documents(codes, [text], tmp_path / "megatron.bin", append=END, dtype=dtype, index="megatron")
    ids = (tmp_path / "megatron.bin").read_bytes()
    assert ids == (tmp_path / "fairseq.bin").read_bytes()
    width = 2 if dtype is None else 4
    sizes = [len(document) for document in ids_of(tmp_path / "fairseq.bin", f"u{width}")]
    assert (tmp_path / "megatron.idx").read_bytes() == megatron_index(code, sizes, width)
    for name in ("fairseq", "megatron"):
        decode_documents(codes, tmp_path / f"{name}.bin", tmp_path / name)
        assert (tmp_path / name).read_bytes() == text.read_bytes()


def test_the_index_of_another_program_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    """Both begin with the same bytes; documents of several sequences and an index cut anywhere are errors too."""
    ids, index = tmp_path / "x.bin", tmp_path / "x.idx"
    for number in (0, 1, 300):
        (tmp_path / "a").write_text("a b\n" * number)
        for written, other in (("fairseq", "megatron"), ("megatron", "fairseq")):
            encode_documents(folder / "codes", [tmp_path / "a"], ids, index=written)
            assert read_index(ids, written).documents == read_index(ids).documents == number
            with pytest.raises(
                MTScaffoldError, match=rf"(?i)x.idx: an index for {written}, not for {other}; .* --index {other}"
            ):
                read_index(ids, other)
    with pytest.raises(UsageError, match="no index 'gpt'; choose one of fairseq, megatron"):
        encode_documents(folder / "codes", [tmp_path / "a"], ids, index="gpt")
    for code in (4, 8):
        whole = megatron_index(code, [1, 2, 3], 4 if code == 4 else 2)
        ids.write_bytes(bytes(6 * (4 if code == 4 else 2)))
        index.write_bytes(whole)
        assert [list(block) for block in read_index(ids).sizes()] == [[1, 2, 3]]
        for length in range(26, len(whole)):
            index.write_bytes(whole[:length])
            with pytest.raises(MTScaffoldError, match=r"x.idx: (incomplete|not the index of|ids of fairseq's type 4)"):
                read_index(ids)
        index.write_bytes(whole[:-16] + struct.pack("<qq", 1, 3))
        with pytest.raises(MTScaffoldError, match="documents are of several sequences"):
            read_index(ids)
        index.write_bytes(megatron_index(code, [-3, 9], 4 if code == 4 else 2))
        with pytest.raises(MTScaffoldError, match=r"x\.idx: a document of -3 ids"):
            [*read_index(ids).sizes()]


def test_no_documents_are_no_ids(folder: Path, tmp_path: Path) -> None:
    """An empty input gives empty files, which decode into an empty text."""
    (tmp_path / "empty").write_bytes(b"")
    done = encode_documents(folder / "codes", [tmp_path / "empty"], tmp_path / "x.bin", append=END)
    assert done[:2] == (0, 0) and ids_of(tmp_path / "x.bin") == []
    decode_documents(folder / "codes", tmp_path / "x.bin", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


def test_a_file_without_an_index_is_one_document(folder: Path, tmp_path: Path) -> None:
    """Files of other tools are decoded by default, line ends included, in the type that the codes' ids need."""
    ids = tmp_path / "x.bin"
    text = "two lines\nand a half"
    numpy.array(BPE(folder / "codes").encode(text), "u2").tofile(ids)
    decode_documents(folder / "codes", ids, tmp_path / "back")
    assert (tmp_path / "back").read_text() == text
    pairs = "".join(f"{left} {right}\n" for left in NOTATION.values() for right in NOTATION.values())
    codes = f"#version: 0.3 bytes gpt2\n{pairs}".encode()
    numpy.array(BPE(codes).encode(text), "u4").tofile(ids)
    decode_documents(codes, ids, tmp_path / "back")
    assert (tmp_path / "back").read_text() == text


def test_jsonl_warns_of_bytes_that_are_not_utf8(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON cannot hold such bytes: they are replaced, with a warning; other documents and formats give none."""
    text, ids, back = tmp_path / "a.txt", tmp_path / "x.bin", tmp_path / "back"
    text.write_bytes(b"a\nb\xff\nc\xe6\n\xef\xbf\xbd\n")
    encode_documents(folder / "codes", [text], ids)
    decode_documents(folder / "codes", ids, back)
    assert back.read_bytes() == text.read_bytes() and capsys.readouterr().err == ""
    decode_documents(folder / "codes", ids, back, format="jsonl")
    assert [json.loads(line)["text"] for line in back.read_text("utf-8").splitlines()] == [
        "a",
        "b\ufffd",
        "c\ufffd",
        "\ufffd",
    ]
    assert capsys.readouterr().err == (
        f"warning: {ids}: 2 documents are not UTF-8, and U+FFFD replaces what is not; --format lines or files keeps "
        "every byte\n"
    )


def test_an_epoch_without_dropout_is_warned_of(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by apply-bpe, in case dropout was forgotten."""
    encode_documents(folder / "codes", [folder / "lines.txt"], tmp_path / "x.bin", epoch=1)
    assert capsys.readouterr().err == "warning: an epoch has no effect without dropout\n"
