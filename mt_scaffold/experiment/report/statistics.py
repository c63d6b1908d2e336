"""A finished experiment → the statistics shown next to its scores: vocabularies, figures.

Experiments with translation first, then those with language models.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mt_scaffold._core import WordCounts
from mt_scaffold.analysis.compare_vocab import (
    SizeComparison,
    VocabularyComparison,
    compare_at_sizes,
    compare_vocabularies,
)
from mt_scaffold.analysis.stats import (
    RARE,
    RENYI_POWERS,
    Summary,
    entropy,
    redundancy,
    renyi_efficiency,
    summarise,
)
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, make_folder, open_input, write_text
from mt_scaffold.corpus.symbols import token_name
from mt_scaffold.corpus.text import END_OF_WORD
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.data_folder import DICTIONARY, codes_of, read_documents_folder
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.systems import CodesSetting
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.comparison import SYNTHETIC_NOTE, Comparison
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.report import figures
from mt_scaffold.experiment.report.embeddings import Embeddings, Spread, read_embeddings, spread
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.training.train import TrainingRecord
from mt_scaffold.methods import PlainBPE, Scaffold
from mt_scaffold.segment.draw import labels
from mt_scaffold.segment.frequencies import Vocabulary
from mt_scaffold.tables import decimal, format_table

_DIFFERENCES = (
    "{}: difference from the baseline with its 95 % interval, not corrected for the number of comparisons. An interval "
    "that holds 0 may be chance."
)
_PER_BYTE = "Training and validation loss, in bits per byte of the target text, whatever subwords it is divided into."
_PER_SUBWORD = (
    "Training and validation loss, in bits per subword. Systems whose segmentations differ divide the text into "
    "different numbers of subwords: compare the shape of the curves, not their height."
)


@dataclass(frozen=True)
class Figure:
    """A figure of the HTML report.

    section: ``differences``, of the main metric; ``scores``, ``training``, ``vocabularies`` or ``embeddings``.
    file: its SVG, relative to the experiment's folder. wide: as wide as the page.
    """

    section: str
    file: str
    caption: str
    wide: bool = False


@dataclass(frozen=True)
class Statistics:
    """The measurements of an experiment beyond its scores.

    stats: one summary per codes file, on the training words of its languages. vocabularies, sizes: BPE against
    Scaffold-BPE, as trained and at several sizes; None unless the experiment has both. embeddings: of the source, for
    the first seed of each system with either of these codes.
    """

    text: str
    stats: list[Summary]
    vocabularies: VocabularyComparison | None = field(metadata={"omit_none": True})
    sizes: list[SizeComparison] | None = field(metadata={"omit_none": True})
    synthetic: bool
    experiment: str
    versions: dict[str, str]
    figures: list[Figure]
    embeddings: list[Spread]


def statistics(layout: TranslationLayout) -> Statistics:
    """Measure the finished systems of a translation experiment and draw its figures.

    layout: of these systems, in the folder that the workflow wrote.

    Writes ``statistics.json`` and ``figures/`` in the folder, and returns the content of the former.

    Raises MTScaffoldError if the experiment is not finished, or one of its files is missing or malformed.
    """
    config = layout.config
    counts = {language: count_words(layout.words("train", language)) for language in layout.languages}
    joint = WordCounts()
    for each in counts.values():
        joint.add(each)
    vocabularies = {
        name: codes.kind.use(layout.codes(name), joint if len(codes.languages) > 1 else counts[codes.languages[0]])
        for name, codes in config.all_codes.items()
    }
    pair, compared, sizes = _pair(config), None, None
    if pair is not None:
        bpe, scaffold = pair
        compared = compare_vocabularies(vocabularies[bpe.name], vocabularies[scaffold.name])
        compared = replace(compared, bpe=bpe.name, scaffold=scaffold.name)
        assert isinstance(bpe.method, PlainBPE)
        symbols = bpe.method.symbols
        sizes_around = sorted({max(1, symbols // 4), max(1, symbols // 2), symbols, symbols * 2})
        sizes = compare_at_sizes(joint, sizes_around, bpe.method.min_frequency)
    models = _models(layout, compared) if compared else {}
    make_folder(layout.figures)
    result = Statistics(
        text="training words, source and target",
        stats=[replace(summarise(use), codes=name) for name, use in vocabularies.items()],
        vocabularies=compared,
        sizes=sizes,
        synthetic=config.synthetic,
        experiment=config.name,
        versions=versions(),
        figures=_draw(layout, vocabularies, compared, sizes, models),
        embeddings=[row for system, model in models.items() for row in spread(system, model)],
    )
    write_result(layout.statistics, result)
    return result


def _pair(config: Config) -> tuple[CodesSetting, CodesSetting] | None:
    """Return joint BPE and Scaffold-BPE codes with the same settings, preferably of the experiment's N, or None."""
    found = {}
    for bpe in config.all_codes.values():
        if not isinstance(bpe.method, PlainBPE) or len(bpe.languages) == 1:
            continue
        scaffold = replace(bpe, method=Scaffold(**bpe.method.given))
        if scaffold.name in config.all_codes:
            found[bpe.method.symbols] = (bpe, scaffold)
    return found.get(config.codes.symbols, next(reversed(found.values()), None))


def _models(layout: TranslationLayout, compared: VocabularyComparison) -> dict[str, Embeddings]:
    """Read the source embeddings of each system's first seed, and mark the tokens that Scaffold-BPE removes or adds."""
    removed = frozenset(token_name(entry.token) for entry in compared.removed)
    new = frozenset(token_name(entry.token) for entry in compared.new)
    models = {}
    for system in layout.config.systems:
        segmentation = layout.config.segmentation(system)
        if segmentation.name not in (compared.bpe, compared.scaffold):
            continue
        marked = {"tokens Scaffold-BPE removes": removed} if segmentation.name == compared.bpe else {"new tokens": new}
        checkpoint = layout.averaged(Run(system, layout.config.seeds[0]))
        models[system] = read_embeddings(checkpoint, layout.dictionary(layout.data_of(system), layout.source), marked)
    return models


def _draw(
    layout: TranslationLayout,
    vocabularies: Mapping[str, Vocabulary],
    compared: VocabularyComparison | None,
    sizes: Sequence[SizeComparison] | None,
    models: Mapping[str, Embeddings],
) -> list[Figure]:
    """Draw every figure and return them in the order of the page."""
    config, folder = layout.config, layout.figures
    note = SYNTHETIC_NOTE if config.synthetic else ""
    drawn: list[Figure] = []

    def show(section: str, svg: Path, caption: str, wide: bool = False) -> None:
        drawn.append(Figure(section, svg.relative_to(layout.folder).as_posix(), caption, wide))

    systems = [*config.systems]
    if layout.comparison("json").exists():
        comparison = read_result(Comparison, layout.comparison("json")).shown
        if drawn_differences := draw_differences(comparison, folder / "differences", note, systems):
            show("differences", drawn_differences, _DIFFERENCES.format(_label(comparison.main_metric)))
        for test in config.test_sets:
            rows = (row for row in comparison.rows if row.test_set == test)
            metric = comparison.main_metric
            means = {row.system: mean.mean for row in rows if (mean := row.metric(metric)) is not None}
            if series := _by_size(layout, means):
                label = f"{_label(metric)} on {test}, mean over the seeds"
                svg = figures.over_sizes(series, folder / f"{metric.replace(':', '-')}-over-n-{test}", label, note)
                show("scores", svg, f"{label}, over N.")
    bytes_per_token = {
        system: summarise(vocabularies[layout.segmentation_of(system)]).bytes_per_token
        for system in systems
        if layout.segmentation_of(system) in vocabularies and not config.systems[system].resamples
    }
    if series := _by_size(layout, bytes_per_token):
        label = "bytes per token in the training text"
        svg = figures.over_sizes(series, folder / "bytes-per-token-over-n", label, note)
        show("vocabularies", svg, f"{label}, over N.")
    curves = {
        system: [
            read_result(TrainingRecord, layout.training_record(run)).curves
            for run in layout.runs
            if run.system == system
        ]
        for system in systems
    }
    # fairseq logs no epoch with --log-format none.
    if any(points for each in curves.values() for training in each for points in training.values()):
        show(
            "training",
            figures.training_curves(curves, folder / "training", note),
            _PER_BYTE if figures.has_curve(curves, "valid_bits_per_byte") else _PER_SUBWORD,
        )
    if figures.has_curve(curves, "valid_bleu"):
        show(
            "training",
            figures.bleu_curves(curves, folder / "validation-bleu", note),
            "BLEU of the validation set during training, against its own subwords, joined and detokenised: for the "
            "shape of the curves, not to be compared with the scores above.",
        )
    frequencies = {name: vocabulary.sorted_frequencies for name, vocabulary in vocabularies.items()}
    places = first_places({system: config.segmentation(system).codes[0].name for system in systems}, frequencies)
    show(
        "vocabularies",
        figures.token_frequencies(frequencies, folder / "token-frequencies", note, places),
        "Sorted token frequencies in the training text.",
    )
    if compared is None:
        return drawn
    if sizes and any(row.gain is not None for row in sizes):
        show(
            "vocabularies",
            figures.replaced_tokens(sizes, folder / "replaced-tokens", note),
            "Average frequency of the tokens that Scaffold-BPE removes from BPE's vocabulary and of the new ones that "
            "replace them, for codes of several sizes learned from the same text.",
        )
    if parts := _parts_to_show(vocabularies[compared.bpe], compared, layout.languages):
        show(
            "vocabularies",
            figures.inside_longer_tokens(parts, vocabularies[compared.bpe].frequencies, folder / "inside-longer", note),
            "Where a string occurs in the text as BPE segments it: as a token (in colour) or in longer ones (grey).",
            wide=True,
        )
    for system, model in () if config.synthetic else models.items():
        show(
            "embeddings",
            figures.embeddings({system: model}, folder / f"embeddings-{system}", systems=systems),
            f"Source embeddings of {system}, seed {config.seeds[0]}, less their mean, projected by SVD.",
        )
    return drawn


def draw_differences(
    comparison: Comparison, path: PathLike, note: str = "", systems: Sequence[str] = ()
) -> Path | None:
    """Draw the differences of the main metric with their intervals; None if none was tested."""
    metric = comparison.main_metric
    changes = [
        figures.Change(
            ", ".join(each for each in (row.group, row.test_set) if each),
            row.system,
            row.baseline or comparison.baseline,
            test.difference,
            test.low,
            test.high,
        )
        for row in comparison.primary_rows
        if (test := row.tests.get(metric)) is not None
    ]
    return figures.differences(changes, path, _label(metric), note, systems) if changes else None


def _label(metric: str) -> str:
    kind = KINDS[metric]
    return f"{kind.label} (lower is better)" if kind.lower_is_better else kind.label


def first_places(codes_of_systems: Mapping[str, str], codes: Iterable[str]) -> dict[str, int]:
    """Return, for each codes name, the index of the first system that uses it; unused codes follow all systems."""
    named = list(codes_of_systems.values())
    others = itertools.count(len(named))
    return {name: named.index(name) if name in named else next(others) for name in codes}


def _by_size(layout: TranslationLayout, values: Mapping[str, float]) -> dict[str, list[tuple[int, float]]]:
    """Return the values of systems with joint codes over N, by kind of system; no series for a single N.

    values: system → value; systems without one are left out.
    """
    series: dict[str, list[tuple[int, float]]] = {}
    for name, system in layout.config.systems.items():
        codes = layout.config.segmentation(name).codes
        method = codes[0].method
        if name in values and len(codes) == 1 and method is not None:
            kind = "+".join([method.variant, *labels(system.resamplings)])
            series.setdefault(kind, []).append((method.amount, values[name]))
    ordered = {kind: sorted(points) for kind, points in series.items()}
    return {kind: points for kind, points in ordered.items() if len({size for size, _ in points}) > 1}


# By language, a string that occurs in many longer words and stays a token.
_KNOWN_PARTS = {"en": "ing"}


def _parts_to_show(bpe: Vocabulary, compared: VocabularyComparison, languages: Sequence[str]) -> list[str]:
    """Return the first two strings that BPE merged only on the way to longer ones, and one that stayed frequent."""
    removed = {entry.token.removesuffix(END_OF_WORD) for entry in compared.removed if entry.scaffold}
    in_order = list(dict.fromkeys(merge.token.removesuffix(END_OF_WORD) for merge in bpe.codes.merges))
    occurs = {token.removesuffix(END_OF_WORD) for token, frequency in bpe.frequencies.items() if frequency}
    parts = [part for part in in_order if part in removed and len(part) >= 4 and any(part in o for o in occurs)][:2]
    kept = [part for part in in_order if part not in removed and len(part) == 3]
    known = [_KNOWN_PARTS[language] for language in languages if _KNOWN_PARTS.get(language) in kept]
    frequent = max(kept, key=lambda part: bpe.frequencies.get(part + END_OF_WORD, 0), default=None)
    return [*parts, known[0] if known else frequent] if parts and frequent else parts


# -- language models


@dataclass(frozen=True)
class VocabularySummary:
    """Statistics of the training documents as one codes file segments them (formulas: docs/statistics.md).

    tokens: without the ends of documents and without BPE-dropout. vocabulary_size: the 256 bytes (512 for codes with
    ``</w>``) and the normal merged tokens. renyi_efficiency: power → efficiency.
    """

    codes: str
    documents: int
    bytes: int
    tokens: int
    vocabulary_size: int
    scaffold_tokens: int
    bytes_per_token: float
    entropy_bits: float
    redundancy: float
    renyi_efficiency: dict[float, float]
    frequency_0: int
    frequency_under_100: int


@dataclass(frozen=True)
class LanguageModelStatistics:
    """The measurements of an experiment beyond its bits per byte, and the figures of its report."""

    experiment: str
    synthetic: bool
    vocabularies: list[VocabularySummary]
    figures: list[Figure]
    versions: dict[str, str]


def language_model_statistics(layout: LanguageModelLayout) -> LanguageModelStatistics:
    """Measure the vocabularies of an experiment with language models, by the counts in its data folders.

    layout: of the systems to measure.

    Writes ``statistics.json``, ``statistics.txt`` and ``figures/``, and returns the content of the first. Raises
    MTScaffoldError if a data folder is missing or malformed.
    """
    config = layout.config
    folders = {config.codes_of(system).name: layout.binarised_of(system) for system in config.systems}
    frequencies = {name: token_counts(folder) for name, folder in folders.items()}
    make_folder(layout.figures)
    note = SYNTHETIC_NOTE if config.synthetic else ""
    result = LanguageModelStatistics(
        experiment=config.name,
        synthetic=config.synthetic,
        vocabularies=[summarise_documents(name, folder, frequencies[name]) for name, folder in folders.items()],
        figures=_draw_language_models(layout, frequencies, note),
        versions=versions(),
    )
    write_text(
        layout.vocabulary_table, f"{note}\n\n" * config.synthetic + format_table(documents_table(result.vocabularies))
    )
    write_result(layout.statistics, result)
    return result


def _draw_language_models(
    layout: LanguageModelLayout, frequencies: Mapping[str, Sequence[int]], note: str
) -> list[Figure]:
    """Draw every figure and return them in the order of the page."""
    config, folder = layout.config, layout.figures
    systems = [*config.systems]
    drawn: list[Figure] = []

    def show(section: str, svg: Path, caption: str) -> None:
        drawn.append(Figure(section, svg.relative_to(layout.folder).as_posix(), caption))

    if layout.comparison("json").exists():
        comparison = read_result(Comparison, layout.comparison("json")).shown
        if svg := draw_differences(comparison, folder / "differences", note, systems):
            show("differences", svg, _DIFFERENCES.format(_label(comparison.main_metric)))
    for name in config.comparisons:
        curves = {
            system: [
                read_result(TrainingRecord, layout.training_record(layout.run_in(name, system, seed))).curves
                for seed in config.seeds
            ]
            for system in systems
        }
        if figures.has_curve(curves, "valid_bits_per_byte"):
            svg = figures.training_curves(curves, folder / f"bits-per-byte-{name}", note, per_byte=True)
            show("training", svg, f"{name}: training and validation loss in bits per byte, whatever the tokens.")
        if any(points for each in curves.values() for training in each for points in training.values()):
            svg = figures.training_curves(curves, folder / f"loss-{name}", note, per_byte=False)
            show("training", svg, f"{name}: the same in bits per token, which do not compare between vocabularies.")
    places = first_places({system: layout.segmentation_of(system) for system in systems}, frequencies)
    svg = figures.token_frequencies(frequencies, folder / "token-frequencies", note, places)
    show("vocabularies", svg, "Sorted token frequencies in the training documents.")
    return drawn


def token_counts(folder: PathLike) -> list[int]:
    """Return how often each token of the codes occurs in the training documents of a data folder, in order of ids.

    Raises MTScaffoldError if the folder or its dictionary is damaged or modified.
    """
    size = read_documents_folder(folder).n_vocab
    path = Path(folder) / DICTIONARY
    counts = []
    with open_input(path) as stream:
        for line in stream.read().decode("utf-8").splitlines()[:size]:
            parts = line.split(" ")
            if len(parts) < 2 or not parts[1].isdecimal():
                raise MTScaffoldError(f"{path}: damaged or modified; run mt-scaffold binarise-documents again")
            counts.append(int(parts[1]))
    return counts


def summarise_documents(name: str, folder: PathLike, frequencies: Sequence[int]) -> VocabularySummary:
    """Return the statistics of one codes file, from the frequencies of its tokens."""
    split = read_documents_folder(folder).splits["train"]
    tokens, bits = sum(frequencies), entropy(frequencies)
    return VocabularySummary(
        codes=name,
        documents=split.documents,
        bytes=split.bytes,
        tokens=tokens,
        vocabulary_size=len(frequencies),
        scaffold_tokens=len({merge.token for merge in Codes.read(codes_of(folder)).merges if not merge.normal}),
        bytes_per_token=split.bytes / tokens,
        entropy_bits=bits,
        redundancy=redundancy(bits, len(frequencies)),
        renyi_efficiency={power: renyi_efficiency(frequencies, power) for power in RENYI_POWERS},
        frequency_0=sum(1 for frequency in frequencies if not frequency),
        frequency_under_100=sum(1 for frequency in frequencies if frequency < RARE),
    )


_LABELS = {
    "documents": "training documents",
    "bytes": "bytes",
    "tokens": "tokens",
    "vocabulary_size": "vocabulary |V|",
    "scaffold_tokens": "scaffold tokens",
    "bytes_per_token": "bytes per token, no </s>",
    "entropy_bits": "entropy H, bits",
    "redundancy": "redundancy",
    "frequency_0": "tokens of frequency 0",
    "frequency_under_100": f"tokens under {RARE}",
}


def documents_table(summaries: Sequence[VocabularySummary]) -> list[list[str]]:
    """Return the statistics as rows of text, one column per codes file; the first row is the heading."""
    rows = [["", *(summary.codes for summary in summaries)]]
    for key, label in _LABELS.items():
        values = [getattr(summary, key) for summary in summaries]
        rows.append([label, *(f"{value:,}" if isinstance(value, int) else decimal(value, 4) for value in values)])
        if key == "redundancy":
            for power in RENYI_POWERS:
                shown = [f"{summary.renyi_efficiency[power]:.4f}" for summary in summaries]
                rows.append([f"Rényi efficiency, power {power:g}", *shown])
    return rows
