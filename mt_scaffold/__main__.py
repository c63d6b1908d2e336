"""``python -m mt_scaffold``: the same as the command ``mt-scaffold``."""

import sys

from mt_scaffold.cli import main

sys.exit(main())
