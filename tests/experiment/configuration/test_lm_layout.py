"""The folder of an experiment with language models, its documents, and the options of each training."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")


from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import BinarisedDocuments, Split
from mt_scaffold.experiment.configuration import parse_experiment
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.layout import Run, requested_experiment
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.documents import get_documents
from mt_scaffold.experiment.runtime.fairseq import option_arguments
from mt_scaffold.experiment.runtime.results import COMPARISON_KINDS
from mt_scaffold.experiment.tasks import language_modeling as steps
from mt_scaffold.experiment.tasks import read_layout
from mt_scaffold.experiment.tasks.language_modeling import LanguageModeling
from mt_scaffold.experiment.training.language_model_options import (
    training_options,
)
from mt_scaffold.experiment.workflow.folder import open_folder
from mt_scaffold.experiment.workflow.staleness import depends_on

DEMO = ROOT / "configs" / "lm_demo.yaml"
SMALL: dict[str, Any] = {
    "task": "language_modeling",
    "name": "small",
    "data": {"synthetic": {"documents": 30, "valid": 2, "test": 3, "sentences": 4}},
    "codes": {"symbols": 300},
    "systems": {"bpe": {"algorithm": "bpe"}, "rare": {"algorithm": "bpe", "min_frequency": 3}},
    "baseline": "bpe",
    "comparisons": {"equal_tokens": {"tokens": 10240}, "equal_text": {"text_of": "equal_tokens"}},
    "train": {"options": {"arch": "llama", "tokens-per-sample": 64, "batch-size": 8, "lr": 0.1}},
}
DATA = BinarisedDocuments("language_modeling", {"train": Split(90, 20000, 5000)}, "ids", 304, 300, "", {})


def small(**changes: Any) -> LanguageModelConfig:
    config = parse_experiment(SMALL | changes)
    assert isinstance(config, LanguageModelConfig)
    return config


def plan_layout(configurations: list[Path], settings: dict[str, Any]) -> LanguageModelLayout:
    folder, config, *_ = requested_experiment(configurations, settings)
    return LanguageModelLayout.of(folder, config)


def of_files(tmp_path: Path, documents: dict[str, Any], **data: Any) -> LanguageModelLayout:
    return LanguageModelLayout(tmp_path / "out", small(data={"documents": documents, **data}))


def test_no_two_files_of_an_experiment_have_one_path() -> None:
    """Each method returns a different path, for Snakemake's wildcards as for names."""
    layout = plan_layout([DEMO], {})
    run = layout.wildcards
    assert run == Run("{system}", "{seed}", "{comparison}")
    paths = [
        *(layout.documents("{part}"), layout.documents_record, layout.counted("{item}"), layout.counts),
        *(layout.codes("{codes}"), layout.binarised("{codes}")),
        *(layout.binarised_test("{codes}", "{test}"), layout.training_record(run), layout.checkpoints(run)),
        *(layout.averaged(run), layout.stripped(run), layout.scores(run, "{test}")),
        *(layout.config_file, layout.statistics, layout.vocabulary_table, layout.figures),
        *(layout.comparison(kind) for kind in ("txt", "json")),
        *(layout.log("a"), layout.step_record("a")),
    ]
    assert len(set(paths)) == len(paths)
    assert all(path.is_relative_to("experiments/lm_demo") for path in paths)


def test_a_step_is_out_of_date_when_its_own_part_changes() -> None:
    """Another length of training must not rewrite the documents, nor may changed documents pass for the old ones."""
    steps_of = {"get-documents": (), "train": (Run("scaffold", 1, "equal_text"),)}

    def depending(**settings: Any) -> dict[str, str]:
        layout = plan_layout([DEMO], settings)
        return {step: depends_on(layout, step, *names) for step, names in steps_of.items()}

    before = depending()
    for settings, changed in (
        ({"sample": "50"}, {"get-documents"}),
        ({"train": {"options": {"lr": 0.5}}}, {"train"}),
        ({"comparisons": {"equal_text": {"text_of": None, "text": 5}}}, {"train"}),
        ({"comparisons": {"equal_tokens": {"tokens": 5}}}, set()),
        ({"seeds": [3]}, set()),
    ):
        after = depending(**settings)
        assert {step for step in steps_of if before[step] != after[step]} == changed, settings


def test_a_layout_is_read_back_and_each_task_has_its_own(tmp_path: Path) -> None:
    """Steps read the resolved configuration, and refuse the folder of another task."""
    layout = plan_layout([DEMO], {"output": str(tmp_path / "demo")})
    open_folder(layout).close()
    assert read_layout(layout.folder) == layout
    with pytest.raises(UsageError, match="task: language_modeling: only translation experiments have this"):
        TranslationLayout.of("x", layout.config)
    with pytest.raises(UsageError, match="task: translation: only experiments with language models have this"):
        plan_layout([DEMO.with_name("demo.yaml")], {})
    assert requested_experiment([DEMO], {"cache": "kept"}).cache == Path("kept")


def test_generated_documents_follow_from_the_seed_alone(tmp_path: Path) -> None:
    """The demo is the same everywhere; a smaller sample is the start of the same text, with the same test set."""
    data = small().data
    report = get_documents(data, tmp_path / "a", ["train", "valid", "test"])
    assert {part: each.documents for part, each in report.parts.items()} == {"train": 30, "valid": 2, "test": 3}
    get_documents(small(data=SMALL["data"] | {"sample": 10}).data, tmp_path / "b", ["train", "test"])
    whole, sample = ((tmp_path / name / "train.jsonl").read_bytes().splitlines() for name in "ab")
    assert whole[:10] == sample and len(set(whole)) == 30
    assert (tmp_path / "a" / "test.jsonl").read_bytes() == (tmp_path / "b" / "test.jsonl").read_bytes()
    documents = [json.loads(line)["text"] for line in whole]
    assert sum(len(document.encode()) for document in documents) == report.parts["train"].bytes
    # Both languages, digits and paragraphs, for which byte-level codes are meant.
    assert any("ß" in each or "ü" in each for each in documents) and any(": " in each for each in documents)


def test_held_out_documents_are_in_no_other_part(tmp_path: Path) -> None:
    """Every document goes to one part, its lines joined in order; a sample ends reading early."""
    text = tmp_path / "text"
    text.write_text("".join(f"line {number}\n" for number in range(60)))
    layout = of_files(tmp_path, {"train": [str(text)], "lines_per_document": 2}, held_out_every=5)
    get_documents(layout.config.data, tmp_path / "out", layout.written_parts)
    read = {
        part: [json.loads(line)["text"] for line in (tmp_path / "out" / f"{part}.jsonl").read_text().splitlines()]
        for part in layout.parts
    }
    assert {part: len(documents) for part, documents in read.items()} == {"train": 18, "valid": 6, "test": 6}
    every = sorted((each for part in read.values() for each in part), key=lambda each: int(each.split()[1]))
    assert "".join(every) == text.read_text()
    assert read["valid"][0] == "line 6\nline 7\n" and read["test"][0] == "line 8\nline 9\n"
    sampled = of_files(tmp_path, {"train": [str(text)]}, held_out_every=5, sample=4)
    report = get_documents(sampled.config.data, tmp_path / "sampled", sampled.written_parts)
    assert {part: each.documents for part, each in report.parts.items()} == {"train": 4, "valid": 2, "test": 2}
    # The held-out parts can be written without the training text that they come from.
    get_documents(layout.config.data, tmp_path / "alone", ["valid"])
    assert (tmp_path / "alone" / "valid.jsonl").read_bytes() == (tmp_path / "out" / "valid.jsonl").read_bytes()


def test_documents_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    """JSONL holds only text: no byte is replaced silently, and no incomplete file is left."""
    (tmp_path / "text").write_bytes(b"good\nb\xe4d\n" + b"more\n" * 9)
    layout = of_files(tmp_path, {"train": [str(tmp_path / "text")]}, held_out_every=3)
    with pytest.raises(MTScaffoldError, match=r"document 2 of train: not UTF-8 \(byte 0xE4 at offset 1\), which JSONL"):
        get_documents(layout.config.data, tmp_path / "out", layout.written_parts)
    assert not list((tmp_path / "out").glob("*.jsonl"))
    (tmp_path / "good").write_text("good\n" * 20)
    good, bad = [str(tmp_path / "good")], [str(tmp_path / "text")]
    separate = {"train": good, "valid": bad, "tests": {"test": good}}
    with pytest.raises(MTScaffoldError, match="document 2 of valid: not UTF-8"):
        get_documents(of_files(tmp_path, separate, sample=15).config.data, tmp_path / "out", ["train", "valid"])
    (tmp_path / "text").write_text("one\n")
    with pytest.raises(MTScaffoldError, match="valid: no documents; give more text, or hold out fewer"):
        get_documents(layout.config.data, tmp_path / "out", layout.written_parts)


def test_files_are_read_where_they_are(tmp_path: Path) -> None:
    """A corpus of hundreds of gigabytes is not copied, and its files are divided among the jobs that count."""
    for name in ("a", "b", "c", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text("text\n")
    documents = {"train": [f"{tmp_path}/[abc].txt"], "valid": [f"{tmp_path}/valid.txt"], "format": "lines"}
    layout = of_files(tmp_path, documents | {"tests": {"news": [f"{tmp_path}/test.txt"]}})
    LanguageModeling().check_early(layout)
    assert layout.written_parts == [] and layout.parts == ["train", "valid", "news"]
    assert (layout.patterns("news"), layout.format) == ([f"{tmp_path}/test.txt"], ("lines", None))
    assert [path.name for path in layout.files("train")] == ["a.txt", "b.txt", "c.txt"]
    config = small(data={"documents": documents | {"tests": {"news": ["none"]}}}, prepare={"shards": 2})
    layout = LanguageModelLayout(tmp_path, config)
    assert [[path.name for path in steps.shard(layout, f"{n}-of-2")] for n in (1, 2)] == [["a.txt", "c.txt"], ["b.txt"]]
    with pytest.raises(MTScaffoldError, match=r"none: no such file; check data\.documents"):
        LanguageModeling().check_early(layout)
    with pytest.raises(UsageError, match=r"prepare\.shards: 4 jobs, but the training documents are 3 files"):
        steps.shard(
            LanguageModelLayout(tmp_path, small(data=config.to_dict()["data"], prepare={"shards": 4})), "1-of-4"
        )


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        (None, r"codes: No such file"),
        ("#version: 0.2\na b\n", "codes without ids; learn codes with --pretokenise"),
        ("a b c\n", ""),
    ],
)
def test_given_codes_that_cannot_be_used_are_named_before_anything_runs(
    tmp_path: Path, codes: str | None, says: str
) -> None:
    """Otherwise they would be refused only after counting words and learning other codes."""
    if codes is not None:
        (tmp_path / "codes").write_text(codes)
    config = small(systems={"bpe": {"algorithm": "bpe"}, "own": {"codes": str(tmp_path / "codes")}})
    with pytest.raises(UsageError, match=rf"systems\.own\.codes: .*{says}"):
        LanguageModeling().check_early(LanguageModelLayout(tmp_path, config))
    assert config.codes_of("own").name.startswith("given-codes-")


def test_a_schedule_ends_where_the_training_ends() -> None:
    """10,240 tokens are 20 updates of 512, plus one for the short last batches of epochs of 5,000 tokens."""
    train = SMALL["train"] | {"schedule": "linear"}
    options = training_options(small(train=train), "bpe", "equal_tokens", 0, DATA)
    assert (options["stop-tokens"], options["lr-scheduler"], options["total-num-update"]) == (
        10240,
        "polynomial_decay",
        21,
    )
    warm = {"options": train["options"] | {"warmup-updates": 5}, "schedule": "cosine"}
    config = small(train=warm, systems={"bpe": {"algorithm": "bpe"}, "rare": {"algorithm": "scaffold"}})
    cosine = training_options(config, "bpe", "equal_tokens", 0, DATA)
    assert (cosine["lr-period-updates"], cosine["lr-shrink"], cosine["keep-last-epochs"]) == (16, 0.0, 1)
    # 40,960 bytes are as many tokens; with two GPUs, half as many updates.
    text = training_options(config, "rare", "equal_text", 0, DATA, 40960)
    assert (text["stop-text"], text["lr-period-updates"]) == (40960, 16)
    assert training_options(config, "rare", "equal_text", 2, DATA, 40960)["lr-period-updates"] == 6
    with pytest.raises(UsageError, match="this training has 2 updates, all of them within warmup-updates"):
        training_options(config, "rare", "equal_text", 0, DATA, 4000)


def test_a_schedule_counts_the_updates_that_mt_scaffold_train_makes() -> None:
    """Batches of 12 samples stay 12: fairseq would cut them to 8, but a training keeps every sample."""
    options = SMALL["train"]["options"] | {"batch-size": 12}
    found = training_options(small(train={"options": options, "schedule": "linear"}), "bpe", "equal_tokens", 0, DATA)
    # An epoch of 5,000 tokens has 7 updates of 768; 240 tokens are left after two.
    assert found["total-num-update"] == 15


@pytest.mark.parametrize("least", [0.0001, 0.0])
@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_the_learning_rate_ends_at_min_lr(schedule: str, least: float) -> None:
    """With fairseq's schedulers, even beyond the computed length: it neither falls to 0 nor rises again."""
    pytest.importorskip("fairseq", reason="needs the extra 'fairseq'")
    from fairseq.optim import FairseqOptimizer
    from fairseq.optim.lr_scheduler import build_lr_scheduler
    from fairseq_training import fairseq_config

    class Optimizer(FairseqOptimizer):  # type: ignore[misc]
        def set_lr(self, lr: float) -> None:
            self.rate = lr

        def get_lr(self) -> float:
            return self.rate

    own = {"lr": 0.001, "min-lr": least, "warmup-updates": 4, "sample-break-mode": "none"}
    train = {"options": SMALL["train"]["options"] | own, "schedule": schedule}
    options = training_options(small(train=train), "bpe", "equal_tokens", 0, DATA)
    parsed = fairseq_config(["data", "--task", "language_modeling_resumable", *option_arguments(options)])
    scheduler = build_lr_scheduler(parsed.lr_scheduler, Optimizer(None))
    scheduler.step_begin_epoch(1)
    # The training has 21 updates; update n has the rate after n - 1.
    rates = [scheduler.step_update(number) for number in range(25)]
    assert max(rates) == pytest.approx(0.001) and rates[12] > 1.5 * least
    assert rates[20] == pytest.approx(least, abs=0.00006)
    assert rates[21:23] == pytest.approx([least] * 2, rel=0.02, abs=1e-12)
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates[4:]))


def test_the_task_is_told_how_many_checkpoints_are_averaged() -> None:
    """It refuses a training that would save fewer before the first update."""
    options = training_options(small(average={"last": 4}), "rare", "equal_text")
    assert (options["average-last"], options["average-by"]) == (4, "epochs")
    assert "average-last" not in training_options(small(average={"last": 0}), "bpe", "equal_tokens")


def test_a_system_cannot_be_called_what_a_file_of_the_experiment_is() -> None:
    """Its trainings would overwrite the output of other steps, or mix with it."""
    layout = LanguageModelLayout(Path("x"), small())
    paths = [layout.documents("train"), layout.documents_record, layout.counts, layout.codes("c")]
    paths += [layout.binarised("c"), layout.binarised_test("c", "t"), layout.config_file]
    paths += [layout.statistics, layout.vocabulary_table, layout.figures, layout.log("a")]
    paths += [layout.report, *map(layout.comparison, COMPARISON_KINDS), *map(layout.task_comparison, COMPARISON_KINDS)]
    for name in sorted({path.parts[1] for path in paths}):
        with pytest.raises(UsageError, match=rf"systems\.{re.escape(name)}: reserved for a folder or file"):
            small(systems={"bpe": {"algorithm": "bpe"}, name: {"algorithm": "scaffold"}})


@pytest.mark.parametrize(
    ("changes", "call", "says"),
    [
        ({}, ("bpe", "equal"), "no comparison is called equal; did you mean equal_t"),
        ({}, ("bp", "equal_text"), "no system is called bp; did you mean bpe?"),
        (
            {},
            ("rare", "equal_text", 0, DATA),
            "equal_text: takes as much text as the baseline; give --baseline-report",
        ),
        (
            {"schedule": "linear", "options": {"sample-break-mode": "eos"}},
            ("bpe", "equal_tokens", 0, DATA),
            "equal length",
        ),
        ({"schedule": "linear", "options": {"max-tokens": 9}}, ("bpe", "equal_tokens", 0, DATA), "give batch-size"),
    ],
)
def test_options_that_cannot_be_told_are_refused(changes: dict[str, Any], call: tuple[Any, ...], says: str) -> None:
    """A wrong schedule length would show only as a worse model."""
    with pytest.raises(UsageError, match=says):
        training_options(small(train=SMALL["train"] | changes), *call)


def test_options_of_the_steps_follow_the_configuration() -> None:
    """Each key of the configuration reaches its command."""
    codes = {"symbols": 300, "total_symbols": True, "pretokenise": "cl100k", "min_frequency": 3}
    prepare = {"max_memory": "2G", "prune": 4}
    config = small(codes=codes, prepare=prepare, seeds=[1, 2])
    layout, task = LanguageModelLayout(Path("x"), config), LanguageModeling()
    words = {"pretokenise": "cl100k", "split_digits": True}
    assert steps.words_of(config) == words
    assert task.learning(layout, "bpe-300-min3-total") == {"counts": [layout.counts], "prune": 4, **words}
    assert layout.binarised_of("rare") == Path("x/binarised/bpe-300-min3-total")
    baseline = Path("x/bpe/equal_tokens/seed-2/training.json")
    assert task.trained_after(layout, Run("rare", 2, "equal_text")) == [baseline]
    # The baseline's one training is in both comparisons.
    runs = {layout.run_in(comparison, "bpe", 1) for comparison in config.comparisons}
    assert runs == {Run("bpe", 1, "equal_tokens")} and Run("bpe", 1, "equal_text") not in layout.runs
    for options, says in (({"beam": 4}, "beam: unknown option"), ({"max-tokens": "x"}, "must be a whole number")):
        with pytest.raises(UsageError, match=rf"evaluate\.options\..*{says}"):
            task.check_early(LanguageModelLayout(Path("x"), small(evaluate={"options": options})))


def test_as_many_checkpoints_are_kept_as_are_asked_tasks() -> None:
    """A training also keeps checkpoints for the tasks; the choice of tasks changes no training."""
    config = small(tasks={"names": ["piqa"], "last_checkpoints": 3}, average={"last": 2})
    options = training_options(config, "bpe", "equal_tokens")
    assert (options["average-last"], options["keep-last-epochs"]) == (3, 3)
    layouts = [LanguageModelLayout(Path("x"), small(tasks={"names": [name]})) for name in ("piqa", "boolq")]
    run = layouts[0].runs[0]
    for step, names, alike in (("train", (run,), True), ("evaluate-tasks", (), False), ("compare-tasks", (), True)):
        first, second = (depends_on(layout, step, *names) for layout in layouts)
        assert (first == second) == alike, step
