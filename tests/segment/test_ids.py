"""Ids: every text comes back byte for byte, the core equals its reference, plain BPE gives tiktoken's ids."""

from __future__ import annotations

import copy
import gzip
import io
import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.ids import NOTATION, ReferenceIds
from segmenting import MULTI30K, SHARED, hard_text, needs

from mt_scaffold import BPE
from mt_scaffold.analysis.reference import ReferenceBPE
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.pretokenise import PATTERNS, Pretokeniser
from mt_scaffold.errors import MTScaffoldError, SpecialTokenError, UsageError
from mt_scaffold.methods import PlainBPE, make_method

numpy = pytest.importorskip("numpy", reason="encode_batch returns NumPy arrays")

MDN = SHARED / "data" / "bench" / "mdn.de.gz"
# A pattern of our own leaves gaps, which are words too.
PRETOKENISERS = [*PATTERNS, r"\w+|[^\w\s]+"]
ALGORITHMS = ["bpe", "scaffold"]
END, PAD = "<|endoftext|>", "<|pad|>"
TEXT = hard_text(3, 1500) + "".join(f" it's {n} {'a' * (n % 9)} x = {n * n};\r\n" for n in range(80))


@cache
def codes_of(pretokeniser: str, algorithm: str, split_digits: bool = False, symbols: int = 150) -> bytes:
    """Codes of bytes, learned from text with a bit of everything."""
    if "\\" in pretokeniser:
        pytest.importorskip("regex", reason="the engine of patterns")
    header = CodesHeader.of_options(pretokeniser, split_digits)
    counts = count_words(
        io.BytesIO(TEXT.encode("utf-8")),
        num_workers=1,
        pretokenise=pretokeniser,
        split_digits=split_digits,
        any_bytes=True,
    )
    text: bytes = make_method(algorithm, symbols=symbols).learn(counts, header).text
    return text


@cache
def bpe_of(pretokeniser: str, algorithm: str, *special: str) -> BPE:
    return BPE(codes_of(pretokeniser, algorithm), special_tokens=special)


def reference_of(bpe: BPE, codes: bytes, special: tuple[str, ...] = (), multiple: int = 1) -> ReferenceIds:
    """The reference with the codes of a BPE; words are split by the tested pre-tokeniser."""
    from mt_scaffold import Codes

    read = Codes(codes)
    merges = [(merge.left, merge.right) for merge in read.merges]
    scaffold = [merge.token for merge in read.merges if not merge.normal]
    split = Pretokeniser(read.pretokeniser, read.split_digits).split
    return ReferenceIds(ReferenceBPE(merges, scaffold), split, special, multiple)


def tiktoken_of(bpe: BPE, pattern: str, special: tuple[str, ...] = ()) -> Any:
    """tiktoken's own encoding with the tokens of a BPE."""
    tiktoken = pytest.importorskip("tiktoken", reason="what the ids are compared with")
    merged = bpe.tokens[: len(bpe.tokens) - len(special)]
    return tiktoken.Encoding(
        "ours",
        pat_str=PATTERNS[pattern],
        mergeable_ranks={token: rank for rank, token in enumerate(merged)},
        special_tokens=bpe.special_tokens,
    )


# Runs, margins of every kind, the letters of "</w>", contractions, digits, case, and bytes that are not UTF-8.
PIECES = [
    "a", "aa", "@@", "b", "the", " ", "  ", "\n", "\r", "\r\n", "\t", "</w>", "<", "/w>", "'s", "'LL", "12", "3", ".",
    "é", "日本", "\u3000", "\u2028", "😀", "Ǆ", "ſ", "\u0301",
]  # fmt: skip
# Only characters known to this Python: tiktoken's Unicode and ours differ in which others are letters.
CHARACTERS = st.characters(exclude_categories=["Cs", "Cn"])
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(CHARACTERS, max_size=3), max_size=24).map("".join)
BYTES = st.binary(max_size=60) | st.lists(
    st.sampled_from([piece.encode("utf-8") for piece in PIECES] + [b"\xff", b"\xe6\x97", b"\x80", b"\x00"]), max_size=24
).map(b"".join)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("pretokeniser", PRETOKENISERS)
def test_any_bytes_come_back(pretokeniser: str, algorithm: str) -> None:
    """decode(encode(x)) == x for bytes and for text, with and without dropout, in a batch and alone."""
    bpe = bpe_of(pretokeniser, algorithm)

    @given(st.lists(BYTES, max_size=4), TEXTS, st.integers(0, 99))
    @settings(max_examples=60, deadline=None)
    def check(many: list[bytes], text: str, seed: int) -> None:
        ids, offsets = bpe.encode_batch(many, num_workers=2)
        for i, one in enumerate(many):
            alone = bpe.encode(one)
            assert bpe.decode_bytes(alone) == one
            assert ids[offsets[i] : offsets[i + 1]].tolist() == alone
        assert bpe.decode(bpe.encode(text)) == text
        assert bpe.decode(bpe.encode(text, dropout=0.3, seed=seed, index=seed)) == text
        assert bpe.decode(bpe.encode(text, dropout=1)) == text

    check()
    assert bpe.decode_bytes(bpe.encode(TEXT)) == TEXT.encode("utf-8")
    everything = bytes(range(256)) * 3
    assert bpe.decode_bytes(bpe.encode(everything)) == everything


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("pretokeniser", PRETOKENISERS)
def test_the_core_equals_its_reference(pretokeniser: str, algorithm: str) -> None:
    """They agree on tokens and their order, ids with and without special tokens, and the decoding of arbitrary ids."""
    codes, special = codes_of(pretokeniser, algorithm), (END, "the", "th")
    bpe = BPE(codes, special_tokens=special, pad_vocab_to=64)
    reference = reference_of(bpe, codes, special, 64)
    assert bpe.tokens == reference.tokens
    assert bpe.n_vocab == len(bpe.tokens) and bpe.n_vocab % 64 == 0
    assert len(set(reference.id.values())) == reference.first_special == bpe.special_tokens[END]

    @given(BYTES, st.sets(st.sampled_from(special)), st.lists(st.integers(0, bpe.n_vocab - 1), max_size=30))
    @settings(max_examples=60, deadline=None)
    def check(text: bytes, allowed: set[str], ids: list[int]) -> None:
        assert bpe.encode(text, allowed_special=allowed, disallowed_special=()) == reference.encode(text, allowed)
        assert bpe.decode_bytes(ids) == reference.decode(ids)

    check()
    assert bpe.encode(TEXT, disallowed_special=()) == reference.encode(TEXT.encode("utf-8"))


# -- tiktoken


@pytest.mark.parametrize("pattern", PATTERNS)
def test_plain_bpe_gives_the_ids_of_tiktoken(pattern: str) -> None:
    """The same tokens in the same order give the same ids, for text of every kind."""
    bpe = bpe_of(pattern, "bpe")
    theirs = tiktoken_of(bpe, pattern)

    @given(TEXTS)
    @settings(max_examples=150, deadline=None)
    def check(text: str) -> None:
        ids = theirs.encode_ordinary(text)
        assert bpe.encode(text) == ids
        assert bpe.decode_bytes(ids) == theirs.decode_bytes(ids)
        assert bpe.decode_with_offsets(ids) == theirs.decode_with_offsets(ids)

    check()
    assert bpe.encode(TEXT) == theirs.encode_ordinary(TEXT)


@needs(MULTI30K)
@needs(MDN)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_real_text_gives_the_ids_of_tiktoken(pattern: str) -> None:
    """Codes learned from real text, on that text and on held-out text."""
    with gzip.open(MULTI30K / "train.de.gz") as german, gzip.open(MULTI30K / "train.en.gz") as english:
        text = german.read(200_000) + english.read(200_000)
    with gzip.open(MDN) as stream:
        held_out = stream.read(300_000).decode("utf-8", "ignore")
    header = CodesHeader.of_options(pattern)
    learned = PlainBPE(1500).learn(count_words(io.BytesIO(text), pretokenise=pattern), header)
    bpe = BPE(learned.codes)
    theirs = tiktoken_of(bpe, pattern)
    for each in (text.decode("utf-8", "ignore"), held_out):
        ids, offsets = bpe.encode_batch([each])
        assert ids.tolist() == theirs.encode_ordinary(each)
        assert offsets.tolist() == [0, len(ids)]
        assert bpe.decode(ids) == each


def test_codes_merge_pairs_and_tiktoken_strings() -> None:
    """tiktoken merges any two that spell a token, codes only the listed pairs. No learner writes these codes."""
    bpe = BPE(b"#version: 0.3 bytes gpt2\nb c\na b\nab c\n")
    assert [bpe.tokens[id] for id in bpe.encode("abc")] == [b"a", b"bc"]
    theirs = tiktoken_of(bpe, "gpt2")
    assert theirs.decode_tokens_bytes(theirs.encode_ordinary("abc")) == [b"abc"]


def test_special_tokens_are_treated_as_by_tiktoken() -> None:
    """allowed_special and disallowed_special give the same ids, and a ValueError whenever tiktoken raises one."""
    special = (END, PAD, "<|x|>")
    bpe = bpe_of("cl100k", "bpe", *special)
    theirs = tiktoken_of(bpe, "cl100k", special)
    texts = ["", "no token", f"a{END}b", f"{END}{END} {PAD}\n{PAD}", f"{END[:-1]} <|x|> <|pad {PAD}|>", " <|x|>  "]
    choices: list[Any] = ["all", set(), {END}, {PAD, "<|x|>"}]
    for text in texts:
        for allowed in choices:
            for disallowed in choices:
                try:
                    expected = theirs.encode(text, allowed_special=allowed, disallowed_special=disallowed)
                except ValueError:
                    with pytest.raises(ValueError, match="the text holds the special token"):
                        bpe.encode(text, allowed_special=allowed, disallowed_special=disallowed)
                    continue
                found = bpe.encode(text, allowed_special=allowed, disallowed_special=disallowed)
                assert found == expected == theirs.encode(text, allowed_special=allowed, disallowed_special=disallowed)
                assert bpe.decode(found) == text


# -- special tokens, padding, offsets, errors


def test_special_tokens_in_a_batch() -> None:
    """By default they are refused, with the number of the first text that holds one; allowed, they end words."""
    bpe = bpe_of("gpt2", "scaffold", END, "<|end")
    texts = ["one", f"two{END}", f"{END}"]
    # However many threads share a text, the offset is that of the whole text.
    long = "word " * 200_000 + END
    with pytest.raises(SpecialTokenError, match=r"text 0: .* at byte offset 1000000;"):
        bpe.encode_batch([long], num_workers=2)
    with pytest.raises(SpecialTokenError, match="at byte offset 1000000;"):
        bpe.encode(long)
    with pytest.raises(SpecialTokenError, match=re.escape(f"text 1: the text holds the special token '{END}' at byte")):
        bpe.encode_batch(texts, num_workers=2)
    ids, offsets = bpe.encode_batch(texts, allowed_special="all")
    end = bpe.special_tokens[END]
    assert ids[offsets[1] :].tolist() == [*bpe.encode("two"), end, end]
    # The longest match at one place wins.
    assert bpe.encode("<|end", allowed_special="all") == [end + 1]
    as_text, _ = bpe.encode_batch(texts, disallowed_special=())
    assert end not in as_text and bpe.decode(as_text) == "".join(texts)


def pieces_by_hand(text: str, tokens: list[str]) -> list[str]:
    """Cut a text at tokens, the longest at each place, and continue after it."""
    pieces, begin, place = [], 0, 0
    while place < len(text):
        here = max((token for token in tokens if text.startswith(token, place)), key=len, default="")
        if here:
            pieces += [text[begin:place], here]
            begin = place + len(here)
        place += max(len(here), 1)
    return [piece for piece in [*pieces, text[begin:]] if piece]


@given(
    st.lists(st.text("ab<é東🙂", max_size=100), max_size=4),
    st.lists(st.text("ab<é東🙂", min_size=1, max_size=4), min_size=1, max_size=6, unique=True),
)
@example(["ab<", "", "b"], ["b", "ab", "b<", "ab<a"])
@example(["a" * 99 + "🙂<" + "a" * 40, "é" * 31 + "<"], ["<", "🙂<a", "🙂"])
@example(["ab<é東🙂ab"], ["ab", "b", "<é", "é", "東", "🙂a"])
def test_special_tokens_are_found_as_by_hand(texts: list[str], tokens: list[str]) -> None:
    """They may overlap, be at both ends, begin another one or be inside it, and have few first bytes or many."""
    bpe = BPE(b"#version: 0.3 bytes gpt2\na b\n", special_tokens=tokens)
    ids, offsets = bpe.encode_batch(texts, allowed_special="all")
    for text, begin, end in zip(texts, offsets, offsets[1:], strict=False):
        expected = list[int]()
        for piece in pieces_by_hand(text, tokens):
            special = bpe.special_tokens.get(piece)
            expected += bpe.encode(piece, disallowed_special=()) if special is None else [special]
        assert ids[begin:end].tolist() == expected


def test_ids_are_numbered_as_documented() -> None:
    """Models and files of ids rely on the order: bytes, merged tokens by first rank, special tokens, padding."""
    codes = b"#version: 0.3 bytes gpt2\na b\nab c scaffold\n\xc4\xa0 a\na b\n"
    bpe = BPE(codes, special_tokens=[END, PAD], pad_vocab_to=8)
    assert bpe.tokens[:256] == [bytes([byte]) for byte in range(256)]
    assert bpe.tokens[256:] == [b"ab", b" a", END.encode(), PAD.encode(), b"", b"", b"", b""]
    assert bpe.special_tokens == {END: 258, PAD: 259}
    assert bpe.encode("abc") == [256, 99]
    # What apply-bpe writes after a subword with </w> is text like any other here.
    assert BPE(b"#version: 0.3 bytes gpt2\n@ @\n< @@\n").encode("<@@") == [257]


def test_offsets_are_characters() -> None:
    """They are of the first character that holds a byte of the token, even if the token is a part of a character."""
    bpe = bpe_of("gpt2", "scaffold")

    @given(TEXTS, st.integers(0, 9))
    @settings(max_examples=80, deadline=None)
    def check(text: str, seed: int) -> None:
        ids = bpe.encode(text, dropout=0.5, seed=seed)
        decoded, offsets = bpe.decode_with_offsets(ids)
        assert decoded == text
        character_of_byte = [i for i, character in enumerate(text) for _ in character.encode("utf-8")]
        starts = [len(bpe.decode_bytes(ids[: i + 1])) - len(bpe.tokens[id]) for i, id in enumerate(ids)]
        assert offsets == [character_of_byte[start] for start in starts]

    check()


def test_offsets_of_bytes_that_are_not_utf8() -> None:
    """They are positions of the U+FFFD that replace such bytes, as in ``decode``; padding has the next position."""
    bpe = BPE(b"#version: 0.3 bytes gpt2\n", pad_vocab_to=512)
    data = b"a\xff\xe6\x97b\xf0\x9f\x98"
    assert bpe.decode_with_offsets([*data[:2], 511, *data[2:], 511]) == (
        "a\ufffd\ufffdb\ufffd",
        [0, 1, 2, 2, 2, 3, 4, 4, 4, 5],
    )
    for seed in range(300):
        some = random.Random(seed).choices([b"a", b"\xe6", b"\x97", b"\xa5", b"\xf0\x9f", b"\xff", "é".encode()], k=6)
        text, offsets = bpe.decode_with_offsets(b"".join(some))
        assert text == b"".join(some).decode("utf-8", "replace")
        assert offsets[0] == 0 and {*range(len(text))} == {*offsets}


@pytest.mark.parametrize(
    "ids", [[97, 600], [-1], (2**70,), numpy.array([600], "u2"), numpy.array([-1], "i8"), numpy.array([2**63], "u8")]
)
def test_an_id_out_of_range_is_one_clear_error(ids: Any) -> None:
    """It has the id, its position and the range of ids, whatever container the ids come in."""
    bpe = bpe_of("gpt2", "bpe")
    wrong = re.escape(f"at position {len(ids) - 1} is out of range: these codes have ids 0 to {bpe.n_vocab - 1};")
    for decode in (bpe.decode, bpe.decode_bytes, bpe.decode_with_offsets):
        with pytest.raises(MTScaffoldError, match=wrong):
            decode(ids)


def test_an_id_that_no_integer_type_holds_is_not_shown_as_another() -> None:
    """Such as -1, or 2^63 - 1."""
    wrong_ids: list[Any] = [[2**70], [-(2**70)], numpy.array([2**64 - 1], "u8")]
    for ids in wrong_ids:
        with pytest.raises(MTScaffoldError, match=r"^an id of more than 63 bits at position 0 is out of range"):
            bpe_of("gpt2", "bpe").decode(ids)


@pytest.mark.parametrize("kind", [">u2", ">i4", ">u8"])
def test_ids_in_another_byte_order_are_refused(kind: str) -> None:
    """Read as they are they would be other ids; the error says how to convert them, and that works."""
    ids = numpy.array([104, 105], kind)
    bpe = bpe_of("gpt2", "bpe")
    with pytest.raises(TypeError, match=r"another byte order \('>.'\).*ids\.astype\(ids\.dtype\.newbyteorder\('='\)\)"):
        bpe.decode(ids)
    assert bpe.decode(ids.astype(ids.dtype.newbyteorder("="))) == "hi"
    # One byte has no order, and the machine's own may be spelled out.
    assert bpe.decode(ids.astype(">u1")) == bpe.decode(ids.astype("<u2")) == "hi"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda bpe: pickle.loads(pickle.dumps(bpe))])
def test_a_bpe_can_be_copied(copied: Callable[[BPE], BPE]) -> None:
    """Workers of a spawning DataLoader get a pickle; the copy segments, encodes and decodes like the original."""
    bpe = BPE(codes_of("gpt2", "scaffold"), 100, special_tokens=iter([END]), pad_vocab_to=64)
    again = copied(bpe)
    assert again is not bpe and again.tokens == bpe.tokens and again.special_tokens == bpe.special_tokens
    assert again.encode(TEXT, dropout=0.1, seed=1) == bpe.encode(TEXT, dropout=0.1, seed=1)
    marked = BPE(b"#version: 0.2\na n\nb an\n", -1, "_", iter(["ban_", "an_", "a"]), ["na"])
    for text in ("banana ban", "anan"):
        assert copied(marked).segment(text) == marked.segment(text)


@pytest.mark.parametrize("kind", ["u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_ids_are_taken_from_any_integers(kind: str) -> None:
    """From lists, arrays of every width and stride, and NumPy's own integers; anything else is refused."""
    bpe = bpe_of("o200k", "scaffold")
    data = b"any bytes"
    ids = numpy.frombuffer(data, "u1").astype(kind)
    for given_ids in (ids, list(ids), tuple(data), numpy.repeat(ids, 3)[::3], ids[::-1][::-1]):
        assert bpe.decode_bytes(given_ids) == data
    assert bpe.decode_bytes([]) == bpe.decode_bytes(ids[:0]) == b""
    wrong: Any
    for wrong in (ids.astype("f4"), ids.reshape(1, -1), [1.5], ["a"], 5):
        with pytest.raises(TypeError):
            bpe.decode_bytes(wrong)


def test_dropout_depends_on_seed_epoch_and_index_alone() -> None:
    """A model is trained on the same ids however its documents are batched, and on many threads."""
    bpe = bpe_of("gpt2", "scaffold")
    texts = [f"{line}\n" for line in TEXT.splitlines()[:200]]
    ids, offsets = bpe.encode_batch(texts, dropout=0.2, seed=7, epoch=3, num_workers=3)
    order = list(range(len(texts)))[::-1]
    again, starts = bpe.encode_batch([texts[i] for i in order], dropout=0.2, seed=7, epoch=3, indices=order)
    for place, i in enumerate(order):
        assert (again[starts[place] : starts[place + 1]] == ids[offsets[i] : offsets[i + 1]]).all()
    other, _ = bpe.encode_batch(texts, dropout=0.2, seed=7, epoch=4)
    assert other.tolist() != ids.tolist()
    plain, _ = bpe.encode_batch(texts)
    assert len(plain) < len(ids)
    # The ids of a text are its subwords with the same seed.
    subwords = bpe.segment("low lower lowest", dropout=0.5, seed=1, index=4).split(" ")
    ids_of = [bpe.tokens[id] for id in bpe.encode("low lower lowest", dropout=0.5, seed=1, index=4)]
    assert ["".join(NOTATION[byte] for byte in token) for token in ids_of] == subwords


@pytest.mark.parametrize("pretokeniser", PRETOKENISERS)
def test_a_long_text_is_cut_only_where_no_id_changes(pretokeniser: str) -> None:
    """Threads share a single long text; special tokens at the cuts are found; the ids are those of its parts."""
    bpe = bpe_of(pretokeniser, "scaffold", "o\nw", END)
    generator = random.Random(1)
    words = ["word", "don't", "x\n", "\n\n", " \n ", "o\nw", END, "42", "//", "\r\n", "  ", "Ab.", "é", "\u3000", " "]
    text = (
        " ".join(generator.choices(words, k=90_000))
        + "x" * 300_000
        + "\n"
        + "".join(generator.choices(words, k=150_000))
    )
    ids, offsets = bpe.encode_batch([text, text[:50]], num_workers=2, allowed_special="all")
    parts = []
    for number, piece in enumerate(re.split(f"(o\nw|{re.escape(END)})", text)):
        parts += [bpe.special_tokens[piece]] if number % 2 else bpe.encode(piece, disallowed_special=())
    assert ids[: offsets[1]].tolist() == parts
    assert ids[offsets[1] :].tolist() == bpe.encode(text[:50], allowed_special="all")
    # Dropout keeps a text whole, and gives one sequence of random numbers for all of it.
    dropped, _ = bpe.encode_batch([text], num_workers=2, disallowed_special=(), dropout=0.1, seed=2)
    assert bpe.decode(dropped) == text


def test_wrong_calls_for_ids() -> None:
    """Each is refused with one line that says what to do."""
    codes = codes_of("gpt2", "bpe")
    bpe = BPE(codes, special_tokens=[END])
    for header in (b"#version: 0.2", b"#version: 0.2 byte"):
        with pytest.raises(MTScaffoldError, match="bytes after a pre-tokeniser have ids; learn them with learn-bpe "):
            BPE(header + b"\na b\n").encode("a")
    wrong_special: list[tuple[Any, str]] = [
        ("", "special token 2 is empty"),
        (END, f"duplicate special token '{re.escape(END)}'"),
        (b"a", "special tokens are strings, not a bytes: b'a'"),
    ]
    for special, message in wrong_special:
        with pytest.raises(UsageError, match=message):
            BPE(codes, special_tokens=[END, special])
    multiples: list[Any] = [0, 2.5, 2**32]
    for multiple in multiples:
        with pytest.raises(UsageError, match=rf"multiple of 1 or more, an integer below 2\^31, not {multiple}"):
            BPE(codes, pad_vocab_to=multiple)
    for index in (-1, 2**64):
        with pytest.raises(UsageError, match=f"an index must be 0 or more and fit into 64 bits, not {index}"):
            bpe.encode("a", dropout=0.1, seed=1, index=index)
        with pytest.raises(UsageError, match=f"an index must be 0 or more and fit into 64 bits, not {index}"):
            bpe.encode_batch(["a"], dropout=0.1, seed=1, indices=[index])
    for call in (bpe.encode, bpe.encode_to_numpy, bpe.segment):
        with pytest.raises(UsageError, match="the seed must fit into 64 bits"):
            call("a", dropout=0.1, seed=2**64)
    for name in ("allowed_special", "disallowed_special"):
        for wrong, message in (({"<x>"}, "'<x>' is not a special token"), (END, "are a set of them, or 'all'")):
            with pytest.raises(UsageError, match=message):
                bpe.encode("a", **{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="encode_batch takes a list of texts"):
        bpe.encode_batch("a text")
    with pytest.raises(UsageError, match="2 texts have 1 indices"):
        bpe.encode_batch(["a", "b"], indices=[1])
    with pytest.raises(MTScaffoldError, match="text 1 holds a lone surrogate"):
        bpe.encode_batch(["a", "\ud800"])
    for wrong_text in (5, None, ["a"]):
        with pytest.raises(TypeError):
            bpe.encode(wrong_text)  # type: ignore[arg-type]
    # As everywhere, bytes that are not UTF-8 may come as surrogates.
    assert bpe.decode_bytes(bpe.encode("\udcff")) == b"\xff"
    for options in (True, {"<|end|>"}):
        with pytest.raises(UsageError, match="between 0 and 1"):
            bpe.encode("low", options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="between 0 and 1"):
        bpe.encode("a", dropout=2)


# In all widths in which CPython holds a str: ASCII, Latin-1, UCS-2, UCS-4, and with surrogates for bytes.
WIDTHS = ["plain words ", "größer als übel ", "„größer“ – 漢字 ", "😀 größer „漢“ ", "a \udcff\udcc3 ü "]


@given(st.lists(st.lists(st.sampled_from([*WIDTHS, END, "x" * 17, "\n", "'s"]), max_size=40).map("".join), max_size=5))
@settings(max_examples=60, deadline=None)
def test_a_str_of_any_width_has_the_ids_of_its_bytes(texts: list[str]) -> None:
    """The core reads Python's strings itself; it must read them as Python encodes them."""
    bpe = bpe_of("gpt2", "bpe", END)
    of_str = bpe.encode_batch(texts, allowed_special="all", num_workers=2)
    of_bytes = bpe.encode_batch([text.encode("utf-8", "surrogateescape") for text in texts], allowed_special="all")
    assert of_str[0].tolist() == of_bytes[0].tolist()
    assert of_str[1].tolist() == of_bytes[1].tolist()


@pytest.mark.parametrize("width", range(len(WIDTHS)))
def test_a_long_str_may_be_cut_between_threads(width: int) -> None:
    """A long text is cut into parts, never within a special token, and offsets in errors count from its start."""
    marker = "ab<<<<<<<<>"
    bpe = bpe_of("gpt2", "bpe", marker)
    text = (WIDTHS[width] * 9 + marker) * 9_000
    data = text.encode("utf-8", "surrogateescape")
    expected = bpe.encode(data, allowed_special="all")
    assert len(text) > 600_000
    assert expected.count(bpe.special_tokens[marker]) == 9_000
    batches: tuple[list[str] | list[bytes], ...] = (["a", text, "a"], [b"a", data, b"a"])
    for batch in batches:
        ids, offsets = bpe.encode_batch(batch, allowed_special="all", num_workers=2)
        assert ids.tolist() == [97, *expected, 97]
        assert offsets.tolist() == [0, 1, 1 + len(expected), 2 + len(expected)]
    plain = text.replace(marker, "")
    place = len(plain.encode("utf-8", "surrogateescape"))
    with pytest.raises(SpecialTokenError, match=f"text 0: .* at byte offset {place};"):
        bpe.encode_batch([plain + marker], num_workers=2)


def test_ids_outlive_the_call_and_may_be_changed() -> None:
    """The array owns its memory, small or mapped, even after more calls and without the BPE."""
    bpe = BPE(codes_of("gpt2", "bpe"))
    for text in ("", "banana", TEXT * 300):
        ids, _ = bpe.encode_batch([text])
        expected = ids.tolist()
        others = [bpe.encode_batch([TEXT * 300]) for _ in range(3)]
        assert ids.tolist() == expected == bpe.encode(text)
        ids[:] = 7
        del others
    del bpe
    assert set(ids.tolist()) == {7}


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the address space from /proc")
@pytest.mark.parametrize("text", [" abababab" * 100_000, "a " * 400_000])
def test_kept_ids_keep_little_else(text: str) -> None:
    """Not the 16 MiB of address space that a call reserves."""

    def pages() -> int:
        with open("/proc/self/statm", encoding="utf-8") as stream:
            return int(stream.read().split()[0])

    bpe = BPE(b"#version: 0.3 bytes gpt2\na b\nab ab\nabab abab\n\xc4\xa0 abababab\n")
    bpe.encode_batch([text])
    before = pages()
    kept = [bpe.encode_batch([text], num_workers=1)[0] for _ in range(30)]
    assert (pages() - before) * os.sysconf("SC_PAGESIZE") < sum(ids.nbytes for ids in kept) + (100 << 20)


def test_many_words_have_the_ids_that_each_has_alone() -> None:
    """Ids depend neither on the other words of a batch, nor on a word's length, nor on the state of the cache."""
    drawn = random.Random(5)
    words = [
        " " + "".join(drawn.choices("abcdeth", k=min(drawn.randrange(1, 9) ** 2 // 3 + 1, 40))) for _ in range(99_000)
    ]
    codes = codes_of("gpt2", "bpe")
    ids, offsets = BPE(codes).encode_batch(words, num_workers=1)
    of_word = {word: ids[offsets[i] : offsets[i + 1]] for i, word in enumerate(words)}
    # First many new words, again, which do not all fit into the cache, then few different ones, then words from all.
    order = [*words, *words, *drawn.choices(words[:200], k=20_000), *drawn.choices(words, k=20_000)]
    found, _ = BPE(codes).encode_batch(["".join(order)], num_workers=1)
    assert numpy.array_equal(found, numpy.concatenate([of_word[word] for word in order]))


def texts_of_every_width(count: int) -> list[str]:
    """Texts that Python holds in one, two and four bytes per character, with little or much ASCII, of many lengths."""
    drawn = random.Random(8)
    alphabets = [
        "a b's\n.",
        "\x00\x7f\x80\x85\xa0\xb5\xd7\xdf\xf7\xff",
        "\u024f\u027f\u0280\u03f6\u047f\u0482\u07ff",
        "\u0800\u2019\u3000\uffff",
        "\U0001f989\U0010ffff",
    ]
    texts = []
    for number in range(count):
        wide = alphabets[: number % len(alphabets) + 1]
        often = drawn.choice([0.02, 0.2, 0.9])
        size = drawn.choice([drawn.randrange(70), drawn.randrange(400)])
        texts.append(
            "".join(drawn.choice(drawn.choice(wide) if drawn.random() < often else wide[0]) for _ in range(size))
        )
    return texts


@pytest.mark.parametrize("instructions", ["none", "avx2", "avx512"])
def test_every_kind_of_instructions_finds_the_same_words(instructions: str) -> None:
    """Processors without the instructions of this one give the same ids."""
    cases = [(name, split) for name in ("gpt2", "cl100k", "o200k") for split in (False, True)]
    codes = [codes_of(name, "bpe", split) for name, split in cases]
    program = (
        "import pickle, sys; from mt_scaffold import BPE; codes, texts = pickle.load(sys.stdin.buffer);"
        "print([BPE(each).encode_batch(texts)[0].tolist() for each in codes])"
    )
    texts = [TEXT, *(hard_text(seed, 400) for seed in range(4, 40)), *texts_of_every_width(300)]
    found = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps((codes, texts)),
        env={**os.environ, "MT_SCAFFOLD_SIMD": instructions},
        capture_output=True,
        check=True,
    )
    encoded = [text.encode() for text in texts]
    assert found.stdout.decode().strip() == str([BPE(each).encode_batch(encoded)[0].tolist() for each in codes])


LONG = (hard_text(5, 9000) + " " + "ab" * 400 + "\n") * 4
ONE_TEXT = {
    "ASCII": "it's 5 apples,  and more\n",
    "nothing": "",
    "Latin-1": "naïve café \xa0",
    "UCS-2": "日本語 text “quoted”",
    "UCS-4": "🙂 a 🙂🙂 b",
    "bytes as surrogates": "a\udcff\udc80b",
    "more than fits on the stack": "word näive " * 700,
    "several units": LONG,
    "many parts": f"a {PAD} b" * 3000,
}


@pytest.mark.parametrize("pretokeniser", ["gpt2", r"\w+|[^\w\s]+"])
@pytest.mark.parametrize("text", ONE_TEXT.values(), ids=ONE_TEXT)
def test_the_fast_path_of_a_call_gives_what_the_general_one_gives(text: str, pretokeniser: str) -> None:
    """A call with the defaults goes straight into the core; equivalent arguments do not."""
    for special in ((), (END, PAD)):
        bpe = bpe_of(pretokeniser, "scaffold", *special)
        calls: list[Any] = [bpe.encode, bpe.encode_to_numpy]
        expected, _ = bpe.encode_batch([text], disallowed_special=())
        assert bpe.encode(text, disallowed_special=()) == expected.tolist()
        for same in (text, text.encode("utf-8", "surrogateescape")):
            if special and PAD in text:
                errors = []
                options: dict[str, Any]
                for options in ({}, {"allowed_special": frozenset()}):
                    for encode in calls:
                        with pytest.raises(SpecialTokenError) as caught:
                            encode(same, **options)
                        errors.append(str(caught.value))
                assert len({*errors}) == 1 and f"'{PAD}' at byte offset 2;" in errors[0]
                continue
            found = bpe.encode(same)
            assert found == bpe.encode(same, allowed_special=frozenset()) == expected.tolist()
            array = bpe.encode_to_numpy(same)
            assert array.dtype == numpy.uint32 and array.tolist() == found
            assert bpe.encode_to_numpy(same, disallowed_special=()).tolist() == found


def test_encode_to_numpy_takes_what_encode_takes() -> None:
    """Special tokens, dropout and errors are those of encode."""
    bpe = bpe_of("gpt2", "scaffold", END)
    calls: list[Any] = [bpe.encode, bpe.encode_to_numpy]
    options: dict[str, Any]
    for options in (
        {"allowed_special": "all"},
        {"disallowed_special": ()},
        {"dropout": 0.5, "seed": 3, "index": 7, "disallowed_special": ()},
    ):
        text = TEXT + END
        assert bpe.encode_to_numpy(text, **options).tolist() == bpe.encode(text, **options)
    for encode in calls:
        for wrong in (5, None, ["a"]):
            with pytest.raises(TypeError, match="a text is a str or bytes, not"):
                encode(wrong)
        with pytest.raises(MTScaffoldError, match="the text holds a lone surrogate"):
            encode("a\ud800")
        for index in (-1, 2**64):
            with pytest.raises(UsageError, match="an index must be 0 or more"):
                encode("a", index=index)
        with pytest.raises(TypeError):
            encode("a", index=0.0)
        with pytest.raises(UsageError, match="are a set of them, or 'all'"):
            encode("a", allowed_special=END)
