"""Installs mt_scaffold as a user would (a wheel, built with no more than its own flags) and the pinned peers, in a
virtual environment of their own. A peer that cannot be installed is noted with the reason and left out, not hidden.

    python benchmarks/install.py [--again]     everything goes to benchmarks/out/
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = HERE / "out"
VENV = OUT / "venv"
PYTHON = VENV / "bin" / "python"

FASTBPE = "0.1.0"
FASTBPE_SHA256 = "95eef4be2689e822a918ac4eae3349cd78ca3f28af591afa421f8fac6d4cd889"
# fastBPE's README names these flags; -DNDEBUG is what a Release build adds.
FASTBPE_FLAGS = ("-std=c++11", "-O3", "-DNDEBUG", "-pthread")


class InstallError(Exception):
    """Something could not be installed; the message is the tool's last line."""


def run(*command: str | Path) -> None:
    """Run a command, its output added to out/install.log; InstallError where it fails."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with (OUT / "install.log").open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(map(str, command))}\n{result.stdout}\n")
    if result.returncode:
        lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"{command[0]} ended with status {result.returncode}"
        raise InstallError(f"{reason} (benchmarks/out/install.log says more)")


def pip(*arguments: str | Path) -> None:
    """pip of the benchmarks' environment, held to the project's constraints where they name a package."""
    run(PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments)


def install_mt_scaffold() -> None:
    """Build a wheel from a copy of the sources, so that nothing left over from other builds gets in."""
    source, wheels = OUT / "source", OUT / "wheels"
    for folder in (source, wheels):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir()
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "mt_scaffold", source / "mt_scaffold", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, source)
    pip("install", "--no-deps", "--force-reinstall", *wheels.glob("*.whl"))


def install_fastbpe() -> None:
    """fastBPE's C++ command, which is quicker than its Python module: compiled from the archive on PyPI."""
    download, source = OUT / "download", OUT / "fastBPE"
    pip(
        *("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", download),
        f"fastBPE=={FASTBPE}",
    )
    archive = download / f"fastBPE-{FASTBPE}.tar.gz"
    if hashlib.sha256(archive.read_bytes()).hexdigest() != FASTBPE_SHA256:
        raise InstallError(f"{archive.name} is not the archive whose digest is known")
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(archive) as members:
        members.extractall(source, filter="data")
    run(
        *("g++", *FASTBPE_FLAGS, "-o", OUT / "fastbpe"),
        source / f"fastBPE-{FASTBPE}" / "fastBPE" / "main.cc",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="make the environment anew")
    options = parser.parse_args()
    if options.again:
        shutil.rmtree(VENV, ignore_errors=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "install.log").unlink(missing_ok=True)
    constraints = ("--constraint", ROOT / "constraints.txt")
    missing = {}
    try:
        if not PYTHON.exists():
            print("making benchmarks/out/venv", flush=True)
            venv.create(VENV, with_pip=True)
        # youtokentome needs Cython while it is built and does not say so.
        pip("install", *constraints, "setuptools", "wheel", "pybind11", "Cython", "matplotlib")
        print("building mt_scaffold", flush=True)
        install_mt_scaffold()
    except InstallError as error:
        sys.exit(f"benchmarks: {error}")
    requirements = (line.split("#")[0].strip() for line in (HERE / "requirements.txt").read_text().splitlines())
    for requirement in filter(None, requirements):
        print(f"installing {requirement}", flush=True)
        isolation = ["--no-build-isolation"] if requirement.startswith("youtokentome") else []
        try:
            pip("install", *constraints, *isolation, requirement)
        except InstallError as error:
            missing[requirement.split("==")[0]] = str(error)
    print(f"compiling fastBPE {FASTBPE}", flush=True)
    try:
        install_fastbpe()
    except (InstallError, OSError) as error:
        missing["fastBPE"] = str(error)
    for name, reason in missing.items():
        print(f"benchmarks: {name} cannot be installed and is left out: {reason}", file=sys.stderr)
    (OUT / "missing.json").write_text(json.dumps(missing, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
