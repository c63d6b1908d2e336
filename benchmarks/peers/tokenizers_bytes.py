"""tokenizers (Rust): learns byte-level BPE after GPT-2's pattern, which it has built in."""

import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers


def learn(corpus: str, model: str, vocabulary: int) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train([corpus], trainer)
    tokenizer.save(model)


if __name__ == "__main__":
    _, corpus_path, model_path, argument = sys.argv[1:]
    learn(corpus_path, model_path, int(argument))
