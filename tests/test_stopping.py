"""The end of a training: by updates, epochs, subwords or text, across stops, processes and vocabularies."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import fairseq_training
import pytest
from conftest import TINY_MODEL
from fairseq_training import Step, fairseq_train, load_plugin

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.experiment.binarise_words import binarise_words
from mt_scaffold.experiment.checkpoints import load_checkpoint
from mt_scaffold.experiment.segmentation import joint_segmentation

PAIRS = 200


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    load_plugin()


@pytest.fixture(scope="module")
def words(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same text as tiny_data, as words that are segmented with dropout."""
    folder = tmp_path_factory.mktemp("words")
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        shutil.copy(tiny_words / name, folder)
    codes = joint_segmentation(tiny_words / "codes")
    binarise_words(folder / "data", "en", "de", codes, folder / "train", folder / "valid")
    return folder


@pytest.fixture(scope="module")
def commands(tiny_data: Path, words: Path) -> dict[str, list[str]]:
    """A training of either task, without an end and without validation."""
    folders = {"translation_resumable": tiny_data, "translation_bpe_dropout": words / "data"}
    model = [*TINY_MODEL, "--seed", "3", "--disable-validation"]
    return {task: [str(data), *model, "--task", task] for task, data in folders.items()}


@pytest.fixture(scope="module")
def bytes_of_pairs(words: Path) -> list[int]:
    """The bytes of each training pair, line ends included, from the text itself."""
    sides = [(words / f"train.{language}").read_bytes().splitlines(keepends=True) for language in ("en", "de")]
    return [len(source) + len(target) for source, target in zip(*sides, strict=True)]


def seen(step: Step, bytes_of_pairs: list[int]) -> tuple[int, int]:
    """The subwords and bytes of a batch, from what the model was given."""
    subwords = sum(token != 1 for side in (step.source, step.target) for sentence in side for token in sentence)
    return subwords, sum(bytes_of_pairs[number] for number in step.ids)


def state(folder: Path) -> dict[str, Any]:
    iterator: dict[str, Any] = load_checkpoint(folder / "checkpoint_last.pt")["extra_state"]["train_iterator"]
    return iterator


@pytest.mark.parametrize(("task", "rule"), [("resumable", "text"), ("bpe_dropout", "tokens")])
def test_a_budget_ends_with_the_first_update_that_reaches_it_however_often_it_was_stopped(
    commands: dict[str, list[str]], bytes_of_pairs: list[int], tmp_path: Path, task: str, rule: str
) -> None:
    """The batches are those of a training that ends by epochs; what was seen is exact to the sentence."""
    command = [*commands[f"translation_{task}"], "--update-freq", "2"]
    longer = fairseq_train([*command, "--max-epoch", "2", "--no-save"])
    second = next(step for step in range(len(longer)) if sum(len(each.ids) for each in longer[:step]) == PAIRS)
    amounts = [seen(step, bytes_of_pairs)[rule == "text"] for step in longer]
    # Reached by the first of the two batches of an update in the second epoch; the update is completed.
    ends = second + 6
    budget = sum(amounts[: ends - 2]) + 1
    common = [*command, f"--stop-{rule}", str(budget), "--save-dir", str(tmp_path)]
    steps = fairseq_train([*common, "--max-update", "3"]) + fairseq_train(common)
    assert steps == longer[:ends]
    totals = [sum(column) for column in zip(*(seen(step, bytes_of_pairs) for step in steps), strict=True)]
    assert state(tmp_path)["seen"] == {"subwords": totals[0], "text_bytes": totals[1]}
    assert (tmp_path / "checkpoint2.pt").exists()
    # It has ended: starting it again adds nothing. With a larger budget it resumes where it was cut.
    assert fairseq_train(common) == []
    assert fairseq_train([*common, f"--stop-{rule}", "1000000000", "--max-epoch", "2"]) == longer[ends:]


@pytest.mark.parametrize("task", ["resumable", "bpe_dropout"])
def test_a_budget_that_an_epoch_ends_with_starts_no_other(
    commands: dict[str, list[str]], bytes_of_pairs: list[int], tmp_path: Path, task: str
) -> None:
    """No empty epoch follows, which fairseq could not train on."""
    budget = str(sum(bytes_of_pairs))
    command = [*commands[f"translation_{task}"], "--stop-text", budget, "--save-dir", str(tmp_path)]
    steps = fairseq_train(command)
    assert sorted(number for step in steps for number in step.ids) == list(range(PAIRS))
    assert state(tmp_path)["epoch"] == 2 and state(tmp_path)["seen"]["text_bytes"] == int(budget)


def test_two_processes_end_at_once_and_count_together(
    commands: dict[str, list[str]], bytes_of_pairs: list[int], tmp_path: Path
) -> None:
    """A process that counted only its own share would wait for the others forever."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    budget = sum(bytes_of_pairs) // 2
    command = [*commands["translation_bpe_dropout"], "--stop-text", str(budget), "--save-dir", str(tmp_path)]
    command += ["--distributed-world-size", "2", "--distributed-backend", "gloo", "--distributed-no-spawn"]
    command += ["--distributed-init-method", f"tcp://127.0.0.1:{port}", "--ddp-backend", "legacy_ddp"]
    outputs = [tmp_path / f"{rank}.json" for rank in range(2)]
    programs = [
        subprocess.Popen([sys.executable, fairseq_training.__file__, output, *command, "--distributed-rank", str(rank)])
        for rank, output in enumerate(outputs)
    ]
    assert [program.wait(timeout=300) for program in programs] == [0, 0]
    ranks = [[Step(*step) for step in json.loads(output.read_text())] for output in outputs]
    amounts = [sum(seen(step, bytes_of_pairs)[1] for step in steps) for steps in zip(*ranks, strict=True)]
    assert sum(amounts[:-1]) < budget <= sum(amounts) == state(tmp_path)["seen"]["text_bytes"]


def test_bytes_of_ids_are_those_of_the_text(tiny_data: Path, words: Path, bytes_of_pairs: list[int]) -> None:
    """A sentence counts alike however it is stored; what ids do not tell (an unknown word) is added to the sum."""
    from fairseq.data import Dictionary
    from fairseq.data.data_utils import load_indexed_dataset

    from mt_scaffold.experiment.fairseq_plugin.text_bytes import sentence_bytes

    found = {}
    for language in ("en", "de"):
        dictionary = Dictionary.load(str(tiny_data / f"dict.{language}.txt"))
        stored = load_indexed_dataset(str(tiny_data / f"train.en-de.{language}"), dictionary)
        found[language] = sentence_bytes(stored, dictionary)
        lines = [stored[number] for number in range(len(stored))]
        assert sentence_bytes(lines, dictionary).tolist() == found[language].tolist()
        more = sentence_bytes(stored, dictionary, total=int(found[language].sum()) + 301)
        assert more.sum() == found[language].sum() + 301 and set(more - found[language]) == {1, 2}
    assert (found["en"] + found["de"]).tolist() == bytes_of_pairs
