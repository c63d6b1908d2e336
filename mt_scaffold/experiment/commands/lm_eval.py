"""mt-scaffold lm-eval: see mt_scaffold.experiment.evaluation.lm_eval."""

from __future__ import annotations

import argparse

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.evaluation.harness.paper_tasks import PAPER_TASKS
from mt_scaffold.experiment.evaluation.harness.scores import format_harness
from mt_scaffold.experiment.evaluation.lm_eval import run_harness
from mt_scaffold.experiment.training.average import last_checkpoints

EXAMPLES = """\
mt-scaffold lm-eval --checkpoints model/checkpoints --last 5 --data binarised --tasks paper --num-fewshot 0 5 \\
    --output tasks.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--checkpoint",
        "-c",
        nargs="+",
        default=[],
        metavar="FILE",
        help="a checkpoint of --arch llama or gpt_neox, or the folder of a causal model of transformers; of several, "
        "the mean counts",
    )
    parser.add_argument("--checkpoints", metavar="FOLDER", help="or the folder that fairseq-train saved them in")
    parser.add_argument(
        "--last",
        "-n",
        type=int,
        default=5,
        metavar="N",
        help="with --checkpoints: its last N (default: 5, as the paper)",
    )
    parser.add_argument(
        "--updates",
        action="store_true",
        help="with --checkpoints: those within epochs, not at their ends, and the final one",
    )
    parser.add_argument("--data", metavar="FOLDER", help="of checkpoints: the data folder of the training")
    parser.add_argument(
        "--tasks",
        nargs="+",
        required=True,
        metavar="NAME",
        help=f"tasks of lm_eval, by its names or the paper's ({', '.join(PAPER_TASKS)}; paper: all of these)",
    )
    parser.add_argument(
        "--num-fewshot",
        type=int,
        nargs="+",
        default=[0],
        metavar="N",
        help="solved questions before each one; several to run each (default: 0; the paper: 0 5)",
    )
    parser.add_argument("--include-path", nargs="+", default=[], metavar="FOLDER", help="folders with your own tasks")
    parser.add_argument(
        "--storycloze", metavar="FOLDER", help="the files of StoryCloze (cloze_test_{val,test}__spring2016*.csv)"
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", help="ask only the first N questions of each task, to try out"
    )
    parser.add_argument("--batch-size", type=int, metavar="N", help="requests at once (default: 16)")
    parser.add_argument("--gpus", type=int, default=0, metavar="N", help="1: only on a GPU (default: one if there is)")
    parser.add_argument(
        "--download", action="store_true", help="fetch the tasks' data where they are not here (default: offline)"
    )
    parser.add_argument(
        "--samples", metavar="FILE", help="write the log-likelihoods too, one line of JSON per question"
    )
    parser.add_argument("--system", metavar="NAME", help="the system, for compare (default: the training's folder)")
    parser.add_argument("--seed", type=int, default=1, help="the training's random seed, for compare (default: 1)")
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="the scores, as JSON")


def run(options: argparse.Namespace) -> None:
    """Run the command and show the scores."""
    if bool(options.checkpoint) == bool(options.checkpoints):
        raise UsageError("lm-eval: give either checkpoints by name, or --checkpoints with their folder")
    checkpoints = options.checkpoint or last_checkpoints(options.checkpoints, options.last, by_updates=options.updates)
    result = run_harness(
        checkpoints,
        options.data,
        options.tasks,
        options.output,
        num_fewshot=options.num_fewshot,
        include_path=options.include_path,
        storycloze=options.storycloze,
        limit=options.limit,
        batch_size=options.batch_size,
        gpus=options.gpus,
        download=options.download,
        samples=options.samples,
        system=options.system,
        seed=options.seed,
    )
    print(format_harness(result), end="")
