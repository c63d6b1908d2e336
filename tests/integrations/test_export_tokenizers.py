"""Plain BPE codes as Hugging Face's tokenizer.json: every token the same, or refused."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import BPE, Codes, MTScaffoldError, UsageError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.pretokenise import Pretokeniser
from mt_scaffold.corpus.text import END_OF_WORD

tokenizers: Any = pytest.importorskip("tokenizers", reason="comes with the extra 'transformers'")

from mt_scaffold.integrations import oniguruma  # noqa: E402
from mt_scaffold.integrations.tokenizers import PATTERN_CHOICES, check_expressible, export_tokenizers, to_tokenizers  # noqa: E402
from mt_scaffold.integrations.vocabularies import tokenizer_json  # noqa: E402

DIFFERENT = b"#version: 0.2\nab a\na b\n"  # in ababz, all places at once give ab ab z; one at a time, aba b z
TEXTS = [
    "",
    " ",
    " a  small house \r\n",
    "ЖЖ low",
    "low\tlower\x85 </w> x@@ <unk",
    "东京 it's 12345  \n\n x",
    "\u2028a",
]


def one_place_at_a_time(merges: list[tuple[str, str]], words: list[str]) -> list[list[str]]:
    """Return the segmentation of words of several characters by tokenizers itself, with any merges."""
    parts = {symbol for merge in merges for symbol in (*merge, "".join(merge))}
    symbols = sorted({*"".join(words), *parts, *(word[-1] + END_OF_WORD for word in words)})
    ids = {symbol: number for number, symbol in enumerate(symbols)}
    content = tokenizer_json.content_of(None, None, None, ids, merges, end_of_word_suffix=END_OF_WORD)
    return [[symbols[each] for each in word] for word in tokenizer_json.ids_of(tokenizer_json.loaded(content), words)]


def all_places_at_once(codes: bytes, word: str) -> list[str]:
    """Return the segmentation by the codes, in the notation of tokenizers."""
    *inside, last = BPE(codes).segment(word).split()
    return [*(symbol.removesuffix("@@") for symbol in inside), last + END_OF_WORD]


def readable(*arguments: Any, **options: Any) -> Any:
    """Return what ``to_tokenizers`` does; skip the test if this version of the library cannot apply it."""
    tokenizer = to_tokenizers(*arguments, **options)
    try:
        tokenizer.encode("a")
    except ValueError as error:
        pytest.skip(str(error))
    return tokenizer


def test_the_documented_word_differs_and_its_codes_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One place at a time is not all places at once: the example that anyone can follow by hand."""
    assert all_places_at_once(DIFFERENT, "ababz") == ["ab", "ab", "z</w>"]
    assert one_place_at_a_time([("ab", "a"), ("a", "b")], ["ababz"]) == [["aba", "b", "z</w>"]]
    (tmp_path / "codes").write_bytes(DIFFERENT)
    assert main(["export-tokenizers", "--codes", f"{tmp_path}/codes", "--output", f"{tmp_path}/tokenizer.json"]) == 1
    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert f"{tmp_path}/codes: line 2: 'ab' is used before a line makes it; tokenizers would segment" in message
    assert not (tmp_path / "tokenizer.json").exists()


def random_merges(rng: random.Random) -> list[tuple[str, str]]:
    """Return merges as no learner makes them: of any strings over three letters."""
    parts = ["a", "b", "x"]
    merges: list[tuple[str, str]] = []
    for _ in range(rng.randrange(2, 9)):
        pair = rng.choice(parts), rng.choice(parts)
        if pair not in merges:
            merges.append(pair)
            parts.append(pair[0] + pair[1])
    rng.shuffle(merges)
    return merges


def test_whatever_differs_is_refused() -> None:
    """The condition on the codes suffices: of random codes, those let through segment every word alike."""
    rng = random.Random(1)
    different = passed = 0
    for _ in range(300):
        merges = random_merges(rng)
        codes = "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges)
        words = ["".join(rng.choices("abx", k=rng.randrange(2, 16))) + "z" for _ in range(20)]
        differs = one_place_at_a_time(merges, words) != [all_places_at_once(codes.encode(), word) for word in words]
        try:
            check_expressible(Codes(codes.encode()))
        except MTScaffoldError:
            different += differs
            continue
        passed += 1
        assert not differs, codes
    assert different > 10
    assert passed > 50


def test_learned_codes_are_never_refused() -> None:
    """Learning makes each string by one pair, before it uses it, even in small alphabets with runs and overlaps."""
    rng = random.Random(2)
    for _ in range(100):
        letters = "ab" if rng.random() < 0.5 else "abc"
        lines = [" ".join("".join(rng.choices(letters, k=rng.randrange(1, 14))) for _ in range(8)) for _ in range(6)]
        codes = learn_bpe(lines=lines, num_symbols=40, min_frequency=1, algorithm="bpe").codes
        tokenizer, bpe = readable(codes), BPE(codes)
        for word in ("".join(rng.choices(letters, k=rng.randrange(1, 20))) for _ in range(20)):
            marked = [token.removesuffix(END_OF_WORD) for token in tokenizer.encode(word).tokens[:-1]]
            assert marked == [each.removesuffix("@@") for each in bpe.segment(word).split()]


@pytest.fixture(scope="module")
def files(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plain codes of code points, and of bytes."""
    folder = tmp_path_factory.mktemp("codes")
    learn: Any = partial(
        learn_bpe, paths=[tiny_words / "train.en", tiny_words / "train.de"], num_symbols=150, algorithm="bpe"
    )
    learn(outfile=folder / "bpe")
    for name in oniguruma.NAMES:
        learn(outfile=folder / name, pretokenise=name)
        learn(outfile=folder / f"{name}-split", pretokenise=name, split_digits=True)
    return folder


@pytest.mark.parametrize("pattern", PATTERN_CHOICES)
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "gpt2-split", "cl100k-split", "o200k-split"])
def test_codes_of_bytes_have_the_same_ids(files: Path, name: str, pattern: str, tiny_words: Path) -> None:
    """Ids, special tokens and decoding are those of BPE.encode."""
    bpe = BPE(files / name, special_tokens=["<|end|>"])
    tokenizer = readable(files / name, special_tokens=["<|end|>"], pattern=pattern)
    lines = (tiny_words / "valid.de").read_text(encoding="utf-8").splitlines()
    for text in [*TEXTS, *lines, "a<|end|> b"]:
        ids = tokenizer.encode(text).ids
        assert ids == bpe.encode(text, allowed_special="all")
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    last = [tokenizer.decode([bpe.n_vocab - each], skip_special_tokens=False) for each in (1, 0)]
    assert last == ["<|end|>", ""]


@pytest.mark.skipif(not hasattr(tokenizers, "Regex"), reason="this version of tokenizers has no regular expressions")
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k"])
def test_words_are_the_same_around_every_character(name: str) -> None:
    """The pattern in Oniguruma's syntax cuts as the core does, whatever its version of Unicode."""
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(oniguruma.pattern(name)), "isolated")
    ours = Pretokeniser(name)
    pieces = [
        "'s",
        "'LL",
        "'ſ",
        "'",
        " ",
        "  ",
        "\n",
        "\r\n",
        "12345",
        "a",
        "Ab",
        "!",
        "/",
        "\u0301",
        "\u3000",
        "ǅ",
        "東",
    ]
    # All characters outside the long blocks of similar ones, and some of those.
    codes = [*range(0x3400), *range(0x3400, 0xD800, 61), *range(0xE000, 0x17000), *range(0x17000, 0x110000, 997)]
    rng = random.Random(3)
    text = "".join(chr(code) + "".join(rng.choices(pieces, k=2)) for code in codes if not 0xE000 <= code < 0xF900)
    for part in (text, "".join(rng.choices(pieces, k=5000))):
        assert [word.encode() for word, _ in split.pre_tokenize_str(part)] == ours.split(part)
    for part in ("".join(rng.choices(pieces, k=4)) for _ in range(500)):
        assert [word.encode() for word, _ in split.pre_tokenize_str(part)] == ours.split(part), part


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (b"#version: 0.2\na b\nab c scaffold\n", "line 3: tokenizers cannot express Scaffold-BPE codes: it has no"),
        (b"#version: 0.4 picky\na b\n", "tokenizers cannot express codes of PickyBPE"),
        (b"#version: 0.2\nb c\na b\nab c\na bc\n", "line 5: 'abc' is made again, after line 4"),
        (b"#version: 0.2\nab c\n", "line 2: 'ab' is used before a line makes it"),
        (b"#version: 0.2\n< /\n</ w\n</w >\n", "spells out </w>"),
        (b"#version: 0.2 byte\na b\n", "tokenizers cannot express codes of bytes with </w>"),
        (b"#version: 0.3 bytes pattern=[a-z]+\na b\n", r"cannot cut words as --pretokenise '\[a-z\]\+'"),
        (b"#version: 0.3 bytes metaspace\na b\n", "cannot cut words as --pretokenise 'metaspace'"),
        (b"#version: 0.2\n< u\n<u n\n<un k\n<unk >\n", "one name, '<unk>'"),
        (b"#version: 0.2\na @\na@ @</w>\na@ c\n", "'a@@</w>' and 'a' are the same subword in segmented text"),
    ],
    ids="scaffold picky again before end-of-word bytes pattern metaspace special separator".split(),
)
def test_what_cannot_be_expressed_is_refused(codes: bytes, message: str) -> None:
    """One line says why, and no file that segments differently is written."""
    with pytest.raises(MTScaffoldError, match=message):
        to_tokenizers(codes)


def test_options_that_do_not_go_together(files: Path, tmp_path: Path) -> None:
    """A UsageError, which means status 2."""
    with pytest.raises(UsageError, match="omit the special tokens"):
        to_tokenizers(files / "bpe", special_tokens=["<|end|>"])
    with pytest.raises(UsageError, match="is a token of the codes"):
        to_tokenizers(files / "gpt2", special_tokens=["a"])
    with pytest.raises(UsageError, match="omit the vocabulary"):
        to_tokenizers(files / "gpt2", vocabulary=tmp_path / "dict.txt")


def test_a_check_that_fails_writes_nothing(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--check`` finds differences of the installed tokenizers, here in how it cuts words."""
    monkeypatch.setattr("mt_scaffold.integrations.tokenizers._words", lambda codes, pattern: {"type": "Whitespace"})
    (tmp_path / "text").write_text("x\nthe house\n", encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=f"{tmp_path}/text: line 2: tokenizers gives '"):
        export_tokenizers(files / "gpt2", tmp_path / "tokenizer.json", check=tmp_path / "text")
    assert not (tmp_path / "tokenizer.json").exists()
