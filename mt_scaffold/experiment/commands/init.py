"""mt-scaffold init: see mt_scaffold.experiment.workflow.initial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.workflow.initial import Pair, ParallelTexts, init_documents, init_translation
from mt_scaffold.options_from_signature import Option, OutputFile

_Text = Annotated[str, Option("FILE")]


def init(
    texts: Sequence[_Text],
    /,
    documents: bool = False,
    valid: Sequence[_Text] | None = None,
    test: Sequence[Sequence[_Text]] = (),
    languages: Annotated[tuple[str, str] | None, Option("CODE")] = None,
    hold_out: int | None = None,
    output: OutputFile | None = None,
) -> str:
    """Write the configuration, and return the findings as text.

    Write a commented configuration for your own files: parallel text for a translation experiment (source, target), or
    documents for language models. Its comments describe the files, and it is ready to run.

    texts: training text: source and target, or documents
    documents: documents for language models, not parallel text
    valid: the validation set (default: next to train, or held out)
    test: a test set, the source and one or more references; may be repeated (default: next to train; documents are
        held out)
    languages: source and target language (default: the suffixes of the files)
    hold_out: take N pairs of the training text as the test set; both are written next to the configuration
    output: the configuration (default: SOURCE_TARGET.yaml)
    """
    if documents and hold_out is not None:
        raise UsageError("--hold-out: test documents are always held out; leave it out")
    if documents:
        written = init_documents(texts, valid or (), [path for paths in test for path in paths], output)
    else:
        train, tests = _pair("FILE", texts), [_pair("--test", paths) for paths in test]
        written = init_translation(
            ParallelTexts(
                [train],
                None if valid is None else _pair("--valid", valid),
                {"test" if number == 1 else f"test{number}": pair for number, pair in enumerate(tests, 1)},
                None if languages is None else (languages[0], languages[1]),
            ),
            output,
            hold_out,
        )
    for warning in written.warnings:
        print(f"mt-scaffold: warning: {warning}", file=sys.stderr)
    return "\n".join([*written.found, f"Wrote {written.path}; read it, then: mt-scaffold run {written.path}"])


def _pair(option: str, paths: Sequence[str]) -> Pair:
    if len(paths) < 2 or (len(paths) > 2 and option != "--test"):
        raise UsageError(f"{option}: give two files, source and target (or --documents, for language models)")
    return Pair(paths[0], paths[1], tuple(paths[2:]))
