"""What the configurations of all tasks have in common: some keys, and checks of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from mt_scaffold.experiment.configuration.systems import AnySystem
from mt_scaffold.experiment.configuration.training import TrainOptions
from mt_scaffold.experiment.runtime.schema import WrongValue, check_one_of, nearest, without_none


class AnyConfig:
    """The keys that experiments of all tasks have; a subclass is a dataclass of all its keys."""

    data: Any
    systems: Mapping[str, AnySystem]
    baseline: str
    train: TrainOptions
    seeds: list[int]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def synthetic(self) -> bool:
        """Whether the text is synthetic; every figure made from it must say so."""
        return self.data.synthetic is not None

    def baseline_of(self, system: str) -> str | None:
        """Return the system that a system is tested against, or None for the experiment's baseline."""
        own = self.systems[system].baseline or self.baseline
        return None if own == system else own

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and scalars without unset keys, which parse_experiment reads back."""
        plain: dict[str, Any] = without_none(dataclasses.asdict(self))
        return plain


def check_shared(config: AnyConfig, data_kinds: Sequence[str], reserved: Collection[str]) -> None:
    """Raise WrongValue if values that the configurations of all tasks have contradict each other.

    data_kinds: the keys of the data section of which one is given. reserved: names that no system may have.
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
        if name in reserved:
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
