"""The trace of learning: each step of Algorithm 1, in a form that other programs read."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pytest
from learning import learn_with
from segmenting import hard_text

from mt_scaffold import UsageError
from mt_scaffold.analysis.reference import learn_merges
from mt_scaffold.cli import main
from mt_scaffold.methods.trace import Step, format_step


def trace_of(text: str, symbols: int, algorithm: str = "scaffold", min_frequency: int = 2) -> list[dict[str, str]]:
    """Return the lines of a trace, each as column → field."""
    trace = io.BytesIO()
    learn_with(lines=[text], num_symbols=symbols, algorithm=algorithm, min_frequency=min_frequency, trace=trace)
    heading, *lines = trace.getvalue().decode("utf-8").split("\n")
    assert lines.pop() == ""
    return [dict(zip(heading.split("\t"), line.split("\t"), strict=True)) for line in lines]


def test_a_trace_worked_by_hand() -> None:
    """Merges with their frequency, the tokens they make scaffold, and their return, in the columns of the heading.

    Once abcd (6 times) is merged, ab occurs 4 times and cd</w> never, less often than the next pair, p q</w> (5). When
    that is merged, ab with its 4 is more frequent than ab y</w> (2), and returns. The last merge uses it up, but
    nothing is left that could replace it: the head is 0.
    """
    text = "abcd " * 6 + "abx abx aby aby " + "pq " * 5
    trace = io.BytesIO()
    learned = learn_with(lines=[text], num_symbols=5, trace=trace)
    assert trace.getvalue().decode("utf-8").split("\n") == [
        "step\tleft\tright\tfrequency\thead\tmarked\tmarked_frequency\treturned\treturned_frequency",
        "1\ta\tb\t10\t6\t\t\t\t",
        "2\tc\td</w>\t6\t6\t\t\t\t",
        "3\tab\tcd</w>\t6\t5\tab cd</w>\t4 0\t\t",
        "4\tp\tq</w>\t5\t4\t\t\t\t",
        "5\t\t\t\t\t\t\tab\t4",
        "6\tab\ty</w>\t2\t2\t\t\t\t",
        "7\tab\tx</w>\t2\t0\t\t\t\t",
        "",
    ]
    assert (learned.merges, learned.scaffold, learned.restored) == (6, 1, 1)


def unescape(token: str) -> str:
    """Return a token of a trace unescaped."""
    return re.sub(r"\\.", lambda match: {"\\\\": "\\", "\\t": "\t", "\\r": "\r"}[match[0]], token)


def test_what_would_break_a_line_is_escaped() -> None:
    """A tab or a CR can be part of a word; a backslash must then be distinguishable from an escape."""
    step = Step("\ta\\", "\rt</w>", 3, 2, (("\ta\\", 1),), None)
    assert format_step(1, step) == "1\t\\ta\\\\\t\\rt</w>\t3\t2\t\\ta\\\\\t1\t\t\n"
    assert unescape(r"\ta\\") == "\ta\\"
    (line,) = trace_of("\ta \ta", 1)
    assert (line["left"], line["right"]) == (r"\t", "a</w>")


def test_a_token_that_another_pair_makes_again_has_returned() -> None:
    """That merge makes it normal again, and the line shows both: here aa</w>, first made inside a word."""
    counts = {"aa": 2, "aa</w>a": 6, "a</w>aaa": 7}
    text = " ".join(word for word, count in counts.items() for _ in range(count))
    *_, last = trace_of(text, 20, min_frequency=1)
    assert (last["left"], last["right"], last["frequency"]) == ("a", "a</w>", "2")
    assert (last["returned"], last["returned_frequency"]) == ("aa</w>", "2")
    assert learn_merges(counts, 20, 1).steps[-1] == Step("a", "a</w>", 2, 0, (), ("aa</w>", 2))


def test_learning_is_the_same_with_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command also writes the trace, compressed if its name ends in .gz; ``--verbose`` still works."""
    text = tmp_path / "text"
    text.write_text(hard_text(6, 1000), encoding="utf-8")
    arguments = ["learn-bpe", "--symbols", "40", "--input", str(text), "--output"]
    assert main([*arguments, str(tmp_path / "without"), "--verbose"]) == 0
    printed = capsys.readouterr().err
    assert main([*arguments, str(tmp_path / "with"), "--verbose", "--trace", str(tmp_path / "trace.gz")]) == 0
    assert capsys.readouterr().err == printed
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()
    lines = gzip.decompress((tmp_path / "trace.gz").read_bytes()).split(b"\n")[1:-1]
    merges = [line.split(b"\t")[1:4] for line in lines if line.split(b"\t")[1]]
    assert len(merges) == (tmp_path / "with").read_bytes().count(b"\n") - 1
    assert printed.encode().count(b"(frequency ") == len(merges)


def test_codes_and_trace_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in one file nor on standard output; the text is not overwritten."""
    text = tmp_path / "text"
    text.write_text("ab ab\n")
    stream = io.BytesIO()
    with pytest.raises(UsageError, match="give each its own file"):
        learn_with(text, stream, trace=stream)
    for wrong in (["--output", str(tmp_path / "x"), "--trace", str(tmp_path / "x")], ["--trace", str(text)]):
        assert main(["learn-bpe", "--input", str(text), *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["learn-bpe", "--input", str(text), "--trace", "-"]) == 2
    assert "give each its own file" in capsys.readouterr().err
    assert text.read_text() == "ab ab\n" and [path.name for path in tmp_path.iterdir()] == ["text"]
