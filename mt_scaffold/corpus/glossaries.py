"""Isolating glossary entries inside words, for ``--glossaries``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import AnyStr, Generic

from mt_scaffold.corpus.text import like
from mt_scaffold.errors import UsageError
from mt_scaffold.options import refuse_text


class GlossaryIsolator(Generic[AnyStr]):
    """Isolate glossary entries (words or regular expressions) inside words, as subword-nmt does."""

    def __init__(self, glossaries: Sequence[AnyStr]) -> None:
        refuse_text(glossaries=glossaries)
        self._patterns: list[tuple[re.Pattern[AnyStr], re.Pattern[AnyStr], re.Pattern[AnyStr]]] = []
        for glossary in glossaries:
            try:
                inside = re.compile(glossary)
                whole, splitting = around(glossary, "^", "$"), around(glossary, "(", ")")
                self._patterns.append((re.compile(whole), inside, re.compile(splitting)))
            except re.error as error:
                shown = glossary if isinstance(glossary, str) else glossary.decode("utf-8", "replace")
                raise UsageError(f"the glossary '{shown}' is not a regular expression: {error}") from error
            if inside.groups:
                shown = glossary if isinstance(glossary, str) else glossary.decode("utf-8", "replace")
                raise UsageError(
                    f"the glossary '{shown}' has a capturing group, which would repeat text; write (?:...) instead"
                )
        self._entry: re.Pattern[AnyStr] = re.compile(around(like(glossaries[0], "|").join(glossaries), "^(", ")$"))

    def __call__(self, word: AnyStr) -> list[tuple[AnyStr, bool]]:
        """Return the parts of a word in order, each with whether it is a glossary entry."""
        parts = [word]
        for whole, inside, splitting in self._patterns:
            isolated = []
            for part in parts:
                if whole.match(part) or not inside.search(part):
                    isolated.append(part)
                else:
                    isolated += [piece for piece in splitting.split(part) if piece]
            parts = isolated
        return [(part, bool(self._entry.match(part))) for part in parts]


def around(pattern: AnyStr, before: str, after: str) -> AnyStr:
    """Return a pattern, of text or bytes, between two others."""
    return like(pattern, before) + pattern + like(pattern, after)
