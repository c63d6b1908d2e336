"""A model and a binarised test set → translations, in the order of the test set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from mt_scaffold.corpus.files import PathLike, make_folder, open_input, write_text
from mt_scaffold.corpus.storage.parts import part_folder
from mt_scaffold.corpus.symbols import join_symbols
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import Binarised, generation_arguments, read_binarised
from mt_scaffold.experiment.configuration.translating import Engine
from mt_scaffold.experiment.inference import ctranslate2_engine
from mt_scaffold.experiment.inference.model_files import data_folder_files, read_model
from mt_scaffold.experiment.runtime.fairseq import (
    WHOLE_DATA_SET,
    no_gpu_message,
    refuse_options,
    run_tool,
    sees_gpu,
    user_dir,
)
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options import worker_count

ENGINES: tuple[str, ...] = get_args(Engine)
_OWN_OPTIONS = {"path", "gen-subset", "results-path", "source-lang", "target-lang", "user-dir", "cpu", "seed"}
# These would change the lines that the hypotheses are read from.
_OWN_OPTIONS |= {"nbest", "quiet", "post-process", "remove-bpe", "bpe", "tokenizer", "required-batch-size-multiple"}
_OWN_OPTIONS |= {"batch-by-source"}


def translate(
    data: PathLike,
    subset: str,
    model: PathLike,
    output: PathLike,
    options: Sequence[str] = (),
    seed: int = 1,
    source_words: PathLike | None = None,
    gpus: int = 0,
    engine: str = "fairseq",
    quantization: str | None = None,
) -> list[str]:
    """Translate one subset of a data folder of ``binarise`` or ``binarise_words`` with fairseq-generate or CTranslate2.

    ``options`` are fairseq-generate's (``["--beam", "4", "--lenpen", "0.6"]``). The folder ``output`` gets
    ``SUBSET.TARGET.subwords`` (as the model wrote it), ``.words`` (joined), ``SUBSET.TARGET`` (detokenised: ordinary
    text, to be scored) and, with ``source_words``, a copy of them as ``SUBSET.SOURCE.words``; line i of each
    corresponds to line i of the test set. ``SUBSET.generate.txt`` is fairseq's output, with its scores. ``gpus``: 1
    requires a GPU; with 0, one is used if PyTorch sees it, or else the CPU. Returns the detokenised translations.

    For data of ``binarise``, batches depend on the source alone, so that the references cannot affect the translations,
    not even through the order of a sum.

    ``engine``: ``fairseq`` or ``ctranslate2``, which converts the model for each test set, accepts the options that
    ``ctranslate2_engine.parse_search`` does, and writes the same files; ``SUBSET.generate.txt`` then has fewer kinds of
    lines, and ``SUBSET.engine.json`` describes the engine. ``quantization``: one of CTranslate2's types (None:
    float32).

    Raises MTScaffoldError if a sentence has no translation, if a GPU is requested but there is none, if fairseq fails,
    with the end of its log, or if CTranslate2 cannot compute the model.
    """
    from mt_scaffold.experiment.data.tokenise import detokenise

    refuse_options(options, _OWN_OPTIONS, "fairseq-generate")
    if gpus not in (0, 1):
        raise UsageError(f"--gpus {gpus}: fairseq-generate uses one GPU; give 1, or 0 for one if there is one")
    if engine not in ENGINES:
        raise UsageError(f"--engine {engine}: choose one of {', '.join(ENGINES)}")
    if quantization is not None and engine != "ctranslate2":
        raise UsageError("--quantization: only with --engine ctranslate2; add that, or remove this")
    binarised = read_binarised(data)
    if subset not in binarised.pairs:
        raise UsageError(f"{data}: no subset called {subset}; choose one of {', '.join(binarised.pairs)}")
    if not Path(model).is_file():
        raise MTScaffoldError(f"{model}: no such model; make it with mt-scaffold train or average")
    output = Path(output)
    work = _Work(Path(data), binarised, subset, Path(model), output, options, gpus)
    if engine == "fairseq":
        work.with_fairseq(seed)
    else:
        work.with_ctranslate2(quantization)
    with open_input(work.generated) as stream:
        lines = (line.decode("utf-8") for line in stream)
        subwords = read_hypotheses(lines, binarised.pairs[subset], str(work.generated))

    words = [join_symbols(line, binarised.separator, binarised.word_start) for line in subwords]
    text = list(detokenise(words, binarised.target))
    prefix = output / f"{subset}.{binarised.target}"
    write_text(f"{prefix}.subwords", _lines(subwords))
    write_text(f"{prefix}.words", _lines(words))
    if source_words is not None:
        with open_input(source_words) as stream:
            write_text(output / f"{subset}.{binarised.source}.words", stream.read().decode("utf-8"))
    write_text(prefix, _lines(text))
    return text


@dataclass(frozen=True)
class _Work:
    """A translation to run: each engine writes its hypotheses to ``generated``, in fairseq-generate's format."""

    data: Path
    binarised: Binarised
    subset: str
    model: Path
    output: Path
    options: Sequence[str]
    gpus: int

    @property
    def generated(self) -> Path:
        return self.output / f"{self.subset}.generate.txt"

    def with_fairseq(self, seed: int) -> None:
        on_gpu = sees_gpu()
        if self.gpus and not on_gpu:
            raise MTScaffoldError(
                f"--gpus {self.gpus}: PyTorch finds no GPU on this machine: {no_gpu_message()}; or translate with "
                "--gpus 0"
            )
        log = self._make_clean()
        # fairseq-generate writes its output into a folder, under a name that it chooses.
        with part_folder(str(self.output / self.subset)) as results:
            arguments = [str(self.data), "--path", str(self.model), "--gen-subset", self.subset]
            arguments += ["--source-lang", self.binarised.source, "--target-lang", self.binarised.target]
            arguments += ["--results-path", results, "--seed", str(seed), "--user-dir", str(user_dir())]
            arguments += ["--no-progress-bar", *WHOLE_DATA_SET, *generation_arguments(self.binarised, self.options)]
            arguments += self.options
            if not on_gpu:
                arguments.append("--cpu")
            run_tool("generate", arguments, log)
            (Path(results) / f"generate-{self.subset}.txt").replace(self.generated)

    def with_ctranslate2(self, quantization: str | None) -> None:
        search = ctranslate2_engine.parse_search(self.options)
        model = read_model(data_folder_files(self.model, self.data, *self.binarised.languages))
        sentences = ctranslate2_engine.read_source(self.data, self.binarised, self.subset)
        self._make_clean()
        # As many threads as PyTorch would use.
        given = os.environ.get("OMP_NUM_THREADS", "")
        threads = max(1, int(given)) if given.isdecimal() else worker_count()
        hypotheses, report = ctranslate2_engine.translate_sentences(
            model, sentences, search, self.output, quantization, self.gpus, threads
        )
        write_result(self._report, report)
        sources = [[model.symbols[0][each] for each in sentence] for sentence in sentences]
        write_text(self.generated, "".join(ctranslate2_engine.generated_lines(sources, hypotheses)))

    @property
    def _report(self) -> Path:
        return self.output / f"{self.subset}.engine.json"

    def _make_clean(self) -> Path:
        """Create the folder, without the log and report of an earlier run on this test set; return the log's path."""
        make_folder(self.output)
        log = self.output / f"{self.subset}.log"
        for path in (log, self._report):
            path.unlink(missing_ok=True)
        return log


def read_hypotheses(lines: Iterable[str], expected: int, origin: str = "fairseq-generate") -> list[str]:
    """Return the best hypothesis of each sentence in fairseq-generate's output, in the order of the test set.

    fairseq writes ``H-NUMBER<tab>SCORE<tab>SUBWORDS`` in the order in which it translated. Raises MTScaffoldError
    unless each of the ``expected`` sentences has exactly one hypothesis.
    """
    hypotheses: dict[int, str] = {}
    for line in lines:
        if match := re.fullmatch(r"H-(\d+)\t[^\t]*\t([^\n]*)\n?", line):
            number = int(match[1])
            if number in hypotheses:
                raise MTScaffoldError(f"{origin}: two hypotheses for sentence {number + 1}; translate again")
            hypotheses[number] = match[2]
    missing = [number + 1 for number in range(expected) if number not in hypotheses]
    if missing or len(hypotheses) != expected:
        what = f"no hypothesis for sentence {missing[0]}" if missing else "more hypotheses than sentences"
        raise MTScaffoldError(
            f"{origin}: {what} ({len(hypotheses)} hypotheses, {expected} sentences in the test set); translate again"
        )
    return [hypotheses[number] for number in range(expected)]


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
