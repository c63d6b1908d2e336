"""Words of references that are found in translations: counts by hand, tests with known answers, tables."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mt_scaffold.experiment.evaluation.losses.loss_split import decade
from mt_scaffold.experiment.evaluation.significance import correct
from mt_scaffold.experiment.report.found_words import Translated, count_found, found_tables, found_words

TIMES = {"the": 1000, "house": 40, "red": 5}


def class_of(word: str) -> int:
    return decade(TIMES.get(word, 0))


def test_words_are_found_as_often_as_they_occur() -> None:
    """A word repeated only in the reference is found once, and its place does not matter; "" finds none."""
    reference = ["the red house the", "zebra zebra", "house"]
    translation = ["house the the the red red", "a zebra", ""]
    words, found = count_found(translation, reference, class_of, 5)
    assert words.sum(axis=1).tolist() == [2, 1, 2, 0, 2] and found.sum(axis=1).tolist() == [1, 1, 1, 0, 2]
    assert words[:, 0].tolist() == [0, 1, 1, 0, 2] and found[2].tolist() == [1, 0, 0]


def test_against_a_slow_count() -> None:
    """Random sentences, crossing out one word of the reference after the other in the translation."""
    generator = random.Random(1)
    vocabulary = [*TIMES, "zebra", "gnu"]
    reference = [" ".join(generator.choices(vocabulary, k=generator.randrange(9))) for _ in range(200)]
    translation = [" ".join(generator.choices(vocabulary, k=generator.randrange(9))) for _ in range(200)]
    expected: Counter[tuple[int, bool]] = Counter()
    for own, wanted in zip(translation, reference, strict=True):
        left = own.split()
        for word in wanted.split():
            expected[class_of(word), word in left] += 1
            if word in left:
                left.remove(word)
    words, found = count_found(translation, reference, class_of, 5)
    for place in range(5):
        assert found[place].sum() == expected[place, True]
        assert (words - found)[place].sum() == expected[place, False]


def test_a_system_that_finds_new_words_is_told_from_its_baseline() -> None:
    """It finds every word that is not in the training text, the baseline two in three; of frequent words both all."""
    reference = ["the zebra"] * 90
    translations = {
        "bpe": {seed: ["the" if (seed + i) % 3 == 0 else "the zebra" for i in range(90)] for seed in (1, 2, 3)},
        "scaffold": {seed: ["the zebra"] * 90 for seed in (1, 2, 3)},
    }
    baseline_of = {"bpe": None, "scaffold": "bpe"}.__getitem__
    rows = found_words({"test": Translated(reference, translations)}, class_of, baseline_of, 200)
    shown = {(row.name, row.system): row for row in rows}
    new = shown["0", "scaffold"]
    assert new.words == 90 and new.percent.mean == 100 and shown["0", "bpe"].percent.mean == pytest.approx(200 / 3)
    assert new.test is not None and new.test.difference == pytest.approx(100 / 3) and new.test.low > 20
    assert new.test.p_holm is not None and new.test.p_holm < 0.001
    assert shown["0", "bpe"].test is None
    frequent = shown["1,000 to 9,999", "scaffold"].test
    assert frequent is not None and frequent.difference == 0
    (table,) = found_tables(rows)
    assert table.rows[0][:4] == ["occurrences in the training text", "words", "bpe, %", "scaffold, %"]
    assert table.rows[1][:5] == ["0", "90", "66.67", "100.00", "+33.33"] and len(table.rows) == 3


def test_p_is_corrected_over_all_classes_and_test_sets() -> None:
    """Six comparisons: two test sets, of words of three decades each."""
    generator = random.Random(2)
    vocabulary = ["the", "house", "zebra"]

    def translations(found: float) -> dict[int, list[str]]:
        return {
            seed: [" ".join(w for w in vocabulary if generator.random() < found) for _ in range(60)]
            for seed in (1, 2, 3)
        }

    reference = [" ".join(vocabulary)] * 60
    test_sets = {
        name: Translated(reference, {"bpe": translations(0.6), "scaffold": translations(found)})
        for name, found in (("first", 0.63), ("second", 0.7))
    }
    rows = found_words(test_sets, class_of, {"bpe": None, "scaffold": "bpe"}.__getitem__, 200)
    tests = {(row.test_set, row.name): row.test for row in rows if row.test is not None}
    p = {place: test.p for place, test in tests.items() if test.p is not None}
    assert len(p) == 6 and {place: test.p_holm for place, test in tests.items()} == correct(p) != p


def test_classes_that_few_sentences_have_are_not_tested() -> None:
    """Some resamples would have none of these words."""
    reference = ["zebra"] * 29 + ["the"] * 40
    translations = {name: {1: reference} for name in ("bpe", "scaffold")}
    baseline_of = {"bpe": None, "scaffold": "bpe"}.__getitem__
    rows = found_words({"test": Translated(reference, translations)}, class_of, baseline_of, 50)
    assert [row.test is not None for row in rows] == [False, False, False, True]
    (table,) = found_tables(rows)
    assert table.rows[1] == ["0", "29", "100.00", "100.00", "", "", ""]
