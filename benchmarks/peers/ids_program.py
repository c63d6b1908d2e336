"""Shared by the programs that encode into ids and decode: their command line.

    PROGRAM encode {text,lines} CORPUS MODEL OUTPUT [--check]
    PROGRAM decode {list,array} IDS.npy MODEL OUTPUT

OUTPUT takes the number of ids, or the CRC of the decoded text; with --check, of an untimed run, the ids themselves.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Any

THREADS = 2


def main(
    text: Callable[[str, str], Any],
    lines: Callable[[str, list[str]], Iterable[Any]],
    decode: Callable[[str, Any], bytes],
) -> None:
    """Run a task: ``text`` and ``lines`` give ids, of a text and of each line or all of them, ``decode`` text."""
    task, how, source, model, output, *rest = sys.argv[1:]
    if task == "decode":
        import numpy

        ids = numpy.load(source)
        result = zlib.crc32(decode(model, ids.tolist() if how == "list" else ids))
    else:
        with open(source, encoding="utf-8", newline="\n") as stream:
            content = stream.read()
        parts = [text(model, content)] if how == "text" else lines(model, content.split("\n"))
        if rest:
            import numpy

            numpy.save(output, numpy.concatenate([numpy.asarray(part, numpy.uint32) for part in parts]))
            return
        result = sum(map(len, parts))
    with open(output, "w", encoding="utf-8") as out:
        out.write(f"{result}\n")
