"""bpeasy (Rust): learns byte-level BPE after GPT-2's pattern."""

import os
import sys

import bpeasy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from model_files import PATTERNS, write_ranks


def learn(corpus: str, model: str, vocabulary: int) -> None:
    with open(corpus, encoding="utf-8", newline="\n") as lines:
        ranks = bpeasy.train_bpe(lines, PATTERNS["gpt2"], 1000, vocabulary)
    write_ranks(model, ranks)


if __name__ == "__main__":
    _, corpus_path, model_path, argument = sys.argv[1:]
    learn(corpus_path, model_path, int(argument))
