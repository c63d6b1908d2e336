"""Language models exported to transformers: the same logits and continuations, with matching rows and tokenizer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_training import fairseq_train
from language_models import (
    POSITIONS,
    TINY_LLAMA,
    TINY_LM,
    binarise,
    documents_of,
    learn_codes,
)

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("transformers", reason="needs the extra 'transformers'")

import torch

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.byte_vocabulary import FIRST_ID, Vocabulary
from mt_scaffold.experiment.binarise.data_folder import read_documents_folder
from mt_scaffold.experiment.inference.export_transformers import export_transformers
from mt_scaffold.experiment.inference.language_model import inputs_of, load_model
from mt_scaffold.experiment.runtime.hugging_face import import_transformers

TRAINED = ["--task", "language_modeling_resumable", "--disable-validation", "--max-update", "40", "--seed", "3"]


pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def data(documents: Path) -> Path:
    return binarise(documents, "data", documents / "codes", ["train", "valid", "test"])


def trained(data: Path, save: Path, *options: str) -> Path:
    fairseq_train([str(data), *TINY_LLAMA, *TRAINED, "--save-dir", str(save), *options])
    return save / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def checkpoint(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(data, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def folder(data: Path, checkpoint: Path) -> Path:
    exported = checkpoint.parent / "exported"
    assert main(["export", "transformers", "-m", str(checkpoint), "-d", str(data), "-o", str(exported)]) in (None, 0)
    return exported


@pytest.mark.parametrize(
    "options",
    [[], ["--share-decoder-input-output-embed"], ["--arch", "gpt_neox"], ["--bf16"]],
    ids=["llama", "tied", "gpt_neox", "bf16"],
)
def test_the_logits_are_those_of_the_checkpoint(data: Path, tmp_path: Path, options: list[str]) -> None:
    """For every token and the end of a document, within 1e-5, also with tied embeddings or a second architecture."""
    checkpoint = trained(data, tmp_path / "model", *options, "--max-update", "4")
    exported = export_transformers(checkpoint, data, tmp_path / "exported")
    library = import_transformers("this test")
    model = library.AutoModelForCausalLM.from_pretrained(tmp_path / "exported", dtype=torch.float32).eval()
    tokenizer = library.AutoTokenizer.from_pretrained(tmp_path / "exported")
    loaded = load_model(checkpoint, data, read_documents_folder(data))
    vocabulary = Vocabulary(data / "bpe.codes")
    kept = [*range(FIRST_ID, FIRST_ID + len(vocabulary.tokens)), 2, 1]
    assert exported.rows == len(tokenizer) == model.config.vocab_size == len(kept)
    assert exported.dropped[:2] == ["<s>", "<unk>"]
    assert len(exported.dropped) + len(kept) == loaded.symbols
    for document in documents_of(data.parent / "test"):
        ids, _ = vocabulary.encode([document])
        text = document.decode("utf-8", "ignore")
        if text.encode() != document:
            continue
        inputs = tokenizer(text, return_tensors="pt", truncation=True)
        with torch.no_grad():
            found = model(**inputs).logits[0]
            expected = loaded.model(torch.as_tensor(inputs_of(ids))[None, :POSITIONS])[0][0][:, kept]
        assert len(found) == min(len(ids), POSITIONS)
        assert (found - expected).abs().max() < 1e-5
    # fairseq writes the parameters of bf16 as fp32.
    assert json.loads((tmp_path / "exported" / "config.json").read_text())["dtype"] == "float32"


def test_the_likeliest_continuations_are_the_same(data: Path, checkpoint: Path, folder: Path) -> None:
    """For 20 prompts, by the checkpoint's model and, in a separate process, by generate() with its cache."""
    text = b" ".join(documents_of(data.parent / "valid")).decode("utf-8", "ignore").split()
    prompts = [" ".join(text[place : place + 1 + place % 4]) for place in range(20)]
    vocabulary = Vocabulary(data / "bpe.codes")
    model = load_model(checkpoint, data, read_documents_folder(data)).model
    allowed = torch.tensor([2, *range(FIRST_ID, FIRST_ID + len(vocabulary.tokens))])
    expected = []
    for prompt in prompts:
        ids = [2, *vocabulary.encode([prompt.encode()])[0][:-1].tolist()]
        read = len(ids)
        while len(ids) < read + 12:
            with torch.no_grad():
                logits = model(torch.tensor([ids]))[0][0, -1]
            ids.append(int(allowed[logits[allowed].argmax()]))
            if ids[-1] == 2:
                break
        written = vocabulary.decode([each for each in ids[1:] if each != 2])
        expected.append(written[len(vocabulary.decode(ids[1:read])) :].decode("utf-8", "replace"))
    program = f"""
import json
from mt_scaffold.experiment.runtime.hugging_face import import_transformers
library = import_transformers("")
tokenizer = library.AutoTokenizer.from_pretrained({str(folder)!r}, trust_remote_code=True)
model = library.AutoModelForCausalLM.from_pretrained({str(folder)!r})
for prompt in json.loads({json.dumps(prompts)!r}):
    inputs = tokenizer(prompt, return_tensors="pt")
    ids = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0].tolist()
    before = tokenizer.decode(inputs["input_ids"][0], skip_special_tokens=True)
    print(json.dumps(tokenizer.decode(ids, skip_special_tokens=True)[len(before):]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == expected and len(set(found)) > 3


def test_what_is_dropped_is_said(
    data: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader can tell why the exported model has fewer parameters; a folder with other content is left alone."""
    arguments = ["export", "transformers", "-m", str(checkpoint), "-d", str(data), "-o", str(tmp_path / "out")]
    main(arguments)
    assert "rows of embeddings; dropped, because they stand for no text: <s>, <unk>, " in capsys.readouterr().out
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(MTScaffoldError):
        export_transformers(checkpoint, data, tmp_path / "mine")
    fairseq_train([str(data), *TINY_LM, *TRAINED, "--max-update", "1", "--save-dir", str(tmp_path / "other")])
    with pytest.raises(MTScaffoldError, match="transformers has no such model; train one with --arch llama"):
        export_transformers(tmp_path / "other" / "checkpoint_last.pt", data, tmp_path / "other-out")
    assert not (tmp_path / "other-out").exists()


def test_plain_bpe_comes_with_a_file_of_the_fast_tokenizer(documents: Path, folder: Path, tmp_path: Path) -> None:
    """llama.cpp's converter looks for it; with scaffold tokens there is none."""
    plain = binarise(documents, "plain", learn_codes(documents, "plain.codes", algorithm="bpe"), ["train", "valid"])
    export_transformers(trained(plain, tmp_path / "model", "--max-update", "1"), plain, tmp_path / "out")
    library, text = import_transformers("this test"), "A text, with 2 spaces  and\na line end <|endoftext|>"
    ours = library.AutoTokenizer.from_pretrained(tmp_path / "out")
    fast = library.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "out" / "tokenizer.json"))
    assert [ours.bos_token_id, *fast(text).input_ids] == ours(text).input_ids and type(
        ours
    ).__name__ == "MTScaffoldTokenizer"
    assert not (folder / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "export transformers: give --model and --data, or --experiment and --system"),
        ("--model m", "export transformers: give --model and --data, or --experiment and --system"),
        ("--experiment e", "export: with --experiment, give --system"),
        ("--experiment e --system s --data d", "export: with --experiment, leave out --data"),
        ("--model m --data d --seed 2", "export: with --model, leave out --seed"),
    ],
)
def test_an_option_that_is_missing_or_would_not_count_is_named(
    options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model is given by its files or as a system of an experiment."""
    assert main(["export", "transformers", "--output", "o", *options.split()]) == 2
    assert f"{message}\n" in capsys.readouterr().err
