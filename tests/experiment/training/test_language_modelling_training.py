"""Trainings of language models: counted in tokens and bytes, and resumed exactly."""

import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq_training import Step, fairseq_train
from language_models import POSITIONS, TINY_LM, binarise, documents_of

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import numpy as np

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import read_ids
from mt_scaffold.experiment.evaluation.bits_per_byte import evaluate
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.training.train import train

RESUMABLE = ["--task", "language_modeling_resumable"]
QUIET = ["--disable-validation"]


pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def text(documents: Path) -> Path:
    return documents


@pytest.fixture(scope="module")
def data(text: Path) -> Path:
    return binarise(text, "data", text / "codes")


def command(data: Path, save: Path, *options: str) -> list[str]:
    return [str(data), *TINY_LM, "--seed", "3", "--save-dir", str(save), *options]


def tokens_of(steps: list[Step]) -> int:
    """The tokens that were predicted: all but padding."""
    return sum(token != 1 for step in steps for block in step.target for token in block)


def text_of(steps: list[Step], codes: Path) -> int:
    """The bytes of the predicted tokens."""
    vocabulary = Vocabulary(codes)
    return sum(len(vocabulary.decode(block)) for step in steps for block in step.target)


def iterator(folder: Path) -> Any:
    return load_checkpoint(folder / "checkpoint_last.pt")["extra_state"]["train_iterator"]


def test_the_task_is_fairseqs_own(data: Path, tmp_path: Path) -> None:
    """Until it is stopped, it has the same blocks, in the same order, with the same losses."""
    own = fairseq_train(
        command(data, tmp_path, "--task", "language_modeling", "--max-update", "9", "--no-save", *QUIET)
    )
    assert fairseq_train(command(data, tmp_path, *RESUMABLE, "--max-update", "9", "--no-save", *QUIET)) == own
    assert len(own) == 9


def test_a_training_stopped_within_an_epoch_resumes_with_the_same_batches(data: Path, tmp_path: Path) -> None:
    """The losses are also the same, past the end of the epoch."""
    arguments = command(data, tmp_path, *RESUMABLE, *QUIET)
    whole = fairseq_train([*arguments, "--max-epoch", "2", "--no-save"])
    stop = len(whole) // 2 + 3
    stopped = fairseq_train([*arguments, "--max-epoch", "2", "--max-update", str(stop)])
    assert iterator(tmp_path)["epoch"] == 2 and iterator(tmp_path)["iterations_in_epoch"] > 0
    # With another number of data-loading workers.
    resumed = fairseq_train([*arguments, "--max-epoch", "2", "--num-workers", "2"])
    assert len(stopped) == stop and stopped + resumed == whole


def test_a_training_ends_with_the_update_that_reaches_its_tokens_or_text(
    text: Path, data: Path, tmp_path: Path
) -> None:
    """They are counted in the text that the model was trained on, across the end of an epoch."""
    arguments = command(data, tmp_path, *RESUMABLE, *QUIET, "--no-save")
    whole = fairseq_train([*arguments, "--max-epoch", "2"])
    one_epoch = sum(len(document) for document in documents_of(text / "train"))
    assert text_of(whole, text / "codes") == 2 * one_epoch
    for limit, seen in (("--stop-tokens", tokens_of), ("--stop-text", lambda steps: text_of(steps, text / "codes"))):
        end = len(whole) // 2 + 2
        reached = seen(whole[:end])
        assert fairseq_train([*arguments, limit, str(reached)]) == whole[:end]
    # One byte more than the previous update had reached takes another update.
    before = str(text_of(whole[: end - 1], text / "codes") + 1)
    assert fairseq_train([*arguments, "--stop-text", before]) == whole[:end]


def test_a_report_has_the_text_seen_and_the_loss_per_byte(text: Path, tmp_path: Path) -> None:
    """mt-scaffold train chooses the task by the folder; checkpoints have the vocabulary's digest."""
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


def test_bytes_are_counted_across_parts_of_the_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may begin or end anywhere in a part."""
    from mt_scaffold.experiment.fairseq_plugin import language_modeling

    monkeypatch.setattr(language_modeling, "_IDS_AT_ONCE", 3)
    ids, token_bytes = np.array([1, 4, 2, 0, 3, 3, 4, 1, 2, 2]), np.array([0, 1, 2, 3, 5])
    for size in range(1, len(ids) + 1):
        begins = np.arange(0, len(ids), size)
        blocks: Any = SimpleNamespace(slice_indices=np.stack([begins, np.minimum(begins + size, len(ids))], axis=1))
        found = language_modeling.block_bytes(blocks, ids, token_bytes)
        assert found.tolist() == [token_bytes[ids[begin : begin + size]].sum() for begin in begins]


def test_options_that_cannot_work_are_refused(data: Path, tmp_path: Path) -> None:
    """They are refused before the first update, with a remedy."""
    with pytest.raises(UsageError, match="--sample-break-mode eos: fairseq's code for it needs NumPy 1"):
        fairseq_train(
            command(data, tmp_path, *RESUMABLE, "--no-save", "--max-update", "1", "--sample-break-mode", "eos")
        )
    for options, error, says in (
        (["--sample-break-mode", "complete"], MTScaffoldError, r"valid: \d+ documents have more than \d+ tokens, and"),
        (["--add-bos-token"], UsageError, "--add-bos-token: models are scored as though trained without; omit it"),
        (["--output-dictionary-size", "9"], UsageError, "--output-dictionary-size: some tokens would have no"),
    ):
        with pytest.raises(error, match=says):
            fairseq_train(command(data, tmp_path, *RESUMABLE, "--no-save", "--max-update", "1", *options))


def test_the_blocks_are_full(data: Path, tmp_path: Path) -> None:
    """Documents follow one another in a block, so that a model learns where one ends."""
    steps = fairseq_train(command(data, tmp_path, *RESUMABLE, *QUIET, "--max-epoch", "1", "--no-save"))
    lengths = [sum(token != 1 for token in block) for step in steps for block in step.target]
    assert sorted(lengths)[1:] == [POSITIONS] * (len(lengths) - 1)
    assert math.ceil(len(read_ids(data / "train")[0]) / POSITIONS) == len(lengths)
