"""Inputs that once cost the square of their size, by counted work or size: never by seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest
from learning import learn_with

from mt_scaffold import _core


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
def test_codes_of_a_long_repeated_word_grow_with_it(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word of distinct characters, twice: four times its length gives at most six times the codes, and a warning."""
    sizes = []
    for length in (1000, 4000):
        word = "".join(chr(0x4E00 + i) for i in range(length))
        learned = learn_with(None, None, 100_000, lines=[f"{word} {word}"], algorithm=algorithm)
        assert max(len(f"{merge.left}{merge.right}".encode()) for merge in learned.codes.merges) <= _core.LONGEST_TOKEN
        sizes.append(len(learned.text))
        assert f"more than {_core.LONGEST_TOKEN:,} bytes" in capsys.readouterr().err
    assert sizes[1] <= 6 * sizes[0]


def test_results_do_not_depend_on_the_seed_of_hashes() -> None:
    """Each process has other hashes and gives the same counts and codes."""
    program = (
        "import io, sys; from mt_scaffold import BPE, _core, learn_bpe\n"
        "text = ' '.join(str(i * i) for i in range(3000)).encode()\n"
        "codes = learn_bpe(io.BytesIO(text), num_symbols=200).text\n"
        "print(codes, list(_core.count_words([('t', text)]).items()), BPE(codes).segment(text.decode()))\n"
    )
    outputs = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in "123"}
    assert len(outputs) == 1
