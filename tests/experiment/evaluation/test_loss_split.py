"""The split of the loss by frequency: sums against computations by hand, and tables with known answers."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from split_losses import write_split

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.evaluation.losses import loss_split
from mt_scaffold.experiment.evaluation.losses.loss_split import (
    ACROSS,
    END,
    FREQUENT,
    OTHER,
    LossSplit,
    Part,
    TokenLosses,
    WordFrequencies,
    split_by_token,
    split_by_word,
    words_of_tokens,
)
from mt_scaffold.experiment.report.losses import (
    Training,
    loss_tables,
    notes,
    word_tables,
)
from mt_scaffold.experiment.runtime.results import read_result, write_result


def test_the_bits_of_a_word_are_those_of_its_tokens() -> None:
    """For any tokens, each bit is in one class, and a token across two words belongs to neither."""
    # "the cat the": the | _c at | _the </s>, and the same with a token across the first two words.
    texts = [b"the", b" cat", b" the"]
    whole = words_of_tokens(np.array([3, 2, 2, 4, 0]), texts)
    crossing = words_of_tokens(np.array([2, 3, 2, 4, 0]), texts)
    assert whole.of_token.tolist() == [0, 1, 1, 2, -1] and crossing.of_token.tolist() == [0, -2, 1, 2, -1]
    bits = [np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])]
    found = split_by_word(bits, [whole, crossing], lambda word: word.decode().strip(), ["cat", "dog", "the"])
    assert list(found) == ["cat", "the", END, ACROSS]
    assert found["cat"] == Part([1, 1], [4, 4], [6.0, 4.0]) and found["the"] == Part([2, 2], [7, 7], [9.0, 9.0])
    assert found[END] == Part([1, 1], [0, 0], [16.0, 16.0]) and found[ACROSS] == Part([0, 1], [0, 0], [0.0, 2.0])
    with pytest.raises(ValueError, match="different texts"):
        words_of_tokens(np.array([3, 2]), [b"the"])


def test_frequent_words_and_decades(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties are in the order of the bytes; a word that is not in the training text is rare."""
    monkeypatch.setattr(loss_split, "MOST_FREQUENT", 2)
    words = WordFrequencies([(b"rare", 9), (b"b", 10), (b"the", 1234), (b"a", 10)])
    assert [words.rank_class(word) for word in (b"the", b"a", b"b", b"none")] == [FREQUENT, FREQUENT, OTHER, OTHER]
    shown = [words.count_class(word) for word in (b"none", b"rare", b"a", b"the")]
    assert shown == ["0", "1 to 9", "10 to 99", "1,000 to 9,999"]


def test_tokens_by_id() -> None:
    """The occurrences and the bits of each id are summed."""
    tokens = split_by_token(np.array([4, 5, 2, 4], np.uint16), np.array([1.0, 2.0, 4.0, 8.0]))
    assert tokens == TokenLosses([2, 4, 5], [1, 2, 1], [4.0, 9.0, 2.0])


def test_tables_show_where_the_difference_is(tmp_path: Path) -> None:
    """A system that is better on rare words alone: all of the difference is there, and the parts add up to it."""
    generator = np.random.default_rng(1)
    trainings = []
    for seed in (1, 2, 3):
        frequent, rare = generator.normal(20, 0.01, 40), generator.normal(9, 0.01, 40)
        for system, gain in (("bpe", 0.0), ("scaffold", 3.0)):
            path = write_split(tmp_path / f"{system}{seed}", system, seed, frequent.tolist(), (rare - gain).tolist())
            trainings.append(Training("equal_text", system, path))
    baselines = {"bpe": None, "scaffold": "bpe"}
    tables = loss_tables(trainings, baselines.__getitem__, 200)
    assert len(tables.words) == 2 * 6
    tests = {(row.partition, row.name): row.test for row in tables.words if row.test is not None}
    assert len(tests) == 6
    differences = {place: test.difference for place, test in tests.items()}
    for partition in {partition for partition, _ in differences}:
        assert math.isclose(sum(value for key, value in differences.items() if key[0] == partition), -0.3, rel_tol=1e-9)
    gained = tests["frequency", OTHER]
    assert math.isclose(gained.difference, -0.3, rel_tol=1e-9) and gained.high < 0 and (gained.p_holm or 0) < 0.05
    assert math.isclose(differences["frequency", FREQUENT], 0, abs_tol=1e-12)
    row = next(row for row in tables.words if row.name == OTHER and row.system == "scaffold")
    assert row.bits_per_byte is not None and math.isclose(row.bits_per_byte, 3, abs_tol=0.01)
    (words,) = word_tables(tables).values()
    assert words[2][:4] == ["frequency", OTHER, "2", "20.0"] and words[2][6] == "-0.3000"


def test_one_training_and_other_text(tmp_path: Path) -> None:
    """One training of each has a test over documents alone; losses on other text are refused."""
    first = Training("", "bpe", write_split(tmp_path / "a", "bpe", 1, [1.0, 2.0], [1.0, 1.0]))
    second = Training("", "scaffold", write_split(tmp_path / "b", "scaffold", 1, [1.0, 2.0], [0.5, 0.5]))
    tables = loss_tables([first, second], {"bpe": None, "scaffold": "bpe"}.__getitem__, 50)
    test = next(row.test for row in tables.words if row.name == OTHER and row.test is not None)
    assert test.p is None and test.segments_p is not None and math.isclose(test.difference, -0.05)
    other = Training("", "scaffold", write_split(tmp_path / "c", "scaffold", 1, [1.0], [1.0], sha="1"))
    with pytest.raises(MTScaffoldError, match="of other text"):
        loss_tables([first, other], {"bpe": None, "scaffold": "bpe"}.__getitem__, 50)


def test_references_with_unk_count_for_no_system(tmp_path: Path) -> None:
    """As in the scores, so that the classes' differences add up to that on the other references."""
    bits = {"bpe": ([4.0, 8.0, 2.0], [1.0, 1.0, 1.0]), "scaffold": ([4.0, 7.0, 90.0], [2.0, 1.0, 1.0])}
    trainings = []
    for system, unknown in (("bpe", []), ("scaffold", [2])):
        path = write_split(tmp_path / system, system, 1, *bits[system])
        write_result(path, replace(read_result(LossSplit, path), unit="sentence", unknown=unknown))
        trainings.append(Training("", system, path))
    baseline_of = {"bpe": None, "scaffold": "bpe"}.__getitem__
    tables = loss_tables(trainings, baseline_of, 50)
    differences = {row.name: row.test.difference for row in tables.words if row.test and row.partition == "frequency"}
    assert differences == pytest.approx({FREQUENT: -1 / 20, OTHER: 1 / 20, END: 0})
    assert {(row.name, row.bytes) for row in tables.words if row.partition == "frequency"} == {
        (FREQUENT, 16), (OTHER, 4), (END, 0)
    }  # fmt: skip
    assert notes(tables)[1].endswith("left out of the losses of words, as of the scores: test (1 of 3).")
    path = trainings[0].path
    write_result(path, replace(read_result(LossSplit, path), unknown=[0, 1]))
    tables = loss_tables(trainings, baseline_of, 50)
    assert not tables.words and notes(tables)[0].endswith("test (3 of 3).")


def test_sentences_that_are_too_long_count_for_no_system(tmp_path: Path) -> None:
    """They have no losses in one system, and so are in no class; a note counts them."""
    trainings = []
    for system, too_long in (("bpe", [1]), ("scaffold", None)):
        path = write_split(tmp_path / system, system, 1, [4.0, 0.0, 2.0], [1.0, 1.0, 1.0])
        write_result(path, replace(read_result(LossSplit, path), unit="sentence", unknown=[], too_long=too_long))
        trainings.append(Training("", system, path))
    tables = loss_tables(trainings, {"bpe": None, "scaffold": "bpe"}.__getitem__, 50)
    assert {row.bytes for row in tables.words if row.name == FREQUENT} == {16}
    assert notes(tables)[1] == "Sentences that are longer than a model takes are left out of all losses: test (1 of 3)."


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "intervals over documents alone"),
        (2, "too narrow where trainings differ more than documents do"),
        (3, "over trainings and documents; p by Holm's method"),
    ],
)
def test_what_is_said_of_the_intervals(tmp_path: Path, seeds: int, said: str) -> None:
    """The note depends on the number of trainings."""
    trainings = [
        Training("", name, write_split(tmp_path / f"{name}{seed}", name, seed, [1.0, 2.0 + seed], [1.0, gain * seed]))
        for name, gain in (("bpe", 1.0), ("scaffold", 0.5))
        for seed in range(1, seeds + 1)
    ]
    tables = loss_tables(trainings, {"bpe": None, "scaffold": "bpe"}.__getitem__, 50)
    assert said in notes(tables)[0]
    p_shown = [line[-1] for line in next(iter(word_tables(tables).values()))[1:]]
    assert any(p_shown) == (seeds == 3)


def test_counts_of_the_words_of_a_text() -> None:
    """Classes count every occurrence of every word, as a Counter does."""
    texts = b"a b a c".split()
    found = split_by_word(
        [np.arange(5.0)], [words_of_tokens(np.array([1, 1, 1, 1, 0]), texts)], bytes.decode, ["a", "b", "c"]
    )
    assert {name: sum(part.words) for name, part in found.items() if name != END} == Counter("abac")
