"""Loop splitting: loops are cut where conditions on their index change, so that parts need no choices.

    for i < 500: y[i] = if i < 200 then a[i] else b[i - 200]        concatenations, paddings, rolls

becomes a loop that copies a and one that copies b, each in vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import attrs
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

from relay.codegen.kernels.loops import loop, vectors
from relay.codegen.kernels.stage import CALL, CHOICE, NAMES, features, is_choice, mentions, substitute_variables
from relay.codegen.tvm.tir import Expression, Statement, tirx

MOST = 16  # parts of a loop: each is compiled by itself
LONG = 16  # elements of the longest part, from which cutting pays

_COMPARISONS: tuple[Any, ...] = (tirx.LT, tirx.LE, tirx.GT, tirx.GE)


@attrs.frozen(eq=False)
class _ConditionChange:
    """A condition on the index, and the first index at which it is another than at 0."""

    condition: Any
    at: int
    before: bool

    def holds(self, index: int) -> bool:
        """Whether the condition holds at an index."""
        return self.before == (index < self.at)


def split_loop(
    extent: int, width: int, dtype: str, body: Callable[[Expression], Sequence[Statement]]
) -> list[Statement] | None:
    """The loop of `body(i)` for all i below the extent in parts, in vectors of the width; None where it has no
    conditions to cut it at, or where parts would be too many or too short."""
    index = tirx.Var("at", dtype)
    statements = list(body(index))
    changes = _changes(statements, index, extent)
    bounds = sorted({0, extent, *(change.at for change in changes)})
    if len(bounds) < 3 or len(bounds) > MOST + 1 or max(b - a for a, b in pairwise(bounds)) < LONG:
        return None
    names: list[Any] = []
    for statement in statements:
        structural_walk(statement, ((tirx.Bind, lambda bind: names.append(bind.var)),))
    made: list[Statement] = []
    for begin, end in pairwise(bounds):
        part = [_resolve_conditions(statement, changes, begin) for statement in statements]
        if not _in_vectors(part):
            return None

        def part_body(i: Expression, part: Sequence[Statement] = part, begin: int = begin) -> list[Statement]:
            fresh = {name: tirx.Var(name.name, name.ty) for name in names}  # of the same elements in each part
            return [substitute_variables(statement, {index: i + begin, **fresh}) for statement in part]

        made += vectors(end - begin, width, dtype, part_body) if width > 1 else loop(end - begin, dtype, part_body)
    return made


def _changes(statements: Sequence[Statement], index: Any, extent: int) -> list[_ConditionChange]:
    """The conditions that change once as the index grows, whatever the other variables are."""
    found: list[Any] = []
    for statement in statements:
        structural_walk(statement, tuple((kind, found.append) for kind in _COMPARISONS))
    return [change for condition in found if (change := _change(condition, index, extent)) is not None]


def _change(condition: Any, index: Any, extent: int) -> _ConditionChange | None:
    if not mentions(condition, index):
        return None
    analyzer = Analyzer()
    difference = condition.a - condition.b
    if str(difference.ty) not in ("int32", "int64"):
        return None
    step = analyzer.simplify(substitute_variables(difference, {index: index + 1}) - difference)
    first = analyzer.simplify(substitute_variables(difference, {index: tirx.const(0, str(index.ty))}))
    if not isinstance(step, tirx.IntImm) or not isinstance(first, tirx.IntImm) or int(step.value) == 0:
        return None

    def holds(i: int) -> bool:
        value = int(first.value) + i * int(step.value)
        return {tirx.LT: value < 0, tirx.LE: value <= 0, tirx.GT: value > 0, tirx.GE: value >= 0}[type(condition)]

    if holds(0) == holds(extent - 1):
        return _ConditionChange(condition, extent, holds(0))
    low, high = 0, extent - 1  # the condition is that of 0 at `low`, and the other at `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) == holds(0) else (low, middle)
    return _ConditionChange(condition, high, holds(0))


def _resolve_conditions(statement: Statement, changes: Sequence[_ConditionChange], begin: int) -> Statement:
    """The statement from an index on, up to the next change."""

    def comparison(node: Any) -> Any:
        found = next((change for change in changes if change.condition.same_as(node)), None)
        return node if found is None else tirx.const(found.holds(begin), "bool")

    known = structural_map(statement, tuple((kind, comparison) for kind in _COMPARISONS))

    def conjunction(node: Any) -> Any:
        if isinstance(node.a, tirx.IntImm):
            return node.b if int(node.a.value) else node.a
        if isinstance(node.b, tirx.IntImm):
            return node.a if int(node.b.value) else node.b
        return node

    def either(node: Any) -> Any:
        if isinstance(node.a, tirx.IntImm):
            return node.a if int(node.a.value) else node.b
        if isinstance(node.b, tirx.IntImm):
            return node.b if int(node.b.value) else node.a
        return node

    def select(node: Any) -> Any:
        chosen = node.condition
        return (
            node if not isinstance(chosen, tirx.IntImm) else node.true_value if int(chosen.value) else node.false_value
        )

    def call(node: Any) -> Any:
        if not is_choice(node) or not isinstance(node.args[0], tirx.IntImm):
            return node
        return node.args[1] if int(node.args[0].value) else node.args[2]

    return structural_map(known, ((tirx.And, conjunction), (tirx.Or, either), (tirx.Select, select), (Call, call)))


def _in_vectors(statements: Sequence[Statement]) -> bool:
    found = {feature for statement in statements for feature in features(statement)}
    return CALL not in found and not {CHOICE, NAMES} <= found


__all__ = ["split_loop"]
