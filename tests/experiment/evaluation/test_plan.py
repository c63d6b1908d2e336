"""Plans: the numbers of seeds and segments that would find a difference."""

import json
import random
from pathlib import Path

import pytest

from mt_scaffold.cli import main
from mt_scaffold.errors import UsageError

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.evaluation.plan import as_text, plan
from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score
from mt_scaffold.experiment.evaluation.significance import Design

CONFIG = """\
name: small
languages: {source: en, target: de}
data: {synthetic: {pairs: 40, valid: 4, test: 60}}
codes: {symbols: 60}
systems: {bpe: {algorithm: bpe}, scaffold: {algorithm: scaffold}, later: {algorithm: scaffold, dropout: 0.1}}
baseline: bpe
seeds: [1, 2, 3]
train: {options: {arch: transformer}}
score: {bootstrap_samples: 100, metrics: [bleu, chrf]}
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scores of an experiment: two systems, three seeds, 60 sentences."""
    folder = tmp_path_factory.mktemp("plan") / "small"
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    draw = random.Random(3)
    reference = [" ".join(draw.choices("der die Hund Katze läuft im Haus".split(), k=12)) for _ in range(60)]
    (folder / "ref").write_text("".join(f"{line}\n" for line in reference), encoding="utf-8")
    for system, share in (("bpe", 0.3), ("scaffold", 0.28)):
        for seed in (1, 2, 3):
            words = ["aus" if draw.random() < share else word for line in reference for word in line.split()]
            lines = [" ".join(words[start : start + 12]) for start in range(0, len(words), 12)]
            (folder / "out").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            output = folder / system / f"seed-{seed}" / "scores" / "test.json"
            output.parent.mkdir(parents=True)
            score(
                Texts(folder / "out", [folder / "ref"]),
                output,
                Scoring(metrics=["bleu"]),
                Origin(system=system, test_set="test", seed=seed),
            )
            (folder / "out").unlink()
    return folder


def scores_of(folder: Path) -> list[Labelled]:
    return [Labelled("", None, path) for path in sorted(folder.glob("*/*/scores/test.json"))]


def test_the_power_line_says_the_same(experiment: Path) -> None:
    """The design at hand is in the table, with the figure of the comparison; the answers agree with the table."""
    (found,) = plan(scores_of(experiment), "bpe", 2.5, samples=100)
    test = compare(scores_of(experiment), "bpe", samples=100).rows[1].tests["bleu"]
    assert found.detectable[Design(3, 60)] == pytest.approx(test.detectable)
    assert (found.system, found.baseline, found.metric, found.seeds, found.segments) == (
        *("scaffold", "bpe", "bleu", 3, 60),
    )
    enough, longer = found.by_seeds, found.by_segments
    assert enough is not None and longer is not None and enough.segments == 60 and longer.trainings == 3
    # More of either finds smaller differences.
    rows = {(design.trainings, design.segments): least for design, least in found.detectable.items()}
    assert rows[3, 60] > rows[5, 60] > rows[50, 60] > rows[50, 600] and rows[3, 60] > rows[3, 600]
    for (trainings, segments), least in rows.items():
        assert segments != 60 or (least <= 2.5) == (trainings >= enough.trainings)
        assert trainings != 3 or (least <= 2.5) == (segments >= longer.segments)
    text = as_text([found])
    assert f"{enough.trainings} seeds of each system on 60 sentences" in text and "80 %" in text


def test_the_power_is_that_of_the_smallest_difference_found(experiment: Path) -> None:
    """80 % at that difference, by the same test; half the level, for one direction, if there is none."""
    (found,) = plan(scores_of(experiment), "bpe", 2.5, samples=100)
    least = found.detectable[Design(3, 60)]
    (there,) = plan(scores_of(experiment), "bpe", least, samples=100)
    assert there.power == pytest.approx(0.8, abs=1e-6)
    (none,) = plan(scores_of(experiment), "bpe", 1e-9, samples=100)
    assert none.power == pytest.approx(0.05 / 2, abs=1e-6)
    assert f"3 seeds on 60 sentences would find it with probability {100 * found.power:.0f} %." in as_text([found])


def test_the_command_reads_a_finished_experiment(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a table for each scored system, and refuses a metric that is missing from the scores."""
    assert main(["plan", str(experiment), "--difference", "2.5"]) == 0
    assert "test: scaffold against bpe, BLEU; at hand: 3 seeds, 60 sentences" in (shown := capsys.readouterr().out)
    assert "later" not in shown
    assert main(["plan", str(experiment), "--difference", "2.5", "--metric", "chrf"]) == 2
    assert "--metric chrf: not tested in these scores; choose one of bleu" in capsys.readouterr().err


def test_scores_without_a_tested_metric(experiment: Path, tmp_path: Path) -> None:
    """The error says what to do, rather than offer an empty choice."""
    paths = []
    for number, labelled in enumerate(scores_of(experiment)):
        paths.append(tmp_path / f"{number}.json")
        content = json.loads(Path(labelled.path).read_text(encoding="utf-8"))
        content["metrics"] = {"tokenised_bleu": content["metrics"]["bleu"] | {"segments": None}}
        paths[-1].write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UsageError, match="no tested metric in common; score again"):
        plan([Labelled("", None, path) for path in paths], "bpe", 1.0)


def test_what_compare_does_not_test_is_not_planned(experiment: Path, tmp_path: Path) -> None:
    """Systems below 1 BLEU once differed "with probability 100 %"; and nothing is certain."""
    assert "with probability over 99 %." in as_text(plan(scores_of(experiment), "bpe", 60.0, samples=20))
    for number, labelled in enumerate(scores_of(experiment)):
        content = json.loads(Path(labelled.path).read_text(encoding="utf-8"))
        content["metrics"]["bleu"]["score"] = 0.4
        (tmp_path / f"{number}.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UsageError, match="no difference in bleu can be tested here"):
        plan([Labelled("", None, path) for path in tmp_path.glob("*.json")], "bpe", 1.0)


def test_one_seed_is_refused(experiment: Path, tmp_path: Path) -> None:
    """It does not show how far trainings differ; a difference of 0 is refused as well."""
    with pytest.raises(UsageError, match=r"bpe has one training on test, .* train with two seeds or more"):
        plan(scores_of(experiment)[2:], "bpe", 1.0)
    with pytest.raises(UsageError, match="must be more than 0"):
        plan(scores_of(experiment), "bpe", 0.0)
    assert json.loads(Path(scores_of(experiment)[0].path).read_text())["metrics"].keys() == {"bleu"}
