"""fairseq-train's log → training and validation curves."""

from __future__ import annotations

import json
import re

from mt_scaffold.corpus.files import PathLike, open_input

# In addition to the loss; the first is logged by this package's tasks.
_METRICS = ("bits_per_byte", "bleu")


def read_training_log(path: PathLike) -> dict[str, list[tuple[float, float]]]:
    """Return the curves in a fairseq-train log (plain or JSON): name → (updates, value), by updates.

    ``train`` and ``valid``: the loss, nll_loss in bits per token if the log has it, else loss. If they are logged,
    ``train_bits_per_byte``, ``valid_bits_per_byte`` and ``valid_bleu`` as well. If a resumed training logged an epoch
    twice, the last values count. A log without epochs (``--log-format none``) has empty curves.
    """
    curves: dict[str, dict[float, float]] = {"train": {}, "valid": {}}
    with open_input(path) as stream:
        for line in stream.read().decode("utf-8", "replace").splitlines():
            found = re.search(r"\| INFO \| (train|valid) \| (.*)", line)
            if not found:
                continue
            values = _log_values(found[2], found[1])
            loss = values.get("nll_loss", values.get("loss"))
            if "num_updates" not in values:
                continue
            if loss is not None:
                curves[found[1]][values["num_updates"]] = loss
            for metric in _METRICS:
                if metric in values:
                    curves.setdefault(f"{found[1]}_{metric}", {})[values["num_updates"]] = values[metric]
    return {name: sorted(curve.items()) for name, curve in curves.items()}


def parameters_in_log(path: PathLike) -> int | None:
    """Return the number of model parameters in a fairseq-train log, tied ones counted once; None if it has none."""
    with open_input(path) as stream:
        found = re.findall(rb"num\. shared model params: ([\d,]+)", stream.read())
    return int(found[-1].replace(b",", b"")) if found else None


def _log_values(text: str, name: str) -> dict[str, float]:
    """Return the values in a log line, ``{"train_loss": "8.9", ...}`` or ``epoch 001 | loss 8.9 | ...``."""
    if text.startswith("{"):
        try:
            entries = json.loads(text)
        except ValueError:
            # Truncated when the training was killed; the resumed training logs this epoch again.
            return {}
        pairs = [(key.removeprefix(f"{name}_"), str(value)) for key, value in entries.items()]
    else:
        pairs = [(key, value) for key, _, value in (part.strip().rpartition(" ") for part in text.split("|"))]
    values = {}
    for key, value in pairs:
        try:
            values[key] = float(value)
        except ValueError:
            continue
    return values
