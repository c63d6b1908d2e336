"""bpeasy (Rust): learns byte-level BPE inside words; it leaves segmenting to other libraries."""

import sys

import bpeasy


def learn(corpus: str, model: str, vocabulary: int) -> None:
    with open(corpus, encoding="utf-8", newline="\n") as lines:
        ranks = bpeasy.train_bpe(lines, r"\S+", 1000, vocabulary)
    with open(model, "w", encoding="utf-8") as out:
        out.writelines(f"{token.hex()} {rank}\n" for token, rank in ranks.items())


if __name__ == "__main__":
    _, corpus_path, model_path, argument = sys.argv[1:]
    learn(corpus_path, model_path, int(argument))
