"""Text and ids that arrive in pieces."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt_scaffold import BPE
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import bytes_to_notation
from mt_scaffold.segment.ids import IncrementalDecoder
from mt_scaffold.segment.numbering import Numbering, Spaces

MERGES = b"a n\nb an\nan a\n\xc4\xa0 b\n\xc3\x83 \xc2\xa4\n"
SPECIAL = ["<|end|>", "<|end|>x", "an<"]


def _numbered(words: str, spaces: Spaces, in_text: tuple[str, ...] = ()) -> BPE:
    codes = f"#version: 0.3 bytes {words}\n".encode() + MERGES
    ids = tuple(random.Random(3).sample(range(700), 261))
    return BPE(codes, numbering=Numbering(ids, {"<|end|>": 800, "an<": 801}, spaces=spaces, in_text=in_text))


KINDS = {
    "gpt2": BPE(b"#version: 0.3 bytes gpt2\n" + MERGES, special_tokens=SPECIAL),
    "o200k": BPE(b"#version: 0.3 bytes o200k\n" + MERGES, special_tokens=SPECIAL),
    "pattern": BPE(b"#version: 0.3 bytes pattern=\\w+|[^\\w]+\n" + MERGES, special_tokens=SPECIAL),
    "prefix": _numbered("metaspace-runs", Spaces("always")),
    "symbols": _numbered("metaspace-runs", Spaces("always"), ("an<",)),
    "each": _numbered("metaspace", Spaces("unless-there", True)),
}
_ATOMS = [
    "ban",
    "an",
    "a",
    " ",
    "  ",
    "ä",
    "😀",
    "\n",
    "\r\n",
    "<|end|>",
    "<|end|>x",
    "<|en",
    "an<",
    "7",
    "'s",
    "\u2581",
]
_RANDOM = random.Random(11)
TEXTS = [("".join(_RANDOM.choices(_ATOMS, k=_RANDOM.randrange(9)))).encode() for _ in range(1000)]
TEXTS[0], TEXTS[1] = b"a\xff\xe2\x96 b", b"<|end|> "


@pytest.mark.parametrize("kind", KINDS)
def test_every_split_gives_what_decoding_at_once_gives(kind: str) -> None:
    """For 1,000 texts, the text does not depend on how the ids arrive."""
    if kind == "pattern":
        pytest.importorskip("regex", reason="comes with the extra 'documents'")
    bpe = KINDS[kind]
    for text in TEXTS:
        whole = bpe.encode(text, allowed_special="all")
        shown = bpe.decode(whole)
        for at in range(len(whole) + 1):
            decoder = IncrementalDecoder(bpe)
            assert decoder.decode(whole[:at]) + decoder.decode(whole[at:], final=True) == shown, (text, at)
    # One id at a time, also of those that a model may sample.
    known = [number for number, token in enumerate(bpe.tokens) if token]
    sampled = [_RANDOM.choices([*known, *bpe.special_tokens.values()] + known[-3:] * 99, k=6) for _ in range(200)]
    for ids in [*(bpe.encode(text, allowed_special="all") for text in TEXTS[:100]), *sampled]:
        decoder = IncrementalDecoder(bpe)
        pieces = [decoder.decode([number]) for number in ids]
        assert "".join(pieces) + decoder.decode([], final=True) == bpe.decode(ids)


def test_no_part_of_a_character_is_shown() -> None:
    """Otherwise there would be no use in a stream."""
    decoder = IncrementalDecoder(KINDS["gpt2"])
    assert [decoder.decode([number]) for number in "😀".encode()] == ["", "", "", "😀"]
    assert bytes_to_notation(b" ") == "Ġ"


@pytest.mark.parametrize(("closed", "name"), [("stdin", "input"), ("stdout", "output")])
def test_a_closed_stream_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: str, name: str
) -> None:
    """As with every other command that reads and writes standard streams."""
    (tmp_path / "codes").write_bytes(b"#version: 0.3 bytes gpt2\n" + MERGES)
    monkeypatch.setattr(sys, closed, None)
    assert main(["decode", "--codes", str(tmp_path / "codes"), "--stream"]) == 1
    assert capsys.readouterr().err.startswith(f"mt-scaffold: standard {name} is closed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_ids_is_their_text(kind: str) -> None:
    """Each piece comes as soon as it is certain, in whole characters; together they are what ``decode`` returns."""
    bpe = KINDS[kind]
    text = "banana ä an 😀b"
    ids = list(bpe.encode(text))
    taken = []

    def arriving() -> Iterator[int]:
        for number in ids:
            taken.append(number)
            yield number

    pieces = []
    for piece in bpe.decode_stream(arriving()):
        pieces.append(piece)
        assert piece and "\ufffd" not in piece
        assert "".join(pieces) == bpe.decode(taken)[: len("".join(pieces))]
    assert "".join(pieces) == bpe.decode(ids) and len(pieces) > 3
    cut = bpe.encode("ä".encode()[:1])
    assert "".join(bpe.decode_stream(cut)) == bpe.decode(cut)


def test_a_bpe_shows_its_codes() -> None:
    """Its representation has their name and size, not a memory address."""
    assert repr(BPE(b"#version: 0.2\na n\nb an\n")) == "<BPE of codes: 2 merges>"
    assert repr(BPE(b"#version: 0.2\na n\nb an\n", 1)) == "<BPE of codes: 1 merge>"
