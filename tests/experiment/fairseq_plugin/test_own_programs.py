"""fairseq's own programs, from our subwords to sacreBLEU, as docs/fairseq.md has them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TINY_MODEL
from paths import ROOT

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")


@pytest.mark.long
def test_the_commands_of_the_page_go_from_text_to_bleu(tiny_words: Path, tmp_path: Path) -> None:
    """fairseq-generate could not load what fairseq-train had written, and no page walked this way."""
    page = (ROOT / "docs" / "fairseq.md").read_text(encoding="utf-8")
    commands = page.partition("<!-- run by a test -->\n```\n")[2].partition("```")[0]
    small = " ".join(TINY_MODEL[: TINY_MODEL.index("--max-tokens")])
    for shown, here in (("--symbols 8000", "--symbols 100"), ("--max-epoch 30", f"--max-epoch 1 --cpu {small}")):
        assert shown in commands
        commands = commands.replace(shown, here)
    for part, name in (("train", "train"), ("valid", "valid"), ("test", "odd.1")):
        for language in ("en", "de"):
            shutil.copy(tiny_words / f"{name}.{language}", tmp_path / f"{part}.{language}")
    shutil.copy(tiny_words / "odd.1.de", tmp_path / "reference.de")
    program = tmp_path / "bin" / "mt-scaffold"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mt_scaffold "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])}
    command = ["bash", "-e", "-o", "pipefail", "-c", commands]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r'"score": \d+\.\d', done.stdout)
    assert len((tmp_path / "hypothesis.de").read_text(encoding="utf-8").splitlines()) == 13
