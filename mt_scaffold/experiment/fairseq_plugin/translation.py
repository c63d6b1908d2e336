"""``--task translation_resumable``: fairseq's translation, going on after a stop exactly as if there had been none."""

import functools
import logging
from typing import Any

from fairseq.data import EpochBatchIterator, FairseqDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

logger = logging.getLogger(__name__)


@functools.cache
def _warn_of_lost_sentences(multiple: int) -> None:
    """fairseq itself says nothing of it."""
    if multiple > 1:
        logger.warning(
            f"--required-batch-size-multiple is {multiple}: fairseq leaves out the last batch of a data set, up to "
            f"{multiple - 1} sentences, unless it is a multiple; with 1 every sentence counts"
        )


class CarefulTranslationTask(TranslationTask):
    """fairseq's translation with the warning that it lacks; both tasks of this package are made of it."""

    def get_batch_iterator(self, *arguments: Any, **options: Any) -> EpochBatchIterator:
        """As in fairseq, with a warning where sentences will be left out."""
        _warn_of_lost_sentences(options.get("required_batch_size_multiple", 1))
        return super().get_batch_iterator(*arguments, **options)


@register_task("translation_resumable", dataclass=TranslationConfig)
class ResumableTranslationTask(CarefulTranslationTask):
    """The task ``translation``; a training that is never stopped is the same in both.

    Which sentences of equal length share a batch fairseq draws once, with the number of the epoch that it starts in: 1,
    or after a stop another one, and the rest of the training would be another. Here it is always 1. Options that have
    batches made anew in every epoch (``--update-epoch-batch-itr``, ``--grouped-shuffling``) work as in fairseq.
    """

    def get_batch_iterator(
        self, dataset: FairseqDataset, *arguments: Any, epoch: int = 1, **options: Any
    ) -> EpochBatchIterator:
        """As in fairseq; the iterator starts in ``epoch`` with the batches of epoch 1."""
        if options.get("update_epoch_batch_itr") or options.get("disable_iterator_cache"):
            return super().get_batch_iterator(dataset, *arguments, epoch=epoch, **options)
        kept = dataset in self.dataset_to_epoch_iter
        iterator = super().get_batch_iterator(dataset, *arguments, epoch=1, **options)
        if not kept:
            iterator.epoch = epoch
        return iterator
