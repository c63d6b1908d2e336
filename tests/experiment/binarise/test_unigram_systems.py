"""Systems with a Unigram model: their configuration, their data folders, and sampling inside fairseq."""

import dataclasses
import importlib.util
import itertools
import json
from pathlib import Path

import pytest
from test_config import SMALL, load

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.segmentation import segmentation_in
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.tasks import codes as making_codes
from mt_scaffold.experiment.training.translation_options import training_options
from mt_scaffold.methods import Unigram

UNIGRAM = "algorithm: unigram"


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (f"{UNIGRAM}, dropout: 0.1", "systems.bpe.dropout: not possible with unigram; give sampling_alpha"),
        (
            f"{UNIGRAM}, dropout_target: 0.1",
            "systems.bpe.dropout_target: not possible with unigram; give sampling_alpha",
        ),
        (
            f"{UNIGRAM}, below: 5",
            "systems.bpe.below: unigram has no such setting; its settings are symbols, total_symbols",
        ),
        (f"{UNIGRAM}, refill: true", "systems.bpe.refill: unigram has no such setting"),
        (f"{UNIGRAM}, threshold: 0.9", "systems.bpe.threshold: unigram has no such setting"),
        (f"{UNIGRAM}, min_frequency: 5", "systems.bpe.min_frequency: unigram has no such setting"),
        (f"{UNIGRAM}, vocabulary_threshold: 5", "systems.bpe.vocabulary_threshold: not possible with unigram"),
        (f"{UNIGRAM}, glossaries: [USA]", "systems.bpe.glossaries: not possible with unigram"),
        (f"{UNIGRAM}, codes: a.codes", "systems.bpe.codes: give either an algorithm, which learns codes, or files"),
        (f"{UNIGRAM}, sampling_alpha: 0", "systems.bpe.sampling_alpha: the alpha of sampling must be above 0"),
        ("algorithm: bpe, sampling_alpha: 0.1", "systems.bpe.sampling_alpha: not possible with codes; give dropout"),
        ("codes: a.codes, sampling_alpha: 0.1", "systems.bpe.sampling_alpha: not possible with codes; give dropout"),
    ],
)
def test_an_impossible_setting_is_one_line_with_its_key(tmp_path: Path, system: str, message: str) -> None:
    """It is refused when the configuration is read, before anything runs."""
    with pytest.raises(UsageError) as error:
        load(tmp_path, SMALL.replace("algorithm: bpe", system))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_systems_share_the_model_that_is_the_same(tmp_path: Path) -> None:
    """With and without sampling they share one model and one dictionary; other sides or sizes have separate ones."""
    systems = f"{UNIGRAM}}}\n  drawn: {{{UNIGRAM}, sampling_alpha: 0.2}}\n  bpe: {{algorithm: bpe}}\n"
    systems += f"  sides: {{{UNIGRAM}, joint: false, symbols: 50, total_symbols: true"
    text = SMALL.replace("  bpe: {algorithm: bpe", f"  unigram: {{{systems}").replace(
        "symbols: 100", "symbols: 100\n  min_frequency: 5"
    )
    config = load(tmp_path, text)
    names = ["unigram-100", "unigram-100", "bpe-100-min5", "unigram-50-total.en+unigram-50-total.de"]
    assert [config.segmentation(name).name for name in ("unigram", "drawn", "bpe", "sides")] == names
    models = ["unigram-100", "unigram-50-total.en", "unigram-50-total.de"]
    assert sorted(making_codes.learned_codes(config)) == sorted([*models, "bpe-100-min5", "scaffold-100-min5"])
    made = making_codes.made_codes(config)
    assert made[models[0]].method == Unigram(symbols=100)
    assert made[models[1]].method == Unigram(symbols=50, total_symbols=True)
    drawn = training_options(config, "drawn")
    assert drawn["sampling-alpha"] == 0.2 and "sampling-alpha" not in training_options(config, "unigram")
    assert config.data_setting("drawn").name == "unigram-100.sampling" and names[-1] in config.data_settings
    layout = TranslationLayout(tmp_path, config)
    assert [path.name for path in layout.codes_of("sides")] == [f"{name}.model" for name in models[1:]]
    assert layout.codes("bpe-100-min5").suffix == ".codes"
    assert [segmentation_in(layout, name).kind.has_codes for name in names[1:3]] == [False, True]
    validating = dataclasses.replace(config, train=dataclasses.replace(config.train, validate_bleu=True))
    joined = {name: training_options(validating, name)["eval-bleu-remove-bpe"] for name in ("drawn", "bpe")}
    assert joined == {"drawn": "sentencepiece", "bpe": "subword_nmt"}


def test_without_sentencepiece_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first system that needs it is named, and the extra."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    making_codes.check_packages(load(tmp_path, SMALL))
    config = load(tmp_path, SMALL.replace("algorithm: bpe", UNIGRAM))
    with pytest.raises(MTScaffoldError, match=r"systems\.bpe: unigram needs .*\.\[unigram\]"):
        making_codes.check_packages(config)


# ---- inside fairseq

ALPHA, SEED, PAIRS = 0.1, 3, 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """{train,valid}.{en,de} (60 and 10 pairs), unigram.model, and the data folders ``words`` and ``ids``."""
    pytest.importorskip("sentencepiece", reason="needs the extra 'unigram'")
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
    from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
    from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
    from mt_scaffold.experiment.data.synthetic import sentence_pairs
    from mt_scaffold.methods import Unigram
    from mt_scaffold.methods.learn import learn

    place = tmp_path_factory.mktemp("unigram-systems")
    pairs = sentence_pairs(1)
    for name, number in {"train": PAIRS, "valid": 10}.items():
        chosen = list(itertools.islice(pairs, number))
        for side, language in enumerate(("en", "de")):
            (place / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in chosen), encoding="utf-8")
    learn(method=Unigram(60), outfile=place / "unigram.model", paths=[place / "train.en", place / "train.de"])
    segmentation = joint_segmentation(place / "unigram.model")
    binarise_words(place / "words", "en", "de", segmentation, place / "train", place / "valid")
    binarise(place / "ids", "en", "de", segmentation, place / "train", place / "valid", dictionaries=place / "words")
    return place


def test_a_data_folder_records_how_its_subwords_are_joined(folder: Path) -> None:
    """Both kinds do; the description of a folder with codes has no word_start."""
    from mt_scaffold.experiment.binarise.pairs_as_ids import read_binarised

    for kind in ("words", "ids"):
        binarised = read_binarised(folder / kind)
        assert binarised.word_start == "▁" and binarised.counts["train"]["de"].unknown == 0
    assert binarised.counts["valid"] == read_binarised(folder / "words").counts["valid"]
    without = dataclasses.replace(binarised, word_start=None)
    from mt_scaffold.experiment.runtime.results import to_json

    assert "word_start" not in json.loads(to_json(without))


def test_the_bytes_of_sentences_are_those_of_their_words(folder: Path) -> None:
    """For the loss per byte: one space before each word but the first, and a line end."""
    from fairseq.data import Dictionary, data_utils

    from mt_scaffold.experiment.fairseq_plugin.text_bytes import sentence_bytes

    dictionary = Dictionary.load(str(folder / "ids" / "dict.de.txt"))
    stored = data_utils.load_indexed_dataset(str(folder / "ids" / "train.en-de.de"), dictionary)
    lines = (folder / "train.de").read_bytes().splitlines(keepends=True)
    assert sentence_bytes(stored, dictionary, word_start="▁").tolist() == [len(line) for line in lines]


def common(folder: Path, save: Path, *options: str) -> list[str]:
    from test_fairseq_plugin import MODEL, ON_THE_FLY

    arguments = [str(folder / "words"), *MODEL, *ON_THE_FLY, "--sampling-alpha", str(ALPHA), "--max-tokens", "400"]
    return [*arguments, "--save-dir", str(save), "--max-epoch", "2", *options]


@pytest.mark.long
def test_a_training_reads_the_same_with_workers_and_after_resuming(folder: Path, tmp_path: Path) -> None:
    """Its ids depend only on seed, epoch, side and sentence number: they are those of one call of the encoder."""
    from fairseq_training import fairseq_train

    from mt_scaffold.experiment.binarise.dictionary import UNKNOWN_ID, read_ids
    from mt_scaffold.methods.unigram_segmenter import UnigramSegmenter
    from mt_scaffold.segment.draw import Draw

    steps = fairseq_train(common(folder, tmp_path / "a", "--no-save"))
    stop = len(steps) // 2 + len(steps) // 4
    before = fairseq_train(common(folder, tmp_path / "b", "--max-update", str(stop), "--num-workers", "2"))
    after = fairseq_train(common(folder, tmp_path / "b", "--num-workers", "1"))
    assert len(before) == stop and before + after == steps
    ids = read_ids(folder / "words" / "dict.en.txt")
    encoder = UnigramSegmenter(folder / "unigram.model").encoder(ids, UNKNOWN_ID)
    texts = [(folder / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "de")]
    seen, best = 0, 0
    for step in steps:
        epoch = 1 + seen // PAIRS
        for number, source, target in zip(step.ids, step.source, step.target, strict=True):
            for side, trained_on in enumerate((source, target)):
                line = texts[side][number]
                draw = Draw("sampling_alpha", ALPHA, 2 * SEED + side, epoch)
                drawn = encoder.ids_of([line], draw, [number])[0].tolist()
                assert [token for token in trained_on if token != 1] == [*drawn, 2]
                best += drawn == encoder.ids_of([line])[0].tolist()
            seen += 1
    assert seen == 2 * PAIRS and best < PAIRS


def test_alpha_is_for_unigram_models_and_dropout_is_not(folder: Path, tmp_path: Path) -> None:
    """Without an alpha the best segmentation is trained on; an explicit dropout is refused, not ignored."""
    from fairseq import tasks
    from fairseq_training import fairseq_config
    from test_fairseq_plugin import MODEL, ON_THE_FLY

    def alphas(*options: str) -> list[float]:
        config = fairseq_config([str(folder / "words"), *MODEL, *ON_THE_FLY, *options])
        task = tasks.setup_task(config.task)
        return [task.draw_of(side).amount for side in (0, 1)]

    assert alphas() == [0, 0] and alphas("--sampling-alpha", "0.3") == [0.3, 0.3]
    with pytest.raises(UsageError, match=r"--sampling-alpha: .* above 0"):
        alphas("--sampling-alpha", "-1")
    for option in ("--bpe-dropout", "--bpe-dropout-src"):
        with pytest.raises(UsageError, match=rf"{option}: .*Unigram"):
            alphas(option, "0.2")
