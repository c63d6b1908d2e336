"""The recipe of docs/vocabularies.md that gives a model the rows of changed codes: kept tokens keep their logits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("transformers", reason="needs the extra 'transformers'")

import torch

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.experiment.runtime.hugging_face import import_transformers

PAGE = (ROOT / "docs" / "vocabularies.md").read_text(encoding="utf-8")
# Special tokens that a tokenizer numbers after those of the codes.
SPECIAL = 2


def logits(path: Path, ids: list[int]) -> torch.Tensor:
    model = import_transformers("this test").AutoModelForCausalLM.from_pretrained(path).double().eval()
    with torch.inference_mode():
        found: torch.Tensor = model(torch.tensor([ids])).logits[0]
    return found


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("change", ["trim", "extend"])
def test_the_logits_of_kept_tokens_stay(
    change: str, tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To 1e-12 in float64; a new row is the mean of its pieces, and special ids are renumbered."""
    monkeypatch.chdir(tmp_path)
    pairs = sentence_pairs(1)
    Path("text").write_text("\n".join(next(pairs)[1] for _ in range(120)), encoding="utf-8")
    Path("other").write_text("banana bandana bandanas lowlands lowland\n" * 4, encoding="utf-8")
    learn_bpe("text", "codes", 90, algorithm="bpe", pretokenise="gpt2")
    options = {"trim": ["--below", "12", "--input", "text"], "extend": ["--symbols", "5", "--input", "other"]}
    assert main([change, "codes", *options[change], "--output", "new", "--map", "map.json"]) == 0
    size = len(BPE("codes").tokens) + SPECIAL
    library = import_transformers("this test")
    torch.manual_seed(1)
    shape: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    special = {"bos_token_id": size - 2, "eos_token_id": size - 2, "pad_token_id": size - 1}
    config = library.LlamaConfig(vocab_size=size, intermediate_size=24, tie_word_embeddings=tied, **shape, **special)
    library.AutoModelForCausalLM.from_config(config).save_pretrained("llama")

    (recipe,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(recipe, "vocabularies.md", "exec"), {})

    ids = json.loads(Path("map.json").read_text(encoding="utf-8"))
    new_size = ids["new_ids"] + SPECIAL
    mapped = [*ids["ids"], *range(ids["new_ids"], new_size)]
    kept = [number for number, moved in enumerate(mapped) if moved is not None]
    assert (len(kept) < size) == (change == "trim") and bool(ids["pieces"]) == (change == "extend")
    given = kept[5:35]
    found = logits(Path("small-llama"), [mapped[number] for number in given])
    torch.testing.assert_close(
        found[:, [mapped[number] for number in kept]], logits(Path("llama"), given)[:, kept], rtol=0, atol=1e-12
    )
    before, after = (
        library.AutoModelForCausalLM.from_pretrained(name).get_output_embeddings().weight
        for name in ("llama", "small-llama")
    )
    for number, pieces in ids["pieces"].items():
        torch.testing.assert_close(after[int(number)], before[pieces].mean(0))
    changed = library.AutoConfig.from_pretrained("small-llama")
    assert (changed.vocab_size, changed.eos_token_id, changed.pad_token_id) == (new_size, new_size - 2, new_size - 1)
