"""mt-scaffold report: see mt_scaffold.experiment.report.html."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mt_scaffold.options_from_signature import Folder, Option


def report(
    experiment: Folder, /, output: Annotated[str | None, Option("PATH", "-o")] = None, examples: int = 20
) -> Path:
    """Write the page, and return its path.

    experiment: the folder of a finished experiment (experiments/NAME)
    output: the HTML page to write (default: report.html in the folder)
    examples: sentences to show, for translation
    """
    from mt_scaffold.experiment.report.html import html_report

    return html_report(experiment, output, examples)
