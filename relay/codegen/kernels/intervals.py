"""Loop splitting: loops are cut where conditions on their index change, so that parts need no choices.

    for i < 500: y[i] = if i < 200 then a[i] else b[i - 200]        concatenations, paddings, rolls

becomes a loop that copies a and one that copies b, each in vectors. Where sizes are symbolic, so are the ends of the
parts; then their order has to be the same for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import attrs
from tvm.ir import Call, Range
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

from relay.codegen.kernels.loops import cast, loop, vectors
from relay.codegen.kernels.stage import CALL, CHOICE, NAMES, Extent, features, is_choice, mentions, substitute_variables
from relay.codegen.tvm.tir import Expression, Statement, tirx
from relay.ir.dims import LARGEST_SIZE

MOST = 16  # parts of a loop: each is compiled by itself
MOST_SYMBOLIC = 8  # the same where ends are symbolic: each part is a loop of vectors and one for what is left over
LONG = 16  # elements of the longest part, from which cutting pays

_COMPARISONS: tuple[Any, ...] = (tirx.LT, tirx.LE, tirx.GT, tirx.GE)


@attrs.frozen(eq=False)
class _ConditionChange:
    """A condition on the index, and the first index at which it is another than at 0, or than before any index."""

    condition: Any
    at: Extent
    before: bool


@attrs.frozen(eq=False)
class _Cut:
    """The ends of the parts of a loop, and after how many of them each condition is another."""

    bounds: list[Extent]
    changes: list[tuple[_ConditionChange, int]]

    def condition_values(self, part: int) -> list[tuple[Any, bool]]:
        """The conditions with what they are in a part."""
        return [(change.condition, change.before == (part < rank)) for change, rank in self.changes]


def split_loop(
    extent: Extent, width: int, dtype: str, body: Callable[[Expression], Sequence[Statement]]
) -> list[Statement] | None:
    """The loop of `body(i)` for all i below the extent in parts, in vectors of the width; None where it has no
    conditions to cut it at, or where parts would be too many or too short."""
    index = tirx.Var("at", dtype)
    statements = list(body(index))
    cut = _cut(statements, index, extent) if isinstance(extent, int) else _symbolic_cut(statements, index, extent)
    if cut is None:
        return None
    names: list[Any] = []
    for statement in statements:
        structural_walk(statement, ((tirx.Bind, lambda bind: names.append(bind.var)),))
    made: list[Statement] = []
    for number_, (begin, end) in enumerate(pairwise(cut.bounds)):
        part = [_resolve_conditions(statement, cut.condition_values(number_)) for statement in statements]
        if not _in_vectors(part):
            return None

        def part_body(i: Expression, part: Sequence[Statement] = part, begin: Extent = begin) -> list[Statement]:
            fresh = {name: tirx.Var(name.name, name.ty) for name in names}  # of the same elements in each part
            return [substitute_variables(statement, {index: i + begin, **fresh}) for statement in part]

        made += vectors(end - begin, width, dtype, part_body) if width > 1 else loop(end - begin, dtype, part_body)
    return made


def _conditions(statements: Sequence[Statement]) -> list[Any]:
    found: list[Any] = []
    for statement in statements:
        structural_walk(statement, tuple((kind, found.append) for kind in _COMPARISONS))
    return found


def _cut(statements: Sequence[Statement], index: Any, extent: int) -> _Cut | None:
    changes = [c for condition in _conditions(statements) if (c := _change(condition, index, extent)) is not None]
    bounds = sorted({0, extent, *(change.at for change in changes)})
    if len(bounds) < 3 or len(bounds) > MOST + 1 or max(b - a for a, b in pairwise(bounds)) < LONG:
        return None
    return _Cut(bounds, [(change, bounds.index(change.at)) for change in changes])


def _step(condition: Any, index: Any) -> tuple[int, Expression] | None:
    """The numbers with which a condition compares `step * index + first` and 0, whatever the other variables are."""
    difference = condition.a - condition.b
    dtype = str(difference.ty)
    if dtype not in ("int32", "int64"):
        return None
    counting = index
    if dtype != str(index.ty):  # an axis whose indices are shorter
        counting = tirx.Var("at", dtype)
        difference = structural_map(
            difference, ((tirx.Cast, lambda c: counting if str(c.ty) == dtype and c.value.same_as(index) else c),)
        )
    if not mentions(difference, counting) or (counting is not index and mentions(difference, index)):
        return None
    analyzer = Analyzer()
    step = analyzer.simplify(substitute_variables(difference, {counting: counting + 1}) - difference)
    first = analyzer.simplify(substitute_variables(difference, {counting: tirx.const(0, dtype)}))
    return (int(step.value), first) if isinstance(step, tirx.IntImm) and int(step.value) != 0 else None


def _change(condition: Any, index: Any, extent: int) -> _ConditionChange | None:
    """The change of a condition that changes once as the index grows."""
    found = _step(condition, index)
    if found is None or not isinstance(found[1], tirx.IntImm):
        return None
    step, first = found[0], int(found[1].value)

    def holds(i: int) -> bool:
        value = first + i * step
        return {tirx.LT: value < 0, tirx.LE: value <= 0, tirx.GT: value > 0, tirx.GE: value >= 0}[type(condition)]

    if holds(0) == holds(extent - 1):
        return _ConditionChange(condition, extent, holds(0))
    low, high = 0, extent - 1  # the condition is that of 0 at `low`, and the other at `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) == holds(0) else (low, middle)
    return _ConditionChange(condition, high, holds(0))


def _symbolic_cut(statements: Sequence[Statement], index: Any, extent: Expression) -> _Cut | None:
    sizes = tirx.analysis.undefined_vars(extent, [])
    changes = [c for condition in _conditions(statements) if (c := _symbolic_change(condition, index, sizes))]
    analyzer = Analyzer()
    for size in sizes:
        analyzer.bind(size, Range.from_min_extent(tirx.const(0, str(size.ty)), tirx.const(LARGEST_SIZE, str(size.ty))))

    def is_ahead(left: Extent, right: Extent) -> bool:
        return bool(analyzer.can_prove(right - left >= 0))

    groups: list[list[_ConditionChange]] = []  # of equal indices, in order
    for change in changes:
        position = next((n for n, group in enumerate(groups) if is_ahead(change.at, group[0].at)), len(groups))
        if not all(is_ahead(group[0].at, change.at) for group in groups[:position]):
            return None
        if position < len(groups) and is_ahead(groups[position][0].at, change.at):
            groups[position].append(change)
        else:
            groups.insert(position, [change])
    if not 1 <= len(groups) < MOST_SYMBOLIC:
        return None
    zero = tirx.const(0, str(index.ty))
    ends = [tirx.Min(tirx.Max(cast(group[0].at, str(index.ty)), zero), cast(extent, str(index.ty))) for group in groups]
    ranks = [(change, rank) for rank, group in enumerate(groups, 1) for change in group]
    return _Cut([zero, *ends, cast(extent, str(index.ty))], ranks)


def _symbolic_change(condition: Any, index: Any, sizes: Sequence[Any]) -> _ConditionChange | None:
    """As `_change`, where the index changes by one from element to element. Before it no index need be."""
    found = _step(condition, index)
    if found is None or abs(found[0]) != 1:
        return None
    step, first = found
    if any(not any(v.same_as(size) for size in sizes) for v in tirx.analysis.undefined_vars(first, [])):
        return None
    kind = type(condition)
    if step > 0:  # i < -first, i < 1 - first; i >= 1 - first, i >= -first
        return _ConditionChange(
            condition, -first if kind in (tirx.LT, tirx.GE) else 1 - first, kind in (tirx.LT, tirx.LE)
        )
    return _ConditionChange(condition, first if kind in (tirx.GT, tirx.LE) else first + 1, kind in (tirx.GT, tirx.GE))


def _resolve_conditions(statement: Statement, known: Sequence[tuple[Any, bool]]) -> Statement:
    """The statement where some conditions are known."""

    def comparison(node: Any) -> Any:
        found = next((holds for condition, holds in known if condition.same_as(node)), None)
        return node if found is None else tirx.const(found, "bool")

    decided = structural_map(statement, tuple((kind, comparison) for kind in _COMPARISONS))

    def conjunction(node: Any) -> Any:
        if isinstance(node.a, tirx.IntImm):
            return node.b if int(node.a.value) else node.a
        if isinstance(node.b, tirx.IntImm):
            return node.a if int(node.b.value) else node.b
        return node

    def resolve_node(node: Any) -> Any:
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

    return structural_map(
        decided, ((tirx.And, conjunction), (tirx.Or, resolve_node), (tirx.Select, select), (Call, call))
    )


def _in_vectors(statements: Sequence[Statement]) -> bool:
    found = {feature for statement in statements for feature in features(statement)}
    return CALL not in found and not {CHOICE, NAMES} <= found


__all__ = ["split_loop"]
