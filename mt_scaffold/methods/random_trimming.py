"""A control for Scaffold-BPE: the same merges and as many scaffold tokens, but random ones.

docs/methods.md has the definition; tests/reference/random_trimming.py is the plain Python reference.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from mt_scaffold import _core
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import Writable
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.base import check_amount, setting, symbols_setting
from mt_scaffold.methods.bpe import LearnedCodes, MergingMethod, Scaffold


@dataclass(frozen=True)
class RandomlyTrimmed(MergingMethod):
    """BPE with as many scaffold tokens as Scaffold-BPE, chosen at random. A control that comes from no paper."""

    name: ClassVar[str] = "random"
    title: ClassVar[str] = "BPE trimmed at random"

    symbols: int = symbols_setting("number of normal merged tokens")
    draw: int = setting(
        "number of the random draw of tokens to trim",
        default=1,
        least=0,
        check=check_amount("draw", 0),
        label="-draw{}",
    )

    def learn(
        self,
        words: _core.WordCounts,
        header: CodesHeader = CHARACTERS,
        verbose: bool = False,
        trace: Writable | None = None,
    ) -> LearnedCodes:
        """Learn Scaffold-BPE from counted words, and mark random tokens instead of scaffold tokens.

        Raises UsageError for a trace: no step marks a token.
        """
        if trace is not None:
            raise UsageError(f"{self.name} draws its tokens after learning, so there are no steps to trace")
        learned = Scaffold(self.symbols, self.min_frequency, self.total_symbols).learn(words, header, verbose)
        return learned._replace(codes=_marked_at_random(learned.codes, self.draw), restored=0)


def _marked_at_random(codes: Codes, draw: int) -> Codes:
    """Return codes with the same merges and as many scaffold tokens: those with the least SHA-256 of "DRAW TOKEN"."""
    scaffold = codes.scaffold

    def place(token: str) -> bytes:
        return hashlib.sha256(f"{draw} {token}".encode()).digest()

    return codes.with_scaffold(set(sorted(codes.normal | scaffold, key=place)[: len(scaffold)]))
