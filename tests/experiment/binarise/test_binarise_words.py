"""Words → a data folder that is segmented during training."""

import io
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="needs the extra 'fairseq'")

from mt_scaffold.corpus.count import count_words
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import added_by, format_dictionary, limited
from mt_scaffold.experiment.binarise.pairs_as_ids import read_binarised
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile, binarise_words
from mt_scaffold.experiment.binarise.segmentation import CODES, joint_segmentation
from mt_scaffold.methods.learn import learn_bpe
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.draw import Draw

TEXT = ["low lower lowest", "", "newest 🙂 wide", "</s> <unk> low", "wider\u00a0new"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder with train, valid and test.1 in en and de, and codes; the last lines have no line end."""
    for name, lines in {"train": TEXT, "valid": ["low"], "test.1": ["new", "wide"]}.items():
        for language in ("en", "de"):
            (tmp_path / f"{name}.{language}").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "codes").write_bytes(learn_bpe(lines=TEXT * 2, num_symbols=12).text)
    return tmp_path


def binarise(text: Path, tests: tuple[str, ...] = ("test.1",)) -> None:
    codes = joint_segmentation(text / "codes")
    prefixes = [text / test for test in tests]
    binarise_words(text / "data", "en", "de", codes, text / "train", text / "valid", prefixes)


def test_every_line_can_be_read_alone(text: Path) -> None:
    """A batch reads its own sentences, in any order."""
    binarise(text)
    words = WordsFile(text / "data" / "train.en-de.de.words")
    assert [line.decode() for line in words.lines(range(len(words)))] == TEXT
    assert words.lines([4, 0, 4]) == [TEXT[4].encode(), TEXT[0].encode(), TEXT[4].encode()]
    assert len(WordsFile(text / "data" / "test.1.en-de.en.words")) == 2


def test_the_folder_records_its_contents(text: Path) -> None:
    """Later steps need only the folder: counts, codes and one dictionary."""
    binarise(text)
    binarised = read_binarised(text / "data")
    assert binarised.pairs == {"train": 5, "valid": 1, "test.1": 2} and binarised.storage == "words"
    assert (text / "data" / CODES).read_bytes() == (text / "codes").read_bytes()
    assert (text / "data" / "dict.en.txt").read_bytes() == (text / "data" / "dict.de.txt").read_bytes()


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
def test_the_dictionary_has_every_subword_that_dropout_can_make(algorithm: str) -> None:
    """It includes characters in no merge (🙂) and symbols that look like fairseq's own, if the words have them."""
    bpe = BPE(learn_bpe(lines=TEXT * 2, num_symbols=12, algorithm=algorithm).text)
    counts = count_words(lines=TEXT)
    occurring = limited(dict(bpe.count_subwords(counts).items()))
    entries = occurring | dict.fromkeys(added_by(Draw("dropout", 0.5), bpe, counts, occurring), 0)
    for dropout in (0, 0.3, 0.7, 1):
        for seed in range(50):
            for line in TEXT:
                assert set(bpe.segment(line, dropout, seed).split(" ")) - {""} <= entries.keys()
    assert {"🙂", "\u00a0@@", "w", "w@@"} <= entries.keys() and "🙂@@" not in entries
    values = list(entries.values())
    assert values == sorted(values, reverse=True) and values[0] > 1 and values[-1] == 0


@pytest.mark.parametrize("separator", ["@@", "a"])
def test_the_dictionary_has_subwords_before_a_glossary(separator: str) -> None:
    """A part of a word before a glossary ends as a word does: here `ba`, else only at the end of words, is inside."""
    bpe = BPE(b"#version: 0.2\na b\nb a</w>\n", separator=separator, glossaries=["X"])
    line = "abaX ab"
    counts = count_words(lines=[line])
    occurring = dict(bpe.count_subwords(counts).items())
    drawn = [bpe.segment(line, 0.4, seed) for seed in range(100)]
    given = {subword for each in drawn for subword in each.split(" ")}
    assert given <= {*added_by(Draw("dropout", 0.4), bpe, counts, occurring), *occurring}
    assert f"ba{separator}" in given - occurring.keys()


def test_subwords_that_end_in_a_spelt_out_end_of_word_are_known() -> None:
    """`</w>` may occur in the text: within `low</w>er`, subwords can end as if at the end of a word."""
    merges = ["< /", "</ w", "</w >", "o w", "ow </w>", "ow</w> e", "</w> e", "e r</w>"]
    bpe = BPE(io.StringIO("#version: 0.2\n" + "".join(f"{merge}\n" for merge in merges)))
    forms = set(bpe.surface_forms())
    assert {"</w>@@", "ow</w>@@", "ow", "ow@@"} <= forms and "" not in forms
    for seed in range(300):
        for word in ("low</w>er", "</w>", "ow</w>", "a</w>w>", "</w></w>x"):
            given = set(bpe.segment(word, 0.4, seed).split(" "))
            assert given - forms <= {"l@@", "a@@", "x"}, given


def test_fairseq_reads_the_dictionary_and_keeps_its_own_symbols(tmp_path: Path) -> None:
    """A subword spelt <unk> must not take the place of fairseq's."""
    data = pytest.importorskip("fairseq.data", reason="needs the extra 'fairseq'")
    (tmp_path / "dict.txt").write_text(format_dictionary([("low", 3), ("<unk>", 1), ("\u00a0", 0)]), encoding="utf-8")
    dictionary = data.Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(dictionary) == 8 and dictionary.symbols[4:7] == ["low", "<unk>", "\u00a0"]
    assert dictionary.index("<unk>") == 5 and dictionary.unk() == dictionary.index("never seen") == 3


def test_an_interrupted_run_resumes_and_keeps_what_is_done(text: Path) -> None:
    """Only missing and incomplete files are written again."""
    binarise(text)
    data = text / "data"
    before = {path.name: path.stat().st_mtime_ns for path in data.glob("*.words*")}
    (data / "binarised.json").unlink()
    (data / "valid.en-de.en.words.npy").unlink()
    (data / "train.en-de.de.words").write_bytes(b"low\n")
    with pytest.raises(MTScaffoldError, match="damaged or modified; run mt-scaffold binarise-words"):
        WordsFile(data / "train.en-de.de.words")
    binarise(text)
    after = {path.name: path.stat().st_mtime_ns for path in data.glob("*.words*")}
    written = {name for name in after if after[name] != before[name]}
    again = ("valid.en-de.en.words", "train.en-de.de.words")
    assert written == {*again, *(f"{name}.npy" for name in again)}
    assert read_binarised(data).pairs["train"] == 5


def test_changed_text_is_stored_again(text: Path) -> None:
    """A folder never mixes the old text with the new."""
    binarise(text)
    for language in ("en", "de"):
        (text / f"valid.{language}").write_text("wide\nwide\n")
    binarise(text)
    assert WordsFile(text / "data" / "valid.en-de.en.words").lines([1]) == [b"wide"]
    assert json.loads((text / "data" / "binarised.json").read_text())["pairs"]["valid"] == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"low\nl\row\n", r"valid\.en: line 2: a carriage return"),
        (b"low\nl\xffow\n", r"valid\.en.*line 2.*not UTF-8"),
        (b"", r"valid\.en: empty"),
        (b"low\nlow\n", r"valid\.en has 2 lines and .*valid\.de has 1: line i"),
    ],
)
def test_text_that_cannot_be_trained_on_is_refused(text: Path, content: bytes, says: str) -> None:
    """The error names the file, and the folder does not count as complete."""
    (text / "valid.en").write_bytes(content)
    if content.startswith(b"low\nl\xff"):
        (text / "valid.de").write_bytes(b"low\nlow\n")
    with pytest.raises(MTScaffoldError, match=says):
        binarise(text)
    with pytest.raises(MTScaffoldError, match="not a folder that mt-scaffold binarise made"):
        read_binarised(text / "data")


def test_names_and_folders_that_would_be_misread_are_refused(text: Path) -> None:
    """fairseq would train on train1; a folder with a user's own files is left alone."""
    shutil.copy(text / "test.1.en", text / "train1.en")
    with pytest.raises(UsageError, match="cannot be called train1"):
        binarise(text, ("train1",))
    (text / "data").mkdir()
    (text / "data" / "mine").write_text("mine")
    with pytest.raises(MTScaffoldError, match="holds something else"):
        binarise(text)


def test_a_filler_does_not_take_the_name_of_a_subword() -> None:
    """fairseq cannot load a dictionary with duplicate entries."""
    names = [line.split(" ")[0] for line in format_dictionary([("madeupword0000", 3), ("a", 2)]).splitlines()]
    assert names == ["madeupword0000", "a", "madeupword0001", "madeupword0002"]
