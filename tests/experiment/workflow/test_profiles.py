"""The profiles name existing rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

WORKFLOW = Path(__file__).parents[3] / "mt_scaffold" / "experiment" / "workflow"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in (WORKFLOW / "Snakefile", *WORKFLOW.glob("rules/*.smk")))
RULES = {*re.findall(r"^rule (\w+):", TEXT, re.MULTILINE)}
USED = re.findall(r"^use rule (\w+) as (\w+) with:", TEXT, re.MULTILINE)


@pytest.mark.parametrize("path", sorted(WORKFLOW.glob("profiles/*/config.yaml")), ids=lambda path: path.parent.name)
def test_every_rule_of_a_profile_exists_and_its_copies_have_as_much(path: Path) -> None:
    """A name without a rule has no effect, and a copy of a rule inherits no resources that are set by name."""
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    for kind in ("set-threads", "set-resources"):
        named = {*profile.get(kind, {})}
        assert named <= RULES | {copy for _, copy in USED}
        assert [(rule, copy) for rule, copy in USED if rule in named and copy not in named] == []
