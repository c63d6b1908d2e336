"""``tokenizer.json`` of Hugging Face's tokenizers ⇄ codes: BPE with ByteLevel, a published pattern, or Metaspace.

``integrations.tokenizers`` writes all of these except Metaspace.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.text import bytes_to_notation, decode, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError, printable
from mt_scaffold.integrations.vocabularies.imported import (
    BYTE_PIECE,
    SPACE,
    Imported,
    Original,
    check_merges,
    codes_of_merges,
    ids_of_bytes,
    numbered,
    of_pieces,
    pieces_of,
    refused,
)
from mt_scaffold.integrations.vocabularies.merging import applied_merges
from mt_scaffold.integrations.vocabularies.patterns import PUBLISHED
from mt_scaffold.segment.numbering import Numbering, Spaces

_REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
# Puts a space before each stretch of text between special tokens, even if it already begins with one.
_LLAMA = [{"type": "Prepend", "prepend": SPACE}, _REPLACE]


class _Words(NamedTuple):
    """How the file cuts text into words: a pre-tokeniser and, for Metaspace, its treatment of spaces."""

    pretokeniser: str
    spaces: Spaces | None = None


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read a tokenizer. Raises MTScaffoldError, with the reason, for anything that codes cannot do.

    Ids are without the special tokens of a post-processor; padding and truncation are left out as well.
    """
    name = shown(path)
    if pretokeniser is not None or special:
        raise UsageError(f"{name}: defines its own words and special tokens; omit --pretokenise and --special")
    try:
        content: dict[str, Any] = json.loads(decode(read_file(path), name))
        if "model" not in content and all(type(number) is int for number in content.values()):
            raise MTScaffoldError(f"{name}: ids of tokens without merges (vocab.json); give tokenizer.json instead")
        return _read(name, content)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise MTScaffoldError(f"{name}: not a tokenizer.json of a known form ({printable(what)})") from None


def _read(name: str, content: Mapping[str, Any]) -> Imported:
    model = content["model"]
    if model.get("type", "BPE") == "BPE" and "merges" not in model:
        raise refused(name, "the model has no merges")
    if model.get("type", "BPE") != "BPE":
        raise refused(name, f"the model {model.get('type')!r} is not BPE")
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise refused(name, f"the model has {key} {model[key]!r}")
    vocabulary: dict[str, int] = model["vocab"]
    for token, number in vocabulary.items():
        _check_id(token, number)
    # Of duplicate pairs, the last counts.
    merges = list(dict.fromkeys(_pair(each) for each in reversed(model["merges"])))[::-1]
    added = content.get("added_tokens") or []
    special = _special(name, added, content.get("normalizer"), vocabulary)
    shown = tuple(dict.fromkeys(token["content"] for token in added if not token.get("special")))
    notes = [*_surrounding_notes(content.get("post_processor"))]
    notes += [f"its {key} is left out" for key in ("truncation", "padding") if content.get(key)]
    words = _words(name, content)
    used = set().union(*merges) | {left + right for left, right in merges}
    if (missing := next((token for token in used if token not in vocabulary), None)) is not None:
        raise MTScaffoldError(f"{name}: '{printable(missing)}' is in the merges, but not in the vocabulary")
    source = {"format": "tokenizer.json"}
    if words.spaces is not None:
        codes, numbering = _characters(name, model, vocabulary, merges, special, words)
        return numbered(name, codes, replace(numbering, in_text=tuple(special), shown=shown), notes)
    applied = [_in_bytes(left, right) for left, right in applied_merges(merges, list)]
    codes = codes_of_merges(name, words.pretokeniser, applied)
    ordinary = {token: number for token, number in vocabulary.items() if token not in special}
    made = {left + right for left, right in applied}
    others: dict[int, bytes] = {}
    ids: dict[bytes, int] = {}
    for token, number in ordinary.items():
        spelled = _bytes_of(token)
        # '  ' is not 'ĠĠ': no text gets a token that is spelled with characters outside the notation.
        if bytes_to_notation(spelled) == token and (len(spelled) == 1 or spelled in made):
            ids[spelled] = number
        else:
            others[number] = spelled
    if others and model.get("ignore_merges"):
        token = next(token for token, number in ordinary.items() if number in others)
        raise refused(name, f"no merge makes the token '{token}', and ignore_merges gives it to words that spell it")
    for token in special if model.get("ignore_merges") else ():
        if token in vocabulary and _bytes_of(token) != token.encode("utf-8"):
            raise refused(name, f"ignore_merges gives the added token '{token}' to words that spell it in bytes")
    numbering = Numbering(ids_of_bytes(name, codes, ids), special, others, source=source)
    return numbered(name, codes, replace(numbering, in_text=tuple(special), shown=shown), notes)


def _surrounding_notes(processor: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield notes on the special tokens that a post-processor puts before and after a text."""
    if processor is None or processor["type"] == "ByteLevel":
        return
    if processor["type"] == "Sequence":
        for each in processor["processors"]:
            yield from _surrounding_notes(each)
        return
    if processor["type"] == "TemplateProcessing":
        parts = processor["single"]
        place = ["Sequence" in part for part in parts].index(True)
        before, after = ([part["SpecialToken"]["id"] for part in each] for each in (parts[:place], parts[place + 1 :]))
    else:  # those of BERT and RoBERTa
        before, after = [processor["cls"][0]], [processor["sep"][0]]
    if before:
        yield (
            f"its post-processor puts {' '.join(before)} before a text, which encode does not; the tokenizer for "
            "transformers does with prepend_bos"
        )
    if after:
        yield f"its post-processor puts {' '.join(after)} after a text, which encode does with --append"


def _check_id(token: object, number: object) -> None:
    """Raise TypeError unless a token is a string, and its id a whole number."""
    if not isinstance(token, str) or type(number) is not int:
        raise TypeError(f"the token {token!r} with the id {number!r}")


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _bytes_of(token: str) -> bytes:
    """Return the bytes of a token in the notation; for any other, which no text gets, those of its UTF-8."""
    try:
        return notation_to_bytes(token)
    except MTScaffoldError:
        return token.encode("utf-8")


def _in_bytes(left: str, right: str) -> tuple[bytes, bytes]:
    return notation_to_bytes(left), notation_to_bytes(right)


def _special(
    name: str, added: Sequence[Mapping[str, Any]], normaliser: object, vocabulary: Mapping[str, int]
) -> dict[str, int]:
    """Return the ids of added tokens. Raises MTScaffoldError for those that tokenizers numbers or finds differently."""
    special: dict[str, int] = {}
    normalised, following = set(), len(vocabulary)
    for token in added:
        content = token["content"]
        _check_id(content, token["id"])
        for flag in ("lstrip", "rstrip", "single_word"):
            if token.get(flag):
                raise refused(name, f"the added token '{content}' has {flag}")
        if token.get("normalized") and normaliser and _steps(normaliser):
            raise refused(name, f"the added token '{content}' is found in normalised text")
        if not content:
            raise refused(name, f"the added token with the id {token['id']} is empty")
        if content in special:
            raise refused(name, f"the added token '{content}' is listed twice")
        # tokenizers uses the id of the vocabulary or the next free one, whatever the file says.
        number = vocabulary.get(content, following)
        if token["id"] != number:
            raise refused(name, f"the added token '{content}' has the id {token['id']}, but {number} in tokenizers")
        special[content] = number
        following = max(following, number + 1)
        if token.get("normalized"):
            normalised.add(content)
    # tokenizers looks for normalised tokens only in the text between the others.
    shared = _overlapping(normalised, special.keys() - normalised)
    if shared is not None:
        raise refused(name, f"the added tokens '{shared[0]}' and '{shared[1]}' overlap, and one of them is normalized")
    return special


def _overlapping(ones: Collection[str], others: Collection[str]) -> tuple[str, str] | None:
    """Return a token of each that can overlap in a text; None if no two can."""
    for first, second in ((ones, others), (others, ones)):
        starting: dict[str, list[str]] = {}
        for token in second:
            starting.setdefault(token[0], []).append(token)
        for token in first:
            for at, character in enumerate(token):
                for other in starting.get(character, ()):
                    if token.startswith(other, at) or other.startswith(token[at:]):
                        return token, other
    return None


def _steps(stage: Any) -> list[Mapping[str, Any]]:
    """Return the stages of a normaliser or pre-tokeniser, with sequences flattened."""
    if stage is None:
        return []
    inner = next((stage[key] for key in ("normalizers", "pretokenizers") if key in stage), None)
    return [stage] if inner is None else [step for each in inner for step in _steps(each)]


def _words(name: str, content: Mapping[str, Any]) -> _Words:
    normalisers, steps = _steps(content.get("normalizer")), _steps(content.get("pre_tokenizer"))
    spaces = _normalised_spaces(name, normalisers)
    if spaces is not None:
        # Gemma's split has no effect, since the spaces are already replaced.
        unused = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
        if steps and steps != [unused]:
            raise refused(name, f"the pre-tokeniser {steps[0]['type']} after the normaliser {normalisers[-1]['type']}")
        return _Words("metaspace-runs", spaces)
    match steps:
        case [{"type": "Metaspace", **options}]:
            return _metaspace(name, options)
        case [{"type": "ByteLevel", **options}] if options.get("use_regex", True):
            pattern = "gpt2"
        case [{"type": "Split", **split}, {"type": "ByteLevel", **options}] if not options.get("use_regex", True):
            pattern = _pattern(name, split)
        case _:
            kinds = ", ".join(each["type"] for each in steps) or "none"
            raise refused(name, f"the pre-tokeniser ({kinds}) is neither ByteLevel, a published Split, nor Metaspace")
    if options.get("add_prefix_space"):
        raise refused(name, "ByteLevel has add_prefix_space")
    return _Words(pattern)


def _pattern(name: str, split: Mapping[str, Any]) -> str:
    from mt_scaffold.integrations import oniguruma

    pattern = split["pattern"].get("Regex", "")
    if split.get("invert") or split.get("behavior") != "Isolated":
        raise refused(name, f"Split has behavior {split.get('behavior')!r}, invert {split.get('invert')!r}")
    if pattern in PUBLISHED:
        return PUBLISHED[pattern] or f"pattern={pattern}"
    exact = next((each for each in oniguruma.NAMES if oniguruma.pattern(each) == pattern), None)
    if exact is None:
        raise refused(name, f"the Split pattern {pattern[:60]!r} is not a published one")
    return exact


def _normalised_spaces(name: str, normalisers: Sequence[Mapping[str, Any]]) -> Spaces | None:
    if not normalisers:
        return None
    if normalisers == [_REPLACE]:
        return Spaces()
    if normalisers == _LLAMA:
        return Spaces("always", True)
    wrong = next((each for each in normalisers if each != _REPLACE), normalisers[0])
    raise refused(name, f"the normaliser {wrong['type']} changes text")


def _metaspace(name: str, options: Mapping[str, Any]) -> _Words:
    if options.get("replacement", SPACE) != SPACE:
        raise refused(name, f"Metaspace replaces spaces by {options['replacement']!r}")
    default = "always" if options.get("add_prefix_space", True) else "never"
    scheme = options.get("prepend_scheme", default)
    spaces = {
        "never": Spaces(),
        "first": Spaces("unless-there"),
        "always": Spaces("unless-there", True),
    }[scheme]
    return _Words("metaspace" if options.get("split", True) else "metaspace-runs", spaces)


def _characters(
    name: str,
    model: Mapping[str, Any],
    vocabulary: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    special: Mapping[str, int],
    words: _Words,
) -> tuple[Any, Numbering]:
    ordinary = {token: number for token, number in vocabulary.items() if token not in special}
    byte_ids: dict[int, int] = {}
    if model.get("byte_fallback"):
        byte_ids = {int(found[1], 16): ordinary[token] for token in ordinary if (found := BYTE_PIECE.fullmatch(token))}
        ordinary = {token: number for token, number in ordinary.items() if not BYTE_PIECE.fullmatch(token)}
        if 0 < len(byte_ids) < 256:
            raise refused(name, f"byte fallback has {len(byte_ids)} of 256 bytes")
    for token in special:
        if token in vocabulary and SPACE in token:
            raise refused(name, f"the added token '{token}' is also a piece, where '{SPACE}' represents a space")
    unknown = vocabulary.get(model["unk_token"]) if model.get("unk_token") else None
    if len(byte_ids) < 256 and unknown is not None and not model.get("fuse_unk"):
        raise refused(name, "each unknown character has a separate id (fuse_unk is false)")
    applied = applied_merges(merges, list)
    made = {left + right for left, right in applied}
    pieces = {token: number for token, number in ordinary.items() if len(token) == 1 or token in made}
    lost = {token: number for token, number in ordinary.items() if token not in pieces}
    if model.get("ignore_merges") and (lost or byte_ids):
        token = next(iter(lost), "<0x00>")
        raise refused(name, f"no merge makes the token '{token}', and ignore_merges gives it to words that spell it")
    if unknown is not None and not byte_ids and model["unk_token"] in pieces:
        raise refused(name, f"the unknown token '{model['unk_token']}' is also a piece of text")
    assert words.spaces is not None
    return of_pieces(
        name,
        words.pretokeniser,
        applied,
        pieces,
        byte_ids,
        unknown,
        words.spaces,
        special,
        {number: token.replace(SPACE, " ").encode("utf-8") for token, number in lost.items()},
        {"format": "tokenizer.json"},
    )


def write(codes: Codes, numbering: Numbering) -> dict[str, Any]:
    """Return the content of a ``tokenizer.json`` of characters with the ids of imported codes, but no added tokens.

    Spaces are treated by Metaspace or, if one is added even before a text that begins with one, by LLaMA's normaliser.

    Raises MTScaffoldError for scaffold tokens other than parts of characters, for codes that were not imported from
    Metaspace or SentencePiece, and if text that spells a special or unused token would get its id.
    """
    normaliser, pretokeniser = _stages(codes, numbering)
    pieces = pieces_of(codes, numbering, "tokenizers")
    check_merges(codes, pieces, "tokenizers")
    named = {f"<0x{byte:02X}>": number for byte, number in pieces.byte_ids.items()}
    for number, text in pieces.others.items():
        named[text if text not in pieces.ids else text.replace(SPACE, " ")] = number
    named |= numbering.special
    vocabulary = pieces.ids | named
    # tokenizers gives text the id of a name that its merges make, or that is one character and not an added token.
    token = next(
        (name for name in named if name in pieces.ids or (len(name) == 1 and name not in numbering.in_text)), None
    )
    if token or len(vocabulary) < len(pieces.ids) + len(pieces.byte_ids) + len(pieces.others) + len(numbering.special):
        why = f"text that spells {token!r} would get its id" if token else "two ids have one name"
        raise MTScaffoldError(
            f"{codes.name}: {why} in tokenizer.json; use the tokenizer of mt_scaffold.integrations.transformers"
        )
    unknown = numbering.special.get("<unk>") if numbering.unknown is None else numbering.unknown
    decoders: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}]
    decoders += [{"type": "ByteFallback"}] if pieces.byte_ids else []
    decoders += [{"type": "Fuse"}]
    if numbering.spaces is not None and numbering.spaces.prefix != "none":
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    merges = [list(_pair(each)) for each in pieces.merges]
    return content_of(
        normaliser,
        pretokeniser,
        {"type": "Sequence", "decoders": decoders},
        vocabulary,
        merges,
        unk_token=next((token for token, number in vocabulary.items() if number == unknown), None),
        fuse_unk=unknown is not None,
        byte_fallback=bool(pieces.byte_ids),
    )


def content_of(
    normaliser: Mapping[str, Any] | None,
    pretokeniser: Mapping[str, Any] | None,
    decoder: Mapping[str, Any] | None,
    vocabulary: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    **settings: Any,
) -> dict[str, Any]:
    """Return the content of a ``tokenizer.json`` of BPE with its stages and the settings of its model."""
    unset = dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"))
    off = dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False)
    ids = dict(sorted(vocabulary.items(), key=lambda each: each[1]))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normaliser,
        "pre_tokenizer": pretokeniser,
        "post_processor": None,
        "decoder": decoder,
        "model": {"type": "BPE", **unset, **off, **settings, "vocab": ids, "merges": merges},
    }


def _stages(codes: Codes, numbering: Numbering) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the normaliser and the pre-tokeniser."""
    spaces = numbering.spaces
    assert spaces is not None
    splits = codes.header.pretokeniser == "metaspace"
    if spaces.prefix != "always":
        scheme = "never" if spaces.prefix == "none" else "always" if spaces.each else "first"
        return None, {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": splits}
    if splits or (numbering.in_text and not spaces.each):
        raise MTScaffoldError(
            f"{codes.name}: a space comes before every text, but not after special tokens, as in SentencePiece; export "
            "to that instead"
        )
    return {"type": "Sequence", "normalizers": _LLAMA}, None


def original(path: PathLike, imported: Imported) -> Original:
    """Return the encoder of tokenizers for the file."""
    content = json.loads(decode(read_file(path), shown(path)))
    tokenizer = loaded({**content, "truncation": None, "padding": None})
    return lambda text: ids_of(tokenizer, [text])[0]


def loaded(content: Mapping[str, Any]) -> Any:
    """Return the library's object of the content of a ``tokenizer.json``; raise MTScaffoldError without the library."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MTScaffoldError(
            "this needs the package tokenizers, which is not installed; run pip install '.[vocabularies]'"
        ) from None
    # From version 1, the library reads files only.
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(content))
        file.flush()
        return Tokenizer.from_file(file.name)


def ids_of(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the library's ids of texts. Raises MTScaffoldError if its version cannot do what the file says."""
    try:
        return [list(each.ids) for each in tokenizer.encode_batch(texts, add_special_tokens=False)]
    except ValueError as error:
        from tokenizers import __version__

        reason = f"the installed tokenizers {__version__} cannot apply it ({error}); check with a version before 1"
        raise MTScaffoldError(reason) from None
