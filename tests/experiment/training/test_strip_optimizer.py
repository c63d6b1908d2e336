"""Thin checkpoints are smaller, and as good as before for everything except resuming."""

from pathlib import Path

import pytest
from conftest import TINY_MODEL
from test_average import save

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError

torch = pytest.importorskip("torch", reason="needs the extra 'fairseq'")

from mt_scaffold.experiment.runtime.checkpoints import has_optimiser, load_checkpoint  # noqa: E402
from mt_scaffold.experiment.runtime.locks import take_lock  # noqa: E402
from mt_scaffold.experiment.training.average import average, last_checkpoints  # noqa: E402
from mt_scaffold.experiment.training.strip_optimizer import strip_optimizer  # noqa: E402

THINNED = [
    "checkpoint1.pt",
    "checkpoint2.pt",
    "checkpoint_2_20.pt",
    "checkpoint.best_bleu_20.50.pt",
    "checkpoint_best.pt",
]
NAMES = [*THINNED, "checkpoint_last.pt"]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """A folder of checkpoints like fairseq's, with an optimiser's state twice as large as the model."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        tied = torch.full((10_000,), float(number))
        optimiser = {"state": torch.ones(20_000)}
        save(folder / name, {"in": tied, "out": tied}, last_optimizer_state=optimiser, extra_state={"epoch": number})
    return folder


def test_thin_checkpoints_differ_only_in_the_optimiser(checkpoints: Path, tmp_path: Path) -> None:
    """Averages of them are the same bytes; only checkpoint_last.pt is left to resume from."""
    whole = {name: load_checkpoint(checkpoints / name) for name in NAMES}
    times = {name: (checkpoints / name).stat().st_mtime_ns for name in NAMES}
    average(last_checkpoints(checkpoints, 2), tmp_path / "before.pt")
    names, freed = strip_optimizer(checkpoints)
    assert names == THINNED and freed > 5 * 80_000
    for name in NAMES:
        state = load_checkpoint(checkpoints / name)
        assert has_optimiser(state) == (name == "checkpoint_last.pt")
        assert state["extra_state"] == whole[name]["extra_state"]
        assert torch.equal(state["model"]["in"], whole[name]["model"]["in"])
        assert state["model"]["in"].data_ptr() == state["model"]["out"].data_ptr()
        assert (checkpoints / name).stat().st_mtime_ns == times[name]
    average(last_checkpoints(checkpoints, 2), tmp_path / "after.pt")
    assert (tmp_path / "before.pt").read_bytes() == (tmp_path / "after.pt").read_bytes()


def test_thinning_again_rewrites_nothing(checkpoints: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job that was killed is run again; the command prints what it did."""
    assert main(["strip-optimizer", "--checkpoints", str(checkpoints)]) == 0
    assert f"thinned: {' '.join(THINNED)} (" in capsys.readouterr().out
    assert main(["strip-optimizer", "--checkpoints", str(checkpoints)]) == 0
    assert capsys.readouterr().out == "thinned: none (0 bytes freed)\n"


def test_tied_parameters_are_saved_once(checkpoints: Path) -> None:
    """On a GPU, or in fp16, fairseq writes the embeddings under each of their names."""
    path = checkpoints / "checkpoint1.pt"
    before = {name: torch.arange(10_000.0) for name in ("in", "out", "project")}
    save(path, before | {"zero": torch.zeros(1), "minus zero": -torch.zeros(1)})
    whole = path.stat().st_size
    strip_optimizer(checkpoints)
    assert whole > 120_000 and path.stat().st_size < 50_000
    after = load_checkpoint(path)["model"]
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert after["minus zero"].signbit().item() and not after["zero"].signbit().item()


def test_checkpoints_are_not_thinned_while_the_training_runs(checkpoints: Path, tmp_path: Path) -> None:
    """It may overwrite the best one, or delete an epoch, between reading and renaming: thinning would undo that."""
    before = {path.name: path.read_bytes() for path in checkpoints.iterdir()}
    with (
        take_lock(tmp_path, "busy"),
        pytest.raises(MTScaffoldError, match=r"a training is running here; thin .* \(held by host "),
    ):
        strip_optimizer(checkpoints)
    assert {path.name: path.read_bytes() for path in checkpoints.iterdir()} == before
    # A training that has ended leaves the file of its lock.
    assert (tmp_path / ".lock").exists() and strip_optimizer(checkpoints)[0] == THINNED


def test_a_training_does_not_resume_without_the_state_of_its_optimiser(tiny_data: Path, checkpoints: Path) -> None:
    """With a thin checkpoint in place of the last, fairseq would silently begin with a new optimiser."""
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    from mt_scaffold.experiment.training.train import train

    strip_optimizer(checkpoints)
    (checkpoints / "checkpoint2.pt").replace(checkpoints / "checkpoint_last.pt")
    with pytest.raises(MTScaffoldError, match=r"checkpoint_last\.pt: no training can resume .* thinned without"):
        train(tiny_data, checkpoints.parent, [*TINY_MODEL, "--max-epoch", "9"])
    assert not (checkpoints.parent / "train.log").exists()
