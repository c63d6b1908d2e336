"""Subwords → a fairseq data folder."""

import shutil
from pathlib import Path

import pytest

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise import binarise, read_binarised

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")


def test_one_dictionary_for_both_languages_and_test_sets_under_their_own_names(tiny_data: Path) -> None:
    """Embeddings can be shared, and a test set is found by its name."""
    assert (tiny_data / "dict.en.txt").read_bytes() == (tiny_data / "dict.de.txt").read_bytes()
    for subset in ("train", "valid", "odd.1", "test1"):
        assert (tiny_data / f"{subset}.en-de.de.idx").exists()
    assert not list(tiny_data.glob("renaming*")) and not (tiny_data / "test.en-de.en.bin").exists()
    binarised = read_binarised(tiny_data)
    assert (binarised.source, binarised.target) == ("en", "de")
    assert binarised.pairs == {"train": 200, "valid": 20, "odd.1": 13, "test1": 9}


def test_each_test_set_holds_its_own_sentences(tiny_data: Path, tiny_subwords: Path) -> None:
    """fairseq names them test, test1, test2; a mix-up would score one set against the reference of another."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(tiny_data / "dict.en.txt"))
    for subset in ("odd.1", "test1"):
        data = data_utils.load_indexed_dataset(str(tiny_data / f"{subset}.en-de.en"), dictionary)
        lines = (tiny_subwords / f"{subset}.en").read_text(encoding="utf-8").splitlines()
        assert [len(sentence) for sentence in data] == [len(line.split()) + 1 for line in lines]


def test_sides_of_different_length_are_refused_with_both_counts(tiny_subwords: Path, tmp_path: Path) -> None:
    """fairseq would pair the wrong sentences."""
    shutil.copytree(tiny_subwords, tmp_path / "text")
    with open(tmp_path / "text" / "valid.de", "a") as stream:
        stream.write("one more\n")
    with pytest.raises(MTScaffoldError, match=r"valid\.en has 20 lines and .*valid\.de has 21"):
        binarise(tmp_path / "text" / "train", tmp_path / "text" / "valid", [], tmp_path / "data", "en", "de")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"a\rb\n", r"train\.en: line 201: a carriage return"),
        (b"a \xff\n", r"train\.en: line 201, byte offset \d+: 0xFF is not UTF-8"),
    ],
)
def test_lines_that_fairseq_would_misread_are_refused(
    tiny_subwords: Path, tmp_path: Path, line: bytes, says: str
) -> None:
    """The error names what fairseq would silently change."""
    shutil.copytree(tiny_subwords, tmp_path / "text")
    with open(tmp_path / "text" / "train.en", "ab") as stream:
        stream.write(line)
    with pytest.raises(MTScaffoldError, match=says):
        binarise(tmp_path / "text" / "train", tmp_path / "text" / "valid", [], tmp_path / "data", "en", "de")


@pytest.mark.parametrize("name", ["train", "train2", "valid", "valid1"])
def test_a_test_set_that_fairseq_would_train_on_is_refused(tiny_subwords: Path, tmp_path: Path, name: str) -> None:
    """fairseq takes train1, train2 for more training data."""
    with pytest.raises(UsageError, match=f"cannot be called {name}"):
        binarise(tiny_subwords / "train", tiny_subwords / "valid", [tmp_path / name], tmp_path / "data", "en", "de")


def test_one_language_for_both_sides_is_refused(tiny_subwords: Path, tmp_path: Path) -> None:
    """The files of one side would overwrite the other's."""
    with pytest.raises(UsageError, match="source and target are the same language: en"):
        binarise(tiny_subwords / "train", tiny_subwords / "valid", [], tmp_path / "data", "en", "en")


def test_a_folder_with_something_else_in_it_is_left_alone(tiny_subwords: Path, tmp_path: Path) -> None:
    """A mistyped output folder must not cost anyone their files."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(MTScaffoldError, match="holds something else"):
        binarise(tiny_subwords / "train", tiny_subwords / "valid", [], tmp_path, "en", "de")
    with pytest.raises(MTScaffoldError, match=r"notes\.txt: a file; choose a new folder"):
        binarise(tiny_subwords / "train", tiny_subwords / "valid", [], tmp_path / "notes.txt", "en", "de")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_that_binarise_did_not_make_is_refused(tmp_path: Path) -> None:
    """A wrong --data is reported as such, before fairseq starts."""
    with pytest.raises(MTScaffoldError, match="not a folder that mt-scaffold binarise made"):
        read_binarised(tmp_path)
