"""Models of transformers before and after surgery on their codes: the tokens that stay keep their logits."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra 'transformers'")

import torch
from safetensors.torch import load_file

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.experiment.runtime.hugging_face import import_transformers
from mt_scaffold.experiment.surgery.rows import Rows
from mt_scaffold.experiment.surgery.transformers_model import resize_transformers

_PAIRS = sentence_pairs(1)
TEXT = [next(_PAIRS)[1] for _ in range(120)]
HELD_OUT = [f" {word}" for _ in range(20) for word in next(_PAIRS)[1].split()]
SMALL: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
GPT2: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
# Special tokens that a tokenizer numbers after those of the codes.
SPECIAL = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codes, and these trimmed and then extended, with the map of each step."""
    made = tmp_path_factory.mktemp("codes")
    (made / "text").write_text("\n".join(TEXT), encoding="utf-8")
    (made / "other").write_text("banana bandana bandanas lowlands lowland\n" * 4, encoding="utf-8")
    learn_bpe(made / "text", made / "codes", 90, algorithm="bpe", pretokenise="gpt2")
    trimmed = ["trim", f"{made}/codes", "--below", "12", "--input", f"{made}/text"]
    assert main([*trimmed, "-o", f"{made}/trimmed", "--map", f"{made}/trim.json"]) == 0
    extended = ["extend", f"{made}/codes", "--symbols", "5", "--input", f"{made}/other"]
    assert main([*extended, "-o", f"{made}/extended", "--map", f"{made}/extend.json"]) == 0
    return made


def rows_of(folder: Path) -> int:
    return len(BPE(folder / "codes").tokens) + SPECIAL


def saved(folder: Path, kind: str, save: dict[str, Any] | None = None, **settings: Any) -> Path:
    """A model with random parameters, for the ids of the codes and special tokens."""
    library = import_transformers("this test")
    size = rows_of(folder)
    ids = {"bos_token_id": size - 2, "eos_token_id": size - 2, "pad_token_id": size - 1}
    torch.manual_seed(1)
    config = library.AutoConfig.for_model(kind, vocab_size=size, **ids, **settings)
    seq2seq = kind in ("marian", "t5")
    model = (library.AutoModelForSeq2SeqLM if seq2seq else library.AutoModelForCausalLM).from_config(config)
    for name, buffer in model.named_buffers():
        if name == "final_logits_bias":
            buffer.normal_()
    path = folder / f"{kind}{len(list(folder.iterdir()))}"
    model.save_pretrained(path, **(save or {}))
    return path


def logits(path: Path, ids: list[int]) -> torch.Tensor:
    model = import_transformers("this test").AutoModelForCausalLM.from_pretrained(path).double().eval()
    with torch.inference_mode():
        found: torch.Tensor = model(torch.tensor([ids])).logits[0]
    return found


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", SMALL),
        ("llama", SMALL | {"tie_word_embeddings": True}),
        ("gpt2", GPT2),
        ("gpt_neox", SMALL),
        ("phi", SMALL),
    ],
    ids=["llama", "llama-tied", "gpt2-tied", "gpt_neox", "phi-bias"],
)
@pytest.mark.parametrize("surgery", ["trim", "extend"])
def test_the_logits_of_kept_tokens_stay(folder: Path, kind: str, settings: dict[str, Any], surgery: str) -> None:
    """On text without removed tokens, each kept token keeps its logit, to 1e-12 in float64."""
    before = saved(folder, kind, **settings)
    after = folder / f"{before.name}-{surgery}"
    assert main(["resize-embeddings", str(before), f"{folder}/{surgery}.json", "--output", str(after)]) == 0
    ids = json.loads((folder / f"{surgery}.json").read_text())
    old, new = BPE(folder / "codes"), BPE(folder / f"{surgery}{'med' if surgery == 'trim' else 'ed'}")
    assert len(new.tokens) == ids["new_ids"] and (ids["pieces"] or surgery == "trim")
    mapped = [*ids["ids"], *range(ids["new_ids"], ids["new_ids"] + SPECIAL)]
    kept = [number for number, moved in enumerate(mapped) if moved is not None]
    texts = [old.encode(line) for line in HELD_OUT]
    texts = [given for given in texts if all(mapped[number] is not None for number in given)]
    assert len(HELD_OUT) > len(texts) > 10 or surgery == "extend"
    for given in texts:
        assert surgery == "extend" or new.encode(old.decode(given)) == [mapped[number] for number in given]
    # Concatenated: a model's context has no word boundaries.
    given = [number for text in texts for number in text][:30]
    found = logits(after, [mapped[number] for number in given])[:, [mapped[number] for number in kept]]
    torch.testing.assert_close(found, logits(before, given)[:, kept], rtol=0, atol=1e-12)


def test_a_new_row_is_the_mean_of_its_pieces_and_special_tokens_move(folder: Path) -> None:
    """Kept rows have the same bits, new ones the mean; rows after the codes' ids, and special ids, stay last."""
    before = saved(folder, "llama", **SMALL)
    generation = before / "generation_config.json"
    size, last = rows_of(folder), len(BPE(folder / "codes").tokens) - 1
    generation.write_text(json.dumps({"eos_token_id": [size - 2, 97], "bad_words_ids": [[last, 97], [98]], "top_k": 2}))
    (before / "tokenizer.json").write_text("{}")
    result = resize_transformers(before, folder / "extend.json", folder / "extended-llama")
    pieces = json.loads((folder / "extend.json").read_text())["pieces"]
    old, new = load_file(before / "model.safetensors"), load_file(folder / "extended-llama" / "model.safetensors")
    assert len(pieces) == result.added == 5
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        assert torch.equal(new[name][: last + 1], old[name][: last + 1])
        assert torch.equal(new[name][-SPECIAL:], old[name][-SPECIAL:])
        for number, parts in pieces.items():
            torch.testing.assert_close(new[name][int(number)], old[name][parts].mean(0))
    config = json.loads((folder / "extended-llama" / "config.json").read_text())
    assert (config["vocab_size"], config["eos_token_id"]) == (size + 5, size + 3)
    moved = json.loads((folder / "extended-llama" / "generation_config.json").read_text())
    assert moved == {"eos_token_id": [size + 3, 97], "bad_words_ids": [[last, 97], [98]], "top_k": 2}
    assert result.notes == ["not copied: tokenizer.json; write the tokenizer of the new codes"]
    assert result.saved == -2 * 5 * SMALL["hidden_size"]


def test_shards_stay_shards(folder: Path) -> None:
    """An index still names the file of each tensor, and its total is that of the new files."""
    before = saved(folder, "llama", {"max_shard_size": "8KB"}, **SMALL)
    after = folder / "shards"
    result = resize_transformers(before, folder / "trim.json", after)
    indices = [json.loads((path / "model.safetensors.index.json").read_text()) for path in (before, after)]
    assert indices[0]["weight_map"] == indices[1]["weight_map"] and len(set(indices[0]["weight_map"].values())) > 2
    assert indices[1]["metadata"]["total_size"] == indices[0]["metadata"]["total_size"] - 4 * result.saved
    model = import_transformers("this test").AutoModelForCausalLM.from_pretrained(after)
    assert sum(each.numel() for each in model.parameters()) == result.parameters[1] < result.parameters[0]


def test_an_encoder_with_a_decoder_has_constants_for_each_id(folder: Path) -> None:
    """Marian adds a constant to each logit, in a buffer whose second axis has the ids."""
    sizes: dict[str, Any] = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
    }
    widths: dict[str, Any] = {
        "d_model": 16,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "decoder_start_token_id": rows_of(folder) - 1,
    }
    before = saved(folder, "marian", **sizes, **widths)
    result = resize_transformers(before, folder / "trim.json", folder / "marian")
    library = import_transformers("this test")
    old, new = (
        library.AutoModelForSeq2SeqLM.from_pretrained(path).double().eval() for path in (before, folder / "marian")
    )
    ids = json.loads((folder / "trim.json").read_text())["ids"]
    kept = [number for number, moved in enumerate(ids) if moved is not None]
    given = random.Random(1).choices(kept, k=6)
    moved = [ids[number] for number in given]
    with torch.inference_mode():
        found = new(input_ids=torch.tensor([moved]), decoder_input_ids=torch.tensor([moved])).logits
        wanted = old(input_ids=torch.tensor([given]), decoder_input_ids=torch.tensor([given])).logits
    torch.testing.assert_close(found[..., [ids[n] for n in kept]], wanted[..., kept], rtol=0, atol=1e-12)
    assert new.config.decoder_start_token_id == len(new.final_logits_bias[0]) - 1
    assert "final_logits_bias" in result.rows


def test_what_cannot_be_resized_is_refused(folder: Path, tmp_path: Path) -> None:
    """A special token that is removed, ids beyond the model, a pickle, code in the model, a folder in use."""
    before = saved(folder, "gpt2", **GPT2)
    ids = json.loads((folder / "trim.json").read_text())["ids"]
    config = json.loads((before / "config.json").read_text())

    def refused(pattern: str, **changed: Any) -> None:
        (before / "config.json").write_text(json.dumps(config | changed))
        with pytest.raises(MTScaffoldError, match=pattern):
            resize_transformers(before, folder / "trim.json", tmp_path / "out")
        assert not (tmp_path / "out").exists()

    refused("eos_token_id .* is a token that the map removes", eos_token_id=ids.index(None))
    refused("rows of embeddings, but", vocab_size=100)
    refused("an architecture that transformers does not have", architectures=["Unheard"])
    refused("an architecture that transformers does not have", auto_map={"AutoModel": "modelling.Own"})
    refused("does not fit a vocabulary", vocab_size=rows_of(folder) + 1)
    for architectures in ([5], {"a": 1}, "GPT2LMHeadModel", 5):
        refused("config.json: its architectures are not a list of names", architectures=architectures)
    refused("an architecture that transformers does not have", architectures=["AutoConfig"])
    for wrong in ({"n_head": 0}, {"vocab_size": "x"}, {"vocab_size": -5}, {"n_embd": [1]}, {"model_type": {"a": 1}}):
        refused("config.json: transformers cannot build this model [^\n]*$", **wrong)
    refused("config.json: not a configuration of transformers", suppress_tokens=5)
    (before / "config.json").write_text("[" * 100_000)
    with pytest.raises(MTScaffoldError, match=r"config\.json: not JSON"):
        resize_transformers(before, folder / "trim.json", tmp_path / "out")
    refused("sequence_bias, which cannot be renumbered", sequence_bias=[[[1], 0.5]])
    (before / "model.safetensors").rename(before / "pytorch_model.bin")
    refused("save the model as safetensors")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(MTScaffoldError, match="used: exists already; delete it, or choose a new folder"):
        resize_transformers(before, folder / "trim.json", tmp_path / "used")


def test_ids_with_names_move(folder: Path) -> None:
    """Whisper's languages and tasks are ids; speakers are not."""
    before, size = saved(folder, "gpt2", **GPT2), rows_of(folder)
    named = {"lang_to_id": {"<|de|>": size - 1, "<|en|>": 97}, "speaker_to_id": {"a": 3}}
    (before / "generation_config.json").write_text(json.dumps(named))
    resize_transformers(before, folder / "extend.json", folder / "named")
    moved = json.loads((folder / "named" / "generation_config.json").read_text())
    assert moved == {"lang_to_id": {"<|de|>": size + 4, "<|en|>": 97}, "speaker_to_id": {"a": 3}}


def test_another_table_that_ids_lead_to_is_refused(folder: Path) -> None:
    """With Gemma's embeddings of each layer, tokens would get the rows of others."""
    before = saved(folder, "gpt2", **GPT2)
    config = json.loads((before / "config.json").read_text())
    (before / "config.json").write_text(json.dumps(config | {"vocab_size_per_layer_input": 7}))
    with pytest.raises(MTScaffoldError, match="has vocab_size_per_layer_input, of another table that ids lead to"):
        resize_transformers(before, folder / "extend.json", folder / "layers")
    others = {"pad_vocab_size_multiple": 8, "task_type_vocab_size": 3, "unpadded_vocab_size": 90}
    (before / "config.json").write_text(json.dumps(config | others))
    assert resize_transformers(before, folder / "extend.json", folder / "layers").added == 5


def test_integers_have_no_mean() -> None:
    """A token's experts are those of one of its pieces, as a mean of their numbers would be meaningless."""
    rows = Rows(3, [0, 1, 2, -1], {3: [0, 2]})
    assert rows.of(torch.tensor([[8, 1], [2, 2], [4, 7]])).tolist() == [[8, 1], [2, 2], [4, 7], [4, 7]]
    assert rows.of(torch.tensor([[8.0], [2.0], [4.0]])).tolist() == [[8], [2], [4], [6]]


def test_a_map_of_another_model_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """8,000 ids for 16,257 rows were once accepted silently; unusually many more rows need an option."""
    before = saved(folder, "llama", **SMALL)
    model = import_transformers("this test").AutoModelForCausalLM.from_pretrained(before)
    model.resize_token_embeddings(rows_of(folder) + 8257 - SPECIAL)
    model.save_pretrained(before)
    capsys.readouterr()
    command = ["resize-embeddings", str(before), f"{folder}/trim.json", "--output", str(folder / "resized-other")]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "8,257 more than" in error and "--more-rows 8257" in error
    assert not (folder / "resized-other").exists()
    assert main([*command, "--more-rows", "8256"]) == 1
    assert main([*command, "--more-rows", "8257"]) == 0
    capsys.readouterr()
    assert main([*command, "--more-rows", "8257"]) == 1
    assert "exists already" in capsys.readouterr().err
