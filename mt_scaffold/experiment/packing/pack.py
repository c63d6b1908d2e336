"""A trained system of an experiment → one folder, with a model card, that translates raw text on any machine."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete, copy_dictionaries, refuse_other_content
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.layout import CONFIG, Run, read_folder
from mt_scaffold.experiment.configuration.systems import CodesSetting
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.metrics import METRICS
from mt_scaffold.experiment.evaluation.score import Scores
from mt_scaffold.experiment.inference.beam_search import beam_search
from mt_scaffold.experiment.inference.model_files import TranslationModel, read_model, system_files
from mt_scaffold.experiment.packing.packed_model import (
    CARD,
    EXPERIMENT,
    NEW_CARD,
    OPTIONS,
    PATH_OPTIONS,
    WEIGHTS,
    Manifest,
    Origin,
    PackedModel,
    PackedScore,
    PackedTestSet,
    dictionary_name,
    is_plain,
    load_plugin,
    read_stored,
    write_manifest,
)
from mt_scaffold.experiment.runtime.checkpoints import tied
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import read_result, to_plain, write_result
from mt_scaffold.experiment.training.train import TrainingReport
from mt_scaffold.manifest import MANIFEST, raw_digest
from mt_scaffold.segment.draw import description
from mt_scaffold.segment.inference import MERGES
from mt_scaffold.tables import decimal

# The groups of fairseq's options that describe a machine or a run, not a model.
_GROUPS = {"common", "common_eval", "distributed_training", "dataset", "optimization", "checkpoint", "bmuf"}
_GROUPS |= {"generation", "eval_lm", "interactive", "ema"}
# The hub's names of the metrics that it has pages for.
_HUB_METRICS = {"bleu": "bleu", "chrf": "chrf", "chrf++": "chrf", "ter": "ter", "comet": "comet"}
_SYNTHETIC = (
    "**Synthetic data.** A small grammar wrote the text of this experiment; the figures show that every step works, "
    "and say nothing about translation."
)
_USE = """It takes raw text, one sentence per line:

```
mt-scaffold translate-text --model FOLDER < text > translation
```

```python
from mt_scaffold.experiment.packing.packed_model import PackedModel

with PackedModel("FOLDER") as model:
    print(model.translate(["..."]))
```"""
OTHER_ENGINE = (
    "The scores are of CTranslate2's translations; translate-text, with fairseq, may differ in some sentences."
)
_FILES = f"""## Files

`{WEIGHTS}` (weights), `{OPTIONS}` (fairseq's options of the model), `dict.*.txt` (dictionaries), codes with
`segmentation.json`, `{EXPERIMENT}` (the configuration of the whole experiment). `{MANIFEST}` has the digest of each,
the tokeniser's settings, the scores in full and the versions; `{CARD}` may be edited.

## Licence

Not stated. Whoever publishes this model should replace `license: unknown` above, and this paragraph, according to the
licences of the data that it was trained on."""


def packed_folder(system: PathLike, seed: int | None = None) -> Path:
    """Return the default folder of a packed system: ``NAME-SYSTEM`` in the current one, with the seed if one is given.

    >>> packed_folder("experiments/demo/scaffold", 2)
    PosixPath('demo-scaffold-seed2')
    """
    place = Path(system).absolute()
    return Path(f"{place.parent.name}-{place.name}{'' if seed is None else f'-seed{seed}'}")


def pack(system: PathLike, output: PathLike | None = None, seed: int | None = None) -> Manifest:
    """Pack the averaged model of a system (``experiments/NAME/SYSTEM``) into the folder ``output``.

    The folder has everything needed to translate raw text: ``model.safetensors`` and ``config.json`` (weights and
    options of fairseq's model), dictionaries, codes, ``manifest.json`` (tokeniser, beam search, scores with their
    signatures, versions, the digest of every file), ``experiment.yaml`` (the configuration of the experiment) and
    README.md, a model card. It appears only once it is complete and a model has been loaded from it; one that was
    packed before is replaced, except for an edited card: the new card is then README.new.md.

    output: None for ``packed_folder``. seed: of the training; None takes the experiment's first.

    Returns the manifest. Raises MTScaffoldError if the experiment has no such model yet, or the model cannot be loaded
    without running code; UsageError for an experiment with language models, for an unknown system or seed, or if the
    experiment translates with options that a packed model does not support (see ``beam_search``).
    """
    place = Path(system)
    if (place / CONFIG).is_file():
        raise UsageError(f"{system}: a whole experiment; name one of its systems, as in {place / 'SYSTEM'}")
    place, output = place.absolute(), packed_folder(system, seed) if output is None else Path(output)
    config = read_folder(place.parent)
    if not isinstance(config, Config):
        raise UsageError(f"{place.parent}: task: {config.task}: only translation systems can be packed")
    search = beam_search(config.translate.options)
    layout, name = TranslationLayout(place.parent, config), place.name
    if name in config.systems and not (kind := config.segmentation(name).kind).has_codes:
        raise UsageError(f"{system}: a system with a {kind.title} model; only those with codes can be packed")
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
        copy_dictionaries(layout.dictionaries(layout.data_of(name)), folder, layout.languages)
        shutil.copyfile(layout.config_file, folder / EXPERIMENT)
        others = [WEIGHTS, OPTIONS, EXPERIMENT, *map(dictionary_name, layout.languages)]
        manifest = Manifest(
            source=layout.source,
            target=layout.target,
            tokenise=config.tokenise.of_side("source"),
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
            card="",
        )
        card = model_card(manifest, _described(config, name))
        write_text(folder / CARD, card)
        manifest = dataclasses.replace(manifest, card=raw_digest(folder / CARD))
        if edited_card(output):
            shutil.copyfile(output / CARD, folder / CARD)
            write_text(folder / NEW_CARD, card)
        write_manifest(folder, manifest)
        # A folder that does not load here would not load anywhere.
        PackedModel(folder, device="cpu").close()
    return manifest


def edited_card(folder: Path) -> bool:
    """Return whether the card of a packed model was edited; without a readable manifest, any card counts as edited."""
    if not (folder / CARD).is_file():
        return False
    try:
        stored = read_stored(folder / MANIFEST)
    except MTScaffoldError:
        return True
    return raw_digest(folder / CARD) != stored.content.get("card")


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
            None if choices == layout.config.tokenise.of_side("source") else choices,
        )
    return found


def _described(config: Config, system: str) -> str:
    """Return a description of how a system segments words, for people."""
    setting = config.segmentation(system)
    sizes = [_described_codes(codes) for codes in setting.codes]
    kind = (
        ("joint codes" if config.systems[system].joint else "codes of one side")
        if len(sizes) == 1
        else "source; target"
    )
    text = f"{kind}: {'; '.join(sizes)}"
    text += f", subwords from a frequency of {setting.vocabulary_threshold}" if setting.vocabulary_threshold else ""
    text += ", with glossaries" if setting.glossaries else ""
    text += f", {setting.inference} inference" if setting.inference != MERGES else ""
    resampled = description(config.systems[system].resamplings)
    return text + (f", {resampled} in training" if resampled else "")


def _described_codes(codes: CodesSetting) -> str:
    return f"given codes ({Path(str(codes.file)).name})" if codes.method is None else codes.method.description


def write_weights(model: Mapping[str, Any], path: PathLike) -> dict[str, str]:
    """Write the parameters of a model (name → tensor) as safetensors, equal ones once.

    Returns the parameters that were left out, each with the name of the stored one that has the same bits.
    """
    from safetensors.torch import save_file

    first_of = tied([dict(model)])
    stored = {name: model[name].contiguous() for name, first in first_of.items() if first == name}
    # Cloned, as save_file refuses views of one storage.
    save_file({name: tensor.clone() for name, tensor in stored.items()}, path, metadata={"format": "pt"})
    return {name: first for name, first in first_of.items() if first != name}


def plain_options(model: TranslationModel) -> dict[str, Any]:
    """Return the options that fairseq builds a model from, as JSON holds them, without paths or those of the run.

    Raises MTScaffoldError if the checkpoint names no architecture, or an option is not plain.
    """
    load_plugin()
    from fairseq.dataclass.configs import FairseqConfig

    if not (model.options.get("arch") or model.options.get("_name")):
        raise model.error("does not say how its model is built; use a checkpoint of fairseq-train")
    groups: list[Any] = [entry.type for entry in dataclasses.fields(FairseqConfig) if entry.name in _GROUPS]
    others = {entry.name for group in groups for entry in dataclasses.fields(group)} | {"data"}
    options = {
        name: each for name, each in model.options.items() if name not in others and not name.endswith(PATH_OPTIONS)
    }
    if wrong := next((name for name, value in options.items() if not is_plain(value)), None):
        raise model.error(f"its option {wrong} is a {type(options[wrong]).__name__}, which JSON cannot hold")
    return options


def model_card(manifest: Manifest, segmentation: str) -> str:
    """Return the text of README.md. segmentation: a short description of how the system segments words.

    The heading gives the licence as ``unknown``: only the publisher of a model can state how it may be used.
    """
    import yaml

    origin = manifest.origin
    heading = yaml.safe_dump(_heading(manifest), sort_keys=False, allow_unicode=True)
    kept = ("beam", "lenpen", "max-len-a", "max-len-b", "max-tokens", "batch-size")
    search = ", ".join(
        f"{name} {value}" for name, value in to_plain(manifest.translate).items() if name in kept and value
    )
    version = origin.packed_with.get("mt-scaffold", "")
    facts = f"Segmentation: {segmentation}. Translated with: {search}. {origin.parameters:,} parameters, "
    facts += f"{origin.updates:,} updates ({origin.epochs:,} epochs), seed {origin.seed}"
    facts += f"; the mean of {origin.averaged} checkpoints." if origin.averaged > 1 else "."
    paragraphs = [
        f"---\n{heading}---",
        f"# {origin.experiment}: {origin.system}, {manifest.source} → {manifest.target}",
        *([origin.description] if origin.description else []),
        *([_SYNTHETIC] if origin.synthetic else []),
        f"A translation model of fairseq's, trained and packed with mt-scaffold {version}.",
        _USE,
        facts,
        "## Scores",
        *_scores(manifest),
        _FILES,
    ]
    return "\n\n".join(paragraphs) + "\n"


def _scores(manifest: Manifest) -> list[str]:
    if not manifest.test_sets:
        return ["None were computed when the model was packed."]
    rows = ["| test set | metric | score | signature |", "|---|---|---|---|"]
    for name, test_set in manifest.test_sets.items():
        for metric, found in test_set.scores.items():
            # Markdown would treat its bars as the ends of cells.
            signature = found.signature.replace("|", r"\|")
            rows.append(f"| {name} | {METRICS[metric].heading} | {decimal(found.score)} | `{signature}` |")
    paragraphs = ["\n".join(rows)]
    if manifest.origin.engine != "fairseq":
        paragraphs.append(OTHER_ENGINE)
    if any(not found.comparable for test_set in manifest.test_sets.values() for found in test_set.scores.values()):
        paragraphs.append("\\* depends on the tokeniser; not comparable with scores from elsewhere")
    return paragraphs


def _heading(manifest: Manifest) -> dict[str, Any]:
    """Return the metadata of the card, as the hub's ModelCardData defines them."""
    origin = manifest.origin
    found = dict.fromkeys(metric for test_set in manifest.test_sets.values() for metric in test_set.scores)
    metrics = list(dict.fromkeys(_HUB_METRICS[metric] for metric in found if metric in _HUB_METRICS))
    heading: dict[str, Any] = {
        "language": [*manifest.languages],
        "license": "unknown",
        "library_name": "mt-scaffold",
        "pipeline_tag": "translation",
        "tags": ["translation", "fairseq", "scaffold-bpe"],
    }
    if not metrics:
        return heading
    task = {"type": "translation", "name": f"Translation {manifest.source}-{manifest.target}"}
    results = [
        {
            "task": task.copy(),
            "dataset": {"type": name, "name": f"{name} (synthetic)" if origin.synthetic else name},
            "metrics": [
                {
                    "type": _HUB_METRICS[metric],
                    "name": METRICS[metric].label,
                    "value": round(score.score, 2),
                    "args": {"signature": score.signature},
                }
                for metric, score in test_set.scores.items()
                if metric in _HUB_METRICS
            ],
        }
        for name, test_set in manifest.test_sets.items()
    ]
    return heading | {
        "metrics": metrics,
        "model-index": [{"name": f"{origin.experiment}-{origin.system}", "results": results}],
    }
