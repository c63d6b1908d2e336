"""Subwords → a fairseq data folder, with one dictionary for both languages."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.fairseq_tools import run_tool
from mt_scaffold.experiment.provenance import sha256
from mt_scaffold.experiment.results import read_result, write_result
from mt_scaffold.files import PathLike, explain_os_error, make_folder, open_input
from mt_scaffold.text import check_parallel, not_utf8

DESCRIPTION = "binarised.json"


@dataclass(frozen=True)
class Binarised:
    """What a data folder holds: the languages, the sentence pairs of each subset, the digests of its input files.

    ``storage``: ``subwords``, stored as ids, or ``words`` (binarise_words.py), segmented as they are read.
    """

    source: str
    target: str
    pairs: dict[str, int]
    sha256: dict[str, str]
    storage: str = "subwords"


def binarise(
    train: PathLike,
    valid: PathLike,
    tests: Sequence[PathLike],
    output: PathLike,
    source: str,
    target: str,
    num_workers: int = 1,
) -> Binarised:
    """Make the fairseq data folder ``output`` with ``fairseq-preprocess --joined-dictionary``.

    ``train``, ``valid`` and each of ``tests`` are prefixes: ``subwords/train`` stands for the files
    ``subwords/train.SOURCE`` and ``subwords/train.TARGET``, one sentence per line, subwords separated by spaces. A test
    set becomes the subset of the same name. The folder appears only once it is complete, with ``preprocess.log``
    (fairseq's own) and ``binarised.json`` (its description); an earlier data folder is replaced.

    Raises MTScaffoldError where sides differ in length, a file is empty or not UTF-8, or fairseq fails.
    """
    output = Path(output)
    prefixes = subset_prefixes(train, valid, tests, source, target)
    refuse_other_content(output, DESCRIPTION)

    pairs: dict[str, int] = {}
    digests: dict[str, str] = {}
    for subset, prefix in prefixes.items():
        files = {language: Path(f"{prefix}.{language}") for language in (source, target)}
        lines = {language: _count_sentences(file) for language, file in files.items()}
        check_parallel(files[source], lines[source], files[target], lines[target])
        pairs[subset] = lines[source]
        digests |= {f"{subset}.{language}": sha256(file) for language, file in files.items()}

    binarised = Binarised(source, target, pairs, digests)
    try:
        make_folder(output.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".part", dir=output.parent))
    except OSError as error:
        raise explain_os_error(error, output.parent) from error
    log = output.parent / f"{output.name}.log"
    try:
        log.unlink(missing_ok=True)
        arguments = ["--source-lang", source, "--target-lang", target, "--joined-dictionary"]
        arguments += ["--trainpref", str(train), "--validpref", str(valid)]
        arguments += ["--destdir", str(temporary), "--workers", str(num_workers)]
        if tests:
            arguments += ["--testpref", ",".join(map(str, tests))]
        run_tool("preprocess", arguments, log)
        _name_subsets(temporary, [Path(test).name for test in tests])
        write_description(temporary, binarised)
        shutil.rmtree(output, ignore_errors=True)
        temporary.chmod(0o755)
        temporary.rename(output)
        log.unlink()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return binarised


def subset_prefixes(
    train: PathLike, valid: PathLike, tests: Sequence[PathLike], source: str, target: str
) -> dict[str, Path]:
    """Return the prefix of the files of each subset.

    Raises UsageError for a test set whose name fairseq would misread, and where both languages are the same.
    """
    if source == target:
        raise UsageError(f"source and target are the same language: {source}; give two languages")
    prefixes = {"train": Path(train), "valid": Path(valid)}
    for test in map(Path, tests):
        # fairseq reads train, train1, train2 and so on as one training set.
        if re.fullmatch(r"train\d*|valid\d*", test.name) or test.name in prefixes:
            raise UsageError(
                f"{test}: a test set cannot be called {test.name}, which fairseq treats as another subset; rename it"
            )
        if "," in os.fspath(test):
            raise UsageError(f"{test}: fairseq splits the names of test sets at commas; rename the file or its folder")
        prefixes[test.name] = test
    return prefixes


def refuse_other_content(output: Path, own: str) -> None:
    """Raise MTScaffoldError where ``output`` is a file, or a folder with content but without the file ``own``."""
    if output.exists() and not output.is_dir():
        raise MTScaffoldError(f"{output}: a file; choose a new folder")
    if output.exists() and any(output.iterdir()) and not (output / own).exists():
        raise MTScaffoldError(f"{output}: this folder holds something else; choose a new one")


def write_description(folder: Path, binarised: Binarised) -> None:
    """Write the description of a data folder into it."""
    write_result(folder / DESCRIPTION, binarised)


def read_binarised(folder: PathLike) -> Binarised:
    """Return what a data folder holds; raise MTScaffoldError where mt-scaffold did not make it."""
    description = Path(folder) / DESCRIPTION
    if not Path(folder).exists():
        raise MTScaffoldError(f"{folder}: no such folder; make it with mt-scaffold binarise")
    if not description.exists():
        raise MTScaffoldError(
            f"{folder}: not a folder that mt-scaffold binarise made (no {DESCRIPTION} in it); make it with mt-scaffold "
            "binarise or binarise-words"
        )
    return read_result(Binarised, description)


def task_arguments(binarised: Binarised, options: Sequence[str]) -> list[str]:
    """Return the options that choose the fairseq task for a folder, unless ``options`` name one."""
    if any(option.split("=")[0] == "--task" for option in options):
        return []
    return ["--task", "translation_bpe_dropout" if binarised.storage == "words" else "translation_resumable"]


def _count_sentences(path: Path) -> int:
    """Count the lines of ``path``, refusing what fairseq would crash on or, worse, count differently."""
    number = offset = 0
    with open_input(path) as stream:
        for number, line in enumerate(stream, start=1):
            if b"\r" in line:
                raise carriage_return(path, number)
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise not_utf8(str(path), number, offset + error.start, line[error.start]) from None
            offset += len(line)
    if number == 0:
        raise empty_text(path)
    return number


def carriage_return(path: Path, line: int) -> MTScaffoldError:
    """Return the error for a text that fairseq would split into other lines; line: counted from 1."""
    return MTScaffoldError(
        f"{path}: line {line}: a carriage return, which fairseq treats as a line end; remove it (mt-scaffold tokenise "
        "does)"
    )


def empty_text(path: Path) -> MTScaffoldError:
    """Return the error for a text without lines."""
    return MTScaffoldError(f"{path}: empty; every subset needs at least one sentence pair")


def _name_subsets(folder: Path, names: Sequence[str]) -> None:
    """Give the test sets their own names, instead of fairseq's test, test1, test2 and so on."""
    numbered = {f"test{number or ''}": name for number, name in enumerate(names)}
    moved = [(file, numbered[file.name.split(".")[0]], file.name.split(".", 1)[1]) for file in folder.glob("test*.*")]
    # In two steps, because a test set may itself be called test1.
    for file, _, _ in moved:
        file.rename(folder / f"renaming.{file.name}")
    for file, name, rest in moved:
        (folder / f"renaming.{file.name}").rename(folder / f"{name}.{rest}")
