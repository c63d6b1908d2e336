"""Building the core: its files are compiled side by side."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("nanobind", reason="what builds the core is not installed")

# Stands in for the compiler: writes empty outputs. The first of all compilations waits for another to begin.
COMPILER = """#!/bin/sh
echo one >> "$BEGUN"
waited=0
while [ "$(wc -l < "$BEGUN")" -lt 2 ] && [ $waited -lt 300 ]; do sleep 0.1; waited=$((waited + 1)); done
[ "$(wc -l < "$BEGUN")" -lt 2 ] && touch "$BEGUN.alone"
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && : > "$2"
    shift
done
exit 0
"""


def test_the_core_is_compiled_on_all_cores(tmp_path: Path) -> None:
    """`pip install .` takes a minute on two cores; with one compiler after the other it took two."""
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    begun = tmp_path / "begun"
    environment = os.environ | {"CC": str(compiler), "CXX": str(compiler), "BEGUN": str(begun), "MAX_JOBS": "2"}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--force"]
    command += ["--build-temp", str(tmp_path / "temp"), "--build-lib", str(tmp_path / "lib")]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    assert len(begun.read_text().splitlines()) > 10 and not Path(f"{begun}.alone").exists()
