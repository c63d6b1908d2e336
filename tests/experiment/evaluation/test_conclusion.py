"""The sentence above a table, with the result of its tests."""

from __future__ import annotations

import dataclasses

from mt_scaffold.experiment.evaluation.comparison import Contrast, Unit, conclusion
from mt_scaffold.experiment.evaluation.significance import Difference
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning

BLEU = Unit("BLEU", "BLEU")
BITS = Unit("bits per byte", "bits per byte", 4, lower_is_better=True)


def contrast(system: str, place: str, difference: float, p: float) -> Contrast:
    found = Difference(difference, difference - 0.1, difference + 0.1, p / 2, p, 0.1, 4.0, 0.3)
    return Contrast(system, "bpe", place, found)


def test_no_difference_is_significant() -> None:
    """The corrected p decides, whatever the uncorrected one."""
    assert conclusion([contrast("scaffold", "test", 0.3, 0.06)], BLEU, []) == "No difference in BLEU is significant."


def test_who_is_ahead_by_how_much_and_where() -> None:
    """If less is better, the lower one is ahead; differences that are not significant are named as such."""
    rows = [
        contrast("scaffold", "a", -0.02, 0.01),
        contrast("scaffold", "b", 0.01, 0.01),
        contrast("picky", "a", 1.0, 0.9),
    ]
    assert conclusion(rows, BITS, []) == (
        "scaffold is ahead of bpe by 0.0200 bits per byte on a; bpe is ahead of scaffold by 0.0100 bits per byte on b; "
        "no other difference is significant."
    )
    rows = [contrast("scaffold", place, 0.5, 0.01) for place in ("a", "b")]
    assert conclusion(rows, BLEU, []) == "scaffold is ahead of bpe by 0.50 BLEU on a and 0.50 BLEU on b."


def test_of_many_only_the_largest_is_named() -> None:
    """The result stays a sentence, rather than a list."""
    rows = [contrast("scaffold", str(number), number / 10, 0.01) for number in range(1, 7)]
    assert conclusion(rows, BLEU, []) == (
        "6 of 6 differences are significant; the largest: scaffold is ahead of bpe by 0.60 BLEU on 6."
    )


def test_nothing_may_be_concluded() -> None:
    """With a single system, with two trainings, or without a test."""
    row = contrast("scaffold", "test", 0.5, 0.01)
    assert conclusion([], BLEU, []) == "Nothing is compared: no system has a baseline here."
    assert row.test is not None
    without_p = dataclasses.replace(row.test, p=None, p_holm=None)
    assert "takes 3 trainings" in conclusion([row._replace(test=without_p)], BLEU, [])
    assert "no difference in BLEU could be tested" in conclusion([row._replace(test=None)], BLEU, [])


def test_a_grave_limit_is_in_the_sentence() -> None:
    """A reader who stops there must not mistake scores of broken translations for a result."""
    warnings = [ResultWarning("few-seeds", "bpe"), ResultWarning("repetition", "test"), ResultWarning("length", "test")]
    assert conclusion([contrast("scaffold", "test", 0.5, 0.9)], BLEU, warnings) == (
        "No difference in BLEU is significant; but translations are much longer or shorter than the reference."
    )


def test_single_trainings_are_these_models_alone() -> None:
    """Their p is over sentences only."""
    row = contrast("scaffold", "test", 0.5, 0.01)
    assert row.test is not None
    alone = dataclasses.replace(row.test, p=None, p_holm=None, segments_p=0.01, segments_p_holm=0.01)
    assert conclusion([row._replace(test=alone)], BLEU, []) == (
        "Of these models alone: scaffold is ahead of bpe by 0.50 BLEU on test."
    )
    alone = dataclasses.replace(alone, segments_p_holm=0.5)
    assert conclusion([row._replace(test=alone)], BLEU, []) == (
        "No difference in BLEU is significant between these models; other trainings may differ."
    )
