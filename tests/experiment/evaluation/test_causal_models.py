"""Bits per byte of any causal model of transformers; our own export has those of its checkpoint."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from fairseq_training import fairseq_train
from language_models import TINY_LLAMA, binarise

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("transformers", reason="needs the extra 'transformers'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import LanguageModelScores, evaluate, evaluate_folder
from mt_scaffold.experiment.inference.causal_model import load_folder
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
    """Up to the probability of the dropped rows of the dictionary; the documents and windows are the same."""
    ours = evaluate(text / "model" / "checkpoint_last.pt", text / "data", tmp_path / "ours.json")
    arguments = ["evaluate", "--model", str(text / "exported"), "--documents", str(text / "test")]
    main([*arguments, "--format", "lines", "--output", str(tmp_path / "theirs.json")])
    theirs = read_result(LanguageModelScores, tmp_path / "theirs.json")
    assert (theirs.data_sha256, theirs.signature, theirs.tokens) == (ours.data_sha256, ours.signature, ours.tokens)
    assert theirs.by_document.bytes == ours.by_document.bytes
    assert 0.9 * ours.bits < theirs.bits < ours.bits
    main(["compare", str(tmp_path / "ours.json"), str(tmp_path / "theirs.json"), "--output", str(tmp_path / "table")])


def test_a_model_of_somebody_else_is_scored_by_its_own_tokens(text: Path, tmp_path: Path) -> None:
    """GPT-2's architecture with a fast tokenizer of bytes: before training, each token costs log2 of the vocabulary."""
    import tokenizers

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    fast = tokenizers.Tokenizer(tokenizers.models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    fast.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = tokenizers.decoders.ByteLevel()
    _save(tmp_path / "gpt2", fast)
    scores = evaluate_folder(tmp_path / "gpt2", [text / "test"], tmp_path / "scores.json", positions=32)
    assert scores.tokens == scores.bytes + scores.documents
    assert scores.bits == pytest.approx(scores.tokens * math.log2(257), rel=1e-3)
    assert "positions:32|context:16|version" in scores.signature and scores.system == "gpt2"


def _save(folder: Path, tokenizer: Any, **names: str) -> None:
    """Write a tiny model, whose tokens are equally probable, with a tokenizer of tokenizers."""
    library = import_transformers("this test")
    fast = library.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|e|>", **names)
    fast.save_pretrained(folder)
    config = library.GPT2Config(
        vocab_size=len(fast), n_positions=64, n_embd=16, n_layer=1, n_head=2, initializer_range=1e-6
    )
    library.GPT2LMHeadModel(config).save_pretrained(folder)


def _words(normalise: bool) -> Any:
    """Return a tokenizer of SentencePiece's kind; normalise: that lower-cases and collapses white space."""
    import tokenizers
    from tokenizers import decoders, normalizers, pre_tokenizers

    letters = [*"\u2581abcdefghijklmnopqrstuvwxyz\n", *([] if normalise else "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]
    words = tokenizers.Tokenizer(tokenizers.models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    if normalise:
        blank = normalizers.Replace(tokenizers.Regex(r"\s+"), " ")
        words.normalizer = normalizers.Sequence([normalizers.Lowercase(), blank])
    words.pre_tokenizer, words.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return words


def test_text_that_a_tokenizer_drops_counts_no_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Dropped upper case and white space change no bits per byte, and the signature records that they were dropped."""
    _save(tmp_path / "model", _words(normalise=True))
    (tmp_path / "plain").write_text("a cat sat\non the mat\n")
    (tmp_path / "odd").write_text("A   CAT       SAT\non\t\tThe      mat\n")
    plain, odd = (
        evaluate_folder(tmp_path / "model", [tmp_path / name], tmp_path / f"{name}.json", format="lines")
        for name in ("plain", "odd")
    )
    assert odd.bits == plain.bits and odd.bits_per_byte == plain.bits_per_byte
    assert odd.bytes == plain.bytes == len("a cat saton the mat")
    assert "|text:decoded|" in odd.signature and "decoded" not in plain.signature
    assert (
        "warning: document 1: the tokenizer turns 'A   CAT       SAT' into 'a cat sat' (at character 0); it "
        "changes 2 of 2 documents, so that bits per byte are over the bytes that its ids decode to"
    ) in capsys.readouterr().err
    # A tokenizer that keeps all text is scored over all of it; its scores are not compared with the other's.
    _save(tmp_path / "other", _words(normalise=False))
    (tmp_path / "odd").write_text("A   CAT       SAT\non  The      mat\n")
    for name in ("model", "other"):
        evaluate_folder(tmp_path / name, [tmp_path / "odd"], tmp_path / f"{name}.json", format="lines")
    kept = read_result(LanguageModelScores, tmp_path / "other.json")
    assert kept.bytes == len("A   CAT       SATon  The      mat") and "decoded" not in kept.signature
    table = ["--baseline", "model", "--output", str(tmp_path / "table")]
    assert main(["compare", str(tmp_path / "model.json"), str(tmp_path / "other.json"), *table]) == 1
    assert "were computed differently" in capsys.readouterr().err


def test_characters_that_a_tokenizer_leaves_out(tmp_path: Path) -> None:
    """BPE without an unknown token drops unknown characters, which count no bytes; a text of such only is refused."""
    _save(tmp_path / "model", _words(normalise=False))
    (tmp_path / "text").write_text("cat 123\n")
    scores = evaluate_folder(tmp_path / "model", [tmp_path / "text"], tmp_path / "scores.json", format="lines")
    assert scores.bytes == len("cat ") and "|text:decoded|" in scores.signature
    (tmp_path / "text").write_text("123\n")
    with pytest.raises(MTScaffoldError, match="preserves nothing of the documents; evaluate on other text"):
        evaluate_folder(tmp_path / "model", [tmp_path / "text"], tmp_path / "scores.json", format="lines")


def test_the_harness_refuses_likelihoods_of_text_that_is_dropped(tmp_path: Path) -> None:
    """It divides a rolling likelihood by all bytes of a text, even those that the tokenizer drops."""
    pytest.importorskip("lm_eval", reason="needs the extra 'harness'")
    from lm_eval.api.instance import Instance

    from mt_scaffold.experiment.evaluation.lm_eval_model import HarnessModel

    _save(tmp_path / "model", _words(normalise=True))
    model = HarnessModel(tmp_path / "model")

    def likelihood(text: str) -> list[float]:
        return model.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0)])

    assert likelihood("a cat")[0] == pytest.approx(-6 * math.log(len(model.tokenizer)), rel=1e-3)
    with pytest.raises(MTScaffoldError, match=r"turns 'A   CAT' into 'a cat' .* use a task without rolling"):
        likelihood("A   CAT")


def test_what_is_no_whole_causal_model_is_refused(text: Path, tmp_path: Path) -> None:
    """transformers draws weights that are missing at random, and loads a model that reads in both directions."""
    from safetensors.torch import load_file, save_file

    from mt_scaffold.experiment.evaluation.lm_eval_model import HarnessModel

    shutil.copytree(text / "exported", tmp_path / "lacking")
    weights = load_file(tmp_path / "lacking" / "model.safetensors")
    del weights["model.layers.0.mlp.down_proj.weight"]
    save_file(weights, tmp_path / "lacking" / "model.safetensors", {"format": "pt"})
    for load in (load_folder, HarnessModel):
        with pytest.raises(MTScaffoldError, match=r"1 of the model's weights are not in its files, such as .*down_pro"):
            load(tmp_path / "lacking")
    library = import_transformers("this test")
    shutil.copytree(text / "exported", tmp_path / "both")
    (tmp_path / "both" / "model.safetensors").unlink()
    config = library.BertConfig(
        vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    library.BertForMaskedLM(config).save_pretrained(tmp_path / "both")
    with pytest.raises(MTScaffoldError, match="the model is not causal: a token's scores depend on later ones"):
        load_folder(tmp_path / "both")


def test_a_damaged_folder_is_one_line(tmp_path: Path) -> None:
    """The error is one line, whatever is damaged and whichever library notices."""
    _save(tmp_path / "whole", _words(False))
    load_folder(tmp_path / "whole")
    weights = (tmp_path / "whole" / "model.safetensors").read_bytes()
    broken: list[tuple[str, bytes | dict[str, Any]]] = [
        ("model.safetensors", b"\xff" * 9),
        ("model.safetensors", weights[:-5]),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"[]"),
        *((name, b"[5]") for name in ("config.json", "tokenizer_config.json", "generation_config.json")),
        *((name, b"5") for name in ("config.json", "tokenizer_config.json", "generation_config.json")),
        ("config.json", b"[" * 100_000),
        *(("config.json", each) for each in ({"n_head": 0}, {"vocab_size": "x"}, {"vocab_size": -5})),
        *(("config.json", each) for each in ({"n_positions": "x"}, {"model_type": [5]})),
    ]
    for number, (name, content) in enumerate(broken):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / str(number))
        if isinstance(content, dict):
            content = json.dumps(json.loads((folder / name).read_text()) | content).encode()
        (folder / name).write_bytes(content)
        with pytest.raises(MTScaffoldError, match=rf"/{number}: [^\n]*$"):
            load_folder(folder)


def test_what_cannot_be_scored_is_one_line(text: Path, tmp_path: Path) -> None:
    """The line says what to do, and nothing is written."""
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
