"""The steps for datatrove: several tasks or nodes give the counts and ids of one process, even killed and resumed."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from mt_scaffold import Documents, Scaffold, learn, merge_counts, write_counts
from mt_scaffold.corpus.id_files import read_index
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.segment.encode import encode_documents

if importlib.util.find_spec("datatrove") is None:
    pytest.skip("datatrove is not installed; run make test-integrations", allow_module_level=True)

END = "<|endoftext|>"
# The number of documents in each shard, and so in each task.
SHARDS = (300, 0, 200, 1)
# python pipeline.py STEP WORKERS FIRST-TASK TASKS [stop]
PIPELINE = """\
import sys
import time

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader

from mt_scaffold.integrations.datatrove import CodesTokenizer, MegatronCodesTokenizer, WordCounter
from mt_scaffold.integrations.documents import DocumentEncoder, WordCounting


def stops(data, rank, world_size):
    for number, document in enumerate(data):
        if rank == 2 and number == 150:
            print("within task 2", flush=True)
            time.sleep(600)
        yield document


def main(folder, steps, workers, first, number, *options):
    encoder = DocumentEncoder("codes", append="<|endoftext|>")
    made = {
        "counts": WordCounter(f"{folder}/counts", WordCounting(pretokenise="gpt2")),
        "ids": CodesTokenizer(f"{folder}/ids", encoder, shuffle_documents=False, batch_size=100),
        "megatron": MegatronCodesTokenizer(f"{folder}/megatron", encoder, batch_size=100),
    }
    for step in steps.split(","):
        LocalPipelineExecutor(
            [JsonlReader("shards"), *([stops] if options else []), made[step]],
            tasks=4, workers=int(workers), local_rank_offset=int(first), local_tasks=int(number),
            logging_dir=f"{folder}/logs/{step}",
        ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
"""


SCRIPTS = Path(__file__).resolve().parents[2] / "docs" / "corpora"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shards and codes, and the counts and ids of one process."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "shards").mkdir()
    (folder / "pipeline.py").write_text(PIPELINE)
    for script in SCRIPTS.glob("*.py"):
        (folder / script.name).write_bytes(script.read_bytes())
    texts = (f"{source}\r\n{target}  ✓" for source, target in sentence_pairs(3))
    for number, size in enumerate(SHARDS):
        (folder / "shards" / f"{number}.jsonl").write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in itertools.islice(texts, size))
        )
    shards = [folder / "shards" / f"{number}.jsonl" for number in range(len(SHARDS))]
    write_counts(folder / "whole.counts", documents=Documents(shards), pretokenise="gpt2")
    learn(method=Scaffold(400), counts=[folder / "whole.counts"], outfile=folder / "codes")
    encode_documents(folder / "codes", shards, folder / "whole.bin", append=END)
    return folder


def start(corpus: Path, *arguments: str, script: str = "pipeline.py") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        cwd=corpus,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def check(corpus: Path, folder: Path) -> None:
    """Compare the counts and ids of all tasks, in order, with those of one process."""
    merge_counts(folder / "merged.counts", [folder / "counts" / "*.counts"])
    assert (folder / "merged.counts").read_bytes() == (corpus / "whole.counts").read_bytes()
    tasks = sorted((folder / "ids").glob("*.ds"))
    assert len(tasks) == len(SHARDS)
    assert b"".join(task.read_bytes() for task in tasks) == (corpus / "whole.bin").read_bytes()
    sizes = [numpy.diff(numpy.fromfile(f"{task}.index", "<u8"), prepend=numpy.uint64(0)) for task in tasks]
    assert [len(each) for each in sizes] == list(SHARDS)
    whole = itertools.chain.from_iterable(read_index(corpus / "whole.bin").sizes())
    assert numpy.concatenate(sizes).tolist() == list(whole)


def test_four_tasks_give_the_counts_and_ids_of_one_process(corpus: Path) -> None:
    """The scripts of the page, with datatrove's merger."""
    for script in ("count.py", "encode.py"):
        finish(start(corpus, script=script))
    check(corpus, corpus)
    assert (corpus / "merged" / "000_train.ds").read_bytes() == (corpus / "whole.bin").read_bytes()


def test_files_for_megatron(corpus: Path) -> None:
    """datatrove's Megatron writer and ``encode --index megatron`` give the same bytes."""
    finish(start(corpus, "tasks", "megatron", "1", "0", "4"))
    for number in range(len(SHARDS)):
        shard, ours = corpus / "shards" / f"{number}.jsonl", corpus / "ours.bin"
        encode_documents(corpus / "codes", [shard], ours, append=END, index="megatron")
        theirs = corpus / "tasks" / "megatron" / f"{number:05d}_tokens.bin"
        for ending in (".bin", ".idx"):
            assert theirs.with_suffix(ending).read_bytes() == ours.with_suffix(ending).read_bytes()


def test_two_nodes_share_the_tasks(corpus: Path) -> None:
    """The executor is started twice, with different ranks, in one folder."""
    nodes = [start(corpus, "nodes", "counts,ids", "2", first, "2") for first in ("0", "2")]
    for node in nodes:
        finish(node)
    check(corpus, corpus / "nodes")


def test_killed_it_resumes_without_repeating_finished_tasks(corpus: Path) -> None:
    """It is killed within the third task, whose file is incomplete; the first two are left untouched."""
    folder = corpus / "killed"
    finish(start(corpus, "killed", "counts", "1", "0", "4"))
    process = start(corpus, "killed", "ids", "1", "0", "4", "stop")
    assert process.stdout is not None
    while "within task 2" not in (line := process.stdout.readline()):
        assert line, "ended without a stop"
    # The executor's manager is a separate process, which holds the pipe.
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    finished = [folder / "ids" / f"{number:05d}_unshuffled.ds" for number in (0, 1)]
    made = [path.stat().st_mtime_ns for path in finished]
    assert not (folder / "logs" / "ids" / "completions" / "00002").exists()
    assert "Skipping 2 already completed tasks" in finish(start(corpus, "killed", "ids", "1", "0", "4"))
    assert [path.stat().st_mtime_ns for path in finished] == made
    check(corpus, folder)


def test_shuffled_and_wide_ids(corpus: Path, tmp_path: Path) -> None:
    """datatrove's shuffler keeps every document whole; with more than 65,536 ids, each takes 4 bytes everywhere."""
    from datatrove.data import Document

    from mt_scaffold.integrations.datatrove import CodesTokenizer, MegatronCodesTokenizer
    from mt_scaffold.integrations.documents import DocumentEncoder

    texts = [f"document {number} ✓" * number for number in range(1, 30)]
    encoder = DocumentEncoder((corpus / "codes").read_bytes(), append=END)
    wide = DocumentEncoder(corpus / "codes", special_tokens=[f"<{number}>" for number in range(1 << 16)], append=END)
    for each, kind in ((encoder, "<u2"), (wide, "<u4")):
        step = CodesTokenizer(str(tmp_path), each, seed=1, batch_size=10)
        step.run((Document(text, str(number)) for number, text in enumerate(texts)))
        ends = numpy.fromfile(tmp_path / "00000_00000_doc_shuffled.ds.index", "<u8").tolist()
        ids = numpy.fromfile(tmp_path / "00000_00000_doc_shuffled.ds", kind)
        found = [part.tolist() for part in numpy.split(ids, ends[:-1])]
        expected = [each.encode([text])[0].tolist() for text in texts]
        assert found != expected and sorted(found) == sorted(expected)
        MegatronCodesTokenizer(str(tmp_path), each).run(iter([Document(text, "") for text in texts]))
        assert numpy.fromfile(tmp_path / "00000_tokens.bin", kind).tolist() == list(itertools.chain(*expected))
        assert read_index(tmp_path / "00000_tokens.bin", "megatron").width == each.width


def test_options_that_do_not_fit_are_refused() -> None:
    """A loss mask needs positions in the text; the token at the end of a document belongs to the encoder."""
    from mt_scaffold.integrations.datatrove import CodesTokenizer, MegatronCodesTokenizer
    from mt_scaffold.integrations.documents import DocumentEncoder

    encoder = DocumentEncoder("codes")
    with pytest.raises(UsageError, match="save_loss_metadata needs a tokenizer that locates characters"):
        CodesTokenizer("ids", encoder, save_loss_metadata=True)
    for step in (CodesTokenizer, MegatronCodesTokenizer):
        with pytest.raises(UsageError, match="eos_token is not supported; give append= to the DocumentEncoder"):
            step("ids", encoder, eos_token=END)
    with pytest.raises(UsageError, match="duplicate special token 'a'"):
        DocumentEncoder("codes", special_tokens=["a", "a"])
