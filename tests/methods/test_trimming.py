"""``trim``: vocabulary trimming and its relatives, on codes of any origin, against a plain reading of the papers."""

from __future__ import annotations

import io
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from reference import trimming as reference
from segmenting import MODE_NAMES, MODES, PRETOKENISED, VECTORS, Mode, hard_text, in_codes, pairs_of, rich_text

from mt_scaffold import BPE, Codes, MTScaffoldError, count_words, learn_bpe, write_counts
from mt_scaffold.analysis.explain import explain
from mt_scaffold.analysis.reference import ReferenceBPE
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.text import bytes_to_notation, words_of
from mt_scaffold.methods.trimming import learn_on, total_occurrences, trim
from mt_scaffold.segment.neighbours import entropy, neighbour_entropies

# By hand. Writing w. for "w</w>" and so on, these codes make
#   low x3     l o w.       lo w.          low.
#   lower x2   l o w e r.   lo w e r.      low e r.   low er.   lower.
#   lowing x1  l o w i n g. lo w i n g.    low i n g.
# own occurrences           low. 3, lower. 2, low 1, i 1, n 1, g. 1, lo 0, er. 0
# and inside longer tokens  lo 6 (in low. 3, in low 3), low 2, er. 2 (both in lower.)
CODES = b"#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\nlow er</w>\n"
TEXT = ["low low lower", "low lower lowing"]


LETTERS = [*"abcdef", "ä", "ss"]


def tokens_of(codes: Codes) -> set[str]:
    return {merge.token for merge in codes.merges if not merge.normal}


def test_below_by_hand() -> None:
    """Frequencies are those in segmented text; a trimmed token is taken apart until its parts are in the vocabulary."""
    below_2 = trim(CODES, lines=TEXT, below=2)
    assert below_2.codes.text == (
        b"#version: 0.2\nl o scaffold\nlo w</w>\nlo w scaffold\ne r</w> scaffold\nlow er</w>\n"
    )
    assert below_2[1:] == (3, 0, False)
    assert BPE(below_2.codes).segment("low lower lowing") == "low lower l@@ o@@ w@@ i@@ n@@ g"
    below_3 = trim(CODES, lines=TEXT, below=3).codes
    assert tokens_of(below_3) == {"lo", "low", "er</w>", "lower</w>"}
    assert BPE(below_3).segment("low lower lowing") == "low l@@ o@@ w@@ e@@ r l@@ o@@ w@@ i@@ n@@ g"
    # Strictly below: a token of frequency 3 stays, whereas TkTkT's threshold of 3 would trim it.
    assert "low</w>" not in tokens_of(below_3) and "low</w>" in tokens_of(trim(CODES, lines=TEXT, below=4).codes)


def test_taking_apart_stops_at_the_vocabulary() -> None:
    """A part that is frequent enough is kept whole: trimming does not fall back to characters."""
    codes = trim(CODES, lines=["lowing " * 2, "lower"], below=2).codes
    assert tokens_of(codes) == {"lo", "low</w>", "er</w>", "lower</w>"}
    assert BPE(codes).segment("lower lowing low") == "low@@ e@@ r low@@ i@@ n@@ g l@@ o@@ w"


def test_ratio_by_hand() -> None:
    """Occurrences alone over those alone and inside: low 1/3, lo 0/6, er. 0/2, low. 3/3, lower. 2/2; a tie is kept."""
    own = {"low</w>": 3, "lower</w>": 2, "low": 1, "i": 1, "n": 1, "g</w>": 1}
    total = total_occurrences(own, Codes(CODES).merges)
    assert [total[token] for token in ("lo", "low", "er</w>", "low</w>", "lower</w>", "l")] == [6, 3, 2, 3, 2, 6]
    assert tokens_of(trim(CODES, lines=TEXT, ratio=1 / 3).codes) == {"lo", "er</w>"}
    assert tokens_of(trim(CODES, lines=TEXT, ratio=0.34).codes) == {"lo", "low", "er</w>"}
    # A token that never occurs has no ratio.
    assert tokens_of(trim(CODES, lines=["x"], ratio=1).codes) == set()
    assert tokens_of(trim(CODES, lines=["x"], below=1).codes) == {"lo", "low", "low</w>", "er</w>", "lower</w>"}


def test_a_list_and_several_rules(tmp_path: Path) -> None:
    """Listed tokens need no text; rules add up."""
    (tmp_path / "tokens").write_bytes(b"low</w>\r\n\nlo\n")
    listed = trim(CODES, tokens=tmp_path / "tokens")
    assert tokens_of(listed.codes) == {"low</w>", "lo"} and listed.marked == 2
    assert BPE(listed.codes).segment("low") == "l@@ o@@ w"
    both = trim(CODES, lines=TEXT, tokens=["lower</w>"], ratio=0.1).codes
    # With lower. marked first, low and er. occur twice more by themselves.
    assert tokens_of(both) == {"lower</w>", "lo"}


def test_a_listed_token_may_end_in_cr(tmp_path: Path) -> None:
    """The token ``x\\r`` must not be read as ``x`` and a line end."""
    (tmp_path / "tokens").write_bytes(b"xy\r\n")
    codes = Codes(b"#version: 0.2\nx y\nxy \r\nxy\r z\n")
    assert tokens_of(trim(codes, tokens=tmp_path / "tokens").codes) == {"xy\r"}


def test_marks_that_are_there_stay() -> None:
    """On Scaffold-BPE codes frequencies are those of the demolished text, and nothing becomes normal again."""
    codes = CODES.replace(b"low er</w>", b"low er</w> scaffold")
    marked = trim(codes, lines=TEXT, below=2)
    # lower. is demolished into low and er., which thus occur 3 and 2 times.
    assert tokens_of(marked.codes) == {"lower</w>", "lo"} and marked.marked == 1
    assert trim(marked.codes, lines=TEXT, below=2).codes.text == marked.codes.text


def test_base_symbols_are_never_marked() -> None:
    """A merge can make a base symbol if a word spells out the marker; it cannot be taken apart."""
    codes = b"#version: 0.2\na <\n/ w\na< /w\na</w >\n"
    assert tokens_of(trim(codes, lines=["a</w> x"], below=100).codes) == {"a<", "/w", "a</w"}
    with pytest.raises(MTScaffoldError, match="'a</w>' is a base symbol, which cannot be scaffold"):
        trim(codes, tokens=["a</w>"])


# ---- against the plain reading


def words_in(text: bytes, header: CodesHeader) -> Counter[str]:
    """Return the words of a text in the form of the reference, with their counts."""
    pretokeniser = header.make_pretokeniser()
    encoding = "latin-1" if header.bytes else "utf-8"
    if pretokeniser is None:
        return Counter(word for line in text.split(b"\n") for word in words_of(line.decode(encoding)))
    return Counter(word.decode(encoding) for line in text.split(b"\n") for word in pretokeniser.split(line))


def reference_lines(text: bytes, header: CodesHeader, reference: Any) -> bytes:
    """Return a text segmented by ``reference(word)``, a list of tokens, as apply-bpe prints it (with no margins)."""
    pretokeniser = header.make_pretokeniser()
    lines = []
    for line in text.split(b"\n"):
        if pretokeniser is not None:
            tokens = [token for word in pretokeniser.split(line) for token in reference(word.decode("latin-1"))]
            lines.append(" ".join(bytes_to_notation(token.encode("latin-1")) for token in tokens).encode())
            continue
        encoding = "latin-1" if header.bytes else "utf-8"
        pieces = []
        for word in words_of(line.decode(encoding)):
            *inner, last = reference(word)
            pieces += [f"{token}@@" for token in inner] + [last.removesuffix("</w>")]
        lines.append(" ".join(pieces).encode(encoding))
    return b"\n".join(lines)


NAMES = sorted(path.name for path in VECTORS.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_trimming_is_what_the_paper_says(name: str) -> None:
    """On every vector, including bytes: BPE, count, and take apart rare tokens. ``reference.trimmed`` follows the
    paper without marked codes, and must give the same text as the marked codes."""
    folder = VECTORS / name
    codes = (folder / "bpe.codes").read_bytes()
    corpus, probe = (folder / "corpus.txt").read_bytes(), (folder / "probe.txt").read_bytes()
    header, mode = Codes(codes).header, Mode.of(codes)
    merges, words = pairs_of(codes, mode), words_in(corpus, header)
    own = reference.frequencies(words, merges, set(), mode.end_of_word)
    for below in (2, 5, 20):
        kept = {token for token, count in own.items() if count >= below}
        marked = trim(codes, folder / "corpus.txt", below=below).codes
        expected = {left + right for left, right in merges} - kept
        assert tokens_of(marked) == in_codes(expected, mode), below
        stripped = b"\n".join(line.strip(b"\r ") if header.end_of_word else line for line in probe.split(b"\n"))
        segmented = io.BytesIO()
        BPE(marked).process_file(io.BytesIO(stripped), segmented)
        plain = reference_lines(
            stripped, header, partial(reference.trimmed, merges=merges, kept=kept, end_of_word=mode.end_of_word)
        )
        assert segmented.getvalue() == plain, below


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("byte", "gpt2")])
def test_trimming_is_subword_nmts_vocabulary_threshold(name: str) -> None:
    """The usual way to trim so far is the filter of subword-nmt itself, with the vocabulary of the text."""
    their_apply = pytest.importorskip("subword_nmt.apply_bpe")
    folder = VECTORS / name
    codes = (folder / "bpe.codes").read_text(encoding="utf-8")
    corpus, probe = (
        [" ".join(words_of(line)) for line in (folder / file).read_text(encoding="utf-8").split("\n")]
        for file in ("corpus.txt", "probe.txt")
    )
    plain = their_apply.BPE(io.StringIO(codes, newline="\n"))
    counts = Counter(subword for line in corpus for subword in plain.process_line(line).split(" "))
    kept = {subword for subword, count in counts.items() if count >= 5}
    assert kept
    filtering = their_apply.BPE(io.StringIO(codes, newline="\n"), vocab=kept)
    ours = BPE(trim(codes.encode(), lines=corpus, below=5).codes)
    assert [ours.segment(line) for line in probe] == [filtering.process_line(line) for line in probe]


def test_entropy_by_hand() -> None:
    """Of "lowing", "slow" and "flow", ow is preceded by l alone and followed by i or an edge, lo by an edge, s or f."""
    codes = b"#version: 0.2\nl o\nlo w\nlo w</w>\n"
    words = count_words(lines=["lowing slow flow flow"])
    found = neighbour_entropies(Codes(codes), words)
    # lo: left an edge, s, f, f; right always w.
    assert found["lo"] == (1.5, 0.0) and found["l"] == (1.5, 0.0)
    assert found["low"] == (0.0, 0.0)  # in lowing alone
    assert found["low</w>"] == (entropy([1, 2]), 0.0)
    lines = ["lowing slow flow flow"]
    assert tokens_of(trim(codes, lines=lines, ratio=1).codes) == {"lo"}
    assert tokens_of(trim(codes, lines=lines, ratio=1, entropy=1.5).codes) == {"lo"}
    assert tokens_of(trim(codes, lines=lines, ratio=1, entropy=1.4).codes) == set()


@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_the_entropy_of_neighbours_equals_the_reference(mode: Mode) -> None:
    """Every token of random corpora, bit for bit, and the marks that follow."""
    spared = 0
    for seed in range(8):
        lines = rich_text(seed, 100, [*"abcde", "ä"])
        codes = learn_bpe(lines=lines, num_symbols=25, algorithm=("bpe", "scaffold")[seed % 2], **mode.options).codes
        words = words_in("\n".join(lines).encode(), codes.header)
        merges = pairs_of(codes.text, mode)
        theirs = {left + right for left, right in merges if in_codes([left + right], mode) <= codes.scaffold}
        sides = reference.neighbour_entropies(words, merges, theirs, mode.end_of_word)
        wanted = {next(iter(in_codes([token], mode))): both for token, both in sides.items()}
        counts = count_words(lines=lines, pretokenise=codes.header.pretokeniser, any_bytes=codes.header.bytes)
        found = neighbour_entropies(codes, counts)
        assert {token: both for token, both in found.items() if token in wanted} == wanted
        assert not any(any(both) for token, both in found.items() if token not in wanted)
        for bits in (0.5, 1.5):
            rules: dict[str, Any] = {"ratio": 0.6, "entropy": bits}
            expected = reference.mark(words, merges, theirs, **rules, end_of_word=mode.end_of_word)
            marked = trim(codes, lines=lines, **rules).codes.scaffold
            assert marked == in_codes(expected, mode)
            spared += marked != trim(codes, lines=lines, ratio=0.6).codes.scaffold
    assert spared > 4, spared  # or little was tested


# ---- refilling


@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_learning_on_is_learning(mode: Mode) -> None:
    """Learning in two parts gives the codes of learning at once, even with ties or text that runs out of pairs."""
    lines = hard_text(3, 500).split("\n") + rich_text(3, 1000, LETTERS)
    counts = count_words(lines=lines, pretokenise="gpt2" if mode is PRETOKENISED else "spaces")
    before = counts.byte_items()
    for first, then in ((1, 2), (50, 300), (200, 5000)):
        short = learn_bpe(lines=lines, num_symbols=first, algorithm="bpe", **mode.options)
        at_once = learn_bpe(lines=lines, num_symbols=then, algorithm="bpe", **mode.options)
        codes, exhausted = learn_on(short.codes, counts, then - first)
        assert codes.text == at_once.text and exhausted == at_once.exhausted == (then == 5000)
    assert counts.byte_items() == before  # not used up


def test_refilled_codes_have_the_size_and_no_rare_token(capsys: pytest.CaptureFixture[str]) -> None:
    """As many normal tokens as before trimming, each frequent enough in the text as the final codes segment it."""
    lines = rich_text(5, 3000, LETTERS)
    codes = learn_bpe(lines=lines, num_symbols=200, algorithm="bpe").codes
    result = trim(codes, lines=lines, below=20, refill="same")
    assert not result.exhausted and result.learned == result.marked > 20
    assert len(result.codes.normal) == len(codes.normal)
    (summary,) = stats([result.codes], lines=lines)
    assert summary.scaffold_tokens == result.marked
    segmented = Counter(" ".join(BPE(result.codes).segment(line) for line in lines).split())
    surface = {token.removesuffix("</w>") if token.endswith("</w>") else f"{token}@@" for token in result.codes.normal}
    assert min(segmented[form] for form in surface) >= 20
    assert codes.text.removesuffix(b"\n").split(b"\n") == [
        line.removesuffix(b" scaffold") for line in result.codes.text.split(b"\n")[: len(codes.merges) + 1]
    ]
    too_many = trim(codes, lines=lines, below=20, refill=100_000)
    assert too_many.exhausted and "no pair has frequency >= 20. Stopping" in capsys.readouterr().err
    enough = trim(codes, lines=lines, tokens=[], refill=10)
    assert enough.learned == 0 and "more normal tokens than 10 already" in capsys.readouterr().err


# ---- uses of the result


def test_everything_else_works_on_marked_codes_of_subword_nmt(tmp_path: Path) -> None:
    """Applier, dropout, statistics, explanations and ids of codes that subword-nmt wrote and ``trim`` marked."""
    their_learn = pytest.importorskip("subword_nmt.learn_bpe")
    text = "\n".join(rich_text(7, 2000, LETTERS))
    theirs = io.StringIO()
    their_learn.learn_bpe(text.split("\n"), theirs, 150)
    (tmp_path / "codes").write_text(theirs.getvalue(), encoding="utf-8")
    (tmp_path / "text").write_text(text, encoding="utf-8")
    folder = [str(tmp_path / name) for name in ("codes", "text", "marked")]
    assert main(["trim", folder[0], "--below", "15", "--input", folder[1], "--output", folder[2]]) == 0
    codes = Codes.read(folder[2])
    scaffold = {token.removesuffix("</w>") if token.endswith("</w>") else f"{token}@@" for token in codes.scaffold}
    assert len(scaffold) > 10
    bpe = BPE(codes)
    assert not scaffold & set(bpe.surface_forms())  # what dictionaries are made of
    for dropout in (0, 0.3, 1):
        pieces = set(bpe.segment(" ".join(text.split()), dropout, seed=1).split())
        assert not scaffold & pieces
        assert bpe.join(bpe.segment("abba dass", dropout, seed=1)) == "abba dass"
    (summary,) = stats([codes], tmp_path / "text")
    assert summary.scaffold_tokens == len(scaffold)
    word = next(token.removesuffix("</w>") for token in sorted(codes.scaffold) if token.endswith("</w>"))
    assert "demolish" in explain(codes, [word])
    reference = ReferenceBPE([merge[:2] for merge in codes.merges], codes.scaffold)
    assert bpe.segment(" ".join(words_of(text))) == reference.segment(" ".join(words_of(text)))


def test_count_files_are_a_text(tmp_path: Path) -> None:
    """Counts of shards mark and refill as the text does; those of other words are refused."""
    lines = rich_text(8, 500, LETTERS)
    codes = learn_bpe(lines=lines, num_symbols=80, pretokenise="gpt2").codes
    write_counts(tmp_path / "counts", lines=lines, pretokenise="gpt2")
    counted = trim(codes, counts=[tmp_path / "counts"], below=5, refill="same")
    assert counted.codes.text == trim(codes, lines=lines, below=5, refill="same").codes.text
    with pytest.raises(MTScaffoldError, match="counted with --pretokenise gpt2, not --pretokenise spaces"):
        trim(CODES, counts=[tmp_path / "counts"], below=5)


def test_writing_marks_changes_nothing_else() -> None:
    """Every vector's codes come back byte for byte, and CR LF files with LF."""
    for name in NAMES:
        for algorithm in ("bpe", "scaffold"):
            text = (VECTORS / name / f"{algorithm}.codes").read_bytes()
            codes = Codes(text)
            assert codes.with_scaffold(codes.scaffold).text == text
    assert Codes(CODES.replace(b"\n", b"\r\n")).with_scaffold([]).text == CODES


def test_random_marks_are_read_back() -> None:
    """The reader finds exactly the tokens that were marked in byte codes, raw or in notation."""
    generator = random.Random(4)
    for name in ("byte", "gpt2"):
        codes = Codes.read(VECTORS / name / "bpe.codes")
        chosen = set(generator.sample(sorted(codes.normal), 10))
        assert trim(codes, tokens=chosen).codes.scaffold == chosen


# ---- errors
