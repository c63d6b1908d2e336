"""Text with markup → plain text: the two formats in which the TED talks of IWSLT are distributed.

Lines are kept, dropped and trimmed as fairseq's ``examples/translation/prepare-iwslt14.sh`` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from mt_scaffold.errors import MTScaffoldError

Markup = Literal["ted", "seg"]

_DROPPED = (b"url", b"talkid", b"keywords")
_UNWRAPPED = (b"title", b"description")
_TAG = re.compile(rb"</?(" + b"|".join(_DROPPED + _UNWRAPPED) + rb")>")
_ELEMENT = re.compile(rb"\s*<(" + b"|".join(_DROPPED + _UNWRAPPED) + rb")>(.*)</\1>\s*", re.DOTALL)
_OTHER_TAG = re.compile(rb"\s*(</?[A-Za-z][^<>]*>)")
_SEGMENT = re.compile(rb'\s*<seg id="\d+">(.*)</seg>\s*', re.DOTALL)


def plain_lines(lines: Iterable[bytes], markup: Markup, name: str, others: Counter[str]) -> Iterator[bytes]:
    """Yield the sentences of a text with markup, one line each.

    ``ted`` (``train.tags.*``): a line is a sentence, unless it is the url, talkid or keywords of a talk; its title and
    description are sentences. ``seg`` (``*.xml``): the content of ``<seg id="n">`` is a sentence, without the white
    space at its ends; entities stay as they are. ``name`` is for errors. A line of ``ted`` that begins with any other
    tag is a sentence too, as in the published script; ``others`` counts such lines by tag.
    Raises MTScaffoldError, with the line number, if a tag is not closed on its line or has text around it; also if a
    text has no segment.
    """
    return _ted(lines, name, others) if markup == "ted" else _segments(lines, name)


def _ted(lines: Iterable[bytes], name: str, others: Counter[str]) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        tag = _TAG.search(line)
        if tag is None:
            if other := _OTHER_TAG.match(line):
                others[other[1].decode("utf-8", "replace").split()[0].strip("</>")] += 1
            yield line
            continue
        element = _ELEMENT.fullmatch(line)
        if element is None or _TAG.search(element[2]):
            shown = tag[0].decode()
            raise MTScaffoldError(
                f"{name}: line {number}: {shown} is not one element alone on its line, "
                f"<{tag[1].decode()}>...</{tag[1].decode()}>; restore the file"
            )
        if element[1] in _UNWRAPPED:
            yield element[2] + b"\n"


def _segments(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    count = 0
    for number, line in enumerate(lines, 1):
        if b"<seg" not in line and b"</seg>" not in line:
            continue
        segment = _SEGMENT.fullmatch(line)
        if segment is None or b"<seg" in segment[1] or b"</seg>" in segment[1]:
            raise MTScaffoldError(
                f'{name}: line {number}: not one segment alone on its line, <seg id="n">...</seg>; restore the file'
            )
        count += 1
        yield segment[1].strip() + b"\n"
    if not count:
        raise MTScaffoldError(f'{name}: no <seg id="n"> in it; correct its name or its markup in the configuration')
