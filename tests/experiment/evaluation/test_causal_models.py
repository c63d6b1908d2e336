"""Bits per byte of any causal model of transformers: those of our own export are the checkpoint's."""

from pathlib import Path

import pytest
from fairseq_training import fairseq_train
from language_models import TINY_LLAMA, binarise

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("transformers", reason="needs the extra 'transformers'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import LanguageModelScores, evaluate, evaluate_folder
from mt_scaffold.experiment.inference.export_transformers import export_transformers
from mt_scaffold.experiment.runtime.hugging_face import import_transformers
from mt_scaffold.experiment.runtime.results import read_result

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def text(documents: Path) -> Path:
    """Documents, their data folder, a model, and its export."""
    folder = documents
    test = (folder / "test").read_bytes().replace(b"\xff", b"\xc3\xa4")
    (folder / "test").write_bytes(test)
    data = binarise(folder, "data", folder / "codes", ["train", "valid", "test"])
    options = [*TINY_LLAMA, "--task", "language_modeling_resumable", "--disable-validation", "--max-update", "30"]
    fairseq_train([str(data), *options, "--save-dir", str(folder / "model")])
    export_transformers(folder / "model" / "checkpoint_last.pt", data, folder / "exported")
    return folder


def test_the_export_has_the_bits_of_the_checkpoint(text: Path, tmp_path: Path) -> None:
    """Up to what the dropped rows of the dictionary had of the probability; the same documents, the same windows."""
    ours = evaluate(text / "model" / "checkpoint_last.pt", text / "data", tmp_path / "ours.json")
    arguments = ["evaluate", "--model", str(text / "exported"), "--documents", str(text / "test")]
    main([*arguments, "--format", "lines", "--output", str(tmp_path / "theirs.json")])
    theirs = read_result(LanguageModelScores, tmp_path / "theirs.json")
    assert (theirs.data_sha256, theirs.signature, theirs.tokens) == (ours.data_sha256, ours.signature, ours.tokens)
    assert theirs.by_document.bytes == ours.by_document.bytes
    assert 0.9 * ours.bits < theirs.bits < ours.bits
    main(["compare", str(tmp_path / "ours.json"), str(tmp_path / "theirs.json"), "--output", str(tmp_path / "table")])


def test_a_model_of_somebody_else_is_scored_by_its_own_tokens(text: Path, tmp_path: Path) -> None:
    """GPT-2's architecture with a fast tokenizer of bytes: before training, each token costs the uniform bits."""
    import math

    import tokenizers

    library = import_transformers("this test")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    fast = tokenizers.Tokenizer(tokenizers.models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    fast.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<|e|>").save_pretrained(tmp_path / "gpt2")
    config = library.GPT2Config(vocab_size=257, n_positions=64, n_embd=16, n_layer=1, n_head=2, initializer_range=1e-6)
    library.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    scores = evaluate_folder(tmp_path / "gpt2", [text / "test"], tmp_path / "scores.json", positions=32)
    assert scores.tokens == scores.bytes + scores.documents
    assert scores.bits == pytest.approx(scores.tokens * math.log2(257), rel=1e-3)
    assert "positions:32|context:16" in scores.signature and scores.system == "gpt2"


def test_what_cannot_be_scored_is_one_line(text: Path, tmp_path: Path) -> None:
    """With what to do; nothing is written."""
    output = tmp_path / "scores.json"
    with pytest.raises(MTScaffoldError, match=r"no config.json; give a folder that transformers' save_pretrained"):
        evaluate_folder(text, [text / "test"], output)
    with pytest.raises(UsageError, match="--positions 999: the model has 32; give 1 to 32"):
        evaluate_folder(text / "exported", [text / "test"], output, positions=999)
    (tmp_path / "latin").write_bytes(b"a line\nB\xe4r\n")
    with pytest.raises(MTScaffoldError, match=r"document 2: not UTF-8 \(byte 0xE4 at offset 1\); convert it"):
        evaluate_folder(text / "exported", [tmp_path / "latin"], output)
    assert main(["evaluate", "--model", "m", "--checkpoint", "c", "--output", str(output)]) == 2
    assert main(["evaluate", "--model", "m", "--data", "d", "--documents", "t", "--output", str(output)]) == 2
    assert not output.exists()
