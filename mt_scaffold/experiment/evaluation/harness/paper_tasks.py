"""The paper's tasks: their names in the harness, and the metric that the paper most likely reports for each.

The paper reports "average accuracy" and "exact match" and names no metric of the harness. Most of its tasks have only
one accuracy. Three have ``acc`` and ``acc_norm`` (log-likelihoods divided by the lengths of the choices), which differ
by up to 14 points. The reasons below are inferred from the size of the figures: the harness' repository has results of
BLOOM-560M and 7.1B (results/bloom, 0-shot), models about as large as the paper's smallest and largest.
"""

from __future__ import annotations

from typing import NamedTuple

ACC, ACC_NORM, EXACT_MATCH = "acc", "acc_norm", "exact_match"


class PaperTask(NamedTuple):
    """A task of the paper: its name in the harness, the metric to show next to the paper's figure, and why."""

    task: str
    metric: str
    why: str


_ONLY = "the only accuracy of the task"
_EXACT = "the paper's own word, exact match, and the only metric of the task"
PAPER_TASKS = {
    "BoolQ": PaperTask("boolq", ACC, _ONLY),
    "HellaSwag": PaperTask(
        "hellaswag",
        ACC_NORM,
        "inferred: the paper's largest model is 1 point from the acc_norm of BLOOM-7.1B (59.68) and 14 from its acc "
        "(46.24), the smallest 4 and 9 from those of BLOOM-560M (36.56 and 31.56)",
    ),
    "OpenBookQA": PaperTask(
        "openbookqa",
        ACC_NORM,
        "inferred: the paper's largest model is 1 point from the acc_norm of BLOOM-7.1B (35.8) and 10 from its acc "
        "(25.2), the smallest 2 and 13 from those of BLOOM-560M (28.2 and 17.2)",
    ),
    "PIQA": PaperTask(
        "piqa",
        ACC_NORM,
        "inferred from the other two tasks that have both; the figures do not tell, as the two differ by about one "
        "point (BLOOM-560M: 64.09 and 65.13)",
    ),
    "SIQA": PaperTask("social_iqa", ACC, _ONLY),
    "StoryCloze": PaperTask("storycloze_2016", ACC, f"{_ONLY}; that the paper's is that of 2016 is inferred"),
    "Winogrande": PaperTask("winogrande", ACC, _ONLY),
    "TriviaQA": PaperTask("triviaqa", EXACT_MATCH, _EXACT),
    "WebQuestions": PaperTask("webqs", EXACT_MATCH, _EXACT),
}
_BY_TASK = {each.task: each for each in PAPER_TASKS.values()}
_PAPER_NAMES = {each.task: name for name, each in PAPER_TASKS.items()}


def paper_name(task: str) -> str | None:
    """Return the paper's name of a task of the harness, if it has one."""
    return _PAPER_NAMES.get(task)


def main_metric(task: str, metrics: list[str]) -> tuple[str, str]:
    """Return the metric of a task that is compared first, and why.

    metrics: of the task, such as ``acc`` or ``exact_match (remove_whitespace)``; at least one.
    """
    known = _BY_TASK.get(task)
    if known is not None:
        for metric in metrics:
            # A filter follows the name.
            if metric.partition(" ")[0] == known.metric:
                return metric, known.why
    if len(metrics) == 1:
        return metrics[0], "the only metric of the task"
    for name in (ACC_NORM, ACC, EXACT_MATCH):
        for metric in metrics:
            if metric.partition(" ")[0] == name:
                return metric, f"{name} comes first where a task has it"
    return metrics[0], "the first metric of the task"
