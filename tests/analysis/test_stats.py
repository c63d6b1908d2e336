"""Statistics of vocabularies: counts on known texts, entropy compared with SciPy, and the comparison of two."""

from __future__ import annotations

import io
import itertools
import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest
from segmenting import MULTI30K, figures_of, hard_text, needs

from mt_scaffold import BPE, MTScaffoldError, UsageError, learn_bpe
from mt_scaffold.analysis.compare_vocab import (
    NewToken,
    RemovedToken,
    SizeComparison,
    compare_at_sizes,
    compare_sizes,
    compare_vocab,
    format_sizes,
)
from mt_scaffold.analysis.stats import entropy, format_stats, redundancy, renyi_efficiency, stats
from mt_scaffold.cli import main
from mt_scaffold.corpus.count import count_words
from mt_scaffold.segment.frequencies import use_of_vocabulary


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


@needs(MULTI30K)
def test_multi30k_gives_the_known_counts() -> None:
    """Tokens, types and scaffold tokens on real text are the worked figures; both algorithms have |V| = N + base."""
    texts = [MULTI30K / "train.en.gz", MULTI30K / "train.de.gz"]
    for symbols, group in itertools.groupby(figures_of("multi30k"), key=lambda figures: figures.symbols):
        known = list(group)
        assert [figures.algorithm for figures in known] == ["bpe", "scaffold"]
        codes = [learn_bpe(paths=texts, num_symbols=symbols, algorithm=figures.algorithm).text for figures in known]
        found = stats(codes, paths=texts)
        for figures, row in zip(known, found, strict=True):
            assert (row.tokens, row.types, row.scaffold_tokens) == (figures.tokens, figures.types, figures.scaffold)
            assert row.words == 667356
            assert row.normal_tokens == symbols
        assert found[0].vocabulary_size == found[1].vocabulary_size


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
def test_figures_are_those_of_the_segmented_text(algorithm: str, tmp_path: Path) -> None:
    """The figures from word counts equal those from the output of apply-bpe, on hard text."""
    text = hard_text(3, 3000)
    codes = learn_bpe(write(tmp_path / "text", text), num_symbols=150, algorithm=algorithm).text
    (row,) = stats([codes], tmp_path / "text", num_workers=2)

    # A separator that is not in the text distinguishes subwords inside a word from word-final ones.
    lines = [BPE(codes, separator="\x01\x02").segment(line).split(" ") for line in text.split("\n")]
    lines = [[piece for piece in line if piece] for line in lines]
    frequencies = Counter(piece for line in lines for piece in line)
    words = [[word for word in line.strip("\r ").split(" ") if word] for line in text.split("\n")]
    assert row.tokens == frequencies.total()
    assert row.types == len(frequencies)
    assert row.lines == sum(1 for line in words if line)
    assert row.bytes == sum(len(" ".join(line).encode("utf-8")) for line in words)
    assert row.bytes_per_token == row.bytes / row.tokens
    assert row.tokens_per_word == row.tokens / sum(len(line) for line in words)
    assert row.entropy_bits == pytest.approx(entropy(frequencies.values()), rel=1e-12)
    ranked = sorted(frequencies.values(), reverse=True)
    assert row.frequency_at_rank[10] == ranked[9]
    assert row.frequency_0 == row.vocabulary_size - len(frequencies)
    assert row.frequency_under_100 == row.vocabulary_size - sum(1 for count in ranked if count >= 100)


def test_vocabulary_on_its_training_text_is_normal_tokens_and_base_symbols(tmp_path: Path) -> None:
    """|V| is N plus the distinct characters of the text, counted separately inside words and at their ends."""
    text = "low lower lowest newer new wide widest\nlow low wide\n"
    learned = learn_bpe(write(tmp_path / "text", text), num_symbols=6, min_frequency=1, algorithm="scaffold")
    codes = learned.text
    vocabulary = use_of_vocabulary(codes, count_words(tmp_path / "text"))
    words = text.split()
    base = {c for word in words for c in word[:-1]} | {word[-1] + "</w>" for word in words}
    assert not learned.exhausted and len(vocabulary.normal) == 6
    assert set(vocabulary.frequencies) == base | vocabulary.normal
    assert not vocabulary.scaffold & set(vocabulary.frequencies)


def test_a_text_that_spells_out_the_end_of_word_is_measured(tmp_path: Path) -> None:
    """``</w>`` in the text is ordinary letters; a token inside a word can then look like one at its end."""
    codes = b"#version: 0.2\n< /\n</ w\n</w >\na </w>\n"
    (row,) = stats([codes], write(tmp_path / "text", "a</w>b </w>b a\n"))
    # a</w>@@ b </w>@@ b a: the token a</w> occurs twice, b</w> twice, </w> once.
    assert (row.tokens, row.types, row.words) == (5, 3, 3)
    text = hard_text(9, 2000)
    learned = learn_bpe(write(tmp_path / "text", text), num_symbols=150).codes
    (row,) = stats([learned], tmp_path / "text")
    segmented = [BPE(learned).segment(line).split(" ") for line in text.split("\n")]
    assert row.tokens == sum(1 for line in segmented for subword in line if subword)


def test_a_character_that_the_codes_do_not_know_is_counted(tmp_path: Path) -> None:
    """Text with new characters enlarges V, so that types never outnumber it and redundancy stays within [0, 1]."""
    codes = b"#version: 0.2\na b\n"
    (row,) = stats([codes], write(tmp_path / "text", "abц ц\n"))
    # ab@@ ц ц: V = ab, a, b, ц at the end.
    assert (row.tokens, row.types, row.vocabulary_size, row.normal_tokens) == (3, 2, 4, 1)


def test_entropy_and_redundancy_equal_scipy() -> None:
    """Shannon's entropy in bits is SciPy's on the same counts, whatever their size, zeros included."""
    scipy_stats = pytest.importorskip("scipy.stats")
    generator = random.Random(5)
    for _ in range(50):
        counts = [int(generator.paretovariate(0.5)) * generator.randint(0, 1) for _ in range(2000)] + [1]
        expected = float(scipy_stats.entropy(counts, base=2))
        assert entropy(counts) == pytest.approx(expected, rel=1e-10)
        uniform = float(scipy_stats.entropy([1] * len(counts), base=2))
        assert redundancy(entropy(counts), len(counts)) == pytest.approx(1 - expected / uniform, rel=1e-10)
    assert entropy([7]) == 0 and entropy([]) == 0 and redundancy(0.0, 1) == 0


def test_renyi_efficiency_equals_the_reference_program() -> None:
    """On the two texts that its tests use, with the values that they expect (tokenization-scorer 1.1.8)."""
    first = Counter("pick @@ed pick @@l @@ed pick @@les".split()).values()
    second = Counter("pick @@e @@d pick @@l @@e @@d pick @@l @@e @@s".split()).values()
    assert renyi_efficiency(first, 2.5) == pytest.approx(0.8265064834225245, rel=1e-12)
    assert renyi_efficiency(second, 2.5) == pytest.approx(0.9204840242168808, rel=1e-12)
    assert renyi_efficiency(first, 1) == pytest.approx(0.9211854965885544, rel=1e-12)
    assert renyi_efficiency(second, 1) == pytest.approx(0.9609557933859342, rel=1e-12)


def test_renyi_efficiency_worked_by_hand() -> None:
    """With p = 1/2, 1/4, 1/4: Σ p³ = 5/32, so H₃ = log2(32/5) / 2; it divides by log2 of the types that occur."""
    expected = math.log2(32 / 5) / 2 / math.log2(3)
    assert renyi_efficiency([2, 1, 1], 3) == pytest.approx(expected, rel=1e-12)
    assert renyi_efficiency([2000, 0, 1000, 1000, 0], 3) == pytest.approx(expected, rel=1e-12)
    # Σ p^2.5 = 2^-2.5 + 2 * 4^-2.5 = 2^-2.5 + 2^-4
    assert renyi_efficiency([2, 1, 1], 2.5) == pytest.approx(
        -math.log2(2**-2.5 + 2**-4) / 1.5 / math.log2(3), rel=1e-12
    )
    assert renyi_efficiency([5] * 7, 2.5) == pytest.approx(1, rel=1e-12)
    assert renyi_efficiency([3], 2.5) == 1 and renyi_efficiency([0], 2.5) == 0
    with pytest.raises(UsageError, match="positive"):
        renyi_efficiency([1, 2], 0)


def test_renyi_efficiency_equals_numpy() -> None:
    """On long-tailed counts, it follows from NumPy's norms; the greater the power, the more frequent types cost."""
    numpy = pytest.importorskip("numpy")
    generator = random.Random(6)
    for _ in range(30):
        counts = [int(generator.paretovariate(0.5)) * generator.randint(0, 1) for _ in range(2000)] + [1, 2]
        kept = numpy.array([count for count in counts if count], dtype=float)
        found = []
        for power in (2.5, 3.0):
            norm = numpy.linalg.norm(kept / kept.sum(), ord=power)
            # H_α is α / (1 - α) log2 of the α-norm.
            expected = power / (1 - power) * numpy.log2(norm) / numpy.log2(len(kept))
            found.append(renyi_efficiency(counts, power))
            assert found[-1] == pytest.approx(float(expected), rel=1e-9)
        shannon = entropy(counts) / math.log2(len(kept))
        assert shannon >= found[0] >= found[1]


def test_renyi_efficiency_of_a_summary(tmp_path: Path) -> None:
    """It is that of the segmented tokens, and rows and keys name the power."""
    text = write(tmp_path / "text", "abq ab ab cq q\n")
    (row,) = stats([b"#version: 0.2\na b</w>\nx y\n"], text)
    # a b q</w> ab</w> ab</w> c q</w> q</w>
    counts = [1, 1, 3, 2, 1]
    assert row.renyi_efficiency == {power: renyi_efficiency(counts, power) for power in (2.5, 3.0)}
    assert set(row.to_dict()["renyi_efficiency"]) == {"2.5", "3.0"}
    shown = {line[:28].strip(): line[28:].strip() for line in format_stats([row]).splitlines()}
    assert shown["Rényi efficiency, power 2.5"] == f"{row.renyi_efficiency[2.5]:.4f}"
    assert shown["Rényi efficiency, power 3"] == f"{row.renyi_efficiency[3.0]:.4f}"


@needs(MULTI30K)
def test_entropy_of_real_text_equals_scipy() -> None:
    """Also on the token counts of a real text and vocabulary."""
    scipy_stats = pytest.importorskip("scipy.stats")
    counts = count_words(MULTI30K / "train.de.gz")
    codes = learn_bpe(MULTI30K / "train.de.gz", num_symbols=2000).text
    frequencies = list(use_of_vocabulary(codes, counts).frequencies.values())
    (row,) = stats([codes], MULTI30K / "train.de.gz")
    bits = float(scipy_stats.entropy(frequencies, base=2))
    highest = float(scipy_stats.entropy([1] * len(frequencies), base=2))
    assert row.entropy_bits == pytest.approx(bits, rel=1e-10)
    assert row.redundancy == pytest.approx(1 - bits / highest, rel=1e-10)


def test_compared_vocabularies_differ_as_counted_by_hand(tmp_path: Path) -> None:
    """Removed and new tokens, their frequencies in each segmentation, and the gain in the average are correct."""
    text = write(tmp_path / "text", "xyz xyz xyz abq ab\n")
    bpe = b"#version: 0.2\nx y\nxy z</w>\na b</w>\n"
    scaffold = b"#version: 0.2\nx y scaffold\nxy z</w>\na b</w>\na b\n"
    found = compare_vocab(bpe, scaffold, text)
    assert found.removed == [RemovedToken("xy", 0, scaffold=True)]
    assert found.new == [NewToken("ab", 1)]
    assert (found.kept, found.gain) == (2, None)

    write(text, "xyz xya xya abq abq abq")
    found = compare_vocab(bpe, scaffold, text)
    assert (found.average_frequency_removed, found.average_frequency_new) == (2, 3)
    assert found.gain == 0.5


def test_swapped_codes_are_refused() -> None:
    """Otherwise the removed tokens would be called new, and the gain a loss."""
    bpe, scaffold = b"#version: 0.2\na b\n", b"#version: 0.2\na b scaffold\nab c</w>\n"
    assert compare_vocab(bpe, scaffold, io.BytesIO(b"abc ab\n")).removed
    with pytest.raises(UsageError, match="give the BPE codes first"):
        compare_vocab(scaffold, bpe, io.BytesIO(b"abc ab\n"))


def test_on_its_training_text_scaffold_removes_only_scaffold_tokens() -> None:
    """Scaffold-BPE continues where BPE stops: at every size, the tokens that only BPE has are its scaffold tokens."""
    generator = random.Random(2)
    stems = ["".join(generator.choice("abcdefgh") for _ in range(5)) for _ in range(40)]
    lines = [" ".join(generator.choice(stems) + generator.choice(stems[:5]) for _ in range(9)) for _ in range(300)]
    bpe, scaffold = (learn_bpe(lines=lines, num_symbols=60, algorithm=name).text for name in ("bpe", "scaffold"))
    found = compare_vocab(bpe, scaffold, lines=iter(lines))
    assert found.removed and all(entry.scaffold for entry in found.removed)
    assert len(found.new) == len(found.removed)
    (at_size,) = compare_at_sizes(count_words(lines=iter(lines)), [60, 10**6])
    assert at_size.symbols == 60
    assert (at_size.gain, at_size.removed) == (found.gain, len(found.removed))
    base = len("abcdefgh") + len({stem[-1] for stem in stems[:5]})  # inside words, and at their ends
    assert at_size.scaffold_share_of_bpe == len(found.removed) / (60 + base)


def test_sizes_are_compared_from_one_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each size gives the same as two codes files of that size; a size too large for the text is reported."""
    text = write(tmp_path / "text", hard_text(8, 3000))
    rows = compare_sizes([50, 100], text)
    for row in rows:
        bpe, scaffold = (learn_bpe(text, num_symbols=row.symbols, algorithm=name).text for name in ("bpe", "scaffold"))
        found = compare_vocab(bpe, scaffold, text)
        assert (row.removed, row.new, row.gain) == (len(found.removed), len(found.new), found.gain)
    arguments = ["compare-vocab", "--input", str(text), "--sizes", "50", "100", "1000000"]
    assert main([*arguments, "--format", "json"]) == 0
    output, error = capsys.readouterr()
    assert json.loads(output) == [row.to_dict() for row in rows]
    assert "N = 1,000,000 is left out: the text has too few pairs" in error
    with pytest.raises(MTScaffoldError, match="for any of the sizes"):
        compare_sizes([10**6], lines=["ab ab"])


def test_the_table_of_sizes() -> None:
    """A row per N with both counts, both averages, the gain and the share of scaffold tokens."""
    rows = [SizeComparison(32000, 1943, 1943, 100.0, 176.4, 0.764, 0.0607), SizeComparison(9, 0, 0, None, None, None)]
    table = format_sizes(rows, "markdown").splitlines()
    assert [cell.strip() for cell in table[0].split("|")[1:-1]] == [
        "N", "removed", "new", "average frequency, removed", "average frequency, new", "gain", "scaffold",
    ]  # fmt: skip
    cells = [cell.strip() for cell in table[2].split("|")[1:-1]]
    assert cells == ["32,000", "1,943", "1,943", "100.00", "176.40", "+76.40%", "6.07%"]
    assert [cell.strip() for cell in table[3].split("|")[1:-1]] == ["9", "0", "0", "", "", "", ""]


def test_codes_files_may_stand_on_both_sides_of_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As was possible before there was --sizes."""
    for name in ("bpe", "scaffold"):
        write(tmp_path / name, "#version: 0.2\na b\n")
    write(tmp_path / "text", "abc ab\n")
    first, second, text = (str(tmp_path / name) for name in ("bpe", "scaffold", "text"))
    assert main(["compare-vocab", first, "--top", "3", second, "--input", text]) == 0
    assert main(["compare-vocab", "--top", "3", first, second, "--input", text]) == 0


def test_command_writes_json_with_the_documented_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The keys that other programs rely on are there, one object per codes file; the other formats are tables."""
    write(tmp_path / "text", "low lower lowest low\n")
    for algorithm in ("bpe", "scaffold"):
        learn_bpe(tmp_path / "text", tmp_path / algorithm, 3, 1, algorithm=algorithm)
    arguments = ["stats", "--codes", str(tmp_path / "bpe"), str(tmp_path / "scaffold")]
    arguments += ["--input", str(tmp_path / "text")]
    assert main([*arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["codes"] for row in found] == arguments[2:4]
    keys = "codes tokens types vocabulary_size normal_tokens scaffold_tokens bytes_per_token tokens_per_word"
    assert set(f"{keys} entropy_bits redundancy".split()) <= set(found[0])
    assert main([*arguments, "--format", "markdown"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("| ---")
    assert main(arguments) == 0
    assert f"{found[1]['entropy_bits']:.4f}" in capsys.readouterr().out
    compared = ["compare-vocab", *arguments[2:4], "--input", str(tmp_path / "text")]
    assert main([*compared, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["bpe"] == arguments[2]
    assert main(compared) == 0


def test_what_cannot_be_measured_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Malformed codes are named with file and line, a missing file before the text is read; no words is an error."""
    bad = write(tmp_path / "bad.codes", "#version: 0.2\na b\na b c d\n")
    text = write(tmp_path / "text", "a b\n")
    with pytest.raises(MTScaffoldError, match=r"bad\.codes.*3"):
        stats([bad], text)
    with pytest.raises(MTScaffoldError, match=r"missing\.codes"):
        stats([tmp_path / "missing.codes"], tmp_path / "no-text-either")
    with pytest.raises(MTScaffoldError, match="no words"):
        stats([b"#version: 0.2\na b\n"], write(tmp_path / "empty", "\n \n"))
    assert main(["compare-vocab", str(bad), str(bad), "--input", str(text)]) == 1
    assert "bad.codes" in capsys.readouterr().err
    with pytest.raises(UsageError, match="yaml"):
        format_stats([], "yaml")
