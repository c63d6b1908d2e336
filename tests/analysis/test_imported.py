"""stats, compare-vocab and explain of imported codes: the figures of their program's segmentation of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt_scaffold import BPE, MTScaffoldError, UsageError
from mt_scaffold.analysis.compare_vocab import compare_vocab
from mt_scaffold.analysis.explain import Explainer, explain
from mt_scaffold.analysis.stats import gini, stats
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes
from mt_scaffold.segment.numbering import Numbering, Spaces, ordinary_tokens, write_numbered

METASPACE = "#version: 0.3 bytes metaspace\nà ¤ scaffold\nn a\nb a\nĠ ba\nĠba na\n".replace("à ¤", "Ã ¤")
LINES = ["banana  bana", " na na", "", "b é banaä€€ b"]


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    """Codes in which only the bytes b, a, n and the space have ids, and which put a space before each text."""
    codes = Codes(METASPACE.encode(), "codes")
    ids = {token: number for number, token in enumerate(ordinary_tokens(codes)) if token in "banĠ" or len(token) > 1}
    numbers = tuple(ids.get(token, -1) for token in ordinary_tokens(codes))
    write_numbered(codes, Numbering(numbers, {"<unk>": 7}, unknown=7, spaces=Spaces("always")), tmp_path / "codes")
    return tmp_path / "codes"


def test_figures_count_the_ids_of_a_text(unknown: Path, tmp_path: Path) -> None:
    """A run of unknown bytes is one token; added spaces are not bytes of the text."""
    text = tmp_path / "text"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    bpe = BPE(unknown)
    ids = [number for line in LINES for number in bpe.encode(line)]
    assert ids.count(7) == 2  # é, and ä with two €
    (row,) = stats([unknown], text)
    assert (row.tokens, row.types) == (len(ids), len(set(ids)))
    assert row.bytes == sum(len(line.encode()) for line in LINES)
    assert row.vocabulary_size == 4 + 4 + 1
    assert (row.not_utf8, row.not_utf8_share) == (0, 0)
    with text.open("rb") as stream:
        assert stats([unknown], stream) == [row]
    assert stats([unknown], lines=LINES) == [row]


@pytest.mark.parametrize("spaces", [Spaces("always"), Spaces("unless-there"), Spaces()])
def test_texts_are_prepared_as_the_core_prepares_them(spaces: Spaces) -> None:
    """The prepared text gets the same ids without preparation as the text with it."""
    codes = Codes(METASPACE.encode(), "codes")
    tokens = ordinary_tokens(codes)
    bpe = BPE(codes, numbering=Numbering(tuple(range(len(tokens))), spaces=spaces))
    plain = BPE(codes)
    for text in [*LINES, " ", "\u2581banana\u2581\tna", "\n"]:
        assert plain.encode(spaces.prepared(text)) == bpe.encode(text)


def test_compare_vocab_and_explain_take_imported_codes(unknown: Path, tmp_path: Path) -> None:
    """Tokens of bytes can be compared across pre-tokenisers; explain shows the ids of encode."""
    (tmp_path / "text").write_text("banana na\n", encoding="utf-8")
    ours = Codes(b"#version: 0.3 bytes gpt2\nb a\nn a\n\xc4\xa0 na\n", "ours")
    found = compare_vocab(unknown, ours, tmp_path / "text")
    assert ({each.token for each in found.removed}, {each.token for each in found.new}) == (
        {"Ġba", "Ġbana"},
        {"Ġna"},
    )
    explainer = Explainer(unknown)
    words = explainer.words("bana ä€na")
    assert words == [" bana", " ä€na"]
    assert [number for word in words for number in explainer.explain(word).ids or ()] == BPE(unknown).encode(
        "bana ä€na"
    )
    assert f"  ids          {BPE(unknown).encode('bana')[0]}\n" in explain(unknown, ["bana"])
    with pytest.raises(UsageError, match="compare codes of the same kind"):
        compare_vocab(unknown, Codes(b"#version: 0.2\na b\n"), tmp_path / "text")


def test_tokens_that_are_not_utf8_are_counted() -> None:
    """128 single bytes and merged parts of characters, and their share of the tokens of the text."""
    codes = Codes("#version: 0.3 bytes gpt2\nâ Ĥ\nâĤ ¬\nb a\n".encode(), "codes")
    (row,) = stats([codes], lines=["€ baä", "ba"])
    assert row.not_utf8 == 128 + 1
    assert row.not_utf8_share == 2 / row.tokens == 2 / 6
    assert stats([Codes(b"#version: 0.2\n")], lines=["a"])[0].not_utf8 is None


def test_the_gini_coefficient_between_languages(tmp_path: Path) -> None:
    """By its formula; the files of a parallel text must have the same number of lines."""
    assert gini([3, 3]) == 0
    assert gini([1, 3]) == pytest.approx(0.25)
    assert gini([2, 3, 7]) == pytest.approx(2 * (1 + 5 + 4) / (2 * 9 * 4))
    with pytest.raises(UsageError, match="needs two"):
        gini([1])
    with pytest.raises(UsageError, match="needs two"):
        stats([], languages=[])
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("ab\nab\n", encoding="utf-8")
    paths[1].write_text("abcd\nabcd\n", encoding="utf-8")
    codes = Codes(b"#version: 0.3 bytes gpt2\na b\n", "codes")
    (row,) = stats([codes], languages=paths)
    assert (row.gini, row.tokens) == (gini([2, 6]), 8)
    paths[1].write_text("abcd\n", encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=r"1 lines, but .* has 2"):
        stats([codes], languages=paths)


def test_the_command_prints_the_new_figures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One row each, and none for figures that were not requested."""
    (tmp_path / "codes").write_bytes(b"#version: 0.3 bytes gpt2\na b\n")
    (tmp_path / "text").write_text("abab ab\n" * 20, encoding="utf-8")
    text = str(tmp_path / "text")
    command = ["stats", "--codes", f"{tmp_path}/codes"]
    options = ["--languages", text, text]
    assert main([*command, *options]) == 0
    printed = capfd.readouterr().out
    for label in ("Gini of languages", "tokens that are not UTF-8"):
        assert label in printed
    assert main([*command, "--input", text]) == 0
    assert "Gini" not in capfd.readouterr().out
