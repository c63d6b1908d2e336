"""The Snakemake workflow: killed and resumed to the table, and its errors."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fork_server import SNAKEFILE, Snakemake, environment_without_forks
from paths import ROOT

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from tiny_experiments import TRANSFORMER, forms_of_the_result

from mt_scaffold import Codes
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import surface_form
from mt_scaffold.experiment.binarise.dictionary import read_dictionary
from mt_scaffold.experiment.runtime.fairseq import user_dir

EPOCHS = 8
CONFIGURATION = f"""
name: tiny
description: a rehearsal
languages: {{source: en, target: de}}
data:
  files:
    train: [{{source: {{path: text/train.en}}, target: {{path: text/train.de}}}}]
    valid: [{{source: {{path: text/valid.en}}, target: {{path: text/valid.de}}}}]
    tests:
      test: [{{source: {{path: text/test.en}}, target: {{path: text/test.de}}}}]
clean: {{max_ratio: 4.0}}
codes: {{symbols: 150}}
systems:
  bpe: {{algorithm: bpe}}
  scaffold: {{algorithm: scaffold}}
baseline: bpe
seeds: [1]
train:
  options:
{TRANSFORMER}    criterion: label_smoothed_cross_entropy
    max-epoch: {EPOCHS}
average: {{last: 2}}
translate: {{options: {{beam: 1, max-tokens: 2000, max-len-b: 10}}}}
score: {{bootstrap_samples: 20}}
"""


def write_text(folder: Path) -> None:
    """Write text/{train,valid,test}.{en,de} for the configuration, and text/later.*, a test set to add later."""
    from mt_scaffold.experiment.data.synthetic import sentence_pairs

    (folder / "text").mkdir()
    pairs = sentence_pairs(1)
    for name, number in {"test": 20, "valid": 20, "train": 500, "later": 7}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            (folder / "text" / f"{name}.{language}").write_text(text, encoding="utf-8")


def settings(folder: Path, text: str = CONFIGURATION) -> list[str]:
    """Write the configuration and its text, and return the options of Snakemake."""
    (folder / "tiny.yaml").write_text(text)
    if not (folder / "text").exists():
        write_text(folder)
    return ["--configfile", str(folder / "tiny.yaml"), "--cores", "2"]


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "snakemake", "-s", str(SNAKEFILE), *settings(folder)]


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(snakemake: Snakemake) -> Run:
    """Run the workflow in ``folder`` with the configuration ``text`` and more options."""
    return lambda folder, text=CONFIGURATION, *more: snakemake.run(folder, *settings(folder, text), *more)


def kill_in_training(folder: Path) -> None:
    """Start the workflow and kill it, with every process it started, once a training has finished its second epoch."""
    with open(folder / "killed.log", "wb") as log:
        environment = environment_without_forks()
        process = subprocess.Popen(
            command(folder), cwd=folder, stdout=log, stderr=log, start_new_session=True, env=environment
        )
    try:
        deadline = time.monotonic() + 900
        while not list(folder.glob("experiments/tiny/*/seed-1/checkpoints/checkpoint2.pt")):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "killed.log").read_text()
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The tiny experiment, killed in the middle of training and run again to completion."""
    folder = tmp_path_factory.mktemp("workflow")
    kill_in_training(folder)
    output = folder / "experiments" / "tiny"
    before = {part: times(output / part) for part in ("raw", "words", "codes", "dictionaries", "binarised")}
    logs = {system: (output / system / "seed-1" / "train.log").read_text() for system in ("bpe", "scaffold")}
    second = subprocess.run(command(folder), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return {"folder": folder, "output": output, "before": before, "logs": logs, "second": second}


def test_a_killed_experiment_resumes_to_the_table(experiment: dict[str, object]) -> None:
    """Running the same command again is enough."""
    second, output = experiment["second"], experiment["output"]
    assert isinstance(second, subprocess.CompletedProcess) and isinstance(output, Path)
    assert second.returncode == 0, second.stdout
    table = (output / "comparison.txt").read_text(encoding="utf-8")
    assert re.search(r"^test +bpe ", table, re.MULTILINE) and re.search(r"^test +scaffold ", table, re.MULTILINE)
    assert table in second.stdout
    for name in ("config.yaml", "data-report.json", "comparison.md", "comparison.json", "comparison.csv"):
        assert (output / name).stat().st_size > 0
    for system in ("bpe", "scaffold"):
        translations = (output / system / "seed-1" / "translations" / "test.de").read_text(encoding="utf-8")
        assert translations.count("\n") == 20
        # Every symbol of the dictionary, including fairseq's four, with its loss.
        tokens = (output / system / "seed-1" / "tokens.csv").read_text(encoding="utf-8").splitlines()
        dictionary = (output / "dictionaries" / f"{system}-150" / "dict.de.txt").read_text(encoding="utf-8")
        assert len(tokens) == 1 + 4 + dictionary.count("\n")
        assert tokens[0].endswith("input_norm,occurrences:test,bits:test") and tokens[1].startswith("both,0,<s>,,,1,")


def test_one_seed_limits_the_result_in_every_form(experiment: dict[str, object]) -> None:
    """The warning is below the table in files and on the page, and is printed when the run ends."""
    second, output = experiment["second"], experiment["output"]
    assert isinstance(second, subprocess.CompletedProcess) and isinstance(output, Path)
    forms = forms_of_the_result(output, second)
    without = {form for form, text in forms.items() if not re.search('Fewer than three seeds|"few-seeds"', text)}
    assert without == set()
    assert forms[".txt"].index("\ntest set ") < forms[".txt"].index("limit this result:\n- ")


def test_figures_are_as_wide_as_a_column_with_a_colour_per_system(experiment: dict[str, object]) -> None:
    """As SVG and PDF, for papers."""
    output = experiment["output"]
    assert isinstance(output, Path)
    figures = output / "figures"
    drawn = {path.stem for path in figures.glob("*.svg")}
    # Below 1 BLEU, no difference is tested.
    assert "differences" not in drawn
    assert {"training", "token-frequencies"} <= drawn == {path.stem for path in figures.glob("*.pdf")}
    text = (figures / "training.svg").read_text(encoding="utf-8")
    assert {"#0072b2", "#d55e00"} <= {*re.findall(r"stroke: (#[0-9a-f]{6})", text)}
    width = re.search(r'<svg [^>]*width="([0-9.]+)pt"', text)
    assert width is not None and float(width[1]) < 260


def test_finished_steps_are_not_repeated(experiment: dict[str, object]) -> None:
    """Files that were finished before the kill are untouched."""
    output, before = experiment["output"], experiment["before"]
    assert isinstance(output, Path) and isinstance(before, dict)
    for part, files in before.items():
        # The words of a test set may come after the trainings have begun.
        assert files and files.items() <= times(output / part).items(), part


def test_training_resumes_from_the_last_checkpoint(experiment: dict[str, object]) -> None:
    """The epochs before the kill are not trained again."""
    output, logs = experiment["output"], experiment["logs"]
    assert isinstance(output, Path) and isinstance(logs, dict)
    continued = 0
    for system, before in logs.items():
        log = (output / system / "seed-1" / "train.log").read_text()
        after = log[len(before) :]
        assert log.startswith(before) and f"epoch {EPOCHS:03d} | valid" in after
        if "Loaded checkpoint" in after:
            continued += 1
            assert "begin training epoch 1\n" not in after
    assert continued


def test_the_printed_commands_are_those_that_ran(
    experiment: dict[str, object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every training, letter for letter."""
    folder = experiment["folder"]
    assert isinstance(folder, Path)
    monkeypatch.chdir(folder)
    assert main(["run", "tiny.yaml", "--commands"]) == 0
    printed = capsys.readouterr().out.replace("\\\n", "").replace("$(mt-scaffold user-dir)", str(user_dir()))
    typed = [shlex.split(line)[1:] for line in printed.splitlines() if line.startswith("fairseq-train ")]
    ran = [Path("experiments/tiny", system, "seed-1", "command.txt").read_text() for system in ("bpe", "scaffold")]
    assert typed == [shlex.split(command.partition("\n#")[0])[4:] for command in ran]


def test_the_files_that_the_demo_names_exist(experiment: dict[str, object]) -> None:
    """Every file that `make demo` names when it ends exists after such an experiment."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from demo import guide

        from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
    finally:
        sys.path.pop(0)
    output = experiment["output"]
    assert isinstance(output, Path)
    named = re.findall(rf"{re.escape(str(output))}/\S*\w", guide(TranslationLayout.read(output), 2))
    assert len(named) >= 8 and [path for path in named if not Path(path).exists()] == []


def test_a_finished_experiment_has_nothing_left_to_do(run: Run, experiment: dict[str, object]) -> None:
    """Running it again changes no file."""
    folder, output = experiment["folder"], experiment["output"]
    assert isinstance(folder, Path) and isinstance(output, Path)
    before = times(output)
    again = run(folder)
    assert again.returncode == 0 and "Nothing to be done" in again.stdout
    assert times(output) == before


@pytest.mark.parametrize(
    ("change", "repeated", "kept"),
    [
        (("max_ratio: 4.0", "max_ratio: 3.5"), {"clean", "learn", "train"}, {"get_data"}),
        (
            ("symbols: 150", "symbols: 140"),
            {"learn", "dictionary", "binarise", "train", "statistics"},
            {"clean"},
        ),
        (("last: 2", "last: 1"), {"average", "translate", "report"}, {"train"}),
        (("beam: 1", "beam: 2"), {"translate", "score", "statistics"}, {"average"}),
        (("seeds: [1]", "seeds: [1, 2]"), {"train", "compare", "statistics"}, {"binarise"}),
        (("samples: 20", "samples: 30"), {"compare", "statistics", "report"}, {"score", "translate"}),
        (("a rehearsal", "another one"), {"compare", "report"}, {"score", "translate"}),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_a_changed_value_repeats_the_steps_that_use_it(
    run: Run, experiment: dict[str, object], change: tuple[str, str], repeated: set[str], kept: set[str]
) -> None:
    """No result of the old value remains next to those of the new one, and no step is repeated needlessly."""
    folder = experiment["folder"]
    assert isinstance(folder, Path)
    dry = run(folder, CONFIGURATION.replace(*change), "--dry-run")
    planned = set(re.findall(r"^(\w+) +\d+$", dry.stdout, re.MULTILINE))
    assert dry.returncode == 0 and repeated <= planned and not kept & planned, dry.stdout


def test_nothing_waits_for_the_losses(run: Run, tmp_path: Path) -> None:
    """A reference that the model cannot take ended an experiment after all its trainings, without a BLEU."""
    dry = run(tmp_path, CONFIGURATION, "--dry-run", "experiments/tiny/report.html")
    planned = set(re.findall(r"^(\w+) +\d+$", dry.stdout, re.MULTILINE))
    assert {"score", "compare", "report"} <= planned and not {"losses", "tokens"} & planned, dry.stdout


def test_a_test_set_can_be_added_to_a_finished_experiment(run: Run, experiment: dict[str, object]) -> None:
    """Only its own steps run, and those that combine all test sets; no text, codes, data or training is touched."""
    folder, output = experiment["folder"], experiment["output"]
    assert isinstance(folder, Path) and isinstance(output, Path)
    later = "      later: [{source: {path: text/later.en}, target: {path: text/later.de}}]\n"
    kept = (
        "raw/train.en",
        "raw/test.de",
        "words",
        "codes",
        "dictionaries",
        "binarised",
        "test-sets/test",
        "bpe/seed-1",
    )
    before = {
        path: time
        for part in kept
        for path, time in times(output / part).items()
        # The table of tokens has the losses of every test set.
        if "later" not in Path(path).name and Path(path).name != "tokens.csv"
    } | {str(output / name): (output / name).stat().st_mtime_ns for name in ("raw/train.en", "raw/test.de")}
    added = run(folder, CONFIGURATION.replace("clean:", later + "clean:", 1))
    assert added.returncode == 0, added.stdout
    done = set(re.findall(r"^(?:local)?rule (\w+):", added.stdout, re.MULTILINE))
    own = {"get_test_set", "tokenise_test", "binarise_test_set", "translate", "score", "losses"}
    assert done == own | {"report_data", "tokens", "compare", "statistics", "report", "compare_with_losses", "all"}
    assert {path: Path(path).stat().st_mtime_ns for path in before} == before
    table = (output / "comparison.txt").read_text(encoding="utf-8")
    assert re.search(r"^later +scaffold ", table, re.MULTILINE) and re.search(r"^test +scaffold ", table, re.MULTILINE)
    assert (output / "bpe" / "seed-1" / "translations" / "later.de").read_text(encoding="utf-8").count("\n") == 7


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("max-tokens: 300", "max-tokens: 200"), "--max-tokens 200 instead of 300"),
        (("symbols: 150", "symbols: 140"), "the data"),
    ],
)
def test_a_training_that_cannot_resume_is_named_before_anything_is_deleted(
    run: Run, experiment: dict[str, object], change: tuple[str, str], says: str
) -> None:
    """Snakemake deletes the report of a training that it is about to run, and the training itself refuses too late."""
    folder, output = experiment["folder"], experiment["output"]
    assert isinstance(folder, Path) and isinstance(output, Path)
    before = times(output)
    refused = run(folder, CONFIGURATION.replace(*change))
    lines = [line for line in refused.stdout.splitlines() if line.startswith("mt-scaffold: ")]
    assert refused.returncode == 1 and len(lines) == 1 and "Traceback" not in refused.stdout
    assert re.search(
        rf"/seed-1 and 1 more: holds a training .* different settings \({says}; see command\.txt there\)", lines[0]
    )
    assert times(output) == before and (output / "bpe" / "seed-1" / "training.json").exists()


def test_a_plan_that_would_rebuild_the_data_of_a_finished_training_is_refused(
    run: Run, experiment: dict[str, object]
) -> None:
    """Other words would be other data for finished trainings, whether they are to run or not: days are at stake."""
    folder, output = experiment["folder"], experiment["output"]
    assert isinstance(folder, Path) and isinstance(output, Path)
    before = times(output)
    refused = run(folder, CONFIGURATION.replace("max_ratio: 4.0", "max_ratio: 3.5"))
    lines = [line for line in refused.stdout.splitlines() if line.startswith("mt-scaffold: ")]
    assert refused.returncode == 1 and len(lines) == 1 and "Traceback" not in refused.stdout
    assert re.search(r"/binarised/bpe-150: would be rebuilt, but \S+/bpe/seed-1 was trained on it: ", lines[0])
    assert re.search(r", or, to train from scratch, remove \S+/bpe/seed-1 \S+/scaffold/seed-1$", lines[0])
    # Snakemake's own dry run does not check this.
    planned = [sys.executable, "-m", "mt_scaffold", "run", "tiny.yaml", "--dry-run", "--cores", "2"]
    listed = subprocess.run(planned, cwd=folder, capture_output=True, text=True)
    assert listed.returncode == 1 and "binarise bpe-150" in listed.stdout and lines[0] in listed.stderr
    assert times(output) == before and (output / "bpe" / "seed-1" / "training.json").exists()


def test_a_system_with_dropout_can_be_added_to_a_finished_experiment(run: Run, experiment: dict[str, object]) -> None:
    """It has its own dictionary and data, so that those of the others are not rebuilt."""
    folder = experiment["folder"]
    assert isinstance(folder, Path)
    added = CONFIGURATION.replace("baseline: bpe", "  drop: {algorithm: bpe, dropout: 0.1}\nbaseline: bpe")
    dry = run(folder, added, "--dry-run")
    planned = dict(re.findall(r"^(\w+) +(\d+)$", dry.stdout, re.MULTILINE))
    once = {name: planned[name] for name in ("dictionary", "binarise", "binarise_test_set", "train", "score")}
    assert set(once.values()) == {"1"} and "learn" not in planned, dry.stdout
    assert "binarised/bpe-150.dropout" in dry.stdout and not re.search(r"output: \S+/binarised/bpe-150$", dry.stdout)


def trained(output: Path, systems: tuple[str, ...]) -> dict[str, int]:
    """Return the modification times of the files of systems, and of shared ones."""
    shared = ("words", "codes", "dictionaries", "binarised", "test-sets")
    return {path: time for part in (*shared, *systems) for path, time in times(output / part).items()}


@pytest.mark.long
def test_two_systems_first_then_four_then_two_again(run: Run, tmp_path: Path) -> None:
    """`only` selects what runs; the data and the results of finished trainings are untouched."""
    text = CONFIGURATION.replace("baseline: bpe", "  bpe_drop: {algorithm: bpe, dropout: 0.1}\n"
        "  scaffold_drop: {algorithm: scaffold, dropout: 0.1}\nbaseline: bpe")  # fmt: skip
    text = text.replace(f"max-epoch: {EPOCHS}", "max-epoch: 1").replace("last: 2", "last: 1")
    output, first = tmp_path / "experiments" / "tiny", ("bpe", "scaffold")

    def shown() -> set[str]:
        return {row["system"] for row in json.loads((output / "comparison.json").read_text())["rows"]}

    alone = run(tmp_path, text, "--dry-run", "--config", "only=scaffold")
    assert alone.returncode == 2 and "only: bpe is the baseline, and not finished; name it as well" in alone.stdout
    only = ("--config", "only=[bpe, scaffold]")
    two = run(tmp_path, text, *only)
    assert two.returncode == 0, two.stdout
    assert shown() == {*first} and "without --only trains them): bpe_drop, scaffold_drop" in two.stdout
    assert not list(output.glob("*_drop")) and {path.name for path in (output / "binarised").iterdir()} == {
        "bpe-150",
        "scaffold-150",
    }
    before = trained(output, first)
    dry = run(tmp_path, text, "--dry-run")
    jobs = re.findall(r"^ *(?:output|wildcards): .*", dry.stdout, re.MULTILINE)
    assert not [job for job in jobs if re.search(r"system=(bpe|scaffold)(,|$)", job)], dry.stdout
    four = run(tmp_path, text)
    assert four.returncode == 0, four.stdout
    assert shown() == {*first, "bpe_drop", "scaffold_drop"}
    assert before.items() <= trained(output, first).items()
    all_files = times(output)
    # Finished systems stay in the table, so that nothing is left to do; a change repeats only the selected systems.
    again = run(tmp_path, text, *only)
    assert again.returncode == 0 and "Nothing to be done" in again.stdout, again.stdout
    assert times(output) == all_files
    longer = run(tmp_path, text.replace("max-epoch: 1", "max-epoch: 2"), "--dry-run", *only)
    trainings = re.findall(r"wildcards: system=(\w+), seed=1$", longer.stdout, re.MULTILINE)
    assert longer.returncode == 0 and {*trainings} == {*first}, longer.stdout


def test_two_runs_do_not_work_in_one_folder(run: Run, experiment: dict[str, object]) -> None:
    """The second one is refused with one line."""
    import fcntl

    folder, output = experiment["folder"], experiment["output"]
    assert isinstance(folder, Path) and isinstance(output, Path)
    with open(output / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = run(folder, CONFIGURATION, "--forcerun", "compare")
    assert second.returncode == 1 and "another run is working in this folder" in second.stdout
    assert "Traceback" not in second.stdout


def test_a_wrong_key_ends_in_one_line_before_anything_is_done(run: Run, tmp_path: Path) -> None:
    """A typo costs seconds, not the hours until its step."""
    wrong = run(tmp_path, CONFIGURATION.replace("symbols:", "simbols:"))
    assert wrong.returncode == 2
    assert re.search(r"^mt-scaffold: .*tiny\.yaml:12: codes\.simbols: unknown key.*symbols", wrong.stdout, re.MULTILINE)
    assert "Traceback" not in wrong.stdout and not (tmp_path / "experiments").exists()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("max-epoch:", "max-epochs:"), "fairseq-train: unrecognized arguments: --max-epochs"),
        (
            ("{algorithm: scaffold}", "{algorithm: scaffold, train: {options: {lrr: 1}}}"),
            "fairseq-train: unrecognized arguments: --lrr",
        ),
        (
            ("max-epoch: ", "update-freq: [2, 4]\n    max-epoch: "),
            "fairseq-train: argument --update-freq: takes one value",
        ),
        (("{beam: 1,", "{beem: 1,"), "fairseq-generate: unrecognized arguments: --beem"),
        (("arch: transformer", "arch: tranformer"), "fairseq-train: argument --arch/-a: invalid choice: 'tranformer'"),
    ],
)
def test_an_option_unknown_to_fairseq_is_named_before_anything_is_done(
    run: Run, tmp_path: Path, wrong: tuple[str, str], says: str
) -> None:
    """A wrong option of fairseq-generate would otherwise show only after all trainings."""
    result = run(tmp_path, CONFIGURATION.replace(*wrong))
    assert result.returncode != 0
    assert any(line.startswith(f"mt-scaffold: {says}") for line in result.stdout.splitlines()), result.stdout
    assert not (tmp_path / "experiments").exists()


@pytest.mark.parametrize("text", [None, "#version: 0.2\na b c d\n"], ids=["missing", "malformed"])
def test_given_codes_that_cannot_be_read_are_named_in_a_dry_run(run: Run, tmp_path: Path, text: str | None) -> None:
    """Codes are neither learned instead, nor is the file refused hours later."""
    if text is not None:
        (tmp_path / "given.codes").write_text(text)
    dry = run(tmp_path, CONFIGURATION.replace("algorithm: scaffold", "codes: given.codes"), "--dry-run")
    assert dry.returncode == 2 and "mt-scaffold: systems.scaffold.codes: given.codes: " in dry.stdout, dry.stdout


@pytest.mark.long
def test_trimmed_systems_have_their_codes_and_dictionaries(run: Run, tmp_path: Path) -> None:
    """BPE codes are learned, rare tokens marked, and no marked token is in the dictionary."""
    systems = "trimmed: {algorithm: trimmed, below: 20, refill: true}"
    text = CONFIGURATION.replace("scaffold: {algorithm: scaffold}", systems)
    done = run(tmp_path, text, "--until", "dictionary", "--config", f"output={tmp_path}/out")
    assert done.returncode == 0, done.stdout
    (folder,) = (path.parent for path in tmp_path.rglob("codes") if path.is_dir())
    bpe, trimmed = (
        Codes.read(folder / "codes" / f"{name}.codes") for name in ("bpe-150", "trimmed-150-below20-refill")
    )
    assert not bpe.scaffold and len(trimmed.scaffold) > 5 and len(trimmed.normal) == len(bpe.normal) == 150
    forms = {surface_form(token) for token in trimmed.scaffold}
    dictionaries = {
        name: {form for form, _ in read_dictionary(folder / "dictionaries" / name / "dict.en.txt")}
        for name in ("bpe-150", "trimmed-150-below20-refill")
    }
    assert not forms & dictionaries["trimmed-150-below20-refill"] and forms & dictionaries["bpe-150"]


@pytest.mark.long
def test_a_unigram_system_has_its_model_and_dictionary(run: Run, tmp_path: Path) -> None:
    """They share the model; with sampling, a dictionary also has the other pieces that sampling can produce."""
    pytest.importorskip("sentencepiece", reason="needs the extra 'unigram'")
    from mt_scaffold.methods.unigram_segmenter import UnigramSegmenter

    systems = "unigram: {algorithm: unigram}\n  sampling: {algorithm: unigram, sampling_alpha: 0.1}"
    text = CONFIGURATION.replace("scaffold: {algorithm: scaffold}", systems).replace("symbols: 150", "symbols: 700")
    done = run(tmp_path, text, "--until", "dictionary", "--config", f"output={tmp_path}/out")
    assert done.returncode == 0, done.stdout
    dictionaries = {path.name for path in (tmp_path / "out" / "dictionaries").iterdir()}
    assert dictionaries == {"bpe-700", "unigram-700", "unigram-700.sampling"}
    forms = {*UnigramSegmenter(tmp_path / "out" / "codes" / "unigram-700.model").surface_forms()}
    plain, sampled = (
        {form for form, _ in read_dictionary(tmp_path / "out" / "dictionaries" / name / "dict.en.txt")} & forms
        for name in ("unigram-700", "unigram-700.sampling")
    )
    assert sum(len(form) > 1 for form in forms) == 700 and plain < sampled


def test_a_dry_run_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    """It makes no folder, no lock and no copy of the configuration."""
    dry = run(tmp_path, CONFIGURATION, "--dry-run", "--config", f"output={tmp_path}/elsewhere")
    assert dry.returncode == 0 and "train" in dry.stdout
    assert not (tmp_path / "elsewhere").exists() and not (tmp_path / "experiments").exists()


def test_an_average_of_more_checkpoints_than_are_saved_is_refused_at_the_start(run: Run, tmp_path: Path) -> None:
    """The averaging itself would refuse only after all trainings."""
    done = run(tmp_path, CONFIGURATION.replace("last: 2", f"last: {EPOCHS + 1}"))
    says = f"average.last: {EPOCHS + 1} checkpoints are needed, but this training saves {EPOCHS} (max-epoch {EPOCHS})"
    assert done.returncode != 0 and f"mt-scaffold: {says}" in done.stdout, done.stdout
    assert "rule" not in done.stdout and not [*tmp_path.rglob("raw")]


def test_a_failing_step_shows_the_end_of_its_log_and_where_it_is(run: Run, tmp_path: Path) -> None:
    """Here cleaning fails, because no pair is left: an early step, to be quick."""
    failing = run(tmp_path, CONFIGURATION.replace("max_ratio: 4.0", "max_ratio: 1.0, min_tokens: 200"))
    assert failing.returncode == 1
    assert re.search(r"experiments/tiny/logs/clean-(train|valid)\.log", failing.stdout)
    assert re.search(r"^mt-scaffold: .*cleaning leaves none of", failing.stdout, re.MULTILINE)


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An experiment of two seeds, run on one core to completion: its folder, and its output.

    The text is not tokenised and has words such as `@@`, which the whole experiment must keep.
    """
    folder = tmp_path_factory.mktemp("rehearsal")
    text = re.sub("max-epoch: [0-9]+", "max-epoch: 3", CONFIGURATION.replace("seeds: [1]", "seeds: [1, 2]"))
    settings(folder, f"{text}tokenise: none\n")
    for path in (folder / "text").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        marked = [f"@@ -{number} @@ {line}{'' if number % 10 else ' foo@@'}\n" for number, line in enumerate(lines)]
        path.write_text("".join(marked), encoding="utf-8")
    command = [sys.executable, "-m", "mt_scaffold", "run", "tiny.yaml", "--cores", "1"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return folder / "experiments" / "tiny", done.stdout


@pytest.mark.long
def test_the_first_seed_is_scored_before_the_others_train(rehearsal: tuple[Path, str]) -> None:
    """Even on one core, the first seed of every system has its scores as early as possible."""
    _, shown = rehearsal
    steps = re.findall(r"^\[\d+/\d+\] (train|score) (\w+), seed (\d)", shown, re.MULTILINE)
    assert [seed for _, _, seed in steps] == ["1"] * 4 + ["2"] * 4, shown


@pytest.mark.long
def test_words_spelt_like_the_separator_reach_the_report(rehearsal: tuple[Path, str]) -> None:
    """Their losses once failed after training: now the check warns, and the dictionary and the losses include them."""
    folder, shown = rehearsal
    assert shown.count("words end in '@@' (this is the first") == 1
    reference = (folder.parents[1] / "text" / "test.de").read_bytes().splitlines()
    for system in ("bpe", "scaffold"):
        names = {name for name, _ in read_dictionary(folder / "dictionaries" / f"{system}-150" / "dict.de.txt")}
        assert {"@@", "foo@@</w>"} <= names
        losses = json.loads((folder / system / "seed-1" / "scores" / "test.losses.json").read_text(encoding="utf-8"))
        assert losses["sizes"] == [len(line) for line in reference]
    assert re.search(r"^test +scaffold ", (folder / "comparison.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert (folder / "report.html").stat().st_size > 0
