"""``mt-scaffold run`` and ``check``: an experiment from one command, and what is wrong with it before anything runs."""

import re
import sys
from pathlib import Path

import pytest
from test_workflow import CONFIGURATION, write_text

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.yaml_file import settings_from
from mt_scaffold.experiment.runtime import fairseq_options
from mt_scaffold.experiment.runtime.fairseq_options import Call, check_options
from mt_scaffold.experiment.workflow.checking import CheckFailed, check_experiment
from mt_scaffold.experiment.workflow.running import Settings, snakemake_arguments


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the clone, with the text that the configuration names."""
    folder = tmp_path_factory.mktemp("user")
    write_text(folder)
    return folder


@pytest.fixture
def fairseq_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask fairseq in this process, which has imported it, instead of in one for each check."""
    monkeypatch.setattr(sys, "argv", ["fairseq-train"])
    monkeypatch.setattr(fairseq_options, "_answer_of_process", fairseq_options._answer)


def configuration(folder: Path, *changes: tuple[str, str]) -> Path:
    """A configuration file in the folder, with changes of the tiny one."""
    text = CONFIGURATION
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.usefixtures("fairseq_here")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("path: text/train.en", "path: text/trian.en"),
            r":7: data\.files\.train\[0\]\.source\.path: text/trian\.en: no",
        ),
        (
            ("path: text/test.de", "path: text/train.de"),
            r"test\[0\]: text/test\.en has 20 lines, but text/train\.de 500",
        ),
        (("max-epoch:", "max-epochs:"), r"train\.options\.max-epochs: .*did you mean --max-epoch\?"),
        (("arch: transformer", "arch: tranformer"), r":20: train\.options\.arch: .*did you mean transformer\?"),
        (("lr: 0.005", "lr: 5e-4x"), r"train\.options\.lr: .*--lr: not a number: '5e-4x'"),
        (
            ("encoder-attention-heads: 2", "encoder-attention-heads: 5"),
            r"5 encoder-attention-heads do not .* 16",
        ),
        (("share-all-embeddings: true", "decoder-input-dim: 8, share-all-embeddings: true"), "not valid YAML"),
        (("decoder-embed-dim: 16", "decoder-embed-dim: 32"), "the model cannot be built: --share-all-embeddings"),
        (("lr: 0.005", "lr: 0.005\n    adam-betas: (0.9"), "the optimiser or its schedule cannot be built: .*0.9"),
        (("clean:", "\tclean:"), r"tiny\.yaml:11: not valid YAML: .*\\t"),
    ],
)
def test_a_check_names_what_is_wrong_with_its_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], says: str
) -> None:
    """A dry run approved each of these, and minutes or hours later a step failed."""
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError) as error:
        check_experiment(configuration(folder, change))
    assert re.search(says, str(error.value)) and "\n" not in str(error.value), error.value
    assert not (folder / "experiments").exists()


@pytest.mark.usefixtures("fairseq_here")
def test_a_check_names_all_that_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One problem per line, so that one check is enough."""
    monkeypatch.chdir(folder)
    path = configuration(folder, ("text/train.en", "text/a"), ("text/valid.de", "text/b"), ("max-epoch:", "max-epok:"))
    with pytest.raises(CheckFailed) as failed:
        check_experiment(path)
    assert [re.search(r"text/[ab]|max-epok", problem)[0] for problem in failed.value.problems] == [  # type: ignore[index]
        "text/a",
        "text/b",
        "max-epok",
    ]


@pytest.mark.usefixtures("fairseq_here")
def test_a_check_says_what_an_experiment_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, trainings, parameters and disk; languages that may be the wrong way round are a warning."""
    monkeypatch.chdir(folder)
    found = check_experiment(configuration(folder), {"seeds": [1, 2]}).as_text()
    assert "train: 500 pairs" in found and "4 trainings of 2 systems, 0.0 million parameters" in found
    one = check_experiment(configuration(folder), {"seeds": [1, 2], "only": "bpe"}).as_text()
    assert "2 trainings of 1 system, " in one
    assert re.search(r"about [\d.]+ MB of disk in experiments/tiny \([\d.]+ GB free\)", found)
    assert "time" not in found  # known only once updates have been measured
    swapped = check_experiment(configuration(folder, ("{source: en, target: de}", "{source: de, target: en}")))
    assert "text/train.en is read as de, and text/train.de as en; are they swapped?" in swapped.warnings


@pytest.mark.usefixtures("fairseq_here")
def test_the_parameters_are_those_of_the_model() -> None:
    """The model is built as fairseq-train builds it, but without memory: a billion parameters take no room."""
    options = ["--task", "translation_resumable", "--arch", "transformer", "--optimizer", "adam", "--lr", "1"]
    narrow = [*options, "--share-all-embeddings"]
    for name, value in (("embed-dim", "8"), ("ffn-embed-dim", "8"), ("layers", "1"), ("attention-heads", "1")):
        narrow += [argument for side in ("encoder", "decoder") for argument in (f"--{side}-{name}", value)]
    wide = [*options, "--encoder-embed-dim", "8192", "--decoder-embed-dim", "8192"]
    checked = check_options([Call("train", narrow, [1000]), Call("train", wide, [1000, 2000])])
    # Attention has 4 (8² + 8) parameters, a feed-forward layer 2 (8² + 8), each normalisation 16.
    assert checked.parameters[0] == 8 * 1000 + 3 * 4 * 72 + 2 * 2 * 72 + 5 * 16
    assert checked.parameters[1] is not None and checked.parameters[1] > 5e9


def test_settings_are_those_of_snakemakes_config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dotted key is a value within a section; a wrong one is one line."""
    settings = settings_from(["train.options.lr=0.001", "train.options.fp16=true", "seeds=[1, 2]"])
    assert settings == {"train": {"options": {"lr": 0.001, "fp16": True}}, "seeds": [1, 2]}
    for wrong in ("lr", "=1", "train.=1"):
        with pytest.raises(UsageError, match="write KEY=VALUE"):
            settings_from([wrong])
    with pytest.raises(UsageError, match="set each key once"):
        settings_from(["train=1", "train.batch=2"])
    monkeypatch.chdir(folder)
    assert "--profile" not in snakemake_arguments("c.yaml", Settings(cores=3))
    slurm = snakemake_arguments("c.yaml", Settings(profile="slurm"))
    assert (Path(slurm[slurm.index("--profile") + 1]) / "config.yaml").exists() and "--cores" not in slurm
    with pytest.raises(UsageError, match="none of local, slurm"):
        snakemake_arguments("c.yaml", Settings(profile="slrum"))
