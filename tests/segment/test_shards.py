"""``encode`` into a folder: a pair of files per input, resumed, checked, and in stores that fsspec supports."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from segmenting import hard_text

from mt_scaffold import learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.count import write_counts
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.progress import ShardsProgress
from mt_scaffold.segment import folders
from mt_scaffold.segment.encode import decode_documents, encode_documents
from mt_scaffold.segment.folders import check_folder, encode_folder

END = "<|endoftext|>"
SHARDS = 10
STORE = "memory://shards"


def write_inputs(folder: Path, documents: int = 3000) -> None:
    """Write codes and shards of JSONL, ``in/00.jsonl`` and so on."""
    lines = hard_text(30, 2000).split("\n")
    (folder / "text").write_text("\n".join(lines), encoding="utf-8")
    learn_bpe(folder / "text", folder / "codes", 300, pretokenise="gpt2")
    (folder / "in").mkdir()
    for number in range(SHARDS):
        texts = (lines[(number + step) % len(lines)] for step in range(documents))
        shard = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (folder / "in" / f"{number:02}.jsonl").write_text(shard, encoding="utf-8")


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with codes and shards of JSONL."""
    folder = tmp_path_factory.mktemp("shards")
    write_inputs(folder, 300)
    return folder


@pytest.fixture(scope="module")
def encoded(corpus: Path) -> Path:
    """The shards, encoded."""
    encode_folder(corpus / "codes", [corpus / "in" / "*.jsonl"], corpus / "encoded", append=END)
    return corpus / "encoded"


@pytest.fixture
def copy(encoded: Path, tmp_path: Path) -> Path:
    """A copy of the encoded shards, to damage."""
    for path in encoded.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def again(corpus: Path, folder: Path, **settings: Any) -> None:
    """Encode the shards as in ``encoded``, except for ``settings``."""
    encode_folder(corpus / "codes", [corpus / "in" / "*.jsonl"], folder, **{"append": END, **settings})


def test_each_shard_is_what_encode_writes(corpus: Path, encoded: Path, tmp_path: Path) -> None:
    """The pair of an input is what ``encode`` writes for it alone; the manifest has digests and totals."""
    total = {"documents": 0, "ids": 0, "bytes": 0}
    for path in sorted((corpus / "in").iterdir()):
        found = encode_documents(corpus / "codes", [path], tmp_path / f"{path.stem}.bin", append=END)
        assert found.bytes == sum(len(document) for document in Documents([path]))
        total = {name: count + getattr(found, name) for name, count in total.items()}
    alone = digests(tmp_path)
    assert len(alone) == 3 * SHARDS and alone.items() < digests(encoded).items()
    manifest = json.loads((encoded / "manifest.json").read_text())
    assert manifest["kind"] == "shards" and total.items() < manifest.items()
    assert manifest["files"] == {name: digest for name, digest in alone.items() if not name.endswith(".json")}
    again(corpus, tmp_path / "threads", num_workers=3)
    assert digests(tmp_path / "threads") == digests(encoded)


def test_bytes_are_those_of_documents(corpus: Path, tmp_path: Path) -> None:
    """They do not depend on the format and the end of the file, so that tokens per byte can be compared."""
    texts = ["one", "", "two \r", "three"]
    (tmp_path / "a.txt").write_bytes("\n".join(texts).encode())
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for name in ("a.txt", "b.jsonl"):
        assert encode_documents(corpus / "codes", [tmp_path / name], tmp_path / "ids.bin").bytes == 13


def test_shards_are_named_after_inputs(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their folders are included if these differ; inputs of one name, and standard input, are refused."""
    for name in ("de/00.jsonl", "en/00.jsonl", "en/more/train.en"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text('{"text": "a"}\n')
    encode_folder(corpus / "codes", [tmp_path / "in" / "**" / "*.*"], tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").glob("*.bin")} == {
        *("de.00.bin", "en.00.bin", "en.more.train.en.bin")
    }
    (tmp_path / "in" / "de" / "00.txt").write_text("b")
    command = ["encode", f"--codes={corpus / 'codes'}", f"--output={tmp_path}/other/", "--input"]
    assert main([*command, f"{tmp_path}/in/de/*"]) == 2
    assert main([*command, "-"]) == 2
    assert main([*command, f"{tmp_path}/in/de"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3 and "would be the shard 00, as" in errors[0] and "not a file" in errors[2]
    assert not (tmp_path / "other").exists()


def test_the_same_command_encodes_only_what_is_missing(corpus: Path, copy: Path, encoded: Path) -> None:
    """Finished shards are neither read nor written again."""
    (copy / "03.manifest.json").unlink()
    before = {path.name: path.stat().st_mtime_ns for path in copy.iterdir()}
    time.sleep(0.01)
    again(corpus, copy)
    after = {path.name: path.stat().st_mtime_ns for path in copy.iterdir()}
    changed = {name for name in after if before.get(name) != after[name]}
    assert changed == {"03.bin", "03.idx", "03.manifest.json"} and digests(copy) == digests(encoded)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"merges": 200}, r"codes \(sha256 .*, \d+ merges\), not with codes \(sha256 .*, 200 merges\)"),
        ({"append": None}, "special_tokens"),
        ({"dtype": "uint32"}, 'dtype "uint16", not "uint32"'),
        ({"index": "megatron"}, 'index "fairseq", not "megatron"'),
        ({"in_text": "text"}, "in_text"),
        ({"dropout": 0.1, "seed": 1}, "dropout 0, not 0.1"),
        ({"dropout": 0.1}, "need --seed"),
        ({"field": "body"}, "field"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_other_settings_are_refused(corpus: Path, encoded: Path, settings: dict[str, Any], problem: str) -> None:
    """A folder holds ids with the same settings."""
    before = digests(encoded)
    with pytest.raises(UsageError, match=problem):
        again(corpus, encoded, **settings)
    assert digests(encoded) == before


def test_other_inputs_are_refused(corpus: Path, encoded: Path, tmp_path: Path) -> None:
    """Neither more nor fewer inputs can go into the same folder, nor may they overwrite other files."""
    for path in (corpus / "in").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    files = sorted(tmp_path.iterdir())
    for inputs, problem in ((files[1:], "with the input of 00 too"), (files[::-1], "in another order")):
        with pytest.raises(UsageError, match=problem):
            encode_folder(corpus / "codes", inputs, encoded, append=END)
    (tmp_path / "more.jsonl").write_text("")
    with pytest.raises(UsageError, match="without the input of more"):
        encode_folder(corpus / "codes", [tmp_path / "*.jsonl"], encoded, append=END)
    for name in ("00.bin", "00.idx", "00.manifest.json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("mine")
        with pytest.raises(UsageError, match=rf"{name}: exists, without a manifest\.json"):
            again(corpus, tmp_path / name)
        assert (tmp_path / name / name).read_text() == "mine" and len([*(tmp_path / name).iterdir()]) == 1


def test_dropout_depends_on_the_seed_alone(corpus: Path, tmp_path: Path) -> None:
    """Shards are sampled by their number, whatever the number of workers; two equal shards differ."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.txt").write_text("low lower lowest newer newest\n" * 20)
    for workers in (1, 2):
        settings: dict[str, Any] = {"dropout": 0.5, "seed": 3, "num_workers": workers}
        encode_folder(corpus / "codes", [tmp_path / "in" / "*"], tmp_path / f"out{workers}", **settings)
    assert digests(tmp_path / "out1") == digests(tmp_path / "out2")
    assert (tmp_path / "out1" / "a.bin").read_bytes() != (tmp_path / "out1" / "b.bin").read_bytes()


def damage(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def recording(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Return a function that changes the content of a manifest."""

    def write(path: Path) -> None:
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return write


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("03.bin", damage, "03.bin: not as it was written \\(sha256 mismatch\\)"),
        ("03.idx", damage, "03.idx: not as it was written \\(sha256 mismatch\\)"),
        ("03.bin", lambda path: os.truncate(path, 100), "03.bin: truncated: 100 of [\\d,]+ bytes"),
        ("03.idx", lambda path: os.truncate(path, 100), "03.idx: truncated: 100 of [\\d,]+ bytes"),
        (
            "03.bin",
            lambda path: path.write_bytes(path.read_bytes() + b"0"),
            "03.bin: too long: [\\d,]+ of [\\d,]+ bytes",
        ),
        ("03.idx", Path.unlink, "03.idx: missing"),
        ("03.manifest.json", Path.unlink, "1 of 10 are not finished, 03 first"),
        ("03.manifest.json", damage, "03.manifest.json: "),
        *(
            ("03.manifest.json", recording(methodcaller("update", {key: 1})), f"with another {key} than")
            for key in ("special_tokens", "append", "n_vocab", "dtype")
        ),
        *(
            ("03.manifest.json", recording(change), "03.manifest.json: not the manifest of a shard")
            for change in (lambda content: content["files"].pop("03.idx"), lambda content: content.pop("documents"))
        ),
        (
            "manifest.json",
            recording(lambda content: content["files"].update({"03.idx": "0" * 64})),
            "03.idx: another sha256 in 03.manifest.json than in manifest.json",
        ),
        *(
            ("manifest.json", recording(methodcaller("pop", key)), "manifest.json has no totals yet")
            for key in ("documents", "ids", "bytes")
        ),
        *(
            (
                "manifest.json",
                recording(methodcaller("update", {key: 1})),
                f"manifest.json says 1 {key} in all, but [\\d,]+",
            )
            for key in ("documents", "ids", "bytes")
        ),
        (
            "manifest.json",
            recording(lambda content: content["shards"][4].update(documents=7)),
            "manifest.json: says 7 documents of 04, but 04.manifest.json 300",
        ),
        (
            "manifest.json",
            recording(lambda content: content["shards"][4].update(ids="7")),
            "manifest.json: shards: must be named once each, with documents, ids, bytes as whole numbers",
        ),
    ],
)
def test_check_finds_damage(
    corpus: Path, copy: Path, encoded: Path, capsys: pytest.CaptureFixture[str], name: str, change: Any, problem: str
) -> None:
    """It names the file, and following its advice mends the folder."""
    command = ["encode", f"--codes={corpus / 'codes'}", f"--output={copy}", "--check"]
    assert main(command) == 0
    assert "10 shards, 3,000 documents" in capsys.readouterr().out
    change(copy / name)
    assert main(command) == 1
    assert re.search(problem, errors := capsys.readouterr().err), errors
    (copy / "03.manifest.json").unlink(missing_ok=True)
    again(corpus, copy)
    assert main(command) == 0 and digests(copy) == digests(encoded)


@pytest.mark.parametrize("index", ["fairseq", "megatron"])
def test_an_empty_index_is_not_treated_as_finished(corpus: Path, tmp_path: Path, index: str) -> None:
    """It is the last file to reach the disk; a complete folder is left as it is."""
    arguments = ["encode", f"--codes={corpus / 'codes'}", f"--output={tmp_path}/", "--index", index]
    arguments += ["--input", str(corpus / "in" / "05.jsonl")]
    assert main(arguments) == main(arguments) == 0
    (tmp_path / "05.idx").write_bytes(b"")
    assert main(arguments) == 1


def test_check_compares_the_settings_that_are_given(
    corpus: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--check`` with other settings than the folder's must not print that all is as written."""
    check = ["encode", f"--codes={corpus / 'codes'}", "--check", f"--output={copy}/"]
    for right in ("", f"--append {END}", f"--append {END} --special {END}", "--dtype uint16"):
        assert main([*check, *right.split()]) == 0, right
    for wrong in ("--append x", "--special x", "--dtype uint32", "--index megatron", "--dropout 0.1 --seed 1"):
        capsys.readouterr()
        assert main([*check, *wrong.split()]) == 2, wrong
        assert "encoded with other settings (" in capsys.readouterr().err


def test_check_refuses_other_codes(corpus: Path, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other codes than the whole folder's, and a shard of other codes that was copied into it."""
    learn_bpe(corpus / "text", corpus / "other", 100, pretokenise="gpt2")
    with pytest.raises(UsageError, match=r"encoded with codes .*, not with other"):
        check_folder(corpus / "other", copy)
    encode_documents(corpus / "other", [corpus / "in" / "05.jsonl"], copy / "05.bin", append=END)
    with pytest.raises(MTScaffoldError, match="1 of 10 shards are damaged"):
        check_folder(corpus / "codes", copy)
    assert "05.manifest.json: encoded with other" in capsys.readouterr().err
    with pytest.raises(MTScaffoldError, match="encoded with other"):
        again(corpus, copy)
    with pytest.raises(MTScaffoldError, match=r"no manifest\.json, and so not a folder of shards"):
        check_folder(corpus / "codes", corpus / "in")


@pytest.fixture
def inputs(corpus: Path, tmp_path: Path) -> Path:
    """A folder with copies of the codes and inputs, to change, and with their ids in out."""
    (tmp_path / "in").mkdir()
    for name in ("codes", *(f"in/{number:02}.jsonl" for number in range(SHARDS))):
        (tmp_path / name).write_bytes((corpus / name).read_bytes())
    assert encode_folder(tmp_path / "codes", [tmp_path / "in" / "*"], tmp_path / "out", append=END).shards == SHARDS
    return tmp_path


def rewrite(path: Path) -> None:
    """Change a letter of the text of a file, keeping its size and modification time."""
    content, before = path.read_bytes(), path.stat()
    place = content.index(b'"text": "') + 9
    letter = b"b" if content[place : place + 1] == b"a" else b"a"
    path.write_bytes(content[:place] + letter + content[place + 1 :])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.read_bytes() != content


def test_an_input_rewritten_at_the_same_size_is_noticed(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both the same command and --check notice it, and the error's advice mends the folder."""
    command = ["encode", f"--codes={inputs}/codes", f"--output={inputs}/out", f"--append={END}", "--input"]
    command.append(f"{inputs}/in/*")
    assert main([*command, "--check"]) == 0
    assert "as written (the inputs are unchanged)" in capsys.readouterr().out
    rewrite(inputs / "in" / "03.jsonl")
    for more in ([], ["--check"]):
        assert main([*command, *more]) == 1
        errors = capsys.readouterr().err
        assert re.search(r"in/03\.jsonl: not the text that .*out/03\.manifest\.json records", errors), errors
    (inputs / "out" / "03.manifest.json").unlink()
    assert main(command) == 0 and main([*command, "--check"]) == 0
    encode_folder(inputs / "codes", [inputs / "in" / "*"], inputs / "fresh", append=END)
    assert digests(inputs / "out") == digests(inputs / "fresh")


def test_check_says_what_it_compared(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --input, only the ids are compared; the inputs of another corpus are refused."""
    command = ["encode", f"--codes={inputs}/codes", f"--output={inputs}/out", "--check"]
    assert main(command) == 0
    assert "as written (inputs not compared: name them with --input)" in capsys.readouterr().out
    assert main([*command, "--input", f"{inputs}/in/0[1-9].jsonl"]) == 2
    assert "not encoded from these inputs, by the shard 00" in capsys.readouterr().err


def test_manifests_have_the_digests_of_inputs(inputs: Path) -> None:
    """So does that of one pair of files from several inputs; a stream cannot be read twice and has no digest."""
    digest = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((inputs / "in").iterdir())}
    shards = json.loads((inputs / "out" / "manifest.json").read_text())["shards"]
    assert {shard["input"]: shard["sha256"] for shard in shards} == digest
    encode_documents(inputs / "codes", [inputs / "in" / "*", io.BytesIO(b"a")], inputs / "all.bin", format="lines")
    found = json.loads((inputs / "all.manifest.json").read_text())["inputs"]
    assert {each["name"]: each["sha256"] for each in found} == {**digest, "input": None}


def test_a_folder_without_digests_of_inputs_is_not_resumed(inputs: Path) -> None:
    """Earlier versions wrote such folders; whether their text is still the same is unknown."""
    path = inputs / "out" / "05.manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["inputs"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(MTScaffoldError, match=r"05\.manifest\.json: records no sha256 of its input; remove "):
        encode_folder(inputs / "codes", [inputs / "in" / "*"], inputs / "out", append=END)


def test_a_killed_process_is_resumed(tmp_path: Path) -> None:
    """The same command then completes the folder with the bytes of an undisturbed run."""
    write_inputs(tmp_path, 2000)
    options = ["--codes", "codes", "--input", "in/*.jsonl", "--append", END, "--num-workers", "1", "--output", "out/"]
    command = [sys.executable, "-m", "mt_scaffold", "encode", *options]
    killed = subprocess.Popen(command, cwd=tmp_path)
    while not (tmp_path / "out" / "02.bin").exists():
        time.sleep(0.005)
        assert killed.poll() is None
    killed.kill()
    killed.wait()
    subprocess.run(command, cwd=tmp_path, check=True)
    encode_folder(tmp_path / "codes", [tmp_path / "in" / "*.jsonl"], tmp_path / "alone", append=END)
    assert digests(tmp_path / "out") == digests(tmp_path / "alone")


def test_two_processes_do_not_share_a_folder(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error tells the second one how to share the work."""
    with open(inputs / "out" / "manifest.json", "rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        command = ["encode", f"--codes={inputs}/codes", f"--output={inputs}/out", f"--append={END}", "--input"]
        assert main([*command, f"{inputs}/in/*"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "another process encodes into it; for several processes, give each an input and an --output" in line


def test_progress_has_shards_speed_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The speed does not include shards that were finished before."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lines: list[str] = []
    progress = ShardsProgress("encoding", [10_000_000] * 4, lines.append)
    progress.finished(0)
    for number in (1, 2):
        show = progress.encoding(number)
        assert show is not None
        now += 5
        show(15_000_000)
        now += 5
        show(30_000_000)
        progress.finished(number)
    assert lines == [
        "encoding: 1 of 4 shards, 15 MB, 3 MB/s",
        "encoding: 1 of 4 shards, 30 MB, 3 MB/s",
        "encoding: 2 of 4 shards, 45 MB, 3 MB/s, 15 s left",
        "encoding: 2 of 4 shards, 60 MB, 3 MB/s, 10 s left",
    ]


@pytest.fixture
def memory(corpus: Path) -> Iterator[Any]:
    """The store memory://, with the shards in memory://shards/in."""
    fsspec = pytest.importorskip("fsspec", reason="comes with the extra 'remote'")
    store = fsspec.filesystem("memory")
    store.pipe({f"/shards/in/{path.name}": path.read_bytes() for path in (corpus / "in").iterdir()})
    yield store
    store.rm("/shards", recursive=True)


def contents(store: Any, folder: str) -> dict[str, bytes]:
    """The files of a folder in a store, without those that end in .manifest.json, by name."""
    return {name.rpartition("/")[2]: store.cat_file(name) for name in store.find(folder)}


def test_a_store_takes_shards(corpus: Path, encoded: Path, memory: Any) -> None:
    """Inputs, codes and outputs may be URLs; the bytes are those of a local folder, and --check reads them."""
    memory.pipe_file("/shards/codes", (corpus / "codes").read_bytes())
    for _ in range(2):
        encode_folder(f"{STORE}/codes", [f"{STORE}/in/*.jsonl"], f"{STORE}/out/", append=END)
        assert contents(memory, "/shards/out") == {path.name: path.read_bytes() for path in encoded.iterdir()}
        memory.rm_file("/shards/out/07.manifest.json")
    with pytest.raises(MTScaffoldError, match="1 of 10 are not finished, 07 first"):
        check_folder(corpus / "codes", f"{STORE}/out")
    encode_folder(f"{STORE}/codes", [f"{STORE}/in/*.jsonl"], f"{STORE}/out/", append=END)
    assert check_folder(corpus / "codes", f"{STORE}/out").shards == SHARDS
    memory.pipe_file("/shards/out/02.bin", memory.cat_file("/shards/out/02.bin")[:-2])
    with pytest.raises(MTScaffoldError, match="1 of 10 shards are damaged"):
        check_folder(corpus / "codes", f"{STORE}/out")


def test_every_command_reads_and_writes_stores(corpus: Path, memory: Any, tmp_path: Path) -> None:
    """Counting, learning and a single pair of files work as on a disk, also with compressed text and Parquet."""
    pyarrow = pytest.importorskip("pyarrow", reason="comes with the extra 'documents'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="comes with the extra 'documents'")
    source = corpus / "in" / "00.jsonl"
    table = pyarrow.table({"text": [document.decode() for document in Documents([source])]})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    memory.pipe_file("/shards/a.parquet", buffer.getvalue())
    with open(source, "rb") as stream:
        memory.pipe_file("/shards/a.jsonl.gz", gzip.compress(stream.read()))
    write_counts(tmp_path / "counts", documents=Documents([source]), pretokenise="gpt2")
    for name in ("a.parquet", "a.jsonl.gz"):
        write_counts(f"{STORE}/counts", documents=Documents([f"{STORE}/{name}"]), pretokenise="gpt2")
        assert memory.cat_file("/shards/counts") == (tmp_path / "counts").read_bytes()
    options = ["--symbols", "50", "--pretokenise", "gpt2", "--output"]
    assert main(["learn-bpe", "--input", f"{STORE}/in/*.jsonl", *options, f"{STORE}/learnt"]) == 0
    assert main(["learn-bpe", "--input", f"{corpus}/in/*.jsonl", *options, str(tmp_path / "learnt")]) == 0
    assert memory.cat_file("/shards/learnt") == (tmp_path / "learnt").read_bytes()
    for output in (f"{STORE}/pair/00.bin", f"{tmp_path}/00.bin"):
        assert main(["encode", f"--codes={corpus / 'codes'}", "--input", str(source), "--output", output]) == 0
    pair = {path.name: path.read_bytes() for path in tmp_path.glob("00.*")}
    assert len(pair) == 3 and contents(memory, "/shards/pair") == pair


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("memory://shards/none.txt", "memory://shards/none.txt: no such file"),
        ("memory://shards/none*", "no file matches this pattern"),
        ("nowhere://x/y", "Protocol not known: nowhere"),
        ("hdfs://x/y", "hdfs://x/y: "),
    ],
)
def test_an_error_of_a_store_is_one_line(
    memory: Any, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, problem: str
) -> None:
    """Each store has its own exceptions, which are not shown as tracebacks."""
    output = f"{tmp_path}/out/"
    assert main(["encode", f"--codes={corpus / 'codes'}", "--input", url, "--output", output]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line and not (tmp_path / "out").exists()


def test_without_fsspec_a_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The base installation has no fsspec."""
    command = ["count-words", "--output", str(tmp_path / "counts"), "--input"]
    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.split(".")[0] == "fsspec"]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "fsspec", None)
        assert main([*command, "s3://bucket/text"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "s3://bucket/text: URLs need the Python package fsspec" in line and "'.[remote]'" in line


@pytest.fixture
def s3(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3 server on loopback, with the shards in s3://bucket/in."""
    s3fs = pytest.importorskip("s3fs", reason="comes with the extra 'remote'")
    server_of = pytest.importorskip("moto.server", reason="comes with the extra 'dev'")
    server = server_of.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.makedirs("bucket", exist_ok=True)  # the server's buckets outlive it
    store.pipe({f"bucket/in/{path.name}": path.read_bytes() for path in (corpus / "in").iterdir()})
    yield store
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_folder_in_s3(corpus: Path, encoded: Path, s3: Any) -> None:
    """It is encoded, resumed and checked like one on a disk."""
    options = [f"--codes={corpus / 'codes'}", "--input", "s3://bucket/in/*.jsonl", "--append", END]
    command = ["encode", *options, "--output", "s3://bucket/out"]
    for _ in range(2):
        assert main(command) == 0
        s3.invalidate_cache()
        assert contents(s3, "bucket/out") == {path.name: path.read_bytes() for path in encoded.iterdir()}
        s3.rm_file("bucket/out/07.manifest.json")
    assert main(command) == 0 and main([*command, "--check"]) == 0


def test_a_folder_in_s3_is_not_a_file(
    corpus: Path, s3: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store opens it as an empty file, so a whole corpus would be empty; the error names a folder in a glob."""
    s3.pipe({"bucket/spark/a.jsonl/part": b"", "bucket/spark/b.jsonl": b'{"text": "b"}\n'})
    s3.pipe({"bucket/odd/[1].jsonl": b'{"text": "odd"}\n', "bucket/odd/1.jsonl": b'{"text": "1"}\n'})
    for source in ("s3://bucket/in", "s3://bucket/in/", "s3://bucket/spark/*.jsonl"):
        for output in (f"{tmp_path}/x.bin", f"{tmp_path}/folder/"):
            command = ["encode", f"--codes={corpus / 'codes'}", "--format", "jsonl", "--input", source]
            assert main([*command, "--output", output]) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert re.search(r"s3://bucket/(in/?|spark/a\.jsonl): a folder", line)
    assert list(Documents(["s3://bucket/odd/[1].jsonl"])) == [b"odd"]


def test_two_processes_that_start_a_folder_do_not_both_have_it(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one sees no manifest yet, and must not replace the first one's with its own."""
    again(corpus, tmp_path / "out")
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    seen = folders._files
    answers: Iterator[dict[str, int]] = iter([{}])
    monkeypatch.setattr(folders, "_files", lambda folder: next(answers, None) or seen(folder))
    with pytest.raises(UsageError, match="was started with special_tokens"):
        again(corpus, tmp_path / "out", append="other")
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_manifest_that_is_not_a_file_is_refused(corpus: Path, tmp_path: Path, kind: str) -> None:
    """It is neither replaced nor waited for."""
    if kind == "folder":
        (tmp_path / "manifest.json").mkdir()
    else:
        (tmp_path / "manifest.json").symlink_to("nowhere")
    with pytest.raises(MTScaffoldError, match=r"manifest\.json: exists and is not a file"):
        again(corpus, tmp_path)


def test_a_manifest_that_was_replaced_is_locked_again(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock on the new file is free: the process that completed the folder held the one on the old file."""
    opened: list[str] = []
    inodes = {(copy / "manifest.json").stat().st_ino}
    lock = fcntl.flock

    def replaced(stream: Any, operation: int) -> None:
        lock(stream, operation)
        opened.append(stream.name)
        if len(opened) == 1:
            (copy / "other").write_bytes((copy / "manifest.json").read_bytes())
            (copy / "other").replace(copy / "manifest.json")
            inodes.add((copy / "manifest.json").stat().st_ino)

    monkeypatch.setattr(fcntl, "flock", replaced)
    with folders._alone(str(copy)):
        assert len(opened) == 2 == len(inodes)
        with (copy / "manifest.json").open("rb") as stream, pytest.raises(BlockingIOError):
            lock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_names_need_not_be_utf8(corpus: Path, tmp_path: Path) -> None:
    """Inputs and outputs may have any names: the manifest shows them escaped, and is found again."""
    name = os.fsdecode(b"\xff")
    inputs, output = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.bin"
    inputs.write_bytes((corpus / "in" / "00.jsonl").read_bytes())
    encode_documents(corpus / "codes", [inputs], output)
    decode_documents(corpus / "codes", output, tmp_path / "back", format="jsonl")
    assert (tmp_path / f"{name}.manifest.json").is_file() and (tmp_path / "back").read_bytes()
    encode_folder(corpus / "codes", [inputs], tmp_path / "out")
    assert check_folder(corpus / "codes", tmp_path / "out", paths=[inputs]).documents == 300
