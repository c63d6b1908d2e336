"""constraints.txt: what `make` installs is what was tested, byte for byte."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from requirements import requirements  # noqa: E402


def pinned() -> dict[str, list[tuple[Requirement, int]]]:
    """The lines of constraints.txt by name, each with its number of hashes; several lines differ in their markers."""
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
    """pip checks the hashes of all packages or of none, so one line without would stop every installation."""
    for name, lines in pinned().items():
        for requirement, hashes in lines:
            assert hashes > 0, f"{name} has no hash; run make constraints"
            assert re.fullmatch(r"==[^=*,]+", str(requirement.specifier)), f"{requirement} is not pinned"


@pytest.mark.parametrize("required", [*requirements(), "pip", "setuptools", "wheel", "Cython", "nanobind"])
def test_every_extra_is_pinned(required: str) -> None:
    """A requirement that was added to setup.cfg, or changed there, without `make constraints` would not install."""
    requirement = Requirement(required)
    lines = pinned().get(canonicalize_name(requirement.name), [])
    assert lines, f"{requirement.name} is not in constraints.txt; run make constraints"
    for line, _ in lines:
        (pin,) = line.specifier
        assert requirement.specifier.contains(Version(pin.version), prereleases=True), f"{line} is not {required}"
