"""tokenizers (Rust): BPE inside words, split at white space, the end of a word marked as in subword-nmt."""

from program import main, segment_in_batches
from tokenizers import Tokenizer, models, pre_tokenizers, trainers


def learn(corpus: str, model: str, vocabulary: int) -> None:
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train([corpus], trainer)
    tokenizer.save(model)


def apply(corpus: str, model: str, output: str) -> None:
    tokenizer = Tokenizer.from_file(model)
    segment_in_batches(
        corpus, output, lambda batch: (encoding.tokens for encoding in tokenizer.encode_batch_fast(batch))
    )


if __name__ == "__main__":
    main(learn, apply)
