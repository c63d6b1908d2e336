"""A translation model and the references of a test set → the loss split by word and token, by forced decoding."""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, read_file, refuse_overwriting, shown
from mt_scaffold.corpus.symbols import read_symbol
from mt_scaffold.corpus.text import check_parallel, lines_in, read_lines, words_of
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID, read_symbols
from mt_scaffold.experiment.binarise.pairs_as_ids import Binarised, read_binarised, task_arguments
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
from mt_scaffold.experiment.inference.language_model import batches, device_of
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.fairseq import user_dir
from mt_scaffold.experiment.runtime.provenance import digest_of
from mt_scaffold.experiment.runtime.results import write_result

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]
    Integers = NDArray[numpy.int64]


@dataclass(frozen=True)
class ForcedDecoding:
    """The references of a subset, in its order: the ids of each, ``</s>`` last, and log2 p of each of these tokens.

    too_long: the numbers, from 0, of the sentences with a side that is longer than the model takes, which have no ids
    here.
    """

    ids: list[Integers]
    log2_probabilities: list[Floats]
    too_long: list[int]


def forced_decode(
    checkpoint: PathLike, data: PathLike, subset: str, *, max_tokens: int = 2048, gpus: int = 0
) -> ForcedDecoding:
    """Return the probability of each token of each reference, given its source and the reference before it.

    checkpoint: a translation model that fairseq trained. data: a folder of ``binarise`` or ``binarise_words``; words
    are segmented without dropout. max_tokens: of the longer side of a batch, padding included. gpus: as for
    ``load_model`` of language models. fp16 and bf16 weights are converted to fp32.

    The probabilities are those of fairseq's ``SequenceScorer``, which ``fairseq-generate --score-reference`` prints
    with four digits. Raises MTScaffoldError if a file is missing, or if the checkpoint could run code or does not fit
    the data; UsageError for a subset that the folder does not have.
    """
    import numpy

    binarised = read_binarised(data)
    if subset not in binarised.pairs:
        raise UsageError(f"{data}: no subset called {subset}; choose one of {', '.join(binarised.pairs)}")
    if max_tokens < 1:
        raise UsageError(f"--max-tokens {max_tokens}: must be 1 or more")
    if not Path(checkpoint).is_file():
        raise MTScaffoldError(f"{checkpoint}: no such model; make it with mt-scaffold train or average")
    device = device_of(gpus)
    model, dataset = _load(checkpoint, data, binarised, subset)
    from fairseq.sequence_scorer import SequenceScorer

    model, scorer = model.float().to(device), SequenceScorer(dataset.tgt_dict)
    sentences = [dataset[number] for number in range(len(dataset))]
    lengths = [(len(each["source"]), len(each["target"])) for each in sentences]
    fitting = [
        number
        for number, sides in enumerate(lengths)
        if all(length <= most for length, most in zip(sides, model.max_positions(), strict=True))
    ]
    found: list[Floats] = [numpy.zeros(0)] * len(sentences)
    ids: list[Integers] = [numpy.zeros(0, numpy.int64)] * len(sentences)
    for batch in batches(fitting, lambda number: max(lengths[number]), max_tokens):
        sample = dataset.collater([sentences[number] for number in batch])
        sample["net_input"] = {name: value.to(device) for name, value in sample["net_input"].items()}
        sample["target"] = sample["target"].to(device)
        # The collater sorts by length.
        for number, (scored,) in zip(sample["id"].tolist(), scorer.generate([model], sample), strict=True):
            ids[number] = sentences[number]["target"].numpy().astype(numpy.int64)
            found[number] = scored["positional_scores"].double().cpu().numpy() / math.log(2)
    return ForcedDecoding(ids, found, [number for number in range(len(sentences)) if number not in {*fitting}])


def _load(checkpoint: PathLike, data: PathLike, binarised: Binarised, subset: str) -> tuple[Any, Any]:
    """Return the model, and the subset as a dataset of fairseq's."""
    load_checkpoint(checkpoint)
    # Silence fairseq's log, which would precede our output.
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    from fairseq import checkpoint_utils, options, tasks, utils
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    utils.import_user_module(argparse.Namespace(user_dir=str(user_dir())))
    arguments = [str(data), "--path", str(checkpoint), "--gen-subset", subset, *task_arguments(binarised, [])]
    arguments += ["--source-lang", binarised.source, "--target-lang", binarised.target]
    parsed = options.parse_args_and_arch(options.get_generation_parser(), arguments)
    task = tasks.setup_task(convert_namespace_to_omegaconf(parsed).task)
    try:
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
    except RuntimeError as error:
        if "size mismatch" in str(error):
            raise MTScaffoldError(
                f"{checkpoint}: its embeddings do not fit the dictionaries of {data}; give the data of its system"
            ) from error
        raise
    task.load_dataset(subset)
    return models[0], task.dataset(subset)


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

    A sentence that is longer than the model takes is left out, and counted.

    checkpoint, data, subset, gpus: as for ``forced_decode``. words: the words of the references. reference: their raw
    text; the loss is divided by its bytes without line ends. training_words: those of the training text in the same
    language, which determine the frequency of a word.

    Raises MTScaffoldError as ``forced_decode`` does, and if the files do not belong together.
    """
    import numpy

    refuse_overwriting([output], [checkpoint, words, reference, training_words])
    content = read_file(reference)
    lines, raw = read_lines(words), lines_in(content, shown(reference))
    check_parallel(words, len(lines), reference, len(raw))
    frequencies = WordFrequencies((word.encode(), count) for word, count in count_words(training_words).items())
    decoded = forced_decode(checkpoint, data, subset, gpus=gpus)
    own = [-each for each in decoded.log2_probabilities]
    found = [*_words(decoded, lines, data, words)]
    sizes = [len(line.encode()) for line in raw]
    too_long = decoded.too_long
    bits = numpy.concatenate(own)
    split = LossSplit(
        system=system,
        test_set=subset,
        seed=seed,
        synthetic=synthetic,
        unit="sentence",
        bits=float(bits.sum()),
        bytes=sum(size for number, size in enumerate(sizes) if number not in too_long),
        sizes=sizes,
        signature="forced decoding of the reference|end:yes",
        data_sha256=digest_of([content]),
        by_rank=split_by_word(own, found, frequencies.rank_class, [FREQUENT, OTHER]),
        by_count=split_by_word(own, found, frequencies.count_class, DECADES),
        tokens=split_by_token(numpy.concatenate(decoded.ids), bits),
        unknown=[number for number, ids in enumerate(decoded.ids) if UNKNOWN_ID in ids],
        too_long=too_long or None,
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
        if number - 1 in decoded.too_long:
            yield Words([], [], numpy.zeros(0, numpy.int64))
            continue
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
