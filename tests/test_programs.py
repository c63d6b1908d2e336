"""The command line as users meet it: of the package, only the entry point is imported."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fork_server import environment_without_forks
from tiny_experiments import TRANSFORMER

from mt_scaffold.cli import main

TEXT = "low lower lowest newer wider\n" * 20
SEGMENTED, MARKED = "lo@@ w er\n", "\ufefflow er\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a text."""
    monkeypatch.chdir(tmp_path)
    write("text", TEXT)
    return tmp_path


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def run(*words: str) -> int:
    """Run a command in this process; returns its exit status."""
    try:
        return main([*words])
    except SystemExit as end:
        return int(end.code or 0)


# -- segmentation


def test_apply_bpe_and_learn_bpe_warn_of_input_that_is_not_plain_words(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Segmented text, a byte order mark and an empty separator: output as from subword-nmt, with a warning."""
    write("codes", "#version: 0.2\nl o\nlo w</w>\n")
    write("segmented", SEGMENTED)
    write("marked", MARKED)
    for name, says in (("segmented", "looks segmented already"), ("marked", "byte order mark")):
        for command in ("apply-bpe --codes codes", "learn-bpe --symbols 1 --min-frequency 1"):
            assert run(*command.split(), "--input", name, "--output", "out") == 0
            assert capfd.readouterr().err.count(says) == 1, command
    assert run("apply-bpe", "--codes", "codes", "--input", "text", "--output", "out", "--separator", "") == 0
    assert Path("out").read_text().startswith("low lo w e r")
    assert capfd.readouterr().err.count("the separator is empty") == 1


def test_ids_are_not_decoded_with_other_codes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Other codes would decode them to fluent garbage."""
    for name, symbols in (("codes", "5"), ("other", "12")):
        learn = ["learn-bpe", "--pretokenise", "gpt2", "--symbols", symbols, "--input", "text", "--output", name]
        assert run(*learn) == 0
    assert run("encode", "--codes", "codes", "--input", "text", "--output", "ids.bin") == 0
    assert run("decode", "--codes", "other", "--input", "ids.bin", "--output", "garbage") == 2
    assert "encoded with codes (sha256 " in capfd.readouterr().err and not Path("garbage").exists()
    assert run("decode", "--codes", "codes", "--input", "ids.bin", "--output", "back") == 0
    assert Path("back").read_text() == TEXT


def test_join_undoes_apply_bpe(folder: Path) -> None:
    """So that no sed expression is needed."""
    assert run("learn-bpe", "--symbols", "5", "--input", "text", "--output", "codes") == 0
    assert run("apply-bpe", "--codes", "codes", "--input", "text", "--output", "subwords") == 0
    assert run("join", "--input", "subwords", "--output", "words") == 0
    assert "@@ " in Path("subwords").read_text() and Path("words").read_text() == TEXT


# -- experiments

WORDS = "ein hund läuft im haus und die katze schläft garten mann frau kind geht sieht liest".split()
CONFIGURATION = (
    """
name: tiny
languages: {source: en, target: de}
data:
  files:
    train: [{source: {path: corpus/train.en}, target: {path: corpus/train.de}}]
    valid: [{source: {path: corpus/valid.en}, target: {path: corpus/valid.de}}]
    tests:
      test: [{source: {path: corpus/test.en}, target: {path: corpus/test.de}}]
codes: {symbols: 40}
systems:
  bpe: {algorithm: bpe}
  scaffold: {algorithm: scaffold}
baseline: bpe
seeds: [1]
train:
  options:
"""
    + TRANSFORMER
    + "    max-epoch: 500\n"
)


def write_pairs() -> None:
    """Write corpus/{train,valid,test}.{en,de}: the same few words in different orders."""
    for name, lines in (("train", 400), ("valid", 20), ("test", 20)):
        for language in ("en", "de"):
            sentences = [
                [WORDS[(line * step + len(language) * place + lines) % len(WORDS)] for place in range(4 + line % 4)]
                for line, step in zip(range(lines), range(3, 3 + lines), strict=True)
            ]
            write(f"corpus/{name}.{language}", "".join(" ".join(words) + "\n" for words in sentences))


@pytest.fixture
def experiment(folder: Path) -> Path:
    """The same folder, with parallel text and a configuration."""
    pytest.importorskip("snakemake", reason="needs the extra 'workflow'")
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    write_pairs()
    write("tiny.yaml", CONFIGURATION)
    return folder


def program(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a program; ``stdout`` of the result is all that it prints."""
    command = [sys.executable, "-m", "mt_scaffold", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def test_init_writes_a_configuration_for_ones_own_files(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It has languages, sizes and whether text is tokenised already; such text is not tokenised again."""
    pytest.importorskip("yaml", reason="comes with the extra 'workflow'")
    write_pairs()
    write("corpus/train.en", "The boy isn &apos;t here .\n" * 400)
    assert run("init", "corpus/train.en", "corpus/train.de") == 0
    written = Path("en_de.yaml").read_text(encoding="utf-8")
    assert "train: 400 pairs, en tokenised and de raw: corpus/train.en, corpus/train.de" in written
    assert "\nlanguages: {source: en, target: de}\n" in written and "\ntokenise: {source: none}\n" in written
    assert run("init", "--documents", "corpus/train.en") == 0
    written = Path("documents.yaml").read_text(encoding="utf-8")
    assert "train: 1 file, 0.0 MB, 400 documents (lines), tokenised\n" in written
    assert "looks tokenised already" in capfd.readouterr().err
    assert run("init", "corpus/train.en", "corpus/train.de") == 2
    assert "exists already" in capfd.readouterr().err


def test_text_that_is_tokenised_already_is_reported(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tokenised again, &apos; becomes &amp; apos ; and pairs are dropped for their lengths."""
    pytest.importorskip("sacremoses", reason="comes with the extra 'workflow'")
    write("words", "He isn &apos;t here , Tom .\n" * 10)
    assert run("tokenise", "--language", "en", "--input", "words", "--output", "again") == 0
    assert "looks tokenised already (such as '&apos;t')" in capfd.readouterr().err


def test_tokenise_none_is_a_setting(folder: Path) -> None:
    """For text that is tokenised already, on both sides or one."""
    pytest.importorskip("yaml", reason="comes with the extra 'workflow'")
    write_pairs()
    for value in ("none", "{source: none}"):
        write("tiny.yaml", f"{CONFIGURATION}tokenise: {value}\n")
        assert run("get-data", "--config", "tiny.yaml", "--output-dir", "raw") == 0


def test_get_data_removes_a_byte_order_mark(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Otherwise it would be part of the first word; the removal is reported."""
    pytest.importorskip("yaml", reason="comes with the extra 'workflow'")
    write_pairs()
    write("corpus/test.en", MARKED * 20)
    write("tiny.yaml", CONFIGURATION)
    assert run("get-data", "--config", "tiny.yaml", "--output-dir", "raw") == 0
    assert Path("raw/test.en").read_text(encoding="utf-8").startswith("low er\n\ufeff")
    assert "test.en, source: removed a byte order mark" in capfd.readouterr().err


class Interrupted(NamedTuple):
    """A run ended by a signal in its first training. logs: of all steps. left: processes and unfinished files."""

    status: int
    lines: list[str]
    logs: str
    checkpoint: Path
    left: list[str]


@pytest.fixture(scope="module", params=[signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def sent(request: pytest.FixtureRequest) -> signal.Signals:
    """The signal: Ctrl-C goes to every process, as from a terminal, SIGTERM to the one that was started."""
    number: signal.Signals = request.param
    return number


@pytest.fixture(scope="module")
def interrupted(sent: signal.Signals, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interrupted]:
    """``mt-scaffold run`` in a process group, started and interrupted as by a terminal or a scheduler."""
    pytest.importorskip("snakemake", reason="needs the extra 'workflow'")
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    folder = tmp_path_factory.mktemp("user")
    training = folder / "experiments" / "tiny" / "bpe" / "seed-1"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_pairs()
        write("tiny.yaml", CONFIGURATION)
        with started() as process:
            log = training / "train.log"
            deadline = time.monotonic() + 300
            while not log.exists() or "begin training epoch 1" not in log.read_text(encoding="utf-8"):
                if process.poll() is not None or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            else:
                (os.killpg if sent == signal.SIGINT else os.kill)(process.pid, sent)
            assert process.stdout is not None
            shown = process.stdout.read()
        left = [*of_session(process.pid), *(str(path) for path in Path("experiments").rglob(".*.part"))]
        logs = "".join(path.read_text(encoding="utf-8") for path in Path("experiments").rglob("*.log"))
        last = training / "checkpoints" / "checkpoint_last.pt"
        yield Interrupted(process.returncode, shown.splitlines(), logs, last, left)


def of_session(session: int) -> list[str]:
    """Return the processes of a session that still run."""
    done = subprocess.run(["ps", "-s", str(session), "-o", "pid=,args="], stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


def started() -> subprocess.Popen[str]:
    """Start the experiment of the working folder."""
    command = [sys.executable, "-m", "mt_scaffold", "run", "tiny.yaml", "--cores", "2", "--only", "bpe"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    pipes["env"] = environment_without_forks()
    return subprocess.Popen(command, **pipes, start_new_session=True)


@pytest.mark.long
def test_a_run_shows_one_line_per_step(interrupted: Interrupted) -> None:
    """They follow the check's output, without Snakemake's. The remaining time is known once a model trains."""
    assert interrupted.lines[0] == "tiny: checked, and ready to run"
    first = next(index for index, line in enumerate(interrupted.lines) if line.startswith("["))
    steps = interrupted.lines[first : interrupted.lines.index("")]
    pattern = r"\[(\d+)/\d+\] [a-z].*: \d+ (?:min \d+ )?s(?:; .* left)?"
    assert [int(re.fullmatch(pattern, line)[1]) for line in steps] == [*range(1, len(steps) + 1)]  # type: ignore[index]
    assert len(steps) > 5


@pytest.mark.long
def test_a_signal_leaves_every_training_saved(interrupted: Interrupted, sent: signal.Signals) -> None:
    """Whether all processes get it at once or only the first: no traceback, no failed step, no process left."""
    shown = "\n".join(interrupted.lines)
    assert interrupted.status == 128 + sent, shown
    assert not interrupted.left
    *_, stopping, last = interrupted.lines
    assert stopping == "mt-scaffold: stopping; a training saves after its update. Ctrl-C again ends at once"
    how_far = r"(?:interrupted|stopped on request) after update (\d+)"
    found = re.fullmatch(rf"mt-scaffold: .*bpe/seed-1: {how_far}; the same command resumes", last)
    assert found and not re.search("Traceback|Error|failed", shown + interrupted.logs), shown + interrupted.logs
    torch = pytest.importorskip("torch")
    state = torch.load(interrupted.checkpoint, weights_only=False)
    assert state["optimizer_history"][-1]["num_updates"] == int(found[1])


def test_a_dry_run_checks_and_lists_the_steps(experiment: Path) -> None:
    """Even outside a clone; it leaves nothing behind."""
    done = program("run", "tiny.yaml", "--dry-run", "--only", "bpe", "--output", "elsewhere")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("tiny: checked, and ready to run")
    assert "\ntrain bpe, seed 1\n" in done.stdout and "train scaffold" not in done.stdout
    assert not Path("elsewhere").exists()
    write("tiny.yaml", CONFIGURATION.replace("max-epoch:", "max-epok:"))
    done = program("run", "tiny.yaml", "--dry-run", "--cores", "2")
    assert done.returncode == 2 and done.stdout.count("\n") == 1 and "did you mean --max-epoch?" in done.stdout
