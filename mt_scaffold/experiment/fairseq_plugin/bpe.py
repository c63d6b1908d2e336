"""``--bpe scaffold_bpe``: words to subwords and back, for fairseq-interactive, -generate and the hub interface."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq import file_utils
from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass

from mt_scaffold.corpus.symbols import join_symbols
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation


# fairseq derives options from Optional[X], not from X | None.
# ruff: noqa: UP045
@dataclass
class ScaffoldBPEConfig(FairseqDataclass):
    """The options of ``--bpe scaffold_bpe``."""

    bpe_codes: Optional[str] = field(default=None, metadata={"help": "codes file of mt-scaffold or subword-nmt"})
    bpe_separator: str = field(default=SEPARATOR, metadata={"help": "what every subword but a word's last ends in"})


@register_bpe("scaffold_bpe", dataclass=ScaffoldBPEConfig)
class ScaffoldBPE:
    """Segments with codes, with or without scaffold tokens."""

    def __init__(self, cfg: ScaffoldBPEConfig) -> None:
        if not cfg.bpe_codes:
            raise UsageError("--bpe scaffold_bpe needs --bpe-codes FILE")
        self._separator = cfg.bpe_separator
        self._segmentation = joint_segmentation(file_utils.cached_path(cfg.bpe_codes), cfg.bpe_separator)
        self._segmenter, _ = self._segmentation.segmenters()

    def know(self, dictionary: Any) -> None:
        """Split subwords further that are not in the dictionary of the source, which would become <unk>."""
        self._segmenter = self._segmentation.knowing(dictionary.symbols)

    def encode(self, x: str) -> str:
        """Segment a line of words into subwords, both separated by spaces."""
        return self._segmenter.segment(x)

    def decode(self, x: str) -> str:
        """Join the subwords of a line into words."""
        return join_symbols(x, self._separator)


def of_task(original: Callable[..., Any], task: Any, options: Any) -> Any:
    """Build the ``--bpe`` of fairseq-interactive and -generate, ours with the dictionary of the task."""
    bpe = original(task, options)
    if isinstance(bpe, ScaffoldBPE):
        bpe.know(task.source_dictionary)
    return bpe


def of_hub(original: Callable[..., Any], interface: Any, *arguments: Any, **named: Any) -> None:
    """Do the same for the hub interface, which builds its own."""
    original(interface, *arguments, **named)
    if isinstance(interface.bpe, ScaffoldBPE):
        interface.bpe.know(interface.src_dict)
