"""From one epoch to the next: lengths drawn ahead, workers that end, batches in fairseq's order."""

import itertools
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import TINY_MODEL
from fairseq_training import fairseq_train, load_plugin
from fork_server import ForkServer

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.dictionary import UNKNOWN_ID, read_ids
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile, binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.training.epoch_lengths import DrawnAhead, draw_lengths
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.draw import Draw

LANGUAGES = ("en", "de")
Lengths = Callable[[int], Iterator[Any]]


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


def draw(data: Path, dropout: float = 0.3, dictionary: dict[str, int] | None = None) -> Lengths:
    """Return a function that yields the lengths of both sides of the training set in an epoch."""

    def sides(epoch: int) -> Iterator[Any]:
        for side, language in enumerate(LANGUAGES):
            path = data / f"train.en-de.{language}.words"
            ids = read_ids(data / f"dict.{language}.txt") if dictionary is None else dictionary
            encoder = BPE(data / "bpe.codes").encoder(ids, UNKNOWN_ID)
            yield from draw_lengths(WordsFile(path), encoder, Draw("dropout", dropout, 6 + side, epoch), UNKNOWN_ID)

    return sides


def here(data: Path, epoch: int, dropout: float = 0.3) -> Any:
    """The same lengths, computed with one call of the core per sentence."""
    encoder = BPE(data / "bpe.codes").encoder({}, 0)
    sides = []
    for side, language in enumerate(LANGUAGES):
        lines = (data / f"train.en-de.{language}.words").read_text(encoding="utf-8").splitlines()
        encoded = [encoder.encode([line], dropout, 6 + side, epoch, [number])[0] for number, line in enumerate(lines)]
        sides.append([len(ids) + 1 for ids in encoded])
    return sides


def test_the_lengths_are_those_of_the_sentences(data: Path) -> None:
    """Batches made from other lengths would be too large, or padded unnecessarily."""
    drawn = DrawnAhead(draw(data))
    for epoch in (1, 2, 7):
        found = drawn.load(epoch)
        assert found.dtype == np.int32 and found.tolist() == here(data, epoch)
    assert not found.flags.writeable


def test_the_next_epoch_is_drawn_while_this_one_trains() -> None:
    """Nothing is left to do at its start; an unexpected epoch is drawn as well."""
    called, may_draw, was_drawn = [], threading.Event(), threading.Event()

    def drawing(epoch: int) -> Iterator[Any]:
        called.append(epoch)
        may_draw.wait()
        yield np.array([epoch, epoch])
        was_drawn.set()

    drawn = DrawnAhead(drawing)
    drawn.draw_ahead(2)
    may_draw.set()
    assert was_drawn.wait(60) and drawn.load(2).tolist() == [[2], [2]] and called == [2]
    drawn.draw_ahead(3)
    assert drawn.load(7).tolist() == [[7], [7]] and called == [2, 3, 7]


def test_drawing_stops_once_it_is_not_needed() -> None:
    """The end of a training would wait for lengths that no epoch needs, a minute with millions of pairs."""
    begun = threading.Event()

    def drawing(epoch: int) -> Iterator[Any]:
        for _ in itertools.count():
            yield np.zeros(2)
            begun.set()

    drawn = DrawnAhead(drawing)
    drawn.draw_ahead(1)
    assert begun.wait(60)
    drawn.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lengths")]


def test_an_error_in_the_data_ends_the_training(data: Path) -> None:
    """It must not be lost in the thread that draws."""
    few = dict(itertools.islice(read_ids(data / "dict.en.txt").items(), 5))
    drawn = DrawnAhead(draw(data, dictionary=few))
    drawn.draw_ahead(1)
    with pytest.raises(MTScaffoldError, match=r"train\.en-de\.en\.words: line \d+: a subword that is not in the dict"):
        drawn.load(1)


# A whole training in one process, which prints JSON for each epoch.
TRAINING = """
import contextlib, json, os, sys, threading
from pathlib import Path
sys.path[:0] = {path!r}
import fairseq_training
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
        alive = 0
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                if f"PPid:\\t{{os.getpid()}}\\n" in status.read_text():
                    alive += bool(status.with_name("cmdline").read_bytes())
        memory = Path("/proc/self/smaps_rollup").read_text().partition("Anonymous:")[2].split()[0]
        print("EPOCH", json.dumps([alive, threading.active_count(), int(memory)]), flush=True)
    return result

Trainer.begin_epoch, Trainer.train_step = begin, step
fairseq_training.train_on_cpu(sys.argv[1:])
"""


def training(*arguments: str) -> "subprocess.Popen[str]":
    """Start a training in a separate process."""
    program = TRAINING.format(path=[str(Path(__file__).parents[2])])
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
    data: Path, tiny_data: Path, task: list[str], epochs: int
) -> None:
    """Workers of past epochs would fill the memory of a node within a day; so would threads that read ahead."""
    folder = data if task[0] == "translation_bpe_dropout" else tiny_data
    # There are more validation batches than are read ahead, of which only one is used.
    arguments = [str(folder), *TINY_MODEL, "--task", *task, "--num-workers", "4", "--max-epoch", str(epochs)]
    arguments += ["--no-save", "--max-tokens", "1500", "--batch-size-valid", "1", "--max-valid-steps", "1"]
    process = training(*arguments)
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[-2000:]
    counted = [json.loads(line.removeprefix("EPOCH")) for line in out.splitlines() if line.startswith("EPOCH")]
    assert len(counted) == epochs
    workers, threads, memory = zip(*counted, strict=True)
    # Four workers load the batches of the epoch, four those of the validation.
    assert set(workers) == {8}, workers
    # Threads that read ahead in the previous epoch and validation may be about to end; one thread draws lengths.
    assert max(threads) <= threads[1] + 3, threads
    # Recently freed memory varies from epoch to epoch, but the maximum of several epochs does not.
    fifth = len(memory) // 5
    assert max(memory[-fifth:]) < 1.01 * max(memory[1 : 1 + fifth]), memory


# A separate process, because free memory from other tests would be used first. It prints MiB.
FREEING = """
from pathlib import Path
import numpy as np
from mt_scaffold.experiment.fairseq_plugin.workers import returning_memory

def anonymous():
    return int(Path("/proc/self/smaps_rollup").read_text().partition("Anonymous:")[2].split()[0]) >> 10

# After this, glibc allocates blocks of 4 MiB on the heap.
np.ones(3 << 20)
with returning_memory():
    before = anonymous()
    arrays = [(np.ones(1 << 19), bytes(1 << 16)) for _ in range(40)]
    taken = anonymous() - before
    kept = [small for _, small in arrays]
    del arrays
    print([taken, anonymous() - before])
"""


def test_memory_freed_after_making_batches_is_returned_to_the_system() -> None:
    """Arrays as long as the data set, freed between others that stay, would occupy the memory of every process."""
    done = subprocess.run([sys.executable, "-c", FREEING], capture_output=True, text=True, check=True)
    taken, left = json.loads(done.stdout)
    assert taken > 150 and left < 40


ENDING = """
import atexit, sys, threading
def alive():
    print("ALIVE", [thread.name for thread in threading.enumerate()])
atexit.register(alive)
sys.path.insert(0, {path!r})
from fairseq_training import fairseq_train
fairseq_train(sys.argv[1:])
"""


@pytest.mark.parametrize("task", ["translation_resumable", "translation_bpe_dropout"])
def test_no_thread_is_at_work_when_the_process_ends(
    fairseq_programs: ForkServer, tiny_data: Path, data: Path, tmp_path: Path, task: str
) -> None:
    """Killed within PyTorch or the core at Python's exit, it would abort a training that is already complete."""
    folder = data if task == "translation_bpe_dropout" else tiny_data
    arguments = [str(folder), *TINY_MODEL, "--task", task, "--max-update", "2", "--no-save"]
    arguments += ["--max-tokens", "100", "--disable-validation"]
    program, log = tmp_path / "ending.py", tmp_path / "log"
    program.write_text(ENDING.format(path=str(Path(__file__).parents[2])))
    started = fairseq_programs.start([str(program), *arguments], tmp_path, log)
    assert fairseq_programs.wait(started, timeout=120) == 0, log.read_text()
    (alive,) = re.findall("ALIVE (.*)", log.read_text())
    assert "MainThread" in alive and "BackgroundConsumer" not in alive and "lengths" not in alive


def test_a_training_logs_how_long_it_waited(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In every epoch, this shows whether drawing keeps up with training."""
    arguments = [str(data), *TINY_MODEL, "--task", "translation_bpe_dropout", "--bpe-dropout", "0.2", "--no-save"]
    arguments += ["--max-epoch", "3", "--disable-validation"]
    with caplog.at_level(logging.INFO):
        fairseq_train(arguments)
    waited = [record.getMessage() for record in caplog.records if "for its lengths" in record.getMessage()]
    assert [message.split(": waited ")[0] for message in waited] == ["epoch 1", "epoch 2", "epoch 3"]


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
    """Every process computes the order of all batches, and trains on its own part."""
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


def test_each_epoch_has_its_own_update_freq() -> None:
    """The last value applies to all later epochs; limits and resuming with other processes keep to whole updates."""
    from fairseq.data import EpochBatchIterator
    from torch.utils.data import Dataset

    from mt_scaffold.experiment.fairseq_plugin.counting import CountedBatches, at_same_batch

    class Numbers(Dataset):  # type: ignore[misc]
        pass

    one = np.ones(8, dtype=np.int32)
    plain = EpochBatchIterator(Numbers(), None, [[number] for number in range(8)])
    counting = CountedBatches.count(plain, (one, one), (1, float("inf")), update_freq=(2, 3))
    assert [len(counting.ordered_batches(epoch, False, False)) for epoch in (1, 2, 5)] == [2, 3, 3]
    stopped = {"processes": 2, "iterations_in_epoch": 3}
    for epoch in (2, 5):
        assert at_same_batch(stopped | {"epoch": epoch}, 1, (4, 3))["iterations_in_epoch"] == 6
    with pytest.raises(
        MTScaffoldError, match="after batch 6 of epoch 1, where no update of 1 processes x update-freq 4"
    ):
        at_same_batch(stopped | {"epoch": 1}, 1, (4, 3))
