"""YouTokenToMe's models ⇄ codes.

The file is text: the number of characters and of rules; each character (code point, id); each rule (left id, right id,
id); the ids of <UNK>, <PAD>, <BOS> and <EOS>, -1 for none (utils.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.errors import MTScaffoldError, UsageError, printable
from mt_scaffold.integrations.vocabularies.imported import (
    SPACE,
    Imported,
    Original,
    check_merges,
    check_no_gaps,
    numbered,
    of_pieces,
    pieces_of,
    refused,
)
from mt_scaffold.integrations.vocabularies.merging import applied_merges
from mt_scaffold.segment.numbering import Numbering, Spaces

# The most characters of a token, and of all: each rule can double a token, so a short file could fill the memory.
_LONGEST, _MOST = 2**16, 2**24
_SPECIAL = ("<UNK>", "<PAD>", "<BOS>", "<EOS>")


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read a model; its special tokens are not found in text."""
    name = shown(path)
    if pretokeniser is not None or special:
        raise UsageError(f"{name}: defines its own words and special tokens; omit --pretokenise and --special")
    try:
        numbers = list(map(int, read_file(path).split()))
        characters, rules = numbers[:2]
        if min(characters, rules) < 0:
            raise ValueError("a negative number of characters or rules")
        rows = numbers[2:]
        listed = [(rows[2 * i + 1], chr(rows[2 * i])) for i in range(characters)]
        ids = dict(listed)
        rows = rows[2 * characters :]
        merges: list[tuple[str, str]] = []
        total = 0
        for left, right, number in (rows[3 * i : 3 * i + 3] for i in range(rules)):
            length = len(ids[left]) + len(ids[right])
            total += length
            if length > _LONGEST or total > _MOST:
                raise MTScaffoldError(
                    f"{name}: rule {len(merges) + 1} makes a token of {length:,} characters, and the tokens up to it "
                    f"have {total:,}; import models with up to {_LONGEST:,} in a token and {_MOST:,} in all"
                )
            merges.append((ids[left], ids[right]))
            listed.append((number, ids[left] + ids[right]))
            ids.setdefault(*listed[-1])
        named = dict(zip(_SPECIAL, rows[3 * rules :], strict=True))
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise MTScaffoldError(f"{name}: not a model of YouTokenToMe ({error!r})") from None
    tokens = {token: number for token, number in named.items() if number >= 0}
    applied = applied_merges(merges, list)
    made = {left + right for left, right in applied}
    pieces: dict[str, int] = {}
    others: dict[int, bytes] = {}
    for number, piece in listed:
        if ids[number] != piece:
            raise refused(name, f"'{ids[number]}' and '{piece}' have one id, {number}")
        if piece in pieces:
            raise refused(name, f"two ids, {pieces[piece]} and {number}, spell '{piece}'")
        if "\ud800" <= piece < "\ue000":
            raise refused(name, f"the character {ord(piece[0]):#x}, which has the id {number}, is a surrogate")
        if len(piece) == 1 or piece in made:
            pieces[piece] = number
        else:
            others[number] = piece.replace(SPACE, " ").encode("utf-8")
    spaces = Spaces("always", words=True)
    source = {"format": "youtokentome"}
    codes, numbering = of_pieces(
        name, "metaspace", applied, pieces, {}, tokens.get("<UNK>"), spaces, tokens, others, source
    )
    return numbered(name, codes, numbering)


def write(codes: Codes, numbering: Numbering | None) -> bytes:
    """Return a model with the ids of imported codes; characters come in the order of their ids.

    Raises MTScaffoldError for codes that are not from YouTokenToMe, or were trimmed or extended beyond its format.
    """
    if numbering is None or numbering.spaces is None or not numbering.spaces.words:
        raise MTScaffoldError(
            f"{codes.name}: YouTokenToMe puts a space before every word, and its words are between whitespace; only "
            "codes that were imported from it have this form"
        )
    pieces = pieces_of(codes, numbering, "YouTokenToMe")
    check_merges(codes, pieces, "YouTokenToMe")
    lost = next(iter(pieces.others), None)
    if lost is not None:
        raise MTScaffoldError(f"{codes.name}: no merge makes '{printable(pieces.others[lost])}', which has id {lost}")
    check_no_gaps(codes, {*pieces.ids.values(), *numbering.special.values()}, numbering.n_vocab, "YouTokenToMe")
    characters = sorted((number, piece) for piece, number in pieces.ids.items() if len(piece) == 1)
    rows = [(len(characters), len(pieces.merges))]
    rows += [(ord(piece), number) for number, piece in characters]
    rules = [tuple(pieces.ids[each] for each in (left, right, left + right)) for left, right in pieces.merges]
    special = tuple(numbering.special.get(token, -1) for token in _SPECIAL)
    return "".join(" ".join(map(str, row)) + "\n" for row in (*rows, *rules, special)).encode("ascii")


def original(path: PathLike, imported: Imported) -> Original:
    """Return YouTokenToMe's encoder for the file."""
    try:
        import youtokentome
    except ImportError:
        raise MTScaffoldError("--check needs the package youtokentome; run pip install youtokentome") from None
    bpe = youtokentome.BPE(str(path), n_threads=1)
    return lambda text: bpe.encode([text], output_type=youtokentome.OutputType.ID)[0]
