"""Documents → words by a pre-tokeniser: those of GPT-2, tiktoken and SentencePiece, or any pattern of ``regex``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from mt_scaffold import _core
from mt_scaffold.errors import MTScaffoldError, UsageError

# As published with tiktoken (tiktoken_ext/openai_public.py): r50k_base, whose words are those of GPT-2's release (its
# encoder.py), cl100k_base and o200k_base. metaspace: a word begins with each space, as in tokenizers; metaspace-runs:
# with each run of spaces, as pieces of SentencePiece do.
PATTERNS = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
    "o200k": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "metaspace": " ?[^ ]+| ",
    "metaspace-runs": " *[^ ]+| +",
}
# Not a pre-tokeniser of this module: spaces separate words and are not part of them.
SPACES = "spaces"
_NAME = re.compile(r"[\w-]*")
# The time limit for one text of a pattern that can be very slow: _LEAST_SECONDS, plus a second for every
# _CHARACTERS_PER_SECOND characters. regex counts the time of all threads.
_LEAST_SECONDS, _CHARACTERS_PER_SECOND = 30, 10_000
# The parts of a pattern: escaped characters, sets of characters, unbounded repetitions, and the rest.
_PARTS = re.compile(
    r"(?P<back>\\[1-9gk]|\(\?(?:R|P[>=]|&|[+-]?\d))|\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?P<end>\)(?:[*+]|\{\d*,?\d*\}))|(?P<repeat>[*+]|\{\d*,\d*\})[+?]?|(?P<bar>\|)|.",
    re.DOTALL,
)


class Pretokeniser:
    """Cuts documents into words that concatenate to the document again, byte for byte.

    name_or_pattern: a name in ``PATTERNS``, or a pattern of the ``regex`` package, whose matches are words, as is the
    text between them; empty matches are ignored. A pattern is one line, and more than a bare word.
    split_digits: afterwards, every character of Unicode's class N becomes a separate word.

    Raises UsageError for an unknown name and a pattern that does not compile, MTScaffoldError if a pattern needs
    ``regex`` and it is not installed.

    >>> Pretokeniser("gpt2").split("It's 2023!")
    [b'It', b"'s", b' 2023', b'!']
    >>> Pretokeniser(r"\\d+", split_digits=True).split("am 24.")
    [b'am ', b'2', b'4', b'.']
    """

    def __init__(self, name_or_pattern: str, split_digits: bool = False) -> None:
        self.name = name_or_pattern
        self.split_digits = split_digits
        ends = None if name_or_pattern in PATTERNS else _ends_by(name_or_pattern)
        self.core = _core.Pretokeniser(name_or_pattern, split_digits, ends)

    def split(self, text: str | bytes) -> list[bytes]:
        """Return the words of one document: all of it, line ends included.

        Raises MTScaffoldError for a string with a lone surrogate, which UTF-8 cannot express.
        """
        if isinstance(text, bytes):
            return self.core.split(text)
        try:
            return self.core.split(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise MTScaffoldError(
                f"character {error.start} of the text is a lone surrogate, U+{ord(text[error.start]):04X}, which UTF-8 "
                'cannot express; pass bytes, such as text.encode("utf-8", "surrogateescape")'
            ) from None


def pretokeniser_of(name_or_pattern: str, split_digits: bool = False) -> Pretokeniser | None:
    """Return the pre-tokeniser of an option's values; None for ``spaces``.

    Raises UsageError as Pretokeniser does, and for ``spaces`` with ``split_digits``.
    """
    if name_or_pattern != SPACES:
        return Pretokeniser(name_or_pattern, split_digits)
    if split_digits:
        raise UsageError(f"digits are split by a pre-tokeniser; give one of {', '.join(PATTERNS)}, or a pattern")
    return None


def _ends_by(pattern: str) -> Callable[[bytes], list[int]]:
    """Return a function, for the core, from a document to the offsets where the words of a pattern end."""
    if _NAME.fullmatch(pattern):
        names = ", ".join((SPACES, *PATTERNS))
        raise UsageError(f"no pre-tokeniser is called {pattern!r}; give one of {names}, or a pattern of regex")
    if "\n" in pattern or "\r" in pattern:
        raise UsageError(r"a pre-tokeniser's pattern is one line; write \n for a line end in it")
    try:
        import regex
    except ImportError:
        raise MTScaffoldError(
            "a pre-tokeniser's pattern needs the package regex, which is not installed; run pip install regex, or give "
            f"one of {', '.join(PATTERNS)}"
        ) from None
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(f"the pre-tokeniser's pattern {pattern!r} is not valid: {error}") from None
    except RecursionError:
        raise UsageError("the pre-tokeniser's pattern is nested too deeply") from None

    # With a limit regex checks the time at every match, which makes a fast pattern two to three times as slow.
    limited = _tries_every_way(pattern)
    without_groups = compiled.groups == 0 and not compiled.flags & regex.REVERSE

    def ends(document: bytes) -> list[int]:
        text = document.decode("utf-8", "surrogateescape")
        try:
            return cut(text, _LEAST_SECONDS + len(text) / _CHARACTERS_PER_SECOND if limited else None)
        except TimeoutError:
            raise MTScaffoldError(
                f"the pre-tokeniser's pattern {pattern!r} takes too long on a text of {len(text):,} characters, as one "
                "that tries every way to divide a word does; give a simpler one"
            ) from None

    def cut(text: str, seconds: float | None) -> list[int]:
        words = compiled.findall(text, timeout=seconds) if without_groups else []
        if sum(map(len, words)) != len(text):  # there is text between matches
            spans = [match.span() for match in compiled.finditer(text, timeout=seconds) if match.group()]
            cuts = sorted({0, len(text), *itertools.chain.from_iterable(spans)})
            words = [text[start:end] for start, end in itertools.pairwise(cuts)]
        pieces = words if text.isascii() else [word.encode("utf-8", "surrogateescape") for word in words]
        return list(itertools.accumulate(filter(None, map(len, pieces))))

    return ends


def _tries_every_way(pattern: str) -> bool:
    """Return whether a pattern's time may grow faster than the square of the text's length.

    It may if the pattern repeats a group, refers to a group or to itself, or repeats three parts of an alternative.
    """
    repeated = 0
    for part in _PARTS.finditer(pattern):
        if part["back"] or part["end"]:
            return True
        repeated = 0 if part["bar"] else repeated + bool(part["repeat"])
        if repeated > 2:
            return True
    return False
