"""Plain Python functions where decorated ones are taken: `relay.grad(lambda x: x ** 2)`, and `relay.jit` as in JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from relay.api.function import RelayFunction, decorate
from relay.compilation.options import Options
from relay.errors import FrontendError
from relay.typecheck.elaboration.library import undecorated

_decorated: WeakKeyDictionary[FunctionType, RelayFunction] = WeakKeyDictionary()


def readable_function(f: Any) -> Any:
    """A plain Python function of the user's as a decorated one, the same each time; anything else as it is."""
    if not isinstance(f, FunctionType) or hasattr(f, "__relay__") or not undecorated.is_read(f):
        return f
    found = _decorated.get(f)
    if found is None:
        found = _decorated.setdefault(f, decorate(f, Options()))
    return found


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Any:
    """JAX's name for `@relay`: the function, compiled. A function that is decorated already is itself.

    `static_argnums` and `static_argnames` are promises; numbers that configure a program are static by themselves.
    Raises FrontendError for positions that the function does not have.
    """
    if function is None:
        return lambda python: jit(python, static_argnums=static_argnums, static_argnames=static_argnames)
    if isinstance(function, RelayFunction):
        return function
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    positions = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if isinstance(function, FunctionType) and positions:
        code = function.__code__
        known = code.co_varnames[: code.co_argcount]
        if not all(-len(known) <= p < len(known) for p in positions):
            raise FrontendError(f"static_argnums: {function.__name__} has {len(known)} parameters, found {positions}")
        names += tuple(known[p] for p in positions)
    return decorate(function, Options(static_argnames=names), sys._getframe(1))


jit.__relay_builtin__ = "jit"  # type: ignore[attr-defined]
