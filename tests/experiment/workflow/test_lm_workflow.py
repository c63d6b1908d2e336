"""The workflow of language models: from documents to the tables, what a change repeats, and its errors."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fork_server import Snakemake
from tiny_experiments import forms_of_the_result

pytest.importorskip("snakemake", reason="needs the extra 'workflow'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("lm_eval", reason="needs the extra 'harness'")

import yaml

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import parse_experiment
from mt_scaffold.experiment.tasks import task_of

CONFIGURATION = """
task: language_modeling
name: tiny
description: a rehearsal
data: {synthetic: {documents: 60, valid: 3, test: 8, stems: 60, clauses: 1, sentences: 5}}
codes: {symbols: 700, total_symbols: true}
systems:
  bpe: {algorithm: bpe}
  scaffold: {algorithm: scaffold}
baseline: bpe
comparisons:
  equal_tokens: {tokens: 4000}
  equal_text: {text_of: equal_tokens}
train:
  schedule: cosine
  options:
    arch: llama
    decoder-layers: 1
    decoder-embed-dim: 16
    decoder-ffn-embed-dim: 16
    decoder-attention-heads: 2
    tokens-per-sample: 64
    batch-size: 8
    optimizer: adam
    lr: 0.01
    warmup-updates: 2
evaluate: {bootstrap_samples: 50}
tasks: {names: [long, short], include_path: [invented]}
"""
TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: invented/{name}.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{text}}}}"
doc_to_choice: ["a word", "{name} words"]
doc_to_target: answer
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""


def write_tasks(folder: Path) -> None:
    """Write the invented tasks of the configuration."""
    (folder / "invented").mkdir(exist_ok=True)
    for name, count in (("long", 7), ("short", 6)):
        (folder / "invented" / f"{name}.yaml").write_text(TASK.format(name=name))
        lines = "".join(json.dumps({"text": f"La {number}", "answer": number % 2}) + "\n" for number in range(count))
        (folder / "invented" / f"{name}.jsonl").write_text(lines)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(snakemake: Snakemake) -> Run:
    """Run the workflow in ``folder`` with the configuration ``text`` and more options."""

    def run_in(folder: Path, text: str = CONFIGURATION, *more: str) -> subprocess.CompletedProcess[str]:
        (folder / "tiny.yaml").write_text(text)
        if not (folder / "invented").exists():
            write_tasks(folder)
        return snakemake.run(folder, "--configfile", str(folder / "tiny.yaml"), "--cores", "2", *more)

    return run_in


def planned(dry: subprocess.CompletedProcess[str]) -> dict[str, int]:
    assert dry.returncode == 0, dry.stdout
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", dry.stdout, re.MULTILINE)}


@pytest.fixture(scope="module")
def experiment(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The tiny experiment, run to its report."""
    folder = tmp_path_factory.mktemp("workflow")
    output = folder / "experiments" / "tiny"
    done = run(folder, CONFIGURATION)
    return {"folder": folder, "output": output, "done": done}


def test_documents_come_to_tables_of_bits_per_byte(experiment: dict[str, object]) -> None:
    """One command, both comparisons; the baseline is trained once."""
    done, output = experiment["done"], experiment["output"]
    assert isinstance(done, subprocess.CompletedProcess) and isinstance(output, Path)
    assert done.returncode == 0, done.stdout
    table = (output / "comparison.txt").read_text(encoding="utf-8")
    for comparison in ("equal_tokens", "equal_text"):
        for system in ("bpe", "scaffold"):
            assert re.search(rf"^{comparison} +test +{system} +\d\.\d", table, re.MULTILINE), table
    assert table in done.stdout and (output / "statistics.txt").read_text(encoding="utf-8") in done.stdout
    trained = sorted(str(path.relative_to(output)) for path in output.glob("*/*/seed-1/training.json"))
    assert [path.rsplit("/", 2)[0] for path in trained] == [
        "bpe/equal_tokens",
        "scaffold/equal_text",
        "scaffold/equal_tokens",
    ]
    reports = {path: json.loads((output / path).read_text()) for path in trained}
    bpe, text, tokens = reports.values()
    # Both ended with the first update that reached the amount, an update of at most 512 tokens.
    assert (bpe["stop"], tokens["stop"], text["stop"]) == ("tokens", "tokens", "text")
    assert all(4000 <= each["subwords"] < 4512 for each in (bpe, tokens))
    assert bpe["text_bytes"] <= text["text_bytes"] < bpe["text_bytes"] + 512 * 5
    assert "synthetic" in table.lower()
    summaries = json.loads((output / "statistics.json").read_text())["vocabularies"]
    sizes = [each["vocabulary_size"] for each in summaries]
    assert sizes[0] == 700 > sizes[1]
    assert summaries[0]["scaffold_tokens"] == 0 < summaries[1]["scaffold_tokens"]
    assert (output / "figures" / "token-frequencies.svg").exists()
    tokens = (output / "bpe" / "equal_tokens" / "seed-1" / "tokens.csv").read_text(encoding="utf-8").splitlines()
    # In the embeddings of transformers' architecture, which are not tied here; bytes leave no <unk>.
    assert len(tokens) == 1 + 4 + 700 and tokens[4].startswith(",3,<unk>,,,1,")
    assert len({line.split(",")[-3] for line in tokens}) > 600 and len([*output.glob("*/*/seed-1/tokens.csv")]) == 3


def test_what_limits_a_result_stands_below_its_table_in_every_form(experiment: dict[str, object]) -> None:
    """Codes that ran out of pairs, once noted only in a log: in files, on the page and when a run ends.

    One seed limits tests, which tables of synthetic text do not show; the JSON has both.
    """
    done, output = experiment["done"], experiment["output"]
    assert isinstance(done, subprocess.CompletedProcess) and isinstance(output, Path)
    forms = forms_of_the_result(output, done)
    few_tokens = r'Fewer tokens were learned [^"]*scaffold-700-total \(|"few-tokens"'
    assert {form for form, text in forms.items() if not re.search(few_tokens, text)} == set()
    assert {form for form, text in forms.items() if re.search('Fewer than three seeds|"few-seeds"', text)} == {".json"}
    assert forms[".txt"].index("\ngroup ") < forms[".txt"].index("Fewer tokens were learned")


def test_every_model_is_asked_the_tasks(experiment: dict[str, object]) -> None:
    """One table of both tasks and both comparisons, in every form and on the page, with what limits it.

    The text is synthetic, and only the JSON has tests.
    """
    done, output = experiment["done"], experiment["output"]
    assert isinstance(done, subprocess.CompletedProcess) and isinstance(output, Path)
    table = (output / "tasks.txt").read_text(encoding="utf-8")
    assert table in done.stdout and "synthetic" in table.lower()
    heading = r"^group +test set +system +percent of the questions$"
    assert re.search(heading, table, re.MULTILINE), table
    assert re.search(r"^group +test set +system +acc, %$", table, re.MULTILINE), table
    for comparison in ("equal_tokens", "equal_text"):
        for task in ("long", "short"):
            for system in ("bpe", "scaffold"):
                row = rf"^{comparison} +{task} acc_norm +{system} +\d+\.\d\d$"
                assert len(re.findall(row, table, re.MULTILINE)) == 2, table
    comparisons = json.loads((output / "tasks.json").read_text())
    assert comparisons["comparisons"] == {"answers": 4, "answers:acc": 4}
    assert sum("answers" in row["tests"] for row in comparisons["rows"]) == 4
    assert len(list(output.glob("*/*/seed-1/tasks.json"))) == 3
    assert {path.suffix for path in output.glob("tasks.*")} == {".txt", ".md", ".tex", ".json", ".csv"}
    page = (output / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="tasks">') : page.index('<section id="training">')]
    assert section.count("<table>") == 2 and section.count(">long acc_norm</td>") == 8
    latex = (output / "tasks.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{table}") == latex.count(r"\caption{") >= 1
    for written in (table, section, latex):
        assert "Fewer tokens were learned" in written
        assert not re.search("Fewer than three seeds|The last validation is the best", written)


def test_the_learning_rate_has_fallen_to_its_end(experiment: dict[str, object]) -> None:
    """The schedule is as long as the training, which the data decides."""
    output = experiment["output"]
    assert isinstance(output, Path)
    for system, comparison in (("bpe", "equal_tokens"), ("scaffold", "equal_text")):
        folder = output / system / comparison / "seed-1"
        updates = json.loads((folder / "training.json").read_text())["updates"]
        period = re.search(r"--lr-period-updates (\d+)", (folder / "command.txt").read_text())
        assert period and updates - 1 <= int(period[1]) + 2 <= updates + 1


def test_the_statistics_are_those_of_the_command(experiment: dict[str, object]) -> None:
    """They come from the counts in the data folder; bytes and tokens are those of the documents encoded again."""
    from mt_scaffold import BPE

    output = experiment["output"]
    assert isinstance(output, Path)
    documents = [json.loads(line)["text"] for line in (output / "documents" / "train.jsonl").read_text().splitlines()]
    for summary in json.loads((output / "statistics.json").read_text())["vocabularies"]:
        bpe = BPE(output / "codes" / f"{summary['codes']}.codes")
        assert summary["tokens"] == sum(len(bpe.encode(document)) for document in documents)
        assert summary["bytes"] == sum(len(document.encode()) for document in documents)


def test_a_finished_experiment_has_nothing_left_to_do(run: Run, experiment: dict[str, object]) -> None:
    """Running it again repeats nothing."""
    folder = experiment["folder"]
    assert isinstance(folder, Path)
    assert planned(run(folder, CONFIGURATION, "--dry-run")) == {}


def test_language_models_get_a_page(experiment: dict[str, object], tmp_path: Path) -> None:
    """It has the parts of the translation page: table, curves of both losses, statistics.

    Differences are not drawn for synthetic text. The command makes the same page as the
    step.
    """
    from mt_scaffold.cli import main

    output = experiment["output"]
    assert isinstance(output, Path)
    page = (output / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(output), "--output", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    drawn = {path.stem for path in (output / "figures").glob("*.svg")}
    kinds = {f"{kind}-{name}" for kind in ("bits-per-byte", "loss") for name in ("equal_tokens", "equal_text")}
    assert drawn == {"token-frequencies", *kinds}
    assert page.count("<svg ") == len(drawn) and page.count("SYNTHETIC") == 1
    assert len([*output.glob("*/*/seed-1/scores/test.losses.json")]) == 3
    for part in (
        "bits per byte",
        "Rényi efficiency",
        "scaffold, equal_text",
        "tiny",
    ):
        assert part in page, part
    assert "http://" not in re.sub(
        r"http://www\.w3\.org/\S*|http://purl\.org/\S*|http://creativecommons\.org/\S*", "", page
    )


@pytest.mark.parametrize(
    ("change", "repeated", "kept"),
    [
        (("symbols: 700", "symbols: 690"), {"learn", "binarise", "train", "statistics"}, {"count_words"}),
        (("documents: 60", "documents: 61"), {"get_documents", "count_words", "train"}, set()),
        (("tokens: 4000", "tokens: 5000"), {"train", "evaluate", "compare"}, {"binarise"}),
        (("samples: 50", "samples: 60"), {"compare", "compare_tasks", "report"}, {"evaluate", "evaluate_tasks"}),
        (("[long, short]", "[short]"), {"evaluate_tasks", "compare_tasks"}, {"evaluate", "average", "compare"}),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_a_changed_value_repeats_the_steps_that_use_it(
    run: Run, experiment: dict[str, object], change: tuple[str, str], repeated: set[str], kept: set[str]
) -> None:
    """No result of the old value remains next to those of the new one, and no step is repeated needlessly."""
    folder = experiment["folder"]
    assert isinstance(folder, Path)
    steps = planned(run(folder, CONFIGURATION.replace(*change), "--dry-run"))
    assert repeated <= steps.keys() and not kept & steps.keys()


def test_a_training_that_cannot_resume_is_named_before_anything_is_deleted(
    run: Run, experiment: dict[str, object]
) -> None:
    """Snakemake deletes the report of a training that it is about to run, and the training itself refuses too late."""
    folder, output = experiment["folder"], experiment["output"]
    assert isinstance(folder, Path) and isinstance(output, Path)
    refused = run(folder, CONFIGURATION.replace("lr: 0.01", "lr: 0.02"))
    lines = [line for line in refused.stdout.splitlines() if line.startswith("mt-scaffold: ")]
    assert refused.returncode == 1 and len(lines) == 1 and "Traceback" not in refused.stdout
    different = r"different settings \(--lr 0\.02 instead of 0\.01; see command\.txt there\)"
    assert re.search(rf"/seed-1 and \d more: holds a training .* {different}", lines[0])
    assert (output / "bpe" / "equal_tokens" / "seed-1" / "training.json").exists()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("symbols: 700", "simbols: 700"), r".*tiny\.yaml:6: codes\.simbols: unknown key; did you mean symbols\?"),
        (("lr: 0.01", "lrr: 0.01"), "fairseq-train: unrecognized arguments: --lrr"),
        (("synthetic: {documents: 60, valid: 3, test: 8, stems: 60, clauses: 1, sentences: 5}",
          "documents: {train: [none], valid: [none], tests: {a: [none]}}"), "none: no such file"),
        # Here the harness indexes its built-in tasks, which takes 20 s.
        pytest.param(("[long, short]", "[long, sort]"), "lm_eval has no task 'sort'", marks=pytest.mark.long),
        (("[invented]", "[missing]"), "include_path: missing: no such folder"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_before_anything_is_done(
    run: Run, tmp_path: Path, wrong: tuple[str, str], says: str
) -> None:
    """A typo costs seconds, not the hours until its step."""
    result = run(tmp_path, CONFIGURATION.replace(*wrong))
    assert result.returncode != 0 and "Traceback" not in result.stdout
    assert re.search(rf"^mt-scaffold: {says}", result.stdout, re.MULTILINE), result.stdout
    assert not (tmp_path / "experiments").exists()


def test_a_task_that_the_harness_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the check before the first step; here the harness indexes none of its built-in tasks."""
    from lm_eval.tasks._index import TaskIndex

    write_tasks(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TaskIndex, "_iter_yaml_files", staticmethod(lambda root: sorted(root.glob("*.yaml"))))
    for names, refused in (("[long, short]", False), ("[long, sort]", True)):
        config = parse_experiment(yaml.safe_load(CONFIGURATION.replace("[long, short]", names)))
        with pytest.raises(UsageError, match="no task 'sort'") if refused else contextlib.nullcontext():
            task_of(config).check_start(task_of(config).layout.of(tmp_path / "tiny", config))


def test_every_step_of_a_scattered_experiment_is_planned(run: Run, tmp_path: Path) -> None:
    """Shards are counted in separate jobs; a user's files are read in place; nothing is left behind."""
    for name in ("a", "b", "valid", "test"):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(b"")
    data = (
        "data:\n  documents: {train: ['[ab].jsonl.gz'], valid: [valid.jsonl.gz], tests: {one: [test.jsonl.gz], "
        "two: [test.jsonl.gz]}, format: jsonl, field: content}\nprepare: {shards: 2, max_memory: 1G}\n"
    )
    text = re.sub(r"^data: .*\n", data, CONFIGURATION, flags=re.MULTILINE)
    text = text.replace("  schedule: cosine\n", "")
    text = text.replace("{algorithm: bpe}", "{algorithm: trimmed, below: 5, refill: true}")
    dry = run(tmp_path, text + "seeds: [1, 2]\n", "--dry-run", "-p")
    steps = planned(dry)
    assert (steps["learn"], steps["trim"]) == (2, 1)
    assert "get_documents" not in steps and (steps["count_words"], steps["binarise"]) == (2, 2)
    assert (steps["train"], steps["evaluate"], steps["binarise_test_set"]) == (6, 12, 4)
    assert "    input: b.jsonl.gz\n" in dry.stdout
    assert re.search(r"    input: a\.jsonl\.gz, b\.jsonl\.gz, valid\.jsonl\.gz, \S+\.codes\n", dry.stdout)
    # A training on as much text as the baseline waits for the baseline's training.
    after = r", \S+/bpe/equal_tokens/seed-2/training\.json\n    output: \S+/scaffold/equal_text/seed-2/training"
    assert re.search(after, dry.stdout)
    assert not (tmp_path / "experiments").exists()
