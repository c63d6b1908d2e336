"""The number of checkpoints to be averaged is checked before anything is trained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config, load_config, parse_config
from mt_scaffold.experiment.configuration.training import SystemTrain
from mt_scaffold.experiment.training.averaging_check import Epoch, check_checkpoints
from mt_scaffold.experiment.training.translation_options import training_options

# Trainings of language models end by tokens or text, which counts as the end of an epoch.
CONFIGS = sorted((ROOT / "configs").glob("[!l]*.yaml"))
SMALL: dict[str, Any] = {
    "name": "small",
    "languages": {"source": "en", "target": "de"},
    "data": {"synthetic": {"pairs": 100, "valid": 10, "test": 10}},
    "codes": {"symbols": 50},
    "systems": {"bpe": {"algorithm": "bpe"}, "scaffold": {"algorithm": "scaffold"}},
    "baseline": "bpe",
    "translate": {"options": {"beam": 3, "lenpen": 0.6, "max-tokens": 100}},
}


def check_averaging(config: Config) -> None:
    for system in config.systems:
        check_checkpoints(training_options(config, system), None, config.wanted_checkpoints, config.average.by)


def small(train: dict[str, Any], **more: Any) -> Config:
    train = {"options": {"arch": "transformer", "max-tokens": 1000}} | train
    return parse_config(SMALL | {"train": train} | more)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_of_the_project_saves_what_it_averages(path: Path) -> None:
    """With each of its batches; otherwise the averaging would refuse after days of training."""
    config = load_config(path)
    for batch in config.train.batches or [None]:
        check_averaging(dataclasses.replace(config, train=dataclasses.replace(config.train, batch=batch)))


def test_fewer_epochs_than_are_averaged_are_refused_with_the_numbers() -> None:
    """300,000 updates of the published small batch are fewer than ten epochs of English-French."""
    epoch = Epoch(34180)
    with pytest.raises(UsageError) as refusal:
        check_checkpoints({"max-update": 300000}, epoch, 10)
    assert str(refusal.value) == (
        "average.last: 10 checkpoints are needed, but this training saves 8 (max-update 300,000 at 34,180 updates per "
        "epoch: 8.8 epochs); train longer, use smaller batches, or average fewer"
    )
    check_checkpoints({"max-update": 300000}, epoch, 8)


def test_a_number_of_epochs_is_checked_before_there_is_data() -> None:
    """Also for a system with its own options, and for checkpoints that are saved but not kept."""
    config = small({"stop": {"epochs": 4}})
    with pytest.raises(UsageError, match=r"5 checkpoints are needed, but this training saves 4 \(max-epoch 4\); train"):
        check_averaging(config)
    with pytest.raises(UsageError, match=r"5 checkpoints are needed, but keep-last-epochs .* keeps 2; keep more"):
        check_averaging(small({"options": {"keep-last-epochs": 2}}))
    check_averaging(small({"stop": {"updates": 1}}))


@pytest.mark.parametrize(
    ("options", "saved"),
    [
        ({"max-epoch": 7}, 7),
        ({"max-epoch": 7, "save-interval": 2}, 3),
        ({"max-update": 500}, 5),
        ({"max-update": 499}, 4),
        ({"max-update": 500, "max-epoch": 3}, 3),
        # Their last epoch counts, complete or not.
        ({"stop-tokens": 2001}, 3),
        ({"stop-text": 10000}, 2),
    ],
)
def test_every_rule_gives_a_number_of_epochs(options: dict[str, Any], saved: int) -> None:
    """At 100 updates, 1,000 subwords and 5,000 bytes per epoch; exactly that many checkpoints pass."""
    epoch = Epoch(100, 1000, 5000)
    check_checkpoints(options, epoch, saved)
    with pytest.raises(UsageError, match=f"{saved + 1} checkpoints are needed, but this training saves {saved} "):
        check_checkpoints(options, epoch, saved + 1)


@pytest.mark.parametrize(("updates", "saved"), [(1000, 11), (1050, 11), (1060, 12)])
def test_checkpoints_within_epochs_are_counted_without_those_at_their_ends(updates: int, saved: int) -> None:
    """fairseq saves those as checkpoints of the epoch, not of the update; but the final one counts."""
    options = {"max-update": updates, "save-interval-updates": 50}
    check_checkpoints(options, Epoch(100), saved, by="updates")
    with pytest.raises(UsageError, match=rf"saves {saved} \(max-update {updates:,} .*, a checkpoint every 50 "):
        check_checkpoints(options, Epoch(100), saved + 1, by="updates")


def test_the_last_update_is_not_lost_to_rounding() -> None:
    """1000 / 19 * 19 is less than 1000 in floating point."""
    check_checkpoints({"max-update": 1000, "save-interval-updates": 100}, Epoch(19), 10, by="updates")


@pytest.mark.parametrize(
    ("train", "more", "says"),
    [
        ({"stop": {"updates": 1, "text": 2}}, {}, r"train\.stop: give exactly one of .* \(given: updates and text\)"),
        ({"stop": {}}, {}, r"train\.stop: give exactly one of .* \(given: none\)"),
        ({"stop": {"text": 9}, "options": {"max-epoch": 3}}, {}, r"train\.stop: the options also set max-epoch"),
        ({"options": {"patience": 3}}, {}, r"train\.options\.patience: would stop on the loss per subword"),
        ({"patience": 3}, {}, r"train\.patience: needs train\.patience_on"),
        ({"patience": 9, "patience_on": "bleu", "options": {"best-checkpoint-metric": "loss"}}, {}, "contradicts"),
        ({"patience": 3, "patience_on": "bleu"}, {}, r"patience 3 a training can end after 4 epochs"),
        ({}, {"average": {"last": 2, "by": "updates"}}, r"average\.by: updates needs save-interval-updates"),
        ({"validate_bleu": True, "options": {"eval-bleu": True}}, {}, r"train\.options\.eval-bleu: set by"),
    ],
)
def test_contradictions_are_named_with_their_key(train: dict[str, Any], more: dict[str, Any], says: str) -> None:
    """Nothing is resolved silently, or found out after the training."""
    with pytest.raises(UsageError, match=says):
        small(train, **more)


def test_patience_that_is_left_out_stops_nothing() -> None:
    """``false`` leaves an option out: it is not a number of validations, and contradicts nothing."""
    stopped = {"stop": {"epochs": 3}, "patience": 6, "patience_on": "bleu"}
    small(stopped | {"options": {"disable-validation": False, "eval-bleu": False, "max-epoch": False}})
    assert small({"options": {"patience": False}}).train.options["patience"] is False


def test_options_of_a_training_follow_from_the_configuration() -> None:
    """Its stopping rule, translation of the validation set, choice of the best checkpoint, checkpoints to keep."""
    train = {"stop": {"text": 123}, "patience": 6, "patience_on": "bleu"}
    options = training_options(small(train, average={"last": 5}), "bpe")
    assert options == {
        "arch": "transformer",
        "max-tokens": 1000,
        "stop-text": 123,
        "eval-bleu": True,
        "eval-bleu-args": '{"beam": 3, "lenpen": 0.6}',
        "eval-bleu-detok": "moses",
        "eval-bleu-detok-args": '{"source_lang": "en", "target_lang": "de"}',
        "eval-bleu-remove-bpe": "subword_nmt",
        "patience": 6,
        "best-checkpoint-metric": "bleu",
        "maximize-best-checkpoint-metric": True,
        "average-last": 5,
        "average-by": "epochs",
        "keep-last-epochs": 5,
    }
    by_updates = small({"options": {"save-interval-updates": 9}}, average={"last": 3, "by": "updates"})
    kept = {name: value for name, value in training_options(by_updates).items() if name.startswith("keep")}
    assert kept == {"keep-last-epochs": 1, "keep-interval-updates": 3}


def test_a_system_can_have_its_own_options() -> None:
    """They replace those of the train section and of the batch; the other systems keep theirs."""
    batch = {"options": {"lr": 0.2, "update-freq": 4}, "gpus": 2}
    config = small({"batches": {"large": batch}, "batch": "large"})
    own = SystemTrain({"lr": 0.1, "dropout": 0.3})
    object.__setattr__(config.systems["bpe"], "train", own)
    theirs, shared = training_options(config, "bpe", gpus=4), training_options(config, "scaffold", gpus=4)
    assert (theirs["lr"], theirs["dropout"], theirs["update-freq"]) == (0.1, 0.3, 2)
    assert shared["lr"] == 0.2 and "dropout" not in shared
    with pytest.raises(UsageError, match="no system is called scafold; did you mean scaffold"):
        training_options(config, "scafold")
