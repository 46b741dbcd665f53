"""Shape policy: specialized and symbolic programs of a function, and their selection by a call.

The first call with certain dtypes and ranks gets a program for its very sizes, which is the fastest. A later call with
other sizes gets a program in which those axes are symbolic that have had different sizes so far; it serves all calls
whose sizes satisfy what it assumes. So a function that is called with every size is elaborated a few times only.

The sizes inside of values of data types are always those of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import ShapeError
from relay.ir.dims import ANY, TypeId, evaluate, variables
from relay.ir.expr import Module
from relay.ir.sizes.extents import Place, places, symbolic_dims
from relay.ir.types import BASE_TYPES, BaseType, Form, Shape, TensorType
from relay.typecheck.elaboration import Argument, ClosureArg, ListArg, StaticArg, StructureArg, holds_returned
from relay.typecheck.guards import LARGEST, SMALLEST


def axes(arguments: Sequence[Argument]) -> dict[Place, int]:
    """The sizes of the axes that may be symbolic."""
    return {place: size for position, a in enumerate(arguments) for place, size in _axes(a, position, ())}


def _axes(argument: Argument, position: int, path: tuple[int, ...]) -> Iterator[tuple[Place, int]]:
    match argument:
        case TensorType(_, shape):
            for axis, dim in enumerate(shape):
                assert isinstance(dim, int)
                yield Place(position, path, axis), dim
        case tuple() | StructureArg() | ClosureArg():
            for index, item in enumerate(argument if isinstance(argument, tuple) else argument.items):
                yield from _axes(item, position, (*path, index))
        case _:
            pass


def kind(key: object) -> object:
    """The common part of calls that one program can serve: a signature's part with ranks in place of shapes."""
    match key:
        case (str() as dtype, tuple() as shape) if dtype in BASE_TYPES:
            return dtype, len(shape)
        case ("tuple", form, *parts):
            return ("tuple", form, *map(kind, parts))
        case ("returned", node, *parts):
            return ("returned", node, *map(kind, parts))
        case _:
            return key


Sizes: TypeAlias = dict[tuple[int | str, ...], Shape]
"""The sizes of arrays in lists of any length, by the place of the list, its arrays' dtype and their rank; Any where
they have differed."""


def of_any_length(
    key: object, argument: Argument, place: tuple[int, ...], sizes: Sizes, examples: bool = False
) -> tuple[object, Argument]:
    """A signature's part and its argument with lists of any length in place of those whose elements are all alike, or
    arrays that differ in their first sizes only. In a list of `examples` arrays may differ in all sizes, and those of
    earlier calls count, too."""
    match key, argument:
        case ("tuple", form, *keys), tuple() | StructureArg():
            items = argument.items if isinstance(argument, StructureArg) else argument
            inner = enumerate(zip(keys, items, strict=True))
            parts = [of_any_length(k, item, (*place, n), sizes) for n, (k, item) in inner]
            if isinstance(form, Form) and form.cls is list and parts:
                found = _of_elements(parts, place, sizes, examples)
                if found is not None:
                    return found
            inside = tuple(item for _, item in parts)
            changed = StructureArg(argument.form, inside) if isinstance(argument, StructureArg) else inside
            return ("tuple", form, *(k for k, _ in parts)), changed
        case _:
            return key, argument


def _of_elements(
    parts: Sequence[tuple[object, Argument]], place: tuple[int, ...], sizes: Sizes, examples: bool
) -> tuple[object, Argument] | None:
    """The same for a list of these elements; None where they are not alike."""
    shapes = [a.shape for _, a in parts if isinstance(a, TensorType)]
    keys = {kind(k) for k, _ in parts}
    if len(shapes) == len(parts) and len(keys) == 1:
        first = parts[0][1]
        assert isinstance(first, TensorType) and isinstance(first.base, BaseType)
        own: tuple[int | str, ...] = (*place, first.base.name, len(first.shape))
        before = sizes.get(own, ())
        known = before if examples or ANY in before else ()
        shape = _joined_sizes([known, *shapes] if known else shapes)
        if not examples and (ANY in shape[1:] or ANY in before[1:]):
            return None
        sizes[own] = shape
        return ("list", frozenset([(first.base.name, shape)])), ListArg((TensorType(first.base, shape),))
    if len({k for k, _ in parts}) > 1 or isinstance(parts[0][1], StaticArg) or holds_returned(parts[0][1]):
        return None
    return ("list", frozenset(k for k, _ in parts)), ListArg((parts[0][1],))


def _joined_sizes(shapes: Sequence[Shape]) -> Shape:
    """The shape of one rank that all of some shapes are of."""
    return tuple(found[0] if len(set(found)) == 1 else ANY for found in zip(*shapes, strict=True))


def refuse_sizes(name: str, general: Module, arguments: Sequence[Argument]) -> None:
    """Raise ShapeError if the sizes of a call are none that the type of a function allows: `where n >= 1`. What only a
    branch or a round of a loop needs, which may not run, is not a reason.

    `general`: its program for all sizes.
    """
    given = axes([a for a in arguments if not isinstance(a, StaticArg)])
    shown = symbolic_dims(general)
    sizes = {dim: given[place] for dim, place in shown.items() if place in given}
    for constraint in general.where:
        mentioned = [*variables(constraint.left), *variables(constraint.right)]
        if not constraint.always or any(v not in sizes for v in mentioned):
            continue
        if not constraint.holds(evaluate(constraint.left, sizes), evaluate(constraint.right, sizes)):
            found = {v: shown[v] for v in mentioned if isinstance(v, TypeId)}
            values = " and ".join(f"{dim} is {sizes[dim]}" for dim in found)
            notes = tuple(
                f"{dim} is the extent of axis {place.axis} of {general.main.parameters[place.parameter].name}"
                for dim, place in found.items()
            )
            raise ShapeError(f"{name} needs {constraint}, but {values}", constraint.span, notes=notes)


@attrs.frozen(eq=False)
class SymbolicSignature:
    """The signature of a program with symbolic sizes."""

    module: Module

    def refusal(self, arguments: Sequence[Argument]) -> str | None:
        """The reason why the program does not serve these arguments, whose dtypes and structure it has; None if it
        does."""
        given = axes([a for a in arguments if not isinstance(a, StaticArg)])
        shown = symbolic_dims(self.module)
        sizes = {dim: given[place] for dim, place in shown.items()}
        for dim, size in sizes.items():
            if not SMALLEST <= size <= LARGEST:
                return f"{dim} = {size}, but the program is for sizes of at least {SMALLEST}"
        return self._mismatch(given, sizes) or self._violation(sizes)

    def _mismatch(self, given: Mapping[Place, int], sizes: Mapping[TypeId, int]) -> str | None:
        for place, dim in places(self.module.main.type.parameters, numbers=True):
            if place in given and given[place] != evaluate(dim, sizes):
                name = self.module.main.parameters[place.parameter].name
                return f"axis {place.axis} of {name} is {given[place]}, but the program is for {dim}"
        return None

    def _violation(self, sizes: Mapping[TypeId, int]) -> str | None:
        for constraint in self.module.where:
            if not constraint.holds(evaluate(constraint.left, sizes), evaluate(constraint.right, sizes)):
                place = f" (at {constraint.span})" if constraint.span is not None else ""
                return f"the program assumes {constraint}{place}"
        return None


@attrs.define(eq=False)
class SizeHistory:
    """The sizes that calls of one kind have had: those of the first, and the axes in which others differed."""

    first: dict[Place, int]
    varying: set[Place] = attrs.field(factory=set)

    def with_call(self, given: Mapping[Place, int]) -> set[Place]:
        """The axes that vary if there is this call, too."""
        return self.varying | {place for place, size in given.items() if self.first[place] != size}
