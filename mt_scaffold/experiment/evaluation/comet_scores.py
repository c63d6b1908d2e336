"""COMET, a learned metric, from a checkpoint on this machine. Needs the extra ``comet``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.manifest import raw_digest


def comet_scores(
    model: PathLike, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[list[float], str]:
    """Return the COMET score of each segment, times 100, and a signature: the model's name and digest, the version.

    ``model`` is a checkpoint file or a folder with one (``checkpoints/model.ckpt`` in those that COMET distributes).
    COMET loads it with PyTorch Lightning, which before version 2.6 runs any code that the file's pickle calls: give
    only one that is trusted. The score of a test set is the mean over its segments. Raises MTScaffoldError where the
    extra or the model is missing.
    """
    checkpoint = _checkpoint(Path(model))
    try:
        import comet
        import torch
    except ImportError as error:
        raise MTScaffoldError(f"comet: {error}; pip install '.[comet]', or leave COMET out") from error
    data = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    gpus = 1 if torch.cuda.is_available() else 0
    predicted = comet.load_from_checkpoint(str(checkpoint)).predict(data, batch_size=16, gpus=gpus, progress_bar=False)
    version = getattr(comet, "__version__", "unknown")
    name = checkpoint.parent.parent.name if checkpoint.parent.name == "checkpoints" else checkpoint.stem
    signature = f"nrefs:1|model:{name}|sha256:{raw_digest(checkpoint)[:16]}|scale:100|version:{version}"
    return [100 * float(score) for score in predicted["scores"]], signature


def _checkpoint(model: Path) -> Path:
    if model.is_file():
        return model
    found = sorted(model.glob("**/*.ckpt"))
    if len(found) != 1:
        held = "no" if not found else "more than one"
        raise MTScaffoldError(f"{model}: {held} checkpoint (*.ckpt) of COMET here; give the file")
    return found[0]
