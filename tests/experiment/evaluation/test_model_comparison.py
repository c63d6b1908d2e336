"""Comparisons of language models: tests over documents on figures with known answers."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="needs NumPy")

import numpy as np

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import Documents, LanguageModelScores
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.evaluation.significance import draw_segments, resample_documents
from mt_scaffold.experiment.runtime.results import read_result, write_result

SIZES = [100, 250, 40, 700, 90, 310, 55, 120]


def write_scores(
    path: Path,
    bits: Sequence[float],
    *,
    seed: int = 1,
    test_set: str = "pile",
    tokens: int = 500,
    sizes: Sequence[int] = SIZES,
    signature: str = "bpb|context:8",
    synthetic: bool = False,
) -> Path:
    """Write scores as ``evaluate`` does."""
    total, size = math.fsum(bits), sum(sizes)
    scores = LanguageModelScores(
        system="model",
        test_set=test_set,
        seed=seed,
        synthetic=synthetic,
        bits_per_byte=total / size,
        bits=total,
        bytes=size,
        tokens=tokens,
        documents=len(bits),
        bytes_per_token=size / tokens,
        perplexity_per_token=2 ** (total / tokens),
        note="",
        signature=signature,
        context="",
        model_sha256=str(path),
        data_sha256=str(list(sizes)),
        vocabulary="",
        n_vocab=300,
        versions={},
        by_document=Documents(list(bits), list(sizes)),
    )
    write_result(path, scores)
    return path


def bits_of(rate: float, noise: float = 0.0, seed: int = 0) -> list[float]:
    """Return bits per document at a rate per byte that varies randomly between documents."""
    drawn = np.random.default_rng(seed).normal(0, noise, len(SIZES))
    return [size * (rate + float(more)) for size, more in zip(SIZES, drawn, strict=True)]


def test_a_difference_of_every_document_is_found_and_none_is_not(tmp_path: Path) -> None:
    """The difference of ratios of sums; a system against itself has p of 1."""
    base = write_scores(tmp_path / "bpe.json", bits_of(1.2, 0.1))
    better = write_scores(
        tmp_path / "scaffold.json", [each - 0.05 * size for each, size in zip(bits_of(1.2, 0.1), SIZES, strict=True)]
    )
    labelled = [Labelled("", "bpe", base), Labelled("", "scaffold", better), Labelled("", "same", base)]
    comparison = compare(labelled, "bpe", samples=2000, allow_equal=True)
    first, found, same = comparison.rows
    assert first.baseline is None and not first.tests and found.baseline == same.baseline == "bpe"
    test, equal = found.tests["bits_per_byte"], same.tests["bits_per_byte"]
    assert test.difference == pytest.approx(-0.05)
    # Every document differs by the same rate, so that every resample does.
    assert [test.low, test.high] == pytest.approx([-0.05, -0.05])
    # The resamples alone would give 1 / 2001, which no exact test of eight documents can.
    assert test.segments_p == 2 / 2**8 and test.segments_p_holm == 4 / 2**8 and test.segments == 8
    assert test.p is None and test.sacrebleu_p is None
    assert equal.difference == 0 and equal.segments_p == 1
    assert comparison.comparisons == {"bits_per_byte": 2}


def test_documents_are_drawn_as_segments_are() -> None:
    """The resamples are those of the translation systems' test, in bounded memory."""
    bits = np.array([bits_of(1.2, 0.2, 1), bits_of(1.1, 0.2, 2)])
    drawn = draw_segments(len(SIZES), 50)
    sizes = np.array(SIZES, np.float64)
    for row, found in zip(bits, resample_documents(bits, sizes, 50), strict=True):
        assert found.score == row.sum() / sizes.sum()
        assert found.scores.tolist() == pytest.approx((drawn @ row / (drawn @ sizes)).tolist())


def test_many_documents_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resample of each of 100,000 documents must not take a matrix of gigabytes; parts change nothing."""
    from mt_scaffold.experiment.evaluation import significance

    bits, sizes = np.array([bits_of(1.2, 0.2)]), np.array(SIZES, np.float64)
    whole = resample_documents(bits, sizes, 60)[0].scores.tolist()
    monkeypatch.setattr(significance, "_NUMBERS_AT_ONCE", 20)
    assert resample_documents(bits, sizes, 60)[0].scores.tolist() == pytest.approx(whole)


def test_groups_are_compared_within_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal tokens and equal text are two comparisons, each with its own baseline; all files are written."""
    entries = []
    for group, rates in (("equal tokens", (1.3, 1.25)), ("equal text", (1.3, 1.28))):
        for name, rate in zip(("bpe", "scaffold"), rates, strict=True):
            for seed in (1, 2, 3):
                path = tmp_path / f"{group}-{name}-{seed}.json"
                write_scores(path, bits_of(rate + seed / 1000, 0.01, seed), seed=seed)
                entries.append(f"{group}:{name}={path}")
    output = tmp_path / "comparison"
    assert main(["compare", *entries, "--baseline", "bpe", "--output", str(output), "--samples", "200"]) == 0
    comparison = read_result(Comparison, f"{output}.json")
    places = [(row.group, row.system, row.baseline, row.seeds) for row in comparison.rows]
    assert places == [
        (group, name, baseline, [1, 2, 3])
        for group in ("equal tokens", "equal text")
        for name, baseline in (("bpe", None), ("scaffold", "bpe"))
    ]
    tests = [row.tests["bits_per_byte"] for row in comparison.rows if row.tests]
    assert [round(test.difference, 6) for test in tests] == [-0.05, -0.02]
    shown = capsys.readouterr().out
    assert shown == Path(f"{output}.txt").read_text(encoding="utf-8")
    assert "per token, not comparable between vocabularies" in shown
    markdown = Path(f"{output}.md").read_text(encoding="utf-8")
    assert "| equal text" in markdown and "- \\*:" in markdown
    with open(f"{output}.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["group"] for row in rows] == [row.group for row in comparison.rows]
    column = "bits_per_byte_difference"
    assert float(rows[1][column]) == tests[0].difference and rows[0][column] == ""
    assert (rows[0]["n_vocab"], rows[0]["documents"]) == ("300", "8")


def test_every_size_has_a_baseline_of_its_own(tmp_path: Path) -> None:
    """Scaffold-BPE of 64K is compared with BPE of 64K, not with that of 32K."""
    names = ("bpe-32", "scaffold-32", "bpe-64", "scaffold-64")
    labelled = [Labelled("", name, write_scores(tmp_path / name, bits_of(1 + n / 10))) for n, name in enumerate(names)]
    comparison = compare(labelled, "bpe-32", baselines={"scaffold-64": "bpe-64"}, samples=10)
    assert [row.baseline for row in comparison.rows] == [None, "bpe-32", "bpe-32", "bpe-64"]
    differences = [row.tests["bits_per_byte"].difference for row in comparison.rows if row.tests]
    assert differences == pytest.approx([0.1, 0.2, 0.1])


@pytest.mark.parametrize(
    ("entries", "options", "says"),
    [
        (["a=one", "a=same"], [], "are for the same test set, system and seed"),
        (["a=one", "b=others"], [], "are scores of different documents"),
        (["a=one", "b=differently"], [], "were computed differently"),
        (["a=one", "b=one"], ["-b", "c"], "the baseline c is not among the systems"),
        (["g:a=one", "h:b=one"], [], "no scores of a, the baseline of b, in group h"),
        (["=one"], [], "write NAME=FILE or GROUP:NAME=FILE"),
        (["a=one"], ["--trainings", "b=one"], "no scores of the system b, whose training is given"),
        (["a=one", "b=one"], ["--against", "b"], "write NAME=VALUE"),
        (["a=one", "b=broken"], [], "run the step that writes this file again"),
        (["a=one"], ["--samples", "0"], "must be 2 or more"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    entries: list[str],
    options: list[str],
    says: str,
) -> None:
    """The error is one line that names the reason."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "same"):
        write_scores(Path(name), bits_of(1))
    write_scores(Path("others"), bits_of(1), sizes=[*SIZES[1:], 5])
    write_scores(Path("differently"), bits_of(1), signature="bpb|context:0")
    Path("broken").write_text(json.dumps({"system": "a"}), encoding="utf-8")
    assert main(["compare", *entries, "-b", "a", *options]) in (1, 2)
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert says in line


def test_scores_without_documents_are_refused(tmp_path: Path) -> None:
    """A truncated file would be compared with the wrong documents."""
    path = write_scores(tmp_path / "one", bits_of(1))
    content = json.loads(path.read_text(encoding="utf-8"))
    content["by_document"]["bits"].pop()
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(MTScaffoldError, match="not as many bits as documents"):
        compare([Labelled("", "a", path)], "a")
    with pytest.raises(UsageError, match="at least one"):
        compare([], "a")


def test_five_documents_are_no_test(tmp_path: Path) -> None:
    """No exact test of them could give p below 5 %."""
    labelled = [
        Labelled("", name, write_scores(tmp_path / name, [size * 10.0] * 5, sizes=[100] * 5))
        for name, size in (("bpe", 11), ("scaffold", 10))
    ]
    comparison = compare(labelled, "bpe")
    assert [row.tests for row in comparison.rows] == [{}, {}] and comparison.comparisons == {}
    assert comparison.rows[1].baseline == "bpe"
    assert "none: pile, bits per byte (5 documents)." in " ".join(comparison.shown_warnings)
