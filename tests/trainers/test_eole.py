"""eole counts, trains and translates through ``mt_scaffold.as_subword_nmt``, as docs/trainers.md shows."""

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
    """A folder with texts, codes of each kind, and the configuration of the page with and without dropout."""
    folder = tmp_path_factory.mktemp(request.param)
    prepare(folder, request.param)
    config = file_of_the_page("eole.yaml")
    (folder / "eole.yaml").write_text(config)
    plain, replaced = re.subn(r"(_subword_alpha): 0\.1", r"\1: 0.0", config)
    assert replaced == 2
    (folder / "plain.yaml").write_text(
        re.sub(r"\beole/", "plain/", plain).replace("save_data: eole", "save_data: plain")
    )
    return folder


def samples(folder: Path, config: str, data: str, start: str = "-m mt_scaffold.as_subword_nmt") -> list[str]:
    """Return the lines that eole would train on, source then target, after it has built its vocabulary."""
    eole = f"python {start} -m eole.bin.main"
    run(f"{eole} build_vocab -config {config} -n_sample -1", folder)
    run(f"{eole} train -config {config} -n_sample {SIZES['train']}", folder)
    (sources,) = (folder / data / "samples").rglob("*.src")
    return [line for side in SIDES for line in lines(sources.with_suffix(f".{side}"))]


def test_it_trains_on_the_subwords_of_apply_bpe(folder: Path) -> None:
    """Line by line, on both sides; its vocabularies count the same subwords."""
    expected = {language: subwords(folder, f"train.{language}") for language in LANGUAGES}
    assert samples(folder, "plain.yaml", "plain") == [line for language in LANGUAGES for line in expected[language]]
    for language in LANGUAGES:
        rows = [line.rsplit("\t", 1) for line in lines(folder / "plain" / f"vocab.{language}")]
        assert {subword: int(count) for subword, count in rows} == Counter(" ".join(expected[language]).split())


def test_dropout_resamples(folder: Path) -> None:
    """The configuration's dropout is applied on the fly; with original BPE, the draws are those of subword-nmt."""
    sampled = samples(folder, "eole.yaml", "eole")
    check_dropout(folder, "train.en", sampled[: SIZES["train"]])
    check_dropout(folder, "train.de", sampled[SIZES["train"] :])
    if folder.name.startswith("bpe"):
        assert samples(folder, "eole.yaml", "eole", start="") == sampled


def test_without_the_start_scaffold_codes_are_refused(tmp_path: Path) -> None:
    """subword-nmt cannot read them, so a command started without our package cannot segment differently."""
    prepare(tmp_path, "scaffold")
    (tmp_path / "eole.yaml").write_text(file_of_the_page("eole.yaml"))
    with pytest.raises(AssertionError, match="Error: invalid line"):
        run("python -m eole.bin.main build_vocab -config eole.yaml -n_sample -1", tmp_path)


def test_it_trains_and_translates(folder: Path) -> None:
    """The page's commands: losses fall, the vocabularies are of our subwords, every sentence has a translation."""
    run(commands_of_the_page("eole"), folder)
    log = (folder / "eole.log").read_text(encoding="utf-8")
    check_losses([float(loss) for loss in re.findall(r"Step .*; xent: +([\d.]+|nan|inf);", log)])
    forms = set(BPE(folder / "codes").surface_forms())
    for language in LANGUAGES:
        known = {line.rsplit("\t", 1)[0] for line in lines(folder / "eole" / f"vocab.{language}")}
        assert all(len(subword.removesuffix("@@")) == 1 for subword in known - forms) and len(known & forms) > 100
    translated = lines(folder / "test.translated.de")
    assert len(translated) == SIZES["test"] and all(translated) and not any("@@" in line for line in translated)
