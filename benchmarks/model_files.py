"""One set of byte-level merges in the form that each library reads, so that all encode alike.

python benchmarks/model_files.py CODES RANKS TOKENIZER
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable

PATTERNS = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
}
# The same words in Oniguruma's syntax, in which $ is the end of a line.
ONIGURUMA = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_SHOWN = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(256 + n) for n, byte in enumerate(_OTHERS)}
_BYTES = {character: byte for byte, character in _SHOWN.items()}


def notation(token: bytes) -> str:
    """Bytes as GPT-2 prints them."""
    return "".join(_SHOWN[byte] for byte in token)


def read_codes(path: str) -> tuple[str, list[tuple[str, str]]]:
    """The pre-tokeniser and the merges of a codes file without scaffold tokens."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        pretokeniser = next(lines).split()[3]
        merges = [line.rstrip("\n").split(" ") for line in lines]
    return pretokeniser, [(left, right) for left, right in merges]


def write_ranks(path: str, tokens: Iterable[bytes]) -> None:
    """tiktoken's own format: a token in base64 and its rank in each line."""
    with open(path, "wb") as out:
        out.writelines(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


def read_ranks(path: str) -> dict[bytes, int]:
    """Token → rank."""
    with open(path, "rb") as lines:
        return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def pattern_of(ranks: str) -> str:
    """The pattern of a file of ranks, which its name begins with."""
    return PATTERNS[ranks.rsplit("/", 1)[-1].split("-")[0]]


def main() -> None:
    codes, ranks, tokenizer = sys.argv[1:]
    pretokeniser, merges = read_codes(codes)
    tokens = dict.fromkeys(_SHOWN[byte] for byte in range(256))
    tokens |= dict.fromkeys(left + right for left, right in merges)
    write_ranks(ranks, (bytes(_BYTES[character] for character in token) for token in tokens))

    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    model = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(ONIGURUMA), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    if pretokeniser == "gpt2":
        # tokenizers has this pattern built in, which is faster.
        model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    model.save(tokenizer)


if __name__ == "__main__":
    main()
