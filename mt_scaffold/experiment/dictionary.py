"""fairseq's dictionary files: a subword, a space and its count per line."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, open_input, shown
from mt_scaffold.text import decode

# Every dictionary starts with these; a subword that is spelled like one of them is marked in the file.
SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
_OVERWRITE = "#fairseq:overwrite"
_PADDING_FACTOR = 8


def format_dictionary(entries: Iterable[tuple[str, int]]) -> str:
    """Return the text of a dictionary, padded to a multiple of 8 symbols as fairseq-preprocess does."""
    counts = dict(entries)
    lines = [f"{form} {count}" + f" {_OVERWRITE}" * (form in SPECIAL_SYMBOLS) for form, count in counts.items()]
    missing = -(len(lines) + len(SPECIAL_SYMBOLS)) % _PADDING_FACTOR
    fillers = (name for number in itertools.count() if (name := f"madeupword{number:04d}") not in counts)
    return "".join(f"{line}\n" for line in [*lines, *(f"{name} 0" for name in itertools.islice(fillers, missing))])


def read_dictionary(path: PathLike) -> list[tuple[str, int]]:
    """Return the subwords of a dictionary with their counts, in the order of their ids (the first has id 4).

    Raises MTScaffoldError, with the line, where the file is not a dictionary.
    """
    with open_input(path) as stream:
        lines = decode(stream.read(), shown(path)).removesuffix("\n").split("\n")
    entries = []
    for number, line in enumerate(lines, start=1):
        # From the right: a subword may hold any character but a space.
        form, _, count = line.removesuffix(f" {_OVERWRITE}").rpartition(" ")
        if not form or not count.isdecimal():
            raise MTScaffoldError(
                f"{shown(path)}: line {number}: expected a subword, one space and its count; give a fairseq dictionary"
            )
        entries.append((form, int(count)))
    return entries
