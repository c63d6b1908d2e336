"""Words that the core counts or is given: none is dropped or missed silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt_scaffold import BPE, MTScaffoldError, _core, count_words

CODES = b"#version: 0.2\na b</w>\n"


class Documents:
    def __init__(self, documents: list[bytes]) -> None:
        self.left = [documents]

    def read_documents(self) -> list[bytes] | None:
        return self.left.pop() if self.left else None


@pytest.mark.parametrize(
    ("documents", "first"),
    [
        ([b"foo@@", b"x"], "text: document 1"),
        ([b"foo@@\r", b"x"], "text: document 1"),
        ([b"x foo@@\r \r", b"", b"x@@"], "text: document 1"),
        ([b"x", b"foo@@ "], "text: document 2"),
        ([b"foo@@\rx", b"x"], ""),
    ],
)
def test_words_that_end_in_the_separator(documents: list[bytes], first: str) -> None:
    """A CR at the end of a document is a margin, also before another document: it used to hide the word before it."""
    endings = _core.WordEndings("@@")
    counts, _ = _core.count_words([("text", Documents(documents))], endings=endings).load((False, "spaces", False))
    assert endings.count == sum(count for word, count in counts.items() if word.endswith("@@"))
    assert endings.first == first


def test_words_that_are_not_utf8_are_refused() -> None:
    """Codes of characters cannot segment them: they used to vanish, with all given words after them."""
    counts = count_words(lines=[b"ab x\xff cd"], any_bytes=True)
    bpe = BPE(CODES)
    for call in (
        lambda: bpe.count_subwords(counts),
        lambda: bpe.reachable(counts, 0.5),
        lambda: _core.Applier(_core.Segmenter(CODES, "@@")).segment_words([b"ab", b"x\xff", b"cd"]),
    ):
        with pytest.raises(MTScaffoldError, match="the word 'xÿ' is not UTF-8, which codes of characters need"):
            call()
    byte_codes = CODES.replace(b"0.2", b"0.2 byte")
    assert BPE(byte_codes).count_subwords(counts).byte_items()[1:3] == [(b"x@@", 1), (b"\xff", 1)]


@pytest.mark.parametrize("text", [b"\n", b"a", b" a\n"])
def test_an_output_of_one_byte_is_written(text: bytes, tmp_path: Path) -> None:
    """A file descriptor takes the last byte too, also if it is the only one."""
    (tmp_path / "text").write_bytes(text)
    BPE(CODES).process_file(tmp_path / "text", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == text
