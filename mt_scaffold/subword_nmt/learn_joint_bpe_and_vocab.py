"""subword-nmt's module ``learn_joint_bpe_and_vocab``: learn original BPE on several texts, with a vocabulary each."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_separator
from mt_scaffold.methods import PlainBPE, learn
from mt_scaffold.subword_nmt.streams import add_amount, add_file, add_num_workers


def learn_joint_bpe_and_vocab(args: argparse.Namespace) -> None:
    """Learn codes and write vocabularies as ``mt_scaffold.learn_joint_bpe_and_vocab`` does.

    args: what ``create_parser`` parses. The texts ``input``, the codes ``output`` and the vocabularies ``vocab`` are
    open files, or anything with the name of a file: they are opened again by their names.
    """
    learn.learn_joint_bpe_and_vocab(
        [text.name for text in args.input],
        args.output.name,
        [vocabulary.name for vocabulary in args.vocab],
        PlainBPE(args.symbols, args.min_frequency, args.total_symbols),
        separator=args.separator,
        verbose=args.verbose,
        num_workers=args.num_workers,
    )


def create_parser() -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options."""
    parser = argparse.ArgumentParser(description="Learn original BPE on several texts, with a vocabulary for each.")
    add_file(parser, "--input", "-i", required=True, nargs="+", help="input texts")
    add_file(parser, "--output", "-o", mode="w", required=True, help="codes file")
    add_separator(parser)
    add_file(
        parser,
        "--write-vocabulary",
        mode="w",
        required=True,
        nargs="+",
        dest="vocab",
        help="vocabulary files, one for each input",
    )
    add_amount(parser)
    add_num_workers(parser)
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("learn-joint-bpe-and-vocab")
