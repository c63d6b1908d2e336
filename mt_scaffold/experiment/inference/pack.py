"""A trained system of an experiment → one folder that translates raw text wherever mt-scaffold and fairseq are."""

from __future__ import annotations

import shutil
from pathlib import Path

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.parallel import appears_complete, copy_dictionaries, refuse_other_content
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.layout import CONFIG, Run, read_folder
from mt_scaffold.experiment.configuration.systems import CodesSetting
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.score import Scores
from mt_scaffold.experiment.inference.model_card import model_card
from mt_scaffold.experiment.inference.model_files import read_model, system_files
from mt_scaffold.experiment.inference.packed_folder import (
    CARD,
    EXPERIMENT,
    FORMAT,
    MANIFEST,
    OPTIONS,
    WEIGHTS,
    Manifest,
    Origin,
    PackedScore,
    PackedTestSet,
    beam_search,
    dictionary_name,
)
from mt_scaffold.experiment.inference.packed_model import PackedModel
from mt_scaffold.experiment.inference.packed_weights import plain_options, write_weights
from mt_scaffold.experiment.runtime.provenance import raw_digest, versions
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.training.train import TrainingReport
from mt_scaffold.options import INFERENCES


def pack(system: PathLike, output: PathLike, seed: int | None = None) -> Manifest:
    """Pack the averaged model of a system (``experiments/NAME/SYSTEM``) into the folder ``output``.

    The folder has all that translating raw text takes: ``model.safetensors`` and ``config.json`` (weights and options
    of fairseq's model), dictionaries, codes, ``manifest.json`` (tokeniser, beam search, scores with their signatures,
    versions, the digest of every file), ``experiment.yaml`` (the configuration of the experiment) and README.md, a
    model card. It appears only once it is complete and a model has been loaded from it; one that was packed before is
    replaced. seed: of the training; None takes the experiment's first.

    Returns the manifest. Raises MTScaffoldError where the experiment has no such model yet, or the model cannot be
    loaded without running code; UsageError for an experiment with language models, for an unknown system or seed, and
    where the experiment translates in a way that a packed model cannot (see ``beam_search``).
    """
    place = Path(system)
    if (place / CONFIG).is_file():
        raise UsageError(f"{system}: a whole experiment; name one of its systems, as in {place / 'SYSTEM'}")
    place, output = place.absolute(), Path(output)
    config = read_folder(place.parent)
    if not isinstance(config, Config):
        raise UsageError(f"{place.parent}: task: {config.task}: only translation systems can be packed")
    search = beam_search(config.translate.options)
    layout, name = TranslationLayout(place.parent, config), place.name
    if name in config.systems and config.segmentation(name).unigram:
        raise UsageError(f"{system}: a system with a Unigram model, and only those with codes can be packed")
    files = system_files(layout.folder, name, seed)
    seed = config.seeds[0] if seed is None else seed
    refuse_other_content(output, MANIFEST)
    model = read_model(files)
    training = read_result(TrainingReport, layout.training_report(Run(name, seed)))
    assert files.segmentation is not None
    with appears_complete(output) as folder:
        tied = write_weights(model.parameters, folder / WEIGHTS)
        write_result(folder / OPTIONS, plain_options(model))
        stored = files.segmentation.store(folder, layout.languages)
        copy_dictionaries(layout.dictionaries(layout.segmentation_of(name)), folder, layout.languages)
        shutil.copyfile(layout.config_file, folder / EXPERIMENT)
        others = [WEIGHTS, OPTIONS, EXPERIMENT, *map(dictionary_name, layout.languages)]
        manifest = Manifest(
            format=FORMAT,
            source=layout.source,
            target=layout.target,
            tokenise=config.tokenise,
            translate=search,
            tied=tied,
            test_sets=_test_sets(layout, name, seed),
            origin=Origin(
                experiment=config.name,
                description=config.description,
                system=name,
                seed=seed,
                synthetic=config.synthetic,
                checkpoint=raw_digest(files.checkpoint),
                averaged=config.average.last or 1,
                parameters=training.parameters,
                updates=training.updates,
                epochs=training.epochs,
                engine=config.translate.engine,
                trained_with=training.versions,
                packed_with=versions(),
            ),
            files={**{each: raw_digest(folder / each) for each in others}, **stored},
        )
        write_text(folder / CARD, model_card(manifest, _described(config, name)))
        write_result(folder / MANIFEST, manifest)
        # What does not load here would not load anywhere.
        PackedModel(folder, device="cpu").close()
    return manifest


def _test_sets(layout: TranslationLayout, system: str, seed: int) -> dict[str, PackedTestSet]:
    """Return the scores of the test sets that have been scored."""
    found = {}
    for name in layout.config.test_sets:
        path = layout.scores(Run(system, seed), name)
        if not path.is_file():
            continue
        scores = read_result(Scores, path)
        choices = layout.config.tokenise_for(name)
        digests = {each: scores.files[each].sha256 for each in ("hypothesis", *scores.references)}
        if (raw := layout.raw(name, layout.source)).is_file():
            digests["source"] = raw_digest(raw)
        found[name] = PackedTestSet(
            scores.lines,
            {
                metric: PackedScore(each.score, each.text, each.signature, each.comparable)
                for metric, each in scores.metrics.items()
            },
            digests,
            None if choices == layout.config.tokenise else choices,
        )
    return found


def _described(config: Config, system: str) -> str:
    """Return how a system segments words, for people."""
    setting = config.segmentation(system)
    sizes = [_described_codes(codes) for codes in setting.codes]
    kind = (
        ("joint codes" if config.systems[system].joint else "codes of one side")
        if len(sizes) == 1
        else "source; target"
    )
    dropouts = config.systems[system].dropouts
    text = f"{kind}: {'; '.join(sizes)}"
    text += f", subwords from a frequency of {setting.vocabulary_threshold}" if setting.vocabulary_threshold else ""
    text += f", {setting.inference} inference" if setting.inference != INFERENCES[0] else ""
    text += f", BPE-dropout {dropouts[0]:g} and {dropouts[1]:g} in training" if any(dropouts) else ""
    sampled = config.systems[system].uniform_samplings
    return text + (f", uniform sampling {sampled[0]:g} and {sampled[1]:g} in training" if any(sampled) else "")


def _described_codes(codes: CodesSetting) -> str:
    if codes.file is not None:
        return f"given codes ({Path(codes.file).name})"
    names = {"bpe": "BPE", "scaffold": "Scaffold-BPE", "picky": "PickyBPE", "parity": "parity-aware BPE"}
    names["trimmed"] = names["bpe"]
    text = f"{names[str(codes.algorithm)]}, {codes.symbols:,} symbols"
    text += f", threshold {codes.threshold:g}" if codes.algorithm == "picky" else ""
    text += f", trimmed below {codes.below:,}" if codes.below is not None else ""
    return text + " and refilled" * codes.refill
