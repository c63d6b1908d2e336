"""mt-scaffold report: see mt_scaffold.experiment.report.html."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import Folder
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.layout import read_folder
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
    from mt_scaffold.experiment.report.html.language_models import language_model_report

    if isinstance(read_folder(experiment), Config):
        print(html_report(experiment, output, examples))
    else:
        print(language_model_report(experiment, output))
