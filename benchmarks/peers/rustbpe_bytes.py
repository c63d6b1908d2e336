"""rustbpe (Rust): learns byte-level BPE after GPT-2's pattern."""

import os
import sys

import rustbpe

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from model_files import PATTERNS, write_ranks


def learn(corpus: str, model: str, vocabulary: int) -> None:
    tokenizer = rustbpe.Tokenizer()
    with open(corpus, encoding="utf-8", newline="\n") as lines:
        tokenizer.train_from_iterator(lines, vocabulary, pattern=PATTERNS["gpt2"])
    write_ranks(model, (bytes(token) for token, _ in tokenizer.get_mergeable_ranks()))


if __name__ == "__main__":
    _, corpus_path, model_path, argument = sys.argv[1:]
    learn(corpus_path, model_path, int(argument))
