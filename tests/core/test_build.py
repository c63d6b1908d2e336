"""Building the core: its files are compiled in parallel."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("nanobind", reason="nanobind is not installed")

# Stands in for the compiler: writes empty outputs. The first compilation waits for another to begin.
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


# The steps of pip's editable install that concern the core.
EDITABLE = """
import sys
from distutils.core import run_setup
command = run_setup("setup.py", stop_after="init").get_command_obj("build_ext")
command.editable_mode, command.build_lib, command.build_temp = True, "lib", "temp"
command.ensure_finalized()
command.run()
"""


def test_an_editable_install_compiles_nothing_again(tmp_path: Path) -> None:
    """`make demo` compiles the core during the downloads; pip used to do so again after them, for a minute."""
    for name in ("setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "mt_scaffold" / "core", tmp_path / "mt_scaffold" / "core")
    built = tmp_path / "mt_scaffold" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    built.write_bytes(b"built before")
    environment = os.environ | {"CC": "false", "CXX": "false"}
    command = [sys.executable, "-c", f"import setuptools\n{EDITABLE}"]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert (tmp_path / "lib" / "mt_scaffold" / built.name).read_bytes() == b"built before"
    # An older one is compiled, which fails here.
    shutil.rmtree(tmp_path / "lib")
    os.utime(built, (0, 0))
    assert subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode != 0
