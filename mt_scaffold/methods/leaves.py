"""Leaf pruning: codes → codes without the rarest of the tokens that no other merge builds on."""

from __future__ import annotations

import heapq
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mt_scaffold import _core
from mt_scaffold.codes import AnyMerge, Codes, CodesSource
from mt_scaffold.corpus.count import count_files, counted_text, sources_of
from mt_scaffold.corpus.documents import Texts
from mt_scaffold.corpus.files import Output, PathLike, refuse_overwriting, writing_to
from mt_scaffold.corpus.inputs import Lines, TextFile
from mt_scaffold.corpus.text import is_base_symbol
from mt_scaffold.errors import UsageError
from mt_scaffold.segment.frequencies import use_of_vocabulary
from mt_scaffold.segment.words import words_of_text


def prune_leaves(
    codes: CodesSource,
    number: int,
    infile: TextFile | None = None,
    outfile: Output | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: Texts | None = None,
    counts: Sequence[PathLike] | None = None,
) -> Codes:
    """Remove ``number`` tokens with the merges that make them, and write the codes.

    Only a leaf is removed: a token that no remaining merge builds on. The rarest leaf goes first, in a tie the one of
    the highest rank; its frequency is added to those of the two symbols that it was merged from (Purason et al. 2025,
    docs/methods.md). A scaffold token has the frequency 0 and does not count towards ``number``.

    codes, infile, paths, lines, documents, counts, outfile, num_workers: as for ``trim``; exactly one text.

    Raises MTScaffoldError as ``trim`` does; UsageError for codes of PickyBPE, and for more tokens than there are.

    >>> prune_leaves(b"#version: 0.2\\nl o\\nlo w</w>\\nlo t\\n", 1, lines=["low low lot"]).merges
    [Merge(left='l', right='o', scaffold=False), Merge(left='lo', right='w</w>', scaffold=False)]
    """
    read = Codes.of(codes)
    if read.header.picky:
        raise UsageError(f"{read.name}: codes of PickyBPE, which removes tokens as it learns; prune codes of BPE")
    if not 0 < number <= len(read.normal):
        raise UsageError(f"{read.name}: cannot remove {number:,} of its {len(read.normal):,} normal tokens")
    text = counted_text(infile, paths, lines, documents, counts)
    counts = None if counts is None else count_files(counts)
    refuse_overwriting([outfile], [codes, *(sources_of(text) if counts is None else counts)])
    with writing_to(io.BytesIO() if outfile is None else outfile) as stream:
        words = words_of_text(read, text, counts, num_workers)
        pruned = read.without(set(removed_leaves(read, words, number)))
        stream.write(pruned.text)
    return pruned


def removed_leaves(codes: Codes, words: _core.WordCounts, number: int) -> list[str]:
    """Return the tokens that leaf pruning removes from codes, in order of removal; words: of the text."""
    return _pruning_order(codes, use_of_vocabulary(codes, words).frequencies, number)


def _pruning_order(codes: Codes, frequencies: Mapping[str, int], number: int) -> list[str]:
    end_of_word = codes.header.end_of_word
    makers: defaultdict[str, list[AnyMerge]] = defaultdict(list)
    rank: dict[str, int] = {}
    uses: Counter[str] = Counter()
    for place, merge in enumerate(codes.merges):
        rank.setdefault(merge.token, place)
        makers[merge.token].append(merge)
        uses[merge.left] += 1
        uses[merge.right] += 1
    frequency, scaffold = Counter(frequencies), codes.scaffold

    def can_go(token: str) -> bool:
        return token in makers and not uses[token] and not is_base_symbol(token, end_of_word)

    leaves = [(frequency[token], -rank[token], token) for token in makers if can_go(token)]
    heapq.heapify(leaves)
    order: list[str] = []
    while number and leaves:
        _, _, token = heapq.heappop(leaves)
        order.append(token)
        number -= token not in scaffold
        for part in makers[token][0][:2]:
            frequency[part] += frequency[token]
        for merge in makers[token]:
            for part in (merge.left, merge.right):
                uses[part] -= 1
                # A token's frequency is final once nothing builds on it.
                if can_go(part):
                    heapq.heappush(leaves, (frequency[part], -rank[part], part))
    return order
