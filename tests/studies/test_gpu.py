"""``studies.gpu``: slices end in time and resume, and a training log is read."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
import yaml

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration import load_config

gpu = pytest.importorskip("studies.gpu", reason="needs the extra 'workflow'")
from studies.gpu import OutOfTime, Slice, big_configuration, keep_results, main, run_slice, speed  # noqa: E402

LINE = (
    "2026-11-23 14:40:{0:02} | INFO | train_inner | epoch 001: {0} / 74 loss=9.1, ppl=1207.13, wps=2229.2, ups=1.09, "
    "wpb={1}, bsz=8, num_updates={0}, lr=7.5e-05, gnorm=0.7, clip=10, train_wall=2, gb_free={3}, wall={2}\n"
)


def a_slice(folder: Path, seconds: float = 600) -> Slice:
    return Slice(folder, time.monotonic() + seconds, None, None, 2, True)


def test_speed_is_that_of_a_log(tmp_path: Path) -> None:
    """Without the first four updates: 10 updates of 50,000 tokens in 20 seconds; the minimum of free memory."""
    log = tmp_path / "train.log"
    lines = [LINE.format(n, 40000 if n < 6 else 50000, 30 + 2 * n, 60.5 - n / 2) for n in range(1, 16)]
    log.write_text("a warning\n" + "".join(lines))
    assert speed(log, 57344, 8) == {
        "max_tokens": 57344,
        "update_freq": 8,
        "updates": 10,
        "seconds_per_update": 2.0,
        "target_tokens_per_update": 50000,
        "tokens_per_second": 25000,
        "hours": 13.3,  # 24,000 updates of 2 s
        "least_gib_free": 53.0,
    }
    log.write_text("".join(lines[:5]))
    with pytest.raises(MTScaffoldError, match="too few updates"):
        speed(log, 57344, 8)


def test_the_big_training_is_that_of_wmt14(tmp_path: Path) -> None:
    """It has the published model and batch; only the text, its length and the settings of a short training differ."""
    configuration = big_configuration(57344, 8)
    options = configuration["train"]["options"]
    assert options["arch"] == "transformer_vaswani_wmt_en_de_big" and options["fp16"] is True
    assert (options["max-tokens"], options["update-freq"]) == (57344, 8)
    assert configuration["codes"]["symbols"] == 32000 and configuration["binarise"] == {"joined_dictionary": True}
    assert "synthetic" in configuration["data"] and "archives" not in configuration["data"]
    (tmp_path / "big.yaml").write_text(yaml.safe_dump(configuration))
    assert load_config(tmp_path / "big.yaml").name == "big"


def test_a_command_is_stopped_by_ctrl_c_before_the_slice_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command can save its state; with no time left, none is started."""
    monkeypatch.setattr(gpu, "STOPPING_SECONDS", 30)
    program = (
        "import time\ntry:\n    print('began', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: print('saved')"
    )
    log = tmp_path / "log"
    with pytest.raises(OutOfTime):
        a_slice(tmp_path, 32).run([sys.executable, "-c", program], log)
    assert log.read_text().split("\n")[-3:] == ["began", "saved", ""]
    with pytest.raises(OutOfTime):
        a_slice(tmp_path, 29).run(["false"], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_next_slice_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished steps are not repeated, failures do not keep others from running, and stopped ones run again."""
    ran = []

    def step(name: str, *ends: str | Exception) -> None:
        outcomes = iter(ends)

        def run(now: Slice) -> str:
            ran.append(name)
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setitem(gpu.STEPS, name, run)

    step("smoke", "status 0")
    step("big", MTScaffoldError("no memory"), OutOfTime(), "fast")
    step("multi30k", OutOfTime(), "10 seeds")
    step("debian", "skipped: no text", "5 seeds")
    said: list[str] = []
    finished = [run_slice(a_slice(tmp_path), say=said.append) for _ in range(4)]
    assert ran == ["smoke", "big", "multi30k", "big", "big", "multi30k", "debian", "debian"]
    assert finished == [False, False, False, True]
    assert said[1].startswith("big: failed: no memory") and said[-1].startswith("debian: 5 seeds")
    status = json.loads((tmp_path / "results" / "status.json").read_text())
    assert status["slices"] == 4 and status["big"]["said"] == "fast"
    assert (tmp_path / "results.tar.gz").exists()


def test_what_fails_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed smoke test reports its status; a training out of disk space is not repeated with a smaller batch."""
    tried: list[str] = []

    def experiment(now: Slice, configuration: Path, output: str, *more: object) -> None:
        tried.append(output)
        raise MTScaffoldError("No space left on device")

    monkeypatch.setattr(Slice, "run", lambda *arguments: 1)
    monkeypatch.setattr(Slice, "experiment", experiment)
    said: list[str] = []
    assert not run_slice(a_slice(tmp_path), ["smoke", "big"], say=said.append)
    assert said[0].startswith("smoke: failed: status 1; see smoke.txt") and tried == ["big-256x2"]
    assert said[1].startswith("big: failed: big-256x2: No space left on device")
    status = json.loads((tmp_path / "results" / "status.json").read_text())
    assert not status["smoke"]["finished"] and not status["big"]["finished"]


def test_a_batch_that_does_not_fit_is_halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is halved until it fits, and the large one is not tried again in the next slice."""
    tried: list[str] = []

    def experiment(now: Slice, configuration: Path, output: str, *more: object) -> None:
        tried.append(output)
        training = now.output / output / "bpe" / "seed-1"
        training.mkdir(parents=True)
        if output == "big-57344x8":
            (training / "train.log").write_text(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
            )
            raise MTScaffoldError("a step failed")
        (training / "train.log").write_text("".join(LINE.format(n, 50000, 2 * n, 9) for n in range(1, 16)))
        (training / "training.json").write_text("{}")

    monkeypatch.setattr(gpu, "BIG_BATCHES", {"h200": (57344, 8)})
    monkeypatch.setattr(Slice, "experiment", experiment)
    now = Slice(tmp_path, time.monotonic() + 600, None, None, 2, False)
    for _ in range(2):
        assert gpu.big(now) == "big-57344x8: does not fit; big-28672x16: 25,000 tokens per second, 13.3 hours"
    assert tried == ["big-57344x8", "big-28672x16"]


def test_other_text_than_that_of_the_last_slice_is_refused(tmp_path: Path) -> None:
    """The link of the first slice remains, so that trainings on two texts would be compared."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "debian_corpus").symlink_to(tmp_path / "first")
    with pytest.raises(
        MTScaffoldError, match=f"debian_corpus: links to {tmp_path}/first, not {tmp_path}/second; name the former"
    ):
        gpu.debian(Slice(tmp_path, time.monotonic() + 600, None, tmp_path / "second", 2, True))


def test_what_a_page_of_results_needs_is_kept(tmp_path: Path) -> None:
    """Tables, figures for the web, and the report of each training, but nothing as large as a model."""
    experiment, results = tmp_path / "experiment", tmp_path / "results"
    for name in (*gpu.RESULT_FILES, "figures/bleu.svg", "figures/bleu.pdf", "bpe/seed-2/averaged.pt"):
        (experiment / name).parent.mkdir(parents=True, exist_ok=True)
        (experiment / name).write_text(name)
    report = {"updates": 30, "seconds": 2.5, "curves": {"train": [[1, 2]]}}
    (experiment / "bpe" / "seed-2" / "training.json").write_text(json.dumps(report))
    keep_results(experiment, results)
    kept = {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}
    assert kept == {*gpu.RESULT_FILES, "figures/bleu.svg", "trainings.json"}
    said = json.loads((results / "trainings.json").read_text())["bpe/seed-2"]
    assert (said["updates"], said["seconds"]) == (30, 2.5) and "curves" not in said


def test_seeds_that_are_compared_are_not_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice resumes with the seeds at which the last one stopped, not with the first."""
    asked: list[list[int]] = []

    def experiment(now: Slice, configuration: Path, output: str, *more: object) -> None:
        asked.append(json.loads(str(more[-1]).removeprefix("seeds=")))
        if asked == [[1], [1, 2]]:
            raise OutOfTime
        reports = [f"{system}/seed-{seed}/training.json" for system in ("bpe", "scaffold") for seed in asked[-1]]
        for name in (*gpu.RESULT_FILES, *reports):
            (now.output / output / name).parent.mkdir(parents=True, exist_ok=True)
            (now.output / output / name).write_text("{}")

    monkeypatch.setattr(Slice, "experiment", experiment)
    now = Slice(tmp_path, time.monotonic() + 600, None, tmp_path, 2, True)
    assert [run_slice(now, ["debian"], say=lambda line: None) for _ in range(3)] == [False, True, True]
    assert asked == [[1], [1, 2], [1, 2]]


def test_without_a_gpu_it_says_how_to_rehearse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, and a wrong option is named."""
    monkeypatch.setattr(gpu, "sees_gpu", lambda: False)
    assert main(["--output", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "studies.gpu: PyTorch finds no GPU; --rehearse runs everything small on the CPU\n"
    assert main(["--output", str(tmp_path / "out"), "--cache", str(tmp_path / "none")]) == 2
    assert "none: not a directory" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert main(["--output", str(tmp_path / "out"), "--rehearse", "--at-once", "0"]) == 2
    assert capsys.readouterr().err == "studies.gpu: --at-once 0: must be 1 or more\n"
