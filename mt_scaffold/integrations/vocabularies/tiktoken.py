"""tiktoken's ranks (``NAME.tiktoken``: a token in Base64 and its rank per line) ⇄ codes."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from itertools import pairwise, zip_longest
from typing import Any

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.pretokenise import PATTERNS
from mt_scaffold.corpus.text import bytes_to_notation, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.integrations.vocabularies.imported import (
    Imported,
    Original,
    codes_of_merges,
    ids_of_bytes,
    numbered,
    refused,
)
from mt_scaffold.integrations.vocabularies.merging import merges_of_ranks
from mt_scaffold.segment.numbering import Numbering, ordinary_tokens

_END, _FIM = "<|endoftext|>", ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
# Published ranks by the start of their SHA-256: name, pre-tokeniser, special tokens (tiktoken_ext/openai_public.py).
_PUBLISHED: dict[str, tuple[str, str, dict[str, int]]] = {
    "306cd27f03c1a714": ("r50k_base", "gpt2", {_END: 50256}),
    "94b5ca7dff4d0076": ("p50k_base", "gpt2", {_END: 50256}),
    "223921b76ee99bde": (
        "cl100k_base",
        "cl100k",
        {_END: 100257, **dict(zip(_FIM, range(100258, 100261), strict=True)), "<|endofprompt|>": 100276},
    ),
    "446a9538cb6c348e": ("o200k_base", "o200k", {_END: 199999, "<|endofprompt|>": 200018}),
}


def read_ranks(content: bytes, name: str) -> dict[bytes, int]:
    """Return the rank of each token in a file of ranks. Raises MTScaffoldError, with the line, if it is malformed."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise MTScaffoldError(f"{name}: line {number}: expected a token in Base64 and its rank") from None
    if len(set(ranks.values())) < len(ranks):
        raise MTScaffoldError(f"{name}: two tokens have the same rank")
    return ranks


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read ranks.

    pretokeniser, special: those of the encoding, which the file does not contain; None for OpenAI's files, which are
    recognised by their digest.

    tiktoken merges any two tokens that spell a token, the one of the lowest rank first. Raises MTScaffoldError for a
    token that no merge makes, since tiktoken still gives it to a word that equals it.
    """
    name, content = shown(path), read_file(path)
    ranks = read_ranks(content, name)
    published = _PUBLISHED.get(hashlib.sha256(content).hexdigest()[:16])
    if pretokeniser is None and published is None:
        raise UsageError(f"{name}: ranks do not define how text is cut into words; give --pretokenise and --special")
    encoding = {} if published is None else {"encoding": published[0]}
    words = pretokeniser or (published[1] if published else "")
    tokens = special or (dict(published[2]) if published else {})
    # In sorted order, a token that others begin with comes right before one of them.
    for token, longer in pairwise(sorted(tokens)):
        if longer.startswith(token):
            raise refused(name, f"the special token '{token}' is a prefix of '{longer}', and tiktoken may find either")
    merges, unmade = merges_of_ranks(ranks, lambda token: [token[i : i + 1] for i in range(len(token))])
    if unmade:
        raise refused(name, f"no merge makes the token '{bytes_to_notation(unmade[0])}' ({len(unmade):,} such tokens)")
    codes = codes_of_merges(name, words if words in PATTERNS else f"pattern={words}", merges)
    numbering = Numbering(
        ids_of_bytes(name, codes, ranks), tokens, source={"format": "tiktoken", **encoding}, in_text=tuple(tokens)
    )
    return numbered(name, codes, numbering)


def original(path: PathLike, imported: Imported) -> Original:
    """Return tiktoken's encoder with the same ranks, pattern and special tokens."""
    assert imported.numbering is not None
    encoding = encoding_of(read_ranks(read_file(path), shown(path)), imported.codes, imported.numbering)
    return lambda text: encoding.encode(text, allowed_special="all")


def encoding_of(ranks: Mapping[bytes, int], codes: Codes, numbering: Numbering) -> Any:
    """Return tiktoken's own encoding of imported codes. Raises MTScaffoldError if tiktoken is not installed."""
    try:
        from tiktoken import Encoding
    except ImportError:
        raise MTScaffoldError("--check needs the package tiktoken; run pip install '.[vocabularies]'") from None
    pattern = PATTERNS.get(codes.pretokeniser, codes.pretokeniser)
    return Encoding("imported", pat_str=pattern, mergeable_ranks=dict(ranks), special_tokens=dict(numbering.special))


def check_expressible(codes: Codes) -> None:
    """Raise MTScaffoldError unless tiktoken's algorithm segments every text as the codes do."""
    header = codes.header
    if header.end_of_word or header.picky:
        raise MTScaffoldError(
            f"{codes.name}: tiktoken's ranks are of bytes with a pre-tokeniser; learn codes with --pretokenise"
        )
    if header.split_digits:
        raise MTScaffoldError(f"{codes.name}: tiktoken has a single pattern, which cannot express --split-digits")
    if codes.scaffold:
        raise MTScaffoldError(
            f"{codes.name}: tiktoken cannot take scaffold tokens apart; use the tokenizer of "
            "mt_scaffold.integrations.transformers"
        )


def write(codes: Codes, numbering: Numbering | None = None) -> bytes:
    """Return ranks that give the ids of codes. Raises MTScaffoldError if no ranks do.

    Imported ids become the ranks, so their order must be that of the merges.
    """
    check_expressible(codes)
    tokens = [notation_to_bytes(token) for token in ordinary_tokens(codes)]
    ids = range(len(tokens)) if numbering is None else numbering.ids
    if numbering is not None and (numbering.others or numbering.spaces or numbering.unknown is not None):
        raise MTScaffoldError(f"{codes.name}: tiktoken takes text as it is, and has an id for each byte")
    ranks = dict(zip(tokens, ids, strict=True))
    check_ranks(codes, ranks)
    lines = (
        base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(ranks.items(), key=lambda each: each[1])
    )
    return b"".join(lines)


def check_ranks(codes: Codes, ranks: Mapping[bytes, int]) -> None:
    """Raise MTScaffoldError unless merging by rank gives exactly the merges of codes, in their order."""
    merges, unmade = merges_of_ranks(ranks, lambda token: [token[i : i + 1] for i in range(len(token))])
    if unmade:
        raise MTScaffoldError(f"{codes.name}: by ranks, no merge makes '{bytes_to_notation(unmade[0])}'")
    wanted = list(dict.fromkeys((notation_to_bytes(left), notation_to_bytes(right)) for left, right, _ in codes.merges))
    if wanted != merges:
        differing = zip_longest(wanted, merges, fillvalue=(b"", b""))
        ours, theirs = next((ours, theirs) for ours, theirs in differing if ours != theirs)
        raise MTScaffoldError(
            f"{codes.name}: tiktoken would merge '{' '.join(map(bytes_to_notation, theirs))}' where the codes merge "
            f"'{' '.join(map(bytes_to_notation, ours))}'"
        )
