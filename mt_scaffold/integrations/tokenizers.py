"""Plain BPE codes → a tokenizer of Hugging Face's tokenizers: the same tokens for every text, or an error.

tokenizers merges one place of a word at a time, the leftmost of the lowest rank; codes mean all places of the lowest
rank at once. The two agree for every word if no line of the codes makes a token that an earlier line uses or makes
(docs/transformers.md explains why). Learned codes have no such line; others are refused.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mt_scaffold.codes import AnyMerge, Codes, CodesSource
from mt_scaffold.corpus.files import PathLike, open_input, open_output, refuse_overwriting, shown
from mt_scaffold.corpus.symbols import read_symbol
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation, is_base_symbol, surface_form
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.integrations import oniguruma
from mt_scaffold.integrations.sides import byte_tokens, code_tokens, read_tokens
from mt_scaffold.integrations.vocabularies import tokenizer_json
from mt_scaffold.integrations.vocabularies.patterns import FIRST_CL100K, PUBLISHED
from mt_scaffold.options import check_choice
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.ids import check_special_tokens
from mt_scaffold.segment.numbering import Numbering, numbering_of, ordinary_tokens

_UNKNOWN, _END = "<unk>", "</s>"
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
EXACT = "exact"
PATTERN_CHOICES = (EXACT, "published")
_LINES = 10_000


class Exported(NamedTuple):
    """The result of ``export_tokenizers``: the number of ids, and how many lines of a text were compared."""

    n_vocab: int
    lines: int


def export_tokenizers(
    codes: CodesSource,
    outfile: PathLike,
    *,
    vocabulary: PathLike | None = None,
    merges: int = -1,
    special_tokens: Iterable[str] = (),
    check: PathLike | None = None,
    pattern: str = EXACT,
) -> Exported:
    """Write plain BPE codes as a ``tokenizer.json``: the command ``export-tokenizers``.

    codes, vocabulary, merges, special_tokens, pattern: as for ``to_tokenizers``. check: a text; the file is written
    only if both segment all its lines alike, which reveals differences of the installed tokenizers, such as in the
    classes of characters that are new in Unicode.

    Raises MTScaffoldError as ``to_tokenizers`` does, and for a line of ``check`` that is segmented differently;
    UsageError for an output that is an input.
    """
    refuse_overwriting([outfile], [codes, vocabulary, check])
    read = Codes.of(codes)
    content, tokens = _without_special(read, vocabulary, merges, pattern)
    special = check_special_tokens(special_tokens)
    _add_special(content, read, special)
    lines = 0
    if check is not None:
        lines = _compare(read, merges, tokenizer_json.loaded(content), [*tokens, *special], special, check)
    with open_output(outfile) as stream:
        stream.write(json.dumps(content, indent=2, ensure_ascii=False).encode("utf-8"))
    return Exported(_size(content), lines)


def to_tokenizers(
    codes: CodesSource,
    *,
    vocabulary: PathLike | None = None,
    merges: int = -1,
    special_tokens: Iterable[str] = (),
    pattern: str = EXACT,
) -> Any:
    """Return plain BPE codes as a ``tokenizers.Tokenizer``, with the ids of ``MTScaffoldTokenizer`` for the same files.

    codes: codes of code points, codes of bytes with the pre-tokeniser gpt2, cl100k or o200k, or
        imported codes as ``tokenizer_json.write`` takes them.
    vocabulary: as ``vocab_file`` of MTScaffoldTokenizer; it must have an id for every token that the codes make,
        including intermediate ones. None: all tokens of the codes.
    special_tokens: for codes of bytes: tokens whose ids follow those of the codes. Imported codes have those of their
        manifest, with its ids.
    pattern: "exact" spells out which characters are letters, numbers and marks in the codes' version of Unicode, so
        that the reading program's version does not matter; "published" is ByteLevel, or the pattern as published,
        which other programs recognise. That of cl100k is its first one, since tokenizers cannot express today's: it
        differs if a text ends in a line end and spaces.

    Raises MTScaffoldError, with the reason, if tokenizers cannot express the codes or is not installed.
    """
    read = Codes.of(codes)
    content, _ = _without_special(read, vocabulary, merges, pattern)
    _add_special(content, read, check_special_tokens(special_tokens))
    return tokenizer_json.loaded(content)


def check_expressible(codes: Codes, merges: int = -1, pattern: str = EXACT) -> list[AnyMerge]:
    """Return the merges of codes with which tokenizers segments every word alike. Raises MTScaffoldError for others."""
    header = codes.header
    if header.picky:
        raise MTScaffoldError(
            f"{codes.name}: tokenizers cannot express codes of PickyBPE: it has no step that takes tokens apart; use "
            "mt_scaffold.integrations.transformers"
        )
    if header.bytes and header.end_of_word:
        raise MTScaffoldError(
            f"{codes.name}: tokenizers cannot express codes of bytes with {END_OF_WORD}, whose tokens do not contain "
            "the spaces between words; learn codes with --pretokenise"
        )
    known = PUBLISHED if pattern != EXACT else {}
    if header.pretokeniser not in ("spaces", *oniguruma.NAMES, *known):
        raise MTScaffoldError(
            f"{codes.name}: tokenizers cannot cut words as --pretokenise {header.pretokeniser!r} does; only codes with "
            f"{', '.join(oniguruma.NAMES)} can be exported"
        )
    made: dict[str, int] = {}
    kept: dict[tuple[str, str], AnyMerge] = {}
    for line, merge in enumerate(codes.first(merges), start=2):
        if (merge.left, merge.right) in kept:
            continue  # the first rank counts
        if not merge.normal:
            raise MTScaffoldError(
                f"{codes.name}: line {line}: tokenizers cannot express Scaffold-BPE codes: it has no step that takes "
                f"tokens such as '{merge.token}' apart after merging; use mt_scaffold.integrations.transformers"
            )
        _check_merge(merge, made, header.end_of_word, f"{codes.name}: line {line}")
        made[merge.token] = line
        kept[merge.left, merge.right] = merge
    return list(kept.values())


def _check_merge(merge: AnyMerge, made: dict[str, int], end_of_word: bool, place: str) -> None:
    """Raise MTScaffoldError unless merging one place at a time gives the same result as all places at once."""
    why = "tokenizers would segment some words differently; codes as learn-bpe writes them have no such line"
    for part in (merge.left, merge.right):
        if not is_base_symbol(part, end_of_word) and part not in made:
            raise MTScaffoldError(f"{place}: '{part}' is used before a line makes it; {why}")
    if merge.token in made:
        raise MTScaffoldError(f"{place}: '{merge.token}' is made again, after line {made[merge.token]}; {why}")
    stem = merge.token.removesuffix(END_OF_WORD) if merge.right.endswith(END_OF_WORD) else merge.token
    if end_of_word and (END_OF_WORD in stem or merge.right == END_OF_WORD):
        raise MTScaffoldError(
            f"{place}: '{merge.token}' spells out {END_OF_WORD}, which tokenizers cannot tell from the end of a word"
        )


def _without_special(
    codes: Codes, vocabulary: PathLike | None, merges: int, pattern: str = EXACT
) -> tuple[dict[str, Any], list[str]]:
    """Return the file's content, still without special tokens, and the tokens by id as this package writes them."""
    check_choice("pattern", pattern, PATTERN_CHOICES)
    numbering = numbering_of(codes) if codes.header.bytes else None
    if numbering is not None and merges != -1:
        raise UsageError(f"{codes.name}: imported codes have ids for all merges; omit the number of merges")
    if numbering is not None and numbering.spaces is not None:
        if vocabulary is not None:
            raise _no_vocabulary(codes)
        return tokenizer_json.write(codes, numbering), _by_id(codes, numbering)
    kept = check_expressible(codes, merges, pattern)
    pairs = [[left, right] for left, right, _ in kept]
    if codes.header.bytes:
        if vocabulary is not None:
            raise _no_vocabulary(codes)
        tokens = byte_tokens(codes, merges)
        ids = {token: number for number, token in enumerate(tokens)}
        if numbering is not None:
            ids = dict(zip(tokens, numbering.ids, strict=True)) | dict(numbering.special)
            ids |= {bytes_to_notation(token): number for number, token in numbering.others.items()}
            if len(ids) < len(tokens) + len(numbering.special) + len(numbering.others):
                raise MTScaffoldError(
                    f"{codes.name}: two ids have one name in tokenizer.json; use mt_scaffold.integrations.transformers"
                )
            tokens = _by_id(codes, numbering)
        return tokenizer_json.content_of(None, _words(codes, pattern), _BYTE_LEVEL, ids, pairs), tokens
    tokens = code_tokens(codes, SPECIAL_SYMBOLS, merges) if vocabulary is None else read_tokens(vocabulary)
    ids = _marked(codes, kept, tokens, vocabulary)
    # As in codes: the margins of a line are not part of a word, and words are separated by ASCII spaces only.
    margins = {"type": "Replace", "pattern": {"Regex": r"\A[\r\n ]+|[\r\n ]+\z"}, "content": ""}
    words = {"type": "Split", "pattern": {"Regex": " "}, "behavior": "Removed", "invert": False}
    decoder = {"type": "BPEDecoder", "suffix": END_OF_WORD}
    model = {"unk_token": _UNKNOWN, "end_of_word_suffix": END_OF_WORD}
    return tokenizer_json.content_of(margins, words, decoder, ids, pairs, **model), tokens


def _no_vocabulary(codes: Codes) -> UsageError:
    return UsageError(f"{codes.name}: codes of bytes define their own ids; omit the vocabulary")


def _by_id(codes: Codes, numbering: Numbering) -> list[str]:
    """Return the tokens of imported codes by id, for messages; "" if an id has none."""
    tokens = [""] * numbering.n_vocab
    for token, number in zip(ordinary_tokens(codes), numbering.ids, strict=True):
        if number >= 0:
            tokens[number] = token
    for token, number in numbering.special.items():
        tokens[number] = token
    return tokens


def _words(codes: Codes, pattern: str) -> dict[str, Any]:
    name, published = codes.header.pretokeniser, pattern != EXACT
    if published and name == "gpt2" and not codes.header.split_digits:
        return {**_BYTE_LEVEL, "add_prefix_space": False}
    if published:
        text = FIRST_CL100K if name == "cl100k" else next(each for each in PUBLISHED if name in (each, PUBLISHED[each]))
    else:
        text = oniguruma.pattern(name)
    splits = [text]
    if codes.header.split_digits:
        splits.append(r"\p{N}" if published else oniguruma.digit())
    words: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False} for each in splits
    ]
    words.append({**_BYTE_LEVEL, "add_prefix_space": False, "use_regex": False})
    return {"type": "Sequence", "pretokenizers": words}


def _marked(
    codes: Codes, merges: Sequence[AnyMerge], tokens: Sequence[str], vocabulary: PathLike | None
) -> dict[str, int]:
    """Return the ids of tokens as a codes file writes them: ``zona</w>`` for ``zona``, ``zona`` for ``zona@@``."""
    by_form: dict[str, str] = {}
    for token in itertools.chain.from_iterable((left, right, left + right) for left, right, _ in merges):
        other = by_form.setdefault(surface_form(token), token)
        if other != token:
            raise MTScaffoldError(
                f"{codes.name}: '{token}' and '{other}' are the same subword in segmented text, "
                f"'{surface_form(token)}'; tokenizers cannot give them one id"
            )
    ids: dict[str, int] = {}
    for number, form in enumerate(tokens):
        special = form in SPECIAL_SYMBOLS
        token = form if special else by_form.get(form.removesuffix(" ")) or _token(form)
        if token in ids:
            raise MTScaffoldError(
                f"{codes.name}: tokenizers has one name, '{token}', for '{tokens[ids[token]]}' and '{form}', which "
                "have different ids"
            )
        ids[token] = number
    missing = next((token for token in by_form.values() if token not in ids), None)
    missing = missing or next((symbol for symbol in (_UNKNOWN, _END) if symbol not in ids), None)
    if missing is not None:
        name = codes.name if vocabulary is None else shown(vocabulary)
        raise MTScaffoldError(
            f"{name}: no id for '{missing}', which tokenizers needs to make other tokens; omit the vocabulary, make "
            "the dictionary with BPE-dropout, which lists all tokens, or use mt_scaffold.integrations.transformers"
        )
    return ids


def _token(form: str) -> str:
    text, inside = read_symbol(form)
    return text if inside else text + END_OF_WORD


def _size(content: Mapping[str, Any]) -> int:
    """Return the number of tokens, added ones included."""
    return len({*content["model"]["vocab"], *(token["content"] for token in content["added_tokens"])})


def _add_special(content: dict[str, Any], codes: Codes, special_tokens: Sequence[str]) -> None:
    vocabulary: dict[str, int] = content["model"]["vocab"]
    if not codes.header.bytes and special_tokens:
        raise UsageError(
            f"{codes.name}: codes of code points have {', '.join(SPECIAL_SYMBOLS)}; omit the special tokens"
        )
    numbering = numbering_of(codes)
    numbered = {} if numbering is None else numbering.special
    for token in special_tokens:
        if token not in numbered and token in vocabulary:
            raise UsageError(f"{codes.name}: '{token}' is a token of the codes; choose another special token")
    new = [token for token in special_tokens if token not in numbered]
    # tokenizers numbers new tokens from the number of tokens, not from the largest id.
    if numbering is not None and new and len(vocabulary) < numbering.n_vocab:
        raise UsageError(f"{codes.name}: not every id has a token, so '{new[0]}' could get one in use; omit it")
    spaces = None if numbering is None else numbering.spaces
    if new and spaces is not None and spaces.prefix == "always" and not spaces.each:
        raise UsageError(f"{codes.name}: tokenizers would put a space before what follows '{new[0]}'; omit it")
    found = () if numbering is None else numbering.in_text
    shown = set[str]() if numbering is None else {*numbering.shown}
    special = list(dict.fromkeys([*found, *special_tokens])) if codes.header.bytes else SPECIAL_SYMBOLS
    following = len(vocabulary)
    for token in special:
        number = vocabulary.get(token, following)
        following = max(following, number + 1)
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        content["added_tokens"].append({"id": number, "content": token, **flags, "special": token not in shown})
    if not codes.header.bytes:
        first, second = (
            [{"Sequence": {"id": name, "type_id": number}}, {"SpecialToken": {"id": _END, "type_id": number}}]
            for number, name in enumerate("AB")
        )
        content["post_processor"] = {
            "type": "TemplateProcessing",
            "single": first,
            "pair": [*first, *second],
            "special_tokens": {_END: {"id": _END, "ids": [vocabulary[_END]], "tokens": [_END]}},
        }


def _compare(
    codes: Codes, merges: int, tokenizer: Any, tokens: Sequence[str], special: Sequence[str], path: PathLike
) -> int:
    """Segment every line of a text with both, and return the number of lines.

    special: the tokens that were added to those of the codes; they, and those of imported codes, are found in text.
    Raises MTScaffoldError for the first line that differs.
    """
    bpe = BPE(codes, merges, special_tokens=special)
    in_text = [*special, *(() if bpe.numbering is None else bpe.numbering.in_text)]
    unknown = 0 if codes.header.bytes else tokens.index(_UNKNOWN)
    encoder = None
    if not codes.header.bytes:
        encoder = bpe.encoder({token: number for number, token in enumerate(tokens)}, unknown)
    number = 0
    with open_input(path) as stream:
        while lines := [line.removesuffix(b"\n") for line in itertools.islice(stream, _LINES)]:
            texts = []
            for line in lines:
                number += 1
                try:
                    texts.append(line.decode("utf-8"))
                except UnicodeDecodeError:
                    raise MTScaffoldError(f"{shown(path)}: line {number}: not UTF-8; convert the file first") from None
            ids, offsets = (
                encoder.encode(lines)
                if encoder
                else _plain(bpe.encode_batch(texts, allowed_special=in_text, disallowed_special=()))
            )
            for each, (found, start, end) in enumerate(
                zip(tokenizer_json.ids_of(tokenizer, texts), offsets, offsets[1:], strict=False)
            ):
                if found != list(ids[start:end]):
                    place = f"{shown(path)}: line {number - len(lines) + each + 1}"
                    ours, theirs = (" ".join(tokens[i] for i in each) for each in (ids[start:end], found))
                    raise MTScaffoldError(f"{place}: tokenizers gives '{theirs}' for '{ours}'; nothing was written")
    return number


def _plain(encoded: tuple[Any, Any]) -> tuple[list[int], list[int]]:
    return encoded[0].tolist(), encoded[1].tolist()
