"""Inputs whose cost once grew with the square of their size, by ratios of processor time or size: never by seconds."""

from __future__ import annotations

import io
import itertools
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from learning import learn_with

from mt_scaffold import BPE, _core, count_words
from mt_scaffold.corpus.inputs import _line_stream


def cost(work: Callable[[], object], times: int = 7) -> float:
    """Return the least processor time that some work takes, whatever else the machine does."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)


def cost_until_interrupted(work: Callable[[], object], after: float) -> float:
    """Return the processor time of some work that Ctrl-C comes to after this much of it."""

    def pressed() -> None:
        signal.setitimer(signal.ITIMER_PROF, after)
        with pytest.raises(KeyboardInterrupt):
            work()

    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        return cost(pressed, 3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


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


LEARNING = """
import sys
from pathlib import Path
from mt_scaffold import learn_bpe

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

word = "".join(chr(0x4E00 + i) for i in range(int(sys.argv[1])))
before = peak()
learn_bpe(lines=[f"{word} {word}"], num_symbols=100_000, algorithm=sys.argv[2], outfile=sys.argv[3])
print(peak() - before, Path(sys.argv[3]).stat().st_size)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
def test_memory_of_a_long_repeated_word_grows_with_it(tmp_path: Path, algorithm: str) -> None:
    """Four times the length takes at most six times the memory and codes; it was sixteen times for both."""
    found = []
    for length in (2000, 8000):
        command = [sys.executable, "-c", LEARNING, str(length), algorithm, str(tmp_path / "codes")]
        done = subprocess.run(command, capture_output=True, check=True)
        assert f"more than {_core.LONGEST_TOKEN:,} bytes" in done.stderr.decode()
        found.append(tuple(map(int, done.stdout.split())))
    (memory, size), (memory_of_four, size_of_four) = found
    assert memory_of_four <= 6 * memory and size_of_four <= 6 * size


def test_long_tokens_and_a_long_word_do_not_cost_their_product() -> None:
    """Where dropout can leave them was looked for as far as tokens reach, from each place in the word."""
    counts = count_words(lines=["a" * 20_000], pretokenise="gpt2")
    lines = ["a" * 2**power for power in range(12)]
    short, long = (
        BPE("\n".join(["#version: 0.3 bytes gpt2", *(f"{half} {half}" for half in halves), ""]).encode())
        for halves in (lines[:2], lines)
    )
    assert cost(lambda: long.reachable(counts, 0.5), 3) < 200 * cost(lambda: short.reachable(counts, 0.5))


def test_reading_a_line_much_longer_than_a_block_costs_its_length() -> None:
    """The rest was copied for each block of it."""

    def read(size: int) -> Callable[[], object]:
        stream = _line_stream([b"a" * size])
        return lambda: sum(map(len, iter(lambda: stream.read(4096), b"")))

    assert cost(read(16 << 20), 1) < 80 * cost(read(1 << 20), 1)


def test_results_do_not_depend_on_the_seed_of_hashes() -> None:
    """Each process has different hashes but gives the same counts and codes."""
    program = (
        "import io, sys; from mt_scaffold import BPE, count_words, learn_bpe\n"
        "text = ' '.join(str(i * i) for i in range(3000)).encode()\n"
        "codes = learn_bpe(io.BytesIO(text), num_symbols=200).text\n"
        "print(codes, list(count_words(io.BytesIO(text)).items()), BPE(codes).segment(text.decode()))\n"
    )
    outputs = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in "123"}
    assert len(outputs) == 1


def test_words_made_to_share_their_hash_cost_as_much_as_others() -> None:
    """With fixed seeds, a half that made a factor zero hid the other: 16 times as many cost 256 times as much."""
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEF"

    head = struct.pack("<Q", 0xA0761D6478BD642F ^ 16)

    def counted(count: int) -> Callable[[], object]:
        rests = itertools.islice(itertools.product(letters, repeat=8), count)
        text = b" ".join(head + bytes(rest) for rest in rests)
        return lambda: count_words(io.BytesIO(text), any_bytes=True)

    assert cost(counted(96_000), 3) < 80 * cost(counted(6_000))


def test_another_script_costs_less_than_new_words() -> None:
    """Bytes that no merge joins were looked up in a dictionary of strings, one by one, which cost twice as much."""
    draw = random.Random(1)

    def words(letters: str, length: int) -> str:
        return " ".join("".join(draw.choices(letters, k=length)) for _ in range(20_000))

    own, other = words("abcdefgh", 36), words("".join(map(chr, range(0x4E00, 0x5E00))), 12)
    codes = learn_with(lines=[own], num_symbols=1_000, pretokenise="gpt2").text
    costs = []
    for text in (own, other):
        fresh = [BPE(codes) for _ in range(3)]
        costs.append(cost(lambda fresh=fresh, text=text: fresh.pop().encode_to_numpy(text), 3))  # type: ignore[misc]
    assert costs[1] < costs[0]


def test_dropout_near_1_of_a_long_word_costs_a_few_times_as_much() -> None:
    """Each step tries a thousand pairs that were dropped before; their way through a heap cost 40 times as much."""
    codes = b"#version: 0.2\n" + b"".join(b"%c %c\n" % pair for pair in itertools.product(b"abcdefgh", repeat=2))
    bpe, word = BPE(codes), "".join(random.Random(1).choices("abcdefgh", k=30_000))
    some, most = (cost(lambda dropout=p: bpe.segment(word, dropout=dropout), 3) for p in (0.9, 0.999))  # type: ignore[misc]
    assert most < 12 * some


def test_ctrl_c_ends_work_on_a_long_word() -> None:
    """Ctrl-C is handled before the word is done."""
    letters = random.Random(1).choices("abcdefgh", k=1_000_000)
    codes = b"#version: 0.2\n" + b"".join(b"%c %c\n" % pair for pair in itertools.product(b"abcdefgh", repeat=2))
    bpe, word = BPE(codes), "".join(letters)
    bpe.segment("ab")
    whole = cost(lambda: bpe.segment(word), 3)

    assert cost_until_interrupted(lambda: bpe.segment(word), whole / 8) < whole / 2


@pytest.mark.parametrize("text", ["many words", "one word"])
@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
def test_ctrl_c_ends_learning(algorithm: str, text: str) -> None:
    """Ctrl-C is handled while pairs are counted and merged, after reading and before the codes are learned."""
    draw = random.Random(1)
    longest, words = (30, 100_000) if text == "many words" else (2_000_000, 1)
    lines = [" ".join("".join(draw.choices("abcdefghijklmnop", k=longest)) for _ in range(words))]

    def learned() -> None:
        learn_with(None, None, 20_000, lines=lines, num_workers=1, algorithm=algorithm)

    counted, whole = cost(lambda: count_words(lines=lines, num_workers=1), 3), cost(learned, 3)
    assert counted < whole / 3

    assert cost_until_interrupted(learned, whole / 3) < whole * 3 / 4


DISTINCT = """
import sys
from mt_scaffold import PlainBPE, count_words

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

counts = count_words(sys.argv[1], num_workers=1)
counted = peak()
PlainBPE(1).learn(counts)
print(counted, peak())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
def test_words_are_freed_while_their_symbols_are_laid_out(tmp_path: Path) -> None:
    """Counted words are freed part by part: holding both was the memory peak of learning."""
    words = (f"{number * 2654435761 % 2**40:x}" for number in range(1, 700_000))
    (tmp_path / "text").write_text("\n".join(words))
    done = subprocess.run([sys.executable, "-c", DISTINCT, tmp_path / "text"], capture_output=True, check=True)
    counted, learned = map(int, done.stdout.split())
    assert learned < 1.2 * counted
