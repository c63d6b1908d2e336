"""Joining subwords undoes segmenting; tables are laid out as by tabulate."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from segmenting import ALPHABET, hard_text

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.corpus.text import END_OF_WORD, LINE_MARGIN, surface_form
from mt_scaffold.tables import format_table, latex_table

CODES = learn_bpe(lines=hard_text(5, 3000).split("\n"), num_symbols=200).codes
WORDS = st.lists(st.text(st.sampled_from("".join(ALPHABET)), min_size=1, max_size=12), max_size=6)


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(
    words=WORDS,
    separator=st.sampled_from(["@@", "@", "￭", "##"]),
    dropout=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**64 - 1),
)
def test_joining_undoes_segmenting(words: list[str], separator: str, dropout: float, seed: int) -> None:
    """For any words with single spaces between them; the separator may occur inside a word, but not at its end."""
    assume(not any(word.endswith(separator) for word in words))
    line = " ".join(words)
    assume(line == line.strip(LINE_MARGIN))
    bpe = BPE(CODES, separator=separator)
    assert bpe.join(bpe.segment(line, dropout, seed)) == line


def test_a_word_that_ends_in_the_separator_is_joined_to_the_next() -> None:
    """Its last subword looks like one inside a word; this is why no word may end in the separator."""
    bpe = BPE(b"#version: 0.2\n@ @</w>\n")
    assert bpe.segment("a@@ b") == "a@@ @@ b"
    assert bpe.join("a@@ @@ b") == "ab"


def test_learned_tokens_have_the_surface_forms_of_segmented_text() -> None:
    """A vocabulary and a segmented text spell a token alike."""
    bpe = BPE(CODES, separator="##")
    normal = {merge.token for merge in CODES.merges if merge.normal}
    assert {surface_form(token, "##") for token in normal if END_OF_WORD not in token[:-4]} <= set(bpe.surface_forms())


# Printable characters; tabulate strips cells, treats line ends and terminal codes specially, and escapes nothing.
CELLS = st.text(
    st.characters(categories=["L", "M", "N", "P", "S"], include_characters=" ", exclude_characters="|<"), max_size=12
).map(str.strip)  # fmt: skip


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(data=st.data(), markdown=st.booleans())
def test_tables_of_text_are_those_of_tabulate(data: st.DataObject, markdown: bool) -> None:
    """They are equal byte for byte, with empty cells, numbers, wide characters and combining marks."""
    tabulate = pytest.importorskip("tabulate", reason="needs the extra 'workflow'")
    columns = data.draw(st.integers(1, 5))
    rows = data.draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=2, max_size=6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabulate, "wcwidth", None)  # if it is installed, widths are those of a terminal
        style = "github" if markdown else "simple"
        theirs = tabulate.tabulate(rows[1:], rows[0], tablefmt=style, disable_numparse=True)
    assert format_table(rows, markdown, figures=False) == theirs + "\n"


def test_tables_of_figures() -> None:
    """The first column is left-aligned, the others right-aligned, as narrow as their cells."""
    rows = [["", "日本", "b"], ["first", "1,234", ""], ["x", "5", "6"]]
    assert format_table(rows) == "          日本  b\n-----  -----  -\nfirst  1,234\nx          5  6\n"
    assert format_table(rows, markdown=True) == (
        "|       |    日本 | b |\n| ----- | ----: | : |\n| first | 1,234 |   |\n| x     |     5 | 6 |\n"
    )


def test_a_bar_ends_no_cell() -> None:
    """Names may hold anything: in Markdown a bar is escaped and <unk> is not HTML, in LaTeX both are shown."""
    rows = [["system", "<unk> in train"], ["x|y", "1"], ["`a|<b>`", "2"]]
    assert format_table(rows, markdown=True, figures=False).splitlines()[2:] == [
        "| x\\|y     | 1                   |",
        "| `a\\|<b>` | 2                   |",
    ]
    assert "&lt;unk> in train" in format_table(rows, markdown=True) and "x|y" in format_table(rows)
    assert r"x\textbar{}y & 1 \\" in latex_table(rows)
