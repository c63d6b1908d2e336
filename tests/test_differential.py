"""Every method, on characters and on bytes, held to the plain Python reference: learn, apply, dropout, ids, decode.

Hypothesis makes the cases as awkward as it can, and the same ones in each run; with ``HYPOTHESIS_PROFILE=soak``, new
ones, and many times as many (``make soak``).
"""

from __future__ import annotations

import io
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from awkward_words import LONGEST_SHORT_WORD, alphabets, counts_in, examples, words
from dropping import CODES, PICKY_CODES, SUSPICIOUS, sampled, surprise
from dropping import words_of as words_of_line
from hypothesis import given
from hypothesis import strategies as st
from learning import learn_with
from reference import trimming
from reference.distribution import dropout_distribution
from reference.ids import ReferenceIds
from reference.picky import LearnedPicky
from segmenting import (
    CHARACTERS,
    MODE_NAMES,
    MODES,
    PRETOKENISED,
    Mode,
    hard_text,
    in_codes,
    learn_picky_with_reference,
    learn_with_reference,
    lines_at_lf,
    pairs_of,
    picky_codes,
    reference_of,
    reference_subwords,
)

from mt_scaffold import BPE, Codes, count_words
from mt_scaffold.analysis.reference import Learned, ReferenceBPE, base_symbols, pretokenise
from mt_scaffold.analysis.reference_picky import Event, MergeEvent, SplitEvent
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.pretokenise import PATTERNS, Pretokeniser
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation, is_base_symbol, notation_to_bytes, words_of
from mt_scaffold.methods.trace import Step, format_step
from mt_scaffold.methods.trimming import trim

METHODS = ["bpe", "scaffold", "picky", "trimmed"]
in_every_mode = pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
# Codes of plain BPE, Scaffold-BPE and of any tokens that are marked afterwards are one kind, with any marks.
of_both_kinds = pytest.mark.parametrize("kind", ["marked", "picky"])

# ---- learn


def shown(token: str, mode: Mode) -> str:
    """Return a token of the reference as traces and ``Codes`` show it."""
    return bytes_to_notation(token.encode("latin-1")) if mode.byte_level else token


def shown_step(step: Step, mode: Mode) -> Step:
    return step._replace(
        left=shown(step.left, mode),
        right=shown(step.right, mode),
        marked=tuple((shown(token, mode), count) for token, count in step.marked),
        returned=step.returned and (shown(step.returned[0], mode), step.returned[1]),
    )


def learn_with_both(
    method: str, mode: Mode, counts: dict[str, int], symbols: int, min_frequency: int, threshold: float | None
) -> bytes:
    """Check that the core and the reference take the same steps and end alike; return the codes."""
    lines: list[bytes] = [mode.word(word) + b" %d" % count for word, count in counts.items()]
    options: dict[str, Any] = {"is_dict": True, "byte_level": mode.byte_level}
    if mode == PRETOKENISED:
        lines, counts = pretokenised(counts)
        options = mode.options
    reference: Learned | LearnedPicky
    if method == "picky":
        assert threshold is not None
        reference, codes = learn_picky_with_reference(counts, symbols, threshold, min_frequency, mode)
        made = {event.left + event.right for event in reference.events if isinstance(event, MergeEvent)}
        merges, scaffold = len(reference.steps), len(made - reference.vocabulary)
    else:
        reference, codes = learn_with_reference(counts, symbols, min_frequency, method, mode)
        made = {left + right for left, right in reference.merges}
        merges, scaffold = len(reference.merges), len(made & reference.scaffold)
    trace = io.BytesIO()
    native = learn_with(
        None, None, symbols, min_frequency, method, lines=lines, trace=trace, threshold=threshold, **options
    )
    assert native.text == codes
    _, *traced = trace.getvalue().decode("utf-8").split("\n")
    steps = [format_step(number, shown_step(step, mode))[:-1] for number, step in enumerate(reference.steps, 1)]
    assert traced == [*steps, ""]
    assert (native.merges, native.scaffold) == (merges, scaffold)
    assert (native.restored, native.exhausted) == (reference.restored, reference.exhausted)
    if isinstance(reference, LearnedPicky):
        assert native.exhausted or len(reference.vocabulary) == symbols
    words = "spaces" if mode.end_of_word else "gpt2"
    assert native.codes.header == CodesHeader(
        "bytes" if mode.byte_level else "characters", words, picky=method == "picky"
    )
    BPE(native.text)  # what learning writes, applying reads
    return codes


def pretokenised(counts: dict[str, int]) -> tuple[list[bytes], dict[str, int]]:
    """Return lines with these words, some after a space, which belongs to the word; and the words with their counts."""
    lines = [
        (f" {word}" if count % 2 else word).encode("latin-1") for word, count in counts.items() for _ in range(count)
    ]
    return lines, {
        word.decode("latin-1"): count for word, count in count_words(lines=lines, pretokenise="gpt2").byte_items()
    }


def trim_with_both(mode: Mode, counts: dict[str, int], codes: bytes, rules: dict[str, Any], refill: int) -> bytes:
    """Check that the same tokens are marked, and the same merges learned after it; return the marked codes."""
    if mode == PRETOKENISED:
        lines, counts = pretokenised(counts)
    else:
        lines = [mode.word(word) for word, count in counts.items() for _ in range(count)]
    pairs = pairs_of(codes, mode)
    before = {left + right for left, right in pairs if in_codes([left + right], mode) <= Codes(codes).scaffold}
    marked = trim(codes, lines=lines, **rules).codes
    expected = trimming.mark(counts, pairs, before, **rules, end_of_word=mode.end_of_word)
    assert marked.scaffold == in_codes(expected, mode)
    if "entropy" not in rules:
        refilled = trim(codes, lines=lines, refill=refill, **rules)
        made, expected = trimming.refill(counts, pairs, refill, before, **rules, end_of_word=mode.end_of_word)
        assert pairs_of(refilled.codes.with_scaffold([]).text, mode) == made
        assert refilled.codes.scaffold == in_codes(expected, mode)
        assert refilled.learned == len(made) - len(pairs)
    return marked.text


thresholds = st.sampled_from([0.9, 0.6, 0.3, 0.5, 1.0, 0.01]) | st.floats(0.01, 1)
marking: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{"below": 2}, {"below": 4}, {"below": 9}, {"ratio": 0.3}, {"ratio": 0.9}, {"below": 3, "ratio": 0.2}]
)
# The reference counts neighbours of symbols, not of letters that spell "</w>".
marking_by_neighbours: st.SearchStrategy[dict[str, Any]] = marking | st.sampled_from(
    [{"ratio": 0.6, "entropy": 0.5}, {"ratio": 1, "entropy": 1.5}]
)


def learn_drawn(method: str, mode: Mode, counts: dict[str, int], data: st.DataObject) -> bytes:
    """Learn with the core and the reference, with settings that hypothesis draws."""
    symbols, min_frequency = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 4))
    learner = data.draw(st.sampled_from(["bpe", "scaffold"])) if method == "trimmed" else method
    threshold = data.draw(thresholds) if method == "picky" else None
    codes = learn_with_both(learner, mode, counts, symbols, min_frequency, threshold)
    if method == "trimmed":
        rules = data.draw(marking if "<" in "".join(counts) else marking_by_neighbours)
        codes = trim_with_both(mode, counts, codes, rules, data.draw(st.integers(1, 24)))
    return codes


@in_every_mode
@pytest.mark.parametrize("method", METHODS)
@examples(150)
@given(data=st.data())
def test_learn(method: str, mode: Mode, data: st.DataObject) -> None:
    """Both take the same steps and end alike: merges, marks, splits, frequencies, returns, the same early end. What was
    learned is applied to words of the same letters, seen and unseen, and no scaffold token comes out."""
    counts = data.draw(counts_in(mode))
    codes = learn_drawn(method, mode, counts, data)
    unseen = data.draw(st.lists(words("".join(sorted({*"".join(counts)})), 1, 12), max_size=4))
    check_applying(codes, mode, mode.word(" ".join([*counts, *unseen])))


def test_a_token_beside_one_of_the_same_string_that_another_pair_made() -> None:
    """Letters that spell out "</w>" make "ba</w>" earlier than "b" and the symbol "a</w>" do, next to it."""
    counts = {"ecd": 3, "ba</w>x": 30, "ba</w>ba": 9, "ba": 4, "ba</w>cd": 2}
    codes = learn_with_both("bpe", CHARACTERS, counts, 12, 1, None)
    assert b"\nba</ w>\nba</w> x</w>\nb a</w>\nba</w> ba</w>\nc d</w>\ne cd</w>\nba</w> cd</w>\n" in codes


# ---- apply


@st.composite
def marked_codes(draw: st.DrawFn, alphabet: str, mode: Mode) -> bytes:
    """Draw codes that no corpus need lead to: strings made in several ways, merges that repeat or never apply."""
    made = [*alphabet, *(letter + END_OF_WORD for letter in alphabet if mode.end_of_word)]
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
def events_of(draw: st.DrawFn, alphabet: str, mode: Mode) -> list[Event]:
    """Draw events that need not come from a corpus: pairs merged repeatedly, tokens split in any way allowed."""

    def is_final(token: str) -> bool:
        return mode.end_of_word and token.endswith(END_OF_WORD)

    made = [*alphabet, *(letter + END_OF_WORD for letter in alphabet if mode.end_of_word)]
    standing = set(made)
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 16))):
        split = sorted(token for token in standing if not is_base_symbol(token, mode.end_of_word))
        if split and draw(st.integers(0, 2)) == 0:
            token = draw(st.sampled_from(split))
            standing.remove(token)
            rest, pieces = token, []
            while rest:
                ends = [end for end in range(1, len(rest) + 1) if rest[:end] in standing]
                ends = [end for end in ends if is_final(rest[:end]) == (is_final(token) and end == len(rest))]
                if not ends:
                    break
                end = draw(st.sampled_from(ends))
                pieces.append(rest[:end])
                rest = rest[end:]
            if rest:
                standing.add(token)
                continue
            events.append(SplitEvent(token, tuple(pieces)))
            continue
        left = draw(st.sampled_from([token for token in made if not is_final(token)]))
        right = draw(st.sampled_from(made))
        token = left + right
        if len(token) <= 30 and is_final(token) == is_final(right):
            made.append(token)
            standing.add(token)
            events.append(MergeEvent(left, right))
    return events


@st.composite
def codes_and_letters(draw: st.DrawFn, kind: str, mode: Mode) -> tuple[bytes, str]:
    """Draw codes that no corpus need lead to, and the letters that they merge."""
    alphabet = draw(st.sampled_from(alphabets(mode)))
    if kind == "picky":
        return picky_codes(draw(events_of(alphabet, mode)), mode), alphabet
    return draw(marked_codes(alphabet, mode)), alphabet


@st.composite
def lines(draw: st.DrawFn, mode: Mode, alphabet: str) -> bytes:
    """Draw a line of short words, of words around the length at which the core's other algorithm takes over, or of
    longer ones, some too long to be cached."""
    long = LONGEST_SHORT_WORD
    least, most = draw(st.sampled_from([(1, 12), (1, 12), (1, 12), (long - 3, long + 3), (long + 1, 6 * long)]))
    unknown = "x\xfc"
    some_words = st.lists(words(alphabet, least, most) | words(alphabet + unknown, least, most), min_size=1, max_size=6)
    spaces = st.sampled_from(["", " ", "  ", "\r", " \r", "\r\n", "\n"])
    return mode.word(draw(spaces) + draw(st.sampled_from([" ", "   "])).join(draw(some_words)) + draw(spaces))


def as_the_reference_reads(text: str, mode: Mode) -> str:
    """Return text, in which surrogates stand for bytes that are not UTF-8, in the form of the reference."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1") if mode.byte_level else text


def check_applying(
    codes: bytes,
    mode: Mode,
    line: bytes,
    merges: int = -1,
    separator: str = "@@",
    vocabulary: set[str] | None = None,
) -> None:
    """Check the subwords of a line, however it is given."""
    known = None if vocabulary is None else {as_the_reference_reads(form, mode) for form in vocabulary}
    reference = reference_of(codes, merges, as_the_reference_reads(separator, mode), known)
    bpe = BPE(codes, merges, separator, vocabulary)
    if mode.end_of_word:
        found = words_of(mode.text(line))
        expected = mode.word(reference.process_line(mode.text(line)))
    else:
        text = line.removesuffix(b"\n")
        tokens = Pretokeniser("gpt2").split(text)
        found = [token.decode("latin-1") for token in tokens]
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
    made = {
        piece
        for word in found
        for symbol in reference.scaffolding(base_symbols(word, mode.end_of_word))
        for piece in reference.demolish(symbol)
    }
    assert not made & reference.scaffold, "a scaffold token came out"


@in_every_mode
@of_both_kinds
@examples(200)
@given(data=st.data())
def test_apply(kind: str, mode: Mode, data: st.DataObject) -> None:
    """Both agree on scaffolding, demolishing, every order of events, the vocabulary filter, ``--merges``, separators
    and margins."""
    codes, alphabet = data.draw(codes_and_letters(kind, mode))
    line = data.draw(lines(mode, alphabet))
    merges = data.draw(st.just(-1) | st.integers(0, 14))
    separator = data.draw(st.sampled_from(["@@", "@@", "~", "￭", "</w>"])) if mode.end_of_word else "@@"
    vocabulary = None
    if mode.end_of_word and data.draw(st.booleans()):
        forms = {*BPE(codes, separator=separator).surface_forms()}
        forms |= {word.decode("utf-8", "surrogateescape") for word in line.split(b" ") if word.strip(b"\r\n")}
        vocabulary = data.draw(st.sets(st.sampled_from(sorted(forms)), max_size=len(forms)))
    check_applying(codes, mode, line, merges, separator, vocabulary)


# Merges inside "é" and "日", in both orders, across their edges, and beside them.
INSIDE = [["\xc3 \xa9"], ["\xe6 \x97", "\xe6\x97 \xa5"], ["\x97 \xa5", "\xe6 \x97\xa5"]]
ACROSS = [
    *["a \xc3", "\xa9 a", "a \xc3\xa9", "\xc3\xa9 a", "a \xe6", "a \xe6\x97", "a \xe6\x97\xa5"],
    *["\xa5 a", "\x97\xa5 a", "\xe6\x97\xa5 a", "\xa5 \xe6", "\xa5 \xe6\x97", "\xa5 \xe6\x97\xa5"],
    *["\x97\xa5 \xe6", "\xe6\x97\xa5 \xe6", "\xe6\x97\xa5 \xe6\x97"],
]


@pytest.mark.parametrize("inside", INSIDE)
def test_merges_across_the_edges_of_characters(inside: list[str]) -> None:
    """A character may be one symbol from the start only if no earlier merge crosses its edges, or is of it."""
    line = "日aa aa日 日日 a日a日日 éaa aaé éé日 日é".encode() + b" \xe6\xe6\x97\xa5 \x97\xa5a\xe6\x97"
    places = range(len(inside) + 1)
    for across, place, beside in itertools.product(ACROSS, places, [*places, None]):
        merges = [*inside[:place], across, *inside[place:]]
        if beside is not None:
            merges.insert(beside + 1, "a a")
        lines = [b" ".join(map(PRETOKENISED.in_file, merge.split(" "))) for merge in merges]
        check_applying(b"\n".join([PRETOKENISED.first_line.encode(), *lines, b""]), PRETOKENISED, line)


# ---- dropout


@in_every_mode
@of_both_kinds
@examples(100)
@given(data=st.data())
def test_dropout_gives_what_can_be_drawn(kind: str, mode: Mode, data: st.DataObject) -> None:
    """Every segmentation is one of those that the reference enumerates; the extremes are exact."""
    codes, alphabet = data.draw(codes_and_letters(kind, mode))
    word = data.draw(words(alphabet, 1, 5))[:6]
    reference, bpe = reference_of(codes), BPE(codes)

    def segmented(dropout: float, seed: int) -> bytes:
        return b" ".join(bpe.segment_tokens([mode.word(word)], dropout, seed))

    possible = {mode.subwords(pieces) for pieces in dropout_distribution(reference, word, 0.5)}
    assert {segmented(0.5, seed) for seed in range(20)} <= possible
    assert segmented(1e-300, 1) == segmented(0, 1) == mode.subwords(reference.segment_word(word))
    assert segmented(1, 1) == mode.subwords([*word])


@pytest.mark.parametrize("dropout", [0.05, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (CODES, ["aaaa", "aaaaa", "aabab", "abba", "aaba"]),
        (PICKY_CODES, ["aaaa", "abab", "aabab", "abba", "aaaab"]),
        (b"#version: 0.2 byte\na \xff\na\xff a scaffold\na\xffa \xff</w>\n\xff \xff\n", ["a\xffa\xff"]),
        (b"#version: 0.3 bytes gpt2\na a\naa a scaffold\n\xc4\xa0 aa\naaa a\n", [" aaaa"]),
    ],
    ids=["scaffold", "picky", "bytes", "pretokenised"],
)
def test_dropout_has_the_exact_distribution(codes: bytes, words: list[str], dropout: float) -> None:
    """Every segmentation of a word is as frequent as enumerating all outcomes predicts, wherever it is in a line."""
    reference, mode = reference_of(codes), Mode.of(codes)
    repeated = [*words, *reversed(words)] if len(words) > 1 else words
    given = mode.word(" ".join(repeated)).decode("utf-8", "surrogateescape")
    lines = sampled(codes, given, 20_000, dropout)
    drawn = [words_of_line(line) for line in lines] if mode.end_of_word else [[line] for line in lines]
    for place, word in enumerate(repeated):
        outcomes = dropout_distribution(reference, word, dropout)
        exact = {
            mode.subwords(pieces).decode("utf-8", "surrogateescape").replace("@@ ", "@@"): probability
            for pieces, probability in outcomes.items()
        }
        assert sum(exact.values()) == pytest.approx(1) and len(exact) > 1
        assert surprise(Counter(line[place] for line in drawn), exact) > SUSPICIOUS, (word, place)


# ---- ids and decode


def ids_of(codes: bytes, special: Sequence[str] = (), multiple: int = 1) -> ReferenceIds:
    """Return the reference of ids, whose merges are in GPT-2's notation."""
    return ReferenceIds(reference_of(codes, notation=True), Pretokeniser("gpt2").split, special, multiple)


def check_ids(codes: bytes, texts: Iterable[bytes], ids: Sequence[float] = ()) -> None:
    """Check the tokens and their order, the ids of texts with and without special tokens, and the text of any ids.

    ids: as shares of the number of ids.
    """
    special = ("<|end|>", "a<", "aa")
    bpe, reference = BPE(codes, special_tokens=special, pad_vocab_to=64), ids_of(codes, special, 64)
    assert bpe.tokens == reference.tokens
    for text in texts:
        for allowed in ((), ("aa",), special):
            found = bpe.encode(text, allowed_special=set(allowed), disallowed_special=())
            assert found == reference.encode(text, allowed)
            assert bpe.decode_bytes(found) == text
    some = [int(share * (bpe.n_vocab - 1)) for share in ids]
    assert bpe.decode_bytes(some) == reference.decode(some)


PIECES = [b" ", b"  ", b"\n", b"\r", b"\r\n", b"</w>", b"<|end|>", b"@@", b"\xff", b"\xe6\x97", b"'s", b"12", b"\t"]


@of_both_kinds
@examples(80)
@given(data=st.data())
def test_ids_and_decode(kind: str, data: st.DataObject) -> None:
    """They agree on tokens and their order, ids with and without special tokens, and the decoding of arbitrary ids."""
    pytest.importorskip("numpy", reason="ids are in NumPy arrays")
    codes, alphabet = data.draw(codes_and_letters(kind, PRETOKENISED))
    parts = st.sampled_from(PIECES) | words(alphabet, 1, 12).map(PRETOKENISED.word)
    texts = data.draw(st.lists(st.lists(parts, max_size=12).map(b"".join), min_size=1, max_size=3))
    check_ids(codes, texts, data.draw(st.lists(st.floats(0, 1), max_size=20)))


@pytest.mark.parametrize("method", METHODS)
@examples(50)
@given(data=st.data())
def test_ids_of_learned_codes(method: str, data: st.DataObject) -> None:
    """The same with codes as they are learned."""
    pytest.importorskip("numpy", reason="ids are in NumPy arrays")
    counts, word = data.draw(counts_in(PRETOKENISED)), PRETOKENISED.word
    check_ids(learn_drawn(method, PRETOKENISED, counts, data), [word(" ".join(counts)), *map(word, counts)], [0.9, 1])


# ---- whole texts


def segmented(line: str, reference: ReferenceBPE, mode: Mode) -> bytes:
    """Return a line of text as the reference segments it."""
    if mode.end_of_word:
        return mode.word(reference.process_line(as_the_reference_reads(line, mode)))
    return (reference_subwords(reference, gpt2_words(line)) + "\n" * line.endswith("\n")).encode("utf-8")


def gpt2_words(line: str) -> list[bytes]:
    return pretokenise(line.removesuffix("\n").encode("utf-8"), PATTERNS["gpt2"])


def counted(text: str, mode: Mode) -> dict[str, int]:
    """Return the words of a text in the form of the reference."""
    counts: Counter[str] = Counter()
    for line in lines_at_lf(text):
        if mode.end_of_word:
            counts.update(words_of(as_the_reference_reads(line, mode)))
        else:
            counts.update(word.decode("latin-1") for word in gpt2_words(line))
    return dict(counts)


@in_every_mode
@pytest.mark.parametrize("method", METHODS)
@examples(12)
@given(seed=st.integers(0, 2**32))
def test_whole_texts(method: str, mode: Mode, seed: int) -> None:
    """A text with every kind of line and letter is counted, learned from and segmented as by the reference, and so is
    another one, with any number of threads."""
    pytest.importorskip("regex", reason="the reference of the pre-tokeniser needs it")
    draw = random.Random(seed)
    alphabet = draw.choice([None, [*"a"], [*"ab"], [*"abcd"], ["a", "</w>", "<", "w>"], [*"aä日😀"], [*"abcdefghij"]])
    text, other = (hard_text(draw.randrange(1 << 30), draw.randint(5, 400), alphabet) for _ in range(2))
    symbols, min_frequency, threshold = draw.randint(1, 80), draw.randint(1, 4), draw.choice([0.3, 0.6, 0.9, 1.0])
    counts = counted(text, mode)
    learner = draw.choice(["bpe", "scaffold"]) if method == "trimmed" else method
    options = {"threshold": threshold} if method == "picky" else {}
    if method == "picky":
        codes = learn_picky_with_reference(counts, symbols, threshold, min_frequency, mode)[1]
    else:
        codes = learn_with_reference(counts, symbols, min_frequency, learner, mode)[1]
    native = learn_with(
        io.BytesIO(text.encode("utf-8")), None, symbols, min_frequency, learner, num_workers=draw.randint(1, 3),
        **options, **mode.options,
    )  # fmt: skip
    assert native.text == codes
    if method == "trimmed":
        below = draw.randint(2, 30)
        codes = trim(codes, io.BytesIO(text.encode("utf-8")), below=below).codes.text
        pairs = pairs_of(codes, mode)
        before = {left + right for left, right in pairs if in_codes([left + right], mode) <= native.codes.scaffold}
        expected = trimming.mark(counts, pairs, before, below, end_of_word=mode.end_of_word)
        assert Codes(codes).scaffold == in_codes(expected, mode)
    merges, separator = (
        draw.choice([-1, -1, draw.randint(0, 80)]),
        draw.choice(["@@", "~"]) if mode.end_of_word else "@@",
    )
    reference, bpe = reference_of(codes, merges, separator), BPE(codes, merges, separator)
    for whole in (text, other):
        output = io.BytesIO()
        bpe.process_file(io.BytesIO(whole.encode("utf-8")), output, num_workers=draw.randint(1, 3))
        assert output.getvalue() == b"".join(segmented(line, reference, mode) for line in lines_at_lf(whole))
