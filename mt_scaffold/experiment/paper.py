"""The figures of the Scaffold-BPE paper, from ``paper.json``, the only place that holds them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.experiment.configuration import Config, Published
from mt_scaffold.experiment.results import read_result
from mt_scaffold.tables import format_table

BY = "the Scaffold-BPE paper"


@dataclass(frozen=True)
class Text:
    """A text of the paper: its N, and the source for that number."""

    symbols: int
    symbols_from: str


@dataclass(frozen=True)
class PaperFigure:
    """One quantity on one text, for original BPE and Scaffold-BPE, with the digits that the paper prints."""

    quantity: str
    text: str
    bpe: str
    scaffold: str
    place: str


@dataclass(frozen=True)
class PaperPercentage:
    """A percentage that the paper reports for one text and N, with the digits that it prints."""

    text: str
    symbols: int
    percent: str
    place: str


@dataclass(frozen=True)
class Paper:
    """All figures of the paper that the kit shows beside its own.

    gains: by how much the average frequency of the new tokens exceeds that of the removed ones, by N.
    scaffold_share: scaffold tokens of the vocabulary.
    """

    title: str
    texts: dict[str, Text]
    figures: list[PaperFigure]
    gains: list[PaperPercentage]
    scaffold_share: PaperPercentage


@functools.cache
def read_paper() -> Paper:
    """Return the figures of the paper."""
    return read_result(Paper, Path(__file__).with_name("paper.json"))


def own_text(config: Config) -> str | None:
    """Return the text of the paper that an experiment repeats; None for a sample, another N, or another text."""
    if config.paper is None or config.data.sample is not None:
        return None
    text = read_paper().texts.get(config.paper.text)
    return config.paper.text if text is not None and text.symbols == config.codes.symbols else None


def published_scores(config: Config) -> list[Published]:
    """Return the paper's BLEU on an experiment's text, each beside our system of the same kind; none on other texts."""
    text = own_text(config)
    if text is None or config.paper is None:
        return []
    found = []
    figures = {figure.quantity: figure for figure in read_paper().figures if figure.text == text}
    for algorithm, name in (("bpe", "original BPE"), ("scaffold", "Scaffold-BPE")):
        for quantity, suffix in (("BLEU", ""), ("BLEU, BPE-dropout", " + BPE-dropout")):
            ours = [
                key
                for key, system in config.systems.items()
                if system.algorithm == algorithm and bool(system.dropout) == bool(suffix)
            ]
            if quantity not in figures or not ours:
                continue
            score = float(getattr(figures[quantity], algorithm))
            found.append(Published(config.paper.test_set, BY, name + suffix, ours[0], config.paper.metric, score))
    return found


def figures_table(quantities: str = "") -> str:
    """Return the paper's figures as a Markdown table; ``quantities``: only those whose name starts with it."""
    rows = [["quantity", "text", "N", "original BPE", "Scaffold-BPE", "where in the paper"]]
    paper = read_paper()
    for figure in paper.figures:
        if figure.quantity.startswith(quantities):
            symbols = f"{paper.texts[figure.text].symbols:,}"
            rows.append([figure.quantity, figure.text, symbols, figure.bpe, figure.scaffold, figure.place])
    return format_table(rows, markdown=True, figures=False)


def percentages_table() -> str:
    """Return the paper's percentages as a Markdown table."""
    paper = read_paper()
    rows = [["percentage", "text", "N", "%", "where in the paper"]]
    for name, found in [*(("gain", gain) for gain in paper.gains), ("scaffold tokens", paper.scaffold_share)]:
        rows.append([name, found.text, f"{found.symbols:,}", found.percent, found.place])
    return format_table(rows, markdown=True, figures=False)
