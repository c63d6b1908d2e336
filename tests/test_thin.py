"""Thinning checkpoints: smaller, and as good as before for all but resuming."""

from pathlib import Path

import pytest
from conftest import TINY_MODEL
from test_average import save

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError

torch = pytest.importorskip("torch", reason="needs the extra 'fairseq'")

from mt_scaffold.experiment.average import average, last_checkpoints  # noqa: E402
from mt_scaffold.experiment.checkpoints import has_optimiser, load_checkpoint  # noqa: E402
from mt_scaffold.experiment.thin import thin  # noqa: E402

NAMES = ["checkpoint1.pt", "checkpoint2.pt", "checkpoint_2_20.pt", "checkpoint_best.pt", "checkpoint_last.pt"]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """A folder of fairseq's, with an optimiser's state twice as large as the model."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        tied = torch.full((10_000,), float(number))
        optimiser = {"state": torch.ones(20_000)}
        save(folder / name, {"in": tied, "out": tied}, last_optimizer_state=optimiser, extra_state={"epoch": number})
    return folder


def test_thin_checkpoints_differ_in_the_optimiser_alone(checkpoints: Path, tmp_path: Path) -> None:
    """Averages of them are the same bytes; only checkpoint_last.pt is left to resume from."""
    whole = {name: load_checkpoint(checkpoints / name) for name in NAMES}
    times = {name: (checkpoints / name).stat().st_mtime_ns for name in NAMES}
    average(last_checkpoints(checkpoints, 2), tmp_path / "before.pt")
    names, freed = thin(checkpoints)
    assert names == NAMES[:-1] and freed > 4 * 80_000
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
    """A job that was killed is run again; the command says what it did."""
    assert main(["thin", "--checkpoints", str(checkpoints)]) == 0
    assert "thinned: checkpoint1.pt checkpoint2.pt checkpoint_2_20.pt checkpoint_best.pt (" in capsys.readouterr().out
    assert main(["thin", "--checkpoints", str(checkpoints)]) == 0
    assert capsys.readouterr().out == "thinned: none (0 bytes freed)\n"


def test_a_training_does_not_resume_without_the_state_of_its_optimiser(tiny_data: Path, checkpoints: Path) -> None:
    """With a thin checkpoint in place of the last, fairseq would silently begin with a new optimiser."""
    pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
    from mt_scaffold.experiment.train import train

    thin(checkpoints)
    (checkpoints / "checkpoint2.pt").replace(checkpoints / "checkpoint_last.pt")
    with pytest.raises(MTScaffoldError, match=r"checkpoint_last\.pt: no training can resume .* thinned without"):
        train(tiny_data, checkpoints.parent, [*TINY_MODEL, "--max-epoch", "9"])
    assert not (checkpoints.parent / "train.log").exists()
