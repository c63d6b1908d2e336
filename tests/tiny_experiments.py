"""Helpers for tests that run whole experiments: the smallest transformer, and the forms of a result."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Under ``train: {options: ...}``, at the indentation of a configuration.
TRANSFORMER = """\
    arch: transformer
    encoder-layers: 1
    decoder-layers: 1
    encoder-embed-dim: 16
    decoder-embed-dim: 16
    encoder-ffn-embed-dim: 16
    decoder-ffn-embed-dim: 16
    encoder-attention-heads: 2
    decoder-attention-heads: 2
    share-all-embeddings: true
    optimizer: adam
    lr: 0.005
    max-tokens: 300
"""


def forms_of_the_result(output: Path, done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the comparison and the page by their suffixes, "" for a missing one, and as ``end`` the run's output."""
    files = [*(output / f"comparison.{kind}" for kind in ("txt", "md", "json", "tex")), output / "report.html"]
    forms = {path.suffix: path.read_text(encoding="utf-8") if path.exists() else "" for path in files}
    return forms | {"end": done.stdout}
