"""``mt-scaffold run --commands`` prints the commands of fairseq as one could type them."""

from __future__ import annotations

from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.cli import main
from mt_scaffold.experiment.runtime.fairseq import sees_gpu


@pytest.mark.skipif(sees_gpu(), reason="the page has the batch of the configuration, not that of these GPUs")
def test_the_page_shows_the_command_of_transformer_big(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is printed, but for ``--cpu``, which makes the batch of 8 GPUs alone; nothing is written."""
    monkeypatch.chdir(tmp_path)
    main(["run", str(ROOT / "configs" / "wmt14_en_de.yaml"), "--commands", "--only", "bpe"])
    printed = capsys.readouterr().out.replace("--update-freq 128", "--update-freq 16")
    trained = printed.partition("\nfairseq-generate ")[0].removesuffix(" \\\n    --cpu")
    assert f"```\n{trained}\n```\n" in (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert printed.count("fairseq-generate ") == 3 and not [*tmp_path.iterdir()]
