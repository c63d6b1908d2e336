"""Translation: from raw parallel text to a comparison of the scores of the systems' translations.

A new step needs a function of the layout here, a line in ``steps`` and one in ``depends``, and a rule in
``workflow/rules/translation.smk``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import make_dictionaries, read_dictionary, read_ids
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION, Binarised, binarise
from mt_scaffold.experiment.binarise.segmentation import segmentation_in
from mt_scaffold.experiment.configuration import Config, Primary, Published
from mt_scaffold.experiment.configuration.data import DATA_KINDS, SIDES
from mt_scaffold.experiment.configuration.layout import TRAINED_ON, Run
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.preprocessed import refuse_preprocessed
from mt_scaffold.experiment.data.record import gather_records
from mt_scaffold.experiment.data.tokenise import tokenise
from mt_scaffold.experiment.report.trained_tokens import COLUMNS, SideTokens, count_drawn
from mt_scaffold.experiment.runtime.fairseq import gpus_in_all, number_of, option_arguments
from mt_scaffold.experiment.runtime.fairseq_options import Call
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.experiment.tasks.codes import check_codes, check_packages, dictionary_size, learned_from
from mt_scaffold.experiment.tasks.task import (
    Cache,
    DataName,
    Gpus,
    Language,
    Part,
    SegmentationName,
    Step,
    Task,
    TestSet,
    Workers,
    training_section,
)
from mt_scaffold.experiment.tasks.training_text import TrainingText, parallel_text
from mt_scaffold.experiment.training.start import Start
from mt_scaffold.experiment.training.train import start_with
from mt_scaffold.experiment.training.translation_options import OWN_TASKS, training_options
from mt_scaffold.segment.draw import Draw
from mt_scaffold.tables import decimal

if TYPE_CHECKING:
    from mt_scaffold.experiment.evaluation.measures import Measure

# The options that end a training: those with a whole number above 0, and those with any value.
_ENDING_NUMBERS = (*STOP_OPTIONS.values(), "patience")
_ENDING_VALUES = {"stop-time-hours", "stop-min-lr"}


# -- raw text → words


def get_data(layout: TranslationLayout, test_set: TestSet = "", cache: Cache = "") -> None:
    """Fetch or generate the raw text of train and valid, or of a test set."""
    from mt_scaffold.experiment.data.parallel import get_data

    parts = [test_set] if test_set else list(TRAINED_ON)
    record = get_data(layout.config, layout.folder / "raw", cache or None, parts)
    write_result(layout.step_record(f"get-data-{test_set}" if test_set else "get-data"), record)


def tokenise_part(layout: TranslationLayout, part: Part, language: Language, num_workers: Workers = 1) -> None:
    """Tokenise the raw text of one part in one language."""
    output = layout.uncleaned(part, language) if part in TRAINED_ON else layout.words(part, language)
    choices = layout.config.tokenise_for(part, SIDES[layout.languages.index(language)])
    raw, record = layout.raw(part, language), layout.step_record(f"tokenise-{part}.{language}")
    refuse_preprocessed(raw, choices)
    tokenise(raw, output, language=language, choices=choices, num_workers=num_workers, report=record)


def clean_part(layout: TranslationLayout, part: Part) -> None:
    """Drop pairs that are too long, empty or of unequal length; separate a held-out validation set."""
    from mt_scaffold.experiment.data.clean import HoldOut, clean

    data, hold_out = layout.config.data, None
    if data.valid_every is not None:
        valid = [layout.words("valid", language) for language in layout.languages]
        hold_out = HoldOut(data.valid_every, valid[0], valid[1], before_cleaning=data.valid_cut == "before_cleaning")
    limits, (source, target) = layout.config.clean, layout.languages
    record = clean(
        layout.uncleaned(part, source),
        layout.uncleaned(part, target),
        layout.words(part, source),
        layout.words(part, target),
        limits.min_tokens,
        limits.max_tokens,
        limits.max_ratio,
        hold_out,
    )
    write_result(layout.step_record(f"clean-{part}"), record)


def raw_parts(config: Config) -> list[str]:
    """Return the parts that have raw text, without ``valid`` if cleaning takes it from the training words."""
    trained_on = [part for part in TRAINED_ON if part == "train" or config.data.valid_every is None]
    return [*trained_on, *config.test_sets]


def held_out(layout: TranslationLayout) -> list[Path]:
    """Return the words of the validation set if cleaning takes it from the training words, else an empty list."""
    if layout.config.data.valid_every is None:
        return []
    return [layout.words("valid", language) for language in layout.languages]


def report_data(layout: TranslationLayout) -> None:
    """Gather the records of every data step into data-report.json."""
    record = gather_records(
        [layout.step_record(name) for name in _fetched(layout)],
        {name: layout.step_record(f"tokenise-{name}") for name in _tokenised(layout)},
        {part: layout.step_record(f"clean-{part}") for part in _cleaned(layout)},
    )
    write_result(layout.data_record, record)


def data_records(layout: TranslationLayout) -> list[Path]:
    """Return the records that ``report_data`` gathers."""
    names = [*_fetched(layout), *(f"tokenise-{name}" for name in _tokenised(layout))]
    return [layout.step_record(name) for name in [*names, *(f"clean-{part}" for part in _cleaned(layout))]]


def _tokenised(layout: TranslationLayout) -> list[str]:
    return [f"{part}.{language}" for part in raw_parts(layout.config) for language in layout.languages]


def _cleaned(layout: TranslationLayout) -> list[str]:
    return [part for part in raw_parts(layout.config) if part in TRAINED_ON]


def _fetched(layout: TranslationLayout) -> list[str]:
    return ["get-data", *(f"get-data-{test}" for test in layout.config.test_sets)]


# -- words and codes → dictionaries


def codes_of_side(layout: TranslationLayout, segmentation: str, language: str) -> Path:
    """Return the codes that a segmentation uses for one language."""
    setting = layout.config.segmentations[segmentation]
    return layout.codes((setting.source if language == layout.source else setting.target).name)


def segmented_with(layout: TranslationLayout, segmentation: str, *languages: str) -> list[Path]:
    """Return the files that a segmentation needs for these languages: codes, and vocabularies for a threshold."""
    files = [codes_of_side(layout, segmentation, language) for language in languages]
    if layout.config.segmentations[segmentation].vocabulary_threshold is not None:
        files += [layout.vocabulary(segmentation, language) for language in languages]
    return list(dict.fromkeys(files))


def vocabulary(
    layout: TranslationLayout, segmentation: SegmentationName, language: Language, num_workers: Workers = 1
) -> None:
    """Count the subwords of the training text in one language, for a vocabulary threshold."""
    from mt_scaffold.segment.apply import BPE

    counts = count_words(layout.words("train", language), num_workers=num_workers)
    subwords = BPE(codes_of_side(layout, segmentation, language)).count_subwords(counts)
    with open_output(layout.vocabulary(segmentation, language)) as stream:
        stream.write(subwords.format_vocabulary())


def dictionary(layout: TranslationLayout, data: DataName, num_workers: Workers = 1) -> None:
    """Make the dictionaries of the systems with the same data."""
    make_dictionaries(
        layout.words_prefix("train"),
        layout.dictionaries(data),
        *layout.languages,
        segmentation_in(layout, layout.segmentation_behind(data)),
        layout.config.binarise,
        layout.config.resamplings_of(data),
        num_workers,
    )


# -- models → translations → scores → report


def translate(layout: TranslationLayout, run: Run, test_set: TestSet, gpus: Gpus = 0) -> None:
    """Translate a test set with the averaged model."""
    from mt_scaffold.experiment.inference.translate import translate

    translate(
        layout.binarised_test_of(run.system, test_set),
        test_set,
        layout.averaged(run),
        layout.training(run, "translations"),
        option_arguments(layout.config.translate.options),
        seed=int(run.seed),
        source_words=layout.words(test_set, layout.source),
        gpus=gpus,
    )


def score(layout: TranslationLayout, run: Run, test_set: TestSet) -> None:
    """Score the translation of a test set."""
    from mt_scaffold.experiment.evaluation.external import computed
    from mt_scaffold.experiment.evaluation.metrics import METRICS
    from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score

    texts = Texts(
        layout.translation(run, test_set),
        layout.references(test_set),
        layout.translation(run, test_set, "words"),
        [layout.words(test_set, layout.target)],
        layout.raw(test_set, layout.source),
    )
    origin = Origin(run.system, test_set, int(run.seed))
    external, folder = layout.config.score.external, layout.training(run, "translations")
    files = {"source": layout.raw(test_set, layout.source), "hypothesis": layout.translation(run, test_set)}
    settings = Scoring(
        segments=[computed(name, each, files, texts.reference, folder) for name, each in external.items()],
        metric=[*external],
        signature=[each.signature for each in external.values()],
        higher_is_better=["yes" if each.higher_is_better else "no" for each in external.values()],
    )
    scores = score(texts, layout.scores(run, test_set), settings, origin, layout.config)
    for name, metric in scores.metrics.items():
        print(f"{name}: {decimal(metric.score, METRICS[name].digits)}  {metric.signature}")


def losses(layout: TranslationLayout, run: Run, test_set: TestSet, gpus: Gpus = 0) -> None:
    """Split the loss of a model on the references of a test set by the frequency of words and subwords."""
    from mt_scaffold.experiment.evaluation.losses.references import reference_losses

    split = reference_losses(
        layout.averaged(run),
        layout.binarised_test_of(run.system, test_set),
        test_set,
        layout.words(test_set, layout.target),
        layout.raw(test_set, layout.target),
        layout.words("train", layout.target),
        layout.losses(run, test_set),
        system=run.system,
        seed=int(run.seed),
        synthetic=layout.config.synthetic,
        gpus=gpus,
    )
    found = f"{split.bits / split.bytes:.4f}" if split.bytes else "none, as no sentence is short enough for the model"
    print(f"bits per byte of the references: {found}")


# -- what each step depends on in the configuration


def _raw_settings(layout: TranslationLayout, test: str = "") -> list[object]:
    """Return the settings on which the raw training data depends, or those of a test set.

    These are all but the other test sets: a test set's report also counts its sentences in the training data.
    """
    data, languages = (layout.config.to_dict()[key] for key in ("data", "languages"))
    kind = next(key for key in DATA_KINDS if key in data)
    # All synthetic text comes from one random sequence.
    if kind != "synthetic":
        section = {key: value for key, value in data[kind].items() if key != "tests"}
        data = {**data, kind: section | ({"tests": {test: data[kind]["tests"][test]}} if test else {})}
    return [data, languages]


def _training_settings(layout: TranslationLayout, run: Run) -> list[object]:
    whole, system = layout.config.to_dict(), layout.config.systems[run.system]
    resampling = [{"name": each.kind, "amount": each.amount} for each in system.resamplings]
    return [training_section(whole["train"]), whole["systems"][run.system].get("train"), resampling]


def _score_settings(layout: TranslationLayout, *tests: str) -> list[object]:
    config = layout.config
    words = [config.tokenise_for(test, side).none for test in tests or config.test_sets for side in SIDES]
    # Earlier versions had no choice of a tokeniser: the default is left out, so that their scores stay up to date.
    tokeniser = [] if config.bleu_tokeniser == "13a" else [config.bleu_tokeniser]
    external = [whole["score"]["external"]] if (whole := config.to_dict())["score"]["external"] else []
    # The second was COMET's checkpoints.
    return [config.score.metrics, None, words, *tokeniser, *external]


def _comparison_settings(layout: TranslationLayout) -> list[object]:
    config, whole = layout.config, layout.config.to_dict()
    baselines = [config.baseline_of(system) for system in config.systems]
    # Earlier versions had a key between them: its place is kept, so that their comparisons stay up to date.
    shown = [whole.get("compare_with"), None, layout.title]
    # The default is left out, so that comparisons of earlier versions stay up to date.
    primary = [] if config.score.primary == Primary() else [whole["score"]["primary"]]
    return [shown, baselines, config.score.bootstrap_samples, *primary]


class Translation(Task[TranslationLayout]):
    """Translation between two languages, scored by metrics on its translations."""

    layout = TranslationLayout
    rules = "translation.smk"
    steps: ClassVar[Mapping[str, Step]] = {
        "get-data": get_data,
        "tokenise": tokenise_part,
        "clean": clean_part,
        "report-data": report_data,
        "vocabulary": vocabulary,
        "dictionary": dictionary,
        "translate": translate,
        "score": score,
        "losses": losses,
    }
    depends: ClassVar[Mapping[str, Callable[..., object]]] = {
        "get-data": _raw_settings,
        "tokenise": lambda layout, part: [dataclasses.asdict(layout.config.tokenise_for(part, each)) for each in SIDES],
        "clean": lambda layout: [
            layout.config.to_dict()["clean"],
            layout.config.data.valid_every,
            layout.config.data.valid_cut,
        ],
        "dictionary": lambda layout: layout.config.to_dict()["binarise"],
        "train": _training_settings,
        "average": lambda layout: layout.config.to_dict()["average"],
        "tokens": lambda layout: COLUMNS,
        # Earlier versions had a choice of an engine: it is kept, so that their translations stay up to date.
        "translate": lambda layout: {"engine": "fairseq", **layout.config.to_dict()["translate"]},
        "score": _score_settings,
        "compare": _comparison_settings,
        "statistics": lambda layout: [
            layout.config.seeds,
            {system: layout.segmentation_of(system) for system in layout.config.systems},
        ],
    }

    def check_early(self, layout: TranslationLayout) -> None:
        check_codes(layout.config)
        check_packages(layout.config)

    def training_text(self, layout: TranslationLayout) -> TrainingText:
        return parallel_text(layout.config)

    def fairseq_calls(self, layout: TranslationLayout) -> list[Call]:
        config = layout.config
        calls = [Call("generate", {"task": OWN_TASKS[0]} | config.translate.options)]
        for name, system in config.systems.items():
            options = {"task": OWN_TASKS[system.resamples]} | training_options(config, name)
            sizes = [dictionary_size(codes) for codes in config.segmentation(name).codes]
            sizes = [sum(sizes)] if config.binarise.joined_dictionary else [sizes[0], sizes[-1]]
            calls.append(Call("train", options, sizes, len(config.seeds)))
        return calls

    def check_ends(self, layout: TranslationLayout) -> None:
        for name in layout.config.systems:
            options = training_options(layout.config, name)
            ends = any(number_of(options.get(option)) > 0 for option in _ENDING_NUMBERS)
            if not ends and options.keys().isdisjoint(_ENDING_VALUES):
                raise UsageError(
                    f"systems.{name}: its training would never end; give train.stop (updates, epochs, ...)"
                )

    def results(self, layout: TranslationLayout) -> list[Path]:
        return [layout.data_record, layout.report, layout.compared_with_losses]

    def learned_from(self, layout: TranslationLayout, codes: str) -> list[Path]:
        return learned_from(layout, codes)

    def learning(self, layout: TranslationLayout, codes: str) -> dict[str, Any]:
        return {"documents": Documents(learned_from(layout, codes))}

    def binarised_from(self, layout: TranslationLayout, data: str, *parts: str) -> list[Path]:
        words = [layout.words(part, language) for part in parts for language in layout.languages]
        dictionaries = [layout.dictionary(data, language) for language in layout.languages]
        return [*words, *segmented_with(layout, layout.segmentation_behind(data), *layout.languages), *dictionaries]

    def binarise(self, layout: TranslationLayout, data: str, output: Path, parts: Sequence[str], workers: int) -> None:
        from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words

        train, resampling = "train" in parts, layout.config.resamplings_of(data)
        make: Callable[..., object] = binarise
        if train and any(resampling):
            make = functools.partial(binarise_words, resamplings=resampling)
        make(
            output,
            *layout.languages,
            segmentation_in(layout, layout.segmentation_behind(data)),
            layout.words_prefix("train") if train else None,
            layout.words_prefix("valid") if "valid" in parts else None,
            [layout.words_prefix(part) for part in parts if part not in TRAINED_ON],
            layout.dictionaries(data),
            num_workers=workers,
        )

    def options_for(
        self, config: Config, run: Run, gpus: int, data: PathLike, baseline_report: PathLike | None
    ) -> dict[str, OptionValue]:
        if run.comparison or baseline_report is not None:
            raise UsageError("translation has no comparisons; remove --comparison")
        return training_options(config, run.system or None, gpus)

    def start_of(self, layout: TranslationLayout, run: Run, gpus: int, processes: int | None = None) -> Start | None:
        data, expected = layout.binarised_of(run.system), None
        if not (data / DESCRIPTION).exists():
            storage = "words" if layout.resamples(run.system) else "ids"
            expected = Binarised(layout.source, layout.target, {"train": 0}, {}, storage, {}, "")
        options = option_arguments(self.training_options(layout, run, processes or gpus_in_all(1, gpus)))
        return start_with(data, layout.training(run), options, int(run.seed), gpus=gpus, expected=expected)

    def generate_arguments(self, layout: TranslationLayout, run: Run) -> list[list[str]]:
        from mt_scaffold.experiment.inference.translate import generate_arguments

        found, options = [], option_arguments(layout.config.translate.options)
        for test in layout.config.test_sets:
            binarised = Binarised(layout.source, layout.target, {test: 0}, {}, "ids", {}, "")
            data, model = layout.binarised_test_of(run.system, test), layout.averaged(run)
            results = layout.training(run, "translations")
            found.append(generate_arguments(data, binarised, test, model, results, options, int(run.seed)))
        return found

    def tokens_from(self, layout: TranslationLayout, system: str) -> list[Path]:
        return self.binarised_from(layout, layout.data_of(system), "train")

    def side_tokens(self, layout: TranslationLayout, system: str) -> dict[str, SideTokens]:
        data = layout.data_of(system)
        segmenters = segmentation_in(layout, layout.segmentation_behind(data)).segmenters()
        resamplings = layout.config.systems[system].resamplings
        found = {}
        for number, (side, language, segmenter, draw) in enumerate(
            zip(("encoder", "decoder"), layout.languages, segmenters, resamplings, strict=True)
        ):
            words, dictionary = layout.words("train", language), layout.dictionary(data, language)
            counts: Mapping[str, float]
            if draw:
                # A seed for each side, so that a word on both is segmented independently.
                seeded = Draw(draw.kind, draw.amount, seed=number)
                counts = count_drawn(words, segmenter, read_ids(dictionary), seeded)
            else:
                counts = dict(segmenter.count_subwords(count_words(words)).items())
            found[side] = SideTokens(read_dictionary(dictionary), counts, bool(draw))
        return found

    def measure(self) -> Measure:
        from mt_scaffold.experiment.evaluation.measures import TranslationScores

        return TranslationScores()

    def samples(self, layout: TranslationLayout) -> int:
        return layout.config.score.bootstrap_samples

    def primary(self, layout: TranslationLayout) -> Primary:
        return layout.config.score.primary

    def reports(self, layout: TranslationLayout) -> list[Path]:
        config = layout.config
        tests = [layout.binarised_test_of(system, test) for system in config.systems for test in config.test_sets]
        return [layout.data_record, *dict.fromkeys(tests)]

    def published(self, layout: TranslationLayout) -> Sequence[Published]:
        return layout.config.compare_with

    def measured(self, layout: TranslationLayout) -> list[Path]:
        config, seed = layout.config, layout.config.seeds[0]
        return [
            *(layout.words("train", language) for language in layout.languages),
            *map(layout.codes, config.all_codes),
            *layout.every_run(layout.training_record),
            *(layout.averaged(Run(system, seed)) for system in config.systems),
            *(layout.dictionary(name, layout.source) for name in config.data_settings),
        ]

    def statistics(self, layout: TranslationLayout) -> None:
        from mt_scaffold.experiment.report.statistics import statistics

        statistics(layout)
