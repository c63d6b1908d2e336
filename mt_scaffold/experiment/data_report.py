"""The data report, data-report.json: the step reports of every data step in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mt_scaffold.experiment.clean import CleanReport
from mt_scaffold.experiment.data import RawReport
from mt_scaffold.experiment.results import read_result
from mt_scaffold.experiment.tokenise import TokeniseReport
from mt_scaffold.files import PathLike


@dataclass(frozen=True)
class DataReport:
    """How much text there is after every step.

    raw: what get_data returns. tokenise: step report by PART.LANGUAGE. clean: step report by part (train and valid).
    A validation set that was held out of the training text is only in ``clean``, as the ``held_out`` of ``train``.
    """

    raw: RawReport = field(metadata={"key": "get-data"})
    tokenise: dict[str, TokeniseReport]
    clean: dict[str, CleanReport]


def gather_reports(raw: PathLike, tokenised: Mapping[str, PathLike], cleaned: Mapping[str, PathLike]) -> DataReport:
    """Read the step reports (files by PART.LANGUAGE, and by part) into one data report.

    Raises MTScaffoldError for a file that is missing or not a step report.
    """
    return DataReport(
        read_result(RawReport, raw),
        {name: read_result(TokeniseReport, path) for name, path in tokenised.items()},
        {part: read_result(CleanReport, path) for part, path in cleaned.items()},
    )
