"""PickyBPE: examples to follow by hand, dropout, its codes file; tests/test_differential.py has the reference."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from dropping import PICKY_CODES, sampled
from learning import learn_with
from segmenting import (
    dictionary_lines,
    learn_picky_with_reference,
)
from subword_nmt import apply_bpe as their_apply

from mt_scaffold import BPE, UsageError, learn_bpe
from mt_scaffold.analysis.explain import explain
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes, Split
from mt_scaffold.methods import Picky, PlainBPE
from mt_scaffold.methods.learn import learn_joint_bpe_and_vocab

# ---- by hand


# Writing "d." for "d</w>". All three pairs of "ould." occur 100 times, and the greatest wins:
#   (u, l)      makes ul; u and l are base symbols and stay
#   (ul, d.)    makes uld.; all of ul is in it, IoS 100/100: ul is removed
#   (o, uld.)   makes ould.; uld. is removed in the same way
#   (w, ould.)  50 of 100: IoS 0.5
#   (c, ould.)  30 of the 50 that are left: 0.6
#   (s, h)      18, greater than (h, ould.)
#   (sh, ould.) 18 of 20: 0.9, so ould. is removed, and sh with 18 of 18; mould is left, and becomes m o u l d.
# Nothing else occurs 3 times.
OULD = {"would": 50, "could": 30, "should": 18, "mould": 2}
OULD_CODES = b"""\
#version: 0.4 picky
u l
ul d</w>
split ul u l
o uld</w>
split uld</w> u l d</w>
w ould</w>
c ould</w>
s h
sh ould</w>
split sh s h
split ould</w> o u l d</w>
"""


def test_an_intermediate_token_by_hand() -> None:
    """The paper's figure 2: "ould" is removed only after it has been merged into three frequent words."""
    learned = learn_bpe(lines=dictionary_lines(OULD), is_dict=True, num_symbols=10, min_frequency=3, algorithm="picky")
    assert learned.text == OULD_CODES
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (7, 4, 0, True)
    reference, codes = learn_picky_with_reference(OULD, 10, 0.9, 3)
    assert codes == OULD_CODES and reference.vocabulary == {"would</w>", "could</w>", "should</w>"}
    bpe = BPE(OULD_CODES)
    assert bpe.segment("should would mould shoulder") == "should would m@@ o@@ u@@ l@@ d s@@ h@@ o@@ u@@ l@@ d@@ e@@ r"
    # Before the last merge, ould and sh are in the vocabulary.
    assert BPE(OULD_CODES, merges=6).segment("should mould") == "sh@@ ould m@@ ould"
    # At a higher threshold ould stays; sh still goes, because all of it is merged.
    at_most = learn_with(
        lines=dictionary_lines(OULD), is_dict=True, num_symbols=10, min_frequency=3, algorithm="picky", threshold=0.91
    )
    assert BPE(at_most.text).segment("mould shed") == "m@@ ould s@@ h@@ e@@ d"


def test_a_second_chance_by_hand() -> None:
    """The paper's "he": removed when "the" is formed, then merged again as a word, which must not change "the"."""
    counts = {"the": 90, "he": 10}
    learned = learn_bpe(lines=dictionary_lines(counts), is_dict=True, num_symbols=2, algorithm="picky")
    assert learned.text == b"#version: 0.4 picky\nh e</w>\nt he</w>\nsplit he</w> h e</w>\nh e</w>\n"
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (3, 0, 1, False)
    assert BPE(learned.text).segment("the he she") == "the he s@@ he"
    assert BPE(learned.text, merges=2).segment("the he") == "the h@@ e"
    assert [merge.token for merge in learned.codes.merges] == ["he</w>", "the</w>", "he</w>"]
    assert learned.codes.splits == [Split(2, "he</w>", ("h", "e</w>"))]


def test_a_token_merged_with_itself_by_hand() -> None:
    """All of "xx" is in the merge of "xx" and "xx", though the pair occurs half as often as the token."""
    counts = {"xxxxa": 3, "xxxxb": 3, "xxxxc": 3}
    learned = learn_bpe(lines=dictionary_lines(counts), is_dict=True, num_symbols=1, algorithm="picky")
    assert learned.text == b"#version: 0.4 picky\nx x\n" and not learned.exhausted
    learned = learn_bpe(lines=dictionary_lines(counts), is_dict=True, num_symbols=2, algorithm="picky", min_frequency=9)
    assert learned.text == b"#version: 0.4 picky\nx x\nxx xx\nsplit xx x x\n" and learned.exhausted


# ---- dropout


def test_dropout_of_nothing_and_of_everything() -> None:
    """p = 0 is no dropout, p = 1 gives base symbols, and the same seed the same text whatever the threads."""
    text = "aaaa abab aabab abba aaaab"
    bpe = BPE(PICKY_CODES)
    assert bpe.segment(text, dropout=1e-300, seed=1) == bpe.segment(text)
    assert bpe.segment(text, dropout=1, seed=1).replace("@@ ", "") == text
    assert all(len(piece.removesuffix("@@")) == 1 for piece in bpe.segment(text, dropout=1, seed=1).split(" "))
    assert sampled(PICKY_CODES, text, 300, 0.3, 5) == sampled(PICKY_CODES, text, 300, 0.3, 5, workers=3)
    assert sampled(PICKY_CODES, text, 300, 0.3, 5) != sampled(PICKY_CODES, text, 300, 0.3, 6)


# ---- the codes file


@pytest.mark.parametrize(
    "words", ["", " byte", " bytes gpt2", " bytes o200k split-digits", " bytes pattern=\\w+| \\w+ "]
)
def test_the_first_line_is_read_as_it_is_written(words: str) -> None:
    """Every kind of symbols and words has its first line, and a symbol called split is not a split."""
    first = f"#version: 0.4 picky{words}"
    codes = Codes(f"{first}\nsplit ting\ns p\n".encode())
    assert codes.header.picky and len(codes.merges) == 2 and not codes.splits
    assert (
        codes.header.of_words == Codes(first.replace("0.4 picky", "0.2" if len(words) < 6 else "0.3").encode()).header
    )


def test_programs_that_do_not_know_splits_refuse_the_file() -> None:
    """subword-nmt would give other subwords; it stops at the first line."""
    with pytest.raises(ValueError, match="picky"):
        their_apply.BPE(io.StringIO(OULD_CODES.decode()))


def test_our_subword_nmt_applies_it() -> None:
    """A program that imports subword_nmt's names can be given the codes, dropout included; the seed decides."""
    from mt_scaffold.subword_nmt.apply_bpe import BPE as TheirNames

    bpe = TheirNames(io.StringIO(OULD_CODES.decode()))
    assert bpe.segment("should mould") == "should m@@ o@@ u@@ l@@ d"
    random.seed(3)
    dropped = {bpe.segment("should", dropout=0.5) for _ in range(50)}
    assert dropped == {"should", "s@@ h@@ o@@ u@@ l@@ d"}  # intermediate tokens are split again


# ---- what else reads codes


def test_vocabulary_glossaries_and_statistics(tmp_path: Path) -> None:
    """Filters, glossaries, counts and figures treat the codes like those of any other algorithm."""
    assert BPE(OULD_CODES, vocab={"would", "w@@"}).segment("would could") == "would c@@ o@@ u@@ l@@ d"
    assert BPE(OULD_CODES, glossaries=["ould"]).segment("mould would") == "m@@ ould w@@ ould"
    (summary,) = stats([OULD_CODES], lines=["would could mould"])
    assert (summary.normal_tokens, summary.scaffold_tokens, summary.tokens) == (3, 4, 7)
    text = tmp_path / "text"
    text.write_text("would could should mould\n" * 5)
    learned = learn_joint_bpe_and_vocab([text], tmp_path / "codes", [tmp_path / "vocab"], Picky(3, threshold=0.8))
    assert (tmp_path / "codes").read_bytes() == learned.text and learned.codes.header.picky
    used = {line.split()[0] for line in (tmp_path / "vocab").read_text().splitlines()}
    assert "would" in used
    assert {form for form in used if len(form.removesuffix("@@")) > 1} <= {*BPE(learned.text).surface_forms()}


def test_explain_shows_the_splits() -> None:
    """A reader sees what was merged and taken apart again, and the result is apply-bpe's."""
    mould = explain(OULD_CODES, ["mould"]).splitlines()
    assert [line.split()[0] for line in mould[1:]] == ["symbols", *["merge"] * 2, *["merge"], "split", "result"]
    assert mould[-2].endswith("ould</w> = o + u + l + d</w>")
    assert mould[-1].split() == ["result", "m@@", "o@@", "u@@", "l@@", "d"]


def test_systems_of_an_experiment() -> None:
    """A system of PickyBPE has separate codes for each threshold."""
    systems = pytest.importorskip("mt_scaffold.experiment.configuration.systems", reason="needs the extra 'workflow'")
    learn = systems.Learn(symbols=100)
    usual, lower = (
        systems.System.from_keys({"algorithm": "picky", **keys}).segmentation(learn, ("en", "de")).source
        for keys in ({}, {"threshold": 0.7})
    )
    assert (usual.name, lower.name) == ("picky-100", "picky-100-ios0.7")
    assert lower.method == Picky(symbols=100, threshold=0.7)
    plain = systems.System(algorithm="bpe").segmentation(learn, ("en", "de"))
    assert plain.source.method == PlainBPE(symbols=100)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands learn and apply; a threshold that is invalid or has no effect is an error of one line."""
    text, codes, output = tmp_path / "text", tmp_path / "codes", tmp_path / "out"
    text.write_text("".join(f"{line}\n" for line in dictionary_lines(OULD)))
    learn = ["learn-bpe", "--dict-input", "-s", "10", "--min-frequency", "3", "-i", str(text), "-o", str(codes)]
    assert main([*learn, "--algorithm", "picky"]) == 0
    assert codes.read_bytes() == OULD_CODES
    assert main(["apply-bpe", "-c", str(codes), "-i", str(text), "-o", str(output)]) == 0
    assert output.read_text().startswith("would 5@@ 0\ncould 3@@ 0\nshould 1@@ 8\nm@@ o@@ u@@ l@@ d 2\n")
    capsys.readouterr()
    for wrong in (["--threshold", "0.9"], ["--algorithm", "picky", "--threshold", "0"]):
        assert main([*learn, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        learn_with(lines=["a"], algorithm="picky", threshold=1.1)


def test_total_symbols_count_base_symbols() -> None:
    """With --total-symbols, N includes the base symbols."""
    lines = dictionary_lines({"abab": 5, "abc": 3})
    alone = learn_bpe(lines=lines, is_dict=True, num_symbols=2, algorithm="picky")
    assert learn_bpe(lines=lines, is_dict=True, num_symbols=6, total_symbols=True, algorithm="picky").text == alone.text


# ---- vectors
