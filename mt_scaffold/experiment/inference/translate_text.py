"""Raw text → its translation, line by line, with a packed model: blocks of bounded size, in the order of the text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from mt_scaffold.corpus.text import not_utf8
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.inference.packed_model import Hypothesis, PackedModel

# Test sets are smaller, so that their batches are those of fairseq-generate.
BLOCK_LINES = 10_000
_BLOCK_BYTES = 1 << 24


def translate_text(
    model: PackedModel,
    source: BinaryIO,
    target: BinaryIO,
    *,
    n_best: int | None = None,
    scores: bool = False,
    block_lines: int = BLOCK_LINES,
    name: str = "standard input",
    show: Callable[[int], None] | None = None,
) -> int:
    """Translate the lines of ``source``, UTF-8, into as many lines of ``target``, and return how many they are.

    A line ends at LF only. An empty line, and one without any word, gives an empty line. ``block_lines``: how many are
    translated together, at most (fewer where they are long); ``target`` is flushed after each block.

    scores: each line is the score, a tab and the translation. n_best: that many translations of each line (an empty one
    has one), each on a line of its own as Moses writes them: ``LINE ||| TRANSLATION ||| SCORE``, lines counted from 0.
    See ``Hypothesis`` for scores. ``show`` is called with the sentences that are done. name: of the source, in errors.

    Raises MTScaffoldError, with the line, for bytes that are not UTF-8; what comes before that block is translated.
    """
    if block_lines < 1:
        raise UsageError(f"--block {block_lines}: must be 1 or more")
    done = 0
    for lines in _blocks(source, block_lines, name):
        shown = None if show is None else functools.partial(_show, show, done)
        for number, found in enumerate(model.hypotheses(lines, n_best or 1, shown), done):
            written = _moses(number, found) if n_best else [_line(found[0], scores)]
            target.write("".join(f"{line}\n" for line in written).encode("utf-8"))
        target.flush()
        done += len(lines)
    return done


def _show(show: Callable[[int], None], before: int, done: int) -> None:
    show(before + done)


def _line(hypothesis: Hypothesis, scores: bool) -> str:
    return f"{hypothesis.score:.4f}\t{hypothesis.text}" if scores else hypothesis.text


def _moses(number: int, found: Iterable[Hypothesis]) -> list[str]:
    return [f"{number} ||| {hypothesis.text} ||| {hypothesis.score:.4f}" for hypothesis in found]


def _blocks(stream: BinaryIO, most: int, name: str) -> Iterator[list[str]]:
    """Yield the lines of a text, without line ends, up to ``most`` at a time."""
    lines: list[str] = []
    number = offset = size = 0
    # Not readlines, which reads ahead: a line must not wait for those after it.
    while content := stream.readline():
        number += 1
        try:
            lines.append(content.decode("utf-8").removesuffix("\n"))
        except UnicodeDecodeError as error:
            raise not_utf8(name, number, offset + error.start, content[error.start]) from None
        offset += len(content)
        size += len(content)
        if len(lines) >= most or size >= _BLOCK_BYTES:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines
