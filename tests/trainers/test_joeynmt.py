"""JoeyNMT trains and translates through ``mt_scaffold.as_subword_nmt``, as docs/trainers.md shows."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from trainers import (
    LANGUAGES,
    OURS,
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

if importlib.util.find_spec("joeynmt") is None:
    pytest.skip("JoeyNMT is not installed; run make test-integrations", allow_module_level=True)

PROBE = Path(__file__).parent / "subwords_of_joeynmt.py"
SHIM = "-m mt_scaffold.as_subword_nmt"
Probe = Callable[..., list[str]]


@pytest.fixture(scope="module", params=["scaffold", "bpe"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, codes of each kind and the configuration of the page."""
    folder = tmp_path_factory.mktemp(request.param)
    prepare(folder, request.param)
    (folder / "joeynmt.yaml").write_text(file_of_the_page("joeynmt.yaml"))
    return folder


def probe(folder: Path, mode: str, start: str = SHIM, config: str = "joeynmt.yaml") -> list[str]:
    """Return the subwords that JoeyNMT makes of its training text: source, then target."""
    name, *found = run(f"python {start} {PROBE} {config} {mode} 2> /dev/null", folder).splitlines()
    assert (name == str(OURS)) == (start == SHIM)
    return found


def test_it_trains_on_the_subwords_of_apply_bpe(folder: Path) -> None:
    """Line by line, on both sides."""
    assert probe(folder, "plain") == [line for language in LANGUAGES for line in subwords(folder, f"train.{language}")]


def test_dropout_resamples(folder: Path) -> None:
    """The configuration's dropout is applied on the fly; with original BPE, the draws are those of subword-nmt."""
    sampled = probe(folder, "dropout")
    size = SIZES["train"]
    check_dropout(folder, "train.en", sampled[:size])
    check_dropout(folder, "train.de", sampled[size:])
    assert probe(folder, "dropout") == sampled
    if folder.name.startswith("bpe"):
        assert probe(folder, "dropout", start="") == sampled


def test_rare_subwords_are_split(folder: Path) -> None:
    """With ``voc_min_freq``, JoeyNMT gives the tokeniser its vocabulary, and ours filters as ``apply-bpe`` does."""
    config = file_of_the_page("joeynmt.yaml").replace("level: bpe", "level: bpe\n    voc_min_freq: 20")
    assert config.count("voc_min_freq") == 2
    (folder / "rare.yaml").write_text(config)
    expected = []
    for language in LANGUAGES:
        counts = Counter(" ".join(subwords(folder, f"train.{language}")).split())
        frequent = [subword for subword, count in counts.items() if count >= 20]
        filtering = BPE(folder / "codes", vocab=frequent)
        expected += [filtering.segment(line) for line in lines(folder / f"train.{language}")]
    assert expected != [line for language in LANGUAGES for line in subwords(folder, f"train.{language}")]
    assert probe(folder, "plain", config="rare.yaml") == expected


def test_it_trains_and_translates(folder: Path) -> None:
    """The page's commands: losses fall, the vocabularies are of our subwords, every sentence has a translation."""
    run(commands_of_the_page("JoeyNMT"), folder)
    log = (folder / "joeynmt" / "train.log").read_text(encoding="utf-8")
    check_losses([float(loss) for loss in re.findall(r"Batch Loss: +([\d.]+|nan|inf),", log)])
    for side, language in zip(("src", "trg"), LANGUAGES, strict=True):
        counts = Counter(" ".join(subwords(folder, f"train.{language}")).split())
        by_frequency = sorted(counts, key=lambda subword: (-counts[subword], subword))
        assert lines(folder / "joeynmt" / f"{side}_vocab.txt") == ["<unk>", "<pad>", "<s>", "</s>", *by_frequency]
    # The page's vocabulary for tied embeddings consists of all subwords of the segmented text.
    both = [line for language in LANGUAGES for line in subwords(folder, f"train.{language}")]
    assert sorted(lines(folder / "vocab.txt")) == sorted(set(" ".join(both).split()))
    joint = file_of_the_page("joeynmt.yaml").replace("level: bpe", "level: bpe\n    voc_file: vocab.txt")
    (folder / "joint.yaml").write_text(joint)
    assert probe(folder, "plain", config="joint.yaml") == both
    translated = lines(folder / "test.translated.de")
    assert len(translated) == SIZES["test"] and all(translated) and not any("@@" in line for line in translated)
