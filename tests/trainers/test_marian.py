"""Marian trains on the stream of scripts/marian_stream.py, resumes and translates, as docs/trainers.md shows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from trainers import ROOT, SIZES, check_losses, commands_of_the_page, file_of_the_page, lines, prepare, run

if importlib.util.find_spec("pymarian") is None:
    pytest.skip("Marian is not installed; run make test-integrations", allow_module_level=True)

COST = re.compile(r"Up\. ([\d,]+) : .*? : Cost ([\d.]+|nan|inf) :")


@pytest.fixture(scope="module", params=["scaffold", "bpe"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, codes of each kind, the configuration of the page and the script."""
    folder = tmp_path_factory.mktemp(request.param)
    prepare(folder, request.param)
    (folder / "marian.yaml").write_text(file_of_the_page("marian.yaml"))
    (folder / "scripts").symlink_to(ROOT / "scripts")
    return folder


def test_it_trains_resumes_and_translates(folder: Path) -> None:
    """The page's commands: costs fall, the training resumes where it stopped, every sentence has a translation."""
    printed = run(commands_of_the_page("Marian"), folder)
    first, second = printed.split("Training finished")[:2]
    costs = [[(int(update), float(cost)) for update, cost in COST.findall(part)] for part in (first, second)]
    updates = [update for part in costs for update, _ in part]
    assert updates == list(range(10, 101, 10)) and costs[1][0][0] == 70
    check_losses([cost for part in costs for _, cost in part])
    assert "Restoring the corpus state" not in second
    translated = lines(folder / "test.translated.de")
    assert len(translated) == SIZES["test"] and all(translated) and not any("@@" in line for line in translated)
