"""``CODES.manifest.json``: the ids of imported codes in the program that they come from, and how it prepares text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, AnyStr, Self

from mt_scaffold import _core
from mt_scaffold.codes import MANIFEST_KIND, MANIFEST_REMEDY, Codes
from mt_scaffold.corpus.files import PathLike, open_output, shown
from mt_scaffold.corpus.text import bytes_to_notation, is_base_symbol, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.manifest import (
    CodesUsed,
    Manifest,
    codes_used,
    manifest_path,
    raw_digest,
    read_manifest,
    write_manifest,
)

_SENTENCEPIECE = "sentencepiece"
# Decoding has a row for every id up to the largest.
_MOST_IDS = 2**24
# Whether a space comes before a text, in the order of the core.
PREFIXES = ("none", "always", "unless-there")


@dataclass(frozen=True)
class Spaces:
    """How SentencePiece prepares text: U+2581 means a space.

    prefix: whether a space is put before the text, and removed by decoding: "none", "always", or "unless-there", if the
    text does not begin with one. each: whether that also holds for the text after a special token.
    """

    prefix: str = "none"
    each: bool = False

    def prepared(self, text: AnyStr) -> AnyStr:
        """Return a text, without special tokens, as the pre-tokeniser of the codes takes it."""
        if not text:
            return text
        prefix = PREFIXES.index(self.prefix)
        if isinstance(text, bytes):
            return _core.with_spaces(text, prefix)
        return _core.with_spaces(text.encode("utf-8", "surrogatepass"), prefix).decode("utf-8", "surrogatepass")

    def taken_off(self, text: bytes) -> bytes:
        """Return a decoded text without the space that was put before it."""
        return text if self.prefix == "none" else text.removeprefix(b" ")


@dataclass(frozen=True)
class Numbering:
    """The ids of codes with a pre-tokeniser.

    ids: of the 256 bytes and then of the normal merged tokens by rank; -1 for a byte that has none. special: the id of
    each special token. others: ids used only in decoding, with their bytes. unknown: the id of bytes that have none,
    once for several in a row. spaces: None if text is taken as it is. source: the format and name of the imported file,
    and the encoding's name if known. in_text: the special tokens that it finds in text. shown: those of them that
    decoded text keeps when special tokens are left out.
    """

    ids: tuple[int, ...]
    special: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[int, bytes] = field(default_factory=dict)
    unknown: int | None = None
    spaces: Spaces | None = None
    source: Mapping[str, str] = field(default_factory=dict)
    in_text: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def unknown_token(self) -> str:
        """The name of the token for unknown bytes."""
        return next((token for token, number in self.special.items() if number == self.unknown), "<unk>")

    @property
    def n_vocab(self) -> int:
        """One more than the largest id."""
        return max((*self.ids, *self.special.values(), *self.others, -1 if self.unknown is None else self.unknown)) + 1

    @property
    def after_prefix(self) -> tuple[str, ...]:
        """The special tokens that the space before a text comes before, too: SentencePiece's symbols, a part of it."""
        spaces = self.spaces or Spaces()
        return self.in_text if spaces.prefix == "always" and not spaces.each else ()

    def fault(self, codes: Codes) -> str | None:
        """Return what is wrong with the ids, or None: each token must have its own, and none may be too large.

        The core checks that there are as many as tokens.
        """
        # -1: no id, for tokens of the codes only.
        numbers = [number for number in self.ids if number != -1]
        numbers += [*self.others, *self.special.values(), *([] if self.unknown is None else [self.unknown])]
        once = len(numbers) - (self.unknown is not None)
        if not all(0 <= number < _MOST_IDS for number in numbers) or len({*numbers[:once]}) < once:
            return self._wrong_id(ordinary_tokens(codes))
        if "" in self.special:
            return f"the special token with the id {self.special['']} is empty"
        if missing := [token for token in (*self.in_text, *self.shown) if token not in self.special]:
            return f"'{missing[0]}' is not a special token"
        return None

    def _wrong_id(self, tokens: Sequence[str]) -> str:
        listed = [(number, token) for number, token in zip(self.ids, tokens, strict=False) if number != -1]
        listed += [(number, bytes_to_notation(token)) for number, token in self.others.items()]
        listed += [(number, token) for token, number in self.special.items()]
        taken: dict[int, str] = {}
        for number, token in listed:
            if not 0 <= number < _MOST_IDS:
                return f"'{token}' has the id {number}, which is not from 0 to {_MOST_IDS - 1:,}"
            if number in taken:
                return f"'{taken[number]}' and '{token}' have one id, {number}"
            taken[number] = token
        if self.unknown is not None and not 0 <= self.unknown < _MOST_IDS:
            return f"the id of unknown bytes is {self.unknown}, which is not from 0 to {_MOST_IDS - 1:,}"
        return f"there are {len(self.ids):,} ids for {len(tokens):,} tokens"

    def for_core(self, special: Mapping[str, int]) -> dict[str, Any]:
        """Return the arguments of the core's ``Ids``; special: all special tokens, in the order of their list."""
        spaces = self.spaces or Spaces()
        return {
            "numbers": [*self.ids, *special.values()],
            "others": list(self.others.items()),
            "unknown": -1 if self.unknown is None else self.unknown,
            "metaspace": self.spaces is not None,
            "prefix": PREFIXES.index(spaces.prefix),
            "prefix_each": spaces.each,
            "after_prefix": [self.special[token] for token in self.after_prefix],
        }

    def manifest(self, codes: Codes) -> Manifest:
        """Return the manifest of these codes, without the digest of their file."""
        return Manifest(
            MANIFEST_KIND,
            {},
            {
                "codes": _segmenting(codes.used())._asdict(),
                "source": dict(self.source),
                "unknown": self.unknown,
                # With the key "words" of the first manifests, so that the digest of the ids is the same.
                "spaces": None if self.spaces is None else {**asdict(self.spaces), "words": False},
                "special_tokens": dict(self.special),
                "in_text": list(self.in_text),
                "shown": list(self.shown),
                "others": {str(number): bytes_to_notation(token) for number, token in self.others.items()},
                "ids": list(self.ids),
            },
        )

    @classmethod
    def read(cls, path: PathLike, codes: Codes) -> Self:
        """Read the manifest of these codes; raise MTScaffoldError if it is malformed or of other codes."""
        return cls.of(read_manifest(path, MANIFEST_KIND, MANIFEST_REMEDY), shown(path), codes)

    @classmethod
    def of(cls, manifest: Manifest, name: str, codes: Codes) -> Self:
        """Return the ids in the manifest called ``name`` of these codes; raises as ``read`` does."""
        if not codes_used(name, manifest, MANIFEST_REMEDY).same_as(_segmenting(codes.used())):
            raise MTScaffoldError(f"{name}: has the ids of other codes than {codes.name}; {MANIFEST_REMEDY}")
        content = manifest.content
        try:
            spaces = content["spaces"] and dict(content["spaces"])
            if spaces and spaces.pop("words", False):
                raise ValueError("a space before every word, as in YouTokenToMe, which is no longer imported")
            from_sentencepiece = content["source"].get("format") == _SENTENCEPIECE
            found = cls(
                tuple(content["ids"]),
                dict(content["special_tokens"]),
                {int(number): notation_to_bytes(token) for number, token in content["others"].items()},
                content["unknown"],
                None if spaces is None else Spaces(**spaces),
                dict(content["source"]),
                tuple(content["in_text"]),
                # The first manifests lack it: SentencePiece shows its symbols.
                tuple(content.get("shown", content["in_text"] if from_sentencepiece else ())),
            )
            numbers = [*found.ids, *found.special.values(), *([] if found.unknown is None else [found.unknown])]
            if not {*map(type, numbers)} <= {int}:
                raise ValueError("ids must be whole numbers")
            if found.spaces is not None:
                PREFIXES.index(found.spaces.prefix)
            "".join((*found.special, *found.in_text, *found.shown)).encode("utf-8")
            fault = found.fault(codes)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MTScaffoldError(f"{name}: malformed ({error!r}); {MANIFEST_REMEDY}") from None
        if fault is not None:
            raise MTScaffoldError(f"{name}: {fault}; {MANIFEST_REMEDY}")
        return found

    def after(self, codes: Codes, changed: Codes) -> tuple[Numbering, list[int | None]]:
        """Return the ids after surgery, and for each old id the new one, or None if its token is gone.

        codes, changed: before and after. The remaining ids keep their order and close the gaps of removed ones; those
        of new tokens follow.
        """
        before = dict(zip(ordinary_tokens(codes), self.ids, strict=True))
        now = ordinary_tokens(changed)
        kept = {number for token in now if (number := before.get(token)) is not None}
        gone = {number for number in before.values() if number >= 0} - kept
        new: dict[int, int] = {}
        for number in range(self.n_vocab):
            if number not in gone:
                new[number] = len(new)
        new[-1] = -1
        ids, total = [], len(new) - 1
        for token in now:
            if token in before:
                ids.append(new[before[token]])
            else:
                ids.append(total)
                total += 1
        changed_ids = replace(
            self,
            ids=tuple(ids),
            special={token: new[number] for token, number in self.special.items()},
            others={new[number]: token for number, token in self.others.items()},
            unknown=None if self.unknown is None else new[self.unknown],
        )
        return changed_ids, [new.get(number) for number in range(self.n_vocab)]


def ordinary_tokens(codes: Codes, merges: int = -1) -> list[str]:
    """Return the tokens of codes of bytes without ``</w>``, in the order of their ids, in GPT-2's notation."""
    bytes_ = [bytes_to_notation(bytes((byte,))) for byte in range(256)]
    made = (merge.token for merge in codes.first(merges) if merge.normal)
    return list(dict.fromkeys([*bytes_, *(token for token in made if not is_base_symbol(token, False))]))


def numbering_of(codes: Codes) -> Numbering | None:
    """Return the ids of imported codes; None for others. Raises as ``Numbering.read`` does."""
    return None if codes.ids is None else Numbering.of(codes.ids, manifest_path(codes.name), codes)


def _segmenting(used: CodesUsed) -> CodesUsed:
    """Return the codes without their ids, which are in the manifest itself."""
    return used._replace(ids=None)


def write_numbered(codes: Codes, numbering: Numbering, path: PathLike) -> None:
    """Write codes and, next to them, their ids."""
    with open_output(path) as stream:
        stream.write(codes.text)
    named = Codes(codes.text, os.path.basename(path))
    manifest = numbering.manifest(named)
    write_manifest(manifest_path(path), manifest._replace(files={named.name: raw_digest(path)}))


def refuse_imported(numbering: Numbering | None, name: str, what: str) -> None:
    """Raise UsageError for imported codes given to ``what``, which numbers tokens by rank; name: of the codes."""
    if numbering is not None:
        raise UsageError(
            f"{name}: {what} numbers tokens by rank, but imported codes have the ids of their program; remove their "
            "manifest to number these by rank too"
        )
