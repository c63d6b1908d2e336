"""mt-scaffold lm-eval: see mt_scaffold.experiment.evaluation.lm_eval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import File, Folder, Name, OutputFile
from mt_scaffold.experiment.evaluation.lm_eval import Asking, format_harness, run_harness
from mt_scaffold.experiment.training.average import last_checkpoints
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold lm-eval --checkpoints model/checkpoints --last 5 --data binarised --tasks paper --num-fewshot 0 5 \\
    --output tasks.json
"""


def run(
    *,
    checkpoint: Annotated[Sequence[str], Option("FILE", "-c")] = (),
    checkpoints: Folder | None = None,
    last: Annotated[int | None, Option(short="-n")] = None,
    updates: bool = False,
    data: Folder | None = None,
    asking: Asking,
    samples: File | None = None,
    system: Name | None = None,
    seed: int = 1,
    output: OutputFile,
) -> None:
    """Ask a model the tasks, and show the scores.

    checkpoint: a checkpoint of --arch llama or gpt_neox, or the folder of a causal model of transformers; with several,
        the scores are their means
    checkpoints: or the folder in which fairseq-train saved them
    last: with --checkpoints: its last N (default: 5, as in the paper)
    updates: with --checkpoints: those within epochs, not at their ends, and the final one
    data: with checkpoints: the data folder of the training
    samples: write the log-likelihoods to FILE, one line of JSON per question
    system: the system, for compare (default: the training's folder)
    seed: the training's random seed, for compare
    output: the scores, as JSON
    """
    if bool(checkpoint) == bool(checkpoints):
        raise UsageError("lm-eval: give either checkpoints by name, or --checkpoints with their folder")
    if checkpoint and (last is not None or updates):
        raise UsageError("lm-eval: --last and --updates choose from the folder that --checkpoints names")
    named = checkpoint or last_checkpoints(checkpoints or "", 5 if last is None else last, by_updates=updates)
    result = run_harness(named, data, output, asking, samples=samples, system=system, seed=seed)
    print(format_harness(result), end="")
