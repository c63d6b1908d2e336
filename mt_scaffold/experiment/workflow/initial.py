"""Write a first configuration for a user's files: commented, with a description of the files, and ready to run."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mt_scaffold.corpus.files import PathLike, compression_of, open_input, open_output, without_compression, write_text
from mt_scaffold.corpus.text import read_pairs, word_count
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import load_experiment
from mt_scaffold.experiment.configuration.data import SIDES, Tokenise
from mt_scaffold.experiment.configuration.language_model_layout import existing_files
from mt_scaffold.experiment.data.preprocessed import looks_tokenised, refuse_preprocessed, suffix_of_markup
from mt_scaffold.experiment.tasks.training_text import count_text_lines, documents_look_preprocessed, first_plain

_LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z0-9]+)*")
# The names of validation and test sets next to a training text.
_VALID, _TEST = ("valid", "val", "dev"), re.compile(r"(test|newstest|tst)[\w.+-]*")
# The number of lines from which the maximum ratio of lengths is chosen.
_LOOKED_AT = 2000
_RATIOS = (1.5, 3.0, 9.0)
# The maximum words per side of a kept pair, and the share of kept pairs below which a warning is given.
_MOST_WORDS, _MOST_KEPT = 250, 0.98


@dataclass(frozen=True)
class Model:
    """A model size. up_to: the number of pairs for which it is chosen, at most; says: where it can be trained."""

    up_to: float
    symbols: int
    options: str
    says: str


_TRANSFORMER = """\
    optimizer: adam
    adam-betas: (0.9, 0.98)
    lr-scheduler: inverse_sqrt
    criterion: label_smoothed_cross_entropy
    label-smoothing: 0.1"""
_MODELS = (
    Model(
        60_000,
        4000,
        """\
    arch: transformer
    share-all-embeddings: true
    encoder-layers: 3
    encoder-embed-dim: 128
    encoder-ffn-embed-dim: 256
    encoder-attention-heads: 4
    decoder-layers: 3
    decoder-embed-dim: 128
    decoder-ffn-embed-dim: 256
    decoder-attention-heads: 4
    dropout: 0.2
    lr: 0.003
    warmup-updates: 600
    warmup-init-lr: 1e-7
    clip-norm: 1.0
    max-tokens: 1600      # subwords of an update, of the longer side""",
        "small enough for a CPU",
    ),
    Model(
        1_000_000,
        10000,
        """\
    arch: transformer_iwslt_de_en
    share-all-embeddings: true
    dropout: 0.3
    weight-decay: 0.0001
    lr: 0.0005
    warmup-updates: 4000
    max-tokens: 4096      # subwords of an update, of the longer side""",
        "for a GPU",
    ),
    Model(
        float("inf"),
        32000,
        """\
    arch: transformer_wmt_en_de
    share-all-embeddings: true
    dropout: 0.1
    lr: 0.0007
    warmup-updates: 4000
    warmup-init-lr: 1e-7
    max-tokens: 4096      # subwords of an update on one GPU, of the longer side
    update-freq: 8        # batches per update on one GPU; 1 on eight GPUs""",
        "for several GPUs",
    ),
)


@dataclass(frozen=True)
class Pair:
    """Two files of parallel text: line i of one translates line i of the other. references: further ones of a test."""

    source: str
    target: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParallelTexts:
    """A user's parallel text: pairs of training files, a validation set (None: held out) and test sets by name."""

    train: Sequence[Pair]
    valid: Pair | None = None
    tests: Mapping[str, Pair] = field(default_factory=dict)
    languages: tuple[str, str] | None = None


@dataclass(frozen=True)
class Written:
    """A configuration that was written, the findings in the files, and warnings."""

    path: Path
    found: list[str]
    warnings: list[str]


def init_translation(texts: ParallelTexts, output: PathLike | None = None, hold_out: int | None = None) -> Written:
    """Write the configuration of a translation experiment (default: SOURCE_TARGET.yaml).

    By default, the languages are the suffixes of the files, and validation and test sets are files next to the training
    text: ``valid``, ``val`` or ``dev``, and ``test``. hold_out: the number of training pairs to use as the test set;
    both texts are written next to the configuration. Raises UsageError for text without a test set or with unequal
    numbers of lines, and for an output that exists; MTScaffoldError if a text cannot be read.
    """
    for pair in texts.train:
        for side in (pair.source, pair.target):
            with open_input(side):  # report a missing training text before a missing test set
                pass
    languages = texts.languages or _languages(texts.train[0])
    neighbours = dict(_neighbours(texts.train[0], languages))
    valid = texts.valid or next((neighbours[name] for name in _VALID if name in neighbours), None)
    path = _output(output, "_".join(languages))
    if hold_out is not None:
        if texts.tests or len(texts.train) > 1:
            raise UsageError("--hold-out takes the test set from one training text; leave out --test")
        train, held_out = _hold_out(texts.train[0], languages, hold_out, path)
        given = replace(texts, train=[train], valid=valid, tests={"test": held_out}, languages=languages)
        try:
            return init_translation(given, output)
        except MTScaffoldError:
            # Otherwise they would make the corrected command fail.
            for written in (train.source, train.target, held_out.source, held_out.target):
                os.unlink(written)
            raise
    tests = dict(texts.tests) or {name: pair for name, pair in neighbours.items() if _TEST.fullmatch(name)}
    if not tests:
        raise UsageError(
            f"{texts.train[0].source}: no test set next to it (test.{languages[0]}, test.{languages[1]}); give one "
            "with --test SOURCE TARGET, or take one from the training text with --hold-out 1000"
        )
    found, warnings, tokenised = list[str](), list[str](), set[str]()
    segmented = {name: pair.source for name, pair in tests.items() if _state(pair.source) == "segmented"}
    if not texts.tests and len(segmented) < len(tests):
        warnings += [f"{text}: looks segmented already, and is not used" for text in segmented.values()]
        tests = {name: pair for name, pair in tests.items() if name not in segmented}
    pairs = 0
    for name, pair in [
        *(("train", each) for each in texts.train),
        *([("valid", valid)] if valid else []),
        *tests.items(),
    ]:
        count, states = _look_at_pair(pair)
        pairs += count if name == "train" else 0
        shown = " and ".join(f"{language} {state}" for language, state in zip(languages, states, strict=True))
        found.append(f"{name}: {count:,} pairs, {shown}: {', '.join((pair.source, pair.target, *pair.references))}")
        for state, text in zip(states, (pair.source, pair.target), strict=True):
            warnings += suffix_of_markup(text)
            if state == "marked up":
                refuse_preprocessed(text, Tokenise())
            if state == "segmented":
                raise UsageError(f"{text}: looks segmented already (@@); give the words, restored with join")
            if state == "tokenised" and name == "train":
                tokenised.add(text)
            elif state == "tokenised" and not tokenised:
                warnings.append(f"{text}: looks tokenised already, but the training text does not; give the raw text")
    ratio, kept = _ratio(texts.train[0])
    if kept < _MOST_KEPT:
        warnings.append(
            f"{texts.train[0].source}: cleaning drops about {1 - kept:.0%}".replace("%", " %")
            + f" of the pairs (max_ratio {ratio:g}, 1 to {_MOST_WORDS} words); if they are good, change clean in {path}"
        )
    model = next(each for each in _MODELS if pairs <= each.up_to)
    # A small text does not have enough frequent pairs for more.
    size = sum(Path(path).stat().st_size for pair in texts.train for path in (pair.source, pair.target))
    symbols = min(model.symbols, max(200, size // 10_000 * 100))
    values = {
        "name": _quoted(path.stem),
        "source": _quoted(languages[0]),
        "target": _quoted(languages[1]),
        "found": _comments(found),
        "train": "".join(_pair_lines(pair) for pair in texts.train).rstrip("\n"),
        "valid": f"    valid:\n{_pair_lines(valid)}" if valid else "",
        "held_out": "" if valid else _HELD_OUT.format(every=max(10, pairs // 2000)),
        "tests": "".join(f"      {name}:\n{_pair_lines(pair, 8)}" for name, pair in tests.items()).rstrip("\n"),
        "tokenise": _tokenise([any(vars(pair)[side] in tokenised for pair in texts.train) for side in SIDES]),
        "ratio": ratio,
        "most_words": _MOST_WORDS,
        "kept": f"{kept:.0%}".replace("%", " %"),
        "symbols": symbols,
        "size": model.says,
        "options": f"{model.options}\n{_TRANSFORMER}",
    }
    return _write(path, _TRANSLATION.format(**values), found, warnings)


def init_documents(
    train: Sequence[str],
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    output: PathLike | None = None,
) -> Written:
    """Write the configuration of an experiment with language models (default: documents.yaml).

    train, valid, test: paths and globs. Without valid and test, documents are held out for both. Raises UsageError if
    only one of the two is given, and for an output that exists; MTScaffoldError if a text cannot be read.
    """
    if bool(valid) != bool(test):
        raise UsageError("give both --valid and --test, or neither: documents are then held out for both")
    path = _output(output, "documents")
    found, size = list[str](), 0
    for name, patterns in (("train", train), ("valid", valid), ("test", test)):
        files = existing_files(list(patterns))
        if not files:
            continue
        bytes_of = sum(file.stat().st_size * (3 if compression_of(file) else 1) for file in files)
        size += bytes_of if name == "train" else 0
        count = sum(map(_lines, files)) if not str(files[0]).endswith(".parquet") else None
        documents = "" if count is None else f", {count:,} documents (lines)"
        plain = first_plain(files)
        state = "" if plain is None else f", {_state(os.fspath(plain))}"
        number = f"{len(files):,} {'file' if len(files) == 1 else 'files'}"
        found.append(f"{name}: {number}, {bytes_of / 1e6:,.1f} MB{documents}{state}")
    tokens = max(1, size // 4)
    small = size < 50_000_000
    held_out = "" if valid else "  # Of every N documents, one is for validation and one for the test set.\n"
    held_out += "" if valid else "  held_out_every: 100\n"
    values = {
        "name": _quoted(path.stem),
        "found": _comments(found),
        "train": ", ".join(map(_quoted, train)),
        "valid": f"    valid: [{', '.join(map(_quoted, valid))}]\n" if valid else "",
        "tests": f"    tests: {{test: [{', '.join(map(_quoted, test))}]}}\n" if test else "",
        "held_out": held_out,
        "symbols": 4000 if small else 32000,
        "tokens": max(100_000, tokens * 4),
        "size": "small enough for a CPU" if small else "for a GPU",
        "layers": 4 if small else 12,
        "width": 128 if small else 768,
        "inner": 512 if small else 3072,
        "heads": 4 if small else 12,
        "length": 128 if small else 1024,
        "batch": 16 if small else 8,
        "rate": 0.003 if small else 0.0006,
        "warmup": 100 if small else 500,
    }
    return _write(path, _DOCUMENTS.format(**values), found, documents_look_preprocessed(existing_files(list(train))))


def _write(path: Path, text: str, found: list[str], warnings: list[str]) -> Written:
    write_text(path, text)
    try:
        load_experiment(path)
    except UsageError:
        path.unlink()
        raise
    return Written(path, found, warnings)


def _output(output: PathLike | None, name: str) -> Path:
    path = Path(output or f"{name}.yaml")
    if path.exists():
        raise UsageError(f"{path}: exists already; choose another name with --output, or remove it")
    return path


def _languages(pair: Pair) -> tuple[str, str]:
    endings = tuple(Path(without_compression(path)).suffix.lstrip(".") for path in (pair.source, pair.target))
    if not all(map(_LANGUAGE.fullmatch, endings)) or endings[0] == endings[1]:
        raise UsageError(
            f"{pair.source}, {pair.target}: their suffixes are not two languages; give them, as in --languages en de"
        )
    return endings[0], endings[1]


def _neighbours(train: Pair, languages: tuple[str, str]) -> Iterator[tuple[str, Pair]]:
    """Yield the name and the files of each other parallel text in the folder of the training text."""
    for path in sorted(Path(train.source).parent.iterdir()):
        for ending in (f".{languages[0]}", f".{languages[0]}.gz", f".{languages[0]}.zst"):
            name = path.name.removesuffix(ending)
            other = path.with_name(name + ending.replace(languages[0], languages[1], 1))
            if path.name.endswith(ending) and other.is_file() and os.fspath(path) != train.source:
                yield name, Pair(os.fspath(path), os.fspath(other))


def _look_at_pair(pair: Pair) -> tuple[int, tuple[str, str]]:
    """Return the number of pairs, and the state of each side: raw, tokenised or segmented."""
    counts = [count_text_lines(pair.source)]
    for target in (pair.target, *pair.references):
        if (count := count_text_lines(target)) != counts[0]:
            raise UsageError(
                f"{pair.source} has {counts[0]:,} lines, but {target} {count:,}; line i must translate line i"
            )
    if not counts[0]:
        raise UsageError(f"{pair.source}: empty; give a text")
    return counts[0], (_state(pair.source), _state(pair.target))


def _lines(path: Path) -> int:
    with open_input(path) as stream:
        return sum(1 for _ in stream)


def _state(path: str) -> str:
    """Return the apparent state of a text: raw, tokenised or segmented."""
    found = looks_tokenised(path)
    return "raw" if found is None else found.kind


def _tokenise(tokenised: Sequence[bool]) -> str:
    """Return the section ``tokenise`` for the sides whose training text is tokenised already, or "" if neither is."""
    if not any(tokenised):
        return ""
    said = "none" if all(tokenised) else f"{{{SIDES[tokenised.index(True)]}: none}}"
    return f"# This text is tokenised already; its words are separated by spaces.\ntokenise: {said}\n\n"


def _ratio(pair: Pair) -> tuple[float, float]:
    """Return the least maximum ratio of lengths that keeps most pairs, and the share that cleaning then keeps."""
    ratios, long, looked_at = [], [], 0
    for (source, target), _ in zip(read_pairs(pair.source, pair.target), range(_LOOKED_AT), strict=False):
        counts = sorted((word_count(source), word_count(target)))
        looked_at += 1
        if counts[0]:
            ratios.append(counts[1] / counts[0])
            long.append(counts[1] > _MOST_WORDS)
    if not ratios:
        raise MTScaffoldError(f"{pair.source}: no words in its first lines; give another text")
    for ratio in _RATIOS:
        if sum(each <= ratio for each in ratios) >= 0.9 * len(ratios):
            break
    return ratio, sum(each <= ratio and not more for each, more in zip(ratios, long, strict=True)) / looked_at


def _hold_out(train: Pair, languages: tuple[str, str], number: int, configuration: Path) -> tuple[Pair, Pair]:
    """Write every Nth training pair, and the others, to files next to the configuration; return (kept, held out)."""
    pairs, _ = _look_at_pair(train)
    if not 0 < number <= pairs // 2:
        raise UsageError(f"--hold-out {number}: of {pairs:,} pairs, hold out 1 to {pairs // 2:,}")
    every = pairs // number
    names = [[configuration.with_suffix(f".{part}.{each}") for each in languages] for part in ("train", "test")]
    for output in itertools.chain(*names):
        _output(output, "")
    for side, path in enumerate((train.source, train.target)):
        kept, held_out = names[0][side], names[1][side]
        with open_input(path) as lines, open_output(kept) as rest, open_output(held_out) as test:
            for line, content in enumerate(lines, 1):
                chosen = line % every == 0 and line // every <= number
                (test if chosen else rest).write(content.rstrip(b"\n") + b"\n")
    first, second = (Pair(os.fspath(source), os.fspath(target)) for source, target in names)
    return first, second


def _comments(found: Sequence[str]) -> str:
    return "\n".join(f"#   {line}" for line in found)


def _pair_lines(pair: Pair, indent: int = 6) -> str:
    space = " " * indent
    lines = f"{space}- source: {{path: {_quoted(pair.source)}}}\n"
    if pair.references:
        files = ", ".join(f"{{path: {_quoted(path)}}}" for path in (pair.target, *pair.references))
        return f"{lines}{space}  references: [{files}]\n"
    return f"{lines}{space}  target: {{path: {_quoted(pair.target)}}}\n"


def _quoted(text: str) -> str:
    """Return text as a YAML string within brackets; plain ``no`` and ``2024`` would be a truth value and a number."""
    import yaml

    plain = re.fullmatch(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*", text) and yaml.safe_load(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)


_HELD_OUT = """\
  # Every Nth training pair goes to the validation set instead.
  valid_every: {every}
"""
_TRANSLATION = """\
# A translation experiment, written by mt-scaffold init: mt-scaffold check THIS_FILE, then mt-scaffold run THIS_FILE.
# These files were found:
{found}
name: {name}              # results go to experiments/NAME
languages: {{source: {source}, target: {target}}}

# Line i of a source file translates line i of its target file. Paths are relative to the folder in which you start.
data:
  files:
    train:
{train}
{valid}    tests:
{tests}
{held_out}  # sample: 2000          # only the first 2,000 pairs, to rehearse everything

{tokenise}# Pairs to keep, by their word counts: {kept} of the first pairs.
clean: {{min_tokens: 1, max_tokens: {most_words}, max_ratio: {ratio}}}

# Joint codes, learned from the words of both sides of train. For Scaffold-BPE, symbols counts the normal tokens.
codes: {{symbols: {symbols}}}

# The systems to compare: a name, and how it segments. Each is tested against the baseline.
systems:
  bpe: {{algorithm: bpe}}
  scaffold: {{algorithm: scaffold}}
  # scaffold+dropout: {{algorithm: scaffold, dropout: 0.1}}
baseline: bpe
# Each system is trained once per seed. With fewer than three, a difference may be chance.
seeds: [1, 2, 3]

# A transformer, {size}.
train:
  # Options of fairseq-train, without the dashes.
  options:
{options}
  # Training ends after this many epochs, or once BLEU of the validation set has not improved for ten.
  stop: {{epochs: 40}}
  patience: 10
  patience_on: bleu

# Average the checkpoints of the last epochs.
average: {{last: 5}}
# Options of fairseq-generate, without the dashes.
translate: {{options: {{beam: 5, lenpen: 1.0, max-tokens: 4000}}}}
score: {{metrics: [bleu, chrf]}}
"""
_DOCUMENTS = """\
# An experiment with language models, written by mt-scaffold init: mt-scaffold check THIS_FILE, then mt-scaffold run
# THIS_FILE. These files were found:
{found}
task: language_modeling
name: {name}              # results go to experiments/NAME

# Paths and globs, relative to the folder in which you start. In plain text, every line is a document.
data:
  documents:
    train: [{train}]
{valid}{tests}    # format: files       # every file is a document
{held_out}  # sample: 1000          # only the first 1,000 documents, to rehearse everything

# Codes of bytes, learned after GPT-2's pre-tokenisation; with total_symbols the 256 bytes are among the symbols.
codes: {{symbols: {symbols}, total_symbols: true, pretokenise: gpt2}}

# The systems to compare: a name, and how it segments. Each is tested against the baseline.
systems:
  bpe: {{algorithm: bpe}}
  scaffold: {{algorithm: scaffold}}
baseline: bpe
# Each system is trained once per comparison and seed. With fewer than three seeds, a difference may be chance.
seeds: [1, 2, 3]

# When trainings end: after this many tokens (about four times the text), or after the text that the baseline read then.
comparisons:
  equal_tokens: {{tokens: {tokens}}}
  equal_text: {{text_of: equal_tokens}}

# A transformer, {size}.
train:
  # After the warm-up, the learning rate falls along half a cosine until the last update.
  schedule: cosine
  # Options of fairseq-train, without the dashes.
  options:
    arch: transformer_lm
    share-decoder-input-output-embed: true
    decoder-layers: {layers}
    decoder-embed-dim: {width}
    decoder-input-dim: {width}
    decoder-output-dim: {width}
    decoder-ffn-embed-dim: {inner}
    decoder-attention-heads: {heads}
    decoder-normalize-before: true
    dropout: 0.1
    tokens-per-sample: {length}
    batch-size: {batch}        # samples of an update
    optimizer: adam
    adam-betas: (0.9, 0.95)
    weight-decay: 0.1
    clip-norm: 1.0
    lr: {rate}
    warmup-updates: {warmup}

# The final model is the last checkpoint.
average: {{last: 1}}
"""
