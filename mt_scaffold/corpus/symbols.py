"""The names of subwords in dictionaries, which preserve where each word ends.

Segmented text loses that: a word ``foo@@`` looks like ``foo`` inside a word. If the last subword of a word ends in
the separator, its name therefore ends in ``</w>``; all other names are the subwords of segmented text.
"""

from __future__ import annotations

from mt_scaffold.corpus.text import END_OF_WORD, SEPARATOR
from mt_scaffold.errors import UsageError


def symbol_name(text: str, inside: bool, separator: str = SEPARATOR) -> str:
    """Return the name of a subword; inside: whether it is not the last of its word.

    >>> symbol_name("zon", inside=True), symbol_name("a", inside=False), symbol_name("foo@@", inside=False)
    ('zon@@', 'a', 'foo@@</w>')
    """
    if inside:
        return text + separator
    return text + END_OF_WORD if _looks_inside(text, separator) else text


def read_symbol(name: str, separator: str = SEPARATOR) -> tuple[str, bool]:
    """Return the text of a subword, and whether it is not the last of its word: the inverse of ``symbol_name``.

    >>> read_symbol("zon@@"), read_symbol("a"), read_symbol("foo@@</w>"), read_symbol("@@")
    (('zon', True), ('a', False), ('foo@@', False), ('@@', False))
    """
    # No subword is empty.
    if name.endswith(separator) and name != separator:
        return name.removesuffix(separator), True
    text = name.removesuffix(END_OF_WORD)
    return (text if text != name and _looks_inside(text, separator) else name), False


def token_name(token: str, separator: str = SEPARATOR) -> str:
    """Return the name of a token of a codes file.

    >>> token_name("zona"), token_name("zona</w>")
    ('zona@@', 'zona')
    """
    text = token.removesuffix(END_OF_WORD)
    return symbol_name(text, text == token, separator)


def join_symbols(line: str, separator: str = SEPARATOR, word_start: str | None = None) -> str:
    """Join the subwords of a line, by their names, into words.

    word_start: the beginning of each word's first subword, if that marks words instead of a separator.

    >>> join_symbols("Schaff@@ ell@@ ös@@ ung @@ foo@@</w> .")
    'Schaffellösung @@ foo@@ .'
    >>> join_symbols("▁Schaff ellösung ▁ .", word_start="▁")
    'Schaffellösung .'
    """
    if word_start is not None:
        return " ".join(word for word in line.replace(" ", "").split(word_start) if word)
    read = (read_symbol(name, separator) for name in line.split(" "))
    return "".join(text if inside else f"{text} " for text, inside in read).rstrip(" ")


def check_mark(separator: str) -> None:
    """Raise UsageError for a separator that stays ambiguous even with ``</w>``."""
    if (separator + END_OF_WORD).endswith(separator):
        raise UsageError(f"the separator '{separator}' does not mark what it ends; give another, such as {SEPARATOR}")


def _looks_inside(text: str, separator: str) -> bool:
    """Return whether the last subword of a word would be read as another one."""
    while text.endswith(END_OF_WORD):
        text = text.removesuffix(END_OF_WORD)
    return text.endswith(separator) and text != separator
