"""A single string in place of a list is refused: its letters would silently be the entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mt_scaffold import UsageError
from mt_scaffold.codes import Codes
from mt_scaffold.experiment.binarise.documents import binarise_documents
from mt_scaffold.experiment.binarise.pairs_as_ids import subset_prefixes
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.lm_eval import Asking, run_harness
from mt_scaffold.experiment.evaluation.score import Scoring, Texts, score
from mt_scaffold.experiment.runtime.fairseq import refuse_options
from mt_scaffold.subword_nmt.apply_bpe import BPE

CODES = "#version: 0.2\na b\nab c</w>\n"
# Each call expects a list; typed as Any, like the argument of a caller without a type checker.
TEXT = cast(Any, "abc")


def _assigned(folder: Path, name: str) -> None:
    with open(folder / "codes", encoding="utf-8") as codes:
        setattr(BPE(codes), name, TEXT)


def _code_tokens(folder: Path) -> None:
    pytest.importorskip("transformers", reason="comes with the extra 'transformers'")
    from mt_scaffold.integrations.sides import code_tokens

    code_tokens(Codes.read(folder / "codes"), TEXT)


CALLS: dict[str, Callable[[Path], object]] = {
    "metrics": lambda folder: score(Texts(folder / "a", [folder / "b"]), folder / "c", Scoring(metrics=TEXT)),
    "checkpoints": lambda folder: run_harness(TEXT, "data", folder / "out", Asking(["piqa"])),
    "options": lambda folder: refuse_options(TEXT, (), "fairseq-train"),
    "tests": lambda folder: subset_prefixes("train", None, TEXT, "en", "de"),
    "train": lambda folder: binarise_documents(folder / "out", folder / "codes", TEXT),
    "scores": lambda folder: compare(TEXT, "bpe"),
    "codes": lambda folder: Segmentation(TEXT),
    "glossaries": lambda folder: Segmentation(("codes", "codes"), glossaries=TEXT),
    "special": _code_tokens,
    "vocab": lambda folder: _assigned(folder, "vocab"),
    "glossaries, assigned": lambda folder: _assigned(folder, "glossaries"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_string_is_not_taken_letter_by_letter(name: str, tmp_path: Path) -> None:
    """``metrics="BLEU"`` would be four metrics."""
    (tmp_path / "codes").write_text(CODES, encoding="utf-8")
    with pytest.raises(UsageError, match=f"^{name.partition(',')[0]}: give a list of strings, such as "):
        CALLS[name](tmp_path)


def test_tasks_are_a_list() -> None:
    """The harness would look for a task of one letter."""
    pytest.importorskip("lm_eval", reason="comes with the extra 'harness'")
    from mt_scaffold.experiment.evaluation.lm_eval import Asking, check_tasks

    for tasks, include_path in ((TEXT, ()), (["piqa"], TEXT)):
        with pytest.raises(UsageError, match="give a list of strings"):
            check_tasks(Asking(tasks, include_path=include_path))
