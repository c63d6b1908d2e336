"""``--task language_modeling_bpe_dropout``: a language model's training text, segmented again in every epoch."""

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, MonolingualDataset, TokenBlockDataset, data_utils
from fairseq.tasks import register_task
from omegaconf import II

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.training.epoch_ids import EpochIds, IdsSample
from mt_scaffold.experiment.training.epoch_sample import SharedSamples
from mt_scaffold.options import check_dropout

from .language_modeling import ExperimentLanguageModelingConfig, ExperimentLanguageModelingTask

logger = logging.getLogger(__name__)


@dataclass
class LanguageModelingBPEDropoutConfig(ExperimentLanguageModelingConfig):
    """The options of the task ``language_modeling_resumable``, and those for segmenting."""

    bpe_dropout: float = field(
        default=0.1, metadata={"help": "probability of skipping a merge in training; 0: always the same tokens"}
    )
    num_workers: int = II("dataset.num_workers")
    save_dir: str = II("checkpoint.save_dir")


@register_task("language_modeling_bpe_dropout", dataclass=LanguageModelingBPEDropoutConfig)
class LanguageModelingBPEDropoutTask(ExperimentLanguageModelingTask):
    """Language modelling from a folder that ``mt-scaffold binarise-documents --words`` made.

    The training split is segmented with dropout (Provilkov et al. 2020), differently in every epoch; the others are
    ids, segmented without. Scaffold tokens are demolished after dropout, so that none reaches the model.
    """

    def __init__(self, args: Any, dictionary: Any, output_dictionary: Any = None, targets: Any = None) -> None:
        super().__init__(args, dictionary, output_dictionary, targets)
        self._shared: SharedSamples | None = None

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Open a split: for training, the text as it is segmented in ``epoch``."""
        cfg = self.cfg
        # fairseq-validate can load the training split too; only it passes task_cfg.
        if split != cfg.train_subset or kwargs.get("task_cfg") is not None:
            super().load_dataset(split, epoch, combine, **kwargs)
            return
        try:
            check_dropout(float(cfg.bpe_dropout))
        except UsageError as error:
            raise UsageError(f"--bpe-dropout: {error}") from None
        if split in cfg.valid_subset.split(","):
            raise UsageError(
                f"--valid-subset {split}: the training split is segmented with dropout; validate on another"
            )
        if cfg.shorten_method != "none":
            raise UsageError(f"--shorten-method {cfg.shorten_method}: not possible with dropout; omit it")
        self._check_break_mode()
        self._folders[split] = self._folder(epoch)
        self._shared = self._shared or SharedSamples(self._sample_of, str(Path(cfg.save_dir).absolute()))
        load = functools.partial(self._shared.load, otherwise=lambda epoch: self._sample_of(epoch).here())
        self.datasets[split] = SegmentedBlocks(
            load,
            self._draw_ahead,
            functools.partial(self._blocks, split),
            self.dictionary,
            seed=cfg.seed,
            epoch=epoch,
            tgt_vocab=self.output_dictionary,
            add_eos_for_other_targets=cfg.sample_break_mode != "none",
            targets=self.targets,
            add_bos_token=cfg.add_bos_token,
            fixed_pad_length=cfg.tokens_per_sample if cfg.pad_to_fixed_length else None,
            pad_to_bsz=cfg.batch_size if cfg.pad_to_fixed_bsz else None,
        )

    def _sample_of(self, epoch: int) -> IdsSample:
        """Return what the ids of the training split in ``epoch`` depend on."""
        cfg, folder = self.cfg, self._folder(epoch)
        if not (folder / f"{cfg.train_subset}.text").exists():
            raise MTScaffoldError(
                f"{folder}: holds no text of the training split; make it with mt-scaffold binarise-documents --words"
            )
        return IdsSample(
            str(folder.absolute()),
            cfg.train_subset,
            float(cfg.bpe_dropout),
            cfg.seed,
            # Without dropout, all epochs are the same.
            epoch if cfg.bpe_dropout else self._folder_number(epoch),
            len(self.dictionary),
            max(1, cfg.num_workers),
        )

    def _draw_ahead(self, epoch: int) -> None:
        if self._shared is not None and not 0 < self.cfg.max_epoch < epoch:
            self._shared.draw_ahead(epoch)

    def _blocks(self, split: str, drawn: EpochIds) -> TokenBlockDataset:
        cfg, documents = self.cfg, DrawnDocuments(drawn)
        blocks = TokenBlockDataset(
            documents,
            documents.sizes,
            cfg.tokens_per_sample,
            pad=self.dictionary.pad(),
            eos=self.dictionary.eos(),
            break_mode=cfg.sample_break_mode,
            include_targets=True,
        )
        self._check_sizes(split, blocks)
        return blocks

    def _ids(self, blocks: TokenBlockDataset) -> tuple[Any, Any] | None:
        documents = blocks.dataset
        return documents.drawn if isinstance(documents, DrawnDocuments) else super()._ids(blocks)


class DrawnDocuments(FairseqDataset):
    """The documents of one epoch, as ids."""

    def __init__(self, drawn: EpochIds) -> None:
        self.drawn = drawn
        self.sizes = np.diff(drawn.offsets)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> torch.Tensor:
        begin, end = self.drawn.offsets[index : index + 2]
        return torch.from_numpy(self.drawn.ids[begin:end].astype(np.int64))


class SegmentedBlocks(MonolingualDataset):
    """Blocks of a text that has other tokens in every epoch.

    ``seed`` alone decides in which order blocks of equal length go into batches, as in an uninterrupted training of
    fairseq's own task: without dropout the batches are identical. load: returns the ids of an epoch. ahead: is told the
    next one. blocks: divides ids.
    """

    def __init__(
        self,
        load: Callable[[int], EpochIds],
        ahead: Callable[[int], None],
        blocks: Callable[[EpochIds], TokenBlockDataset],
        dictionary: Dictionary,
        *,
        seed: int,
        epoch: int,
        **options: Any,
    ) -> None:
        self._load_ids, self._ahead, self._divide, self._seed = load, ahead, blocks, seed
        divided = self._load(epoch)
        super().__init__(divided, divided.sizes, dictionary, shuffle=True, **options)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Whether fairseq may keep the batches of the first epoch."""
        return False

    def set_epoch(self, epoch: int) -> None:
        """Load the text as it is segmented in ``epoch``."""
        if epoch != self._epoch:
            self.dataset = self._load(epoch)
            self.sizes = np.array(self.dataset.sizes)

    def _load(self, epoch: int) -> TokenBlockDataset:
        """Wait for the ids of ``epoch``, and have those of the next drawn."""
        start = time.perf_counter()
        blocks = self._divide(self._load_ids(epoch))
        self._epoch = epoch
        logger.info(f"epoch {epoch}: waited {time.perf_counter() - start:.2f} s for its ids")
        self._ahead(epoch + 1)
        return blocks

    def ordered_indices(self) -> Any:
        """Return all block numbers, shuffled with the seed, then sorted by their lengths in this epoch."""
        with data_utils.numpy_seed(self._seed + 1):
            return super().ordered_indices()
