"""The generated corpus: the same bytes everywhere, correct in both languages, with the forms that subwords are for."""

from __future__ import annotations

import collections
import hashlib
import itertools

from mt_scaffold.experiment.configuration.data import STEMS
from mt_scaffold.experiment.data.synthetic import sentence_pairs

PAIRS = list(itertools.islice(sentence_pairs(1), 12000))


def digest(pairs: list[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{source}\t{target}\n" for source, target in pairs).encode()).hexdigest()


def test_a_seed_gives_these_bytes_on_every_platform() -> None:
    """Figures of the demonstration are comparable only as long as its text is the same."""
    assert digest(PAIRS[:1000]) == "66c1731267065e1b59a25a5376d8231edc823cb0facb9d61f10d9b648e5dcc28"
    assert digest(PAIRS) == "c77a9ef11dbea80bf072e7ddc63027f0f01d6498942ff4f16b308032ce8b124a"


def test_another_seed_gives_other_sentences() -> None:
    """Two seeds share hardly a sentence, and other words are frequent."""
    others = list(itertools.islice(sentence_pairs(2), 1000))
    assert len({*others} & {*PAIRS[:1000]}) < 10
    frequent, other = (
        {word for word, _ in collections.Counter(" ".join(source for source, _ in pairs).split()).most_common(200)}
        for pairs in (PAIRS[:1000], others)
    )
    assert len(frequent & other) < 150


def test_fewer_stems_have_fewer_words() -> None:
    """They make the demonstration quick to learn; the default is the full lexicon, and few stems still suffice."""
    full, few, fewest = (list(itertools.islice(sentence_pairs(1, stems), 1000)) for stems in (STEMS, 120, 40))
    assert full == PAIRS[:1000]
    words = [len({word for _, target in pairs for word in target.split()}) for pairs in (full, few, fewest)]
    assert words[0] > 1.5 * words[1] > 2 * words[2]


def test_no_source_sentence_is_repeated() -> None:
    """Therefore no test sentence is among the training sentences."""
    assert len({source for source, _ in PAIRS}) == len(PAIRS)
