"""Print the requirements of extras of setup.cfg, one per line: pip checks no hashes for those of an editable install.

    python tools/requirements.py [EXTRA ...] [--without EXTRA ...]

Without names, print those of all extras, which constraints.txt pins.
"""

from __future__ import annotations

import argparse
import configparser
import sys
from collections.abc import Collection
from pathlib import Path

SETUP = Path(__file__).resolve().parents[1] / "setup.cfg"


def extras() -> dict[str, list[str]]:
    """Return the requirements of each extra, as written in setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(SETUP, encoding="utf-8")
    section = setup["options.extras_require"]
    return {name: [line.strip() for line in section[name].splitlines() if line.strip()] for name in section}


def requirements(names: Collection[str] = (), without: Collection[str] = ()) -> list[str]:
    """Return the requirements of some extras, or of all but those ``without``."""
    found = extras()
    if unknown := sorted({*names, *without} - set(found)):
        sys.exit(f"requirements.py: setup.cfg has no extra {', '.join(unknown)}; it has {', '.join(found)}")
    wanted = names or [name for name in found if name not in without]
    return sorted({requirement for name in wanted for requirement in found[name]})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="EXTRA", help="default: all")
    parser.add_argument("--without", nargs="+", metavar="EXTRA", default=(), help="without names: all but these")
    arguments = parser.parse_args()
    print("\n".join(requirements(arguments.names, arguments.without)))
