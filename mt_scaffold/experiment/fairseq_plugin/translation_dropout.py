"""``--task translation_bpe_dropout``: training from words, segmented again in every epoch."""

import dataclasses
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks import register_task
from omegaconf import II

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.text import check_parallel
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import added_by
from mt_scaffold.experiment.binarise.pairs_as_ids import read_binarised
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile
from mt_scaffold.experiment.binarise.segmentation import CODES, Segmentation, joint_segmentation, stored_segmentation
from mt_scaffold.experiment.training.epoch_lengths import DrawnAhead
from mt_scaffold.segment.draw import NO_DRAW, RESAMPLINGS, Draw
from mt_scaffold.segment.segmenter import SentenceEncoder

from .segmented_pairs import SOURCE, TARGET, SegmentedPairs, SegmentedText, side_seed
from .translation import ExperimentTranslationConfig, ExperimentTranslationTask

logger = logging.getLogger(__name__)
_SIDES = {SOURCE: "src", TARGET: "tgt"}
# The amounts if no option is given.
_DEFAULTS = {"dropout": 0.1}


# fairseq derives options from Optional[X], not from X | None.
# ruff: noqa: UP045
@dataclass
class TranslationBPEDropoutConfig(ExperimentTranslationConfig):
    """The options of the task ``translation_resumable``, and those for segmenting."""

    bpe_codes: Optional[str] = field(
        default=None, metadata={"help": f"joint codes, bpe or scaffold (default: {CODES} in the data folder)"}
    )
    bpe_separator: Optional[str] = field(
        default=None, metadata={"help": "what every subword but a word's last ends in (default: as in the data folder)"}
    )
    bpe_dropout: Optional[float] = field(
        default=None,
        metadata={"help": "probability of skipping a merge in training; 0: always the same subwords (default: 0.1)"},
    )
    bpe_dropout_src: Optional[float] = field(default=None, metadata={"help": "the same, for the source side only"})
    bpe_dropout_tgt: Optional[float] = field(default=None, metadata={"help": "the same, for the target side only"})
    sampling_alpha: Optional[float] = field(
        default=None,
        metadata={
            "help": "Unigram: sample segmentations by their probability to this power; 0: take the best (default: 0)"
        },
    )
    seed: int = II("common.seed")
    num_workers: int = II("dataset.num_workers")


@register_task("translation_bpe_dropout", dataclass=TranslationBPEDropoutConfig)
class TranslationBPEDropoutTask(ExperimentTranslationTask):
    """Translation from a folder that ``mt-scaffold binarise-words`` made.

    The training set is segmented with dropout (Provilkov et al. 2020), or sampled from a Unigram model (Kudo 2018),
    differently in every epoch; validation and test sets are not resampled. Scaffold tokens are demolished after
    dropout, so that none reaches the model.
    """

    def __init__(self, cfg: TranslationBPEDropoutConfig, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self._encoders: tuple[SentenceEncoder, SentenceEncoder] | None = None
        self._ahead = DrawnAhead(self._draw_lengths)
        if cfg.load_alignments:
            raise UsageError("--load-alignments: not possible with dropout, which changes the subwords; omit it")

    def draw_of(self, side: int) -> Draw:
        """Return the resampling of the source (0) or target (1) side in training.

        Raises UsageError for a value out of range, and for an option that does not suit the segmentation.
        """
        method = self._segmentation(self._folder(1)).kind
        given = {"dropout": self._dropout(side), "sampling_alpha": ("sampling-alpha", self.cfg.sampling_alpha)}
        option, amount = given.pop(method.resampling)
        ((unsuitable, value),) = given.values()
        if value:
            has, own = ("codes", "bpe-dropout") if method.has_codes else (f"a {method.title} model", "sampling-alpha")
            raise UsageError(f"--{unsuitable}: the data folder has {has}; give --{own}")
        try:
            return Draw(
                method.resampling,
                _DEFAULTS.get(method.resampling, 0.0) if amount is None else float(amount),
                side_seed(self.cfg.seed, side),
            )
        except UsageError as error:
            raise UsageError(f"--{option}: {error}") from None

    def _dropout(self, side: int) -> tuple[str, float | None]:
        """Return the option that sets the dropout of a side, and its value."""
        own = getattr(self.cfg, f"bpe_dropout_{_SIDES[side]}")
        return ("bpe-dropout", self.cfg.bpe_dropout) if own is None else (f"bpe-dropout-{_SIDES[side]}", own)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Open a subset: map its files, and compute the lengths of its sentences in ``epoch``."""
        cfg = self.cfg
        # fairseq-generate and fairseq-validate, which can load the training set too, are the ones to pass task_cfg.
        training = split == cfg.train_subset and kwargs.get("task_cfg") is None
        if training and split in cfg.valid_subset.split(","):
            raise UsageError(
                f"--valid-subset {split}: the training set is segmented with dropout; validate on another subset"
            )
        folder = self._folder(epoch if training else 1)
        for side in (SOURCE, TARGET) if training else ():
            self._check_dictionary(folder, side)
        source, target = self._sides(folder, split, training)
        check_parallel(source.path, len(source), target.path, len(target))
        logger.info(f"{folder} {split} {cfg.source_lang}-{cfg.target_lang} {len(source)} examples, as words")
        self.datasets[split] = SegmentedPairs(
            source,
            self.src_dict,
            target,
            self.tgt_dict,
            seed=cfg.seed,
            epoch=epoch,
            lengths=self._ahead if training else None,
            last_epoch=cfg.max_epoch,
            buckets=cfg.num_batch_buckets,
            left_pad_source=cfg.left_pad_source,
            left_pad_target=cfg.left_pad_target,
            shuffle=split != "test",
            pad_to_multiple=cfg.required_seq_len_multiple,
        )

    def _sides(self, folder: Path, split: str, training: bool) -> tuple[SegmentedText, SegmentedText]:
        """Return both sides of a subset; the training set is resampled only in training."""
        cfg, encoders = self.cfg, self._encoders or self._make_encoders(self._folder(1))
        source, target = (
            SegmentedText(
                WordsFile(self._words_path(folder, split, side)),
                encoders[side],
                self.tgt_dict if side == TARGET else self.src_dict,
                draw=self.draw_of(side) if training else NO_DRAW,
                longest=cfg.max_source_positions if side == SOURCE and cfg.truncate_source else None,
                buckets=cfg.num_batch_buckets,
                left_pad=cfg.left_pad_source if side == SOURCE else cfg.left_pad_target,
                complete=training and self._complete(folder),
                threads=max(1, cfg.num_workers),
            )
            for side in (SOURCE, TARGET)
        )
        return source, target

    def _draw_lengths(self, epoch: int) -> Iterator[Any]:
        """Yield the lengths of the training set in ``epoch``, source before target."""
        for side in self._sides(self._folder(epoch), self.cfg.train_subset, training=True):
            yield from side.draw_lengths(epoch)

    def _folder(self, epoch: int) -> Path:
        """Return the data folder of an epoch; several are used in turn."""
        folders = utils.split_paths(self.cfg.data)
        return Path(folders[(epoch - 1) % len(folders)])

    def _complete(self, folder: Path) -> bool:
        """Return whether every subword of the training set has an id; a limited dictionary excludes some."""
        sides = read_binarised(folder).counts.get(self.cfg.train_subset, {}).values()
        return not any(side.unknown for side in sides)

    def _segmentation(self, folder: Path) -> Segmentation:
        segmentation = stored_segmentation(folder)
        if self.cfg.bpe_codes:
            segmentation = joint_segmentation(self.cfg.bpe_codes, segmentation.separator)
        if self.cfg.bpe_separator is not None:
            segmentation = dataclasses.replace(segmentation, separator=self.cfg.bpe_separator)
        return segmentation

    def _make_encoders(self, folder: Path) -> tuple[SentenceEncoder, SentenceEncoder]:
        """Return the encoders of source and target, one for both with a joint dictionary; keep them for all subsets."""
        segmenters = self._segmentation(folder).segmenters()
        source = segmenters[SOURCE].encoder(self.src_dict.indices, self.src_dict.unk())
        same = segmenters[SOURCE] is segmenters[TARGET] and self.src_dict == self.tgt_dict
        target = source if same else segmenters[TARGET].encoder(self.tgt_dict.indices, self.tgt_dict.unk())
        self._encoders = source, target
        return self._encoders

    def _check_dictionary(self, folder: Path, side: int) -> None:
        """Raise MTScaffoldError if a side's resampling makes subwords that have no id for a reason other than a limit.

        The folder's description has the kinds that do not; with another separator or codes this is computed here.
        """
        draw, language = self.draw_of(side), self._languages[side]
        if not draw:
            return
        if self.cfg.bpe_codes or self.cfg.bpe_separator is not None:
            segmenter = self._segmentation(folder).segmenters()[side]
            counts = count_words(self._words_path(folder, self.cfg.train_subset, side))
            covered = not added_by(draw, segmenter, counts, (self.src_dict, self.tgt_dict)[side].indices)
        else:
            known = (read_binarised(folder).resampling or {}).get(language, [])
            # A dropout of 1 makes only characters, which every other dropout also makes.
            covered = draw.reach in known or draw.reach.removesuffix("-1") in known
        if not covered:
            title = RESAMPLINGS[draw.kind]
            raise MTScaffoldError(
                f"{folder}: its dictionary of {language} lacks subwords that {title} makes of the training words and "
                "that would be <unk>; make folder and dictionary with mt-scaffold binarise-words and these codes"
            )

    @property
    def _languages(self) -> tuple[str, str]:
        return self.cfg.source_lang, self.cfg.target_lang

    def _words_path(self, folder: Path, split: str, side: int) -> Path:
        source, target = self.cfg.source_lang, self.cfg.target_lang
        language = target if side == TARGET else source
        # A folder serves both translation directions.
        paths = [folder / f"{split}.{pair}.{language}.words" for pair in (f"{source}-{target}", f"{target}-{source}")]
        for path in paths:
            if path.exists():
                return path
        raise MTScaffoldError(f"{paths[0]}: missing; make the folder with mt-scaffold binarise-words")
