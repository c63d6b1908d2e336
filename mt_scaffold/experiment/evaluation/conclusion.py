"""The tests of a table → one sentence that says what it shows, for the top of every form of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mt_scaffold.experiment.evaluation.significance import LEVEL, TRAININGS_FOR_P, Difference
from mt_scaffold.experiment.runtime.result_warnings import GRAVE, KINDS, ResultWarning
from mt_scaffold.tables import decimal

# With more, only the largest difference is named.
_NAMED = 4


class Contrast(NamedTuple):
    """A system that has a baseline, on one test set; test: None where there could be none."""

    system: str
    baseline: str
    place: str
    test: Difference | None


class Unit(NamedTuple):
    """In what systems differ: its name, which a sentence about all differences may leave out, and as a figure."""

    of: str
    label: str
    digits: int = 2
    lower_is_better: bool = False


def conclusion(tested: Sequence[Contrast], unit: Unit, warnings: Iterable[ResultWarning]) -> str:
    """Return what the tests show, corrected for their number, or that they show nothing; and the gravest warning."""
    kinds = {warning.kind for warning in warnings}
    grave = next((KINDS[kind] for kind in KINDS if kind in kinds & GRAVE), None)
    found = _shown_by(tested, unit)
    return f"{found}." if grave is None else f"{found}; but {grave[0].lower()}{grave[1:]}."


def _shown_by(tested: Sequence[Contrast], unit: Unit) -> str:
    if not tested:
        return "Nothing is compared: no system has a baseline here"
    tests = [each.test for each in tested if each.test is not None]
    of = f" in {unit.of}" if unit.of else ""
    if not tests:
        return f"Nothing may be concluded: no difference{of} could be tested"
    if any(test.p is not None for test in tests):
        return _sentence(tested, "p_holm", unit, f"No difference{of} is significant", "")
    if any(test.segments_p is not None for test in tests):
        none = f"No difference{of} is significant between these models; other trainings may differ"
        return _sentence(tested, "segments_p_holm", unit, none, "Of these models alone: ")
    return f"Nothing may be concluded: a test takes {TRAININGS_FOR_P} trainings of each system"


def _sentence(tested: Sequence[Contrast], p: str, unit: Unit, none: str, opening: str) -> str:
    found: dict[tuple[str, str], list[str]] = {}
    largest, number, count = ("", 0.0), 0, 0
    for each in tested:
        value = None if each.test is None else getattr(each.test, p)
        if each.test is None or value is None:
            continue
        count += 1
        if value >= LEVEL:
            continue
        number += 1
        ahead = (each.test.difference < 0) == unit.lower_is_better
        pair = (each.system, each.baseline) if ahead else (each.baseline, each.system)
        size = abs(each.test.difference)
        shown = f"{decimal(size, unit.digits)} {unit.label} on {each.place}"
        found.setdefault(pair, []).append(shown)
        largest = max(largest, (f"{pair[0]} is ahead of {pair[1]} by {shown}", size), key=lambda one: one[1])
    if not found:
        return none
    if number > _NAMED:
        return f"{opening}{number} of {count} differences are significant; the largest: {largest[0]}"
    parts = [f"{first} is ahead of {second} by {' and '.join(shown)}" for (first, second), shown in found.items()]
    rest = "; no other difference is significant" if count > number else ""
    return f"{opening}{'; '.join(parts)}{rest}"
