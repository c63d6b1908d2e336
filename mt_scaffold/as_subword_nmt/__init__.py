"""Importing this makes ``import subword_nmt`` mean ``mt_scaffold.subword_nmt``, in this process and in those it starts.

``python -m mt_scaffold.as_subword_nmt PROGRAM ARGUMENTS`` runs a program that way, unchanged.
"""

from __future__ import annotations

import importlib
import os
import sys

_MODULES = ("learn_bpe", "apply_bpe", "get_vocab", "learn_joint_bpe_and_vocab", "subword_nmt")


def _replace() -> None:
    # The module subword_nmt in this folder does the same in a Python that is started from here, such as a worker.
    folder = os.path.dirname(os.path.abspath(__file__))
    package = importlib.import_module("mt_scaffold.subword_nmt")
    loaded = sys.modules.get("subword_nmt", package)
    if loaded is not package and os.path.dirname(os.path.abspath(loaded.__file__ or "")) != folder:
        raise ImportError("subword_nmt is imported already; import mt_scaffold.as_subword_nmt before it")
    sys.modules["subword_nmt"] = package
    for module in _MODULES:
        sys.modules[f"subword_nmt.{module}"] = importlib.import_module(f"mt_scaffold.subword_nmt.{module}")
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if folder not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *path])


_replace()
