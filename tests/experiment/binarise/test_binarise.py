"""Words and codes → a fairseq data folder."""

import shutil
from pathlib import Path

import pytest
from fork_server import ForkServer

from mt_scaffold.corpus.count import count_words
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import (
    NO_RESAMPLING,
    format_dictionary,
    make_dictionaries,
    read_dictionary,
)
from mt_scaffold.experiment.binarise.pairs_as_ids import binarise, read_binarised
from mt_scaffold.experiment.binarise.segmentation import Segmentation, joint_segmentation
from mt_scaffold.experiment.configuration.data import Limits
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.methods.learn import learn_bpe
from mt_scaffold.segment.apply import apply_bpe
from mt_scaffold.segment.draw import NO_DRAW, Draw
from mt_scaffold.vocabulary import get_vocab

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

DROPOUT = Draw("dropout", 0.1)


def make(words: Path, output: Path, tests: tuple[Path, ...] = (), languages: tuple[str, str] = ("en", "de")) -> None:
    """Binarise the tiny text, or a changed copy of it."""
    codes = words / "codes"
    binarise(output, *languages, joint_segmentation(codes), words / "train", words / "valid", tests)


def preprocess(programs: ForkServer, folder: Path, words: Path, segmentation: Segmentation, *options: str) -> Path:
    """Return the data folder that fairseq-preprocess makes of the text as segmented by apply-bpe."""
    for subset in ("train", "valid"):
        for side, language in enumerate(("en", "de")):
            vocabulary = segmentation.vocabularies[side] if segmentation.vocabularies else None
            apply_bpe(
                segmentation.codes[side],
                words / f"{subset}.{language}",
                folder / f"{subset}.{language}",
                vocabulary=vocabulary,
                vocabulary_threshold=segmentation.vocabulary_threshold,
                glossaries=segmentation.glossaries or None,
            )
    command = ["-m", "fairseq_cli.preprocess", "--source-lang", "en", "--target-lang", "de", *options]
    command += ["--trainpref", str(folder / "train"), "--validpref", str(folder / "valid")]
    process = programs.start([*command, "--destdir", str(folder / "fairseq")], folder, folder / "log")
    assert programs.wait(process) == 0, (folder / "log").read_text()
    return folder / "fairseq"


def assert_same_files(ours: Path, theirs: Path) -> None:
    names = sorted(path.name for path in theirs.iterdir() if path.suffix in (".bin", ".idx", ".txt"))
    assert len(names) == 10
    for name in names:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 sentence pairs with an empty line, rare words, doubled spaces, and no line end at their end; codes."""
    folder = tmp_path_factory.mktemp("text")
    pairs = sentence_pairs(3)
    for name, number in {"train": 2000, "valid": 50}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, language in enumerate(("en", "de")):
            lines = [pair[side] for pair in chosen] + ["", "zebra  🙂 x", f"only{language} last"]
            (folder / f"{name}.{language}").write_text("\n".join(lines), encoding="utf-8")
    learn_bpe(
        paths=[folder / "train.en", folder / "train.de"], outfile=folder / "codes", num_symbols=700, algorithm="bpe"
    )
    learn_bpe(folder / "train.de", folder / "codes.de", num_symbols=200, algorithm="bpe")
    return folder


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        (Limits(), "--joined-dictionary"),
        (
            Limits(nwordssrc=128, nwordstgt=99, padding_factor=1),
            "--joined-dictionary --nwordssrc 128 --padding-factor 1",
        ),
        (Limits(thresholdsrc=9), "--joined-dictionary --thresholdsrc 9"),
        (
            Limits(joined_dictionary=False, nwordssrc=77, thresholdtgt=4, padding_factor=64),
            "--nwordssrc 77 --thresholdtgt 4 --padding-factor 64",
        ),
    ],
)
def test_the_folder_is_that_of_fairseq_preprocess(
    fairseq_programs: ForkServer, text: Path, tmp_path: Path, limits: Limits, options: str
) -> None:
    """Byte for byte: a model trained on either is the same, and published dictionaries can be reproduced."""
    segmentation = joint_segmentation(text / "codes")
    ours = tmp_path / "ours"
    binarised = binarise(ours, "en", "de", segmentation, text / "train", text / "valid", limits=limits, num_workers=2)
    theirs = preprocess(fairseq_programs, tmp_path, text, segmentation, *options.split(), "--workers", "2")
    assert_same_files(ours, theirs)
    assert (binarised.counts["train"]["en"].unknown > 0) == (limits.nwordssrc > 0 or limits.thresholdsrc > 0)


def test_codes_vocabulary_and_glossaries_of_each_side_are_used(
    fairseq_programs: ForkServer, text: Path, tmp_path: Path
) -> None:
    """As apply-bpe would with the same options on each side."""
    for language, codes in (("en", "codes"), ("de", "codes.de")):
        apply_bpe(text / codes, text / f"train.{language}", tmp_path / f"segmented.{language}")
        get_vocab(tmp_path / f"segmented.{language}", tmp_path / f"vocabulary.{language}")
    segmentation = Segmentation(
        (str(text / "codes"), str(text / "codes.de")),
        (str(tmp_path / "vocabulary.en"), str(tmp_path / "vocabulary.de")),
        20,
        ["zebra", "last"],
    )
    limits = Limits(joined_dictionary=False)
    binarise(tmp_path / "ours", "en", "de", segmentation, text / "train", text / "valid", limits=limits)
    assert_same_files(tmp_path / "ours", preprocess(fairseq_programs, tmp_path, text, segmentation))


def test_large_dictionaries_have_larger_ids(fairseq_programs: ForkServer, tmp_path: Path) -> None:
    """From 65,500 symbols on, fairseq stores each id in four bytes."""
    words = [*map(chr, range(0x4E00, 0x4E00 + 20000)), *map(chr, range(0x20000, 0x20000 + 45500))]
    for language in ("en", "de"):
        for name, of_all in (("train", words), ("valid", words[20000:62000])):
            lines = (" ".join(of_all[begin : begin + 100]) for begin in range(0, len(of_all), 100))
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "codes").write_text("#version: 0.2\n")
    segmentation = joint_segmentation(tmp_path / "codes")
    binarise(tmp_path / "ours", "en", "de", segmentation, tmp_path / "train", tmp_path / "valid")
    (tmp_path / "text").mkdir()
    theirs = preprocess(fairseq_programs, tmp_path / "text", tmp_path, segmentation, "--joined-dictionary")
    assert_same_files(tmp_path / "ours", theirs)
    assert (tmp_path / "ours" / "valid.en-de.en.bin").stat().st_size == 4 * (42000 + 420)


def forms_of(folder: Path, language: str) -> list[str]:
    """The subwords of a dictionary, without padding."""
    return [form for form, _ in read_dictionary(folder / f"dict.{language}.txt") if "madeup" not in form]


def test_a_padding_factor_above_both_makes_equal_rows() -> None:
    """With fairseq's four symbols: docs/fair_comparison.md gives this as the way to models of equal size."""
    texts = [format_dictionary([(f"s{number}", 1) for number in range(size)], 16) for size in (3, 12)]
    assert [text.count("\n") for text in texts] == [12, 12]
    assert format_dictionary([(f"s{number}", 1) for number in range(13)], 16).count("\n") == 28


def test_dropout_adds_the_subwords_that_it_makes_of_the_words_and_no_others(text: Path, tmp_path: Path) -> None:
    """The subwords that occur keep their ids and order; those that only dropout can make come after them."""
    segmentation = joint_segmentation(text / "codes")
    make_dictionaries(text / "train", tmp_path / "plain", "en", "de", segmentation)
    make_dictionaries(text / "train", tmp_path / "dropout", "en", "de", segmentation, resamplings=(DROPOUT, DROPOUT))
    plain, dropout = (
        [entry for entry in read_dictionary(tmp_path / name / "dict.en.txt") if "madeup" not in entry[0]]
        for name in ("plain", "dropout")
    )
    assert dropout[: len(plain)] == plain and len(dropout) > len(plain)
    assert {count for _, count in dropout[len(plain) :]} == {0}
    source, _ = segmentation.segmenters()
    words = count_words(paths=[text / "train.en", text / "train.de"])
    assert {form for form, _ in dropout} == {*source.reachable_by(DROPOUT, words)}


def test_each_side_has_the_subwords_that_its_resampling_makes_of_its_words(text: Path, tmp_path: Path) -> None:
    """With separate dictionaries, forms of the other language would be classes that never occur."""
    segmentation = joint_segmentation(text / "codes")
    limits = Limits(joined_dictionary=False)
    kinds = {"plain": NO_RESAMPLING, "both": (DROPOUT, DROPOUT), "target": (NO_DRAW, DROPOUT)}
    for name, sides in kinds.items():
        make_dictionaries(text / "train", tmp_path / name, "en", "de", segmentation, limits, sides)
    source, _ = segmentation.segmenters()
    for language in ("en", "de"):
        made = source.reachable_by(DROPOUT, count_words(text / f"train.{language}"))
        assert {*forms_of(tmp_path / "both", language)} == {*made}
    assert forms_of(tmp_path / "target", "en") == forms_of(tmp_path / "plain", "en")
    assert forms_of(tmp_path / "target", "de") == forms_of(tmp_path / "both", "de")


def test_another_dictionary_is_other_data_even_where_no_id_changes(text: Path, tmp_path: Path) -> None:
    """A training that was started before the dictionary grew must not be resumed: its embeddings are too few."""
    segmentation = joint_segmentation(text / "codes")
    for name in ("plain", "dropout"):
        sides = (DROPOUT, DROPOUT) if name == "dropout" else NO_RESAMPLING
        make_dictionaries(text / "train", tmp_path / name, "en", "de", segmentation, resamplings=sides)
        folder = tmp_path / f"{name}.data"
        binarise(folder, "en", "de", segmentation, text / "train", dictionaries=tmp_path / name)
    plain, dropout = (tmp_path / f"{name}.data" for name in ("plain", "dropout"))
    assert (plain / "train.en-de.en.bin").read_bytes() == (dropout / "train.en-de.en.bin").read_bytes()
    assert read_binarised(plain) != read_binarised(dropout)


def test_a_limited_dictionary_keeps_rare_characters_unknown_with_dropout_too(text: Path, tmp_path: Path) -> None:
    """Subwords that the codes can make of the words always have an id; dropout does not add excluded characters."""
    limits = Limits(nwordssrc=150)
    segmentation = joint_segmentation(text / "codes")
    make_dictionaries(text / "train", tmp_path, "en", "de", segmentation, limits, (DROPOUT, DROPOUT))
    forms = {*forms_of(tmp_path, "en")}
    source, _ = segmentation.segmenters()
    made = {*source.reachable_by(DROPOUT, count_words(paths=[text / "train.en", text / "train.de"]))}
    assert "🙂" in made - forms and (made - forms).isdisjoint(source.surface_forms()) and forms <= made


def test_a_test_set_is_binarised_by_itself_with_the_dictionaries_of_the_training(
    tiny_words: Path, tiny_data: Path, tmp_path: Path
) -> None:
    """A test set can be added to a finished experiment; its ids are those that it would have had from the start."""
    segmentation = joint_segmentation(tiny_words / "codes")
    binarise(tmp_path / "one", "en", "de", segmentation, tests=[tiny_words / "odd.1"], dictionaries=tiny_data)
    for name in ("odd.1.en-de.en.bin", "odd.1.en-de.de.idx", "dict.de.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (tiny_data / name).read_bytes()
    assert read_binarised(tmp_path / "one").pairs == {"odd.1": 13}
    with pytest.raises(UsageError, match="without a training set, give the folder of the dictionaries"):
        binarise(tmp_path / "two", "en", "de", segmentation, tests=[tiny_words / "odd.1"])
    with pytest.raises(UsageError, match="nothing to binarise"):
        binarise(tmp_path / "two", "en", "de", segmentation, dictionaries=tiny_data)


def test_one_dictionary_for_both_languages_and_test_sets_under_their_own_names(tiny_data: Path) -> None:
    """Embeddings can be shared, and a test set is found by its name."""
    assert (tiny_data / "dict.en.txt").read_bytes() == (tiny_data / "dict.de.txt").read_bytes()
    for subset in ("train", "valid", "odd.1", "test1"):
        assert (tiny_data / f"{subset}.en-de.de.idx").exists()
    binarised = read_binarised(tiny_data)
    assert (binarised.source, binarised.target) == ("en", "de")
    assert binarised.pairs == {"train": 200, "valid": 20, "odd.1": 13, "test1": 9}


def test_sides_of_different_length_are_refused_with_both_counts(tiny_words: Path, tmp_path: Path) -> None:
    """fairseq would pair the wrong sentences."""
    shutil.copytree(tiny_words, tmp_path / "text")
    with open(tmp_path / "text" / "valid.de", "a") as stream:
        stream.write("one more\n")
    with pytest.raises(MTScaffoldError, match=r"valid\.en has 20 lines and .*valid\.de has 21"):
        make(tmp_path / "text", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"a\rb\n", r"train\.en: line 201: a carriage return"),
        (b"a \xff\n", r"train\.en: line 201, byte offset \d+: 0xFF is not UTF-8"),
    ],
)
def test_lines_that_fairseq_would_misread_are_refused(tiny_words: Path, tmp_path: Path, line: bytes, says: str) -> None:
    """The error names what fairseq would silently change."""
    shutil.copytree(tiny_words, tmp_path / "text")
    with open(tmp_path / "text" / "train.en", "ab") as stream:
        stream.write(line)
    with pytest.raises(MTScaffoldError, match=says):
        make(tmp_path / "text", tmp_path / "data")


@pytest.mark.parametrize("name", ["train", "train2", "valid", "valid1"])
def test_a_test_set_that_fairseq_would_train_on_is_refused(tiny_words: Path, tmp_path: Path, name: str) -> None:
    """fairseq treats train1, train2 as more training data."""
    with pytest.raises(UsageError, match=f"cannot be called {name}"):
        make(tiny_words, tmp_path / "data", (tmp_path / name,))


def test_segmented_text_is_warned_of(tiny_words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As fairseq-preprocess takes it; segmented again, its separators would be symbols."""
    for language in ("en", "de"):
        (tmp_path / f"test.{language}").write_text("vie@@ le\n", encoding="utf-8")
    make(tiny_words, tmp_path / "data", (tmp_path / "test",))
    assert capsys.readouterr().err.count("looks segmented already (such as 'vie@@')") == 2


def test_one_language_for_both_sides_is_refused(tiny_words: Path, tmp_path: Path) -> None:
    """The files of one side would overwrite the other's."""
    with pytest.raises(UsageError, match="source and target are the same language: en"):
        make(tiny_words, tmp_path / "data", languages=("en", "en"))
    with pytest.raises(UsageError, match="source and target are the same language: en"):
        make_dictionaries(tiny_words / "train", tmp_path / "d", "en", "en", joint_segmentation(tiny_words / "codes"))


def test_a_link_to_a_folder_stays_one(tiny_words: Path, tmp_path: Path) -> None:
    """Scratch space is often behind a link, so the link's target is replaced."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "data").symlink_to("scratch/data")
    for _ in range(2):
        make(tiny_words, tmp_path / "data")
        assert (tmp_path / "data").is_symlink() and (tmp_path / "scratch" / "data" / "dict.en.txt").is_file()
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["data"]


def test_a_folder_with_something_else_in_it_is_left_alone(tiny_words: Path, tmp_path: Path) -> None:
    """A mistyped output folder must not cost anyone their files."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(MTScaffoldError, match="holds something else"):
        make(tiny_words, tmp_path)
    with pytest.raises(MTScaffoldError, match=r"notes\.txt: a file; choose a new folder"):
        make(tiny_words, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_that_binarise_did_not_make_is_refused(tmp_path: Path) -> None:
    """A wrong --data is reported as such, before fairseq starts."""
    with pytest.raises(MTScaffoldError, match="not a folder that mt-scaffold binarise made"):
        read_binarised(tmp_path)
