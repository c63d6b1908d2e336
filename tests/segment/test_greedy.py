"""Greedy inference: the longest token from the left, over the vocabulary of any codes."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path

import pytest
from learning import learn_with
from reference.greedy import segment_greedily
from segmenting import ALPHABET, MODE_NAMES, MODES, Mode, hard_text, hard_words, rich_text

from mt_scaffold import BPE, Codes, UsageError
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import bytes_to_notation

LETTERS = [*"abcdef", "ä", "日", "</w>"]

# Merges make "a bcd" of "abcd", as (b, c) comes first. From the left, "ab" is the longest token, and then "cd", which
# is a token at the end of a word only.
CODES = b"#version: 0.2\nb c\nbc d</w>\na b\nc d</w>\n"


def test_by_hand() -> None:
    """Tokens with an end-of-word marker are found only at the end of a word, the others never there."""
    greedy, merging = BPE(CODES, inference="greedy"), BPE(CODES)
    assert merging.segment("abcd") == "a@@ bcd"
    assert greedy.segment("abcd") == "ab@@ cd"
    assert greedy.segment("abcde bcd cdcd ab") == "ab@@ c@@ d@@ e bcd c@@ d@@ cd a@@ b"
    assert greedy.segment("xäbc\u65e5") == "x@@ ä@@ bc@@ \u65e5"
    assert greedy.join(greedy.segment("abcde bcd")) == "abcde bcd"


def test_scaffold_tokens_are_not_in_the_vocabulary() -> None:
    """Greedy segmentation never needs demolishing: it chooses among normal tokens."""
    codes = CODES.replace(b"a b", b"a b scaffold")
    assert BPE(codes, inference="greedy").segment("abcd") == "a@@ bcd"


def test_the_tokens_of_pickybpe_are_those_of_its_final_vocabulary() -> None:
    """After the merges that are used: a removal counts from its place in the order."""
    codes = b"#version: 0.4 picky\nu l\nul d</w>\nsplit ul u l\no uld</w>\nsplit uld</w> u l d</w>\nw ould</w>\n"
    for merges, expected in ((1, "ul@@ d o@@ ul@@ d m@@ o@@ ul@@ d"), (2, "uld o@@ uld m@@ o@@ uld")):
        assert BPE(codes, merges, inference="greedy").segment("uld ould mould") == expected
    greedy = BPE(codes, inference="greedy")
    assert greedy.segment("uld ould mould would") == "u@@ l@@ d ould m@@ ould would"
    bytewise = BPE(b"#version: 0.4 picky bytes gpt2\na b\nab c\nsplit ab a b\n", inference="greedy")
    assert bytewise.segment("abcab") == "abc a b" and bytewise.decode(bytewise.encode("abcab")) == "abcab"


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_core_equals_reference(mode: Mode, algorithm: str) -> None:
    """Compared on words with letters of all lengths, and with the letters of the end-of-word marker."""
    text = hard_text(1, 1000).split("\n") + rich_text(3, 1500, LETTERS)
    threshold = 0.6 if algorithm == "picky" else None
    codes = learn_with(lines=text, num_symbols=300, algorithm=algorithm, threshold=threshold, **mode.options).codes
    bpe = BPE(codes, inference="greedy")
    lines = [line.split(b" ") for line in codes.text.split(b"\n")[1:-1]]
    merges, scaffold = [], set()
    for first, *rest in lines:
        if algorithm == "picky" and first == b"split" and len(rest) > 1:
            scaffold.add(mode.of_file(rest[0]))  # until it is merged again
            continue
        merges.append((mode.of_file(first), mode.of_file(rest[0])))
        token = "".join(merges[-1])
        scaffold = scaffold | {token} if len(rest) == 2 else scaffold - {token}
    assert bool(scaffold) == (algorithm != "bpe")
    differing = 0
    words = hard_words(random.Random(2), 500, ALPHABET) + " ".join(rich_text(4, 700, LETTERS)).split(" ")
    for word in words:
        given = mode.word(word if mode is MODES[0] else word.encode().decode("latin-1"))
        reference = segment_greedily(
            given.decode("latin-1" if mode.byte_level else "utf-8"), merges, scaffold, mode.end_of_word
        )
        if mode.end_of_word:
            *inner, last = reference
            spaced = " ".join([f"{token}@@" for token in inner] + [last.removesuffix("</w>")])
            expected = spaced.encode("latin-1" if mode.byte_level else "utf-8")
        else:
            expected = " ".join(bytes_to_notation(token.encode("latin-1")) for token in reference).encode()
        found = b" ".join(bpe.segment_tokens([given]))
        assert found == expected
        differing += found != b" ".join(BPE(codes).segment_tokens([given])) if differing < 5 else 0
    assert differing == 5  # or nothing was tested


def test_what_is_refused_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Dropout and a vocabulary are refused; a copy, a pickle and the command line segment in the same way."""
    bpe = BPE(CODES, inference="greedy")
    for call in (
        lambda: bpe.segment("abcd", dropout=0.1),
        lambda: bpe.segment_tokens(["abcd"], dropout=0.1),
        lambda: bpe.process_file(lines=["abcd"], outfile=tmp_path / "out", dropout=0.1),
    ):
        with pytest.raises(UsageError, match="greedy inference merges nothing"):
            call()
    with pytest.raises(UsageError, match="greedy inference has the vocabulary of the codes"):
        BPE(CODES, vocab=["ab@@"], inference="greedy")
    with pytest.raises(UsageError, match="there is no inference 'fast'"):
        BPE(CODES, inference="fast")
    for other in (copy.deepcopy(bpe), pickle.loads(pickle.dumps(bpe))):
        assert other.segment("abcd") == "ab@@ cd"
    (tmp_path / "codes").write_bytes(CODES)
    (tmp_path / "text").write_bytes(b" abcd  abcd\r\n")
    files = ["-c", str(tmp_path / "codes"), "-i", str(tmp_path / "text"), "-o", str(tmp_path / "out")]
    assert main(["apply-bpe", *files, "--inference", "greedy"]) == 0
    assert (tmp_path / "out").read_bytes() == b" ab@@ cd ab@@ cd\r\n"
    assert main(["apply-bpe", *files, "--inference", "greedy", "--dropout", "0.1"]) == 2
    assert "dropout has nothing to skip" in capsys.readouterr().err


def test_ids_and_statistics_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids and statistics of counted words are greedy too."""
    codes = Codes(b"#version: 0.3 bytes gpt2\nb c\nbc d\na b\nc d\n")
    greedy = BPE(codes, inference="greedy")
    assert greedy.segment("abcd") == "ab cd"
    assert greedy.decode(greedy.encode("abcd")) == "abcd" and len(greedy.encode("abcdc")) == 3
    marked = BPE(CODES.replace(b"0.2", b"0.2 byte"), inference="greedy")
    assert [marked.tokens[number] for number in marked.encode("abcd")] == [b"ab", b"cd"]
    (merging,), (summary,) = (stats([CODES], lines=["abcd bcd"], inference=how) for how in ("merges", "greedy"))
    assert (merging.types, summary.types) == (2, 3)  # a@@ bcd bcd, and ab@@ cd bcd
    (tmp_path / "codes").write_bytes(CODES)
    (tmp_path / "text").write_text("abcd")
    files = ["--codes", str(tmp_path / "codes"), "--input", str(tmp_path / "text")]
    assert main(["stats", *files, "--inference", "greedy", "--format", "json"]) == 0
    assert '"tokens": 2' in capsys.readouterr().out
