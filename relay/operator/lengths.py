"""Symbolic dims as the lengths in users' shape rules: number-like objects.

A rule is a Python function that compares and calculates. A comparison of lengths asks the facts in force
(`relay.ir.sizes.facts`); what they leave open raises `Undetermined`, and the rule is asked again when more is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from relay.ir import dims
from relay.ir.dims import Dim, DimExpr, Kind, TypeId, Unknown, resolve_dim, variables
from relay.ir.sizes.facts import AT_LEAST, EQUAL, DimConstraint, facts
from relay.operator.undetermined import Undetermined


@attrs.frozen(eq=False, repr=False)
class Length:
    """The extent of an axis, which need not be a number."""

    dim: Dim

    def __repr__(self) -> str:
        return str(self.dim)

    def __hash__(self) -> int:
        return hash(self.dim)

    # ---- questions

    def _decide(self, relation: str, left: Any, right: Any) -> bool:
        a, b = dim_of(left), dim_of(right)
        answer = facts().ask(a, relation, b)
        if answer is None:
            waiting = (v for d in (a, b) for v in variables(resolve_dim(d)) if isinstance(v, Unknown))
            raise Undetermined(*dict.fromkeys(waiting), question=DimConstraint(a, relation, b))
        return answer

    def __eq__(self, other: object) -> bool:
        return self._decide(EQUAL, self, other) if is_length(other) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self._decide(AT_LEAST, self, other) if is_length(other) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self._decide(AT_LEAST, other, self) if is_length(other) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return not self._decide(AT_LEAST, other, self) if is_length(other) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return not self._decide(AT_LEAST, self, other) if is_length(other) else NotImplemented

    def __bool__(self) -> bool:
        return not self._decide(EQUAL, self, 0)

    def __index__(self) -> int:
        number = facts().number(self.dim)
        if number is None:
            raise undetermined_sizes([(self.dim,)])
        return number

    __int__ = __index__

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        return length(dims.add(self.dim, dim_of(other))) if is_length(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return length(dims.subtract(self.dim, dim_of(other))) if is_length(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return length(dims.subtract(dim_of(other), self.dim)) if is_length(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return length(dims.multiply(self.dim, dim_of(other))) if is_length(other) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return length(dims.floor_divide(self.dim, dim_of(other))) if is_length(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return length(dims.floor_divide(dim_of(other), self.dim)) if is_length(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return length(dims.modulo(self.dim, dim_of(other))) if is_length(other) else NotImplemented

    def __neg__(self) -> Any:
        return length(dims.subtract(0, self.dim))


def is_length(value: object) -> bool:
    """True if a value is a number of elements."""
    return isinstance(value, int | Length | DimExpr | Unknown) or (isinstance(value, TypeId) and value.kind is Kind.Dim)


def length(dim: Dim) -> Any:
    """A dim as a number, or as something that is used like one."""
    dim = resolve_dim(dim)
    return dim if isinstance(dim, int) else Length(dim)


def dim_of(value: Any) -> Any:
    """The dim that a length is; anything else is itself."""
    return value.dim if isinstance(value, Length) else value


def undetermined_sizes(shapes: Sequence[Sequence[Dim]]) -> Undetermined:
    """The exception that waits for the numbers that dims are."""
    return Undetermined(
        *(v for shape in shapes for d in shape for v in variables(resolve_dim(d)) if isinstance(v, Unknown))
    )


def lengths(shapes: Sequence[Sequence[Dim]]) -> list[tuple[Any, ...]]:
    """Shapes as a rule of a user's gets them."""
    return [tuple(map(length, shape)) for shape in shapes]
