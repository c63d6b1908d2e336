"""``--task language_modeling_resumable``: fairseq's language_modeling, resuming exactly and counting bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fairseq import utils
from fairseq.data import TokenBlockDataset
from fairseq.data.indexed_dataset import MMapIndexedDataset
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import codes_of, read_documents_folder
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION

from .experiment_task import Counts, ExperimentConfig, ResumableTask, check_shards

# The key, in the task's state that fairseq saves, of the vocabulary that a model was trained with.
VOCABULARY = "vocabulary"
_IDS_AT_ONCE = 1 << 24


@dataclass
class ExperimentLanguageModelingConfig(ExperimentConfig, LanguageModelingConfig):
    """The options of fairseq's task ``language_modeling``, and those for the end of a training."""


@register_task("language_modeling_resumable", dataclass=ExperimentLanguageModelingConfig)
class ResumableLanguageModelingTask(ResumableTask, LanguageModelingTask):
    """The task ``language_modeling``; an uninterrupted training is the same with both (``ResumableTask``).

    It counts the predicted tokens, and text in bytes of the raw documents. Checkpoints hold the digest of the
    vocabulary, so that a model is not evaluated with another of the same size.
    """

    def __init__(self, args: Any, dictionary: Any, output_dictionary: Any = None, targets: Any = None) -> None:
        for name in ("add_bos_token", "self_target", "past_target"):
            if getattr(args, name, False):
                raise UsageError(f"--{name.replace('_', '-')}: models are scored as though trained without; omit it")
        if getattr(args, "output_dictionary_size", -1) >= 0:
            raise UsageError("--output-dictionary-size: some tokens would have no probability; omit it")
        super().__init__(args, dictionary, output_dictionary, targets)
        # fairseq's task has them as self.args.
        self.cfg = args
        check_shards(args.data)
        self._prepare()
        self._folders: dict[str, Path] = {}
        self._token_bytes: Any = None
        if args.data and (first := self._folder(1)) and (first / DESCRIPTION).exists():
            self.state.merge_state_dict({VOCABULARY: read_documents_folder(first).vocabulary})

    def _folder(self, epoch: int) -> Path:
        """Return the data folder of an epoch; several are used in turn."""
        folders = utils.split_paths(self.cfg.data)
        return Path(folders[(epoch - 1) % len(folders)])

    def _check_break_mode(self) -> None:
        """Raise UsageError for a --sample-break-mode that fairseq cannot use with this NumPy."""
        if self.cfg.sample_break_mode == "eos" and not hasattr(np, "compat"):
            raise UsageError(
                "--sample-break-mode eos: fairseq's code for it needs NumPy 1; use none, complete or complete_doc"
            )

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Open a split, as fairseq does."""
        self._check_break_mode()
        super().load_dataset(split, epoch, combine, **kwargs)
        self._folders[split] = self._folder(epoch)
        self._check_sizes(split, self.datasets[split].dataset)

    def _check_sizes(self, split: str, blocks: Any) -> None:
        """Raise MTScaffoldError if fairseq would leave out a long document, or store its length with an overflow."""
        if isinstance(blocks, TokenBlockDataset) and self.cfg.sample_break_mode in ("complete", "complete_doc"):
            too_long = blocks.sizes[blocks.sizes > self.cfg.tokens_per_sample].astype(np.int64)
            if len(too_long):
                raise MTScaffoldError(
                    f"{self._folders[split]}: {split}: {len(too_long):,} documents have more than "
                    f"{self.cfg.tokens_per_sample} tokens, and --sample-break-mode {self.cfg.sample_break_mode} leaves "
                    f"them out ({int(too_long.sum()):,} of {int(blocks.sizes.sum(dtype=np.int64)):,} tokens); use none"
                )
        if isinstance(blocks, TokenBlockDataset) and blocks.sizes.dtype == np.uint16:
            longest = int((blocks.slice_indices[:, 1].astype(np.int64) - blocks.slice_indices[:, 0]).max())
            if longest > np.iinfo(np.uint16).max:
                raise MTScaffoldError(
                    f"{self._folders[split]}: {split}: a document of {longest} tokens, too long for one block; use "
                    "--sample-break-mode none"
                )

    def _counts(self, subset: str, dataset: Any) -> Counts:
        folder, blocks = self._folders[subset], dataset.dataset
        if not isinstance(blocks, TokenBlockDataset) or not (folder / DESCRIPTION).exists():
            return Counts(dataset.sizes, None, None)
        found = self._ids(blocks)
        if found is None:
            return Counts(dataset.sizes, None, None)
        if self._token_bytes is None:
            self._token_bytes = Vocabulary(codes_of(self._folder(1))).token_bytes(len(self.dictionary))
        text = block_bytes(blocks, found, self._token_bytes)
        return Counts(dataset.sizes, text, text)

    def _ids(self, blocks: TokenBlockDataset) -> Any:
        """Return all ids of a data set; None if they are not in one file."""
        documents = blocks.dataset
        if not isinstance(documents, MMapIndexedDataset):
            return None
        return np.frombuffer(documents._bin_buffer, dtype=documents._index.dtype)


def block_bytes(blocks: TokenBlockDataset, ids: Any, token_bytes: Any) -> Any:
    """Return the number of bytes of the raw documents in each block (int64).

    ids: those of all documents in one array, which the blocks divide. token_bytes: by id.
    """
    slices = blocks.slice_indices.astype(np.int64)
    begins, ends = _bytes_before([slices[:, 0], slices[:, 1]], ids, token_bytes)
    return ends - begins


def _bytes_before(positions: Sequence[Any], ids: Any, token_bytes: Any) -> list[Any]:
    """Return the bytes of the tokens before each position, for several arrays of ascending positions, in one pass."""
    found = [np.zeros(len(array), np.int64) for array in positions]
    firsts = [0] * len(positions)
    total = 0
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        sums = np.cumsum(token_bytes[ids[begin : begin + _IDS_AT_ONCE]])
        for number, array in enumerate(positions):
            first, last = firsts[number], int(np.searchsorted(array, begin + len(sums), side="right"))
            inside = array[first:last] - begin
            found[number][first:last] = total + np.where(inside > 0, sums[np.maximum(inside, 1) - 1], 0)
            firsts[number] = last
        total += int(sums[-1])
    return found
