"""The Python API for segmenting: the same results for strings, tokens, files of any kind, lines and ids."""

from __future__ import annotations

import codecs
import doctest
import gzip
import importlib
import io
import itertools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from segmenting import hard_text, lines_at_lf, reference_of

import mt_scaffold
from mt_scaffold import (
    BPE,
    Codes,
    MTScaffoldError,
    UsageError,
    count_words,
    get_vocab,
    learn_bpe,
    learn_joint_bpe_and_vocab,
    read_codes,
    read_vocabulary,
)
from mt_scaffold.corpus.files import AsBytes
from mt_scaffold.corpus.text import is_base_symbol, surface_form
from mt_scaffold.methods import Scaffold

TEXT = hard_text(41, 2500)
CODES = learn_bpe(io.BytesIO(TEXT.encode("utf-8")), num_symbols=150).text


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The text and its codes as files, plain and gzipped."""
    paths = {name: tmp_path / name for name in ("text", "text.gz", "codes", "codes.gz")}
    paths["text"].write_bytes(TEXT.encode("utf-8"))
    paths["text.gz"].write_bytes(gzip.compress(TEXT.encode("utf-8")))
    paths["codes"].write_bytes(CODES)
    paths["codes.gz"].write_bytes(gzip.compress(CODES))
    return paths


# ---- segmenting


def test_segment_and_process_line_and_tokens() -> None:
    """A sentence without surrounding white space, a line with it, and a list of words give the same subwords."""
    bpe, reference = BPE(CODES), reference_of(CODES)
    for line in lines_at_lf(TEXT)[:200]:
        assert bpe.process_line(line) == reference.process_line(line)
        assert bpe.segment(line) == reference.segment(line)
        tokens = [word for word in line.strip("\r\n ").split(" ") if word]
        assert " ".join(bpe.segment_tokens(tokens)) == reference.segment(line)
    assert bpe.segment("") == bpe.segment(" \r\n") == ""
    assert bpe.process_line(" \r\n") == " \r\n"
    assert bpe.segment_tokens([]) == bpe.segment_tokens(["", ""]) == []


@pytest.mark.parametrize("dropout", [0, 0.5])
def test_a_lone_surrogate(dropout: float) -> None:
    """Half a surrogate pair is not a character, which one line reports; a wrong type remains a TypeError."""
    bpe = BPE(CODES)
    for segment in (bpe.segment, bpe.process_line, lambda text, dropout: bpe.segment_tokens([text], dropout)):
        with pytest.raises(MTScaffoldError, match=r"^the sentence holds '\\ud800', a lone surrogate .*$"):
            segment("a\ud800b", dropout)
    with pytest.raises(TypeError):
        bpe.segment("ab", 0.5, index="one")  # type: ignore[arg-type]


def test_tokens_are_taken_as_they_are() -> None:
    """A CR at the end of a token belongs to it; a space in one is an error, not two tokens."""
    assert BPE(b"#version: 0.2\na b\n").segment_tokens(["ab\r", "\r"]) == ["ab@@", "\r", "\r"]
    with pytest.raises(UsageError, match="space"):
        BPE(CODES).segment_tokens(["a b"])


def test_codes_of_every_kind(files: dict[str, Path]) -> None:
    """Codes may be a path (string or Path, also of gzip), a file open for bytes or text, bytes, or Codes."""
    expected = BPE(CODES).segment(TEXT[:500].replace("\n", " "))
    with open(files["codes"], "rb") as binary, open(files["codes"], encoding="utf-8", newline="\n") as text:
        paths = (files["codes"], str(files["codes"]), files["codes.gz"])
        for codes in (*paths, binary, text, io.BytesIO(CODES), CODES, Codes(CODES)):
            assert BPE(codes).segment(TEXT[:500].replace("\n", " ")) == expected
    assert [merge.token for merge in read_codes(files["codes"], 3)] == [
        "".join(line.split(" ")[:2]) for line in CODES.decode("utf-8").split("\n")[1:4]
    ]


def test_files_of_every_kind(files: dict[str, Path], tmp_path: Path) -> None:
    """Input may be a path, gzip, an open file or lines; output a path, an open file or memory."""
    bpe = BPE(CODES)
    expected = "".join(map(bpe.process_line, lines_at_lf(TEXT))).encode("utf-8")
    output = tmp_path / "output"
    with open(files["text"], "rb") as binary, open(files["text"], encoding="utf-8") as text:
        sources = [files["text"], str(files["text"]), files["text.gz"], binary, text, io.BytesIO(TEXT.encode("utf-8"))]
        inputs: list[dict[str, Any]] = [{"infile": source} for source in [*sources, io.StringIO(TEXT, newline="\n")]]
        for given in [*inputs, {"lines": lines_at_lf(TEXT)}, {"lines": iter(lines_at_lf(TEXT))}]:
            bpe.process_file(outfile=output, **given)
            assert output.read_bytes().removesuffix(b"\n") == expected.removesuffix(b"\n")
    with open(output, "wb") as stream:
        stream.write(b"before\n")
        bpe.process_file(files["text"], stream)
        stream.write(b"\nafter")
    assert output.read_bytes() == b"before\n" + expected + b"\nafter"


@pytest.mark.parametrize("mode", ["rb", "r"])
def test_a_partly_read_file_is_read_from_there(mode: str, tmp_path: Path) -> None:
    """Nothing is lost or repeated if a line has already been read from the file."""
    path = tmp_path / "text"
    path.write_text("".join(f"line {number}\n" for number in range(5000)))
    with open(path, mode) as stream:
        stream.readline()
        output = io.BytesIO()
        BPE(b"#version: 0.2\n").process_file(stream, output)
    assert output.getvalue().count(b"\n") == 4999


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_a_partly_read_pipe_is_read_from_there(mode: str) -> None:
    """Text that Python has buffered from the pipe is not lost, nor is text that arrives later."""
    command = ["sh", "-c", "printf 'header\nab\ncab\n'; sleep .2; echo later"]
    for lines_read in (0, 1):
        output = io.BytesIO()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=mode == "r") as process:
            assert process.stdout is not None
            for _ in range(lines_read):
                process.stdout.readline()
            BPE(b"#version: 0.2\na b</w>\n", separator="|").process_file(process.stdout, output)
        rest = b"ab\nc| ab\nl| a| t| e| r\n"
        assert output.getvalue() == (rest if lines_read else b"h| e| a| d| e| r\n" + rest)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "utf-8"])
def test_text_files_of_other_encodings(encoding: str, tmp_path: Path) -> None:
    """The text of an open file is read, not the bytes that encode it."""
    (tmp_path / "text").write_text("éa ab\n", encoding=encoding)
    output = io.BytesIO()
    with (tmp_path / "text").open(encoding=encoding) as stream:
        BPE(b"#version: 0.2\na b</w>\n").process_file(stream, output)
    assert output.getvalue().decode("utf-8") == "é@@ a ab\n"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("lines_read", [0, 1])
def test_files_that_codecs_opens(encoding: str, lines_read: int, tmp_path: Path) -> None:
    """codecs.open and codecs.getreader, common in scripts of this field: new or partly read, with any encoding."""
    text = "".join(f"éa ab {number}\n" for number in range(3000))
    (tmp_path / "text").write_bytes(text.encode(encoding))
    codes = b"#version: 0.2\na b</w>\n"
    expected = io.BytesIO()
    BPE(codes).process_file(outfile=expected, lines=text.splitlines(keepends=True)[lines_read:])
    with codecs.open(str(tmp_path / "text"), encoding=encoding) as by_open, open(tmp_path / "text", "rb") as raw:
        for stream in (by_open, codecs.getreader(encoding)(raw)):
            output = io.BytesIO()
            for _ in range(lines_read):
                stream.readline()
            BPE(codes).process_file(stream, output)
            assert output.getvalue() == expected.getvalue()
            stream.seek(0)
            assert learn_bpe(stream, num_symbols=3).text == learn_bpe(lines=[text], num_symbols=3).text


def test_a_pipe_that_codecs_reads() -> None:
    """Characters may arrive in pieces; one that remains incomplete is an error."""
    program = "import os,time; [(os.write(1, b), time.sleep(.05)) for b in (b'\\xc3', b'\\xa9a\\xc3', b'\\xa9\\n')]"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, bufsize=0) as process:
        reader: Any = codecs.getreader("utf-8")(process.stdout)  # type: ignore[arg-type]
        reader.bytebuffer = b"\xc3\xa9"  # as if it had been read already
        assert count_words(reader).items() == [("ééaé", 1)]
    for cut in (b"ab \xc3", b"ab\n\xe2\x82"):
        reader = codecs.getreader("utf-8")(io.BytesIO(cut))
        reader.read(2, 1)
        with pytest.raises(MTScaffoldError, match="ends within a character"):
            count_words(reader)
        with pytest.raises(MTScaffoldError, match="is not UTF-8"):
            count_words(codecs.getreader("utf-8")(io.BytesIO(cut)))


def test_outputs_that_take_text(tmp_path: Path, files: dict[str, Path]) -> None:
    """A file open for text gets the same output as one open for bytes, even if a write ends within a character."""
    text = "€" * 700_000 + "\n" + TEXT
    expected = io.BytesIO()
    BPE(CODES).process_file(outfile=expected, lines=[text])
    path = tmp_path / "out"
    with codecs.open(str(path), "w", encoding="utf-8") as by_open:
        BPE(CODES).process_file(outfile=by_open, lines=[text])
    assert path.read_bytes() == expected.getvalue()
    with open(path, "wb") as raw:
        BPE(CODES).process_file(outfile=codecs.getwriter("utf-8")(raw), lines=[text])
    assert path.read_bytes() == expected.getvalue()
    with tempfile.NamedTemporaryFile("w+", encoding="utf-16", newline="\n", dir=tmp_path) as temporary:
        BPE(CODES).process_file(outfile=temporary, lines=[text])
        temporary.seek(0)
        assert temporary.read().encode("utf-8") == expected.getvalue()
    outputs = [io.StringIO(newline="\n") for _ in range(3)]
    learn_with(files["text"], outputs[0], num_symbols=150, trace=outputs[1])
    get_vocab(files["text"], outputs[2])
    assert outputs[0].getvalue().encode("utf-8") == CODES
    assert outputs[1].getvalue().startswith("step\tleft\t") and " " in outputs[2].getvalue()
    split = io.StringIO()
    stream = AsBytes(split)
    for byte in "é€".encode():
        stream.write(bytes([byte]))
    assert split.getvalue() == "é€"


def test_vocabularies_of_every_kind(tmp_path: Path) -> None:
    """A vocabulary is a path or an open file; a malformed line is reported with the file's name."""
    path = tmp_path / "vocabulary"
    path.write_text("é@@ 3\na\u2028b 2\nc 1\n", encoding="utf-8")
    with path.open("rb") as binary, path.open(encoding="utf-8") as text, codecs.open(str(path), encoding="utf-8") as by:
        for source in (path, str(path), binary, text, by):
            assert read_vocabulary(source, 2) == {"é@@", "a\u2028b"}
    path.write_text("a 1\nb\n")
    with path.open() as stream, pytest.raises(MTScaffoldError, match=r"vocabulary: line 2: expected a subword"):
        read_vocabulary(stream)
    path.write_bytes(b"a 1\nb\xff 1\n")
    with path.open("rb") as binary, path.open(encoding="utf-8") as text, codecs.open(str(path), encoding="utf-8") as by:
        for source in (path, binary, text, by):
            with pytest.raises(MTScaffoldError, match="vocabulary: line 2, byte offset 5: 0xFF is not UTF-8"):
                read_vocabulary(source)


def test_a_write_that_returns_no_number_is_an_error_that_says_so() -> None:
    """Without this check, it would be std::bad_cast from the core."""

    class Odd:
        def write(self, data: bytes) -> object:
            return "all of it"

    with pytest.raises(TypeError, match="must return the number of bytes"):
        BPE(b"#version: 0.2\na b\n").process_file(io.BytesIO(b"ab\n"), Odd())


def test_an_output_that_accepts_partial_writes() -> None:
    """A raw stream returns how much it accepted; the rest is written again."""

    class Raw(io.RawIOBase):
        taken = b""

        def write(self, data: Any) -> int:
            self.taken += data[:3]
            return len(data[:3])

    raw = Raw()
    BPE(CODES).process_file(outfile=raw, lines=["a cab"] * 3)
    assert raw.taken.decode() == "".join(BPE(CODES).process_line("a cab") + "\n" for _ in range(3))


def test_a_merge_that_ends_in_cr_is_read_back() -> None:
    """CR within a line is a symbol: codes and vocabularies with it are read back, and so are files with CR LF."""
    learned = learn_bpe(io.BytesIO(b"a\rb a\rc \rd \rd\n"), num_symbols=2, algorithm="bpe")
    assert [merge.token for merge in learned.codes.merges] == ["a\r", "\rd</w>"]
    assert BPE(learned.text).segment("xa\rb \rd") == "x@@ a\r@@ b \rd"
    with_cr_lf = b"#version: 0.2\r\na b\r\n"
    assert [merge[:2] for merge in read_codes(with_cr_lf)] == [("a", "b")]
    counted = io.BytesIO()
    get_vocab(io.BytesIO(b"x \ry \ry x\r z\n"), counted)
    from_counts = learn_bpe(io.BytesIO(counted.getvalue()), is_dict=True, num_symbols=1, algorithm="bpe")
    assert from_counts.codes.merges[0].token == "\ry</w>"


def test_lines_need_no_line_end() -> None:
    """Lines of an iterable may come with or without their LF."""
    output = io.BytesIO()
    BPE(b"#version: 0.2\na b</w>\n").process_file(outfile=output, lines=["ab", "ab ab\n", "", "cd"])
    assert output.getvalue() == b"ab\nab ab\n\nc@@ d\n"


# ---- ids


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(
    sentences=st.lists(st.text("abcde日 \r", max_size=30), max_size=5),
    dropout=st.sampled_from([0.0, 0.2, 1.0]),
    seed=st.integers(0, 2**64 - 1),
)
def test_ids_are_those_of_the_text(sentences: list[str], dropout: float, seed: int) -> None:
    """Encoding a sentence gives the ids of the subwords that segmenting it gives, dropout included."""
    bpe = BPE(CODES)
    dictionary = {form: number for number, form in enumerate(bpe.surface_forms()) if number % 7}
    ids, offsets = bpe.encoder(dictionary, 100_000).encode(sentences, dropout, seed)
    assert (ids.format, offsets.format) == ("i", "q")
    assert offsets[0] == 0 and len(offsets) == len(sentences) + 1
    for index, sentence in enumerate(sentences):
        pieces = [piece for piece in bpe.segment(sentence, dropout, seed, index).split(" ") if piece]
        assert list(ids[offsets[index] : offsets[index + 1]]) == [dictionary.get(piece, 100_000) for piece in pieces]


def test_ids_accept_what_users_have() -> None:
    """Lines with their LF, lines as bytes, and indices and seeds from NumPy."""
    numpy = pytest.importorskip("numpy", reason="needs the extra 'analysis'")
    bpe = BPE(CODES)
    encoder = bpe.encoder({form: number for number, form in enumerate(bpe.surface_forms(), start=1)}, 0)
    assert encoder.encode(["ab ca\n"])[0] == encoder.encode([b"ab ca"])[0]
    given = encoder.encode(["ab", "ca"], 0.5, numpy.int64(7), 1, numpy.array([3, 4]))
    assert given == encoder.encode(["ab", "ca"], 0.5, 7, 1, [3, 4])
    assert bpe.segment("abc", 0.5, numpy.int64(5)) == bpe.segment("abc", 0.5, 5)
    output = io.BytesIO()
    bpe.process_file(outfile=output, lines=iter([b"ab ca\n", b"ab"]))
    assert output.getvalue().decode() == bpe.segment("ab ca") + "\n" + bpe.segment("ab") + "\n"


def test_ids_by_index_and_epoch() -> None:
    """A sentence's segmentation depends on (seed, epoch, index), not on what else is encoded with it."""
    bpe = BPE(CODES)
    encoder = bpe.encoder({form: number for number, form in enumerate(bpe.surface_forms())}, -1)
    sentences = [line for line in TEXT.split("\n") if len(line) > 30][:40]

    def encoded(chosen: list[int], **options: int) -> list[list[int]]:
        ids, offsets = encoder.encode([sentences[i] for i in chosen], 0.3, indices=chosen, **options)
        return [list(ids[a:b]) for a, b in itertools.pairwise(offsets)]

    everything = encoded(list(range(40)), seed=1)
    assert encoded([30, 3, 17], seed=1) == [everything[i] for i in (30, 3, 17)]
    assert encoded(list(range(40)), seed=1, epoch=1) != everything != encoded(list(range(40)), seed=2)
    with pytest.raises(UsageError, match="indices"):
        encoder.encode(sentences, 0.3, indices=[1, 2])


def test_dropout_without_a_seed_is_random() -> None:
    """None, the default, means a different seed each time, for text and for ids."""
    bpe = BPE(CODES)
    encoder = bpe.encoder({form: number for number, form in enumerate(bpe.surface_forms())}, -1)
    text = " ".join(TEXT.split()[:500])
    assert len({bpe.segment(text, 0.5) for _ in range(5)}) == 5
    assert len({bytes(encoder.encode([text], 0.5)[0]) for _ in range(5)}) == 5
    assert encoder.encode([text]) == encoder.encode([text])


def test_ids_of_a_sentence_that_is_not_utf8() -> None:
    """A lone surrogate, which UTF-8 cannot encode, is an error and not a subword."""
    with pytest.raises((MTScaffoldError, UnicodeEncodeError, TypeError)):
        BPE(CODES).encoder({}, 0).encode(["ab", "a\ud800"])


def test_surface_forms_cover_what_dropout_gives() -> None:
    """A dictionary of the surface forms has every subword of the text, at any dropout."""
    bpe = BPE(CODES)
    forms = bpe.surface_forms()
    assert len(set(forms)) == len(forms)
    merged = {letter for merge in read_codes(CODES) for letter in merge.token.removesuffix("</w>")}
    words = [word for word in TEXT.split() if set(word) <= merged and "@@" not in word]
    for dropout in (0.0, 0.1, 0.5, 1.0):
        assert set(bpe.segment(" ".join(words), dropout, 3).split(" ")) <= set(forms)
    # They are the normal merged tokens, and base symbols in both positions; not scaffold tokens.
    merges = read_codes(CODES)
    symbols = {symbol for merge in merges for symbol in (merge.left, merge.right)}
    letters = {symbol.removesuffix("</w>") for symbol in symbols if is_base_symbol(symbol)}
    normal = [merge.token for merge in merges if merge.normal]
    assert len(normal) < len(merges)
    expected = {surface_form(token) for token in normal}
    # Some end in a </w> that the text spells out: they occur inside words as well.
    spelt_out: set[str] = {"</w>", "/w>", "w>", ">"}
    while more := {merge.token for merge in merges if merge.right in spelt_out} - spelt_out:
        spelt_out |= more
    expected |= {token + "@@" for token in spelt_out & set(normal)}
    assert set(forms) == expected | letters | {letter + "@@" for letter in letters}


# ---- learning and counting


def test_learning_from_inputs_of_every_kind(files: dict[str, Path], tmp_path: Path) -> None:
    """Lines, a path, gzip or an open file; several inputs are one text; any number of workers gives the same codes."""
    with open(files["text"], "rb") as stream:
        for source in (files["text"], str(files["text"]), files["text.gz"], stream):
            assert learn_bpe(source, num_symbols=150, num_workers=2).text == CODES
    assert learn_bpe(lines=lines_at_lf(TEXT), num_symbols=150, num_workers=2).text == CODES
    halves = [tmp_path / "first", tmp_path / "second.gz"]
    cut = TEXT.index("\n", len(TEXT) // 2) + 1
    halves[0].write_bytes(TEXT[:cut].encode("utf-8"))
    halves[1].write_bytes(gzip.compress(TEXT[cut:].encode("utf-8")))
    assert learn_bpe(paths=halves, outfile=tmp_path / "codes", num_symbols=150).text == CODES
    assert (tmp_path / "codes").read_bytes() == CODES


def test_what_learning_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning if the pairs run out, each merge if verbose, and the base symbols that are subtracted."""
    learned = learn_bpe(lines=["abc abc ab"], num_symbols=50, verbose=True, algorithm="bpe")
    assert learned.exhausted and learned.merges == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "pair 0: b c</w> -> bc</w> (frequency 2)"
    assert lines[-1] == "no pair has frequency >= 2. Stopping"
    learned = learn_bpe(lines=["abcd abce"] * 2, num_symbols=7, total_symbols=True, algorithm="bpe")
    assert learned.merges == 2
    assert "Reducing number of merge operations by 5" in capsys.readouterr().err


def test_values_out_of_range() -> None:
    """Wrong values are refused before anything is read."""
    wrong: list[dict[str, Any]] = [{"num_symbols": value} for value in (0, -5, None, "100", 100.0)]
    for each in (*wrong, {"min_frequency": 0}, {"min_frequency": 2.0}, {"num_workers": "2"}, {"algorithm": "unigram"}):
        with pytest.raises(UsageError):
            learn_bpe(lines=["ab ab"], **each)
    bpe, seven = BPE(CODES), pytest.importorskip("numpy").int64(7)
    assert len(BPE(b"#version: 0.3 bytes gpt2\na b\n", merges=seven, pad_vocab_to=seven).tokens) == 259
    assert learn_bpe(lines=["ab ab"], num_symbols=seven, min_frequency=seven).merges == 0
    calls: list[Any] = [bpe.segment, bpe.process_line, bpe.join, lambda text: bpe.segment_tokens([text])]
    for call, text in itertools.product(calls, (None, 3, ["ab"])):
        with pytest.raises(UsageError, match="give text as str or bytes, not as"):
            call(text)
    ids: Any = BPE(b"#version: 0.3 bytes gpt2\na b\n")
    wrong_type = "a text is a str or bytes|ids are a sequence of integers"
    for of_none in (ids.encode, ids.encode_to_numpy, ids.decode, ids.decode_bytes, ids.decode_with_offsets):
        with pytest.raises(TypeError, match=wrong_type):
            of_none(None)
    for dropout in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="dropout"):
            BPE(CODES).segment("ab", dropout)
        with pytest.raises(UsageError, match="dropout"):
            BPE(CODES).process_file(outfile=io.BytesIO(), dropout=dropout, lines=["ab"])
    with pytest.raises(UsageError, match="one vocabulary file per input"):
        learn_joint_bpe_and_vocab([io.BytesIO(b"ab"), io.BytesIO(b"cd")], "codes", ["vocabulary"])


def test_counting_words(files: dict[str, Path]) -> None:
    """Counted words are in order of first occurrence, a vocabulary in order of frequency."""
    counts = count_words(lines=["b a b", " c  b\r"])
    assert counts.items() == [("b", 3), ("a", 1), ("c", 1)]
    assert (len(counts), counts.total()) == (3, 5)
    vocabulary = io.BytesIO()
    get_vocab(outfile=vocabulary, lines=["a b", "c b c"])
    assert vocabulary.getvalue() == b"b 2\nc 2\na 1\n"
    for workers in (1, 2, 5):
        assert count_words(files["text"], num_workers=workers).items() == count_words(files["text.gz"]).items()


def test_joint_learning_is_learning_and_counting(tmp_path: Path) -> None:
    """The vocabularies are those of the texts segmented with the codes, also for scaffold codes."""
    texts = [hard_text(seed, 800) + "\n" for seed in (42, 43)]
    paths = [tmp_path / name for name in ("text.0", "text.1", "codes", "vocabulary.0", "vocabulary.1")]
    for path, text in zip(paths, texts, strict=False):
        path.write_bytes(text.encode("utf-8"))
    learned = learn_joint_bpe_and_vocab(paths[:2], paths[2], paths[3:], Scaffold(100))
    assert learned.scaffold > 0
    assert paths[2].read_bytes() == learned.text == learn_bpe(paths=paths[:2], num_symbols=100).text
    for text, vocabulary in zip(texts, paths[3:], strict=True):
        segmented, expected = io.BytesIO(), io.BytesIO()
        BPE(learned.text).process_file(io.BytesIO(text.encode("utf-8")), segmented)
        segmented.seek(0)
        get_vocab(segmented, expected)
        assert vocabulary.read_bytes() == expected.getvalue()


# ---- the package


PACKAGE = Path(mt_scaffold.__file__).parent
EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_in_docstrings(path: Path) -> None:
    """The examples produce the output that they show, with the package's public names available."""
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    public = {each: getattr(mt_scaffold, each) for each in mt_scaffold.__all__}
    found = doctest.testmod(module, extraglobs=public)
    assert found.failed == 0 and (found.attempted or "# doctest: +SKIP" in path.read_text(encoding="utf-8"))


def test_the_public_names_are_seen_by_help_and_import(tmp_path: Path) -> None:
    """``dir``, ``help`` and ``import *`` show them before any is used."""
    code = "import mt_scaffold, pydoc; print(*dir(mt_scaffold)); print(pydoc.render_doc(mt_scaffold))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"BPE", "learn_bpe", *mt_scaffold.__all__} <= {*shown.partition("\n")[0].split()}
    assert "learn_bpe(" in shown


def test_the_source_without_its_core_says_what_to_do(tmp_path: Path) -> None:
    """In a clone, ``import mt_scaffold`` finds the source before an installed package."""
    shutil.copytree(
        Path(mt_scaffold.__file__).parent, tmp_path / "mt_scaffold", ignore=shutil.ignore_patterns("*.so", "core")
    )
    code = "from mt_scaffold import BPE"
    # Without the editable installation and the paths of the environment.
    failed = subprocess.run([sys.executable, "-E", "-S", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert failed.returncode == 1
    last = failed.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path / 'mt_scaffold'}: ") and "pip install --editable ." in last


def test_importing_is_instant() -> None:
    """Segmenting loads none of the libraries that an experiment needs."""
    heavy = {"torch", "fairseq", "sacrebleu", "sacremoses", "yaml", "numpy", "tqdm", "scipy"}
    code = "import sys, mt_scaffold.commands.apply_bpe, mt_scaffold; mt_scaffold.BPE; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not heavy & set(loaded.split())
