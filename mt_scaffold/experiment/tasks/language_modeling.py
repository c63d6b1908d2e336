"""Language modelling: from documents to a comparison of the systems in bits per byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mt_scaffold.corpus.count import merge_counts, write_counts
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.vocabulary_file import read_dictionary
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.data_folder import DICTIONARY
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION
from mt_scaffold.experiment.configuration.language_model import HarnessTasks, LanguageModelConfig
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.layout import TRAINED_ON, Run
from mt_scaffold.experiment.data.preprocessed import lines_look_tokenised
from mt_scaffold.experiment.report.trained_tokens import COLUMNS, SideTokens
from mt_scaffold.experiment.runtime.fairseq import gpus_in_all, option_arguments
from mt_scaffold.experiment.runtime.fairseq_options import Call
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import COMPARISON_KINDS, write_result
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.experiment.tasks import codes
from mt_scaffold.experiment.tasks.codes import check_codes, dictionary_size
from mt_scaffold.experiment.tasks.task import (
    Comparable,
    Gpus,
    ShardName,
    Step,
    Systems,
    Task,
    TestSet,
    Workers,
    training_section,
)
from mt_scaffold.experiment.tasks.training_text import TrainingText, documents
from mt_scaffold.experiment.training.language_model_options import (
    OWN_TASK,
    options_for_data,
    training_options,
)
from mt_scaffold.experiment.training.start import Start
from mt_scaffold.experiment.training.train import start_with

if TYPE_CHECKING:
    from mt_scaffold.experiment.evaluation.measures import Measure

# Kept in the settings of a training, as earlier versions recorded it; without it, finished trainings would be repeated.
_NO_DROPOUT = 0.0


# -- documents → counted words


def get_documents(layout: LanguageModelLayout) -> None:
    """Write the documents that are generated, cut or joined; others are read in place."""
    from mt_scaffold.experiment.data.documents import get_documents

    record = get_documents(layout.config.data, layout.documents("train").parent, layout.written_parts)
    write_result(layout.documents_record, record)


def shards(layout: LanguageModelLayout) -> list[list[Path]]:
    """Return the files of the training documents for each of ``prepare.shards`` jobs.

    Raises UsageError for more jobs than files, and as ``LanguageModelLayout.files`` does.
    """
    files, count = layout.files("train"), layout.config.prepare.shards
    if count > len(files):
        raise UsageError(
            f"prepare.shards: {count} jobs, but the training documents are {len(files)} files; use fewer shards"
        )
    return [files[number::count] for number in range(count)]


def shard(layout: LanguageModelLayout, item: str) -> list[Path]:
    """Return the files of a shard, by its name in Snakemake: ``2-of-8``."""
    return shards(layout)[int(item.partition("-of-")[0]) - 1]


def words_of(config: LanguageModelConfig) -> dict[str, Any]:
    """Return the definition of a word, as arguments of the functions that count and learn."""
    codes = config.codes
    return {"pretokenise": codes.pretokenise, "split_digits": codes.split_digits}


def count_words(layout: LanguageModelLayout, shard_name: ShardName, num_workers: Workers = 1) -> None:
    """Count the words of one shard of the training documents."""
    documents = Documents([str(path) for path in shard(layout, shard_name)], *layout.format)
    memory = layout.config.prepare.max_memory
    output, words = layout.counted(shard_name), words_of(layout.config)
    write_counts(output, None, num_workers, documents=documents, max_memory=memory, **words)


def gather_counts(layout: LanguageModelLayout) -> None:
    """Merge the counts of all shards."""
    count = layout.config.prepare.shards
    counted = [layout.counted(f"{number + 1}-of-{count}") for number in range(count)]
    merge_counts(layout.counts, counted, layout.config.prepare.max_memory)


def _preprocessed(layout: LanguageModelLayout, parts: Sequence[str]) -> list[ResultWarning]:
    """Return warnings of training text and test sets among ``parts`` that are tokenised or segmented already."""
    found = {
        part: lines_look_tokenised(
            line for document in Documents(layout.patterns(part), *layout.format) for line in document.splitlines()
        )
        for part in parts
        if part != "valid"
    }
    return [ResultWarning("preprocessed-documents", part, str(seen)) for part, seen in found.items() if seen]


# -- models → bits per byte


def evaluate(layout: LanguageModelLayout, run: Run, test_set: TestSet, gpus: Gpus = 0) -> None:
    """Score a model on a test set in bits per byte."""
    from mt_scaffold.experiment.evaluation.bits_per_byte import Evaluation, evaluate

    settings = Evaluation(
        **_evaluation(layout.config),
        gpus=gpus,
        system=run.system,
        test_set=test_set,
        seed=int(run.seed),
        synthetic=layout.config.synthetic,
    )
    scores = evaluate(
        layout.averaged(run),
        layout.binarised_test_of(run.system, test_set),
        layout.scores(run, test_set),
        settings=settings,
        counts=layout.counts,
        losses=layout.losses(run, test_set),
    )
    print(f"bits per byte: {scores.bits_per_byte:.4f}  {scores.signature}")


def _evaluation(config: LanguageModelConfig) -> dict[str, Any]:
    """Return evaluate.options as fields of ``Evaluation``; raise UsageError for an unknown or invalid one."""
    found = {}
    for name, value in config.evaluate.options.items():
        if name not in ("context-window", "max-tokens"):
            raise UsageError(f"evaluate.options.{name}: unknown option; there are context-window and max-tokens")
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"evaluate.options.{name}: must be a whole number, not {value!r}")
        found[name.replace("-", "_")] = value
    return found


# -- models → answers to the tasks of lm-evaluation-harness


def _tasks_of(config: LanguageModelConfig) -> HarnessTasks:
    """Return the section ``tasks``; raise UsageError if there is none."""
    if config.tasks is None:
        raise UsageError("the configuration has no tasks; add the section tasks with their names")
    return config.tasks


def _check_names(layout: LanguageModelLayout) -> None:
    """Raise UsageError for a task that the harness does not know, MTScaffoldError if the harness is not installed."""
    if (tasks := layout.config.tasks) is not None:
        from mt_scaffold.experiment.evaluation.lm_eval import Asking, check_tasks

        check_tasks(Asking(tasks.names, include_path=tasks.include_path))


def evaluate_tasks(layout: LanguageModelLayout, run: Run, gpus: Gpus = 0) -> None:
    """Ask a model the tasks of lm-evaluation-harness."""
    from mt_scaffold.experiment.evaluation.lm_eval import Asking, format_harness, run_harness
    from mt_scaffold.experiment.training.average import last_checkpoints

    tasks, checkpoints = _tasks_of(layout.config), [layout.averaged(run)]
    if tasks.last_checkpoints:
        by_updates = layout.config.average.by == "updates"
        checkpoints = last_checkpoints(layout.checkpoints(run), tasks.last_checkpoints, by_updates=by_updates)
    asking = Asking(tasks.names, tasks.num_fewshot, tasks.include_path, tasks.limit, tasks.batch_size, gpus)
    scores = run_harness(
        checkpoints,
        layout.binarised_of(run.system),
        layout.task_scores(run),
        asking,
        system=run.system,
        seed=int(run.seed),
        synthetic=layout.config.synthetic,
    )
    print(format_harness(scores), end="")


def _compared(layout: LanguageModelLayout) -> list[Comparable]:
    config = layout.config
    return [
        Comparable(comparison, layout.run_in(comparison, system, seed))
        for comparison in config.comparisons
        for system in config.systems
        for seed in config.seeds
    ]


def compare_tasks(layout: LanguageModelLayout, systems: Systems = "") -> None:
    """Compare all systems on the tasks of lm-evaluation-harness, with significance."""
    from mt_scaffold.experiment.evaluation.compare import compare
    from mt_scaffold.experiment.evaluation.comparison_files import as_text
    from mt_scaffold.experiment.evaluation.measures import Labelled, TaskAnswers

    layout = layout.showing(systems)
    config, runs = layout.config, _compared(layout)
    comparison = compare(
        [Labelled(group, run.system, layout.task_scores(run)) for group, run in runs],
        config.baseline,
        layout.folder / "tasks",
        config.evaluate.bootstrap_samples,
        layout.title,
        baselines=config.own_baselines,
        measure=TaskAnswers(),
        trainings=[Labelled(group, run.system, layout.training_record(run)) for group, run in runs],
        reports=codes.records(layout),
    )
    print(as_text(comparison), end="")


# -- what each step depends on in the configuration


def _training_settings(layout: LanguageModelLayout, run: Run) -> list[object]:
    whole = layout.config.to_dict()
    system, amount = whole["systems"][run.system], whole["comparisons"][run.comparison]
    return [training_section(whole["train"]), system.get("train"), _NO_DROPOUT, amount]


def _task_settings(layout: LanguageModelLayout) -> list[object]:
    config = layout.config
    asked = config.to_dict().get("tasks", {})
    asked = {key: value for key, value in asked.items() if key != "batch_size"}
    return [asked, config.synthetic, config.average.by]


def _comparison_settings(layout: LanguageModelLayout) -> list[object]:
    config = layout.config
    baselines = [config.baseline_of(system) for system in config.systems]
    return [layout.title, baselines, list(config.comparisons), config.evaluate.bootstrap_samples]


class LanguageModeling(Task[LanguageModelLayout]):
    """Language models of raw documents, scored in bits per byte."""

    layout = LanguageModelLayout
    rules = "language_modeling.smk"
    tables = ("vocabulary_table",)
    steps: ClassVar[Mapping[str, Step]] = {
        "get-documents": get_documents,
        "count-words": count_words,
        "gather-counts": gather_counts,
        "evaluate": evaluate,
        "evaluate-tasks": evaluate_tasks,
        "compare-tasks": compare_tasks,
    }
    depends: ClassVar[Mapping[str, Callable[..., object]]] = {
        "get-documents": lambda layout: layout.config.to_dict()["data"],
        "count-words": lambda layout: [
            layout.config.codes.pretokenise,
            layout.config.codes.split_digits,
            layout.format,
        ],
        "learn": lambda layout: [
            layout.config.codes.pretokenise,
            layout.config.codes.split_digits,
            layout.config.prepare.prune,
        ],
        "binarise": lambda layout, *parts: [
            [layout.patterns(part) for part in parts],
            layout.format,
            layout.config.to_dict()["binarise"],
        ],
        "train": _training_settings,
        "average": lambda layout: layout.config.to_dict()["average"],
        "tokens": lambda layout: COLUMNS,
        "evaluate": lambda layout: [layout.config.evaluate.options, layout.config.synthetic],
        "evaluate-tasks": _task_settings,
        "compare-tasks": _comparison_settings,
        "compare": _comparison_settings,
    }

    def check_early(self, layout: LanguageModelLayout) -> None:
        check_codes(layout.config, with_ids=True)
        for part in layout.parts:
            layout.files(part)
        shards(layout)
        _evaluation(layout.config)

    def training_text(self, layout: LanguageModelLayout) -> TrainingText:
        return documents(layout)

    def fairseq_calls(self, layout: LanguageModelLayout) -> list[Call]:
        calls = []
        for system, comparison in layout.config.trainings:
            options = {"task": OWN_TASK} | training_options(layout.config, system, comparison)
            sizes, seeds = [dictionary_size(layout.config.codes_of(system))], len(layout.config.seeds)
            calls.append(Call("train", options, sizes, seeds))
        return calls

    def check_start(self, layout: LanguageModelLayout) -> None:
        _check_names(layout)

    def results(self, layout: LanguageModelLayout) -> list[Path]:
        files = [*map(layout.task_comparison, COMPARISON_KINDS)] if layout.config.tasks is not None else []
        return [layout.report, *files]

    def closing_tables(self, layout: LanguageModelLayout) -> list[Path]:
        tasks = [layout.task_comparison("txt")] if layout.config.tasks is not None else []
        return [*tasks, layout.vocabulary_table]

    def learned_from(self, layout: LanguageModelLayout, codes: str) -> list[Path]:
        return [layout.counts]

    def learning(self, layout: LanguageModelLayout, codes: str) -> dict[str, Any]:
        return {"counts": [layout.counts], "prune": layout.config.prepare.prune, **words_of(layout.config)}

    def binarised_from(self, layout: LanguageModelLayout, data: str, *parts: str) -> list[Path]:
        return [*(path for part in parts for path in layout.files(part)), layout.codes(data)]

    def binarise(
        self, layout: LanguageModelLayout, data: str, output: Path, parts: Sequence[str], workers: int
    ) -> None:
        from mt_scaffold.experiment.binarise.documents import binarise_documents

        texts = {part if part in TRAINED_ON else "test": layout.patterns(part) for part in parts}
        form, field = layout.format
        binarise_documents(
            output,
            layout.codes(data),
            **texts,
            format=form,
            field=field,
            padding_factor=layout.config.binarise.padding_factor,
            num_workers=workers,
            warnings=_preprocessed(layout, parts),
        )

    def trained_after(self, layout: LanguageModelLayout, run: Run) -> list[Path]:
        report = layout.baseline_report(run)
        return [] if report is None else [report]

    def options_for(
        self, config: LanguageModelConfig, run: Run, gpus: int, data: PathLike, baseline_report: PathLike | None
    ) -> dict[str, OptionValue]:
        if not run.system or not run.comparison:
            raise UsageError("language models need --system and --comparison; add them")
        return options_for_data(config, run.system, run.comparison, gpus, data, baseline_report)

    def start_of(self, layout: LanguageModelLayout, run: Run, gpus: int, processes: int | None = None) -> Start | None:
        data = layout.binarised_of(run.system)
        if not all(path.exists() for path in [data / DESCRIPTION, *self.trained_after(layout, run)]):
            return None
        options = option_arguments(self.training_options(layout, run, processes or gpus_in_all(1, gpus)))
        return start_with(data, layout.training(run), options, int(run.seed), gpus=gpus)

    def tokens_from(self, layout: LanguageModelLayout, system: str) -> list[Path]:
        return [layout.binarised_of(system)]

    def side_tokens(self, layout: LanguageModelLayout, system: str) -> dict[str, SideTokens]:
        folder = layout.binarised_of(system)
        entries = read_dictionary(folder / DICTIONARY)
        return {"decoder": SideTokens(entries, dict(entries), unknown=False)}

    def measure(self) -> Measure:
        from mt_scaffold.experiment.evaluation.measures import BitsPerByte

        return BitsPerByte()

    def compared(self, layout: LanguageModelLayout) -> list[Comparable]:
        return _compared(layout)

    def reports(self, layout: LanguageModelLayout) -> list[Path]:
        systems, tests = layout.config.systems, layout.config.test_sets
        folders = [layout.binarised_test_of(system, test) for system in systems for test in tests]
        return [*dict.fromkeys([*map(layout.binarised_of, systems), *folders])]

    def samples(self, layout: LanguageModelLayout) -> int:
        return layout.config.evaluate.bootstrap_samples

    def measured(self, layout: LanguageModelLayout) -> list[Path]:
        folders = dict.fromkeys(map(layout.binarised_of, layout.config.systems))
        return [*folders, *layout.every_run(layout.training_record)]

    def statistics(self, layout: LanguageModelLayout) -> None:
        from mt_scaffold.experiment.report.statistics import language_model_statistics

        language_model_statistics(layout)
