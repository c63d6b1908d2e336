"""Translation with CTranslate2 as fairseq-generate does it: the same options, and hypotheses in its format."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mt_scaffold.corpus.storage.parts import part_folder
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.binarised_format import read_sentences
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID, read_ids
from mt_scaffold.experiment.binarise.pairs_as_ids import Binarised
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile
from mt_scaffold.experiment.binarise.segmentation import stored_segmentation
from mt_scaffold.experiment.configuration.limits import SPECIAL_SYMBOLS
from mt_scaffold.experiment.inference.beam_search import (
    BATCH_TOKENS,
    FLAGS_WITHOUT_EFFECT,
    VALUES_WITHOUT_EFFECT,
    BeamSearch,
)
from mt_scaffold.experiment.inference.export_ctranslate2 import check_installed, write_model
from mt_scaffold.experiment.inference.model_files import TranslationModel

_BEGIN, _PADDING, _END = "<s>", "<pad>", SPECIAL_SYMBOLS[END_ID]
# A length penalty of exactly 0 would make CTranslate2 stop at other times than fairseq.
_NO_PENALTY = 1e-9


@dataclass(frozen=True)
class Hypothesis:
    """The best translation of a sentence: its subwords, and fairseq's score (the mean log-probability, in bits)."""

    subwords: list[str]
    score: float


@dataclass(frozen=True)
class EngineReport:
    """The engine that translated a test set.

    compute_type: the numeric type of the computation. convert_seconds, translate_seconds: wall-clock time, without the
    start of the program.
    """

    engine: str
    version: str
    quantization: str | None
    compute_type: str
    device: str
    threads: int
    convert_seconds: float
    translate_seconds: float


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"engine ctranslate2: {message}; remove it, or translate with the engine fairseq")


def parse_search(options: Sequence[str]) -> BeamSearch:
    """Return the search that options of fairseq-generate describe (``["--beam", "4"]``).

    Raises UsageError for an option that CTranslate2 does not support.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name, kind in (("beam", int), ("lenpen", float), ("max-len-a", float), ("max-len-b", int), ("min-len", int)):
        _add(parser, [name], kind)
    _add(parser, ["max-tokens"], int)
    _add(parser, ["batch-size", "max-sentences"], int)
    parser.add_argument("--unnormalized", action="store_true", default=argparse.SUPPRESS)
    for name in VALUES_WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", dest="ignored", default=argparse.SUPPRESS)
    for name in FLAGS_WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", action="store_true", dest="ignored", default=argparse.SUPPRESS)
    given = vars(parser.parse_args([_with_dashes(option) for option in options]))
    given.pop("ignored", None)
    search = BeamSearch(**given)
    for name, least in (("beam", 1), ("max_len_b", 0), ("min_len", 0), ("max_tokens", 1), ("batch_size", 1)):
        if (value := getattr(search, name)) is not None and value < least:
            raise UsageError(f"engine ctranslate2: --{name.replace('_', '-')} must be {least} or more, not {value}")
    return search


def _add(parser: argparse.ArgumentParser, names: Sequence[str], kind: Any) -> None:
    spelled = [f"--{name}" for name in names]
    parser.add_argument(*spelled, type=kind, default=argparse.SUPPRESS, dest=names[0].replace("-", "_"))


def _with_dashes(option: str) -> str:
    """Return an option as fairseq documents it; fairseq also accepts underscores."""
    name, equals, value = option.partition("=")
    return name.replace("_", "-") + equals + value if option.startswith("--") else option


def read_source(data: Path, binarised: Binarised, subset: str) -> list[list[int]]:
    """Return the ids of the source sentences of a subset, without ``</s>``; words are segmented, without dropout."""
    path = data / f"{subset}.{binarised.source}-{binarised.target}.{binarised.source}"
    if binarised.storage != "words":
        return read_sentences(path)
    import numpy

    words = WordsFile(f"{path}.words")
    bpe, _ = stored_segmentation(data).segmenters()
    encoder = bpe.encoder(read_ids(data / f"dict.{binarised.source}.txt"), UNKNOWN_ID)
    found, offsets = (numpy.asarray(buffer).tolist() for buffer in encoder.ids_of(words.lines(range(len(words)))))
    return [found[begin:end] for begin, end in itertools.pairwise(offsets)]


def translate_sentences(
    model: TranslationModel,
    sentences: Sequence[Sequence[int]],
    search: BeamSearch,
    folder: Path,
    quantization: str | None = None,
    gpus: int = 0,
    threads: int = 1,
) -> tuple[list[Hypothesis], EngineReport]:
    """Return the best translation of each sentence, and a report on the engine.

    sentences: source ids, without ``</s>``. folder: for the converted model while it is loaded. gpus: 1 requires a GPU;
    with 0, one is used if CTranslate2 finds one. threads: batches that are translated at a time on a CPU.

    CTranslate2 gives an empty sentence an empty translation without computing it.

    Raises MTScaffoldError if the model cannot be converted, if a sentence is longer than it takes, or if a GPU is
    requested but there is none; UsageError if the options leave a sentence no possible length.
    """
    check_installed()
    import ctranslate2

    on_gpu = ctranslate2.get_cuda_device_count() > 0
    if gpus and not on_gpu:
        raise MTScaffoldError(f"--gpus {gpus}: CTranslate2 finds no GPU on this machine; translate with --gpus 0")
    limits = _limits(model, sentences, search)
    sources = [[model.symbols[0][each] for each in sentence] for sentence in sentences]
    begin = time.perf_counter()
    with part_folder(os.path.join(folder, "ctranslate2")) as converted:
        write_model(model, Path(converted), quantization)
        place = {"device": "cuda"} if on_gpu else {"inter_threads": threads, "intra_threads": 1}
        translator = ctranslate2.Translator(converted, **place)
    loaded = time.perf_counter()
    found: dict[int, Hypothesis] = {}
    # A call has one maximum length for all its sentences.
    for limit in sorted(set(limits)):
        numbers = [number for number, own in enumerate(limits) if own == limit]
        chosen = [sources[number] for number in numbers]
        found |= zip(numbers, _translate(translator, chosen, search, limit, len(model.symbols[1])), strict=True)
    report = EngineReport(
        "ctranslate2",
        ctranslate2.__version__,
        quantization,
        translator.compute_type,
        translator.device,
        threads,
        round(loaded - begin, 3),
        round(time.perf_counter() - loaded, 3),
    )
    return [found[number] for number in range(len(sentences))], report


def _limits(model: TranslationModel, sentences: Sequence[Sequence[int]], search: BeamSearch) -> list[int]:
    """Return the greatest number of subwords that the translation of each sentence may have."""
    positions = {side: model.positions(side) for side in ("source", "target")}
    limits = []
    for number, sentence in enumerate(sentences, 1):
        length = len(sentence) + 1
        if length > positions["source"]:
            raise model.error(
                f"sentence {number} has {length} subwords, the model takes {positions['source']}; split the sentence"
            )
        limits.append(min(int(search.max_len_a * length + search.max_len_b), positions["target"] - 1))
        if limits[-1] < max(1, search.min_len):
            raise UsageError(
                f"engine ctranslate2: sentence {number} may have at most {limits[-1]} subwords (--max-len-a, "
                f"--max-len-b) and at least {search.min_len} (--min-len); correct the options"
            )
    return limits


def _translate(
    translator: Any, sources: Sequence[list[str]], search: BeamSearch, limit: int, symbols: int
) -> list[Hypothesis]:
    """Return the best translation of each sentence, of at most ``limit`` subwords. symbols: of the target."""
    # fairseq never selects padding.
    beam = min(search.beam, symbols - 1)
    arguments: dict[str, Any] = {
        "max_batch_size": search.batch_size or search.max_tokens or BATCH_TOKENS,
        "batch_type": "examples" if search.batch_size else "tokens",
        "beam_size": beam,
        "suppress_sequences": [[_PADDING]],
        "length_penalty": _NO_PENALTY if search.unnormalized else search.lenpen or _NO_PENALTY,
        "min_decoding_length": search.min_len,
        "max_input_length": 0,
        "return_scores": True,
        "return_end_token": True,
    }
    # Here the limit counts the end token.
    results = translator.translate_batch(sources, max_decoding_length=limit + 1, num_hypotheses=beam, **arguments)
    found = [_best(zip(result.hypotheses, result.scores, strict=True)) for result in results]
    at_limit = [number for number, result in enumerate(results) if any(len(each) > limit for each in result.hypotheses)]
    if at_limit:
        # The most hypotheses that there can be, finished or not.
        arguments |= {"num_hypotheses": 1 if beam == 1 else 2 * beam, "patience": 2}
        chosen = [sources[number] for number in at_limit]
        cut = translator.translate_batch(chosen, max_decoding_length=limit, **arguments)
        for number, result in zip(at_limit, cut, strict=True):
            found[number] = _best(_ended(translator, sources[number], result, limit, arguments["length_penalty"]))
    return found


def _ended(
    translator: Any, source: list[str], result: Any, limit: int, length_penalty: float
) -> Iterator[tuple[list[str], float]]:
    """Yield the hypotheses of a sentence with their scores; one that is not finished at the limit is ended there.

    fairseq ends all hypotheses that are left at the limit, whatever the probability of that.
    """
    open_ones = [each for each in result.hypotheses if each[-1] != _END]
    scored = iter(translator.score_batch([source] * len(open_ones), open_ones, max_input_length=0))
    for hypothesis, score in zip(result.hypotheses, result.scores, strict=True):
        if hypothesis[-1] == _END:
            yield hypothesis, score
        else:
            total = score * limit**length_penalty + next(scored).log_probs[-1]
            yield hypothesis, total / (limit + 1) ** length_penalty


def _best(hypotheses: Iterable[tuple[list[str], float]]) -> Hypothesis:
    subwords, score = max(hypotheses, key=lambda each: each[1])
    # fairseq prints neither of these symbols.
    return Hypothesis([each for each in subwords if each not in (_BEGIN, _END)], score / math.log(2))


def generated_lines(sources: Sequence[Sequence[str]], hypotheses: Sequence[Hypothesis]) -> Iterator[str]:
    """Yield the lines of source and hypothesis as in fairseq-generate's output."""
    for number, (source, hypothesis) in enumerate(zip(sources, hypotheses, strict=True)):
        yield f"S-{number}\t{' '.join(source)}\n"
        yield f"H-{number}\t{hypothesis.score}\t{' '.join(hypothesis.subwords)}\n"
