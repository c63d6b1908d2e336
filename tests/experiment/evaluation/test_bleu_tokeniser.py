"""The tokeniser of BLEU is the one that sacreBLEU's command chooses for the target language."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")
pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import _TOKENIZERS

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import BleuTokeniser, Config, bleu_tokeniser, parse_config
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.evaluation.metrics import metric_of_sums
from mt_scaffold.experiment.evaluation.plan import plan
from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score
from mt_scaffold.experiment.tasks.codes import check_packages
from mt_scaffold.experiment.training.translation_options import training_options
from mt_scaffold.experiment.workflow.staleness import depends_on

HYPOTHESIS = "我们今天去北京看长城。\n他喜欢吃苹果和香蕉。\n天气很好。\n" * 6
REFERENCE = "我们今天去北京参观长城。\n他喜欢吃苹果和橙子。\n今天天气很好。\n" * 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a translation into Chinese and its reference."""
    (tmp_path / "hyp.zh").write_text(HYPOTHESIS, encoding="utf-8")
    for name in ("ref.zh", "ref"):
        (tmp_path / name).write_text(REFERENCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(target: str = "zh", **sections: Any) -> Config:
    return parse_config(
        {
            "name": "tiny",
            "languages": {"source": "en", "target": target},
            "data": {"synthetic": {"pairs": 10}},
            "codes": {"symbols": 10},
            "systems": {"bpe": {"algorithm": "bpe"}},
            "baseline": "bpe",
            "train": {"options": {"arch": "transformer", "max-tokens": 100}, "stop": {"updates": 1}},
        }
        | sections
    )


def sacrebleu_says(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "sacrebleu", "ref.zh", "-i", "hyp.zh", "-w", "6", *options]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def test_the_choices_are_sacrebleus() -> None:
    """The table agrees with the installed version's, for the languages that it names."""
    assert {*get_args(BleuTokeniser)} == {*_TOKENIZERS}
    for language in (*BLEU._TOKENIZER_MAP, "de", "en", "th"):
        assert bleu_tokeniser(language) == BLEU._TOKENIZER_MAP.get(language, BLEU.TOKENIZER_DEFAULT)
    for language in ("zh_CN", "zh-Hant", "ZH", "zho_Hans", "cmn", "yue", "yue_HK", "nan_Hant", "wuu"):
        assert bleu_tokeniser(language) == "zh"


@pytest.mark.parametrize("language", ["zh", "zh_CN"])
def test_chinese_is_scored_as_by_the_command(folder: Path, language: str) -> None:
    """With 13a, BLEU finds next to nothing in a text without spaces."""
    found = score(Texts("hyp.zh", ["ref"]), "s.json", Scoring(language=language, metrics=["bleu"])).metrics["bleu"]
    theirs = sacrebleu_says("-l", "en-zh")
    assert found.score == pytest.approx(theirs["score"], abs=1e-6) and found.score > 50
    assert "tok:zh" in found.signature and found.signature == theirs["signature"]


def test_a_tokeniser_that_finds_no_words_is_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BLEU of text without spaces was 0.00 in silence where the language is unknown, or has no tokeniser (Thai)."""
    for tokeniser, warned in ((None, True), ("char", False)):
        score(Texts("hyp.zh", ["ref"]), "s.json", Scoring(metrics=["bleu"], bleu_tokeniser=tokeniser))
        assert ("takes phrases of a text without spaces for single words" in capsys.readouterr().err) == warned


def test_the_reference_or_the_configuration_names_the_language(folder: Path) -> None:
    """As for the words of tokenised BLEU; an option overrides both, and is also in the signature."""
    for (options, configured), expected in (
        (({}, None), "zh"),
        (({"language": "de"}, None), "13a"),
        (({"bleu_tokeniser": "char"}, None), "char"),
        (({}, config()), "zh"),
        (({}, config("de", score={"bleu_tokeniser": "intl"})), "intl"),
        (({"bleu_tokeniser": "char"}, config(score={"bleu_tokeniser": "intl"})), "char"),
    ):
        settings = Scoring(metrics=["bleu", "chrf", "ter"], **options)
        found = score(Texts("hyp.zh", ["ref.zh"]), "s.json", settings, config=configured).metrics
        theirs = sacrebleu_says("-m", "bleu", "-tok", expected)
        assert found["bleu"].signature == theirs["signature"]
        assert found["bleu"].score == pytest.approx(theirs["score"], abs=1e-6)
        for name in ("chrf", "ter"):
            default = sacrebleu_says("-m", name, "-l", "en-zh")
            assert found[name].signature == default["signature"]
            assert found[name].score == pytest.approx(default["score"], abs=1e-6)


def test_the_command_takes_a_tokeniser(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that sacreBLEU does not have is refused."""
    command = "score --hypothesis hyp.zh --reference ref.zh --metrics bleu --output s.json --bleu-tokeniser".split()
    assert main([*command, "char"]) == 0 and "tok:char" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*command, "moses"])
    with pytest.raises(UsageError, match=r"score\.bleu_tokeniser: must be 13a or zh"):
        config(score={"bleu_tokeniser": "moses"})


@pytest.mark.parametrize(
    ("language", "module", "package"), [("ja", "ja_mecab", "mecab-python3"), ("ko", "ko_mecab", "mecab-ko")]
)
def test_a_missing_package_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, language: str, module: str, package: str
) -> None:
    """Scoring names it, and so does check before anything is trained."""
    import importlib

    monkeypatch.setattr(importlib.import_module(f"sacrebleu.tokenizers.tokenizer_{module}"), "MeCab", None)
    message = rf"^bleu: sacreBLEU cannot load its {language}-mecab tokeniser \(.*it needs the packages {package} and "
    with pytest.raises(MTScaffoldError, match=message) as error:
        score(Texts("hyp.zh", ["ref.zh"]), "s.json", Scoring(language=language, metrics=["bleu"]))
    assert "\n" not in str(error.value) and not Path("s.json").exists()
    with pytest.raises(MTScaffoldError, match=message):
        check_packages(config(language))
    assert score(Texts("hyp.zh", ["ref.zh"]), "s.json", Scoring(language=language, metrics=["chrf"])).metrics


def test_stored_scores_are_compared_without_the_tokeniser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of statistics need neither its package nor its model; scores with another tokeniser are refused."""
    for system in ("a", "b"):
        for seed in (1, 2):
            score(
                Texts("hyp.zh", ["ref.zh"]),
                f"{system}-{seed}.json",
                Scoring(metrics=["bleu"]),
                Origin(system=system, seed=seed),
            )
    several = [Labelled("", None, f"{system}-{seed}.json") for system in ("a", "b") for seed in (1, 2)]
    monkeypatch.delitem(_TOKENIZERS, "zh")
    assert "tok:zh" in compare(several, "a", samples=20, allow_equal=True).signatures["BLEU"]
    assert plan(several, "a", 1.0, samples=20)
    perfect = [9, 9, 9, 8, 7, 6, 9, 8, 7, 6]
    assert metric_of_sums("spbleu")._compute_score_from_stats(perfect).score == pytest.approx(100)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    score(
        Texts("hyp.zh", ["ref.zh"]),
        "b-2.json",
        Scoring(bleu_tokeniser="13a", metrics=["bleu"]),
        Origin(system="b", seed=2),
    )
    message = r"BLEU was computed differently \(.*tok:zh.* and .*tok:13a"
    with pytest.raises(MTScaffoldError, match=message):
        compare(several, "a", samples=20)
    with pytest.raises(MTScaffoldError, match=message):
        plan(several, "a", 1.0, samples=20)


def test_only_other_tokenisers_than_13a_make_scores_out_of_date() -> None:
    """Finished scores of most languages stay; those of Chinese were computed with 13a."""
    depends = {
        name: depends_on(TranslationLayout(Path("x"), each), "score")
        for name, each in {
            "de": config("de"),
            "zh": config(),
            "intl": config("de", score={"bleu_tokeniser": "intl"}),
            "13a": config(score={"bleu_tokeniser": "13a"}),
        }.items()
    }
    assert depends["de"] == depends["13a"] and len({str(each) for each in depends.values()}) == 3


def test_validation_chooses_by_the_same_bleu() -> None:
    """fairseq knows 13a alone, which would choose a checkpoint by chance."""
    pytest.importorskip("fairseq")
    train = config().to_dict()["train"] | {"validate_bleu": True}
    assert training_options(config("de", train=train))["eval-bleu-detok"] == "moses"
    options = training_options(config(train=train))
    assert options["eval-bleu-detok"] == "moses_bleu" and options["eval-tokenized-bleu"] is True
    arguments = json.loads(str(options["eval-bleu-detok-args"]))
    assert arguments == {"source_lang": "en", "target_lang": "zh", "bleu_tokeniser": "zh"}
    program = f"""
from argparse import Namespace
import mt_scaffold.experiment.fairseq_plugin
from fairseq.data import encoders
print(encoders.build_tokenizer(Namespace(tokenizer="moses_bleu", **{arguments!r})).decode("去 北京 。"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["去", "北", "京", "。"]
