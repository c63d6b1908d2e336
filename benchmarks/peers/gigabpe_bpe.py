"""gigabpe (Rust): learns byte-level BPE with GPT-2's pattern; it leaves segmenting to other libraries."""

import sys

import gigabpe

if __name__ == "__main__":
    _, corpus, model, vocabulary = sys.argv[1:]
    gigabpe.train_tokenizer([corpus], int(vocabulary), model)
