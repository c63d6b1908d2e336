"""Words → a fairseq data folder: the dictionaries, and the ids of the subwords of every sentence, memory-mapped.

The files are those of fairseq-preprocess on the segmented text, byte for byte, made without it and without writing that
text. Three things differ on purpose: fairseq would split a word at a Unicode space inside it, treat a subword spelt
``</s>`` or ``<unk>`` as its own symbol, and treat the last subword of a word as one inside it if it ends in the
separator (``symbol_name``).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from mt_scaffold.corpus.files import PathLike, explain_os_error, make_folder, open_input, open_output
from mt_scaffold.corpus.input_checks import warned_of_segmented
from mt_scaffold.corpus.storage.parts import part_folder
from mt_scaffold.corpus.text import check_parallel
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.binarised_format import Counts, write_ids
from mt_scaffold.experiment.binarise.dictionary import (
    NO_LIMITS,
    SourceLanguage,
    TargetLanguage,
    make_dictionaries,
    read_ids,
)
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.configuration.data import Limits
from mt_scaffold.experiment.runtime.provenance import sha256
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning, print_warnings
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.manifest import raw_digest
from mt_scaffold.options import refuse_text, worker_count
from mt_scaffold.options_from_signature import Folder, Option, OutputFolder, Prefix, Workers

DESCRIPTION = "binarised.json"


@dataclass(frozen=True)
class Binarised:
    """The description of a data folder.

    source, target: the languages. pairs: the number of sentence pairs in each subset. sha256: digests of each text and
    dictionary, and of a stored segmentation, so that a training is not resumed with other ones.
    storage: ``ids``, or ``words`` (``pairs_as_words.py``), segmented as they are read.
    counts: subset → language → the size of its text. separator: the suffix of every subword except a word's last.
    word_start: the prefix of a word's first subword, for methods that use it instead of the separator.
    resampling: language → the kinds of resampling (``Draw.reach``) whose subwords for its training words all have
    ids; only for text stored as words.
    """

    source: str
    target: str
    pairs: dict[str, int]
    sha256: dict[str, str]
    storage: str
    counts: dict[str, dict[str, Counts]]
    separator: str
    word_start: str | None = field(default=None, metadata={"omit_none": True})
    resampling: dict[str, list[str]] | None = field(default=None, metadata={"omit_none": True})
    warnings: list[ResultWarning] = field(default_factory=list)

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.source, self.target


def binarise(
    output: OutputFolder,
    source: SourceLanguage,
    target: TargetLanguage,
    segmentation: Segmentation,
    train: Prefix | None = None,
    valid: Prefix | None = None,
    tests: Annotated[Sequence[PathLike], Option("PREFIX", name="test")] = (),
    dictionaries: Folder | None = None,
    limits: Limits = NO_LIMITS,
    num_workers: Workers = 1,
) -> Binarised:
    """Make the fairseq data folder ``output`` for the task ``translation`` (or ``translation_resumable``).

    train: words of the training set: PREFIX.LANGUAGE
    valid: words of the validation set
    tests: words of each test set
    dictionaries: folder with dict.LANGUAGE.txt (default: made from --train)
    output: the fairseq data folder to make

    A text has one sentence per line, words separated by spaces. A test set becomes the subset of the same name.
    ``dictionaries`` is the folder of ``make_dictionaries``, or an earlier data folder; ``limits`` is for those made
    here. A subword that is not in its dictionary becomes ``<unk>``, and the description counts it.

    The folder appears only once it is complete, with ``binarised.json`` (its description); an earlier data folder is
    replaced. Raises MTScaffoldError if sides differ in length, or a file is missing, empty, not UTF-8 or has a carriage
    return; UsageError for a test set whose name fairseq would misread, or if there is nothing to binarise.
    """
    output = Path(output)
    prefixes = subset_prefixes(train, valid, tests, source, target)
    if train is None and dictionaries is None:
        raise UsageError("binarise: without a training set, give the folder of the dictionaries (--dictionaries)")
    refuse_other_content(output, DESCRIPTION)
    threads = worker_count(num_workers)
    with appears_complete(output) as folder:
        if dictionaries is None:
            assert train is not None
            make_dictionaries(train, folder, source, target, segmentation, limits, num_workers=num_workers)
        else:
            copy_dictionaries(Path(dictionaries), folder, (source, target))
        digests = dictionary_digests(folder, (source, target))
        ids = {language: read_ids(folder / f"dict.{language}.txt") for language in (source, target)}
        segmenters = dict(zip((source, target), segmentation.segmenters(), strict=True))
        pairs: dict[str, int] = {}
        counts: dict[str, dict[str, Counts]] = {}
        for subset, prefix in prefixes.items():
            counts[subset] = {}
            for language, bpe in segmenters.items():
                path = Path(f"{prefix}.{language}")
                stored = folder / f"{subset}.{source}-{target}.{language}"
                counts[subset][language] = write_ids(path, stored, bpe, ids[language], threads)
                digests[f"{subset}.{language}"] = sha256(path)
            lines = [counts[subset][language].lines for language in (source, target)]
            check_parallel(f"{prefix}.{source}", lines[0], f"{prefix}.{target}", lines[1])
            pairs[subset] = lines[0]
        binarised = Binarised(
            source, target, pairs, digests, "ids", counts, segmentation.separator, segmentation.word_start
        )
        binarised.warnings.extend(_unknown_symbols(output.name, counts))
        print_warnings(binarised.warnings)
        write_description(folder, binarised)
    return binarised


def _unknown_symbols(name: str, counts: Mapping[str, Mapping[str, Counts]]) -> list[ResultWarning]:
    """Return a warning for each test text with subwords that its dictionary lacks. name: the data folder's."""
    return [
        ResultWarning("unknown", f"{subset}.{language}, {name}", f"{each.unknown:,} of {each.subwords:,} subwords")
        for subset, sides in counts.items()
        if subset not in ("train", "valid")
        for language, each in sides.items()
        if each.unknown
    ]


@contextlib.contextmanager
def appears_complete(output: Path) -> Iterator[Path]:
    """Yield a temporary folder, which replaces ``output`` if the block ends without an error.

    Files and folders keep the modes of those that they replace; the modes of new ones follow the umask.
    """
    output = output.resolve()
    make_folder(output.parent)
    with contextlib.ExitStack() as stack:
        try:
            temporary = Path(stack.enter_context(part_folder(str(output))))
        except OSError as error:
            raise explain_os_error(error, output.parent) from error
        yield temporary
        # safetensors writes files that only their owner can read.
        new = temporary.stat().st_mode & 0o666
        for path in [*temporary.rglob("*"), temporary]:
            if (replaced := output / path.relative_to(temporary)).exists():
                shutil.copymode(replaced, path)
            elif path.is_file():
                path.chmod(new)
        shutil.rmtree(output, ignore_errors=True)
        try:
            temporary.rename(output)
        except OSError as error:
            raise explain_os_error(error, output) from error


def copy_dictionaries(dictionaries: Path, folder: Path, languages: Sequence[str]) -> None:
    """Copy the dictionary of each language into a data folder."""
    for language in languages:
        name = f"dict.{language}.txt"
        with open_input(dictionaries / name) as stream, open_output(folder / name) as copy:
            copy.write(stream.read())


def dictionary_digests(folder: Path, languages: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 digest of each dictionary in a data folder, by the name of its file."""
    return {name: raw_digest(folder / name) for name in (f"dict.{language}.txt" for language in languages)}


def subset_prefixes(
    train: PathLike | None, valid: PathLike | None, tests: Sequence[PathLike], source: str, target: str
) -> dict[str, Path]:
    """Return the prefix of the files of each subset, and warn of text that is segmented already.

    Raises UsageError for a test set whose name fairseq would misread, if both languages are the same, and if there is
    no text at all.
    """
    refuse_text(tests=tests)
    if source == target:
        raise UsageError(f"source and target are the same language: {source}; give two languages")
    prefixes = {name: Path(prefix) for name, prefix in (("train", train), ("valid", valid)) if prefix is not None}
    for test in map(Path, tests):
        # fairseq reads train, train1, train2 and so on as one training set.
        if re.fullmatch(r"train\d*|valid\d*", test.name) or test.name in prefixes:
            raise UsageError(
                f"{test}: a test set cannot be called {test.name}, which fairseq treats as another subset; rename it"
            )
        if "," in os.fspath(test):
            raise UsageError(f"{test}: fairseq splits the names of test sets at commas; rename the file or its folder")
        prefixes[test.name] = test
    if not prefixes:
        raise UsageError("nothing to binarise: give --train, --valid or --test")
    warned_of_segmented(f"{prefix}.{language}" for prefix in prefixes.values() for language in (source, target))
    return prefixes


def refuse_other_content(output: Path, own: str) -> None:
    """Raise MTScaffoldError if ``output`` is a file, or a folder with content but without the file ``own``."""
    if output.exists() and not output.is_dir():
        raise MTScaffoldError(f"{output}: a file; choose a new folder")
    if output.exists() and any(output.iterdir()) and not (output / own).exists():
        raise MTScaffoldError(f"{output}: this folder holds something else; choose a new one")


def write_description(folder: Path, binarised: Binarised) -> None:
    """Write the description of a data folder into it."""
    write_result(folder / DESCRIPTION, binarised)


def read_binarised(folder: PathLike) -> Binarised:
    """Return the description of a data folder; raise MTScaffoldError if mt-scaffold did not make it."""
    description = Path(folder) / DESCRIPTION
    if not Path(folder).exists():
        raise MTScaffoldError(f"{folder}: no such folder; make it with mt-scaffold binarise")
    if not description.exists():
        raise MTScaffoldError(
            f"{folder}: not a folder that mt-scaffold binarise made (no {DESCRIPTION} in it); make it with mt-scaffold "
            "binarise or binarise-words"
        )
    return read_result(Binarised, description)


def task_arguments(binarised: Binarised, options: Container[str]) -> list[str]:
    """Return the arguments that choose the fairseq task for a folder, unless ``options`` have one."""
    if "task" in options:
        return []
    return ["--task", "translation_bpe_dropout" if binarised.storage == "words" else "translation_resumable"]


def generation_arguments(binarised: Binarised, options: Container[str]) -> list[str]:
    """Return the arguments that choose the task of fairseq-generate, as ``task_arguments``, and its batches."""
    task = task_arguments(binarised, options)
    # Otherwise batches also depend on the references, and sums of floats depend on the batches.
    return [*task, "--batch-by-source"] if "translation_resumable" in task else task
