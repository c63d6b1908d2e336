"""A name that worked in an earlier version is refused in one line that says what takes its place."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import mt_scaffold
from mt_scaffold import removed
from mt_scaffold.cli import COMMANDS, main
from mt_scaffold.experiment.runtime.schema import WrongValue, known_keys


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a name of each kind, so that the mechanism is tested whatever the table holds."""
    monkeypatch.setitem(removed.COMMANDS, "ancient", "use learn-bpe")
    monkeypatch.setitem(removed.OPTIONS, "apply-bpe", {"--ancient": "use --dropout"})
    monkeypatch.setitem(removed.IMPORTS, "ancient_bpe", "use learn_bpe")
    monkeypatch.setitem(removed.IMPORTS, "segment.ancient", "use segment.apply")
    monkeypatch.setitem(removed.KEYS, "ancient", removed.Key("use dropout", (0.0,)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ancient"], "mt-scaffold: ancient was removed: use learn-bpe"),
        (["learn-bpe", "--input", "s3://a/b"], "mt-scaffold learn-bpe: s3://a/b: URLs were removed: copy the file"),
        (["encode", "--output=hf://a"], "mt-scaffold encode: --output=hf://a: URLs were removed: copy the file first"),
        (
            ["import", "--format", "youtokentome", "x"],
            "mt-scaffold import: --format youtokentome was removed: train with a program whose format is read",
        ),
        (["apply-bpe", "--ancient=1"], "mt-scaffold apply-bpe: --ancient was removed: use --dropout"),
    ],
)
def test_a_removed_command_or_option(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    assert captured.err.startswith(message) and captured.err.count("\n") == 1


def test_a_removed_import() -> None:
    with pytest.raises(ImportError, match="ancient_bpe was removed: use learn_bpe"):
        mt_scaffold.ancient_bpe  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"mt_scaffold\.segment\.ancient was removed: use segment\.apply"):
        importlib.import_module("mt_scaffold.segment.ancient")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mt_scaffold.segment.never_was")


@pytest.mark.parametrize("value", [0.1, 0, None])
def test_a_removed_key_with_an_effect(value: Any) -> None:
    with pytest.raises(WrongValue, match=r"systems\.a\.ancient: removed; use dropout"):
        known_keys({"ancient": value}, {"dropout": 1}, "systems.a")


def test_stored_configurations_may_have_removed_keys_with_their_neutral_value() -> None:
    assert known_keys({"ancient": 0.0, "dropout": 0.1}, {"dropout": 1}, "systems.a") == {"dropout": 0.1}
    assert known_keys({"ancient": 0.1}, {"ancient": 1}, "systems.a") == {"ancient": 0.1}


def test_nothing_that_works_is_in_the_table() -> None:
    """An entry for a command that exists would hide it."""
    assert not removed.COMMANDS.keys() & COMMANDS.keys()
    assert not {name for name in removed.IMPORTS if "." not in name} & set(mt_scaffold._homes())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("section", "key"),
    [("average", "checkpoints"), ("score", "over_documents"), ("score", "paper"), ("train", "prepare")],
)
def test_a_key_that_was_elsewhere_is_as_wrong_as_any_other(section: str, key: str) -> None:
    """A key of stored results, or of another section, would have been dropped in silence."""
    with pytest.raises(WrongValue, match="unknown key"):
        known_keys({key: None}, {"last": 1}, section)


def test_a_removed_section_is_accepted_with_the_keys_that_it_had() -> None:
    assert known_keys({"prepare": {"chunks": 4, "keep_text": False}}, {"name": 1}, "") == {}
    with pytest.raises(WrongValue, match="prepare: removed; one job"):
        known_keys({"prepare": {"shards": 8}}, {"name": 1}, "")
