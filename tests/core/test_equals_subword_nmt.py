"""Byte equality with subword-nmt 0.3.8, on generated text with the letters and lines that are hard to get right.

subword-nmt is given lines split at LF, the only place where a line ends here; docs/subword-nmt.md lists the rest.
"""

from __future__ import annotations

import gzip
import io
import random
import re
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from segmenting import ALPHABET, MULTI30K, UNICODE_SPACES, dictionary_lines, hard_text, lines_at_lf, needs
from subword_nmt import apply_bpe as their_apply
from subword_nmt import get_vocab as their_vocab
from subword_nmt import learn_bpe as their_learn
from subword_nmt import learn_joint_bpe_and_vocab as their_joint

from mt_scaffold import (
    BPE,
    PlainBPE,
    _core,
    apply_bpe,
    get_vocab,
    learn_bpe,
    learn_joint_bpe_and_vocab,
    read_vocabulary,
)

# subword-nmt's learner treats a Unicode space inside a merged symbol as a boundary between symbols: it learns other
# merges where one occurs. test_their_learner_cuts_at_unicode_spaces shows it.
LEARNABLE = [letter for letter in ALPHABET if letter not in UNICODE_SPACES]
# Read from a file, subword-nmt would break lines at these.
BREAKS_LINES = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def their_codes(lines: list[str], symbols: int, **options: object) -> bytes:
    output = io.StringIO()
    their_learn.learn_bpe(lines, output, symbols, **options)
    return output.getvalue().encode("utf-8")


def their_bpe(codes: bytes, *arguments: object, **options: object) -> their_apply.BPE:
    return their_apply.BPE(io.StringIO(codes.decode("utf-8"), newline="\n"), *arguments, **options)


def applied(bpe: BPE, text: str) -> str:
    output = io.BytesIO()
    bpe.process_file(io.BytesIO(text.encode("utf-8")), output)
    return output.getvalue().decode("utf-8")


@pytest.fixture(scope="module")
def codes() -> bytes:
    """Codes of a text in which every letter occurs, Unicode spaces included."""
    return learn_bpe(io.BytesIO(hard_text(11, 3000).encode("utf-8")), num_symbols=400, algorithm="bpe").text


# ---- learn-bpe


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{}, {"min_frequency": 7}, {"total_symbols": True}], ids=str)
def test_learning(seed: int, options: dict[str, Any]) -> None:
    """The codes files are equal, with the options that change them, also when the text runs out of pairs."""
    text = hard_text(seed, 3000, LEARNABLE)
    symbols = [200, 2000][seed % 2]
    ours = learn_bpe(io.BytesIO(text.encode("utf-8")), None, symbols, algorithm="bpe", **options)
    assert ours.text == their_codes(lines_at_lf(text), symbols, **options)


def test_learning_from_a_dictionary() -> None:
    """``--dict-input``, with a word that occurs on two lines."""
    counts = Counter(word for word in hard_text(5, 3000, LEARNABLE).split() if not BREAKS_LINES.search(word))
    lines = [*dictionary_lines(counts), f"{next(iter(counts))} 100"]
    ours = learn_bpe(lines=lines, num_symbols=300, is_dict=True, algorithm="bpe")
    assert ours.text == their_codes(lines, 300, is_dict=True)


def test_learning_with_a_very_long_word() -> None:
    """A word of 100,000 letters among ordinary ones."""
    text = hard_text(6, 500, list("abcdeé日"), long_word=100_000)
    ours = learn_bpe(io.BytesIO(text.encode("utf-8")), None, 40, algorithm="bpe")
    assert ours.text == their_codes(lines_at_lf(text), 40)


def test_learning_a_word_as_long_as_a_token_may_be(capfd: pytest.CaptureFixture[str]) -> None:
    """Up to the limit on the length of tokens, a repeated word is learned whole, and without a warning."""
    word = "".join(chr(0x4E00 + number) for number in range((_core.LONGEST_TOKEN - len("</w>")) // 3))
    lines = [f"{word} {word}"]
    assert learn_bpe(lines=lines, num_symbols=10_000, algorithm="bpe").text == their_codes(lines, 10_000)
    assert "bytes" not in capfd.readouterr().err


def test_several_texts_are_learned_from_as_one(tmp_path: Path) -> None:
    """Several input files give the codes of their concatenation."""
    texts = [hard_text(seed, 800, LEARNABLE) + "\n" for seed in (7, 8)]
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode("utf-8"))
    assert learn_bpe(paths=paths, num_symbols=100, algorithm="bpe").text == their_codes(
        lines_at_lf("".join(texts)), 100
    )


# ---- apply-bpe


@pytest.mark.parametrize(
    "options",
    [{}, {"merges": 0}, {"merges": 57}, {"separator": "￭"}, {"separator": "</w>"}, {"merges": 100_000}],
    ids=str,
)
def test_applying(codes: bytes, options: dict[str, Any]) -> None:
    """The segmented text is equal: unknown letters, every kind of space, and lines of every shape."""
    text = hard_text(12, 4000, [*ALPHABET, "Я", "🂡", "x\x85y", "a\u2028b", "a\rb", "\v", "\f", "\ufeff"])
    theirs = their_bpe(codes, **options)
    ours = applied(BPE(codes, **options), text)
    assert ours == "".join(theirs.process_line(line) for line in lines_at_lf(text))


def test_applying_to_a_very_long_word(codes: bytes) -> None:
    """A word of 100,000 letters; with few merges, because subword-nmt rescans the word after each."""
    generator = random.Random(1)
    word = "".join(generator.choice("abc日") for _ in range(100_000))
    few = b"#version: 0.2\na b\nab c\n\xe6\x97\xa5 \xe6\x97\xa5\nb b\nabc abc\nc a</w>\n"
    assert BPE(few).segment(f"x {word} y") == their_bpe(few).segment(f"x {word} y")


@pytest.mark.parametrize("threshold", [None, 3, 30])
def test_vocabulary_filter(codes: bytes, threshold: int | None, tmp_path: Path) -> None:
    """``--vocabulary`` with ``--vocabulary-threshold``: out-of-vocabulary subwords are split as subword-nmt splits."""
    vocabulary = tmp_path / "vocabulary"
    segmented = applied(BPE(codes), hard_text(13, 1500))
    get_vocab(io.BytesIO(segmented.encode("utf-8")), vocabulary)
    with open(vocabulary, encoding="utf-8", newline="\n") as stream:
        theirs = their_apply.read_vocabulary(stream, threshold)
    ours = read_vocabulary(vocabulary, threshold)
    assert ours == theirs
    text = hard_text(14, 3000)
    expected = "".join(their_bpe(codes, vocab=theirs).process_line(line) for line in lines_at_lf(text))
    assert expected != applied(BPE(codes), text), "a filter that changes nothing shows nothing"
    assert applied(BPE(codes, vocab=ours), text) == expected


@pytest.mark.parametrize(
    "glossaries",
    [["ab"], ["e", "日本", "👩"], [r"[a-c]+", r"\d", "<.*?>"], ["ab|cd", "e", "dé"], ["(?:a|b)e", "n$"], ["^a", "."]],
    ids=str,
)
def test_glossaries(codes: bytes, glossaries: list[str]) -> None:
    """Words and regular expressions are isolated and left whole, several at once and overlapping."""
    text = hard_text(15, 2500, [*LEARNABLE, "USA", "123", "ab", "dé"])
    expected = "".join(their_bpe(codes, glossaries=glossaries).process_line(line) for line in lines_at_lf(text))
    assert applied(BPE(codes, glossaries=glossaries), text) == expected


def test_codes_with_repeated_and_rederived_merges() -> None:
    """A pair keeps its first rank but is undone by its last mention; a string may be built in several ways."""
    lines = ["a b", "b c", "ab c", "a bc", "b c", "abc d</w>", "a b", "bc d</w>", "a bcd</w>", "ab c"]
    codes = "\n".join(["#version: 0.2", *lines, ""]).encode()
    text = "abcd abc bcd abcabcd dabcd\n" * 2
    for vocabulary in (None, {"a@@", "d", "bc@@"}, {"b@@", "bcd"}, {"x"}):
        theirs = their_bpe(codes, vocab=vocabulary)
        assert applied(BPE(codes, vocab=vocabulary), text) == "".join(map(theirs.process_line, lines_at_lf(text)))


@needs(MULTI30K)
def test_real_text(codes: bytes) -> None:
    """Multi30k's validation set, segmented with 4000 merges learned from its training text."""
    texts = [MULTI30K / "train.en.gz", MULTI30K / "train.de.gz"]
    learned = learn_bpe(paths=texts, num_symbols=4000, algorithm="bpe").text
    theirs = their_bpe(learned)
    for language in ("en", "de"):
        source = MULTI30K / f"val.{language}.gz"
        output = io.BytesIO()
        apply_bpe(learned, source, output)
        text = gzip.decompress(source.read_bytes()).decode("utf-8")
        assert output.getvalue().decode("utf-8") == "".join(map(theirs.process_line, lines_at_lf(text)))


# ---- get-vocab, learn-joint-bpe-and-vocab


def test_vocabulary_of_a_text() -> None:
    """Words by frequency, then by first occurrence."""
    text = hard_text(18, 5000, [*ALPHABET, "x\x85y", "a\u2028b"])
    theirs = io.StringIO()
    their_vocab.get_vocab(lines_at_lf(text), theirs)
    for workers in (1, 3):
        ours = io.BytesIO()
        get_vocab(io.BytesIO(text.encode("utf-8")), ours, workers)
        assert ours.getvalue().decode("utf-8") == theirs.getvalue()


@pytest.mark.parametrize("options", [{}, {"separator": "￭", "min_frequency": 5}, {"total_symbols": True}], ids=str)
def test_joint_learning(tmp_path: Path, options: dict[str, object]) -> None:
    """Codes on two texts together, and a vocabulary for each."""
    paths = [tmp_path / "text.0", tmp_path / "text.1"]
    for seed, path in enumerate(paths):
        text = BREAKS_LINES.sub("", hard_text(20 + seed, 2000, LEARNABLE))
        path.write_bytes(text.replace("\n\n", "\r\n").encode("utf-8"))
    theirs = [tmp_path / name for name in ("their.codes", "their.0", "their.1")]
    ours = [tmp_path / name for name in ("our.codes", "our.0", "our.1")]
    arguments: dict[str, Any] = {"separator": "@@", "min_frequency": 2, "total_symbols": False, **options}
    their_joint.learn_joint_bpe_and_vocab(
        Namespace(
            input=[Namespace(name=str(path)) for path in paths],
            output=Namespace(name=str(theirs[0])),
            vocab=[Namespace(name=str(path)) for path in theirs[1:]],
            symbols=300,
            verbose=False,
            num_workers=1,
            **arguments,
        )
    )
    separator = arguments.pop("separator")
    learn_joint_bpe_and_vocab(paths, ours[0], ours[1:], PlainBPE(300, **arguments), separator)
    for their_file, our_file in zip(theirs, ours, strict=True):
        assert our_file.read_bytes() == their_file.read_bytes()
