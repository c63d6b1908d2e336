"""The model card of a packed model: README.md, with the heading that the Hugging Face hub reads."""

from __future__ import annotations

from typing import Any

from mt_scaffold.experiment.evaluation.metrics import METRICS
from mt_scaffold.experiment.inference.packed_folder import CARD, EXPERIMENT, MANIFEST, OPTIONS, WEIGHTS, Manifest
from mt_scaffold.experiment.runtime.results import to_plain

# The hub's names of the metrics that it has a page for.
_HUB_METRICS = {"bleu": "bleu", "chrf": "chrf", "chrf++": "chrf", "ter": "ter", "comet": "comet"}
_SYNTHETIC = (
    "**Synthetic data.** The languages of this experiment are invented; the figures show that every step works, and "
    "say nothing about translation."
)
_USE = """It takes raw text, one sentence per line:

```
mt-scaffold translate-text --model FOLDER < text > translation
```

```python
from mt_scaffold.experiment.inference.packed_model import PackedModel

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


def model_card(manifest: Manifest, segmentation: str) -> str:
    """Return the text of README.md. segmentation: how the system segments words, in a few words.

    The heading gives the licence as ``unknown``: only who publishes a model can say what it may be used for.
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
            # Markdown would take its bars for the ends of cells.
            signature = found.signature.replace("|", r"\|")
            rows.append(f"| {name} | {METRICS[metric].heading} | {found.score:.2f} | `{signature}` |")
    paragraphs = ["\n".join(rows)]
    if manifest.origin.engine != "fairseq":
        paragraphs.append(OTHER_ENGINE)
    if any(not found.comparable for test_set in manifest.test_sets.values() for found in test_set.scores.values()):
        paragraphs.append("\\* depends on the tokeniser; not comparable with scores from elsewhere")
    return paragraphs


def _heading(manifest: Manifest) -> dict[str, Any]:
    """Return what the hub's ModelCardData knows."""
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
