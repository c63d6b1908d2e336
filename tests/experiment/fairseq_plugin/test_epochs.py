"""From one epoch to the next: lengths drawn ahead and shared, workers that end, batches in fairseq's order."""

import contextlib
import itertools
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import TINY_MODEL
from fairseq_training import fairseq_train, load_plugin

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation, stored_segmentation
from mt_scaffold.experiment.runtime.results import to_json
from mt_scaffold.experiment.training import epoch_lengths, epoch_sample
from mt_scaffold.experiment.training.epoch_lengths import LengthsSample
from mt_scaffold.experiment.training.epoch_sample import SharedSamples
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.draw import Draw

LANGUAGES = ("en", "de")


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    load_plugin()


@pytest.fixture(scope="module")
def data(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of words: 200 training pairs."""
    folder = tmp_path_factory.mktemp("data")
    codes = joint_segmentation(tiny_words / "codes")
    binarise_words(folder, *LANGUAGES, codes, tiny_words / "train", tiny_words / "valid")
    return folder


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in place of shared memory; a process draws, however few pairs there are."""
    folder = tmp_path / "shared"
    folder.mkdir()
    monkeypatch.setattr(epoch_sample, "_SHARED_MEMORY", folder)
    monkeypatch.setattr(epoch_lengths, "SMALL_PAIRS", 0)
    return folder


def sample_of(data: Path, dropout: float = 0.3, uniform: float = 0.0) -> Callable[[int], LengthsSample]:
    words = [str(data / f"train.en-de.{language}.words") for language in LANGUAGES]
    dictionaries = [str(data / f"dict.{language}.txt") for language in LANGUAGES]
    segmentation = stored_segmentation(data)

    def sample(epoch: int) -> LengthsSample:
        pairs = (words[0], words[1]), (dictionaries[0], dictionaries[1])
        kind, amount = ("uniform_sampling", uniform) if uniform else ("dropout", dropout)
        return LengthsSample(segmentation, *pairs, (Draw(kind, amount, 6, epoch), Draw(kind, amount, 7, epoch)))

    return sample


def here(data: Path, epoch: int, dropout: float = 0.3, uniform: float = 0.0) -> Any:
    """The lengths as one call of the core per sentence gives them."""
    encoder = BPE(data / "bpe.codes").encoder({}, 0)
    sides = []
    for side, language in enumerate(LANGUAGES):
        lines = (data / f"train.en-de.{language}.words").read_text(encoding="utf-8").splitlines()
        encoded = [
            encoder.encode([line], dropout, 6 + side, epoch, [number], uniform_sampling=uniform)[0]
            for number, line in enumerate(lines)
        ]
        sides.append([len(ids) + 1 for ids in encoded])
    return sides


def nowhere(epoch: int) -> Any:
    raise AssertionError("drawn in this process")


@contextlib.contextmanager
def closing(shared: SharedSamples) -> Iterator[SharedSamples]:
    """Do at the end what the end of the process does."""
    try:
        yield shared
    finally:
        shared.close()


def test_a_process_draws_the_lengths_that_the_sentences_have(data: Path) -> None:
    """Batches made from other lengths would be too large, or be padded for nothing."""
    with closing(SharedSamples(sample_of(data), "training")) as drawn:
        for epoch in (1, 2, 7):
            found = drawn.load(epoch, nowhere)
            assert found.dtype == np.int32 and found.tolist() == here(data, epoch)
        assert not found.flags.writeable
    with closing(SharedSamples(sample_of(data, 0.0, 0.3), "sampling")) as drawn:
        lengths_sampled = drawn.load(1, nowhere).tolist()
        assert lengths_sampled == here(data, 1, 0.0, 0.3) != here(data, 1, 0.0)


def test_the_next_epoch_is_drawn_while_this_one_trains(
    data: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to do at its start, and only the file of the present epoch remains."""
    with closing(SharedSamples(sample_of(data), "training")) as drawn:
        drawn.load(1, nowhere)
        drawn.draw_ahead(2)
        ((_, drawer),) = drawn._drawers
        assert drawer.wait(timeout=60) == 0
        monkeypatch.setattr(subprocess, "Popen", nowhere)
        assert drawn.load(2, nowhere).tolist() == here(data, 2)
        assert [path.name for path in shared.rglob("*") if path.is_file() and path.name != "in-use"] == [
            sample_of(data)(2).digest
        ]


def test_the_processes_of_a_node_draw_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight of them would load every core of a node with the same work."""
    started, popen = [], subprocess.Popen

    def start(*arguments: Any, **options: Any) -> Any:
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    found: dict[int, list[Any]] = {}

    def load(rank: int) -> None:
        with closing(SharedSamples(sample_of(data), "training")) as drawn:
            found[rank] = []
            for epoch in (1, 2):
                found[rank].append(drawn.load(epoch, nowhere).tolist())
                together.wait()

    together = threading.Barrier(4)
    threads = [threading.Thread(target=load, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 2
    assert all(each == [here(data, 1), here(data, 2)] for each in found.values()) and len(found) == 4


def test_where_the_process_that_draws_is_killed_another_draws(data: Path) -> None:
    """The lock is free with its death, and its half-written file does no harm."""
    with (
        closing(SharedSamples(sample_of(data), "training")) as one,
        closing(SharedSamples(sample_of(data), "training")) as two,
    ):
        one.draw_ahead(1)
        ((_, drawer),) = one._drawers
        drawer.kill()
        drawer.wait()
        assert two.load(1, nowhere).tolist() == here(data, 1)
        assert one.load(1, nowhere).tolist() == here(data, 1)


def test_what_is_complete_is_not_drawn_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be completed just after it was looked for; drawing it once more would load a core for minutes."""
    with closing(SharedSamples(sample_of(data), "training")) as drawn:
        assert drawn._folder is not None
        sample, path = sample_of(data)(1), drawn._folder / sample_of(data)(1).digest
        path.write_bytes(b"complete")
        monkeypatch.setattr(subprocess, "Popen", nowhere)
        assert not drawn._start(sample, path)
        assert sorted(each.name for each in drawn._folder.iterdir()) == sorted([path.name, "in-use"])


def test_where_the_folder_is_removed_the_processes_share_another(data: Path, shared: Path) -> None:
    """systemd removes it when its user logs out; the end of one process must not take it from the other."""
    (folder := shared / f"mt-scaffold-{os.getuid()}").mkdir(mode=0o700)
    with closing(SharedSamples(sample_of(data), "training")) as one:
        with closing(SharedSamples(sample_of(data), "training")) as two:
            assert one.load(1, nowhere).tolist() == two.load(1, nowhere).tolist() == here(data, 1)
            shutil.rmtree(folder)
            one.draw_ahead(2)
            assert two.load(2, nowhere).tolist() == here(data, 2)
            shutil.rmtree(folder)
            assert one.load(2, nowhere).tolist() == two.load(2, nowhere).tolist() == here(data, 2)
        assert one._folder is not None and (one._folder / sample_of(data)(2).digest).exists()
        # What removes old files spares it.
        os.utime(one._folder / "in-use", (0, 0))
        one.draw_ahead(3)
        assert (one._folder / "in-use").stat().st_mtime > 0
    assert list(shared.iterdir()) == []


def test_a_process_completes_no_file_but_its_own(data: Path, tmp_path: Path) -> None:
    """Where its file was removed, another may be drawing into one of the same name, which is not complete."""
    part, path = tmp_path / "lengths.part", tmp_path / "lengths"
    part.write_bytes(b"half")
    program = epoch_sample._program(LengthsSample)
    with open(tmp_path / "removed", "wb") as own:
        command = [sys.executable, "-c", program, to_json(sample_of(data)(1)), str(part), str(path)]
        subprocess.run(command, stdout=own, check=True, timeout=60)
        assert own.seek(0, os.SEEK_END) > 0
    assert part.read_bytes() == b"half" and not path.exists()


@pytest.mark.parametrize("broken", ["program", "folder", "space"])
def test_where_nothing_can_be_shared_each_process_draws_and_says_so_once(
    data: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    """A full or missing shared memory must not end a training."""
    if broken == "program":
        monkeypatch.setattr(sys, "executable", "/bin/false")
    elif broken == "folder":
        (shared / f"mt-scaffold-{os.getuid()}").mkdir(mode=0o777)
        (shared / f"mt-scaffold-{os.getuid()}").chmod(0o777)
    else:
        monkeypatch.setattr(epoch_lengths, "_BYTES_OF_PAIR", 1 << 60)
        monkeypatch.setattr(tempfile, "gettempdir", lambda: "/proc")
    with caplog.at_level(logging.WARNING), closing(SharedSamples(sample_of(data), "training")) as drawn:
        for epoch in (1, 2, 3):
            assert drawn.load(epoch, lambda epoch: f"drawn here: {epoch}") == f"drawn here: {epoch}"
            drawn.draw_ahead(epoch + 1)
    assert len([record for record in caplog.records if "each process" in record.getMessage()]) == 1


def test_an_error_in_the_data_ends_the_training(data: Path, tmp_path: Path) -> None:
    """It would be found here as well, after as long a wait."""
    small = tmp_path / "dict.txt"
    small.write_text("".join((data / "dict.en.txt").read_text(encoding="utf-8").splitlines(keepends=True)[:5]))
    sample = sample_of(data)(1)
    small_ids = (str(small), str(small))
    sample = LengthsSample(sample.segmentation, sample.words, small_ids, sample.draws)
    with (
        closing(SharedSamples(lambda epoch: sample, "training")) as drawn,
        pytest.raises(MTScaffoldError, match=r"train\.en-de\.en\.words: line \d+: a subword that is not in the dict"),
    ):
        drawn.load(1, nowhere)


def test_what_draws_loads_neither_pytorch_nor_fairseq() -> None:
    """Their import takes longer than drawing the lengths of a hundred thousand pairs, and a quarter of a gigabyte."""
    program = (
        "import mt_scaffold.experiment.training.epoch_lengths, sys; print({'torch', 'fairseq'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


# One process of a training as it is run; on its output, JSON per epoch.
TRAINING = """
import contextlib, json, os, sys, threading
from pathlib import Path
sys.path[:0] = {path!r}
import fairseq_training
from mt_scaffold.experiment.training import epoch_lengths, epoch_sample
epoch_sample._SHARED_MEMORY, epoch_lengths.SMALL_PAIRS = Path({shared!r}), 0
fairseq_training.load_plugin()
from fairseq.trainer import Trainer
begin_epoch, train_step, epochs = Trainer.begin_epoch, Trainer.train_step, set()

def begin(self, epoch):
    self.epoch_begun = epoch
    return begin_epoch(self, epoch)

def step(self, *rest, **named):
    result = train_step(self, *rest, **named)
    if self.epoch_begun not in epochs:
        epochs.add(self.epoch_begun)
        programs = []
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                if f"PPid:\\t{{os.getpid()}}\\n" in status.read_text():
                    programs.append(status.with_name("cmdline").read_bytes())
        drawing = sum(b"\\0-P\\0" in program for program in programs)
        alive = sum(bool(program) for program in programs)
        memory = Path("/proc/self/smaps_rollup").read_text().partition("Anonymous:")[2].split()[0]
        print("EPOCH", json.dumps([alive - drawing, drawing, threading.active_count(), int(memory)]), flush=True)
    return result

Trainer.begin_epoch, Trainer.train_step = begin, step
fairseq_training.train_on_cpu(sys.argv[1:])
"""


def training(shared: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start a training in a separate process."""
    program = TRAINING.format(path=[str(Path(__file__).parents[2])], shared=str(shared))
    command = [sys.executable, "-c", program, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "epochs"),
    [
        (["translation_bpe_dropout"], 50),
        (["translation_resumable", "--update-epoch-batch-itr", "True"], 12),
    ],
)
def test_processes_and_memory_are_the_same_after_fifty_epochs(
    data: Path, tiny_data: Path, shared: Path, task: list[str], epochs: int
) -> None:
    """Workers of past epochs would fill the memory of a node within a day; so would threads that read ahead."""
    folder = data if task[0] == "translation_bpe_dropout" else tiny_data
    # More batches to validate on than are read ahead, of which one is used.
    arguments = [str(folder), *TINY_MODEL, "--task", *task, "--num-workers", "4", "--max-epoch", str(epochs)]
    arguments += ["--no-save", "--max-tokens", "1500", "--batch-size-valid", "1", "--max-valid-steps", "1"]
    process = training(shared, *arguments)
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[-2000:]
    counted = [json.loads(line.removeprefix("EPOCH")) for line in out.splitlines() if line.startswith("EPOCH")]
    assert len(counted) == epochs
    workers, drawing, threads, memory = zip(*counted, strict=True)
    # Four load the batches of the epoch, four those of the validation.
    assert set(workers) == {8}, workers
    assert max(drawing) <= 1
    # Those that read ahead in the epoch and in the validation before may be about to end.
    assert max(threads) <= threads[1] + 2, threads
    # What has just been freed varies from epoch to epoch, the highest of several does not.
    fifth = len(memory) // 5
    assert max(memory[-fifth:]) < 1.01 * max(memory[1 : 1 + fifth]), memory
    assert list(shared.iterdir()) == []


# A separate process, as one that has run other tests has free memory, which would be taken first. Prints MiB.
FREEING = """
from pathlib import Path
import numpy as np
from mt_scaffold.experiment.fairseq_plugin.workers import returning_memory

def anonymous():
    return int(Path("/proc/self/smaps_rollup").read_text().partition("Anonymous:")[2].split()[0]) >> 10

# From then on glibc takes blocks of 4 MiB from the heap.
np.ones(3 << 20)
with returning_memory():
    before = anonymous()
    arrays = [(np.ones(1 << 19), bytes(1 << 16)) for _ in range(40)]
    taken = anonymous() - before
    kept = [small for _, small in arrays]
    del arrays
    print([taken, anonymous() - before])
"""


def test_what_making_batches_frees_goes_back_to_the_system() -> None:
    """Arrays as long as the data set, freed between others that stay, would stay in the memory of every process."""
    done = subprocess.run([sys.executable, "-c", FREEING], capture_output=True, text=True, check=True)
    taken, left = json.loads(done.stdout)
    assert taken > 150 and left < 40


ENDING = """
import atexit, sys, threading
def alive():
    print("ALIVE", [type(thread).__name__ for thread in threading.enumerate()])
atexit.register(alive)
sys.path[:0] = {path!r}
from fairseq_training import fairseq_train
fairseq_train(sys.argv[1:])
"""


def test_no_thread_reads_ahead_when_the_process_ends(tiny_data: Path) -> None:
    """Torn out of PyTorch's code by the end of Python, it aborts a training that is complete, once in many times."""
    arguments = [str(tiny_data), *TINY_MODEL, "--task", "translation_resumable", "--max-update", "2", "--no-save"]
    arguments += ["--max-tokens", "100", "--disable-validation"]
    command = [sys.executable, "-c", ENDING.format(path=[str(Path(__file__).parents[2])]), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "ALIVE" in ended.stdout and "BackgroundConsumer" not in ended.stdout, ended.stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_training_leaves_nothing_that_the_next_does_not_remove(
    data: Path, shared: Path, number: signal.Signals
) -> None:
    """Files of lengths in shared memory take memory until the machine is restarted."""
    arguments = [str(data), *TINY_MODEL, "--task", "translation_bpe_dropout", "--no-save", "--disable-validation"]
    process = training(shared, *arguments, "--max-epoch", "1000", "--save-dir", "one")
    assert process.stdout is not None
    assert next(process.stdout).startswith("EPOCH")
    process.send_signal(number)
    process.communicate()
    (left,) = shared.iterdir()
    (killed,) = left.iterdir()
    with closing(SharedSamples(sample_of(data), "another")) as drawn:
        drawn.load(1, nowhere)
        assert killed not in left.iterdir()
    assert list(shared.iterdir()) == []


def test_a_training_sees_the_same_batches_whoever_draws(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And it logs for every epoch how long it has waited."""
    arguments = [str(data), *TINY_MODEL, "--task", "translation_bpe_dropout", "--bpe-dropout", "0.2", "--no-save"]
    arguments += ["--max-epoch", "3", "--disable-validation"]
    with caplog.at_level(logging.INFO):
        shared = fairseq_train(arguments)
    waited = [record.getMessage() for record in caplog.records if "for its lengths" in record.getMessage()]
    assert [message.split(": waited ")[0] for message in waited] == ["epoch 1", "epoch 2", "epoch 3"]
    monkeypatch.setattr(epoch_lengths, "SMALL_PAIRS", 1 << 30)
    assert fairseq_train(arguments) == shared


@pytest.mark.parametrize(
    ("shards", "grouped", "shuffle", "prefetches", "fixed"),
    [
        *itertools.product((1, 3), (False, True), (False, True), (False,), (False, True)),
        *((3, False, True, True, fixed) for fixed in (False, True)),
    ],
)
def test_the_order_of_batches_is_that_of_fairseq(
    shards: int, grouped: bool, shuffle: bool, prefetches: bool, fixed: bool
) -> None:
    """Every process computes that of all, and trains on its own part."""
    from fairseq.data import EpochBatchIterator
    from torch.utils.data import Dataset

    from mt_scaffold.experiment.fairseq_plugin.counting import CountedBatches

    class Numbers(Dataset):  # type: ignore[misc]
        supports_prefetch = prefetches
        prefetched: ClassVar[list[int]] = []

        def prefetch(self, numbers: list[int]) -> None:
            self.prefetched[:] = numbers

    sentences = np.random.default_rng(1).permutation(100)
    batches = np.split(sentences, np.arange(7, 100, 7))
    sizes = np.arange(100, dtype=np.int32)
    for shard in range(shards):
        options = {"seed": 5, "num_shards": shards, "shard_id": shard, "grouped_shuffling": grouped}
        plain = EpochBatchIterator(Numbers(), None, batches, **options)
        counting = CountedBatches.count(
            EpochBatchIterator(Numbers(), None, batches, **options), (sizes, 2 * sizes), (float("inf"), float("inf"))
        )
        assert counting.in_an_epoch.tolist() == [4950, 9900]
        for epoch in (1, 2):
            expected = plain.ordered_batches(epoch, fixed, shuffle)
            wanted = list(Numbers.prefetched)
            found = counting.ordered_batches(epoch, fixed, shuffle)
            assert sorted(Numbers.prefetched) == sorted(wanted)
            assert list(map(list, found)) == list(map(list, expected))
