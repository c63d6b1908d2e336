"""The folder of an experiment: overrides on the command line, paths, and the changes that repeat a step."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.layout import Run, requested_experiment
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.training.translation_options import training_options
from mt_scaffold.experiment.workflow.common_steps import check_fairseq_options, closing_words, gpus_per_node, one_of
from mt_scaffold.experiment.workflow.folder import open_folder
from mt_scaffold.experiment.workflow.staleness import depends_on
from mt_scaffold.segment.draw import training_options as resampling_options

DEMO = ROOT / "configs" / "demo.yaml"
WMT14 = ROOT / "configs" / "wmt14_en_de.yaml"


def plan(*configurations: Path, **settings: object) -> TranslationLayout:
    folder, config, *_ = requested_experiment(configurations or (DEMO,), settings)
    return TranslationLayout.of(folder, config)


def test_settings_replace_values_of_the_file() -> None:
    """Settings come as Snakemake passes them: numbers as text within braces, and the short names."""
    settings = {"output": "elsewhere", "cache": "kept", "sample": "7", "train": {"options": {"lr": "0.1"}}}
    folder, config, _, cache = requested_experiment([DEMO], settings)
    layout = TranslationLayout.of(folder, config)
    assert (layout.folder, cache) == (Path("elsewhere"), Path("kept"))
    assert (layout.config.data.sample, layout.config.train.options["lr"]) == (7, 0.1)
    # Everything else is unchanged.
    assert layout.config.data.synthetic == plan().config.data.synthetic
    assert layout.config.train.options["arch"] == "transformer"
    assert plan().folder == Path("experiments/demo")
    assert plan(WMT14, batch="small").config.train.batch == "small"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sampel": 3}, "demo.yaml, as changed on the command line: sampel: unknown key"),
        ({"sample": "many"}, "on the command line: data.sample: must be a whole number, not 'many'"),
        ({"codes": {"symbols": "0"}}, "codes.symbols: must be 1 or more, not 0"),
        ({"data": "5", "sample": 3}, "data: must be 'key: value' lines, not 5"),
        ({"data": None, "sample": 3}, "data: must be 'key: value' lines, not nothing"),
        ({"description": "a: b: c"}, "--config: 'a: b: c' is not valid YAML"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: dict[str, object], says: str) -> None:
    """``--config`` is checked like the file, and the error says that it was the setting."""
    with pytest.raises(UsageError, match=re.escape(says)):
        plan(**settings)


@pytest.mark.parametrize("name", ["no", "null", "0x10", "1e3", "runs #2", "a: b", "[x]", '"x"', "*x", "%x", "o😀"])
def test_a_folder_has_the_name_that_was_given(name: str) -> None:
    """A path is not YAML: ``--output no`` is not the folder ``False``."""
    assert requested_experiment([DEMO], {"output": name}).folder == Path(name)
    assert requested_experiment([DEMO], {"cache": name}).cache == Path(name)


def test_braces_in_paths_are_refused(tmp_path: Path) -> None:
    """Snakemake would treat them as wildcards, and fail with its own error."""
    with pytest.raises(UsageError, match=r"runs/\{x\}: Snakemake would treat the braces .* as wildcards; rename it"):
        requested_experiment([DEMO], {"output": "runs/{x}"})
    systems = {"systems": {"given": {"codes": "codes{1}.bpe"}}}
    with pytest.raises(UsageError, match=r"codes\{1\}\.bpe: Snakemake would treat the braces"):
        requested_experiment([DEMO], systems)


def test_one_configuration_is_one_experiment() -> None:
    """Snakemake would merge two into one that nobody wrote."""
    with pytest.raises(UsageError, match="give one experiment: --configfile"):
        requested_experiment([DEMO, WMT14], {})


def test_no_two_files_of_an_experiment_have_one_path() -> None:
    """Each method returns a different path, for Snakemake's wildcards as for names."""
    layout = plan(WMT14)
    part, language, test, name, run = "{part}", "{lang}", "{test}", "{segmentation}", layout.wildcards
    assert run == Run("{system}", "{seed}")
    paths = [
        *(layout.raw(part, language), layout.words(part, language), layout.uncleaned(part, language)),
        layout.codes("{codes}"),
        *(layout.vocabulary(name, language), layout.dictionaries(name), layout.dictionary(name, language)),
        layout.binarised(name),
        layout.binarised_test(name, test),
        *(layout.training_record(run), layout.averaged(run)),
        *(layout.translation(run, test, form) for form in ("", "words", "subwords")),
        *(layout.translated_source(run, test), layout.scores(run, test)),
        *(layout.comparison(kind) for kind in ("txt", "json")),
        *(layout.config_file, layout.data_record, layout.statistics, layout.figures, layout.report),
        *(layout.log("a"), layout.step_record("a")),
    ]
    assert len(set(paths)) == len(paths)
    assert all(path.is_relative_to("experiments/wmt14_en_de") for path in paths)
    assert str(layout.words(part, language)) == f"{layout.words_prefix(part)}.{language}"
    assert layout.codes_of("scaffold_dropout") == (layout.codes("scaffold-32000"),) * 2
    assert len(layout.every_run(layout.scores, ["a", "b"])) == 2 * 4 * 3
    assert len(layout.every_run(layout.averaged)) == 12


@pytest.mark.parametrize(
    ("step", "settings"),
    [
        ("get-data", {"sample": 5}),
        ("train", {"train": {"options": {"lr": 0.5}}}),
        ("train", {"systems": {"bpe": {"train": {"options": {"lr": 0.5}}}}}),
        ("translate", {"translate": {"options": {"beam": 9}}}),
        ("score", {"score": {"metrics": ["bleu", "tokenised_bleu_split", "ter"]}}),
        ("compare", {"compare_with": []}),
        ("compare", {"systems": {"scaffold_dropout": {"baseline": "scaffold"}}}),
        ("statistics", {"seeds": [3]}),
    ],
)
def test_a_step_is_out_of_date_when_its_own_section_changes(step: str, settings: dict[str, object]) -> None:
    """No other step is repeated: a new beam size must not cause a new training."""
    names: dict[str, list[Run]] = {step: [] for step in ("get-data", "translate", "score", "compare", "statistics")}
    names["train"] = [Run("bpe", 1)]
    before, after = plan(WMT14), plan(WMT14, **settings)
    changed = [
        each for each, runs in names.items() if depends_on(before, each, *runs) != depends_on(after, each, *runs)
    ]
    assert changed == [step]


def test_a_new_test_set_is_no_reason_to_repeat_anything() -> None:
    """Neither the training data nor another test set depends on a test set."""
    before = plan(WMT14)
    test = {"sacrebleu": "wmt15"}
    after = plan(WMT14, data={"archives": {"tests": {"newstest2015": test}}})
    assert after.config.test_sets == ["newstest2014", "newstest2015"]
    for step, *names in (("get-data",), ("get-data", "newstest2014"), ("train", Run("bpe", 1)), ("translate",)):
        assert depends_on(before, str(step), *names) == depends_on(after, str(step), *names)


def test_what_changes_no_training_repeats_none() -> None:
    """Such as the estimate of its length, and batches that are not chosen."""
    small = {"batches": {"small": {"options": {"lr": 0.5}}}}
    before = plan(WMT14)
    for train in ({"expected": {"pairs": 4600000}}, small):
        assert depends_on(before, "train", Run("bpe", 1)) == depends_on(
            plan(WMT14, train=train), "train", Run("bpe", 1)
        )
    before, after = plan(WMT14, batch="small"), plan(WMT14, batch="small", train=small)
    assert depends_on(before, "train", Run("bpe", 1)) != depends_on(after, "train", Run("bpe", 1))


def test_a_training_without_an_end_is_refused() -> None:
    """It would run until somebody notices."""
    for options in ({"max-update": 0}, {"max-update": 0, "stop-time-hours": False}):
        endless = plan(systems={"scaffold": {"train": {"options": options}}})
        with pytest.raises(UsageError, match=r"systems\.scaffold: its training would never end; give train\.stop"):
            check_fairseq_options(endless)


@pytest.mark.parametrize("configuration", [DEMO, WMT14])
def test_a_sample_is_another_text(configuration: Path) -> None:
    """After a rehearsal, the whole text is fetched, and searched for sentences of the test sets again."""
    before, after = plan(configuration, sample="7"), plan(configuration)
    for names in ([], before.config.test_sets[:1]):
        assert depends_on(before, "get-data", *names) != depends_on(after, "get-data", *names)


def test_an_opened_experiment_is_locked_and_read_back(tmp_path: Path) -> None:
    """Two runs must not write into one folder; the steps see the configuration that was resolved."""
    layout = plan(output=str(tmp_path / "demo"))
    with open_folder(layout), pytest.raises(MTScaffoldError, match="demo: another run is working in this folder"):
        open_folder(layout)
    open_folder(layout).close()
    assert TranslationLayout.read(layout.folder) == layout
    shown = [*layout.config.systems]
    assert closing_words(layout, shown) == f"The results so far are in {layout.folder}."
    layout.report.write_text("")
    assert closing_words(layout, shown).startswith(f"All results are in {layout.folder}")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """The path is named, without a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MTScaffoldError, match=r"file/demo: Not a directory"):
        open_folder(plan(output=str(tmp_path / "file" / "demo")))


def test_a_folder_of_no_experiment_is_reported(tmp_path: Path) -> None:
    """``report`` and ``statistics`` must not answer a wrong path with a file name that the user never gave."""
    with pytest.raises(MTScaffoldError, match=r"not the folder of an experiment \(no config\.yaml\)"):
        TranslationLayout.read(tmp_path)


def test_options_of_the_steps_follow_the_configuration() -> None:
    """Each key of the configuration reaches its command."""
    layout = plan(WMT14.with_stem("wmt14_en_de_gehring"))
    config = layout.config
    bpe, dropout = config.systems["bpe"], config.systems["bpe_dropout"]
    assert resampling_options(bpe.resamplings) == {}
    assert resampling_options(dropout.resamplings) == {"bpe-dropout": 0.1}
    assert training_options(config, "bpe_dropout")["bpe-dropout"] == 0.1
    source = dataclasses.replace(bpe, dropout_source=0.2)
    assert resampling_options(source.resamplings) == {"bpe-dropout-src": 0.2, "bpe-dropout-tgt": 0.0}
    assert [system.resamples for system in (bpe, dropout, source)] == [False, True, True]
    # A system that resamples has its own dictionary and data, and does not affect those of others.
    plain, resampled = (
        dataclasses.replace(layout, config=dataclasses.replace(config, systems={"bpe": system}, baseline="bpe"))
        for system in (bpe, dropout)
    )
    assert plain.data_of("bpe") == plain.segmentation_of("bpe") == resampled.segmentation_of("bpe")
    assert depends_on(plain, "dictionary") == depends_on(resampled, "dictionary")
    assert depends_on(plain, "tokenise", "train") == depends_on(resampled, "tokenise", "train")
    assert depends_on(layout, "tokenise", "train") != depends_on(layout, "tokenise", "newstest2014")
    assert resampled.binarised_of("bpe").name == f"{plain.data_of('bpe')}.dropout"
    assert gpus_per_node(16, 2) == 8
    with pytest.raises(UsageError, match="3 GPUs cannot be shared by 2 nodes"):
        gpus_per_node(3, 2)
    assert re.fullmatch(one_of(["a+b"]), "a+b") and not re.fullmatch(one_of([]), "")
