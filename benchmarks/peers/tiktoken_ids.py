"""tiktoken (Rust): a text into an array, or lines on two threads; the model is a file of ranks."""

import os
import sys

import tiktoken
from ids_program import THREADS, main

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from model_files import pattern_of, read_ranks


def encoding(model: str) -> tiktoken.Encoding:
    return tiktoken.Encoding("ours", pat_str=pattern_of(model), mergeable_ranks=read_ranks(model), special_tokens={})


if __name__ == "__main__":
    main(
        lambda model, text: encoding(model).encode_to_numpy(text, disallowed_special=()),
        lambda model, lines: encoding(model).encode_ordinary_batch(lines, num_threads=THREADS),
        lambda model, ids: encoding(model).decode_bytes(ids),
    )
