"""Two codes files + words → which tokens of the BPE vocabulary Scaffold-BPE removed, and which came in their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.errors import UsageError
from mt_scaffold.inputs import Lines, TextFile
from mt_scaffold.learn import count_words, learn_from_counts
from mt_scaffold.options import FORMATS
from mt_scaffold.stats import Vocabulary, format_table, use_of_vocabulary


def compare_vocab(
    bpe: CodesSource,
    scaffold: CodesSource,
    infile: TextFile | None = None,
    num_workers: int = 1,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
) -> dict[str, Any]:
    """Compare the normal merged tokens of two codes files on a text of words (not segmented).

    Returns what ``compare_vocabularies`` does. Raises MTScaffoldError where a file is malformed, missing or not
    UTF-8, or the text has no words; UsageError where the codes stand in each other's place.
    """
    read = [Codes.of(source) for source in (bpe, scaffold)]  # a missing file is reported before the long count
    counts = count_words(infile, num_workers=num_workers, paths=paths, lines=lines)
    first, second = (use_of_vocabulary(source, counts) for source in read)
    if first.scaffold and not second.scaffold:
        raise UsageError(
            f"{first.codes.name} are Scaffold-BPE codes and {second.codes.name} are not: the BPE codes come first"
        )
    return compare_vocabularies(first, second)


def compare_vocabularies(bpe: Vocabulary, scaffold: Vocabulary) -> dict[str, Any]:
    """What the second vocabulary lacks of the first (``removed``) and has beyond it (``new``), as JSON can hold it.

    ``removed``: tokens with their frequency in the text as ``bpe`` segments it, and whether ``scaffold`` keeps them as
    scaffold tokens (otherwise they are not in it at all). ``new``: tokens with their frequency in the text as
    ``scaffold`` segments it. Both the most frequent first. ``gain``: how much higher the average frequency of the new
    tokens is than that of the removed ones, 0.5 for half as much again; None where one of the lists is empty or the
    removed tokens never occur.
    """
    removed = _by_frequency(bpe.normal - scaffold.normal, bpe)
    new = _by_frequency(scaffold.normal - bpe.normal, scaffold)
    average_removed, average_new = _average(removed), _average(new)
    return {
        "bpe": bpe.codes.name,
        "scaffold": scaffold.codes.name,
        "kept": len(bpe.normal & scaffold.normal),
        "removed": [
            {"token": token, "frequency": frequency, "scaffold": token in scaffold.scaffold}
            for token, frequency in removed
        ],
        "new": [{"token": token, "frequency": frequency} for token, frequency in new],
        "average_frequency_removed": average_removed,
        "average_frequency_new": average_new,
        "gain": average_new / average_removed - 1 if average_removed and average_new is not None else None,
    }


def compare_at_sizes(counts: _core.WordCounts, sizes: Sequence[int], min_frequency: int = 2) -> list[dict[str, Any]]:
    """Learn BPE and Scaffold-BPE of each size on counted words (``count_text``), and compare the vocabularies on them.

    One dictionary a size: ``symbols``, and of ``compare_vocabularies`` the averages, the gain and how many tokens are
    removed and new. A size that the text is too small for is left out.
    """
    rows = []
    for symbols in sizes:
        used = []
        for algorithm in ("bpe", "scaffold"):
            copy = _core.WordCounts()
            copy.add(counts)
            learned = learn_from_counts(copy, symbols, min_frequency, algorithm)
            if learned.exhausted:
                break
            used.append(use_of_vocabulary(learned.codes, counts))
        if len(used) == 2:
            found = compare_vocabularies(*used)
            averages = {key: found[key] for key in ("average_frequency_removed", "average_frequency_new", "gain")}
            rows.append({"symbols": symbols, "removed": len(found["removed"]), "new": len(found["new"]), **averages})
    return rows


def _by_frequency(tokens: frozenset[str], vocabulary: Vocabulary) -> list[tuple[str, int]]:
    found = [(token, vocabulary.frequencies[token]) for token in tokens]
    return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def _average(entries: Sequence[tuple[str, int]]) -> float | None:
    return sum(frequency for _, frequency in entries) / len(entries) if entries else None


def format_comparison(comparison: dict[str, Any], form: str = "text", top: int | None = 20) -> str:
    """What ``compare_vocab`` gives, for people (``text``, ``markdown``: the ``top`` most frequent tokens of each list,
    None for all) or whole as ``json``."""
    if form not in FORMATS:
        raise UsageError(f"there is no format '{form}'; choose one of {', '.join(FORMATS)}")
    if top is not None and top < 0:
        raise UsageError(f"the number of tokens to show must not be negative, not {top}")
    if form == "json":
        return json.dumps(comparison, indent=2, ensure_ascii=False) + "\n"
    markdown = form == "markdown"
    summary = [["", "tokens", "average frequency"]]
    for name in ("removed", "new"):
        average = comparison[f"average_frequency_{name}"]
        summary.append([name, f"{len(comparison[name]):,}", "" if average is None else f"{average:,.2f}"])
    gain = comparison["gain"]
    summary.append(["gain", "", "" if gain is None else f"{gain:+.2%}"])
    blocks = [format_table(summary, markdown)]
    for name, heading in (("removed", "removed from BPE's vocabulary"), ("new", "new in Scaffold-BPE's vocabulary")):
        shown = comparison[name][:top]
        if not shown:
            continue
        rows = [[heading, "frequency"]]
        rows += [[_shown_token(entry["token"], markdown), f"{entry['frequency']:,}"] for entry in shown]
        more = len(comparison[name]) - len(shown)
        blocks.append(format_table(rows, markdown) + (f"and {more:,} more\n" if more else ""))
        if markdown and more:
            blocks[-1] = blocks[-1].replace("\nand ", "\n\nand ")
    return "\n".join(blocks)


def _shown_token(token: str, markdown: bool) -> str:
    # A bar would end the cell, even within back quotes.
    return f"`{token}`".replace("|", "\\|") if markdown else token
