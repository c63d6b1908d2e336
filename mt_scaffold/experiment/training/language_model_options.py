"""An experiment with language models → the options of fairseq-train for one training, its end included."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import BinarisedDocuments, read_documents_folder
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS, with_own_options
from mt_scaffold.experiment.runtime.fairseq import WHOLE_DATA_SET, number_of
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.runtime.schema import OptionValue, nearest
from mt_scaffold.experiment.training.averaging_check import averaging_options, kept_checkpoints
from mt_scaffold.experiment.training.train import TrainingRecord

OWN_TASK = "language_modeling_resumable"
# fairseq's default.
_TOKENS_PER_SAMPLE = 1024
# For a check of the options alone, before the data is known.
_ANY_UPDATES = 1 << 30


def training_options(
    config: LanguageModelConfig,
    system: str,
    comparison: str,
    gpus: int | None = None,
    data: BinarisedDocuments | None = None,
    baseline_text: int | None = None,
) -> dict[str, OptionValue]:
    """Return fairseq-train's options for a training of ``system``, without data, seed and folders.

    gpus: of all nodes together (0: a CPU; None: the number that the batch is meant for). data: what the system is
    trained on; without it the length of the learning rate schedule is unknown, and a very large one is assumed.
    baseline_text: how many bytes the baseline was trained on, if the comparison uses the same amount (``text_of``).
    Raises UsageError for an unknown system or comparison, if the schedule cannot be computed, and as
    TrainOptions.options_on does. The task checks before the first update that the checkpoints to be averaged will be
    saved.
    """
    for kind, name, known in (("system", system, config.systems), ("comparison", comparison, config.comparisons)):
        if name not in known:
            raise UsageError(f"no {kind} is called {name}{nearest(name, known)}")
    train = with_own_options(config.train, config.systems[system].train)
    options = train.options_on(gpus)
    amount = config.comparisons[comparison]
    rule = "tokens" if amount.tokens is not None else "text"
    limit = amount.tokens or amount.text or baseline_text
    if limit is None and data is not None:
        raise UsageError(f"{comparison}: takes as much text as the baseline; give --baseline-report, its training.json")
    options[STOP_OPTIONS[rule]] = limit or 1
    if train.schedule is not None:
        updates = _ANY_UPDATES
        if data is not None and limit is not None:
            processes = train.batch_gpus if gpus is None else max(1, gpus)
            updates = updates_until(rule, limit, options, processes, data)
        options = _scheduled(train.schedule, options, updates)
    options |= averaging_options(config.average, config.wanted_checkpoints)
    return options | kept_checkpoints(config.average, options, config.wanted_checkpoints)


def options_for_data(
    config: LanguageModelConfig,
    system: str,
    comparison: str,
    gpus: int,
    data: PathLike,
    baseline_report: PathLike | None = None,
) -> dict[str, OptionValue]:
    """Return training_options for a data folder and, if the comparison needs it, the baseline's training record.

    Raises MTScaffoldError if one of them cannot be read, or the report does not have the amount of text.
    """
    text = None
    if baseline_report is not None:
        text = read_result(TrainingRecord, baseline_report).text_bytes
        if text is None:
            raise MTScaffoldError(f"{baseline_report}: has no text_bytes; train with a task of this package")
    return training_options(config, system, comparison, gpus, read_documents_folder(data), text)


def updates_until(
    rule: str, limit: int, options: Mapping[str, OptionValue], gpus: int, data: BinarisedDocuments
) -> int:
    """Return the updates after which a training on ``gpus`` GPUs has seen ``limit`` tokens or bytes (``rule``).

    All samples except the last of an epoch have ``tokens-per-sample`` tokens. Raises UsageError for options that break
    this rule, or without a batch size.
    """
    if _breaks(options):
        raise UsageError("train.schedule: needs samples of equal length (sample-break-mode none); change one of them")
    split = data.splits["train"]
    tokens = limit if rule == "tokens" else math.ceil(limit * split.tokens / split.bytes)
    at_once = _tokens_at_once(options, gpus)
    epochs, rest = divmod(tokens, split.tokens)
    return epochs * math.ceil(split.tokens / at_once) + math.ceil(rest / at_once)


def _tokens_at_once(options: Mapping[str, OptionValue], gpus: int) -> int:
    """Return the tokens of an update with samples of one length. Raises UsageError without a batch size."""
    length = number_of(options.get("tokens-per-sample")) or _TOKENS_PER_SAMPLE
    sizes = [number_of(options.get("batch-size")), number_of(options.get("max-tokens")) // length]
    samples = min((size for size in sizes if size), default=0)
    multiple = number_of({**WHOLE_DATA_SET, **options}["required-batch-size-multiple"]) or 1
    samples -= samples % multiple if samples > multiple else 0
    if not samples:
        raise UsageError("train.schedule: give batch-size (samples per GPU), or max-tokens of at least one sample")
    return length * samples * (number_of(options.get("update-freq")) or 1) * gpus


def _breaks(options: Mapping[str, OptionValue]) -> bool:
    """Return whether samples end at document boundaries, and so differ in length."""
    return options.get("sample-break-mode", "none") != "none"


def _scheduled(kind: str, options: Mapping[str, OptionValue], updates: int) -> dict[str, OptionValue]:
    """Return the options with a learning rate that is ``min-lr`` (default: 0) from the last update on."""
    warmup = number_of(options.get("warmup-updates"))
    if updates <= warmup:
        raise UsageError(
            f"train.schedule: this training has {updates:,} updates, all of them within warmup-updates ({warmup:,}); "
            "lower those, or train longer"
        )
    if kind == "linear":
        # fairseq's other schedules call it min-lr.
        ends = {"end-learning-rate": options["min-lr"]} if "min-lr" in options else {}
        rest = {name: value for name, value in options.items() if name != "min-lr"}
        return {**rest, "lr-scheduler": "polynomial_decay", "total-num-update": updates, **ends}
    # After the period fairseq begins another, with rates multiplied by lr-shrink: this makes it begin at min-lr.
    highest, least = _rate(options.get("lr")), _rate(options.get("min-lr"))
    shrink = min(least / highest, 1.0) if highest > 0 else 0.0
    period: dict[str, OptionValue] = {"lr-period-updates": updates - warmup, "lr-shrink": shrink}
    return {**options, "lr-scheduler": "cosine", **period}


def _rate(value: OptionValue | None) -> float:
    """Return the (first) value of a learning rate option; 0 if it is missing or not a number."""
    first = value[0] if isinstance(value, list) and value else value
    try:
        return float(first) if isinstance(first, int | float | str) else 0.0
    except ValueError:
        return 0.0
