"""Comparisons of language models on tasks: tests paired over questions and trainings, on answers with known p."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="needs NumPy")
pytest.importorskip("scipy", reason="needs SciPy")

import numpy as np

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.lm_eval import HarnessScores, Questions, as_line
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.runtime.results import read_result, write_result

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
    questions = []
    for task, answers in tasks.items():
        count = len(next(iter(answers.values())))
        for number in shots:
            lines = {metric: [as_line(values)] * checkpoints for metric, values in answers.items()}
            questions.append(Questions(task, number, " ".join(map(str, range(count))), f"{asked}, {number}", lines))
    settings: dict[str, Any] = {"synthetic": False, "data": "data", "limit": None, "versions": {}} | more
    result = HarnessScores(
        system=system,
        seed=seed,
        checkpoints=[f"checkpoint{number}.pt" for number in range(checkpoints)],
        scores=[],
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


def not_compared(comparison: Comparison) -> dict[str, str]:
    return {each.about: each.figure for each in comparison.warnings if each.kind == "not-asked"}


def test_one_training_each_has_a_test_over_questions_only(tmp_path: Path) -> None:
    """p is headed "questions only", is two-sided, and no p over trainings is shown; two trainings have an interval."""
    right, wrong = [1.0] * 60 + [0.0] * 140, [1.0] * 40 + [0.0] * 160
    one = {"bpe": [{"ending": {"acc": wrong}}], "scaffold": [{"ending": {"acc": right}}]}
    found = compare(trainings(tmp_path / "one", one), "bpe", tmp_path / "tasks")
    test = found.rows[1].tests["answers"]
    # Twenty of 200 questions changed, all for the better, which is beyond chance.
    assert test.p is None and test.segments_p is not None and test.segments_p < 0.01
    assert test.difference == pytest.approx(10)
    assert test.low == pytest.approx(10 - 1.96 * 2.12, abs=0.6)
    text = (tmp_path / "tasks.txt").read_text(encoding="utf-8")
    assert "questions only, Holm" in text and "p, Holm" not in text.splitlines()[0]
    two = {"bpe": [{"ending": {"acc": wrong}}] * 2, "scaffold": [{"ending": {"acc": right}}] * 2}
    test = compare(trainings(tmp_path / "two", two), "bpe").rows[1].tests["answers"]
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
    found = compare([Labelled("", name, tmp_path / name) for name in ("bpe", "scaffold")], "bpe", samples=10)
    assert found.rows[1].scores["answers"].mean == pytest.approx(100 * (0.75 + 0.25 + 0 + 1) / 4)
    assert found.signatures["boolq acc"].endswith("|mean of 0-shot and 5-shot|checkpoints:2")


def test_both_accuracies_are_shown(tmp_path: Path) -> None:
    """HellaSwag is compared by acc_norm, with acc in a second table; BoolQ has only acc."""
    random = np.random.default_rng(1)

    def answers() -> list[float]:
        return [float(value) for value in random.random(50) < 0.5]

    of = {
        system: [
            {"hellaswag": {"acc": answers(), "acc_norm": answers()}, "boolq": {"acc": answers()}} for _ in range(3)
        ]
        for system in ("bpe", "scaffold")
    }
    comparison = compare(trainings(tmp_path, of), "bpe", tmp_path / "tasks", samples=50)
    assert list(dict.fromkeys(row.test_set for row in comparison.rows)) == ["hellaswag acc_norm", "boolq acc"]
    assert comparison.comparisons == {"answers": 2, "answers:acc": 1}
    # acc of HellaSwag is a family of one.
    other = next(row for row in comparison.rows if row.tests and row.test_set == "hellaswag acc_norm")
    assert other.tests["answers:acc"].p == other.tests["answers:acc"].p_holm
    text = (tmp_path / "tasks.txt").read_text(encoding="utf-8")
    assert re.search(r"^test set +system +percent of the questions +against ", text, re.MULTILINE)
    assert re.search(r"^hellaswag acc_norm +scaffold +\d+\.\d\d ± \d+\.\d\d .* bpe ", text, re.MULTILINE)
    assert re.search(r"^test set +system +acc, % +p, Holm$", text, re.MULTILINE)
    assert "hellaswag acc_norm: lm_eval:unknown|version:1|mean of 0-shot|checkpoints:1" in text
    assert read_result(Comparison, tmp_path / "tasks.json") == comparison
    rows = list(csv.DictReader((tmp_path / "tasks.csv").read_text(encoding="utf-8").splitlines()))
    assert [bool(row["answers:acc_mean"]) for row in rows if row["system"] == "scaffold"] == [True, False]


def test_what_is_not_compared_is_named(tmp_path: Path) -> None:
    """A task missing from one training, and one without an accuracy; scores of earlier versions are read."""
    accuracy = {"acc": [1.0, 0.0, 1.0]}
    tasks = {"ending": accuracy, "order": accuracy, "length": {"words": [3.0, 4.0, 2.0]}}
    files = trainings(tmp_path, {"bpe": [tasks], "scaffold": [{k: v for k, v in tasks.items() if k != "order"}]})
    earlier = {"not_run": {"boolq": "no network"}}
    written = json.loads((tmp_path / "bpe-1.json").read_text()) | earlier
    (tmp_path / "bpe-1.json").write_text(json.dumps(written))
    found = compare(files, "bpe", samples=10)
    assert {row.test_set for row in found.rows} == {"ending acc"}
    assert not_compared(found) == {
        "order": f"not in {tmp_path / 'scaffold-1.json'}",
        "length": "no metric that lies between 0 and 1 for every question",
    }


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
    found = compare(files, "bpe", samples=10)
    cut = {each.about: each.figure for each in found.warnings if each.kind == "shortened"}
    assert cut == {"bpe, ending, 5 solved": "1,500", "scaffold, ending, 5 solved": "3"}


def test_a_metric_that_one_training_lacks_leaves_out_no_seed(tmp_path: Path) -> None:
    """The metric is left out instead; a task without any other is named."""
    exact, accuracy = {"exact_match": [1.0, 0.0, 0.0]}, {"acc": [1.0, 0.0, 1.0]}
    whole = {"ending": exact | accuracy, "order": exact}
    less = {"ending": accuracy, "order": accuracy}
    files = trainings(tmp_path, {"bpe": [whole, whole, less], "scaffold": [whole] * 3})
    found = compare(files, "bpe", samples=10)
    assert {(row.test_set, *row.seeds, *row.scores) for row in found.rows} == {("ending acc", 1, 2, 3, "answers")}
    assert not_compared(found) == {"order": "no metric that lies between 0 and 1 for every question"}


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"asked": "other"}, MTScaffoldError, "ending acc: different questions"),
        ({"shots": (0, 5)}, MTScaffoldError, "different numbers of solved"),
        ({"checkpoints": 2}, MTScaffoldError, r"computed differently \(.*checkpoints:1 and .*checkpoints:2\)"),
        ({"limit": 3}, MTScaffoldError, r"computed differently \(.*limit:3\)"),
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
        compare([Labelled("", "bpe", tmp_path / "a"), Labelled("", "scaffold", tmp_path / "b")], "bpe")


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    """The same run twice, a baseline without scores, truncated answers."""
    path = write_scores(tmp_path / "a", {"ending": {"acc": [1.0, 0.0]}})
    with pytest.raises(UsageError, match="the same test set, system and seed"):
        compare([path, path], "model")
    with pytest.raises(UsageError, match="the baseline bpe is not among"):
        compare([path], "bpe")
    path.write_text(path.read_text().replace('"1 0"', '"1"'))
    with pytest.raises(MTScaffoldError, match=r"a: ending: acc: not as many answers as questions"):
        compare([path], "model")


def test_the_command_compares_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``compare`` recognises files of tasks; groups are compared separately."""
    for name, answers in (("bpe", [1.0, 0.0, 0.0] * 10), ("scaffold", [1.0, 1.0, 0.0] * 10)):
        write_scores(tmp_path / name, {"ending": {"acc": answers}}, system=name)
    files = [f"{group}:{name}={tmp_path / name}" for group in ("tokens", "text") for name in ("bpe", "scaffold")]
    assert main(["compare", *files, "--baseline", "bpe", "--samples", "20"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^tokens +ending acc +scaffold +66\.67 \(.*\) +bpe +\+33\.33 ", printed, re.MULTILINE)
    assert re.search(r"^text +ending acc +bpe +33\.33 ", printed, re.MULTILINE)
    for name in ("bpe", "scaffold"):
        write_scores(tmp_path / name, {"ending": {"acc": [1.0, 0.0, 0.0] * 10}}, system=name, synthetic=True)
    assert main(["compare", *files, "--baseline", "bpe", "--samples", "20"]) == 0
    printed = capsys.readouterr().out
    assert "SYNTHETIC" in printed and not re.search(r"interval|Holm|Fewer than three seeds", printed)
