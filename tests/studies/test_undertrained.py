"""``studies.undertrained`` on tables of tokens with known answers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")
pytest.importorskip("scipy", reason="comes with the extra 'workflow'")

from mt_scaffold.experiment.configuration import load_experiment
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.report.trained_tokens import COLUMNS
from mt_scaffold.experiment.workflow.folder import open_folder
from studies.undertrained import Contrast, Token, Trained, contrast, main, over_seeds, panel, spread_contrast, twins


def test_only_tokens_as_frequent_are_peers() -> None:
    """Peers are within 10 %: rarer and more frequent tokens, which would differ anyway, do not count."""

    def of(count: int, value: float | None) -> Token:
        return Token(count, 0, {"percentile": value})

    tokens = {"zona": of(100, 20.0), "lonely": of(5, 1.0), "a": of(95, 40.0), "b": of(109, 50.0)}
    tokens |= {"c": of(112, 90.0), "d": of(90, 0.0), "silent": of(100, None), "mute": of(100, None)}
    other = dict.fromkeys(("a", "b", "c", "d", "silent"), of(1, 1.0))
    # "lonely" has no peer; "mute" and "silent" have no figure.
    assert contrast(tokens, other, "percentile") == Contrast(2, 1, 100.0, 20.0, 45.0)
    assert contrast(tokens, tokens, "percentile") is None


def test_bits_have_peers_on_the_side_that_is_written() -> None:
    """A token with 100 occurrences, 5 of them in the target, is compared there with tokens that occur 5 times."""
    shared = {"a": Token(100, 95, {"bits:x": 1.0}), "b": Token(20, 5, {"bits:x": 8.0})}
    found = contrast(shared | {"zona": Token(100, 5, {"bits:x": 9.0})}, shared, "bits:x")
    assert found == Contrast(1, 1, 5.0, 9.0, 8.0)


def test_the_interval_is_over_seeds() -> None:
    """Differences -1, -2 and -3: -2 ± 4.30265 / √3."""
    several = [Contrast(1, 1, 1.0, 10.0 - each, 10.0) for each in (1, 2, 3)]
    difference, margin = over_seeds(several)
    assert difference == pytest.approx(-2) and margin == pytest.approx(4.302653 / 3**0.5)
    assert over_seeds(several[:1]) == (-1.0, None)


def test_each_peer_is_taken_once() -> None:
    """Of two tokens with one peer, the rarer takes it; peers are the nearest by ratio, within 10 %."""

    def of(count: int, row: int) -> Token:
        return Token(count, 0, {}, row)

    own = {"zona": of(100, 1), "rarer": of(98, 2), "lonely": of(50, 3), "never": of(0, 4)}
    shared = {"a": of(99, 5), "b": of(105, 6), "c": of(56, 7), "d": of(0, 8)}
    pairs = twins(own | shared, shared)
    assert [(token.row, peer.row) for token, peer in pairs] == [(2, 5), (1, 6)]


def test_tokens_in_one_direction_are_more_clustered(tmp_path: Path) -> None:
    """Uniformity is 0 for two equal directions, and log exp(-4) for two at right angles."""
    torch = pytest.importorskip("torch", reason="comes with the extra 'train'")
    rows = torch.zeros(8, 2)
    rows[4], rows[5] = torch.tensor([2.0, 0.0]), torch.tensor([5.0, 0.0])
    rows[6], rows[7] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 3.0])
    checkpoint = tmp_path / "averaged.pt"
    torch.save({"model": {"decoder.embed_tokens.weight": rows}}, checkpoint)
    shared = {"a": Token(10, 0, {}, 6), "b": Token(11, 0, {}, 7)}
    tokens = shared | {"zona": Token(10, 0, {}, 4), "ona": Token(11, 0, {}, 5), "lonely": Token(99, 0, {}, 0)}
    found = spread_contrast(tokens, shared, checkpoint)
    assert found is not None and (found.tokens, found.matched, found.count) == (3, 2, 10.5)
    assert [found.own, found.peers] == pytest.approx([0, -4])
    assert spread_contrast(shared, shared, checkpoint) is None


def test_a_class_needs_five_tokens() -> None:
    """Points are means over the seeds of a class's means, with their interval; a class is a quarter of a decade."""

    def of(value: float, many: int) -> dict[str, Token]:
        return {f"t{number}": Token(90, 20, {"bits:x": value}) for number in range(many)} | {
            "rare": Token(90, 2, {"bits:x": 9.0})
        }

    own = Trained("bpe", "removed", {1: of(3.0, 5), 2: of(5.0, 5)}, {})
    other = Trained("scaffold", "new", {1: {}}, {})
    drawn = panel(own, other, "bits:x")
    ((occurrences, mean, half_width),) = drawn.lines["removed"]
    assert 17.8 < occurrences < 31.6 and mean == 4 and half_width == pytest.approx(12.7062, abs=1e-3)
    assert drawn.lines["in both"] == [] and (drawn.label, drawn.title) == ("bits per occurrence", "bpe")


def write(path: Path, rows: list[tuple[str, int, float, int, float]]) -> None:
    path.parent.mkdir(parents=True)
    names = ("token", "per_epoch", "percentile", "occurrences:test", "bits:test")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [*COLUMNS, "occurrences:test", "bits:test"])
        writer.writeheader()
        for number, row in enumerate([("</s>", "", 50, 9, 9), *rows], 3):
            own = dict(zip(names, row, strict=True))
            writer.writerow(own | {"side": "both", "id": number, "target_per_epoch": own["per_epoch"]})


def test_the_table_of_an_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Removed tokens in BPE's models, new ones in Scaffold-BPE's; anything missing is reported in one line."""
    overrides = {"seeds": [1, 2]}
    layout = TranslationLayout.of(tmp_path / "demo", load_experiment(ROOT / "configs" / "demo.yaml", overrides))
    open_folder(layout).close()
    for seed in (1, 2):
        shared = ("the", 50, 60.0, 4, 8.0)
        write(layout.trained_tokens(Run("bpe", seed)), [shared, ("zona", 50, 10.0 * seed, 2, 8.0 + seed)])
        write(layout.trained_tokens(Run("scaffold", seed)), [shared, ("state", 52, 61.0, 1, 2.0)])
    table = tmp_path / "contrasts.csv"
    assert main([str(layout.folder), "--figure", str(tmp_path / "figure"), "--csv", str(table)]) == 0
    by_seed = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [(row["tokens"], row["figure"], row["seed"], row["theirs"], row["peers"]) for row in by_seed[:4]] == [
        ("removed", "percentile", "1", "10", "60"),
        ("removed", "percentile", "2", "20", "60"),
        ("removed", "bits:test", "1", "4.5", "2"),
        ("removed", "bits:test", "2", "5", "2"),
    ]
    assert len(by_seed) == 8
    assert "percentile of the indicator" in (tmp_path / "figure.svg").read_text(encoding="utf-8")
    printed = capsys.readouterr()
    assert printed.err.count("averaged.pt: missing, so that uniformity is left out") == 2
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.out.splitlines()]
    assert [line for line in lines if line[:1] in (["removed"], ["new"])] == [
        ["removed", "percentile", "1 of 1", "50.0", "15.0", "60.0", "-45.0", "-108.5 to +18.5", "2"],
        ["removed", "bits:test", "1 of 1", "50.0", "4.75", "2.00", "+2.75", "-0.43 to +5.93", "2"],
        ["new", "percentile", "1 of 1", "52.0", "61.0", "60.0", "+1.0", "+1.0 to +1.0", "2"],
        ["new", "bits:test", "1 of 1", "52.0", "2.00", "2.00", "+0.00", "+0.00 to +0.00", "2"],
    ]
    # 61 − 15, by Welch's test: the variance of 61 and 61 is 0, so its standard error is 5, with one degree of freedom.
    unmatched = [line[-1] for line in lines if line[:1] == ["percentile"]]
    assert unmatched == ["+46.0, -17.5 to +109.5"]
    # The stored figures of every training give the same tables.
    assert main([str(table)]) == 0 and capsys.readouterr().out == printed.out
    assert main([str(layout.folder), "--bpe", "none"]) == 1
    assert "not none and scaffold; name two of its systems" in capsys.readouterr().err
    assert main([str(layout.folder), "--test-set", "other"]) == 2
    assert "--test-set other: not a test set of" in capsys.readouterr().err
    layout.trained_tokens(Run("bpe", 2)).unlink()
    assert main([str(layout.folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("studies.undertrained: ") and "run mt-scaffold run, which writes it" in line
