"""fairseq checkpoints before and after surgery on their codes: the subwords that stay keep their logits."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fairseq_training import fairseq_train
from language_models import TINY_LLAMA, TINY_LM

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import torch

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import read_documents_folder
from mt_scaffold.experiment.binarise.dictionary import read_dictionary
from mt_scaffold.experiment.binarise.documents import binarise_documents
from mt_scaffold.experiment.inference.language_model import load_model
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.surgery.fairseq_model import resize_fairseq

TRAINED = ["--task", "language_modeling_resumable", "--disable-validation", "--max-update", "4", "--seed", "3"]


pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def surgery(documents: Path) -> Path:
    """Codes, trimmed and extended ones with their maps, and a data folder for each."""
    folder = documents
    text = ["--input", f"{folder}/train"]
    trimmed = ["trim", f"{folder}/codes", "--below", "20", *text, "-o", f"{folder}/trim.codes"]
    extended = ["extend", f"{folder}/codes", "-s", "5", *text, "-o", f"{folder}/extend.codes"]
    for command in (trimmed, extended):
        assert main([*command, "--map", f"{folder}/{command[0]}.json"]) == 0
    for name, padding in (("codes", 8), ("trim.codes", 1), ("extend.codes", 1)):
        paths = {"train": [folder / "train"], "valid": [folder / "valid"]}
        binarise_documents(folder / f"{name}.data", folder / name, **paths, padding_factor=padding)  # type: ignore[arg-type]
    return folder


def logits(checkpoint: Path, data: Path, ids: list[int]) -> torch.Tensor:
    model = load_model(checkpoint, data, read_documents_folder(data)).model.double()
    with torch.inference_mode():
        found: torch.Tensor = model(torch.tensor([ids]))[0][0]
    return found


@pytest.mark.parametrize("options", [TINY_LM, TINY_LLAMA], ids=["transformer_lm-tied", "llama"])
def test_the_logits_of_kept_tokens_stay(surgery: Path, tmp_path: Path, options: list[str]) -> None:
    """The model fits the data folder of the new codes, and each kept symbol keeps its logit."""
    data = surgery / "codes.data"
    fairseq_train([str(data), *options, *TRAINED, "--save-dir", str(tmp_path)])
    checkpoint = tmp_path / "checkpoint_last.pt"
    symbols = len(read_dictionary(data / "dict.txt")) + 4
    for name in ("trim", "extend"):
        after = tmp_path / name
        command = ["resize-embeddings", str(checkpoint), f"{surgery}/{name}.json"]
        assert main([*command, "--dictionaries", f"{data}/dict.txt", "-o", str(after)]) == 0
        new = surgery / f"{name}.codes.data"
        names = [[form for form, _ in read_dictionary(folder / "dict.txt")] for folder in (after, new)]
        assert names[0] == names[1]
        ids = json.loads((surgery / f"{name}.json").read_text())["ids"]
        mapped = [*range(4), *(None if number is None else number + 4 for number in ids)]
        kept = [number for number, moved in enumerate(mapped) if moved is not None]
        assert len(kept) < len(mapped) <= symbols or name == "extend"
        given = [kept[place % len(kept)] for place in range(4, 60, 3)]
        wanted = logits(checkpoint, data, given)[:, kept]
        places = [moved for moved in mapped if moved is not None]
        found = logits(after / "checkpoint_last.pt", new, [mapped[number] or 0 for number in given])[:, places]
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    state = load_checkpoint(tmp_path / "trim" / "checkpoint_last.pt")
    assert "last_optimizer_state" not in state


def translation_model(data: Path, path: Path, options: str) -> Any:
    from clear_model import SIZES, initialised, saved

    built, cfg = initialised(data, path, f"{SIZES} {options}", 1)
    return saved(built, cfg).model.double()


@pytest.mark.parametrize("options", ["--share-all-embeddings", "--share-decoder-input-output-embed"])
def test_a_translation_model_and_its_dictionaries(
    tiny_words: Path, tiny_data: Path, tmp_path: Path, options: str
) -> None:
    """Trimmed and refilled codes of words: rows follow the subwords' names, on both sides; logits stay."""
    data = tmp_path / "data"
    shutil.copytree(tiny_data, data)
    texts = [f"{tiny_words}/train.en", f"{tiny_words}/train.de"]
    codes = ["trim", f"{tiny_words}/codes", "--ratio", "0.6", "--refill", "same", "--input", *texts]
    assert main([*codes, "-o", f"{tmp_path}/codes", "--map", f"{tmp_path}/map.json"]) == 0
    before = translation_model(data, tmp_path / "model.pt", options)
    dictionaries = [data / "dict.en.txt", data / "dict.de.txt"]
    after = tmp_path / "after"
    result = resize_fairseq(tmp_path / "model.pt", [tmp_path / "map.json"], dictionaries, after)
    for path in dictionaries:
        shutil.copy(after / path.name, path)
    from fairseq import checkpoint_utils

    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([f"{after}/model.pt"], {"data": str(data)})
    assert result.added and result.parameters[1] == sum(each.numel() for each in model.parameters())
    model = model.double().eval()
    old, new = (
        [*range(4), *(form for form, _ in read_dictionary(path))]
        for path in (tiny_data / "dict.de.txt", data / "dict.de.txt")
    )
    number_of = {form: number for number, form in enumerate(new)}
    kept = [number for number, form in enumerate(old) if form in number_of]
    assert 10 < len(kept) < len(old)
    given = torch.tensor([[*kept[5:12], 2]])
    moved = torch.tensor([[*(number_of[old[number]] for number in kept[5:12]), 2]])
    with torch.inference_mode():
        wanted = before(given, torch.tensor([given.shape[1]]), given)[0][..., kept]
        found = model(moved, torch.tensor([moved.shape[1]]), moved)[0][..., [number_of[old[number]] for number in kept]]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    added = json.loads((tmp_path / "map.json").read_text())["added"]
    form = next(form for form in added if all(part in old for part in added[form]))
    rows = model.decoder.embed_tokens.weight, before.decoder.embed_tokens.weight
    mean = rows[1][[old.index(part) for part in added[form]]].mean(0)
    torch.testing.assert_close(rows[0][number_of[form]], mean, rtol=0, atol=1e-6)


def test_what_does_not_belong_together_is_refused(surgery: Path, tmp_path: Path) -> None:
    """Another dictionary, a map of other codes, two maps for a language model."""
    data = surgery / "codes.data"
    fairseq_train([str(data), *TINY_LM, *TRAINED, "--max-update", "1", "--save-dir", str(tmp_path)])
    checkpoint, good = tmp_path / "checkpoint_last.pt", surgery / "trim.json"
    other = surgery / "trim.codes.data" / "dict.txt"
    for maps, dictionary, pattern in (
        ([good], other, "give the map of the codes"),
        ([surgery / "codes"], data / "dict.txt", "not JSON"),
        ([good, good], data / "dict.txt", "2 maps; give one"),
    ):
        with pytest.raises((MTScaffoldError, UsageError), match=pattern):
            resize_fairseq(checkpoint, maps, [dictionary], tmp_path / "out")
        assert not (tmp_path / "out").exists()
    resize_fairseq(checkpoint, [good], [data / "dict.txt"], tmp_path / "out")
    with pytest.raises(MTScaffoldError, match="out: exists already"):
        resize_fairseq(checkpoint, [good], [data / "dict.txt"], tmp_path / "out")
