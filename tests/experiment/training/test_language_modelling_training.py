"""Trainings of language models: counted in tokens and bytes, resumed exactly, segmented again in every epoch."""

import logging
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from fairseq_training import Step, fairseq_train
from language_models import POSITIONS, TINY_LM, binarise, documents_of, learn_codes

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import numpy as np

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import read_ids
from mt_scaffold.experiment.evaluation.bits_per_byte import evaluate
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.training import epoch_ids, epoch_sample
from mt_scaffold.experiment.training.epoch_ids import IdsSample
from mt_scaffold.experiment.training.epoch_sample import SharedSamples
from mt_scaffold.experiment.training.train import train

RESUMABLE = ["--task", "language_modeling_resumable"]
DROPOUT = ["--task", "language_modeling_bpe_dropout", "--bpe-dropout", "0.3"]
QUIET = ["--disable-validation"]


pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def text(documents: Path) -> Path:
    return documents


@pytest.fixture(scope="module")
def data(text: Path) -> Path:
    return binarise(text, "data", text / "codes")


@pytest.fixture(scope="module")
def stored(text: Path) -> Path:
    return binarise(text, "stored", text / "codes", keep_text=True)


def command(data: Path, save: Path, *options: str) -> list[str]:
    return [str(data), *TINY_LM, "--seed", "3", "--save-dir", str(save), *options]


def tokens_of(steps: list[Step]) -> int:
    """The tokens that were predicted: all but padding."""
    return sum(token != 1 for step in steps for block in step.target for token in block)


def text_of(steps: list[Step], codes: Path) -> int:
    """The bytes that the predicted tokens stand for."""
    vocabulary = Vocabulary(codes)
    return sum(len(vocabulary.decode(block)) for step in steps for block in step.target)


def iterator(folder: Path) -> Any:
    return load_checkpoint(folder / "checkpoint_last.pt")["extra_state"]["train_iterator"]


def test_the_task_is_fairseqs_own(data: Path, tmp_path: Path) -> None:
    """The same blocks, in the same order, with the same losses, until it is stopped."""
    own = fairseq_train(
        command(data, tmp_path, "--task", "language_modeling", "--max-update", "9", "--no-save", *QUIET)
    )
    assert fairseq_train(command(data, tmp_path, *RESUMABLE, "--max-update", "9", "--no-save", *QUIET)) == own
    assert len(own) == 9


@pytest.mark.parametrize("task", ["plain", "dropout"])
def test_a_training_stopped_within_an_epoch_goes_on_with_the_same_batches(
    data: Path, stored: Path, tmp_path: Path, task: str
) -> None:
    """And the same losses, past the end of the epoch; the text has other tokens there, with dropout."""
    folder, options = (data, RESUMABLE) if task == "plain" else (stored, DROPOUT)
    arguments = command(folder, tmp_path, *options, *QUIET)
    whole = fairseq_train([*arguments, "--max-epoch", "2", "--no-save"])
    stop = len(whole) // 2 + 3
    stopped = fairseq_train([*arguments, "--max-epoch", "2", "--max-update", str(stop)])
    assert iterator(tmp_path)["epoch"] == 2 and iterator(tmp_path)["iterations_in_epoch"] > 0
    # Another number of data-loading workers, and of threads that segment.
    resumed = fairseq_train([*arguments, "--max-epoch", "2", "--num-workers", "2"])
    assert len(stopped) == stop and stopped + resumed == whole


def epochs(steps: list[Step]) -> list[list[list[int]]]:
    """The targets of each epoch, in the order of the text."""
    found: list[dict[int, list[int]]] = [{}]
    for step in steps:
        if not found[-1].keys().isdisjoint(step.ids):
            found.append({})
        blocks = [[token for token in block if token != 1] for block in step.target]
        found[-1].update(zip(step.ids, blocks, strict=True))
    return [[each[number] for number in sorted(each)] for each in found]


def test_every_epoch_has_other_tokens_of_the_same_text(text: Path, stored: Path, tmp_path: Path) -> None:
    """Those of encode_batch by seed, epoch and number of the document; in blocks that leave nothing out."""
    steps = fairseq_train(command(stored, tmp_path, *DROPOUT, "--max-epoch", "2", "--no-save", *QUIET))
    first, second = ([token for block in epoch for token in block] for epoch in epochs(steps))
    vocabulary, documents = Vocabulary(text / "codes"), documents_of(text / "train")
    for number, epoch in ((1, first), (2, second)):
        assert epoch == vocabulary.encode(documents, dropout=0.3, seed=3, epoch=number)[0].tolist()
    assert first != second and vocabulary.decode(first) == vocabulary.decode(second) == b"".join(documents)
    plain = vocabulary.encode(documents)[0]
    assert len(first) > 1.1 * len(plain)


def test_without_dropout_the_batches_are_those_of_ids(data: Path, stored: Path, tmp_path: Path) -> None:
    """A system with dropout differs from one without in nothing else."""
    more = ["--max-update", "20", "--no-save", *QUIET]
    plain = fairseq_train(command(data, tmp_path, *RESUMABLE, *more))
    task = ["--task", "language_modeling_bpe_dropout", "--bpe-dropout", "0"]
    # fairseq makes the batches of ids once, those of text in every epoch.
    assert fairseq_train(command(stored, tmp_path, *task, *more)) == plain


@pytest.mark.parametrize("task", ["plain", "dropout"])
def test_a_training_ends_with_the_update_that_reaches_its_tokens_or_text(
    text: Path, data: Path, stored: Path, tmp_path: Path, task: str
) -> None:
    """Counted from what the model was trained on, across the end of an epoch."""
    folder, options = (data, RESUMABLE) if task == "plain" else (stored, DROPOUT)
    arguments = command(folder, tmp_path, *options, *QUIET, "--no-save")
    whole = fairseq_train([*arguments, "--max-epoch", "2"])
    one_epoch = sum(len(document) for document in documents_of(text / "train"))
    assert text_of(whole, text / "codes") == 2 * one_epoch
    for limit, seen in (("--stop-tokens", tokens_of), ("--stop-text", lambda steps: text_of(steps, text / "codes"))):
        end = len(whole) // 2 + 2
        reached = seen(whole[:end])
        assert fairseq_train([*arguments, limit, str(reached)]) == whole[:end]
    # One byte more than the update before has reached takes another update.
    before = str(text_of(whole[: end - 1], text / "codes") + 1)
    assert fairseq_train([*arguments, "--stop-text", before]) == whole[:end]


def test_a_report_says_what_was_seen_and_the_loss_per_byte(text: Path, tmp_path: Path) -> None:
    """With mt-scaffold train, which finds the task by the folder; checkpoints hold the vocabulary."""
    short = tmp_path / "short"
    short.mkdir()
    (short / "valid").write_bytes(b"Der Hund\n")
    for name in ("train", "codes"):
        shutil.copy(text / name, short)
    data = binarise(short, "data", short / "codes")
    report = train(data, tmp_path / "model", [*TINY_LM, "--stop-text", "2000"], seed=3)
    assert report.stop == "text" and report.text_bytes is not None and 2000 <= report.text_bytes < 3000
    assert report.subwords is not None and report.subwords < report.text_bytes
    checkpoint = tmp_path / "model" / "checkpoints" / "checkpoint_last.pt"
    state = load_checkpoint(checkpoint)
    assert state["task_state"] == {"vocabulary": Vocabulary(text / "codes").digest}
    assert state["cfg"]["task"]["_name"] == "language_modeling_resumable"
    # On a document that fits into one block, the loss in validation is that of evaluate.
    scores = evaluate(checkpoint, data, tmp_path / "scores.json", "valid")
    assert report.curves["valid_bits_per_byte"][-1][1] == pytest.approx(scores.bits_per_byte, abs=1e-5)
    assert evaluate(checkpoint, data, tmp_path / "scores.json", "train").tokens > 1000


def test_codes_with_implied_spaces_are_counted_in_bytes_too(text: Path, tmp_path: Path) -> None:
    """No token stands for the space between two words; together the blocks have every byte."""
    codes = learn_codes(text, "spaces-codes", pretokenise="spaces", byte_level=True)
    folder = binarise(text, "spaces", codes)
    steps = fairseq_train(command(folder, tmp_path, *RESUMABLE, *QUIET, "--max-epoch", "1"))
    assert iterator(tmp_path)["seen"] == {
        "subwords": len(read_ids(folder / "train")[0]),
        "text_bytes": sum(len(document) for document in documents_of(text / "train")),
    }
    assert tokens_of(steps) == len(read_ids(folder / "train")[0])


def sample_of(stored: Path) -> IdsSample:
    return IdsSample(str(stored), "train", 0.3, 3, 1, 10_000, 2)


def test_another_process_draws_the_same(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that all processes of a node map, of larger texts than these; both types of ids."""
    monkeypatch.setattr(epoch_sample, "_SHARED_MEMORY", tmp_path)
    sample = sample_of(stored)
    assert sample.is_small
    monkeypatch.setattr(epoch_ids, "SMALL_BYTES", 0)

    def nowhere(epoch: int) -> Any:
        raise AssertionError("drawn in this process")

    for symbols in (10_000, 100_000):
        sample = IdsSample(str(stored), "train", 0.3, 3, 1, symbols, 2)
        shared = SharedSamples(lambda epoch, sample=sample: sample, f"training {symbols}")  # type: ignore[misc]
        try:
            found, here = shared.load(1, nowhere), sample.here()
            assert found.ids.dtype == here.ids.dtype == (np.uint16 if symbols < 1 << 16 else np.uint32)
            assert found.ids.tolist() == here.ids.tolist() and found.offsets.tolist() == here.offsets.tolist()
            (file,) = [path for path in tmp_path.rglob(sample.digest) if path.is_file()]
            assert file.stat().st_size <= sample.size
        finally:
            shared.close()
    assert not list(tmp_path.iterdir())


def test_a_training_waits_for_its_ids_and_has_the_next_drawn(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By a process, from the first epoch on; the batches are those of ids drawn here."""
    arguments = command(stored, tmp_path, *DROPOUT, *QUIET, "--no-save", "--max-epoch", "2")
    here = fairseq_train(arguments)
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr(epoch_sample, "_SHARED_MEMORY", tmp_path / "shared")
    monkeypatch.setattr(epoch_ids, "SMALL_BYTES", 0)
    with caplog.at_level(logging.INFO):
        assert fairseq_train(arguments) == here
    assert [record.getMessage()[:15] for record in caplog.records if "for its ids" in record.getMessage()] == [
        "epoch 1: waited",
        "epoch 2: waited",
    ]


@pytest.mark.parametrize(
    ("change", "says", "kind"),
    [
        (["--bpe-dropout", "1.5"], "--bpe-dropout: ", UsageError),
        (["--valid-subset", "train"], "--valid-subset train: the training split is segmented with dropout", UsageError),
        (["--sample-break-mode", "eos"], "--sample-break-mode eos: fairseq's code for it needs NumPy 1", UsageError),
        (["--shorten-method", "truncate"], "--shorten-method truncate: not possible with dropout", UsageError),
    ],
)
def test_options_that_cannot_work_are_refused(
    stored: Path, tmp_path: Path, change: list[str], says: str, kind: type[MTScaffoldError]
) -> None:
    """Before the first update, with what to do."""
    with pytest.raises(kind, match=says):
        fairseq_train(command(stored, tmp_path, *DROPOUT, "--no-save", "--max-update", "1", *change))


def test_a_folder_without_text_is_refused(data: Path, stored: Path, tmp_path: Path) -> None:
    """A folder of ids cannot be segmented again, nor can one whose files do not belong together."""
    with pytest.raises(MTScaffoldError, match="holds no text of the training split; make it with mt-scaffold binarise"):
        fairseq_train(command(data, tmp_path, *DROPOUT, "--max-update", "1", "--no-save"))
    shutil.copytree(stored, tmp_path / "cut")
    with open(tmp_path / "cut" / "train.text", "ab") as stream:
        stream.truncate(100)
    with pytest.raises(MTScaffoldError, match=r"train\.text: not as binarise-documents wrote it"):
        sample_of(tmp_path / "cut").here()


def test_the_blocks_are_full(data: Path, tmp_path: Path) -> None:
    """Documents follow one another in a block, so that a model learns where one ends."""
    steps = fairseq_train(command(data, tmp_path, *RESUMABLE, *QUIET, "--max-epoch", "1", "--no-save"))
    lengths = [sum(token != 1 for token in block) for step in steps for block in step.target]
    assert sorted(lengths)[1:] == [POSITIONS] * (len(lengths) - 1)
    assert math.ceil(len(read_ids(data / "train")[0]) / POSITIONS) == len(lengths)
