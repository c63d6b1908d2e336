"""constraints.txt: `make` installs the packages that were tested, byte for byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from requirements import requirements  # noqa: E402


def pinned() -> dict[str, list[tuple[Requirement, int]]]:
    """Return the lines of constraints.txt by name (several differ in their markers), each with its number of hashes."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found: dict[str, list[tuple[Requirement, int]]] = {}
    for line in lines:
        if line and not line.startswith("#"):
            text, *hashes = line.split(" --hash=")
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each.strip()) for each in hashes)
            requirement = Requirement(text.strip())
            found.setdefault(canonicalize_name(requirement.name), []).append((requirement, len(hashes)))
    return found


def test_every_pin_has_hashes() -> None:
    """pip checks the hashes of all packages or of none, so one line without a hash would stop every installation."""
    for name, lines in pinned().items():
        for requirement, hashes in lines:
            assert hashes > 0, f"{name} has no hash; run make constraints"
            assert re.fullmatch(r"==[^=*,]+", str(requirement.specifier)), f"{requirement} is not pinned"


@pytest.mark.parametrize("required", [*requirements(), "pip", "setuptools", "wheel", "Cython", "nanobind"])
def test_every_extra_is_pinned(required: str) -> None:
    """A requirement added or changed in setup.cfg without `make constraints` could not be installed."""
    requirement = Requirement(required)
    lines = pinned().get(canonicalize_name(requirement.name), [])
    assert lines, f"{requirement.name} is not in constraints.txt; run make constraints"
    for line, _ in lines:
        (pin,) = line.specifier
        assert requirement.specifier.contains(Version(pin.version), prereleases=True), f"{line} is not {required}"


def installs(command: list[str], folder: Path, pip: Path) -> list[tuple[str, str]]:
    """Run ``command`` with CUDA_HOME set and pip replaced; return what it installs, with the value of CUDA_HOME."""
    pip.parent.mkdir(parents=True, exist_ok=True)
    pip.write_text(f'#!/bin/sh\necho "$*|${{CUDA_HOME-none}}" >> {folder}/calls\n', encoding="utf-8")
    pip.chmod(0o755)
    environment = os.environ | {"CUDA_HOME": "/nonexistent", "PATH": f"{pip.parent}:{os.environ['PATH']}"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    calls = [line.rsplit("|", 1) for line in (folder / "calls").read_text(encoding="utf-8").splitlines()]
    return [(arguments.split()[-1], cuda) for arguments, cuda in calls]


def test_make_builds_fairseq_where_cuda_home_is_set(tmp_path: Path) -> None:
    """Most clusters' modules set it, but fairseq-fixed's source archive lacks the CUDA files to compile then."""
    for name in ("Makefile", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    command = ["make", "PYTHON=true", ".venv/installed"]
    found = installs(command, tmp_path, tmp_path / ".venv" / "bin" / "python")
    assert ("fairseq-fixed", "none") in found and ("nanobind", "/nonexistent") in found


def test_the_image_builds_fairseq_where_cuda_home_is_set(tmp_path: Path) -> None:
    """A base image for CUDA may set it."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    (step,) = re.findall(r"^RUN (case .* esac)$", text, re.MULTILINE)
    found = installs(
        ["sh", "-c", f'EXTRAS="fairseq workflow"; touch constraints.txt; {step}'], tmp_path, tmp_path / "bin" / "pip"
    )
    assert ("fairseq-fixed", "none") in found and ("Cython", "/nonexistent") in found
