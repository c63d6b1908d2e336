"""scripts/marian_stream.py: the output of ``apply-bpe``, resampled and reordered in every epoch, reproducibly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mt_scaffold
from mt_scaffold import apply_bpe

SCRIPT = Path(__file__).parent.parent / "scripts" / "marian_stream.py"
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(tiny_words: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the script on the 200 training pairs."""
    monkeypatch.chdir(tiny_words)
    monkeypatch.setenv("PYTHONPATH", str(Path(mt_scaffold.__file__).parents[1]))

    def start(*options: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(SCRIPT), "--codes", "codes", "--input", "train.en", "train.de", *options]
        return subprocess.run(command, capture_output=True, timeout=120)

    return start


def segmented(folder: Path, language: str, seed: int, epoch: int) -> list[bytes]:
    """The lines of ``apply-bpe --dropout 0.1``."""
    output = folder / "segmented"
    apply_bpe("codes", f"train.{language}", output, dropout=0.1, seed=seed, epoch=epoch)
    return output.read_bytes().splitlines()


def test_every_epoch_is_that_of_apply_bpe_in_a_new_order(run: Run, tmp_path: Path) -> None:
    """Marian sees the pairs of ``apply-bpe --epoch E``, with the seeds 2S and 2S + 1, each once in an epoch."""
    done = run("--dropout", "0.1", "--seed", "3", "--epochs", "2")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.splitlines()
    epochs = [lines[:200], lines[200:]]
    orders = []
    for epoch, found in enumerate(epochs, 1):
        sides = [segmented(tmp_path, language, seed, epoch) for language, seed in (("en", 6), ("de", 7))]
        pairs = [b"\t".join(pair) for pair in zip(*sides, strict=True)]
        assert sorted(found) == sorted(pairs)
        orders.append([pairs.index(line) for line in found])
    assert orders[0] != orders[1] and all(order != sorted(order) for order in orders)
    assert not set(epochs[0]) >= set(epochs[1])


def test_a_stream_is_reproducible_and_resumes(run: Run) -> None:
    """The same seed gives the same bytes, from any epoch on; another seed gives others."""
    first = run("--dropout", "0.1", "--epochs", "3").stdout
    assert run("--dropout", "0.1", "--seed", "1", "--epochs", "3").stdout == first
    resumed = run("--dropout", "0.1", "--first-epoch", "3", "--epochs", "1").stdout
    assert resumed.count(b"\n") == 200 and first.endswith(resumed)
    assert run("--dropout", "0.1", "--seed", "2", "--epochs", "3").stdout != first


def test_without_dropout_only_the_order_changes(run: Run) -> None:
    lines = run("--epochs", "2").stdout.splitlines()
    assert sorted(lines[:200]) == sorted(lines[200:]) and lines[:200] != lines[200:]


def test_codes_of_each_side(run: Run, tmp_path: Path) -> None:
    """The second codes file segments the target, and only that."""
    (tmp_path / "none").write_text("#version: 0.2\nqq qq\n")
    source, target = zip(
        *(
            line.split(b"\t")
            for line in run("--codes", "codes", str(tmp_path / "none"), "--epochs", "1").stdout.splitlines()
        ),
        strict=True,
    )
    joint = [line.split(b"\t")[0] for line in run("--epochs", "1").stdout.splitlines()]
    assert list(source) == joint
    assert all(len(piece.removesuffix(b"@@").decode()) == 1 for line in target for piece in line.split())


def test_lines_may_end_in_cr_lf(run: Run, tiny_words: Path) -> None:
    """A CR before the tab would be part of the last source subword, which Marian then does not know."""
    for language in ("en", "de"):
        text = (tiny_words / f"train.{language}").read_bytes()
        (tiny_words / f"crlf.{language}").write_bytes(text.replace(b"\n", b"\r\n"))
    assert run("--input", "crlf.en", "crlf.de", "--epochs", "1").stdout == run("--epochs", "1").stdout


def test_it_ends_quietly_when_marian_does(run: Run) -> None:
    """A stream without ``--epochs`` is endless; a closed pipe is not a failure."""
    command = f"{sys.executable} {SCRIPT} --codes codes --input train.en train.de | head -n 250"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=120)
    assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 250)


def test_a_full_disk_is_one_line(run: Run) -> None:
    """If the stream is redirected to a file."""
    command = f"{sys.executable} {SCRIPT} --codes codes --input train.en train.de --epochs 1 > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, b"marian_stream.py: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--input", "tab", "train.de"], 1, b"tab: line 2: a tab, which separates source and target; replace it\n"),
        (["--input", "valid.en", "train.de"], 1, b"valid.en has 20 lines, train.de has 200; they must be parallel\n"),
        (
            ["--input", "empty", "empty"],
            1,
            b"empty and empty: no sentences, and Marian would wait for one; give text\n",
        ),
        (["--codes", "a", "b", "c"], 2, b"--codes: give one joint file, or one per side, not 3 files\n"),
        (["--epochs", "0"], 2, b"the number of epochs must be positive, not 0\n"),
    ],
)
def test_what_marian_would_misread_is_refused(
    run: Run, tiny_words: Path, options: list[str], status: int, message: bytes
) -> None:
    """In one line, before anything is written."""
    (tiny_words / "empty").touch()
    (tiny_words / "tab").write_text("one\ntwo\tthree\n")
    done = run(*options)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"marian_stream.py: " + message)
