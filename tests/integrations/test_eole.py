"""eole builds its vocabulary, trains and translates through ``mt_scaffold.as_subword_nmt``, as docs/trainers.md has it."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
from trainers import (
    LANGUAGES,
    SIZES,
    check_dropout,
    check_losses,
    commands_of_the_page,
    file_of_the_page,
    lines,
    prepare,
    run,
    subwords,
)

from mt_scaffold import BPE

if importlib.util.find_spec("eole") is None:
    pytest.skip("eole is not installed; run make test-integrations", allow_module_level=True)

SIDES = dict(zip(("src", "tgt"), LANGUAGES, strict=True))


@pytest.fixture(scope="module", params=["scaffold", "bpe"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, codes of each kind and the configuration of the page; the same without dropout."""
    folder = tmp_path_factory.mktemp(request.param)
    prepare(folder, request.param)
    config = file_of_the_page("eole.yaml")
    (folder / "eole.yaml").write_text(config)
    plain, replaced = re.subn(r"(_subword_alpha): 0\.1", r"\1: 0.0", config)
    assert replaced == 2
    (folder / "plain.yaml").write_text(re.sub(r"\beole/", "plain/", plain).replace("save_data: eole", "save_data: plain"))
    return folder


def samples(folder: Path, config: str, data: str, start: str = "python -m mt_scaffold.as_subword_nmt") -> dict[str, list[str]]:
    """Return the lines of each language that eole would train on."""
    eole = f"{start} -m eole.bin.main"
    run(f"{eole} build_vocab -config {config} -n_sample -1", folder)
    run(f"{eole} train -config {config} -n_sample {SIZES['train']}", folder)
    (sources,) = (folder / data / "samples").rglob("*.src")
    return {language: lines(sources.with_suffix(f".{side}")) for side, language in SIDES.items()}
