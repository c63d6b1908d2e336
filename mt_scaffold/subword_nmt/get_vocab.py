"""subword-nmt's module ``get_vocab``: count the words of a text."""

from __future__ import annotations

import argparse

from mt_scaffold import vocabulary
from mt_scaffold.corpus.files import AsBytes, WritableText
from mt_scaffold.subword_nmt.streams import Text, add_file, source


def get_vocab(train_file: Text, vocab_file: WritableText) -> None:
    """Write the words of an open file, or lines, with their counts to a text file (see ``mt_scaffold.get_vocab``)."""
    vocabulary.get_vocab(outfile=AsBytes(vocab_file), num_workers=1, **source(train_file))


def create_parser() -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options."""
    parser = argparse.ArgumentParser(description="Count the words of a text.")
    add_file(parser, "--input", "-i", help="input text (default: standard input)")
    add_file(parser, "--output", "-o", mode="w", help="vocabulary file (default: standard output)")
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("get-vocab")
