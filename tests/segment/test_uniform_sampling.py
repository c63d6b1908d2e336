"""Uniform sampling: every segmentation of a word is equally likely; the core draws exactly as the reference does."""

from __future__ import annotations

import functools
import io
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from reference.greedy import segment_greedily
from reference.uniform import RandomStream, UniformSampler, untouched
from scipy import stats
from segmenting import (
    CHARACTERS,
    MODE_NAMES,
    MODES,
    PRETOKENISED,
    VECTORS,
    Mode,
    hard_text,
    picky_reference_of,
    reference_of,
    rich_text,
)

from mt_scaffold import BPE, Codes, UsageError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import bytes_to_notation

SUSPICIOUS = 1e-5  # a p-value below this means that the distributions differ
# "ab" occurs inside a word and "ab</w>" at its end; "ba" is scaffold, but "ba</w>" is not.
CODES = b"#version: 0.2\na a\na b\nb a scaffold\naa b\nb a</w>\na b</w>\nab ab</w>\n"


def sampler_of(codes: bytes) -> UniformSampler:
    """The reference with the final vocabulary of a codes file of any kind."""
    first, *lines = codes.split(b"\n")[:-1]
    picky = b" picky" in first
    known = {line: mode for mode in MODES for line in (mode.first_line.encode(), mode.picky_line.encode())}
    mode = known.get(first, PRETOKENISED)
    merges, scaffold = [], set()
    for line in lines:
        fields = line.split(b" ")
        if picky and len(fields) > 2:
            scaffold.add(mode.of_file(fields[1]))  # until it is merged again
            continue
        merges.append((mode.of_file(fields[0]), mode.of_file(fields[1])))
        token = "".join(merges[-1])
        scaffold = scaffold | {token} if len(fields) == 3 else scaffold - {token}
    return UniformSampler(merges, scaffold, end_of_word=mode.end_of_word)


def all_segmentations(symbols: list[str], vocabulary: set[str]) -> Iterable[tuple[str, ...]]:
    """Every way to cut symbols into single ones and tokens, by trying all 2^(n - 1)."""
    for cuts in range(2 ** (len(symbols) - 1)):
        ends = [i + 1 for i in range(len(symbols) - 1) if cuts >> i & 1] + [len(symbols)]
        pieces = [symbols[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        if all(len(piece) == 1 or "".join(piece) in vocabulary for piece in pieces):
            yield tuple(map("".join, pieces))


def sampled(bpe: BPE, text: str, probability: float, seed: int = 1, epoch: int = 0, workers: int = 1) -> list[str]:
    """The lines of a text, segmented by the core."""
    output = io.BytesIO()
    bpe.process_file(
        io.BytesIO(text.encode()), output, num_workers=workers, seed=seed, epoch=epoch, uniform_sampling=probability
    )
    return output.getvalue().decode().split("\n")


# ---- the distribution


def test_every_segmentation_has_the_same_probability() -> None:
    """On random vocabularies the draws give all enumerated segmentations, each with exactly 1 / their number."""
    generator = random.Random(1)
    most = 0
    for _ in range(60):
        letters = [*"ab", "</w>"]
        tokens = {"".join(generator.choices("ab", k=generator.randint(2, 4))) for _ in range(generator.randint(0, 14))}
        tokens |= {token + "</w>" for token in tokens if generator.random() < 0.5}
        tokens |= {letter + "</w>" for letter in letters[:2] if generator.random() < 0.3}
        word = "".join(generator.choices(["a", "b", "x"], [5, 5, 1], k=generator.randint(1, 10)))
        reference = UniformSampler([(token[0], token[1:]) for token in tokens])
        symbols = [*word[:-1], word[-1] + "</w>"]
        expected = set(all_segmentations(symbols, tokens))
        found = reference.distribution(word)
        assert found == dict.fromkeys(expected, Fraction(1, len(expected)))
        most = max(most, len(expected))
    assert most > 20  # or nothing was tested


@pytest.mark.parametrize("probability", [1.0, 0.3])
def test_the_core_draws_uniformly(probability: float) -> None:
    """Frequencies of the segmentations of the words of a line pass a chi-squared test, whatever their position."""
    bpe, reference, usual = BPE(CODES), sampler_of(CODES), reference_of(CODES)
    words = ["ababab", "aabab", "ba", "xab", "ababab"]
    lines = sampled(bpe, f"{' '.join(words)}\n" * 20_000, probability, seed=3)[:-1]
    columns = zip(*(line.replace("@@ ", "|").split(" ") for line in lines), strict=True)
    for word, column in zip(words, columns, strict=True):
        pieces = reference.distribution(word)
        share = probability / len(pieces)
        expected = {"|".join(each).removesuffix("</w>"): share for each in pieces}
        expected["|".join(usual.segment_word(word))] += 1 - probability
        observed = Counter(column)
        assert set(observed) == set(expected)
        frequencies = [observed[each] for each in expected]
        if len(expected) > 1:
            test = stats.chisquare(frequencies, [each * len(lines) for each in expected.values()])
            assert test.pvalue > SUSPICIOUS


def test_words_and_lines_are_independent() -> None:
    """For one word twice on a line, and on two lines, all pairs of segmentations are equally frequent."""
    bpe = BPE(CODES)
    lines = sampled(bpe, "abab abab\n" * 40_000, 1.0, seed=5)[:-1]
    number = len(sampler_of(CODES).distribution("abab"))
    for pairs in (
        Counter(lines),
        Counter(first + second for first, second in zip(lines[::2], lines[1::2], strict=True)),
    ):
        assert len(pairs) == number**2 or len(pairs) == number**4
        assert stats.chisquare(list(pairs.values())).pvalue > SUSPICIOUS


def test_the_share_of_sampled_words() -> None:
    """The number of untouched words is geometric, also beyond the 64 that one random number decides."""
    stream = RandomStream(7)
    for probability in (0.5, 0.1, 0.01):
        drawn = [untouched(probability, stream) for _ in range(5000)]
        cuts = np.unique(stats.geom(probability, -1).ppf(np.linspace(0.1, 0.9, 9)))
        observed = np.bincount(np.searchsorted(cuts, drawn), minlength=len(cuts) + 1)
        law = np.diff(stats.geom(probability, -1).cdf([-1, *cuts, np.inf]))
        assert stats.chisquare(observed, law * len(drawn)).pvalue > SUSPICIOUS
    assert untouched(1.0, stream) == 0


# ---- core and reference


def shown(words: list[list[str]], mode: Mode = CHARACTERS) -> bytes:
    """Subwords of words, as the references have them, as segmented text."""
    if not mode.end_of_word:
        return " ".join(bytes_to_notation(piece.encode("latin-1")) for pieces in words for piece in pieces).encode()
    return mode.word(" ".join("@@ ".join(pieces) for pieces in words))


def as_usual(codes: bytes) -> Callable[[str], list[str]]:
    """Return the reference's segmentation of a word without sampling, with a cache."""
    return functools.cache(
        (picky_reference_of if b" picky" in codes.split(b"\n")[0] else reference_of)(codes).segment_word
    )


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_core_equals_reference(mode: Mode, algorithm: str) -> None:
    """Compared on words with letters of all lengths and those of the end-of-word marker, for all kinds of codes."""
    letters = [*"abcdef", "ä", "日", "</w>"]
    text = hard_text(1, 600).split("\n") + rich_text(3, 800, letters)
    threshold = 0.6 if algorithm == "picky" else None
    codes = learn_with(lines=text, num_symbols=250, algorithm=algorithm, threshold=threshold, **mode.options).codes
    assert (b"scaffold" in codes.text or b"split" in codes.text) == (algorithm != "bpe")
    bpe, reference, usual = BPE(codes), sampler_of(codes.text), as_usual(codes.text)
    words = " ".join([*hard_text(2, 100).replace("\r", " ").split("\n"), *rich_text(4, 30, letters)]).split(" ")
    given = [word.encode() for word in words if word]
    of_reference = [word.decode("latin-1" if mode.byte_level else "utf-8") for word in given]
    plain = b" ".join(bpe.segment_tokens(given))
    for seed in range(3):
        expected = shown(reference.sample(of_reference, usual, 0.5, RandomStream(seed)), mode)
        assert b" ".join(bpe.segment_tokens(given, seed=seed, uniform_sampling=0.5)) == expected != plain


TOKENS = st.lists(
    st.tuples(st.text("ab", min_size=1, max_size=3), st.text("ab", min_size=1, max_size=3), st.booleans()), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    TOKENS,
    st.lists(st.text("abx", min_size=1, max_size=12), min_size=1, max_size=6),
    st.floats(0.01, 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.sets(st.integers(0, 11)),
)
def test_core_equals_reference_on_any_vocabulary(
    tokens: list[tuple[str, str, bool]], words: list[str], probability: float, seed: int, index: int, marks: set[int]
) -> None:
    """Compared on vocabularies that no learner would make, with any probability, seed and index."""
    merges = [(left, right + "</w>" * final) for left, right, final in tokens] or [("a", "b")]
    scaffold = {"".join(merge) for number, merge in enumerate(merges) if number in marks}
    lines = [" ".join([*merge, *["scaffold"] * ("".join(merge) in scaffold)]) for merge in merges]
    bpe = BPE("\n".join(["#version: 0.2", *lines, ""]).encode())
    reference = UniformSampler(merges, scaffold)
    usual = lambda word: bpe.segment(word).split("@@ ")  # noqa: E731
    expected = shown(reference.sample(words, usual, probability, RandomStream(seed, 0, index))).decode()
    assert bpe.segment(" ".join(words), seed=seed, index=index, uniform_sampling=probability) == expected


def test_words_of_thousands_of_letters() -> None:
    """Core and reference draw alike from more segmentations than a double can count, with pieces of all lengths."""
    bpe, reference = BPE(CODES), sampler_of(CODES)
    word = "".join(random.Random(1).choices("aab", k=4000))
    number, scale = reference.count([*word[:-1], word[-1] + "</w>"])[0]
    assert scale >= 4 and 1 <= number < 2.0**512
    for seed in range(2):
        found = bpe.segment(word, seed=seed, uniform_sampling=1)
        assert found == shown(reference.sample([word], list, 1, RandomStream(seed))).decode()
    lengths = Counter(len(piece) for piece in found.split("@@ "))
    assert min(lengths[1], lengths[2], lengths[3]) > 100


# ---- reproducibility


def test_a_seed_fixes_the_output() -> None:
    """It is the same for any number of workers and every method; another seed or epoch gives another one."""
    text = hard_text(5, 3000)
    codes = learn_bpe(lines=text.split("\n"), num_symbols=200).codes
    bpe = BPE(codes)
    lines = sampled(bpe, text, 0.3)
    assert sampled(bpe, text, 0.3, workers=3) == lines == sampled(BPE(codes), text, 0.3)
    for number, line in enumerate(text.split("\n")[:50]):
        assert bpe.process_line(line, 0, 1, number, uniform_sampling=0.3) == lines[number]
        assert bpe.segment(line, 0, 1, number, uniform_sampling=0.3) == lines[number].strip("\r ")
    assert sampled(bpe, text, 0) == sampled(bpe, text, 0, seed=2)
    different = [sampled(bpe, text, 0.3, seed=2), sampled(bpe, text, 0.3, epoch=1), sampled(bpe, text, 0)]
    assert all(other != lines for other in different)
    forms = {subword: number for number, subword in enumerate(sorted({*" ".join(lines).split(" ")}))}
    encoder = bpe.encoder(forms, -1)
    given = text.split("\n")[:200]
    order = list(range(199, -1, -1))
    ids, offsets = map(np.asarray, encoder.encode([given[i] for i in order], 0, 1, 0, order, uniform_sampling=0.3))
    for place, number in enumerate(order):
        expected = [forms[subword] for subword in lines[number].strip("\r ").split(" ") if subword]
        assert ids[offsets[place] : offsets[place + 1]].tolist() == expected


def test_ids(tmp_path: Path) -> None:
    """Ids of a text are sampled like its subwords; those of a file, of a batch and of a single text are equal."""
    text = ["abab aabab ba", "", "bababa  ab"] * 20
    codes = learn_bpe(lines=text, num_symbols=6, pretokenise="gpt2").codes
    bpe = BPE(codes)
    single = [bpe.encode(line, seed=4, index=i, uniform_sampling=0.6) for i, line in enumerate(text)]
    tokens = [bpe.segment(line, seed=4, index=i, uniform_sampling=0.6).split(" ") for i, line in enumerate(text)]
    assert [len(ids) for ids in single] == [len([piece for piece in pieces if piece]) for pieces in tokens]
    assert single != [bpe.encode(line) for line in text]
    assert [bpe.decode(ids) for ids in single] == text
    ids, offsets = bpe.encode_batch(text, seed=4, uniform_sampling=0.6, num_workers=2)
    assert [ids[i:j].tolist() for i, j in itertools.pairwise(offsets)] == single
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in text))
    (tmp_path / "codes").write_bytes(codes.text)
    files = ["--codes", str(tmp_path / "codes"), "--input", str(tmp_path / "text"), "--output", str(tmp_path / "x.bin")]
    assert main(["encode", *files, "--dtype", "uint32", "--uniform-sampling", "0.6", "--seed", "4"]) == 0
    assert np.fromfile(tmp_path / "x.bin", np.uint32).tolist() == ids.tolist()


# ---- with other options


def test_words_that_have_one_segmentation() -> None:
    """Unknown characters stay single symbols, as with dropout; a glossary entry is never split."""
    bpe = BPE(CODES)
    assert bpe.segment("x \u65e5\u65e5 xy", seed=1, uniform_sampling=1) == "x \u65e5@@ \u65e5 x@@ y"
    kept = BPE(CODES, glossaries=["aab"])
    seen = {kept.segment("abaabab", seed=seed, uniform_sampling=1) for seed in range(60)}
    around = [bpe.segment("ab", seed=seed, uniform_sampling=1) for seed in range(20)]
    assert set(around) == {"ab", "a@@ b"}
    assert seen == {f"{left}@@ aab@@ {right}" for left in set(around) for right in set(around)}


def test_a_vocabulary_takes_tokens_away() -> None:
    """Tokens that the vocabulary filter would split are never drawn, separately inside a word and at its end."""
    codes = b"#version: 0.2\na b\nab a\nb a</w>\nab a</w>\na b</w>\n"
    for vocabulary in ({"ab@@"}, {"aba", "ba"}, {"aba@@", "ab"}, {"x"}, set()):
        reference = reference_of(codes, vocabulary=vocabulary)
        split = {a + b for a, b in reference.rank if [*reference._split(a + b, (a + b).endswith("</w>"))] != [a + b]}
        sampler = UniformSampler(reference.rank, split if vocabulary else ())
        bpe = BPE(codes, vocab=vocabulary)
        words = ["aba", "abaaba", "abab", "baba"] * 5
        for seed in range(20):
            expected = shown(sampler.sample(words, reference.segment_word, 0.7, RandomStream(seed))).decode()
            assert bpe.segment(" ".join(words), seed=seed, uniform_sampling=0.7) == expected
        words_drawn = set(bpe.segment(" ".join(words * 50), seed=1, uniform_sampling=1).replace("@@ ", "@@").split())
        assert ("ab@@a" in words_drawn) == (not vocabulary or "ab@@" in vocabulary)


def test_greedy_inference() -> None:
    """Words that are not sampled are segmented greedily from the left, with the same vocabulary."""
    reference = sampler_of(CODES)
    merges = [("a", "a"), ("a", "b"), ("aa", "b"), ("b", "a</w>"), ("a", "b</w>"), ("ab", "ab</w>")]
    usual = lambda word: [piece.removesuffix("</w>") for piece in segment_greedily(word, merges)]  # noqa: E731
    bpe, words = BPE(CODES, inference="greedy"), ["abab", "aaba", "babaab"] * 30
    for seed in range(3):
        expected = shown(reference.sample(words, usual, 0.5, RandomStream(seed))).decode()
        assert bpe.segment(" ".join(words), seed=seed, uniform_sampling=0.5) == expected


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Probabilities out of range, additional dropout, and an epoch without a seed."""
    bpe, bytewise = BPE(CODES), BPE(b"#version: 0.3 bytes gpt2\na b\n")
    for call in (
        lambda p, **more: bpe.segment("ab", uniform_sampling=p, **more),
        lambda p, **more: bpe.segment_tokens(["ab"], uniform_sampling=p, **more),
        lambda p, **more: bytewise.segment_tokens(["ab"], uniform_sampling=p, **more),
        lambda p, **more: bpe.process_line("ab", uniform_sampling=p, **more),
        lambda p, **more: bpe.process_file(lines=["ab"], outfile=tmp_path / "x", uniform_sampling=p, **more),
        lambda p, **more: bpe.encoder({}, 0).encode(["ab"], uniform_sampling=p, **more),
        lambda p, **more: bytewise.encode("ab", uniform_sampling=p, **more),
        lambda p, **more: bytewise.encode_batch(["ab"], uniform_sampling=p, **more),
    ):
        for probability in (-0.1, 1.1, float("nan")):
            with pytest.raises(UsageError, match="the probability of uniform sampling must be between 0 and 1, not"):
                call(probability)
        with pytest.raises(UsageError, match="uniform sampling takes the place of dropout; omit one of them"):
            call(0.1, dropout=0.1)
    assert not (tmp_path / "x").exists()
    with pytest.raises(UsageError, match="epoch 3 is random without a seed"):
        bpe.process_file(lines=["ab"], outfile=tmp_path / "x", uniform_sampling=0.1, epoch=3)
    (tmp_path / "codes").write_bytes(CODES)
    (tmp_path / "text").write_text("abab aab\n" * 50)
    files = ["-c", str(tmp_path / "codes"), "-i", str(tmp_path / "text"), "-o", str(tmp_path / "x")]
    assert main(["apply-bpe", *files, "--uniform-sampling", "0.4", "--seed", "1"]) == 0
    assert (tmp_path / "x").read_text().split("\n") == sampled(bpe, "abab aab\n" * 50, 0.4)
    assert main(["apply-bpe", *files, "--uniform-sampling", "0.4", "--dropout", "0.1"]) == 2
    assert "omit one of them" in capsys.readouterr().err


# ---- vectors

VECTOR_NAMES = sorted(path.name for path in VECTORS.iterdir() if path.is_dir())


def lines_of_reference(codes: bytes, probe: bytes, probability: float, seed: int) -> bytes:
    """A text as the references segment it."""
    header = Codes(codes).header
    mode = (MODES[1] if header.end_of_word else MODES[2]) if header.bytes else CHARACTERS
    encoding = "latin-1" if header.bytes else "utf-8"
    reference, usual, pretokeniser = sampler_of(codes), as_usual(codes), header.make_pretokeniser()
    segmented = []
    for number, line in enumerate(probe.split(b"\n")):
        stream = RandomStream(seed, 0, number)
        core = line.strip(b"\r ") if pretokeniser is None else line
        words = pretokeniser.split(line) if pretokeniser else [word for word in core.split(b" ") if word]
        drawn = reference.sample([word.decode(encoding) for word in words], usual, probability, stream)
        start = line.index(core) if core else len(line)
        segmented.append(line[:start] + shown(drawn, mode) + line[start + len(core) :])
    return b"\n".join(segmented)


@pytest.mark.parametrize("name", VECTOR_NAMES)
def test_core_and_reference_give_the_vectors(name: str) -> None:
    """The probe of each vector, sampled with probability 0.5 and seed 1, gives the expected bytes."""
    for algorithm in ("scaffold", "picky"):
        codes = (VECTORS / name / f"{algorithm}.codes").read_bytes()
        probe = (VECTORS / name / "probe.txt").read_bytes()
        expected = (VECTORS / name / f"{algorithm}.sampled").read_bytes()
        output = io.BytesIO()
        BPE(codes).process_file(io.BytesIO(probe), output, seed=1, uniform_sampling=0.5)
        assert output.getvalue() == expected == lines_of_reference(codes, probe, 0.5, 1)
