"""Python's type parameters and aliases, as in `def f[n, *S](x: Tensor[Float, (*S, n)])` and `type Row = Tensor[..]`.

A parameter's kind comes from its first use: `Tensor[b, s]`, `(n, *S)`, or a type of its own.
"""

from __future__ import annotations

import typing
import weakref
from collections.abc import Callable

from relay.errors import FrontendError
from relay.ir.types import Kind, TypeId


class SourceAlias:
    """A `type` statement of a file that is only read. `read` gives what it stands for."""

    def __init__(self, name: str, parameters: tuple[object, ...], read: Callable[[], object]) -> None:
        self.__name__ = name
        self.__type_params__ = parameters
        self._read = read

    @property
    def __value__(self) -> object:
        return self._read()

    def __str__(self) -> str:
        return self.__name__


_variables: weakref.WeakKeyDictionary[object, TypeId] = weakref.WeakKeyDictionary()
_ALIAS: type = getattr(typing, "TypeAliasType", type(None))  # Python 3.12


def is_parameter(item: object) -> bool:
    """True if an object is a type parameter of Python."""
    return isinstance(item, typing.TypeVar | typing.TypeVarTuple) or _unpack_argument(item) is not None


def variable(parameter: object, kind: Kind) -> TypeId:
    """The variable that a parameter stands for, the same at every use. Raises FrontendError if it has another kind."""
    unpacked = _unpack_argument(parameter)
    parameter = parameter if unpacked is None else unpacked
    name = getattr(parameter, "__name__", "_")
    if unpacked is not None or isinstance(parameter, typing.TypeVarTuple):
        if kind not in (Kind.Shape, Kind.Dim):
            raise FrontendError(f"*{name} stands for the dims of a shape", help=f"write it in a shape: (*{name}, 3)")
        kind = Kind.Shape
    found = _variables.setdefault(parameter, TypeId(name, kind))
    if found.kind is not kind:
        raise FrontendError(
            f"{name} is used as a variable of kind {kind.value}, and elsewhere of kind {found.kind.value}",
            help="give each its own name",
        )
    return found


def known_variable(parameter: object) -> object:
    """The variable that a parameter stands for, if its kind is known, or the object itself."""
    return _variables.get(parameter, parameter) if is_parameter(parameter) else parameter


def is_alias(item: object) -> bool:
    """True if an object was made by a `type` statement."""
    return item is not None and isinstance(item, _ALIAS | SourceAlias)


def alias_value(alias: object) -> object:
    """The value of an alias, which Python evaluates at this first use. Raises FrontendError if that fails."""
    try:
        return alias.__value__  # type: ignore[attr-defined]
    except (NameError, AttributeError, TypeError) as error:
        raise FrontendError(f"the type {alias} cannot be evaluated: {error}") from None


def _unpack_argument(item: object) -> object:
    """The S of `*S`, as Python evaluates it; None for anything else."""
    return item.__args__[0] if typing.get_origin(item) is typing.Unpack else None  # type: ignore[attr-defined]
