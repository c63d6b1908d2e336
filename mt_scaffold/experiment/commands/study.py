"""mt-scaffold study: see mt_scaffold.experiment.study."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import Folder, OutputFolder
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold study configs/study_intrinsic.yaml --texts corpora --output experiments/study_intrinsic --jobs 2
"""


def run(
    config: Annotated[str, Option("CONFIG")],
    /,
    *,
    output: OutputFolder,
    texts: Folder = ".",
    jobs: Annotated[int, Option(short="-j")] = 1,
) -> None:
    """Run the study, and print the path of the page.

    Measure methods on texts in many sizes, and on unseen text, without training models (for existing codes: stats).
    Run it again after an interruption: measurements are not repeated unless a text or a setting has changed. After an
    update of mt-scaffold or SentencePiece, give it a new folder.

    config: the YAML file of the study
    output: folder for page, tables, figures and cells
    texts: the folder of the files that CONFIG names (default: the working directory)
    jobs: processes, -1: all cores
    """
    from mt_scaffold.experiment.study import study

    print(study(config, output, texts, jobs))
