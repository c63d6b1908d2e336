"""The end of a training: by updates, epochs, subwords or text, across stops, processes and vocabularies."""

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import fairseq_training
import pytest
from conftest import TINY_MODEL, replace_checkpoint
from fairseq_training import Step, fairseq_train, load_plugin
from fork_server import ForkServer

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.training.train import train
from mt_scaffold.experiment.training.training_log import read_training_log
from mt_scaffold.segment.apply import BPE

PAIRS = 200


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    load_plugin()


@pytest.fixture(scope="module")
def words(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The text of tiny_data, stored as words that are segmented with dropout."""
    folder = tmp_path_factory.mktemp("words")
    for name in ("train.en", "train.de", "valid.en", "valid.de", "codes"):
        shutil.copy(tiny_words / name, folder)
    codes = joint_segmentation(tiny_words / "codes")
    binarise_words(folder / "data", "en", "de", codes, folder / "train", folder / "valid")
    return folder


@pytest.fixture(scope="module")
def commands(tiny_data: Path, words: Path) -> dict[str, list[str]]:
    """The options of a training with either task, without an end and without validation."""
    folders = {"translation_resumable": tiny_data, "translation_bpe_dropout": words / "data"}
    model = [*TINY_MODEL, "--seed", "3", "--disable-validation"]
    return {task: [str(data), *model, "--task", task] for task, data in folders.items()}


@pytest.fixture(scope="module")
def bytes_of_pairs(words: Path) -> list[int]:
    """The bytes of each training pair, line ends included, counted in the text."""
    sides = [(words / f"train.{language}").read_bytes().splitlines(keepends=True) for language in ("en", "de")]
    return [len(source) + len(target) for source, target in zip(*sides, strict=True)]


def seen(step: Step, bytes_of_pairs: list[int]) -> tuple[int, int]:
    """The subwords and bytes of a batch, counted in the model's input."""
    subwords = sum(token != 1 for side in (step.source, step.target) for sentence in side for token in sentence)
    return subwords, sum(bytes_of_pairs[number] for number in step.ids)


def state(folder: Path) -> dict[str, Any]:
    iterator: dict[str, Any] = load_checkpoint(folder / "checkpoint_last.pt")["extra_state"]["train_iterator"]
    return iterator


@pytest.mark.parametrize(
    ("task", "rule"), [pytest.param("resumable", "text", marks=pytest.mark.long), ("bpe_dropout", "tokens")]
)
def test_a_budget_ends_with_the_first_update_that_reaches_it_however_often_it_was_stopped(
    commands: dict[str, list[str]], bytes_of_pairs: list[int], tmp_path: Path, task: str, rule: str
) -> None:
    """The batches are those of a training that ends by epochs; the counts are exact to the sentence."""
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
def test_counts_survive_a_stop_between_two_epochs(
    commands: dict[str, list[str]], bytes_of_pairs: list[int], tmp_path: Path, task: str
) -> None:
    """The checkpoint of a whole epoch is at the start of the next, which continues its counts."""
    command = [*commands[f"translation_{task}"], "--save-dir", str(tmp_path)]
    fairseq_train([*command, "--max-epoch", "1"])
    budget = sum(bytes_of_pairs) + 1
    assert sum(len(step.ids) for step in fairseq_train([*command, "--stop-text", str(budget)])) < PAIRS
    assert budget <= state(tmp_path)["seen"]["text_bytes"] < 2 * sum(bytes_of_pairs)


@pytest.mark.parametrize("task", ["resumable", "bpe_dropout"])
def test_a_budget_that_an_epoch_ends_with_starts_no_other(
    commands: dict[str, list[str]], bytes_of_pairs: list[int], tmp_path: Path, task: str
) -> None:
    """fairseq could not train on the empty epoch that would follow."""
    budget = str(sum(bytes_of_pairs))
    command = [*commands[f"translation_{task}"], "--stop-text", budget, "--save-dir", str(tmp_path)]
    steps = fairseq_train(command)
    assert sorted(number for step in steps for number in step.ids) == list(range(PAIRS))
    assert state(tmp_path)["epoch"] == 2 and state(tmp_path)["seen"]["text_bytes"] == int(budget)


def test_two_processes_end_at_once_and_count_together(
    fairseq_programs: ForkServer,
    words: Path,
    commands: dict[str, list[str]],
    bytes_of_pairs: list[int],
    tmp_path: Path,
) -> None:
    """A process that counted only its own share would wait for the others forever. The loss per byte is that of all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    budget = sum(bytes_of_pairs) // 2
    command = [*commands["translation_bpe_dropout"], "--stop-text", str(budget), "--save-dir", str(tmp_path)]
    command += ["--distributed-world-size", "2", "--distributed-backend", "gloo", "--distributed-no-spawn"]
    command += ["--distributed-init-method", f"tcp://127.0.0.1:{port}", "--ddp-backend", "legacy_ddp"]
    command.remove("--disable-validation")
    outputs = [tmp_path / f"{rank}.json" for rank in range(2)]
    programs = []
    for rank, output in enumerate(outputs):
        arguments = [fairseq_training.__file__, str(output), *command, "--distributed-rank", str(rank)]
        programs.append(fairseq_programs.start(arguments, tmp_path, tmp_path / f"{rank}.log"))
    assert [fairseq_programs.wait(program) for program in programs] == [0, 0]
    ranks = [[Step(*step) for step in json.loads(output.read_text())] for output in outputs]
    amounts = [sum(seen(step, bytes_of_pairs)[1] for step in steps) for steps in zip(*ranks, strict=True)]
    assert sum(amounts[:-1]) < budget <= sum(amounts) == state(tmp_path)["seen"]["text_bytes"]
    # These processes do not log in the format of fairseq-train.
    logged = (tmp_path / "0.log").read_text().replace("INFO:valid:", "| INFO | valid | ")
    (tmp_path / "train.log").write_text(logged)
    check_loss_per_byte(words, read_training_log(tmp_path / "train.log"))


def check_loss_per_byte(words: Path, curves: dict[str, list[tuple[float, float]]]) -> None:
    """Check one validation of the whole set: the loss per subword, times the subwords, divided by the file's bytes."""
    bpe = BPE(words / "codes")
    lines = (words / "valid.de").read_text().splitlines()
    subwords = sum(len(bpe.segment(line).split()) + 1 for line in lines)
    ((_, per_subword),), ((_, per_byte),) = curves["valid"], curves["valid_bits_per_byte"]
    assert per_byte == pytest.approx(per_subword * subwords / (words / "valid.de").stat().st_size, abs=1e-3)


LEARNING_RATE = "--lr-scheduler inverse_sqrt --lr 0.01 --warmup-init-lr 0.01 --warmup-updates 1 --stop-min-lr 0.0025"


@pytest.mark.parametrize("end", [["--max-epoch", "3"], ["--stop-tokens", "9000"], LEARNING_RATE.split()])
def test_the_end_is_saved_whatever_the_interval(commands: dict[str, list[str]], tmp_path: Path, end: list[str]) -> None:
    """fairseq would lose the updates after the last multiple of --save-interval, and repeat them at every start."""
    command = [*commands["translation_resumable"], "--save-dir", str(tmp_path), "--save-interval", "2"]
    steps = fairseq_train([*command, *end])
    ended = load_checkpoint(tmp_path / "checkpoint_last.pt")
    assert ended["optimizer_history"][-1]["num_updates"] == len(steps) > 0
    assert fairseq_train([*command, *end]) == []
    # Only the requested checkpoints can be averaged.
    assert not (tmp_path / "checkpoint3.pt").exists() and not (tmp_path / "checkpoint1.pt").exists()


def test_text_is_not_guessed(tiny_data: Path, commands: dict[str, list[str]], tmp_path: Path) -> None:
    """In a folder from elsewhere, subwords may be written differently, so only they are counted, not the text."""
    shutil.copytree(tiny_data, tmp_path / "data", ignore=shutil.ignore_patterns("binarised.json"))
    command = [str(tmp_path / "data"), *commands["translation_resumable"][1:], "--save-dir", str(tmp_path)]
    with pytest.raises(UsageError, match=r"--stop-text: .*data does not say how many bytes its text has"):
        fairseq_train([*command, "--stop-text", "100"])
    with pytest.raises(UsageError, match="--skip-remainder-batch: would drop the end"):
        fairseq_train([*command, "--stop-tokens", "100", "--skip-remainder-batch"])
    (step,) = fairseq_train([*command, "--max-update", "1"])
    assert state(tmp_path)["seen"] == {"subwords": seen(step, [0] * PAIRS)[0]}


def test_a_checkpoint_that_counted_nothing_cannot_be_continued_to_a_budget(
    commands: dict[str, list[str]], tmp_path: Path
) -> None:
    """The text seen before is unknown: a count that starts at the resume would be wrong."""
    command = [*commands["translation_resumable"], "--save-dir", str(tmp_path)]
    fairseq_train([*command, "--max-update", "2"])
    checkpoint = load_checkpoint(tmp_path / "checkpoint_last.pt")
    for name in ("seen", "before_epoch"):
        del checkpoint["extra_state"]["train_iterator"][name]
    replace_checkpoint(checkpoint, tmp_path / "checkpoint_last.pt")
    with pytest.raises(MTScaffoldError, match="does not record how much text was seen"):
        fairseq_train([*command, "--stop-tokens", "10000"])
    assert len(fairseq_train([*command, "--max-update", "3"])) == 1
    assert "seen" not in state(tmp_path)


def test_the_loss_per_byte_is_that_of_the_whole_validation_set(words: Path, tmp_path: Path) -> None:
    """Systems with different vocabularies are stopped by it and plotted with it."""
    options = [*TINY_MODEL, "--max-epoch", "1", "--patience", "1", "--best-checkpoint-metric", "bits_per_byte"]
    report = train(words / "data", tmp_path, options)
    check_loss_per_byte(words, report.curves)
    assert report.valid_metric == "bits_per_byte" and report.valid_loss == report.curves["valid_bits_per_byte"][-1][1]
    assert len(report.curves["train_bits_per_byte"]) == 1 and "valid_bleu" not in report.curves


def test_bytes_of_ids_are_those_of_the_text(tiny_data: Path, words: Path, bytes_of_pairs: list[int]) -> None:
    """A sentence has the same count however it is stored; bytes missing from ids (unknown words) are added."""
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
