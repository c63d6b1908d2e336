"""The comparison: means, spread, baselines, tables; the test itself is in test_significance.py."""

import csv
import dataclasses
import json
import random
import re
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from paths import ROOT

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.binarise.data_folder import DictionaryUse
from mt_scaffold.experiment.configuration import Over, Primary, Published, load_experiment, parse_experiment
from mt_scaffold.experiment.data.overlap import TestOverlap
from mt_scaffold.experiment.data.parallel import RawRecord
from mt_scaffold.experiment.data.record import DataRecord
from mt_scaffold.experiment.evaluation.compare import compare, unequal_resampling
from mt_scaffold.experiment.evaluation.comparison import SYNTHETIC_NOTE, Comparison, Row, Spread, untranslated
from mt_scaffold.experiment.evaluation.comparison_files import as_text, far_tables, trainings_table
from mt_scaffold.experiment.evaluation.measures import Labelled, Scored
from mt_scaffold.experiment.evaluation.score import Origin, Texts, score
from mt_scaffold.experiment.evaluation.significance import shown_p
from mt_scaffold.experiment.runtime.result_warnings import of_generated_text
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.training.train import TrainingRecord
from mt_scaffold.tables import latex

VOCABULARY = "der die das Hund Katze läuft schläft im Haus Garten schnell langsam und".split()


def disturbed(lines: list[str], share: float, seed: int) -> list[str]:
    """Return the lines with a share of their words replaced."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(VOCABULARY) if draw.random() < share else word for word in line.split()) for line in lines
    ]


def metric(row: Row, name: str = "bleu") -> Spread:
    """A metric that the row must have."""
    spread = row.metric(name)
    assert spread is not None, f"{row.system} has no {name}"
    return spread


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Scores of two systems, the second better, each with three seeds, on one generated test set."""
    folder = tmp_path_factory.mktemp("scores")
    draw = random.Random(1)
    references = [" ".join(draw.choices(VOCABULARY, k=12)) for _ in range(80)]
    (folder / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    found = []
    for system, share in (("scaffold", 0.2), ("bpe", 0.4)):
        for seed in (1, 2, 3):
            name = f"{system}-{seed}"
            lines = disturbed(references, share, seed)
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
            files = (folder / name, folder / "ref", folder / f"{name}.json", folder / name, folder / "ref")
            score(
                Texts(files[0], [files[1]], files[3], [files[4]]),
                files[2],
                origin=Origin(system=system, test_set="made_up", seed=seed),
            )
            found.append(folder / f"{name}.json")
    return found


def test_mean_and_spread_are_over_the_seeds(scores: list[Path]) -> None:
    """Mean and standard deviation are those of the seeds' own scores."""
    rows = compare(scores, "bpe", samples=50).rows
    assert [row.system for row in rows] == ["bpe", "scaffold"]
    for row in rows:
        for name in ("bleu", "chrf", "tokenised_bleu", "tokenised_bleu_split"):
            single = [
                json.loads(path.read_text())["metrics"][name]["score"] for path in scores if row.system in path.name
            ]
            assert metric(row, name).mean == pytest.approx(statistics.mean(single))
            assert metric(row, name).sd == pytest.approx(statistics.stdev(single))
    assert metric(rows[1]).mean > metric(rows[0]).mean


def test_tokenised_bleu_is_tested_as_bleu_is(scores: list[Path], tmp_path: Path) -> None:
    """It is the metric to compare with the paper's. Scores of earlier versions lack the statistics for its p."""
    compared = compare(scores, "bpe", samples=200)
    (row,) = [row for row in compared.rows if row.system == "scaffold"]
    for name in ("tokenised_bleu", "tokenised_bleu_split"):
        difference = metric(row, name).mean - metric(compared.rows[0], name).mean
        assert row.tests[name].difference == pytest.approx(difference) and row.tests[name].p is not None
    # Here hypothesis and words are the same text, which 13a leaves as it is.
    assert row.tests["tokenised_bleu"].p == pytest.approx(row.tests["bleu"].p)
    older = []
    for path in scores:
        found = json.loads(path.read_text())
        del found["metrics"]["tokenised_bleu"]["segments"]
        older.append(tmp_path / path.name)
        older[-1].write_text(json.dumps(found))
    tested = compare(older, "bpe", samples=20).rows[1].tests
    assert "tokenised_bleu" not in tested and "bleu" in tested


def test_a_metric_of_some_rows_is_shown(scores: list[Path], tmp_path: Path) -> None:
    """It once vanished from every table, while its signature was shown below them."""
    other = []
    for path in scores:
        found = json.loads(path.read_text())
        found["test_set"] = "other"
        del found["metrics"]["chrf"]
        copy = path.with_name(f"{path.stem}.other.json")
        copy.write_text(json.dumps(found))
        other.append(copy)
    compared = compare([*scores, *other], "bpe", output=tmp_path / "table", samples=20)
    assert "chrf" in compared.metrics and "chrf" not in compared.common_metrics
    lines = (tmp_path / "table.txt").read_text(encoding="utf-8").splitlines()
    place = next(number for number, line in enumerate(lines) if "chrF  " in line)
    cells = [line[lines[place].index("chrF") :].strip() for line in lines[place + 2 : place + 6]]
    assert [bool(re.match(r"\d+\.\d\d ±", cell)) for cell in cells].count(True) == 4 or "±" in cells[0]
    assert f"{compared.rows[0].scores['chrf'].mean:.2f}" in lines[place + 2]


def test_metrics_of_other_inputs_must_agree_on_them(scores: list[Path], tmp_path: Path) -> None:
    """Scores also depend on the reference words and on COMET's source."""
    for name, says in (("reference_words", "reference words"), ("source", "source")):
        made = []
        for path, digest in zip((scores[0], scores[3]), ("0" * 64, "1" * 64), strict=True):
            found = json.loads(path.read_text())
            found["files"][name] = found["files"]["reference"] | {"sha256": digest}
            found["metrics"]["comet"] = found["metrics"]["chrf"] | {"segments": None, "signature": "m"}
            made.append(path.with_name(f"{path.stem}.{name}.json"))
            made[-1].write_text(json.dumps(found))
        with pytest.raises(MTScaffoldError, match=f"were scored with different {says}, on which a metric of both dep"):
            compare(made, "bpe", samples=20)


def test_a_configuration_may_name_systems_without_scores(
    scores: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After run --only bpe scaffold, those with dropout have none; a baseline in --against must have some."""
    config = str(ROOT / "configs" / "multi30k_en_de.yaml")
    arguments = ["compare", *map(str, scores), "--config", config, "--samples", "20"]
    assert main(arguments) == 0 and "scaffold" in capsys.readouterr().out
    assert main([*arguments, "--against", "scaffold=nobody"]) == 2
    assert "the baseline nobody is not among the systems with scores" in capsys.readouterr().err


def test_equal_translations_do_not_differ_significantly(scores: list[Path], tmp_path: Path) -> None:
    """sacreBLEU's form of p would have its smallest value here."""
    same = json.loads(scores[3].read_text())
    copy = scores[3].with_name("copy.json")
    copy.write_text(json.dumps({**same, "system": "copy"}))
    with pytest.raises(UsageError, match=r"two trainings with equal outputs on made_up; .* --allow-equal"):
        compare([scores[3], copy], "bpe", samples=50)
    row = compare([scores[3], copy], "bpe", samples=50, allow_equal=True).rows[1]
    assert row.tests.keys() >= {"bleu", "chrf"} and {test.segments_p_holm for test in row.tests.values()} == {1}
    assert metric(row).sd is None and row.tests["bleu"].difference == 0


def test_every_form_of_the_table_says_that_the_data_is_synthetic(scores: list[Path], tmp_path: Path) -> None:
    """No copy of the table can pass for a result on real data; only the JSON has tests, which would say nothing."""
    late = [{"kind": kind, "about": ""} for kind in ("not-converged", "few-tokens")]
    made = [change(path, synthetic=True, warnings=late) for path in scores]
    theirs = [Published("made_up", "Somebody 2020", "big model", "scaffold", "bleu", 10.0)]
    comparison = compare(made, "bpe", tmp_path / "table", samples=50, title="demo", published=theirs)
    for kind in ("txt", "md"):
        text = (tmp_path / f"table.{kind}").read_text(encoding="utf-8")
        assert SYNTHETIC_NOTE in text and "not comparable" in text and "±" in text and "tok:13a" in text
    assert read_result(Comparison, tmp_path / "table.json") == comparison
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["synthetic"] for row in rows] == ["True", "True"]
    assert float(rows[1]["bleu_mean"]) == metric(comparison.rows[1]).mean
    assert comparison.rows[1].tests["bleu"].p is not None and comparison.published
    assert {warning.kind for warning in comparison.warnings} == {"not-converged", "few-tokens"}
    for kind in ("txt", "md", "tex", "csv"):
        text = (tmp_path / f"table.{kind}").read_text(encoding="utf-8")
        assert not re.search(r"interval|Holm|_p|Power|resamples|Somebody|[Ff]ewer than|[Ss]ignific|updates", text)
        assert text.count("SYNTHETIC DATA") == (kind != "csv")
    assert "1 thing limits this result:\n- Fewer tokens were learned" in as_text(comparison)


def test_the_interval_of_a_single_training_is_sacrebleus(scores: list[Path]) -> None:
    """Its bootstrap over sentences, to the precision of float32, also for systems that are not tested."""
    from sacrebleu.metrics import BLEU

    comparison = compare([scores[0], scores[3]], "bpe", samples=200)
    for row, path in zip(comparison.rows, (scores[3], scores[0]), strict=True):
        texts = [
            each.read_text(encoding="utf-8").splitlines() for each in (path.with_suffix(""), path.with_name("ref"))
        ]
        found = BLEU().corpus_score(texts[0], [texts[1]], n_bootstrap=200)
        theirs = json.loads(found.format(width=9, signature="a:b", is_json=True))
        interval = row.intervals["bleu"]
        assert interval.over == "sentences" and {"chrf", "chrf++"} < row.intervals.keys()
        assert (interval.low + interval.high) / 2 == pytest.approx(theirs["confidence_mean"], abs=1e-4)
        assert (interval.high - interval.low) / 2 == pytest.approx(theirs["confidence_var"], abs=1e-4)
        assert f" ({interval.low:.2f} to {interval.high:.2f})" in as_text(comparison)
    assert "of one training, sacreBLEU's bootstrap over sentences" in as_text(comparison)
    alone = compare(scores[:1], "scaffold", samples=200)
    assert alone.rows[0].intervals == comparison.rows[1].intervals


def test_the_interval_of_several_trainings_is_students(scores: list[Path], tmp_path: Path) -> None:
    """Around their mean, with the quantile of two degrees of freedom, within the metric's range; none over two."""
    row = compare(scores, "bpe", tmp_path / "table", samples=20).rows[1]
    for name in ("bleu", "tokenised_bleu"):
        values = [*metric(row, name).by_seed.values()]
        margin = 4.302653 * statistics.stdev(values) / 3**0.5
        interval = row.intervals[name]
        assert interval.over == "trainings"
        assert (interval.low, interval.high) == pytest.approx(
            (statistics.mean(values) - margin, statistics.mean(values) + margin)
        )
    assert compare([*scores[:2], *scores[3:5]], "bpe", samples=20).rows[1].intervals == {}
    files = []
    for seed, high in enumerate((99.0, 100.0, 100.0), 1):
        metrics = {"spbleu": {"score": high, "text": "", "signature": "s", "comparable": True}}
        files.append(change(scores[0], seed=seed, system="near perfect", metrics=metrics))
    (near,) = compare(files, "near perfect", allow_equal=True).rows
    assert near.intervals["spbleu"].high == 100 > near.intervals["spbleu"].low
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as stream:
        line = [*csv.DictReader(stream)][1]
    assert float(line["bleu_score_low"]) == row.intervals["bleu"].low != float(line["bleu_low"])
    assert "Student's t over trainings" in (tmp_path / "table.txt").read_text(encoding="utf-8")


def data_record(folder: Path, near: list[int] | None) -> Path:
    """Write a data report by which some lines of the test set are nearly in the training text."""
    overlap = TestOverlap(80, 0, 0, 0, 3, 1, near)
    raw = RawRecord("x", False, test_overlap={"made_up": overlap, "other": overlap})
    write_result(folder / "data-report.json", DataRecord(raw, {}, {}))
    return folder / "data-report.json"


def test_scores_without_what_is_nearly_in_the_training_text(scores: list[Path], tmp_path: Path) -> None:
    """They equal the scores of the other sentences alone, for each seed, and so does the difference."""
    left_out = [3, 10, 41, 79]
    reports = [data_record(tmp_path, left_out)]
    comparison = compare(scores, "bpe", tmp_path / "table", samples=20, reports=reports)
    kept = [number for number in range(80) if number not in left_out]
    again = []
    for path in scores:
        for name in (path.stem, "ref"):
            lines = path.with_name(name).read_text(encoding="utf-8").splitlines()
            (tmp_path / name).write_text("".join(f"{lines[number]}\n" for number in kept), encoding="utf-8")
        origin = Origin(system=path.stem.split("-")[0], test_set="made_up", seed=int(path.stem[-1]))
        again.append(tmp_path / path.name)
        score(Texts(tmp_path / path.stem, [tmp_path / "ref"]), again[-1], origin=origin)
    expected = compare(again, "bpe", samples=20)
    assert [(row.system, row.baseline, row.lines, row.left_out) for row in comparison.far] == [
        ("bpe", None, 80, 4),
        ("scaffold", "bpe", 80, 4),
    ]
    for far, row in zip(comparison.far, expected.rows, strict=True):
        assert far.scores.keys() == {"bleu", "chrf"} and far.tests.keys() == (
            {"bleu", "chrf"} if far.baseline else set()
        )
        for name, spread in far.scores.items():
            assert spread.by_seed == pytest.approx(metric(row, name).by_seed)
        for name, test in far.tests.items():
            assert (test.difference, test.low) == pytest.approx((row.tests[name].difference, row.tests[name].low))
    assert read_result(Comparison, tmp_path / "table.json") == comparison
    text = (tmp_path / "table.txt").read_text(encoding="utf-8")
    shown = text.partition("Without test sentences nearly in the training text")[2]
    assert far_tables(dataclasses.replace(comparison, primary=Primary("chrf")))[0].rows[0][4] == "chrF"
    assert re.search(rf"^made_up +scaffold +4 of 80 +bpe +{metric(expected.rows[1]).mean:.2f} ±", shown, re.MULTILINE)


@pytest.mark.parametrize("near", [None, [], [*range(79)], [*range(80)]])
def test_there_is_no_such_table_where_it_would_say_nothing(
    scores: list[Path], tmp_path: Path, near: list[int] | None
) -> None:
    """That is, if the report has no line numbers, if no line is near, or if fewer than two are left."""
    comparison = compare(scores, "bpe", samples=20, reports=[data_record(tmp_path, near)])
    assert comparison.far == [] and "Without test sentences" not in as_text(comparison)


def test_unequal_rows_of_embeddings_limit_a_result(scores: list[Path]) -> None:
    """If they differ by over 1 %, padding included, which can make them equal; earlier results have no numbers."""

    def warned(rows: list[int]) -> list[str]:
        uses = {"bpe": DictionaryUse([996], [0], 0, {}, [1000]), "scaffold": DictionaryUse([1], [0], 0, {}, rows)}
        comparison = compare(scores, "bpe", samples=20, dictionaries=uses)
        return [str(warning) for warning in comparison.warnings if warning.kind == "unequal-rows"]

    assert warned([1011]) == ["scaffold and bpe (1,011 and 1,000 rows, +1.1 %)"]
    assert warned([450, 450]) == ["scaffold and bpe (900 and 1,000 rows, -10.0 %)"]
    assert warned([1010]) == warned([500, 500]) == warned([]) == []


def test_bits_per_byte_do_not_compare_systems_with_other_dropout() -> None:
    """A model that learned many segmentations gives others than the one that is scored a share of its probability."""
    amounts = {
        "a": {"dropout": 0.0},
        "b": {"dropout": 0.1},
        "c": {"dropout_source": 0.2, "dropout_target": 0.1},
        "d": {"dropout": 0.1, "sampling_alpha": None},
        "e": {"dropout": 0.1, "dropout_target": 0.0},
        "f": {"dropout_source": 0.1},
    }
    config = {"systems": amounts}

    def scored(system: str, metric: str = "reference_bits_per_byte", config: Any = config) -> Scored:
        return Scored(Path("x"), "", system, SimpleNamespace(system=system, config=config), {metric: 1.0})

    several = [scored(system) for system in "abcdef"]
    against = {"a": None, "b": "a", "c": "b", "d": "b", "e": "b", "f": "a"}
    found = unequal_resampling(against, several)
    # The source is not scored.
    assert [str(warning) for warning in found] == ["b and a", "e and b"]
    assert unequal_resampling({"b": "a"}, [scored("a", "bleu"), scored("b", "bleu")]) == []
    assert unequal_resampling({"b": "a"}, [scored("a"), scored("b", config=None)]) == []


def test_bits_per_byte_of_systems_with_other_dropout_are_not_compared(scores: list[Path], tmp_path: Path) -> None:
    """The list of limits says so; not with generated text, whose tables leave bits per byte out."""
    files = []
    for number, path in enumerate(scores):
        found = json.loads(path.read_text())
        found["metrics"]["reference_bits_per_byte"] = found["metrics"]["chrf"] | {
            "segments": ["3.0 2"] * found["lines"],
            "signature": "b",
            "score": 1.5,
        }
        found["config"] = {"systems": {"bpe": {"dropout": 0.0}, "scaffold": {"dropout": 0.1}}}
        found["files"]["losses"] = found["files"]["reference"]
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(found))
    compared = compare(files, "bpe", samples=20)
    warned = [each for each in compared.warnings if each.kind == "unequal-resampling"]
    assert [str(each) for each in warned] == ["scaffold and bpe"] and of_generated_text(warned) == []
    # What must not be compared is neither tested nor shown as a difference.
    assert "bleu" in (tests := compared.rows[1].tests) and "reference_bits_per_byte" not in tests
    assert as_text(compared).count("95 % interval") == as_text(compare(scores, "bpe", samples=20)).count(
        "95 % interval"
    )


def test_below_one_bleu_there_is_no_test_of_translations(scores: list[Path], tmp_path: Path) -> None:
    """Neither system translates: ``BLEU 0.00, p < 0.001`` says nothing, in any metric; if one is above, it does."""
    draw = random.Random(1)
    files = []
    for system in ("bpe", "scaffold"):
        for seed in (1, 2, 3):
            lines = [f"{system} {draw.choice(VOCABULARY)}" for _ in range(80)]
            (tmp_path / f"{system}-{seed}").write_text("\n".join(lines) + "\n", encoding="utf-8")
            files.append(tmp_path / f"{system}-{seed}.json")
            reference = scores[0].with_name("ref")
            texts = Texts(tmp_path / f"{system}-{seed}", [reference])
            score(texts, files[-1], origin=Origin(system=system, test_set="made_up", seed=seed))
    low = compare(files, "bpe", samples=20)
    assert max(metric(row).mean for row in low.rows) < 1
    assert [row.tests for row in low.rows] == [{}, {}]
    assert "difference" not in as_text(low)
    # Student's t over the trainings alone would begin below 0.
    assert {interval.low for row in low.rows for interval in row.intervals.values()} >= {0.0}
    assert low.answer == "Nothing may be concluded: every system is below 1 BLEU."
    assert "Not tested, because both systems are below 1 BLEU: scaffold and bpe on made_up." in as_text(low)
    assert "Not tested" not in as_text(compare(scores, "bpe", samples=20))
    # Without BLEU, by the metric's own limit; with BLEU, by BLEU.
    assert untranslated("chrf", [{"chrf": 9.0}] * 2) == "chrf" and untranslated("ter", [{"ter": 101.0}] * 2) == "ter"
    assert untranslated("chrf", [{"chrf": 9.0, "bleu": 2.0}] * 2) is untranslated("higher:x", [{}] * 2) is None
    beside = compare([*files[:3], *scores[:3]], "bpe", samples=20)
    assert set(beside.rows[1].tests) == {"bleu", "chrf", "chrf++"}


def test_the_answer_stands_above_the_table(scores: list[Path]) -> None:
    """The direction, size and place of what is significant; with too few trainings, that they are unknown."""
    found = compare(scores, "bpe", samples=50)
    test = found.rows[1].tests["bleu"]
    assert test.p_holm is not None and test.p_holm < 0.05
    answer = f"scaffold is ahead of bpe by {test.difference:.2f} BLEU on made_up; but translations repeat themselves."
    assert found.answer == answer and as_text(found).startswith(f"{answer}\n\ntest set ")
    one = compare([scores[0], scores[3]], "bpe", samples=50)
    assert one.answer.startswith("Of these models alone: scaffold is ahead of bpe by ")
    two = compare([*scores[:2], *scores[3:5]], "bpe", samples=50)
    assert two.answer == "Nothing may be concluded: a test takes 3 trainings of each system."


def test_every_figure_is_in_the_csv(scores: list[Path], tmp_path: Path) -> None:
    """Programs read means, differences, intervals and p from it."""
    comparison = compare(scores, "bpe", tmp_path / "table", samples=50, title="demo")
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    test = comparison.rows[1].tests["chrf++"]
    assert [float(rows[1][f"chrf++_{part}"]) for part in ("difference", "low", "high", "p", "p_holm")] == [
        *(test.difference, test.low, test.high, test.p, test.p_holm)
    ]
    assert rows[0]["baseline"] == "" and rows[1]["baseline"] == "bpe" and rows[0]["bleu_p"] == ""


@pytest.mark.parametrize("name", ["x|y", "R&D", "a<b>", 'in "quotes", b', "50%_$#", r"{a}\b"])
def test_a_systems_name_is_text_in_every_form(scores: list[Path], tmp_path: Path, name: str) -> None:
    """It never ends a cell or acts as markup, and the CSV restores it; experiments do not allow such names."""
    command = ["compare", f"{name}={scores[0]}", f"bpe={scores[3]}", "--baseline", name, "--samples", "20"]
    assert main([*command, "--title", f"With {name}", "--output", str(tmp_path / "table")]) == 0
    text = {kind[-3:].strip("."): (tmp_path / f"table{kind}").read_text("utf-8") for kind in (".md", "-all.tex")}
    for kind, mark, shown in (("md", "|", name.replace("<", "&lt;").replace("|", "\\|")), ("tex", "&", latex(name))):
        rows = [re.split(rf"(?<!\\){re.escape(mark)}", line) for line in text[kind].splitlines() if f" {mark} " in line]
        heading, first, second = ([cell.strip() for cell in row] for row in rows[:3])
        assert len(heading) == len(first) == len(second)
        assert first[heading.index("system")] == second[heading.index("against")] == shown
    assert "<" not in text["md"]
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as stream:
        assert [(row["system"], row["baseline"]) for row in csv.DictReader(stream)] == [(name, ""), ("bpe", name)]
    settings = load_experiment(ROOT / "configs" / "demo.yaml").to_dict()
    with pytest.raises(UsageError, match=re.escape(f"systems.{name}: not a valid name")):
        parse_experiment({**settings, "systems": {**settings["systems"], name: {"algorithm": "bpe"}}})


def test_what_does_not_fit_together_is_refused(scores: list[Path], tmp_path: Path) -> None:
    """An unknown baseline, duplicate scores and malformed files are refused, each with the reason."""
    with pytest.raises(UsageError, match="baseline bep is not among the systems with scores: scaffold, bpe"):
        compare(scores, "bep")
    with pytest.raises(UsageError, match="same test set, system and seed"):
        compare([*scores, scores[0]], "bpe")
    with pytest.raises(UsageError, match="2 or more, not 0"):
        compare(scores, "bpe", samples=0)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(MTScaffoldError, match=r"x\.json: system: missing; run the step that writes this file again"):
        compare([tmp_path / "x.json"], "bpe")
    scored = json.loads(scores[0].read_text())["metrics"]
    for part, content, says in (
        ("files", {}, "does not name the hypothesis file; score again"),
        ("metrics", scored | {"rouge": scored["bleu"]}, "holds an unknown metric, rouge; score again"),
        ("metrics", {"bleu": 3}, "metrics.bleu: must be 'key: value' lines, not 3"),
        ("metrics", {"bleu": {"score": "high"}}, "metrics.bleu.score: must be a number, not 'high'"),
    ):
        (tmp_path / "x.json").write_text(json.dumps(json.loads(scores[0].read_text()) | {part: content}))
        with pytest.raises(MTScaffoldError, match=rf"x\.json: {says}"):
            compare([tmp_path / "x.json"], json.loads(scores[0].read_text())["system"])
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(MTScaffoldError, match=r"x\.json: not JSON"):
        compare([tmp_path / "x.json"], "bpe")


@pytest.mark.parametrize("segments", [None, ["1 2"], ["1 x"] * 80, ["1 2"] * 79 + ["1"]])
def test_statistics_that_are_missing_or_damaged_are_refused(scores: list[Path], segments: list[str] | None) -> None:
    """p is computed from them; files of an earlier release, or truncated ones, lack some."""
    metrics = json.loads(scores[0].read_text())["metrics"]
    metrics["chrf"]["segments"] = segments
    with pytest.raises(MTScaffoldError, match=r"scaffold-1.*: chrF(:| lacks) .*; score again"):
        compare([change(scores[0], metrics=metrics), *scores[1:]], "bpe", samples=20)


def test_a_translation_that_has_changed_since_it_was_scored_is_noticed(scores: list[Path], tmp_path: Path) -> None:
    """The test on the sentences must be about the same translations as the scores."""
    for path in scores[0].parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with open(tmp_path / "scaffold-1", "a", encoding="utf-8") as stream:
        stream.write("mehr\n")
    with pytest.raises(MTScaffoldError, match=r"scaffold-1: has changed since .*scaffold-1\.json was written"):
        compare([tmp_path / path.name for path in scores], "bpe", samples=50)


def change(path: Path, **changes: object) -> Path:
    """Write a copy of a score file next to it, with changed fields."""
    name = "-".join(map(str, [path.stem, *changes.values()]))[:80].replace("/", "")
    copy = path.with_name(f"{name}.copy.json")
    copy.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return copy


def test_each_system_is_tested_against_its_own_baseline(scores: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The paper has two comparisons: among the systems with dropout, and among those without."""
    several = [*scores, *(change(path, system=f"{path.stem.split('-')[0]}+dropout") for path in scores)]
    comparison = compare(several, "bpe", samples=40, baselines={"scaffold+dropout": "bpe+dropout"}, allow_equal=True)
    against = [(row.system, row.baseline) for row in comparison.rows]
    assert against == [("bpe", None), ("scaffold", "bpe"), ("scaffold+dropout", "bpe+dropout"), ("bpe+dropout", "bpe")]
    rows = {row.system: row for row in comparison.rows}
    assert rows["scaffold+dropout"].tests["bleu"].difference == rows["scaffold"].tests["bleu"].difference > 1
    assert rows["bpe+dropout"].tests["bleu"].p == 1
    assert comparison.comparisons.keys() >= {"bleu", "chrf"} and {*comparison.comparisons.values()} == {3}
    command = ["compare", *map(str, several), "-b", "bpe", "--samples", "40", "--allow-equal"]
    assert main([*command, "--against", "scaffold+dropout=bpe+dropout"]) == 0
    assert capsys.readouterr().out == as_text(comparison)
    for wrong, says in (("scaffold", "write NAME=VALUE"), ("scafold=bpe", "system scafold is not among the systems")):
        assert main([*command, "--against", wrong]) == 2
        assert says in capsys.readouterr().err
    assert main(["compare", *map(str, scores)]) == 2 and "give --baseline" in capsys.readouterr().err


def test_a_configuration_gives_baselines_and_resamples(
    scores: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workflow's command names neither; options override the configuration."""
    (tmp_path / "made_up.yaml").write_text(
        """\
name: made_up
languages: {source: en, target: de}
data: {synthetic: {pairs: 9, valid: 1, test: 1}}
codes: {symbols: 9}
systems: {bpe: {algorithm: bpe}, scaffold: {algorithm: scaffold}, third: {algorithm: bpe, baseline: scaffold}}
baseline: bpe
train: {options: {arch: transformer}}
score: {bootstrap_samples: 30, primary: {metric: chrf}}
"""
    )
    baselines = {"third": "scaffold"}
    several = [*scores, *(change(path, system="third") for path in scores[:3])]
    command = ["compare", *map(str, several), "--config", str(tmp_path / "made_up.yaml"), "--allow-equal"]
    assert main(command) == 0
    chrf = Primary("chrf")
    expected = compare(several, "bpe", samples=30, baselines=baselines, allow_equal=True, primary=chrf)
    assert (shown := capsys.readouterr().out) == as_text(expected)
    # The primary measure has the sentence above the table, the table, and its notes.
    assert " chrF on made_up" in shown.splitlines()[0] and re.split("  +", heading_of(shown))[2] == "chrF"
    assert re.search(r"a true difference of .* chrF would be found", shown)
    assert main([*command, "--baseline", "scaffold", "--samples", "25", "--primary", "chrf++", "--over", "mean"]) == 0
    mean = Primary("chrf++", Over(["mean"]))
    expected = compare(several, "scaffold", samples=25, baselines=baselines, allow_equal=True, primary=mean)
    assert capsys.readouterr().out == as_text(expected)


@pytest.mark.parametrize(
    ("primary", "says"),
    [
        ("{metric: ter}", r"score\.primary\.metric: ter is not computed; add it to score\.metrics"),
        ("{over: [test, tset]}", r"score\.primary\.over: no test set tset; did you mean test\?"),
        ("{over: all}", r"score\.primary\.over: must be a list, not 'all'"),
    ],
)
def test_a_primary_measure_that_cannot_be_computed_is_refused(primary: str, says: str) -> None:
    """Before anything is trained."""
    settings = load_experiment(ROOT / "configs" / "demo.yaml").to_dict()
    with pytest.raises(UsageError, match=says):
        parse_experiment(settings | {"score": {"primary": yaml.safe_load(primary)}})


def test_the_table_says_what_it_may_and_may_not_tell(scores: list[Path]) -> None:
    """It states the power of the design, the number of comparisons, and the limits of few seeds or resamples."""
    comparison = compare(scores, "bpe", samples=50)
    test = comparison.rows[1].tests["bleu"]
    text = as_text(comparison)
    assert f"with probability 80 %, a true difference of {test.detectable:.2f} BLEU would be found" in text
    assert "(Welch, Satterthwaite) over trainings and sentences together, 50 resamples, random seed 12345" in text
    assert f"{test.difference:+.2f}" in text and f"{test.low:+.2f} to {test.high:+.2f}" in text
    assert "sentences only" not in text and "too few" not in text
    assert "Tests rest on this number of sentences: made_up (80)." in text
    assert "With fewer than 5 seeds, p errs in up to 8 %" in text
    row = next(line for line in text.splitlines() if line.startswith("made_up     scaffold"))
    assert row.split("  ")[-1].strip() == shown_p(test.p_holm)


def heading_of(text: str) -> str:
    """Return the heading of the first table."""
    return next(line for line in text.splitlines() if line.startswith("test set"))


def test_few_seeds_have_no_p_over_trainings(scores: list[Path]) -> None:
    """Two have an interval; one has a p whose heading says that it is over sentences only."""
    two = compare([*scores[:2], *scores[3:5]], "bpe", samples=50)
    heading = heading_of(as_text(two))
    assert heading.endswith("95 % interval") and two.rows[1].tests["bleu"].p is None and not two.rows[1].intervals
    assert "Two trainings of a system give a difference and its interval, too narrow where" in as_text(two)
    assert "Power" not in as_text(two)
    one = as_text(compare([scores[0], scores[3]], "bpe", samples=10))
    assert [part for part in re.split("  +", heading_of(one)) if "only" in part] == [
        *("sentences only", "sentences only, Holm")
    ]
    assert "One training of a system does not show" in one and "10 resamples are too few for 1 comparison" in one
    assert "Power over sentences alone" in one


def test_trainings_are_a_second_table(scores: list[Path], tmp_path: Path) -> None:
    """Systems that saw more text, or have more parameters, do not differ in segmentation alone."""
    files = []
    for system, seed in (("bpe", 1), ("scaffold", 2)):
        report = TrainingRecord(seed, 1200, 3, 4.5, None, 1_234_567, 5400.0, {}, "fairseq-train", {})
        path = tmp_path / f"{system}.json"
        write_result(path, report)
        files.append(Labelled("", system, path))
    comparison = compare(scores, "bpe", samples=20, trainings=files, output=tmp_path / "table")
    assert [(each.system, each.seed, each.updates) for each in comparison.trainings] == [
        ("bpe", 1, 1200),
        ("scaffold", 2, 1200),
    ]
    row = next(line for line in as_text(comparison).splitlines() if line.startswith("scaffold  "))
    assert row.split()[:5] == ["scaffold", "2", "1,234,567", "1,200", "3"] and row.split()[-1] == "1.50"
    known = dataclasses.replace(comparison.trainings[0], subwords=98765, text_bytes=4_321_000, stop="text")
    shown = trainings_table(dataclasses.replace(comparison, trainings=[known]))[1]
    assert shown[5:8] == ["98,765", "4.3", "text"]
    assert read_result(Comparison, tmp_path / "table.json") == comparison
    with pytest.raises(UsageError, match="no scores of the system other"):
        compare(scores, "bpe", trainings=[Labelled("", "other", tmp_path / "bpe.json")])


def test_scores_computed_differently_are_not_compared(scores: list[Path]) -> None:
    """Another version, tokeniser or number of references shows in the signature."""
    metrics = json.loads(scores[0].read_text())["metrics"]
    other = {**metrics, "chrf": {**metrics["chrf"], "signature": "nrefs:1|case:lc"}}
    with pytest.raises(MTScaffoldError, match=r"chrF was computed differently \(nrefs:1\|case:lc and .*; score both"):
        compare([change(scores[0], metrics=other), *scores[1:]], "bpe", samples=20)
    wrong = {**metrics, "bleu": {**metrics["bleu"], "score": 1.0}}
    with pytest.raises(MTScaffoldError, match=r"BLEU was 1\.0000 when this was written and is .* now"):
        compare([change(scores[0], metrics=wrong, system="scaffold"), *scores[1:]], "bpe", samples=20)
    with pytest.raises(MTScaffoldError, match="no metric in common"):
        compare([change(scores[0], metrics={}), *scores[1:]], "bpe", samples=20)


def test_published_scores_are_shown_beside_ours_and_marked(scores: list[Path], tmp_path: Path) -> None:
    """Nobody may mistake a copied figure for one that was measured here."""
    theirs = [
        Published("made_up", "Somebody 2020", "big model", "scaffold", "bleu", 10.0),
        Published("made_up", "Somebody 2020", "big model", "absent", "bleu", 20.0),
    ]
    compared = compare(scores, "bpe", output=tmp_path / "table", samples=20, published=theirs)
    ours = metric(compared.rows[1]).mean
    assert compared.published[0].difference == pytest.approx(ours - 10)
    assert compared.published[1].difference is None
    for kind in ("txt", "md"):
        before, _, after = (tmp_path / f"table.{kind}").read_text().partition("not measured here")
        assert "10.00" in after and f"{ours:.2f}" in after and f"{ours - 10:+.2f}" in after
        assert "Somebody 2020" in after and "Somebody 2020" not in before
    assert "Somebody" not in as_text(compare(scores, "bpe", samples=20))
