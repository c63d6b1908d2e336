"""A translation model and the references of a test set → the loss split by word and token, by forced decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, refuse_overwriting
from mt_scaffold.corpus.symbols import read_symbol
from mt_scaffold.corpus.text import check_parallel, read_lines, words_of
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID, read_symbols
from mt_scaffold.experiment.binarise.pairs_as_ids import read_binarised
from mt_scaffold.experiment.evaluation.losses.loss_split import (
    ACROSS_WORDS,
    DECADES,
    END_OF_TEXT,
    FREQUENT,
    OTHER,
    LossSplit,
    WordFrequencies,
    Words,
    split_by_token,
    split_by_word,
)
from mt_scaffold.experiment.inference.forced_decoding import ForcedDecoding, forced_decode
from mt_scaffold.experiment.runtime.provenance import sha256
from mt_scaffold.experiment.runtime.results import write_result


def reference_losses(
    checkpoint: PathLike,
    data: PathLike,
    subset: str,
    words: PathLike,
    reference: PathLike,
    training_words: PathLike,
    output: PathLike,
    *,
    system: str,
    seed: int,
    synthetic: bool = False,
    gpus: int = 0,
) -> LossSplit:
    """Split the loss of a model on the references of a test set; write it as JSON to ``output``.

    checkpoint, data, subset, gpus: as for ``forced_decode``. words: the words of the references. reference: their raw
    text; the loss is divided by its bytes without line ends. training_words: those of the training text in the same
    language, which determine the frequency of a word.

    Raises MTScaffoldError as ``forced_decode`` does, and if the files do not belong together.
    """
    import numpy

    refuse_overwriting([output], [checkpoint, words, reference, training_words])
    lines, raw = read_lines(words), read_lines(reference)
    check_parallel(words, len(lines), reference, len(raw))
    frequencies = WordFrequencies((word.encode(), count) for word, count in count_words(training_words).items())
    decoded = forced_decode(checkpoint, data, subset, gpus=gpus)
    own = [-each for each in decoded.log2_probabilities]
    found = [*_words(decoded, lines, data, words)]
    sizes = [len(line.encode()) for line in raw]
    bits = numpy.concatenate(own)
    split = LossSplit(
        system=system,
        test_set=subset,
        seed=seed,
        synthetic=synthetic,
        unit="sentence",
        bits=float(bits.sum()),
        bytes=sum(sizes),
        sizes=sizes,
        signature="forced decoding of the reference|end:yes",
        data_sha256=sha256(reference),
        by_rank=split_by_word(own, found, frequencies.rank_class, [FREQUENT, OTHER]),
        by_count=split_by_word(own, found, frequencies.count_class, DECADES),
        tokens=split_by_token(numpy.concatenate(decoded.ids), bits),
        unknown=[number for number, ids in enumerate(decoded.ids) if UNKNOWN_ID in ids],
    )
    write_result(output, split)
    return split


def _words(decoded: ForcedDecoding, lines: Sequence[str], data: PathLike, words: PathLike) -> Iterator[Words]:
    """Yield the words of each reference, with the word that each subword belongs to.

    ``<unk>`` does not show whether a word ends there: if the words do not add up, all subwords count as across words.
    """
    import numpy

    binarised = read_binarised(data)
    symbols = read_symbols(f"{data}/dict.{binarised.target}.txt")
    # Whether a symbol ends a word; or, if the data mark the starts of words instead, whether it begins one.
    start = binarised.word_start
    ends: Any = numpy.array([start is None and not read_symbol(symbol, binarised.separator)[1] for symbol in symbols])
    begins: Any = numpy.array([start is not None and symbol.startswith(start) for symbol in symbols])
    if len(decoded.ids) != len(lines):
        raise MTScaffoldError(
            f"{words}: {len(lines)} lines, but {len(decoded.ids)} sentences in {data}; binarise again"
        )
    for number, (ids, line) in enumerate(zip(decoded.ids, lines, strict=True), 1):
        inside = ids[:-1] if ids[-1] == END_ID else ids
        if start is None:
            place = numpy.concatenate([[0], numpy.cumsum(ends[inside])])[: len(inside)]
        else:
            place = numpy.maximum(numpy.cumsum(begins[inside]) - 1, 0)
        texts = [word.encode() for word in words_of(line)]
        binarised_words = int(place[-1]) + 1 if len(inside) else 0
        if binarised_words != len(texts):
            if UNKNOWN_ID not in ids:
                raise MTScaffoldError(
                    f"{words}: line {number} has {len(texts)} words, but {binarised_words} in {data}; binarise again"
                )
            place[:] = ACROSS_WORDS
        of_token = numpy.full(len(ids), END_OF_TEXT, numpy.int64)
        of_token[: len(inside)] = place
        yield Words(texts, [len(text) for text in texts], of_token)
