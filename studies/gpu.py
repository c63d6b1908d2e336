"""python -m studies.gpu: the measurements and trainings that need a GPU, in slices that resume.

In this order: scripts/smoke_gpu.sh; the speed and memory of WMT'14's transformer-big, on generated text; Multi30k
English to German in the published size, ten seeds of four systems, several trainings at once on the GPU; Debian English
to German, five seeds. Nothing is downloaded: name the folders that have the text. Seeds are added in steps, so that
there are early comparisons. After each slice, finished results are in OUTPUT/results and results.tar.gz; the rest of
OUTPUT is needed to resume. --rehearse runs everything on the CPU with tiny models, whose figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_scaffold.corpus.files import make_folder, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.data import STEMS
from mt_scaffold.experiment.runtime.fairseq import sees_gpu

SOURCE = Path(__file__).resolve().parent.parent
# Time for trainings to save and for stopped commands to end.
STOPPING_SECONDS = 60
# The published number of updates, the same for either batch.
BIG_UPDATES = 24000
# Max-tokens and update-freq: of each of the published 8 GPUs, and of one large GPU in place of them.
BIG_BATCHES = {"large": (3584, 16), "h200": (57344, 8)}
TINY_BATCHES = {"large": (256, 2), "h200": (1024, 1)}
LEAST_TOKENS = 7168
COMPARISON = ("comparison.txt", "comparison.json", "comparison.csv")
TRAININGS = "trainings.json"
RESULT_FILES = (*COMPARISON, "config.yaml", "data-report.json", "statistics.json")
TINY = {
    "encoder-layers": 1,
    "decoder-layers": 1,
    "encoder-embed-dim": 32,
    "decoder-embed-dim": 32,
    "encoder-ffn-embed-dim": 64,
    "decoder-ffn-embed-dim": 64,
    "encoder-attention-heads": 2,
    "decoder-attention-heads": 2,
}


class OutOfTime(Exception):
    """The slice ends."""


@dataclass(frozen=True)
class Slice:
    """One call. output: the folder of all files. until: when the slice ends (time.monotonic)."""

    output: Path
    until: float
    cache: Path | None
    debian: Path | None
    at_once: int
    rehearse: bool

    @property
    def results(self) -> Path:
        """The folder of the results to bring back."""
        return self.output / "results"

    def run(self, command: Sequence[object], log: Path, variables: Mapping[str, str] | None = None) -> int:
        """Run a command, append its output to a log, and return its status.

        Raises OutOfTime if the slice ends; a running command is stopped as by Ctrl-C.
        """
        left = self.until - time.monotonic() - STOPPING_SECONDS
        if left <= 0:
            raise OutOfTime
        words = [str(word) for word in command]
        make_folder(log.parent)
        with open(log, "a", encoding="utf-8") as stream:
            print("$", *words, file=stream, flush=True)
            process = subprocess.Popen(
                words, cwd=self.output, env={**os.environ, **(variables or {})}, stdin=subprocess.DEVNULL,
                stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(left)
            except BaseException as ended:
                _stop(process)
                if isinstance(ended, subprocess.TimeoutExpired):
                    raise OutOfTime from None
                raise

    def experiment(self, configuration: Path, output: str, *more: object) -> None:
        """Run ``mt-scaffold run``; raise MTScaffoldError, with the end of its log, if it fails."""
        log = self.output / "logs" / f"{output}.log"
        profile = write_yaml(self.output / "profile" / "config.yaml", self._profile()).parent
        words = ["run", configuration, "--output", output, "--profile", profile, *more]
        variables = {} if self.cache is None else {"MT_SCAFFOLD_CACHE": str(self.cache)}
        if self.run([sys.executable, "-m", "mt_scaffold", *words], log, variables):
            raise MTScaffoldError(end_of(log))

    def _profile(self) -> dict[str, Any]:
        # One GPU is counted as several, so that several trainings share the first that PyTorch sees. Without a share of
        # the cores, a step on a GPU would take them all and run alone.
        gpu = 0 if self.rehearse else 1
        rules = ("train", "translate", "losses", "evaluate", "evaluate_tasks")
        return {
            "cores": "all",
            "resources": {"gpu": self.at_once},
            "set-resources": {rule: {"gpu": gpu} for rule in rules},
            "set-threads": {rule: max(1, (os.cpu_count() or 1) // self.at_once) for rule in rules},
        }


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a command and its children as by Ctrl-C, and kill them if they do not end."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(STOPPING_SECONDS - 10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end_of(log: Path, lines: int = 12) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def write_yaml(path: Path, content: Mapping[str, Any]) -> Path:
    """Write a YAML file and return its path."""
    make_folder(path.parent)
    write_text(path, yaml.safe_dump(dict(content), sort_keys=False))
    return path


def write_json(path: Path, content: object) -> None:
    """Write a JSON file."""
    make_folder(path.parent)
    write_text(path, json.dumps(content, indent=1) + "\n")


# -- the steps: each returns a line for the status, or raises OutOfTime for the next slice to resume it


def smoke(now: Slice) -> str:
    """Run scripts/smoke_gpu.sh, which cannot resume, for at most a slice. Raises MTScaffoldError if it fails."""
    log, folder = now.results / "smoke.txt", now.output / "smoke"
    log.unlink(missing_ok=True)
    try:
        status = now.run(["bash", SOURCE / "scripts" / "smoke_gpu.sh", folder], log, {"PYTHON": sys.executable})
    except OutOfTime:
        return "not finished within the slice; smoke.txt has its output so far"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if status:
        raise MTScaffoldError(f"status {status}; see smoke.txt")
    return "status 0; see smoke.txt"


def big(now: Slice) -> str:
    """Train transformer-big for a few updates with each batch; if it does not fit, with half the tokens at once.

    A batch has as many tokens as for WMT'14, in shorter sentences, which need a little less memory and time for
    attention. Raises MTScaffoldError if a training fails for another reason than memory.
    """
    measured: dict[str, Any] = {}
    for name, (tokens, batches) in (TINY_BATCHES if now.rehearse else BIG_BATCHES).items():
        while True:
            output = f"big-{tokens}x{batches}"
            configuration = write_yaml(now.output / f"{output}.yaml", big_configuration(tokens, batches, now.rehearse))
            report = now.output / output / "bpe" / "seed-1" / "training.json"
            log = report.parent / "train.log"
            try:
                if not report.exists() and not _out_of_memory(log):
                    now.experiment(configuration, output, "--snakemake", report.relative_to(now.output))
            except MTScaffoldError as error:
                if not _out_of_memory(log):
                    raise MTScaffoldError(f"{output}: {error}") from None
            if report.exists():
                measured[output] = {"batch": name, **speed(log, tokens, batches)}
                break
            measured[output] = {"batch": name, "does_not_fit": True}
            tokens, batches = tokens // 2, batches * 2
            if tokens < LEAST_TOKENS:
                break
        write_json(now.results / "big.json", {"device": _device(), "rehearsal": now.rehearse, "trainings": measured})
    return "; ".join(f"{name}: {_as_text(each)}" for name, each in measured.items())


def _out_of_memory(log: Path) -> bool:
    return log.exists() and "out of memory" in log.read_text(encoding="utf-8", errors="replace").lower()


def _as_text(measured: Mapping[str, Any]) -> str:
    if "does_not_fit" in measured:
        return "does not fit"
    return f"{measured['tokens_per_second']:,} tokens per second, {measured['hours']} hours"


def big_configuration(tokens: int, batches: int, rehearse: bool = False) -> dict[str, Any]:
    """Return the configuration of WMT'14, on generated text and for a few updates."""
    published = yaml.safe_load((SOURCE / "configs" / "wmt14_en_de.yaml").read_text(encoding="utf-8"))
    options = published["train"]["options"]
    changes: dict[str, Any] = {
        "max-tokens": tokens,
        "update-freq": batches,
        "lr": 0.001,
        "max-update": 40,
        "log-interval": 1,
    }
    if rehearse:
        changes |= {**TINY, "arch": "transformer", "fp16": False, "max-update": 30}
    changes |= {"save-interval-updates": changes["max-update"], "validate-interval": 1000, "num-workers": 2}
    pairs, stems = (1500, 200) if rehearse else (200000, STEMS)
    return {
        "name": "big",
        "description": "generated text, to measure the speed of transformer-big",
        "languages": {"source": "en", "target": "de"},
        "data": {"synthetic": {"pairs": pairs, "valid": 100, "test": 100, "seed": 1, "stems": stems}},
        "tokenise": published["tokenise"],
        "clean": published["clean"],
        "codes": {"symbols": 500} if rehearse else published["codes"],
        "binarise": published["binarise"],
        "systems": {"bpe": {"algorithm": "bpe"}},
        "baseline": "bpe",
        "seeds": [1],
        "average": {"last": 1, "by": "updates"},
        "train": {"options": {**options, **changes}},
    }


def speed(log: Path, tokens: int, batches: int) -> dict[str, Any]:
    """Return speed and memory from a training log, without its first updates, and the hours of a whole training.

    The log has a line for each update, with the seconds since the training began (fairseq's wall). Raises
    MTScaffoldError for too few updates.
    """
    updates = list(_updates(log))[4:]
    if len(updates) < 2:
        raise MTScaffoldError(f"{log}: too few updates to measure a speed")
    first, last = updates[0], updates[-1]
    seconds = (last["wall"] - first["wall"]) / (last["num_updates"] - first["num_updates"])
    words = sum(each["wpb"] for each in updates[1:]) / (len(updates) - 1)
    found: dict[str, Any] = {
        "max_tokens": tokens,
        "update_freq": batches,
        "updates": len(updates) - 1,
        "seconds_per_update": round(seconds, 3),
        "target_tokens_per_update": round(words),
        "tokens_per_second": round(words / seconds) if seconds else 0,
        "hours": round(BIG_UPDATES * seconds / 3600, 1),
    }
    free = [each["gb_free"] for each in updates if "gb_free" in each]
    if free:
        found["least_gib_free"] = min(free)
    return found


def _updates(log: Path) -> Iterator[dict[str, float]]:
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if "| train_inner |" in line:
            yield {name: float(number) for name, number in re.findall(r"\b(\w+)=(\d+(?:\.\d+)?(?:e-?\d+)?)\b", line)}


def _device() -> dict[str, Any]:
    import torch

    if not sees_gpu():
        return {"name": f"CPU, {os.cpu_count()} cores", "torch": torch.__version__}
    properties = torch.cuda.get_device_properties(0)
    return {"name": properties.name, "gib": round(properties.total_memory / 2**30, 1), "torch": torch.__version__}


def multi30k(now: Slice) -> str:
    """Train on Multi30k in the published size and batch, 60 epochs on one GPU: four systems, ten seeds."""
    if now.cache is None:
        return "skipped: --cache does not name a folder with Multi30k's files"
    systems = ["bpe", "scaffold", "bpe+dropout", "scaffold+dropout"]
    return _seeds(now, "multi30k_published", SOURCE / "configs" / "study_multi30k_en_de.yaml", (1, 3, 5, 10), systems)


def debian(now: Slice) -> str:
    """Train on Debian English to German: BPE and Scaffold-BPE, five seeds."""
    if now.debian is None:
        return "skipped: --debian does not name the output of studies.debian"
    link = now.output / "debian_corpus"
    if not link.is_symlink():
        link.symlink_to(now.debian.resolve())
    if link.resolve() != now.debian.resolve():
        raise MTScaffoldError(
            f"{link}: links to {link.resolve()}, not {now.debian}; name the former with --debian, or another --output"
        )
    systems = ["bpe", "scaffold"]
    return _seeds(now, "debian_en_de", SOURCE / "studies" / "debian" / "debian_en_de.yaml", (1, 3, 5), systems)


def _seeds(now: Slice, name: str, configuration: Path, upto: Sequence[int], systems: Sequence[str]) -> str:
    """Train a study's systems with increasing numbers of seeds, and keep each comparison."""
    more: list[object] = []
    if now.rehearse:
        upto, systems = (1, 2), systems[:2]
        # Validated only at the end: Debian's validation text takes longer than these updates.
        options = {**TINY, "arch": "transformer", "warmup-updates": 10, "validate-interval": 1000}
        train: dict[str, Any] = {"options": options}
        # Each configuration has its own setting to end a training.
        if "multi30k" in name:
            train["stop"] = {"updates": 30}
        else:
            options["max-update"] = 30
        # Untrained models would not end their sentences.
        short = {"options": {"beam": 1, "max-len-a": 0, "max-len-b": 5}}
        settings = {"train": train, "average": {"last": 1}, "codes": {"symbols": 300}, "translate": short}
        more = ["--sample", 300, *_set(settings)]
    elif "multi30k" in name:
        # As the first three pairs with dropout were trained (docs/results/multi30k_published).
        more = ["--batch", "one_gpu", *_set({"train.stop": None, "train.options.max-epoch": 60})]
    more += ["--only", *systems]
    results = now.results / name
    kept = results / TRAININGS
    compared = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for most in upto:
        if f"{systems[-1]}/seed-{most}" in compared:
            continue
        now.experiment(configuration, name, *more, "--set", f"seeds={list(range(1, most + 1))}")
        keep_results(now.output / name, results)
    return f"{upto[-1]} seeds of {', '.join(systems)}"


def _set(settings: Mapping[str, Any]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def keep_results(experiment: Path, results: Path) -> None:
    """Copy the comparison of an experiment, its figures, and the report of each training, without its curves."""
    make_folder(results / "figures")
    for file in (*(experiment / name for name in RESULT_FILES), *experiment.glob("figures/*.svg")):
        shutil.copyfile(file, results / file.relative_to(experiment))
    trainings = {}
    for report in sorted(experiment.glob("*/seed-*/training.json")):
        said = json.loads(report.read_text(encoding="utf-8"))
        trainings["/".join(report.parts[-3:-1])] = {
            key: said.get(key) for key in ("updates", "epochs", "best_valid_loss", "parameters", "seconds")
        }
    write_json(results / TRAININGS, trainings)


STEPS: dict[str, Callable[[Slice], str]] = {"smoke": smoke, "big": big, "multi30k": multi30k, "debian": debian}


# -- slices


def run_slice(now: Slice, steps: Sequence[str] = tuple(STEPS), say: Callable[[str], None] = print) -> bool:
    """Run the unfinished steps until the slice ends; return whether all are finished. Failed steps are tried again."""
    make_folder(now.results)
    status = now.results / "status.json"
    said: dict[str, Any] = json.loads(status.read_text(encoding="utf-8")) if status.exists() else {}
    said["slices"] = said.get("slices", 0) + 1
    for name in steps:
        entry = said.setdefault(name, {"finished": False, "seconds": 0})
        if entry["finished"]:
            say(f"{name}: finished before")
            continue
        begin = time.monotonic()
        out_of_time = False
        try:
            entry["said"] = STEPS[name](now)
            entry["finished"] = not entry["said"].startswith("skipped")
        except OutOfTime:
            out_of_time, entry["said"] = True, "stopped; the next slice resumes it"
        except MTScaffoldError as error:
            entry["said"] = f"failed: {error}"
        entry["seconds"] = round(entry["seconds"] + time.monotonic() - begin)
        write_json(status, said)
        say(f"{name}: {entry['said']} ({entry['seconds']:,} s in all)")
        if out_of_time:
            break
    # As a single file as well, because some machines cannot send back a folder.
    shutil.make_archive(str(now.results), "gztar", now.results)
    return all(said.get(name, {}).get("finished", False) for name in steps)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    result = argparse.ArgumentParser(prog="python -m studies.gpu", description=__doc__)
    result.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for all files")
    result.add_argument("--minutes", type=float, default=10, metavar="M", help="length of this slice (10)")
    result.add_argument("--cache", type=Path, metavar="DIR", help="folder with Multi30k's files (mt-scaffold get-data)")
    result.add_argument("--debian", type=Path, metavar="DIR", help="output of python -m studies.debian --languages de")
    result.add_argument("--at-once", type=int, default=6, metavar="N", help="trainings of small models at once (6)")
    result.add_argument("--steps", nargs="+", choices=tuple(STEPS), default=tuple(STEPS), help="only these")
    result.add_argument("--rehearse", action="store_true", help="on the CPU, with tiny models")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one slice and return the exit status: 0 if all steps are finished, 75 if another slice is needed."""
    options = parser().parse_args(arguments)
    until = time.monotonic() + 60 * options.minutes
    # Child processes must react to Ctrl-C, even if this process was started with it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for name in ("cache", "debian"):
            folder = getattr(options, name)
            if folder is not None and not folder.is_dir():
                raise UsageError(f"--{name} {folder}: not a directory")
        if options.at_once < 1:
            raise UsageError(f"--at-once {options.at_once}: must be 1 or more")
        if not options.rehearse and not sees_gpu():
            raise UsageError("PyTorch finds no GPU; --rehearse runs everything small on the CPU")
        cache = None if options.cache is None else options.cache.resolve()
        make_folder(options.output)
        now = Slice(options.output.resolve(), until, cache, options.debian, options.at_once, options.rehearse)
        return 0 if run_slice(now, options.steps, lambda line: print(line, flush=True)) else 75
    except MTScaffoldError as error:
        print(f"studies.gpu: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
