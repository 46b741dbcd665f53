"""Unification of types, base types, shapes and dims.

    t ~ t                  holds
    ?a ~ t                 binds ?a := t, unless t contains ?a (occurs check)
    Tensor[b, s] ~ Tensor[b', s']     if b ~ b' and s ~ s'
    (A, ..) ~ (A', ..)     pointwise, equal lengths;  functions, references and stacks likewise
    ?b (literals 2, 0.5; classes C) ~ float32    if float32 is in C and holds every literal exactly enough
    ?b weak ~ ?c weak      is weak; with anything else it is not (weak_types.py: what meets a weak integer converts it)
    (*?s, 4) ~ (2, 3, 4)   binds ?s := (2, 3)
    names of axes ~ names of axes     if no axis has two; a tensor without names agrees with every tensor

A variable that is bound wakes the constraints that watch it: they go to the solver's worklist and run later, never
inside a unification.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from relay.errors import InternalError, Span
from relay.ir.axes import agree, axes_text, order
from relay.ir.dims import subtract, variables
from relay.ir.effects import Effects
from relay.ir.literals import holds, misfit_text
from relay.ir.sizes.facts import EQUAL, DimConstraint, counterexample, facts, solve
from relay.ir.types import (
    ANY,
    NONE,
    AnyDim,
    BaseClass,
    BaseType,
    DataType,
    Dim,
    DimExpr,
    Form,
    FunctionType,
    Kind,
    Literal,
    QuantifiedType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    axis_names,
    map_type_parts,
    prune,
    show_argument,
)


class Clash(Exception):
    """Two types that cannot be equal: the smallest parts that differ, or a reason in words."""

    def __init__(self, left: object, right: object, reason: str | None = None) -> None:
        super().__init__(reason)
        self.left = left
        self.right = right
        self.reason = reason


NESTED = 16
"""The largest depth to which constraints that elaborate functions' bodies may start each other; further ones wait
for those."""


@attrs.define(eq=False)
class Solver:
    """Variables and the worklist of constraints that one of them woke."""

    worklist: deque[Callable[[], None]] = attrs.field(factory=deque)
    later: deque[Callable[[], None]] = attrs.field(factory=deque)  # what would be nested too deep
    depth: int = 0  # how deep what is retried has retried others
    literal_bases: list[Unknown] = attrs.field(factory=list)
    conversions: list[tuple[Unknown, BaseType | Unknown]] = attrs.field(factory=list)  # of numbers, to dtypes
    postpone: Callable[[Dim, Dim], None] | None = None  # an equation that has to wait for its variables
    gradual: bool = False  # `Any` may be what something else is: a call's sizes will tell

    def fresh_variable(self, kind: Kind, name: str = "_") -> Unknown:
        """A new variable."""
        return Unknown(kind, name)

    def fresh_tensor(self) -> TensorType:
        """The type of a tensor of which nothing is known."""
        return TensorType(
            self.fresh_variable(Kind.BaseType), (self.fresh_variable(Kind.Shape),), self.fresh_variable(Kind.Shape)
        )

    def literal_base(self, value: int | float, span: Span | None, *, weak: bool = True) -> Unknown:
        """A base type that holds a Python number. That of an integer is weak, unless it may become a float later."""
        classes = {BaseClass.FLOAT} if isinstance(value, float) else {BaseClass.FLOAT, BaseClass.INTEGER}
        weak = weak and not isinstance(value, float)
        unknown = Unknown(Kind.BaseType, literals=(Literal(value, span),), classes=frozenset(classes), weak=weak)
        self.literal_bases.append(unknown)
        return unknown

    def run(self) -> None:
        """Retry what was woken, until nothing is left."""
        while self.worklist or (self.later and self.depth < NESTED):
            work = self.worklist or self.later
            self.depth += 1
            try:
                work.popleft()()
            finally:
                self.depth -= 1

    def bind(self, unknown: Unknown, value: object) -> None:
        """Bind a variable and wake its watchers. Raises Clash for one that an annotation leaves to the callers."""
        if unknown.rigid:
            if not isinstance(value, Unknown) or value.rigid:
                raise Clash(unknown, value, _rigid_reason(unknown, value))
            unknown, value = value, unknown
        unknown.binding = value  # type: ignore[assignment]
        if isinstance(value, Unknown):
            small, large = sorted((unknown.watchers, value.watchers), key=len)
            large += small
            value.watchers, unknown.watchers = large, []
        else:
            self.worklist.extend(unknown.watchers)
            unknown.watchers = []

    # ---- types

    def unify(self, left: Type, right: Type) -> None:
        """Make two types equal. Raises Clash."""
        left, right = prune(left), prune(right)  # type: ignore[assignment]
        if left is right:
            return
        if isinstance(left, Unknown):
            self._bind_type(left, right)
            return
        if isinstance(right, Unknown):
            self._bind_type(right, left)
            return
        match left, right:
            case TensorType(b1, s1), TensorType(b2, s2):
                self._unify_axes(left, right)
                try:
                    self.unify_base(b1, b2)
                    self.unify_shape(s1, s2)
                except Clash as clash:
                    raise Clash(left, right, clash.reason) from None
            case (TupleType(a, f), TupleType(b, g)) if len(a) == len(b) and _forms_agree(f, g):
                for x, y in zip(a, b, strict=True):
                    self.unify(x, y)
            case (FunctionType(p1, r1), FunctionType(p2, r2)) if len(p1) == len(p2):
                for x, y in zip(p1, p2, strict=True):
                    self.unify(x, y)
                self.unify(r1, r2)
                _same_effects(left.effects, right.effects)
            case RefType(a), RefType(b):
                self.unify(a, b)
            case StackType(a), StackType(b):
                self.unify(a, b)
            case (DataType(d1, a1), DataType(d2, a2)) if d1 is d2 and len(a1) == len(a2):
                for parameter, mine, other in zip(d1.parameters, a1, a2, strict=True):
                    self.unify_argument(parameter.kind, mine, other)
            case _:
                if left != right:
                    raise Clash(left, right)

    def _unify_axes(self, left: TensorType, right: TensorType) -> None:
        mine, other = left.axes, right.axes
        if mine is None or other is None:
            return
        names, wanted = axis_names(left), axis_names(right)
        if names is not None and wanted is not None:
            if not agree(names, wanted):
                way = order(names, wanted)
                help = "" if way is None else f": transpose by relay.transpose(x, {way})"
                raise Clash(left, right, f"the axes are {axes_text(names)}, not {axes_text(wanted)}{help}")
        elif names is None and prune(mine) is not prune(other):  # type: ignore[arg-type]
            self.bind(prune(mine), prune(other))  # type: ignore[arg-type]
        elif names is not None:
            self.bind(prune(other), names)  # type: ignore[arg-type]

    def unify_argument(self, kind: Kind, left: Any, right: Any) -> None:
        """Make two arguments of a data type equal. Raises Clash."""
        match kind:
            case Kind.BaseType:
                self.unify_base(left, right)
            case Kind.Dim:
                self.unify_dim(left, right)
            case Kind.Shape:
                self.unify_shape(left, right)
            case _:
                self.unify(left, right)

    def define(self, unknown: Type, type_: Type) -> None:
        """Bind a type that no call decides, as that of a function's result, if it is still open. Raises Clash."""
        unknown, type_ = prune(unknown), prune(type_)  # type: ignore[assignment]
        if isinstance(unknown, Unknown) and not unknown.rigid and not isinstance(type_, Unknown):
            self._bind_type(unknown, type_, by_call=False)

    def _bind_type(self, unknown: Unknown, type_: Type, by_call: bool = True) -> None:
        if any(u is unknown for u in unknowns(type_)):
            raise Clash(unknown, type_, "a type would have to contain itself")
        self.bind(unknown, type_)
        for base in unknowns(type_) if self.gradual and by_call else ():
            if base.weak:
                base.weak = False
                self.worklist.extend(base.watchers)
                base.watchers = []

    # ---- base types

    def unify_base(self, left: object, right: object) -> None:
        """Make two base types equal. Raises Clash."""
        left, right = prune(left), prune(right)  # type: ignore[arg-type]
        if left is right:
            return
        if isinstance(left, Unknown) and isinstance(right, Unknown):
            classes = left.classes if right.classes is None else right.classes & (left.classes or right.classes)
            if classes is not None and not classes:
                raise Clash(left, right, _literal_reason(left, right))
            if left.rigid:
                left, right = right, left
            right.classes = classes
            weak = self._is_weak(left, right)
            stays = left.weak == right.weak == weak
            right.weak, right.literals = weak, left.literals + right.literals
            self.bind(left, right)
            if not stays:  # what was made of it goes the same way
                self.worklist.extend(right.watchers)
                right.watchers = []
        elif isinstance(left, Unknown):
            self._bind_base(left, right)
        elif isinstance(right, Unknown):
            self._bind_base(right, left)
        elif left != right:
            raise Clash(left, right)

    def _is_weak(self, left: Unknown, right: Unknown) -> bool:
        """True if one base type of two is weak: an unknown result decides nothing, a caller's choice does."""
        one, other = (u.weak or (not self.gradual and not u.literals and not u.rigid) for u in (left, right))
        return one and other and (left.weak or right.weak)

    def _bind_base(self, unknown: Unknown, base: object) -> None:
        if isinstance(base, BaseType):
            for literal in unknown.literals:
                if not holds(base, literal.value):
                    raise Clash(unknown, base, _misfit_reason(base, literal.value))
            if unknown.classes is not None and base.base_class not in unknown.classes:
                raise Clash(unknown, base)
        self.bind(unknown, base)

    def restrict(self, base: object, classes: frozenset[BaseClass] | None) -> bool:
        """Demand that a base type is of one of these classes; False if it is not."""
        base = prune(base)  # type: ignore[arg-type]
        if classes is None or isinstance(base, TypeId):
            return True
        if isinstance(base, Unknown):
            both = classes if base.classes is None else base.classes & classes
            base.classes = both
            base.weak = base.weak and BaseClass.INTEGER in both
            return bool(both)
        assert isinstance(base, BaseType)
        return base.base_class in classes

    # ---- shapes and dims

    def unify_shape(self, left: Shape, right: Shape) -> None:
        """Make two shapes equal. Raises Clash."""
        left, right = flat_shape(left), flat_shape(right)
        if len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True)):
            return  # also `Any` and `Any`: as types, these are equal
        at_left, at_right = shape_variable(left), shape_variable(right)
        if at_left is None and at_right is None:
            if len(left) != len(right):
                raise Clash(left, right)
            for a, b in zip(left, right, strict=True):
                self.unify_dim(a, b)
        elif at_left is not None and (len(left) == 1 or at_right is None):
            self._bind_shape(left, at_left, right)
        elif at_right is not None and (len(right) == 1 or at_left is None):
            self._bind_shape(right, at_right, left)
        else:
            self._unify_around(left, at_left or 0, right, at_right or 0)

    def _unify_around(self, left: Shape, at_left: int, right: Shape, at_right: int) -> None:
        """Make two shapes equal, each with dims around its variable: the dims before and after both are equal."""
        before = min(at_left, at_right)
        behind = min(len(left) - at_left, len(right) - at_right) - 1
        for a, b in zip(left[:before], right[:before], strict=True):
            self.unify_dim(a, b)
        for a, b in zip(left[len(left) - behind :], right[len(right) - behind :], strict=True):
            self.unify_dim(a, b)
        left, right = left[before : len(left) - behind], right[before : len(right) - behind]
        if len(left) > 1 and len(right) > 1:
            raise Clash(left, right)
        self.unify_shape(left, right)

    def _bind_shape(self, open_shape: Shape, at: int, other: Shape) -> None:
        tail = len(open_shape) - at - 1
        if len(other) < at + tail or (shape_variable(other) is not None and len(open_shape) > 1):
            raise Clash(open_shape, other)
        for a, b in zip(open_shape[:at], other[:at], strict=True):
            self.unify_dim(a, b)
        for a, b in zip(open_shape[at + 1 :], other[len(other) - tail :], strict=True):
            self.unify_dim(a, b)
        unknown, middle = open_shape[at], other[at : len(other) - tail]
        if isinstance(unknown, Unknown):
            if any(d is unknown for d in middle):
                if unknown.rigid:
                    raise Clash(open_shape, other, _rigid_reason(unknown, middle))
                raise Clash(open_shape, other, "a shape would have to contain itself")
            self.bind(unknown, middle[0] if len(middle) == 1 and _is_shape_variable(middle[0]) else middle)
        elif not (len(middle) == 1 and middle[0] is unknown):
            raise Clash(open_shape, other)

    def unify_dim(self, left: Dim, right: Dim) -> None:
        """Make two dims equal. Raises Clash."""
        left, right = prune(left), prune(right)  # type: ignore[assignment]
        if left is right and left is not ANY:
            return
        if type(left) is int and type(right) is int:
            if left != right:
                raise Clash(left, right)
        elif isinstance(left, Unknown) and left.hint is None and not _mentions(right, left):
            self.bind(left, right)
        elif isinstance(right, Unknown) and right.hint is None and not _mentions(left, right):
            self.bind(right, left)
        else:
            self._equate(left, right)

    def _equate(self, left: Dim, right: Dim) -> None:
        if ANY in (left, right):
            if self.gradual:
                return
            raise Clash(left, right)
        if self.solve_dims(left, right) is False:
            example = counterexample(DimConstraint(left, EQUAL, right))
            raise Clash(left, right, f"{left} is not {right}: it fails for {example}" if example else None)

    def solve_dims(self, left: Dim, right: Dim) -> bool | None:
        """Make two dims equal by what follows from their equation: True if they are now, False if they cannot be. If
        neither is known, they wait for `postpone`, or cannot be shown to be equal."""
        answer = facts().ask(left, EQUAL, right)
        if answer is not None:
            return answer
        solved = solve(subtract(left, right), only=_is_open)
        if solved is not None:
            variable, value = solved
            if isinstance(value, int) and value < 0:
                return False
            self.bind(variable, value)  # type: ignore[arg-type]
            return True
        if self.postpone is None or not any(map(_is_open, (*variables(left), *variables(right)))):
            return False
        self.postpone(left, right)
        return None


def _same_effects(left: object, right: object) -> None:
    """Unify the effects of two functions: a value that may be either has the effects of both."""
    if isinstance(left, Effects) and isinstance(right, Effects) and left is not right:
        left.include(right)
        right.include(left)


def _mentions(dim: Dim, variable: Unknown) -> bool:
    return isinstance(dim, DimExpr) and any(v is variable for v in variables(dim))


_ANY_OF = {Kind.Type: "type", Kind.BaseType: "element type", Kind.Shape: "shape", Kind.Dim: "size"}


def _misfit_reason(base: BaseType, value: int | float) -> str:
    """The reason why a base type does not hold a number. A float may represent others, as that of `zeros(3)` and
    `float(n)`."""
    if isinstance(value, float) and value == 0.0 and not base.is_float:
        return f"a float meets {base}: there is no implicit conversion"
    return misfit_text(base, value)


def _rigid_reason(variable: Unknown, value: Any) -> str:
    """The reason why a variable of an annotation cannot have the required value."""
    other = show_argument((value,) if isinstance(value, Unknown) and value.kind is Kind.Shape else value)
    if isinstance(value, TensorType) and isinstance(base := prune(value.base), Unknown) and base.literals:
        other = "a number"
    return f"{variable.name} is annotated as any {_ANY_OF[variable.kind]}, so it is not {other}"


def _is_open(variable: TypeId | Unknown) -> bool:
    return isinstance(variable, Unknown) and variable.hint is None


def _is_shape_variable(dim: object) -> bool:
    return isinstance(dim, TypeId | Unknown) and dim.kind is Kind.Shape


def _literal_reason(*sides: Unknown) -> str | None:
    literals = [x.value for side in sides for x in side.literals]
    return f"the number {literals[0]} has no dtype that fits here" if literals else None


def flat_shape(shape: Shape) -> Shape:
    """A shape with its bound variables replaced."""
    if all(type(dim) is int for dim in shape):
        return shape
    dims: list[object] = []
    for dim in shape:
        value = prune(dim)
        dims += flat_shape(value) if isinstance(value, tuple) else (value,)
    return tuple(dims)  # type: ignore[arg-type]


def shape_variable(shape: Shape) -> int | None:
    """The position of the first shape variable of a flat shape, or None."""
    for position, dim in enumerate(shape):
        if _is_shape_variable(dim):
            return position
    return None


def unknowns(type_: object) -> Iterator[Unknown]:
    """The unbound variables of a type, shape, base or dim, in order of occurrence. Those with a hint count as known."""
    stack = [type_]
    while stack:
        item = prune(stack.pop())  # type: ignore[arg-type]
        match item:
            case Unknown():
                if item.hint is None:
                    yield item
            case DimExpr():
                yield from (v for v in variables(item) if isinstance(v, Unknown) and v.hint is None)
            case TensorType(base, shape):
                stack += [*reversed(shape), base]
            case TupleType(items):
                stack += reversed(items)
            case FunctionType(parameters, result):
                stack += [result, *reversed(parameters)]
            case RefType(content) | StackType(content):
                stack.append(content)
            case QuantifiedType(_, body):
                stack.append(body)
            case DataType(_, arguments):
                stack += reversed(arguments)
            case tuple():
                stack += reversed(item)
            case _:
                pass


def outer_unknowns(type_: Type) -> Iterator[Unknown]:
    """The unbound variables of a type that are neither a list's elements nor a data type's arguments: `List[?]` has
    none."""
    type_ = prune(type_)  # type: ignore[assignment]
    match type_:
        case DataType() | StackType():
            return
        case TupleType(items):
            for item in items:
                yield from outer_unknowns(item)
        case RefType(content):
            yield from outer_unknowns(content)
        case _:
            yield from unknowns(type_)


def is_known(type_: object) -> bool:
    """True if a type contains no variable of the solver."""
    return next(unknowns(type_), None) is None


def resolve_argument(argument: Any) -> Any:
    argument = prune(argument)
    if isinstance(argument, tuple):
        return flat_shape(argument)
    return argument if isinstance(argument, int | BaseType | AnyDim | DimExpr) else resolve(argument)


def _axes(type_: TensorType) -> Any:
    return prune(type_.axes) if isinstance(type_.axes, Unknown) else type_.axes


def resolve(type_: Type) -> Type:
    """The type with every bound variable replaced."""
    type_ = prune(type_)  # type: ignore[assignment]
    match type_:
        case TensorType(base, shape):
            return TensorType(prune(base), flat_shape(shape), _axes(type_))  # type: ignore[arg-type]
        case DataType(definition, arguments):
            return DataType(definition, tuple(resolve_argument(a) for a in arguments)) if arguments else type_
        case TupleType() | FunctionType() | RefType() | StackType():
            return map_type_parts(type_, resolve)
        case QuantifiedType(identifiers, body):
            return QuantifiedType(identifiers, resolve(body))
        case TypeId() | Unknown():
            return type_
        case _:
            raise InternalError(f"no type: {type_!r}")


def _forms_agree(one: Form | None, other: Form | None) -> bool:
    """True if tuples of these forms may be one type: one that is only known as a tuple may be any structure, not
    None."""
    return one == other or (None in (one, other) and NONE.form not in (one, other))


def erase_forms(type_: Type, none_stays: bool = False) -> Type:
    """The type with every record and list as the tuple that it is at run time, and None as the empty one."""

    def erase(part: Type) -> Type:
        return erase_forms(part, none_stays)

    match type_:
        case TupleType((), form) if none_stays and form == NONE.form:
            return type_
        case TupleType(items):
            return TupleType(tuple(map(erase, items)))
        case _:
            return map_type_parts(type_, erase)
