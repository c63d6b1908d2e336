"""The kinds of inference other than merges and greedy: longest-merge, fewest and remerge, over any codes."""

from __future__ import annotations

import copy
import pickle
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from awkward_words import ALPHABETS, LONGEST_SHORT_WORD, words
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from reference.fewest import segment_into_fewest
from reference.longest_merge import LongestMergeBPE
from reference.remerge import RemergeBPE
from reference.uniform import RandomStream, UniformSampler
from scipy.stats import chisquare
from segmenting import (
    ALPHABET,
    BYTES,
    CHARACTERS,
    MODE_NAMES,
    MODES,
    PRETOKENISED,
    VECTORS,
    Mode,
    hard_text,
    hard_words,
    rich_text,
)

from mt_scaffold import BPE, UsageError, _core, learn_bpe
from mt_scaffold.analysis.reference import Pair, ReferenceBPE
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation
from mt_scaffold.methods.trimming import trim
from mt_scaffold.segment.inference import INFERENCES

hundreds = settings(max_examples=300, derandomize=True, deadline=None, database=None)
LETTERS = [*"abcdef", "ä", "日", "</w>"]
SUSPICIOUS = 1e-5  # a p-value below this means that the distributions differ
# Overlaps, merges of merges, a string made in two ways ("abab"); "ba" and "abba" are scaffold.
CODES = (
    b"#version: 0.2\na b\nb a scaffold\nab b\nab ba scaffold\nb b</w>\nb a</w>\nab b</w>\nba ba\naba b\nab a\nab ab\n"
)


def parsed(codes: bytes) -> tuple[Mode, list[Pair], set[str]]:
    """The mode of a codes file of any kind, its merges, and the tokens that are not in its final vocabulary."""
    first, *lines = codes.split(b"\n")[:-1]
    known = {line: mode for mode in MODES for line in (mode.first_line.encode(), mode.picky_line.encode())}
    mode, merges, scaffold = known.get(first, PRETOKENISED), [], set[str]()
    for line in lines:
        fields = line.split(b" ")
        if b" picky" in first and len(fields) > 2:
            scaffold.add(mode.of_file(fields[1]))  # until it is merged again
            continue
        merges.append((mode.of_file(fields[0]), mode.of_file(fields[1])))
        token = "".join(merges[-1])
        scaffold = scaffold | {token} if len(fields) == 3 else scaffold - {token}
    return mode, merges, scaffold


def reference_with(kind: str, codes: bytes) -> Callable[[str], list[str]]:
    """Return a kind's reference: a function from a word to its subwords, without the end-of-word marker."""
    mode, merges, scaffold = parsed(codes)
    if kind == "longest-merge":
        return LongestMergeBPE(merges, scaffold, end_of_word=mode.end_of_word).segment_word
    if kind == "remerge":
        return RemergeBPE(merges, scaffold, end_of_word=mode.end_of_word).segment_word

    def fewest(word: str) -> list[str]:
        *inner, last = segment_into_fewest(word, merges, scaffold, mode.end_of_word)
        return [*inner, last.removesuffix(END_OF_WORD) if mode.end_of_word else last]

    return fewest


def shown(subwords: list[str], mode: Mode) -> bytes:
    """The subwords of a word as segmented text shows them."""
    if not mode.end_of_word:
        return " ".join(bytes_to_notation(token.encode("latin-1")) for token in subwords).encode()
    return "@@ ".join(subwords).encode("latin-1" if mode.byte_level else "utf-8")


def test_the_core_has_the_kinds_of_the_registry() -> None:
    """The core has every kind that the options offer, in the same order; the default comes first."""
    assert tuple(INFERENCES) == _core.INFERENCES
    with pytest.raises(UsageError, match="there is no inference 'fast'; choose one of merges, greedy, longest-merge"):
        _core.Segmenter(CODES, "@@", inference="fast")


# ---- by hand


def test_the_longest_merge_by_hand() -> None:
    """Length counts before rank; ties go to the lower rank, then to the left; one place is merged at a time."""
    bpe = BPE(b"#version: 0.2\na b\nc d\nab c\nab a\n", inference="longest-merge")
    # ab first (rank 0), then "abc" (3 symbols) before "cd" (2).
    assert bpe.segment("abcde") == "abc@@ d@@ e"
    # The first "ab" grows before the second one is merged; all of them at a time would give "ab ab x".
    assert bpe.segment("ababx") == "aba@@ b@@ x"
    assert BPE(b"#version: 0.2\na a\n", inference="longest-merge").segment("aaab") == "aa@@ a@@ b"
    # The end-of-word marker is not a symbol: "bc</w>" is as long as "ab", which has the lower rank.
    assert BPE(b"#version: 0.2\na b\nb c</w>\n", inference="longest-merge").segment("abc") == "ab@@ c"
    # "bcd" is scaffold: it merges like any token, and becomes its parts afterwards.
    scaffold = BPE(b"#version: 0.2\nb c\nbc d scaffold\nd e</w>\n", inference="longest-merge")
    assert scaffold.segment("bcde") == "bc@@ d@@ e"


def test_the_fewest_by_hand() -> None:
    """Never more than greedy; of equally many, the longest first token, then the longest next; none is scaffold."""
    codes = b"#version: 0.2\na b\nab c\nc d\ncd e</w>\nd e</w>\n"
    assert BPE(codes, inference="greedy").segment("abcde") == "abc@@ de"
    assert BPE(codes, inference="fewest").segment("abcde") == "abc@@ de"  # not "ab cde"
    codes = b"#version: 0.2\na b\nb c\nbc d\nbcd e</w>\n"
    assert BPE(codes, inference="greedy").segment("abcde") == "ab@@ c@@ d@@ e"
    assert BPE(codes, inference="fewest").segment("abcde") == "a@@ bcde"
    assert BPE(codes, inference="fewest").segment("abcd") == "ab@@ c@@ d"  # before "a bcd", which is inside only
    without = codes.replace(b"bcd e</w>", b"bcd e</w> scaffold")
    assert BPE(without, inference="fewest").segment("abcde") == "a@@ bcd@@ e"


def test_remerge_by_hand() -> None:
    """The letters of a scaffold token merge with those next to it, but never into a scaffold token."""
    codes = b"#version: 0.2\nb c scaffold\na b\nbc d\nc e</w>\n"
    assert BPE(codes).segment("abcx abcd abce") == "a@@ b@@ c@@ x a@@ b@@ c@@ d a@@ b@@ c@@ e"
    assert BPE(codes, inference="remerge").segment("abcx abcd abce") == "ab@@ c@@ x ab@@ c@@ d ab@@ ce"
    inside = codes.replace(b"bc d", b"bc d</w>")
    assert BPE(inside, inference="remerge").segment("abcd") == "a@@ bcd"
    # A scaffold token inside a scaffold token; "abcd" is normal, but only scaffold tokens lead to it.
    codes = b"#version: 0.2\na b scaffold\nab c scaffold\nabc d\nb c\n"
    assert BPE(codes, inference="remerge").segment("abcdx abcx abx") == "abcd@@ x a@@ bc@@ x a@@ b@@ x"


# ---- against the references


@pytest.mark.parametrize("kind", ["longest-merge", "fewest", "remerge"])
@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "trimmed", "picky"])
@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_core_equals_reference(mode: Mode, algorithm: str, kind: str) -> None:
    """Compared on words with letters of all lengths, with those of the end-of-word marker, and on long words."""
    if algorithm == "picky" and not INFERENCES[kind].picky:
        pytest.skip("refused")
    text = hard_text(1, 1000).split("\n") + rich_text(3, 1500, LETTERS)
    learned = learn_with(
        lines=text,
        num_symbols=300,
        algorithm="bpe" if algorithm == "trimmed" else algorithm,
        threshold=0.6 if algorithm == "picky" else None,
        **mode.options,
    ).codes
    codes = (trim(learned, lines=text, below=12).codes if algorithm == "trimmed" else learned).text
    bpe, merging, reference = BPE(codes, inference=kind), BPE(codes), reference_with(kind, codes)
    assert bool(parsed(codes)[2]) == (algorithm != "bpe")
    generator = random.Random(2)
    given = hard_words(generator, 400, ALPHABET) + " ".join(rich_text(4, 500, LETTERS)).split(" ")
    given += ["".join(generator.choices(LETTERS, k=generator.randint(40, 300))) for _ in range(20)]
    differing = 6 * (kind == "remerge" and algorithm == "bpe")  # the same without scaffold tokens
    for word in given:
        as_bytes = mode.word(word if mode is CHARACTERS else word.encode().decode("latin-1"))
        subwords = reference(as_bytes.decode("latin-1" if mode.byte_level else "utf-8"))
        found = b" ".join(bpe.segment_tokens([as_bytes]))
        assert found == shown(subwords, mode)
        differing += found != b" ".join(merging.segment_tokens([as_bytes]))
    assert differing > 5  # or nothing was tested


@st.composite
def cases(draw: st.DrawFn, min_size: int = 1, max_size: int = 12) -> tuple[bytes, str]:
    """Draw codes that need not come from any corpus, and a word."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    made = [*alphabet, *(letter + END_OF_WORD for letter in alphabet)]
    base, marks, lines = set(made), dict[str, bool](), ["#version: 0.2"]
    for _ in range(draw(st.integers(0, 14))):
        left = draw(st.sampled_from([token for token in made if not token.endswith(END_OF_WORD)]))
        right = draw(st.sampled_from(made))
        token = left + right
        if len(token) <= 30:
            scaffold = marks.setdefault(token, token not in base and draw(st.booleans()))
            made.append(token)
            lines.append(f"{left} {right}" + " scaffold" * scaffold)
    word = draw(words(alphabet, min_size, max_size) | words(alphabet + "xü", min_size, max_size))
    return "\n".join([*lines, ""]).encode(), word


@pytest.mark.parametrize("kind", ["longest-merge", "fewest", "remerge"])
@hundreds
@given(case=cases() | cases(LONGEST_SHORT_WORD - 3, 3 * LONGEST_SHORT_WORD))
def test_core_equals_reference_on_awkward_words(kind: str, case: tuple[bytes, str]) -> None:
    codes, word = case
    bpe, subwords = BPE(codes, inference=kind), reference_with(kind, codes)(word)
    assert bpe.segment(word) == "@@ ".join(subwords)
    assert set(bpe.segment(word).split(" ")) <= set(bpe.surface_forms()) | {word, *(f"{c}@@" for c in word), *word}


@hundreds
@given(case=cases(), data=st.data())
def test_a_vocabulary_filters_what_the_longest_merges_give(case: tuple[bytes, str], data: st.DataObject) -> None:
    """As with merges, subwords that are not in it are split."""
    codes, word = case
    _, merges, scaffold = parsed(codes)
    forms = sorted({*BPE(codes).surface_forms(), word})
    vocabulary = data.draw(st.sets(st.sampled_from(forms)))
    reference = LongestMergeBPE(merges, scaffold, vocabulary=vocabulary)
    assert BPE(codes, vocab=vocabulary, inference="longest-merge").segment(word) == reference.segment(word)


def test_fewest_is_the_least_of_all_segmentations() -> None:
    """No enumerated segmentation has fewer subwords, and among equals the lengths are the greatest in order."""
    generator, choices = random.Random(1), Counter[int]()
    for _ in range(300):
        tokens = {"".join(generator.choices("ab", k=generator.randint(2, 4))) for _ in range(8)}
        tokens |= {token + END_OF_WORD for token in tokens if generator.random() < 0.5}
        merges = [(token[0], token[1:]) for token in sorted(tokens)]
        word = "".join(generator.choices(["a", "b", "x"], [5, 5, 1], k=generator.randint(1, 10)))
        every = [
            [piece.removesuffix(END_OF_WORD) for piece in each] for each in UniformSampler(merges).distribution(word)
        ]
        least = min(map(len, every))
        expected = max((each for each in every if len(each) == least), key=lambda each: [*map(len, each)])
        codes = "\n".join(["#version: 0.2", *map(" ".join, merges), ""]).encode()
        assert BPE(codes, inference="fewest").segment(word) == "@@ ".join(expected)
        choices[sum(len(each) == least for each in every)] += 1
    assert sum(count for equal, count in choices.items() if equal > 1) > 50  # or ties were not tested


@pytest.mark.parametrize("kind", ["longest-merge", "fewest"])
@pytest.mark.parametrize("name", sorted(path.name for path in VECTORS.iterdir() if path.is_dir()))
def test_vectors(name: str, kind: str) -> None:
    """The core gives, byte for byte, the reference's segmentation of the probe of each vector."""
    vector = VECTORS / name
    bpe = BPE(vector / "scaffold.codes", inference=kind)
    probe = (vector / "probe.txt").read_bytes().split(b"\n")
    assert b"\n".join(map(bpe.process_line, probe)) == (vector / f"scaffold.{kind}").read_bytes()


# ---- dropout and sampling


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_dropout_of_the_longest_merge_has_its_exact_distribution(dropout: float) -> None:
    """At every step each pair is left out with this probability, and the longest of the others is merged."""
    _, merges, scaffold = parsed(CODES)
    reference = LongestMergeBPE(merges, scaffold)
    bpe, given = BPE(CODES, inference="longest-merge"), ["ababa", "ababb", "abbab", "babab"]
    lines = [bpe.segment(" ".join(given), dropout, 1, i).replace("@@ ", "@@").split(" ") for i in range(10_000)]
    for place, word in enumerate(given):
        exact = {"@@".join(pieces): p for pieces, p in reference.dropout_distribution(word, dropout).items()}
        observed = Counter(line[place] for line in lines)
        assert set(observed) <= set(exact)
        frequent = [pieces for pieces, p in exact.items() if p * len(lines) >= 5]
        rest = [len(lines) - sum(observed[each] for each in frequent)], [1 - sum(exact[each] for each in frequent)]
        seen = [observed[each] for each in frequent] + rest[0]
        expected = [exact[each] * len(lines) for each in frequent] + [rest[1][0] * len(lines)]
        if expected[-1] < 5:
            seen, expected = seen[:-1], [each * sum(seen[:-1]) / sum(expected[:-1]) for each in expected[:-1]]
        assert len(seen) < 2 or chisquare(seen, expected).pvalue > SUSPICIOUS
    merging = ReferenceBPE(merges, scaffold).dropout_distribution("ababa", dropout)
    assert merging != reference.dropout_distribution("ababa", dropout)  # or the test could not tell them apart


def test_dropout_of_all_and_of_long_words() -> None:
    """A probability of 1 gives base symbols, 0 the usual segmentation, others one of the possible ones."""
    word = "".join(random.Random(1).choices("ab", k=400))
    bpe = BPE(CODES, inference="longest-merge")
    assert bpe.segment(word, dropout=1) == "@@ ".join(word)
    assert bpe.segment(word, dropout=0) == bpe.segment(word)
    some = bpe.segment(word, dropout=0.2, seed=1)
    assert some == bpe.segment(word, dropout=0.2, seed=1) != bpe.segment(word)
    assert some.replace("@@ ", "") == word and set(some.split(" ")) <= set(bpe.surface_forms())


@pytest.mark.parametrize("kind", ["longest-merge", "fewest"])
def test_uniform_sampling_of_the_other_words(kind: str) -> None:
    """Words that are not sampled are segmented by this inference; those that are, from the same vocabulary as usual."""
    _, merges, scaffold = parsed(CODES)
    sampler, usual = UniformSampler(merges, scaffold), reference_with(kind, CODES)
    bpe, given = BPE(CODES, inference=kind), ["abab", "aaba", "babaab"] * 30
    for seed in range(3):
        expected = sampler.sample(given, usual, 0.5, RandomStream(seed))
        assert bpe.segment(" ".join(given), seed=seed, uniform_sampling=0.5) == " ".join(map("@@ ".join, expected))


# ---- ids, statistics, copies and commands


@pytest.mark.parametrize("kind", ["longest-merge", "fewest", "remerge"])
@pytest.mark.parametrize("mode", [BYTES, PRETOKENISED], ids=["bytes", "pretokenised"])
def test_ids_follow(mode: Mode, kind: str) -> None:
    """Ids are those of the same subwords and decode to the text."""
    text = hard_text(1, 600)
    bpe = BPE(learn_bpe(lines=text.split("\n"), num_symbols=200, **mode.options).codes, inference=kind)
    for line in hard_text(2, 300).split("\n"):
        ids = bpe.encode(line)
        assert bpe.decode(ids) == line
        if mode is PRETOKENISED:
            subwords = bpe.segment(line).split(" ") if line else []
            assert [bytes_to_notation(bpe.tokens[number]) for number in ids] == subwords


@pytest.mark.parametrize("kind", ["longest-merge", "fewest"])
def test_statistics_copies_and_the_command_follow(kind: str, tmp_path: Path) -> None:
    codes = b"#version: 0.2\na b\nc d\nab c\nd e</w>\n"
    bpe, given = BPE(codes, inference=kind), "abcde abcdef abcd"
    expected = bpe.segment(given)
    assert expected != BPE(codes).segment(given)
    for other in (copy.deepcopy(bpe), pickle.loads(pickle.dumps(bpe))):
        assert other.segment(given) == expected
    (summary,) = stats([codes], lines=[given], inference=kind)
    assert summary.tokens == len(expected.split(" "))
    (tmp_path / "codes").write_bytes(codes)
    (tmp_path / "text").write_text(f" {given}\r\n")
    files = ["-c", str(tmp_path / "codes"), "-i", str(tmp_path / "text"), "-o", str(tmp_path / "out")]
    assert main(["apply-bpe", *files, "--inference", kind]) == 0
    assert (tmp_path / "out").read_bytes() == f" {expected}\r\n".encode()


def test_what_is_refused() -> None:
    """Dropout and a vocabulary with the fewest tokens, and PickyBPE's codes with the longest merge."""
    bpe = BPE(CODES, inference="fewest")
    with pytest.raises(UsageError, match="fewest inference merges nothing, so dropout has nothing to skip"):
        bpe.segment("abb", dropout=0.1)
    with pytest.raises(UsageError, match="fewest inference has the vocabulary of the codes; omit the vocabulary"):
        BPE(CODES, vocab=["ab@@"], inference="fewest")
    with pytest.raises(UsageError, match="longest-merge inference cannot follow PickyBPE's order of merges and splits"):
        BPE(b"#version: 0.4 picky\na b\nsplit ab a b\n", inference="longest-merge")


def test_the_kinds_differ() -> None:
    """On one vocabulary, no two kinds give the same."""
    letters = LETTERS[:-1]
    learned = learn_bpe(lines=rich_text(3, 1500, letters), num_symbols=300, algorithm="bpe").codes
    # Without scaffold tokens, remerge would equal merges.
    codes = trim(learned, lines=rich_text(3, 1500, letters), below=12).codes
    given = " ".join(rich_text(4, 700, letters))
    assert len({BPE(codes, inference=kind).segment(given) for kind in INFERENCES}) == len(INFERENCES)
    subwords = {kind: BPE(codes, inference=kind).segment(given).count(" ") for kind in INFERENCES}
    assert min(subwords, key=lambda kind: subwords[kind]) == "fewest"


def test_the_reference_of_merges_is_another(tmp_path: Path) -> None:
    """The longest merge and the lowest rank differ on the words above, so that one reference cannot pass for both."""
    pairs = [("a", "b"), ("c", "d"), ("ab", "c")]
    assert ReferenceBPE(pairs).segment("abcde") == "ab@@ cd@@ e"
    assert LongestMergeBPE(pairs).segment("abcde") == "abc@@ d@@ e"
