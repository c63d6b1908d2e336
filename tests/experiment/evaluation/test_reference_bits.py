"""Bits per byte of the reference: a known answer, the sign of a difference, references with <unk>."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison_files import as_text
from mt_scaffold.experiment.evaluation.losses.loss_split import FREQUENT, LossSplit, Part, TokenLosses
from mt_scaffold.experiment.evaluation.measures import Labelled, TranslationScores
from mt_scaffold.experiment.evaluation.score import Metric, Origin, Scoring, Texts, score
from mt_scaffold.experiment.runtime.provenance import sha256
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import read_result, write_result

# 4, 6, 3 and 5 bytes, three times, as a test takes six sentences.
TIMES = 3
REFERENCES = ["eins", "zwölf", "elf", "sechs"] * TIMES
NAME = "reference_bits_per_byte"


def scored(
    folder: Path,
    system: str,
    seed: int,
    bits: list[float],
    unknown: list[int] | None,
    too_long: list[int] | None = None,
) -> Labelled:
    """Score a translation by a model that gives the references these bits, each of the three times."""
    bits = bits * TIMES
    unknown, too_long = (
        None if own is None else [number + 4 * time for time in range(TIMES) for number in own]
        for own in (unknown, too_long)
    )
    (folder / "ref").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    sizes = [len(line.encode()) for line in REFERENCES]
    parts = {
        FREQUENT: Part([1] * 12, sizes, [each / 4 for each in bits]),
        "other": Part([1] * 12, sizes, [each * 0.75 for each in bits]),
    }
    whole = (sum(bits), sum(sizes), sizes, "s", sha256(folder / "ref"), parts, parts, TokenLosses([], [], []))
    losses = folder / f"{system}-{seed}.losses.json"
    write_result(losses, LossSplit(system, "test", seed, False, "sentence", *whole, unknown, too_long))
    output = folder / f"{system}-{seed}.json"
    files = (folder / "ref", folder / "ref", output)
    score(
        Texts(files[0], [files[1]]),
        files[2],
        Scoring(metrics=["bleu"]),
        Origin(system=system, test_set="test", seed=seed),
    )
    return Labelled("", None, output, losses)


def of(labelled: Labelled) -> dict[str, Metric]:
    """Return the metrics of a score file and its losses."""
    ((found,), _) = TranslationScores().read([labelled])
    metrics: dict[str, Metric] = found.scores.metrics
    return metrics


def both(folder: Path, unknown: tuple[list[int], list[int]] = ([], [])) -> list[Labelled]:
    """Three trainings of each system; scaffold needs fewer bits for each sentence."""
    found = []
    for system, less, own in zip(("bpe", "scaffold"), (0.0, 1.0), unknown, strict=True):
        for seed in (1, 2, 3):
            bits = [each - less + seed / 20 + seed * number / 100 for number, each in enumerate((9.0, 12.0, 5.0, 8.0))]
            found.append(scored(folder, system, seed, bits, own))
    return found


def test_it_is_the_bits_by_the_bytes(tmp_path: Path) -> None:
    """The statistics of each sentence are kept; a reference with <unk> is in neither sum."""
    found = of(scored(tmp_path, "bpe", 1, [8.0, 12.0, 6.0, 10.0], []))[NAME]
    assert found.score == pytest.approx(36 / 18) and found.segments == ["8 4", "12 6", "6 3", "10 5"] * TIMES
    found = of(scored(tmp_path, "bpe", 1, [8.0, 12.0, 6.0, 11.0], [1, 2]))[NAME]
    assert found.score == pytest.approx(19 / 9) and found.segments == ["8 4", "0 0", "0 0", "11 5"] * TIMES
    assert NAME not in of(scored(tmp_path, "bpe", 1, [1.0] * 4, [0, 1, 2, 3]))


def test_a_system_that_needs_fewer_bits_has_a_negative_difference(tmp_path: Path) -> None:
    """So it is in every form of the table, whose heading says that lower is better."""
    comparison = compare(both(tmp_path), "bpe", tmp_path / "table", samples=200, allow_equal=True)
    test = comparison.rows[1].tests[NAME]
    assert test.difference == pytest.approx(-4 / 18) and test.low < test.difference < test.high < 0
    assert test.p is not None and test.p < 0.05 and comparison.main_metric == "bleu"
    text = as_text(comparison)
    row = next(line for line in text.splitlines() if "-0.2222" in line)
    assert row.split()[:2] == ["test", "scaffold"] and "bits per byte of the reference ↓" in text
    assert re.search(r"a true difference of 0\.\d{4} bits per byte of the reference would be found", text)
    assert "no measure of how good translations are" in text and "left out" not in text
    latex = (tmp_path / "table-all.tex").read_text(encoding="utf-8")
    assert "bits per byte of the reference" in latex and "0.2222" in latex and latex.count("tabular}{") == 2
    stored = json.loads((tmp_path / "table.json").read_text())["rows"][1]["tests"][NAME]
    assert stored["difference"] == pytest.approx(-4 / 18)


def test_tables_of_generated_text_have_none(tmp_path: Path) -> None:
    """They would be the losses of models on a toy grammar; only JSON has them, and tables of other text do."""
    comparison = compare(both(tmp_path), "bpe", samples=50, allow_equal=True)
    synthetic = replace(comparison, synthetic=True)
    assert "bits per byte" in as_text(comparison) and "bits per byte" not in as_text(synthetic)
    assert synthetic.rows[1].scores[NAME].mean > 0


def test_a_reference_with_unk_in_one_system_is_left_out_for_all(tmp_path: Path) -> None:
    """All scores are of the other references, and a warning counts those left out."""
    paths = both(tmp_path, ([], [1]))
    comparison = compare(paths, "bpe", samples=50, allow_equal=True)
    assert comparison.warnings[-1] == ResultWarning("left-out", "test", "3 of 12")
    for row, less in zip(comparison.rows, (0.0, 1.0), strict=True):
        seeds = row.scores[NAME].by_seed
        expected = {seed: (22 - 3 * less + 3 * seed / 20 + 5 * seed / 100) / 12 for seed in (1, 2, 3)}
        assert seeds == pytest.approx({str(seed): value for seed, value in expected.items()})
    assert comparison.rows[1].tests[NAME].difference == pytest.approx(-3 / 12)
    assert "for all systems: test (3 of 12)." in as_text(comparison)
    # No reference is left, and so no score: because of all systems together, or of one alone.
    for unknown in (([0, 2], [1, 3]), ([], [0, 1, 2, 3])):
        comparison = compare(both(tmp_path, unknown), "bpe", samples=50, allow_equal=True)
        assert comparison.warnings[-1].figure == "12 of 12" and comparison.metrics == ["bleu"]
        assert all(NAME not in row.scores for row in comparison.rows) and "forced decoding" not in as_text(comparison)


def test_a_sentence_that_is_too_long_for_one_system_is_left_out_for_all(tmp_path: Path) -> None:
    """It has a separate warning, and costs no score."""
    paths = [scored(tmp_path, "bpe", 1, [9.0, 0.0, 5.0, 8.0], [2], [1]), scored(tmp_path, "x", 1, [9.0] * 4, [])]
    comparison = compare(paths, "bpe", samples=50, allow_equal=True)
    assert comparison.warnings[-2:] == [
        ResultWarning("left-out", "test", "3 of 12"),
        ResultWarning("too-long", "test", "3 of 12"),
    ]
    assert [row.scores[NAME].mean for row in comparison.rows] == pytest.approx([17 / 9, 18 / 9])


def test_losses_of_another_text_are_refused(tmp_path: Path) -> None:
    """So are those of some of its lines only, of documents, or without the references that have <unk>."""
    with pytest.raises(MTScaffoldError, match="not the losses of 12 references"):
        of(scored(tmp_path, "bpe", 1, [1.0] * 4, None))
    labelled = scored(tmp_path, "bpe", 1, [1.0] * 4, [])
    path = Path(str(labelled.losses))
    whole = read_result(LossSplit, path)
    write_result(path, replace(whole, data_sha256="other"))
    with pytest.raises(MTScaffoldError, match="of other text than"):
        of(labelled)
    fewer = {name: Part(part.words[:3], part.bytes[:3], part.bits[:3]) for name, part in whole.by_rank.items()}
    for wrong in (
        replace(whole, unit="document"),
        replace(whole, by_rank=fewer),
        replace(whole, sizes=whole.sizes[:3]),
        replace(whole, sizes=whole.sizes[:3], by_rank=fewer),
    ):
        write_result(path, wrong)
        with pytest.raises(MTScaffoldError, match="not the losses of 12 references"):
            of(labelled)
