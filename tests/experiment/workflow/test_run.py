"""``mt-scaffold run`` and ``check``: an experiment from one command, and its problems before anything runs."""

import dataclasses
import gzip
import re
import shutil
import sys
from pathlib import Path

import pytest
from paths import ROOT
from test_workflow import CONFIGURATION, write_text

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.layout import Run, requested_experiment
from mt_scaffold.experiment.configuration.yaml_file import settings_from
from mt_scaffold.experiment.runtime import fairseq_options
from mt_scaffold.experiment.runtime.fairseq import sees_gpu
from mt_scaffold.experiment.runtime.fairseq_options import Call, check_options
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.experiment.tasks import layout_of, task_of, translation
from mt_scaffold.experiment.training.start import ended_with, read_start, write_start
from mt_scaffold.experiment.workflow.checking import CheckFailed, check_experiment
from mt_scaffold.experiment.workflow.common_steps import check_gpus
from mt_scaffold.experiment.workflow.folder import write_config
from mt_scaffold.experiment.workflow.running import Settings, snakemake_arguments
from mt_scaffold.experiment.workflow.staleness import check_repeated


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the clone, with the text that the configuration names."""
    folder = tmp_path_factory.mktemp("user")
    write_text(folder)
    return folder


@pytest.fixture
def fairseq_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask fairseq in this process, which has imported it, instead of in a new one for each check."""
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
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("Stra\u00dfe\n".encode("latin-1") * 500, r"line 1, byte offset 4: 0xDF is not UTF-8; convert the file"),
        (b"x\n" * 499 + b"x\xc3", r"line 500, byte offset 999: 0xC3 is not UTF-8"),
        (b"a house\r" * 500, r"its lines end in CR only; convert them"),
    ],
)
def test_a_check_reads_texts_as_the_steps_will(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, says: str
) -> None:
    """They passed the check, until the tokeniser read them."""
    monkeypatch.chdir(folder)
    (folder / "text" / "other.de").write_bytes(content)
    with pytest.raises(CheckFailed, match=rf"train\[0\]: text/other\.de: {says}"):
        check_experiment(configuration(folder, ("text/train.de", "text/other.de")))


@pytest.mark.usefixtures("fairseq_here")
def test_a_check_warns_of_words_that_end_in_the_separator(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all files, with the first line, if the text is words already."""
    monkeypatch.chdir(folder)
    (folder / "text" / "marked.de").write_text("ein Haus\n@@ -1 +1 @@ foo@@\n" + "ein Haus\n" * 498, encoding="utf-8")
    marked = ("text/train.de", "text/marked.de")
    choices = {"tokenise": {"none": True}}
    (warning,) = check_experiment(configuration(folder, marked), choices).warnings
    assert warning.startswith("text/marked.de: line 2: 3 words end in '@@' (this is the first, of all files); models ")
    assert not check_experiment(configuration(folder), choices).warnings


@pytest.mark.usefixtures("fairseq_here")
def test_a_damaged_file_is_one_problem_of_several(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the check, so that all other problems went unsaid."""
    monkeypatch.chdir(folder)
    (folder / "text" / "cut.de.gz").write_bytes(gzip.compress(b"ein Haus\n" * 500)[:30])
    path = configuration(folder, ("text/train.de", "text/cut.de.gz"), ("text/valid.de", "text/b"))
    with pytest.raises(CheckFailed) as failed:
        check_experiment(path)
    first, second = failed.value.problems
    assert "data.files.train[0]: text/cut.de.gz: " in first and "text/b" in second


def trained(path: Path, finished: bool = True) -> Path:
    """Create the files of trainings that a run leaves and the next run inspects."""
    plan = requested_experiment([path], {})
    layout = layout_of(plan.folder, plan.experiment)
    for run in layout.runs:
        layout.checkpoints(run).mkdir(parents=True)
        (layout.checkpoints(run) / "checkpoint_last.pt").touch()
        start = task_of(layout.config).start_of(layout, run, 0)
        assert start is not None
        write_start(layout.training(run), dataclasses.replace(start, processes=1))
        if finished:
            layout.training_record(run).write_text("{}")
    write_config(plan.experiment, layout.config_file)
    return layout.folder


@pytest.fixture
def own(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the text, for an experiment."""
    (tmp_path / "text").symlink_to(folder / "text")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(path: Path) -> None:
    """Check a plan of all trainings of a configuration."""
    plan = requested_experiment([path], {})
    layout = layout_of(plan.folder, plan.experiment)
    check_repeated(layout, [(run, 0) for run in layout.runs], [])


@pytest.mark.parametrize("finished", [True, False])
def test_a_plan_names_every_changed_setting_of_a_training(own: Path, finished: bool) -> None:
    """With both values, for all trainings at once."""
    trained(configuration(own), finished)
    planned(configuration(own))
    planned(configuration(own, ("bootstrap_samples: 20", "bootstrap_samples: 30")))
    changed = configuration(own, ("lr: 0.005", "lr: 0.006"), ("max-tokens: 300", "max-tokens: 200"))
    with pytest.raises(MTScaffoldError) as refused:
        planned(changed)
    problem = str(refused.value)
    assert problem.startswith("experiments/tiny/bpe/seed-1 and 1 more: holds a training that was started with")
    assert "(--lr 0.006 instead of 0.005, --max-tokens 200 instead of 300; see" in problem
    folders = ["experiments/tiny/bpe/seed-1", "experiments/tiny/scaffold/seed-1"]
    assert f"to train from scratch, remove {' '.join(folders)}, or choose another folder (--output)" in problem
    shutil.rmtree(folders[0])
    with pytest.raises(MTScaffoldError, match=r"^experiments/tiny/scaffold/seed-1: holds"):
        planned(changed)
    # Other codes are other data.
    with pytest.raises(MTScaffoldError, match="the data"):
        planned(configuration(own, ("symbols: 150", "symbols: 140")))


def started_on(training: Path, processes: int) -> None:
    """Change the recorded number of processes of a training."""
    command = training / "command.txt"
    command.write_text(re.sub(r"# processes: \d+", f"# processes: {processes}", command.read_text()))


def test_gpus_of_this_machine_are_no_change_of_a_training(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login node has none: options are compared for the number of processes that the training was started with."""
    trained(configuration(own), finished=False)
    asked = requested_experiment([configuration(own)], {})
    monkeypatch.setattr(translation, "gpus_in_all", lambda nodes, gpus: pytest.fail("this machine does not count"))
    check_repeated(layout_of(asked.folder, asked.experiment), [(Run("bpe", 1), 0)], [], elsewhere=True)


def test_the_processes_of_a_training_count_if_they_are_known(own: Path) -> None:
    """Those of a job on another machine are known only if the configuration sets its number of GPUs."""
    folder = trained(configuration(own), finished=False)
    plan = requested_experiment([configuration(own)], {})
    layout = layout_of(plan.folder, plan.experiment)
    run = Run("bpe", 1)
    started_on(folder / "bpe" / "seed-1", 1000)
    check_repeated(layout, [(run, 0)], [], elsewhere=True)
    for gpus, elsewhere in ((0, False), (1, False), (1, True)):
        with pytest.raises(
            MTScaffoldError, match=r"the batch: \d+ processes x update-freq 1 instead of 1000 processes"
        ):
            check_repeated(layout, [(run, gpus)], [], elsewhere)


@pytest.mark.skipif(sees_gpu(), reason="this machine has what they need")
@pytest.mark.parametrize("name", ["lm_7b", "wmt14_en_de"])
def test_a_machine_without_a_gpu_refuses_what_needs_one_before_it_prepares_anything(name: str) -> None:
    """Hours of preparation would end in fairseq's traceback."""
    plan = requested_experiment([ROOT / "configs" / f"{name}.yaml"], {})
    layout = layout_of(plan.folder, plan.experiment)
    with pytest.raises(MTScaffoldError, match="fp16 needs a GPU, and PyTorch finds none on this machine: "):
        check_gpus(layout, [(layout.runs[0], 0)])
    with pytest.raises(MTScaffoldError, match="--gpus 8: PyTorch finds no GPU"):
        check_gpus(layout, [(layout.runs[0], 8)])


def test_a_finished_training_without_checkpoints_is_not_doubted(own: Path) -> None:
    """Checkpoints take disk space, and scores remain valid without them."""
    folder = trained(configuration(own)) / "bpe" / "seed-1"
    start = read_start(folder)
    assert start is not None and ended_with(folder, start)
    other = dataclasses.replace(start, command=[*start.command, "--max-epoch", "99"])
    assert not ended_with(folder, other)
    shutil.rmtree(folder / "checkpoints")
    assert ended_with(folder, other)


@pytest.mark.usefixtures("fairseq_here")
def test_a_check_says_what_an_experiment_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, trainings, parameters and disk space; languages that may be swapped are a warning."""
    monkeypatch.chdir(folder)
    found = check_experiment(configuration(folder), {"seeds": [1, 2]}).as_text()
    assert "train: 500 pairs" in found and "4 trainings of 2 systems, 0.0 million parameters" in found
    one = check_experiment(configuration(folder), {"seeds": [1, 2], "only": "bpe"}).as_text()
    assert "2 trainings of 1 system, " in one
    assert re.search(r"about [\d.]+ MB of disk in experiments/tiny \([\d.]+ GB free\)", found)
    assert found.startswith("tiny: checked, and ready to run\n") and "  fp32; this machine has " in found
    assert "hours" not in found  # those of a CPU are known only once updates have been measured
    swapped = check_experiment(configuration(folder, ("{source: en, target: de}", "{source: de, target: en}")))
    assert "text/train.en is read as de, and text/train.de as en; are they swapped?" in swapped.warnings
    assert swapped.as_text().startswith("tiny: checked, with 3 warnings\n")


@pytest.mark.usefixtures("fairseq_here")
@pytest.mark.skipif(sees_gpu(), reason="this machine has what they need")
def test_a_check_names_a_missing_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    """It said "ready to run", status 0, above too little disk and before a run's refusal of fp16."""
    assert main(["check", str(ROOT / "configs" / "wmt14_en_de.yaml"), "--only", "bpe", "scaffold"]) == 1
    first, *others = capsys.readouterr().out.splitlines()
    warnings = [line for line in others if line.startswith("Warning: ")]
    assert re.fullmatch(rf"wmt14_en_de: checked, with {len(warnings)} warnings?; this machine cannot train it", first)
    assert warnings[-1].startswith("Warning: fp16 needs a GPU, and PyTorch finds none on this machine: ")
    assert "  fp16, batch large for 8 GPUs; this machine has no GPU" in others


@pytest.mark.usefixtures("fairseq_here")
def test_the_parameters_are_those_of_the_model() -> None:
    """The model is built as fairseq-train builds it, but without memory, even for a billion parameters."""
    options: dict[str, OptionValue] = {
        "task": "translation_resumable",
        "arch": "transformer",
        "optimizer": "adam",
        "lr": 1,
    }
    narrow = options | {"share-all-embeddings": True}
    for name, value in (("embed-dim", 8), ("ffn-embed-dim", 8), ("layers", 1), ("attention-heads", 1)):
        narrow |= {f"{side}-{name}": value for side in ("encoder", "decoder")}
    wide = options | {"encoder-embed-dim": 8192, "decoder-embed-dim": 8192}
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
    # A value that was given first would be lost.
    for twice in (["train.batch=2", "train=1"], ["seeds=1", "seeds=2"]):
        with pytest.raises(UsageError, match="set each key once"):
            settings_from(twice)
    monkeypatch.chdir(folder)
    assert "--profile" not in snakemake_arguments("c.yaml", Settings(cores=3))
    # Its folder has no cores, so that Snakemake ended with a WorkflowError.
    assert snakemake_arguments("c.yaml", Settings(profile="default")) == snakemake_arguments("c.yaml", Settings())
    slurm = snakemake_arguments("c.yaml", Settings(profile="slurm"))
    assert (Path(slurm[slurm.index("--profile") + 1]) / "config.yaml").exists() and "--cores" not in slurm
    with pytest.raises(UsageError, match="none of local, slurm"):
        snakemake_arguments("c.yaml", Settings(profile="slrum"))
