"""Moses' tokenisation: sacremoses' rules, and a cache of their output for the pieces of a text.

sacremoses applies some sixty substitutions to a line, one after the other. Nearly all of them see neighbouring
characters only, so the text between two spaces (a piece) becomes the same words wherever it occurs. These see more:

- A full stop at the end of a word is split off, or not, by the next word: whether it begins with a small letter, or a
  digit 0-9. Where that matters, a piece is looked up again with the kind of the next word.
- An apostrophe is matched together with the space next to it, and a comma with the space before it. So a piece that
  begins with one depends on whether the line begins there, or another apostrophe has consumed the space.
- ``."`` is matched together with the next character after any spaces. If that is the full stop of another ``."``, the
  second is not changed as the first is. Normalising turns ``.,"``, and ``. »`` with a no-break space, into ``."``.
- At the end of a line, the rules for full stops, ``.'`` and commas differ. The last piece is looked up with its LF.
- Normalising deletes spaces next to ``( ) : ; %``, which are split off anyway.
- White space and control characters at the end of a piece are removed, and its neighbours then meet.

Within a piece, only the kind of a letter or digit matters, and whether it is alone between two marks (a match that
consumes it hides it from the next). So a piece of a known shape needs no rules. Exceptions: listed abbreviations
before a full stop, ``'s`` after a digit, the placeholder by which sacremoses hides ``...``, and white space other than
the space.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable

from mt_scaffold.experiment.configuration.data import Tokenise

_APOSTROPHES = "'`´‘‚’"
_QUOTATION_MARKS = '"„“”«»'
_DEPENDS_ON_LEFT = re.compile(rf"[,{_APOSTROPHES}]|[.…]\W*[{_QUOTATION_MARKS}{_APOSTROPHES}]")
# Every substitution of the normaliser needs one of these.
_NORMALISED = re.compile(rf"[{_APOSTROPHES}{_QUOTATION_MARKS}–—…()\r\u00a0]|  | [:;%]")
_HIDDEN_DOTS = "DOTMULTI"
# Sentinels instead of words, which have no U+0000: apply the rules to the whole line; look the piece up again as one
# after a word, if the piece before it allows that; or again with the kind of the next word.
_NO_WORDS = "\0"
_WHOLE_LINE, _WORD_BEFORE, _NEXT_WORD = "\0line", "\0before", "\0next"
_DIGITS = "0123456789"
# A sample word of each kind.
_SMALL, _DIGIT, _OTHER = "x", "1", "X"
# A letter and a digit that replace all others in a shape; no rule or escape (&#124;) writes them.
_LETTER, _NUMBER = "ā", "٠"
_STAND_INS = re.compile(f"{_LETTER}+|{_NUMBER}+")
# About 100 MB in each process.
_MOST_PIECES, _MOST_SHAPES = 300_000, 30_000
# Longer pieces, and those with more marks, recur too rarely to be cached.
_LONGEST, _MOST_MARKS = 80, 16
# The steps of Moses, and no others.
DEFAULT = Tokenise()


class Rules:
    """sacremoses' rules, applied to a whole line one after the other: they define the output of Tokeniser.

    quick: the same rules in half the time; without it, sacremoses is unmodified.
    """

    def __init__(self, language: str, choices: Tokenise = DEFAULT, quick: bool = False) -> None:
        import regex
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        normaliser = MosesPunctNormalizer(lang=language)
        self.tokeniser = MosesTokenizer(lang=language)
        self._normalise = normaliser.normalize if choices.normalise_punctuation else None
        # As Moses does, but unassigned code points stay: the set of these depends on a library's Unicode version.
        self._nonprinting = regex.compile(r"[\p{Cc}\p{Cf}\p{Co}]") if choices.remove_nonprinting else None
        self._choices = choices
        if quick:
            # sacremoses looks its expressions up every time, and rebuilds sets of these letters for every full stop.
            compiled = [(re.compile(expression), by) for expression, by in normaliser.substitutions]
            if choices.normalise_punctuation:
                self._normalise = functools.partial(_substitute, compiled)
            small, letters = frozenset(self.tokeniser.IsLower), frozenset(self.tokeniser.IsAlpha)
            self.tokeniser.islower = small.issuperset
            self.tokeniser.isanyalpha = lambda text: not letters.isdisjoint(text)

    def __call__(self, line: str) -> str:
        """Return the words of ``line`` separated by single spaces."""
        if self._choices.straight_apostrophes:
            line = line.replace("\u2019", "'")
        if self._normalise is not None:
            line = self._normalise(line)
        if self._nonprinting is not None:
            line = self._nonprinting.sub(" ", line)
        aggressive = self._choices.aggressive_dash_splitting
        words = self.tokeniser.tokenize(line, aggressive_dash_splits=aggressive, escape=True, return_str=True)
        # Last, because Moses' rules for full stops look at capitals.
        return " ".join((words.lower() if self._choices.lowercase else words).split())


def tokeniser_of(language: str, choices: Tokenise = DEFAULT) -> Callable[[str], str]:
    """Return a function that splits a line into words and returns them separated by single spaces.

    With ``choices.none`` it splits at white space only; of the other choices, ``straight_apostrophes`` (escaped as
    Moses escapes them) and ``lowercase`` still apply.
    """
    return functools.partial(_as_words, choices) if choices.none else Tokeniser(language, choices)


def _as_words(choices: Tokenise, line: str) -> str:
    words = " ".join(line.split())
    words = words.replace("\u2019", "&apos;") if choices.straight_apostrophes else words
    return words.lower() if choices.lowercase else words


def _substitute(substitutions: Iterable[tuple[re.Pattern[str], str]], text: str) -> str:
    if _NORMALISED.search(text):
        for expression, by in substitutions:
            text = expression.sub(by, text)
    return text.strip()


class Tokeniser:
    """Splits a line of raw text into words by the rules of ``language`` (``de``; English for an unknown code).

    >>> Tokeniser("en")("He isn't here.")
    'He isn &apos;t here .'
    """

    def __init__(self, language: str, choices: Tokenise = DEFAULT) -> None:
        self._rules = Rules(language, dataclasses.replace(choices, lowercase=False), quick=True)
        self._lowercase = choices.lowercase
        self._small_letters = frozenset(self._rules.tokeniser.IsLower)
        self._pieces = _Pieces(self._rules, self._rules.tokeniser.NONBREAKING_PREFIXES)

    def __call__(self, line: str) -> str:
        """Return the words of ``line`` separated by single spaces; no line break or other white space is left.

        A line without its LF takes ten times as long, because the cache is not used for it.
        """
        words = " ".join(map(self._pieces.__getitem__, line.split(" ")))
        if _NO_WORDS in words or line.find("\n") != len(line) - 1:
            words = self._with_context(line)
        return words.lower() if self._lowercase else words

    def _with_context(self, line: str) -> str:
        """Return the words of a line whose pieces depend on each other."""
        if line.find("\n") != len(line) - 1:
            return self._rules(line)
        pieces = [piece for piece in line.rstrip("\r\n ").split(" ") if piece]
        if not pieces:
            return ""
        pieces[-1] += "\n"
        words = [self._pieces[piece] for piece in pieces]
        for place, key in enumerate(pieces):
            if words[place] == _WORD_BEFORE:
                if place == 0 or (key[0] != "," and pieces[place - 1][-1] in _APOSTROPHES + _QUOTATION_MARKS):
                    return self._rules(line)
                key = f" {key}"
                words[place] = self._pieces[key]
            if words[place] == _NEXT_WORD:
                words[place] = self._pieces[f"{key} {self._kind(pieces[place + 1][0])}"]
            if words[place] == _WHOLE_LINE:
                return self._rules(line)
        return " ".join(words)

    def _kind(self, first: str) -> str:
        """Return the kind of a word, as the rule for full stops sees it, by its first character."""
        return _SMALL if first in self._small_letters else _DIGIT if first in _DIGITS else _OTHER


class _Pieces(dict[str, str]):
    """Cache: piece → its words, or the sentinel for why these are unknown; filled on lookup.

    A piece is followed by an LF at the end of a line, and otherwise, if it matters, by a space and the kind of the next
    word. A space before it means that a word precedes it without affecting it.
    """

    def __init__(self, rules: Callable[[str], str], abbreviations: Iterable[str]) -> None:
        """rules: line → words. abbreviations: words that may keep their full stop."""
        from sacremoses import MosesTokenizer

        self._rules = rules
        # Characters that are both letters and numbers (Ⅷ) are not replaced in a shape.
        letters = _ranges(set(MosesTokenizer.IsAlpha) & set(MosesTokenizer.IsAlnum) - set(MosesTokenizer.IsN))
        self._word = re.compile(rf"[{letters}0-9]+\n?")
        self._runs = re.compile(rf"([{letters}]+|[0-9]+)")
        self._number_and_s = re.compile(rf"[^{letters}][{_APOSTROPHES}]s")
        self._abbreviations = {runs[-1] for word in abbreviations if (runs := self._runs.findall(word.split(" ")[0]))}
        self._shapes: dict[str, list[str]] = {}

    def __missing__(self, key: str) -> str:
        plain = self._word.fullmatch(key) and _HIDDEN_DOTS not in key
        words = key.removesuffix("\n") if plain else self._look_up(key)
        if len(key) <= _LONGEST:
            if len(self) >= _MOST_PIECES:
                self.clear()
            self[key] = words
        return words

    def _look_up(self, key: str) -> str:
        after_word, key = key.startswith(" "), key.removeprefix(" ")
        piece = key.removesuffix("\n").partition(" ")[0]
        context = key[len(piece) :]
        if not 0 < len(piece) <= _LONGEST or not (piece[0].isprintable() and piece[-1].isprintable()):
            return _WHOLE_LINE
        if _DEPENDS_ON_LEFT.match(piece) and not after_word:
            return _WORD_BEFORE
        parts = self._runs.split(piece)
        if not self._has_shape(piece, parts):
            return self._in_context(piece, context)
        if sum(map(len, parts[::2])) > _MOST_MARKS:
            return _WHOLE_LINE
        kinds = parts.copy()
        kinds[1::2] = [(_NUMBER if run[0] in _DIGITS else _LETTER) * min(len(run), 2) for run in parts[1::2]]
        shape = "".join(kinds)
        if (between := self._shapes.get(shape + context)) is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            between = self._shapes[shape + context] = _STAND_INS.split(self._in_context(shape, context))
        if between[0].startswith(_NO_WORDS):
            return between[0]
        parts[::2] = between
        return "".join(parts)

    def _has_shape(self, piece: str, parts: list[str]) -> bool:
        """Return whether other letters and digits in the same places would give the same words.

        parts: the piece as marks and runs of letters or digits, alternately.
        """
        if (
            not piece.isprintable()
            or _HIDDEN_DOTS in piece
            or _NUMBER in piece
            or self._number_and_s.search(piece) is not None
        ):
            return False
        # Between two runs, a full stop does not end a word.
        return "." not in piece or not any(
            "." in marks and (marks != "." or place == len(parts) - 1) and parts[place - 1] in self._abbreviations
            for place, marks in enumerate(parts)
            if place and place % 2 == 0
        )

    def _in_context(self, piece: str, context: str) -> str:
        """Apply the rules to a piece after a word and before ``context``; without one, before each kind of word."""
        if context == "\n":
            return self._rules(f"{_SMALL} {piece}\n")[2:]
        if context:
            return self._before(piece, context[1:])
        words = self._before(piece, _SMALL)
        # Before a small letter, a full stop is not split off.
        if words.endswith(".") and not words == self._before(piece, _DIGIT) == self._before(piece, _OTHER):
            return _NEXT_WORD
        return words

    def _before(self, piece: str, word: str) -> str:
        return self._rules(f"{_SMALL} {piece} {word}\n")[2:-2]


def _ranges(characters: set[str]) -> str:
    """Return a set of letters as ranges for a regular expression, which compile faster."""
    codes = sorted(map(ord, characters))
    groups = itertools.groupby(enumerate(codes), lambda item: item[1] - item[0])
    runs = [[code for _, code in group] for _, group in groups]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
