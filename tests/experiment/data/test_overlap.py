"""Test sentences that also occur in the training text."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("regex", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.data.overlap import Overlap, TestOverlap


def test_blank_lines_are_no_overlap() -> None:
    """No sentence of this test set is in the training text, but both have lines without one."""
    test = [(b"\n", b"\n"), (" \u3000\xa0\n".encode(), b"a\n"), (b"see\n", b"\r\n"), (b"sea\n", b"Meer\n")]
    train = [*test[:3], (b"lake\n", b"See\n"), (b"\n", b"\n")]
    overlap = Overlap()
    for name, pairs in (("test", test), ("train", [pair for pair in train if pair != (b"see\n", b"\r\n")])):
        for _, part in overlap.watch(name, [("part", pairs)]):
            assert list(part)
    assert overlap.counts() == {"test": TestOverlap(4, 0, 1, 0, 0, 1, near=[1])}
    for _, part in overlap.watch("train", [("part", [(b" sea\n", b"Meer\n")])]):
        assert list(part)
    assert overlap.counts() == {"test": TestOverlap(4, 1, 2, 1, 1, 2, near=[1, 3])}


@pytest.mark.parametrize(
    ("test", "train", "near"),
    [
        ("A man in a red shirt.", "a man in a red shirt", True),
        ("In 1998, 12,000 came.", "in 2004 3.500 came!", True),
        ("A man in a red shirt.", "A man in a blue shirt.", True),
        ("A man in a red shirt.", "A man in a shirt.", True),
        ("A man in a red shirt.", "Today a man in a red shirt.", True),
        ("A man in a red shirt.", "A man in a red shirt sleeps.", True),
        ("A man in a red shirt.", "The man in a blue shirt.", False),
        ("A man in a red shirt.", "A red man in a shirt.", False),
        ("A man sleeps.", "A woman sleeps.", False),
        ("...", "!!!", False),
        ("फूल लाल है और", "फल लाल है और", True),
        # Without spaces every character is a word, and a clause is more than one.
        ("今天天气很好我们去公园", "今天天气很好我们去公寓", True),
        ("他说，今天天气很好，明天再见。", "他说，今天天气很好，昨天晚上有人偷走了自行车。", False),
        ("我很高兴", "我不高兴", False),
        # Canonically equivalent, and with characters that nobody sees.
        ("Die Tür ist grün.", "Die Tu\u0308r ist gru\u0308n.", True),
        ("Scha\u00adden\u00adersatz", "Schadenersatz", True),
        ("S\ufeffee", "See", True),
        ("می\u200cروم", "میروم", True),
        # Numbers alone are not evidence.
        ("10:30", "1.99", False),
        ("2019", "7", False),
    ],
)
def test_sentences_that_are_nearly_in_the_training_text(test: str, train: str, near: bool) -> None:
    """Case, punctuation and numbers do not count, nor does one word of four or more."""
    overlap = Overlap()
    for name, line in (("test", test), ("train", train)):
        for _, part in overlap.watch(name, [("part", [(line.encode(), b"other " + name.encode())])]):
            assert list(part)
    assert overlap.counts()["test"].near_source == near and overlap.near("test") == [near]
    assert bool(overlap.warnings()) == near


def test_the_cost_of_sentences_that_begin_alike_is_not_their_number_squared() -> None:
    """Each training line was compared with each test sentence of the same template: 16 times the time for 4 times."""
    letters = random.Random(1).choices

    def taken(sentences: int) -> float:
        overlap, began = Overlap(), time.process_time()
        for name, size in (("test", sentences), ("train", 4 * sentences)):
            lines = (b"Unable to open %b q%b ." % ((bytes(letters(b"abcde", k=20)),) * 2) for _ in range(size))
            for _, part in overlap.watch(name, [("part", ((line, line) for line in lines))]):
                assert len([*part]) == size
        assert sum(overlap.near("test")) < 10
        return time.process_time() - began

    few, many = (min(taken(sentences) for _ in range(3)) for sentences in (500, 2000))
    assert many < 8 * few


@given(st.lists(st.sampled_from("abc"), min_size=4, max_size=9), st.data())
def test_one_edit_of_any_word_is_near(words: list[str], data: st.DataObject) -> None:
    """Whichever half of the sentence it is in."""
    place = data.draw(st.integers(0, len(words) - 1))
    edited = data.draw(
        st.sampled_from(
            [
                words[:place] + words[place + 1 :],
                [*words[:place], "x", *words[place + 1 :]],
                [*words[:place], "x", *words[place:]],
            ]
        )
    )
    overlap = Overlap()
    for name, line in (("test", words), ("train", edited)):
        for _, part in overlap.watch(name, [("part", [(" ".join(line).encode(), b"-")])]):
            assert list(part)
    assert overlap.near("test") == [True]
