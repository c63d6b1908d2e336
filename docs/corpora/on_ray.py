"""Count and encode in Ray Data: docs/corpora.md."""

from pathlib import Path

import pyarrow
import ray

from mt_scaffold import Scaffold, learn
from mt_scaffold.integrations.documents import DocumentEncoder, WordCounting

counting = WordCounting(pretokenise="gpt2")
encoder = DocumentEncoder("/shared/codes", append="<|endoftext|>")


def count(table):
    return pyarrow.table({"counts": [counting.counts(table["text"].to_pylist())]})


def encode(table):
    ids, offsets = encoder.encode(table["text"].to_pylist())
    return table.append_column("ids", pyarrow.LargeListArray.from_arrays(offsets, ids))


documents = ray.data.read_json("shards", file_extensions=["jsonl"])
counted = documents.map_batches(count, batch_format="pyarrow", batch_size=50_000)
Path("counts").mkdir()
for number, row in enumerate(counted.iter_rows()):
    Path(f"counts/{number}.counts").write_bytes(row["counts"])
learn(method=Scaffold(32000), counts=sorted(Path("counts").iterdir()), outfile="/shared/codes")
documents.map_batches(encode, batch_format="pyarrow").write_parquet("ids")
