"""YouTokenToMe's models → codes.

The file is text: the number of characters and of rules; each character (code point, id); each rule (left id, right id,
id); the ids of <UNK>, <PAD>, <BOS> and <EOS>, -1 for none (utils.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping

from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.integrations.vocabularies.imported import SPACE, Imported, Original, of_pieces
from mt_scaffold.integrations.vocabularies.merging import applied_merges
from mt_scaffold.segment.numbering import Spaces

_SPECIAL = ("<UNK>", "<PAD>", "<BOS>", "<EOS>")


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read a model; its special tokens are not found in text."""
    name = shown(path)
    if pretokeniser is not None or special:
        raise UsageError(f"{name}: says what words and special tokens are; omit --pretokenise and --special")
    try:
        numbers = list(map(int, read_file(path).split()))
        characters, rules = numbers[:2]
        rows = numbers[2:]
        ids = {rows[2 * i + 1]: chr(rows[2 * i]) for i in range(characters)}
        rows = rows[2 * characters :]
        merges = []
        for left, right, number in (rows[3 * i : 3 * i + 3] for i in range(rules)):
            merges.append((ids[left], ids[right]))
            ids[number] = ids[left] + ids[right]
        named = dict(zip(_SPECIAL, rows[3 * rules :], strict=True))
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise MTScaffoldError(f"{name}: not a model of YouTokenToMe ({error!r})") from None
    tokens = {token: number for token, number in named.items() if number >= 0}
    applied = applied_merges(merges, list)
    made = {left + right for left, right in applied}
    pieces: dict[str, int] = {}
    others: dict[int, bytes] = {}
    for number, piece in ids.items():
        if (len(piece) == 1 or piece in made) and piece not in pieces:
            pieces[piece] = number
        else:
            others[number] = piece.replace(SPACE, " ").encode("utf-8")
    spaces = Spaces("always", words=True)
    source = {"format": "youtokentome"}
    codes, numbering = of_pieces(
        name, "metaspace", applied, pieces, {}, tokens.get("<UNK>"), spaces, tokens, others, source
    )
    return Imported(codes, numbering)


def original(path: PathLike, imported: Imported) -> Original:
    """Return YouTokenToMe's encoder for the file."""
    try:
        import youtokentome
    except ImportError:
        raise MTScaffoldError("--check needs the package youtokentome; run pip install youtokentome") from None
    bpe = youtokentome.BPE(str(path), n_threads=1)
    return lambda text: bpe.encode([text], output_type=youtokentome.OutputType.ID)[0]
