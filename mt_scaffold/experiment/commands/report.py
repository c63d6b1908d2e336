"""mt-scaffold report: see mt_scaffold.experiment.report.html."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import Folder
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold report experiments/demo --examples 10
"""


def run(experiment: Folder, /, output: Annotated[str | None, Option("PATH", "-o")] = None, examples: int = 20) -> None:
    """Write the page, and print its path.

    experiment: the folder of a finished experiment (experiments/NAME)
    output: the HTML page to write (default: report.html in the folder)
    examples: sentences to show, for translation
    """
    from mt_scaffold.experiment.report.html import html_report

    print(html_report(experiment, output, examples))
