"""Surgery counts the words that encoding sees, with the spaces that imported codes put before a text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mt_scaffold import BPE, Codes, UsageError
from mt_scaffold.cli import main
from mt_scaffold.corpus.count import write_counts
from mt_scaffold.integrations.vocabularies.imported import of_pieces
from mt_scaffold.methods.extending import extend
from mt_scaffold.methods.trimming import trim
from mt_scaffold.segment.numbering import Spaces, numbering_of, ordinary_tokens, write_numbered

# Mostly lines of one word, so that most words begin a text.
LINES = ["ab"] * 9 + ["abc"] * 5 + [" ab abc"] * 2 + ["abc\tab", "", "c  ab\u2581b"]
PIECES = ["\u2581", "a", "b", "c", "\t", "ab", "\u2581ab", "abc", "\u2581abc"]
MERGES = [("a", "b"), ("\u2581", "ab"), ("ab", "c"), ("\u2581ab", "c")]
KINDS = {
    "Metaspace": ("metaspace", Spaces("unless-there", True)),
    "SentencePiece": ("metaspace-runs", Spaces("always")),
    "none": ("metaspace-runs", Spaces()),
}


@pytest.fixture(params=KINDS)
def codes(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pretokeniser, spaces = KINDS[request.param]
    ids = {piece: number for number, piece in enumerate(PIECES)}
    made, numbering = of_pieces("x", pretokeniser, MERGES, ids, {}, 9, spaces, {"<unk>": 9}, {}, {})
    write_numbered(made, numbering, tmp_path / "codes")
    return tmp_path / "codes"


def encoded(codes: Path) -> Counter[str]:
    """Return how often each token occurs in the encoded lines."""
    read, bpe, counts = Codes.read(codes), BPE(codes), Counter[str]()
    numbering = numbering_of(read)
    assert numbering is not None
    names = dict(zip(numbering.ids, ordinary_tokens(read), strict=True))
    for line in LINES:
        counts.update(names.get(number, "<unk>") for number in bpe.encode(line))
    return counts


def test_trimming_marks_what_encoding_makes_rarely(codes: Path, tmp_path: Path) -> None:
    """Lines, documents and files give the same."""
    (tmp_path / "text").write_text("\n".join(LINES), encoding="utf-8")
    frequencies = encoded(codes)
    merged = {"".join(pair).replace("\u2581", "Ġ") for pair in MERGES}
    for least in range(2, 20):
        rare = {token for token in merged if frequencies[token] < least}
        for text in ({"lines": LINES}, {"documents": LINES}, {"paths": [tmp_path / "text"]}):
            trimmed = trim(codes, below=least, **text).codes
            assert merged & trimmed.scaffold == rare


def test_extending_learns_what_encoding_uses(codes: Path, tmp_path: Path) -> None:
    """A word at the beginning of a text becomes one token with the space that is put before it."""
    (tmp_path / "text").write_text("abcabc\n" * 9, encoding="utf-8")
    longer = str(tmp_path / "longer")
    text = ["--input", str(tmp_path / "text")]
    assert main(["extend", str(codes), "--symbols", "1", *text, "--output", longer]) == 0
    assert len(BPE(longer).encode("abcabc")) == 1 < len(BPE(codes).encode("abcabc"))
    assert extend(codes, lines=["abcabc"] * 9, num_symbols=1).codes.text == Path(longer).read_bytes()


def test_count_files_do_not_have_these_spaces(codes: Path, tmp_path: Path) -> None:
    """They are refused rather than counted differently; for codes without such spaces they equal the text."""
    pretokeniser = Codes.read(codes).header.pretokeniser
    write_counts(tmp_path / "counts", lines=LINES, pretokenise=pretokeniser)
    spaces = numbering_of(Codes.read(codes)).spaces  # type: ignore[union-attr]
    if spaces == Spaces():
        trimmed = trim(codes, below=9, counts=[tmp_path / "counts"]).codes
        assert trimmed.text == trim(codes, below=9, lines=LINES).codes.text
        return
    with pytest.raises(UsageError, match="puts a space before each text, which count files lack"):
        trim(codes, below=9, counts=[tmp_path / "counts"])
