"""Comparisons of language models on tasks: tests paired over questions and trainings, on answers with known p."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="needs NumPy")
pytest.importorskip("scipy", reason="needs SciPy")

import numpy as np
from scipy import stats

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import parse_experiment
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.evaluation.harness.compare import compare_tasks
from mt_scaffold.experiment.evaluation.harness.comparison import PaperFigures, TaskComparison
from mt_scaffold.experiment.evaluation.harness.paper_tasks import PAPER_TASKS, main_metric
from mt_scaffold.experiment.evaluation.harness.scores import HarnessScores, Questions, TaskScore, as_line
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.report.paper import read_paper
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.tasks.benchmarks import paper_figures

# A task's answers by metric, for one checkpoint.
Answers = Mapping[str, Sequence[float]]


def write_scores(
    path: Path,
    tasks: Mapping[str, Answers],
    *,
    system: str = "model",
    seed: int = 1,
    shots: Sequence[int] = (0,),
    checkpoints: int = 1,
    asked: str = "the same",
    **more: Any,
) -> Path:
    """Write scores as ``run_harness`` does, with equal answers for every checkpoint and number of solved questions."""
    scores, questions = [], []
    for task, answers in tasks.items():
        count = len(next(iter(answers.values())))
        for number in shots:
            for metric, values in answers.items():
                mean = sum(values) / count
                scores.append(TaskScore(task, metric, number, count, mean, [mean] * checkpoints, [None] * checkpoints))
            lines = {metric: [as_line(values)] * checkpoints for metric, values in answers.items()}
            questions.append(Questions(task, number, " ".join(map(str, range(count))), f"{asked}, {number}", lines))
    settings: dict[str, Any] = {"synthetic": False, "data": "data", "limit": None, "versions": {}, "not_run": {}} | more
    result = HarnessScores(
        system=system,
        seed=seed,
        checkpoints=[f"checkpoint{number}.pt" for number in range(checkpoints)],
        scores=scores,
        questions=questions,
        task_versions=dict.fromkeys(tasks, "1"),
        **settings,
    )
    write_result(path, result)
    return path


def trainings(folder: Path, of: Mapping[str, Sequence[Mapping[str, Answers]]], **options: Any) -> list[Labelled]:
    """Write the trainings of each system, by seed, and label them."""
    folder.mkdir(exist_ok=True)
    found = []
    for system, several in of.items():
        for seed, tasks in enumerate(several, start=1):
            path = write_scores(folder / f"{system}-{seed}.json", tasks, seed=seed, **options)
            found.append(Labelled("", system, path))
    return found


def test_where_only_trainings_differ_p_is_that_of_welch(tmp_path: Path) -> None:
    """Every question has the same figure, so that resampled questions add nothing; Holm counts both tasks."""
    figures = {
        "ending": {"bpe": (0.30, 0.32, 0.31), "scaffold": (0.36, 0.33, 0.37, 0.36)},
        "order": {"bpe": (0.50, 0.55, 0.49), "scaffold": (0.60, 0.62, 0.59, 0.62)},
    }
    of = {
        system: [
            {task: {"acc": [values[system][seed]] * 30} for task, values in figures.items()}
            for seed in range(len(figures["ending"][system]))
        ]
        for system in ("bpe", "scaffold")
    }
    found = compare_tasks(trainings(tmp_path, of), "bpe", samples=100)
    expected = {
        task: stats.ttest_ind(values["scaffold"], values["bpe"], equal_var=False).pvalue
        for task, values in figures.items()
    }
    tests = {row.task: row.tests["acc"] for row in found.rows if row.system == "scaffold"}
    assert {task: test.p for task, test in tests.items()} == pytest.approx(expected, rel=1e-6)
    ordered = sorted(expected, key=expected.__getitem__)
    first, second = ordered
    holm = {first: 2 * expected[first], second: max(2 * expected[first], expected[second])}
    assert {task: test.p_holm for task, test in tests.items()} == pytest.approx(holm, rel=1e-6)
    assert tests["ending"].difference == pytest.approx(100 * (np.mean([0.36, 0.33, 0.37, 0.36]) - 0.31))
    assert found.comparisons == {"main": 2}


def test_where_trainings_agree_p_is_that_of_the_paired_test_over_questions(tmp_path: Path) -> None:
    """All seeds of a system answer alike: what remains is Student's paired test over the questions."""
    # Of 400 questions, one system alone answers 32, the other alone 18.
    bpe = np.array([0.0] * 32 + [1.0] * 18 + [1.0] * 150 + [0.0] * 200)
    scaffold = np.array([1.0] * 32 + [0.0] * 18 + [1.0] * 150 + [0.0] * 200)
    of = {"bpe": [{"ending": {"acc": list(bpe)}}] * 3, "scaffold": [{"ending": {"acc": list(scaffold)}}] * 3}
    test = compare_tasks(trainings(tmp_path, of), "bpe", samples=20000).rows[1].tests["acc"]
    expected = stats.ttest_rel(scaffold, bpe)
    assert 0.04 < expected.pvalue < 0.05
    # The variance of 20,000 resamples is known to 1 %.
    assert test.p == pytest.approx(expected.pvalue, rel=0.08)
    assert test.standard_error == pytest.approx(100 * np.std(scaffold - bpe, ddof=1) / math.sqrt(400), rel=0.03)
    # Unpaired, the same answers would tell nothing.
    assert stats.ttest_ind(scaffold, bpe).pvalue > 2 * expected.pvalue


def test_one_training_each_has_a_test_over_questions_only(tmp_path: Path) -> None:
    """p is headed "questions only", is two-sided, and no p over trainings is shown; two trainings have an interval."""
    right, wrong = [1.0] * 60 + [0.0] * 140, [1.0] * 40 + [0.0] * 160
    one = {"bpe": [{"ending": {"acc": wrong}}], "scaffold": [{"ending": {"acc": right}}]}
    found = compare_tasks(trainings(tmp_path / "one", one), "bpe", tmp_path / "tasks")
    test = found.rows[1].tests["acc"]
    # Twenty of 200 questions changed, all for the better, which is beyond chance.
    assert test.p is None and test.segments_p is not None and test.segments_p < 0.01
    assert test.difference == pytest.approx(10)
    assert test.low == pytest.approx(10 - 1.96 * 2.12, abs=0.6)
    text = (tmp_path / "tasks.txt").read_text(encoding="utf-8")
    assert "questions only, Holm" in text and "p, Holm" not in text.splitlines()[0]
    two = {"bpe": [{"ending": {"acc": wrong}}] * 2, "scaffold": [{"ending": {"acc": right}}] * 2}
    test = compare_tasks(trainings(tmp_path / "two", two), "bpe").rows[1].tests["acc"]
    assert test.p is None and test.segments_p is None and test.low < test.high


def test_a_score_is_the_mean_over_checkpoints_and_solved_questions(tmp_path: Path) -> None:
    """The mean is per question, so that the test stays paired; a note says so."""
    answers = {
        0: ["1 0 0 1", "1 1 0 1"],
        5: ["0 0 0 1", "1 0 0 1"],
    }
    for system in ("bpe", "scaffold"):
        path = write_scores(tmp_path / system, {"boolq": {"acc": [1, 0, 0, 1]}}, shots=(0, 5), checkpoints=2)
        written = json.loads(path.read_text())
        for entry in written["questions"]:
            entry["answers"]["acc"] = answers[entry["num_fewshot"]] if system == "scaffold" else ["0 0 0 1"] * 2
        path.write_text(json.dumps(written))
    found = compare_tasks([Labelled("", name, tmp_path / name) for name in ("bpe", "scaffold")], "bpe", samples=10)
    assert found.rows[1].scores["acc"].mean == pytest.approx(100 * (0.75 + 0.25 + 0 + 1) / 4)
    assert "Mean of 0-shot and 5-shot, mean over 2 checkpoints of each training." in found.notes


def test_both_accuracies_are_shown_and_the_reason_of_the_first(tmp_path: Path) -> None:
    """HellaSwag's acc_norm is shown next to the paper's figure, by inference; BoolQ has only acc."""
    random = np.random.default_rng(1)

    def answers() -> list[float]:
        return [float(value) for value in random.random(50) < 0.5]

    of = {
        system: [
            {"hellaswag": {"acc": answers(), "acc_norm": answers()}, "boolq": {"acc": answers()}} for _ in range(3)
        ]
        for system in ("bpe", "scaffold")
    }
    figures = PaperFigures(None, "hellaswag", "At varying model scales: 468M", 40.78, 41.68, "bpe", "scaffold")
    comparison = compare_tasks(trainings(tmp_path, of), "bpe", tmp_path / "tasks", samples=50, paper=[figures])
    assert {row.task: row.main for row in comparison.rows} == {"hellaswag": "acc_norm", "boolq": "acc"}
    assert comparison.comparisons == {"main": 2, "acc": 1}
    # acc of HellaSwag is a family of one.
    other = comparison.row(None, "hellaswag", "scaffold")
    assert other is not None and other.tests["acc"].p == other.tests["acc"].p_holm
    text = (tmp_path / "tasks.txt").read_text(encoding="utf-8")
    assert re.search(r"^task +system +questions +acc +acc_norm +compared +against ", text, re.MULTILINE)
    assert re.search(
        r"^HellaSwag +scaffold +50 +\d+\.\d\d ± \d+\.\d\d +\d+\.\d\d ± .* acc_norm +bpe ", text, re.MULTILINE
    )
    assert "Compared first, acc_norm: hellaswag: inferred: the paper's largest model is 1 point" in text
    assert "Compared first, acc: boolq: the only accuracy of the task." in text
    theirs = next(line for line in text.splitlines() if "At varying model scales: 468M" in line)
    ours = [comparison.row(None, "hellaswag", name) for name in ("bpe", "scaffold")]
    means = [row.scores["acc_norm"].mean for row in ours if row is not None]
    shown = [f"{means[0]:.2f}", "40.78", f"{means[1]:.2f}", "41.68", f"{means[1] - means[0]:+.2f}", "+0.90"]
    assert re.split(r" {2,}", theirs)[:-1] == ["HellaSwag", "acc_norm", *shown]
    # Zero-shot and one checkpoint are not what the paper averages.
    assert "Ours are not (see above), so that they do not compare." in text

    assert read_result(TaskComparison, tmp_path / "tasks.json") == comparison
    markdown = (tmp_path / "tasks.md").read_text(encoding="utf-8")
    assert markdown.count("|---") >= 3 and "| HellaSwag" in markdown
    latex = (tmp_path / "tasks.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{tabular}") == 3 and r"acc\_norm & bpe & " in latex and "% Compared first" in latex
    rows = list(csv.DictReader((tmp_path / "tasks.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["task"], row["metric"], row["compared_first"]) for row in rows if row["system"] == "scaffold"] == [
        ("hellaswag", "acc", "False"),
        ("hellaswag", "acc_norm", "True"),
        ("boolq", "acc", "True"),
    ]


def test_the_metric_that_is_compared_first() -> None:
    """For the paper's tasks it is the one that the paper most likely reports, with any filter; for others acc_norm."""
    assert main_metric("piqa", ["acc", "acc_norm"])[0] == "acc_norm"
    assert main_metric("triviaqa", ["exact_match (remove_whitespace)"])[0] == "exact_match (remove_whitespace)"
    assert main_metric("mine", ["acc", "acc_norm"])[0] == "acc_norm"
    assert main_metric("mine", ["f1"]) == ("f1", "the only metric of the task")


def test_the_inferred_metrics_are_those_that_the_papers_figures_are_near() -> None:
    """The reasons state the rounded distances of the paper's figures from BLOOM's."""
    papers = {(each.benchmark, each.setting): float(each.bpe) for each in read_paper().language_models}
    for benchmark in ("HellaSwag", "OpenBookQA"):
        distances, published = [], [float(number) for number in re.findall(r"\d\d\.\d+", PAPER_TASKS[benchmark].why)]
        for setting, (acc_norm, acc) in (("6.7B", published[:2]), ("468M", published[2:])):
            own = papers[benchmark, setting]
            distances += [round(abs(own - acc_norm)), round(abs(own - acc))]
            assert distances[-2] < distances[-1]
        shown = re.findall(r"(?<![\d.])\d+(?![\d.])(?= point| from|\ and \d+ from)", PAPER_TASKS[benchmark].why)
        assert [int(number) for number in shown] == distances


def test_what_is_not_compared_is_named(tmp_path: Path) -> None:
    """A task missing from one training, one that could not be loaded, and one without an accuracy."""
    accuracy = {"acc": [1.0, 0.0, 1.0]}
    tasks = {"ending": accuracy, "order": accuracy, "length": {"words": [3.0, 4.0, 2.0]}}
    files = trainings(tmp_path, {"bpe": [tasks], "scaffold": [{k: v for k, v in tasks.items() if k != "order"}]})
    write_scores(tmp_path / "bpe-1.json", tasks, not_run={"boolq": "its data cannot be loaded (no network)"})
    found = compare_tasks(files, "bpe", samples=10)
    assert {row.task for row in found.rows} == {"ending"}
    assert found.not_compared == {
        "boolq": "its data cannot be loaded (no network)",
        "order": f"not in {tmp_path / 'scaffold-1.json'}",
        "length": "no metric that lies between 0 and 1 for every question",
    }
    assert "Not compared: boolq: its data cannot be loaded (no network)" in found.notes
    assert "ending has 3 questions: rough." in found.notes


def test_a_metric_that_one_training_lacks_leaves_out_no_seed(tmp_path: Path) -> None:
    """The metric is left out instead; a task without any other is named."""
    exact, accuracy = {"exact_match": [1.0, 0.0, 0.0]}, {"acc": [1.0, 0.0, 1.0]}
    whole = {"ending": exact | accuracy, "order": exact}
    less = {"ending": accuracy, "order": accuracy}
    files = trainings(tmp_path, {"bpe": [whole, whole, less], "scaffold": [whole] * 3})
    found = compare_tasks(files, "bpe", samples=10)
    assert {(row.task, *row.seeds, *row.scores) for row in found.rows} == {("ending", 1, 2, 3, "acc")}
    assert found.not_compared == {"order": "no metric that lies between 0 and 1 for every question"}


def test_prompts_without_their_beginning_are_counted_by_system(tmp_path: Path) -> None:
    """They are summed over the trainings of a system; those of a task that is not compared are left out."""
    tasks = {"ending": {"acc": [1.0, 0.0, 1.0]}}
    files = trainings(tmp_path, {"bpe": [tasks, tasks], "scaffold": [tasks]}, shots=(0, 5))
    for name, seed, shortened in (
        ("bpe", 1, {"ending, 5 solved": 700}),
        ("bpe", 2, {"ending, 5 solved": 800, "order, 0 solved": 2}),
        ("scaffold", 1, {"ending, 5 solved": 3}),
    ):
        path = tmp_path / f"{name}-{seed}.json"
        write_scores(path, tasks, system=name, seed=seed, shots=(0, 5), shortened=shortened)
    found = compare_tasks(files, "bpe", samples=10)
    assert found.shortened == {"ending, 5 solved": {"bpe": 1500, "scaffold": 3}}
    note = "ending, 5 solved: prompts that did not fit, and were read without their beginning: bpe 1,500, scaffold 3."
    assert note in found.notes


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"asked": "other"}, MTScaffoldError, "ending has different questions"),
        ({"shots": (0, 5)}, MTScaffoldError, "different numbers of solved"),
        ({"checkpoints": 2}, MTScaffoldError, r"different numbers of checkpoints \(1 and 2\)"),
        ({"limit": 3}, MTScaffoldError, r"different limits \(None and 3\)"),
        ({"tasks": {"other": {"acc": [1.0, 0.0]}}}, MTScaffoldError, "no task in common"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_answers_to_different_questions_are_refused(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    """A difference between two tests must not pass for one between two systems."""
    tasks = {"ending": {"acc": [1.0, 0.0]}}
    write_scores(tmp_path / "a", tasks)
    write_scores(tmp_path / "b", **({"tasks": tasks} | change))
    with pytest.raises(error, match=says):
        compare_tasks([Labelled("", "bpe", tmp_path / "a"), Labelled("", "scaffold", tmp_path / "b")], "bpe")


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    """The same run twice, a baseline without scores, truncated answers."""
    path = write_scores(tmp_path / "a", {"ending": {"acc": [1.0, 0.0]}})
    with pytest.raises(UsageError, match="the same system and seed"):
        compare_tasks([path, path], "model")
    with pytest.raises(UsageError, match="the baseline bpe is not among"):
        compare_tasks([path], "bpe")
    path.write_text(path.read_text().replace('"1 0"', '"1"'))
    with pytest.raises(MTScaffoldError, match=r"a: ending: acc: not as many answers as questions"):
        compare_tasks([path], "model")


def test_the_command_compares_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``compare`` recognises files of tasks; groups are compared separately."""
    for name, answers in (("bpe", [1.0, 0.0, 0.0]), ("scaffold", [1.0, 1.0, 0.0])):
        write_scores(tmp_path / name, {"ending": {"acc": answers}}, system=name)
    files = [f"{group}:{name}={tmp_path / name}" for group in ("tokens", "text") for name in ("bpe", "scaffold")]
    assert main(["compare", *files, "--baseline", "bpe", "--samples", "20"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^tokens +ending +scaffold +3 +66\.67 +acc +bpe +\+33\.33 ", printed, re.MULTILINE)
    assert re.search(r"^text +ending +bpe +3 +33\.33 ", printed, re.MULTILINE)
    assert main(["compare", *files, "--baseline", "bpe", "--trainings", f"tokens:bpe={tmp_path / 'bpe'}"]) == 1
    assert f"{tmp_path / 'bpe'}: " in capsys.readouterr().err
    (tmp_path / "learn.json").write_text('{"warnings": [{"kind": "few-tokens", "about": "codes", "figure": "9"}]}')
    assert main(["compare", *files, "--baseline", "bpe", "--reports", str(tmp_path / "learn.json")]) == 0
    limits = capsys.readouterr().out.partition("2 things limit this result:\n")[2].partition("\n\n")[0]
    assert "Fewer than three seeds" in limits and "codes (9)" in limits
    for name in ("bpe", "scaffold"):
        write_scores(tmp_path / name, {"ending": {"acc": [1.0, 0.0, 0.0]}}, system=name, synthetic=True)
    assert main(["compare", *files, "--baseline", "bpe", "--samples", "20"]) == 0
    printed = capsys.readouterr().out
    assert "SYNTHETIC" in printed and not re.search(r"interval|Holm|Fewer than three seeds", printed)


CONFIG: dict[str, Any] = {
    "task": "language_modeling",
    "name": "small",
    "data": {"synthetic": {}},
    "codes": {"symbols": 300},
    "systems": {
        "sized": {"algorithm": "bpe", "symbols": 200},
        "plain": {"algorithm": "bpe"},
        "ours": {"algorithm": "scaffold"},
    },
    "baseline": "plain",
    "comparisons": {"equal_tokens": {"tokens": 10240}, "equal_text": {"text_of": "equal_tokens"}},
    "train": {"options": {"arch": "llama"}},
    "tasks": {"names": ["paper"], "paper_setting": {"equal_tokens": "468M", "equal_text": "388 GiB"}},
}


def test_the_papers_figures_stand_beside_the_plain_systems() -> None:
    """For each comparison of the configuration: seven tasks, for the systems with the experiment's own settings."""
    config = parse_experiment(CONFIG)
    assert isinstance(config, LanguageModelConfig)
    figures = paper_figures(config)
    assert len(figures) == 14 and {(each.our_bpe, each.our_scaffold) for each in figures} == {("plain", "ours")}
    found = {(each.group, each.task): (each.bpe, each.scaffold) for each in figures}
    assert found["equal_tokens", "openbookqa"] == (30.50, 32.20) and found["equal_text", "boolq"] == (58.72, 60.55)
    without = parse_experiment(CONFIG | {"systems": {"plain": {"algorithm": "bpe"}}})
    assert isinstance(without, LanguageModelConfig) and paper_figures(without) == []
