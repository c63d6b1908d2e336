"""rs-bpe (Rust): a text, or lines in one call; it has the published vocabularies of tiktoken only, here cl100k_base."""

from typing import Any

from ids_program import THREADS, main
from rs_bpe.bpe import openai


def encode_lines(model: str, lines: list[str]) -> Any:
    options = openai.ParallelOptions(min_batch_size=1000, chunk_size=1000, max_threads=THREADS)
    return openai.cl100k_base().encode_batch_parallel(lines, options)[0]


if __name__ == "__main__":
    main(
        lambda model, text: openai.cl100k_base().encode(text),
        encode_lines,
        lambda model, ids: openai.cl100k_base().decode(ids).encode("utf-8"),
    )
