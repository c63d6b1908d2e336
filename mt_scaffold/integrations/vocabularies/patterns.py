"""The pre-tokenisation patterns of published models, as other programs write and recognise them."""

from __future__ import annotations

from mt_scaffold.corpus.pretokenise import PATTERNS

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_ENDS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# cl100k_base as first published, also in Llama 3. Unlike today's, it cuts a line end and spaces at the end of a text in
# two.
FIRST_CL100K = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _ENDS
# The pattern of Qwen 2.
SINGLE_DIGITS = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _ENDS
# Pattern → the pre-tokeniser that cuts the same words, or None.
PUBLISHED: dict[str, str | None] = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    FIRST_CL100K: None,
    SINGLE_DIGITS: None,
    PATTERNS["o200k"]: "o200k",
}
