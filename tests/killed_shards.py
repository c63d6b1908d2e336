"""Kill ``encode`` at random moments while it fills a folder, and compare what it ends with.

    python tests/killed_shards.py [--kills 100] [--seed 1] [--processes 2]

The processes share the folder; a random one of them is killed each time, and started again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from segmenting import hard_text

from mt_scaffold import learn_bpe

END = "<|endoftext|>"
SHARDS = 10
KILLED = -signal.SIGKILL


def write_inputs(folder: Path, documents: int = 3000) -> None:
    """Write codes and shards of JSONL, ``in/00.jsonl`` and so on."""
    lines = hard_text(30, 2000).split("\n")
    (folder / "text").write_text("\n".join(lines), encoding="utf-8")
    learn_bpe(folder / "text", folder / "codes", 300, pretokenise="gpt2")
    (folder / "in").mkdir()
    for number in range(SHARDS):
        texts = (lines[(number + step) % len(lines)] for step in range(documents))
        shard = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (folder / "in" / f"{number:02}.jsonl").write_text(shard, encoding="utf-8")


def encoding(folder: Path, output: str) -> subprocess.Popen[str]:
    """Start a process that encodes the shards into a folder."""
    options = ["--codes", "codes", "--input", "in/*.jsonl", "--append", END, "--num-workers", "1", "--output", output]
    command = [sys.executable, "-m", "mt_scaffold", "encode", *options]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def difference(folder: Path, output: str) -> list[str]:
    """Return the files that are not those of the folder ``expected``."""
    found, expected = digests(folder / output), digests(folder / "expected")
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


def kill_often(folder: Path, output: str, kills: int, seed: int, processes: int = 1) -> tuple[int, int]:
    """Encode into a folder with processes of which one is killed every now and then; return the kills and starts.

    Where the folder is complete before the last kill, most of its files are removed, but not the manifest, so that the
    next process has something to do. Raises AssertionError where a process that was not killed fails.
    """
    draw = random.Random(seed)
    started = time.monotonic()
    first = encoding(folder, "expected/")
    assert first.wait() == 0, first.communicate()[1]
    longest = time.monotonic() - started
    killed, starts = 0, processes
    running = [encoding(folder, output) for _ in range(processes)]
    while killed < kills:
        victim = draw.choice(running)
        try:
            victim.wait(longest * draw.random() * 1.5)
        except subprocess.TimeoutExpired:
            victim.kill()
        message = victim.communicate()[1]
        assert victim.returncode in (0, KILLED), message
        killed += victim.returncode == KILLED
        running.remove(victim)
        if victim.returncode == 0:
            for other in running:
                assert other.wait() == 0, other.communicate()[1]
            assert difference(folder, output) == [], f"after {killed} kills"
            for path in (folder / output).iterdir():
                if path.name != "manifest.json" and draw.random() < 0.8:
                    path.unlink()
            # An index or ids may not be left without the other.
            for path in (folder / output).glob("*.*"):
                whole = all(path.with_name(path.name.split(".")[0] + end).exists() for end in (".bin", ".idx"))
                if path.name.endswith(".manifest.json") and not whole:
                    path.unlink()
            starts += len(running)
            running = [encoding(folder, output) for _ in running]
        starts += 1
        running.append(encoding(folder, output))
    for process in running:
        message = process.communicate()[1]
        assert process.returncode == 0, message
    assert difference(folder, output) == [], f"after {killed} kills"
    return killed, starts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name))
        kills, starts = kill_often(Path(name), "out/", arguments.kills, arguments.seed, arguments.processes)
        found = digests(Path(name) / "out")
    total = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    print(f"{kills} kills, {starts} starts, {len(found)} files as without a kill (sha256 {total[:12]})")
