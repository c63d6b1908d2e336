"""The names that earlier versions had, each with what takes its place: a command, an option, a key or an import."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """A removed key of a configuration, or of a result.

    instead: what takes its place. neutral: the values with which it had no effect, as stored configurations have it;
    these are accepted. A set: the keys of a section that never changed a result; with any values, these are accepted.
    None: any value is accepted, because the key is only in stored results.
    """

    instead: str
    neutral: tuple[Any, ...] | frozenset[str] | None = ()


_CTRANSLATE2 = "CTranslate2's own converter takes the models, ct2-fairseq-converter (docs/models.md)"
_INFERENCE = "codes segment with their merges alone; leave it out"
_PARITY = (
    "learn parity-aware BPE with the ParityBpeTrainer of tokenizers and its ByteLevel pre-tokeniser, and import its "
    "file with mt-scaffold import"
)
_FORMATS = "train with a program whose format is read: tokenizer.json, tiktoken, SentencePiece or fastBPE"
_OF_PARITY = dict.fromkeys(("--dev", "--global-merges", "--window", "--alpha"), _PARITY)
_COMET = (
    "run COMET in its own environment: score.external of a configuration does, and score --segments reads its scores "
    "(docs/scores.md)"
)
_UNIFORM_SAMPLING = "use dropout, or for a Unigram model sampling_alpha"

_DOWNLOAD = "the harness downloads the data that it lacks, or stays offline with HF_HUB_OFFLINE=1"

# Command → what takes its place.
COMMANDS: dict[str, str] = {
    "resize-embeddings": "docs/vocabularies.md has a recipe that gives a model the rows of the map",
    "pack": "mt-scaffold translate-text EXPERIMENT/SYSTEM translates with a trained system",
    "sample": "export the model with mt-scaffold export transformers, and use transformers' generate()",
    "study": "use stats; python -m studies.intrinsic, in the source folder, measures many methods and sizes",
}
# Command → option, with its dashes → what takes its place.
OPTIONS: dict[str, dict[str, str]] = {
    "score": {
        "--comet": _COMET,
        "--losses": "an experiment adds bits per byte of the references to its comparison",
        "--checkpoint": "label the scores of a single checkpoint with --system",
    },
    "apply-bpe": {"--inference": _INFERENCE, "--uniform-sampling": _UNIFORM_SAMPLING},
    "binarise": {"--inference": _INFERENCE},
    "binarise-words": {"--inference": _INFERENCE},
    "dictionary": {"--inference": _INFERENCE},
    "learn-bpe": _OF_PARITY,
    "learn-joint-bpe-and-vocab": _OF_PARITY,
    "lm-eval": {
        "--storycloze": "name a task of your own that reads the files (--include-path)",
        "--download": _DOWNLOAD,
        "--samples": "export the model with mt-scaffold export transformers, and use lm_eval --log_samples",
    },
    "export": dict.fromkeys(
        [
            *("ctranslate2", "--quantization", "--dictionaries", "--source-lang", "--target-lang", "--config"),
            *("--codes", "--vocabulary", "--vocabulary-threshold", "--glossaries", "--separator", "--inference"),
        ],
        _CTRANSLATE2,
    ),
    "translate": dict.fromkeys(["--engine", "--quantization"], _CTRANSLATE2),
    "translate-text": {
        "-m": "name a system, as in mt-scaffold translate-text experiments/demo/scaffold",
        "--model": "name a system, as in mt-scaffold translate-text experiments/demo/scaffold",
        **dict.fromkeys(
            ["--beam", "--lenpen", "--batch-tokens", "--n-best", "--scores", "--block", "--num-workers"],
            "use fairseq-interactive with --bpe scaffold_bpe (docs/fairseq.md)",
        ),
        "--device": "use --gpus, or set CUDA_VISIBLE_DEVICES",
    },
    "stats": {
        "--inference": _INFERENCE,
        "--morphemes": "MorphScore, by its authors, compares subwords with morphemes",
        "--typos": "studies/typos.py makes a text with typos, which stats measures as any other",
        "--containing": "explain shows how a word is segmented",
        "--top": "only compare-vocab lists tokens",
    },
    "trim": {"--leaves": "use --below, --ratio or --tokens"},
    "encode": {
        "--check": "name one NAME.bin per run, whose manifest has its digests",
        "--uniform-sampling": _UNIFORM_SAMPLING,
    },
    "evaluate": dict.fromkeys(
        ["--model", "--documents", "--positions"],
        "lm_eval --model hf measures bits per byte of transformers' models",
    ),
    "run": {
        "--redo": "remove the folder of a training (experiments/NAME/SYSTEM/seed-N); the same command trains it again",
        "--yes": "it belonged to --redo; remove the folder of a training to train it again",
    },
}
# Public name, or module with its dots → what takes its place.
IMPORTS: dict[str, str] = {
    "experiment.inference.export_ctranslate2": _CTRANSLATE2,
    "experiment.inference.ctranslate2_engine": _CTRANSLATE2,
    "experiment.study": COMMANDS["study"],
    "experiment.surgery": COMMANDS["resize-embeddings"],
    "methods.parity": _PARITY,
    "segment.inference": _INFERENCE,
    "integrations.vocabularies.youtokentome": _FORMATS,
    "analysis.containing": "mt_scaffold.analysis.explain",
    "analysis.words": "studies.typos",
    "subword_nmt.segmenting": "mt_scaffold.subword_nmt.apply_bpe",
    "methods.leaves": "mt_scaffold.methods.trimming",
    "segment.streams": "mt_scaffold.BPE, whose encode takes a whole text, and decode_stream ids that arrive one by one",
    "segment.folders": "mt_scaffold.segment.encode, for one NAME.bin per call",
    "corpus.storage.remote": "local files",
    "experiment.evaluation.harness": "experiment.evaluation.compare, which also compares answers to tasks",
    "experiment.inference.forced_decoding": "experiment.evaluation.losses.references.forced_decode",
    "experiment.packing": "mt_scaffold.experiment.inference.translate_text",
    "experiment.inference.sample": "export_transformers, then transformers' generate()",
    "Parity": _PARITY,
}
# Key, dotted from the top (".NAME" for one at the top, without the numbers of lists) or by its last name in any section
# → what takes its place.
KEYS: dict[str, Key] = {
    ".paper": Key("list the scores of the paper under compare_with", (None,)),
    "score.last_checkpoints": Key("score single checkpoints with mt-scaffold translate and score", (0,)),
    "score.comet": Key(_COMET, (None,)),
    "rows.checkpoints": Key("score single checkpoints with mt-scaffold translate and score", None),
    "rows.over_documents": Key("the test over trainings and documents together is under tests", None),
    ".bleu_intervals": Key("the comparison has the interval of each score", None),
    "tasks.storycloze": Key("name a task of your own that reads the files (tasks.include_path)"),
    "tasks.download": Key(_DOWNLOAD, (False, True)),
    "not_run": Key("a task that cannot be loaded is an error", None),
    "tasks.paper_setting": Key("tools/paper.json has the paper's scores", ({},)),
    "translate.engine": Key(_CTRANSLATE2, ("fairseq",)),
    "translate.quantization": Key(_CTRANSLATE2, (None,)),
    ".samples": Key(
        "export the model (mt-scaffold export transformers) and use transformers' generate()",
        ({"prompts": [], "length": 100, "temperature": 0.8, "top_k": 0, "top_p": 1.0, "seed": 1},),
    ),
    ".prepare": Key(
        "one job tokenises each language, and apply-bpe writes the subwords of words; remove it",
        frozenset({"chunks", "keep_text"}),
    ),
    "train.expected": Key(
        "the plug-in checks the real length of an epoch before the first update; remove it",
        frozenset({"pairs", "subwords", "text"}),
    ),
    "inference": Key(_INFERENCE, (None, "merges")),
    "uniform_sampling": Key(_UNIFORM_SAMPLING, (None, 0.0)),
    "uniform_sampling_source": Key(_UNIFORM_SAMPLING, (None, 0.0)),
    "uniform_sampling_target": Key(_UNIFORM_SAMPLING, (None, 0.0)),
    "systems.*.dropout": Key("language models are trained without BPE-dropout", (0.0,)),
    "systems.*.global_merges": Key(_PARITY, (None, 0)),
    "systems.*.window": Key(_PARITY, (None,)),
    "systems.*.alpha": Key(_PARITY, (None,)),
}


# Stores whose URLs were paths → what takes their place.
URLS = dict.fromkeys(("s3", "hf", "gs"), "copy the file first")
# Key or option without its dashes → value → what takes its place.
VALUES: dict[str, dict[str, str]] = {
    "algorithm": {"parity": _PARITY},
    "format": {"youtokentome": _FORMATS},
    "to": {"youtokentome": _FORMATS},
}


def without_removed_keys(value: Mapping[str, Any], known: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the keys of a section without the removed ones whose value is neutral.

    known: the keys that the section has; these count as present. section: its dotted key. Raises KeyError with the name
    of a removed key that had an effect, whose place ``instead_of_key`` returns.
    """
    kept = dict(value)
    for name in value:
        found = None if name in known else _key(section, name)
        if found is None:
            continue
        if not _is_neutral(value[name], found.neutral):
            raise KeyError(name)
        del kept[name]
    return kept


def instead_of_key(section: str, name: str) -> str:
    """Return what takes the place of a removed key, as errors show it."""
    found = _key(section, name)
    assert found is not None
    return f"removed; {found.instead}"


def _is_neutral(value: object, neutral: tuple[Any, ...] | frozenset[str] | None) -> bool:
    if isinstance(neutral, frozenset):
        return isinstance(value, dict) and value.keys() <= neutral
    return neutral is None or any(value == each and type(value) is type(each) for each in neutral)


def _key(section: str, name: object) -> Key | None:
    if not isinstance(name, str):  # such as a number of YAML, with more digits than Python writes
        return None
    dotted = re.sub(r"^systems\.[^.]+\.", "systems.*.", re.sub(r"\[\d+\]", "", f"{section}.{name}"))
    return KEYS.get(dotted) or KEYS.get(name)
