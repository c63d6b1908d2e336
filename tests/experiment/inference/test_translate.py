"""Translating through fairseq: every sentence, in order, and no code run by a checkpoint."""

import re
import shutil
from pathlib import Path

import pytest
from test_average import Malicious

from mt_scaffold.corpus.text import join_subwords
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.inference.translate import read_hypotheses, translate

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")


@pytest.fixture(scope="module")
def translated(tiny_data: Path, tiny_model: Path, tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """odd.1 translated with the mean of the last two checkpoints."""
    from mt_scaffold.experiment.training.average import average, last_checkpoints

    folder = tmp_path_factory.mktemp("translated")
    average(last_checkpoints(tiny_model / "checkpoints", 2), folder / "averaged.pt")
    options = ["--beam", "2", "--max-len-b", "15", "--max-tokens", "100"]
    source = tiny_words / "odd.1.en"
    translate(tiny_data, "odd.1", folder / "averaged.pt", folder / "out", options, source_words=source)
    return folder / "out"


def test_every_sentence_is_translated_and_in_the_order_of_the_test_set(translated: Path, tiny_words: Path) -> None:
    """13 sentences, of which this fairseq, with its default batches, silently drops the last 5."""
    output = (translated / "odd.1.generate.txt").read_text(encoding="utf-8")
    sources = (tiny_words / "odd.1.en").read_text(encoding="utf-8").splitlines()
    subwords = (translated / "odd.1.de.subwords").read_text(encoding="utf-8").splitlines()
    assert len(subwords) == len(sources) == 13
    by_number = {int(number): text for number, text in re.findall(r"^S-(\d+)\t(.*)$", output, re.MULTILINE)}
    for number, source in enumerate(sources):
        if "<unk>" not in by_number[number]:
            assert join_subwords(by_number[number]) == source
        assert re.search(rf"^H-{number}\t\S+\t{re.escape(subwords[number])}$", output, re.MULTILINE)
    assert any("<unk>" not in text for text in by_number.values())


def test_subwords_words_and_text_are_written_side_by_side(translated: Path, tiny_words: Path) -> None:
    """The scores and the page need all three forms."""
    subwords = (translated / "odd.1.de.subwords").read_text(encoding="utf-8").splitlines()
    words = (translated / "odd.1.de.words").read_text(encoding="utf-8").splitlines()
    assert words == [join_subwords(line) for line in subwords] and any(words) and "@@" not in "".join(words)
    assert len((translated / "odd.1.de").read_text(encoding="utf-8").splitlines()) == 13
    assert (translated / "odd.1.en.words").read_bytes() == (tiny_words / "odd.1.en").read_bytes()


def test_subwords_are_joined_with_the_separator_of_the_data(
    tiny_data: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the default, text with a different separator would be scored as subwords."""
    shutil.copytree(tiny_data, tmp_path / "data")
    description = tmp_path / "data" / "binarised.json"
    description.write_text(description.read_text().replace('"separator": "@@"', '"separator": "++"'))

    def generate(program: str, arguments: list[str], log: Path) -> None:
        results = Path(arguments[arguments.index("--results-path") + 1])
        lines = "".join(f"H-{number}\t-1\tSchaff++ ell @@ x\n" for number in range(13))
        (results / "generate-odd.1.txt").write_text(lines)

    monkeypatch.setattr("mt_scaffold.experiment.inference.translate.run_tool", generate)
    model = tiny_model / "checkpoints" / "checkpoint_last.pt"
    translate(tmp_path / "data", "odd.1", model, tmp_path / "out")
    assert (tmp_path / "out" / "odd.1.de.words").read_text().splitlines() == ["Schaffell @@ x"] * 13


def test_hypotheses_are_put_in_order_and_none_may_be_missing() -> None:
    """fairseq writes them by length; a gap would shift every later sentence."""
    lines = ["S-1\tx\n", "H-1\t-0.5\tzwei\n", "D-1\t-0.5\tzwei\n", "H-0\t-1e-05\teins\n", "H-2\t-2.0\t\n", "P-2\t0\n"]
    assert read_hypotheses(lines, 3) == ["eins", "zwei", ""]
    with pytest.raises(MTScaffoldError, match="no hypothesis for sentence 4 "):
        read_hypotheses(lines, 4)
    with pytest.raises(MTScaffoldError, match="more hypotheses than sentences"):
        read_hypotheses(lines, 2)
    with pytest.raises(MTScaffoldError, match=r"two hypotheses for sentence 1; translate again$"):
        read_hypotheses([*lines, "H-0\t-1\teins\n"], 3)


def test_joining_undoes_splitting_and_accepts_an_unfinished_word() -> None:
    """A hypothesis may end inside a word when it reaches the maximum length."""
    assert join_subwords("Sch@@ aff@@ ell@@ ösung , a@ b@@c @ .") == "Schaffellösung , a@ b@@c @ ."
    assert join_subwords("Schaff@@ ell@@") == "Schaffell"
    assert join_subwords("") == ""


def test_a_missing_subset_or_model_is_named(tiny_data: Path, tmp_path: Path) -> None:
    """The error is found before fairseq loads anything."""
    with pytest.raises(UsageError, match=r"no subset called odd2; choose one of train, valid, odd\.1, test1$"):
        translate(tiny_data, "odd2", tmp_path / "model.pt", tmp_path)
    with pytest.raises(MTScaffoldError, match="no such model"):
        translate(tiny_data, "odd.1", tmp_path / "model.pt", tmp_path)
    with pytest.raises(UsageError, match="--nbest is set by mt-scaffold itself"):
        translate(tiny_data, "odd.1", tmp_path / "model.pt", tmp_path, ["--nbest", "3"])


def test_a_gpu_that_is_requested_must_be_there(
    tiny_data: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that paid for a GPU must not translate for hours on the CPU; fairseq uses one at most."""
    monkeypatch.setattr("mt_scaffold.experiment.inference.translate.sees_gpu", lambda: False)
    model = tiny_model / "checkpoints" / "checkpoint_last.pt"
    with pytest.raises(MTScaffoldError, match="--gpus 1: PyTorch finds no GPU"):
        translate(tiny_data, "odd.1", model, tmp_path / "out", gpus=1)
    with pytest.raises(UsageError, match="--gpus 2: fairseq-generate uses one GPU"):
        translate(tiny_data, "odd.1", model, tmp_path / "out", gpus=2)
    assert not (tmp_path / "out").exists()


def test_fairseq_refuses_a_checkpoint_that_would_run_code(
    tiny_data: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the variable that switches off PyTorch's check is set."""
    import torch

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    state = load_checkpoint(tiny_model / "checkpoints" / "checkpoint3.pt")
    torch.save({**state, "more": Malicious(tmp_path / "owned")}, tmp_path / "evil.pt")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(MTScaffoldError, match=r"(?s)fairseq-generate failed.*mkdir"):
        translate(tiny_data, "odd.1", tmp_path / "evil.pt", tmp_path)
    assert not (tmp_path / "owned").exists()
