"""``--task translation_resumable``: fairseq's translation, resuming exactly as if it had never been stopped."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.encoders import register_tokenizer
from fairseq.data.encoders.moses_tokenizer import MosesTokenizer, MosesTokenizerConfig
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from mt_scaffold.corpus.symbols import join_symbols
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION, read_binarised
from mt_scaffold.experiment.runtime.bleu import bleu_with

from .experiment_task import Counts, ExperimentConfig, ExperimentTask, ResumableTask, check_shards
from .text_bytes import sentence_bytes


@dataclass
class ExperimentTranslationConfig(ExperimentConfig, TranslationConfig):
    """The options of fairseq's task ``translation``, and those for the end of a training."""

    batch_by_source: bool = field(
        default=False,
        metadata={"help": "make batches by the lengths of the source only, equal ones in the order of the text"},
    )


class NamedSymbols(Dictionary):
    """fairseq's dictionary, joining subwords by their names, so that words ending in ``@@`` survive validation."""

    def string(self, tensor: Any, bpe_symbol: str | None = None, *others: Any, **named: Any) -> str:
        """Return the text of ids, as fairseq does."""
        if bpe_symbol != "subword_nmt":
            return str(super().string(tensor, bpe_symbol, *others, **named))
        return "\n".join(map(join_symbols, super().string(tensor, None, *others, **named).split("\n")))


class ExperimentTranslationTask(ExperimentTask, TranslationTask):
    """fairseq's translation, as the base of this package's two translation tasks."""

    cfg: ExperimentTranslationConfig

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Load a dictionary from a file."""
        return NamedSymbols.load(filename)

    def __init__(self, cfg: ExperimentTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        check_shards(cfg.data)
        self._prepare()

    def _counts(self, subset: str, dataset: Any) -> Counts:
        subwords = dataset.src_sizes if dataset.tgt_sizes is None else dataset.src_sizes + dataset.tgt_sizes
        sides = self._bytes_of_sides(subset, dataset)
        return Counts(subwords, None, None) if sides is None else Counts(subwords, sides[0] + sides[1], sides[1])

    def _bytes_of_sides(self, subset: str, dataset: Any) -> tuple[Any, Any] | None:
        """Return the bytes of each sentence's source and target; None if mt-scaffold did not make the data."""
        folders = utils.split_paths(self.cfg.data)
        if dataset.tgt is None or not (Path(folders[0]) / DESCRIPTION).exists():
            return None
        binarised = read_binarised(folders[0])
        totals: dict[str, int] = {}
        if len(folders) == 1 and binarised.pairs.get(subset) == len(dataset):
            totals = {language: counts.bytes for language, counts in binarised.counts[subset].items()}
        source, target = (
            sentence_bytes(text, dictionary, totals.get(language), binarised.separator, binarised.word_start)
            for text, dictionary, language in (
                (dataset.src, self.src_dict, self.cfg.source_lang),
                (dataset.tgt, self.tgt_dict, self.cfg.target_lang),
            )
        )
        return source, target


@register_task("translation_resumable", dataclass=ExperimentTranslationConfig)
class ResumableTranslationTask(ResumableTask, ExperimentTranslationTask):
    """The task ``translation``; an uninterrupted training is the same with both (``ResumableTask``)."""

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Open a subset as fairseq does; with ``--batch-by-source``, batches do not depend on the target's lengths."""
        super().load_dataset(split, epoch, combine, **kwargs)
        if self.cfg.batch_by_source:
            dataset = self.datasets[split]
            dataset.tgt_sizes, dataset.sizes, dataset.shuffle = None, dataset.src_sizes, False


@dataclass
class MosesBleuConfig(MosesTokenizerConfig):
    """The options in ``--eval-bleu-detok-args``: the languages, and sacreBLEU's name of a tokeniser."""

    bleu_tokeniser: str = field(default="13a", metadata={"help": "sacreBLEU's tokeniser"})


@register_tokenizer("moses_bleu", dataclass=MosesBleuConfig)
class MosesBleuTokenizer(MosesTokenizer):
    """Moses' detokeniser followed by sacreBLEU's tokeniser; ``--eval-tokenized-bleu`` does not tokenise again."""

    def __init__(self, cfg: MosesBleuConfig) -> None:
        super().__init__(cfg)
        self._tokenise = bleu_with("bleu", cfg.bleu_tokeniser).tokenizer

    def decode(self, x: str) -> str:
        """Return the words of a translation as BLEU counts them."""
        return str(self._tokenise(super().decode(x).rstrip()))
