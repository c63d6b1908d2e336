"""A finished experiment with language models → the report, one self-contained HTML page, as for translation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.corpus.pretokenise import PATTERNS, SPACES
from mt_scaffold.corpus.text import END_OF_WORD, SEPARATOR, decode, read_lines
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.comparison_tables import published_tables, score_tables
from mt_scaffold.experiment.evaluation.harness.comparison import TaskComparison
from mt_scaffold.experiment.evaluation.harness.tables import tables
from mt_scaffold.experiment.report.html.parts import (
    check_finished,
    figures,
    loss_sections,
    options_text,
    render,
    script_json,
    systems_table,
    tables_of,
    text,
)
from mt_scaffold.experiment.report.statistics import LanguageModelStatistics, documents_table
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.train import TrainingReport

_SAMPLE = re.compile(r"^--- prompt \d+, sample \d+\n", re.MULTILINE)


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
    tasks = read_result(TaskComparison, layout.task_comparison("json")).shown if config.tasks is not None else None
    boxes, left_out = _word_boxes(layout)
    runs = [{"run": run, "training": read_result(TrainingReport, layout.training_report(run))} for run in layout.runs]
    page = Path(output) if output is not None else layout.report
    content = render(
        "language_models.html.jinja",
        config=config,
        comparison=comparison,
        score_tables=tables_of([*score_tables(comparison), *published_tables(comparison)]),
        tasks=tasks,
        task_tables=tables_of(tables(tasks)) if tasks is not None else [],
        losses=loss_sections(statistics.losses),
        statistics_table=documents_table(statistics.vocabularies),
        figures=figures(layout, statistics.figures),
        samples=_samples(layout),
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
        systems_of_codes=[box["systems"] for box in boxes],
        without_box=left_out,
        end_of_word=END_OF_WORD,
        separator=SEPARATOR,
        typed=config.samples.prompts[0] if config.samples.prompts else "What do these codes make of this?",
        codes_json=script_json(boxes),
    )
    write_text(page, content)
    return page


def _samples(layout: LanguageModelLayout) -> list[dict[str, Any]]:
    """Return each prompt with the text, prompt included, that every model of the first seed wrote."""
    prompts = layout.config.samples.prompts
    if not prompts:
        return []
    seed = layout.config.seeds[0]
    written = {run: _parts(text(layout.samples(run)), len(prompts)) for run in layout.runs if run.seed == seed}
    return [
        {
            "prompt": prompt,
            "texts": [(f"{run.system}, {run.comparison}", parts[number]) for run, parts in written.items()],
        }
        for number, prompt in enumerate(read_lines(layout.prompts))
    ]


def _parts(samples: str, number: int) -> Sequence[str]:
    """Return the samples of a file (``format_samples``), one for each of ``number`` prompts."""
    return [samples] if number == 1 else _SAMPLE.split(samples)[1 : number + 1]


def _word_boxes(layout: LanguageModelLayout) -> tuple[list[dict[str, Any]], list[str]]:
    """Return each codes file with its systems and pattern, and the systems whose codes the page cannot apply."""
    systems: dict[str, list[str]] = {}
    for system in layout.config.systems:
        systems.setdefault(layout.segmentation_of(system), []).append(system)
    boxes, left_out = [], []
    for name, names in systems.items():
        codes = Codes.read(layout.codes(name))
        header = codes.header
        by_spaces = header.pretokeniser == SPACES and not (header.picky or header.split_digits)
        if header.pretokeniser not in PATTERNS and not by_spaces:
            left_out += names
            continue
        pattern = None if header.end_of_word else javascript_pattern(header.pretokeniser)
        box = {"codes": as_notation(codes), "bytes": True, "pattern": pattern, "digits": header.split_digits}
        boxes.append({"systems": names, **box})
    return boxes, left_out


def as_notation(codes: Codes) -> str:
    """Return codes as text with symbols in GPT-2's notation, in which codes with ``</w>`` are not stored."""
    if not codes.header.end_of_word:
        return decode(codes.text, codes.name)
    lines = [f"{merge.left} {merge.right}{'' if merge.normal else ' scaffold'}" for merge in codes.merges]
    return "\n".join(["#version: 0.3 bytes", *lines, ""])


def javascript_pattern(name: str) -> str:
    """Return the pattern of a pre-tokeniser for JavaScript's regular expressions with the flag ``u``.

    These have no possessive quantifiers, without which the patterns match the same, and no ``(?i:...)``.
    """
    pattern = re.sub(r"([*+?}])\+", r"\1", PATTERNS[name])
    return re.sub(r"\(\?i:([^()]*)\)", lambda match: f"(?:{_either_case(match[1])})", pattern)


def _either_case(pattern: str) -> str:
    parts, inside = [], False
    for character in pattern:
        inside = character == "[" or (inside and character != "]")
        both = character.lower() + character.upper()
        parts.append(character if not character.isalpha() else both if inside else f"[{both}]")
    return "".join(parts)
