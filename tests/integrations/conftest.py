"""Fixtures for the tests of integrations."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture
def models_of_transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package transformers, which imports torchaudio, whose wheel may not load beside a torch without CUDA."""
    pytest.importorskip("torch")
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        for module in ("transformers.utils", "transformers.utils.import_utils"):
            monkeypatch.setattr(f"{module}.is_torchaudio_available", lambda: False)
    return importlib.import_module("transformers")
