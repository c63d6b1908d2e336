"""The tests that transformers shares between its tokenizers, run on each kind of ours.

``make test-integrations`` unpacks them from the source archive of the installed version.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import learn_bpe
from mt_scaffold.experiment.data.synthetic import sentence_pairs

TESTS = Path(sys.prefix) / "transformers-tests"
if not (TESTS / "unpacked").exists():
    pytest.skip("make test-integrations unpacks the tests of transformers", allow_module_level=True)
sys.path.insert(0, str(TESTS))
COMMON: Any = pytest.importorskip("transformers_tests.test_tokenization_common", reason="needs parameterized")

from mt_scaffold.integrations.transformers import MTScaffoldTokenizer  # noqa: E402
from mt_scaffold.integrations.vocabularies.importing import import_codes  # noqa: E402

SPECIAL: dict[str, Any] = {f"{name}_token": f"<{name}>" for name in ("bos", "eos", "pad", "unk", "cls", "sep", "mask")}


def _text(folder: Path) -> Path:
    pairs = sentence_pairs(1, stems=60)
    path = folder / "text"
    sentences = "".join(f"{next(pairs)[0]}\n" for _ in range(200))
    path.write_text(sentences + "This is a test of lower newer wide words\n" * 20, encoding="utf-8")
    return path


def _code_points(folder: Path) -> MTScaffoldTokenizer:
    learn_bpe(paths=[_text(folder)], outfile=folder / "codes", num_symbols=150)
    return MTScaffoldTokenizer(folder / "codes")


def _bytes(folder: Path) -> MTScaffoldTokenizer:
    learn_bpe(paths=[_text(folder)], outfile=folder / "codes", num_symbols=150, pretokenise="gpt2")
    return MTScaffoldTokenizer(folder / "codes", **SPECIAL)


def _sentencepiece(folder: Path) -> MTScaffoldTokenizer:
    library: Any = pytest.importorskip("sentencepiece")
    library.SentencePieceTrainer.train(
        input=str(_text(folder)),
        model_prefix=str(folder / "original"),
        vocab_size=400,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    import_codes(folder / "original.model", folder / "codes")
    return MTScaffoldTokenizer(
        folder / "codes", bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    )


KINDS = {"CodePoints": _code_points, "Bytes": _bytes, "SentencePiece": _sentencepiece}
# The tests that do not apply, with the reason: for every kind, and for one.
LEFT_OUT = {
    "test_tokenizer_store_full_signature": "files of codes and vocabularies have fixed names in a saved folder",
    "test_integration": "compares with the published vocabulary of a model",
    "test_integration_from_extractor": "compares with the published vocabulary of a model",
    "test_chat_template_save_loading": "looks for chat_template among the named arguments only, but it is in **kwargs",
    "test_sequence_ids": "is for subclasses of TokenizersBackend",
}
LEFT_OUT_OF = {
    "CodePoints": dict[str, str](),
    "Bytes": {"test_pretokenized_inputs": "expects a space before the first word too"},
    "SentencePiece": {"test_pretokenized_inputs": "is about text that begins with spaces"},
}


def _tests_of(kind: str) -> type[unittest.TestCase]:
    def set_up(cls: Any) -> None:
        cls.tmpdirname = tempfile.mkdtemp()
        cls.tokenizers_list = []
        folder = Path(tempfile.mkdtemp())
        try:
            KINDS[kind](folder).save_pretrained(cls.tmpdirname)
        finally:
            shutil.rmtree(folder)

    members: dict[str, Any] = {"setUpClass": classmethod(set_up), "tokenizer_class": MTScaffoldTokenizer}
    for name, reason in (LEFT_OUT | LEFT_OUT_OF[kind]).items():
        members[name] = unittest.skip(reason)(getattr(COMMON.TokenizerTesterMixin, name))
    return type(f"Test{kind}", (COMMON.TokenizerTesterMixin, unittest.TestCase), members)


for _kind in KINDS:
    globals()[f"Test{_kind}"] = _tests_of(_kind)
