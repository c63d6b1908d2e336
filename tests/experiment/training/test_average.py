"""Averaging checkpoints, and loading them safely."""

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError

torch = pytest.importorskip("torch", reason="needs the extra 'fairseq'")

from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint, updates_made  # noqa: E402
from mt_scaffold.experiment.training.average import average, last_checkpoints  # noqa: E402


def save(path: Path, model: dict[str, Any], **more: Any) -> Path:
    """Save a checkpoint with the parts of fairseq's that averaging reads."""
    state = {"args": argparse.Namespace(arch="transformer"), "model": model, "last_optimizer_state": {"big": 1}} | more
    torch.save(state, path)
    return path


class Malicious:
    """An object whose pickle calls os.mkdir when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_the_mean_is_taken_in_double_precision(tmp_path: Path) -> None:
    """In half precision 2048 + 1 is 2048: a sum kept in it would lose the small addends."""
    values = [2048.0, 1.0, 1.0, 1.0]
    paths = [
        save(tmp_path / f"{i}.pt", {"w": torch.tensor([value], dtype=torch.float16)}) for i, value in enumerate(values)
    ]
    assert average(paths, tmp_path / "mean.pt") == ["0.pt", "1.pt", "2.pt", "3.pt"]
    mean = load_checkpoint(tmp_path / "mean.pt")["model"]["w"]
    assert mean.dtype == torch.float16 and mean.item() == torch.tensor(2051.0 / 4).half().item()


def test_tied_parameters_stay_tied_and_counters_are_those_of_the_last(tmp_path: Path) -> None:
    """The mean loads like any checkpoint, at the size of one."""
    paths = []
    for number in (1, 2):
        shared = torch.full((300, 100), float(number))
        paths.append(save(tmp_path / f"{number}.pt", {"in": shared, "out": shared, "step": torch.tensor(number)}))
    average(paths, tmp_path / "mean.pt")
    state = load_checkpoint(tmp_path / "mean.pt")
    assert state["model"]["in"].data_ptr() == state["model"]["out"].data_ptr()
    assert torch.equal(state["model"]["in"], torch.full((300, 100), 1.5))
    assert state["model"]["step"].item() == 2
    assert "last_optimizer_state" not in state and state["averaged"] == ["1.pt", "2.pt"]


def test_parameters_that_were_tied_when_they_were_trained_are_saved_once(tmp_path: Path) -> None:
    """On a GPU, or in fp16, fairseq writes a copy under each name; equality in one checkpoint is not enough."""
    paths = []
    for number in (1.0, 2.0):
        shared, own = torch.full((300, 100), number), torch.full((300, 100), 2.0)
        paths.append(save(tmp_path / f"{number}.pt", {"in": shared, "own": own, "out": shared.clone()}))
    average(paths, tmp_path / "mean.pt")
    model = load_checkpoint(tmp_path / "mean.pt")["model"]
    assert model["in"].data_ptr() == model["out"].data_ptr() != model["own"].data_ptr()
    assert model["out"].unique().tolist() == [1.5] and model["own"].unique().tolist() == [2.0]


AVERAGING = """
import re, sys, threading, time
from pathlib import Path
import torch
from mt_scaffold.experiment.training.average import average
def megabytes():
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024
peak = before = megabytes()
def watch():
    global peak
    while True:
        peak = max(peak, megabytes())
        time.sleep(0.001)
threading.Thread(target=watch, daemon=True).start()
average(sys.argv[2:], sys.argv[1])
print(peak - before)
"""


def test_averaging_takes_no_memory_for_the_optimiser_nor_for_each_checkpoint(tmp_path: Path) -> None:
    """Read whole, ten checkpoints of 2.9 GB would need more than the job has."""
    paths = []
    for number in range(6):
        model = {str(part): torch.full((1_000_000,), float(number + part)) for part in range(4)}
        optimiser = {"state": torch.ones(25_000_000)}
        paths.append(save(tmp_path / f"checkpoint{number}.pt", model, last_optimizer_state=optimiser))
    command = [sys.executable, "-c", AVERAGING, str(tmp_path / "mean.pt"), *map(str, paths)]
    megabytes = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for path in paths:
        path.unlink()
    # Not counting pages of files: a sum in double precision is 32 MB, the result 16 MB, an optimiser's state 100 MB.
    assert 16 <= megabytes < 32 + 16 + 40, megabytes
    assert load_checkpoint(tmp_path / "mean.pt")["model"]["3"][0].item() == 5.5


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("checkpoint7.pt", True),
        ("checkpoint_7_900.pt", True),
        ("checkpoint_best.pt", False),
        ("checkpoint.best_bleu_20.50.pt", False),
        ("checkpoint_last.pt", False),
    ],
)
def test_a_checkpoint_that_fairseq_overwrites_in_place_is_not_mapped(tmp_path: Path, name: str, mapped: bool) -> None:
    """Reading a mapped tensor while its file is overwritten would end the process with SIGBUS."""
    state = load_checkpoint(save(tmp_path / name, {"w": torch.ones(1000)}))
    assert (str(tmp_path / name) in Path("/proc/self/maps").read_text()) == mapped
    assert state["model"]["w"].sum() == 1000


def test_checkpoints_of_different_models_are_refused(tmp_path: Path) -> None:
    """A mean of unrelated parameters would translate badly, without any error."""
    first = save(tmp_path / "a.pt", {"w": torch.zeros(2)})
    with pytest.raises(MTScaffoldError, match=r"b\.pt: not of the same model .* w is \(3,\), there \(2,\)"):
        average([first, save(tmp_path / "b.pt", {"w": torch.zeros(3)})], tmp_path / "mean.pt")
    with pytest.raises(MTScaffoldError, match=r"only one of them has the parameter v"):
        average([first, save(tmp_path / "b.pt", {"w": torch.zeros(2), "v": torch.zeros(1)})], tmp_path / "mean.pt")
    assert not (tmp_path / "mean.pt").exists()


def test_a_checkpoint_that_would_run_code_is_refused_and_runs_none(tmp_path: Path) -> None:
    """A checkpoint is a pickle, and may come from a stranger."""
    path = save(tmp_path / "evil.pt", {"w": torch.zeros(1)}, extra=Malicious(tmp_path / "owned"))
    with pytest.raises(MTScaffoldError, match=r"evil\.pt: refused: .*mkdir, which could run code"):
        average([path], tmp_path / "mean.pt")
    assert not (tmp_path / "owned").exists()


def test_files_that_are_not_whole_checkpoints_are_refused(tmp_path: Path) -> None:
    """Whether truncated, of another kind or missing, the file is named."""
    whole = save(tmp_path / "a.pt", {"w": torch.zeros(1000)})
    (tmp_path / "cut.pt").write_bytes(whole.read_bytes()[:2000])
    (tmp_path / "text.pt").write_text("not a checkpoint")
    torch.save([1, 2], tmp_path / "list.pt")
    for name in ("cut", "text", "list"):
        with pytest.raises(MTScaffoldError, match=rf"{name}\.pt: not a "):
            load_checkpoint(tmp_path / f"{name}.pt")
    with pytest.raises(MTScaffoldError, match="No such file"):
        load_checkpoint(tmp_path / "nothing.pt")


def test_a_cut_pickle_is_refused(tmp_path: Path) -> None:
    """By itself, and within a whole zip file."""
    for name, content in (("long", b"\x80\x02\x8a"), ("number", b"\x80\x02}J\x01\x02")):
        (tmp_path / f"{name}.pt").write_bytes(content)
        with zipfile.ZipFile(tmp_path / f"{name}-zip.pt", "w") as archive:
            archive.writestr("a/data.pkl", content)
            archive.writestr("a/version", "3")
            archive.writestr("a/byteorder", "little")
        for each in (name, f"{name}-zip"):
            with pytest.raises(MTScaffoldError, match=rf"{each}\.pt: not a "):
                load_checkpoint(tmp_path / f"{each}.pt")


def test_a_parameter_that_repeats_its_numbers_is_refused(tmp_path: Path) -> None:
    """Two kilobytes would allocate 80 GB; a view of part of a storage stores all its elements."""
    storage = torch.ones(10)
    for number, tensor in enumerate((storage[:1].expand(100_000, 100_000), storage.as_strided((9, 9), (1, 0)))):
        path = save(tmp_path / f"{number}.pt", {"w": tensor})
        with pytest.raises(MTScaffoldError, match=r"its parameter 'w' has more elements than the file has"):
            average([path], tmp_path / "mean.pt")
    whole = {"part": storage[2:5], "turned": torch.ones(2, 3).t(), "one": torch.ones(1).expand(1, 1), "no": storage[:0]}
    assert len(load_checkpoint(save(tmp_path / "whole.pt", whole))["model"]) == 4


@pytest.mark.parametrize("updates", ["x", float("inf"), None, [1]])
def test_an_invalid_number_of_updates_is_one_line(tmp_path: Path, updates: Any) -> None:
    """It is not a Python traceback."""
    path = save(tmp_path / "a.pt", {}, optimizer_history=[{"num_updates": updates}])
    with pytest.raises(MTScaffoldError, match="has no number of updates"):
        updates_made(load_checkpoint(path), path)


def test_the_last_checkpoints_are_found_by_number(tmp_path: Path) -> None:
    """By name, checkpoint10.pt would come before checkpoint9.pt."""
    names = ["checkpoint8.pt", "checkpoint9.pt", "checkpoint10.pt", "checkpoint_best.pt", "checkpoint_last.pt"]
    for name in [*names, "checkpoint_9_900.pt", "checkpoint_10_1000.pt", "checkpoint10.pt.tmp"]:
        save(tmp_path / name, {}, optimizer_history=[{"num_updates": 1000}])
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["checkpoint9.pt", "checkpoint10.pt"]
    assert [path.name for path in last_checkpoints(tmp_path, 1, by_updates=True)] == ["checkpoint_10_1000.pt"]
    assert [path.name for path in last_checkpoints(tmp_path, 0)] == ["checkpoint_best.pt"]
    assert [path.name for path in last_checkpoints(tmp_path, 1, skip=1)] == ["checkpoint9.pt"]
    assert [path.name for path in last_checkpoints(tmp_path, 2, skip=1)] == ["checkpoint8.pt", "checkpoint9.pt"]
    with pytest.raises(MTScaffoldError, match=r"the last 1 before the last 3 epoch checkpoints .* there are only 3"):
        last_checkpoints(tmp_path, 1, skip=3)
    with pytest.raises(MTScaffoldError, match="last 4 epoch checkpoints are to be averaged, but there are only 3"):
        last_checkpoints(tmp_path, 4)
    with pytest.raises(UsageError, match="0 or more"):
        last_checkpoints(tmp_path, -1)
    with pytest.raises(MTScaffoldError, match="No such file"):
        last_checkpoints(tmp_path / "nowhere", 1)


def test_the_final_model_counts_among_those_by_updates(tmp_path: Path) -> None:
    """A training that ends between two intervals saves its last updates only in checkpoint_last.pt."""
    for name in ("checkpoint_1_100.pt", "checkpoint_1_200.pt"):
        (tmp_path / name).touch()
    save(tmp_path / "checkpoint_last.pt", {}, optimizer_history=[{"num_updates": 200}])
    assert [path.name for path in last_checkpoints(tmp_path, 1, by_updates=True)] == ["checkpoint_1_200.pt"]
    save(tmp_path / "checkpoint_last.pt", {}, optimizer_history=[{"num_updates": 230}])
    last_two = ["checkpoint_1_200.pt", "checkpoint_last.pt"]
    assert [path.name for path in last_checkpoints(tmp_path, 2, by_updates=True)] == last_two
    assert [path.name for path in last_checkpoints(tmp_path, 1, by_updates=True, skip=1)] == last_two[:1]
    save(tmp_path / "checkpoint_last.pt", {})
    with pytest.raises(MTScaffoldError, match=r"checkpoint_last\.pt: has no number of updates"):
        last_checkpoints(tmp_path, 1, by_updates=True)


@pytest.mark.parametrize(
    "command", ["average a.pt --output b.pt", "lm-eval --checkpoint a.pt --data d --tasks t --output b"]
)
@pytest.mark.parametrize("option", ["--last=3", "--updates"])
def test_what_chooses_from_a_folder_is_refused_with_names(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It used to be ignored: another model than the one that was meant."""
    assert main([*command.split(), option]) == 2
    assert "choose from the folder that --checkpoints names" in capsys.readouterr().err
