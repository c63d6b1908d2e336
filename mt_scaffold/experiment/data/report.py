"""The data report, data-report.json: the reports of all data steps in one file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.experiment.data.clean import CleanReport
from mt_scaffold.experiment.data.parallel import RawReport
from mt_scaffold.experiment.data.tokenise import TokeniseReport
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import read_result


@dataclass(frozen=True)
class DataReport:
    """The size of the text after every step.

    raw: the report of get_data. tokenise: step report by PART.LANGUAGE. clean: step report by part (train and valid).
    A validation set that was held out of the training text is only in ``clean``, as the ``held_out`` of ``train``.
    warnings: those of all steps.
    """

    raw: RawReport = field(metadata={"key": "get-data"})
    tokenise: dict[str, TokeniseReport]
    clean: dict[str, CleanReport]
    warnings: list[ResultWarning] = field(default_factory=list)


def gather_reports(
    raw: PathLike | Sequence[PathLike], tokenised: Mapping[str, PathLike], cleaned: Mapping[str, PathLike]
) -> DataReport:
    """Combine step reports, given as files, into one data report.

    raw: one or more reports of get_data. tokenised: by PART.LANGUAGE. cleaned: by part.
    Raises MTScaffoldError for a file that is missing or not a step report.
    """
    first, *others = [
        read_result(RawReport, path) for path in ([raw] if isinstance(raw, str | bytes | os.PathLike) else raw)
    ]
    for other in others:
        first.corpora |= other.corpora
        first.parts |= other.parts
        first.references |= other.references
        first.test_overlap |= other.test_overlap
        first.warnings += [warning for warning in other.warnings if warning not in first.warnings]
    words = {name: read_result(TokeniseReport, path) for name, path in tokenised.items()}
    warnings = [*first.warnings, *(warning for report in words.values() for warning in report.warnings)]
    kept = {part: read_result(CleanReport, path) for part, path in cleaned.items()}
    return DataReport(first, words, kept, [*dict.fromkeys(warnings)])
