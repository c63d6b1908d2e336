"""Parity-aware BPE: the native core against its plain Python reference, an example to follow by hand, and BPE itself.

``MT_SCAFFOLD_PARITY_CORPORA=10000`` compares as many random corpora.
"""

from __future__ import annotations

import gzip
import io
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from awkward_words import ALPHABETS, words
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from reference.parity import ParityStep, learn_parity
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
    learn_with_reference,
    parity_codes,
)
from subword_nmt import apply_bpe as their_apply
from test_vectors import options_of

from mt_scaffold import BPE, Documents, MTScaffoldError, UsageError, _core, count_words, learn_bpe, write_counts
from mt_scaffold.cli import main
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.text import words_of
from mt_scaffold.methods.learn import learn, learn_joint_bpe_and_vocab
from mt_scaffold.methods.parity import Parity

CORPORA = int(os.environ.get("MT_SCAFFOLD_PARITY_CORPORA", "150"))
hundreds = settings(max_examples=CORPORA, derandomize=True, deadline=None, database=None)


# ---- by hand


# Writing "w." for "w</w>". English has the tokens l o w. l o w. l o w e r., 11; German 8 + 6 = 14.
#   14 > 11       German: (t, i) and (i, e) occur 3 times, the greater wins: ti, and 11 tokens are left
#   11 = 11       English is first: (l, o) 3 times, 8 tokens
#   11 > 8        German: (ti, e) 3 times, 8 tokens
#   8 = 8         English: (lo, w.) twice, 6 tokens
#   8 > 6         German: (tie, f.) twice, 6 tokens
#   6 = 6         English: no pair occurs twice any more, so learning ends; "e r." occurs twice only in both together
ENGLISH, GERMAN = "low low lower\n", "tief tief tiefer\n"
BY_HAND = b"#version: 0.2\nt i\nl o\nti e\nlo w</w>\ntie f</w>\n"


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "text.en", tmp_path / "text.de"]
    for path, text in zip(paths, (ENGLISH, GERMAN), strict=True):
        path.write_text(text)
    return paths


def test_by_hand(texts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The language with most tokens is next; stderr reports why learning ends and, on request, each choice."""
    learned = learn_bpe(paths=texts, num_symbols=10, algorithm="parity", verbose=True)
    assert learned.text == BY_HAND
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (5, 0, 0, True)
    assert capsys.readouterr().err.splitlines() == [
        f"pair 0: t i -> ti (frequency 3 in {texts[1]}; tokens 11, 14)",
        f"pair 1: l o -> lo (frequency 3 in {texts[0]}; tokens 11, 11)",
        f"pair 2: ti e -> tie (frequency 3 in {texts[1]}; tokens 8, 11)",
        f"pair 3: lo w</w> -> low</w> (frequency 2 in {texts[0]}; tokens 8, 8)",
        f"pair 4: tie f</w> -> tief</w> (frequency 2 in {texts[1]}; tokens 6, 8)",
        f"no pair of {texts[0]}, which is compressed worst, has frequency >= 2. Stopping",
    ]
    english, german = ({word: text.split().count(word) for word in text.split()} for text in (ENGLISH, GERMAN))
    reference = learn_parity([english, german], 10)
    assert parity_codes(reference) == BY_HAND and (reference.exhausted, reference.exhausted_language) == (True, 0)
    # BPE, which takes both as one text, merges German twice before English, and "e r" in the end.
    assert learn_bpe(paths=texts, num_symbols=10, algorithm="bpe").text == (
        b"#version: 0.2\nt i\nti e\nl o\ntie f</w>\nlo w</w>\ne r</w>\n"
    )
    # Swapped, the other language comes first when both have as many tokens.
    assert learn_bpe(paths=texts[::-1], num_symbols=2, algorithm="parity").text == b"#version: 0.2\nt i\nti e\n"


def test_variants_by_hand(texts: list[Path]) -> None:
    """Hybrid: the first merges are those of BPE. Window: a language that was chosen too often has to wait."""
    hybrid = learn_with(paths=texts, num_symbols=3, algorithm="parity", global_merges=2)
    assert hybrid.text == b"#version: 0.2\nt i\nti e\nl o\n"
    # The German development text is never compressed: German is always chosen, unless the window forbids it.
    dev = [texts[0].parent / "dev.en", texts[0].parent / "dev.de"]
    dev[0].write_text("x\n")
    dev[1].write_text("yyyyyyyyyyyyyy\n")
    always = learn_with(paths=texts, num_symbols=3, algorithm="parity", dev=dev)
    assert always.text == b"#version: 0.2\nt i\nti e\ntie f</w>\n"
    # Half of a window of 1 is less than one choice, so the language in it has to wait for another.
    in_turn = learn_with(paths=texts, num_symbols=4, algorithm="parity", dev=dev, window=1, alpha=1)
    assert in_turn.text == b"#version: 0.2\nt i\nl o\nti e\nlo w</w>\n"


def test_a_window_without_effect_is_said(texts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """With the default alpha and two languages, none can have too many merges; the warning says what to change."""
    expected = learn_bpe(paths=texts, num_symbols=3, algorithm="parity").text
    for alpha in (None, 2, 1e300):
        assert learn_with(paths=texts, num_symbols=3, algorithm="parity", window=3, alpha=alpha).text == expected
        assert capsys.readouterr().err == (
            "warning: the window has no effect: with 2 languages, alpha would have to be below 2\n"
        )
    learn_with(paths=texts, num_symbols=3, algorithm="parity", window=1, alpha=1.9)
    learn_with(paths=[*texts, texts[0]], num_symbols=3, algorithm="parity", window=3)
    assert capsys.readouterr().err == ""


# ---- the core and the reference


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[dict[str, int]], list[dict[str, int]] | None]:
    """Words of two to four languages, and perhaps those of development texts."""
    letters = draw(st.sampled_from(ALPHABETS))
    counts = st.dictionaries(words(letters), st.integers(1, 9), min_size=1, max_size=4)
    languages = draw(st.lists(counts, min_size=2, max_size=4))
    number = len(languages)
    return languages, draw(st.none() | st.lists(counts, min_size=number, max_size=number))


def core_steps(
    training: list[dict[str, int]], development: list[dict[str, int]] | None, mode: Mode = CHARACTERS, **options: Any
) -> tuple[_core._LearnedParity, list[ParityStep]]:
    """Learn with the core, and return its steps as well."""
    steps: list[ParityStep] = []

    def on_step(left: str, right: str, frequency: int, language: int | None, lengths: list[int]) -> None:
        steps.append(ParityStep(left, right, frequency, language, tuple(lengths)))

    def counted(counts: dict[str, int]) -> _core.WordCounts:
        lines = b"".join(mode.word(word) + b" %d\n" % count for word, count in counts.items())
        return count_words(io.BytesIO(lines), is_dict=True, any_bytes=mode.byte_level)

    header = (mode.byte_level, "spaces" if mode.end_of_word else "gpt2", False)
    texts = [*map(counted, training)], [*map(counted, development or [])]
    return _core.learn_parity(*texts, on_step=on_step, header=header, **options), steps


def check_learning(
    training: list[dict[str, int]],
    development: list[dict[str, int]] | None,
    symbols: int,
    min_frequency: int,
    global_merges: int,
    window: int | None,
    alpha: float,
    mode: Mode = CHARACTERS,
) -> None:
    """Check that the core and the reference take the same steps and end alike."""
    share = Fraction(str(alpha))
    reference = learn_parity(
        *(training, symbols, development, min_frequency, global_merges, window, share), end_of_word=mode.end_of_word
    )
    most_chosen = Parity(window=window, alpha=alpha if window else None).most_chosen(len(training))
    learned, steps = core_steps(
        training, development, mode, symbols=symbols, min_frequency=min_frequency, global_merges=global_merges,
        window=window or 0, most_chosen=most_chosen,
    )  # fmt: skip
    if not mode.byte_level:
        assert steps == reference.steps
    assert [step[2:] for step in steps] == [step[2:] for step in reference.steps]
    assert learned["codes"] == parity_codes(reference, mode)
    assert (learned["exhausted"], learned["language"]) == (reference.exhausted, reference.exhausted_language)
    assert reference.exhausted or len(steps) == symbols


@hundreds
@given(
    texts=corpora(),
    symbols=st.integers(1, 12),
    min_frequency=st.integers(1, 4),
    global_merges=st.integers(0, 4),
    window=st.none() | st.integers(1, 6),
    alpha=st.sampled_from([1, 1.5, 2, 1.1]),
)
def test_learning(
    texts: tuple[list[dict[str, int]], list[dict[str, int]] | None],
    symbols: int,
    min_frequency: int,
    global_merges: int,
    window: int | None,
    alpha: float,
) -> None:
    """Pairs, frequencies, chosen languages, their lengths and the early end are the reference's, in every variant."""
    check_learning(*texts, symbols, min_frequency, global_merges, window, alpha)


@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
@settings(hundreds, max_examples=40)
@given(
    counts=st.lists(
        st.dictionaries(st.text("a\x80\xffé", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=4),
        min_size=2,
        max_size=3,
    ),
    symbols=st.integers(1, 10),
)
def test_symbols_of_every_kind(mode: Mode, counts: list[dict[str, int]], symbols: int) -> None:
    """Bytes, and words without a mark at their end, are learned as characters are."""
    check_learning(counts, None, symbols, 2, 1, None, 2, mode)


@hundreds
@given(texts=corpora(), symbols=st.integers(1, 12), languages=st.integers(2, 3))
def test_bpe_is_a_special_case(
    texts: tuple[list[dict[str, int]], list[dict[str, int]] | None], symbols: int, languages: int
) -> None:
    """If all languages are the same, or all merges are global, the codes are those of BPE."""
    training, development = texts
    _, alone = learn_with_reference(training[0], symbols, 2, "bpe")
    assert core_steps([training[0]] * languages, None, symbols=symbols, min_frequency=2)[0]["codes"] == alone
    together: Counter[str] = Counter()
    for counts in training:
        together.update(counts)
    _, joint = learn_with_reference(dict(together), symbols, 2, "bpe")
    learned, _ = core_steps(training, development, symbols=symbols, min_frequency=2, global_merges=symbols)
    assert learned["codes"] == joint


# ---- through the package's functions and commands


def languages_of(vector: Path) -> list[bytes]:
    """Return the corpus and the probe of a vector as two languages, padded to the same number of lines."""
    texts = [(vector / f"{name}.txt").read_bytes().removesuffix(b"\n") + b"\n" for name in ("corpus", "probe")]
    most = max(text.count(b"\n") for text in texts)
    return [text + b"\n" * (most - text.count(b"\n")) for text in texts]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in VECTORS.glob("*/parity.codes")))
def test_vectors(name: str) -> None:
    """Codes learned from the two texts of a vector are the expected bytes, by the core and by the reference."""
    vector = VECTORS / name
    learned = learn_bpe(paths=map(io.BytesIO, languages_of(vector)), algorithm="parity", **options_of(vector))
    assert learned.text == (vector / "parity.codes").read_bytes()
    assert vector_of_reference(vector) == learned.text


def vector_of_reference(vector: Path) -> bytes:
    """Return the codes that the reference learns for a vector; the core's pre-tokeniser cuts the words."""
    options = options_of(vector)
    header = CodesHeader.of_options(
        options.get("pretokenise", "spaces"), options["split_digits"], options["byte_level"]
    )
    mode = (BYTES if header.end_of_word else PRETOKENISED) if header.bytes else CHARACTERS
    pretokeniser = header.make_pretokeniser()
    encoding = "latin-1" if mode.byte_level else "utf-8"
    training = []
    for text in languages_of(vector):
        words: Counter[str] = Counter()
        for line in text.split(b"\n"):
            split = None if pretokeniser is None else pretokeniser.split(line)
            words.update(
                words_of(line.decode(encoding)) if split is None else [word.decode(encoding) for word in split]
            )
        training.append(dict(words))
    learned = learn_parity(
        *(training, options["num_symbols"], None, options["min_frequency"]), end_of_word=mode.end_of_word
    )
    return parity_codes(learned, mode._replace(first_line="#version: " + codes_version(header)))


def codes_version(header: CodesHeader) -> str:
    """Return the first line of codes after "#version: "."""
    if header.end_of_word:
        return "0.2 byte" if header.bytes else "0.2"
    return f"0.3 bytes {header.pretokeniser}" + " split-digits" * header.split_digits


def test_no_vector_is_missing() -> None:
    """If an archive lacked a vector, its test would silently vanish."""
    assert len([*VECTORS.glob("*/parity.codes")]) == len([*VECTORS.glob("*/bpe.codes")]) == 25


def test_the_codes_are_those_of_any_bpe(tmp_path: Path) -> None:
    """subword-nmt reads them and segments alike; vocabularies of both languages come with them on request."""
    english, german = tmp_path / "text.en", tmp_path / "text.de"
    contents = [hard_text(seed, 600) for seed in (1, 2)]
    for path, content in zip((english, german), contents, strict=True):
        path.write_bytes(content.encode())
    dev = [tmp_path / "dev.en", tmp_path / "dev.de"]
    for path in dev:
        path.write_text("abc den\n\nrest")
    method = Parity(80, dev=dev, global_merges=5, window=8, alpha=1.25)
    learned = learn(paths=[english, german], outfile=tmp_path / "codes", method=method)
    assert learned.merges == 80 and (tmp_path / "codes").read_bytes() == learned.text
    theirs = their_apply.BPE(io.StringIO(learned.text.decode()))
    words = [[word for line in content.split("\n") for word in words_of(line)] for content in contents]
    probe = " ".join(words[0])
    assert theirs.segment(probe) == BPE(learned.text).segment(probe)
    vocabularies = [tmp_path / "vocab.en", tmp_path / "vocab.de"]
    joint = learn_joint_bpe_and_vocab([english, german], tmp_path / "joint", vocabularies, method)
    assert joint.text == learned.text
    for text, vocabulary in zip(words, vocabularies, strict=True):
        subwords = Counter(BPE(learned.text).segment(" ".join(text)).split(" "))
        lines = [line.rsplit(" ", 1) for line in vocabulary.read_bytes().decode().split("\n")[:-1]]
        assert {word: int(count) for word, count in lines} == dict(subwords)


def test_inputs_of_every_kind(texts: list[Path], tmp_path: Path) -> None:
    """Open files, compressed ones, documents, dictionaries and count files give the same codes as plain texts."""
    expected = learn_bpe(paths=texts, num_symbols=10, algorithm="parity").text
    compressed = [tmp_path / "text.en.gz", tmp_path / "text.de.gz"]
    dictionaries = [tmp_path / "counts.en", tmp_path / "counts.de"]
    counts = [tmp_path / "en.counts", tmp_path / "de.counts"]
    for path, packed, dictionary, counted in zip(texts, compressed, dictionaries, counts, strict=True):
        packed.write_bytes(gzip.compress(path.read_bytes()))
        dictionary.write_text("\n".join(dictionary_lines(Counter(path.read_text().split()))))
        write_counts(counted, path)
    options: dict[str, Any] = {"num_symbols": 10, "algorithm": "parity"}
    assert learn_bpe(paths=compressed, **options).text == expected
    assert learn_bpe(paths=[io.StringIO(path.read_text()) for path in texts], **options).text == expected
    assert learn_with(documents=[Documents([path]) for path in texts], **options).text == expected
    assert learn_with(paths=dictionaries, is_dict=True, dev=texts, **options).text == expected
    assert learn_with(counts=counts, dev=texts, **options).text == expected


def test_shards_of_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A glob is one language: its shards are read as one text, have its lines together, and get a short name."""
    (tmp_path / "en.0").write_text("low\nlow")
    (tmp_path / "en.1").write_text("lower\n")
    (tmp_path / "de.0").write_text("tief\ntief\ntiefer\n")
    command = ["learn-bpe", "--algorithm", "parity", "--input", str(tmp_path / "en.*"), str(tmp_path / "de.0")]
    assert main([*command, "--symbols", "10", "--output", str(tmp_path / "codes")]) == 0
    assert (tmp_path / "codes").read_bytes() == BY_HAND
    assert capsys.readouterr().err == (
        f"no pair of {tmp_path}/en.0 and 1 more, which is compressed worst, has frequency >= 2. Stopping\n"
    )


def test_total_symbols_counts_the_base_symbols_of_all_languages(texts: list[Path]) -> None:
    """l o w e, t i f, and w. r. f. make ten."""
    learned = learn_bpe(paths=texts, num_symbols=12, algorithm="parity", total_symbols=True)
    assert learned.text == b"#version: 0.2\nt i\nl o\n"


def test_the_trace_lists_the_merges(texts: list[Path]) -> None:
    """As for BPE: the pair and its frequency."""
    trace = io.BytesIO()
    learn_with(paths=texts, num_symbols=2, algorithm="parity", trace=trace)
    assert trace.getvalue().decode().splitlines()[1:] == ["1\tt\ti\t3\t\t\t\t\t", "2\tl\to\t3\t\t\t\t\t"]


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["-i", "{en}"], 2, "parity-aware BPE compares languages: give the text of each as a separate input"),
        (["-i", "{en}", "{de}", "--dev", "{en}"], 2, "there are 2 inputs and 1 development texts; give one of these"),
        (["-i", "{en}", "{de}", "--dev", "{en}", "{two}"], 1, "two: 2 lines, and {en} has 1; development texts must"),
        (["-i", "{en}", "{two}"], 1, "two: 2 lines, and {en} has 1; if the inputs are not parallel, give a"),
        (["-i", "{en}", "{empty}", "--dev", "{en}", "{de}"], 1, "empty: there are no words in it"),
        (["-i", "{en}", "{de}", "--dict-input"], 2, "no lines of text to compare with those of the other languages"),
        (["-i", "{en}", "{de}", "--format", "files"], 2, "no lines of text to compare with those of the other langua"),
        (["-i", "{en}", "{de}", "--prune", "2"], 2, "--prune drops words, so that the inputs no longer say the same"),
        (["-i", "{en}", "{de}", "--dev", "{en}", "{json}"], 2, "{json}: a development text is plain text, with a s"),
        (["-i", "{en}", "{de}", "--max-memory", "1G"], 2, "parity-aware BPE has no limit on memory"),
        (["-i", "{en}", "{de}", "--alpha", "2"], 2, "alpha is how much of a window falls on one language; give a win"),
        (["-i", "{en}", "{de}", "--window", "9", "--alpha", "0.5"], 2, "alpha must be 1 or more"),
        (["-i", "{en}", "{de}", "--window", "9", "--alpha", "nan"], 2, "alpha must be 1 or more"),
        (["-i", "{en}", "{de}", "--window", "0"], 2, "the window must be 1 or more merges"),
        (["-i", "{en}", "{de}", "--global-merges", "-1"], 2, "the number of global merges must be 0 or more"),
        (["-i", "{en}", "{de}", "--threshold", "0.9"], 2, "--threshold: parity has no such setting"),
        (
            ["-i", "{en}", "{de}", "--algorithm", "bpe", "--window", "9"],
            2,
            "--window: bpe has no such setting; its settings are symbols, min_frequency, total_symbols",
        ),
        (
            ["-i", "{en}", "{de}", "--algorithm", "bpe", "--window", "0"],
            2,
            "--window: bpe has no such setting; its settings are symbols, min_frequency, total_symbols",
        ),
        (["-i", "{en}", "{de}", "--algorithm", "bpe", "--alpha", "0"], 2, "--alpha: bpe has no such setting"),
        (["-i", "{en}", "{de}", "--algorithm", "bpe", "--dev", "{en}"], 2, "--dev: bpe has no such setting"),
        (["-i", "{en}", "{de}", "-o", "{copy}", "--dev", "{copy}", "{de}"], 2, "{copy}"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], status: int, complaint: str, texts: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves no output behind."""
    folder = texts[0].parent
    (folder / "two").write_text("low\nlow")
    (folder / "empty").write_text("\n")
    (folder / "copy").write_text(ENGLISH)
    (folder / "dev.jsonl").write_text('{"text": "tief"}\n')
    names = {"en": texts[0], "de": texts[1], "json": folder / "dev.jsonl"}
    names |= {name: folder / name for name in ("two", "empty", "copy")}
    command = ["learn-bpe", "--algorithm", "parity", "-o", str(folder / "codes")]
    assert main(command + [argument.format(**names) for argument in arguments]) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and complaint.format(**names) in error
    assert not (folder / "codes").exists() and (folder / "copy").read_text() == ENGLISH


def test_the_functions_refuse_what_is_not_one_text_per_language(texts: list[Path]) -> None:
    """Rather than learn from something that was not meant as a text."""
    for wrong in ({"lines": ["a"]}, {"infile": texts[0]}, {"documents": Documents(texts)}, {"documents": ["a", "b"]}):
        with pytest.raises(UsageError, match="parity-aware BPE takes"):
            learn(method=Parity(), **wrong)
    write_counts(texts[0].parent / "a.counts", texts[0])
    with pytest.raises(UsageError, match="count files have no lines to compare; give a parallel development text"):
        learn_with(counts=[texts[0].parent / "a.counts"] * 2, algorithm="parity")
    texts[1].write_bytes(b"tief \xff\n")
    with pytest.raises(MTScaffoldError, match=r"text\.de: line 1, byte offset 5: 0xFF is not"):
        learn_bpe(paths=texts, algorithm="parity")


def test_systems_of_an_experiment(tmp_path: Path) -> None:
    """A system of parity-aware BPE is learned from both languages, and compares them on the validation words."""
    systems = pytest.importorskip("mt_scaffold.experiment.configuration.systems", reason="needs the extra 'workflow'")
    schema = pytest.importorskip("mt_scaffold.experiment.runtime.schema")
    learn = systems.Learn(symbols=100)
    system = systems.System.from_keys({"algorithm": "parity", "global_merges": 7})
    setting = systems.segmentation_of(system, learn, ("en", "de"))
    assert setting.name == "parity-100-global7" and setting.source == setting.target
    assert setting.source.method == Parity(symbols=100, global_merges=7)
    for wrong in ({"joint": False}, {"threshold": 0.7}, {"below": 3}, {"dev": ["a"]}):
        with pytest.raises(schema.WrongValue, match=rf"^{next(iter(wrong))}: "):
            systems.System.from_keys({"algorithm": "parity", **wrong})
