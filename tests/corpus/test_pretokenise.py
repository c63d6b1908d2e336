"""Pre-tokenisation: the core cuts text exactly where ``regex`` does, loses no byte, and counts what it has cut."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT
from segmenting import MULTI30K, SHARED, VECTORS, needs

from mt_scaffold.analysis.reference import pretokenise
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.pretokenise import PATTERNS, Pretokeniser
from mt_scaffold.errors import MTScaffoldError, UsageError

pytest.importorskip("regex", reason="comes with the extra 'documents'")

CLASSES = runpy.run_path(str(ROOT / "tools" / "unicode_classes.py"))

MDN = SHARED / "data" / "bench" / "mdn.de.gz"
CASES = [json.loads(line) for line in (VECTORS / "pretokenise.jsonl").read_text("utf-8").splitlines()]
# Characters that the patterns distinguish or might confuse: spaces and line ends of one to three bytes, characters that
# others treat as spaces (U+001C, U+200B), apostrophes, letters of contractions and U+017F, digits, title case, letters
# without case, marks.
DENSE = (
    "  \t\n\r\n''’sdmtlLvVrReEſaAzßÄǅʰªあ中\u0301\u0903\u20dd12３५Ⅷ½!.,/-–😀\u00a0\u2003\u3000\u2028\u0085\x1c\u200b"
)
WORDS = [
    "don't",
    "IT'S",
    "we'Ll",
    " 2023",
    "  ",
    "\r\n",
    "\n\n  ",
    "!!\n/\n",
    "://",
    "Großmutter",
    " the",
    " 'tis",
    "AbC",
]

# The pattern of GPT-2's release (its encoder.py); tiktoken's is a faster form of it.
GPT2_RELEASED = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

PRETOKENISERS = {(name, split): Pretokeniser(name, split) for name in PATTERNS for split in (False, True)}
hundreds = settings(max_examples=120, derandomize=True, deadline=None, database=None)
dense_text = st.lists(st.sampled_from(DENSE) | st.sampled_from(WORDS) | st.characters(codec="utf-8")).map("".join)
any_bytes = st.lists(st.sampled_from(DENSE).map(str.encode) | st.binary(max_size=4)).map(b"".join)


def check(document: bytes) -> None:
    """Check for every published pattern, with digits split and without, that the core's words are the reference's."""
    for (name, split_digits), pretokeniser in PRETOKENISERS.items():
        words = pretokeniser.split(document)
        assert words == pretokenise(document, PATTERNS[name], split_digits), (name, split_digits, document)
        assert b"".join(words) == document


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['pretokeniser']}-{case['document'][:12]!a}")
def test_core_and_reference_give_the_vector(case: dict[str, Any]) -> None:
    """Words that were written down by hand, so that core and reference cannot be wrong together."""
    document, *words = (text.encode("utf-8", "surrogateescape") for text in [case["document"], *case["words"]])
    pattern, split_digits = case["pretokeniser"], case["split_digits"]
    assert Pretokeniser(pattern, split_digits).split(document) == words
    assert pretokenise(document, PATTERNS.get(pattern, pattern), split_digits) == words


def test_the_patterns_are_those_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the installed tiktoken, whose tables of merges are not loaded."""
    public = pytest.importorskip("tiktoken_ext.openai_public", reason="tiktoken is not installed")
    for loader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        monkeypatch.setattr(public, loader, lambda *_, **__: {})
    published = {"gpt2": public.gpt2(), "cl100k": public.cl100k_base(), "o200k": public.o200k_base()}
    patterns = {name: pattern for name, pattern in PATTERNS.items() if not name.startswith("metaspace")}
    assert {name: encoding["pat_str"] for name, encoding in published.items()} == patterns


def test_the_table_of_classes_is_that_of_regex() -> None:
    """All code points have the class that the installed regex gives them."""
    assert CLASSES["HEADER"].read_text("utf-8") == CLASSES["table"]()


def test_every_code_point_in_context() -> None:
    """Alone, between letters, spaces, digits, signs and line ends, after an apostrophe: every context of the patterns.

    Every code point up to U+024F; beyond, those next to which the class changes between runs of more than two, and
    every 997th. The test above checks the class of all.
    """
    contexts = (
        "{0}",
        "a{0}b",
        " {0} x",
        "A{0}\n{0}{0}\n",
        "'{0}s x'{0} 'l{0}",
        "1{0}2 {0}{0}1",
        "!{0}/{0}\r\n{0}",
        "B{0}'s\t{0}",
    )
    classes = CLASSES["classes"]()
    ends = {match.end() + at for match in re.finditer(r"(.)\1\1+", classes) for at in (-1, 0)}
    points = sorted({*range(0x250), *range(0, 0x110000, 997), *ends} - {0x110000, *range(0xD800, 0xE000)})
    for start in range(0, len(points), 256):
        some = map(chr, points[start : start + 256])
        check("\n".join(context.format(c) for c in some for context in contexts).encode())


@hundreds
@given(text=dense_text)
def test_text(text: str) -> None:
    """Text dense in characters that the patterns distinguish; GPT-2's own pattern gives the same words."""
    check(text.encode())
    assert PRETOKENISERS["gpt2", False].split(text.encode()) == pretokenise(text.encode(), GPT2_RELEASED)


@hundreds
@given(document=any_bytes)
def test_bytes(document: bytes) -> None:
    """A byte that is not UTF-8 is a character of no class, as after decoding with surrogateescape."""
    check(document)


@pytest.mark.parametrize("letters", ["ab", "ab ", "aA'ts", "aä ", "1 ", " \n\ta", "!a\r\n/", "aあ中A", "a1\u00a0 "])
def test_runs_across_chunks(letters: str) -> None:
    """The core takes 64 bytes at a time; runs of all lengths cross these boundaries and end the document."""
    rng = random.Random(letters)
    for length in range(50, 140):
        runs = (rng.choice(letters) * rng.choice((1, 1, 1, 2, 3, 5, 70)) for _ in range(length))
        check("".join(runs)[: rng.randrange(50, 300)].encode())


@pytest.mark.parametrize(
    "path", [pytest.param(MDN, marks=needs(MDN)), pytest.param(MULTI30K / "train.de.gz", marks=needs(MULTI30K))]
)
def test_real_text(path: Path) -> None:
    """Lines with their ends, a hundred to a document."""
    with gzip.open(path) as lines:
        for _ in range(6):
            check(b"".join(itertools.islice(lines, 100)))


def test_a_pattern_leaves_nothing_out() -> None:
    """Text between matches is a word; an empty match cuts nothing; offsets are right after wide characters."""
    assert Pretokeniser(r"\d+").split("Ä 24 €x") == ["Ä ".encode(), b"24", " €x".encode()]
    assert Pretokeniser(r"x*").split(b"axx\xffx") == [b"a", b"xx", b"\xff", b"x"]
    assert Pretokeniser(r"x*", split_digits=True).split("3x٣ax".encode()) == [b"3", b"x", "٣".encode(), b"a", b"x"]
    assert Pretokeniser(r"(a)|b").split(b"aab") == [b"a", b"a", b"b"]
    assert Pretokeniser(r"(?r)a{1,2}").split(b"aaa") == [b"a", b"aa"]  # from the right
    assert Pretokeniser(r"\s+(?!\S)|.").split(b"") == []
    for name, pattern in PATTERNS.items():  # the engine for any pattern and the matcher of the core
        document = "".join(random.Random(name).choices(DENSE, k=2000)).encode()
        assert Pretokeniser(f"(?:{pattern})", True).split(document) == PRETOKENISERS[name, True].split(document)


def test_text_is_its_utf8() -> None:
    """Strings and bytes are the same document; a lone surrogate, which UTF-8 cannot express, is refused by name."""
    assert Pretokeniser("gpt2").split("naïve €") == Pretokeniser("gpt2").split("naïve €".encode())
    with pytest.raises(MTScaffoldError, match="surrogate"):
        Pretokeniser("gpt2").split("a\ud800")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "gpt3",
            (
                "no pre-tokeniser is called 'gpt3'; give one of spaces, gpt2, cl100k, o200k, metaspace, "
                "metaspace-runs, or a pattern"
            ),
        ),
        ("", "no pre-tokeniser is called ''"),
        ("(a", r"the pre-tokeniser's pattern '\(a' is not valid: missing \) at position 2"),
        ("a|\n", "a pre-tokeniser's pattern is one line"),
        ("(" * 20000 + ")" * 20000, "nested too deeply"),
    ],
)
def test_bad_patterns(pattern: str, message: str) -> None:
    """Unknown names, patterns that regex refuses, and those that the first line of a codes file cannot hold."""
    with pytest.raises(UsageError, match=message):
        Pretokeniser(pattern)


def test_a_pattern_that_tries_every_way_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take years for one line, and ignore signals meanwhile."""
    monkeypatch.setattr("mt_scaffold.corpus.pretokenise._LEAST_SECONDS", 0.2)
    with pytest.raises(MTScaffoldError, match="takes too long on a text of 64 characters"):
        Pretokeniser("(?:a|aa)+b").split("a" * 64)


def test_a_pattern_without_the_package_regex(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published patterns do without it; any other reports the package that it needs."""
    monkeypatch.setitem(sys.modules, "regex", None)
    assert Pretokeniser("gpt2").split("a b") == [b"a", b" b"]
    with pytest.raises(MTScaffoldError, match="needs the package regex, which is not installed; run pip install regex"):
        Pretokeniser(r"\w+")


@pytest.mark.parametrize("num_workers", [1, 3])
@pytest.mark.parametrize("pattern", ["gpt2", r"\p{L}+"])
def test_counting_lines(pattern: str, num_workers: int) -> None:
    """Each line is a document without its LF; CRs and spaces at its ends are part of it, and bytes may be any."""
    rng = random.Random(1)
    lines = [
        b"".join(rng.choices([b" ", b"\r", b"a", b"'s", b"\xff", b"\xc3\xa4", b"7"], k=rng.randrange(9)))
        for _ in range(999)
    ]
    counts = count_words(lines=lines, pretokenise=pattern, split_digits=True, num_workers=num_workers)
    words = [word for line in lines for word in pretokenise(line, PATTERNS.get(pattern, pattern), True)]
    assert counts.byte_items() == list(Counter(words).items())
    assert counts.lines() == sum(map(bool, lines))


def test_counting_words_that_are_not_utf8() -> None:
    """Words between spaces may be other bytes only on request: symbols other than bytes need UTF-8."""
    assert count_words(lines=[b"\xff a \xff"], any_bytes=True).byte_items() == [(b"\xff", 2), (b"a", 1)]
    with pytest.raises(MTScaffoldError, match="line 1, byte offset 0: 0xFF is not UTF-8"):
        count_words(lines=[b"\xff a"])


@hundreds
@given(before=dense_text | any_bytes, after=dense_text | any_bytes)
def test_a_certain_cut_changes_no_word(before: str | bytes, after: str | bytes) -> None:
    """It holds whatever follows the text in which it was found."""
    head, tail = (text.encode() if isinstance(text, str) else text for text in (before, after))
    for pretokeniser in PRETOKENISERS.values():
        cut = pretokeniser.core.last_certain_cut(head)
        whole = pretokeniser.split(head + tail)
        assert whole == pretokeniser.split(head[:cut]) + pretokeniser.split((head + tail)[cut:])


def test_a_certain_cut_is_found() -> None:
    """In any text with letters: between words, before punctuation without spaces; not before marks."""
    gpt2 = Pretokeniser("gpt2").core
    assert gpt2.last_certain_cut(b"two words 'tis five") == len("two words 'tis")
    assert gpt2.last_certain_cut("日本、日本".encode()) == len("日本".encode())
    assert gpt2.last_certain_cut("a\u0301'b\u0301 !!!!!!!".encode()) == 0
    assert Pretokeniser(r"\w+").core.last_certain_cut(b"a pattern may look anywhere") == 0


@pytest.mark.parametrize("kind", ["words", "nothing to cut at", "a pattern"])
def test_counting_a_document_larger_than_a_block(kind: str) -> None:
    """The words are the same, LFs included, whether it is cut into blocks of 256 KiB or cannot be cut."""
    from mt_scaffold import _core

    rng = random.Random(kind)
    pieces = ["!", " ", "\n", "''"] if kind == "nothing to cut at" else [*WORDS, *DENSE, "word", " word", "\n"]
    document = "".join(rng.choices(pieces, k=400_000)).encode()
    pretokeniser = Pretokeniser(r"\w+\s*" if kind == "a pattern" else "o200k")
    inputs = [("one", document), ("two", b"a\nb"), ("three", b"")]
    counted = _core.count_words(inputs, 2, None, pretokeniser.core, whole_inputs=True)
    counts, _ = counted.load((True, "o200k", False))
    assert dict(counts.byte_items()) == Counter(pretokeniser.split(document) + pretokeniser.split(b"a\nb"))
    assert counts.lines() == 2
