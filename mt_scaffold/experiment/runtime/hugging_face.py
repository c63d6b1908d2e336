"""transformers, imported where it is needed, past a library of audio that cannot be loaded."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from mt_scaffold.errors import MTScaffoldError


def import_transformers(what: str) -> Any:
    """Return the module ``transformers``, whose models can be imported then; ``what`` needs it, as an error says.

    fairseq brings torchaudio, and the one on PyPI is built for CUDA: next to a PyTorch for CPUs it cannot be loaded.
    transformers loads it with every model, so that it is hidden from this process then. Raises MTScaffoldError where
    transformers is not installed.
    """
    try:
        import transformers
        from transformers.utils.import_utils import is_torchaudio_available
    except ImportError as error:
        raise MTScaffoldError(f"{what} needs transformers ({error}); pip install '.[transformers]'") from error
    if "torchaudio" not in sys.modules:
        # ImportError: there is none, and transformers sees that as well.
        with contextlib.suppress(ImportError):
            try:
                importlib.import_module("torchaudio")
            except OSError:
                sys.modules["torchaudio"] = None  # type: ignore[assignment]
                is_torchaudio_available.cache_clear()
    return transformers


def in_one_line(error: Exception) -> str:
    """Return what an error of transformers, or of what it calls, says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
