"""A finished experiment with language models → the report, one self-contained HTML page, as for translation."""

from __future__ import annotations

from pathlib import Path

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.comparison_tables import published_tables, score_tables
from mt_scaffold.experiment.report.html.parts import (
    check_finished,
    figures,
    options_text,
    render,
    systems_table,
    tables_of,
    text,
)
from mt_scaffold.experiment.report.statistics import LanguageModelStatistics, documents_table
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.train import TrainingReport


def language_model_report(experiment: PathLike, output: PathLike | None = None) -> Path:
    """Write the report of a finished experiment with language models and return its path.

    output: the report (default: ``report.html`` in the folder).

    Raises MTScaffoldError if the experiment is not finished or one of its files is missing or malformed.
    """
    layout = LanguageModelLayout.read(experiment)
    check_finished(layout)
    comparison = read_result(Comparison, layout.comparison("json")).shown
    layout = layout.of_systems({row.system for row in comparison.rows})
    config = layout.config
    statistics = read_result(LanguageModelStatistics, layout.statistics)
    tasks = read_result(Comparison, layout.task_comparison("json")).shown if config.tasks is not None else None
    runs = [{"run": run, "training": read_result(TrainingReport, layout.training_report(run))} for run in layout.runs]
    page = Path(output) if output is not None else layout.report
    content = render(
        "language_models.html.jinja",
        config=config,
        comparison=comparison,
        score_tables=tables_of([*score_tables(comparison), *published_tables(comparison)]),
        tasks=tasks,
        task_tables=tables_of(score_tables(tasks)) if tasks is not None else [],
        statistics_table=documents_table(statistics.vocabularies),
        figures=figures(layout, statistics.figures),
        runs=runs,
        config_text=text(layout.config_file),
        systems=systems_table(
            [
                {
                    "system": name,
                    "codes": config.codes_of(name).name,
                    "extra training options": options_text(system.train.options if system.train else {}),
                    "tested against": config.baseline_of(name) or "",
                }
                for name, system in config.systems.items()
            ]
        ),
    )
    write_text(page, content)
    return page
