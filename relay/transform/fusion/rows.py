"""Row-wise fusion: operator calls that are computed row by row together, such as a softmax or a layer norm.

    m = max(x, axis=1); e = exp(x - m); s = sum(e, axis=1); y = e / s

All of these have the rows of x, and each row depends on the same row of the others only, so that one loop over rows
computes them all, and keeps one row of the intermediate values.

A row is identified by the first axes that all results have in common. Elementwise calls keep an axis where the operand
has the result's rank, reductions where the rule for names says so (`relay.operator.axes`), reshaping by expanding and
squeezing after the rows does not move it.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.dims import Dim, multiply, product
from relay.ir.expr import Binding, OpCall, Var
from relay.ir.sizes.facts import facts
from relay.ir.types import BaseType, Shape, TensorType
from relay.operator import IndexKind, Operator, Pattern, lookup
from relay.operator.axes import axis_rule
from relay.operator.relation import Relation

LONGEST_ROW = 1 << 15
"""Bytes of one row of one result: so much stays in the processor's caches until the row is done."""

FEWEST_ROWS, SMALL = 16, 1 << 17
"""With fewer rows, the elements of tensors larger than this are rather shared among threads one by one."""

_ARITHMETIC = (Pattern.ELEMENTWISE, Pattern.BROADCAST)


def in_rows(bindings: Sequence[Binding]) -> bool:
    """True if calls, in the order of their block, have rows in common, in which something is reduced."""
    inner = {b.targets[0]: _tensor(b.targets[0]).shape for b in bindings}
    count = min(map(len, inner.values()))
    reduces = False
    for binding in bindings:
        call = binding.value
        assert isinstance(call, OpCall)
        operator, shape = lookup(call.operator), inner[binding.targets[0]]
        if operator.compute is None or not _is_plain(binding):
            return False
        reduces |= operator.pattern is Pattern.REDUCTION
        count = min(count, _common_dims(shape, next(iter(inner.values()))))
        for position, atom in enumerate(call.arguments):
            if operator.pattern is Pattern.REDUCTION:
                type_ = getattr(atom, "type", None)
                if not isinstance(type_, TensorType):
                    return False
                count = min(
                    count, _kept_axis_count(operator, call, position, type_.shape), _common_dims(type_.shape, shape)
                )
            elif isinstance(atom, Var) and atom in inner:
                if operator.pattern in _ARITHMETIC:
                    count = min(count, _common_dims(inner[atom], shape) if len(inner[atom]) == len(shape) else 0)
                elif operator.indexing.kind is IndexKind.RESHAPE:
                    count = min(count, _common_dims(inner[atom], shape))
                else:
                    return False
    return reduces and count > 0 and _pays(bindings, count)


def _pays(bindings: Sequence[Binding], count: int) -> bool:
    """True if there are rows enough, and none is long; assumed for symbolic sizes."""
    rows = product(_tensor(bindings[0].targets[0]).shape[:count])
    are_few = facts().at_least(rows, FEWEST_ROWS) is False
    for binding in bindings:
        type_ = _tensor(binding.targets[0])
        assert isinstance(type_.base, BaseType)
        row: Dim = product(type_.shape[count:])
        if isinstance(row, int) and row * type_.base.dtype.itemsize > LONGEST_ROW:
            return False
        if are_few and facts().at_least(SMALL, multiply(row, rows)) is not True:
            return False
    return True


def _common_dims(one: Shape, other: Shape) -> int:
    """The number of first dims that two shapes have in common."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _kept_axis_count(operator: Operator, call: OpCall, position: int, shape: Shape) -> int:
    """The number of first axes of an operand that a reduction keeps in place."""
    relation = operator.relation
    rule = axis_rule(relation.shape if isinstance(relation, Relation) else relation)
    if rule is None or position or len(call.arguments) != 1:
        return 0
    names = tuple(map(str, range(len(shape))))
    found = rule(names, **call.attributes)
    count = 0
    while found is not None and count < min(len(found), len(names)) and found[count] == names[count]:
        count += 1
    return count


def _is_plain(binding: Binding) -> bool:
    """True if a call is of a kind that is computed element by element."""
    assert isinstance(binding.value, OpCall)
    operator = lookup(binding.value.operator)
    kinds = (*_ARITHMETIC, Pattern.REDUCTION)
    return operator.memory.in_place is None and (
        operator.pattern in kinds or operator.indexing.kind is IndexKind.RESHAPE
    )


def _tensor(variable: Var) -> TensorType:
    assert isinstance(variable.type, TensorType)
    return variable.type
