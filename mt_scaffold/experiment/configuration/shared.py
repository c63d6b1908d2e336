"""What the configurations of all tasks have in common: some keys, and checks of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from mt_scaffold.experiment.configuration.systems import AnySystem
from mt_scaffold.experiment.configuration.training import Average, TrainOptions, with_own_options
from mt_scaffold.experiment.runtime.results import COMPARISON_KINDS, comparison_file
from mt_scaffold.experiment.runtime.schema import WrongValue, check_one_of, nearest, without_none

# Folders and files in experiments/NAME next to the folders of the systems (layout.py), of any task.
_RESERVED_NAMES = (
    *("raw", "words", "vocabularies", "dictionaries", "documents", "counts", "codes", "binarised", "test-sets", "logs"),
    *("figures", "config.yaml", "data-report.json", "documents.json", "statistics.json", "statistics.txt"),
    *("report.html", *(comparison_file(name, kind) for name in ("comparison", "tasks") for kind in COMPARISON_KINDS)),
)


class AnyConfig:
    """The keys that experiments of all tasks have; a subclass is a dataclass of all its keys."""

    data: Any
    systems: Mapping[str, AnySystem]
    baseline: str
    train: TrainOptions
    seeds: list[int]
    average: Average
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def synthetic(self) -> bool:
        """Whether the text is synthetic; every figure made from it must say so."""
        return self.data.synthetic is not None

    @property
    def wanted_checkpoints(self) -> int:
        """The number of a training's last checkpoints that are needed."""
        return self.average.last

    @property
    def own_baselines(self) -> dict[str, str]:
        """The baselines of the systems that name one, by system."""
        return {name: system.baseline for name, system in self.systems.items() if system.baseline is not None}

    def baseline_of(self, system: str) -> str | None:
        """Return the system that a system is tested against, or None for the experiment's baseline."""
        own = self.systems[system].baseline or self.baseline
        return None if own == system else own

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and scalars without unset keys, which parse_experiment reads back."""
        plain: dict[str, Any] = without_none(dataclasses.asdict(self))
        return plain


def check_shared(config: AnyConfig, data_kinds: Sequence[str], check_training: Callable[[Any], None]) -> None:
    """Raise WrongValue if values that the configurations of all tasks have contradict each other.

    data_kinds: the keys of the data section of which one is given. check_training: the task's check of a train section,
    which is also called with the options of each system.
    """
    kind = check_one_of("data", config.data, data_kinds)
    for name in getattr(getattr(config.data, kind), "tests", None) or ():
        if re.fullmatch(r"(train|valid)\d*", name):  # fairseq reads train, train1 and so on as one training set
            raise WrongValue(f"data.{kind}.tests.{name}", f"a test set cannot be called {name}; rename it")
    if config.train.batches and config.train.batch not in config.train.batches:
        raise WrongValue("train.batch", f"give one of {', '.join(config.train.batches)}")
    if config.train.batch is not None and not config.train.batches:
        raise WrongValue("train.batch", "there are no train.batches to choose from; define them, or leave this out")
    for name, system in config.systems.items():
        if name in _RESERVED_NAMES:
            raise WrongValue(f"systems.{name}", "reserved for a folder or file of the experiment; choose another name")
        if system.baseline is not None and system.baseline not in config.systems:
            hint = nearest(system.baseline, config.systems)
            raise WrongValue(f"systems.{name}.baseline", f"no system is called {system.baseline}{hint}")
        if system.baseline == name != config.baseline:
            raise WrongValue(f"systems.{name}.baseline", "a system is not tested against itself; name another")
    if config.baseline not in config.systems:
        hint = nearest(config.baseline, config.systems)
        raise WrongValue("baseline", f"no system is called {config.baseline}{hint}")
    if len(set(config.seeds)) < len(config.seeds):
        raise WrongValue("seeds", "duplicate seed; list each seed once")
    check_training(config.train)
    for name, system in config.systems.items():
        try:
            check_training(with_own_options(config.train, system.train))
        except WrongValue as error:
            raise WrongValue(f"systems.{name}.{error.key}", str(error).removeprefix(f"{error.key}: ")) from None
