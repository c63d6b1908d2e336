"""Words that end in the separator are ambiguous in segmented text; commands warn of them."""

import io
from pathlib import Path

import pytest

from mt_scaffold._core import WordCounts
from mt_scaffold.cli import main
from mt_scaffold.corpus.symbols import check_mark, join_symbols, read_symbol, symbol_name, token_name
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import make_dictionaries, read_ids
from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.segment.join import join_text

TEXT = b"@@ -1 +1 @@ def f\nfoo@@ food foo foo@@\r\n@@@ a@@b @@\n"
# The token foo inside a word, and foo@@ at the end of one.
CODES = "#version: 0.2\nf o\nfo o\n@ @</w>\nfoo @@</w>\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A text and codes."""
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "codes").write_text(CODES, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", ["learn-bpe", "learn-joint-bpe-and-vocab", "apply-bpe"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_warning_has_the_count_and_the_first_line(
    folder: Path, capfd: pytest.CaptureFixture[str], command: str, workers: str
) -> None:
    """It is given once, on stderr."""
    text, output = folder / "text", folder / "output"
    options = {
        "learn-bpe": ["--symbols", "2", "--output", str(output)],
        "learn-joint-bpe-and-vocab": ["--symbols", "2", "--output", str(output), "--write-vocabulary", f"{output}.v"],
        "apply-bpe": ["--codes", str(folder / "codes"), "--output", str(output)],
    }[command]
    assert main([command, "--input", str(text), *options, "--num-workers", workers]) == 0
    said = capfd.readouterr().err
    assert said.count("(this is the first)") == 1
    assert f"warning: {text}: line 1: 6 words end in '@@' (this is the first), and join drops the space" in said


def test_only_words_that_end_in_the_separator_are_warned_of(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not inside words, nor before a CR inside a line, nor with another separator; lines are counted over blocks."""
    text = folder / "text"
    text.write_bytes(b"a@@b @@\rc c@\n")
    arguments = ["apply-bpe", "--input", str(text), "--codes", str(folder / "codes"), "--output", str(folder / "o")]
    assert main(arguments) == 0 and "end in" not in capfd.readouterr().err
    text.write_bytes(b"a word of text\n" * 100_000 + b"one@@\n")
    assert main([*arguments, "--num-workers", "2"]) == 0
    assert f"{text}: line 100001: 1 word ends in '@@'" in capfd.readouterr().err
    assert main([*arguments, "--separator", "|"]) == 0 and "ends in" not in capfd.readouterr().err


def test_join_warns_of_a_word_that_it_loses(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its output is what subword-nmt's own expression gives."""
    output = io.BytesIO()
    join_text(io.BytesIO(b"an@@ d\n@@ -1 +1 @@ def f\n"), output)
    assert output.getvalue() == b"and\n-1 +1 def f\n"
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and "line 2: '@@' alone, 2 times (this is the first), a word that is lost" in said
    join_text(io.BytesIO(b"an@@ d a@@@@ b@@\nc \r@@ d\r@@ e\n"), io.BytesIO())
    assert not capfd.readouterr().err


@pytest.mark.parametrize("separator", ["@@", "@", "</", "_"])
def test_names_keep_where_words_end(separator: str) -> None:
    """Every text, inside a word and at its end, has a unique name that is read back."""
    parts = ["a", "@", separator, "</w>"]
    texts = {"".join(each) for n in range(4) for each in _sequences(parts, n)} - {""}
    names = {(text, inside): symbol_name(text, inside, separator) for text in texts for inside in (True, False)}
    assert len({*names.values()}) == len(names)
    assert all(read_symbol(name, separator) == meant for meant, name in names.items())


def _sequences(parts: list[str], length: int) -> list[list[str]]:
    return [[*rest, part] for rest in _sequences(parts, length - 1) for part in parts] if length else [[]]


def test_names_of_tokens_and_separators_that_mark_nothing() -> None:
    """A token of the codes has the name of its subword; an empty separator is refused."""
    assert [token_name(token) for token in ("foo", "foo</w>", "foo@@</w>")] == ["foo@@", "foo", "foo@@</w>"]
    for separator in ("", "</w>", "w>"):
        with pytest.raises(UsageError, match="does not mark what it ends"):
            check_mark(separator)


def test_ids_keep_where_words_end(folder: Path) -> None:
    """foo in food and the word foo@@ have different ids, and names join to the text; @@ is a word."""
    for language in ("en", "de"):
        (folder / f"train.{language}").write_bytes(TEXT.replace(b"\r", b""))
    segmentation = joint_segmentation(folder / "codes")
    make_dictionaries(folder / "train", folder / "dictionaries", "en", "de", segmentation)
    ids = read_ids(folder / "dictionaries" / "dict.en.txt")
    assert {"foo@@", "foo@@</w>", "@@"} <= {*ids}
    symbols = {number: name for name, number in ids.items()}
    (segmenter, _) = segmentation.segmenters()
    lines = TEXT.replace(b"\r", b"").decode().splitlines()
    found, offsets = segmenter.encoder(ids, 3).ids_of(lines)
    for line, begin, end in zip(lines, offsets, offsets[1:], strict=False):
        names = [symbols[number] for number in found[begin:end]]
        assert join_symbols(" ".join(names)) == line and segmenter.segment(line).split(" ") == names
    data = binarise(folder / "data", "en", "de", segmentation, train=folder / "train")
    assert data.counts["train"]["en"].unknown == 0
    assert data.counts["train"]["en"].subwords == segmenter.count_subwords(_counts(lines)).total()


def _counts(lines: list[str]) -> WordCounts:
    from mt_scaffold.corpus.count import count_words

    return count_words(lines=lines)


def test_validation_in_fairseq_joins_by_names(folder: Path) -> None:
    """Both the hypotheses whose BLEU ends a training and the number of bytes that its loss is divided by."""
    pytest.importorskip("fairseq", reason="needs the extra 'fairseq'")
    import torch

    from mt_scaffold.experiment.fairseq_plugin.text_bytes import sentence_bytes
    from mt_scaffold.experiment.fairseq_plugin.translation import NamedSymbols

    names = ["d", "foo@@", "@@", "foo@@</w>", "an@@"]
    (folder / "dict.en.txt").write_text("".join(f"{name} 1\n" for name in names))
    dictionary = NamedSymbols.load(str(folder / "dict.en.txt"))
    sentence = torch.tensor([dictionary.index(name) for name in ["@@", "an@@", "d", "foo@@", "d", "foo@@</w>"]])
    assert dictionary.string(sentence, "subword_nmt") == "@@ and food foo@@"
    assert dictionary.string(sentence[None], "subword_nmt") == "@@ and food foo@@"
    assert sentence_bytes([sentence], dictionary).tolist() == [len("@@ and food foo@@\n")]
