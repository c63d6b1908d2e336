"""Codes, with the ids stored next to them → the files of programs other than tokenizers."""

from __future__ import annotations

from collections.abc import Callable

from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.files import PathLike, open_output, refuse_overwriting
from mt_scaffold.integrations.vocabularies import fastbpe, sentencepiece, tiktoken
from mt_scaffold.options import check_choice
from mt_scaffold.segment.numbering import Numbering, numbering_of

_WITH_IDS: dict[str, Callable[[Codes, Numbering | None], bytes]] = {
    "tiktoken": tiktoken.write,
    "sentencepiece": sentencepiece.write,
}
TARGETS = ("tokenizer.json", *_WITH_IDS, "fastbpe")


def export_codes(codes: CodesSource, outfile: PathLike, target: str) -> int:
    """Write codes as ``target``, any of TARGETS but the first; return the number of tokens, for fastBPE of merges.

    Raises MTScaffoldError, with the reason, if the format cannot express them exactly.
    """
    check_choice("target", target, TARGETS[1:])
    refuse_overwriting([outfile], [codes])
    read = Codes.of(codes)
    if target == "fastbpe":
        content = fastbpe.write(read)
        total = content.count(b"\n")
    else:
        numbering = numbering_of(read)
        content = _WITH_IDS[target](read, numbering)
        total = len(read.normal) + 256 if numbering is None else numbering.n_vocab
    with open_output(outfile) as stream:
        stream.write(content)
    return total
