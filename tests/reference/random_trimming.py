"""The plain Python reference of the control for Scaffold-BPE (``methods.random_trimming``).

Unlike the program, it learns BPE; Scaffold-BPE only determines the numbers of merges and of scaffold tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from mt_scaffold.analysis.reference import Learned, learn_merges
from mt_scaffold.corpus.text import is_base_symbol


def control(
    word_counts: Mapping[str, int],
    symbols: int,
    draw: int,
    min_frequency: int = 2,
    end_of_word: bool = True,
    written: Callable[[str], str] = str,
) -> Learned:
    """Learn BPE with as many scaffold tokens as Scaffold-BPE: those with the least SHA-256 of "DRAW TOKEN".

    written: token → the token as in ``Merge``.
    """
    scaffold_bpe = learn_merges(word_counts, symbols, min_frequency, "scaffold", end_of_word)
    bpe = learn_merges(word_counts, len(scaffold_bpe.merges), min_frequency, "bpe", end_of_word)
    digests = {}
    for left, right in bpe.merges:
        if not is_base_symbol(left + right, end_of_word):
            digests[left + right] = hashlib.sha256(f"{draw} {written(left + right)}".encode()).hexdigest()
    in_order = sorted(digests, key=lambda token: digests[token])
    return Learned(bpe.merges, scaffold=set(in_order[: len(scaffold_bpe.scaffold)]))
