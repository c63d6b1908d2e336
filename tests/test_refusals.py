"""Wrong files and wrong calls of the segmenting commands: one line that says what is wrong, a status, and no output."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from mt_scaffold import UsageError
from mt_scaffold.cli import main
from mt_scaffold.methods.trimming import trim

CODES = b"#version: 0.2\na b\nab c</w>\n"
GPT2 = b"#version: 0.3 bytes gpt2\na b\n"
PICKY = b"#version: 0.4 picky\na b\n"
TEXT = b"abc ab\nabc\n"
GIVEN = {
    "codes": CODES,
    "gpt2.codes": GPT2,
    "picky.codes": PICKY,
    "text": TEXT,
    "other": TEXT,
    "t.jsonl": b"{}\n",
    "lo": b"ab\nxy</w>\n",
    "ab": b"ab\n",
}


class Refused(NamedTuple):
    """A command line, a part of its line on stderr, its status, and the content of the file ``bad``."""

    command: str
    says: str
    status: int = 2
    bad: bytes = b""

    def __str__(self) -> str:
        return f"{self.command} {self.bad[:40]!r}" if self.bad else self.command


def files(command: str, refused: dict[str | bytes, str]) -> list[Refused]:
    """Return the rows of a command for content → message."""
    return [
        Refused(command, f"bad: {says}", 1, content.encode() if isinstance(content, str) else content)
        for content, says in refused.items()
    ]


MERGE = "expected 'LEFT RIGHT'"
VERSION = "unsupported version of the codes file; learn the codes again"
TOO_LARGE = "99999999999999999999"
HEADER = "#version: 0.3 bytes"
MALFORMED_CODES: dict[str | bytes, str] = {
    b"": "the codes file is empty",
    b"a b\n": "line 1: ",
    b"#version: 0.2\na b\na\n": "line 3: ",
    b"#version: 0.2\na b\n\nb c\n": "line 3: ",
    b"#version: 0.2\na b c d\n": "line 2: ",
    b"#version: 0.2\na  b\n": "line 2: ",
    b"#version: 0.2\n a b\n": "line 2: ",
    b"#version: 0.2\na b scafold\n": "line 2: ",
    b"#version: 0.2\na b Scaffold\n": "line 2: ",
    b"#version: 0.2\na b\nab \xff\n": "line 3: ",
    b"#version: 0.2\na b\nb c\nab c scaffold\na bc\n": "line 5: ",
    "#version: 0.1": f"line 1: {VERSION}",
    "#version: 0.2 bytes": f"line 1: {VERSION}",
    "#version: 0.3": f"line 1: {VERSION}",
    "#version: 0.3 byte gpt2": f"line 1: {VERSION}",
    "#version: 0.4 bytes gpt2": "line 1: '#version: 0.4 bytes gpt2' is newer than this mt-scaffold",
    "#version: 1.0": "line 1: '#version: 1.0' is newer",
    "#version: 0.4\na b\n": "line 1: '#version: 0.4' is newer",
    "#version: 0.4 choosy\na b\n": "line 1: '#version: 0.4 choosy' is newer",
    "#version: 0.4 picky bits\na b\n": "line 1: 'bits' is not a kind of PickyBPE codes that this mt-scaffold knows",
    "#version: 0.4 pickyy\na b\n": "line 1: '#version: 0.4 pickyy' is newer",
    "#version: 0.5 picky\na b\n": "line 1: '#version: 0.5 picky' is newer",
    HEADER: "line 1: a pre-tokeniser is missing",
    f"{HEADER} split-digits": "line 1: a pre-tokeniser is missing",
    f"{HEADER} spaces": "line 1: 'spaces' is not a pre-tokeniser",
    f"{HEADER} gpt5": "line 1: 'gpt5' is not a pre-tokeniser that this mt-scaffold knows",
    f"{HEADER} gpt2 lower-case": "line 1: 'lower-case' is not an option",
    f"{HEADER} gpt2 split-digits split-digits": "line 1: 'split-digits' is not an option",
    f"{HEADER} gpt2 cl100k": "line 1: 'cl100k' is not an option",
    f"{HEADER} pattern=": "line 1: expected a regular expression after 'pattern='",
    f"{HEADER} pattern=gpt2": "line 1: expected a regular expression",
    b"#version: 0.3 bytes pattern=\xff+\n": "line 1: the pattern is not UTF-8",
    f"{HEADER} gpt2\na b\nĠ 日": "line 3: '日' is not in GPT-2's notation of bytes",
    f"{HEADER} gpt2\na b c": "line 2: the third field must be 'scaffold', not 'c'",
    f"{HEADER} gpt2\na b scaffold\na b": "line 3: 'ab' is not scaffold here but on line 2",
    f"{HEADER} gpt2\na \x85": r"line 2: '\x85' is not in GPT-2's notation of bytes",
    b"#version: 0.3 bytes gpt2\na \xff\n": "line 2: byte 3 of the line is not UTF-8",
    "#version: 0.2 byte\na b\n<</w>": f"line 3: {MERGE}",
    b"#version: 0.2 byte\na b \xff\n": "line 2: the third field must be 'scaffold', not 'ÿ'",
    b"#version: 0.2 byte\n\xff \xff scaffold\n\xff \xff\n": "line 3: 'ÿÿ' is not scaffold here",
    # A Windows line end: printed unescaped, its CR would hide what precedes it. A NUL would hide what follows.
    "#version: 0.2\na b scaffold\r\n": "line 2: the third field must be 'scaffold', not 'scaffold\\r'\n",
    "#version: 0.2\na b \0\n": "line 2: the third field must be 'scaffold', not '\\x00'\n",
    # So would characters that Python or terminals treat as line ends or control characters.
    "#version: 0.2\na b \x85c\u2028\u2029\x9b\xa0\u202a": (
        "line 2: the third field must be 'scaffold', not '\\x85c\\u2028\\u2029\\x9B\xa0\u202a'\n"
    ),
}
SPLIT = "expected 'LEFT RIGHT' or 'split TOKEN PIECE PIECE ...'"
MALFORMED_PICKY: dict[bytes, str] = {
    b"a b\nsplit ab a c": "line 3: the pieces do not make 'ab'",
    b"a b\nsplit ab a": f"line 3: {SPLIT}",
    b"a b scaffold": f"line 2: {SPLIT}",
    b"split ab a b": "line 2: 'ab' is split, but is not in the vocabulary here",
    b"a b\nsplit ab a b\nsplit ab a b": "line 4: 'ab' is split, but is not in the vocabulary here",
    b"a b\nab c\nsplit ab a b\nsplit abc ab c": "line 5: 'ab' is neither a base symbol nor a token that can",
    b"a b\nsplit a a a": "line 3: a base symbol cannot be split",
    b"a b</w>\nsplit ab</w> a b": "line 3: 'b' is neither a base symbol nor a token that can appear",
    b"< /w>": "line 2: a merge that ends a word in its middle, or spells out '</w>'",
    b"a</w> b": "line 2: a merge that ends a word in its middle, or spells out '</w>'",
    b"a  b c": "line 2: expected 'LEFT RIGHT' or",
    b"a b\nsplit ab a \xff": "line 3: byte 12 of the line is not UTF-8",
}
COUNTS = "the counts of the words are too high"
MALFORMED_COUNTS: dict[str | bytes, str] = {
    "a 1\n#end 1 1\n": "line 1: not a count file; expected '#counts:'",
    "": "line 1: not a count file",
    "#counts: 0.9 runes\n#end 0 0\n": "line 1: counted in a way that this mt-scaffold does not know; update it",
    "#counts: 0.2\na 1\n": "line 3: the file ends without its last line",
    "#counts: 0.2\na 1\nb": "line 3: the line has no line end; is the file complete?",
    "#counts: 0.2\nb 1\na 1\n#end 2 2\n": "line 3: the words are not in order of their bytes",
    "#counts: 0.2\na 1\na 1\n#end 2 2\n": "line 3: the words are not in order of their bytes",
    "#counts: 0.2\na 1\n#end 2 2\n": "line 3: the file has 1 words with 1 occurrences, not the 2 with 2",
    "#counts: 0.2\na 0\n#end 1 0\n": "line 2: a count of 0",
    "#counts: 0.2\na -1\n#end 1 0\n": "line 2: expected a word, one space and its count",
    "#counts: 0.2\na b 1\n#end 1 0\n": "line 2: expected a word, one space and its count",
    "#counts: 0.2\na 1\n#end 1 1\n#counts: 0.2\n": "line 4: text after the last line",
    "#counts: 0.3 bytes gpt2\n\u4e2d 1\n#end 1 1\n": "line 2: the word is not in GPT-2's notation of bytes",
    "#counts: 0.2\na 18446744073709551615\nb 1\n#end 2 0\n": "line 3: the counts sum to 2^64 or more",
}
NO_VOCABULARY = [b"a", b"a b", b"a 1 2", b" 1", b"", b"a 1.5", b"\xff 3", b"a  5", b"a 1_0", b"a +3", b"a -1"]
NO_COUNTS = [b"a", b"a b", b"a 1 2", b"", b"a x", b"a -1", b"a 1.5", b"a 99999999999999999999"]
TRIM = "trim codes -o out"
REFUSED = [
    *files("apply-bpe -c bad -i text -o out", MALFORMED_CODES),
    *files("apply-bpe -c bad -i text -o out", {PICKY[:20] + line + b"\n": at for line, at in MALFORMED_PICKY.items()}),
    *files("count-words --merge bad -o out", MALFORMED_COUNTS),
    *files("learn-bpe --counts bad -o out", MALFORMED_COUNTS),
    *files(
        "apply-bpe -c codes -i text -o out --vocabulary bad",
        {b"ok@@ 3\n" + line + b"\nok 2\n": "line 2" for line in NO_VOCABULARY},
    ),
    *files("learn-bpe --dict-input -i bad -o out", {b"ok 3\n" + line + b"\nok 2\n": "line 2" for line in NO_COUNTS}),
    *files("learn-bpe --dict-input -i bad -o out", {f"ab {2**64}\n": "line 1: the count is over 18446744073709551615"}),
    *(
        Refused("learn-bpe --dict-input -i bad -o out", COUNTS, 1, b"ab %d\nabc 3\n" % count)
        for count in (2**62, 2**63, 2**64 - 1)
    ),
    *(
        Refused("learn-bpe --dict-input -i bad -o out", "the counts of the word 'ab' are too high", 1, lines.encode())
        for lines in (f"ab {2**63}\nab {2**63}\n", f"ab {2**64 - 1}\ncd 1\nab 3\n")
    ),
    Refused("learn-bpe -i bad -o out", "there are no words", 1, b"\n  \r\n"),
    # Files that are no text, or not one of lines.
    *(
        Refused(command, f"bad: {says}", 1, content)
        for content, says in ((b"\xfd7zXZ\0", "compressed by xz; decompress it with"), (b"PK\3\4", "compressed by zip"))
        for command in (
            "apply-bpe -c codes -i bad -o out",
            "encode --codes gpt2.codes -i bad -o out.bin",
            "learn-bpe --format jsonl -i bad -o out",
            "tokenise --language en -i bad -o out",
            "clean -s bad -t text --output-source out --output-target new",
            "score --reference text --hypothesis bad -o out",
        )
    ),
    *(
        Refused(f"{command} t.jsonl -o out", "t.jsonl: plain text is read here, and the name says JSON Lines")
        for command in ("apply-bpe -c codes -i", "get-vocab -i", "join -i", "tokenise --language en -i")
    ),
    Refused("score --hypothesis bad --reference bad -o out", "bad: holds markup", 1, b"<refset >\n<seg>a\n"),
    # Values out of range.
    Refused(f"learn-bpe -i text -o out -s {TOO_LARGE}", TOO_LARGE),
    Refused(f"learn-bpe -i text -o out --min-frequency {TOO_LARGE}", TOO_LARGE),
    Refused(f"apply-bpe -i text -o out -c codes -m {TOO_LARGE}", TOO_LARGE),
    Refused("apply-bpe -i text -o out -c codes -s \udcff", "separator"),
    Refused("apply-bpe -i text -o out -c codes --num-workers 99999999999", "99999999999"),
    Refused("get-vocab -i text -o out --num-workers 5000", "5000"),
    Refused("apply-bpe -i text -o out -c codes --dropout 0.1 --seed 18446744073709551616", "seed"),
    Refused("apply-bpe -i text -o out -c codes --dropout 0.1 --seed 1 --epoch 18446744073709551616", "epoch"),
    Refused("apply-bpe -i text -o out -c codes --epoch -1", "epoch"),
    Refused("apply-bpe -i text -o out -c codes --dropout 0.1 --epoch 2", "seed"),
    Refused("learn-bpe -i text -o out -s 0", "must be positive"),
    Refused("learn-bpe -i text -o out -s -3", "must be positive"),
    Refused("learn-bpe -i text -o out -s ten", "'ten'"),
    Refused("learn-bpe -i text -o out --min-frequency 0", "frequency"),
    Refused("learn-bpe -i text -o out --algorithm unigram", "unigram"),
    Refused("learn-bpe -i text -o out --num-workers 0", "0"),
    Refused("apply-bpe -i text -o out", "codes"),
    *(
        Refused(f"apply-bpe -i text -o out -c codes --dropout {dropout}", "dropout")
        for dropout in ("1.01", "-0.1", "nan", "x")
    ),
    Refused("apply-bpe -i text -o out -c codes --merges -2", "number of merges must be 0 or more, or -1 for all"),
    Refused("apply-bpe -i text -o out -c codes --num-workers -7", "-7"),
    Refused("apply-bpe -i text -o out -c codes --glossaries (", "("),
    Refused("apply-bpe -i text -o out -c codes --glossaries (a)", "(a)"),
    Refused("apply-bpe -i text -o out -c codes --no-such-option", "--no-such-option"),
    Refused("learn-joint-bpe-and-vocab -i text -o out --write-vocabulary v w", "one vocabulary file per input"),
    Refused("no-such-command", "no-such-command"),
    Refused("", "COMMAND"),
    # A slip must not cost a corpus.
    Refused("learn-bpe -i text -o text", "already"),
    Refused("learn-bpe -i codes text -o ./text", "already"),
    Refused("apply-bpe -c codes -i text -o text", "already"),
    Refused("apply-bpe -c codes -i text -o codes", "already"),
    Refused("get-vocab -i text -o text", "already"),
    Refused("learn-joint-bpe-and-vocab -i text codes -o new --write-vocabulary v v", "already"),
    Refused("learn-joint-bpe-and-vocab -i text -o new --write-vocabulary new", "already"),
    Refused("learn-joint-bpe-and-vocab -i text codes -o new --write-vocabulary text codes", "already"),
    Refused("clean -s text -t text --output-source text --output-target other", "already"),
    # Options of trim.
    Refused(TRIM, "no rule for what to mark; give --below, --ratio or --tokens"),
    Refused(f"{TRIM} --below 0 -i text", "tokens are marked below a frequency of 1 or more, or below a share of the"),
    Refused(f"{TRIM} --ratio 0 -i text", "the ratio must be above 0 and at most 1, not 0.0"),
    Refused(f"{TRIM} --ratio nan -i text", "the ratio must be above 0 and at most 1, not nan"),
    Refused(f"{TRIM} --tokens lo", "lo: line 2: no merge of codes makes 'xy</w>'; write", 1),
    Refused(f"{TRIM} --tokens lo -i text", "a list of tokens needs no text; omit the text"),
    Refused(f"{TRIM} --tokens lo --format lines", "a list of tokens needs no text; omit the text"),
    Refused(
        f"{TRIM} --below 2 --min-frequency 3 -i text", "--min-frequency is that of the merges that --refill learns"
    ),
    Refused(f"{TRIM} --below 2 --refill 0 -i text", "the number of symbols must be positive"),
    Refused(f"{TRIM} --below 2 --refill many -i text", "argument --refill: give a number, or 'same', not 'many'"),
    Refused(f"{TRIM} --below 2 -i text --counts text", "--counts takes the place of --input"),
    Refused(f"{TRIM} --below 2 -i bad", "there are no words", 1),
    Refused("trim codes --below 2 -i text -o codes", "already"),
    Refused("trim codes --tokens ab -o ab", "already"),
    Refused(
        "trim picky.codes --below 2 -i text -o out",
        "picky.codes: codes of PickyBPE, which removes tokens as it learns; mark codes of BPE",
    ),
    # Of compare-vocab.
    *(
        Refused(f"compare-vocab {arguments}", "mt-scaffold")
        for arguments in (
            "",
            "bpe",
            "bpe scaffold --sizes 5",
            "bpe --sizes 5 --input text",
            "--sizes 5 --top 3",
            "--sizes 0",
            "--sizes",
            "--sizes 5.5",
            "bpe scaffold text",
        )
    ),
    Refused("compare-vocab bad bad --input text", "bad: line 3", 1, b"#version: 0.2\na b\na b c d\n"),
    # Of words and their counts.
    Refused(
        "learn-bpe -i text -o out --pretokenise gpt3", "no pre-tokeniser is called 'gpt3'; give one of spaces, gpt2"
    ),
    Refused("learn-bpe -i text -o out --split-digits", "digits are split by a pre-tokeniser; give one of gpt2"),
    *(
        Refused(f"count-words -i text -o out --max-memory {size}", "an amount of memory")
        for size in ("G", "0", "lots", "1X", "nan", "infG")
    ),
    Refused("learn-bpe -i text -o out --prune 0", "words are pruned below a count of 1 or more"),
    Refused("learn-bpe -i text -o out --prune 0 --max-memory 64M", "words are pruned below a count of 1 or more"),
    Refused("learn-bpe -i text -o out --algorithm bpe --threshold 0.9", "--threshold: bpe has no such setting"),
    Refused("learn-bpe -i text -o out --algorithm picky --threshold 0", "above 0 and at most 1"),
]


@pytest.mark.parametrize("refused", REFUSED, ids=str)
def test_refused(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The line names the file, its line or the option; nothing is on stdout, and no file is changed or left behind."""
    monkeypatch.chdir(tmp_path)
    given = {**GIVEN, "bad": refused.bad}
    for name, content in given.items():
        Path(name).write_bytes(content)
    try:
        status = main(refused.command.split())
    except SystemExit as stop:  # a wrong option
        status = int(stop.code or 0)
    output, error = capfd.readouterr()
    assert (status, output) == (refused.status, "")
    assert error.startswith("mt-scaffold") and refused.says in error and error.count("\n") == 1, error
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == given


def test_symbols_to_subtract_are_printed_before_the_refusal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """So that a user sees how many there are."""
    (tmp_path / "text").write_bytes(TEXT)
    assert main(["learn-bpe", "-i", str(tmp_path / "text"), "-t", "-s", "3"]) == 2
    assert "word-internal characters: 2\n" in capfd.readouterr().err


def test_codes_of_pickybpe_are_not_marked_in_python_either() -> None:
    with pytest.raises(UsageError, match="codes of PickyBPE"):
        trim(PICKY, tokens=["ab"])
