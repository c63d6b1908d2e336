"""Models of transformers, trained by fairseq: their sizes, exact resuming, several processes."""

from pathlib import Path
from typing import Any

import pytest
from fairseq_training import fairseq_config, fairseq_train, run_processes
from fork_server import ForkServer
from language_models import TINY_LLAMA, binarise

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("transformers", reason="needs the extra 'transformers'")

import torch
from fairseq.data import Dictionary

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

TASK = ["--task", "language_modeling_resumable", "--disable-validation"]
PRECISIONS = {"fp32": [], "bf16": ["--bf16"]}


pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def data(documents: Path) -> Path:
    return binarise(documents, "data", documents / "codes")


def dictionary_of(symbols: int) -> Any:
    """A dictionary with this many symbols, including fairseq's own."""
    dictionary = Dictionary()
    for number in range(symbols - len(dictionary)):
        dictionary.add_symbol(str(number))
    return dictionary


def built(arguments: list[str], symbols: int, device: str = "cpu") -> Any:
    """The model that fairseq-train would train."""
    from mt_scaffold.experiment.fairseq_plugin.architectures import CausalModel

    options = fairseq_config(["data", *TASK, *arguments]).model

    class Task:
        source_dictionary = target_dictionary = dictionary_of(symbols)

    with torch.device(device):
        kind = next(kind for kind in CausalModel.__subclasses__() if kind.model_type == arguments[1])
        return kind.build_model(options, Task())


@pytest.mark.parametrize(
    ("layers", "width", "heads", "feed_forward", "parameters"),
    [
        (24, 1024, 16, 4096, 468_239_360),
        (16, 2048, 8, 8192, 1_204_881_408),
        (32, 4096, 32, 11008, 6_738_415_616),
    ],
)
def test_the_papers_models_have_the_papers_sizes(
    layers: int, width: int, heads: int, feed_forward: int, parameters: int
) -> None:
    """468M, 1.2B and 6.7B with 32,000 rows: LLaMA's block, with Pythia's dimensions (and LLaMA-7B's)."""
    options = f"--arch llama --decoder-layers {layers} --decoder-embed-dim {width} --decoder-attention-heads {heads}"
    model = built([*options.split(), "--decoder-ffn-embed-dim", str(feed_forward)], 32_000, "meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(("arch", "precision"), [("llama", "bf16"), ("gpt_neox", "fp32")])
def test_a_training_that_is_stopped_resumes_bit_for_bit(data: Path, tmp_path: Path, arch: str, precision: str) -> None:
    """The losses and all final parameters are equal; with dropout, within an epoch, and with fp32 copies of bf16."""
    arguments = [str(data), *TINY_LLAMA, *TASK, *PRECISIONS[precision], "--arch", arch, "--seed", "3"]
    whole = fairseq_train([*arguments, "--max-update", "22", "--save-dir", str(tmp_path / "whole")])
    stopped = fairseq_train([*arguments, "--max-update", "6", "--save-dir", str(tmp_path / "resumed")])
    resumed = fairseq_train([*arguments, "--max-update", "22", "--save-dir", str(tmp_path / "resumed")])
    assert len(stopped) == 6 and stopped + resumed == whole and whole[-1].loss < whole[0].loss
    one, other = (load_checkpoint(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "resumed"))
    assert len(one["model"]) > 10 and one["model"].keys() == other["model"].keys()
    assert all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"])


@pytest.mark.long
def test_two_processes_train_as_one_with_twice_the_batch(
    fairseq_programs: ForkServer, data: Path, tmp_path: Path
) -> None:
    """The parameters after 12 updates differ by less than 1e-5 of their size."""
    arguments = [str(data), *TINY_LLAMA, *TASK, "--dropout", "0", "--seed", "3", "--max-update", "12"]
    two = run_processes(fairseq_programs, [*arguments, "--save-dir", str(tmp_path / "two")], tmp_path)
    one = fairseq_train([*arguments, "--update-freq", "2", "--save-dir", str(tmp_path / "one")])
    assert [step.ids for steps in zip(*two, strict=True) for step in steps][: len(one)] == [step.ids for step in one]
    models = [load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("one", "two")]
    for name, expected in models[0].items():
        assert (models[1][name] - expected).norm() <= 1e-5 * expected.norm(), name


def test_padding_and_later_tokens_change_nothing(data: Path) -> None:
    """fairseq pads on the right with a symbol of the dictionary."""
    model = built(TINY_LLAMA, 300).eval()
    tokens = torch.randint(4, 300, (2, 20))
    padded = torch.cat([tokens, torch.full((2, 7), 1)], dim=1)
    with torch.no_grad():
        whole = model(tokens, src_lengths=torch.tensor([20, 20]))[0]
        assert torch.allclose(model(padded)[0][:, :20], whole, atol=1e-6)
        model.make_generation_fast_()
        assert torch.equal(model(tokens)[0], whole)
    assert (model.decoder.model.get_input_embeddings().weight[1] == 0).all()


def test_rotary_positions_stay_in_fp32(data: Path) -> None:
    """In bf16, the 200th position would coincide with its neighbours at a fast frequency."""
    model = built(TINY_LLAMA, 300)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    for name, buffer in model.to(torch.bfloat16).named_buffers():
        assert buffer.dtype == before[name].dtype and torch.equal(buffer, before[name])
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_activations_can_be_recomputed(data: Path, tmp_path: Path) -> None:
    """This saves memory and changes no loss."""
    arguments = [str(data), *TINY_LLAMA, *TASK, "--max-update", "6", "--no-save"]
    assert fairseq_train([*arguments, "--checkpoint-activations"]) == fairseq_train(arguments)


def test_other_settings_are_transformers_own_or_refused() -> None:
    """A model with grouped keys and values has fewer parameters; a misspelt setting is not ignored."""
    grouped = built([*TINY_LLAMA, "--model-settings", '{"num_key_value_heads": 1}'], 300)
    plain = built(TINY_LLAMA, 300)
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in (grouped, plain)]
    assert sizes[1] - sizes[0] == 2 * 16 * 8
    for settings, message in (('{"head": 1}', "'head' is set by another"), ("{", "not JSON"), ("[1]", r"'\[1\]' is")):
        with pytest.raises(UsageError, match=message):
            built([*TINY_LLAMA, "--model-settings", settings], 300)
