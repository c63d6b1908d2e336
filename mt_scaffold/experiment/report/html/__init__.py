"""A finished experiment → the report, one self-contained HTML page of the results of earlier steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.analysis.stats import table
from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.corpus.text import read_lines, surface_form
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.segmentation import segmentation_in
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.layout import Run, of_finished, read_folder
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.clean import CleanRecord
from mt_scaffold.experiment.data.record import DataRecord
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.comparison_files import published_tables, score_tables
from mt_scaffold.experiment.report.html.parts import (
    figures,
    options_text,
    render,
    systems_table,
    tables_of,
    text,
)
from mt_scaffold.experiment.report.statistics import LanguageModelStatistics, Statistics, documents_table
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.train import TrainingRecord
from mt_scaffold.segment.draw import description

# The metrics that can choose checkpoint_best.pt (TrainingRecord.valid_metric), as the page names them.
_VALID_METRICS = {"loss": "loss", "bleu": "BLEU", "bits_per_byte": "loss per byte"}


def html_report(experiment: PathLike, output: PathLike | None = None, examples: int = 20) -> Path:
    """Write the report of a finished experiment (a folder that the workflow wrote) and return its path.

    It shows the systems that were compared.

    output: the report (default: ``report.html`` in the folder). examples: of translation, the number of sentences to
    show, spread evenly over those of the first test set that the systems translate differently.

    Raises MTScaffoldError if the experiment is not finished or one of its files is missing or malformed.
    """
    if examples < 0:
        raise UsageError(f"report: the number of examples must be 0 or more, not {examples}")
    kind = TranslationLayout if isinstance(read_folder(experiment), Config) else LanguageModelLayout
    layout: TranslationLayout | LanguageModelLayout = kind.read(experiment)
    page = Path(output) if output is not None else layout.report
    with of_finished(layout.folder):
        write_text(page, _content(layout, examples))
    return page


def _content(layout: TranslationLayout | LanguageModelLayout, examples: int) -> str:
    comparison = read_result(Comparison, layout.comparison("json")).shown
    layout = layout.of_systems({row.system for row in comparison.rows})
    config = layout.config
    runs = [{"run": run, "training": read_result(TrainingRecord, layout.training_record(run))} for run in layout.runs]
    if isinstance(layout, TranslationLayout):
        template, own = "translation.html.jinja", _of_translation(layout, examples, runs)
    else:
        template, own = "language_models.html.jinja", _of_language_models(layout)
    return render(
        template,
        config=config,
        comparison=comparison,
        score_tables=tables_of([*score_tables(comparison), *published_tables(comparison)]),
        figures=figures(layout, own["statistics"].figures),
        runs=runs,
        config_text=text(layout.config_file),
        **own,
    )


def _of_translation(layout: TranslationLayout, examples: int, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that only the page of translation shows."""
    config, statistics = layout.config, read_result(Statistics, layout.statistics)
    return {
        "data": _data_rows(layout),
        "statistics": statistics,
        "statistics_table": table(statistics.stats),
        "examples": _examples(layout, examples),
        "valid_metric": _valid_metric(runs),
        "surface": surface_form,
        "systems": systems_table([_system_row(config, name) for name in config.systems]),
        "has_resampling": any(system.resamples for system in config.systems.values()),
        "has_sides": any(len(codes.languages) == 1 for codes in config.all_codes.values()),
    }


def _of_language_models(layout: LanguageModelLayout) -> dict[str, Any]:
    """Return the values that only the page of language models shows."""
    config, statistics = layout.config, read_result(LanguageModelStatistics, layout.statistics)
    tasks = read_result(Comparison, layout.task_comparison("json")).shown if config.tasks is not None else None
    rows = [
        {
            "system": name,
            "codes": config.codes_of(name).name,
            "extra training options": options_text(system.train.options if system.train else {}),
            "tested against": config.baseline_of(name) or "",
        }
        for name, system in config.systems.items()
    ]
    return {
        "statistics": statistics,
        "statistics_table": documents_table(statistics.vocabularies),
        "systems": systems_table(rows),
        "tasks": tasks,
        "task_tables": tables_of(score_tables(tasks)) if tasks is not None else [],
    }


def _system_row(config: Config, name: str) -> dict[str, str]:
    """Return the properties that tell systems apart, by the columns of the table."""
    system, setting = config.systems[name], config.segmentation(name)
    codes = ", ".join(codes.file_or_name for codes in setting.codes)
    return {
        "system": name,
        "codes": codes,
        "dropout or sampling, source and target": description(system.resamplings),
        "vocabulary threshold": str(setting.vocabulary_threshold or ""),
        "glossaries": " ".join(setting.glossaries),
        "extra training options": options_text(system.train.options if system.train else {}),
        "tested against": config.baseline_of(name) or "",
    }


def _data_rows(layout: TranslationLayout) -> list[dict[str, Any]]:
    """Return one row per part (train, valid, each test set): pairs and words at every step."""
    report = read_result(DataRecord, layout.data_record)
    held_out = report.clean["train"].held_out if "train" in report.clean else None
    rows = []
    for part in layout.parts:
        if part == "valid" and held_out is not None:
            rows.append(_held_out_row(held_out))
            continue
        missing = {part} - report.raw.corpora.keys()
        missing |= {f"{part}.{language}" for language in layout.languages} - report.tokenise.keys()
        if missing:
            raise MTScaffoldError(f"{layout.data_record}: no {min(missing)}; run the experiment to completion first")
        corpus = report.raw.corpora[part]
        cleaned = report.clean.get(part)
        rows.append(
            {
                "part": f"{part} ({several} references)" if (several := report.raw.references.get(part)) else part,
                "raw_pairs": corpus.lines,
                "raw_words": [corpus.words[language] for language in layout.languages],
                "tokenised_words": [report.tokenise[f"{part}.{language}"].words for language in layout.languages],
                "kept_pairs": cleaned.pairs_kept if cleaned else corpus.lines,
                "kept_words": cleaned.words_kept if cleaned else None,
                "dropped": cleaned.dropped if cleaned else None,
            }
        )
    return rows


def _held_out_row(cleaned: CleanRecord) -> dict[str, Any]:
    """Return the row of a validation set that cleaning took out of the training text."""
    return {
        "part": "valid (held out of train)",
        "raw_pairs": cleaned.pairs_read,
        "raw_words": None,
        "tokenised_words": cleaned.words_read,
        "kept_pairs": cleaned.pairs_kept,
        "kept_words": cleaned.words_kept,
        "dropped": cleaned.dropped,
    }


def _examples(layout: TranslationLayout, number: int) -> list[dict[str, Any]]:
    """Return sentences of the first test set: source, reference, and the translation of each system (first seed).

    They are spread evenly over those that the systems translate differently, of which an example shows more than of
    the others, and over all if there are none.
    """
    config = layout.config
    test, seed = config.test_sets[0], config.seeds[0]
    words = read_lines(layout.words(test, layout.source))
    sources = read_lines(layout.raw(test, layout.source))
    references = read_lines(layout.raw(test, layout.target))
    translations = {
        system: (
            segmentation_in(layout, config.segmentation(system).name).segmenters()[0],
            read_lines(layout.translation(Run(system, seed), test)),
            read_lines(layout.translation(Run(system, seed), test, "subwords")),
        )
        for system in config.systems
    }
    first = next(iter(translations.values()))[0]
    shown = [index for index in range(len(words)) if len({text[index] for _, text, _ in translations.values()}) > 1]
    shown = shown or list(range(len(words)))
    count = min(number, len(shown))
    return [
        {
            "number": index + 1,
            "words": words[index],
            "source": sources[index],
            "reference": references[index],
            "systems": [
                {
                    "name": system,
                    "source_subwords": bpe.segment(words[index]),
                    "source_pieces": pieces_of(bpe.segment(words[index]), first.segment(words[index])),
                    "subwords": subwords[index],
                    "pieces": pieces_of(text[index], references[index]),
                }
                for system, (bpe, text, subwords) in translations.items()
            ],
        }
        for index in (shown[place * len(shown) // count] for place in range(count))
    ]


def pieces_of(text: str, other: str) -> list[tuple[str, bool]]:
    """Return the words of a line, or of its subwords, each with whether another line lacks it.

    >>> pieces_of("a lo@@ w dog", "a low dog")
    [('a', False), ('lo@@ w', True), ('dog', False)]
    """
    several = [[part for part in re.split(r"(?<!@@) +", line) if part] for line in (text, other)]
    there = Counter(several[1])
    found = []
    for word in several[0]:
        found.append((word, there[word] <= 0))
        there[word] -= 1
    return found


def _valid_metric(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the label of the validation metric; without the metric if trainings have different ones."""
    metrics = {run["training"].valid_metric for run in runs}
    return f"validation {_VALID_METRICS.get(metrics.pop(), '')}".strip() if len(metrics) == 1 else "validation"
