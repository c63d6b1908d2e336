"""Figures of the vocabularies, the models and the scores, each as PNG, SVG and PDF, as wide as a column of a paper.

Every plotting function takes data and a path without suffix, writes ``PATH.png``, ``PATH.svg`` and ``PATH.pdf``, and
returns the path of the SVG. ``note`` is printed below the figure, for synthetic data. ``systems`` are those of the
experiment, in order, so that a system has the same colour and marker in every figure. The SVGs keep text as text on a
transparent background, so that a page can show them in light and dark mode.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.corpus.text import END_OF_WORD, surface_form
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.report.embeddings import Embeddings, project
from mt_scaffold.tables import decimal

if TYPE_CHECKING:
    from mt_scaffold.analysis.compare_vocab import SizeComparison

# Okabe and Ito's colours, distinguishable to colour-blind readers and legible on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "--", ":")
_GREY = "#888888"
# Font sizes in points; in inches, the widths of a column, of a character (about) and of the border.
_SIZE, _NOTE_SIZE = 8, 6.5
COLUMN, _CHARACTER, _BORDER = 3.4, 0.072, 0.06

# The number of tokens that contain a string, in the figure of where it occurs.
_MOST_TOKENS = 8
# The least range of an axis of scores, as a share of their mean.
_LEAST_SPAN = 0.1
# The id of the note's element in an SVG.
NOTE_ID = "note"

_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": _SIZE,
    "pdf.fonttype": 42,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def token_frequencies(
    frequencies: Mapping[str, Sequence[int]], path: PathLike, note: str = "", systems: Mapping[str, int] = {}
) -> Path:
    """Plot token frequency against rank, both logarithmic (the paper's figure of sorted frequencies).

    frequencies: codes → the frequencies of the whole vocabulary, in any order; zeros are not drawn. systems: codes →
    the index of the first system that uses them; by default the position of the codes in ``frequencies``.
    """
    with _Drawing(path, note) as drawing:
        axes = drawing.axes
        for place, (system, values) in enumerate(frequencies.items()):
            number = systems.get(system, place)
            ordered = sorted((value for value in values if value), reverse=True)
            style = _LINES[number // len(COLOURS) % len(_LINES)]
            axes.plot(range(1, len(ordered) + 1), ordered, style, color=_colour(number), label=_literal(system))
        axes.set(xscale="log", yscale="log", xlabel="rank of the token", ylabel="occurrences in the training text")
        drawing.legend()
    return drawing.svg


def replaced_tokens(rows: Sequence[SizeComparison], path: PathLike, note: str = "") -> Path:
    """Plot the average frequency of the tokens that Scaffold-BPE removes from BPE's vocabulary, and of the new ones.

    Each pair of bars is labelled with the difference, in per cent of the removed tokens' frequency. rows: from
    ``mt_scaffold.analysis.compare_vocab.compare_at_sizes``, one per size.
    """
    kept = [row for row in rows if row.gain is not None]
    with _Drawing(path, note, width=max(COLUMN, 0.9 + 0.65 * len(kept))) as drawing:
        axes = drawing.axes
        places = range(len(kept))
        for number, (key, label) in enumerate([("removed", "removed"), ("new", "new")]):
            heights = [getattr(row, f"average_frequency_{key}") for row in kept]
            axes.bar([place + (number - 0.5) * 0.38 for place in places], heights, 0.36, color=_colour(number),
                     label=label)  # fmt: skip
        for place, row in zip(places, kept, strict=True):
            top = max(row.average_frequency_removed or 0, row.average_frequency_new or 0)
            gain = f"{decimal(100 * (row.gain or 0), 1, signed=True)}%"
            axes.annotate(gain, (place, top), (0, 3), textcoords="offset points", ha="center")
        axes.set_xticks(list(places), [f"N = {row.symbols:,}" for row in kept])
        axes.set_ylabel("mean occurrences of a token")
        axes.margins(y=0.12)
        drawing.legend()
    return drawing.svg


def inside_longer_tokens(parts: Sequence[str], frequencies: Mapping[str, int], path: PathLike, note: str = "") -> Path:
    """Plot how the occurrences of each string are divided among the tokens that contain it (the paper's "zona", "ing").

    frequencies: token as in a codes file → frequency. Raises MTScaffoldError for a string that no such token contains.
    """
    shares = {part: _tokens_with(part, frequencies) for part in parts}
    for part, rows in shares.items():
        if not rows:
            raise MTScaffoldError(f"'{part}': no token of the text contains it; choose another string")
    longest = max(len(surface_form(token)) for rows in shares.values() for token, *_ in rows)
    width = max(COLUMN, (1.8 + _CHARACTER * longest) * len(parts))
    with _Drawing(path, note, columns=len(parts), width=width) as drawing:
        for axes, (part, rows) in zip(drawing.all_axes, shares.items(), strict=True):
            names = [surface_form(token) for token, *_ in rows]
            own = [token.removesuffix(END_OF_WORD) == part for token, *_ in rows]
            places = range(len(rows), 0, -1)
            colours = [COLOURS[0] if is_own else _GREY for is_own in own]
            axes.barh(list(places), [100 * share for *_, share in rows], color=colours)
            axes.set_yticks(list(places), [_literal(name) for name in names])
            axes.set(xlabel="% of its occurrences", title=_literal(part))
    return drawing.svg


def _tokens_with(part: str, frequencies: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return the tokens that contain ``part``: token, frequency, share of all their frequencies; the first of them.

    The token ``part`` itself, inside words and at their ends, comes first; the others follow by frequency. The list is
    empty if none of them occurs.
    """
    found = {token: count for token, count in frequencies.items() if part in token.removesuffix(END_OF_WORD)}
    total = sum(found.values())
    if not total:
        return []
    own = {part, part + END_OF_WORD}
    ordered = sorted(found.items(), key=lambda entry: (entry[0] not in own, -entry[1], entry[0]))
    return [(token, count, count / total) for token, count in ordered[:_MOST_TOKENS] if count or token in own]


def embeddings(models: Mapping[str, Embeddings], path: PathLike, note: str = "", systems: Sequence[str] = ()) -> Path:
    """Plot the embeddings of each model projected by SVD, one panel per model, with the marked tokens on top."""
    with _Drawing(path, note, columns=len(models), width=COLUMN * len(models), height=3.4) as drawing:
        for axes, (system, model) in zip(drawing.all_axes, models.items(), strict=True):
            points = project(model.vectors)
            axes.scatter(*points.T, s=2, color=_GREY, alpha=0.35, linewidths=0, label="all tokens", rasterized=True)
            for number, (label, chosen) in enumerate(model.marked.items()):
                rows = [row for row, token in enumerate(model.tokens) if token in chosen]
                colour = _colour(number if len(model.marked) > 1 else _place(system, systems))
                axes.scatter(*points[rows].T, s=5, color=colour, linewidths=0, label=label, rasterized=True)
            axes.set(title=_literal(system), xticks=[], yticks=[])
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), markerscale=3, fontsize=7)
    return drawing.svg


@dataclass(frozen=True)
class Change:
    """The score of a system minus its baseline's on one test set (or in one group of them), with its 95 % interval."""

    place: str
    system: str
    baseline: str
    difference: float
    low: float
    high: float


def differences(
    changes: Sequence[Change], path: PathLike, label: str, note: str = "", systems: Sequence[str] = ()
) -> Path:
    """Plot differences from the baseline with their intervals, one per row; an interval across 0 may be chance.

    label: the metric, with its unit.
    """
    drawn = list(dict.fromkeys(each.system for each in changes))
    alone = len(drawn) == 1 and all(each.place for each in changes)
    rows = [each.place if alone else f"{each.place}: {each.system}" if each.place else each.system for each in changes]
    baselines = list(dict.fromkeys(each.baseline for each in changes))
    systems = systems or drawn
    named = _CHARACTER * max(map(len, rows))
    width = max(COLUMN, 1.8 + named)
    against = baselines[0] if len(baselines) == 1 else "the baseline"
    whose = f"difference of {drawn[0]} from {against}" if alone else f"difference from {against}"
    measured = textwrap.wrap(f"{label}, {whose}", int((width - named - 0.2) / _CHARACTER))
    with _Drawing(path, note, width=width, height=0.5 + 0.2 * len(changes) + 0.15 * len(measured)) as drawing:
        axes = drawing.axes
        axes.axvline(0, color=_GREY, linewidth=0.8)
        for row, each in enumerate(changes):
            number = _place(each.system, systems)
            reach = [[each.difference - each.low], [each.high - each.difference]]
            axes.errorbar([each.difference], [-row], xerr=reach, fmt=_marker(number), color=_colour(number), capsize=2)
        axes.set_yticks([-row for row in range(len(rows))], [_literal(row) for row in rows])
        axes.set_ylim(0.6 - len(rows), 0.6)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(_literal("\n".join(measured)))
    return drawing.svg


Curves = Mapping[str, Sequence[tuple[float, float]]]
# System → the curves of each of its trainings (``TrainingRecord.curves``).
Trainings = Mapping[str, Sequence[Curves]]


def has_curve(trainings: Trainings, name: str) -> bool:
    """Return whether every training has the curve ``name`` (``valid_bleu``, ``valid_bits_per_byte``)."""
    return bool(trainings) and all(curves.get(name) for each in trainings.values() for curves in each)


def over_sizes(series: Mapping[str, Sequence[tuple[int, float]]], path: PathLike, label: str, note: str = "") -> Path:
    """Plot a measure over the number of tokens N that codes were learned with, one line for each kind of system.

    series: name of the line → (N, value), in order of N. label: the measure.
    """
    with _Drawing(path, note) as drawing:
        axes = drawing.axes
        for number, (name, points) in enumerate(series.items()):
            axes.plot(*zip(*points, strict=True), color=_colour(number), marker=_marker(number), label=_literal(name))
        sizes = sorted({size for points in series.values() for size, _ in points})
        axes.set(xscale="log", xlabel="N", ylabel=label)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        # Chance alone would fill an axis that fits the values.
        values = [value for points in series.values() for _, value in points]
        low, high = axes.get_ylim()
        spare = max(0.0, _LEAST_SPAN * sum(values) / len(values) - (high - low)) / 2
        axes.set_ylim(low - spare, high + spare)
        drawing.legend()
    return drawing.svg


class Point(NamedTuple):
    """A mean over the tokens of a class: their occurrences, the mean, and half the width of its interval, if any."""

    occurrences: float
    mean: float
    half_width: float | None = None


@dataclass(frozen=True)
class BinnedPanel:
    """One panel of ``by_occurrences``: its lines by name, the measure (label) and the system (title)."""

    lines: Mapping[str, Sequence[Point]]
    label: str
    title: str = ""


def by_occurrences(rows: Sequence[Sequence[BinnedPanel]], path: PathLike, note: str = "") -> Path:
    """Plot measures of tokens over their occurrences in an epoch of the training text, a panel each, with one legend.

    All rows have the same number of panels. Those of a row share their scales; a line has the same colour in all.
    """
    names = list(dict.fromkeys(name for row in rows for panel in row for name in panel.lines))
    columns = len(rows[0])
    with _Drawing(path, note, columns, 0.4 + 2.6 * columns, 0.4 + 1.9 * len(rows), len(rows)) as drawing:
        for axes, panel in zip(drawing.all_axes, (panel for row in rows for panel in row), strict=True):
            for name, points in panel.lines.items():
                number = names.index(name)
                widths = [point.half_width or 0 for point in points]
                axes.errorbar([point.occurrences for point in points], [point.mean for point in points], widths,
                              color=_colour(number), marker=_marker(number), markersize=3, linewidth=1,
                              elinewidth=0.8)  # fmt: skip
            axes.set_xscale("log")
            axes.set(title=_literal(panel.title), ylabel=panel.label)
        for place, axes in enumerate(drawing.all_axes):
            if place % columns:
                axes.sharex(drawing.all_axes[place - place % columns])
                axes.sharey(drawing.all_axes[place - place % columns])
        for axes in drawing.all_axes[-columns:]:
            axes.set_xlabel("occurrences in an epoch")
        for number, name in enumerate(names):
            drawing.axes.plot([], [], color=_colour(number), marker=_marker(number), label=_literal(name))
        drawing.legend()
    return drawing.svg


def training_curves(trainings: Trainings, path: PathLike, note: str = "", per_byte: bool | None = None) -> Path:
    """Plot training loss (dashed) and validation loss against updates, a thin line for each training.

    per_byte: whether to plot the loss per byte of text, not per token; None plots it if all trainings have it.
    """
    per_byte = has_curve(trainings, "valid_bits_per_byte") if per_byte is None else per_byte
    ending, unit = ("_bits_per_byte", "byte of text") if per_byte else ("", "token")
    kinds = ((f"valid{ending}", "-"), (f"train{ending}", "--"))
    with _Drawing(path, note) as drawing:
        _draw_curves(drawing.axes, trainings, kinds)
        for style, label in (("--", "training"), ("-", "validation")):
            drawing.axes.plot([], [], style, color=_GREY, label=label)
        drawing.axes.set(xlabel="updates", ylabel=f"loss, bits per {unit}")
        drawing.legend()
    return drawing.svg


def bleu_curves(trainings: Trainings, path: PathLike, note: str = "") -> Path:
    """Plot BLEU of the validation set against updates, for the trainings that have it (``validate_bleu``)."""
    with _Drawing(path, note) as drawing:
        _draw_curves(drawing.axes, trainings, (("valid_bleu", "-"),))
        drawing.axes.set(xlabel="updates", ylabel="BLEU of the validation set, 0 to 100")
        drawing.legend()
    return drawing.svg


def _draw_curves(axes: Any, trainings: Trainings, kinds: Sequence[tuple[str, str]]) -> None:
    """Draw curves by name and line style: a colour for each system, thinner lines if it has several trainings."""
    for number, (system, each) in enumerate(trainings.items()):
        thin = {"linewidth": 0.7, "alpha": 0.8} if len(each) > 1 else {}
        for curves in each:
            for name, style in kinds:
                if points := curves.get(name):
                    # A line through one point is invisible.
                    marker = _marker(number) if len(points) == 1 else None
                    axes.plot(*zip(*points, strict=True), style, color=_colour(number), marker=marker, **thin)
        seeds = f" ({len(each)} seeds)" if len(each) > 1 else ""
        axes.plot([], [], color=_colour(number), label=_literal(f"{system}{seeds}"))


def _place(system: str, systems: Sequence[str]) -> int:
    """Return the number of a system's colour and marker."""
    return systems.index(system) if system in systems else 0


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _marker(number: int) -> str:
    """Return the marker of a system: after the six colours, each returns with another marker."""
    return _MARKERS[(number + number // len(COLOURS)) % len(_MARKERS)]


def _literal(text: str) -> str:
    """Escape dollar signs, between which matplotlib would typeset mathematics."""
    return text.replace("$", r"\$")


class _Drawing:
    """A figure with one or more axes, written in every format when the block ends without an error."""

    def __init__(
        self, path: PathLike, note: str, columns: int = 1, width: float = COLUMN, height: float = 2.3, rows: int = 1
    ) -> None:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._path = Path(path)
        # With a fixed salt the ids in the SVG, and so its bytes, are reproducible.
        self._style = matplotlib.rc_context(_STYLE | {"svg.hashsalt": self._path.name})
        self._style.__enter__()
        self._figure = Figure(figsize=(width, height), layout="constrained")
        self._renderer = FigureCanvasAgg(self._figure).get_renderer()
        self.all_axes: list[Any] = list(self._figure.subplots(rows, columns, squeeze=False).flat)
        self.axes: Any = self.all_axes[0]
        self._note = note

    def legend(self) -> None:
        """Put the legend above the axes in as many columns as fit, and enlarge the figure by it."""
        handles, labels = self.axes.get_legend_handles_labels()
        for columns in range(len(labels), 0, -1):
            legend: Any = self._figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=7)
            width, height = legend.get_window_extent(self._renderer).size / self._figure.dpi
            if columns == 1 or width <= self._figure.get_figwidth() - 2 * _BORDER:
                break
            legend.remove()
        self._figure.set_figwidth(max(self._figure.get_figwidth(), width + 2 * _BORDER))
        self._figure.set_figheight(self._figure.get_figheight() + height)

    def _finish(self) -> None:
        """Add the note, wrapped, and shrink the titles that are wider than their axes."""
        if self._note:
            # Not matplotlib's own wrapping, which leaves no border: a browser's font may be a little wider.
            characters = int((self._figure.get_figwidth() - 2 * _BORDER) / (_NOTE_SIZE / _SIZE * _CHARACTER))
            note = textwrap.fill(self._note, characters)
            self._figure.supxlabel(note, fontsize=_NOTE_SIZE, color=_GREY, gid=NOTE_ID)
        self._figure.draw_without_rendering()
        for axes in self.all_axes:
            room, width = axes.bbox.width, axes.title.get_window_extent(self._renderer).width
            if width > room:
                axes.title.set_fontsize(axes.title.get_fontsize() * room / width)

    @property
    def svg(self) -> Path:
        """The path of the SVG."""
        return self._path.with_name(self._path.name + ".svg")

    def __enter__(self) -> _Drawing:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
                for suffix, options in _FORMATS.items():
                    with open_output(self._path.with_name(f"{self._path.name}.{suffix}")) as stream:
                        self._figure.savefig(stream, format=suffix, **options)
        finally:
            self._style.__exit__(None, None, None)


# Without the time, so that the same data gives the same bytes.
_FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 250, "metadata": {"Software": None}},
    "svg": {"transparent": True, "dpi": 250, "metadata": {"Date": None}},
    "pdf": {"dpi": 250, "metadata": {"CreationDate": None}},
}
