"""The reference pages of the commands, from their ``--help``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from mt_scaffold import cli

_INTRODUCTION = """\
The output of `mt-scaffold COMMAND --help`. Options may be shortened to an unambiguous prefix. A wrong option ends with
exit status 2, bad input with 1, each with one line on stderr.
"""


def is_segmentation(name: str) -> bool:
    return cli.command_module(name).__name__.startswith("mt_scaffold.commands.")


SEGMENTATION = tuple(name for name in cli.COMMANDS if is_segmentation(name))
EXPERIMENT = tuple(name for name in cli.COMMANDS if not is_segmentation(name))


def commands_page(title: str, names: Iterable[str]) -> str:
    """Return a page with the help of the commands."""
    parser = cli.make_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = (f"## `{name}`\n\n```output\n{commands.choices[name].format_help()}```\n" for name in names)
    return "\n".join([f"# {title}", "", _INTRODUCTION, *helps])
