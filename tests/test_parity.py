"""Parity-aware BPE: the native core against its twin in plain Python, an example to follow by hand, and BPE itself."""

from __future__ import annotations

import io
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segmenting import (
    BYTES,
    CHARACTERS,
    VECTORS,
    Mode,
    hard_text,
    lines_at_lf,
    twin_subwords,
)
from test_native_equals_twin import ALPHABETS, words
from test_vectors import options_of

from mt_scaffold import _core, count_words, learn_bpe
from mt_scaffold.parity import Parity
from mt_scaffold.reference_parity import LearnedParity, ParityStep, learn_parity
from mt_scaffold.text import words_of

hundreds = settings(max_examples=300, derandomize=True, deadline=None, database=None)
_ = (BYTES, Counter, hard_text, lines_at_lf, twin_subwords, options_of, words_of, VECTORS)


def codes_of(learned: LearnedParity, mode: Mode = CHARACTERS) -> bytes:
    """The codes file that the twin's merges make."""
    merges = [b" ".join(map(mode.in_file, merge)) for merge in learned.merges]
    return b"\n".join([mode.first_line.encode(), *merges]) + b"\n"


# ---- by hand


# Writing "w." for "w</w>". English has the tokens l o w. l o w. l o w e r., 11; German 8 + 6 = 14.
#   14 > 11       German: (t, i) and (i, e) occur 3 times, the greater wins: ti, and 11 tokens are left
#   11 = 11       English is first: (l, o) 3 times, 8 tokens
#   11 > 8        German: (ti, e) 3 times, 8 tokens
#   8 = 8         English: (lo, w.) twice, 6 tokens
#   8 > 6         German: (tie, f.) twice, 6 tokens
#   6 = 6         English: nothing occurs twice any more, and that is the end: "e r." does so only in both together
ENGLISH, GERMAN = "low low lower\n", "tief tief tiefer\n"
BY_HAND = b"#version: 0.2\nt i\nl o\nti e\nlo w</w>\ntie f</w>\n"


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "text.en", tmp_path / "text.de"]
    for path, text in zip(paths, (ENGLISH, GERMAN), strict=True):
        path.write_text(text)
    return paths


def test_by_hand(texts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The language with most tokens is next; what ends learning, and each choice on request, is said on stderr."""
    learned = learn_bpe(paths=texts, num_symbols=10, algorithm="parity", verbose=True)
    assert learned.text == BY_HAND
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (5, 0, 0, True)
    assert capsys.readouterr().err.splitlines() == [
        f"pair 0: t i -> ti (frequency 3 in {texts[1]}; tokens 11, 14)",
        f"pair 1: l o -> lo (frequency 3 in {texts[0]}; tokens 11, 11)",
        f"pair 2: ti e -> tie (frequency 3 in {texts[1]}; tokens 8, 11)",
        f"pair 3: lo w</w> -> low</w> (frequency 2 in {texts[0]}; tokens 8, 8)",
        f"pair 4: tie f</w> -> tief</w> (frequency 2 in {texts[1]}; tokens 6, 8)",
        f"no pair of {texts[0]}, which is compressed worst, has frequency >= 2. Stopping",
    ]
    english, german = ({word: text.split().count(word) for word in text.split()} for text in (ENGLISH, GERMAN))
    twin = learn_parity([english, german], 10)
    assert codes_of(twin) == BY_HAND and (twin.exhausted, twin.exhausted_language) == (True, 0)
    # BPE, which takes both as one text, merges German twice before English, and "e r" in the end.
    assert learn_bpe(paths=texts, num_symbols=10, algorithm="bpe").text == (
        b"#version: 0.2\nt i\nti e\nl o\ntie f</w>\nlo w</w>\ne r</w>\n"
    )
    # The other language first, where both have as many.
    assert learn_bpe(paths=texts[::-1], num_symbols=2, algorithm="parity").text == b"#version: 0.2\nt i\nti e\n"


def test_variants_by_hand(texts: list[Path]) -> None:
    """Hybrid: the first merges are those of BPE. Window: a language that had its turn too often has to wait."""
    hybrid = learn_bpe(paths=texts, num_symbols=3, algorithm="parity", global_merges=2)
    assert hybrid.text == b"#version: 0.2\nt i\nti e\nl o\n"
    # A development text of German that is never compressed: German is chosen always, unless it has had the last one.
    dev = [texts[0].parent / "dev.en", texts[0].parent / "dev.de"]
    dev[0].write_text("x\n")
    dev[1].write_text("yyyyyyyyyyyyyy\n")
    always = learn_bpe(paths=texts, num_symbols=3, algorithm="parity", dev=dev)
    assert always.text == b"#version: 0.2\nt i\nti e\ntie f</w>\n"
    # Half of a window of 1 is no whole choice, so that a language that is in it waits for another one.
    in_turn = learn_bpe(paths=texts, num_symbols=4, algorithm="parity", dev=dev, window=1, alpha=1)
    assert in_turn.text == b"#version: 0.2\nt i\nl o\nti e\nlo w</w>\n"


# ---- the core and the twin


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[dict[str, int]], list[dict[str, int]] | None]:
    """Words of two to four languages, and perhaps those of development texts."""
    letters = draw(st.sampled_from(ALPHABETS))
    counts = st.dictionaries(words(letters), st.integers(1, 9), min_size=1, max_size=4)
    languages = draw(st.lists(counts, min_size=2, max_size=4))
    number = len(languages)
    return languages, draw(st.none() | st.lists(counts, min_size=number, max_size=number))


def core_steps(
    training: list[dict[str, int]], development: list[dict[str, int]] | None, mode: Mode = CHARACTERS, **options: Any
) -> tuple[_core._LearnedParity, list[ParityStep]]:
    """What the core does, step by step."""
    steps: list[ParityStep] = []

    def on_step(left: str, right: str, frequency: int, language: int | None, lengths: list[int]) -> None:
        steps.append(ParityStep(left, right, frequency, language, tuple(lengths)))

    def counted(counts: dict[str, int]) -> _core.WordCounts:
        lines = b"".join(mode.word(word) + b" %d\n" % count for word, count in counts.items())
        return count_words(io.BytesIO(lines), is_dict=True, any_bytes=mode.byte_level)

    header = (mode.byte_level, "spaces" if mode.end_of_word else "gpt2", False)
    texts = [*map(counted, training)], [*map(counted, development or [])]
    return _core.learn_parity(*texts, on_step=on_step, header=header, **options), steps


def check_learning(
    training: list[dict[str, int]],
    development: list[dict[str, int]] | None,
    symbols: int,
    min_frequency: int,
    global_merges: int,
    window: int | None,
    alpha: float,
    mode: Mode = CHARACTERS,
) -> None:
    """Both take the same steps and end alike."""
    share = Fraction(str(alpha))
    twin = learn_parity(
        *(training, symbols, development, min_frequency, global_merges, window, share), end_of_word=mode.end_of_word
    )
    most_chosen = Parity(None, global_merges, window or 0, share).most_chosen(len(training))
    learned, steps = core_steps(
        training, development, mode, symbols=symbols, min_frequency=min_frequency, global_merges=global_merges,
        window=window or 0, most_chosen=most_chosen,
    )  # fmt: skip
    if not mode.byte_level:
        assert steps == twin.steps
    assert [step[2:] for step in steps] == [step[2:] for step in twin.steps]
    assert learned["codes"] == codes_of(twin, mode)
    assert (learned["exhausted"], learned["language"]) == (twin.exhausted, twin.exhausted_language)
    assert twin.exhausted or len(steps) == symbols


@hundreds
@given(
    texts=corpora(),
    symbols=st.integers(1, 12),
    min_frequency=st.integers(1, 4),
    global_merges=st.integers(0, 4),
    window=st.none() | st.integers(1, 6),
    alpha=st.sampled_from([1, 1.5, 2, 1.1]),
)
def test_learning(
    texts: tuple[list[dict[str, int]], list[dict[str, int]] | None],
    symbols: int,
    min_frequency: int,
    global_merges: int,
    window: int | None,
    alpha: float,
) -> None:
    """Pairs, frequencies, the chosen languages, their lengths and the early end are the twin's, in every variant."""
    check_learning(*texts, symbols, min_frequency, global_merges, window, alpha)
