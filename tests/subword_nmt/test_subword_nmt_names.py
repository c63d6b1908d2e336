"""``mt_scaffold.subword_nmt`` in place of subword-nmt: its names and signatures, and the results of its functions.

They are compared with those of version 0.3.8, the newest that can be installed.
"""

from __future__ import annotations

import codecs
import copy
import importlib
import inspect
import io
import operator
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from segmenting import ALPHABET, UNICODE_SPACES, hard_text, lines_at_lf
from subword_nmt import apply_bpe as their_apply
from subword_nmt import get_vocab as their_vocab
from subword_nmt import learn_bpe as their_learn
from subword_nmt import learn_joint_bpe_and_vocab as their_joint

import mt_scaffold
from mt_scaffold import MTScaffoldError, UsageError
from mt_scaffold.subword_nmt import apply_bpe, get_vocab, learn_bpe, learn_joint_bpe_and_vocab

# Words to learn from: subword-nmt cuts merged symbols at Unicode spaces (test_equals_subword_nmt.py shows it).
LEARNABLE = [letter for letter in ALPHABET if letter not in UNICODE_SPACES]
TEXT = hard_text(71, 2500, LEARNABLE) + "\n"
CODES = mt_scaffold.learn_bpe(lines=lines_at_lf(TEXT), num_symbols=200, algorithm="bpe").text.decode("utf-8")
SCAFFOLD = mt_scaffold.learn_bpe(lines=lines_at_lf(TEXT), num_symbols=200).text.decode("utf-8")
LINES = lines_at_lf(hard_text(72, 1200))
NAMES = {
    "learn_bpe": ["learn_bpe", "get_vocabulary"],
    "apply_bpe": [
        "BPE",
        "BPE.process_lines",
        "BPE.process_line",
        "BPE.segment",
        "BPE.segment_tokens",
        "BPE._isolate_glossaries",
        "read_vocabulary",
        "isolate_glossary",
        "cpu_count",
    ],
    "get_vocab": ["get_vocab"],
    "learn_joint_bpe_and_vocab": ["learn_joint_bpe_and_vocab"],
    "subword_nmt": ["learn_bpe", "BPE", "read_vocabulary", "get_vocab", "learn_joint_bpe_and_vocab", "main"],
}
PARSERS = ("learn_bpe", "apply_bpe", "get_vocab", "learn_joint_bpe_and_vocab")


def theirs(codes: str = CODES, *arguments: Any, **options: Any) -> Any:
    return their_apply.BPE(io.StringIO(codes, newline="\n"), *arguments, **options)


def ours(codes: str = CODES, *arguments: Any, **options: Any) -> apply_bpe.BPE:
    return apply_bpe.BPE(io.StringIO(codes, newline="\n"), *arguments, **options)


@pytest.mark.parametrize("module", NAMES)
def test_names_and_signatures(module: str) -> None:
    """Every parameter has its name, place and default."""
    both = [importlib.import_module(f"{package}.{module}") for package in ("subword_nmt", "mt_scaffold.subword_nmt")]
    for name in NAMES[module]:
        their, our = (
            [
                str(each.replace(annotation=inspect.Parameter.empty))
                for each in inspect.signature(operator.attrgetter(name)(one)).parameters.values()
            ]
            for one in both
        )
        # Their main has no parameters; ours takes the command of a module.
        assert our == (["*command"] if name == "main" else their)


# ---- segmenting


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merges": 40},
        {"separator": "￭"},
        {"vocab": set(theirs().segment(" ".join(TEXT.split()[:400])).split())},
        {"glossaries": ["ab", "[de]+", "日"]},
    ],
    ids=["plain", "merges", "separator", "vocab", "glossaries"],
)
@pytest.mark.parametrize("dropout", [0, 0.2, 1])
def test_segmenting(options: dict[str, Any], dropout: float) -> None:
    """Every method gives what subword-nmt's does; dropout draws the same numbers from ``random``, one by one."""
    results = []
    # Their cache would keep the results of dropout, so there is a new object for each line.
    for make in (theirs, ours):
        random.seed(5)
        result = [make(**options).process_line(line, dropout) for line in LINES[:30]]
        bpe = make(**options)
        result += [bpe.process_line(line, dropout) for line in LINES]
        result += [bpe.segment(line, dropout) for line in LINES]
        result += [piece for line in LINES for piece in bpe.segment_tokens(line.strip("\r\n ").split(" "), dropout)]
        results.append([*result, str(random.random())])
    assert results[0] == results[1]


def test_a_vocabulary_that_is_set_later() -> None:
    """JoeyNMT does so once it has the vocabulary; words that were segmented before are segmented again."""
    vocabulary = set(theirs().segment(" ".join(TEXT.split()[:300])).split())
    bpe, filtered = ours(), theirs(vocab=vocabulary)
    before = [bpe.process_line(line) for line in LINES]
    bpe.vocab = vocabulary
    assert [bpe.process_line(line) for line in LINES] == [filtered.process_line(line) for line in LINES] != before
    bpe.vocab = None
    assert [bpe.process_line(line) for line in LINES] == before
    bpe.separator, bpe.glossaries = "~", ["ab"]
    assert [bpe.process_line(line) for line in LINES] == [
        ours(separator="~", glossaries=["ab"]).process_line(line) for line in LINES
    ]
    assert bpe.glossaries_regex is not None and bpe.glossaries_regex.match("ab")


def test_scaffold_codes() -> None:
    """They are applied as everywhere in this package; with dropout, the seed of ``random`` decides."""
    bpe, plain = ours(SCAFFOLD), mt_scaffold.BPE(SCAFFOLD.encode("utf-8"))
    assert [bpe.process_line(line) for line in LINES] == [plain.process_line(line) for line in LINES]
    results = []
    for seed in (1, 1, 2):
        random.seed(seed)
        results.append([bpe.process_line(line, 0.3) for line in LINES])
    assert results[0] == results[1] != results[2]
    forms = set(plain.surface_forms())
    pieces = {piece for line in lines_at_lf(TEXT) for piece in bpe.segment(line, 0.3).split(" ") if piece}
    assert pieces <= forms


def test_dropout_is_not_remembered() -> None:
    """Unlike in subword-nmt, a word segmented with dropout is segmented without it afterwards."""
    bpe = ours()
    before = [bpe.process_line(line) for line in LINES]
    assert [bpe.process_line(line, 0.9) for line in LINES] != before
    assert [bpe.process_line(line) for line in LINES] == before


def test_codes_of_every_kind(tmp_path: Path) -> None:
    """Open for text or bytes, partly read, from codecs, or in memory, they are read from their beginning."""
    path = tmp_path / "codes"
    path.write_text(CODES, encoding="utf-8", newline="\n")
    expected = [theirs().process_line(line) for line in LINES]
    with (
        codecs.open(str(path), encoding="utf-8") as by_codecs,
        open(path, encoding="utf-8") as text,
        open(path, "rb") as binary,
    ):
        text.readline()
        for opened in (by_codecs, text, binary, io.BytesIO(CODES.encode("utf-8"))):
            bpe = apply_bpe.BPE(opened)
            assert [bpe.process_line(line) for line in LINES] == expected
    with codecs.open(str(tmp_path / "bad"), "w", encoding="utf-8") as bad:
        bad.write("#version: 0.2\na b\nc\n")
    with codecs.open(bad.name, encoding="utf-8") as opened, pytest.raises(MTScaffoldError, match="bad: line 3"):
        apply_bpe.BPE(opened)


def test_encode_and_what_it_calls() -> None:
    """The functions that scripts call with an object's tables, or with tables of their own."""
    vocabulary = set(theirs().segment(" ".join(TEXT.split()[:200])).split())
    bpe, their = ours(vocab=vocabulary), theirs(vocab=vocabulary)
    assert (bpe.bpe_codes, bpe.bpe_codes_reverse) == (their.bpe_codes, their.bpe_codes_reverse)
    assert bpe.version == their.version == (0, 2)
    words = {word for line in LINES for word in line.strip("\r\n ").split(" ") if word and "</w>" not in word}
    for word in words:
        cache: dict[str, Any] = {}
        arguments = (their.bpe_codes, their.bpe_codes_reverse, vocabulary, "@@", (0, 2))
        assert list(apply_bpe.encode(word, *arguments, cache)) == list(their_apply.encode(word, *arguments, {}))
        assert cache.keys() == ({word} if len(word) > 1 else set())
    assert apply_bpe.encode("known", {}, {}, None, "@@", (0, 2), {"known": ("kn", "own")}) == ("kn", "own")


def test_a_program_may_replace_encode() -> None:
    """If one patches the function, as subword-nmt's own tests do, every word goes through the patch."""

    def halves(word: str, *_: object) -> list[str]:
        return [word[: len(word) // 2], word[len(word) // 2 :]]

    bpe = ours(glossaries=["USA"])
    with mock.patch.object(apply_bpe, "encode", side_effect=halves) as replaced:
        assert bpe.segment("abcd efUSA") == "ab@@ cd e@@ f@@ U@@ SA"
    assert replaced.call_args.args[1:3] == (bpe.bpe_codes, bpe.bpe_codes_reverse) and len(replaced.call_args.args) == 10


def test_codes_may_be_a_mock() -> None:
    """subword-nmt's own tests of glossaries give no real codes."""
    codes = mock.MagicMock()
    codes.readline.return_value = "anything"
    bpe = apply_bpe.BPE(codes, glossaries=["like", r"\d+"])
    assert bpe._isolate_glossaries("Ilike2go") == ["I", "like", "2", "go"]


@pytest.mark.parametrize("word", ["", "like", "likeword", "wordlike", "wordlikeword", "likelike", "alike like\r\n "])
@pytest.mark.parametrize("glossary", ["like", "l.k", "(?:li)ke", "e", "$", "ke|wo"])
def test_isolating_a_glossary_entry(word: str, glossary: str) -> None:
    """Inside a word, at its ends, several times, as a regular expression, and not at all."""
    assert apply_bpe.isolate_glossary(word, glossary) == their_apply.isolate_glossary(word, glossary)


def test_copies() -> None:
    """Objects are pickled to worker processes and copied."""
    bpe = ours(SCAFFOLD, vocab={"a", "b@@"}, glossaries=["ab"])
    for copied in (pickle.loads(pickle.dumps(bpe)), copy.deepcopy(bpe)):
        assert [copied.process_line(line) for line in LINES] == [bpe.process_line(line) for line in LINES]


def test_a_subclass_may_replace_a_method() -> None:
    """Segmenting a line goes through its ``segment_tokens``."""

    class Upper(apply_bpe.BPE):
        def segment_tokens(self, tokens: Any, dropout: float = 0) -> list[str]:
            return [token.upper() for token in super().segment_tokens(tokens, dropout)]

    bpe = Upper(io.StringIO(SCAFFOLD))
    assert bpe.process_line(" abc de\n") == ours(SCAFFOLD).process_line(" abc de\n").upper()


# ---- files


def opened_in_every_way(path: Path) -> list[Callable[[], Any]]:
    """How programs open a text."""
    return [
        lambda: codecs.open(str(path), encoding="utf-8"),
        lambda: open(path, encoding="utf-8", newline="\n"),
        lambda: codecs.getreader("utf-8")(open(path, "rb")),
        lambda: open(path, "rb"),
        lambda: io.StringIO(path.read_text(encoding="utf-8")),
        lambda: lines_at_lf(path.read_text(encoding="utf-8")),
        lambda: iter(lines_at_lf(path.read_text(encoding="utf-8"))),
    ]


def test_learning_and_counting(tmp_path: Path) -> None:
    """From lines and from files opened in every way, into files opened in every way."""
    text = tmp_path / "text"
    text.write_bytes(TEXT.encode("utf-8"))
    expected, vocabulary = io.StringIO(), io.StringIO()
    their_learn.learn_bpe(lines_at_lf(TEXT), expected, 100)
    their_vocab.get_vocab(lines_at_lf(TEXT), vocabulary)
    counts = their_learn.get_vocabulary(lines_at_lf(TEXT))
    out = tmp_path / "out"
    writers: list[Callable[[], Any]] = [
        lambda: codecs.open(str(out), "w", encoding="utf-8"),  # noqa: SIM115
        lambda: open(out, "w", encoding="utf-8"),  # noqa: SIM115
        lambda: codecs.getwriter("utf-8")(open(out, "wb")),  # noqa: SIM115
        lambda: tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=tmp_path),  # noqa: SIM115
    ]
    for number, read in enumerate(opened_in_every_way(text)):
        with writers[number % 4]() as stream:
            learn_bpe.learn_bpe(read(), stream, 100)
            stream.flush()
            assert Path(getattr(stream, "name", out)).read_text(encoding="utf-8") == expected.getvalue()
        with writers[number % 4]() as stream:
            get_vocab.get_vocab(read(), stream)
            stream.flush()
            assert Path(getattr(stream, "name", out)).read_text(encoding="utf-8") == vocabulary.getvalue()
        assert learn_bpe.get_vocabulary(read(), num_workers=2) == counts
    from_counts = io.StringIO()
    learn_bpe.learn_bpe([f"{word} {count}" for word, count in counts.items()], from_counts, 100, is_dict=True)
    assert from_counts.getvalue() == expected.getvalue()


def test_processing_lines(tmp_path: Path) -> None:
    """A file by its name, with dropout in one thread or without in several."""
    path = tmp_path / "text"
    path.write_text("".join(line for line in LINES if "\r" not in line), encoding="utf-8", newline="\n")
    for dropout in (0, 0.3):
        results = []
        for bpe in (theirs(), ours()):
            random.seed(2)
            output = io.StringIO()
            bpe.process_lines(str(path), output, dropout, num_workers=1)
            results.append(output.getvalue())
        assert results[0] == results[1] != ""
    parallel = io.StringIO()
    ours().process_lines(str(path), parallel, num_workers=3)
    assert parallel.getvalue() == "".join(map(theirs().process_line, path.open(encoding="utf-8", newline="\n")))


def test_reading_a_vocabulary(tmp_path: Path) -> None:
    """From an open file or from lines, with a threshold or None; a line of another form is named."""
    path = tmp_path / "vocabulary"
    path.write_text("ab@@ 7\nc 3\n\x85d 1\n", encoding="utf-8")
    for threshold, expected in ((None, {"ab@@", "c", "\x85d"}), (3, {"ab@@", "c"}), (8, set())):
        for read in opened_in_every_way(path):
            assert apply_bpe.read_vocabulary(read(), threshold) == expected
    with pytest.raises(MTScaffoldError, match="line 2: expected a subword"):
        apply_bpe.read_vocabulary(["ab 7\n", "c\n"], None)


def test_joint_learning(tmp_path: Path) -> None:
    """From parsed options, with subword-nmt's own parser and with ours."""
    for name, seed in (("a", 73), ("b", 74)):
        (tmp_path / name).write_text(hard_text(seed, 900, list("abcdeé日")).replace("\r", "") + "\n", encoding="utf-8")
    results = []
    for run, module in (
        (their_joint, their_joint),
        (learn_joint_bpe_and_vocab, their_joint),
        (learn_joint_bpe_and_vocab,) * 2,
    ):
        out = [tmp_path / name for name in ("codes", "v.a", "v.b")]
        options = ["-i", tmp_path / "a", tmp_path / "b", "-o", out[0], "--write-vocabulary", *out[1:], "-s", 60]
        arguments = module.create_parser().parse_args([*map(str, options), "--separator", "~"])
        run.learn_joint_bpe_and_vocab(arguments)
        results.append([path.read_bytes() for path in out])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("module", PARSERS)
def test_parsers(module: str, tmp_path: Path) -> None:
    """The options have subword-nmt's names, defaults and attributes; files are open for text."""
    path = tmp_path / "file"
    path.write_text("é", encoding="utf-8")
    required = {
        "apply_bpe": ["--codes", str(path)],
        "learn_joint_bpe_and_vocab": [
            "-i",
            str(path),
            "-o",
            str(tmp_path / "c"),
            "--write-vocabulary",
            str(tmp_path / "v"),
        ],
    }.get(module, [])
    their = importlib.import_module(f"subword_nmt.{module}").create_parser().parse_args(required)
    parser = importlib.import_module(f"mt_scaffold.subword_nmt.{module}").create_parser()
    our = parser.parse_args(required)
    plain = {
        name: value
        for name, value in vars(their).items()
        if not hasattr(value, "read") and name not in ("input", "vocab")
    }
    assert plain.items() <= vars(our).items()
    assert vars(our).keys() == vars(their).keys()
    for name, value in vars(their).items():
        if hasattr(value, "read"):
            assert getattr(our, name).name == value.name
    if module == "apply_bpe":
        assert our.codes.read() == "é"
        assert parser.parse_args(["-c", str(path), "--separator", "~"]).separator == "~"


def test_codes_of_another_kind_are_refused() -> None:
    """subword-nmt's names know neither bytes nor pre-tokenisers, and codes without a header are of format 0.1."""
    for codes in (b"#version: 0.2 byte\na b\n", b"#version: 0.3 bytes gpt2\na b\n", b"#version: 0.4 picky byte\n"):
        with pytest.raises(UsageError, match=r"apply these codes with mt_scaffold\.BPE"):
            apply_bpe.BPE(io.BytesIO(codes))
    for old in ("a b\nab </w>\n", "#version: 0.1\na b\n"):
        with pytest.raises(MTScaffoldError, match="learn the codes again"):
            ours(old)


# ---- programs


PROGRAM = """
import multiprocessing, subprocess, sys
import subword_nmt.apply_bpe
from subword_nmt import learn_bpe
from subword_nmt.subword_nmt import main

def where(_):
    import subword_nmt.apply_bpe
    return subword_nmt.apply_bpe.__file__

if __name__ == "__main__":
    print(sys.argv[1:], __file__)
    print(subword_nmt.apply_bpe.__file__)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(where, [0])[0])
    command = [sys.executable, "-m", "subword_nmt.learn_bpe", "-s", "2"]
    print(subprocess.run(command, input=b"abab abab\\n", stdout=subprocess.PIPE).stdout)
"""


def test_a_program_runs_unchanged(tmp_path: Path) -> None:
    """Although subword-nmt is installed, the program, its workers and the commands it starts import ours."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mt_scaffold.as_subword_nmt", str(program), "one", "--two"]
    environment = {**os.environ, "PYTHONPATH": str(Path(mt_scaffold.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    home = str(Path(mt_scaffold.__file__).parent / "subword_nmt" / "apply_bpe.py")
    expected = [f"['one', '--two'] {program}", home, home, r"b'#version: 0.2\nb a\nba b</w>\n'"]
    assert done.stdout.splitlines() == expected


def test_a_program_starts_another_that_way(tmp_path: Path) -> None:
    """A program started by such a program imports ours too: it finds the folder in PYTHONPATH.

    A real subword-nmt in the working directory or next to the program must not come first.
    """
    decoy = "raise SystemExit('the wrong subword_nmt')\n"
    (tmp_path / "programs").mkdir()
    for folder in (tmp_path, tmp_path / "programs"):
        (folder / "subword_nmt.py").write_text(decoy)
    shown = "import subword_nmt.apply_bpe, helper; print(subword_nmt.apply_bpe.__file__)\n"
    (tmp_path / "programs" / "helper.py").write_text("")
    (tmp_path / "programs" / "inner.py").write_text(shown)
    (tmp_path / "programs" / "imports.py").write_text("import mt_scaffold.as_subword_nmt\n" + shown)
    (tmp_path / "outer.py").write_text(
        "import subprocess, sys\n"
        "for start in (['-m', 'mt_scaffold.as_subword_nmt', 'programs/inner.py'], ['programs/imports.py']):\n"
        "    subprocess.run([sys.executable, *start], check=True)\n"
    )
    command = [sys.executable, "-m", "mt_scaffold.as_subword_nmt", "outer.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(mt_scaffold.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(Path(mt_scaffold.__file__).parent / "subword_nmt" / "apply_bpe.py")] * 2


def test_one_import_is_enough(tmp_path: Path) -> None:
    """It must come first; otherwise the error says so."""
    first = "import mt_scaffold.as_subword_nmt, subword_nmt.learn_bpe; print(subword_nmt.learn_bpe.__file__)"
    late = "import subword_nmt, mt_scaffold.as_subword_nmt"
    environment = {**os.environ, "PYTHONPATH": str(Path(mt_scaffold.__file__).parents[1])}
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
        for code in (first, late)
    ]
    assert runs[0].stdout.strip() == str(Path(mt_scaffold.__file__).parent / "subword_nmt" / "learn_bpe.py")
    assert runs[1].returncode == 1 and "subword_nmt is imported already" in runs[1].stderr


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """``subword-nmt``'s entry point learns original BPE, and exits if a command fails."""
    main = importlib.import_module("mt_scaffold.subword_nmt.subword_nmt").main
    monkeypatch.chdir(tmp_path)
    Path("text").write_text(TEXT, encoding="utf-8", newline="\n")
    for command in (
        "learn-bpe -s 200 -i text -o codes",
        "learn-joint-bpe-and-vocab -s 200 -i text -o joint --write-vocabulary vocabulary",
        "apply-bpe -c codes -i text -o subwords",
    ):
        monkeypatch.setattr(sys, "argv", ["subword-nmt", *command.split()])
        assert main() is None
    assert Path("codes").read_text(encoding="utf-8") == Path("joint").read_text(encoding="utf-8") == CODES
    assert Path("subwords").read_bytes().decode("utf-8") == "".join(map(theirs().process_line, lines_at_lf(TEXT)))
    monkeypatch.setattr(sys, "argv", ["apply-bpe", "-c", "missing"])
    with pytest.raises(SystemExit) as stop:
        main("apply-bpe")
    assert stop.value.code == 1 and "missing" in capfd.readouterr().err
