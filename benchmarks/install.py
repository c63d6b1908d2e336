"""Install mt_scaffold as a user would (a wheel, built with its own flags only) and the pinned peers.

    python benchmarks/install.py [--again] [--old REVISION]

Everything goes into benchmarks/out/, with a separate virtual environment. A peer that cannot be installed is left
out, and reported with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
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
# This version encodes on its own. It cannot learn, so an older one stands in the environment of the learners.
TOKENIZERS = "1.0.0rc3"
# The flags in fastBPE's README, and -DNDEBUG, as in a Release build.
FASTBPE_FLAGS = ("-std=c++11", "-O3", "-DNDEBUG", "-pthread")


class InstallError(Exception):
    """An installation failed; the message is the last line of the tool's output."""


def run(*command: str | Path) -> None:
    """Run a command and append its output to out/install.log. Raises InstallError if it fails."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with (OUT / "install.log").open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(map(str, command))}\n{result.stdout}\n")
    if result.returncode:
        lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"{command[0]} exited with status {result.returncode}"
        raise InstallError(f"{reason} (see benchmarks/out/install.log)")


def pip(*arguments: str | Path) -> None:
    """Run pip in the benchmarks' environment."""
    run(PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments)


def install_mt_scaffold() -> None:
    """Build a wheel from a copy of the sources, so that no files of other builds get in, and install it."""
    source, wheels = OUT / "source", OUT / "wheels"
    for folder in (source, wheels):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir()
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    built = shutil.ignore_patterns("*.so", "_core.pyi", "__pycache__")
    shutil.copytree(ROOT / "mt_scaffold", source / "mt_scaffold", ignore=built)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, source)
    pip("install", "--no-deps", "--force-reinstall", *wheels.glob("*.whl"))


def install_old(revision: str) -> None:
    """Install another revision of mt_scaffold in a separate environment, benchmarks/out/old."""
    old, source = OUT / "old", OUT / "old-source"
    for folder in (old, source):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir()
    archive = OUT / "old.tar"
    run("git", "-C", ROOT, "archive", "--output", archive, revision)
    with tarfile.open(archive) as members:
        members.extractall(source, filter="data")
    venv.create(old, with_pip=True)
    wheels = OUT / "old-wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, source)
    run(
        old / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-deps",
        *wheels.glob("*.whl"),
    )


def install_fastbpe() -> None:
    """Compile fastBPE's C++ command, which is faster than its Python module, from the archive on PyPI."""
    download, source = OUT / "download", OUT / "fastBPE"
    pip(
        *("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", download),
        f"fastBPE=={FASTBPE}",
    )
    archive = download / f"fastBPE-{FASTBPE}.tar.gz"
    if hashlib.sha256(archive.read_bytes()).hexdigest() != FASTBPE_SHA256:
        raise InstallError(f"{archive.name}: sha256 mismatch, expected {FASTBPE_SHA256}")
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(archive) as members:
        members.extractall(source, filter="data")
    run(
        *("g++", *FASTBPE_FLAGS, "-o", OUT / "fastbpe"),
        source / f"fastBPE-{FASTBPE}" / "fastBPE" / "main.cc",
    )


def install_tokenizers() -> None:
    """Install version 1 of tokenizers in a separate environment, benchmarks/out/tokenizers."""
    venv.create(OUT / "tokenizers", with_pip=True)
    python = OUT / "tokenizers" / "bin" / "python"
    run(python, "-m", "pip", "--disable-pip-version-check", "install", f"tokenizers=={TOKENIZERS}", "numpy")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", metavar="REVISION", help="also install this revision of mt_scaffold, to compare with")
    parser.add_argument("--again", action="store_true", help="rebuild the environment")
    options = parser.parse_args()
    if options.again:
        shutil.rmtree(VENV, ignore_errors=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "install.log").unlink(missing_ok=True)
    # Without the hashes: the peers have none there, and pip requires hashes for all packages or for none.
    pins = re.findall(r"^[^\s#].*==[^\\\n]+", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    (OUT / "constraints.txt").write_text("\n".join(pins) + "\n", encoding="utf-8")
    constraints = ("--constraint", OUT / "constraints.txt")
    missing = {}
    try:
        if not PYTHON.exists():
            print("creating benchmarks/out/venv", flush=True)
            venv.create(VENV, with_pip=True)
        # youtokentome needs Cython to build but does not declare it.
        # Older revisions of mt_scaffold need pybind11.
        pip("install", *constraints, "setuptools", "wheel", "nanobind", "pybind11", "Cython")
        print("building mt_scaffold", flush=True)
        install_mt_scaffold()
        if options.old:
            print(f"building mt_scaffold at {options.old}", flush=True)
            install_old(options.old)
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
    for name, install in (("fastBPE", install_fastbpe), (f"tokenizers {TOKENIZERS}", install_tokenizers)):
        print(f"installing {name}", flush=True)
        try:
            install()
        except (InstallError, OSError) as error:
            missing[name] = str(error)
    for name, reason in missing.items():
        print(f"benchmarks: {name} could not be installed and is left out: {reason}", file=sys.stderr)
    (OUT / "missing.json").write_text(json.dumps(missing, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
