"""The numbers of words of many lines at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mt_scaffold.text import word_count

if TYPE_CHECKING:
    import numpy


def word_counts(lines: list[bytes]) -> numpy.ndarray:
    """Return the number of words of each line, as word_count counts them, in a tenth of its time.

    Each line ends in LF; the last one may lack it.
    """
    import numpy

    if not lines:
        return numpy.zeros(0, numpy.int64)
    text = b"".join(lines)
    # The rest of the text has one space between each two words.
    if any(odd in text for odd in (b"  ", b" \n", b"\n ", b"\r")) or text.startswith(b" ") or text.endswith(b" "):
        return numpy.fromiter(map(word_count, lines), numpy.int64, len(lines))
    sizes = numpy.fromiter(map(len, lines), numpy.int64, len(lines))
    ends = sizes.cumsum()
    characters = numpy.frombuffer(text, numpy.uint8)
    spaces = numpy.add.reduceat(characters == ord(" "), ends - sizes, dtype=numpy.int64)
    counts: numpy.ndarray = spaces + (characters[ends - sizes] != ord("\n"))
    return counts
