"""Check fairseq's options without data: its own parser reads them, and the model is built without memory for weights.

Run as a program, this is the part that imports fairseq: it reads calls from stdin and prints its findings as JSON.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.fairseq import option_arguments, options_in, user_dir
from mt_scaffold.experiment.runtime.schema import OptionValue, nearest

_PARSERS = {"train": "get_training_parser", "generate": "get_generation_parser"}


class WrongOption(UsageError):
    """An option that fairseq or a model rejects; ``option`` is its name without dashes, "" if unknown."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class Call:
    """A program of fairseq (``train``, ``generate``) with its options; of ``train``, the sizes of its dictionaries.

    dictionaries: the approximate sizes of those for source and target; a single number for a joined dictionary or a
    language model. None: the model is not built. trainings: the number of trainings with these options.
    """

    program: str
    options: Mapping[str, OptionValue]
    dictionaries: Sequence[int] | None = None
    trainings: int = 0


@dataclass(frozen=True)
class Checked:
    """The number of parameters of each call's model, or None if it was not built.

    saved: the same, but a tied parameter counts once per name, as fairseq saves it on GPUs.
    """

    parameters: Sequence[int | None]
    saved: Sequence[int | None]


def check_options(calls: Iterable[Call]) -> Checked:
    """Check options, and return the sizes of the models.

    Raises WrongOption for an option that fairseq's own parser rejects, with the nearest known one, for a value that
    should be a number, and for a model, optimiser or schedule that cannot be built. This needs no data and takes some
    seconds; without fairseq nothing is checked.
    """
    calls = list(calls)
    if importlib.util.find_spec("fairseq") is None:
        return Checked([None] * len(calls), [None] * len(calls))
    request = [[call.program, option_arguments(call.options), call.dictionaries] for call in calls]
    return _checked(_answer_of_process(request))


def _answer_of_process(request: list[Any]) -> Any:
    # -P: a file called random.py in the current folder must not shadow Python's own.
    command = [sys.executable, "-P", "-m", __spec__.name if __spec__ else __name__]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True)
    if done.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    try:
        return json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])
    except ValueError:
        last = done.stderr.rstrip().rpartition("\n")[2]
        raise UsageError(f"fairseq cannot parse its options ({last}); correct them") from None


def _checked(answer: Any) -> Checked:
    if "refused" in answer:
        raise WrongOption(*answer["refused"])
    return Checked(answer["parameters"], answer["saved"])


# -- in a process that imports fairseq


def _answer(calls: list[Any]) -> dict[str, Any]:
    sizes: list[tuple[int | None, int | None]] = []
    for program, arguments, dictionaries in calls:
        try:
            parsed = _parse(program, arguments)
            sizes.append((None, None) if dictionaries is None else _build(parsed, dictionaries))
        except WrongOption as refused:
            return {"refused": [f"fairseq-{program}: {refused}", refused.option]}
    return {"parameters": [one for one, _ in sizes], "saved": [saved for _, saved in sizes]}


def _parse(program: str, arguments: list[str]) -> Any:
    """Return the arguments as parsed by fairseq; raise WrongOption if it rejects one."""
    from fairseq import options

    parser = getattr(options, _PARSERS[program])()

    def refuse(message: str) -> NoReturn:
        left = message.removeprefix("unrecognized arguments: ").split(" ")[0]
        for name, value in options_in(arguments).items():
            if left != message and not left.startswith("--") and isinstance(value, list) and left in value:
                joined = ",".join(map(str, value))
                raise WrongOption(f"argument --{name}: takes one value, not a list; write '{joined}'", name)
        raise _named(message, parser)

    parser.error = refuse
    arguments = ["data", "--user-dir", str(user_dir()), *arguments]
    sys.argv[:] = [f"fairseq-{program}"]
    try:
        return options.parse_args_and_arch(parser, arguments)
    except WrongOption:
        raise
    except Exception as error:
        # fairseq evaluates the values of some options as Python; argparse does not name the option that fails.
        for name, values in options_in(arguments).items():
            action = parser._option_string_actions.get(f"--{name}")
            for value in values if isinstance(values, list) else [values]:
                try:
                    if action is not None and callable(action.type) and value is not True:
                        action.type(value)
                except Exception:
                    raise WrongOption(f"argument --{name}: not a number: '{value}'", name) from None
        raise WrongOption(f"cannot parse its options ({error})") from None


def _named(message: str, parser: Any) -> WrongOption:
    """Return an error of the parser with the name of the option and the nearest known one."""
    if found := re.match(r"unrecognized arguments: (.*)", message):
        unknown = [word for word in found[1].split() if word.startswith("--")]
        name = unknown[0] if unknown else found[1]
        known = {option.lstrip("-"): option for option in parser._option_string_actions if option.startswith("--")}
        hint = nearest(name.partition("=")[0].lstrip("-"), known) if unknown else ""
        hint = f"; did you mean --{hint.rpartition(' ')[2][:-1]}?" if hint.startswith("; did") else ""
        return WrongOption(f"unrecognized arguments: {' '.join(unknown) or found[1]}{hint}", name.lstrip("-"))
    if found := re.match(r"argument (--[\w-]+)(\S*): invalid choice: '?([^']*)'? \(choose from", message):
        choices = parser._option_string_actions[found[1]].choices
        hint = nearest(found[3], dict.fromkeys(map(str, choices)))
        hint = hint if hint.startswith("; did") else ""
        return WrongOption(f"argument {found[1]}{found[2]}: invalid choice: '{found[3]}'{hint}", found[1].lstrip("-"))
    option = re.match(r"argument (--[\w-]+)", message)
    return WrongOption(message.partition(" (choose from ")[0], option[1].lstrip("-") if option else "")


def _build(parsed: Any, dictionaries: list[int]) -> tuple[int, int]:
    """Build the model, optimiser and schedule of parsed options, and return the sizes for Checked."""
    import types

    import torch
    from fairseq import models, optim
    from fairseq.data import Dictionary
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.optim import lr_scheduler

    made = []
    for size in dictionaries:
        made.append(Dictionary())
        for number in range(max(0, size - len(made[-1]))):
            made[-1].add_symbol(f"{number}")
    task = types.SimpleNamespace(
        source_dictionary=made[0], target_dictionary=made[-1], dictionary=made[0], output_dictionary=made[0]
    )
    _check_heads(parsed)
    try:
        config = convert_namespace_to_omegaconf(parsed)
        with torch.device("meta"):
            model = models.build_model(config.model, task)
    except Exception as error:
        raise WrongOption(f"the model cannot be built: {_one_line(error)}") from None
    one = torch.nn.Parameter(torch.zeros(1))
    try:
        optimizer = optim.build_optimizer(config.optimizer, [one])
        optimizer.optimizer  # noqa: B018  some build it on first use
        lr_scheduler.build_lr_scheduler(config.lr_scheduler, optimizer)
    except Exception as error:
        raise WrongOption(f"the optimiser or its schedule cannot be built: {_one_line(error)}") from None
    saved = sum(tensor.numel() for tensor in model.state_dict().values())
    return sum(parameter.numel() for parameter in model.parameters()), saved


def _check_heads(parsed: Any) -> None:
    """Refuse a number of heads that does not divide the layer width; fairseq's assertion names no option."""
    for side in ("encoder", "decoder"):
        width, heads = (getattr(parsed, f"{side}_{name}", None) for name in ("embed_dim", "attention_heads"))
        if isinstance(width, int) and isinstance(heads, int) and (heads < 1 or width % heads):
            raise WrongOption(
                f"{heads} {side}-attention-heads do not divide {side}-embed-dim {width}; change one of them",
                f"{side}-attention-heads",
            )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    # fairseq and what it imports may print.
    with contextlib.redirect_stdout(sys.stderr):
        answered = _answer(json.load(sys.stdin))
    print(json.dumps(answered))
