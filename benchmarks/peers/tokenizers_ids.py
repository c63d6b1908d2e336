"""tokenizers (Rust): lines in batches, on two threads; a whole text at once takes it much memory."""

from collections.abc import Iterator, Sequence
from typing import Any

from ids_program import main
from tokenizers import Tokenizer, decoders

BATCH = 20_000


def encode_text(model: str, text: str) -> Any:
    return Tokenizer.from_file(model).encode_batch_fast([text], add_special_tokens=False)[0].ids


def encode_lines(model: str, lines: list[str]) -> Iterator[Sequence[int]]:
    tokenizer = Tokenizer.from_file(model)
    for start in range(0, len(lines), BATCH):
        for encoding in tokenizer.encode_batch_fast(lines[start : start + BATCH], add_special_tokens=False):
            yield encoding.ids


def decode(model: str, ids: Any) -> bytes:
    tokenizer = Tokenizer.from_file(model)
    tokenizer.decoder = decoders.ByteLevel()
    text: str = tokenizer.decode(ids)
    return text.encode("utf-8")


if __name__ == "__main__":
    main(encode_text, encode_lines, decode)
