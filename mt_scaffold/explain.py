"""How a word is segmented: the merges one by one, what was scaffolding, what was demolished into what.

The steps are taken by the plain Python twin (``mt_scaffold.reference``), which the native core is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mt_scaffold.codes import CodesSource, read_codes
from mt_scaffold.errors import UsageError
from mt_scaffold.reference import ReferenceBPE, base_symbols, replace_all
from mt_scaffold.text import SEPARATOR


@dataclass(frozen=True)
class Step:
    """One merge: its number in the codes file (1 is the first), the two symbols, whether what they make is scaffold,
    and the word's symbols after it."""

    number: int
    left: str
    right: str
    scaffold: bool
    symbols: list[str]


@dataclass(frozen=True)
class Demolition:
    """A scaffold token that remained after the last merge, and what it is demolished into.

    parts: its two children; a child that is scaffold too is a Demolition itself.
    """

    token: str
    parts: tuple[str | Demolition, str | Demolition]

    @property
    def result(self) -> list[str]:
        """The normal tokens and base symbols it becomes."""
        return [symbol for part in self.parts for symbol in (part.result if isinstance(part, Demolition) else [part])]


@dataclass(frozen=True)
class Explanation:
    """The way of one word: base symbols, merges, what was demolished, and the subwords as apply-bpe prints them.

    ``scaffolding`` are the symbols after the last merge, before demolishing.
    """

    word: str
    base: list[str]
    steps: list[Step]
    scaffolding: list[str]
    demolitions: list[Demolition]
    subwords: list[str]


class Explainer:
    """Explains words with the codes of one file (a path or its bytes).

    merges: use only the first so many; -1 for all. separator: what every subword but a word's last ends in.
    Raises MTScaffoldError where the codes are malformed or missing.
    """

    def __init__(self, codes: CodesSource, merges: int = -1, separator: str = SEPARATOR) -> None:
        listed = read_codes(codes, merges)
        marked = {merge.token: merge.scaffold for merge in listed}
        self._twin = ReferenceBPE(
            [(merge.left, merge.right) for merge in listed],
            {token for token, scaffold in marked.items() if scaffold},
            separator,
        )

    def explain(self, word: str) -> Explanation:
        """Segment ``word`` step by step. Raises UsageError where it is empty or holds a space or line end."""
        if not word or word != word.strip("\r") or " " in word or "\n" in word:
            raise UsageError(f"not one word: {word!r}; words are separated by spaces")
        twin = self._twin
        symbols = base = base_symbols(word)
        steps = []
        while candidates := [pair for pair in zip(symbols, symbols[1:], strict=False) if pair in twin.rank]:
            left, right = min(candidates, key=lambda pair: twin.rank[pair])
            symbols = replace_all(symbols, (left, right))
            steps.append(Step(twin.rank[left, right] + 1, left, right, left + right in twin.scaffold, symbols))
        demolitions = [self._demolish(symbol) for symbol in symbols if symbol in twin.scaffold]
        return Explanation(word, base, steps, symbols, demolitions, twin.segment(word).split(" "))

    def _demolish(self, token: str) -> Demolition:
        left, right = self._twin.children(token)
        parts = tuple(self._demolish(child) if child in self._twin.scaffold else child for child in (left, right))
        return Demolition(token, (parts[0], parts[1]))


# What a terminal is told: scaffold, normal merged token, end of colour; and nothing of it in a pipe.
_SCAFFOLD, _NORMAL, _DIM, _PLAIN = "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[0m"


def format_explanation(explanation: Explanation, colour: bool = False) -> str:
    """An explanation as lines of text; ``colour``: for a terminal, scaffold tokens yellow, the result green."""

    def painted(text: str, code: str) -> str:
        return f"{code}{text}{_PLAIN}" if colour else text

    width = len(" ".join(explanation.base))
    lines = [explanation.word, f"  {'symbols':<12} {' '.join(explanation.base)}"]
    for step in explanation.steps:
        kind = painted("scaffold", _SCAFFOLD) if step.scaffold else ""
        token = step.left + step.right
        padding = " " * (width - len(" ".join(step.symbols)))
        symbols = [
            painted(symbol, _SCAFFOLD if step.scaffold else _NORMAL) if symbol == token else symbol
            for symbol in step.symbols
        ]
        merge = painted(f"merge {step.number}".ljust(12), _DIM)
        pair = painted(f"{step.left} + {step.right}", _DIM)
        lines.append(f"  {merge} {' '.join(symbols)}{padding}  {pair}  {kind}".rstrip())
    for demolition in explanation.demolitions:
        for token, parts in _flat(demolition):
            lines.append(f"  {'demolish':<12} {painted(token, _SCAFFOLD)} = {' + '.join(parts)}")
    lines.append(f"  {'result':<12} {painted(' '.join(explanation.subwords), _NORMAL)}")
    return "\n".join(lines) + "\n"


def _flat(demolition: Demolition) -> list[tuple[str, list[str]]]:
    """Each scaffold token with its two children, from the outside in."""
    names = [part.token if isinstance(part, Demolition) else part for part in demolition.parts]
    found = [(demolition.token, names)]
    for part in demolition.parts:
        if isinstance(part, Demolition):
            found += _flat(part)
    return found


def explain(
    codes: CodesSource, words: Sequence[str], merges: int = -1, separator: str = SEPARATOR, colour: bool = False
) -> str:
    """How each word is segmented with the codes of a file, as text: what the command ``explain`` shows."""
    explainer = Explainer(codes, merges, separator)
    return "\n".join(format_explanation(explainer.explain(word), colour) for word in words)
