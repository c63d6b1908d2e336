"""The module that fairseq imports for ``--user-dir``: it imports the plug-in under the plug-in's own name.

fairseq puts the parent of this folder on ``sys.path``; it has no other content, so no module is shadowed.
"""

import importlib.util
import sys
from pathlib import Path

# For a clone whose core is built in place but not installed.
if importlib.util.find_spec("mt_scaffold") is None:
    sys.path.append(str(Path(__file__).resolve().parents[5]))

import mt_scaffold.experiment.fairseq_plugin  # noqa: F401
