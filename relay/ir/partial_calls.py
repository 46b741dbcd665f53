"""Functions of Python with some of their arguments given, `functools.partial(f, 2.0)` and `layer.forward`, as
structures: the function is static, and the arguments it holds are arguments of the program like others.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import attrs

from relay.ir.structure import register_tree


@attrs.frozen(eq=False)
class PartialCall:
    """A function with its first arguments, and some by name."""

    function: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


register_tree(
    PartialCall,
    lambda call: ((call.function, call.arguments, call.keywords), None),
    lambda _, parts: PartialCall(*parts),
    fields=("func", "args", "keywords"),
)


def partial_call(value: object) -> PartialCall | None:
    """The function and arguments of a `functools.partial`, or of a method of one value; None for anything else."""
    if isinstance(value, functools.partial):
        inner = partial_call(value.func)
        if inner is None:
            return PartialCall(value.func, value.args, value.keywords)
        return PartialCall(inner.function, inner.arguments + value.args, inner.keywords | value.keywords)
    if isinstance(value, types.MethodType) or hasattr(type(value), "__relay_bound__"):
        function, owner = value.__func__, value.__self__  # type: ignore[attr-defined]
        if hasattr(function, "__relay__") and not isinstance(owner, type):
            return PartialCall(function, (owner,), {})
    return None
