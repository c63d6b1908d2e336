"""The published tokens of cl100k_base as rs-bpe carries them, as a codes file for mt_scaffold and as tiktoken's ranks.

    python benchmarks/published_tokens.py CODES RANKS

A token's pair is what byte-level BPE with the tokens before it leaves of its bytes: that is how the tokens were made.
"""

from __future__ import annotations

import itertools
import sys

from model_files import notation, write_ranks


def pair(token: bytes, rank: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens that a token is merged from."""
    parts = [token[i : i + 1] for i in range(len(token))]
    own = rank[token]
    while len(parts) > 2:
        ranks = [rank.get(left + right, own) for left, right in itertools.pairwise(parts)]
        lowest = min(ranks)
        if lowest == own:
            break
        at = ranks.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    if len(parts) != 2:
        raise ValueError(f"{token!r} is not merged from two tokens")
    return parts[0], parts[1]


def main() -> None:
    from rs_bpe.bpe import openai

    codes, ranks = sys.argv[1:]
    table = openai.cl100k_base().bpe()
    tokens = [bytes(table.decode_tokens([number])) for number in range(100_256)]
    rank = {token: number for number, token in enumerate(tokens)}
    write_ranks(ranks, tokens)
    with open(codes, "w", encoding="utf-8", newline="\n") as out:
        out.write("#version: 0.3 bytes cl100k\n")
        for token in tokens:
            if len(token) > 1:
                left, right = pair(token, rank)
                out.write(f"{notation(left)} {notation(right)}\n")


if __name__ == "__main__":
    main()
