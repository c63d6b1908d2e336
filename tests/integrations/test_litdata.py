"""Files of ids as litdata's chunks, which litgpt streams, and as nanoGPT's memory map."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold import BPE, Scaffold, encode_documents, learn
from mt_scaffold.integrations.litdata import documents_of

numpy = pytest.importorskip("numpy", reason="what the files of ids are read with")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
END = "<|endoftext|>"
TEXTS = [f"lower and lowest {number}" for number in range(400)] + ["", "Straße"]
BLOCK = 65
READ = f"""
import litdata, numpy, torch
blocks = litdata.StreamingDataset("chunks", item_loader=litdata.TokensLoader(block_size={BLOCK}), shuffle=False)
batches = [batch.long() for batch in litdata.StreamingDataLoader(blocks, batch_size=4)]
numpy.save("blocks.npy", torch.cat(batches).numpy())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and codes."""
    folder = tmp_path_factory.mktemp("litdata")
    (folder / "text").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    learn(folder / "text", Scaffold(100), folder / "codes", pretokenise="gpt2")
    return folder


@pytest.mark.parametrize("index", ["fairseq", "megatron"])
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_the_ids_of_each_document(folder: Path, tmp_path: Path, dtype: str, index: str) -> None:
    """Whatever the type of the ids, and without documents that have none."""
    encode_documents(folder / "codes", [folder / "text"], tmp_path / "x.bin", dtype=dtype, index=index)
    bpe = BPE(folder / "codes")
    found = list(documents_of(tmp_path / "x.bin"))
    assert {each.dtype for each in found} == {numpy.dtype("u2" if dtype == "uint16" else "i4")}
    assert [each.tolist() for each in found] == [bpe.encode(text) for text in TEXTS if text]
    (tmp_path / "empty").write_bytes(b"")
    encode_documents(folder / "codes", [tmp_path / "empty"], tmp_path / "x.bin", dtype=dtype, index=index)
    assert list(documents_of(tmp_path / "x.bin")) == []


@pytest.mark.skipif(importlib.util.find_spec("litdata") is None, reason="litdata is not installed")
def test_litdata_streams_all_blocks(folder: Path) -> None:
    """The page's script, then litgpt's way of reading: consecutive blocks of the file of ids."""
    encode_documents(folder / "codes", [folder / "text"], folder / "train.bin", append=END)
    (script,) = re.findall(r"```python\n# chunks\.py\n(.*?)```", PAGE, re.DOTALL)
    (folder / "chunks.py").write_text(script)
    for command in (["chunks.py"], ["-c", READ]):
        done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    ids = numpy.fromfile(folder / "train.bin", "<u2")
    blocks = len(ids) // BLOCK
    assert blocks > 20
    assert numpy.load(folder / "blocks.npy").tolist() == ids[: blocks * BLOCK].reshape(-1, BLOCK).tolist()


def test_nanogpt_maps_the_file(folder: Path) -> None:
    """Inputs and targets as nanoGPT's training takes them from any position, with no document lost."""
    encode_documents(folder / "codes", [folder / "text"], folder / "train.bin", append=END)
    data = numpy.memmap(folder / "train.bin", dtype=numpy.uint16, mode="r")
    bpe = BPE(folder / "codes", special_tokens=[END])
    assert bpe.decode(data.tolist()) == "".join(text + END for text in TEXTS)
    for begin in (0, 17, len(data) - BLOCK - 1):
        inputs, targets = data[begin : begin + BLOCK], data[begin + 1 : begin + 1 + BLOCK]
        assert inputs[1:].tolist() == targets[:-1].tolist() and len(targets) == BLOCK
