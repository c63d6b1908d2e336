"""The inputs of a call: one file, several files or lines, each by its keyword; and codes, which are read once."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import BPE, MTScaffoldError, UsageError, apply_bpe, count_words, get_vocab, learn_bpe
from mt_scaffold.analysis.compare_vocab import compare_vocab
from mt_scaffold.analysis.stats import stats
from mt_scaffold.corpus import inputs
from mt_scaffold.methods.learn import learn_joint_bpe_and_vocab

CODES = b"#version: 0.2\na b scaffold\nab c</w>\n"
CALLS: dict[str, Callable[..., Any]] = {
    "count_words": count_words,
    "learn_bpe": learn_bpe,
    "get_vocab": partial(get_vocab, outfile=io.BytesIO()),
    "stats": partial(stats, [CODES]),
    "compare_vocab": partial(compare_vocab, CODES, CODES),
    "process_file": partial(BPE(CODES).process_file, outfile=io.BytesIO()),
    "apply_bpe": partial(apply_bpe, CODES, outfile=io.BytesIO()),
}
SEVERAL = [name for name in CALLS if name not in ("process_file", "apply_bpe")]


@pytest.mark.parametrize("name", CALLS)
def test_a_list_is_refused_as_a_file(name: str, tmp_path: Path) -> None:
    """It could hold lines or paths; the message names the keyword for each."""
    path = tmp_path / "text"
    path.write_text("abc abc\n")
    for wrong in (["abc abc"], [path], ("abc",), (line for line in ["abc"]), b"abc", iter([path])):
        with pytest.raises(UsageError, match=r"lines=\[\.\.\.\]") as error:
            CALLS[name](wrong)
        assert ("several files as paths=[...]" in str(error.value)) == (name in SEVERAL)


@pytest.mark.parametrize("name", CALLS)
def test_exactly_one_input(name: str, tmp_path: Path) -> None:
    """None and two are refused, and the message names those given."""
    path = tmp_path / "text"
    path.write_text("abc abc\n")
    with pytest.raises(UsageError, match="there is no input"):
        CALLS[name]()
    with pytest.raises(UsageError, match="infile and lines are given together"):
        CALLS[name](path, lines=["abc"])
    CALLS[name](path)
    CALLS[name](lines=["abc abc"])
    with pytest.raises(UsageError, match="lines= takes a list of lines"):
        CALLS[name](lines="abc abc")
    if name in SEVERAL:
        CALLS[name](paths=[path, str(path), io.BytesIO(b"abc")])
        with pytest.raises(UsageError, match="paths and lines are given together"):
            CALLS[name](paths=[path], lines=["abc"])
        with pytest.raises(UsageError, match="paths= takes a list"):
            CALLS[name](paths=path)
        with pytest.raises(UsageError, match="not a list"):
            CALLS[name](paths=[["abc"]])


@pytest.mark.parametrize("sizes", [[], [None], [-1], [2, -1], [3, 3, 3, None]])
def test_a_stream_without_a_size_is_read_to_its_end(sizes: list[int | None]) -> None:
    """As with Python's own files; without a size, the last character of a text must not be lost."""
    content = "low lä€w\nlöw".encode()
    pipe, end = os.pipe()
    os.write(end, content)
    os.close(end)
    with os.fdopen(pipe, "rb") as buffered:
        streams: list[Any] = [
            inputs._Lines([content[:10], content[10:-3].decode(), content[-3:]]),
            inputs._Encoded(io.StringIO(content.decode())),
            inputs._Encoded(io.BytesIO(content)),
            inputs._Encoded(codecs.getreader("utf-8")(io.BytesIO(content))),
            inputs._Buffered(buffered),
        ]
        for stream in streams:
            expected = content[:10] + b"\nw\nl\n\xc3\xb6w\n" if isinstance(stream, inputs._Lines) else content
            assert b"".join([stream.read(size) for size in sizes] or [stream.read()]) == expected
            assert stream.read() == b""
    with pytest.raises(MTScaffoldError, match="ends within a character"):
        inputs._Encoded(codecs.getreader("utf-8")(io.BytesIO(content[:-2]))).read()


def test_a_line_is_a_string_or_bytes() -> None:
    """None among the lines must not end the text unnoticed."""
    for wrong in (None, 3, ["abc"]):
        with pytest.raises(UsageError, match="lines= takes strings or UTF-8, not a"):
            count_words(lines=["abc", wrong, "abc"])  # type: ignore[list-item]


def test_an_open_file_may_have_any_name(tmp_path: Path) -> None:
    """A name that is not UTF-8 is shown with escapes, like that of a path."""
    path = tmp_path / os.fsdecode(b"b\xffd")
    path.write_bytes(CODES)
    with open(path, "rb") as stream:
        assert BPE(stream).segment("abc") == "abc"
    with open(path, "rb") as stream, pytest.raises(MTScaffoldError, match=r"b\\xffd: line 1: expected a word"):
        count_words(stream, is_dict=True)
    with open(path, "wb") as stream:
        BPE(CODES).process_file(outfile=stream, lines=["abc"])
    assert path.read_bytes() == b"abc\n"


def test_the_texts_of_joint_learning_are_files() -> None:
    """Lists of lines are refused, and the message says what is accepted."""
    with pytest.raises(UsageError, match="paths= takes paths and open files, not a list"):
        learn_joint_bpe_and_vocab([["ab"], ["cd"]], "codes", ["vocabulary", "another"])  # type: ignore[list-item]


# ---- codes


class ReadOnce(io.BytesIO):
    """A codes file that cannot be read a second time."""

    def __init__(self) -> None:
        super().__init__(CODES)
        self.reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        assert self.reads == 1, "read again"
        return super().read(size)


def test_learned_codes_are_derived_from_their_merges() -> None:
    """Text, counts and Codes agree; what learning returned is not itself codes."""
    learned = learn_bpe(lines=["accc accc cc accc", "accc cc accc"], num_symbols=2)
    with pytest.raises(UsageError, match="bytes or Codes, not a LearnedCodes"):
        BPE(learned)  # type: ignore[arg-type]
    assert learned.text == learned.codes.text
    assert (learned.merges, learned.scaffold) == (len(learned.codes.merges), 1)
    assert BPE(learned.codes).segment("accc ccc") == BPE(learned.text).segment("accc ccc")


def test_an_output_for_text_gets_all_of_it_or_an_error() -> None:
    """Half a character at the end is not lost, and bytes that are not text are not reported by Python's own error."""
    bpe = BPE(b"#version: 0.2 byte\na b\n")
    for text, byte in ((b"ab \xc3", "C3"), ("é".encode(), "C3"), (b"\xff", "FF")):
        with pytest.raises(UsageError, match=f"open for text, but the output has 0x{byte}, which is not UTF-8"):
            bpe.process_file(io.BytesIO(text), io.StringIO())
    with pytest.raises(UsageError, match="open it for bytes"):
        learn_bpe(lines=["é é é"], byte_level=True, outfile=io.StringIO())
    output = io.StringIO()
    BPE(CODES).process_file(lines=["é ab"], outfile=output)
    assert output.getvalue().startswith("é ")
