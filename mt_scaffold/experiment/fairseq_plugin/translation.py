"""``--task translation_resumable``: fairseq's translation, which resumes exactly as if it had never been stopped."""

import functools
import logging
from typing import Any

from fairseq.data import EpochBatchIterator, FairseqDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

logger = logging.getLogger(__name__)


@functools.cache
def _warn_of_lost_sentences(multiple: int) -> None:
    """Warn, once, of sentences that fairseq drops without a message."""
    if multiple > 1:
        logger.warning(
            f"--required-batch-size-multiple {multiple}: fairseq drops the last batch of a data set, up to "
            f"{multiple - 1} sentences, unless it is a multiple; use 1 to keep every sentence"
        )


class CarefulTranslationTask(TranslationTask):
    """fairseq's translation with a warning about dropped sentences; the base of both tasks of this package."""

    def get_batch_iterator(self, *arguments: Any, **options: Any) -> EpochBatchIterator:
        """Return fairseq's iterator, with a warning where sentences will be dropped."""
        _warn_of_lost_sentences(options.get("required_batch_size_multiple", 1))
        return super().get_batch_iterator(*arguments, **options)


@register_task("translation_resumable", dataclass=TranslationConfig)
class ResumableTranslationTask(CarefulTranslationTask):
    """The task ``translation``; a training that is never stopped is the same in both.

    fairseq decides once which sentences of equal length share a batch, from the number of the epoch that it starts in.
    After a stop that number is another one, and so is the rest of the training; here it is always 1. Options that
    rebuild the batches in every epoch (``--update-epoch-batch-itr``, ``--grouped-shuffling``) work as in fairseq.
    """

    def get_batch_iterator(
        self, dataset: FairseqDataset, *arguments: Any, epoch: int = 1, **options: Any
    ) -> EpochBatchIterator:
        """Return fairseq's iterator, which starts in ``epoch`` with the batches of epoch 1."""
        if options.get("update_epoch_batch_itr") or options.get("disable_iterator_cache"):
            return super().get_batch_iterator(dataset, *arguments, epoch=epoch, **options)
        kept = dataset in self.dataset_to_epoch_iter
        iterator = super().get_batch_iterator(dataset, *arguments, epoch=1, **options)
        if not kept:
            iterator.epoch = epoch
        return iterator
