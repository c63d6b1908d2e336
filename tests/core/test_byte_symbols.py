"""Symbols that are bytes, with an end-of-word marker (``--byte``) or from a pre-tokeniser, held to the reference."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from scipy import stats
from segmenting import (
    BYTES,
    MODE_NAMES,
    MODES,
    PRETOKENISED,
    Mode,
    learn_with_reference,
    reference_of,
    reference_subwords,
)

from mt_scaffold import (
    BPE,
    MTScaffoldError,
    UsageError,
    apply_bpe,
    count_words,
    get_vocab,
    learn_bpe,
    learn_joint_bpe_and_vocab,
)
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.pretokenise import Pretokeniser
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation, is_base_symbol, notation_to_bytes
from mt_scaffold.methods import Scaffold
from mt_scaffold.methods.trace import format_step

# Characters that stand for bytes: few, so that ties and strings made in several ways are common; the letters of
# "</w>"; bytes that are not UTF-8; "ä" and "日" in UTF-8.
ALPHABETS = ["a", "ab", "a</w>", "\x00\x80\xff", "a\xc3\xa4", "\xe6\x97\xa5\xe6"]
BYTE_MODES = [BYTES, PRETOKENISED]
LONGEST_SHORT_WORD = 48  # the core handles longer ones differently

hundreds = settings(max_examples=120, derandomize=True, deadline=None, database=None)
in_both_modes = pytest.mark.parametrize("mode", BYTE_MODES, ids=MODE_NAMES[1:])
in_all_modes = pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)


# Further parts of words with these letters: the marker's text, whole characters and parts of them.
PARTS = {
    "<": ["a", "a</w>", "</w>", "</w", "w>", "<"],
    "\xa4": ["a", "\xc3\xa4", "\xc3\xa4\xc3\xa4", "\xa4", "\xc3"],
    "\x97": ["\xe6\x97\xa5", "\xe6\x97\xa5\xe6\x97\xa5", "\xe6\x97", "\x97\xa5\xe6", "\xa5"],
}


def words(alphabet: str, min_size: int = 1, max_size: int = 8) -> st.SearchStrategy[str]:
    letters = st.text(alphabet=alphabet, min_size=min_size, max_size=max_size)
    for letter, parts in PARTS.items():
        if letter in alphabet:
            of_parts = st.lists(st.sampled_from(parts), min_size=1, max_size=max_size // 2).map("".join)
            letters |= of_parts.filter(lambda word: len(word) >= min_size)
    return letters


word_counts = st.sampled_from(ALPHABETS).flatmap(
    lambda alphabet: st.dictionaries(words(alphabet), st.integers(1, 9), min_size=1, max_size=6)
)


@in_both_modes
@pytest.mark.parametrize("algorithm", ["scaffold", "bpe"])
@hundreds
@given(counts=word_counts, symbols=st.integers(1, 12), min_frequency=st.integers(1, 4))
def test_learning(mode: Mode, algorithm: str, counts: dict[str, int], symbols: int, min_frequency: int) -> None:
    """Both take the same steps and end alike; ties go to the greater pair of byte strings, not of its notation."""
    lines: list[str | bytes] = [mode.word(word) + b" %d" % count for word, count in counts.items()]
    options: dict[str, Any] = {"is_dict": True, "byte_level": True}
    if mode == PRETOKENISED:
        # Spaces belong to the word that follows them; the reference is given the words that were counted.
        lines = [mode.word(f" {word}" if count % 2 else word) for word, count in counts.items() for _ in range(count)]
        options = {"pretokenise": "gpt2"}
        counts = {word.decode("latin-1"): n for word, n in count_words(lines=lines, **options).byte_items()}
    reference, codes = learn_with_reference(counts, symbols, min_frequency, algorithm, mode)
    trace = io.BytesIO()
    native = learn_with(None, None, symbols, min_frequency, algorithm=algorithm, lines=lines, trace=trace, **options)
    assert native.text == codes

    def shown(token: str) -> str:
        return bytes_to_notation(token.encode("latin-1"))

    _, *traced = trace.getvalue().decode("utf-8").split("\n")
    steps = [
        step._replace(
            left=shown(step.left),
            right=shown(step.right),
            marked=tuple((shown(token), count) for token, count in step.marked),
            returned=step.returned and (shown(step.returned[0]), step.returned[1]),
        )
        for step in reference.steps
    ]
    assert traced == [*(format_step(number, step)[:-1] for number, step in enumerate(steps, 1)), ""]
    marked = {left + right for left, right in reference.merges} & reference.scaffold
    assert (native.merges, native.scaffold) == (len(reference.merges), len(marked))
    assert (native.restored, native.exhausted) == (reference.restored, reference.exhausted)
    assert [merge.token for merge in native.codes.merges] == [shown(left + right) for left, right in reference.merges]
    assert Codes(native.text).header == CodesHeader("bytes", "spaces" if mode == BYTES else "gpt2")
    BPE(native.text)  # what learning writes, applying reads


@st.composite
def codes_of(draw: st.DrawFn, alphabet: str, mode: Mode) -> bytes:
    """Draw codes that no corpus need lead to: strings made in several ways, merges that repeat or never apply."""
    marked = [letter + END_OF_WORD for letter in alphabet] if mode.end_of_word else []
    made = [*alphabet, *marked]
    base = set(made)
    marks: dict[str, bool] = {}
    lines = [mode.first_line.encode()]
    for _ in range(draw(st.integers(0, 14))):
        inside = [token for token in made if not (mode.end_of_word and token.endswith(END_OF_WORD))]
        left, right = draw(st.sampled_from(inside)), draw(st.sampled_from(made))
        token = left + right
        if len(token) > 30:
            continue
        scaffold = marks.setdefault(token, token not in base and draw(st.booleans()))
        made.append(token)
        lines.append(b" ".join([mode.in_file(left), mode.in_file(right)] + [b"scaffold"] * scaffold))
    return b"\n".join([*lines, b""])


@st.composite
def cases(
    draw: st.DrawFn, mode: Mode, min_size: int = 1, max_size: int = 12
) -> tuple[bytes, int, str, set[str] | None, bytes]:
    """Draw codes, the number of merges to use, a separator, perhaps a vocabulary, and a line of bytes."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    codes = draw(codes_of(alphabet, mode))
    merges = draw(st.just(-1) | st.integers(0, 14))
    separator = draw(st.sampled_from(["@@", "~", "￭", "</w>"])) if mode == BYTES else "@@"
    with_unknown = words(alphabet, min_size, max_size) | words(alphabet + "x\xfc", min_size, max_size)
    some_words = draw(st.lists(with_unknown, min_size=1, max_size=6))
    spaces = st.sampled_from(["", " ", "  ", "\r", " \r", "\r\n", "\n"])
    line = draw(spaces) + draw(st.sampled_from([" ", "   "])).join(some_words) + draw(spaces)
    vocabulary = None
    if mode == BYTES and draw(st.booleans()):
        forms = sorted(BPE(codes, separator=separator).surface_forms())
        vocabulary = draw(st.sets(st.sampled_from(forms), max_size=len(forms))) if forms else None
    return codes, merges, separator, vocabulary, line.encode("latin-1")


def check(case: tuple[bytes, int, str, set[str] | None, bytes]) -> None:
    codes, merges, separator, vocabulary, line = case
    bpe = BPE(codes, merges, separator, vocabulary)
    if bpe.header.end_of_word:
        # The reference represents bytes as characters, also in the separator.
        known = vocabulary and {form.encode("utf-8", "surrogateescape").decode("latin-1") for form in vocabulary}
        reference = reference_of(codes, merges, separator.encode().decode("latin-1"), known)
        expected = reference.process_line(line.decode("latin-1")).encode("latin-1")
    else:
        reference = reference_of(codes, merges)
        text = line.removesuffix(b"\n")
        tokens = Pretokeniser("gpt2").split(text)
        expected = reference_subwords(reference, tokens).encode() + line[len(text) :]
        assert b" ".join(bpe.segment_tokens(tokens)) == expected.removesuffix(b"\n")
        pieces = [notation_to_bytes(piece) for piece in expected.removesuffix(b"\n").decode().split()]
        for _ in range(2):  # as new words, and then from the table and the cache of words
            assert [bpe.tokens[number] for number in bpe.encode(text)] == pieces
        assert bpe.join(expected) == line
    assert bpe.process_line(line) == expected
    assert bpe.process_line(line) == expected  # from the table of words, the second time
    as_text = line.decode("utf-8", "surrogateescape")
    assert bpe.process_line(as_text).encode("utf-8", "surrogateescape") == expected
    written = io.BytesIO()
    bpe.process_file(io.BytesIO(line), written)
    if line.count(b"\n") == line.endswith(b"\n"):
        assert written.getvalue() == expected


@in_both_modes
@settings(hundreds, max_examples=200)
@given(data=st.data())
def test_applying(mode: Mode, data: st.DataObject) -> None:
    """Both agree on scaffolding, demolishing, the vocabulary filter, ``--merges``, separators and margins."""
    check(data.draw(cases(mode)))


# Merges inside "é" and "日", in both orders, and across their edges.
INSIDE = ["\xc3 \xa9", "\xe6 \x97", "\xe6\x97 \xa5", "\x97 \xa5", "\xe6 \x97\xa5"]
ACROSS = [
    "a \xc3",
    "a \xe6",
    "\xa9 a",
    "\xa5 a",
    "\xa9 \xe6",
    "\xa5 \xc3",
    "\xa5 \xe6",
    "\x97\xa5 \xe6",
    "\xa5 \xe6\x97",
]
ACROSS += ["\xa9 \xc3", "\xa9 \xc3\xa9", "\xe6\x97\xa5 \xe6\x97\xa5", "\xc3\xa9 \xe6\x97\xa5", "\xe6\x97\xa5 a"]


@settings(hundreds, max_examples=400)
@given(
    inside=st.permutations(INSIDE),
    across=st.lists(st.tuples(st.sampled_from(ACROSS), st.integers(0, len(INSIDE))), max_size=4),
    line=st.lists(
        st.sampled_from([*"a ", "\xc3\xa9", *["\xe6\x97\xa5"] * 2, "\xe6", "\x97\xa5"]), min_size=1, max_size=12
    ),
)
def test_merges_across_the_edges_of_characters(
    inside: list[str], across: list[tuple[str, int]], line: list[str]
) -> None:
    """A character may be one symbol from the start only if no earlier merge crosses its edges."""
    merges = list(inside)
    for merge, rank in across:
        merges.insert(rank, merge)
    lines = [" ".join(PRETOKENISED.in_file(token).decode() for token in merge.split(" ")) for merge in merges]
    codes = "\n".join([PRETOKENISED.first_line, *lines, ""]).encode()
    check((codes, -1, "@@", None, "".join(line).encode("latin-1")))


@in_both_modes
@settings(hundreds, max_examples=40)
@given(data=st.data())
def test_applying_to_long_words(mode: Mode, data: st.DataObject) -> None:
    """The algorithm for long words agrees too, also around the length at which it takes over."""
    check(data.draw(cases(mode, LONGEST_SHORT_WORD - 3, 6 * LONGEST_SHORT_WORD)))


@pytest.mark.parametrize(
    ("codes", "word"),
    [
        (b"#version: 0.2 byte\na \xff\na\xff a scaffold\na\xffa \xff</w>\n\xff \xff\n", b"a\xffa\xff"),
        (b"#version: 0.3 bytes gpt2\na a\naa a scaffold\n\xc4\xa0 aa\naaa a\n", b" aaaa"),
    ],
)
def test_dropout_has_the_exact_distribution(codes: bytes, word: bytes) -> None:
    """Every segmentation of a word of bytes is as frequent as enumerating all outcomes predicts."""
    reference, bpe = reference_of(codes), BPE(codes)
    draws = 20_000
    written = io.BytesIO()
    bpe.process_file(io.BytesIO(b"\n".join([word] * draws)), written, dropout=0.4, seed=5)
    seen = Counter(written.getvalue().split(b"\n"))
    exact = {}
    for pieces, probability in reference.dropout_distribution(word.decode("latin-1"), 0.4).items():
        inner, last = [piece.encode("latin-1") for piece in pieces[:-1]], pieces[-1].encode("latin-1")
        if bpe.header.end_of_word:
            form = b" ".join([*(piece + b"@@" for piece in inner), last])
        else:
            form = " ".join(map(bytes_to_notation, [*inner, last])).encode()
        exact[form] = probability
    assert set(seen) <= set(exact) and len(exact) > 2
    expected = [exact[form] * draws for form in exact]
    assert stats.chisquare([seen[form] for form in exact], expected).pvalue > 1e-5
    assert bpe.segment(word, 0.4, 5, 3) == written.getvalue().split(b"\n")[3]


PATTERN = r"\w+|[^\w ]+"
HEADERS: list[dict[str, Any]] = [
    {"byte_level": True},
    *({"pretokenise": name, "split_digits": digits} for name in ("gpt2", "cl100k", "o200k") for digits in (0, 1)),
    {"pretokenise": PATTERN, "split_digits": True},
]


@pytest.mark.parametrize("options", HEADERS, ids=str)
@settings(hundreds, max_examples=25)
@given(text=st.binary(max_size=60) | st.text(max_size=30).map(str.encode), data=st.data())
def test_every_text_comes_back(options: dict[str, Any], text: bytes, data: st.DataObject) -> None:
    """The subwords of a pre-tokeniser's codes join to the text, byte for byte, with dropout too; and none is unknown:
    all are among those that the codes list. Codes for words between spaces keep the words."""
    if "pretokenise" in options and options["pretokenise"] == PATTERN:
        pytest.importorskip("regex", reason="regex is not installed")
    options = {key: bool(value) if key == "split_digits" else value for key, value in options.items()}
    learned = learn_bpe(lines=[b"the cat 123 \xff\xfe na\xc3\xafve", b"the cat's 12", text], num_symbols=12, **options)
    bpe = BPE(learned.codes)
    assert learned.codes.header == CodesHeader.of_options(**options)
    forms = set(bpe.surface_forms())
    for dropout in (0, 0.5):
        subwords = bpe.segment(text, dropout, 1)
        if bpe.header.end_of_word:
            assert bpe.join(subwords) == b" ".join(word for word in text.strip(b"\r\n ").split(b" ") if word)
            continue
        assert bpe.join(subwords) == text
        shown = subwords.decode("utf-8")
        assert bpe.join(bpe.segment(text.decode("utf-8", "surrogateescape"), dropout, 1)).encode(
            "utf-8", "surrogateescape"
        ) == text  # fmt: skip
        assert not shown or set(shown.split(" ")) <= forms
        ids, offsets = bpe.encoder({form: number for number, form in enumerate(bpe.surface_forms())}, -1).encode(
            [text], dropout, 1
        )
        assert [bpe.surface_forms()[number] for number in ids] == (shown.split(" ") if shown else [])
        assert list(offsets) == [0, len(ids)]


@in_all_modes
def test_counts_of_subwords(mode: Mode, tmp_path: Path) -> None:
    """Vocabularies come from counted words, and are those of the segmented text; with several threads as with one."""
    lines = [b"the  cat\xc3\xa4 12\r", b" a\xc3\xa4 the th", b"", b"caf\xc3\xa9 the cat\xc3\xa4"]
    if mode.byte_level:
        lines += [b"\xff\xfe the \x00", b"\xe6\x97 x"]
    text = tmp_path / "text"
    text.write_bytes(b"\n".join(lines * 7) + b"\n")
    codes, vocabularies = tmp_path / "codes", [tmp_path / "v1", tmp_path / "v2"]
    options = mode.options
    learned = learn_joint_bpe_and_vocab([text, text], codes, vocabularies, Scaffold(20), num_workers=2, **options)
    assert learned.text == codes.read_bytes() == learn_bpe(paths=[text, text], num_symbols=20, **options).text
    segmented, counted = tmp_path / "segmented", tmp_path / "counted"
    apply_bpe(codes, text, segmented, num_workers=3)
    bpe = BPE(learned.codes)
    assert segmented.read_bytes() == b"".join(bpe.process_line(line + b"\n") for line in lines * 7)
    get_vocab(segmented, counted, byte_level=mode == BYTES)
    assert sorted(counted.read_bytes().splitlines()) == sorted(vocabularies[0].read_bytes().splitlines())
    if mode == BYTES:
        # Every subword is in the vocabulary, so it changes nothing; the file need not be UTF-8.
        apply_bpe(codes, text, counted, vocabulary=vocabularies[1])
        assert counted.read_bytes() == segmented.read_bytes()


def test_total_symbols_counts_the_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """The 256 bytes are in the vocabulary of a pre-tokeniser's codes, seen or not; with spaces, those that occur."""
    lines = [b"abab abab", b"ab ab"]
    learned = learn_bpe(lines=lines, num_symbols=258, total_symbols=True, algorithm="bpe", pretokenise="gpt2")
    assert learned.merges == 2
    assert "Number of bytes: 256\nReducing number of merge operations by 256\n" in capsys.readouterr().err
    with pytest.raises(UsageError, match="the text has 256 base symbols"):
        learn_bpe(lines=lines, num_symbols=256, total_symbols=True, pretokenise="o200k")
    learned = learn_bpe(lines=lines, num_symbols=5, total_symbols=True, algorithm="bpe", byte_level=True)
    assert learned.merges == 2
    assert "word-internal characters: 2\nNumber of word-final characters: 1\n" in capsys.readouterr().err


def test_notation() -> None:
    """GPT-2's: printable bytes are themselves, the others U+0100 and the next ones in order; nothing else is read."""
    every = bytes(range(256))
    notation = bytes_to_notation(every)
    assert len(set(notation)) == 256 and notation_to_bytes(notation) == every
    assert not any(char.isspace() for char in notation)
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    assert [ord(char) for char in notation if ord(char) < 256] == own
    others = [byte for byte in range(256) if byte not in own]
    assert [notation[byte] for byte in others] == [chr(256 + n) for n in range(68)]
    assert bytes_to_notation(b" \n\xad") == "ĠĊŃ"
    for wrong in (" ", "a\n", "\xad", "\u0144", "日", "ab\x7f"):
        with pytest.raises(MTScaffoldError, match="GPT-2's notation of bytes"):
            notation_to_bytes(wrong)
    with pytest.raises(MTScaffoldError, match="GPT-2's notation of bytes"):
        BPE(b"#version: 0.3 bytes gpt2\n").join("Ġa ż 日")
    assert is_base_symbol("Ġ", end_of_word=False) and not is_base_symbol("a</w>", end_of_word=False)


@pytest.mark.parametrize(
    "header",
    [
        CodesHeader(),
        CodesHeader("bytes"),
        CodesHeader("bytes", "gpt2"),
        CodesHeader("bytes", "cl100k", True),
        CodesHeader("bytes", " ?\\p{L}+| split-digits ", False),
        CodesHeader("bytes", "pattern=[é]", True),
    ],
)
def test_first_lines_are_read_back(header: CodesHeader) -> None:
    """A header that learning writes is read back unchanged; a pattern keeps the spaces at its ends."""
    from mt_scaffold import _core

    counts = _core.count_words([("text", b"ab ab")])
    text = _core.learn(counts, "bpe", 1, 1, header=header.for_core)["codes"]
    assert Codes(text).header == header
    assert Codes(text.replace(b"\n", b"\r\n")).header == header
    assert Codes(text).merges == Codes(text.replace(b"\n", b"\r\n")).merges


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ("", "the codes file is empty"),
        ("#version: 0.1", "line 1: unsupported version of the codes file; learn the codes again"),
        ("#version: 0.2 bytes", "line 1: unsupported version"),
        ("#version: 0.3", "line 1: unsupported version"),
        ("#version: 0.3 byte gpt2", "line 1: unsupported version"),
        ("#version: 0.4 bytes gpt2", "line 1: '#version: 0.4 bytes gpt2' is newer than this mt-scaffold.*update it"),
        ("#version: 1.0", "line 1: '#version: 1.0' is newer"),
        ("#version: 0.3 bytes", "line 1: a pre-tokeniser is missing"),
        ("#version: 0.3 bytes split-digits", "line 1: a pre-tokeniser is missing"),
        ("#version: 0.3 bytes spaces", "line 1: 'spaces' is not a pre-tokeniser"),
        ("#version: 0.3 bytes gpt5", "line 1: 'gpt5' is not a pre-tokeniser that this mt-scaffold knows"),
        ("#version: 0.3 bytes gpt2 lower-case", "line 1: 'lower-case' is not an option"),
        ("#version: 0.3 bytes gpt2 split-digits split-digits", "line 1: 'split-digits' is not an option"),
        ("#version: 0.3 bytes gpt2 cl100k", "line 1: 'cl100k' is not an option"),
        ("#version: 0.3 bytes pattern=", "line 1: expected a regular expression after 'pattern='"),
        ("#version: 0.3 bytes pattern=gpt2", "line 1: expected a regular expression"),
        ("#version: 0.3 bytes gpt2\na b\nĠ 日", "line 3: '日' is not in GPT-2's notation of bytes"),
        ("#version: 0.3 bytes gpt2\na b c", "line 2: the third field must be 'scaffold', not 'c'"),
        ("#version: 0.3 bytes gpt2\na b scaffold\na b", "line 3: 'ab' is not scaffold here but on line 2"),
        ("#version: 0.2 byte\na b\n<</w>", "line 3: expected 'LEFT RIGHT'"),
        # A Windows line end: printed unescaped, its CR would hide what precedes it.
        ("#version: 0.2\na b scaffold\r\n", r"line 2: the third field must be 'scaffold', not 'scaffold\\r'$"),
        # So would characters that Python or terminals treat as line ends or control characters.
        (
            "#version: 0.2\na b \x85c\u2028\u2029\x9b\xa0\u202a",
            r"line 2: .*, not '\\x85c\\u2028\\u2029\\x9B\xa0\u202a'$",
        ),
        ("#version: 0.3 bytes gpt2\na \x85", r"line 2: '\\x85' is not in GPT-2's notation of bytes"),
    ],
)
def test_malformed_codes(codes: str, message: str) -> None:
    """Errors are one line with the file, the line and what to do, above all for a file of another version."""
    with pytest.raises(MTScaffoldError, match=f"^codes: {message}"):
        BPE(codes.encode())


def test_codes_that_are_not_utf8() -> None:
    """Codes of ``--byte`` may contain any bytes; errors name the place and quote bytes in printable form."""
    assert Codes(b"#version: 0.2 byte\n\xff \xfe</w>\n").merges[0].token == "ÿþ</w>"
    with pytest.raises(MTScaffoldError, match="line 2: byte 3 of the line is not UTF-8"):
        BPE(b"#version: 0.3 bytes gpt2\na \xff\n")
    with pytest.raises(MTScaffoldError, match="line 2: the third field must be 'scaffold', not 'ÿ'"):
        BPE(b"#version: 0.2 byte\na b \xff\n")
    with pytest.raises(MTScaffoldError, match="line 3: 'ÿÿ' is not scaffold here"):
        BPE(b"#version: 0.2 byte\n\xff \xff scaffold\n\xff \xff\n")
    with pytest.raises(MTScaffoldError, match="line 1: the pattern is not UTF-8"):
        BPE(b"#version: 0.3 bytes pattern=\xff+\n")


GPT2 = b"#version: 0.3 bytes gpt2\na b\n"


@pytest.mark.parametrize(
    "call",
    [
        lambda: learn_bpe(lines=["a"], split_digits=True),
        lambda: learn_bpe(lines=["a"], byte_level=True, split_digits=True),
        lambda: learn_bpe(lines=["a"], pretokenise="gpt-2"),
        lambda: learn_bpe(lines=["a"], pretokenise=""),
        lambda: learn_bpe(lines=["a"], pretokenise="a\n|b"),
        lambda: learn_bpe(lines=["a 1"], is_dict=True, pretokenise="gpt2"),
        lambda: learn_joint_bpe_and_vocab(["a"], "b", ["c"], separator="~", pretokenise="gpt2"),
        lambda: BPE(GPT2, separator="~"),
        lambda: BPE(GPT2, vocab={"a"}),
        lambda: BPE(GPT2, glossaries=["a"]),
        lambda: BPE(b"#version: 0.2 byte\n").segment_tokens([b"a b"]),
    ],
)
def test_what_cannot_go_together(call: Callable[[], object]) -> None:
    """Options that would have no effect, or change the text, are refused."""
    with pytest.raises(UsageError):
        call()


def test_from_the_command_line(tmp_path: Path) -> None:
    """The commands take the options, and recognise the kind of codes."""
    text, codes, output, vocabulary = (tmp_path / name for name in ("text", "codes", "output", "vocabulary"))
    text.write_bytes(b" the cat 12\r\n\xff\xfe  the\n\nthe")
    files = ["--input", str(text), "--output", str(codes)]
    for option in ("--byte", "--bytes", "-b"):
        assert main(["learn-bpe", *files, option, "--symbols", "3", "--algorithm", "bpe"]) == 0
        assert codes.read_bytes().startswith(b"#version: 0.2 byte\nt h\nth e</w>\n")
    assert main(["apply-bpe", "--codes", str(codes), "--input", str(text), "--output", str(output)]) == 0
    assert output.read_bytes() == b" the c@@ a@@ t 1@@ 2\r\n\xff@@ \xfe the\n\nthe"
    assert main(["get-vocab", "--byte", "--input", str(output), "--output", str(vocabulary)]) == 0
    assert vocabulary.read_bytes().startswith(b"the 3\n") and b"\xff@@ 1\n" in vocabulary.read_bytes()
    assert main(["get-vocab", "--input", str(output), "--output", str(vocabulary)]) == 1

    assert main(["learn-bpe", *files, "--pretokenise", "cl100k", "--split-digits", "--symbols", "3"]) == 0
    assert codes.read_bytes().startswith(b"#version: 0.3 bytes cl100k split-digits\nt h")
    assert main(["apply-bpe", "--codes", str(codes), "--input", str(text), "--output", str(output)]) == 0
    assert output.read_text("utf-8").split("\n")[0] == "Ġthe Ġ c a t Ġ 1 2 č"
    lines = output.read_bytes().split(b"\n")
    assert b"\n".join(BPE(codes).join(line) for line in lines) == text.read_bytes()
    assert main(["learn-bpe", *files, "--split-digits"]) == 2
