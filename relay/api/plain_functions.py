"""Functions of plain Python functions, as in `relay.grad(lambda ..)` and `relay.jit`, and of texts; and what Python's
type checkers know of decorated functions: they take what the Python function takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload
from weakref import WeakKeyDictionary

from relay.api.function import RelayFunction, decorate
from relay.calling.lowering import Lowering
from relay.calling.programs.program_table import Explanation
from relay.compilation.options import Options, options
from relay.errors import FrontendError
from relay.frontend import lower
from relay.typecheck.elaboration.library import undecorated

P = ParamSpec("P")
R = TypeVar("R")
"""The form of a result, as far as a transformation decides it; arrays are `Any`: Relay checks dtypes and shapes."""


if TYPE_CHECKING:  # at run time it is a RelayFunction

    class Decorated(RelayFunction, Generic[P, R]):
        """A decorated function, or what a transformation such as `relay.grad` makes of one."""

        def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R: ...
        def interpret(self, *arguments: P.args, **keywords: P.kwargs) -> R: ...
        def lower(self, *arguments: P.args, **keywords: P.kwargs) -> Lowering: ...
        def explain(self, *arguments: P.args, **keywords: P.kwargs) -> Explanation: ...


class Decorator(Protocol):
    """A call such as `relay(static_argnames=..)`, which decorates."""

    def __call__(self, function: Callable[P, Any], /) -> Decorated[P, Any]: ...


_decorated: WeakKeyDictionary[FunctionType, RelayFunction] = WeakKeyDictionary()


def readable_function(f: Any) -> Any:
    """A plain Python function of the user's as a decorated one, the same each time; anything else as it is."""
    if not isinstance(f, FunctionType) or hasattr(f, "__relay__") or not undecorated.is_read(f):
        return f
    found = _decorated.get(f)
    if found is None:
        found = _decorated.setdefault(f, decorate(f, Options()))
    return found


@overload
def jit(
    function: Callable[P, Any], *, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = ()
) -> Decorated[P, Any]: ...
@overload
def jit(
    function: None = None, *, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = ()
) -> Decorator: ...
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


def from_source(
    text: str, globals: Mapping[str, Any] | None = None, filename: str = "<relay>"
) -> dict[str, RelayFunction] | RelayFunction:
    """The functions of a text, by name; just the function if there is one. They need no decorators; the options in
    those that they have are theirs. Raises FrontendError, and CompileError for an option."""
    if not isinstance(text, str):
        raise FrontendError(
            f"a program must be a string, found {type(text).__name__}", help="pass a str: data.decode()"
        )
    definitions = lower.lower_text(text, filename, dict(globals or {}))
    from relay.frontend.static.decorators import options_in_text  # which a first call does not need

    written = options_in_text(text, filename)
    functions = {
        name: RelayFunction(definition, options(written.get(name, {}))) for name, definition in definitions.items()
    }
    return next(iter(functions.values())) if len(functions) == 1 else functions
