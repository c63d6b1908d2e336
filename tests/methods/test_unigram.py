"""Unigram models: learning, words to subwords and back, and the distribution of samples."""

import itertools
import math
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dropping import SUSPICIOUS, surprise
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sentencepiece", reason="needs the extra 'unigram'")

import sentencepiece

from mt_scaffold.analysis.stats import summarise, table
from mt_scaffold.cli import main
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.symbols import join_symbols as join
from mt_scaffold.corpus.text import WORD_START
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.segmentation import Segmentation, joint_segmentation, stored_segmentation
from mt_scaffold.methods import Unigram
from mt_scaffold.methods.learn import learn
from mt_scaffold.methods.unigram_lattice import LatticeMaker, Pieces, sample
from mt_scaffold.methods.unigram_segmenter import UnigramSegmenter, apply_unigram, generator
from mt_scaffold.segment.draw import Draw

SYLLABLES = ("ba", "ban", "da", "an", "na", "nas", "ca", "low", "est", "er", "ñu", "&apos;", "9")
LINES = [" ".join(map("".join, itertools.permutations(chosen, 3))) for chosen in itertools.combinations(SYLLABLES, 3)]
CHARACTERS = len(set("".join(SYLLABLES)))
N = 60


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``text``, the lines, and ``unigram.model``, learned from them."""
    folder = tmp_path_factory.mktemp("unigram")
    (folder / "text").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    learn(method=Unigram(N), outfile=folder / "unigram.model", paths=[folder / "text"])
    return folder


@pytest.fixture(scope="module")
def segmenter(text: Path) -> UnigramSegmenter:
    return UnigramSegmenter(text / "unigram.model")


# ---- learning


def test_symbols_are_pieces_beside_the_characters(text: Path, segmenter: UnigramSegmenter, tmp_path: Path) -> None:
    """Like N merges, which add to the characters; with total_symbols, all pieces except <unk> together are N."""
    forms = segmenter.surface_forms()
    assert sum(len(piece) > 1 for piece in forms) == N
    assert {piece for piece in forms if len(piece) == 1} == {*"".join(SYLLABLES), WORD_START}
    learn(method=Unigram(N, total_symbols=True), outfile=tmp_path / "total.model", paths=[text / "text"])
    assert len(UnigramSegmenter(tmp_path / "total.model").surface_forms()) == N


def test_the_model_does_not_depend_on_the_order_of_lines_and_files(text: Path, tmp_path: Path) -> None:
    """Nor on the number of threads that count: the same text gives the same model."""
    half = len(LINES) // 2
    for name, lines in {"second": LINES[:half], "first": LINES[: half - 1 : -1]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    learn(
        method=Unigram(N),
        outfile=tmp_path / "other.model",
        paths=[tmp_path / "first", tmp_path / "second"],
        num_workers=2,
    )
    assert (tmp_path / "other.model").read_bytes() == (text / "unigram.model").read_bytes()


@pytest.mark.parametrize("total", [False, True])
def test_a_vocabulary_that_words_cannot_fill_says_how_large_it_can_be(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], total: bool
) -> None:
    """In one line; the number that it gives is accepted, the next one is not."""
    arguments = ["learn-unigram", "--input", str(text / "text"), "--output", str(tmp_path / "m.model")]
    arguments += ["--total-symbols"] * total
    assert main([*arguments, "--symbols", "100000"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and not (tmp_path / "m.model").exists()
    most = re.search(r"give at most (\d+)$", error)
    assert most, error
    assert main([*arguments, "--symbols", str(int(most[1]) + 1)]) == 1
    assert main([*arguments, "--symbols", most[1]]) == 0


def test_characters_that_do_not_fit_and_no_words_are_reported(text: Path, tmp_path: Path) -> None:
    """With total_symbols, the symbols include the characters."""
    with pytest.raises(MTScaffoldError, match=f"{CHARACTERS + 1} characters"):
        learn(method=Unigram(CHARACTERS + 1, total_symbols=True), outfile=tmp_path / "m.model", paths=[text / "text"])
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(MTScaffoldError, match="no words"):
        learn(method=Unigram(10), outfile=tmp_path / "m.model", paths=[tmp_path / "empty"])
    with pytest.raises(UsageError, match="must be positive"):
        learn(method=Unigram(0), outfile=tmp_path / "m.model", paths=[text / "text"])
    (tmp_path / "tiny").write_text("a b\n")
    for symbols, total in ((1, False), (4, True)):
        with pytest.raises(MTScaffoldError, match=f": {symbols} symbols .* too few words"):
            learn(method=Unigram(symbols, total), outfile=tmp_path / "m.model", paths=[tmp_path / "tiny"])


def test_learning_does_not_replace_its_input(tmp_path: Path) -> None:
    """However many inputs there are."""
    for name in ("en", "de"):
        (tmp_path / name).write_text("a b\n")
    with pytest.raises(UsageError, match="de: is an input already"):
        learn(method=Unigram(1), outfile=tmp_path / "de", paths=[tmp_path / "en", tmp_path / "de"])
    assert (tmp_path / "de").read_text() == "a b\n"


def test_words_with_reserved_characters_are_left_out_with_a_warning(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would change the characters, and so the number of pieces."""
    strange = " a\tb x▁y ▅ n\0 d\x1f c\r <unk>er"
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in [LINES[0] + strange, *LINES[1:]]), encoding="utf-8")
    learn(method=Unigram(N), outfile=tmp_path / "m.model", paths=[tmp_path / "text"])
    assert capsys.readouterr().err.startswith("warning: 7 words contain characters that SentencePiece reserves")
    assert (tmp_path / "m.model").read_bytes() == (text / "unigram.model").read_bytes()


@pytest.mark.parametrize("content", [b"", b"a b\n", b"\x00\x01\x02"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """One line names the file, whatever its content, and SentencePiece adds none."""
    (tmp_path / "broken.model").write_bytes(content)
    with pytest.raises(MTScaffoldError, match=r"broken\.model: not a model of"):
        UnigramSegmenter(tmp_path / "broken.model")
    assert not capfd.readouterr().err


def test_codes_under_the_name_of_a_model_are_told_from_a_broken_one(tmp_path: Path) -> None:
    """Codes may have any name, even one that ends in .model, as models' names do."""
    (tmp_path / "bpe.model").write_text("#version: 0.2\na b\n")
    with pytest.raises(
        MTScaffoldError, match=r"bpe\.model: codes, .* apply-bpe takes them, under a name .* not end in \.model"
    ):
        joint_segmentation(tmp_path / "bpe.model").segmenters()


def test_no_part_of_a_model_is_a_model(text: Path, tmp_path: Path) -> None:
    """SentencePiece loads a file that was cut off between two pieces, and segments with those before the cut."""
    model = (text / "unigram.model").read_bytes()
    for size in range(len(model)):
        (tmp_path / "part.model").write_bytes(model[:size])
        with pytest.raises(MTScaffoldError, match="not a model of"):
            UnigramSegmenter(tmp_path / "part.model")


@pytest.mark.parametrize(
    "setting",
    [
        {"normalization_rule_name": "nmt_nfkc"},
        {"remove_extra_whitespaces": True},
        {"add_dummy_prefix": False},
        {"treat_whitespace_as_suffix": True},
        {"bos_id": 1},
        {"byte_fallback": True, "vocab_size": 300},
        {"model_type": "bpe"},
        {"model_type": "char"},
    ],
    ids=str,
)
def test_a_model_that_would_change_words_or_has_other_pieces_is_refused(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    """spm_train makes such models by default; they would not give words back, or draw other segmentations."""
    options: dict[str, Any] = {"vocab_size": 60, "bos_id": -1, "eos_id": -1, "hard_vocab_limit": False}
    options |= {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "minloglevel": 2}
    for name, refused in {"plain": {}, "other": setting}.items():
        prefix = str(tmp_path / name)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES), model_prefix=prefix, **{**options, **refused}
        )
    assert UnigramSegmenter(tmp_path / "plain.model").segment("ﬁ ban").startswith("▁ ﬁ ▁")
    with pytest.raises(MTScaffoldError, match="not a model of mt-scaffold learn-unigram"):
        UnigramSegmenter(tmp_path / "other.model")


# ---- words to subwords, and back

WORDS = st.text(st.one_of(st.sampled_from(sorted({*"".join(SYLLABLES)})), st.characters(codec="utf-8")), min_size=1)
SENTENCES = st.lists(WORDS.map(lambda word: re.sub(r"[ \r\n]", "", word)), max_size=8).map(
    lambda words: " ".join(filter(None, words))
)


@settings(max_examples=100, deadline=None)
@given(sentence=SENTENCES.filter(lambda sentence: WORD_START not in sentence))
def test_subwords_join_to_the_words(segmenter: UnigramSegmenter, sentence: str) -> None:
    """For every word without U+2581, unknown characters and Unicode's other spaces included."""
    subwords = segmenter.segment(sentence)
    assert join(subwords, word_start=WORD_START) == sentence
    assert all(piece for piece in subwords.split(" ")) or not sentence


def test_a_words_own_u2581_is_an_unknown_character(segmenter: UnigramSegmenter) -> None:
    """It does not begin another word: the number of words stays, and text shows it as U+2585."""
    assert join(segmenter.segment("ban▁an ▁ low"), word_start=WORD_START) == "ban▅an ▅ low"
    ids, _ = segmenter.encoder(dict.fromkeys(segmenter.surface_forms(), 7), 3).ids_of(["▁▁▁"])
    assert ids.tolist() == [7, 3]


@pytest.mark.parametrize(
    ("subwords", "words"),
    [
        ("▁Schaff ellösung ▁ .", "Schaffellösung ."),
        ("ell ▁ ▁ ▁a", "ell a"),
        ("", ""),
        ("▁", ""),
        ("▁a <unk> b", "a<unk>b"),
    ],
)
def test_whatever_a_model_writes_is_joined(subwords: str, words: str) -> None:
    """A hypothesis need not begin with U+2581, and may contain it alone, which must not make an empty word."""
    assert join(subwords, word_start=WORD_START) == words


def test_ids_counts_and_text_agree(text: Path, segmenter: UnigramSegmenter) -> None:
    """Three ways to the same subwords, which are those of SentencePiece itself for the whole line."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(text / "unigram.model"))
    lines = [*LINES[:40], "日本 ban日本an", "", "ban  low"]
    own = [processor.encode(re.sub(" +", " ", line), out_type=str) for line in lines]
    assert [segmenter.segment(line).split() for line in lines] == own
    ids = {form: number for number, form in enumerate(segmenter.surface_forms(), start=4)}
    found, offsets = segmenter.encoder(ids, 3).ids_of([line.encode() for line in lines])
    sentences = [found[begin:end].tolist() for begin, end in itertools.pairwise(offsets.tolist())]
    assert sentences == [[ids.get(piece, 3) for piece in pieces] for pieces in own]
    counts = segmenter.count_subwords(count_words(lines=lines))
    assert counts == Counter(itertools.chain.from_iterable(own))


def test_unknown_characters_have_no_id_in_any_data_folder(text: Path, tmp_path: Path) -> None:
    """Not even those of the training text: whatever is not a piece is ``<unk>``, and counted as such."""
    pytest.importorskip("numpy", reason="needs NumPy")
    from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
    from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words

    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text(f"{LINES[0]}\nx▁y 日本 ban\t\n", encoding="utf-8")
    segmentation = joint_segmentation(text / "unigram.model")
    folders = [
        make(tmp_path / make.__name__, "en", "de", segmentation, tmp_path / "train")
        for make in (binarise, binarise_words)
    ]
    for folder in folders:
        # x, ▁ and y are three neighbouring ones.
        assert folder.counts["train"]["en"].unknown == 3
        written = (tmp_path / f"binarise{'_words' * (folder.storage == 'words')}" / "dict.en.txt").read_text("utf-8")
        assert not re.search("[日▅\t]", written) and "\nban " in written
    assert folders[0].counts == folders[1].counts


def test_the_command_segments_a_file_whatever_the_number_of_threads(text: Path, tmp_path: Path) -> None:
    """Line by line, with every line end an LF."""
    (tmp_path / "in").write_text("ban an\r\n\n low", encoding="utf-8", newline="")
    for workers in ("1", "3"):
        arguments = ["--codes", str(text / "unigram.model"), "--input", str(tmp_path / "in"), "--num-workers", workers]
        assert main(["apply-unigram", *arguments, "--output", str(tmp_path / "out")]) == 0
        lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
        assert [join(line, word_start=WORD_START) for line in lines] == ["ban an", "", "low", ""]
    (tmp_path / "in").write_bytes(b"ban\nan \xe4n\n")
    with pytest.raises(MTScaffoldError, match=r"in: line 2, byte offset 7"):
        apply_unigram(text / "unigram.model", tmp_path / "in", tmp_path / "none")


def test_a_stored_segmentation_is_found_again(text: Path, tmp_path: Path) -> None:
    """A data folder contains a copy of the model, and segments like the original."""
    model = str(text / "unigram.model")
    assert set(joint_segmentation(model).store(tmp_path, ["en", "de"])) == {"unigram.model", "segmentation.json"}
    stored = stored_segmentation(tmp_path)
    assert stored.kind is Unigram and stored.word_start == WORD_START
    source, target = stored.segmenters()
    assert source is target and source.segment(LINES[0]) == UnigramSegmenter(model).segment(LINES[0])
    sides = Segmentation((model, str(tmp_path / "unigram.model")))
    (tmp_path / "sides").mkdir()
    assert "unigram.de.model" in sides.store(tmp_path / "sides", ["en", "de"])


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"glossaries": ["a"]}, "glossaries"),
        ({"separator": "##"}, "separator"),
        ({"vocabularies": ("a", "b"), "vocabulary_threshold": 1}, "vocabulary"),
        ({"codes": ("a.model", "b.codes")}, "the other"),
    ],
)
def test_what_a_unigram_model_cannot_do_is_refused(changes: dict[str, object], wrong: str) -> None:
    """Before any file is read."""
    with pytest.raises(UsageError, match=wrong):
        Segmentation(**{"codes": ("a.model", "a.model"), **changes}).segmenters()  # type: ignore[arg-type]


def test_statistics_leave_out_what_only_merges_have(text: Path) -> None:
    """Everything else is measured on the pieces; the table shows a dash."""
    counts = count_words(text / "text")
    summary = summarise(Unigram.use(text / "unigram.model", counts))
    tokens = UnigramSegmenter(text / "unigram.model").count_subwords(counts).total()
    assert summary.tokens == tokens and summary.vocabulary_size == N + CHARACTERS + 1 and summary.normal_tokens == N
    size = len((text / "text").read_bytes()) - len(LINES)
    assert summary.bytes == size and summary.bytes_per_token == pytest.approx(size / tokens)
    shown = dict(table([summary])[1:])
    assert shown["merges"] == shown["scaffold tokens"] == shown["scaffold per normal token"] == "–"


# ---- sampling

PIECES = {"▁": 2.0, "a": 3.5, "b": 4.0, "ab": 3.0, "▁a": 2.5, "ba": 3.2, "aba": 4.1, "▁ab": 5.0, "bb": 1.2}
TOY = Pieces({piece: (number, -cost) for number, (piece, cost) in enumerate(PIECES.items(), start=1)}, 0)


def enumerated(pieces: Pieces, text: str, alpha: float) -> dict[tuple[int, ...], float]:
    """Return the probability of every segmentation of a text, by enumeration."""
    found: dict[tuple[int, ...], float] = {}
    for cuts in itertools.product((False, True), repeat=len(text) - 1):
        ends = [place for place, cut in enumerate(cuts, start=1) if cut]
        parts = [text[begin:end] for begin, end in itertools.pairwise([0, *ends, len(text)])]
        if all(part in pieces.scores for part in parts):
            score = math.fsum(pieces.scores[part][1] for part in parts)
            found[tuple(pieces.scores[part][0] for part in parts)] = math.exp(alpha * score)
    total = math.fsum(found.values())
    return {ids: weight / total for ids, weight in found.items()}


@pytest.mark.parametrize("alpha", [1e-9, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("word", ["ab", "abab", "babba", "abbabab"])
def test_segmentations_have_their_exact_distribution(word: str, alpha: float) -> None:
    """P(x)^alpha over the sum of all segmentations, found by enumeration (Kudo 2018, section 3.3, l = ∞)."""
    text = WORD_START + word
    lattice = LatticeMaker(TOY, alpha).make(text)
    # The probability of a path is the product of those of its pieces, from the end: exact, without drawing.
    for ids, expected in enumerated(TOY, text, alpha).items():
        spelled = [next(piece for piece, (number, _) in TOY.scores.items() if number == each) for each in ids]
        end, probability = len(text), 1.0
        for piece, number in zip(reversed(spelled), reversed(ids), strict=True):
            cumulative, begins, numbers = lattice[end]
            place = numbers.index(number)
            probability *= cumulative[place] - (cumulative[place - 1] if place else 0.0)
            end -= len(piece)
            assert begins[place] == end
        assert end == 0 and probability == pytest.approx(expected, rel=1e-6, abs=1e-9)
    uniform = generator(1, 2, 3)
    drawn = Counter(tuple(sample(lattice, uniform)) for _ in range(4000))
    assert surprise(drawn, enumerated(TOY, text, alpha)) > SUSPICIOUS


@pytest.mark.parametrize("alpha", [0.1, 0.8])
def test_sentencepiece_draws_from_the_same_distribution(text: Path, segmenter: UnigramSegmenter, alpha: float) -> None:
    """SentencePiece's sampler with nbest_size -1, and order and scores of its n-best list, match the enumeration."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(text / "unigram.model"))
    word = "banlowestnas"
    exact = enumerated(segmenter.pieces, WORD_START + word, alpha)
    assert len(exact) > 8
    sentencepiece.set_random_generator_seed(1)
    theirs = Counter(tuple(processor.sample_encode_as_ids(word, -1, alpha)) for _ in range(3000))
    assert surprise(theirs, exact) > SUSPICIOUS
    ids = {form: segmenter.pieces.scores[form][0] for form in segmenter.surface_forms()}
    found, offsets = segmenter.encoder(ids, 0).ids_of([word] * 3000, Draw("sampling_alpha", alpha, 5, 1))
    ours = Counter(tuple(found[begin:end].tolist()) for begin, end in itertools.pairwise(offsets.tolist()))
    assert surprise(ours, exact) > SUSPICIOUS
    likely = sorted(exact.values(), reverse=True)
    best = [exact[tuple(ids)] for ids in processor.nbest_encode_as_ids(word, 5)]
    assert best == pytest.approx(likely[:5], rel=1e-4)


def test_unknown_characters_are_one_as_without_sampling(segmenter: UnigramSegmenter) -> None:
    """However long the run; known characters around it are still sampled."""
    ids = {form: number for number, form in enumerate(segmenter.surface_forms(), start=4)}
    encoder = segmenter.encoder(ids, 3)
    for word, unknown in {"日": 1, "日本": 1, "日ban本日": 2, "ba▁n\tba": 2}.items():
        found, _ = encoder.ids_of([word], Draw("sampling_alpha", 0.2, 1))
        assert found.tolist().count(3) == unknown == encoder.ids_of([word])[0].tolist().count(3)


def test_a_draw_depends_on_seed_epoch_and_index_alone(segmenter: UnigramSegmenter) -> None:
    """Not on earlier or simultaneous draws: any part of a text, in any order, is drawn as in the whole."""
    ids = {form: number for number, form in enumerate(segmenter.surface_forms(), start=4)}

    def draw(lines: list[str], epoch: int, indices: list[int], seed: int = 9) -> list[list[int]]:
        found, offsets = segmenter.encoder(ids, 3).ids_of(lines, Draw("sampling_alpha", 0.1, seed, epoch), indices)
        return [found[begin:end].tolist() for begin, end in itertools.pairwise(offsets.tolist())]

    lines, numbers = LINES[:30], [*range(30)]
    whole = draw(lines, 1, numbers)
    assert whole == draw(lines, 1, []) == [*reversed(draw(lines[::-1], 1, numbers[::-1]))]
    assert whole[7:9] == draw(lines[7:9], 1, [7, 8])
    assert draw([lines[0]] * 2, 1, [0, 1])[0] != draw([lines[0]] * 2, 1, [0, 1])[1]
    assert whole != draw(lines, 2, numbers) and whole != draw(lines, 1, numbers, seed=10)
    # A training can resume with another version of Python.
    assert generator(9, 1, 0)() == 0.875478175579396


def test_long_words_are_not_kept(segmenter: UnigramSegmenter) -> None:
    """Text without spaces has a new word in every line: 131,072 lattices of 50 characters would take 2.9 GiB."""
    encoder = segmenter.encoder({}, 3)
    words = [f"{''.join(line.split())}{number}" for number, line in enumerate(LINES * 3)]
    encoder.ids_of(words[:1], Draw("sampling_alpha", 0.5, 1))
    tracemalloc.start()
    try:
        encoder.ids_of(words, Draw("sampling_alpha", 0.5, 1))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(words) > 500 and kept < 1 << 20


@pytest.mark.parametrize("alpha", [-0.1, math.inf, math.nan, 1e307])
def test_an_alpha_out_of_range_is_refused(alpha: float) -> None:
    """0 means no sampling; a score times 1e307 is infinite, which would make draws meaningless."""
    with pytest.raises(UsageError, match="must be above 0"):
        Draw("sampling_alpha", alpha)
