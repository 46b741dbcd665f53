"""A function of the surface IR together with the Python names that it can see: what the front end hands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

import attrs

from relay.errors import InternalError, RelayError
from relay.ir.expr import Function, Grad, Var
from relay.ir.types import Constructor, DataDefinition, DataType, Kind, Type, TypeId, prune

MISSING = object()
"""The result of `Scope.resolve` for a name that is not defined."""


class Scope(Protocol):
    """The Python names around a function, looked up when they are needed, so that later definitions count."""

    def resolve(self, name: str) -> object:
        """The object that the name means now (closure, then globals, then builtins), or MISSING."""
        ...

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        ...


class NoScope(Scope):
    """Of code that mentions no global name."""

    def resolve(self, name: str) -> object:
        """No name is asked for."""
        raise InternalError(f"this code has no free names, found {name}")

    def names(self) -> list[str]:
        """None."""
        return []


@attrs.frozen(eq=False)
class Definition:
    """A decorated function: its surface IR, and its names. Objects that stand for one carry it as `__relay__`. A `pure`
    one must have no effects. `updated`: the variables that hold a value after a change that Python makes in place,
    as in `xs.append(v)` and `x += v`; the first operand of their expression is the value before it.

    `changes`: the positions of the parameters that it changes, with the ways from its result to those that are in it.
    `changing()` is the same function, which gives the others back. `lost` is the error of a call by which Python would
    not see a change.
    """

    function: Function
    scope: Scope
    gradient: DefinedGradient | None = None
    pure: bool = False
    updated: frozenset[Var] = frozenset()
    changes: Mapping[int, tuple[int, ...] | None] = attrs.field(factory=dict)
    changing: Callable[[], Definition] | None = None
    lost: RelayError | None = None

    @property
    def gives_back(self) -> tuple[int, ...]:
        """The positions of the parameters that are in its result."""
        return given_back(self.function)


def given_back(function: Function) -> tuple[int, ...]:
    """The positions of the parameters that are in the result of a function, with the changes that it makes in them."""
    return tuple(i for i, p in enumerate(function.signature) if p.given_back)


_made: WeakKeyDictionary[Definition, Definition] = WeakKeyDictionary()


def giving_back(definition: Definition) -> Definition | None:
    """The function whose result is a tuple of its result and the parameters that it changes, but for those that are in
    the result; None if it changes none that its text shows."""
    if definition.changing is None or definition.gradient is not None:
        return None
    if None not in definition.changes.values():
        return definition
    found = _made.get(definition)
    if found is None:
        changing = definition.changing()
        code, said = changing.function, definition.function.signature  # of which some are made static
        signature = tuple(attrs.evolve(p, static=s.static) for p, s in zip(code.signature, said, strict=True))  # type: ignore[misc]
        function = attrs.evolve(code, signature=signature)  # type: ignore[misc]
        found = _made[definition] = attrs.evolve(
            changing, function=function, pure=definition.pure, changes=definition.changes
        )
    return found


@attrs.frozen(eq=False)
class DefinedGradient:
    """The gradient that a program gives a function: `backward(saved, seed)`, and `forward(..) -> (result, saved)`.

    `adapted` is called for functions some of whose arguments specialize them, with which ones are run-time values. It
    gives the surface code of a gradient (saved, seed) for those alone, which calls `backward__`; the others are
    `static0__`, `static1__`, ...
    """

    backward: Definition
    forward: Definition | None
    adapted: Callable[[Sequence[bool]], Function]


@attrs.frozen(eq=False)
class DerivedDefinition:
    """`relay.grad(f, ..)` applied outside of a decorated function: the derivative of another definition."""

    of: Definition | DerivedDefinition
    grad: Grad  # its `function` is not used; wrt may hold names
    wrt: tuple[int | str, ...] | None


def primal(definition: Definition | DerivedDefinition) -> Definition:
    """The function that is differentiated, at any order."""
    while isinstance(definition, DerivedDefinition):
        definition = definition.of
    return definition


def seed_count(definition: Definition | DerivedDefinition) -> int:
    """The number of seeds after the arguments, one for each order of differentiation that takes one."""
    found = 0
    while isinstance(definition, DerivedDefinition):
        found += definition.grad.seedable
        definition = definition.of
    return found


@attrs.frozen(eq=False)
class DataClass:
    """A class decorated with `relay.data`: the `origin` of its data definition, and its classes' `__relay_data__`.

    `complete()` reads the fields' types, at first use, so that they may mention later classes. Raises FrontendError.
    """

    definition: DataDefinition
    cls: type
    constructors: Mapping[str, type]  # the Python class of each constructor
    fields: Mapping[str, tuple[str, ...]]  # the names of each constructor's fields
    defaults: Mapping[str, Mapping[str, object]]  # Python's values for fields that may be left out, by constructor
    methods: Mapping[str, Callable[[], Definition]]
    complete: Callable[[], None]
    properties: set[str] = attrs.field(factory=set)  # the methods that are read as attributes
    static: set[str] = attrs.field(factory=set)  # the methods that take no value: static ones, and those of the class


def data_class(item: object) -> DataClass | None:
    """The data class of a decorated class, of one of its constructors, or of a data definition; None for others."""
    if isinstance(item, DataDefinition):
        found = item.origin
    else:
        found = getattr(item, "__relay_data__", None) if isinstance(item, type) else None
    return found if isinstance(found, DataClass) else None


def complete_definition(definition: DataDefinition) -> DataDefinition:
    """The definition with its constructors. Raises FrontendError where a field's type means nothing."""
    origin = data_class(definition)
    if origin is not None:
        origin.complete()
    return definition


# ---- optional values


NOTHING, SOME = "Nothing", "Some"
"""The constructors of optional values: of a variable that is None on one path and has a value on another.

Programs do not write them. A value is wrapped where it meets None, and read where it is used; to Python it is None or
the value.
"""


class OptionalOrigin:
    """The origin of monomorphic definitions of optional values."""


def _definition() -> DataDefinition:
    content = TypeId("A", Kind.Type)
    made = DataDefinition("Optional", parameters=(content,), origin=OptionalOrigin())
    made.constructors = (Constructor(NOTHING, ()), Constructor(SOME, (content,), ("value",)))
    return made


OPTIONAL = _definition()


def is_optional(type_: Type) -> bool:
    """True if values of a type may be None at run time."""
    known = prune(type_)
    return isinstance(known, DataType) and isinstance(known.definition.origin, OptionalOrigin)


def content_type(type_: Type) -> Type:
    """The type that values of an optional type have where they are not None."""
    known = prune(type_)
    assert isinstance(known, DataType)
    if known.arguments:
        (content,) = known.arguments
        return content  # type: ignore[return-value]
    return known.definition.constructors[1].fields[0]
