"""BPE-dropout: the distribution over segmentations is exactly the paper's, and a seed fixes the output.

Every seed is fixed, so that the chi-square tests below give the same value each time they run.
"""

from __future__ import annotations

import gzip
import io
import itertools
import random
import subprocess
import sys
from collections import Counter
from math import comb
from pathlib import Path

import pytest
from dropping import CODES, PICKY_CODES, SUSPICIOUS, sampled, surprise, surprise_of_two, words_of
from reference.distribution import dropout_distribution
from segmenting import hard_text, learn_with_reference, reference_of
from subword_nmt import apply_bpe as their_apply

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.cli import main

# ---- the distribution


def test_words_of_a_line_are_independent() -> None:
    """Neighbours, the same word among them, are drawn independently: the probabilities of pairs are products."""
    reference = reference_of(CODES)
    exact = {"@@".join(pieces): p for pieces, p in dropout_distribution(reference, "aaab", 0.4).items()}
    pairs = Counter(tuple(words_of(line)) for line in sampled(CODES, "aaab aaab", 20_000, 0.4, seed=2))
    assert surprise(pairs, {(a, b): p * q for a, p in exact.items() for b, q in exact.items()}) > SUSPICIOUS


def left_of(pairs: int, dropout: float) -> dict[int, float]:
    """Return the distribution of the number of a pair's places that are left once a step drops all of them."""
    reached = [0.0] * (pairs + 1)
    reached[pairs] = 1.0
    for count in range(pairs, 0, -1):
        all_dropped = dropout**count
        # A step in which all are dropped is the last one; in any other, some are replaced.
        for merged in range(1, count + 1):
            probability = comb(count, merged) * (1 - dropout) ** merged * dropout ** (count - merged)
            reached[count - merged] += reached[count] * probability
        reached[count] *= all_dropped
    return dict(enumerate(reached))


@pytest.mark.parametrize("pairs", [3, 24, 25, 60, 200])
def test_one_pair_at_many_places(pairs: int) -> None:
    """A distribution known for words of any length: the short algorithm, the long one, and words too long to cache."""
    dropout = 0.7
    exact = left_of(pairs, dropout)
    assert sum(exact.values()) == pytest.approx(1)
    lines = sampled(b"#version: 0.2\na b\na b</w>\n", "ab" * pairs + "x", 6000, dropout)
    assert surprise(Counter(line.split(" ").count("a@@") for line in lines), exact) > SUSPICIOUS


@pytest.mark.parametrize(("codes", "samples"), [(CODES, 600), (PICKY_CODES, 1500)], ids=["scaffold", "picky"])
@pytest.mark.parametrize("word", ["aab" * 16, "aab" * 17, "abaabba" * 9])
def test_long_words_are_drawn_as_the_reference_draws_them(word: str, codes: bytes, samples: int) -> None:
    """Words of 48, 51 and 63 letters with merges of merges and overlaps: number of subwords, first two and last two."""
    generator = random.Random(1)
    reference = reference_of(codes)
    survives = lambda: generator.random() >= 0.3  # noqa: E731
    theirs = [reference.segment(word, survives).split(" ") for _ in range(samples)]
    ours = [line.split(" ") for line in sampled(codes, word, 3000, 0.3)]
    for statistic in (len, lambda pieces: tuple(pieces[:2]), lambda pieces: tuple(pieces[-2:])):
        assert surprise_of_two(Counter(map(statistic, ours)), Counter(map(statistic, theirs))) > SUSPICIOUS


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_as_subword_nmt_draws(dropout: float) -> None:
    """It agrees with subword-nmt's own sampling on codes without scaffold, by a two-sample chi-square test."""
    codes = learn_with_reference({"banana": 5, "bandana": 3, "ananas": 4, "aaaa": 2, "cabana": 1}, 12, 1, "bpe")[1]
    theirs = their_apply.BPE(io.StringIO(codes.decode()))
    random.seed(1)
    for word in ("bananas", "aaaaa", "cabanana"):
        sample = Counter(theirs.segment(word, dropout) for _ in range(4000))
        assert surprise_of_two(Counter(sampled(codes, word, 12_000, dropout)), sample) > SUSPICIOUS


def test_rare_drops_come_at_random() -> None:
    """When drops are hundreds of merges apart, the distances between them follow the geometric distribution."""
    dropout = 0.004
    unmerged = [word != "ab" for word in words_of(sampled(b"#version: 0.2\na b</w>\n", "ab " * 400_000, 1, dropout)[0])]
    places = [place for place, dropped in enumerate(unmerged) if dropped]
    width = 50
    gaps = Counter(min((b - a - 1) // width, 20) for a, b in itertools.pairwise(places))
    within = 1 - (1 - dropout) ** width
    exact = {k: (1 - within) ** k * (within if k < 20 else 1) for k in range(21)}
    assert surprise(gaps, exact) > SUSPICIOUS


def test_a_tiny_probability_takes_no_longer() -> None:
    """A dropout of 1e-15 takes no longer than none, and gives the same text as segmenting without dropout."""
    bpe = BPE(CODES)
    assert bpe.segment("aaab abba", dropout=1e-15, seed=1) == bpe.segment("aaab abba")
    assert bpe.segment("aaab abba", dropout=1e-300, seed=1) == bpe.segment("aaab abba")


# ---- probabilities of 0 and 1, and what dropout does not change


@pytest.fixture(scope="module")
def text() -> bytes:
    """Several blocks of text; a block is about 200 kB."""
    return hard_text(31, 120_000).encode("utf-8")


@pytest.fixture(scope="module")
def codes(text: bytes) -> bytes:
    learned = learn_bpe(io.BytesIO(text), num_symbols=500)
    assert learned.scaffold > 20
    return learned.text


def segmented(codes: bytes, text: bytes, dropout: float, seed: int | None, workers: int = 1) -> bytes:
    output = io.BytesIO()
    BPE(codes).process_file(io.BytesIO(text), output, dropout, workers, seed)
    return output.getvalue()


def test_no_dropout_at_0(codes: bytes, text: bytes) -> None:
    """p = 0 means no dropout, with any seed."""
    assert segmented(codes, text, 0, 1) == segmented(codes, text, 0, None)
    assert BPE(codes).segment("aaab", dropout=0.0, seed=1) == BPE(codes).segment("aaab")


def test_base_symbols_at_1(codes: bytes) -> None:
    """p = 1 leaves every word in its code points, short or long."""
    words = ["aeinrst", "日本語", "e\u0301", "ab" * 60, "a"]
    expected = " ".join("@@ ".join(word) for word in words)
    assert segmented(codes, " ".join(words).encode(), 1, 1).decode() == expected


# ---- reproducible


@pytest.fixture(scope="module")
def expected(codes: bytes, text: bytes) -> bytes:
    return segmented(codes, text, 0.1, 7)


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_any_number_of_workers_gives_the_same(codes: bytes, text: bytes, expected: bytes, workers: int) -> None:
    """The same seed gives the same bytes, however the blocks are distributed over threads."""
    assert segmented(codes, text, 0.1, 7, workers) == expected


def test_blocks_and_kinds_of_input_do_not_matter(codes: bytes, text: bytes, expected: bytes, tmp_path: Path) -> None:
    """A file, a gzip file, a pipe that brings a little at a time, lines one by one: the same bytes."""
    plain, zipped, output = tmp_path / "text", tmp_path / "text.gz", tmp_path / "output"
    plain.write_bytes(text)
    zipped.write_bytes(gzip.compress(text, 1))
    bpe = BPE(codes)
    for source in ({"infile": plain}, {"infile": zipped}, {"lines": text.decode("utf-8").split("\n")}):
        bpe.process_file(outfile=output, dropout=0.1, num_workers=2, seed=7, **source)
        assert output.read_bytes().removesuffix(b"\n") == expected
    some = text[: text.index(b"\n", 200_000) + 1]
    trickle = f"import sys\ntext = open({str(plain)!r}, 'rb').read({len(some)})\n"
    trickle += "for i in range(0, len(text), 999): sys.stdout.buffer.write(text[i:i + 999]); sys.stdout.flush()"
    with subprocess.Popen([sys.executable, "-c", trickle], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        bpe.process_file(process.stdout, output, 0.1, 3, 7)
    assert len(output.read_bytes()) > len(some) and expected.startswith(output.read_bytes())


def test_a_line_is_drawn_by_seed_and_place() -> None:
    """The same sentence on another line is drawn independently; BPE.segment takes the line's number as its index."""
    sentence = "aaaab aabab abba"
    lines = sampled(CODES, sentence, 50, 0.3, seed=9)
    assert len(set(lines)) > 10
    bpe = BPE(CODES)
    assert [bpe.segment(sentence, 0.3, 9, index) for index in range(50)] == lines


def test_epochs_are_those_of_a_training(codes: bytes, text: bytes, tmp_path: Path) -> None:
    """``apply-bpe --epoch`` gives the subwords that the encoder, and with it the plug-in, gives in that epoch."""
    some = text[: text.index(b"\n", 50_000) + 1]
    (tmp_path / "text").write_bytes(some)
    (tmp_path / "codes").write_bytes(codes)
    bpe = BPE(codes)
    forms = bpe.surface_forms()
    encoder = bpe.encoder({form: number for number, form in enumerate(forms)}, -1)
    files = [str(tmp_path / name) for name in ("codes", "text", "out")]
    command = ["apply-bpe", "-c", files[0], "-i", files[1], "-o", files[2], "--dropout", "0.1", "--seed", "7"]
    lines = some.split(b"\n")[:-1]
    results = []
    for epoch in (0, 1, 2, 2**64 - 1):
        assert main([*command, "--epoch", str(epoch), "--num-workers", "3"]) == 0
        results.append((tmp_path / "out").read_bytes())
        subwords = [line.strip("\r ").split(" ") for line in results[-1].decode("utf-8").split("\n")[:-1]]
        ids, offsets = encoder.encode(lines, 0.1, 7, epoch)
        known = {form: number for number, form in enumerate(forms)}
        assert [[known.get(form, -1) for form in line if form] for line in subwords] == [
            list(ids[start:end]) for start, end in itertools.pairwise(offsets)
        ]
    assert len(set(results)) == len(results)
    assert main(command) == 0
    assert (tmp_path / "out").read_bytes() == results[0] == segmented(codes, some, 0.1, 7)


def test_other_seeds_differ(codes: bytes, text: bytes, expected: bytes) -> None:
    """Another seed gives another text, and so does no seed, each time; large and negative seeds are valid too."""
    some = text[: text.index(b"\n", 50_000)]
    results = [segmented(codes, some, 0.1, seed) for seed in (1, 2, None, None, 2**64 - 1, -2, 2**63)]
    assert len(set(results)) == len(results)
    assert all(result.replace(b"@@ ", b"") == results[0].replace(b"@@ ", b"") for result in results)


def test_the_stream_of_random_numbers_stays_the_same() -> None:
    """A result that was published with a seed can be reproduced: every version gives this text."""
    lines = sampled(CODES, "aaaab aabab abba", 3, 0.3, seed=2025)
    assert lines == PUBLISHED, lines


PUBLISHED = [
    "aaaa@@ b aa@@ b@@ a@@ b a@@ b@@ ba",
    "aa@@ aa@@ b aabab a@@ b@@ ba",
    "aaaa@@ b aabab a@@ b@@ b@@ a",
]
