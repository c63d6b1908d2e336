"""How strings occur: as separate tokens or inside longer ones, for both algorithms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt_scaffold import UsageError
from mt_scaffold.analysis.containing import Containing, TokenShare, containing, format_containing, tokens_with
from mt_scaffold.cli import main

BPE_CODES = b"#version: 0.2\nz o\nzo n\nzon a</w>\nr i\nri zona</w>\nzo o</w>\n"
SCAFFOLD_CODES = BPE_CODES.replace(b"zon a</w>\n", b"zon a</w> scaffold\n").replace(b"z o\n", b"z o scaffold\n")
TEXT = ["rizona rizona rizona zona zoo x"]


def test_shares_of_a_string_inside_longer_tokens() -> None:
    """Each token that contains the string, with its share: the string itself first, unused tokens left out."""
    frequencies = {"zona": 1, "zona</w>": 2, "Arizona</w>": 97, "Barizonas": 0, "zone</w>": 50}
    shares = tokens_with("zona", frequencies)
    assert shares == [("zona</w>", 2, 0.02), ("zona", 1, 0.01), ("Arizona</w>", 97, 0.97)]
    assert tokens_with("zon", frequencies, None)[1] == ("zone</w>", 50, 50 / 150)
    assert tokens_with("w>", frequencies) == []


def test_both_algorithms_side_by_side() -> None:
    """A scaffold token stays in the list, marked and with frequency 0, which explains why the string has no token."""
    bpe, scaffold = containing([BPE_CODES, SCAFFOLD_CODES], ["zona"], lines=TEXT)
    assert bpe.tokens == [TokenShare("zona</w>", 1, 0.25), TokenShare("rizona</w>", 3, 0.75)]
    # zona alone is demolished into zon and a, neither of which contains it.
    assert scaffold.tokens == [TokenShare("zona</w>", 0, 0.0, True), TokenShare("rizona</w>", 3, 1.0)]
    found = containing([BPE_CODES, SCAFFOLD_CODES], ["zo", "zon"], lines=TEXT)
    assert [entry.string for entry in found] == ["zo", "zo", "zon", "zon"]
    assert found[0].tokens[0] == TokenShare("zo", 0, 0.0)
    assert found[1].tokens[0] == TokenShare("zo", 0, 0.0, True)
    assert found[3].tokens[0] == TokenShare("zon", 1, 0.25)


def test_a_string_in_no_token_is_a_result() -> None:
    """It occurs in the text, but across tokens, or not at all; a string that no token can contain is an error."""
    (found,) = containing([BPE_CODES], ["ax"], lines=TEXT)
    assert found.tokens == []
    assert format_containing([found]) == "ax in codes: no token that occurs in the text contains it\n"
    for wrong in ("", "a b"):
        with pytest.raises(UsageError, match="strings without spaces"):
            containing([BPE_CODES], [wrong], lines=TEXT)


def test_the_table_names_what_it_leaves_out() -> None:
    """The first tokens are listed, the others counted, with their share; a bar does not end a cell in Markdown."""
    tokens = [TokenShare("a|", 2, 0.5), TokenShare("ba|</w>", 1, 0.25), TokenShare("ca|", 1, 0.25)]
    found = Containing("bpe.codes", "a|", tokens)
    assert format_containing([found], top=1).splitlines() == [
        "a| in bpe.codes  frequency   share",
        "---------------  ---------  ------",
        "a|                       2  50.00%",
        "and 2 more, with 50.00%",
    ]
    markdown = format_containing([found], "markdown", 2).splitlines()
    assert markdown[0].startswith("| `a\\|` in bpe.codes |")
    assert markdown[-2:] == ["", "and 1 more, with 25.00%"]
    with pytest.raises(UsageError, match="negative"):
        format_containing([found], top=-1)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One table per string and codes file; JSON has every token; conflicting options give an error of one line."""
    (tmp_path / "bpe").write_bytes(BPE_CODES)
    (tmp_path / "scaffold").write_bytes(SCAFFOLD_CODES)
    (tmp_path / "text").write_text(TEXT[0] + "\n")
    arguments = [
        "stats",
        "--codes",
        str(tmp_path / "bpe"),
        str(tmp_path / "scaffold"),
        "--input",
        str(tmp_path / "text"),
    ]
    assert main([*arguments, "--containing", "zona", "zo"]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    assert [block.split(" ")[0] for block in blocks] == ["zona", "zona", "zo", "zo"]
    assert "zona</w> (scaffold)" in blocks[1] and "scaffold)" not in blocks[0]
    assert main([*arguments, "--containing", "zo", "--top", "1", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["codes"] == str(tmp_path / "bpe") and len(found[0]["tokens"]) == 4
    assert found[0]["tokens"][1] == {"token": "rizona</w>", "frequency": 3, "share": 0.6, "scaffold": False}
    assert main([*arguments, "--top", "5"]) == 2
    error = capsys.readouterr().err
    assert "--containing" in error and error.count("\n") == 1
    assert main([*arguments, "--containing", ""]) == 2
