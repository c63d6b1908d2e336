"""Arguments that several commands share: paths, an experiment, and words and a segmentation for fairseq's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from mt_scaffold.commands.arguments import WORKERS_HELP
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import NO_LIMITS
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.configuration.limits import Limits
from mt_scaffold.experiment.configuration.yaml_file import settings_from
from mt_scaffold.options_from_signature import Option

File = Annotated[str, Option("FILE")]
Folder = Annotated[str, Option("FOLDER")]
Name = Annotated[str, Option("NAME")]
Prefix = Annotated[str, Option("PREFIX")]
OutputFile = Annotated[str, Option("FILE", "-o")]
OutputFolder = Annotated[str, Option("FOLDER", "-o")]
# For commands that segment or count, and for those that run fairseq or sacremoses.
Threads = Annotated[int | None, Option(help=WORKERS_HELP)]
Workers = Annotated[int, Option(help="threads, -1: all cores")]
# The options of a segmentation.
Codes = Annotated[
    Sequence[str],
    Option("FILE", "-c", help="joint codes, bpe or scaffold; or two files, for source and target"),
]
Vocabularies = Annotated[tuple[str, str], Option("FILE", help="vocabulary files (get-vocab) of source and target")]
VocabularyThreshold = Annotated[int, Option(help="split subwords with a frequency below N in --vocabulary")]
Glossaries = Annotated[Sequence[str], Option("STR", help="words or patterns never to split")]
Separator = Annotated[str, Option("STR", help="the end of every subword except the last of a word")]


@dataclass(frozen=True)
class ExperimentOptions:
    """Options that change the configuration of an experiment.

    only: only these systems, as if there were no others
    sample: only the first N training pairs or documents
    batch: one of train.batches
    changes: set a dotted key to another value, such as train.options.lr=0.001; may be repeated
    output: folder of the experiment (default: experiments/NAME)
    cache: folder of downloads (default: as for get-data)
    """

    only: Annotated[Sequence[str] | None, Option("SYSTEM")] = None
    sample: int | None = None
    batch: Name | None = None
    changes: Annotated[Sequence[str], Option("KEY=VALUE", name="set", repeated=True)] = ()
    output: Annotated[str | None, Option("DIR")] = None
    cache: Annotated[str | None, Option("DIR")] = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were given, for plan_experiment."""
        named = {name: getattr(self, name) for name in ("only", "sample", "batch", "output", "cache")}
        return settings_from(self.changes) | {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Languages:
    """The languages of a pair.

    source_lang: for example en
    target_lang: for example de
    """

    source_lang: Annotated[str, Option("LANGUAGE", "-s")]
    target_lang: Annotated[str, Option("LANGUAGE", "-t")]


@dataclass(frozen=True)
class SegmentationOptions:
    """The segmentation of words."""

    codes: Codes
    vocabulary: Vocabularies | None = None
    vocabulary_threshold: VocabularyThreshold | None = None
    glossaries: Glossaries = ()
    separator: Separator = SEPARATOR

    @property
    def segmentation(self) -> Segmentation:
        """The segmentation; raises UsageError for incompatible options."""
        if len(self.codes) > 2:
            raise UsageError("--codes: give one file for both languages, or two, for source and target")
        if (self.vocabulary is None) != (self.vocabulary_threshold is None):
            raise UsageError("give both --vocabulary and --vocabulary-threshold, or neither")
        return Segmentation(
            (self.codes[0], self.codes[-1]),
            None if self.vocabulary is None else (self.vocabulary[0], self.vocabulary[1]),
            self.vocabulary_threshold,
            list(self.glossaries),
            self.separator,
        )


@dataclass(frozen=True)
class LimitOptions:
    """Limits on which subwords get an id: options of fairseq-preprocess, with the same names.

    separate_dictionaries: one for each language (default: one for both)
    nwordssrc, nwordstgt: size of the dictionary (default: all subwords)
    thresholdsrc, thresholdtgt: least frequency of a subword in it
    padding_factor: pad it to a multiple of N
    """

    separate_dictionaries: bool = False
    nwordssrc: int = NO_LIMITS.nwordssrc
    thresholdsrc: int = NO_LIMITS.thresholdsrc
    nwordstgt: int = NO_LIMITS.nwordstgt
    thresholdtgt: int = NO_LIMITS.thresholdtgt
    padding_factor: int = NO_LIMITS.padding_factor

    @property
    def limits(self) -> Limits:
        """The limits."""
        return Limits(
            not self.separate_dictionaries,
            self.nwordssrc,
            self.nwordstgt,
            self.thresholdsrc,
            self.thresholdtgt,
            self.padding_factor,
        )


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The texts and dictionaries of a data folder, and its path.

    train: words of the training set: PREFIX.LANGUAGE
    valid: words of the validation set
    test: words of each test set
    dictionaries: folder with dict.LANGUAGE.txt (default: made from --train)
    output: the fairseq data folder to make
    """

    train: Prefix | None = None
    valid: Prefix | None = None
    test: Sequence[Prefix] = ()
    dictionaries: Folder | None = None
    output: OutputFolder
    num_workers: Workers = 1
