"""A model and a binarised test set → translations, in the order of the test set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from mt_scaffold.corpus.files import PathLike, make_folder, open_input, write_text
from mt_scaffold.corpus.storage.parts import part_folder
from mt_scaffold.corpus.symbols import join_symbols
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import Binarised, generation_arguments, read_binarised
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.runtime.fairseq import (
    WHOLE_DATA_SET,
    FairseqOptions,
    no_gpu_message,
    option_arguments,
    options_in,
    refuse_options,
    run_tool,
    sees_gpu,
    user_dir,
)
from mt_scaffold.experiment.runtime.schema import check_seed
from mt_scaffold.options_from_signature import File, Name, Option, OutputFolder

_OWN_OPTIONS = {"path", "gen-subset", "results-path", "source-lang", "target-lang", "user-dir", "cpu", "seed"}
# These would change the lines that the hypotheses are read from.
_OWN_OPTIONS |= {"nbest", "quiet", "post-process", "remove-bpe", "bpe", "tokenizer", "required-batch-size-multiple"}
_OWN_OPTIONS |= {"batch-by-source"}


def translate(
    data: Annotated[PathLike, Option("FOLDER", "-d")],
    subset: Name,
    model: Annotated[PathLike, Option("FILE", "-m")],
    output: OutputFolder,
    options: FairseqOptions = (),
    seed: int = 1,
    source_words: File | None = None,
    gpus: int = 0,
    config: File | None = None,
) -> list[str]:
    """Translate one subset of a data folder of ``binarise`` or ``binarise_words`` with fairseq-generate.

    data: the data folder that mt-scaffold binarise made
    subset: the test set in it to translate
    model: a checkpoint or an averaged model
    output: folder for the translations
    options: options of fairseq-generate, after --
    source_words: the words of the source, to copy next to the translations
    seed: random seed, for sampling
    gpus: 1: require a GPU; 0: use one if there is one (default)
    config: take the options from this experiment configuration

    ``options`` (``["--beam", "4", "--lenpen", "0.6"]``) follow those of ``config``. The folder ``output`` gets
    ``SUBSET.TARGET.subwords`` (as the model wrote it), ``.words`` (joined), ``SUBSET.TARGET`` (detokenised: ordinary
    text, to be scored) and, with ``source_words``, a copy of them as ``SUBSET.SOURCE.words``; line i of each
    corresponds to line i of the test set. ``SUBSET.generate.txt`` is fairseq's output, with its scores. Returns the
    detokenised translations.

    For data of ``binarise``, batches depend on the source alone, so that the references cannot affect the translations,
    not even through the order of a sum.

    Raises MTScaffoldError if a sentence has no translation, if a GPU is requested but there is none, or if fairseq
    fails, with the end of its log.
    """
    from mt_scaffold.experiment.data.tokenise import detokenise

    if config is not None:
        options = [*option_arguments(load_config(config).translate.options), *options]
    refuse_options(options, _OWN_OPTIONS, "fairseq-generate")
    check_seed(seed)
    if gpus not in (0, 1):
        raise UsageError(f"--gpus {gpus}: fairseq-generate uses one GPU; give 1, or 0 for one if there is one")
    binarised = read_binarised(data)
    if subset not in binarised.pairs:
        raise UsageError(f"{data}: no subset called {subset}; choose one of {', '.join(binarised.pairs)}")
    if not Path(model).is_file():
        raise MTScaffoldError(f"{model}: no such model; make it with mt-scaffold train or average")
    if gpus and not sees_gpu():
        raise MTScaffoldError(
            f"--gpus {gpus}: PyTorch finds no GPU on this machine: {no_gpu_message()}; or translate with --gpus 0"
        )
    output = Path(output)
    make_folder(output)
    log, generated = output / f"{subset}.log", output / f"{subset}.generate.txt"
    log.unlink(missing_ok=True)
    # fairseq-generate writes its output into a folder, under a name that it chooses.
    with part_folder(str(output / subset)) as results:
        run_tool("generate", generate_arguments(data, binarised, subset, model, results, options, seed), log)
        (Path(results) / f"generate-{subset}.txt").replace(generated)
    with open_input(generated) as stream:
        lines = (line.decode("utf-8") for line in stream)
        subwords = read_hypotheses(lines, binarised.pairs[subset], str(generated))

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


def generate_arguments(
    data: PathLike,
    binarised: Binarised,
    subset: str,
    model: PathLike,
    results: PathLike,
    options: Sequence[str],
    seed: int,
) -> list[str]:
    """Return the arguments of fairseq-generate that translate a subset on this machine and write into ``results``."""
    arguments = [str(data), "--path", str(model), "--gen-subset", subset]
    arguments += ["--source-lang", binarised.source, "--target-lang", binarised.target]
    arguments += ["--results-path", str(results), "--seed", str(seed), "--user-dir", str(user_dir())]
    arguments += ["--no-progress-bar", *option_arguments(WHOLE_DATA_SET)]
    arguments += [*generation_arguments(binarised, options_in(options)), *options]
    return arguments if sees_gpu() else [*arguments, "--cpu"]


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
