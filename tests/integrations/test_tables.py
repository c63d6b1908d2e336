"""Tables of documents → counts and ids: what Ray Data maps, and Spark alike."""

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

from mt_scaffold import BPE, Scaffold, learn, write_counts
from mt_scaffold.errors import MTScaffoldError, SpecialTokenError

pyarrow = pytest.importorskip("pyarrow", reason="tables are pyarrow's")

from pyarrow import parquet  # noqa: E402

from mt_scaffold.integrations.arrow import CountTable, EncodeTable, merge_rows  # noqa: E402
from mt_scaffold.integrations.documents import DocumentEncoder, WordCounting  # noqa: E402

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
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


def tables() -> list[Any]:
    table = pyarrow.table({"text": TEXTS, "id": list(range(len(TEXTS)))})
    return [table.slice(0, 20), table.slice(20, 0), table.slice(20)]


def test_tables_give_the_ids_and_counts_of_one_call(folder: Path) -> None:
    """The other columns stay; ids are as narrow as in files of ids; what is pickled reads the codes again."""
    step = pickle.loads(pickle.dumps(EncodeTable(DocumentEncoder(folder / "codes", append=END))))
    done = [step(table) for table in tables()]
    assert {each.schema.field("ids").type for each in done} == {pyarrow.large_list(pyarrow.uint16())}
    assert pyarrow.concat_tables(done).to_pydict() == {
        "text": TEXTS,
        "id": list(range(len(TEXTS))),
        "ids": expected(folder),
    }
    counted = [CountTable(GPT2)(table) for table in tables()]
    merge_rows(folder / "merged.counts", (row for table in counted for row in table.to_pylist()))
    assert (folder / "merged.counts").read_bytes() == (folder / "whole.counts").read_bytes()


def test_special_tokens_in_documents(folder: Path) -> None:
    """An error, an id or text, as for ``encode_documents``; a null is an error, too."""
    table = pyarrow.table({"text": [f"a{END}"]})
    encoders = {
        in_text: DocumentEncoder(folder / "codes", special_tokens=[END], in_text=in_text)
        for in_text in ("refuse", "token", "text")
    }
    bpe = BPE(folder / "codes", special_tokens=[END])
    with pytest.raises(SpecialTokenError):
        EncodeTable(encoders["refuse"])(table)
    for in_text, ids in (
        ("token", bpe.encode(f"a{END}", allowed_special="all")),
        ("text", bpe.encode(f"a{END}", disallowed_special=())),
    ):
        assert EncodeTable(encoders[in_text])(table)["ids"].to_pylist() == [ids]
    with pytest.raises(MTScaffoldError, match="column 'text' has 1 nulls"):
        EncodeTable(encoders["text"])(pyarrow.table({"text": ["a", None]}))


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_on_two_cpus(folder: Path) -> None:
    """Counts, codes and ids of the page's script are those of one process."""
    (folder / "shards").mkdir()
    for number in range(4):
        (folder / "shards" / f"{number}.jsonl").write_text(
            "".join(json.dumps({"text": text, "id": id}) + "\n" for id, text in enumerate(TEXTS) if id % 4 == number)
        )
    (script,) = re.findall(r"```python\n# on_ray\.py\n(.*?)```", PAGE, re.DOTALL)
    (folder / "on_ray.py").write_text(
        "import ray; ray.init(num_cpus=2, include_dashboard=False)\n" + script.replace("32000", "50")
    )
    # On a busy machine, Ray takes longer to start than it waits.
    environment = os.environ | {"RAY_raylet_start_wait_time_s": "240"}
    done = subprocess.run([sys.executable, "on_ray.py"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "all.counts").read_bytes() == (folder / "whole.counts").read_bytes()
    rows = parquet.read_table(folder / "ids").sort_by("id").to_pydict()
    assert rows["text"] == TEXTS and rows["ids"] == expected(folder)
