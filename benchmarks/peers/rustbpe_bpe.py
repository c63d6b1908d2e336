"""rustbpe (Rust): learns byte-level BPE inside words; segmenting, one text at a time, is not measured."""

import sys

import rustbpe


def learn(corpus: str, model: str, vocabulary: int) -> None:
    tokenizer = rustbpe.Tokenizer()
    with open(corpus, encoding="utf-8", newline="\n") as lines:
        tokenizer.train_from_iterator(lines, vocabulary, pattern=r"\S+")
    with open(model, "w", encoding="utf-8") as out:
        out.writelines(f"{bytes(token).hex()} {rank}\n" for token, rank in tokenizer.get_mergeable_ranks())


if __name__ == "__main__":
    _, corpus_path, model_path, argument = sys.argv[1:]
    learn(corpus_path, model_path, int(argument))
