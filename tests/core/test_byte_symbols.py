"""Symbols that are bytes, with an end-of-word marker (``--byte``) or from a pre-tokeniser, held to the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from awkward_words import examples
from hypothesis import given
from hypothesis import strategies as st
from segmenting import BYTES, MODE_NAMES, MODES, Mode

from mt_scaffold import BPE, MTScaffoldError, UsageError, apply_bpe, get_vocab, learn_bpe, learn_joint_bpe_and_vocab
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.text import bytes_to_notation, is_base_symbol, notation_to_bytes
from mt_scaffold.methods import Scaffold

in_all_modes = pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)


PATTERN = r"\w+|[^\w ]+"
HEADERS: list[dict[str, Any]] = [
    {"byte_level": True},
    *({"pretokenise": name, "split_digits": digits} for name in ("gpt2", "cl100k", "o200k") for digits in (0, 1)),
    {"pretokenise": PATTERN, "split_digits": True},
]


@pytest.mark.parametrize("options", HEADERS, ids=str)
@examples(25)
@given(text=st.binary(max_size=60) | st.text(max_size=30).map(str.encode), data=st.data())
def test_every_text_comes_back(options: dict[str, Any], text: bytes, data: st.DataObject) -> None:
    """The subwords of a pre-tokeniser's codes join to the text, byte for byte, with dropout too; and none is unknown:
    all are among those that the codes list. Codes for words between spaces keep the words."""
    if "pretokenise" in options and options["pretokenise"] == PATTERN:
        pytest.importorskip("regex", reason="regex is not installed")
    options = {key: bool(value) if key == "split_digits" else value for key, value in options.items()}
    learned = learn_bpe(lines=[b"the cat 123 \xff\xfe na\xc3\xafve", b"the cat's 12", text], num_symbols=12, **options)
    bpe = BPE(learned.codes)
    assert learned.codes.header == CodesHeader.of_options(**options)
    forms = set(bpe.surface_forms())
    for dropout in (0, 0.5):
        subwords = bpe.segment(text, dropout, 1)
        if bpe.header.end_of_word:
            assert bpe.join(subwords) == b" ".join(word for word in text.strip(b"\r\n ").split(b" ") if word)
            continue
        assert bpe.join(subwords) == text
        shown = subwords.decode("utf-8")
        assert bpe.join(bpe.segment(text.decode("utf-8", "surrogateescape"), dropout, 1)).encode(
            "utf-8", "surrogateescape"
        ) == text  # fmt: skip
        assert not shown or set(shown.split(" ")) <= forms
        ids, offsets = bpe.encoder({form: number for number, form in enumerate(bpe.surface_forms())}, -1).encode(
            [text], dropout, 1
        )
        assert [bpe.surface_forms()[number] for number in ids] == (shown.split(" ") if shown else [])
        assert list(offsets) == [0, len(ids)]


@in_all_modes
def test_counts_of_subwords(mode: Mode, tmp_path: Path) -> None:
    """Vocabularies come from counted words, and are those of the segmented text; with several threads as with one."""
    lines = [b"the  cat\xc3\xa4 12\r", b" a\xc3\xa4 the th", b"", b"caf\xc3\xa9 the cat\xc3\xa4"]
    if mode.byte_level:
        lines += [b"\xff\xfe the \x00", b"\xe6\x97 x"]
    text = tmp_path / "text"
    text.write_bytes(b"\n".join(lines * 7) + b"\n")
    codes, vocabularies = tmp_path / "codes", [tmp_path / "v1", tmp_path / "v2"]
    options = mode.options
    learned = learn_joint_bpe_and_vocab([text, text], codes, vocabularies, Scaffold(20), num_workers=2, **options)
    assert learned.text == codes.read_bytes() == learn_bpe(paths=[text, text], num_symbols=20, **options).text
    segmented, counted = tmp_path / "segmented", tmp_path / "counted"
    apply_bpe(codes, text, segmented, num_workers=3)
    bpe = BPE(learned.codes)
    assert segmented.read_bytes() == b"".join(bpe.process_line(line + b"\n") for line in lines * 7)
    get_vocab(segmented, counted, byte_level=mode == BYTES)
    assert sorted(counted.read_bytes().splitlines()) == sorted(vocabularies[0].read_bytes().splitlines())
    if mode == BYTES:
        # Every subword is in the vocabulary, so it changes nothing; the file need not be UTF-8.
        apply_bpe(codes, text, counted, vocabulary=vocabularies[1])
        assert counted.read_bytes() == segmented.read_bytes()


def test_total_symbols_counts_the_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """The 256 bytes are in the vocabulary of a pre-tokeniser's codes, seen or not; with spaces, those that occur."""
    lines = [b"abab abab", b"ab ab"]
    learned = learn_bpe(lines=lines, num_symbols=258, total_symbols=True, algorithm="bpe", pretokenise="gpt2")
    assert learned.merges == 2
    assert "Number of bytes: 256\nReducing number of merge operations by 256\n" in capsys.readouterr().err
    with pytest.raises(UsageError, match="the text has 256 base symbols"):
        learn_bpe(lines=lines, num_symbols=256, total_symbols=True, pretokenise="o200k")
    learned = learn_bpe(lines=lines, num_symbols=5, total_symbols=True, algorithm="bpe", byte_level=True)
    assert learned.merges == 2
    assert "word-internal characters: 2\nNumber of word-final characters: 1\n" in capsys.readouterr().err


def test_notation() -> None:
    """GPT-2's: printable bytes are themselves, the others U+0100 and the next ones in order; nothing else is read."""
    every = bytes(range(256))
    notation = bytes_to_notation(every)
    assert len(set(notation)) == 256 and notation_to_bytes(notation) == every
    assert not any(char.isspace() for char in notation)
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    assert [ord(char) for char in notation if ord(char) < 256] == own
    others = [byte for byte in range(256) if byte not in own]
    assert [notation[byte] for byte in others] == [chr(256 + n) for n in range(68)]
    assert bytes_to_notation(b" \n\xad") == "ĠĊŃ"
    for wrong in (" ", "a\n", "\xad", "\u0144", "日", "ab\x7f"):
        with pytest.raises(MTScaffoldError, match="GPT-2's notation of bytes"):
            notation_to_bytes(wrong)
    with pytest.raises(MTScaffoldError, match="GPT-2's notation of bytes"):
        BPE(b"#version: 0.3 bytes gpt2\n").join("Ġa ż 日")
    assert is_base_symbol("Ġ", end_of_word=False) and not is_base_symbol("a</w>", end_of_word=False)


@pytest.mark.parametrize(
    "header",
    [
        CodesHeader(),
        CodesHeader("bytes"),
        CodesHeader("bytes", "gpt2"),
        CodesHeader("bytes", "cl100k", True),
        CodesHeader("bytes", " ?\\p{L}+| split-digits ", False),
        CodesHeader("bytes", "pattern=[é]", True),
    ],
)
def test_first_lines_are_read_back(header: CodesHeader) -> None:
    """A header that learning writes is read back unchanged; a pattern keeps the spaces at its ends."""
    from mt_scaffold import _core, count_words

    counts = count_words(lines=["ab ab"])
    text = _core.learn(counts, "bpe", 1, 1, header=header.for_core).codes
    assert Codes(text).header == header
    assert Codes(text.replace(b"\n", b"\r\n")).header == header
    assert Codes(text).merges == Codes(text.replace(b"\n", b"\r\n")).merges


def test_codes_that_are_not_utf8() -> None:
    """Codes of ``--byte`` may contain any bytes."""
    assert Codes(b"#version: 0.2 byte\n\xff \xfe</w>\n").merges[0].token == "ÿþ</w>"


GPT2 = b"#version: 0.3 bytes gpt2\na b\n"


@pytest.mark.parametrize(
    "call",
    [
        lambda: learn_bpe(lines=["a"], split_digits=True),
        lambda: learn_bpe(lines=["a"], byte_level=True, split_digits=True),
        lambda: learn_bpe(lines=["a"], pretokenise="gpt-2"),
        lambda: learn_bpe(lines=["a"], pretokenise=""),
        lambda: learn_bpe(lines=["a"], pretokenise="a\n|b"),
        lambda: learn_bpe(lines=["a 1"], is_dict=True, pretokenise="gpt2"),
        lambda: learn_joint_bpe_and_vocab(["a"], "b", ["c"], separator="~", pretokenise="gpt2"),
        lambda: BPE(GPT2, separator="~"),
        lambda: BPE(GPT2, vocab={"a"}),
        lambda: BPE(GPT2, glossaries=["a"]),
        lambda: BPE(b"#version: 0.2 byte\n").segment_tokens([b"a b"]),
    ],
)
def test_what_cannot_go_together(call: Callable[[], object]) -> None:
    """Options that would have no effect, or change the text, are refused."""
    with pytest.raises(UsageError):
        call()


def test_from_the_command_line(tmp_path: Path) -> None:
    """The commands take the options, and recognise the kind of codes."""
    text, codes, output, vocabulary = (tmp_path / name for name in ("text", "codes", "output", "vocabulary"))
    text.write_bytes(b" the cat 12\r\n\xff\xfe  the\n\nthe")
    files = ["--input", str(text), "--output", str(codes)]
    for option in ("--byte", "--bytes", "-b"):
        assert main(["learn-bpe", *files, option, "--symbols", "3", "--algorithm", "bpe"]) == 0
        assert codes.read_bytes().startswith(b"#version: 0.2 byte\nt h\nth e</w>\n")
    assert main(["apply-bpe", "--codes", str(codes), "--input", str(text), "--output", str(output)]) == 0
    assert output.read_bytes() == b" the c@@ a@@ t 1@@ 2\r\n\xff@@ \xfe the\n\nthe"
    assert main(["get-vocab", "--byte", "--input", str(output), "--output", str(vocabulary)]) == 0
    assert vocabulary.read_bytes().startswith(b"the 3\n") and b"\xff@@ 1\n" in vocabulary.read_bytes()
    assert main(["get-vocab", "--input", str(output), "--output", str(vocabulary)]) == 1

    assert main(["learn-bpe", *files, "--pretokenise", "cl100k", "--split-digits", "--symbols", "3"]) == 0
    assert codes.read_bytes().startswith(b"#version: 0.3 bytes cl100k split-digits\nt h")
    assert main(["apply-bpe", "--codes", str(codes), "--input", str(text), "--output", str(output)]) == 0
    assert output.read_text("utf-8").split("\n")[0] == "Ġthe Ġ c a t Ġ 1 2 č"
    lines = output.read_bytes().split(b"\n")
    assert b"\n".join(BPE(codes).join(line) for line in lines) == text.read_bytes()
    assert main(["learn-bpe", *files, "--split-digits"]) == 2
