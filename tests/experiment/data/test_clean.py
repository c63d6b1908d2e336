"""Cleaning: which pairs stay, what is counted, and that nothing is written when something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy", reason="numpy comes with the extra 'workflow'")

from mt_scaffold.cli import main
from mt_scaffold.corpus import text
from mt_scaffold.corpus.text import word_count
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.data.clean import HoldOut, clean, word_counts


def write(folder: Path, source: bytes, target: bytes) -> tuple[Path, Path, Path, Path]:
    (folder / "in.en").write_bytes(source)
    (folder / "in.de").write_bytes(target)
    return folder / "in.en", folder / "in.de", folder / "out.en", folder / "out.de"


def test_each_reason_drops_its_pairs_and_the_others_stay_in_order(tmp_path: Path) -> None:
    """Dropped pairs are counted by reason; the rest stays parallel."""
    pairs = [
        (b"a b", b"c d"),  # kept
        (b"", b"c"),  # an empty side
        (b"a", b"   "),  # spaces are not words
        (b"a b c d e f", b"a b c d e f"),  # more than 5 words
        (b"a b", b"a b c d"),  # twice as long
        (b"a b c", b"a b"),  # 1.5 times as long: still good
    ]
    files = write(tmp_path, *(b"".join(pair[side] + b"\n" for pair in pairs) for side in (0, 1)))
    report = clean(*files, min_tokens=1, max_tokens=5, max_ratio=1.5)
    assert files[2].read_bytes() == b"a b\na b c\n"
    assert files[3].read_bytes() == b"c d\na b\n"
    assert report.dropped == {"too short": 2, "too long": 1, "ratio": 1}
    assert (report.pairs_read, report.pairs_kept) == (6, 2)
    assert (report.words_read, report.words_kept) == ((14, 15), (5, 4))


def test_a_word_ends_at_a_space_and_a_line_at_lf_only(tmp_path: Path) -> None:
    """Tabs, no-break spaces and other line breaks change neither the count nor the bytes that are kept."""
    source = "a\tb c\u00a0d\u2028e\x85f\r\n".encode()
    files = write(tmp_path, source, b"x y")
    assert clean(*files, max_ratio=1).pairs_kept == 1
    assert files[2].read_bytes() == source
    assert files[3].read_bytes() == b"x y\n"


def test_an_empty_pair_with_cr_lf_line_ends_is_dropped(tmp_path: Path) -> None:
    """A CR at the end of a line is not a word, as in segmenting."""
    files = write(tmp_path, b"a b\r\n\r\n \r\nc\r\n", b"c d\r\n\r\n\r\nd\r\n")
    report = clean(*files)
    assert (report.pairs_kept, report.dropped["too short"]) == (2, 2)
    assert files[2].read_bytes() == b"a b\r\nc\r\n" and files[3].read_bytes() == b"c d\r\nd\r\n"
    assert report.words_read == report.words_kept == (3, 3)


@pytest.mark.parametrize(
    ("source", "target", "counts"), [(b"a\nb\nc\n", b"a\n", (3, 1)), (b"a\n", b"a\nb\nc\nd", (1, 4))]
)
def test_unequal_sides_name_both_counts_and_write_nothing(
    tmp_path: Path, source: bytes, target: bytes, counts: tuple[int, int]
) -> None:
    """From the first missing line on, every pair would be wrong."""
    files = write(tmp_path, source, target)
    with pytest.raises(MTScaffoldError, match=f"in.en has {counts[0]} lines and .*in.de has {counts[1]}"):
        clean(*files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.de", "in.en"]


def test_a_corpus_of_which_nothing_is_left_is_an_error(tmp_path: Path) -> None:
    """Later steps would fail with a less helpful error."""
    files = write(tmp_path, b"a\n", b"\n")
    with pytest.raises(MTScaffoldError, match="none of 1 pairs"):
        clean(*files)
    assert not files[2].exists()


@pytest.mark.parametrize(
    "bounds", [{"min_tokens": 0}, {"min_tokens": 3, "max_tokens": 2}, {"max_ratio": 0.5}, {"max_ratio": float("nan")}]
)
def test_bounds_that_make_no_sense_are_refused(tmp_path: Path, bounds: dict[str, Any]) -> None:
    """A bound that no pair can meet is a typo."""
    with pytest.raises(UsageError):
        clean(*write(tmp_path, b"a\n", b"a\n"), **bounds)


def held_out(folder: Path, text: str, before_cleaning: bool) -> tuple[list[bytes], list[bytes]]:
    """The two parts of a text of one-word pairs, of which every 3rd is held out; the target of ``x`` is too long."""
    words = text.split()
    target = "".join("x x x\n" if word == "x" else f"{word}\n" for word in words)
    files = write(folder, "".join(f"{word}\n" for word in words).encode(), target.encode())
    valid = folder / "valid.en", folder / "valid.de"
    report = clean(*files, hold_out=HoldOut(3, *valid, before_cleaning=before_cleaning))
    assert report.held_out is not None
    assert report.pairs_read + report.held_out.pairs_read == len(words)
    for kept, (english, german) in ((report.pairs_kept, files[2:]), (report.held_out.pairs_kept, valid)):
        assert english.read_bytes() == german.read_bytes() and kept == len(english.read_bytes().split())
    return files[2].read_bytes().split(), valid[0].read_bytes().split()


def test_every_nth_pair_is_held_out_counted_after_cleaning_or_before(tmp_path: Path) -> None:
    """The two published recipes differ in this; a pair that cleaning drops counts only before it."""
    assert held_out(tmp_path, "a x b c d e f", False) == ([b"a", b"b", b"d", b"e"], [b"c", b"f"])
    assert held_out(tmp_path, "a x b c d x f", True) == ([b"a", b"c", b"d", b"f"], [b"b"])


def test_no_validation_pair_is_an_error(tmp_path: Path) -> None:
    """A small sample may have none; training without one would stop much later."""
    files = write(tmp_path, b"a\nb\n", b"c\nd\n")
    with pytest.raises(MTScaffoldError, match=r"no validation pair among 2 pairs, of which one in 3 "):
        clean(*files, hold_out=HoldOut(3, tmp_path / "valid.en", tmp_path / "valid.de"))
    assert not list(tmp_path.glob("out.*")) and not list(tmp_path.glob("valid.*"))


def test_the_command_holds_out_too(tmp_path: Path) -> None:
    """Its options go together."""
    files = write(tmp_path, b"a\nb\nc\n", b"d\ne\nf\n")
    command = ["clean", "-s", files[0], "-t", files[1], "--output-source", files[2], "--output-target", files[3]]
    command += ["--valid-every", "2", "--valid-source", tmp_path / "v.en"]
    assert main(list(map(str, command))) == 2
    assert main([*map(str, command), "--valid-target", str(tmp_path / "v.de")]) == 0
    assert (tmp_path / "v.de").read_bytes() == b"e\n" and files[3].read_bytes() == b"d\nf\n"


@pytest.mark.parametrize("before_cleaning", [False, True])
def test_the_pairs_read_at_a_time_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before_cleaning: bool
) -> None:
    """Texts are read in blocks; the count of pairs to hold out continues across them."""
    source = b"".join(b"a " * (number % 7) + b"\n" for number in range(200))
    files = write(tmp_path, source, b"a b c\n" * 199 + b"a b")
    outputs = [tmp_path / name for name in ("out.en", "out.de", "valid.en", "valid.de")]
    reports, contents = [], []
    for block in (1 << 20, 50):
        monkeypatch.setattr(text, "_LINES", block)
        reports.append(clean(*files, hold_out=HoldOut(3, outputs[2], outputs[3], before_cleaning=before_cleaning)))
        contents.append([path.read_bytes() for path in outputs])
    assert reports[0] == reports[1] and contents[0] == contents[1]
    assert all(content.endswith(b"\n") for content in contents[0])


def test_unequal_sides_are_counted_beyond_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either side may end first, at any place."""
    monkeypatch.setattr(text, "_LINES", 10)
    for lengths in ((7, 50), (50, 7), (10, 50), (50, 10)):
        files = write(tmp_path, b"a\n" * lengths[0], b"b\n" * lengths[1])
        with pytest.raises(MTScaffoldError, match=f"in.en has {lengths[0]} lines and .*in.de has {lengths[1]}"):
            clean(*files)


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(st.lists(st.text("a \r\t\u3000", max_size=6), max_size=5), st.booleans())
def test_words_of_many_lines_are_counted_as_those_of_one(lines: list[str], last_has_end: bool) -> None:
    """Spaces at the ends, several spaces, CRs, empty lines: the fast path recognises where it does not apply."""
    encoded = [f"{line}\n".encode() for line in lines]
    if encoded and not last_has_end:
        encoded[-1] = encoded[-1].removesuffix(b"\n") or b"x"
    assert word_counts(encoded).tolist() == [word_count(line) for line in encoded]
