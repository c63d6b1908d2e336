"""Configuration files as plain data with line numbers, and values from a command line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.files import PathLike, open_input
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.schema import join_key

# Imported in functions, so that every command shows its --help without PyYAML.
if TYPE_CHECKING:
    import yaml

# PyYAML's exceptions for values that it cannot construct: a date such as 2001-99-99, "!!int ''", "!!bool maybe".
_NO_VALUE = (ValueError, ArithmeticError, LookupError, AttributeError)
# What YAML 1.1 reads as numbers to the base 8 and 60.
_OTHER_BASE = re.compile(r"[-+]?(?:0[0-7_]*[0-7]|\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?)")
# Limit on the values that aliases add, so that a few lines cannot expand beyond memory.
_ALIASED = 10_000


def read(path: PathLike) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the content of a YAML file, and the line number of every key by dotted key.

    Raises UsageError for a syntax error, a duplicate key, aliases that expand to too many values, or content that is
    not a mapping, and for a pipe, as every step reads the file again.
    """
    import yaml

    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise UsageError(f"{path}: a pipe, which the steps of an experiment could not read again; give a file")
    with open_input(path) as stream:
        content = stream.read()
    try:
        loader = yaml.SafeLoader(content)
        root = _single_node(loader, str(path))
        lines: dict[str, int] = {}
        if root is not None:
            _note_lines(root, "", lines, str(path))
        document = loader.construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        begun = f" {error.context} that begins in line {error.context_mark.line + 1}" if error.context_mark else ""
        raise UsageError(f"{path}{line}: not valid YAML{begun}: {error.problem or error.context}") from error
    except (yaml.YAMLError, *_NO_VALUE) as error:
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: nested too deeply or recursively; simplify it") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not an experiment configuration of 'key: value' lines; see configs/demo.yaml")
    return document, lines


def typed(value: Any) -> Any:
    """Return a value from a command line as YAML reads it; raise UsageError if it is not valid YAML.

    >>> typed({"batch": "2", "lr": "1e-3"})
    {'batch': 2, 'lr': '1e-3'}
    """
    if isinstance(value, dict):
        return {key: typed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [typed(entry) for entry in value]
    if not isinstance(value, str):
        return value
    import yaml

    try:
        loader = yaml.SafeLoader(value)
        root = _single_node(loader, "--config")
        return None if root is None else loader.construct_document(root)
    except (yaml.YAMLError, *_NO_VALUE, RecursionError) as error:
        raise UsageError(f"--config: '{value}' is not valid YAML; quote special characters") from error


def settings_from(assignments: Sequence[str]) -> dict[str, Any]:
    """Return the sections that ``KEY=VALUE`` assignments set; keys are dotted, and values are YAML.

    >>> settings_from(["train.options.lr=0.001", "train.batch=small", "seeds=[1, 2]"])
    {'train': {'options': {'lr': 0.001}, 'batch': 'small'}, 'seeds': [1, 2]}

    Raises UsageError for an assignment without a key or an equals sign, for a value that is not YAML, and for a key
    that is set twice, also as part of another.
    """
    sections: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        *outer, last = key.split(".")
        if not equals or not all([*outer, last]):
            raise UsageError(f"--set {assignment}: write KEY=VALUE, such as train.options.lr=0.001")
        place = sections
        for name in outer:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise UsageError(f"--set {assignment}: {name} has another value already; set each key once")
        if last in place:
            raise UsageError(f"--set {assignment}: {last} has another value already; set each key once")
        place[last] = typed(value)
    return sections


def _single_node(loader: yaml.SafeLoader, origin: str) -> yaml.Node | None:
    """Return the root of the only document.

    Raises UsageError if its aliases add more than _ALIASED values, and for a number to another base without 0x or 0b.
    """
    root = loader.get_single_node()
    sizes: dict[yaml.Node, int] = {}
    if root is not None and _size(root, sizes) > len(sizes) + _ALIASED:
        raise UsageError(f"{origin}: its aliases expand to more than {_ALIASED:,} values; use fewer")
    for node in sizes:
        if str(node.tag).endswith((":int", ":float")) and _OTHER_BASE.fullmatch(node.value):
            base, place = 60 if ":" in node.value else 8, f"{origin}:{node.start_mark.line + 1}"
            raise UsageError(
                f"{place}: YAML reads {node.value} to the base {base}; write it to the base 10 or quote it"
            )
    return root


def _size(node: yaml.Node, sizes: dict[yaml.Node, int]) -> int:
    """Return the number of values in a node with all aliases expanded; each node is visited once.

    Raises RecursionError for a node that contains itself.
    """
    import yaml

    if node not in sizes:
        inner = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            inner = [each for pair in node.value for each in pair]
        # Capped, as the number would grow exponentially with the depth.
        sizes[node] = min(1 + sum(_size(each, sizes) for each in inner), 1 << 60)
    return sizes[node]


def _note_lines(node: yaml.Node, key: str, lines: dict[str, int], path: str) -> None:
    """Add the line of every key under ``node`` to ``lines``; raise UsageError for a duplicate key."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen = set()
        for name_node, value_node in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                continue
            line = name_node.start_mark.line + 1
            inner = join_key(key, name_node.value)
            if name_node.value in seen:
                raise UsageError(f"{path}:{line}: {inner}: duplicate key; remove one")
            seen.add(name_node.value)
            lines[inner] = line
            _note_lines(value_node, inner, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for number, entry in enumerate(node.value):
            inner = f"{key}[{number}]"
            lines[inner] = entry.start_mark.line + 1
            _note_lines(entry, inner, lines, path)
