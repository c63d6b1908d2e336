"""Limits: the longest tokens, and more words than fit into the table; the rest is in tests/test_differential.py."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from learning import learn_with
from segmenting import dictionary_lines, learn_with_reference, reference_of

from mt_scaffold import BPE, _core
from mt_scaffold.analysis import reference as reference_module
from mt_scaffold.errors import MTScaffoldError


@pytest.mark.parametrize("algorithm", ["scaffold", "bpe"])
def test_tokens_end_at_the_same_length(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A pair whose token would have more than 2,048 bytes is passed over, and others are merged after it."""
    assert reference_module.LONGEST_TOKEN == _core.LONGEST_TOKEN
    counts = {"\u00e9" * 1500: 9, "\u00e9" * 1021 + "xx": 7, "ab" * 1022 + "c": 5, "cd": 2}
    reference, codes = learn_with_reference(counts, 60, 1, algorithm)
    native = learn_with(None, None, 60, 1, is_dict=True, algorithm=algorithm, lines=dictionary_lines(counts))
    assert native.text == codes and (native.restored, native.exhausted) == (reference.restored, reference.exhausted)
    longest = max(len((left + right).encode()) for left, right in reference.merges)
    assert 1500 < longest <= _core.LONGEST_TOKEN and ("c", "d</w>") in reference.merges
    assert "more than 2,048 bytes" in capsys.readouterr().err


@pytest.fixture(scope="module")
def many_words() -> tuple[bytes, list[str], str]:
    """Codes, lines of 50,000 distinct words in all, and the first of them as the reference segments them."""
    generator = random.Random(1)
    distinct = ["".join(generator.choice("abcde") for _ in range(generator.randint(4, 40))) for _ in range(50_000)]
    lines = [" ".join(generator.choice(distinct[i : i + 5000]) for _ in range(6)) for i in range(0, 45_000, 5)]
    codes = learn_with_reference(dict.fromkeys(distinct[:60], 1), 30)[1]
    reference = reference_of(codes)
    return codes, lines, "\n".join(reference.segment(line) for line in lines[:500])


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "limits",
    [{"max_bytes": 1 << 18}, {"max_words": 1}, {"max_words": 1, "max_bytes": 3 << 17}, {"max_bytes": 0}],
    ids=str,
)
def test_the_table_of_words_is_replaced_when_full(
    many_words: tuple[bytes, list[str], str], limits: dict[str, Any], workers: int
) -> None:
    """With far more distinct words than the table can hold, the output is still the same."""
    codes, lines, expected = many_words
    text = "\n".join(lines).encode("utf-8")
    segmenter = _core.Segmenter(codes, "@@")
    unlimited = io.BytesIO()
    _core.Applier(segmenter).apply(("text", text), ("out", unlimited))
    applier = _core.Applier(segmenter, **limits)
    for _ in range(2):  # the second time with a table that has been replaced before
        output = io.BytesIO()
        applier.apply(("text", text), ("out", output), workers)
        assert output.getvalue() == unlimited.getvalue()
        assert applier.segment_line(lines[0]) == expected.split("\n")[0]
    assert unlimited.getvalue().decode("utf-8").startswith(expected)


LONG_WORD = """
import sys
from mt_scaffold import BPE

def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4

bpe = BPE(b"#version: 0.3 bytes gpt2\\n" + b"".join(b"%c %c\\n" % (a, b) for a in b"abcd" for b in b"abcd"))
word = "abdc" * 1_000_000
call = getattr(bpe, sys.argv[1])
call("ab")
before = memory()
call(word)
print(memory() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory from /proc")
@pytest.mark.parametrize("call", ["segment", "encode"])
def test_a_long_word_leaves_no_memory(call: str) -> None:
    """The buffers of one word of 4 MB, some 100 bytes for each byte of it, are given back."""
    done = subprocess.run([sys.executable, "-c", LONG_WORD, call], capture_output=True, check=True)
    assert int(done.stdout) < 60_000, "kB"


BEYOND = """
import resource, sys
from mt_scaffold import BPE
from mt_scaffold.errors import MTScaffoldError

resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
bpe = BPE(b"#version: 0.2\\na b\\n", separator="@" * int(sys.argv[3]))
try:
    bpe.segment("a" * int(sys.argv[2]))
except (MTScaffoldError, MemoryError) as error:
    print(repr(error))
"""


@pytest.mark.parametrize(
    ("megabytes", "length", "separator", "refused"),
    [
        pytest.param(3500, 2**30, 2, "no word may have 2^30 or more", marks=pytest.mark.long),
        (1000, 4097, 2**20, "a word becomes 2^32 bytes or more"),
    ],
)
def test_what_32_bits_cannot_count_is_refused(megabytes: int, length: int, separator: int, refused: str) -> None:
    """A word's positions and the size of its output wrapped around. Both are now checked before memory is allocated."""
    command = [sys.executable, "-c", BEYOND, *map(str, (megabytes, length, separator))]
    assert refused in subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_a_line_may_be_longer_than_a_block(many_words: tuple[bytes, list[str], str], tmp_path: Path) -> None:
    """Text is read in blocks of whole lines; one that a line fills is not cut within it."""
    bpe = BPE(many_words[0])
    line, expected = (" ".join([text] * 400_000) for text in ("abcde edcba", bpe.segment("abcde edcba")))
    (tmp_path / "text").write_text(f"{line}\n{line}\n")
    bpe.process_file(tmp_path / "text", tmp_path / "segmented")
    assert (tmp_path / "segmented").read_text() == f"{expected}\n{expected}\n"


def test_counts_that_sum_to_too_much_are_refused() -> None:
    """A total of 2^64 was 0."""
    counts = _core.read_word_counts([("counts", b"a %d\nb %d\n" % (2**63, 2**63))])
    for total in (counts.total, counts.word_bytes):
        with pytest.raises(MTScaffoldError, match=r"2\^64"):
            total()


def test_a_count_of_0_is_refused() -> None:
    with pytest.raises(MTScaffoldError, match="counts: line 2: a count of 0"):
        _core.read_word_counts([("counts", b"a 1\nb 0\n")])


def test_segmenting_and_encoding_agree_on_a_half_that_no_line_makes() -> None:
    """A scaffold token is demolished by "ab c": "a bc" is shorter, but "bc" is no token, and has no id."""
    bpe = BPE(b"#version: 0.3 bytes gpt2\na b scaffold\nab c scaffold\na bc scaffold\n")
    assert bpe.segment("abc") == "a b c"
    assert [*bpe.encode("abc")] == [*b"abc"]


def test_ids_may_be_negative() -> None:
    """Negative numbers within the table of ids refer to expansions."""
    bpe = BPE(b"#version: 0.3 bytes gpt2\na n\nb an\n")
    assert [*bpe.encoder({"a": 3, "ban": -2}, -1).encode(["ban"])[0]] == [-2]
    assert [*bpe.encoder({"a": 3, "b": -1}, -1).encode(["bazan"])[0]] == [-1, 3, 122, 97, 110]
