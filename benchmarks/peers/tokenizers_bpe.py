"""tokenizers (Rust): BPE inside words, split at white space, ends of words marked as in subword-nmt."""

import itertools
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

BATCH = 20_000


def learn(corpus: str, model: str, vocabulary: int) -> None:
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train([corpus], trainer)
    tokenizer.save(model)


def apply(corpus: str, model: str, output: str) -> None:
    tokenizer = Tokenizer.from_file(model)
    with open(corpus, encoding="utf-8", newline="\n") as lines, open(output, "w", encoding="utf-8") as out:
        while batch := [line.rstrip("\n") for line in itertools.islice(lines, BATCH)]:
            out.writelines(" ".join(encoding.tokens) + "\n" for encoding in tokenizer.encode_batch_fast(batch))


if __name__ == "__main__":
    task, corpus_path, model_path, argument = sys.argv[1:]
    if task == "learn":
        learn(corpus_path, model_path, int(argument))
    else:
        apply(corpus_path, model_path, argument)
