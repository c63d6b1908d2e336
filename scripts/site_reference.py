"""The reference pages of the site, made from the command line's parsers and from the names that the package exports."""

from __future__ import annotations

import argparse
import html
import re
from collections.abc import Iterable, Iterator

import mt_scaffold
from mt_scaffold import cli

_INTRODUCTION = """\
`mt-scaffold COMMAND --help` shows the same in the terminal. Options may be shortened to their first letters where these
are unambiguous. A wrong option ends with exit status 2, bad input with 1, each with one line on stderr.
"""
# Functions of segmentation that are imported from their own modules.
_MORE = (
    "methods.trimming.trim",
    "analysis.stats.stats",
    "analysis.containing.containing",
    "analysis.compare_vocab.compare_vocab",
    "analysis.compare_vocab.compare_sizes",
    "analysis.explain.explain",
)
_INTEGRATIONS = (
    *("transformers.MTScaffoldTokenizer", "tokenizers.export_tokenizers", "tokenizers.to_tokenizers"),
    *("documents.DocumentEncoder", "documents.WordCounting"),
    *("datatrove.WordCounter", "datatrove.CodesTokenizer", "datatrove.MegatronCodesTokenizer"),
)
# The function of each step, in the order of docs/architecture.md, and its settings.
_STEPS = (
    *("data.parallel.get_data", "data.documents.get_documents", "data.tokenise.tokenise", "data.clean.clean"),
    *("binarise.dictionary.make_dictionaries", "binarise.pairs_as_ids.binarise"),
    *("binarise.pairs_as_words.binarise_words", "binarise.documents.binarise_documents"),
    *("training.train.train", "training.average.average"),
    *("training.strip_optimizer.strip_optimizer", "inference.translate.translate"),
    *("evaluation.score.score", "evaluation.score.Texts", "evaluation.score.Scoring", "evaluation.score.Origin"),
    *("evaluation.compare.compare", "evaluation.bits_per_byte.evaluate", "evaluation.bits_per_byte.Evaluation"),
    *("evaluation.lm_eval.run_harness", "evaluation.lm_eval.Asking"),
    "evaluation.harness.compare.compare_tasks",
    *("inference.sample.sample", "report.statistics.statistics", "report.statistics.language_model_statistics"),
    *("report.html.html_report", "packing.pack.pack", "packing.packed_model.translate_text"),
    "inference.export_ctranslate2.export_ctranslate2",
)


def _subparsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command, with all its arguments."""
    parser = cli.make_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def is_segmentation(name: str) -> bool:
    return cli.command_module(name).__name__.startswith("mt_scaffold.commands.")


SEGMENTATION = tuple(name for name in cli.COMMANDS if is_segmentation(name))
EXPERIMENT = tuple(name for name in cli.COMMANDS if not is_segmentation(name))


def commands_page(title: str, names: Iterable[str]) -> str:
    """Return a page with the commands: what each is for, its examples and its arguments, as ``--help`` has them."""
    parsers = _subparsers()
    return "\n".join([f"# {title}", "", _INTRODUCTION, *(_command(name, parsers[name]) for name in names)])


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    note = (parser.epilog or "").partition("examples:")[0].strip()
    examples = cli.command_module(name).EXAMPLES
    parts = [f"## `{name}`", _plain(parser.description or ""), f"```\n{examples}```", _plain(note)]
    return "\n\n".join([*filter(None, parts), *_arguments(parser)]) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a definition for each argument but --help: how it is written, and what it says."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        spelt = ", ".join(f"`{each}`" for each in _spellings(action))
        said = parser._get_formatter()._expand_help(action) if action.help else ""
        needed = " (required)" if action.required and action.option_strings else ""
        yield f"{spelt}\n:   {_plain(said)}{needed}"


def _spellings(action: argparse.Action) -> list[str]:
    """Return how an argument is written: each of its names, the first with what it takes."""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if action.nargs in ("*", "+"):
        value += " ..."
    elif isinstance(action.nargs, int) and action.nargs > 1:
        value = " ".join([value] * action.nargs)
    names = list(action.option_strings)
    return [f"{names[0]} {value}".strip(), *names[1:]] if names else [value]


def _plain(text: str) -> str:
    """Return help text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_\[\]])", r"\\\1", html.escape(text, quote=False))


def python_page() -> str:
    """Return the page of the package's public names, which mkdocstrings fills from their docstrings."""
    names = sorted(mt_scaffold.__all__, key=lambda name: (name[0].islower(), name.lower()))
    lines = ["# Python", "", "## Imported from `mt_scaffold`", ""]
    lines += [f"::: mt_scaffold.{name}\n" for name in names]
    lines += ["## Statistics and explanations", ""]
    lines += map(_with_module, _MORE)
    lines += ["## In other stacks", ""]
    return "\n".join([*lines, *(_with_module(f"integrations.{name}") for name in _INTEGRATIONS)])


def experiment_python_page() -> str:
    """Return the page of the steps of an experiment as functions."""
    lines = ["# Python: experiments", "", "Each step of an experiment is one function, which its command calls.", ""]
    return "\n".join([*lines, *(_with_module(f"experiment.{name}") for name in _STEPS)])


def _with_module(name: str) -> str:
    """Return what has mkdocstrings describe a name of the package, headed by the module to import it from."""
    return f"::: mt_scaffold.{name}\n    options:\n      show_root_full_path: true\n"
