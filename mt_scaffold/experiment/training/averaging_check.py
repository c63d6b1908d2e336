"""Check, before a training starts, that it will save the checkpoints to be averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.training import Expected, check_training
from mt_scaffold.experiment.runtime.fairseq import number_of
from mt_scaffold.experiment.runtime.schema import OptionValue, WrongValue
from mt_scaffold.experiment.training.translation_options import train_section, training_options


@dataclass(frozen=True)
class Epoch:
    """The length of an epoch: updates, and subwords and bytes of text as Stop counts them (None: unknown)."""

    updates: int
    tokens: int | None = None
    text: int | None = None


def check_averaging(config: Config) -> None:
    """Raise UsageError if a system of ``config`` will not save as many checkpoints as are averaged or scored.

    This needs no data: if the training does not end by epochs, the length of an epoch is estimated from
    ``train.expected``. Without it, only the plug-in's tasks can check, before their first update.
    """
    for system in config.systems:
        train = train_section(config, system)
        try:
            check_training(train, config.average, config.score.last_checkpoints)
        except WrongValue as error:
            raise UsageError(f"systems.{system}.{error}") from None
        _check_saved(config, system, train.expected)


def _check_saved(config: Config, system: str, expected: Expected | None) -> None:
    options = training_options(config, system)
    epoch = _expected_epoch(config, expected, train_section(config, system).batch_gpus, options)
    wanted = max(config.average.last, config.score.last_checkpoints)
    check_checkpoints(options, epoch, wanted, config.average.by)


def short_trainings(config: Config, pairs: int, subwords: float) -> list[tuple[str, bool]]:
    """Return the problems of trainings that save too few checkpoints, before there is binarised data.

    pairs, subwords: the approximate size of the training text, on the longer side. Each problem comes with whether it
    is sure: whether a text of a quarter of the size has it too.
    """
    found: dict[tuple[str, bool], list[str]] = {}
    for system in config.systems:
        problems = []
        for share in (1, 4):
            size = max(1, round(subwords / share))
            try:
                # 4 bytes per subword, on both sides.
                _check_saved(config, system, Expected(max(1, pairs // share), size, 8 * size))
            except UsageError as error:
                problems.append(str(error))
            else:
                break
        if problems:
            found.setdefault((problems[0], len(problems) == 2), []).append(system)
    whole = len(config.systems)
    return [
        (problem if len(systems) == whole else f"{problem} ({', '.join(systems)})", sure)
        for (problem, sure), systems in found.items()
    ]


def check_checkpoints(options: Mapping[str, OptionValue], epoch: Epoch | None, wanted: int, by: str = "epochs") -> None:
    """Raise UsageError if a training with fairseq-train's ``options`` saves fewer than ``wanted`` checkpoints.

    epoch: its length; None: unknown, so that only a number of epochs can be checked. by: ``epochs``, for checkpoints of
    whole epochs (and the final one, if tokens or text end the training), or ``updates``, for those within epochs and
    the final one.
    """
    limits = {name: number_of(options.get(name)) for name in ("max-epoch", "max-update", "stop-tokens", "stop-text")}
    if wanted < 1 or not any(limits.values()):
        return
    epochs, said = _epochs(limits, epoch)
    if math.isinf(epochs):
        return
    interval = number_of(options.get("save-interval-updates"))
    if by == "epochs":
        # An epoch that tokens or text cut short counts as a whole one.
        whole = math.ceil(epochs) if said.startswith(("stop-tokens", "stop-text")) else math.floor(epochs)
        saved = whole // (number_of(options.get("save-interval")) or 1)
    elif epoch is None or not interval:
        return
    else:
        # Round first, because (n / m) * m can be just below n.
        updates = math.floor(round(epochs * epoch.updates, 6))
        # At the end of an epoch fairseq saves a checkpoint of that epoch instead.
        saved = updates // interval - updates // math.lcm(interval, epoch.updates)
        # checkpoint_last.pt, which average uses if it is newer.
        saved += updates % interval > 0 or updates % epoch.updates == 0
    if saved < wanted:
        length = f"{said} at {epoch.updates:,} updates per epoch: {epochs:.1f} epochs" if epoch else said
        every = f", a checkpoint every {interval:,} updates" if by == "updates" else ""
        raise UsageError(
            f"average.last: {wanted} checkpoints are needed, but this training saves {saved} ({length}{every}); train "
            "longer, use smaller batches, or average fewer"
        )


def _epochs(limits: dict[str, int], epoch: Epoch | None) -> tuple[float, str]:
    """Return the number of epochs until the first of the limits, and that limit in words."""
    found = [(float(limits["max-epoch"]), f"max-epoch {limits['max-epoch']:,}")] if limits["max-epoch"] else []
    lengths = {"max-update": epoch.updates, "stop-tokens": epoch.tokens, "stop-text": epoch.text} if epoch else {}
    for name, length in lengths.items():
        if limits[name] and length:
            found.append((limits[name] / length, f"{name} {limits[name]:,}"))
    return min(found, default=(math.inf, ""))


def _expected_epoch(
    config: Config, expected: Expected | None, gpus: int, options: Mapping[str, OptionValue]
) -> Epoch | None:
    """Return the expected length of an epoch, or None if the configuration does not determine it."""
    if expected is None:
        return None
    pairs = expected.pairs
    if config.data.sample is not None and config.data.archives is not None:
        pairs = min(pairs, config.data.sample * len(config.data.archives.train))
    elif config.data.sample is not None:
        pairs = min(pairs, config.data.sample)
    share = pairs / expected.pairs
    at_once = (number_of(options.get("update-freq")) or 1) * gpus
    if tokens := number_of(options.get("max-tokens")):
        updates = expected.subwords * share / (tokens * at_once)
    elif sentences := number_of(options.get("batch-size")):
        updates = pairs / (sentences * at_once)
    else:
        return None
    text = None if expected.text is None else math.ceil(expected.text * share)
    # Both sides are about as long as the longer one, which is what max-tokens limits.
    return Epoch(max(1, math.ceil(updates)), math.ceil(2 * expected.subwords * share), text)
