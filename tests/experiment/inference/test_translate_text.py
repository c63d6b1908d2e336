"""Raw text translated by a system of an experiment: the translations of the experiment, and errors in one line."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

from mt_scaffold.cli import main
from mt_scaffold.experiment.configuration import Config, parse_config
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.inference.translate import translate
from mt_scaffold.experiment.workflow.folder import write_config

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

CONFIGURATION = {
    "name": "tiny",
    "languages": {"source": "en", "target": "de"},
    "data": {
        "files": {
            "train": [{"source": {"path": "text/train.en"}, "target": {"path": "text/train.de"}}],
            "valid": [{"source": {"path": "text/valid.en"}, "target": {"path": "text/valid.de"}}],
            "tests": {"odd.1": [{"source": {"path": "text/odd.1.en"}, "target": {"path": "text/odd.1.de"}}]},
        }
    },
    "codes": {"symbols": 150},
    "systems": {"scaffold": {"algorithm": "scaffold"}, "bpe": {"algorithm": "bpe"}},
    "baseline": "bpe",
    "seeds": [7],
    "train": {"options": {"arch": "transformer", "max-epoch": 3}},
    "average": {"last": 2},
    "translate": {"options": {"beam": 3, "lenpen": 0.6, "max-len-b": 15, "max-tokens": 100, "num-workers": 0}},
}


@pytest.fixture(scope="module")
def experiment(
    tiny_words: Path, tiny_data: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> TranslationLayout:
    """An experiment as the workflow leaves it: one system, trained, its test set translated."""
    from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
    from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
    from mt_scaffold.experiment.data.tokenise import tokenise

    config = parse_config(CONFIGURATION)
    assert isinstance(config, Config)
    layout = TranslationLayout(tmp_path_factory.mktemp("experiments") / "tiny", config)
    training = layout.training(Run("scaffold", 7))
    segmentation = layout.segmentation_of("scaffold")
    codes = layout.codes_of("scaffold")[0]
    for folder in (codes.parent, layout.folder / "raw", layout.folder / "words", training):
        folder.mkdir(parents=True)
    write_config(layout.config, layout.config_file)
    shutil.copy(tiny_words / "codes", codes)
    shutil.copytree(tiny_data, layout.dictionaries(segmentation), ignore=shutil.ignore_patterns("*.bin", "*.idx"))
    for language in layout.languages:
        lines = (tiny_words / f"odd.1.{language}").read_text(encoding="utf-8").splitlines()
        # References of twice the length, which would change the batches if these depended on them.
        text = "".join(f"{line} {line if language == 'de' else ''}\n" for line in lines)
        layout.raw("odd.1", language).write_text(text, encoding="utf-8")
        tokenise(layout.raw("odd.1", language), layout.words("odd.1", language), language=language)
    binarised = layout.binarised_test(segmentation, "odd.1")
    words, dictionaries = [layout.words_prefix("odd.1")], layout.dictionaries(segmentation)
    binarise(binarised, "en", "de", joint_segmentation(codes), tests=words, dictionaries=dictionaries)
    shutil.copy(tiny_model / "checkpoints" / "checkpoint_last.pt", layout.averaged(Run("scaffold", 7)))
    options = ["--beam", "3", "--lenpen", "0.6", "--max-len-b", "15", "--max-tokens", "100"]
    translate(binarised, "odd.1", layout.averaged(Run("scaffold", 7)), training / "translations", options)
    return layout


def test_raw_text_gets_the_translations_of_the_experiment(experiment: TranslationLayout, tmp_path: Path) -> None:
    """Any difference in tokenising, segmenting, batching, searching or joining would show."""
    raw, output = experiment.raw("odd.1", "en"), tmp_path / "translated"
    arguments = ["translate-text", str(experiment.folder / "scaffold"), "--test-set", "odd.1"]
    assert main([*arguments, "--input", str(raw), "--output", str(output)]) in (None, 0)
    assert output.read_bytes() == experiment.translation(Run("scaffold", 7), "odd.1").read_bytes()
    assert len({*output.read_text(encoding="utf-8").splitlines()}) > 3


def test_empty_lines_stay_empty(
    experiment: TranslationLayout, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines keep their place, also without a line end at the end; no text gives no text."""
    first = experiment.raw("odd.1", "en").read_text(encoding="utf-8").splitlines()[0]
    translated = []
    for text in (f"\n{first}\n \n{first}", ""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["translate-text", str(experiment.folder / "scaffold")]) in (None, 0)
        translated.append(capsysbinary.readouterr().out.decode())
    lines = translated[0].split("\n")
    assert lines == ["", lines[1], "", lines[1], ""] and lines[1] and translated[1] == ""


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{folder}"], 2, "{folder}: a whole experiment; name one of its systems, as in {folder}/SYSTEM"),
        (["{folder}/scafold"], 2, "{folder}: no system is called scafold; did you mean scaffold?"),
        (["{folder}/scaffold", "--seed", "8"], 2, "--seed 8: no training of {folder} has it; give one of 7"),
        (["{folder}/scaffold", "--test-set", "a"], 2, "--test-set a: {folder} has no such test set (known: odd.1)"),
        (["{folder}/raw/en"], 1, "{folder}/raw: not the folder of an experiment (no config.yaml)"),
        (["{folder}/bpe"], 1, "{folder}/"),
    ],
)
def test_a_wrong_argument_is_named(
    experiment: TranslationLayout,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    """In one line, before anything is translated; so is a system that is not trained yet."""
    folder = str(experiment.folder)
    command = ["translate-text", *(each.format(folder=folder) for each in arguments)]
    found = main([*command, "--input", str(experiment.raw("odd.1", "en"))])
    (line,) = capsys.readouterr().err.splitlines()
    assert found == status and message.format(folder=folder) in line
