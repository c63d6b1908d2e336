"""A string in place of a list of strings is refused: its letters would be the entries."""

import io
from typing import Any

import pytest

from mt_scaffold.errors import UsageError
from mt_scaffold.segment.apply import BPE
from mt_scaffold.subword_nmt import apply_bpe

CODES = "#version: 0.2\na b\nab c</w>\n"


@pytest.mark.parametrize("option", [{"glossaries": "abc"}, {"vocab": "ab"}, {"special_tokens": "ab"}], ids=str)
def test_a_string_is_no_list_of_strings(option: dict[str, Any]) -> None:
    """The glossaries "abc" would be the glossaries a, b and c."""
    (name,) = option
    with pytest.raises(UsageError, match=f"{name}: give a list of strings"):
        BPE(CODES.encode(), **option)
    if name != "special_tokens":
        with pytest.raises(UsageError, match=f"{name}: give a list of strings"):
            apply_bpe.BPE(io.StringIO(CODES), **option)


def test_a_string_is_no_list_of_words() -> None:
    """As words "ab" would be a and b, as it is for subword-nmt's class."""
    with pytest.raises(UsageError, match="tokens: give a list of strings"):
        BPE(CODES.encode()).segment_tokens("ab")
    assert BPE(CODES.encode()).segment_tokens(["abc"]) == ["abc"]
    assert apply_bpe.BPE(io.StringIO(CODES)).segment_tokens("ab") == ["a", "b"]
