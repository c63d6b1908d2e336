"""The segmenting commands as a user runs them: pipes, files, and one clear line for every error."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import io
import lzma
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from segmenting import hard_text

from mt_scaffold import BPE, get_vocab, learn_bpe
from mt_scaffold.cli import main

TEXT = (hard_text(51, 3000) + "\n").encode("utf-8")
CODES = learn_bpe(io.BytesIO(TEXT), num_symbols=100).text
COMMAND = [sys.executable, "-m", "mt_scaffold"]


def run(*arguments: object, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [*COMMAND, *map(str, arguments)]
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        command, input=stdin, capture_output=True, timeout=120, check=False, **options
    )
    return done


def segmented(text: bytes = TEXT, **options: Any) -> bytes:
    output = io.BytesIO()
    BPE(CODES).process_file(io.BytesIO(text), output, **options)
    return output.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a text and its codes."""
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "codes").write_bytes(CODES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(capfd: pytest.CaptureFixture[str], *arguments: object, status: int = 1) -> str:
    """Run a command that must fail with this status and nothing on stdout; return its one line on stderr."""
    try:
        result = main([str(argument) for argument in arguments])
    except SystemExit as stop:  # a wrong option
        result = int(stop.code or 0)
    output, error = capfd.readouterr()
    assert (result, output) == (status, "")
    assert error.startswith("mt-scaffold") and error.count("\n") == 1, error
    return error


# ---- where text comes from and goes to


def test_pipes_by_default(folder: Path) -> None:
    """The commands of a pipeline, run as processes, read stdin and write stdout."""
    learned = run("learn-bpe", "-s", 100, stdin=TEXT)
    assert (learned.returncode, learned.stdout) == (0, CODES)
    applied = run("apply-bpe", "-c", "codes", stdin=TEXT)
    assert (applied.returncode, applied.stdout) == (0, segmented())
    # The text has words that end in the separator.
    assert applied.stderr.startswith(b"warning: ") and applied.stderr.count(b"\n") == 1
    expected = io.BytesIO()
    get_vocab(io.BytesIO(applied.stdout), expected)
    counted = run("get-vocab", stdin=applied.stdout)
    assert (counted.returncode, counted.stdout) == (0, expected.getvalue())


def test_files_and_long_names(folder: Path) -> None:
    """Files instead of pipes, gzipped inputs, long and short forms of the options."""
    (folder / "text.gz").write_bytes(gzip.compress(TEXT))
    for arguments in (
        "learn-bpe --input text.gz --output c1 --symbols 100 --min-frequency 2 --num-workers 2",
        "learn-bpe -i text -o c2 -s 100",
        "apply-bpe --input text.gz --codes c1 --output a1 --num-workers -1",
        "apply-bpe -i text -c c2 -o a2",
        "get-vocab -i a1 -o v1",
        "learn-joint-bpe-and-vocab -i text text.gz -s 100 -o c3 --write-vocabulary v2 v3",
        "apply-bpe -i text -c c1 -o a3 --vocabulary v1 --vocabulary-threshold 50 --glossaries ab -s ~ -m 90",
        "apply-bpe -i text -c c1 -o a4 --dropout 0.1 --seed 4 --num-workers 3",
    ):
        assert main(arguments.split()) == 0
    read = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert read["c1"] == read["c2"] == CODES
    assert read["a1"] == read["a2"] == segmented()
    assert read["v2"] == read["v3"] and read["v2"] != read["v1"]
    assert b"~ " in read["a3"]
    assert read["a4"] == segmented(dropout=0.1, seed=4)


@pytest.mark.parametrize("arguments", ["", "-i -", "-o -", "-i - -o -"])
def test_a_dash_is_standard_input_and_output(folder: Path, arguments: str) -> None:
    """As in subword-nmt, whose users have scripts with it."""
    assert run("apply-bpe", "-c", "codes", *arguments.split(), stdin=TEXT).stdout == segmented()
    assert run("learn-bpe", "-s", 100, *arguments.split(), stdin=TEXT).stdout == CODES
    assert run("get-vocab", *arguments.split(), stdin=b"b a a\n").stdout == b"a 2\nb 1\n"
    assert not Path("-").exists()


def test_an_output_called_gz_is_compressed(folder: Path) -> None:
    """Every command compresses it, so that the next one can read it; an open gzip file works as well."""
    assert main(["learn-bpe", "-s", "100", "-i", "text", "-o", "codes.gz"]) == 0
    assert gzip.decompress(Path("codes.gz").read_bytes()) == CODES
    assert main(["apply-bpe", "-c", "codes.gz", "-i", "text", "-o", "subwords.gz", "--num-workers", "2"]) == 0
    assert gzip.decompress(Path("subwords.gz").read_bytes()) == segmented()
    with gzip.open("opened", "wb") as stream:
        BPE(CODES).process_file("text", stream)
    assert gzip.decompress(Path("opened").read_bytes()) == segmented()


def test_open_files_are_written_to_in_place(folder: Path) -> None:
    """``-o >(command)`` and ``-o /dev/stdout >> file``: nothing is replaced, and earlier content stays."""
    Path("kept").write_bytes(b"kept\n")
    script = f"{shlex.join(COMMAND)} apply-bpe -c codes -i text -o /dev/stdout >> kept"
    subprocess.run(["bash", "-c", script], check=True, timeout=120)
    assert Path("kept").read_bytes() == b"kept\n" + segmented()
    script = f"{shlex.join(COMMAND)} apply-bpe -c codes -i text -o >(cat > through) && wait $!"
    subprocess.run(["bash", "-c", script], check=True, timeout=120)
    assert Path("through").read_bytes() == segmented()


def test_bpe_and_several_inputs(folder: Path) -> None:
    """``--algorithm bpe`` learns no scaffold tokens; several inputs are read as one text."""
    assert main("learn-bpe -i text text -o twice -s 50 --algorithm bpe".split()) == 0
    assert (folder / "twice").read_bytes() == learn_bpe(lines=[TEXT.decode() * 2], num_symbols=50, algorithm="bpe").text


# ---- errors in the input


@pytest.mark.parametrize(
    "command", ["learn-bpe", "get-vocab", "apply-bpe -c codes", "apply-bpe -c codes --num-workers 3"]
)
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80"])
def test_invalid_utf8(folder: Path, capfd: pytest.CaptureFixture[str], command: str, bad: bytes) -> None:
    """A lone byte, a truncated sequence, a surrogate, an overlong form: file, line and byte, also in later blocks."""
    for before in (b"", TEXT, TEXT * 40):
        (folder / "bad").write_bytes(before + b"good\nso good " + bad + b" x\n" + TEXT)
        error = fails(capfd, *command.split(), "-i", "bad", "-o", "out")
        line, offset = before.count(b"\n") + 2, len(before) + len(b"good\nso good ")
        assert f"bad: line {line}, byte offset {offset}:" in error
        assert sorted(path.name for path in folder.iterdir()) == ["bad", "codes", "text"]


@pytest.mark.parametrize("command", ["apply-bpe -c codes", "learn-bpe --pretokenise gpt2", "learn-bpe --byte", "join"])
@pytest.mark.parametrize("form", ["gzip", "bz2", "xz", "zstd"])
def test_compressed_text_is_recognised(folder: Path, command: str, form: str) -> None:
    """On a pipe and in a file, even if symbols are bytes: codes learned from it would be nonsense."""
    content = {
        "gzip": gzip.compress(TEXT),
        "bz2": bz2.compress(TEXT),
        "xz": lzma.compress(TEXT),
        "zstd": b"\x28\xb5\x2f\xfd" + TEXT,
    }[form]
    Path("compressed").write_bytes(content)
    for result in (run(*command.split(), stdin=content), run(*command.split(), "-i", "compressed")):
        assert (result.returncode, result.stdout, result.stderr.count(b"\n")) == (1, b"", 1)
        assert re.search(rb": compressed by (gzip|bzip2|xz|zstd); decompress it with [a-z]*cat", result.stderr)
    assert run(*command.split(), stdin=b"BZh is a name\n").returncode == 0
    if form == "gzip":
        with subprocess.Popen([*COMMAND, *command.split()], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stderr is not None
            process.stdin.write(content[:1])
            process.stdin.flush()
            while unread(process.stdin.fileno()) and process.poll() is None:
                time.sleep(0.01)
            process.stdin.write(content[1:9])
            process.stdin.close()
            assert b"compressed by gzip" in process.stderr.read()


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("sacremoses", "tokenise -l en -i text"),
        (
            "numpy",
            "binarise-words --train text --valid text --test text --source-lang a --target-lang b -c codes -o data",
        ),
        ("yaml", "train --config text --data data --output model"),
    ],
)
def test_a_package_that_is_not_installed(folder: Path, package: str, command: str) -> None:
    """The base install has no extras: a command that needs one names it, in one line."""
    for language in ("a", "b"):
        shutil.copy(folder / "text", folder / f"text.{language}")
    code = f"import sys; sys.modules['{package}'] = None; from mt_scaffold.cli import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", code, *command.split()], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (1, "")
    assert f" {package}, which is not installed" in result.stderr and result.stderr.count("\n") == 1


def test_the_first_wrong_byte_is_the_one_reported(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """However many threads find one, the error is for the earliest block."""
    (folder / "bad").write_bytes(b"".join(TEXT * 20 + b"\xff\n" for _ in range(4)))
    for command in ("apply-bpe -c codes -i bad -o out --num-workers 4", "get-vocab -i bad -o out --num-workers 4"):
        assert f"line {TEXT.count(10) * 20 + 1}, byte offset {len(TEXT) * 20}:" in fails(capfd, *command.split())


@pytest.mark.parametrize(
    "command",
    [
        "learn-bpe -i {}", "get-vocab -i {}", "apply-bpe -c codes -i {}", "apply-bpe -i text -c {}",
        "apply-bpe -i text -c codes --vocabulary {}", "learn-joint-bpe-and-vocab -i {} -o c --write-vocabulary v",
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(folder: Path, capfd: pytest.CaptureFixture[str], command: str) -> None:
    """A missing file, a folder, a file that is not gzip: each is named."""
    (folder / "dir").mkdir()
    (folder / "plain.gz").write_bytes(TEXT)
    (folder / "cut.gz").write_bytes(gzip.compress(TEXT)[:-20])
    for name in ("missing", "dir", "plain.gz", "cut.gz"):
        error = fails(capfd, *command.format(name).split(), *([] if " -o " in command else ["-o", "out"]))
        assert name in error
        assert not (folder / "out").exists()


def test_a_vocabulary_that_filters_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """If no subword reaches the threshold, everything is segmented as without one, with a warning."""
    (folder / "vocabulary").write_bytes(b"ab@@ 3\n")
    assert main("apply-bpe -c codes -i text -o out --vocabulary vocabulary --vocabulary-threshold 9".split()) == 0
    assert "warning: vocabulary: " in capfd.readouterr().err
    assert (folder / "out").read_bytes() == segmented()


def test_an_epoch_without_dropout(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It has no effect, and a warning says so; epoch 0, the default, and one with dropout give no warning."""
    for options, warnings in (("--epoch 4", 1), ("--epoch 0", 0), ("--epoch 4 --dropout 0.1 --seed 1", 0)):
        assert main(f"apply-bpe -c codes -i text -o out {options}".split()) == 0
        assert capfd.readouterr().err.count("warning: an epoch has no effect without dropout") == warnings


def test_counts_as_high_as_can_be(folder: Path) -> None:
    """Just below the limit, codes are learned."""
    (folder / "words").write_text(f"ab {2**62 - 1}\n")
    assert main("learn-bpe --dict-input -i words -o out".split()) == 0
    assert (folder / "out").read_text().endswith("\na b</w>\n")


def test_fewer_threads_than_asked_for(folder: Path) -> None:
    """If a limit keeps some threads from starting, the others do the work."""
    for command in ("apply-bpe -c codes", "learn-bpe -s 100", "get-vocab"):
        program = [sys.executable, "-m", "mt_scaffold", *command.split(), "-i", "text"]
        limited = shlex.join([*program, "--num-workers", "3000"])
        few = subprocess.run(["bash", "-c", f"ulimit -v 4000000 -s 8192; {limited}"], capture_output=True)
        assert few.returncode == 0, few.stderr
        assert few.stdout == subprocess.run(program, capture_output=True).stdout != b""


def test_a_terminal_that_cannot_show_the_text(folder: Path) -> None:
    """The error names the variable to set."""
    program = [sys.executable, "-m", "mt_scaffold", "explain", "-c", "codes", "th\u00e9"]
    done = subprocess.run(program, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1 and b"cannot show" in done.stderr and done.stderr.count(b"\n") == 1


# ---- errors in the output


@pytest.mark.parametrize("command", ["learn-bpe -s 100", "get-vocab", "apply-bpe -c codes"])
def test_output_into_a_folder_that_is_not_there(folder: Path, capfd: pytest.CaptureFixture[str], command: str) -> None:
    """The missing folder is named; a folder given as the output is an error."""
    for output, message in (("missing/out", "no folder"), (".", "Is a directory")):
        assert main([*command.split(), "-i", "text", "-o", output]) == 1
        error = capfd.readouterr().err.replace("no pair has frequency >= 2. Stopping\n", "")
        assert error.startswith(f"mt-scaffold: {output}: ") and message in error and error.count("\n") == 1


@pytest.mark.parametrize("command", ["learn-bpe -s 100", "get-vocab", "apply-bpe -c codes --num-workers 2"])
def test_a_full_disk(folder: Path, command: str) -> None:
    """Standard output that accepts nothing, and a file that may not grow: one line, and no partial file."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*COMMAND, *command.split(), "-i", "text"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 1 and b"<stdout>: No space left" in result.stderr
    assert b"Traceback" not in result.stderr

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    result = run(*command.split(), "-i", "text", "-o", "out", preexec_fn=small_files)
    assert result.returncode == 1 and b"out: File too large" in result.stderr
    assert result.stderr.count(b"\n") == 1 + (b"Stopping" in result.stderr)
    assert sorted(path.name for path in folder.iterdir()) == ["codes", "text"]


def test_a_closed_pipe_is_quiet(folder: Path) -> None:
    """As in ``mt-scaffold apply-bpe ... | head -1``."""
    (folder / "long").write_bytes(TEXT * 60)
    for command in ("apply-bpe -c codes -i long --num-workers 2", "get-vocab -i long"):
        with subprocess.Popen([*COMMAND, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait() in (0, 128 + signal.SIGPIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("command", ["learn-bpe", "apply-bpe -c codes --num-workers 2"])
def test_an_interrupted_run(folder: Path, command: str, number: signal.Signals) -> None:
    """Ctrl-C and a scheduler's SIGTERM end it at once and quietly with status 130 and 143, and leave nothing.

    Files that SIGKILL leaves are removed by the next run with the same output.
    """
    (folder / "out").write_bytes(b"what was there before")
    with subprocess.Popen(
        [*COMMAND, *command.split(), "-o", "out"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(TEXT * 5)  # more than a pipe holds: the command has started reading when this returns
        process.stdin.flush()
        if number != signal.SIGKILL:
            time.sleep(0.3)
        process.send_signal(number)
        assert process.stderr.read() == b""
        assert process.wait(30) == (128 + number if number != signal.SIGKILL else -number)
        process.stdin.close()
    assert (folder / "out").read_bytes() == b"what was there before"
    left = [path.name for path in folder.iterdir() if path.name not in ("text", "codes", "out")]
    assert not left or number == signal.SIGKILL
    assert main([*command.split(), "-i", "text", "-o", "out"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["codes", "out", "text"]


def unread(pipe: int) -> int:
    """Return the number of unread bytes in a pipe."""
    found = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, found)
    return found[0]


def wait_until_full(process: subprocess.Popen[bytes], pipe: int) -> None:
    """Wait until a program has filled a pipe."""
    before = 0
    while process.poll() is None and ((now := unread(pipe)) == 0 or now > before):
        before = now
        time.sleep(0.2)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_the_output_is_not_read(folder: Path, workers: int) -> None:
    """A full pipe must not keep the run alive."""
    Path("long").write_bytes(TEXT * 20)
    command = [*COMMAND, "apply-bpe", "-c", "codes", "-i", "long", "--num-workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        wait_until_full(process, process.stdout.fileno())
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_a_nonblocking_output(folder: Path) -> None:
    """A terminal or pipe that was set to non-blocking still gets every byte."""
    with subprocess.Popen([*COMMAND, "apply-bpe", "-c", "codes", "-i", "text"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), True)
        first = process.stdout.read(1)
        assert first + process.stdout.read() == segmented()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with subprocess.Popen([*COMMAND, "apply-bpe", "-c", "codes", "-i", "text"], stdout=writer) as process:
        os.close(writer)
        wait_until_full(process, reader)
        with open(reader, "rb") as stream:
            assert stream.read() == segmented()
        assert process.wait() == 0


@pytest.mark.parametrize(
    "command",
    [
        "join",
        "apply-bpe -c codes",
        "learn-bpe --format jsonl --pretokenise gpt2",
        "count-words --format jsonl",
        "decode -c byte.codes --stream --dtype uint16",
    ],
)
def test_a_nonblocking_input_is_read_to_its_end(folder: Path, command: str) -> None:
    """A pause of the writer is not the end of a pipe that was set to non-blocking."""
    Path("byte.codes").write_bytes(b"#version: 0.3 bytes gpt2\na n\n")
    lines = [b"a ", b"l@@ o", b" w\n"]
    if "jsonl" in command:
        lines = [b'{"text": "low%d low"}\n' % number for number in range(3)]
    elif "decode" in command:
        lines = [b"a\0", b"b\0c", b"\0"]
    whole = run(*command.split(), stdin=b"".join(lines))
    assert whole.returncode == 0
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with subprocess.Popen([*COMMAND, *command.split()], stdin=reader, stdout=subprocess.PIPE) as process:
        for line in lines:
            os.write(writer, line)
            while unread(reader) and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.1)  # it reads again, and finds nothing
        os.close(writer)
        assert process.stdout is not None and process.stdout.read() == whole.stdout
        assert process.wait() == 0
    os.close(reader)


@pytest.mark.parametrize("command", ["apply-bpe -c codes", "learn-bpe -s 5", "get-vocab", "join"])
@pytest.mark.parametrize("name", ["text", "linked"])
def test_an_output_that_is_standard_input_is_refused(folder: Path, command: str, name: str) -> None:
    """The shell opens it, so that its name is unknown; a hard link remains when the other name is replaced."""
    Path("linked").symlink_to("text")
    os.link("text", "hard")
    with open("text", "rb") as stream:
        found = subprocess.run(
            [*COMMAND, *command.split(), "-o", name], stdin=stream, stderr=subprocess.PIPE, check=False
        )
    assert found.returncode == 2 and b"is an input already" in found.stderr and found.stderr.count(b"\n") == 1
    assert Path("text").read_bytes() == TEXT
    assert main([*command.split(), "-i", "text", "-o", "hard"]) == 0
    assert Path("text").read_bytes() == TEXT != Path("hard").read_bytes()


def test_a_write_protected_output_stays(folder: Path) -> None:
    """A user who may not write to a file could still replace it in a writable folder."""
    Path("out").write_text("precious")
    Path("out").chmod(0o444)
    with mock.patch("os.access", return_value=False):  # root may write to every file
        assert main(["apply-bpe", "-c", "codes", "-i", "text", "-o", "out"]) == 1
    assert Path("out").read_text() == "precious" and sorted(os.listdir()) == ["codes", "out", "text"]


@pytest.mark.parametrize("name", ["", "folder/"])
def test_an_output_without_a_name_is_refused(folder: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    """Before any work, and without a file called after a folder."""
    assert main(["apply-bpe", "-c", "codes", "-i", "text", "-o", name]) == 2
    assert capfd.readouterr().err.startswith(f"mt-scaffold: '{name}' names no file")
    assert sorted(os.listdir()) == ["codes", "text"]


def test_closed_standard_error(folder: Path) -> None:
    """The work is done, and no message ends up in the output instead."""
    Path("little").write_bytes(b"ab ab\n")
    command = f"{shlex.join(COMMAND)} learn-bpe -i little 2>&-"
    result = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, check=True, timeout=60)
    assert result.stdout == b"#version: 0.2\na b</w>\n"


def test_closed_standard_output(folder: Path) -> None:
    """It is not needed if the output is a file."""
    command = f"{shlex.join(COMMAND)} apply-bpe -i text -c codes -o out >&-"
    result = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, timeout=60)
    # Only the warning about words that end in the separator.
    assert result.returncode == 0 and result.stderr.startswith(b"warning: text: line ")
    assert result.stderr.count(b"\n") == 1 and Path("out").read_bytes() == segmented()


def test_names_that_are_not_utf8(folder: Path) -> None:
    """They work like any others, and are shown with escapes."""
    names = [os.fsdecode(name) for name in (b"\xff.text", b"\xff.codes", b"\xff.out")]
    Path(names[0]).write_bytes(TEXT)
    Path(names[1]).write_bytes(CODES)
    assert run("apply-bpe", "-i", names[0], "-c", names[1], "-o", names[2]).returncode == 0
    assert Path(names[2]).read_bytes() == segmented()
    Path(names[0]).write_bytes(b"\xff\n")
    assert b"\\xff.text: line 1" in run("apply-bpe", "-i", names[0], "-c", names[1]).stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_standard_streams(folder: Path, closed: str) -> None:
    """A process without standard input or output reports that."""
    given = "-i text" if closed == ">&-" else ""
    script = f'exec "$0" -m mt_scaffold apply-bpe -c codes {given} {closed}'
    result = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, check=False)
    assert result.returncode == 1 and result.stderr.count(b"\n") == 1, result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file without permission is named."""
    (folder / "text").chmod(0)
    assert "text: Permission denied" in fails(capfd, *"get-vocab -i text -o out".split())
