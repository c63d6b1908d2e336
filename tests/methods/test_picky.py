"""PickyBPE: the native core against its plain Python reference, examples to follow by hand, its codes file.

``MT_SCAFFOLD_PICKY_CORPORA=10000`` compares as many random corpora.
"""

from __future__ import annotations

import io
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from awkward_words import ALPHABETS, LONGEST_SHORT_WORD, word_counts, words
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from segmenting import (
    BYTES,
    CHARACTERS,
    MODE_NAMES,
    MODES,
    PRETOKENISED,
    VECTORS,
    Mode,
    dictionary_lines,
    hard_text,
    learn_picky_with_reference,
    lines_at_lf,
    picky_codes,
    picky_reference_of,
    reference_subwords,
)
from subword_nmt import apply_bpe as their_apply
from test_dropout import SUSPICIOUS, sampled, surprise, surprise_of_two
from test_dropout import words_of as words_of_line
from test_vectors import options_of

from mt_scaffold import BPE, MTScaffoldError, UsageError, count_words, learn_bpe
from mt_scaffold.analysis.explain import explain
from mt_scaffold.analysis.reference_picky import Event, MergeEvent, SplitEvent
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes, Split
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.text import END_OF_WORD, is_base_symbol, surface_form, words_of
from mt_scaffold.methods import Picky, PlainBPE
from mt_scaffold.methods.learn import learn_joint_bpe_and_vocab
from mt_scaffold.methods.trace import format_step

CORPORA = int(os.environ.get("MT_SCAFFOLD_PICKY_CORPORA", "150"))
hundreds = settings(max_examples=150, derandomize=True, deadline=None, database=None)
thresholds = st.sampled_from([0.9, 0.6, 0.3, 0.5, 1.0, 0.01]) | st.floats(0.01, 1)


# ---- by hand


# Writing "d." for "d</w>". All three pairs of "ould." occur 100 times, and the greatest wins:
#   (u, l)      makes ul; u and l are base symbols and stay
#   (ul, d.)    makes uld.; all of ul is in it, IoS 100/100: ul is removed
#   (o, uld.)   makes ould.; uld. is removed in the same way
#   (w, ould.)  50 of 100: IoS 0.5
#   (c, ould.)  30 of the 50 that are left: 0.6
#   (s, h)      18, greater than (h, ould.)
#   (sh, ould.) 18 of 20: 0.9, so ould. is removed, and sh with 18 of 18; mould is left, and becomes m o u l d.
# Nothing else occurs 3 times.
OULD = {"would": 50, "could": 30, "should": 18, "mould": 2}
OULD_CODES = b"""\
#version: 0.4 picky
u l
ul d</w>
split ul u l
o uld</w>
split uld</w> u l d</w>
w ould</w>
c ould</w>
s h
sh ould</w>
split sh s h
split ould</w> o u l d</w>
"""


def test_an_intermediate_token_by_hand() -> None:
    """The paper's figure 2: "ould" is removed only after it has been merged into three frequent words."""
    learned = learn_bpe(lines=dictionary_lines(OULD), is_dict=True, num_symbols=10, min_frequency=3, algorithm="picky")
    assert learned.text == OULD_CODES
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (7, 4, 0, True)
    reference, codes = learn_picky_with_reference(OULD, 10, 0.9, 3)
    assert codes == OULD_CODES and reference.vocabulary == {"would</w>", "could</w>", "should</w>"}
    bpe = BPE(OULD_CODES)
    assert bpe.segment("should would mould shoulder") == "should would m@@ o@@ u@@ l@@ d s@@ h@@ o@@ u@@ l@@ d@@ e@@ r"
    # Before the last merge, ould and sh are in the vocabulary.
    assert BPE(OULD_CODES, merges=6).segment("should mould") == "sh@@ ould m@@ ould"
    # At a higher threshold ould stays; sh still goes, because all of it is merged.
    at_most = learn_with(
        lines=dictionary_lines(OULD), is_dict=True, num_symbols=10, min_frequency=3, algorithm="picky", threshold=0.91
    )
    assert BPE(at_most.text).segment("mould shed") == "m@@ ould s@@ h@@ e@@ d"


def test_a_second_chance_by_hand() -> None:
    """The paper's "he": removed when "the" is formed, then merged again as a word, which must not change "the"."""
    counts = {"the": 90, "he": 10}
    learned = learn_bpe(lines=dictionary_lines(counts), is_dict=True, num_symbols=2, algorithm="picky")
    assert learned.text == b"#version: 0.4 picky\nh e</w>\nt he</w>\nsplit he</w> h e</w>\nh e</w>\n"
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (3, 0, 1, False)
    assert BPE(learned.text).segment("the he she") == "the he s@@ he"
    assert BPE(learned.text, merges=2).segment("the he") == "the h@@ e"
    assert [merge.token for merge in learned.codes.merges] == ["he</w>", "the</w>", "he</w>"]
    assert learned.codes.splits == [Split(2, "he</w>", ("h", "e</w>"))]


def test_a_token_merged_with_itself_by_hand() -> None:
    """All of "xx" is in the merge of "xx" and "xx", though the pair occurs half as often as the token."""
    counts = {"xxxxa": 3, "xxxxb": 3, "xxxxc": 3}
    learned = learn_bpe(lines=dictionary_lines(counts), is_dict=True, num_symbols=1, algorithm="picky")
    assert learned.text == b"#version: 0.4 picky\nx x\n" and not learned.exhausted
    learned = learn_bpe(lines=dictionary_lines(counts), is_dict=True, num_symbols=2, algorithm="picky", min_frequency=9)
    assert learned.text == b"#version: 0.4 picky\nx x\nxx xx\nsplit xx x x\n" and learned.exhausted


# ---- the core and the reference


def check_learning(
    counts: dict[str, int], symbols: int, threshold: float, min_frequency: int, mode: Mode = CHARACTERS
) -> bytes:
    """Check that the core and the reference take the same steps and end alike; return the codes."""
    reference, codes = learn_picky_with_reference(counts, symbols, threshold, min_frequency, mode)
    trace = io.BytesIO()
    # Any word without "\n"; in latin-1 if its characters represent bytes.
    lines = b"".join(mode.word(word) + b" %d\n" % count for word, count in counts.items())
    native = learn_with(
        io.BytesIO(lines), None, symbols, min_frequency, is_dict=True, algorithm="picky", trace=trace,
        threshold=threshold, byte_level=mode.byte_level,
    )  # fmt: skip
    assert native.text == codes
    if not mode.byte_level:
        _, *steps = trace.getvalue().decode("utf-8").split("\n")
        assert steps == [*(format_step(number, step)[:-1] for number, step in enumerate(reference.steps, 1)), ""]
    made = {event.left + event.right for event in reference.events if isinstance(event, MergeEvent)}
    assert (native.merges, native.scaffold) == (len(reference.steps), len(made - reference.vocabulary))
    assert (native.restored, native.exhausted) == (reference.restored, reference.exhausted)
    assert native.exhausted or len(reference.vocabulary) == symbols
    return codes


@hundreds
@given(counts=word_counts, symbols=st.integers(1, 12), threshold=thresholds, min_frequency=st.integers(1, 4))
def test_learning(counts: dict[str, int], symbols: int, threshold: float, min_frequency: int) -> None:
    """Merges, splits, frequencies, returns and the early end are the reference's, at any threshold."""
    check_learning(counts, symbols, threshold, min_frequency)


@st.composite
def events_of(draw: st.DrawFn, alphabet: str) -> list[Event]:
    """Draw events that need not come from a corpus: pairs merged repeatedly, tokens split in any way allowed."""
    base = [*alphabet, *(letter + END_OF_WORD for letter in alphabet)]
    made, standing = [*base], set(base)
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 16))):
        split = sorted(token for token in standing if not is_base_symbol(token))
        if split and draw(st.integers(0, 2)) == 0:
            token = draw(st.sampled_from(split))
            standing.remove(token)
            marked = token.endswith(END_OF_WORD)
            rest, pieces = token, []
            while rest:
                ends = [end for end in range(1, len(rest) + 1) if rest[:end] in standing]
                ends = [end for end in ends if rest[:end].endswith(END_OF_WORD) == (marked and end == len(rest))]
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
        left = draw(st.sampled_from([token for token in made if not token.endswith(END_OF_WORD)]))
        right = draw(st.sampled_from(made))
        token = left + right
        if len(token) <= 30 and token.endswith(END_OF_WORD) == right.endswith(END_OF_WORD):
            made.append(token)
            standing.add(token)
            events.append(MergeEvent(left, right))
    return events


@st.composite
def cases(draw: st.DrawFn, min_size: int = 1, max_size: int = 12) -> tuple[bytes, int, str, set[str] | None, str]:
    """Draw codes, the number of merges to use, a separator, perhaps a vocabulary, and a line of text."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    codes = picky_codes(draw(events_of(alphabet)))
    merges = draw(st.just(-1) | st.integers(0, 14))
    separator = draw(st.sampled_from(["@@", "@@", "~", "￭", "</w>"]))
    with_unknown = words(alphabet, min_size, max_size) | words(alphabet + "xü", min_size, max_size)
    some_words = draw(st.lists(with_unknown, min_size=1, max_size=6))
    line = draw(st.sampled_from([" ", "   "])).join(some_words) + draw(st.sampled_from(["", " ", "\r\n"]))
    vocabulary = None
    if draw(st.booleans()):
        forms = sorted(set(BPE(codes, separator=separator).surface_forms()) | set(some_words))
        vocabulary = draw(st.sets(st.sampled_from(forms), max_size=len(forms)))
    return codes, merges, separator, vocabulary, line


def check_applying(codes: bytes, merges: int, separator: str, vocabulary: set[str] | None, line: str) -> None:
    reference = picky_reference_of(codes, merges, separator, vocabulary)
    bpe = BPE(codes, merges, separator, vocabulary)
    expected = reference.process_line(line)
    assert bpe.process_line(line) == expected
    assert bpe.process_line(line) == expected  # from the table of words, the second time
    tokens = {
        symbol for word in words_of(line) for symbol in reference.scaffolding([*word[:-1], word[-1] + END_OF_WORD])
    }
    assert not tokens & reference.scaffold, "a removed token came out"
    known = {letter for merge in Codes(codes).first(merges) for letter in merge.token.removesuffix(END_OF_WORD)}
    forms = {surface_form(token, separator) for token in tokens if known & {*token.removesuffix(END_OF_WORD)}}
    assert forms <= set(bpe.surface_forms()) or separator == END_OF_WORD


@hundreds
@given(case=cases())
def test_applying(case: tuple[bytes, int, str, set[str] | None, str]) -> None:
    """Both agree on every order of events, ``--merges``, the vocabulary filter and separators."""
    check_applying(*case)


@settings(hundreds, max_examples=60)
@given(case=cases(LONGEST_SHORT_WORD - 3, LONGEST_SHORT_WORD + 3))
def test_applying_to_words_at_the_limit_of_the_short_way(
    case: tuple[bytes, int, str, set[str] | None, str],
) -> None:
    """Both ways through a word agree around the length at which one takes over from the other."""
    check_applying(*case)


@settings(hundreds, max_examples=60)
@given(case=cases(LONGEST_SHORT_WORD + 1, 6 * LONGEST_SHORT_WORD))
def test_applying_to_long_words(case: tuple[bytes, int, str, set[str] | None, str]) -> None:
    """The way through long words agrees too, including words too long to be cached."""
    check_applying(*case)


def random_corpus(generator: random.Random) -> dict[str, int]:
    """Return counts of words that share many parts, like those of a language."""
    letters = generator.choice(["ab", "abc", "abcdefgh", "aä日😀", "a</w>"])
    parts = ["".join(generator.choices(letters, k=generator.randint(1, 4))) for _ in range(generator.randint(2, 8))]
    made = ["".join(generator.choices(parts, k=generator.randint(1, 4))) for _ in range(generator.randint(1, 40))]
    return {word: generator.choice([1, 2, 3, 10, 40]) for word in made}


@pytest.mark.parametrize("part", range(10))
def test_random_corpora(part: int) -> None:
    """Learning from random corpora, and segmenting words with what was learned, are the reference's."""
    generator = random.Random(part)
    splits = restored = 0
    for _ in range(CORPORA // 10):
        counts = random_corpus(generator)
        threshold = generator.choice([0.9, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 1.0])
        codes = check_learning(counts, generator.randint(1, 40), threshold, generator.randint(1, 3))
        letters = [*"".join(counts)]
        unseen = ["".join(generator.choices(letters, k=generator.randint(1, 60))) for _ in range(10)]
        check_applying(codes, generator.choice([-1, -1, 5]), "@@", None, " ".join([*counts, *unseen]))
        splits += len(Codes(codes).splits)
        merges = Counter(merge.token for merge in Codes(codes).merges)
        restored += merges.total() - len(merges)
    assert splits > CORPORA // 10 and restored > 0, "corpora without splits show nothing"


@pytest.mark.parametrize("mode", MODES[1:], ids=MODE_NAMES[1:])
def test_symbols_that_are_bytes(mode: Mode) -> None:
    """Learning and applying are also the reference's if symbols are bytes, with an end of word and without."""
    generator = random.Random(5)
    for _ in range(40):
        given_counts = {word.encode("utf-8").decode("latin-1"): n for word, n in random_corpus(generator).items()}
        lines = [mode.word(word) for word, count in given_counts.items() for _ in range(count)]
        counts = Counter(given_counts)
        if mode == PRETOKENISED:
            counts = Counter(
                {word.decode("latin-1"): n for word, n in count_words(lines=lines, **mode.options).byte_items()}
            )
        symbols, threshold = generator.randint(1, 30), generator.choice([0.9, 0.6, 0.4])
        codes = learn_picky_with_reference(counts, symbols, threshold, 2, mode)[1]
        learned = learn_with(lines=lines, num_symbols=symbols, threshold=threshold, algorithm="picky", **mode.options)
        assert learned.text == codes
        assert learned.codes.header == CodesHeader("bytes", "spaces" if mode == BYTES else "gpt2", picky=True)
        reference, bpe = picky_reference_of(codes), BPE(codes)
        for word in [*counts, "".join(generator.choices([*"".join(counts)], k=70))]:
            found = b" ".join(bpe.segment_tokens([mode.word(word)]))
            if mode == BYTES:
                assert found == reference.segment(word).encode("latin-1")
            else:
                assert found.decode("utf-8") == reference_subwords(reference, [mode.word(word)])
            assert bpe.decode_bytes(bpe.encode(mode.word(word))) == mode.word(word)


def test_hard_text_with_learned_codes() -> None:
    """A text with every kind of line and letter is counted, learned from and segmented as the reference does it."""
    text = hard_text(3, 3000)
    counts = Counter(word for line in lines_at_lf(text) for word in words_of(line))
    codes = learn_picky_with_reference(dict(counts), 60, 0.6)[1]
    learned = learn_with(io.BytesIO(text.encode("utf-8")), num_symbols=60, algorithm="picky", threshold=0.6)
    assert learned.text == codes
    assert learned.codes.splits, "a text without removed tokens shows nothing"
    output = io.BytesIO()
    BPE(learned.text).process_file(io.BytesIO(text.encode("utf-8")), output, num_workers=2)
    reference = picky_reference_of(codes)
    assert output.getvalue().decode("utf-8") == "".join(map(reference.process_line, lines_at_lf(text)))


# ---- dropout


# "a" and "b" merged into "ab" twice, with a removal in between; overlaps; a token made in two ways.
DROPPED = b"""\
#version: 0.4 picky
a a
a b
ab ab
split ab a b
aa b</w>
a b
aa aa
split aa a a
b a</w>
a a
aa ab
"""


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_words_have_their_exact_distribution(dropout: float) -> None:
    """Each merge, but no split, is left out at each place with this probability: the enumeration predicts the words."""
    reference = picky_reference_of(DROPPED)
    chosen = ["aaaa", "abab", "aabab", "abba", "aaaab"]
    lines = [words_of_line(line) for line in sampled(DROPPED, " ".join(chosen), 20_000, dropout)]
    for place, word in enumerate(chosen):
        exact = {"@@".join(pieces): p for pieces, p in reference.dropout_distribution(word, dropout).items()}
        assert sum(exact.values()) == pytest.approx(1)
        assert surprise(Counter(line[place] for line in lines), exact) > SUSPICIOUS, word


@pytest.mark.parametrize("word", ["aab" * 16, "aab" * 17, "abaabba" * 9])
def test_long_words_are_drawn_as_the_reference_draws_them(word: str) -> None:
    """Both ways through a word, at 48, 51 and 63 letters: numbers of subwords, and the first and last of them."""
    generator = random.Random(1)
    reference = picky_reference_of(DROPPED)
    survives = lambda: generator.random() >= 0.3  # noqa: E731
    theirs = [reference.segment(word, survives).split(" ") for _ in range(1500)]
    ours = [line.split(" ") for line in sampled(DROPPED, word, 3000, 0.3)]
    for statistic in (len, lambda pieces: tuple(pieces[:2]), lambda pieces: tuple(pieces[-2:])):
        assert surprise_of_two(Counter(map(statistic, ours)), Counter(map(statistic, theirs))) > SUSPICIOUS


def test_dropout_of_nothing_and_of_everything() -> None:
    """p = 0 is no dropout, p = 1 gives base symbols, and the same seed the same text whatever the threads."""
    text = "aaaa abab aabab abba aaaab"
    bpe = BPE(DROPPED)
    assert bpe.segment(text, dropout=1e-300, seed=1) == bpe.segment(text)
    assert bpe.segment(text, dropout=1, seed=1).replace("@@ ", "") == text
    assert all(len(piece.removesuffix("@@")) == 1 for piece in bpe.segment(text, dropout=1, seed=1).split(" "))
    assert sampled(DROPPED, text, 300, 0.3, 5) == sampled(DROPPED, text, 300, 0.3, 5, workers=3)
    assert sampled(DROPPED, text, 300, 0.3, 5) != sampled(DROPPED, text, 300, 0.3, 6)


# ---- the codes file


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (b"a b\nsplit ab a c", "line 3: the pieces do not make 'ab'"),
        (b"a b\nsplit ab a", "line 3: expected 'LEFT RIGHT' or 'split TOKEN PIECE PIECE ...'"),
        (b"a b scaffold", "line 2: expected 'LEFT RIGHT' or 'split TOKEN PIECE PIECE ...'"),
        (b"split ab a b", "line 2: 'ab' is split, but is not in the vocabulary here"),
        (b"a b\nsplit ab a b\nsplit ab a b", "line 4: 'ab' is split, but is not in the vocabulary here"),
        (b"a b\nab c\nsplit ab a b\nsplit abc ab c", "line 5: 'ab' is neither a base symbol nor a token that can"),
        (b"a b\nsplit a a a", "line 3: a base symbol cannot be split"),
        (b"a b</w>\nsplit ab</w> a b", "line 3: 'b' is neither a base symbol nor a token that can appear"),
        (b"< /w>", "line 2: a merge that ends a word in its middle, or spells out '</w>'"),
        (b"a</w> b", "line 2: a merge that ends a word in its middle, or spells out '</w>'"),
        (b"a  b c", "line 2: expected 'LEFT RIGHT' or"),
        (b"a b\nsplit ab a \xff", "line 3: byte 12 of the line is not UTF-8"),
    ],
)
def test_a_malformed_line_is_reported(lines: bytes, complaint: str) -> None:
    """Lines that learning cannot have written give an error with file and line number, not another segmentation."""
    with pytest.raises(MTScaffoldError) as error:
        BPE(Codes(b"#version: 0.4 picky\n" + lines + b"\n", "some.codes"))
    assert str(error.value).startswith(f"some.codes: {complaint}")


@pytest.mark.parametrize(
    "words", ["", " byte", " bytes gpt2", " bytes o200k split-digits", " bytes pattern=\\w+| \\w+ "]
)
def test_the_first_line_is_read_as_it_is_written(words: str) -> None:
    """Every kind of symbols and words has its first line, and a symbol called split is not a split."""
    first = f"#version: 0.4 picky{words}"
    codes = Codes(f"{first}\nsplit ting\ns p\n".encode())
    assert codes.header.picky and len(codes.merges) == 2 and not codes.splits
    assert (
        codes.header.of_words == Codes(first.replace("0.4 picky", "0.2" if len(words) < 6 else "0.3").encode()).header
    )


@pytest.mark.parametrize("line", ["0.4", "0.4 choosy", "0.4 picky bits", "0.4 pickyy", "0.5 picky"])
def test_an_unknown_first_line_is_refused(line: str) -> None:
    """A file of a later program is refused, and the error says what to do."""
    with pytest.raises(MTScaffoldError, match=r"codes: line 1: .*update it"):
        _ = Codes(f"#version: {line}\na b\n".encode()).merges


def test_programs_that_do_not_know_splits_refuse_the_file() -> None:
    """subword-nmt would give other subwords; it stops at the first line."""
    with pytest.raises(ValueError, match="picky"):
        their_apply.BPE(io.StringIO(OULD_CODES.decode()))


def test_our_subword_nmt_applies_it() -> None:
    """A program that imports subword_nmt's names can be given the codes, dropout included; the seed decides."""
    from mt_scaffold.subword_nmt.apply_bpe import BPE as TheirNames

    bpe = TheirNames(io.StringIO(OULD_CODES.decode()))
    assert bpe.segment("should mould") == "should m@@ o@@ u@@ l@@ d"
    random.seed(3)
    dropped = {bpe.segment("should", dropout=0.5) for _ in range(50)}
    assert dropped == {"should", "s@@ h@@ o@@ u@@ l@@ d"}  # intermediate tokens are split again


# ---- what else reads codes


def test_vocabulary_glossaries_and_statistics(tmp_path: Path) -> None:
    """Filters, glossaries, counts and figures treat the codes like those of any other algorithm."""
    assert BPE(OULD_CODES, vocab={"would", "w@@"}).segment("would could") == "would c@@ o@@ u@@ l@@ d"
    assert BPE(OULD_CODES, glossaries=["ould"]).segment("mould would") == "m@@ ould w@@ ould"
    (summary,) = stats([OULD_CODES], lines=["would could mould"])
    assert (summary.normal_tokens, summary.scaffold_tokens, summary.tokens) == (3, 4, 7)
    text = tmp_path / "text"
    text.write_text("would could should mould\n" * 5)
    learned = learn_joint_bpe_and_vocab([text], tmp_path / "codes", [tmp_path / "vocab"], Picky(3, threshold=0.8))
    assert (tmp_path / "codes").read_bytes() == learned.text and learned.codes.header.picky
    used = {line.split()[0] for line in (tmp_path / "vocab").read_text().splitlines()}
    assert "would" in used
    assert {form for form in used if len(form.removesuffix("@@")) > 1} <= {*BPE(learned.text).surface_forms()}


def test_explain_shows_the_splits() -> None:
    """A reader sees what was merged and taken apart again, and the result is apply-bpe's."""
    mould = explain(OULD_CODES, ["mould"]).splitlines()
    assert [line.split()[0] for line in mould[1:]] == ["symbols", *["merge"] * 2, *["merge"], "split", "result"]
    assert mould[-2].endswith("ould</w> = o + u + l + d</w>")
    assert mould[-1].split() == ["result", "m@@", "o@@", "u@@", "l@@", "d"]


def test_systems_of_an_experiment() -> None:
    """A system of PickyBPE has separate codes for each threshold."""
    systems = pytest.importorskip("mt_scaffold.experiment.configuration.systems", reason="needs the extra 'workflow'")
    learn = systems.Learn(symbols=100)
    usual, lower = (
        systems.segmentation_of(systems.System.from_keys({"algorithm": "picky", **keys}), learn, ("en", "de")).source
        for keys in ({}, {"threshold": 0.7})
    )
    assert (usual.name, lower.name) == ("picky-100", "picky-100-ios0.7")
    assert lower.method == Picky(symbols=100, threshold=0.7)
    plain = systems.segmentation_of(systems.System.from_keys({"algorithm": "bpe"}), learn, ("en", "de"))
    assert plain.source.method == PlainBPE(symbols=100)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands learn and apply; a threshold that is invalid or has no effect is an error of one line."""
    text, codes, output = tmp_path / "text", tmp_path / "codes", tmp_path / "out"
    text.write_text("".join(f"{line}\n" for line in dictionary_lines(OULD)))
    learn = ["learn-bpe", "--dict-input", "-s", "10", "--min-frequency", "3", "-i", str(text), "-o", str(codes)]
    assert main([*learn, "--algorithm", "picky"]) == 0
    assert codes.read_bytes() == OULD_CODES
    assert main(["apply-bpe", "-c", str(codes), "-i", str(text), "-o", str(output)]) == 0
    assert output.read_text().startswith("would 5@@ 0\ncould 3@@ 0\nshould 1@@ 8\nm@@ o@@ u@@ l@@ d 2\n")
    capsys.readouterr()
    for wrong in (["--threshold", "0.9"], ["--algorithm", "picky", "--threshold", "0"]):
        assert main([*learn, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        learn_with(lines=["a"], algorithm="picky", threshold=1.1)


def test_total_symbols_count_base_symbols() -> None:
    """With --total-symbols, N includes the base symbols."""
    lines = dictionary_lines({"abab": 5, "abc": 3})
    alone = learn_bpe(lines=lines, is_dict=True, num_symbols=2, algorithm="picky")
    assert learn_bpe(lines=lines, is_dict=True, num_symbols=6, total_symbols=True, algorithm="picky").text == alone.text


# ---- vectors


@pytest.mark.parametrize("name", sorted(path.parent.name for path in VECTORS.glob("*/picky.codes")))
def test_vectors(name: str) -> None:
    """Codes learned and text segmented are the expected bytes, by the core and, for characters, by the reference."""
    vector = VECTORS / name
    options: dict[str, Any] = options_of(vector)
    learned = learn_with(vector / "corpus.txt", algorithm="picky", threshold=0.7, **options)
    assert learned.text == (vector / "picky.codes").read_bytes()
    segmented = io.BytesIO()
    BPE(learned.text).process_file(vector / "probe.txt", segmented)
    assert segmented.getvalue() == (vector / "picky.segmented").read_bytes()
    if not learned.codes.header.bytes:
        corpus = (vector / "corpus.txt").read_bytes().decode("utf-8")
        counts = Counter(word for line in lines_at_lf(corpus) for word in words_of(line))
        codes = learn_picky_with_reference(counts, options["num_symbols"], 0.7, options["min_frequency"])[1]
        assert codes == learned.text
        lines = lines_at_lf((vector / "probe.txt").read_bytes().decode("utf-8"))
        assert "".join(map(picky_reference_of(codes).process_line, lines)).encode() == segmented.getvalue()


def test_no_vector_is_missing() -> None:
    """If an archive lacked a vector, its test would silently vanish."""
    assert len([*VECTORS.glob("*/picky.codes")]) == len([*VECTORS.glob("*/scaffold.codes")]) == 25
