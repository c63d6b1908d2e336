"""The steps of the workflow as commands, and the registry of tasks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")
pytest.importorskip("sacremoses", reason="comes with the extra 'workflow'")

from mt_scaffold.cli import main
from mt_scaffold.experiment.configuration import SCHEMAS, load_experiment
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.tasks import TASKS, layout_of, read_layout, task_of
from mt_scaffold.experiment.workflow.folder import open_folder


@pytest.fixture
def layout(tmp_path: Path) -> TranslationLayout:
    """The demo, started in a temporary folder."""
    planned = TranslationLayout.of(tmp_path / "demo", load_experiment(ROOT / "configs" / "demo.yaml"))
    open_folder(planned).close()
    return planned


def test_every_task_has_a_configuration_and_a_layout() -> None:
    """A new task is found by the name that a configuration gives it."""
    assert TASKS.keys() == SCHEMAS.keys()
    assert [task.layout.task for task in TASKS.values()] == [*TASKS]
    for name in ("demo", "lm_demo"):
        config = load_experiment(ROOT / "configs" / f"{name}.yaml")
        assert layout_of("x", config).task == config.task and task_of(config) is TASKS[config.task]


def test_a_run_has_a_folder_a_name_and_arguments() -> None:
    """Paths must not change: a comparison, if there is one, is between system and seed."""
    assert str(Run("bpe", 3).folder) == "bpe/seed-3" and Run("bpe", 3).name == "bpe-3"
    run = Run("bpe", "{seed}", "equal_text")
    assert (str(run.folder), run.name) == ("bpe/equal_text/seed-{seed}", "bpe-equal_text-{seed}")
    assert Run("a", 1, "b").arguments == ["--system", "a", "--seed", "1", "--comparison", "b"]


def test_a_step_finds_its_files_by_the_configuration(layout: TranslationLayout) -> None:
    """Tokenising a part of the demo, by its name alone: as the configuration says, lowercased and so on."""
    assert read_layout(layout.folder) == layout
    config = ["--config", str(layout.config_file)]
    for name in ("raw", "words", "logs"):
        (layout.folder / name).mkdir()  # as Snakemake does
    for part, text in (("valid", "A  cat -- well-known."), ("test", "Hello, world!")):
        raw = layout.raw(part, layout.source)
        raw.write_text(f"{text}\n", encoding="utf-8")
        assert main(["experiment", "tokenise", *config, "--part", part, "--language", layout.source]) == 0
        assert layout.step_record(f"tokenise-{part}.{layout.source}").exists()
    assert layout.words("test", layout.source).read_text(encoding="utf-8").lower() == "hello , world !\n"
    with gzip.open(layout.uncleaned("valid", layout.source), "rt", encoding="utf-8") as stream:
        assert "@-@" in stream.read()


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (["average", "--system", "bpe", "--seed", "99"], "has no run bpe-99; there are bpe-1"),
        (["average", "--system", "bpe", "--seed", "1", "--comparison", "x"], "has no run bpe-x-1"),
        (["get-documents"], "task: translation: has no step get-documents"),
        (["learn", "--codes", "none-5"], "no codes are called none-5"),
        (["dictionary", "--data", "none"], "no data is called none"),
        (["compare", "--systems", "bpe,bqe"], "no system is called bqe"),
    ],
)
def test_what_an_experiment_does_not_have_is_named(
    layout: TranslationLayout, capsys: pytest.CaptureFixture[str], step: list[str], says: str
) -> None:
    """In one line, before anything is read."""
    assert main(["experiment", *step, "--config", str(layout.config_file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_step_takes_the_configuration_in_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hand-written configuration does not determine the folder of the experiment."""
    assert main(["experiment", "compare", "--config", str(ROOT / "configs" / "demo.yaml")]) == 2
    assert "give the config.yaml in the folder of an experiment" in capsys.readouterr().err
    assert main(["experiment", "compare", "--config", str(tmp_path / "config.yaml")]) == 1
    assert "not the folder of an experiment" in capsys.readouterr().err
