"""Clean messages and documents into the segments of a corpus: markup, accelerators, language, keys of duplicates."""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

# The language of shorter segments is not checked: more would be rejected wrongly than rightly.
CHECKED_WORDS = 6
CHECKED_CHARACTERS = 200
# The languages to tell apart: English, which untranslated messages are in, and similar languages in Latin script.
CANDIDATES = ("en", "de", "fr", "it", "es", "nl", "pt")
# A file is used if at least this share of its checked segments is in its language.
FILE_SHARE = 0.7

# The size of caches: the same text is looked up several times.
REMEMBERED = 1 << 21

MOST_WORDS = 150
MOST_RATIO = 3.0

_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)((?:\s[^<>]*)?)(/?)>")
# Tags that have no closing partner.
_LONE = frozenset("br hr img li p".split())
_BREAKS = frozenset("br div h1 h2 h3 h4 li p td tr".split())
_ENTITY = re.compile(
    r"&(?:#\d+|#[xX][0-9a-fA-F]+|lt|gt|amp|quot|apos|nbsp|hellip|ndash|mdash|copy|reg|[aouAOU]uml|szlig);"
)
_ACCELERATED = re.compile(r"(?<![^\w\s(\[\"'«„“])([_&~])(?=\w)(?!\w+;)")
_INVISIBLE = re.compile(
    r"[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"
)
# Control characters that a program left escaped; C:\\new is a name.
_ESCAPED = re.compile(r"(?<!:)\\[nrt](?![a-z])")
_IDENTIFIER = re.compile(r"\S*(?:[A-Za-z0-9][_.:/=@\\][A-Za-z0-9]|[a-z][A-Z]|^[-/$%{<])\S*")
_WORD = re.compile(r"(?:[^\w\s]|[\d_])*+[^\W\d_]\S*+")
_OTHER_SCRIPT = re.compile(r"(?![\u0000-\u024f\u1e00-\u1eff])[^\W\d_]")
_NOT_LETTERS = re.compile(r"[\W\d_]+")


def without_accelerator(source: str, target: str) -> tuple[str, str]:
    """Remove the mark of the key that opens a menu entry: ``_File``, ``E_xit``, ``&File`` or ``~File``.

    Only a mark that is the single one of its kind in the text is removed. In a word that both sides share, it is part
    of a name (``file_name``) and stays.
    """

    def marked(text: str) -> tuple[str, str] | None:
        found = [match for match in _ACCELERATED.finditer(text) if text.count(match[1]) == 1]
        if len(found) != 1:
            return None
        position = found[0].start()
        if text[max(position - 1, 0)].isupper() and text[position + 1].isupper():  # R&D
            return None
        start = text.rfind(" ", 0, position) + 1
        return text[:position] + text[position + 1 :], text[start:].split(" ")[0]

    one, other = marked(source), marked(target)
    if one and other and one[1] == other[1] and not one[1].startswith(("_", "&", "~")):
        return source, target
    return one[0] if one else source, other[0] if other else target


def without_context(source: str, target: str) -> str:
    """Return a message without the context that some catalogues put before it: ``menu|Open``, ``female^Elf``."""
    source = re.sub(r"\A_: .*?\n", "", source, flags=re.DOTALL)
    for mark in "|^":
        if mark in source and mark not in target and not re.search(r"[$%{]", source.partition(mark)[0]):
            source = source.rpartition(mark)[2]
    return source


def plain(text: str) -> str:
    """Return ``text`` as one line without markup, entities and invisible characters.

    A name in angle brackets is markup if it is closed (``<b>…</b>``, ``<br/>``). Otherwise it is a placeholder, as in
    ``copy <file>``, and stays, like ``%s`` and ``{name}``.
    """
    closed = {match[2].lower() for match in _TAG.finditer(text) if match[1]} | _LONE

    def tag(match: re.Match[str]) -> str:
        name = match[2].lower()
        if name in closed or match[4]:
            return " " if name in _BREAKS else ""
        return match[0]

    text = _TAG.sub(tag, text)
    text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    text = _INVISIBLE.sub("", _ESCAPED.sub(" ", text))
    return " ".join(unicodedata.normalize("NFC", text).split())


def paragraphs(source: str, target: str) -> list[tuple[str, str]]:
    """Split a message at blank lines if both sides have the same number of paragraphs."""
    sources, targets = (re.split(r"\n[ \t]*\n", text.strip("\n")) for text in (source, target))
    return list(zip(sources, targets, strict=True)) if len(sources) == len(targets) else [(source, target)]


def laid_out(text: str) -> bool:
    """Return whether ``text`` is set in columns, as the options in a program's --help are."""
    return len(re.findall(r"\S(?: {3,}|\t)\s*\S|\n {2,}\S", text)) >= 2


def words(text: str) -> int:
    """Return the number of words in ``text``, which are separated by blanks and contain a letter."""
    return len(_WORD.findall(text))


def problem(source: str, target: str) -> str | None:
    """Return why a pair is not a translation to learn from; None if it may be one."""
    if not source or not target:
        return "empty"
    if not words(source) or not words(target):
        return "no letters"
    if source == target:
        return "not translated"
    if _IDENTIFIER.fullmatch(source) or _IDENTIFIER.fullmatch(target):
        return "a name, path or option"
    if max(len(source.split()), len(target.split())) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    longer, shorter = max(len(source), len(target)), min(len(source), len(target))
    if longer >= 20 and longer > MOST_RATIO * shorter:
        return f"one side over {MOST_RATIO:g} times as long"
    return None


@lru_cache(1)
def _identifier() -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(CANDIDATES))
    return identifier


@lru_cache(REMEMBERED)
def _language(text: str) -> str:
    others = len(_OTHER_SCRIPT.findall(text))
    if others > (len(_NOT_LETTERS.sub("", text)) / 3):
        return "another script"
    return str(_identifier().classify(text)[0])


def in_language(text: str, language: str) -> bool | None:
    """Return whether py3langid finds ``text`` to be in ``language``, of CANDIDATES; None if it has too few words.

    It sees the first CHECKED_CHARACTERS. Text with over a third of its letters in another script is in none of them.
    """
    return None if words(text) < CHECKED_WORDS else _language(text[:CHECKED_CHARACTERS]) == language


def mostly_in(checks: Sequence[bool | None]) -> bool:
    """Return whether a file with these results of ``in_language`` is in its language; True if all are None."""
    known = [check for check in checks if check is not None]
    return not known or sum(known) >= FILE_SHARE * len(known)


@lru_cache(REMEMBERED)
def key(text: str) -> bytes:
    """Return 8 bytes that are equal for texts with the same letters, ignoring case, digits and punctuation."""
    return hashlib.blake2b(_NOT_LETTERS.sub("", text.casefold()).encode("utf-8", "replace"), digest_size=8).digest()
