"""Tokenising: one line out for each line in, whatever it contains; and detokenising reverses it."""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sacremoses", reason="sacremoses comes with the extra 'workflow'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data import moses
from mt_scaffold.experiment.data import tokenise as module
from mt_scaffold.experiment.data.moses import Rules, Tokeniser, tokeniser_of
from mt_scaffold.experiment.data.tokenise import detokenise, tokenise

MULTI30K = Path(__file__).resolve().parents[4] / "shared" / "data" / "multi30k"


@pytest.mark.parametrize(
    ("language", "raw", "words"),
    [
        ("en", "A man isn't here, is he?", "A man isn &apos;t here , is he ?"),
        ("en", "a well-known dog", "a well @-@ known dog"),
        ("de", "Z.B. „Der Hund“ – 3,5 km…", "Z.B. &quot; Der Hund &quot; - 3,5 km ..."),
        ("fr", "L’homme d'à côté", "L&apos; homme d&apos; à côté"),
        ("en", "[a|b] <c> & d", "&#91; a &#124; b &#93; &lt; c &gt; &amp; d"),
    ],
)
def test_words_are_those_of_moses(language: str, raw: str, words: str) -> None:
    """Punctuation split off, dashes split, quotation marks normalised, with Moses' escapes."""
    assert Tokeniser(language)(raw) == words


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "A man isn't here, is he?"),
        ("en", 'He said "no" to a well-known [three|four]-legged dog & <b>.'),
        ("en", "Literal &amp; and &apos; and &#124; stay."),
        ("de", "Zwei 3,5 km lange U-Bahn-Linien (z.B. hier)."),
        ("fr", "L'homme d'à côté n'est pas là."),
    ],
)
def test_detokenising_undoes_tokenising(language: str, text: str) -> None:
    """Scores are measured on detokenised text: an escape left in it would cost BLEU.

    Spaces are not compared, because Moses' rules guess where they belong."""
    (again,) = detokenise([Tokeniser(language)(text)], language)
    assert again.replace(" ", "") == text.replace(" ", "")


def test_detokenising_puts_spaces_where_a_reader_expects_them() -> None:
    """Punctuation is attached to its word again."""
    text = "Two well-known men aren't here, (yet)."
    assert detokenise([Tokeniser("en")(text), ""], "en") == [text, ""]


def test_a_language_without_rules_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """sacremoses silently uses English rules for any language it does not know, FR included."""
    (tmp_path / "raw").write_text("Aujourd'hui\n")
    for language, known in (("fr", True), ("ja", True), ("FR", False), ("french", False)):
        tokenise(tmp_path / "raw", tmp_path / "words", language=language)
        assert ("no rules" in capsys.readouterr().err) != known


def test_lowercasing_comes_last() -> None:
    """Moses splits off a full stop before a capital; lowercased first, "fell." would stay one word."""
    assert Tokeniser("en", Tokenise(lowercase=True))("ÖL fell. Then it rose.") == "öl fell . then it rose ."


def test_words_that_are_there_already_are_lowercased_too() -> None:
    """The systems read lowercased words, whatever the origin of a test set."""
    words = tokeniser_of("de", Tokenise(none=True, lowercase=True, straight_apostrophes=True))
    assert words(" Der  Hund\u2019s Haus .\n") == "der hund&apos;s haus ."
    assert tokeniser_of("de", Tokenise(none=True))("Der Hund\u2019s .") == "Der Hund\u2019s ."


def test_each_step_can_be_left_out() -> None:
    """An option of the configuration switches off one step and no other."""
    assert Tokeniser("en", Tokenise(normalise_punctuation=False))("“a”") == "“ a ”"
    assert Tokeniser("en", Tokenise(aggressive_dash_splitting=False))("well-known") == "well-known"
    assert Tokeniser("en")("a\u200bb") == "a b"
    assert Tokeniser("en", Tokenise(remove_nonprinting=False))("a\u200bb") == "a \u200b b"


@pytest.mark.parametrize("all_steps", [True, False])
def test_no_character_breaks_a_line_or_leaves_other_space(all_steps: bool) -> None:
    """At CR, U+0085, U+2028, form feed and similar characters, later steps may break lines or words."""
    tokeniser = Tokeniser("en", Tokenise(normalise_punctuation=all_steps, remove_nonprinting=all_steps))
    separators = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Zs", "Zl", "Zp", "Cc")
    ]
    assert "\u2028" in separators and "\x85" in separators and "\r" in separators
    for separator in separators:
        words = tokeniser(f"one{separator}two{separator}")
        assert words.splitlines() == [words]
        assert words.split(" ") == words.split()
        assert words.replace(" ", "").startswith("one")


def run(tmp_path: Path, content: bytes, **options: Any) -> bytes:
    (tmp_path / "in").write_bytes(content)
    tokenise(tmp_path / "in", tmp_path / "out", language="en", **options)
    return (tmp_path / "out").read_bytes()


def test_lines_keep_their_number_and_order(tmp_path: Path) -> None:
    """Empty lines, lines that become empty, other line breaks inside a line, no LF at the end: all stay parallel."""
    content = "One.\r\n\n \u00ad\nTwo\u2028three\x85four\x0cfive\rsix.\n\u200b\nlast".encode()
    lines = run(tmp_path, content).split(b"\n")
    assert lines[:3] == [b"One .", b"", b""]
    assert lines[4:] == [b"", b"last", b""]
    assert lines[3].startswith(b"Two three four five")


def test_an_empty_file_stays_empty(tmp_path: Path) -> None:
    """No line is added; compressed, it is still a gzip file."""
    assert run(tmp_path, b"") == b""
    tokenise(tmp_path / "in", tmp_path / "out.gz", language="en")
    assert (tmp_path / "out.gz").read_bytes() != b"" and gzip.decompress((tmp_path / "out.gz").read_bytes()) == b""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide a text of a few lines into several blocks."""
    monkeypatch.setattr(module, "BLOCK", 1000)


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path, small_blocks: None) -> None:
    """Speed never changes an experiment."""
    content = b"".join(b"Line number %d isn't well-known.\n" % number for number in range(200))
    alone = run(tmp_path, content)
    assert alone.count(b"\n") == 200
    assert run(tmp_path, content, num_workers=3) == alone


@pytest.mark.parametrize("num_workers", [1, 2])
def test_bytes_that_are_not_utf8_are_named_by_file_line_and_byte(
    tmp_path: Path, small_blocks: None, num_workers: int
) -> None:
    """The byte can be found, and no partial output is left."""
    content = b"good\n" * 501 + b"ba\xe4d\n"
    with pytest.raises(MTScaffoldError, match="in: line 502, byte offset 2507: 0xE4 is not UTF-8"):
        run(tmp_path, content, num_workers=num_workers)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_gzip_input_is_read_as_such(tmp_path: Path) -> None:
    """A name that ends in .gz means a compressed file, here as everywhere."""
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"Hello, you.\n"))
    report = tokenise(tmp_path / "in.gz", tmp_path / "out", language="en")
    assert (tmp_path / "out").read_bytes() == b"Hello , you .\n"
    assert (report.lines, report.words) == (1, 4)


def test_the_command_is_a_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It works in a pipeline, and its report goes to a separate file."""
    standard_input = io.TextIOWrapper(io.BytesIO(b"Hello, you.\n"))
    monkeypatch.setattr(sys, "stdin", standard_input)
    assert main(["tokenise", "--language", "en", "--report", str(tmp_path / "report.json")]) == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"Hello , you .\n"
    assert json.loads((tmp_path / "report.json").read_text())["words"] == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_detokenises_as_sacremoses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """Line by line, with escapes and split dashes undone, however the text is divided into blocks."""
    from sacremoses import MosesDetokenizer

    raw = [
        'He said "no" to a well-known [three|four] & <b>, didn\'t he?',
        "",
        "a  @-@  b",
        "&quot; x &quot; &bar;",
        "日本 語",
    ]
    lines = [*(Tokeniser("en")(line) for line in raw), *raw] * 3
    (tmp_path / "words").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr(module, "BLOCK", 100)
    command = ["detokenise", "-l", "en", "--num-workers", str(workers), "-i", str(tmp_path / "words"), "-o"]
    assert main([*command, str(tmp_path / "text")]) == main([*command, str(tmp_path / "text.gz")]) == 0
    expected = "".join(f"{MosesDetokenizer('en').detokenize(line.split())}\n" for line in lines)
    assert (tmp_path / "text").read_text(encoding="utf-8") == expected
    assert gzip.decompress((tmp_path / "text.gz").read_bytes()).decode() == expected
    assert expected.startswith('He said "no" to a well-known ') and '\na-b\n"x" |\n' in expected


def test_detokenising_refuses_what_is_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its place, and without an output."""
    (tmp_path / "words").write_bytes(b"a\nStra\xdfe\n")
    assert main(["detokenise", "-l", "de", "-i", str(tmp_path / "words"), "-o", str(tmp_path / "text")]) == 1
    assert "words: line 2, byte offset 6: 0xDF is not UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "text").exists()


def test_multi30k_comes_back_from_tokenising_nearly_as_it_was() -> None:
    """On real text, tokenising and detokenising change quotation marks and spaces, not words."""
    if not MULTI30K.is_dir():
        pytest.skip(f"no Multi30k in {MULTI30K.name} next to the repository")
    with gzip.open(MULTI30K / "test_2016_flickr.de.gz", "rt", encoding="utf-8", newline="\n") as stream:
        lines = stream.read().split("\n")[:-1]
    tokeniser = Tokeniser("de")
    again = detokenise(map(tokeniser, lines), "de")
    assert sum(line.strip() == other for line, other in zip(lines, again, strict=True)) > 0.97 * len(lines)


@pytest.mark.parametrize("block", [10, 1 << 18])
def test_blocks_put_together_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Lines of all lengths, empty ones, no LF at the end: nothing is lost or repeated, also in a compressed output."""
    lines = [f"Zeile {number}, {'sehr ' * (number * 7 % 31)}lang." if number % 5 else "" for number in range(20)]
    (tmp_path / "raw").write_text("\n".join(lines), encoding="utf-8")
    whole = tokenise(tmp_path / "raw", tmp_path / "whole", language="de")
    monkeypatch.setattr(module, "BLOCK", block)
    report = tokenise(tmp_path / "raw", tmp_path / "blocks.gz", language="de")
    assert gzip.decompress((tmp_path / "blocks.gz").read_bytes()) == (tmp_path / "whole").read_bytes()
    assert report == whole and whole.lines == 20


def test_straight_apostrophes_come_before_tokenising() -> None:
    """Otherwise, with punctuation left as it is, an English genitive would fall into three words."""
    assert Tokeniser("en", Tokenise(normalise_punctuation=False))("a dog\u2019s bone") == "a dog \u2019 s bone"
    straight = Tokeniser("en", Tokenise(normalise_punctuation=False, straight_apostrophes=True))
    assert straight("a dog\u2019s bone") == "a dog &apos;s bone"


# Text that sacremoses' rules, or the cache of their results (data/moses.py), treat specially.
MARKS = [*"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *"„“”–—…«»‘’‚´¿¡·°€½²ªº§", "''", "``", "--", "..", "...", "....", ".'"]
SPACES = ["  ", *"\t\r\xa0\u2009\u3000\u2028\x85\u200b\xad\x01\x1c\ufeff"]
WORDS = (
    "a b x A n s ll S I Haus house Ärger straße été Mr Dr Prof No pp Art Nr z.B U.S d.h bzw e.g p.m 1 7 10 99 100 3.5 "
    "1,5 1.234,56 5,000,000 ٣ Ⅷ don't l'homme rock'n'roll qu'il 's 't 1990's well-known e-mail www.x.org a@b.de "
    "DOTMULTI DOTDOTMULTI DOT MULTI cm nº ºC cannot &amp; &#124; @-@ ā āā ٠ 中文 日本 한국 हिन्दी ΟΔΟΣ İ e\u0301 😀 "
    "\U000e0001 \u0378"
).split()
# One for each setting, so that a piece in one example is cached in the next.
tokeniser_with, rules_with = functools.cache(Tokeniser), functools.cache(Rules)


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(
    st.lists(st.sampled_from(MARKS * 2 + SPACES + [" "] * 60 + WORDS), max_size=16).map("".join),
    st.sampled_from(["\n"] * 6 + ["", "\r\n", " \n", "\n\n"]),
    st.sampled_from(["en", "de", "fr", "fi"]),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_pieces_have_the_words_that_the_rules_give_the_line(
    text: str, end: str, language: str, options: list[bool]
) -> None:
    """Speed never changes an experiment: sacremoses defines the words, for any line, language and option."""
    assert tokeniser_with(language, Tokenise(*options))(text + end) == rules_with(language, Tokenise(*options))(
        text + end
    )


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "He met Mr. smith, Mr. Smith and No. 5 of pp. 7. Then he fell. 5 fell."),
        ("de", "Am 3. Mai, d.h. bald. und z.B. Nr. 7. Art. 5 Abs. 3."),
        ("en", "'t was 5' '6 and x' 'y' ' ' 1990's 5's a's"),
        ("fr", "l'homme d'l'x 'a' 'b c' 'd qu'il ,5 ,a 5, 5,5,"),
        ("de", '."a ."b x." ."y ." . "x". „so.“ so." <b>."'),
        ("en", "Rock'n'roll a'b'c'd a,b,c,1,2,x 1,a,2 ,,b 3.5. 3.5, U.S. U.S. a ...x... … x…. ...."),
        ("en", "DOTMULTI DOTDOTMULTI, aDOTMULTIb DOT MULTI ā,٠ āā. ٠5 Ⅷ. ½'s"),
        ("fr", "«\xa0Oui\xa0»\xa0: 12\xa0000\xa0% , \xa0: 5 % ( x ) . : ; ."),
        ("en", " leading.  two  spaces.\xa0 x.\u200b y \u200b'z\x01' a\rb \r ."),
    ],
)
def test_the_lines_that_are_hard_for_pieces(language: str, line: str) -> None:
    """Every rule that looks beyond a space, and every exception to shapes."""
    for end in ("\n", "", " \r\n"):
        for normalise in (True, False):
            settings_of = (language, Tokenise(normalise))
            assert tokeniser_with(*settings_of)(line + end) == rules_with(*settings_of)(line + end)


@pytest.mark.parametrize("language", ["de", "en", "es"])
def test_full_stops_before_quotation_marks_are_those_of_the_line(language: str) -> None:
    """Normalising may remove a mark between the two, and the match for the first then consumes the second."""
    tokeniser, rules = tokeniser_with(language), rules_with(language)
    for length in range(1, 5):
        for marks in itertools.product('.,"»…\xa0', repeat=length):
            for line in (f'a." {"".join(marks)} b\n', f"a.» x{''.join(marks)}x b\n"):
                assert tokeniser(line) == rules(line)


def test_known_pieces_stay_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text whose words never recur does not fill the memory, and its words are still right."""
    monkeypatch.setattr(moses, "_MOST_PIECES", 50)
    monkeypatch.setattr(moses, "_MOST_SHAPES", 5)
    tokeniser = Tokeniser("en")
    for number in range(300):
        assert tokeniser(f"wort{number}, {'-' * (number % 9)}x{number}.\n").startswith(f"wort{number} , ")
    assert len(tokeniser._pieces) <= 50 and len(tokeniser._pieces._shapes) <= 5
    tokeniser("y" * 10_000 + ",\n")
    assert max(map(len, tokeniser._pieces)) <= moses._LONGEST
