"""A stand-in for the ids of BPE, until they are there: longest match over the tokens of a codes file."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class StandIn:
    def __init__(self, codes: Any) -> None:
        tokens = [bytes([byte]) for byte in range(256)]
        for line in Path(codes).read_text(encoding="utf-8").splitlines()[1:]:
            pair = line.split(" ")
            token = "".join(pair[:2]).removesuffix("</w>").encode()
            if len(pair) == 2 and token not in tokens:
                tokens.append(token)
        self.tokens = tokens
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._longest = max(map(len, tokens))

    def encode_batch(
        self,
        texts: Sequence[bytes],
        *,
        dropout: float = 0,
        seed: int | None = None,
        epoch: int = 0,
        indices: Sequence[int] | None = None,
        num_workers: int | None = None,
    ) -> tuple[Any, Any]:
        import numpy

        ids: list[int] = []
        offsets = [0]
        for number, text in zip(indices or range(len(texts)), texts, strict=True):
            digest = hashlib.sha256(f"{seed} {epoch} {number}".encode()).digest()
            draws = random.Random(int.from_bytes(digest, "little"))
            begin = 0
            while begin < len(text):
                longest = self._longest
                while longest > 1 and (text[begin : begin + longest] not in self._ids or draws.random() < dropout):
                    longest -= 1
                token = text[begin : begin + longest]
                ids.append(self._ids[token])
                begin += len(token)
            offsets.append(len(ids))
        return numpy.array(ids, numpy.uint32), numpy.array(offsets, numpy.int64)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(self.tokens[number] for number in ids)

