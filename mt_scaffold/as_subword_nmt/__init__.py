"""Importing this makes ``import subword_nmt`` mean ``mt_scaffold.subword_nmt``, in this process and in those it starts.

``python -m mt_scaffold.as_subword_nmt PROGRAM ARGUMENTS`` runs a program that way, unchanged.
"""

from __future__ import annotations

import os
import sys

# Holds a module subword_nmt; a worker process gets sys.path, any other program that is started from here PYTHONPATH.
FOLDER = os.path.dirname(os.path.abspath(__file__))

if FOLDER in sys.path:
    # A program that such a program started has it from PYTHONPATH, behind its own folder.
    sys.path.remove(FOLDER)
else:
    if "subword_nmt" in sys.modules:
        raise ImportError("subword_nmt is imported already; import mt_scaffold.as_subword_nmt before it")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))
sys.path.insert(0, FOLDER)
