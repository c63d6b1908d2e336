"""Keep fairseq from running code that a checkpoint contains."""

import ast
import operator
from collections.abc import Callable
from typing import Any, cast

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.checkpoints import refuse_interpolation

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_SEQUENCES = (list, tuple, str, bytes)
# Not empty while an object from another process of this training is loaded.
_trusting: list[bool] = []
# An option of fairseq has at most a value per layer or epoch, so none is longer or has more values.
_LONGEST = 10_000


class _Refused(Exception):
    """An option is not evaluated; the message is the reason."""


def evaluate(text: str) -> Any:
    """Return the value of an option such as ``[0.9, 0.98]`` or ``[(512, 3)] * 4``, in place of Python's ``eval``.

    Raises MTScaffoldError for anything beyond numbers, strings, lists and arithmetic, and for too many values.
    """
    shown = text if len(text) <= 100 else f"{text[:100]}..."
    try:
        if len(text) > _LONGEST:
            raise _Refused("too long; correct the option")
        return _value(ast.parse(text.strip(), mode="eval").body)[0]
    except _Refused as refused:
        raise MTScaffoldError(f"option value {shown!r}: {refused}") from None
    # The parser raises MemoryError for brackets that are nested too deeply.
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise MTScaffoldError(f"option value {shown!r}: not a valid expression; correct the option") from error


def _value(node: ast.expr) -> tuple[Any, int]:
    """Return the value of an expression, and its size: the values in it, and the characters of its strings."""
    match node:
        case ast.Constant(value):
            return value, len(value) if isinstance(value, str | bytes) else 1
        case ast.List(entries) | ast.Tuple(entries):
            values = [_value(entry) for entry in entries]
            kind = list if isinstance(node, ast.List) else tuple
            return kind(value for value, _ in values), 1 + sum(size for _, size in values)
        case ast.Dict(keys, entries) if None not in keys:
            pairs = [(_value(cast(ast.expr, key)), _value(entry)) for key, entry in zip(keys, entries, strict=True)]
            return {key: value for (key, _), (value, _) in pairs}, 1 + sum(one[1] + two[1] for one, two in pairs)
        case ast.UnaryOp(ast.USub(), inner):
            value, size = _value(inner)
            return -value, size
        case ast.UnaryOp(ast.UAdd(), inner):
            value, size = _value(inner)
            return +value, size
        case ast.BinOp(left, operation, right) if type(operation) in _ARITHMETIC:
            (one, size), (two, other) = _value(left), _value(right)
            sizes = size + other
            if isinstance(operation, ast.Mult) and isinstance(one, _SEQUENCES) and isinstance(two, int):
                sizes = size * max(two, 1)
            elif isinstance(operation, ast.Mult) and isinstance(one, int) and isinstance(two, _SEQUENCES):
                sizes = other * max(one, 1)
            if sizes > _LONGEST:
                raise _Refused(f"has more than {_LONGEST:,} values; correct the option")
            return _ARITHMETIC[type(operation)](one, two), sizes
    raise _Refused("holds code and is refused; correct the option, or use a checkpoint that you trust")


def load(torch_load: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Load a checkpoint, refusing options with interpolations, which OmegaConf would evaluate next."""
    state = torch_load(*arguments, **({**named, "weights_only": False} if _trusting else named))
    file = arguments[0] if arguments else named["f"]
    refuse_interpolation(state, getattr(file, "name", file))
    return state


def broadcast(broadcast_object: Callable[..., Any], *arguments: Any) -> Any:
    """Load an object from another process of this training without a check: the sender has loaded it safely."""
    _trusting.append(True)
    try:
        return broadcast_object(*arguments)
    finally:
        _trusting.pop()
