"""Static values: the compile-time knowledge of a value in specialization.

    static  s ::= atom | (s, ..) | closure(function, environment of s) | global function | gradient(s, options)

A value whose type holds no function is always an atom, so a tuple is only taken apart when it carries a function. The
*shape* of a static value is the value without its atoms. Shapes are interned: equal ones are one object, so that
comparing them and using them as keys is cheap even where closures share a lot. A function that is known only at run
time is an atom of a data type (see `flows`), which its shape tells; the *skeleton* of a shape does not tell which data
type.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol, TypeAlias, assert_never

import attrs

from relay.errors import InternalError
from relay.ir.expr import Atom, Function, Global, Grad, Var
from relay.ir.types import FunctionType, QuantifiedType, TensorType, TupleType, Type


def holds_function(type_: Type | None) -> bool:
    """True if values of this type are functions, or tuples with functions."""
    match type_:
        case TensorType():
            return False
        case TupleType(items):
            return any(holds_function(t) for t in items)
        case FunctionType() | QuantifiedType():
            return True
        case None:
            raise InternalError("a variable without a type reached specialization")
        case _:
            return False


@attrs.frozen(eq=False, slots=True)
class ValueShape:
    """A static value without its atoms. `size` counts its functions, `atoms` its atoms, both with repetition.

    `head` describes it apart from its `parts`.
    """

    head: Hashable
    parts: tuple[ValueShape, ...]
    size: int
    atoms: int
    _skeleton: ValueShape | None = None

    @property
    def skeleton(self) -> ValueShape:
        """The shape without the data types of its atoms."""
        return self._skeleton or self

    @property
    def type(self) -> Type | None:
        """The type of an atom that holds functions."""
        return self.head.type if isinstance(self.head, _OpaqueHead) else None


@attrs.frozen
class _OpaqueHead:
    """The head of an atom that holds functions."""

    type: Type


class FunctionCarriers(Protocol):
    """The types that contain functions which are known only at run time."""

    def carries(self, type_: Type) -> bool:
        """True if values of this type are or contain such functions."""
        ...

    def canonical(self, type_: Type) -> Type:
        """The type with those data types that have become one replaced by that one."""
        ...


@attrs.frozen(eq=False, slots=True)
class DynamicValue:
    """Known at run time only."""

    atom: Atom
    shape: ValueShape


@attrs.frozen(eq=False, slots=True)
class TupleValue:
    """A tuple that carries a function."""

    items: tuple[StaticValue, ...]
    shape: ValueShape


@attrs.frozen(eq=False, slots=True)
class LambdaGroup:
    """Lambdas that call each other, and the variables that they capture from outside of the group."""

    members: Mapping[Var, Function]
    captured: tuple[Var, ...]


@attrs.frozen(eq=False, slots=True)
class Closure:
    """A lambda of a group with the values of the group's captured variables."""

    function: Function
    group: LambdaGroup
    environment: tuple[StaticValue, ...]
    shape: ValueShape


@attrs.frozen(eq=False, slots=True)
class ModuleFunction:
    """A function of the module."""

    name: str
    shape: ValueShape


@attrs.frozen(eq=False, slots=True)
class Gradient:
    """The derivative of a function value, not yet applied. `options` is the node that asked for it."""

    function: StaticValue
    options: Grad
    shape: ValueShape


StaticValue: TypeAlias = DynamicValue | TupleValue | Closure | ModuleFunction | Gradient


def option_key(grad: Grad) -> tuple[Hashable, ...]:
    """The key of a derivative's options: differs for two derivatives of the same function."""
    return grad.options


class StaticValues:
    """Makes static values with interned shapes."""

    def __init__(self, carriers: FunctionCarriers) -> None:
        self._carriers = carriers
        self._shapes: dict[Hashable, ValueShape] = {}
        self._atom = ValueShape(None, (), 0, 1)

    def _shape(self, head: Hashable, parts: Iterable[ValueShape], own: int) -> ValueShape:
        parts = tuple(parts)
        key = (head, parts)
        found = self._shapes.get(key)
        if found is None:
            skeleton = None
            if any(p.skeleton is not p for p in parts):
                skeleton = self._shape(head, (p.skeleton for p in parts), own)
            size, atoms = own + sum(p.size for p in parts), sum(p.atoms for p in parts)
            found = self._shapes[key] = ValueShape(head, parts, size, atoms, skeleton)
        return found

    def atom(self, atom: Atom) -> StaticValue:
        """An operand that is not a variable with a known value: a global is a function, everything else is dynamic."""
        if isinstance(atom, Global):
            return ModuleFunction(atom.name, self._shape(("named", atom.name), (), 1))
        if not isinstance(atom, Var) or atom.type is None or not self._carriers.carries(atom.type):
            return DynamicValue(atom, self._atom)
        return DynamicValue(atom, self._opaque_shape(self._carriers.canonical(atom.type)))

    def _opaque_shape(self, type_: Type) -> ValueShape:
        head = _OpaqueHead(type_)
        found = self._shapes.get(head)
        if found is None:
            found = self._shapes[head] = ValueShape(head, (), 1, 1, self._atom)
        return found

    def canonical(self, shape: ValueShape, done: dict[ValueShape, ValueShape]) -> ValueShape:
        """The shape with those data types that have become one replaced by that one. `done` is a memory for this."""
        if shape.skeleton is shape:
            return shape
        found = done.get(shape)
        if found is None:
            if shape.type is not None:
                found = self._opaque_shape(self._carriers.canonical(shape.type))
            else:
                own = shape.size - sum(p.size for p in shape.parts)
                found = self._shape(shape.head, (self.canonical(p, done) for p in shape.parts), own)
            done[shape] = found
        return found

    def make_tuple(self, items: tuple[StaticValue, ...]) -> TupleValue:
        """A tuple of static values."""
        shapes = tuple(i.shape for i in items)
        return TupleValue(items, self._shape("tuple", shapes, 0))

    def closure(self, function: Function, group: LambdaGroup, environment: tuple[StaticValue, ...]) -> Closure:
        """A lambda with its environment."""
        shapes = tuple(v.shape for v in environment)
        return Closure(function, group, environment, self._shape(function, shapes, 1))

    def gradient(self, function: StaticValue, options: Grad) -> Gradient:
        """The derivative of a function value."""
        shape = self._shape(("gradient", option_key(options)), (function.shape,), 1)
        return Gradient(function, options, shape)

    def rebuild(self, value: StaticValue, atom: Callable[[Atom, str], Atom], name: str) -> StaticValue:
        """A value of the same shape with other atoms: `atom(old, name)` gives each, in the order of `flatten`."""
        if value.shape.atoms == 0:
            return value
        match value:
            case DynamicValue(old):
                return self.atom(atom(old, name))
            case TupleValue(items):
                return self.make_tuple(tuple(self.rebuild(item, atom, name) for item in items))
            case Closure(function, group, environment):
                return self.closure(
                    function,
                    group,
                    tuple(self.rebuild(v, atom, c.name) for v, c in zip(environment, group.captured, strict=True)),
                )
            case Gradient(function, options):
                return self.gradient(self.rebuild(function, atom, name), options)
            case ModuleFunction():
                return value
            case _:
                assert_never(value)


def flatten(values: Iterable[StaticValue]) -> list[Atom]:
    """The atoms of static values, in order."""
    atoms: list[Atom] = []
    pending = [iter(values)]
    while pending:
        value = next(pending[-1], None)
        match value:
            case None:
                pending.pop()
            case DynamicValue(atom):
                atoms.append(atom)
            case TupleValue(items):
                pending.append(iter(items))
            case Closure(environment=environment):
                pending.append(iter(environment))
            case Gradient(function):
                pending.append(iter((function,)))
            case ModuleFunction():
                pass
            case _:
                assert_never(value)
    return atoms


def held_types(shape: ValueShape) -> list[Type]:
    """The types of the atoms that hold functions, in order."""
    found: list[Type] = []
    pending = [shape]
    while pending:
        shape = pending.pop()
        if shape.type is not None:
            found.append(shape.type)
        elif shape.skeleton is not shape:
            pending += reversed(shape.parts)
    return found


def has_grown(old: ValueShape, new: ValueShape) -> bool:
    """True if a function has been wrapped into a larger one on the way from one shape to the other."""
    if old is new or old.size >= new.size:
        return False
    if contains(new, old):
        return True
    if old.head != new.head or len(old.parts) != len(new.parts):
        return False
    pairs = list(zip(old.parts, new.parts, strict=True))
    if old.head == "tuple":
        return any(has_grown(a, b) for a, b in pairs)
    return any(has_grown(a, b) for a, b in pairs) and all(a is b or has_grown(a, b) for a, b in pairs)


def contains(whole: ValueShape, part: ValueShape) -> bool:
    """True if a function of this shape is somewhere inside of the whole, and not the whole."""
    if part.size == 0:
        return False
    pending, seen = list(whole.parts), {whole}
    while pending:
        shape = pending.pop()
        if shape is part:
            return True
        if shape not in seen and shape.size >= part.size:
            seen.add(shape)
            pending += shape.parts
    return False
