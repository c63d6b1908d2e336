"""Test sentences that the training text has, too."""

from __future__ import annotations

from mt_scaffold.experiment.data.overlap import Overlap, TestOverlap


def test_blank_lines_are_no_overlap() -> None:
    """No sentence of this test set is in the training text, but both have lines without one."""
    test = [(b"\n", b"\n"), (" \u3000\xa0\n".encode(), b"a\n"), (b"see\n", b"\r\n"), (b"sea\n", b"Meer\n")]
    train = [*test[:3], (b"lake\n", b"See\n"), (b"\n", b"\n")]
    overlap = Overlap()
    for name, pairs in (("test", test), ("train", [pair for pair in train if pair != (b"see\n", b"\r\n")])):
        for _, part in overlap.watch(name, [("part", pairs)]):
            assert list(part)
    assert overlap.counts() == {"test": TestOverlap(4, 0, 1, 0)}
    for _, part in overlap.watch("train", [("part", [(b" sea\n", b"Meer\n")])]):
        assert list(part)
    assert overlap.counts() == {"test": TestOverlap(4, 1, 2, 1)}


def test_only_blank_lines_in_common_warn_of_nothing() -> None:
    """An empty line in both texts once warned of test sentences in the training text."""
    overlap = Overlap()
    for name, pairs in (("test", [(b"a\n", b"b\n"), (b"\n", b"\n")]), ("train", [(b"c\n", b"d\n"), (b"\n", b"\n")])):
        for _, part in overlap.watch(name, [("part", pairs)]):
            assert list(part)
    assert overlap.warnings() == []
