"""Counting in bounded memory, merging count files, and learning from them give the same as counting in memory."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from learning import learn_with

from mt_scaffold import Documents, _core, count_words, learn_bpe, merge_counts, write_counts
from mt_scaffold.cli import main
from mt_scaffold.corpus.files import temporary_folder
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import memory_size

hypothesis = pytest.importorskip("hypothesis", reason="comes with the extra 'dev'")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

LETTERS = b"abcdefghijklmnopqrstuvwxyzAB"
SPLITTING: tuple[dict[str, Any], ...] = (
    {},
    {"pretokenise": "gpt2"},
    {"pretokenise": "cl100k", "split_digits": True},
    {"byte_level": True},
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for what exceeds the memory."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("MT_SCAFFOLD_TMP", str(folder))
    return folder


@pytest.fixture(scope="module")
def random_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 MB with about 400,000 word types, most of them rare, and a few that are long with a common beginning."""
    draw = random.Random(3)
    characters = LETTERS * 8 + b" " * 31 + b"\n"
    assert len(characters) == 256
    content = draw.randbytes(4_000_000).translate(characters)
    long = " ".join("prefix" * draw.randint(3, 20) + str(draw.randint(0, 99)) for _ in range(2000))
    path = tmp_path_factory.mktemp("text") / "random.txt"
    path.write_bytes(content[:1_000_000] + f"\n{long} ä\n".encode() + content[1_000_000:])
    return path


def counted(path: Path | str, **options: Any) -> bytes:
    outfile = io.BytesIO()
    write_counts(outfile, documents=Documents([path]), **options)
    return outfile.getvalue()


def counted_on_disk(path: Path, workers: int, limit: int) -> _core.CountedWords:
    with path.open("rb") as stream:
        words = _core.count_words([("text", stream.fileno())], workers, max_memory=limit, folder=temporary_folder())
    assert words.bytes_on_disk() > 0
    return words


@pytest.mark.parametrize(("workers", "limit"), [(1, 1 << 10), (3, 1 << 10), (1, 1 << 20)])
def test_spilled_counting_equals_counting_in_memory(random_text: Path, workers: int, limit: int) -> None:
    """A text several times larger than the limit gives the same words, counts, order, lines and count file.

    At the smallest limit there are more runs of words than are read at once, and they are merged on disk.
    """
    assert random_text.stat().st_size > 4 * limit * 0.9
    in_memory = count_words(random_text)
    words, dropped = counted_on_disk(random_text, workers, limit).load((False, "spaces", False))
    assert len(words) == len(in_memory) > 300_000
    assert words.format_vocabulary() == in_memory.format_vocabulary()
    assert words.lines() == in_memory.lines() and dropped == (0, 0, 0)
    assert counted(random_text, num_workers=workers, max_memory=limit) == counted(random_text)


@pytest.mark.parametrize("options", SPLITTING, ids=lambda options: options.get("pretokenise", "spaces"))
@settings(max_examples=25, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@given(
    documents=st.lists(st.binary(max_size=40) | st.text("ab1 \n'’ä", max_size=40).map(str.encode), max_size=12),
    parts=st.integers(1, 4),
)
def test_documents_scattered_equal_documents_at_once(
    options: dict[str, Any], documents: list[bytes], parts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Counting in memory, on disk, or in shards that are merged gives the same file, whatever the bytes."""
    if not options:
        documents = [document.decode("utf-8", "replace").encode() for document in documents]
    once, on_disk, merged = io.BytesIO(), io.BytesIO(), io.BytesIO()
    totals = write_counts(once, documents=documents, **options)
    assert write_counts(on_disk, documents=documents, max_memory=1, **options) == totals
    folder = tmp_path_factory.mktemp("shards")
    shards = [folder / f"{part}.counts" for part in range(parts)]
    for part, shard in enumerate(shards):
        write_counts(shard, documents=documents[part::parts], **options)
    assert merge_counts(merged, shards) == totals
    assert once.getvalue() == on_disk.getvalue() == merged.getvalue()
    assert totals[1] == sum(len(words_of(document, options)) for document in documents)


def words_of(document: bytes, options: dict[str, Any]) -> list[bytes]:
    from mt_scaffold.corpus.pretokenise import Pretokeniser

    if "pretokenise" in options:
        return Pretokeniser(options["pretokenise"], options.get("split_digits", False)).split(document)
    return [word for line in document.split(b"\n") for word in line.strip(b"\r ").split(b" ") if word]


def test_the_count_file(tmp_path: Path) -> None:
    """It is sorted by bytes, all printable; its first line says how words were counted, its last how many there are."""
    outfile = io.BytesIO()
    assert write_counts(outfile, documents=["b a\n a", b"\xff a"], pretokenise="gpt2") == (4, 6)
    # In order of the bytes, not of their notation: LF, space, "b", FF.
    assert outfile.getvalue().decode() == "#counts: 0.3 bytes gpt2\nĊ 1\nĠa 3\nb 1\nÿ 1\n#end 4 6\n"
    outfile = io.BytesIO()
    write_counts(outfile, lines=["ä #end z\tz", "a"])
    assert outfile.getvalue().decode() == "#counts: 0.2\n#end 1\na 1\nz\tz 1\nä 1\n#end 4 4\n"
    path = tmp_path / "a.counts"
    path.write_bytes(outfile.getvalue())
    merge_counts(tmp_path / "b.counts.gz", [path, path])
    merged = gzip.decompress((tmp_path / "b.counts.gz").read_bytes()).decode()
    assert merged == "#counts: 0.2\n#end 2\na 2\nz\tz 2\nä 2\n#end 4 8\n"


def test_many_count_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are more shards than files may be open, groups of them are merged on disk first."""
    from mt_scaffold.corpus import count

    monkeypatch.setattr(count, "_MOST_OPEN", 3)
    shards = [tmp_path / f"{i}.counts" for i in range(8)]
    for i, shard in enumerate(shards):
        write_counts(shard, lines=[f"word{i} all", f"word{i // 2}"])
    merged, once = io.BytesIO(), io.BytesIO()
    merge_counts(merged, shards)
    write_counts(once, lines=[line for i in range(8) for line in (f"word{i} all", f"word{i // 2}")])
    assert merged.getvalue() == once.getvalue()


@pytest.mark.parametrize("algorithm", ["scaffold", "bpe"])
@pytest.mark.parametrize("options", SPLITTING, ids=lambda options: options.get("pretokenise", "spaces"))
def test_learning_from_counts_equals_learning_from_text(
    random_text: Path, tmp_path: Path, options: dict[str, Any], algorithm: str
) -> None:
    """Codes must not depend on how the words were counted: in memory, on disk, or by several machines."""
    text = tmp_path / "text"
    text.write_bytes(random_text.read_bytes()[:60_000])
    shards = [tmp_path / "a.counts", tmp_path / "b.counts"]
    lines = text.read_bytes().splitlines(keepends=True)
    for shard, part in zip(shards, (lines[:99], lines[99:]), strict=True):
        write_counts(shard, lines=part, **options)
    learned = learn_bpe(text, num_symbols=200, algorithm=algorithm, **options)
    assert learn_with(counts=shards, num_symbols=200, algorithm=algorithm).text == learned.text
    assert learn_with(counts=shards, num_symbols=200, algorithm=algorithm, **options).text == learned.text
    within = learn_with(text, num_symbols=200, algorithm=algorithm, max_memory="64M", **options)
    assert within.text == learned.text


def test_pruning_says_what_it_can_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bound holds for every pair, even one that occurs twice in a word, and is tight."""
    text = ["hahaha hahaha low low low", "lower lowest"]
    kept = count_words(lines=text, prune=3)
    assert kept.items() == [("low", 3)]
    # "h a" is twice in each of two dropped words, "a h" too; "l o" and "o w" only once in each of two.
    expected = (
        "--prune 3: dropped 3 word types with 4 occurrences; the count of a pair of symbols is too low by at most 4\n"
    )
    assert capsys.readouterr().err == expected
    shard = tmp_path / "a.counts"
    write_counts(shard, lines=text)
    learned = learn_with(counts=[shard], num_symbols=5, prune=3)
    assert capsys.readouterr().err.startswith(expected)
    assert learned.text == learn_bpe(lines=["low low low"], num_symbols=5).text


@settings(max_examples=30, deadline=None)
@given(words=st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=30), prune=st.integers(2, 4))
@pytest.mark.parametrize("on_disk", [False, True])
def test_the_bound_on_pairs_is_exact_before_merging(words: list[str], prune: int, on_disk: bool) -> None:
    """The figure that is printed is the highest count of two neighbouring symbols in dropped words."""
    counts = Counter(words)
    missing: Counter[tuple[str, str]] = Counter()
    for word, count in counts.items():
        if count < prune:
            symbols = [*word[:-1], word[-1] + "</w>"]
            for pair in itertools.pairwise(symbols):
                missing[pair] += count
    counted = _core.count_words(
        [("text", " ".join(words).encode())], max_memory=int(on_disk), folder=temporary_folder()
    )
    assert (counted.bytes_on_disk() > 0) is on_disk
    kept, dropped = counted.load((False, "spaces", False), prune)
    rare = [count for count in counts.values() if count < prune]
    assert dropped == (len(rare), sum(rare), max(missing.values(), default=0))
    assert dict(kept.items()) == {word: count for word, count in counts.items() if count >= prune}


def test_learning_from_more_than_memory_is_refused(random_text: Path) -> None:
    """The error names a threshold, with which learning stays within the limit."""
    with pytest.raises(
        MTScaffoldError, match=r"within --max-memory \(99 MiB\): drop rare words with --prune"
    ) as caught:
        learn_with(random_text, num_symbols=5, max_memory="99M")
    threshold = int(str(caught.value).partition("--prune ")[2].partition(",")[0])
    codes = learn_with(random_text, num_symbols=5, max_memory="99M", prune=threshold)
    assert codes.text == learn_with(random_text, num_symbols=5, prune=threshold).text
    with pytest.raises(MTScaffoldError, match=r"within --max-memory \(0 MiB\): raise --max-memory$"):
        learn_with(random_text, num_symbols=5, max_memory=1000)


LONG_WORDS = """
import random, sys
from mt_scaffold.corpus.count import write_counts
draw = random.Random(1)
lines = (draw.randbytes(10_000).hex() for _ in range(4_000))
write_counts(sys.argv[1], lines=lines, max_memory="64M", num_workers=2)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
def test_long_words_stay_within_the_memory(tmp_path: Path) -> None:
    """The words of each thread are limited by their bytes, not only by their number."""
    done = subprocess.run([sys.executable, "-c", LONG_WORDS, tmp_path / "counts"], capture_output=True, check=True)
    assert int(done.stdout) < 80 << 10


def test_counts_of_different_kinds_are_not_mixed(tmp_path: Path) -> None:
    """Words of two pre-tokenisers cannot be added up; the first line of each file says how they were counted."""
    paths = [tmp_path / name for name in ("a.counts", "b.counts", "c.counts")]
    for path, options in zip(paths, SPLITTING[:3], strict=True):
        write_counts(path, lines=["a 12"], **options)
    with pytest.raises(MTScaffoldError, match=r"b.counts: counted with --pretokenise gpt2, and .*a.counts with --pret"):
        merge_counts(tmp_path / "merged", paths)
    with pytest.raises(MTScaffoldError, match=r"c.counts: counted with --pretokenise cl100k --split-digits, not --pre"):
        learn_with(counts=[paths[2]], pretokenise="o200k")
    with pytest.raises(UsageError, match=r"counts and paths are given together|paths and counts are given together"):
        learn_with(paths=[paths[0]], counts=paths)
    with pytest.raises(UsageError, match="is an input already"):
        merge_counts(paths[0], paths)


@pytest.mark.parametrize(
    ("size", "bytes_"), [("1G", 1 << 30), ("1.5k", 1536), (7, 7), ("64MiB", 64 << 20), ("2TB", 2 << 40), ("12", 12)]
)
def test_memory_sizes(size: int | str, bytes_: int) -> None:
    """As ``sort -S`` and SLURM read them: powers of 1024."""
    assert memory_size(size) == bytes_


@pytest.mark.parametrize("size", ["", "G", "-1G", "0", "lots", "1X", "nan", "infG", 0])
def test_other_memory_sizes_are_refused(size: int | str) -> None:
    """A misread limit would be no limit."""
    with pytest.raises(UsageError, match="an amount of memory"):
        memory_size(size)


def test_a_full_disk_is_reported(random_text: Path) -> None:
    """A limit on the size of files stands in for the disk; the message says what to do about it."""
    program = (
        "import resource, signal, sys\nfrom mt_scaffold.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        f"sys.exit(main(['count-words', '--input', {str(random_text)!r}, '--max-memory', '1M', '-o', '/dev/null']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "for the counts that exceed the memory; set MT_SCAFFOLD_TMP to a folder with more room" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_temporary_folder_must_exist(random_text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is checked before anything is counted."""
    monkeypatch.setenv("MT_SCAFFOLD_TMP", "/no/such/folder")
    with pytest.raises(MTScaffoldError, match="MT_SCAFFOLD_TMP is /no/such/folder, which is not a folder"):
        counted(random_text, max_memory="1M")


def test_nothing_is_left_after_an_error(tmp_path: Path, temporary: Path, random_text: Path) -> None:
    """No output is left, nor the words that were on disk when the second file turned out to be broken."""
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"fine\nbro\xffken\n")
    with pytest.raises(MTScaffoldError, match=r"broken.txt: line 2, byte offset 8: 0xFF is not UTF-8"):
        write_counts(tmp_path / "out", documents=Documents([random_text, broken]), max_memory="1M")
    assert not list(temporary.iterdir()) and not (tmp_path / "out").exists()


def test_nothing_is_left_after_an_interruption(tmp_path: Path, temporary: Path) -> None:
    """Ctrl-C while words are on disk and the input is still open leaves no file."""
    command = [sys.executable, "-m", "mt_scaffold", "count-words", "--max-memory", "1K", "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stderr is not None
    table = LETTERS * 8 + b" " * 31 + b"\n"
    process.stdin.write(random.Random(1).randbytes(1_000_000).translate(table))
    process.stdin.flush()
    deadline = time.monotonic() + 20
    # A file without a name is a link to a deleted one.
    while not any(b"deleted" in os.readlink(os.fsencode(each)) for each in Path(f"/proc/{process.pid}/fd").iterdir()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 128 + signal.SIGINT
    assert process.stderr.read() == b""
    process.stdin.close()
    assert not list(temporary.iterdir()) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", [64, 192])
def test_memory_stays_within_the_limit(limit: int, tmp_path: Path) -> None:
    """24 MB of random words, whose tables would take some 200 MB, within less; the program itself takes 20."""
    text = tmp_path / "text"
    table = LETTERS * 8 + b" " * 31 + b"\n"
    with text.open("wb") as stream:
        for seed in range(3):
            stream.write(random.Random(seed).randbytes(8_000_000).translate(table))

    # getrusage() would begin with the memory of the process that started this one.
    command = ["count-words", "--input", str(text), "--output", str(tmp_path / "out"), "--max-memory", f"{limit}M"]
    program = (
        f"from mt_scaffold.cli import main\nmain({[*command, '--num-workers', '2']})\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM:')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= limit << 10
    assert (tmp_path / "out").stat().st_size > 15_000_000


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scatter over shards, merge, learn: the codes are those of all shards at once."""
    for i, text in enumerate(["low lower\nlowest", "new newer", "low 12 low"]):
        (tmp_path / f"{i}.jsonl").write_text(f'{{"body": {text!r}}}\n'.replace("'", '"'), encoding="utf-8")
        options = ["--field", "body", "--pretokenise", "gpt2", "--split-digits", "--max-memory", "64M"]
        shard = ["--input", str(tmp_path / f"{i}.jsonl"), "--output", str(tmp_path / f"{i}.counts.gz")]
        assert main(["count-words", *options, *shard]) == 0
    merged = str(tmp_path / "all.counts")
    assert main(["count-words", "--merge", *(str(tmp_path / f"{i}.counts.gz") for i in range(3)), "-o", merged]) == 0
    assert main(["learn-bpe", "--counts", merged, "-s", "9", "-o", str(tmp_path / "codes")]) == 0
    glob = ["--input", str(tmp_path / "*.jsonl"), *options]
    assert main(["learn-bpe", *glob, "-s", "9", "-o", str(tmp_path / "codes.all")]) == 0
    assert (tmp_path / "codes").read_bytes() == (tmp_path / "codes.all").read_bytes()
    assert (tmp_path / "codes").read_bytes().startswith(b"#version: 0.3 bytes gpt2 split-digits\n")
    assert main(["count-words", "--merge", merged, "--pretokenise", "gpt2"]) == 2
    assert main(["learn-bpe", "--counts", merged, "--input", merged]) == 2
    assert "omit" in capsys.readouterr().err


def test_whole_files_are_documents(tmp_path: Path) -> None:
    """With ``--format files`` a word may hold line feeds."""
    text = tmp_path / "a.txt"
    text.write_bytes(b"one\n\n two")
    lines, files = (
        count_words(documents=Documents([text], format), pretokenise="gpt2").byte_items() for format in (None, "files")
    )
    assert lines == [(b"one", 1), (b" two", 1)]
    assert files == [(b"one", 1), (b"\n\n", 1), (b" two", 1)]


def test_documents_in_memory_are_counted_as_a_whole() -> None:
    """They may be strings or bytes; an error names the document by its number."""
    words = count_words(documents=["a\nb", b"\xff"], pretokenise="gpt2")
    assert words.byte_items() == [(b"a", 1), (b"\n", 1), (b"b", 1), (b"\xff", 1)]
    assert words.lines() == 2
    with pytest.raises(MTScaffoldError, match="documents: document 2, byte offset 1: 0xFF is not UTF-8"):
        count_words(documents=["a b\nc", b"d\xff"])
    with pytest.raises(MTScaffoldError, match=r"document 2 holds '.udc41', a lone surrogate"):
        count_words(documents=["a", "\udc41"])
    with pytest.raises(UsageError, match="documents= takes Documents, or a list of texts"):
        count_words(documents="text")


def test_globs_of_count_files(tmp_path: Path) -> None:
    """--counts and --merge take quoted globs, as --input does; one that matches nothing is an error."""
    for number, line in enumerate(["a b", "b c"]):
        write_counts(tmp_path / f"{number}.counts", lines=[line])
    pattern = str(tmp_path / "*.counts")
    assert main(["count-words", "--merge", pattern, "-o", str(tmp_path / "all")]) == 0
    merge_counts(tmp_path / "both", [tmp_path / "0.counts", tmp_path / "1.counts"])
    assert (tmp_path / "all").read_bytes() == (tmp_path / "both").read_bytes()
    codes = learn_with(counts=[tmp_path / "all"], num_symbols=1, min_frequency=1)
    assert learn_with(counts=[pattern], num_symbols=1, min_frequency=1).text == codes.text
    with pytest.raises(MTScaffoldError, match="no file matches this pattern"):
        merge_counts(tmp_path / "out", [tmp_path / "*.none"])


def test_a_lone_surrogate_in_a_line() -> None:
    """The error names the line; it is not Python's own."""
    with pytest.raises(MTScaffoldError, match=r"line 2 holds '\\ud800', a lone surrogate and not a character"):
        learn_bpe(lines=["a", "\ud800"])
