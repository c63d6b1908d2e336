"""Measure how fast test sets are translated: fairseq-generate against CTranslate2, the same model and search.

    python benchmarks/translating.py [--data FOLDER --subset NAME --model FILE] [-- --beam 4 --max-tokens 4000]

Without a model, one of the size of transformer_iwslt_de_en with random parameters translates 30 generated sentences
into 25 subwords each: the time does not depend on what the parameters are.

Each run is a process of its own, ``mt-scaffold translate``, bound to as many cores as it has threads; the engines take
turns, one round after the other. Three times are printed: of the translating alone, as each engine reports it; of the
whole process (start, model, detokenising); and of its processors, which depends less on what else the machine does.
Beside them: the sentences whose subwords are those of fairseq.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mt_scaffold.corpus.text import read_lines
from mt_scaffold.experiment.binarise.dictionary import make_dictionaries
from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.configuration.limits import Limits
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.methods.learn import learn_bpe

# Name → engine and quantization.
ENGINES = {
    "fairseq-generate": ("fairseq", None),
    "CTranslate2, float32": ("ctranslate2", None),
    "CTranslate2, int8": ("ctranslate2", "int8"),
}


class Run(NamedTuple):
    """The seconds of one run."""

    translating: float
    whole: float
    processors: float


GENERATED_SEARCH = "--beam 5 --min-len 25 --max-len-b 25 --max-tokens 4000".split()


def measure(name: str, threads: int, options: argparse.Namespace, folder: Path) -> tuple[Run, list[str]]:
    """Translate once; return the times and the subwords."""
    engine, quantization = ENGINES[name]
    command = [sys.executable, "-m", "mt_scaffold", "translate", "--engine", engine, "--data", options.data]
    command += ["--subset", options.subset, "--model", options.model, "--output", str(folder)]
    command += (["--quantization", quantization] if quantization else []) + ["--", *options.fairseq_options]
    cores = sorted(os.sched_getaffinity(0))[:threads]
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    whole, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (subwords,) = folder.glob(f"{options.subset}.*.subwords")
    return Run(translating(folder, options.subset, engine), whole, processors), read_lines(subwords)


def translating(folder: Path, subset: str, engine: str) -> float:
    """The seconds of the translating alone."""
    if engine == "ctranslate2":
        report = json.loads((folder / f"{subset}.engine.json").read_text(encoding="utf-8"))
        return float(report["translate_seconds"])
    log = (folder / f"{subset}.log").read_text(encoding="utf-8")
    found = re.search(r"Translated [\d,]+ sentences \(([\d,]+) tokens\) in [\d.]+s .* ([\d.]+) tokens/s", log)
    if found is None:
        raise SystemExit(f"{folder}: fairseq's log does not say how long it translated")
    # The seconds themselves are printed to a tenth.
    return int(found[1].replace(",", "")) / float(found[2])


def generate(folder: Path) -> tuple[str, str, str]:
    """Make sentences and a model with random parameters; return the data folder, the subset and the model."""
    import torch
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from omegaconf import OmegaConf

    pairs = sentence_pairs(1)
    for name, number in {"train": 5000, "test": 30}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    learn_bpe(paths=[folder / "train.en", folder / "train.de"], outfile=folder / "codes", num_symbols=8000)
    segmentation = joint_segmentation(folder / "codes")
    make_dictionaries(folder / "train", folder, "en", "de", segmentation, Limits(padding_factor=8192))
    data, model = folder / "data", folder / "model.pt"
    binarise(data, "en", "de", segmentation, tests=[folder / "test"], dictionaries=folder)
    arguments = [str(data), "--source-lang", "en", "--target-lang", "de", "--share-all-embeddings", "--max-tokens", "1"]
    arguments += ["--arch", "transformer_iwslt_de_en"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    parameters = tasks.setup_task(cfg.task).build_model(cfg.model).state_dict()
    history = [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    rest = {"optimizer_history": history, "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}}
    plain = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    torch.save({"args": None, "cfg": plain, "model": parameters, **rest}, model)
    return str(data), "test", str(model)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="what mt-scaffold binarise made (default: generated)")
    parser.add_argument("--subset", metavar="NAME", help="the test set in it")
    parser.add_argument("--model", metavar="FILE", help="what mt-scaffold average wrote (default: random parameters)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the figures, as JSON")
    parser.add_argument("fairseq_options", nargs="*", metavar="-- OPTIONS", help="options of fairseq-generate")
    options = parser.parse_args()
    seconds: dict[tuple[int, str], list[Run]] = {}
    lines: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        if options.data is None:
            options.data, options.subset, options.model = generate(Path(temporary))
            options.fairseq_options = options.fairseq_options or GENERATED_SEARCH
        for _ in range(options.rounds):
            for threads in options.threads:
                for number, name in enumerate(ENGINES):
                    run, lines[name] = measure(name, threads, options, Path(temporary) / str(number))
                    seconds.setdefault((threads, name), []).append(run)
                    print(threads, name, run, file=sys.stderr, flush=True)
    expected = lines["fairseq-generate"]
    equal = {
        name: sum(one == other for one, other in zip(found, expected, strict=True)) for name, found in lines.items()
    }
    print(f"{len(expected)} sentences, {sum(len(line.split()) for line in expected)} subwords by fairseq")
    print("| threads | | translating, s | faster | whole process, s | faster | processors, s | faster | equal |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (threads, name), runs in seconds.items():
        cells = []
        for kind in range(len(Run._fields)):
            times = [run[kind] for run in runs]
            # Compared with the run of fairseq in the same round.
            theirs = [run[kind] for run in seconds[threads, "fairseq-generate"]]
            ratio = statistics.median(one / other for one, other in zip(theirs, times, strict=True))
            cells += [f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})", f"{ratio:.1f}"]
        print(f"| {threads} | {name} | {' | '.join(cells)} | {equal[name]} |", flush=True)
    if options.output:
        figures = {
            "seconds": [
                {"threads": threads, "engine": name, "runs": runs} for (threads, name), runs in seconds.items()
            ],
            "equal": equal,
            "versions": versions(),
            "arguments": sys.argv[1:],
        }
        options.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
