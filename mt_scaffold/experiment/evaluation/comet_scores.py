"""COMET, a learned metric, from a checkpoint on this machine. Needs the extra ``comet``."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.manifest import raw_digest

_PRECISIONS = {"torch.float32": "fp32", "torch.float16": "fp16", "torch.bfloat16": "bf16"}


def comet_scores(
    checkpoint: Path, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[list[float], str]:
    """Return the COMET score of each segment, times 100, and a signature.

    The signature is SacreCOMET's (Zouhar et al. 2024, "Pitfalls and Outlooks in Using COMET", arXiv 2408.15366): the
    versions of Python and COMET, the precision, the model, and the number of references it read; then the digest of the
    checkpoint, which tells models of the same name apart, and the scale. A reference-free model gets no references.

    checkpoint: as ``checkpoint_in`` returns it. COMET loads it with PyTorch Lightning, which before version 2.6 runs
    any code that the file's pickle calls: give only a trusted one. The score of a test set is the mean over its
    segments. Raises MTScaffoldError if the extra is missing.
    """
    try:
        import comet
        import torch
    except ImportError as error:
        raise MTScaffoldError(f"comet: {error}; pip install '.[comet]', or leave COMET out") from error
    model = comet.load_from_checkpoint(str(checkpoint))
    reads = model.requires_references()
    data = [
        {"src": source, "mt": hypothesis} | ({"ref": reference} if reads else {})
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    gpus = 1 if torch.cuda.is_available() else 0
    predicted = model.predict(data, batch_size=16, gpus=gpus, progress_bar=False)
    version = getattr(comet, "__version__", "unknown")
    software = f"Python{platform.python_version()}|Comet{version}|{_precision(model)}"
    digest = raw_digest(checkpoint)[:16]
    signature = f"{software}|{model_name(checkpoint)}|r{int(reads)}|sha256:{digest}|scale:100"
    return [100 * float(score) for score in predicted["scores"]], signature


def _precision(model: Any) -> str:
    kinds = {str(weights.dtype) for weights in model.parameters()}
    return "+".join(sorted(_PRECISIONS.get(kind, kind) for kind in kinds))


def model_name(checkpoint: Path) -> str:
    """Return the name of a model: its folder's if it is stored as COMET distributes it, or else its file's."""
    return checkpoint.parent.parent.name if checkpoint.parent.name == "checkpoints" else checkpoint.stem


def checkpoint_in(model: PathLike) -> Path:
    """Return a checkpoint: a file, or the one in a folder (``checkpoints/model.ckpt`` in those that COMET distributes).

    Raises MTScaffoldError if there is none, or more than one.
    """
    path = Path(model)
    if path.is_file():
        return path
    found = sorted(path.glob("**/*.ckpt"))
    if len(found) != 1:
        held = "no" if not found else "more than one"
        raise MTScaffoldError(f"{model}: {held} checkpoint (*.ckpt) of COMET here; give the file")
    return found[0]
