"""sentencepiece (C++): BPE inside words, without normalisation, covering every character."""

import sentencepiece
from program import main, segment_in_batches

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
    segment_in_batches(corpus, output, lambda batch: processor.encode(batch, out_type=str, num_threads=THREADS))


if __name__ == "__main__":
    main(learn, apply)
