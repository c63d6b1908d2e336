"""Importing this makes ``import subword_nmt`` mean ``mt_scaffold.subword_nmt``, in this process and in those it starts.

``python -m mt_scaffold.as_subword_nmt PROGRAM ARGUMENTS`` runs a program that way, unchanged.
"""

from __future__ import annotations

import os
import sys

# Holds a module subword_nmt; worker processes find it by sys.path, other programs started from here by PYTHONPATH.
FOLDER = os.path.dirname(os.path.abspath(__file__))

if FOLDER in sys.path:
    # Started by such a program, this one has it from PYTHONPATH, after its own folder.
    sys.path.remove(FOLDER)
else:
    if "subword_nmt" in sys.modules:
        raise ImportError("subword_nmt is imported already; import mt_scaffold.as_subword_nmt before it")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))
sys.path.insert(0, FOLDER)
