"""`relay.overload`: what a Python callable means in programs, written in the language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from relay.api.function import RelayFunction, decorate
from relay.compilation.options import Options
from relay.errors import RegistrationError
from relay.ir.definition import Definition
from relay.ir.intrinsic import Intrinsic
from relay.ir.types import show
from relay.operator import Operator, lookup
from relay.typecheck.elaboration.diagnostics.descriptions import SYMBOLS
from relay.typecheck.elaboration.library import known_callables, overload_calls, overloads


@attrs.frozen
class OverloadRow:
    """A row of the table: a callable, as programs write it, the arguments that an overload takes, and where it is
    written. A `rule` is decided at compile time; others are functions of the language, and operators, whose place is
    their name."""

    name: str
    takes: str
    place: str
    is_rule: bool

    def __str__(self) -> str:
        return f"{self.name}({self.takes})  {self.place}{' (rule)' if self.is_rule else ''}"


class OverloadTable(Sequence[OverloadRow]):
    """The meanings of Python's callables in programs, in the order of their names."""

    def __init__(self, rows: Sequence[OverloadRow]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: Any) -> Any:
        return self._rows[item]

    def __iter__(self) -> Iterator[OverloadRow]:
        return iter(self._rows)

    def __str__(self) -> str:
        return "\n".join(map(str, self._rows))


class _Overloading:
    """`relay.overload`."""

    def __call__(
        self, function: Callable[..., Any], /, *, static_argnames: str | Sequence[str] = ()
    ) -> Callable[[Callable[..., Any]], RelayFunction]:
        """Decorator: the meaning of a Python callable in programs, written in the language.

        `function` is what programs call: a function of NumPy, of another library or of a class (`Particle.energy`; of
        tensors, `np.ndarray.name`) that Relay does not know; a property of a class, which programs read; or a method
        that Python's syntax calls, as `Grid.__getitem__`, where one of `__setitem__` returns the new value. Calls of it
        in decorated functions are calls of the decorated one, with its types and gradients; Python's own calls stay
        what they are. Several overloads are told apart by the annotations of their parameters, in the order of their
        definitions. What Relay knows already can only get a meaning for classes of the user's.

        Raises RegistrationError if the callable has a meaning for these arguments, FrontendError as `@relay` does.
        """
        __tracebackhide__ = True
        name = _require_callable(function)

        def define(python: Callable[..., Any]) -> RelayFunction:
            __tracebackhide__ = True
            made = (
                python
                if isinstance(python, RelayFunction)
                else decorate(python, Options(static_argnames=static_argnames))
            )
            if not isinstance(made.__relay__, Definition):
                raise RegistrationError(
                    f"a derivative cannot be an overload of {name}", help="write a function that calls it"
                )
            owner = (getattr(python, "__module__", ""), getattr(python, "__qualname__", made.__name__))
            overload_calls.add_user_overload(function, name, made, owner)
            return made

        return define

    def table(self) -> OverloadTable:
        """The meanings of Python's callables in programs: those of Relay's library, and those of users. NumPy's
        functions that are operators, and the operators of Python's syntax on arrays, have the operator as their
        place."""
        rows = [_row(known) for known in overloads.entries() if not isinstance(known.function, Intrinsic)]
        for function, operator in known_callables.library_operators():
            if not overloads.find(function):
                rows.append(_operator_row(overloads.callable_name(function), operator))
        rows += [_operator_row(symbol, lookup(name)) for name, symbol in SYMBOLS.items()]
        return OverloadTable(sorted({str(row): row for row in rows}.values(), key=lambda row: row.name))


overload = _Overloading()


def _require_callable(function: object) -> str:
    """The name of a callable that may have overloads. Raises RegistrationError."""
    if isinstance(function, RelayFunction) or hasattr(function, "__relay__"):
        name = getattr(function, "__name__", "the function")
        raise RegistrationError(f"{name} is a function of the language already", help="overload is for those of Python")
    name = overloads.callable_name(function)
    if not callable(function) and not overloads.is_attribute(function):
        raise RegistrationError(f"overload takes a callable, found {name}", help="@relay.overload(np.name)")
    return name


def _operator_row(name: str, operator: Operator) -> OverloadRow:
    return OverloadRow(name, ", ".join(operator.operands), f"relay.{operator.name}", False)


def _row(entry: overloads.Overload) -> OverloadRow:
    if not entry.is_written:
        return OverloadRow(entry.name, "..", entry.place, True)
    assert entry.definition is not None
    function = entry.definition.function
    takes = ", ".join(p.name if p.type is None else f"{p.name}: {show(p.type)}" for p in function.parameters)
    return OverloadRow(entry.name, takes, entry.place, False)
