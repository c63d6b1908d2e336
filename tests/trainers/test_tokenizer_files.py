"""Files of tokenizers in other programs: in version 1 of the library, and in transformers.js."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trainers import ROOT

from mt_scaffold import learn_bpe
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.integrations.tokenizers import export_tokenizers, to_tokenizers

VERSION_1, JAVASCRIPT = (Path(sys.prefix) / name for name in ("tokenizers-1", "javascript"))
PROGRAM = """
import fs from "node:fs";
import { PreTrainedTokenizer } from "@huggingface/transformers";
const settings = { clean_up_tokenization_spaces: false };
const tokenizer = new PreTrainedTokenizer(JSON.parse(fs.readFileSync(process.argv[2])), settings);
for (const line of fs.readFileSync("lines", "utf8").split("\\n").slice(0, -1)) {
  const ids = tokenizer.encode(line);
  console.log(JSON.stringify([ids, tokenizer.decode(ids, { skip_special_tokens: true })]));
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 lines of text, and codes and tokenizers of characters and bytes."""
    folder = tmp_path_factory.mktemp("files")
    pairs = sentence_pairs(1, stems=60)
    (folder / "text").write_text("".join(f"{line}\n" for _ in range(250) for line in next(pairs)), encoding="utf-8")
    for name in ("spaces", "gpt2"):
        learn_bpe(folder / "text", folder / name, 150, algorithm="bpe", pretokenise=name)
        export_tokenizers(folder / name, folder / f"{name}.json", pattern="published", check=folder / "text")
    return folder


@pytest.mark.skipif(not VERSION_1.exists(), reason="make test-integrations installs version 1 of tokenizers")
def test_version_1_writes_and_checks_the_same_files(folder: Path) -> None:
    """It has no models, decoders and Regex, and reads published patterns only; others are refused in one line."""

    def run(command: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mt_scaffold", *command.split()], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (VERSION_1, ROOT)))},
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    for options in ("--codes spaces", "--codes gpt2 --pattern published --check text"):
        run(f"export-tokenizers {options} --output written.json")
        assert (folder / "written.json").read_bytes() == (folder / f"{options.split()[1]}.json").read_bytes()
    assert "the same as the original on all 500 lines" in run("import gpt2.json --output imported --check text")
    said = run("export-tokenizers --codes gpt2 --output exact.json --check text", 1)
    assert "check with a version before 1" in said and said.count("\n") == 1


@pytest.mark.skipif(not JAVASCRIPT.exists(), reason="make test-integrations installs transformers.js if there is npm")
@pytest.mark.parametrize("pattern", ["exact", "published"])
@pytest.mark.parametrize("name", ["spaces", "gpt2"])
def test_transformers_js_gives_the_same_ids_and_text(folder: Path, name: str, pattern: str) -> None:
    """It read a pattern that is a string as a group, which kept the spaces between words."""
    export_tokenizers(folder / name, folder / "js.json", pattern=pattern)
    lines = [*(folder / "text").read_text("utf-8").splitlines(), "the chairs , or the red chair ?"]
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (JAVASCRIPT / "ids.mjs").write_text(PROGRAM, encoding="utf-8")
    command = ["node", str(JAVASCRIPT / "ids.mjs"), "js.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tokenizer = to_tokenizers(folder / name, pattern=pattern)
    expected = [[ids, tokenizer.decode(ids)] for ids in (tokenizer.encode(line).ids for line in lines)]
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
