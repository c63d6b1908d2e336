"""How a word is segmented: each merge, the scaffold tokens that remain, and what they are demolished into.

The steps are those of the plain Python references (``reference`` and ``reference_picky``), which the native core is
tested against.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from mt_scaffold.analysis.reference import ReferenceBPE, base_symbols, replace_all
from mt_scaffold.analysis.reference_picky import Event, MergeEvent, ReferencePickyBPE, SplitEvent
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.text import END_OF_WORD, SEPARATOR, bytes_to_notation
from mt_scaffold.errors import UsageError
from mt_scaffold.segment.numbering import Numbering, numbering_of, ordinary_tokens

# The most symbols of a word: each merge shows all of them, so the output grows with their square.
_LONGEST = 300


@dataclass(frozen=True)
class Step:
    """One merge of a word.

    number: its place in the codes file, from 1. left, right: the two symbols. scaffold: whether the merged token is
    scaffold. symbols: the word's symbols after the merge.
    """

    number: int
    left: str
    right: str
    scaffold: bool
    symbols: list[str]


@dataclass(frozen=True)
class SplitStep:
    """One split of PickyBPE: a token of the word that has left the vocabulary becomes its pieces.

    symbols: the word's symbols after the split.
    """

    token: str
    pieces: tuple[str, ...]
    symbols: list[str]


@dataclass(frozen=True)
class Demolition:
    """A scaffold token that remained after the last merge, and its parts.

    parts: its two children; one that is scaffold too is itself a Demolition.
    """

    token: str
    parts: tuple[str | Demolition, str | Demolition]

    @property
    def result(self) -> list[str]:
        """The normal tokens and base symbols it becomes."""
        return [symbol for part in self.parts for symbol in (part.result if isinstance(part, Demolition) else [part])]


@dataclass(frozen=True)
class Explanation:
    """How one word is segmented. Bytes are in GPT-2's notation.

    word: as given, or its bytes. base: its base symbols. steps: the merges in order, and with PickyBPE the splits.
    scaffolding: the symbols after the last merge, before demolishing. demolitions: of those that are scaffold.
    subwords: the result, as apply-bpe prints it (except that bytes are in notation). ids: with imported codes, those
    of the result.
    """

    word: str
    base: list[str]
    steps: list[Step | SplitStep]
    scaffolding: list[str]
    demolitions: list[Demolition]
    subwords: list[str]
    ids: list[int] | None = None


class Explainer:
    """Explain words with the codes of one file, as ``BPE`` takes it.

    merges: use only the first ``merges`` merges; -1 for all. separator: ends every subword but a word's last.
    Raises MTScaffoldError if the codes are malformed or missing.
    """

    def __init__(self, codes: CodesSource, merges: int = -1, separator: str = SEPARATOR) -> None:
        read = Codes.of(codes)
        self._header, self._separator = read.header, separator
        self._pretokeniser = read.header.make_pretokeniser()
        self._numbering = None if read.header.end_of_word else numbering_of(read)
        if self._numbering is not None:
            self._ids = dict(zip(ordinary_tokens(read), self._numbering.ids, strict=True))
        listed = read.first(merges)
        self._reference: ReferenceBPE
        if read.header.picky:
            self._reference = ReferencePickyBPE(_events(read, merges), separator, end_of_word=read.header.end_of_word)
            return
        self._reference = ReferenceBPE(
            [(merge.left, merge.right) for merge in listed],
            {merge.token for merge in listed if not merge.normal},
            separator,
            end_of_word=read.header.end_of_word,
        )

    def words(self, text: str) -> list[str]:
        """Return the words of a text: itself or, if the codes have a pre-tokeniser, the words that it cuts it into.

        Imported codes prepare the text as their program does.

        Raises UsageError for a text without words, and without a pre-tokeniser for one that is not a single word.
        """
        if self._pretokeniser is not None:
            spaces = None if self._numbering is None else self._numbering.spaces
            prepared = text if spaces is None else spaces.prepared(text)
            words = [word.decode("utf-8", "surrogateescape") for word in self._pretokeniser.split(prepared)]
            if not words:
                raise UsageError("the text has no words; give some text")
            return words
        if not text or text != text.strip("\r") or " " in text or "\n" in text:
            raise UsageError(f"not one word: {text!r}; words are separated by spaces")
        return [text]

    def explain(self, word: str) -> Explanation:
        """Segment ``word`` step by step: one word, as ``words`` returns it.

        Raises UsageError if it is not one word, or has more than 300 symbols.
        """
        if self._pretokeniser is None:
            self.words(word)
        reference, header = self._reference, self._header
        text = bytes_to_notation(word.encode("utf-8", "surrogateescape")) if header.bytes else word
        symbols = base = base_symbols(text, header.end_of_word)
        if len(base) > _LONGEST:
            raise UsageError(f"{word[:20]!r}...: {len(base):,} symbols; explain words of up to {_LONGEST:,}")
        steps: list[Step | SplitStep] = []
        if isinstance(reference, ReferencePickyBPE):
            for number, event, symbols in reference.replayed(base):
                if isinstance(event, MergeEvent):
                    steps.append(Step(number, event.left, event.right, False, symbols))
                else:
                    steps.append(SplitStep(event.token, event.pieces, symbols))
            return Explanation(text, base, steps, symbols, [], self._surface(symbols))
        while candidates := [pair for pair in itertools.pairwise(symbols) if pair in reference.rank]:
            left, right = min(candidates, key=lambda pair: reference.rank[pair])
            symbols = replace_all(symbols, (left, right))
            steps.append(
                Step(reference.rank[left, right] + 1, left, right, left + right in reference.scaffold, symbols)
            )
        demolitions = [self._demolish(symbol) for symbol in symbols if symbol in reference.scaffold]
        result = [piece for symbol in symbols for piece in reference.demolish(symbol)]
        ids = None if self._numbering is None else self._numbered(result, self._numbering)
        return Explanation(text, base, steps, symbols, demolitions, self._surface(result), ids)

    def _numbered(self, subwords: list[str], numbering: Numbering) -> list[int]:
        """Return the ids of subwords, with a single id for each run of unknown ones."""
        ids = [self._ids[subword] for subword in subwords]
        unknown = -1 if numbering.unknown is None else numbering.unknown
        kept = (number for number, before in zip(ids, [0, *ids], strict=False) if number != -1 or before != -1)
        return [unknown if number == -1 else number for number in kept]

    def _surface(self, symbols: list[str]) -> list[str]:
        """Return a word's symbols as apply-bpe prints them."""
        if not self._header.end_of_word:
            return symbols
        return [symbol + self._separator for symbol in symbols[:-1]] + [symbols[-1].removesuffix(END_OF_WORD)]

    def _demolish(self, token: str) -> Demolition:
        left, right = self._reference.children(token)
        parts = tuple(self._demolish(child) if child in self._reference.scaffold else child for child in (left, right))
        return Demolition(token, (parts[0], parts[1]))


def _events(codes: Codes, merges: int) -> list[Event]:
    """Return the first ``merges`` merges of PickyBPE codes, each followed by its splits."""
    splits = itertools.groupby(codes.first_splits(merges), lambda split: split.after)
    after = {number: list(group) for number, group in splits}
    events: list[Event] = []
    for number, merge in enumerate(codes.first(merges), 1):
        events.append(MergeEvent(merge.left, merge.right))
        events += [SplitEvent(split.token, split.pieces) for split in after.get(number, ())]
    return events


# The terminal's codes for: scaffold, normal merged token, secondary text, end of colour.
_SCAFFOLD, _NORMAL, _DIM, _PLAIN = "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[0m"


def format_explanation(explanation: Explanation, colour: bool = False) -> str:
    """Return an explanation as text; colour: for a terminal, with scaffold tokens in yellow and the result in green."""

    def painted(text: str, code: str) -> str:
        return f"{code}{text}{_PLAIN}" if colour else text

    width = len(" ".join(explanation.base))
    lines = [explanation.word, f"  {'symbols':<12} {' '.join(explanation.base)}"]
    for step in explanation.steps:
        if isinstance(step, SplitStep):
            symbols = [painted(symbol, _NORMAL) if symbol in step.pieces else symbol for symbol in step.symbols]
            padding = " " * (width - len(" ".join(step.symbols)))
            pieces = painted(f"{step.token} = {' + '.join(step.pieces)}", _DIM)
            lines.append(f"  {painted('split'.ljust(12), _DIM)} {' '.join(symbols)}{padding}  {pieces}".rstrip())
            continue
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
    if explanation.ids is not None:
        lines.append(f"  {'ids':<12} {' '.join(map(str, explanation.ids))}")
    return "\n".join(lines) + "\n"


def _flat(demolition: Demolition) -> list[tuple[str, list[str]]]:
    """Return each scaffold token with its two children, from the outside in."""
    names = [part.token if isinstance(part, Demolition) else part for part in demolition.parts]
    found = [(demolition.token, names)]
    for part in demolition.parts:
        if isinstance(part, Demolition):
            found += _flat(part)
    return found


def explain(
    codes: CodesSource, words: Sequence[str], merges: int = -1, separator: str = SEPARATOR, colour: bool = False
) -> str:
    """Return how each word is segmented, as text: the output of the command ``explain``.

    words: if the codes have a pre-tokeniser, texts, whose words are explained one by one.
    """
    explainer = Explainer(codes, merges, separator)
    each = [word for text in words for word in explainer.words(text)]
    return "\n".join(format_explanation(explainer.explain(word), colour) for word in each)
