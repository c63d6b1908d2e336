"""subword-nmt's module ``learn_bpe``: learn original BPE."""

from __future__ import annotations

import argparse
from collections import Counter

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import AsBytes, WritableText
from mt_scaffold.methods import learn
from mt_scaffold.subword_nmt.streams import Text, add_amount, add_file, add_num_workers, source


def learn_bpe(
    infile: Text,
    outfile: WritableText,
    num_symbols: int,
    min_frequency: int = 2,
    verbose: bool = False,
    is_dict: bool = False,
    total_symbols: bool = False,
    num_workers: int = 1,
) -> None:
    """Learn ``num_symbols`` merges of original BPE from an open file, or lines, and write them to a text file.

    The other arguments, and the errors, are those of ``mt_scaffold.learn_bpe``.
    """
    learn.learn_bpe(
        outfile=AsBytes(outfile),
        num_symbols=num_symbols,
        min_frequency=min_frequency,
        verbose=verbose,
        is_dict=is_dict,
        total_symbols=total_symbols,
        num_workers=num_workers,
        algorithm="bpe",
        **source(infile),
    )


def get_vocabulary(fobj: Text, is_dict: bool = False, num_workers: int = 1) -> Counter[str]:
    """Return the words of an open file, or lines, with their counts; as ``mt_scaffold.count_words`` does."""
    return Counter(dict(count_words(is_dict=is_dict, num_workers=num_workers, **source(fobj)).items()))


def create_parser() -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options."""
    parser = argparse.ArgumentParser(description="Learn original BPE from text.")
    add_file(parser, "--input", "-i", help="input text (default: standard input)")
    add_file(parser, "--output", "-o", mode="w", help="codes file (default: standard output)")
    parser.add_argument("--dict-input", action="store_true", help="each line of the input is a word and its count")
    add_amount(parser)
    add_num_workers(parser)
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("learn-bpe")
