"""``--eval-bleu-detok moses_bleu``: BLEU of the validation set with another of sacreBLEU's tokenisers than 13a."""

from dataclasses import dataclass, field

from fairseq.data.encoders import register_tokenizer
from fairseq.data.encoders.moses_tokenizer import MosesTokenizer, MosesTokenizerConfig

from mt_scaffold.experiment.runtime.bleu import bleu_with


@dataclass
class MosesBleuConfig(MosesTokenizerConfig):
    """What ``--eval-bleu-detok-args`` gives: the languages, and sacreBLEU's name of a tokeniser."""

    bleu_tokeniser: str = field(default="13a", metadata={"help": "sacreBLEU's tokeniser"})


@register_tokenizer("moses_bleu", dataclass=MosesBleuConfig)
class MosesBleuTokenizer(MosesTokenizer):
    """Moses' detokeniser, whose text sacreBLEU's tokeniser splits; ``--eval-tokenized-bleu`` takes it as it is."""

    def __init__(self, cfg: MosesBleuConfig) -> None:
        super().__init__(cfg)
        self._tokenise = bleu_with("bleu", cfg.bleu_tokeniser).tokenizer

    def decode(self, x: str) -> str:
        """Return the words of a translation that BLEU counts."""
        return str(self._tokenise(super().decode(x).rstrip()))
