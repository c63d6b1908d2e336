"""The record of the data, data-report.json: the records of all data steps in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.experiment.data.clean import CleanRecord
from mt_scaffold.experiment.data.parallel import RawRecord
from mt_scaffold.experiment.data.tokenise import TokeniseRecord
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import read_result


@dataclass(frozen=True)
class DataRecord:
    """The size of the text after every step.

    raw: the record of get_data. tokenise: step record by PART.LANGUAGE. clean: step record by part (train and valid).
    A validation set that was held out of the training text is only in ``clean``, as the ``held_out`` of ``train``.
    warnings: those of all steps.
    """

    raw: RawRecord = field(metadata={"key": "get-data"})
    tokenise: dict[str, TokeniseRecord]
    clean: dict[str, CleanRecord]
    warnings: list[ResultWarning] = field(default_factory=list)


def gather_records(
    raw: Sequence[PathLike], tokenised: Mapping[str, PathLike], cleaned: Mapping[str, PathLike]
) -> DataRecord:
    """Combine step records, given as files, into one.

    raw: records of get_data. tokenised: by PART.LANGUAGE. cleaned: by part.
    Raises MTScaffoldError for a file that is missing or not a step record.
    """
    first, *others = [read_result(RawRecord, path) for path in raw]
    for other in others:
        first.corpora |= other.corpora
        first.parts |= other.parts
        first.references |= other.references
        first.test_overlap |= other.test_overlap
        first.warnings += [warning for warning in other.warnings if warning not in first.warnings]
    words = {name: read_result(TokeniseRecord, path) for name, path in tokenised.items()}
    warnings = [*first.warnings, *(warning for record in words.values() for warning in record.warnings)]
    kept = {part: read_result(CleanRecord, path) for part, path in cleaned.items()}
    return DataRecord(first, words, kept, [*dict.fromkeys(warnings)])
