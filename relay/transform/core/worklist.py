"""The worklist of specialization: requested versions of functions, their names, and the pending ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence

import attrs

from relay.ir.expr import Atom, Function, Global, Grad, Var
from relay.ir.types import FunctionType, Type
from relay.transform.core.flows import Flows
from relay.transform.core.static_values import StaticValue, StaticValues, ValueShape


@attrs.frozen(eq=False)
class Request:
    """A function that is to be made. `caller` is the request whose body first asked for it."""

    name: str
    function: Function
    shapes: tuple[ValueShape, ...]
    values: dict[Var, StaticValue]
    parameters: tuple[Var, ...]
    result: Type
    caller: Request | None

    @property
    def size(self) -> int:
        """The number of closures in its arguments and its environment."""
        return sum(s.size for s in self.shapes)


@attrs.frozen
class ResolvedCall:
    """A function value applied: the module function, the atoms to call it with, and for each argument of the call its
    position among them (None if it is not a single atom). `seen` is the function value's type in the typed program."""

    name: str
    type: FunctionType
    atoms: tuple[Atom, ...]
    positions: tuple[int | None, ...]
    seen: FunctionType


def with_function(grad: Grad, function: Global, wrt: tuple[int, ...] | None = None) -> Grad:
    """The request for a derivative, of another function. `wrt` None: the same parameters."""
    wrt = grad.wrt if wrt is None else wrt
    return attrs.evolve(grad, function=function, wrt=wrt)  # type: ignore[misc]


class Worklist:
    """The specializations by code and shapes."""

    def __init__(self, static: StaticValues, flows: Flows, taken: set[str]) -> None:
        self.pending: deque[Request] = deque()
        self.types: dict[str, FunctionType] = {}
        self._static = static
        self._flows = flows
        self._taken = taken
        self._names: dict[tuple[Function, tuple[ValueShape, ...]], str] = {}
        self._derived: dict[Hashable, str] = {}
        self._canonical: dict[ValueShape, ValueShape] = {}
        self._version = 0

    def shapes(self, values: Sequence[StaticValue]) -> tuple[ValueShape, ...]:
        """The shapes of values, with the data types that flows have now."""
        self.refresh()
        return tuple(self.canonical(v.shape) for v in values)

    def canonical(self, shape: ValueShape) -> ValueShape:
        """The shape, with the data types that flows have now."""
        return self._static.canonical(shape, self._canonical)

    def refresh(self) -> None:
        """Look at the keys again after flows have become one: different ones may be the same now."""
        if self._version == self._flows.version:
            return
        self._version = self._flows.version
        self._canonical = {}
        names, self._names = self._names, {}
        for (function, shapes), name in names.items():
            self._names.setdefault((function, tuple(self.canonical(s) for s in shapes)), name)

    def find(self, function: Function, shapes: tuple[ValueShape, ...]) -> str | None:
        """The name of a specialization that was asked for before."""
        return self._names.get((function, shapes))

    def add(self, request: Request, type_: FunctionType) -> None:
        """Ask for a specialization."""
        self._names[request.function, request.shapes] = request.name
        self.types[request.name] = type_
        self.pending.append(request)

    def derivative_name(self, key: Hashable) -> str | None:
        """The name of a derivative that was asked for before."""
        return self._derived.get(key)

    def add_derived(self, key: Hashable, name: str, type_: FunctionType) -> None:
        """Note a derivative."""
        self._derived[key] = name
        self.types[name] = type_

    def name(self, wanted: str, *, keep: bool = False) -> str:
        """A name that no function or data type of the module has. With `keep` the wanted one, if it is still free."""
        if keep and wanted not in self.types:
            return wanted
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def callers(request: Request | None, function: Function) -> Iterator[Request]:
    """The requests for a function that led to what is being made, innermost first."""
    while request is not None:
        if request.function is function:
            yield request
        request = request.caller
