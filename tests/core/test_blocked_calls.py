"""Calls that end when they are told to: by a signal, and when Python exits."""

from __future__ import annotations

import fcntl
import gzip
import os
import random
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_costs import cost, cost_until_interrupted

from mt_scaffold import BPE

BYTES = b"#version: 0.3 bytes gpt2\na b\n"


@pytest.mark.parametrize(
    ("command", "name", "sent"),
    [
        ("apply-bpe --codes codes --input", "text.gz", signal.SIGINT),
        ("learn-bpe --symbols 5 --input", "text.gz", signal.SIGTERM),
        ("count-words --input", "text.gz", signal.SIGHUP),
        ("count-words --merge", "counts", signal.SIGINT),
    ],
)
def test_a_signal_ends_reading_that_stalls(command: str, name: str, sent: signal.Signals, tmp_path: Path) -> None:
    """A compressed input, or a count file, that no more comes from: the call ends at once and leaves no output."""
    (tmp_path / "codes").write_bytes(b"#version: 0.2\na b\n")
    os.mkfifo(tmp_path / name)
    text = b"a %d\n" * 9000 % tuple(random.Random(1).choices(range(9000), k=9000))
    part = b"#counts: 0.3\n" if name == "counts" else gzip.compress(text)[:-9]
    program = [sys.executable, "-m", "mt_scaffold", *command.split(), name, "--output", "out"]
    pipe = os.open(tmp_path / name, os.O_RDWR)
    os.write(pipe, part)
    with subprocess.Popen(program, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0] > 0:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(sent)
        try:
            assert process.wait(30) == 128 + sent
        finally:
            process.kill()
    os.close(pipe)
    assert {path.name for path in tmp_path.iterdir()} == {"codes", name}


PROGRAMS = {
    "lines": f"BPE({BYTES!r}).process_file(lines=lines(), outfile=open(os.devnull, 'wb'), num_workers=2)",
    "stream": f"BPE({BYTES!r}).process_file(Slow(), open(os.devnull, 'wb'), num_workers=2)",
    "batch": f"[BPE({BYTES!r}).encode_batch(['ab ab ab\\n' * 200000] * 4, num_workers=2) for _ in lines()]",
    "learn": "learn_bpe(lines=[' '.join(str(7919 ** i % 2 ** 40) for i in range(9999))], num_symbols=30000)",
}


@pytest.mark.parametrize("call", PROGRAMS)
def test_a_daemon_thread_in_the_core_does_not_keep_a_program_from_ending_well(call: str) -> None:
    """CPython up to 3.13 unwinds such a thread when it asks for the GIL, which aborted the process in the core."""
    program = f"""
import os, threading, time
from mt_scaffold import BPE, learn_bpe

class Slow:
    def read(self, size):
        time.sleep(0.05)
        return b"ab ab\\n"

def lines():
    while True:
        yield "ab ab ab\\n" * 200

threading.Thread(target=lambda: {PROGRAMS[call]}, daemon=True).start()
time.sleep(0.3)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "kept",
    [
        "_core.Pretokeniser('own', False, lambda text: [len(text)])",
        "BPE(b'#version: 0.2\\na b\\n', glossaries=['[A-Z]+'])",
    ],
)
def test_a_program_ends_that_keeps_what_calls_python(kept: str) -> None:
    """Python frees what a program still has when it ends, and does not let the core wait for the GIL that it holds."""
    program = f"import sys\nfrom mt_scaffold import BPE, _core\nsys.kept = {kept}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ["batch", "one text with dropout", "long words"])
def test_ctrl_c_ends_encoding(call: str) -> None:
    """Ctrl-C is handled before all texts are encoded, and within a text."""
    bpe = BPE(BYTES)
    text = " ".join(f"ab abba {number}" for number in range(20_000))
    calls: dict[str, Callable[[], object]] = {
        "batch": lambda: bpe.encode_batch([text] * 60, num_workers=1),
        "one text with dropout": lambda: bpe.encode(text * 20, dropout=0.3),
        "long words": lambda: bpe.encode(" ".join(["abba" * 1000] * 1000)),
    }
    encode = calls[call]
    whole = cost(encode, 3)

    assert cost_until_interrupted(encode, whole / 8) < whole / 2
