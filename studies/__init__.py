"""Studies that run from this source folder and are not installed with the package."""

from __future__ import annotations

import sys
from collections.abc import Callable

from mt_scaffold.errors import MTScaffoldError


def exit_status(name: str, main: Callable[[], None]) -> int:
    """Run ``main`` and return the exit status: an MTScaffoldError is one line on stderr."""
    try:
        main()
    except MTScaffoldError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_status
    return 0
