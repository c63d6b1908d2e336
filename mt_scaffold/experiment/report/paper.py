"""The results of the Scaffold-BPE paper, from ``paper.json``, the only place that holds them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mt_scaffold._core import WordCounts
from mt_scaffold.analysis.stats import summarise
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import write_text
from mt_scaffold.experiment.configuration import Config, Published
from mt_scaffold.experiment.configuration.systems import SegmentationSetting, System, segmentation_of
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.segment.frequencies import use_of_vocabulary
from mt_scaffold.tables import decimal, format_table

# The paper does not say which BLEU it reports. Its baseline equals the tokenised BLEU of Ott et al. 2018 to the digit.
BY = "the Scaffold-BPE paper (likely this BLEU)"
LIKELY_BLEU = "BLEU (likely tokenised)"
COMPRESSION_NOTE = (
    "On the training words of both languages, after cleaning, with a space between words. The paper does not say which "
    "form of the text it measured."
)
_NAMES: dict[Literal["bpe", "scaffold"], str] = {"bpe": "original BPE", "scaffold": "Scaffold-BPE"}


@dataclass(frozen=True)
class Text:
    """A text of the paper: N, or the values that N may have, and their source."""

    symbols: list[int]
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
class LanguageModelScore:
    """Scores of the paper's language models: start of the table's caption, setting, benchmark, and both scores."""

    table: str
    setting: str
    benchmark: str
    bpe: str
    scaffold: str


@dataclass(frozen=True)
class Paper:
    """All results of the paper.

    gains: by how much the average frequency of the new tokens exceeds that of the removed ones, by N.
    scaffold_share: the share of scaffold tokens in the vocabulary of original BPE.
    """

    title: str
    texts: dict[str, Text]
    figures: list[PaperFigure]
    gains: list[PaperPercentage]
    scaffold_share: PaperPercentage
    language_models: list[LanguageModelScore]


@functools.cache
def read_paper() -> Paper:
    """Return the figures of the paper."""
    return read_result(Paper, Path(__file__).with_name("paper.json"))


def own_text(config: Config) -> str | None:
    """Return the text of the paper that an experiment repeats.

    None for a sample, another N, another text, and generated text.
    """
    if config.paper is None or config.data.sample is not None or config.synthetic:
        return None
    text = read_paper().texts.get(config.paper.text)
    return config.paper.text if text is not None and config.codes.symbols in text.symbols else None


def published_scores(config: Config) -> list[Published]:
    """Return the paper's BLEU on an experiment's text, each with our system of the same kind; none on other texts."""
    text = own_text(config)
    if text is None or config.paper is None:
        return []
    found = []
    figures = {figure.quantity: figure for figure in read_paper().figures if figure.text == text}
    for algorithm, name in _NAMES.items():
        plain = _plain_segmentation(config, algorithm)
        for quantity, suffix in (("BLEU", ""), ("BLEU, BPE-dropout", " + BPE-dropout")):
            ours = [
                key
                for key, system in config.systems.items()
                if config.segmentation(key) == plain
                and all(each.kind == "dropout" and bool(each) == bool(suffix) for each in system.resamplings)
            ]
            if quantity not in figures or not ours:
                continue
            score = float(getattr(figures[quantity], algorithm))
            found.append(Published(config.paper.test_set, BY, name + suffix, ours[0], config.paper.metric, score))
    return found


def _plain_segmentation(config: Config, algorithm: Literal["bpe", "scaffold"]) -> SegmentationSetting:
    """Return a segmentation with the experiment's joint codes, without threshold or glossaries."""
    return segmentation_of(
        System.from_keys({"algorithm": algorithm}), config.codes, (config.languages.source, config.languages.target)
    )


@dataclass(frozen=True)
class Compression:
    """Bytes per token of one kind of codes on an experiment's training words, and the paper's figure, as printed."""

    kind: str
    ours: float
    paper: str


def papers_codes(config: Config) -> dict[Literal["bpe", "scaffold"], str]:
    """Return the names of the experiment's codes that the paper has as well, by algorithm; none on other texts."""
    if own_text(config) is None:
        return {}
    plain = {algorithm: _plain_segmentation(config, algorithm) for algorithm in _NAMES}
    used = [config.segmentation(system) for system in config.systems]
    return {algorithm: each.codes[0].name for algorithm, each in plain.items() if each in used}


def compression(config: Config, bytes_per_token: Mapping[str, float]) -> list[Compression]:
    """Return our bytes per token with the paper's; none on other texts. bytes_per_token: ours, by name of the codes."""
    text = own_text(config)
    figures = [each for each in read_paper().figures if (each.quantity, each.text) == ("bytes per token", text)]
    return [
        Compression(_NAMES[algorithm], bytes_per_token[name], getattr(figure, algorithm))
        for figure in figures
        for algorithm, name in papers_codes(config).items()
    ]


def write_compression(layout: TranslationLayout) -> None:
    """Write a table of ``compression``, which needs words and codes but no training, into the experiment's folder."""
    words = WordCounts()
    for language in layout.languages:
        words.add(count_words(layout.words("train", language)))
    names = papers_codes(layout.config).values()
    ours = {name: summarise(use_of_vocabulary(layout.codes(name), words)).bytes_per_token for name in names}
    rows = [["bytes per token", "here", "the paper", "difference"]]
    for each in compression(layout.config, ours):
        digits = len(each.paper.partition(".")[2])
        difference = decimal(each.ours - float(each.paper), digits, signed=True)
        rows.append([each.kind, f"{each.ours:.{digits}f}", each.paper, difference])
    write_text(layout.compression, f"{format_table(rows)}{COMPRESSION_NOTE}\n")


def figures_table() -> str:
    """Return the paper's figures as a Markdown table."""
    rows = [["quantity", "text", "N", "original BPE", "Scaffold-BPE", "where in the paper"]]
    paper = read_paper()
    for figure in paper.figures:
        quantity = figure.quantity.replace("BLEU", LIKELY_BLEU, 1)
        symbols = " or ".join(f"{number:,}" for number in paper.texts[figure.text].symbols)
        rows.append([quantity, figure.text, symbols, figure.bpe, figure.scaffold, figure.place])
    return format_table(rows, markdown=True, figures=False)


def language_models_table() -> str:
    """Return the paper's scores of language models as a Markdown table, with "BPE / Scaffold-BPE" in a cell."""
    scores = read_paper().language_models
    benchmarks = list(dict.fromkeys(score.benchmark for score in scores))
    cells = {(score.table, score.setting, score.benchmark): f"{score.bpe} / {score.scaffold}" for score in scores}
    rows = [["table, setting", *benchmarks]]
    for table, setting in dict.fromkeys((score.table, score.setting) for score in scores):
        shown = [cells.get((table, setting, benchmark), "") for benchmark in benchmarks]
        rows.append([f"{table}: {setting}" if setting not in table else table, *shown])
    return format_table(rows, markdown=True, figures=False)
