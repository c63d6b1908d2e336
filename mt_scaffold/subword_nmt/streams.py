"""The inputs of subword-nmt's functions: open files or lines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any, TypedDict, cast

from mt_scaffold.corpus.files import Readable
from mt_scaffold.corpus.inputs import Lines, TextFile
from mt_scaffold.methods import PlainBPE

# An input of subword-nmt: an open file, or any other iterable of its lines.
Text = Readable[str] | Readable[bytes] | Iterable[str] | Iterable[bytes]


class Source(TypedDict, total=False):
    """An input of ``mt_scaffold``'s functions."""

    infile: TextFile
    lines: Lines


def source(text: Text) -> Source:
    """Return an open file or lines as arguments of ``mt_scaffold``'s functions."""
    return {"infile": cast(TextFile, text)} if hasattr(text, "read") else {"lines": cast(Lines, text)}


def add_file(parser: argparse.ArgumentParser, name: str, *short: str, mode: str = "r", **options: Any) -> None:
    """Add an option that takes the name of a file and opens it for text in UTF-8."""
    standard = sys.stdin if mode == "r" else sys.stdout
    if not options.get("required") and name in ("--input", "--output"):
        options["default"] = standard
    parser.add_argument(name, *short, type=_opener(mode, standard), metavar="PATH", **options)


def _opener(mode: str, standard: IO[str]) -> Callable[[str], IO[str]]:
    def opened(path: str) -> IO[str]:
        if path == "-":
            return standard
        try:
            return open(path, mode, encoding="utf-8", newline="\n")
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from error

    return opened


def add_num_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--num-workers`` with subword-nmt's default, a number, as programs calculate with it."""
    parser.add_argument("--num-workers", type=int, default=1, metavar="N", help="threads, -1: all cores (default: 1)")


def add_amount(parser: argparse.ArgumentParser) -> None:
    """Add ``--symbols``, ``--min-frequency``, ``--total-symbols`` and ``--verbose``."""
    for name, entry in PlainBPE.settings().items():
        short, text = entry.metadata["short"], entry.metadata["help"]
        flags = [f"--{name.replace('_', '-')}", *([f"-{short}"] if short else [])]
        if entry.default is False:
            parser.add_argument(*flags, action="store_true", help=text)
        else:
            parser.add_argument(*flags, type=int, default=entry.default, help=f"{text} (default: %(default)s)")
    parser.add_argument("--verbose", "-v", action="store_true", help="print each merge to stderr")
