"""sentencepiece (C++): BPE inside words, text taken as it stands, every character covered."""

import itertools
import sys

import sentencepiece

BATCH = 20_000
THREADS = 2


def learn(corpus: str, model: str, vocabulary: int) -> None:
    sentencepiece.SentencePieceTrainer.train(
        input=corpus,
        model_prefix=model.removesuffix(".model"),
        model_type="bpe",
        vocab_size=vocabulary,
        character_coverage=1.0,
        normalization_rule_name="identity",
        num_threads=THREADS,
        minloglevel=1,
    )


def apply(corpus: str, model: str, output: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    with open(corpus, encoding="utf-8", newline="\n") as lines, open(output, "w", encoding="utf-8") as out:
        while batch := [line.rstrip("\n") for line in itertools.islice(lines, BATCH)]:
            segmented = processor.encode(batch, out_type=str, num_threads=THREADS)
            out.writelines(" ".join(pieces) + "\n" for pieces in segmented)


if __name__ == "__main__":
    task, corpus_path, model_path, argument = sys.argv[1:]
    if task == "learn":
        learn(corpus_path, model_path, int(argument))
    else:
        apply(corpus_path, model_path, argument)
