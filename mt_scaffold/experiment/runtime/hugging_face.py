"""Import transformers on demand, without an installed torchaudio that cannot be loaded."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from mt_scaffold.errors import MTScaffoldError


def import_transformers(what: str) -> Any:
    """Return the module ``transformers``, ready to import models from; what: the feature that needs it, for errors.

    fairseq depends on torchaudio, whose build on PyPI is for CUDA and cannot be loaded next to a PyTorch for CPUs.
    transformers loads it with every model, so it is then hidden from this process. Raises MTScaffoldError if
    transformers is not installed.
    """
    try:
        import transformers
        from transformers.utils.import_utils import is_torchaudio_available
    except ImportError as error:
        raise MTScaffoldError(f"{what} needs transformers ({error}); pip install '.[transformers]'") from error
    if "torchaudio" not in sys.modules:
        # ImportError: not installed, which transformers handles.
        with contextlib.suppress(ImportError):
            try:
                importlib.import_module("torchaudio")
            except OSError:
                sys.modules["torchaudio"] = None  # type: ignore[assignment]
                is_torchaudio_available.cache_clear()
    return transformers
