"""Text of the files in packages: gettext catalogues, DocBook and Mallard, HTML, manual pages, descriptions.

A document becomes blocks (tag, id, text), which are aligned with those of its translation; a catalogue has pairs.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from typing import Any

import lxml.etree
import lxml.html
import polib

Block = tuple[str, str, str]
Pair = tuple[str, str]

# Elements of DocBook, Mallard and HTML that begin and end a block of text.
_BLOCKS = frozenset(
    "para simpara title subtitle term entry p h1 h2 h3 h4 h5 h6 li td th dt dd item div section page article chapter "
    "sect1 sect2 sect3 sect4 sect5 refsect1 refsect2 listitem varlistentry variablelist itemizedlist orderedlist note "
    "tip warning caution important table informaltable tr row thead tbody tgroup ul ol dl list steps terms desc figure "
    "blockquote caption guide question answer qandaset qandaentry procedure step body html center cite subject".split()
)
# Elements whose text is not prose, or not part of the document.
_SKIPPED = frozenset(
    "script style head pre programlisting screen literallayout synopsis cmdsynopsis code_block indexterm info "
    "articleinfo bookinfo chapterinfo sect1info refentryinfo legalnotice credit media mediaobject screenshot remark "
    "nav header footer aside svg form textarea revhistory".split()
)
_SKIPPED_CLASSES = re.compile(r"\b(?:navheader|navfooter|nav|navigation|footer|toc|related|sphinxsidebar|headerlink)\b")
# Inside these, Mallard's <code> is a listing; elsewhere it is part of a line.
_HOLD_LISTINGS = frozenset("page section listing example note item".split())
_PREDEFINED = frozenset({"amp", "lt", "gt", "quot", "apos"})


def catalogue(content: bytes) -> list[Pair]:
    """Return the pairs (message, translation) of a compiled gettext catalogue, without its header.

    A message with a plural gives two pairs: the singular with the first form, the plural with the last.
    Raises ValueError if it is not a catalogue.
    """
    try:
        entries = polib.mofile(content)
    except Exception as error:  # a broken file can raise anything
        raise ValueError(f"not a gettext catalogue ({error})") from error
    pairs = []
    for entry in entries:
        forms = entry.msgstr_plural
        if forms:
            pairs.append((entry.msgid, forms[min(forms)]))
            pairs.append((entry.msgid_plural, forms[max(forms)]))
        elif entry.msgid:
            pairs.append((entry.msgid, entry.msgstr))
    return pairs


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def xml(content: bytes) -> list[Block]:
    """Return the blocks of a DocBook or Mallard document. Raises ValueError if it cannot be parsed.

    An entity that the file does not declare (&kde;) is replaced by its name, which is the same in every language.
    """
    text = _decoded(content)
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text.removeprefix("\ufeff"))
    declared: dict[str, str] = dict(re.findall(r"<!ENTITY\s+([\w.-]+)\s+\"([^\"<]*)\"\s*>", text))
    text = re.sub(r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", "", text, count=1, flags=re.DOTALL)

    def entity(match: re.Match[str]) -> str:
        name = match[1]
        if name in _PREDEFINED:
            return match[0]
        value = declared.get(name, name)
        return re.sub(r"&([\w.-]+);", lambda inner: str(inner[1]), value).replace("&", "&amp;")

    text = re.sub(r"&([A-Za-z][\w.-]*);", entity, text)
    try:
        root = lxml.etree.fromstring(text.encode(), lxml.etree.XMLParser(resolve_entities=False, no_network=True))
    except lxml.etree.XMLSyntaxError as error:
        raise ValueError(f"not XML ({error})") from error
    return _blocks(root)


def html(content: bytes) -> list[Block]:
    """Return the blocks of an HTML document. Raises ValueError if it cannot be parsed."""
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", _decoded(content).removeprefix("\ufeff"))
    try:
        root = lxml.html.document_fromstring(text)
    except (lxml.etree.LxmlError, ValueError, AssertionError) as error:
        raise ValueError(f"not HTML ({error})") from error
    return _blocks(root)


def _blocks(root: Any) -> list[Block]:
    blocks: list[Block] = []
    buffer: list[str] = []

    def flush(tag: str, identifier: str) -> None:
        text = " ".join("".join(buffer).split())
        buffer.clear()
        if text:
            blocks.append((tag, identifier, text))

    def walk(element: Any, tag: str, identifier: str) -> None:
        for child in element:
            if not isinstance(child.tag, str):  # a comment
                buffer.append(child.tail or "")
                continue
            name = lxml.etree.QName(child).localname
            listing = name == "code" and lxml.etree.QName(element).localname in _HOLD_LISTINGS
            if listing or name in _SKIPPED or _SKIPPED_CLASSES.search(child.get("class") or ""):
                flush(tag, identifier)
            elif name in _BLOCKS:
                flush(tag, identifier)
                own = child.get("id") or ""
                buffer.append(child.text or "")
                walk(child, name, own)
                flush(name, own)
            else:
                buffer.append(" " if name == "br" else "")
                buffer.append(child.text or "")
                walk(child, tag, identifier)
            buffer.append(child.tail or "")

    buffer.append(root.text or "")
    walk(root, lxml.etree.QName(root).localname, "")
    flush(lxml.etree.QName(root).localname, "")
    return blocks


_FONT = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\s[+-]?\d|\\[&/,|^%:)]|\\c$")
_CHARACTERS = {r"\-": "-", r"\ ": " ", r"\~": " ", r"\e": "\\", r"\'": "'", r"\`": "`", r"\(aq": "'", r"\(dq": '"',
               r"\(bu": "•", r"\(em": "—", r"\(en": "–", r"\(co": "©", r"\(lq": "“", r"\(rq": "”",
               r"\0": " "}  # fmt: skip
_INLINE = frozenset("B I BI BR IB IR RB RI SM SB".split())
_BREAKS = frozenset("PP P LP TP IP HP SH SS br sp TQ RS RE Pp Bl It El Sh Ss".split())


def manual_page(content: bytes) -> list[Block]:
    """Return the paragraphs of a gzipped manual page in man macros, from its text lines and font macros.

    Unfilled text, such as examples (.nf to .fi), and all other macros are left out. Raises ValueError for a broken
    file.
    """
    try:
        lines = _decoded(gzip.decompress(content)).split("\n")
    except (OSError, EOFError) as error:
        raise ValueError(f"not gzip ({error})") from error
    blocks: list[Block] = []
    paragraph: list[str] = []
    filled = True

    def flush() -> None:
        text = " ".join(" ".join(paragraph).split())
        paragraph.clear()
        if text:
            blocks.append(("p", "", text))

    for line in lines:
        if line.startswith((".", "'")):
            macro, _, rest = line[1:].strip().partition(" ")
            if macro in ("nf", "EX", "TS", "Bd"):
                flush()
                filled = False
            elif macro in ("fi", "EE", "TE", "Ed"):
                paragraph.clear()
                filled = True
            elif macro in _INLINE:
                parts = re.findall(r'"([^"]*)"|(\S+)', rest)
                joined = ("" if len(macro) == 2 and macro not in ("SM", "SB") else " ").join(a or b for a, b in parts)
                paragraph.append(_roff(joined))
            elif macro in _BREAKS:
                flush()
        elif not line.strip() or line.startswith(" "):
            flush()
            if filled and line.strip():
                paragraph.append(_roff(line))
        else:
            paragraph.append(_roff(line))
        if not filled:
            paragraph.clear()
    flush()
    return blocks


def _roff(line: str) -> str:
    line = _FONT.sub("", line)
    for written, character in _CHARACTERS.items():
        line = line.replace(written, character)
    return re.sub(r"\\\[u([0-9A-F]{4,5})\]", lambda match: chr(int(match[1], 16)), line)


def description(text: str) -> list[Block]:
    """Return the title, paragraphs and items of a package's description in the form of the index.

    Preformatted lines (two blanks and no bullet) are left out.
    """
    title, *lines = text.split("\n")
    blocks: list[Block] = [("title", "", title.strip())]
    tag, current = "p", list[str]()

    def flush() -> None:
        nonlocal tag
        if current:
            blocks.append((tag, "", " ".join(" ".join(current).split())))
        current.clear()
        tag = "p"

    for line in lines:
        line = line[1:]
        if line.strip() in (".", ""):
            flush()
        elif match := re.match(r"\s*(?:[*+•-]|\d+[.)])\s+(.*)", line):
            flush()
            tag = "item"
            current.append(match[1])
        elif line.startswith(" ") and tag != "item":
            flush()
        else:
            current.append(line)
    flush()
    return blocks


def aligned(source: Sequence[Block], target: Sequence[Block]) -> list[tuple[str, str]]:
    """Return the texts of corresponding blocks: all if the sequences of tags are equal, else those with the same id."""
    if [block[0] for block in source] == [block[0] for block in target]:
        return [(each[2], other[2]) for each, other in zip(source, target, strict=True)]

    def by_id(blocks: Sequence[Block]) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for tag, identifier, text in blocks:
            if identifier:
                found.setdefault((tag, identifier), []).append(text)
        return found

    sources, targets = by_id(source), by_id(target)
    return [
        (texts[0], targets[key][0])
        for key, texts in sources.items()
        if len(texts) == 1 and len(targets.get(key, [])) == 1
    ]
