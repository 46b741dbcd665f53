"""Value-range analysis: a function's integer scalars as dims, and comparisons of them.

    loop for k < n { a = subtract(n, 1); i = subtract(a, k); c = less(i, n) }       i is n - 1 - k, c is true

A symbol stands for the counter of a loop and for each number that is decided only at run time. It has a least and a
greatest value, which mention only symbols that are older. So the least value of a dim is found by replacing its symbols
by one of the two, the youngest first (Fourier-Motzkin elimination where each variable has one bound on each side); the
remaining dim mentions only sizes of the module, and is decided by the facts in force.

The effect of an operator on dims is in its definition (`on_dims`). Integers wrap around and dims do not, so a result
that may leave the range of its dtype is a symbol of its own.
"""

from __future__ import annotations

import numpy as np

from relay.ir.dims import (
    ANY,
    LARGEST_SIZE,
    DataDependentDim,
    Dim,
    DimExpr,
    Kind,
    TypeId,
    Unknown,
    add,
    multiply,
    subtract,
    variables,
)
from relay.ir.expr import Atom, Block, Constant, Extent, Loop, OpCall, Var
from relay.ir.sizes.facts import AT_LEAST, EQUAL, DimConstraint, facts
from relay.ir.traverse import walk
from relay.ir.types import BaseClass, BaseType, TensorType
from relay.operator import lookup

_MOST_TERMS = 8  # of a dim; longer ones become symbols, so that each operator costs the same


class ValueRanges:
    """The integer scalars of one function body."""

    def __init__(self, body: Block) -> None:
        self._dims: dict[Var, Dim] = {}
        self._ranges: dict[TypeId, tuple[int, Dim, Dim]] = {}  # age, least, greatest
        self.decided: dict[Var, bool] = {}
        """The comparisons that have one answer in all runs."""
        for binding in walk(body):
            match binding.value:
                case OpCall() as call:
                    self._call(binding.targets[0], call)
                case Extent(dim):
                    self._dims[binding.targets[0]] = dim
                case Var() | Constant() as atom if (known := self.scalar_dim(atom)) is not None:
                    self._dims[binding.targets[0]] = known
                case Loop(counter=counter) if counter is not None:
                    count = self.scalar_dim(counter.count)
                    assert count is not None
                    self._dims[counter.index] = self._symbol(counter.index.name, 0, subtract(count, 1))
                case _:
                    pass

    def scalar_dim(self, atom: Atom) -> Dim | None:
        """The dim that an atom is; None for what is not an integer scalar."""
        if isinstance(atom, Constant):
            scalar = atom.value.ndim == 0 and _is_integer(atom.type)
            return int(atom.value) if scalar else None
        if not isinstance(atom, Var) or not _is_integer(atom.type):
            return None
        found = self._dims.get(atom)
        if found is None:
            found = self._dims[atom] = self._symbol(atom.name, *_range(atom.type))
        return found

    def count(self, loop: Loop) -> Dim | None:
        """The number of rounds of a loop with a counter, if it runs all of them; it may be below 0, which is none."""
        return None if loop.counter is None else self.scalar_dim(loop.counter.count)

    def is_size(self, dim: Dim) -> bool:
        """True if a dim is at least 1, and mentions only sizes of the module."""
        return self.is_of_sizes(dim) and self.at_least(dim, 1) is True

    def is_of_sizes(self, dim: Dim) -> bool:
        """True if a dim mentions only sizes of the module."""
        return not any(v in self._ranges for v in variables(dim))

    def at_least(self, left: Dim, right: Dim) -> bool | None:
        """True if left >= right always, False if never; None if unknown."""
        difference = subtract(left, right)
        if self._is_natural(difference):
            return True
        return False if self._is_natural(subtract(-1, difference)) else None

    def equal(self, left: Dim, right: Dim) -> bool | None:
        """True if left == right always, False if never; None if unknown."""
        found = facts().equal(left, right)
        if found is not None and not any(v in self._ranges for d in (left, right) for v in variables(d)):
            return found
        difference = facts().normal(subtract(left, right))
        if isinstance(difference, int):
            return difference == 0
        apart = self._is_natural(subtract(difference, 1)) or self._is_natural(subtract(-1, difference))
        return False if apart else None

    def holds(self, constraint: DimConstraint) -> bool | None:
        """True if a constraint holds always, False if never; None if unknown."""
        if constraint.relation == AT_LEAST:
            return self.at_least(constraint.left, constraint.right)
        equal = self.equal(constraint.left, constraint.right)
        return equal if equal is None or constraint.relation == EQUAL else not equal

    # ---- what operators are

    def _call(self, target: Var, call: OpCall) -> None:
        on_dims = lookup(call.operator).on_dims
        if on_dims is None or not isinstance(target.type, TensorType) or target.type.shape != ():
            return
        operands = [self.scalar_dim(a) for a in call.arguments]
        if None in operands:
            return
        found = on_dims(*operands, **call.attributes)
        if isinstance(found, DimConstraint):
            answer = self.holds(found)
            if answer is not None:
                self.decided[target] = answer
        elif found is not None and found is not ANY and self._fits(found, target.type):
            self._dims[target] = found

    def _fits(self, dim: Dim, type_: TensorType) -> bool:
        """True if a dim is never outside of a dtype's range."""
        if isinstance(dim, DimExpr) and len(dim.terms) > _MOST_TERMS:
            return False
        least, greatest = _range(type_)
        return self._is_natural(subtract(greatest, dim)) and self._is_natural(subtract(dim, least))

    # ---- symbols

    def _symbol(self, name: str, least: Dim, greatest: Dim) -> TypeId:
        symbol = TypeId(name, Kind.Dim)
        self._ranges[symbol] = len(self._ranges), least, greatest
        return symbol

    def _is_natural(self, dim: Dim) -> bool:
        """True if dim >= 0 always."""
        while True:
            own = [v for v in variables(dim) if isinstance(v, TypeId) and v in self._ranges]
            if not own:
                return _size_is_natural(dim)
            youngest = max(own, key=lambda v: self._ranges[v][0])
            split = _split(dim, youngest)
            if split is None:
                return False
            coefficient, rest = split
            _, least, greatest = self._ranges[youngest]
            if self._is_natural(coefficient):
                dim = add(multiply(coefficient, least), rest)
            elif self._is_natural(subtract(0, coefficient)):
                dim = add(multiply(coefficient, greatest), rest)
            else:
                return False


def _size_is_natural(dim: Dim) -> bool:
    """True if dim >= 0, for all sizes that are assumed."""
    if isinstance(dim, int):
        return dim >= 0
    if facts().at_least(dim, 0):
        return True
    for size in set(variables(dim)):  # the greatest sizes where they are subtracted
        split = _split(dim, size)
        if split is not None and isinstance(split[0], int) and split[0] < 0:
            dim = add(
                multiply(split[0], size.upper_bound if isinstance(size, DataDependentDim) else LARGEST_SIZE), split[1]
            )
    return dim >= 0 if isinstance(dim, int) else facts().at_least(dim, 0) is True


def _split(dim: Dim, symbol: TypeId | Unknown) -> tuple[Dim, Dim] | None:
    """The dims a and b with dim == a * symbol + b, of which none mentions the symbol; None if there are none."""
    if dim is symbol:
        return 1, 0
    if not isinstance(dim, DimExpr):
        return 0, dim
    coefficient: Dim = 0
    rest: Dim = 0
    for monomial, number in dim.terms:
        factors = dict(monomial)
        if factors.pop(symbol, 0) > 1:
            return None
        part = DimExpr(frozenset({(frozenset(factors.items()), number)})) if factors else number
        if not isinstance(part, int) and symbol in variables(part):
            return None
        if len(factors) < len(monomial):
            coefficient = add(coefficient, part)
        else:
            rest = add(rest, part)
    return coefficient, rest


def _is_integer(type_: object) -> bool:
    return (
        isinstance(type_, TensorType)
        and type_.shape == ()
        and isinstance(type_.base, BaseType)
        and type_.base.base_class is BaseClass.INTEGER
    )


def _range(type_: object) -> tuple[int, int]:
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    limits = np.iinfo(type_.base.name)
    return int(limits.min), int(limits.max)
