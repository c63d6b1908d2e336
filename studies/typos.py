"""python -m studies.typos: copy a test set with seeded typos, one letter in each tenth word.

Words are separated by white space; those with fewer than four letters are not counted. In one of each ten, drawn at
random, one letter is dropped, doubled, swapped with the next character, or replaced by a letter from a to z, with equal
probability. Text is a line or, in .jsonl files, the field "text" of a document; files may be compressed (.gz).
"""

from __future__ import annotations

import argparse
import json
import re
import string
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from mt_scaffold.corpus.files import open_input, open_output, refuse_overwriting
from mt_scaffold.errors import MTScaffoldError

EVERY = 10
_WORD = re.compile(r"\S+")
_LETTERS = 4


class Typos:
    """Makes typos, drawing only with ``Random.random``, whose sequence Python guarantees for a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._words = 0
        self._next = self._draw(EVERY)
        self.made = 0

    def _draw(self, number: int) -> int:
        return int(self._rng.random() * number)

    def text(self, text: str) -> str:
        """Return the text with a typo in one of each ten words; the count continues from the last text."""
        return _WORD.sub(lambda found: self._word(found[0]), text)

    def _word(self, word: str) -> str:
        letters = [place for place, character in enumerate(word) if character.isalpha()]
        if len(letters) < _LETTERS:
            return word
        place = self._words
        self._words = (place + 1) % EVERY
        chosen = place == self._next
        if not self._words:
            self._next = self._draw(EVERY)
        return self._typo(word, letters) if chosen else word

    def _typo(self, word: str, letters: Sequence[int]) -> str:
        """Return the word with one wrong letter, never unchanged."""
        while True:
            at = letters[self._draw(len(letters))]
            letter = string.ascii_lowercase[self._draw(26)]
            kinds = (
                word[:at] + word[at + 1 :],
                word[: at + 1] + word[at:],
                word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
                word[:at] + letter + word[at + 1 :],
            )
            if (changed := kinds[self._draw(len(kinds))]) != word:
                self.made += 1
                return changed


def make_typos(source: Path, output: Path, seed: int) -> int:
    """Copy a file with typos, and return their number.

    Raises MTScaffoldError for a line that is not UTF-8, or not a JSON object with a text.
    """
    refuse_overwriting([output], [source])
    typos, documents = Typos(seed), source.name.removesuffix(".gz").endswith(".jsonl")
    with open_input(source) as lines, open_output(output) as stream:
        for number, line in enumerate(lines, 1):
            try:
                if documents:
                    document = json.loads(line)
                    document["text"] = typos.text(document["text"])
                    changed = json.dumps(document, ensure_ascii=False) + "\n"
                else:
                    changed = typos.text(line.decode("utf-8"))
            except UnicodeDecodeError:
                raise MTScaffoldError(f"{source}: line {number}: not UTF-8; convert the file to UTF-8 first") from None
            except (ValueError, KeyError, TypeError):
                raise MTScaffoldError(
                    f'{source}: line {number}: not a JSON object with text in the field "text", as each line of .jsonl '
                    "must be"
                ) from None
            stream.write(changed.encode())
    return typos.made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies.typos", description=__doc__)
    parser.add_argument("--input", required=True, type=Path, metavar="FILE")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the typos (1)")
    options = parser.parse_args(arguments)
    try:
        made = make_typos(options.input, options.output, options.seed)
    except MTScaffoldError as error:
        print(f"studies.typos: {error}", file=sys.stderr)
        return error.exit_status
    print(f"{options.output}: {made:,} typos", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
