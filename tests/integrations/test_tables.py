"""The scripts of docs/corpora: Ray Data on tables of documents, litdata's chunks, nanoGPT's file."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import BPE, Scaffold, encode_documents, learn, merge_counts, write_counts
from mt_scaffold.errors import SpecialTokenError

pyarrow = pytest.importorskip("pyarrow", reason="tables are pyarrow's")

from pyarrow import parquet  # noqa: E402

from mt_scaffold.integrations.documents import DocumentEncoder, WordCounting  # noqa: E402

SCRIPTS = Path(__file__).resolve().parents[2] / "docs" / "corpora"
END = "<|endoftext|>"
TEXTS = [f"lower and lowest ✓ {number}\r\n  newer" for number in range(50)] + ["", "\n", "Straße"]
GPT2 = WordCounting(pretokenise="gpt2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with codes, and the counts of all texts."""
    folder = tmp_path_factory.mktemp("tables")
    write_counts(folder / "whole.counts", documents=TEXTS, pretokenise="gpt2")
    learn(method=Scaffold(50), counts=[folder / "whole.counts"], outfile=folder / "codes")
    return folder


def expected(folder: Path) -> list[list[int]]:
    bpe = BPE(folder / "codes", special_tokens=[END])
    return [[*bpe.encode(text), bpe.special_tokens[END]] for text in TEXTS]


def functions_of(name: str) -> dict[str, Any]:
    """Return the functions that a script of the docs defines before it uses a package that is not installed."""
    script = re.split(r"\n\n\n(?=documents = |if __name__)", (SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))[0]
    found: dict[str, Any] = {}
    exec(re.sub(r"^import (ray|litdata)$", "", script, flags=re.MULTILINE), found)
    return found


def test_tables_give_the_ids_and_counts_of_one_call(folder: Path) -> None:
    """The other columns stay; ids are as narrow as in files of ids; an unpickled encoder reads the codes again."""
    page = functions_of("on_ray")
    page["encoder"] = pickle.loads(pickle.dumps(DocumentEncoder(folder / "codes", append=END)))
    table = pyarrow.table({"text": TEXTS, "id": list(range(len(TEXTS)))})
    tables = [table.slice(0, 20), table.slice(20, 0), table.slice(20)]
    done = [page["encode"](each) for each in tables]
    assert {each.schema.field("ids").type for each in done} == {pyarrow.large_list(pyarrow.uint16())}
    expected_table = {"text": TEXTS, "id": list(range(len(TEXTS))), "ids": expected(folder)}
    assert pyarrow.concat_tables(done).to_pydict() == expected_table
    paths = []
    for number, row in enumerate(row for each in tables for row in page["count"](each).to_pylist()):
        paths.append(folder / f"{number}.counts")
        paths[-1].write_bytes(row["counts"])
    merge_counts(folder / "merged.counts", paths)
    assert (folder / "merged.counts").read_bytes() == (folder / "whole.counts").read_bytes()


def test_nanogpt_maps_the_file(folder: Path) -> None:
    """As nanoGPT's training maps it, with no document lost."""
    numpy = pytest.importorskip("numpy", reason="the script reads files of ids with it")
    path = folder / "nanogpt.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    encode_documents(folder / "codes", [path], folder / "train.bin", append=END)
    data = numpy.memmap(folder / "train.bin", dtype=numpy.uint16, mode="r")
    assert data.tolist() == [id for ids in expected(folder) for id in ids]


def test_special_tokens_in_documents(folder: Path) -> None:
    """They are an error, an id or text, as in ``encode_documents``."""
    encoders = {
        in_text: DocumentEncoder(folder / "codes", special_tokens=[END], in_text=in_text)
        for in_text in ("refuse", "token", "text")
    }
    bpe = BPE(folder / "codes", special_tokens=[END])
    with pytest.raises(SpecialTokenError):
        encoders["refuse"].encode([f"a{END}"])
    for in_text, ids in (
        ("token", bpe.encode(f"a{END}", allowed_special="all")),
        ("text", bpe.encode(f"a{END}", disallowed_special=())),
    ):
        assert encoders[in_text].encode([f"a{END}"])[0].tolist() == ids


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_on_two_cpus(folder: Path) -> None:
    """Counts, codes and ids from the page's script equal those of a single process."""
    (folder / "shards").mkdir()
    for number in range(4):
        (folder / "shards" / f"{number}.jsonl").write_text(
            "".join(json.dumps({"text": text, "id": id}) + "\n" for id, text in enumerate(TEXTS) if id % 4 == number)
        )
    script = (SCRIPTS / "on_ray.py").read_text(encoding="utf-8")
    script = script.replace("32000", "50").replace("/shared/codes", str(folder / "ray.codes"))
    (folder / "on_ray.py").write_text("import ray; ray.init(num_cpus=2, include_dashboard=False)\n" + script)
    # On a busy machine, Ray takes longer to start than it waits.
    environment = os.environ | {"RAY_raylet_start_wait_time_s": "240"}
    done = subprocess.run([sys.executable, "on_ray.py"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "ray.codes").read_bytes() == (folder / "codes").read_bytes()
    rows = parquet.read_table(folder / "ids").sort_by("id").to_pydict()
    assert rows["text"] == TEXTS and rows["ids"] == expected(folder)
