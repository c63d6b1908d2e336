"""Scores of segments by a program that cannot be installed next to this package, such as COMET, xCOMET or MetricX."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.text import decode
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration import External
from mt_scaffold.experiment.runtime.provenance import digest_of, sha256

# The keys of a segment's score and translation: of comet-score --to_json, and of MetricX.
_SCORES, _HYPOTHESES = ("COMET", "prediction"), ("mt", "hypothesis")


def read_segments(path: PathLike, hypotheses: Sequence[str]) -> list[float]:
    """Return the score of each segment from a file: one number a line, or JSON of comet-score or MetricX.

    Raises MTScaffoldError for a line that is not a number, for JSON about other translations, and for missing or extra
    scores.
    """
    name = shown(path)
    lines = decode(read_file(path), name).splitlines()
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if rows and rows[0][1].lstrip()[0] == "{" and (whole := _json("\n".join(lines))) is not None:
        systems = [each for each in whole.values() if isinstance(each, list)] if isinstance(whole, dict) else []
        if len(systems) > 1:
            raise MTScaffoldError(f"{name}: scores of {len(systems)} systems; give a file of one")
        # MetricX with a single segment is one object, too.
        rows = [*enumerate(systems[0] if systems else [whole], 1)]
    scores = []
    for (number, row), hypothesis in zip(rows, [*hypotheses, *[None] * len(rows)], strict=False):
        entry = _json(row) if isinstance(row, str) and row.lstrip().startswith("{") else row
        if isinstance(entry, dict):
            text = next((entry[key] for key in _HYPOTHESES if key in entry), hypothesis)
            if hypothesis is not None and str(text).strip() != hypothesis.strip():
                raise MTScaffoldError(f"{name}: segment {number} is of another translation; score this one")
            entry = next((entry[key] for key in _SCORES if key in entry), None)
        try:
            scores.append(float(entry))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            scores.append(math.nan)
        if not math.isfinite(scores[-1]):
            raise MTScaffoldError(f"{name}: line {number}: not the score of a segment: {str(row)[:60]!r}")
    if len(scores) != len(hypotheses):
        raise MTScaffoldError(f"{name}: {len(scores)} scores for {len(hypotheses)} translations; score all of them")
    return scores


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def computed(
    name: str, metric: External, files: Mapping[str, PathLike], references: Sequence[PathLike], folder: PathLike
) -> Path:
    """Run the program of a metric, and return the file of its scores in ``folder``.

    files: ``source`` and ``hypothesis``. The file's name has the digest of all that goes in: if it exists, nothing
    runs. Raises MTScaffoldError, with the last line that the program printed, if it fails or writes no file.
    """
    inputs = [*files.values(), *references]
    digest = digest_of(f"{part}\0".encode() for part in (*metric.command, metric.signature, *map(sha256, inputs)))
    output = Path(folder) / f"{Path(files['hypothesis']).name}.{name}-{digest[:16]}.scores"
    if output.exists():
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f"{output.name}.part")
    part.unlink(missing_ok=True)
    several = [os.fspath(path) for path in references]
    places = {key: os.fspath(path) for key, path in files.items()} | {"output": str(part), "reference": several[0]}
    arguments = list[str]()
    for argument in metric.command:
        arguments += several if argument == "{references}" else [_filled(argument, places)]
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise MTScaffoldError(
            f"score.external.{name}: {arguments[0]}: {error.strerror}; correct the command"
        ) from error
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    last = f": {said[-1]}" if said else ""
    if done.returncode:
        raise MTScaffoldError(f"score.external.{name}: {arguments[0]} ended with status {done.returncode}{last}")
    if not part.exists():
        raise MTScaffoldError(f"score.external.{name}: {arguments[0]} wrote nothing to {{output}}{last}")
    os.replace(part, output)
    return output


def _filled(argument: str, places: Mapping[str, str]) -> str:
    for key, path in places.items():
        argument = argument.replace(f"{{{key}}}", path)
    return argument
