"""Figures: they show correct values, and each is written as PNG, SVG and PDF."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")
numpy = pytest.importorskip("numpy")

from mt_scaffold.analysis.compare_vocab import SizeComparison  # noqa: E402
from mt_scaffold.experiment.evaluation.comparison import SYNTHETIC_NOTE  # noqa: E402
from mt_scaffold.experiment.report import figures  # noqa: E402
from mt_scaffold.experiment.report.embeddings import Embeddings  # noqa: E402
from mt_scaffold.experiment.report.statistics import _parts_to_show  # noqa: E402
from mt_scaffold.experiment.training.training_log import read_training_log  # noqa: E402

PLAIN_LOG = """\
2026-01-01 10:00:00 | INFO | fairseq_cli.train | task: TranslationTask
2026-01-01 10:00:01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7 | nll_loss 6.3 | num_updates 30
2026-01-01 10:00:01 | INFO | train | epoch 001 | loss 9 | nll_loss 8.4 | ppl 353.63 | num_updates 30 | lr 0.001 | wall 7
2026-01-01 10:00:02 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 6 | nll_loss 5.3 | num_updates 60
2026-01-01 10:00:02 | INFO | train | epoch 002 | loss 8 | nll_loss 7.4 | num_updates 60
2026-01-01 10:00:03 | INFO | train | epoch 002 | loss 8 | nll_loss 7.5 | num_updates 60
"""
JSON_LOG = """\
2026-01-01 10:00:01 | INFO | valid | {"epoch": 1, "valid_loss": "7", "valid_nll_loss": "6.3", "valid_num_updates": "30"}
2026-01-01 10:00:01 | INFO | train | {"epoch": 1, "train_loss": "9", "train_nll_loss": "8.4", "train_num_updates": "30"}
"""


def is_drawn(svg: Path) -> str:
    """Check the PNG and the SVG, and return the SVG's text."""
    assert svg.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    text = svg.read_text(encoding="utf-8")
    assert "<svg" in text and "</svg>" in text
    return text


@pytest.mark.long
def test_every_figure_is_written_the_same_each_time(tmp_path: Path) -> None:
    """All formats exist, with labels and the note on synthetic text, and the same data gives the same bytes."""
    rows = [
        SizeComparison(100, 9, 8, 10.0, 15.0, 0.5),
        SizeComparison(200, 0, 0, None, None, None),
    ]
    log = tmp_path / "train.log"
    log.write_text(PLAIN_LOG)
    model = Embeddings(["a", "b@@", "c"], numpy.random.default_rng(1).normal(size=(3, 8)), {"new": frozenset("a")})

    change = figures.Change("test", "scaffold", "bpe", 0.3, -0.2, 0.8)

    def draw(folder: Path) -> list[Path]:
        folder.mkdir()
        return [
            figures.token_frequencies({"bpe": [5, 3, 0], "scaffold": [4, 4, 1]}, folder / "f", "SYNTHETIC"),
            figures.replaced_tokens(rows, folder / "r", "SYNTHETIC"),
            figures.inside_longer_tokens(["a$"], {"a$": 1, "ba$c</w>": 9}, folder / "i", "SYNTHETIC"),
            figures.embeddings({"bpe": model}, folder / "e", "SYNTHETIC"),
            figures.training_curves({"bpe": [read_training_log(log)] * 2}, folder / "t", "SYNTHETIC"),
            figures.differences([change], folder / "d", "BLEU", "SYNTHETIC"),
        ]

    first, second = draw(tmp_path / "1"), draw(tmp_path / "2")
    for one, other in zip(first, second, strict=True):
        assert "SYNTHETIC" in is_drawn(one)
        assert one.read_bytes() == other.read_bytes()
        for suffix in (".png", ".pdf"):
            assert one.with_suffix(suffix).read_bytes() == other.with_suffix(suffix).read_bytes()
    assert "+50.0%" in first[1].read_text() and "N = 200" not in first[1].read_text()
    assert "ba$c" in first[2].read_text()


def test_a_system_has_one_colour_in_every_figure(tmp_path: Path) -> None:
    """Whatever the seeds and the order of drawing; and figures are as wide as a column."""
    systems, blue, orange = ["bpe", "scaffold"], *(colour.lower() for colour in figures.COLOURS[:2])
    change = figures.Change("test", "scaffold", "bpe", 0.3, -0.2, 0.8)
    curves = {"valid": [(1.0, 8.0), (2.0, 6.0)]}
    drawn = {
        "differences": figures.differences([change], tmp_path / "d", "BLEU", systems=systems),
        "frequencies": figures.token_frequencies({"codes": [3, 2]}, tmp_path / "f", systems={"codes": 1}),
    }
    for name, svg in drawn.items():
        text = is_drawn(svg)
        assert orange in text and blue not in text, name
        width = re.search(r'<svg [^>]*width="([0-9.]+)pt"', text)
        assert width is not None and float(width[1]) == pytest.approx(72 * figures.COLUMN)
    text = is_drawn(figures.training_curves({"bpe": [curves] * 2, "scaffold": [curves] * 3}, tmp_path / "t"))
    assert "bpe (2 seeds)" in text and figures.COLOURS[2].lower() not in text
    assert "difference of scaffold from bpe" in drawn["differences"].read_text()


LONG = [f"a_system_whose_name_is_rather_long_{number}" for number in range(8)]


@pytest.mark.parametrize("systems", [["bpe"], ["bpe", "scaffold", "bpe+dropout", "scaffold+dropout"], LONG])
def test_no_text_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, systems: list[str]) -> None:
    """Notes, titles, labels and legends are inside their figure; legends hide no marks, and names no other names."""
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **options: drawn.append(self))
    model = Embeddings(["a", "b"], numpy.eye(2, 4), {"tokens that Scaffold-BPE removes": frozenset("a")})
    curves = {"train": [(1.0, 9.0), (2.0, 7.0)], "valid": [(1.0, 8.0), (2.0, 6.0)]}
    tests = ["test"] if len(systems) == 1 else ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
    part = systems[-1]
    figures.token_frequencies({system: [5, 3, 2] for system in systems}, tmp_path / "f", SYNTHETIC_NOTE)
    sizes = [SizeComparison(500 * 2**number, 9, 8, 10.0, 15.0, 0.5) for number in range(len(systems))]
    figures.replaced_tokens(sizes, tmp_path / "r", SYNTHETIC_NOTE)
    figures.inside_longer_tokens([part], {part: 1, f"anti{part}ation</w>": 9}, tmp_path / "i", SYNTHETIC_NOTE)
    figures.embeddings({part: model}, tmp_path / "e", SYNTHETIC_NOTE)
    figures.embeddings(dict.fromkeys(systems[:3], model), tmp_path / "e3", SYNTHETIC_NOTE)
    figures.training_curves({system: [curves] * 3 for system in systems}, tmp_path / "t", SYNTHETIC_NOTE)
    changes = [figures.Change(test, system, "bpe", 0.5, -0.1, 1.1) for test in tests for system in systems]
    figures.differences(changes, tmp_path / "d", "BLEU", SYNTHETIC_NOTE)
    other = dataclasses.replace(changes[0], system="bpe_8k", baseline="another")
    figures.differences([changes[0], other], tmp_path / "l", "bits per byte (lower is better)", SYNTHETIC_NOTE)

    for figure in drawn:
        figure.draw_without_rendering()
        everything = figure.get_tightbbox()
        assert everything.x0 >= 0 and everything.x1 <= figure.get_figwidth()
        assert everything.y0 >= 0 and everything.y1 <= figure.get_figheight()
        assert "SYNTHETIC" in figure.get_supxlabel()
        for legend in figure.legends:
            assert not any(legend.get_window_extent().overlaps(axes.bbox) for axes in figure.axes)
        for axes in figure.axes:
            names = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
            assert not any(left.overlaps(right) for left, right in itertools.pairwise(names))
    assert len(drawn) == 3 * 8


def test_panels_over_occurrences_share_colours(tmp_path: Path) -> None:
    """A name in two panels is in the legend once, and a point without an interval is drawn."""
    both = [figures.Point(10, 3.0, 0.5), figures.Point(100, 2.0)]
    left = figures.BinnedPanel({"removed": [figures.Point(10, 4.0)], "in both": both}, "bits", "bpe $")
    right = figures.BinnedPanel({"new": [], "in both": both}, "bits", "scaffold")
    text = is_drawn(figures.by_occurrences([[left, right]], tmp_path / "figure"))
    assert [text.count(f">{name}<") for name in ("removed", "in both", "new", "bits")] == [1, 1, 1, 2]
    assert text.count(">occurrences in an epoch<") == 2 and "bpe $" in text
    assert text.count(figures.COLOURS[1].lower()) > text.count(figures.COLOURS[0].lower()) > 0


@pytest.mark.parametrize(("log", "epochs"), [(PLAIN_LOG, 2), (JSON_LOG, 1)])
def test_curves_come_from_fairseqs_log(tmp_path: Path, log: str, epochs: int) -> None:
    """Updates and losses as logged, in both of fairseq's formats; of an epoch logged twice, the last counts."""
    (tmp_path / "log").write_text(log)
    curves = read_training_log(tmp_path / "log")
    assert curves["valid"] == [(30, 6.3), (60, 5.3)][:epochs]
    assert curves["train"] == [(30, 8.4), (60, 7.5)][:epochs]


PER_BYTE_LOG = """\
2026-01-01 10:00:01 | INFO | valid | epoch 001 | loss 7 | nll_loss 6.3 | bits_per_byte 1.9 | bleu 12.5 | num_updates 30
2026-01-01 10:00:01 | INFO | train | epoch 001 | loss 9 | nll_loss 8.4 | bits_per_byte 2.5 | num_updates 30
"""


def test_bleu_and_loss_per_byte_are_drawn_where_the_log_has_them(tmp_path: Path) -> None:
    """Losses per byte of different vocabularies share one axis; different units must not."""
    curves = {}
    for name, text in (("plain", PLAIN_LOG), ("per byte", PER_BYTE_LOG)):
        (tmp_path / "log").write_text(text)
        curves[name] = [read_training_log(tmp_path / "log")]
    alone = {"per byte": curves["per byte"]}
    assert curves["per byte"][0]["valid_bits_per_byte"] == [(30, 1.9)] and curves["per byte"][0]["valid_bleu"] == [
        (30, 12.5)
    ]
    assert figures.has_curve(alone, "valid_bleu") and not figures.has_curve(curves, "valid_bits_per_byte")
    assert "bits per byte of text" in is_drawn(figures.training_curves(alone, tmp_path / "alone"))
    assert "bits per token" in is_drawn(figures.training_curves(curves, tmp_path / "both"))
    assert "BLEU of the validation set" in is_drawn(figures.bleu_curves(alone, tmp_path / "bleu"))


def test_a_part_of_longer_tokens_is_one_of_the_experiments_languages() -> None:
    """English "ing" is meaningless in a figure of German and Czech, even if it is a token there."""
    merges = ("i n", "in g</w>", "in g", "u n", "un g</w>", "un g", "S c h", "Sch n", "Schn ell")
    tokens = [merge.replace(" ", "") for merge in merges]
    bpe = SimpleNamespace(
        codes=SimpleNamespace(merges=[SimpleNamespace(token=token) for token in tokens]),
        frequencies={"ing</w>": 3, "ung</w>": 9, "Schnell": 1},
    )
    compared = SimpleNamespace(removed=[SimpleNamespace(token="Schn", scaffold=True)])
    for languages, part in ((("en", "de"), "ing"), (("de", "en"), "ing"), (("de", "cs"), "ung")):
        assert _parts_to_show(bpe, compared, languages) == ["Schn", part]  # type: ignore[arg-type]
