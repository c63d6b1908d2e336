"""A command line built from a function: the option for each kind of argument, and the values that the call gets."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, Literal

import pytest

from mt_scaffold import cli, options_from_signature
from mt_scaffold.options_from_signature import HIDDEN, Option

Shared = Annotated[int, Option("COUNT", help="of a shared type")]


@dataclass(frozen=True)
class Limits:
    """Limits.

    least, most: bounds of a
        range
    """

    least: int
    most: int = 9


def command(
    first: Annotated[str, Option("FILE")],
    others: Sequence[str] = (),
    /,
    *,
    output: Annotated[str | PathLike[str] | None, Option("FOLDER", "-o")] = None,
    ratio: float = 0,
    codes_name: Annotated[str, Option(name="codes")],
    kind: Literal["a", "b"] = "a",
    pair: tuple[str, str] | None = None,
    sizes: Sequence[Shared] = (),
    tests: Sequence[Sequence[str]] = (),
    changes: Annotated[Sequence[str], Option("KEY=VALUE", name="set", repeated=True)] = (),
    dry_run: Annotated[bool, Option(short="-n")] = False,
    limits: Limits,
) -> dict[str, Any]:
    """Not shown.

    The description, which may say
    100 % of it.

    first: the first: with a colon
    output: where to write (default: nowhere)
    ratio: 5 % of it
    """
    return dict(locals())


def rest(
    seed: int | str = 1,
    options: Annotated[Sequence[str], Option("-- OPTIONS", positional=True)] = (),
    unseen: Annotated[object, HIDDEN] = None,
    codes: Annotated[tuple[str, str], Option(nargs="+")] = ("a", "b"),
    joined: Annotated[bool, Option(name="separate")] = True,
) -> dict[str, Any]:
    """Return what was given.

    joined: of either side

    A paragraph for ``programs``.
    """
    return dict(locals())


def parsed(function: Callable[..., object], line: str) -> Any:
    """Return the result of calling ``function`` with a command line."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    options_from_signature.add_arguments(parser, function)
    return options_from_signature.call(function, parser.parse_args(line.split()))


def test_every_kind_of_argument_arrives_as_its_type() -> None:
    """Numbers, pairs, sequences, repeated options, flags and the fields of a dataclass."""
    line = (
        "one two three -o out --ratio 0.5 --codes c --kind b --pair en de --sizes 1 2 --tests a b --tests c "
        "--set k=1 --set l=2 -n --least 3"
    )
    assert parsed(command, line) == {
        "first": "one", "others": ["two", "three"], "output": "out", "ratio": 0.5, "codes_name": "c", "kind": "b",
        "pair": ["en", "de"], "sizes": [1, 2], "tests": [["a", "b"], ["c"]], "changes": ["k=1", "l=2"],
        "dry_run": True, "limits": Limits(3, 9),
    }  # fmt: skip


def test_what_is_not_given_has_the_default_of_the_signature() -> None:
    """A default is stated once."""
    got = parsed(command, "one --codes c --least 3")
    assert (got["others"], got["output"], got["ratio"], got["kind"], got["dry_run"]) == ((), None, 0, "a", False)
    assert (got["tests"], got["changes"], got["limits"]) == ([], [], Limits(3, 9))


def test_options_of_another_program_come_after_two_dashes() -> None:
    """As for fairseq's; a number that may be a word, such as a wildcard, is read as a number."""
    got = parsed(rest, "--seed 2 -- --beam 4")
    assert (got["options"], got["seed"]) == (["--beam", "4"], 2)


def test_an_option_can_negate_take_fewer_values_or_be_hidden() -> None:
    """As the function's own type and default do not say."""
    own = {"seed": 1, "options": (), "unseen": None, "codes": ("a", "b"), "joined": True}
    assert parsed(rest, "") == own
    assert parsed(rest, "--separate --codes c") == own | {"joined": False, "codes": ["c"]}
    parser = argparse.ArgumentParser()
    options_from_signature.add_arguments(parser, rest)
    assert "programs" not in parser.format_help() and "unseen" not in parser.format_help()


@pytest.mark.parametrize("line", ["", "one --codes c", "one --least 3", "one --codes c --least x --most 2"])
def test_what_has_no_default_is_required(line: str) -> None:
    """Arguments of the function, and of a dataclass among them; numbers are checked."""
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parsed(command, line)


def test_help_is_the_docstring() -> None:
    """The help has its paragraphs after the first, a line for each argument, that of a shared type, and defaults."""
    parser = argparse.ArgumentParser()
    options_from_signature.add_arguments(parser, command)
    text = " ".join(parser.format_help().split())
    for shown in (
        "The description, which may say 100 % of it.",
        "FILE the first: with a colon",
        "--output FOLDER, -o FOLDER where to write (default: nowhere)",
        "--ratio N 5 % of it (default: 0)",
        "--kind {a,b} (default: a)",
        "--sizes COUNT [COUNT ...] of a shared type",
        "--least N bounds of a range",
        "--most N bounds of a range (default: 9)",
        "--set KEY=VALUE",
    ):
        assert shown in text
    assert "Not shown" not in text and "(default: nowhere) (default" not in text


def test_arguments_that_are_given_are_not_declared() -> None:
    """The first of a step is the layout of the experiment."""
    parser = argparse.ArgumentParser()
    options_from_signature.add_arguments(parser, command, leading=2)
    bound = options_from_signature.bind(
        command, parser.parse_args(["--codes", "c", "--least", "1"]), "layout", ["more"]
    )
    assert bound.args == ("layout", ["more"]) and bound.kwargs["codes_name"] == "c"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_argument_of_a_command_says_what_it_means(name: str) -> None:
    """A line of the docstring that is missing, or misspelt, would leave an option without help."""
    try:
        parser = cli.make_parser([name])
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs the package {error.name}")
    own = cli._parser_of(parser, name)
    steps = [each.choices for each in own._actions if isinstance(each, argparse._SubParsersAction)]
    for each in steps[0].values() if steps else [own]:
        assert [action.dest for action in each._actions if not action.help] == []
