"""Checks of results for NaN and infinity, `@relay(check="nan")`, after compiled calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relay.errors import ExecutionError, RelayError
from relay.ir.annotations.annotation import Ref
from relay.ir.protocols import is_value
from relay.ir.structure import split

Finder = Callable[[Any, Sequence[Any], Mapping[str, Any]], RelayError | None]

_finders: list[Finder] = []


def use_finder(finder: Finder) -> None:
    """Set the function that finds, as an error, where a NaN or infinity of a call comes from: the debugger, which is
    above this layer."""
    _finders[:] = [finder]


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """The arrays of numbers in an argument or result: in structures, values of data types and references."""
    pending, seen = [value], set[int]()
    while pending:
        current = pending.pop()
        if isinstance(current, Ref) or is_value(current):
            if id(current) not in seen:
                seen.add(id(current))
                pending += [current.value] if isinstance(current, Ref) else reversed(vars(current).values())
        elif not hasattr(current, "dtype") and (parts := split(current)) is not None:
            pending += reversed(list(parts[1]))
        elif current is not None and not callable(current):
            array = np.asarray(current)
            if array.dtype.kind in "fiubV":
                yield array


def is_finite(value: Any) -> bool:
    """True if no number in a value is NaN or infinite."""
    for array in arrays_in(value):
        if array.dtype.kind == "V":
            array = array.astype(np.float32)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return False
    return True


def argument_copies(arguments: Any) -> Any:
    """The arguments as they are before a call, which may change what references in them hold."""
    return copy.deepcopy(arguments) if _holds_references(arguments) else arguments


def _holds_references(value: Any) -> bool:
    pending, seen = [value], set[int]()
    while pending:
        current = pending.pop()
        if isinstance(current, Ref):
            return True
        if is_value(current):
            if id(current) not in seen:
                seen.add(id(current))
                pending += vars(current).values()
        elif not hasattr(current, "dtype") and (parts := split(current)) is not None:
            pending += parts[1]
    return False


def require_finite(function: Any, result: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise ExecutionError, which tells where it comes from, if there is a NaN or infinity in a result. `arguments` and
    `keywords` are as before the call."""
    if is_finite(result):
        return
    found = _finders[0](function, arguments, keywords) if _finders else None
    if found is None:
        raise ExecutionError(
            f"the compiled {function.__name__} returned a NaN or infinity, which the interpreter does not compute",
            help=f"compare them: {function.__name__}.interpret(..)",
        )
    raise found
