"""Options that fairseq evaluates as Python: values are accepted, code and excessive sizes are refused."""

import argparse
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.fairseq_plugin.safety import evaluate
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(0.9, 0.98)", (0.9, 0.98)),
        (" [(512, 3)] * 4 + [(1, -2)]", [(512, 3)] * 4 + [(1, -2)]),
        ("3 * 'ab'", "ababab"),
        ("{'a': [1, None, True]}", {"a": [1, None, True]}),
        ("+1e-3 / 2", 0.0005),
    ],
)
def test_values_are_those_of_python(text: str, value: Any) -> None:
    """These forms cover fairseq's own options."""
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "[0]" + "*100" * 30,
        "100*" * 30 + "[0]",
        "[" * 6 + "0" + "]*100" * 6,
        "'a' * 1000000000",
        "[0] * 9999 + [0] * 9999",
        "9" + "*9" * 20000,
    ],
    ids=["repeated", "from the left", "nested", "text", "sum", "long"],
)
def test_a_short_option_cannot_exhaust_the_memory(text: str) -> None:
    """A checkpoint from elsewhere may have such options; nothing is built before its size is known."""
    with pytest.raises(MTScaffoldError, match=r"more than 10,000 values|too long"):
        evaluate(text)


@pytest.mark.parametrize("text", ["f()", "[x for x in 'a']", "a.b", "f'{1}'", "{**{}}", "2**9", "1 if 1 else 2"])
def test_code_is_refused(text: str) -> None:
    """None of it runs."""
    with pytest.raises(MTScaffoldError, match="holds code and is refused"):
        evaluate(text)


@pytest.mark.parametrize(
    "text", ["", "[1", "1/0", "[1] + 2", "{[1]: 2}", "(" * 3000, "-" * 9000 + "1", "9" * 5000, "'\\ud800'.x\0"]
)
def test_invalid_expressions_are_one_line(text: str) -> None:
    """Every error of Python's parser becomes an MTScaffoldError."""
    with pytest.raises(MTScaffoldError, match="option value"):
        evaluate(text)


@pytest.mark.parametrize(
    "options",
    [
        {"cfg": {"model": {"_name": "transformer", "arch": "${oc.env:HOME}"}}},
        {"cfg": {"a": "x" * 100, "b": ["${a}${a}"]}},
        {"cfg": {"${a}": 1}},
        {"cfg": None, "args": argparse.Namespace(arch="transformer", data="${oc.env:HOME}")},
    ],
)
def test_options_of_checkpoints_with_interpolations_are_refused(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OmegaConf would insert environment variables in them, or repeat text until memory is full."""
    import torch
    from fairseq import checkpoint_utils

    path = tmp_path / "model.pt"
    torch.save({"model": {}, "args": None, **options}, path)
    refused = r"model\.pt: refused: an option of this checkpoint is "
    with pytest.raises(MTScaffoldError, match=refused):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    # With PyTorch's own function, as without the plug-in.
    monkeypatch.setattr(torch, "load", torch.load.__wrapped__)
    with pytest.raises(MTScaffoldError, match=refused):
        load_checkpoint(path)


@pytest.mark.parametrize("model", [{"w": "text"}, {"w": [0.5]}, {1: None}])
def test_parameters_of_checkpoints_are_tensors(model: dict[Any, Any], tmp_path: Path) -> None:
    """PyTorch loads plain values without complaint, and they would fail only later, elsewhere."""
    import torch

    torch.save({"model": {"v": torch.zeros(1), **model}}, tmp_path / "model.pt")
    with pytest.raises(MTScaffoldError, match=r"model\.pt: its parameter ('w'|1) is not a tensor; use one that fair"):
        load_checkpoint(tmp_path / "model.pt")


def test_options_that_contain_themselves_are_read_once(tmp_path: Path) -> None:
    """A pickle can have a list that is its own entry."""
    import torch

    itself: list[Any] = []
    itself.append(itself)
    torch.save({"model": {}, "cfg": {"a": itself}}, tmp_path / "model.pt")
    assert load_checkpoint(tmp_path / "model.pt")["model"] == {}
