"""Raw text → raw text, by a trained system of an experiment, as the experiment translates its test sets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from mt_scaffold.corpus.files import PathLike, open_output, refuse_overwriting, standard_output
from mt_scaffold.corpus.text import read_lines
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.binarise.segmentation import segmentation_in
from mt_scaffold.experiment.configuration.layout import CONFIG, Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.tokenise import tokenise
from mt_scaffold.experiment.inference.translate import translate
from mt_scaffold.experiment.runtime.fairseq import option_arguments
from mt_scaffold.experiment.runtime.schema import nearest
from mt_scaffold.options_from_signature import Name, Option

_SUBSET = "text"


def translate_text(
    system: Annotated[PathLike, Option("EXPERIMENT/SYSTEM")],
    /,
    input_path: Annotated[PathLike | None, Option("FILE", "-i", name="input")] = None,
    output_path: Annotated[PathLike | None, Option("FILE", "-o", name="output")] = None,
    *,
    seed: Annotated[int | None, Option("S")] = None,
    test_set: Name | None = None,
    gpus: int = 0,
) -> None:
    """Translate raw text with a trained system (``experiments/NAME/SYSTEM``).

    Translate raw text, one sentence per line, with a trained system of an experiment. Line i of the output translates
    line i of the input; empty lines stay empty.

    system: the folder of a system, in that of its experiment
    input_path: raw text, plain, .gz or .zst (default: standard input)
    output_path: output file (default: standard output)
    seed: the seed of the training (default: the experiment's first)
    test_set: tokenise like this test set of the experiment, if it has its own settings
    gpus: 1: require a GPU; 0: use one if there is one (default)

    Each line is tokenised and segmented as in the experiment, translated by the averaged model with the experiment's
    options of fairseq-generate, joined and detokenised; a line without words gives an empty one. ``None`` is stdin or
    stdout. All lines are batched together, as a test set is.

    Raises MTScaffoldError as ``tokenise`` and ``translate`` do, for example if the system has no averaged model yet;
    UsageError for an experiment with language models, and for an unknown system, seed or test set.
    """
    refuse_overwriting([output_path], [input_path])
    place = Path(system).absolute()
    if (place / CONFIG).is_file():
        raise UsageError(f"{system}: a whole experiment; name one of its systems, as in {Path(system) / 'SYSTEM'}")
    layout = TranslationLayout.read(place.parent)
    config, name = layout.config, place.name
    seed = config.seeds[0] if seed is None else seed
    if name not in config.systems:
        raise UsageError(f"{place.parent}: no system is called {name}{nearest(name, config.systems)}")
    if seed not in config.seeds:
        known = ", ".join(map(str, config.seeds))
        raise UsageError(f"--seed {seed}: no training of {place.parent} has it; give one of {known}")
    if test_set is not None and test_set not in config.test_sets:
        known = ", ".join(config.test_sets)
        raise UsageError(f"--test-set {test_set}: {place.parent} has no such test set (known: {known})")
    choices = config.tokenise.of_side("source") if test_set is None else config.tokenise_for(test_set)
    source, target = layout.languages
    with tempfile.TemporaryDirectory() as temporary:
        text, data = Path(temporary) / _SUBSET, Path(temporary) / "data"
        words = Path(f"{text}.{source}")
        count = tokenise(input_path, words, language=source, choices=choices).lines
        translations: list[str] = []
        if count:
            # A data folder holds pairs; the translations do not depend on the target.
            Path(f"{text}.{target}").write_text("\n" * count)
            segmentation = segmentation_in(layout, layout.segmentation_of(name))
            dictionaries = layout.dictionaries(layout.data_of(name))
            binarise(data, source, target, segmentation, tests=[text], dictionaries=dictionaries)
            found = translate(
                data,
                _SUBSET,
                layout.averaged(Run(name, seed)),
                Path(temporary) / "translations",
                option_arguments(config.translate.options),
                seed=seed,
                gpus=gpus,
            )
            translations = [line if own else "" for line, own in zip(found, read_lines(words), strict=True)]
    content = "".join(f"{line}\n" for line in translations).encode("utf-8")
    if output_path is None:
        standard_output().write(content)
    else:
        with open_output(output_path) as stream:
            stream.write(content)
