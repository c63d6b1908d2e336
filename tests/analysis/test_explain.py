"""``explain`` shows the segmentation of apply-bpe, and the steps to it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from segmenting import ALPHABET, VECTORS, hard_text, hard_words

from mt_scaffold import BPE, UsageError, learn_bpe
from mt_scaffold.analysis.explain import Explainer, Step, explain, format_explanation
from mt_scaffold.cli import main

ARIZONA = VECTORS / "arizona" / "scaffold.codes"
ZONA = b"#version: 0.2\nz o scaffold\nzo n\nzon a</w> scaffold\nari zona</w>\na r scaffold\nar i scaffold\n"


def test_arizona_is_built_through_scaffolding_and_zona_demolished() -> None:
    """The paper's example: zona helps to build arizona; alone it is demolished, into the shortest normal pieces."""
    explainer = Explainer(ARIZONA)
    arizona = explainer.explain("arizona")
    steps = [step for step in arizona.steps if isinstance(step, Step)]
    assert [step.left + step.right for step in steps][-1] == "arizona</w>"
    assert ("zona</w>", True) in [(step.left + step.right, step.scaffold) for step in steps]
    assert arizona.subwords == ["arizona"] and not arizona.demolitions
    zona = explainer.explain("zona")
    assert zona.scaffolding == ["zona</w>"]
    (demolition,) = zona.demolitions
    assert demolition.token == "zona</w>"
    assert demolition.result == ["z", "o", "n", "a</w>"]
    assert zona.subwords == ["z@@", "o@@", "n@@", "a"]


def test_text_shows_merges_and_demolition() -> None:
    """Each merge is shown with its number, then the scaffold tokens, their demolition and the result."""
    text = explain(ZONA, ["arizona", "zona"])
    arizona, zona = text.split("\n\n")
    assert "merge 4" in arizona and arizona.splitlines()[-1].split() == ["result", "arizona"]
    assert "demolish" not in arizona and "scaffold" in arizona
    assert "zona</w> = zon + a</w>" in zona
    assert zona.splitlines()[-1].split() == ["result", "zon@@", "a"]
    assert "\x1b" not in text
    coloured = format_explanation(Explainer(ZONA).explain("zona"), colour=True)
    assert "\x1b[33m" in coloured


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
def test_explained_segmentation_is_the_applied_one(algorithm: str) -> None:
    """On random words, with hard characters, each step follows from the one before and the result is apply-bpe's."""
    generator = random.Random(11)
    codes = learn_bpe(lines=hard_text(1, 4000).split("\n"), num_symbols=200, algorithm=algorithm).text
    explainer, bpe = Explainer(codes, separator="##"), BPE(codes, separator="##")
    demolished = 0
    for word in hard_words(generator, 1500, ALPHABET):
        found = explainer.explain(word)
        assert found.subwords == bpe.segment_tokens([word])
        pieces = [found.base, *(step.symbols for step in found.steps)]
        assert all("".join(symbols) == word + "</w>" for symbols in pieces)
        assert found.scaffolding == pieces[-1]
        demolished += len(found.demolitions)
    assert (demolished > 0) == (algorithm == "scaffold")


@pytest.mark.parametrize("algorithm", ["bpe", "picky"])
def test_a_word_whose_merges_would_fill_the_disk_is_refused(algorithm: str) -> None:
    """Each of its merges shows all of its symbols: 40,000 letters made hundreds of megabytes."""
    explainer = Explainer(learn_bpe(lines=["abab " * 9], num_symbols=2, algorithm=algorithm).text)
    assert explainer.explain("ab" * 150).subwords
    with pytest.raises(UsageError, match="40,000 symbols; explain words of up to 300"):
        explainer.explain("ab" * 20_000)


def test_command_is_plain_in_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No colour codes unless the output is a terminal; with fewer merges the word stays in more pieces."""
    (tmp_path / "codes").write_bytes(ZONA)
    assert main(["explain", "--codes", str(tmp_path / "codes"), "zona"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "zon@@ a" in shown
    assert main(["explain", "--codes", str(tmp_path / "codes"), "--merges", "1", "zona"]) == 0
    assert "z@@ o@@ n@@ a" in capsys.readouterr().out


def test_anything_but_one_word_is_refused() -> None:
    """A space or an empty word is an error of one line, not a wrong explanation."""
    for wrong in ("", "two words", "line\nend"):
        with pytest.raises(UsageError, match="not one word"):
            Explainer(ZONA).explain(wrong)


@pytest.mark.parametrize("scaffold", [True, False])
def test_a_long_chain_of_tokens_is_explained(scaffold: bool) -> None:
    """Each token is made of the one before it: the demolition, or the reference's, was deeper than Python's stack."""
    mark = " scaffold" if scaffold else ""
    chain = [f"{'a' * length} a{mark}" for length in range(1, 290)]
    codes = "\n".join(["#version: 0.2", *chain]) + "\n"
    assert "result" in explain(codes.encode(), ["a" * 290])
