"""_core.pyi, which mypy trusts, declares the core's calls. stubtest cannot see nanobind's parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import _core

STUB = ast.parse((Path(_core.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
UNKNOWN = object()  # a default that the stub leaves out: "..."


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and any(
            "disjoint_base" in ast.unparse(each) for each in node.decorator_list
        ):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.decorator_list:
                    yield f"{node.name}.{method.name}", method


FUNCTIONS = dict(functions())


def parameters(node: ast.FunctionDef, defaults: tuple[Any, ...] | None = None) -> list[tuple[str, Any]]:
    """Return the parameters with their defaults: literals in the stub, indices into ``defaults`` in nanobind's text."""
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    found: list[tuple[str, Any]] = [(name, None) for name in names]
    for name, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
        value = ast.literal_eval(default)
        if defaults is not None:
            value = defaults[value]
        found[names.index(name)] = (name, ("default", UNKNOWN if value is ... else value))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_stub_has_the_parameters_of_the_core(name: str) -> None:
    """Names, order and defaults: a wrong one would pass mypy and fail at run time, or quietly mean something else."""
    runtime: Any = _core
    for part in name.split("."):
        runtime = getattr(runtime, part)
    ((signature, _, defaults),) = runtime.__nb_signature__
    (node,) = ast.parse(re.sub(r"\\(\d+)", r"\1", signature) + ": ...").body
    assert isinstance(node, ast.FunctionDef)
    expected = parameters(node, defaults or ())
    given = parameters(FUNCTIONS[name])
    assert [each for each, _ in given] == [each for each, _ in expected]
    for (parameter, stub), (_, core) in zip(given, expected, strict=True):
        assert (stub is None) == (core is None), f"{parameter} has a default in one of them"
        assert stub is None or stub[1] is UNKNOWN or stub[1] == core[1], parameter
