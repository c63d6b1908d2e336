"""Warnings limit a result: a step reports them, and every form of the comparison shows them below its first table."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold import learn_bpe
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION, binarise
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.configuration import Config, parse_config, parse_experiment
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.systems import CodesSetting
from mt_scaffold.experiment.data.parallel import RawRecord
from mt_scaffold.experiment.data.record import gather_records
from mt_scaffold.experiment.data.tokenise import tokenise
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.comparison_files import as_latex, as_text
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.evaluation.score import Origin, Scores, Scoring, Texts, score
from mt_scaffold.experiment.evaluation.translation_checks import check_translations, repetition
from mt_scaffold.experiment.runtime.result_warnings import KINDS, ResultWarning, lines_of, read_warnings
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.tasks.codes import learn_model
from mt_scaffold.experiment.tasks.language_modeling import LanguageModeling
from mt_scaffold.experiment.training.train import TrainingRecord
from mt_scaffold.methods import PlainBPE, Scaffold

REFERENCES = ["Der Hund läuft im Haus.", "Die Katze schläft im Garten.", "Das Haus und der Garten."] * 9
CONFIGURATION = {
    "name": "small",
    "languages": {"source": "en", "target": "de"},
    "data": {"synthetic": {}},
    "codes": {"symbols": 10},
    "systems": {"bpe": {"algorithm": "bpe"}},
    "baseline": "bpe",
    "train": {"options": {"arch": "transformer", "max-epoch": 1}},
}


def configuration(**changes: Any) -> Config:
    return parse_config(CONFIGURATION | changes)


def scored(folder: Path, system: str, seed: int, translations: list[str], times: int = 1) -> Path:
    """Score translations of REFERENCES, both repeated."""
    (folder / "ref.de").write_text("".join(f"{line}\n" for line in REFERENCES * times), encoding="utf-8")
    hypothesis, path = folder / f"{system}-{seed}.de", folder / f"{system}-{seed}.json"
    hypothesis.write_text("".join(f"{line}\n" for line in translations * times), encoding="utf-8")
    score(
        Texts(hypothesis, [folder / "ref.de"]),
        path,
        Scoring(metrics=["bleu"]),
        Origin(system=system, test_set="test", seed=seed),
    )
    return path


def training(folder: Path, seed: int, *warnings: ResultWarning) -> Path:
    path = folder / f"training-{seed}.json"
    curves: dict[str, list[tuple[float, float]]] = {"train": [], "valid": []}
    report = TrainingRecord(seed, 400, 1, 4.5, 4.5, 9, 60.0, {}, "fairseq-train", curves, warnings=[*warnings])
    write_result(path, report)
    return path


def kinds(warnings: list[ResultWarning]) -> list[str]:
    return [warning.kind for warning in warnings]


def test_every_form_has_the_answer_the_table_and_what_limits_it(tmp_path: Path) -> None:
    """In this order, the gravest limit first, from scores, trainings and the reports of other steps; also in JSON."""
    paths = [scored(tmp_path, "bpe", 1, REFERENCES), scored(tmp_path, "scaffold", 1, ["s to to to to"] * 27)]
    report = tmp_path / "learn.json"
    report.write_text('{"codes": "x", "warnings": [{"kind": "few-tokens", "about": "x", "figure": "2 of 9"}]}')
    folder = tmp_path / "data"
    folder.mkdir()
    unknown = {"kind": "unknown", "about": "test.de, x", "figure": "3 of 90 subwords"}
    (folder / DESCRIPTION).write_text(json.dumps({"warnings": [unknown]}))
    late = training(tmp_path, 1, ResultWarning("not-converged", "", "update 400"))
    trainings = [Labelled("", "scaffold", late)]
    comparison = compare(
        paths,
        "bpe",
        tmp_path / "table",
        samples=10,
        trainings=trainings,
        reports=[report, folder, tmp_path / "learn.json"],
    )
    assert read_result(Comparison, tmp_path / "table.json") == comparison
    expected = [
        f"{KINDS['length']}: scaffold, seed 1, test (0.52 times as long).",
        f"{KINDS['repetition']}: scaffold, seed 1, test (27 of 27, such as 'to to to to').",
        f"{KINDS['not-converged']}: scaffold, seed 1 (update 400).",
        f"{KINDS['few-seeds']}: bpe (1 seed); scaffold (1 seed).",
        f"{KINDS['few-segments']}: test, BLEU (27 sentences).",
        f"{KINDS['unknown']}: test.de, x (3 of 90 subwords).",
        f"{KINDS['few-tokens']}: x (2 of 9).",
    ]
    assert comparison.shown_warnings == expected
    text, markdown, latex = ((tmp_path / f"table.{kind}").read_text() for kind in ("txt", "md", "tex"))
    latex = (tmp_path / "table-all.tex").read_text()
    answer = (
        "No difference in BLEU is significant between these models; other trainings may differ; but translations are "
        "much longer or shorter than the reference."
    )
    assert comparison.grave and comparison.answer == answer
    assert text.startswith(f"{answer}\n\ntest set ") and markdown.startswith(f"**{answer}**\n\n| test set")
    assert "\n\n7 things limit this result:\n" + "".join(f"- {line}\n" for line in expected) + "\n" in text
    for line in expected:
        assert f"> - {line.replace('<', '&lt;')}\n" in markdown
        assert f"% - {line}\n" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == latex.count(r"\caption{") >= 1
    body = latex.partition(r"\begin{table}")[2]
    assert not [line for line in body.splitlines() if "limit" in line or "Translations" in line]
    assert kinds([each for each in comparison.warnings if each.kind == "few-tokens"]) == ["few-tokens"]


def test_a_sound_result_has_no_warning(tmp_path: Path) -> None:
    """Three seeds, and translations like their references."""
    paths = [scored(tmp_path, system, seed, REFERENCES, 2) for system in ("bpe", "scaffold") for seed in (1, 2, 3)]
    trainings = [Labelled("", "bpe", training(tmp_path, seed)) for seed in (1, 2, 3)]
    comparison = compare(paths, "bpe", samples=10, trainings=trainings, allow_equal=True)
    assert comparison.warnings == []
    assert "limit" not in as_text(comparison) + as_text(comparison, markdown=True) + as_latex(comparison)
    assert not comparison.grave and comparison.answer == "No difference in BLEU is significant."


def test_latex_escapes_what_is_its_own(tmp_path: Path) -> None:
    """LaTeX can set a table whose title or system has % or _; its notes are comments."""
    comparison = compare([scored(tmp_path, "a_b", 1, REFERENCES)], "a_b", samples=10, title="50 % & more")
    lines = as_latex(comparison).splitlines()
    assert r"\caption{50 \% \& more: BLEU}" in lines
    assert any(line.startswith(r"test & a\_b & 100.00") for line in lines)
    end = lines.index(r"\end{table}")
    assert all(line.startswith("% ") for line in lines[end + 1 :])


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        (
            "the man is on the man is on the man is on the man is on",
            "the man is on the man is on the man is on the man is on",
        ),
        ("tomato to to to", None),
        ("He had had it, and that that was that.", None),
    ],
)
def test_repetition_is_four_times_the_same(sentence: str, found: str | None) -> None:
    """It finds the output of a model that has learned nothing, but no ordinary sentence."""
    assert repetition(sentence) == found


def test_a_repetition_in_the_reference_is_no_fault(tmp_path: Path) -> None:
    """Nor is one repetitive translation in two hundred."""
    assert check_translations(["ha ha ha ha ha"], ["ha ha ha ha ha"], "test") == []
    assert check_translations(["a b"] * 199 + ["to to to to"], ["a b"] * 199 + ["to go there"], "test") == []


def test_empty_translations_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By test set, system and seed, with the first line, in the step and the table; except for empty references."""
    translations = [REFERENCES[0], " ", *REFERENCES[2:]]
    files = [scored(tmp_path, "scaffold", 1, translations), scored(tmp_path, "bpe", 1, REFERENCES)]
    assert "Translations are empty where the reference is not: test (1 of 27, line 2)." in capsys.readouterr().err
    says = "Translations are empty where the reference is not: scaffold, seed 1, test (1 of 27, line 2)."
    assert says in as_text(compare(files, "bpe", samples=10))
    found = check_translations(["a", "", "", "b"], ["a", "", "c", "b"], "test")
    assert [str(each) for each in found if each.kind == "empty"] == ["test (1 of 4, line 3)"]
    found = check_translations(["a", "", "", "b"], ["a", "c", "c", "b"], "test")
    assert [str(each) for each in found if each.kind == "empty"] == ["test (2 of 4, the first is line 2)"]


def test_a_training_whose_best_validation_is_the_last_has_not_converged(tmp_path: Path, tiny_model: Path) -> None:
    """The report of a training that improved until its end has a warning that a comparison reads."""
    report = read_result(TrainingRecord, tiny_model / "training.json")
    assert report.valid_loss is not None
    late = report.valid_loss == report.best_valid_loss
    assert kinds(report.warnings) == ["not-converged"] * late
    assert kinds(read_warnings(tiny_model / "training.json", "bpe, seed 1")) == ["not-converged"] * late


@pytest.mark.parametrize("method", [PlainBPE, Scaffold])
def test_codes_with_fewer_tokens_than_asked_for_say_so(tmp_path: Path, method: Any) -> None:
    """The figure is in the unit of the method's own number."""
    (tmp_path / "text").write_text("low low lower lowest\n" * 3, encoding="utf-8")
    config = configuration(systems={"bpe": {"algorithm": method.name}}, codes={"symbols": 1})
    (setting,) = config.all_codes.values()
    assert isinstance(setting, CodesSetting)
    text = {"paths": [tmp_path / "text"]}
    assert learn_model("few", setting, tmp_path / "codes", 1, text).warnings == []
    many = dataclasses.replace(setting, method=method(symbols=2_000_000))
    report = learn_model("many", many, tmp_path / "codes", 1, text)
    assert report.warnings == [ResultWarning("few-tokens", "many", f"{report.tokens} of 2,000,000")]
    assert report.tokens


def test_unknown_symbols_of_a_test_set_are_counted(tmp_path: Path) -> None:
    """A character that is not in the training text becomes <unk>; the data folder has the count."""
    (tmp_path / "codes").write_text("#version: 0.2\nl o\n", encoding="utf-8")
    for name, text in (("train.en", "lo w\n"), ("train.de", "lo w\n"), ("test.en", "lo z\n"), ("test.de", "lo w\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    segmentation = joint_segmentation(tmp_path / "codes")
    made = binarise(tmp_path / "bpe", "en", "de", segmentation, tmp_path / "train", tests=[tmp_path / "test"])
    unknown = made.counts["test"]["en"]
    expected = ResultWarning("unknown", "test.en, bpe", f"{unknown.unknown} of {unknown.subwords} subwords")
    assert made.warnings == [expected] == read_warnings(tmp_path / "bpe" / DESCRIPTION)


def test_the_data_report_has_the_warnings_of_its_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A language without rules, tokenised text and test sentences in the training text: each once."""
    (tmp_path / "raw.qq").write_text("He isn &apos;t here\n" * 20, encoding="utf-8")
    write_result(tmp_path / "words.json", tokenise(tmp_path / "raw.qq", tmp_path / "words", language="qq"))
    error = capsys.readouterr().err
    assert f"mt-scaffold: warning: {KINDS['language']}: qq." in error
    assert f"mt-scaffold: warning: {KINDS['preprocessed']}: raw.qq (" in error
    raw = RawRecord("small", False, warnings=[ResultWarning("test-in-train", "test", "1 of 9")])
    write_result(tmp_path / "raw.json", raw)
    words = {"train.qq": tmp_path / "words.json", "valid.qq": tmp_path / "words.json"}
    report = gather_records([tmp_path / "raw.json"] * 2, words, {})
    assert kinds(report.warnings) == ["test-in-train", "language", "preprocessed"]


def test_tokenised_documents_are_said_to_be(tmp_path: Path) -> None:
    """Bits per byte of tokenised text are a different quantity; every part for training or testing is checked."""
    text = {name: tmp_path / name for name in ("train", "valid", "test")}
    for name, path in text.items():
        words = "It isn &apos;t here , he said .\n" * 20
        path.write_text(words if name == "train" else "It isn't here, he said.\n" * 9)
    sources = {"train": [str(text["train"])], "valid": [str(text["valid"])], "tests": {"test": [str(text["test"])]}}
    config = parse_experiment(
        {
            "task": "language_modeling",
            "name": "small",
            "data": {"documents": sources},
            "codes": {"symbols": 270, "total_symbols": True},
            "systems": {"bpe": {"algorithm": "bpe"}},
            "baseline": "bpe",
            "comparisons": {"main": {"tokens": 100}},
            "train": {"options": {"arch": "transformer_lm"}},
        }
    )
    assert isinstance(config, LanguageModelConfig)
    layout, task = LanguageModelLayout(tmp_path / "small", config), LanguageModeling()
    (name,) = map(layout.segmentation_of, config.systems)
    layout.codes(name).parent.mkdir(parents=True)
    learn_bpe(paths=[text["train"]], outfile=layout.codes(name), num_symbols=5, pretokenise="gpt2")
    data = layout.binarised_of("bpe")
    task.binarise(layout, data.name, data, ("train", "valid"), 1)
    task.binarise(layout, data.name, layout.binarised_test_of("bpe", "test"), ("test",), 1)
    found = [warning for path in task.reports(layout) for warning in read_warnings(path / DESCRIPTION)]
    says = "looks tokenised already (such as '&apos;t'), by 20 of its first 20 lines"
    assert found == [ResultWarning("preprocessed-documents", "train", says)]


def test_a_tokenised_reference_is_detokenised_and_said_to_be(tmp_path: Path) -> None:
    """With tokenise: none, hypothesis and reference are ordinary text, and the signature and a warning say why."""
    words = ["Der Hund läuft &quot; schnell &quot; .", "Ja , gut ."]
    (tmp_path / "ref.de").write_text("".join(f"{line}\n" for line in words), encoding="utf-8")
    (tmp_path / "out.de").write_text('Der Hund läuft "schnell".\nJa, gut.\n', encoding="utf-8")
    config = configuration(tokenise={"target": "none"})
    found = score(
        Texts(tmp_path / "out.de", [tmp_path / "ref.de"]), tmp_path / "s.json", Scoring(metrics=["bleu"]), config=config
    )
    assert found.metrics["bleu"].score == pytest.approx(100)
    assert found.metrics["bleu"].signature.endswith("|reference:detokenised")
    assert kinds(found.warnings) == ["tokenised-reference"]
    assert read_result(Scores, tmp_path / "s.json") == found


def test_many_of_a_kind_are_one_line() -> None:
    """Eighteen trainings do not make eighteen lines, but the report names them all."""
    (line,) = lines_of(ResultWarning("not-converged", f"bpe, seed {seed}") for seed in range(1, 19))
    assert line.endswith("bpe, seed 6; and 12 more.")
