"""The common base of this package's tasks: counting the text that a training has seen, its end, exact resuming."""

import functools
import hashlib
import logging
import math
import multiprocessing
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

import numpy as np
from fairseq.data import EpochBatchIterator, FairseqDataset
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask
from omegaconf import II

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.data_folder import read_shards, shards_of
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION
from mt_scaffold.experiment.training.averaging_check import Epoch, check_checkpoints

from .counting import COUNTED, CountedBatches
from .stopping import make_stoppable
from .text_bytes import BatchWithBytes, log_loss_per_byte, note_loss
from .workers import end_all_loading, end_loading, returning_memory

logger = logging.getLogger(__name__)


# fairseq derives options from Optional[X], not from X | None.
# ruff: noqa: UP045
@dataclass
class ExperimentConfig(FairseqDataclass):
    """The options for the end of a training."""

    stop_tokens: Optional[int] = field(
        default=None,
        metadata={"help": "end after this many tokens (of source and target), with one </s> per sentence or document"},
    )
    stop_text: Optional[int] = field(
        default=None, metadata={"help": "end after this many bytes of text (of source and target, in UTF-8)"}
    )
    average_last: int = field(
        default=0, metadata={"help": "refuse to train if fewer than this many checkpoints will be saved to average"}
    )
    average_by: ChoiceEnum(["epochs", "updates"]) = field(  # type: ignore[valid-type]
        default="epochs", metadata={"help": "average checkpoints of whole epochs or of --save-interval-updates"}
    )
    train_subset: str = II("dataset.train_subset")
    valid_subset: str = II("dataset.valid_subset")
    max_epoch: int = II("optimization.max_epoch")
    max_update: int = II("optimization.max_update")
    update_freq: list[int] = field(default=II("optimization.update_freq"))
    patience: int = II("checkpoint.patience")
    save_interval: int = II("checkpoint.save_interval")
    save_interval_updates: int = II("checkpoint.save_interval_updates")
    keep_last_epochs: int = II("checkpoint.keep_last_epochs")
    keep_interval_updates: int = II("checkpoint.keep_interval_updates")
    update_ordered_indices_seed: bool = II("dataset.update_ordered_indices_seed")


class Counts(NamedTuple):
    """The amounts that each sample of a data set adds to the counts (arrays).

    text: its bytes; None if unknown. target_bytes: the bytes of its target, which the loss is about.
    """

    tokens: Any
    text: Any
    target_bytes: Any


@functools.cache
def _warn_of_lost_sentences(multiple: int) -> None:
    """Warn, once, of sentences that fairseq drops silently."""
    if multiple > 1:
        logger.warning(
            f"--required-batch-size-multiple {multiple}: fairseq drops the last batch of a data set, up to "
            f"{multiple - 1} sentences, unless it is a multiple; use 1 to keep every sentence"
        )


def _digest(dictionaries: Iterable[Any]) -> str:
    """Return the SHA-256 of the symbols of fairseq's dictionaries; those of a model without one are left out."""
    found = hashlib.sha256()
    for dictionary in dictionaries:
        if dictionary is not None:
            found.update("\n".join([*dictionary.symbols, ""]).encode())
    return found.hexdigest()


def check_shards(data: str | None) -> None:
    """Raise MTScaffoldError if an id has different meanings in several data folders (``a:b:c``).

    Folders that mt-scaffold did not make are not checked.
    """
    folders = shards_of(data or "")
    if len(folders) > 1 and all((folder / DESCRIPTION).exists() for folder in folders):
        read_shards(data or "")


class ExperimentTask(FairseqTask):
    """A mix-in for a task of fairseq's whose configuration has the options of ``ExperimentConfig``.

    It warns of dropped sentences, counts the text that a training has seen and ends it at a limit, logs the loss per
    byte, and checks before the first update that enough checkpoints will be saved.
    """

    def _prepare(self) -> None:
        """Set up counting and the end of loading; call this at the end of ``__init__``."""
        self._training: CountedBatches | None = None
        self._loading: dict[str, EpochBatchIterator] = {}
        # This also runs when the process ends.
        weakref.finalize(self, end_all_loading, self._loading)
        # In a process that fairseq spawned, data-loading workers would be spawned too, copying everything.
        if multiprocessing.get_start_method(allow_none=True) not in (None, "fork"):
            multiprocessing.set_start_method("fork", force=True)

    def _counts(self, subset: str, dataset: Any) -> Counts:
        """Return the amounts that each sample of a data set adds to the counts."""
        raise NotImplementedError

    @returning_memory()
    def get_batch_iterator(self, dataset: FairseqDataset, *arguments: Any, **options: Any) -> EpochBatchIterator:
        """Return fairseq's iterator; the one over the training set counts, and is the last once a limit is reached."""
        subsets = [name for name, opened in self.datasets.items() if opened is dataset]
        training = self.cfg.train_subset in subsets
        # After the last epoch fairseq requests another, which it does not train on.
        over = 0 < self.cfg.max_epoch < options.get("epoch", 1)
        if training and self._training is not None and (over or self._training.used_up):
            self._training.finished = True
            return self._training
        _warn_of_lost_sentences(options.get("required_batch_size_multiple", 1))
        iterator = self._fairseq_iterator(dataset, *arguments, **options)
        in_training = [name for name in subsets if name in (self.cfg.train_subset, *self.cfg.valid_subset.split(","))]
        if in_training and not isinstance(iterator.collate_fn, BatchWithBytes):
            self._count(in_training[0], dataset, iterator, options)
        for name in subsets:
            end_loading(self._loading.get(name), iterator)
            self._loading[name] = iterator
        return iterator

    def _fairseq_iterator(self, dataset: FairseqDataset, *arguments: Any, **options: Any) -> EpochBatchIterator:
        return super().get_batch_iterator(dataset, *arguments, **options)

    def _count(self, subset: str, dataset: Any, iterator: EpochBatchIterator, options: dict[str, Any]) -> None:
        """Have the iterator record the bytes of each batch and, over the training set, count and check."""
        counts = self._counts(subset, dataset)
        if counts.text is not None:
            iterator.collate_fn = BatchWithBytes(iterator.collate_fn, counts.target_bytes)
        if subset != self.cfg.train_subset or isinstance(iterator, CountedBatches):
            return
        limits = (self.cfg.stop_tokens or math.inf, self.cfg.stop_text or math.inf)
        if self.cfg.stop_text and counts.text is None:
            raise UsageError(
                f"--stop-text: {self.cfg.data} does not say how many bytes its text has; make it with mt-scaffold"
            )
        if options.get("skip_remainder_batch") and min(limits) < math.inf:
            raise UsageError("--skip-remainder-batch: would drop the end of a training that --stop-* cuts; omit it")
        text = np.zeros(len(counts.tokens), np.int8) if counts.text is None else counts.text
        first = self._training is None
        make_stoppable()
        self._training = CountedBatches.count(
            iterator,
            (counts.tokens, text),
            limits,
            before=self._training,
            counted=COUNTED[:1] if counts.text is None else COUNTED,
            update_freq=self.cfg.update_freq,
            patience=self.cfg.patience,
            dictionaries=_digest([self.source_dictionary, self.target_dictionary]),
        )
        if first and self.cfg.average_last:
            self._check_averaging(self._training, known_text=counts.text is not None)

    def _check_averaging(self, batches: CountedBatches, known_text: bool) -> None:
        """Raise UsageError if the checkpoints to be averaged will not all be saved."""
        cfg = self.cfg
        names = ["max_epoch", "max_update", "stop_tokens", "stop_text", "save_interval", "save_interval_updates"]
        names += ["keep_last_epochs", "keep_interval_updates"]
        subwords, text = batches.in_an_epoch.tolist()
        updates = math.ceil(len(batches) / int(cfg.update_freq[-1]))
        check_checkpoints(
            {name.replace("_", "-"): value for name in names if (value := getattr(cfg, name))},
            Epoch(max(updates, 1), subwords, text if known_text else None),
            cfg.average_last,
            str(cfg.average_by),
        )

    def train_step(self, sample: Any, model: Any, criterion: Any, *arguments: Any, **options: Any) -> Any:
        """Train on a batch, as fairseq does, and log its loss per byte."""
        loss, sample_size, logged = super().train_step(sample, model, criterion, *arguments, **options)
        note_loss(sample, logged, criterion)
        return loss, sample_size, logged

    def valid_step(self, sample: Any, model: Any, criterion: Any) -> Any:
        """Validate on a batch, as fairseq does, and log its loss per byte."""
        loss, sample_size, logged = super().valid_step(sample, model, criterion)
        note_loss(sample, logged, criterion)
        return loss, sample_size, logged

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        """Log fairseq's metrics and the loss per byte of all processes."""
        super().reduce_metrics(logging_outputs, criterion)
        log_loss_per_byte(logging_outputs)


class ResumableTask(ExperimentTask):
    """A mix-in for a task whose batches are made once; an uninterrupted training is the same as fairseq's.

    fairseq decides once which samples of equal length share a batch, from the number of the epoch that it starts in.
    After a stop that number is different, and so is the rest of the training; here it is always 1. Options that
    rebuild the batches in every epoch (``--update-epoch-batch-itr``, ``--grouped-shuffling``) work as in fairseq.
    """

    def _fairseq_iterator(
        self, dataset: FairseqDataset, *arguments: Any, epoch: int = 1, **options: Any
    ) -> EpochBatchIterator:
        """Return fairseq's iterator, starting in ``epoch`` with the batches of epoch 1."""
        if options.get("update_epoch_batch_itr") or options.get("disable_iterator_cache"):
            return super()._fairseq_iterator(dataset, *arguments, epoch=epoch, **options)
        if self.cfg.update_ordered_indices_seed and dataset is self.datasets.get(self.cfg.train_subset):
            # Undo fairseq's addition of the epoch, which is the one that this run starts in.
            options["seed"] += 1 - epoch
        kept = dataset in self.dataset_to_epoch_iter
        iterator = super()._fairseq_iterator(dataset, *arguments, epoch=1, **options)
        if not kept:
            iterator.epoch = epoch
        return iterator
