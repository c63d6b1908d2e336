"""Chunks of ids for litgpt: docs/corpora.md."""

import json
from itertools import pairwise

import litdata

from mt_scaffold.integrations.documents import DocumentEncoder

encoder = DocumentEncoder("codes", append="<|endoftext|>")


def encode(path):
    with open(path, encoding="utf-8") as lines:
        ids, offsets = encoder.encode([json.loads(line)["text"] for line in lines])
    yield from (ids[begin:end] for begin, end in pairwise(offsets))


if __name__ == "__main__":
    litdata.optimize(
        fn=encode,
        inputs=["shards/0.jsonl", "shards/1.jsonl"],
        output_dir="chunks",
        chunk_bytes="64MB",
        item_loader=litdata.TokensLoader(),
    )
