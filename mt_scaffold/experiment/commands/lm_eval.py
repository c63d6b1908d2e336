"""mt-scaffold lm-eval: see mt_scaffold.experiment.evaluation.lm_eval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import File, Folder, Name, OutputFile
from mt_scaffold.experiment.evaluation.harness.paper_tasks import PAPER_TASKS
from mt_scaffold.experiment.evaluation.harness.scores import format_harness
from mt_scaffold.experiment.evaluation.lm_eval import run_harness
from mt_scaffold.experiment.training.average import last_checkpoints
from mt_scaffold.signature import Option

EXAMPLES = """\
mt-scaffold lm-eval --checkpoints model/checkpoints --last 5 --data binarised --tasks paper --num-fewshot 0 5 \\
    --output tasks.json
"""
_TASKS = f"tasks of lm_eval, by its names or the paper's ({', '.join(PAPER_TASKS)}; paper: all of these)"


def run(
    *,
    checkpoint: Annotated[Sequence[str], Option("FILE", "-c")] = (),
    checkpoints: Folder | None = None,
    last: Annotated[int, Option(short="-n")] = 5,
    updates: bool = False,
    data: Folder | None = None,
    tasks: Annotated[Sequence[str], Option("NAME", help=_TASKS)],
    num_fewshot: Sequence[int] = (0,),
    include_path: Sequence[Folder] = (),
    storycloze: Folder | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
    gpus: int = 0,
    download: bool = False,
    samples: File | None = None,
    system: Name | None = None,
    seed: int = 1,
    output: OutputFile,
) -> None:
    """Ask a model the tasks, and show the scores.

    checkpoint: a checkpoint of --arch llama or gpt_neox, or the folder of a causal model of transformers; of several,
        the mean counts
    checkpoints: or the folder that fairseq-train saved them in
    last: with --checkpoints: its last N (default: 5, as the paper)
    updates: with --checkpoints: those within epochs, not at their ends, and the final one
    data: of checkpoints: the data folder of the training
    num_fewshot: solved questions before each one; several to run each (default: 0; the paper: 0 5)
    include_path: folders with your own tasks
    storycloze: the files of StoryCloze (cloze_test_{val,test}__spring2016*.csv)
    limit: ask only the first N questions of each task, to try out
    batch_size: requests at once (default: 16)
    gpus: 1: only on a GPU (default: one if there is)
    download: fetch the tasks' data where they are not here (default: offline)
    samples: write the log-likelihoods too, one line of JSON per question
    system: the system, for compare (default: the training's folder)
    seed: the training's random seed, for compare
    output: the scores, as JSON
    """
    if bool(checkpoint) == bool(checkpoints):
        raise UsageError("lm-eval: give either checkpoints by name, or --checkpoints with their folder")
    named = checkpoint or last_checkpoints(checkpoints or "", last, by_updates=updates)
    result = run_harness(
        named,
        data,
        tasks,
        output,
        num_fewshot=num_fewshot,
        include_path=include_path,
        storycloze=storycloze,
        limit=limit,
        batch_size=batch_size,
        gpus=gpus,
        download=download,
        samples=samples,
        system=system,
        seed=seed,
    )
    print(format_harness(result), end="")
