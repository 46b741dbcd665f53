"""Transposed access: elementwise stages that read along another axis than the one that they write along.

    for the outer axes and panels of a few blocks of `lanes` columns:       shared among threads
        for blocks of `lanes` rows:
            for blocks of `lanes` columns of the panel:
                registers[row, column] = input[.., column, .., row]         squares, transposed
                out[rows, columns] = what is computed from them

`rows` are the axis along which the input lies, and `columns` the last one. What is read on a condition, as what lies
around a padded input is not, is read by squares where the condition holds for all of the square.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.elementwise.pointwise import store_elements
from relay.codegen.kernels.elementwise.transposition import run, transpose_square
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.gemm.recognition import pieces, registers
from relay.codegen.kernels.loops import loop, nested_loops, number, shared_loop, unravel_index
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, Stage, is_choice, substitute_variables, volume
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx

BESIDE = 4
"""Squares that are done beside each other: cache lines of the result, which they do not start, are then written whole
while they are near, and those of this many rows of the input stay in the second-level cache until they are used up."""


@attrs.frozen(eq=False)
class TransposedAccess:
    """`element` is the stage's element at the `indices`; `loads` are what it reads along the axis number `rows`, if all
    of the `conditions` hold. These hold for a square if they do in its corners."""

    stage: Stage
    indices: tuple[Any, ...]
    element: Expression
    loads: tuple[Any, ...]
    conditions: tuple[Expression, ...]
    rows: int
    lanes: int


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Stages that read along another axis than they write."""
    found = None if subject.cluster.reductions else recognize(e, subject.cluster.whole)
    if found is None:
        return None
    reason = f"reads run along axis {found.rows}: squares of {found.lanes} by {found.lanes} are transposed in registers"
    return Plan(reason, lambda: share(e, found))


def recognize(e: Emission, stages: Sequence[Stage]) -> TransposedAccess | None:
    """A stage whose squares are worth transposing; None if it is none, or if it is too small."""
    (stage, *others) = stages
    if others or stage.op.num_outputs != 1 or len(stage.extents) < 2 or not e.vectorizes(stage.op.body):
        return None
    lanes, _ = registers(stage.dtypes[0])
    if lanes < 2 or not _fills(stage.extents[-1], lanes):
        return None
    indices = tuple(tirx.Var("at", e.index) for _ in stage.axes)
    element = e.element(stage.op.body[0], e.axis_values(stage.axes, indices))
    loads: list[Any] = []
    structural_walk(element, ((TensorLoad, loads.append),))
    loads = [load for load in loads if _step(load, indices[-1]) not in (0, 1)]
    rows = [n for n, index in enumerate(indices[:-1]) if all(_step(load, index) == 1 for load in loads)]
    if not loads or not rows or not _fills(stage.extents[rows[-1]], lanes):
        return None
    if any(str(load.ty) in ("bool", "bfloat16") for load in loads):
        return None
    conditions = _conditions(element, loads)
    if not all(_is_convex(condition, (indices[rows[-1]], indices[-1])) for condition in conditions):
        return None
    return TransposedAccess(stage, indices, element, tuple(loads), tuple(conditions), rows[-1], lanes)


def _conditions(element: Expression, loads: Sequence[Any]) -> list[Expression]:
    """The conditions under which all of the loads are executed."""
    choices: list[Any] = []
    structural_walk(element, ((Call, choices.append),))
    found: list[Expression] = []
    for choice in choices:
        if is_choice(choice):
            condition, *branches = choice.args
            for branch, demanded in zip(branches, (condition, tirx.Not(condition)), strict=True):
                inside: list[Any] = []
                structural_walk(branch, ((TensorLoad, inside.append),))
                if any(load.same_as(one) for load in loads for one in inside):
                    found.append(demanded)
    return found


def _is_convex(condition: Expression, indices: Sequence[Any], *, negated: bool = False) -> bool:
    """True if a condition that holds in the corners of a box of the indices is known to hold in all of it: it is a
    conjunction of comparisons between linear functions of them."""
    if isinstance(condition, tirx.Not):
        return _is_convex(condition.a, indices, negated=not negated)
    if isinstance(condition, tirx.Or if negated else tirx.And):
        return all(_is_convex(part, indices, negated=negated) for part in (condition.a, condition.b))
    if not isinstance(condition, tirx.LT | tirx.LE | tirx.GT | tirx.GE):
        return False
    difference = condition.a - condition.b
    steps = [Analyzer().simplify(substitute_variables(difference, {i: i + 1}) - difference) for i in indices]
    return all(isinstance(step, tirx.IntImm) for step in steps)


def _fills(extent: Extent, lanes: int) -> bool:
    return not isinstance(extent, int) or extent >= lanes


def _step(load: Any, index: Any) -> int | None:
    """The distance in memory to the neighbor along an index; None if it is not the same everywhere."""
    (position,) = load.indices
    step = Analyzer().simplify(substitute_variables(position, {index: index + 1}) - position)
    return int(step.value) if isinstance(step, tirx.IntImm) else None


def share(e: Emission, turned: TransposedAccess) -> list[Statement]:
    """All elements of the stage, shared among threads."""
    stage, lanes = turned.stage, turned.lanes
    rows, columns = stage.extents[turned.rows], stage.extents[-1]
    outer = [n for n in range(len(stage.extents) - 1) if n != turned.rows]
    extents = [*(stage.extents[n] for n in outer), pieces(columns, lanes * BESIDE)]
    squares, blocks = _full_piece_count(e, rows, lanes), _full_piece_count(e, columns, lanes)

    def panel(place: Sequence[Expression]) -> list[Statement]:
        *ahead, number_ = place
        first = number_ * BESIDE
        beside: Extent = BESIDE
        if not isinstance(columns, int) or columns % (lanes * BESIDE):
            beside = tirx.Min(tirx.const(BESIDE, e.index), number(blocks, e.index) - first)

        def point(row: Expression, column: Expression) -> list[Expression]:
            found = {**dict(zip(outer, ahead, strict=True)), turned.rows: row, len(stage.extents) - 1: column}
            return [found[n] for n in range(len(stage.extents))]

        def column_loop(body: Callable[[Expression], list[Statement]]) -> list[Statement]:
            return loop(beside, e.index, lambda n: body((first + n) * lanes))

        def square_row(n: Expression) -> list[Statement]:
            return column_loop(lambda column: square(n * lanes, column))

        def square(row: Expression, column: Expression) -> list[Statement]:
            first = point(row, column)
            whole = _square(e, turned, first)
            if not turned.conditions:
                return whole
            corners = [point(row + a, column + b) for a in (0, lanes - 1) for b in (0, lanes - 1)]
            at = [dict(zip(turned.indices, corner, strict=True)) for corner in corners]
            demanded = [substitute_variables(condition, place) for condition in turned.conditions for place in at]
            single = loop(lanes, e.index, lambda lane: by_elements(row + lane, column))
            return [tirx.IfThenElse(functools.reduce(tirx.And, demanded), sequence(whole), sequence(single))]

        def by_elements(row: Expression, column: Expression) -> list[Statement]:
            return loop(
                lanes, e.index, lambda lane: store_elements(e, [stage], point(row, column + lane)), "VECTORIZED"
            )

        def row_statements(row: Expression) -> list[Statement]:
            return column_loop(lambda column: by_elements(row + squares * lanes, column))

        def remainder_columns(row: Expression) -> list[Statement]:
            start = (first + beside) * lanes
            left = number(columns, e.index) - start
            left = tirx.Max(tirx.Min(left, tirx.const(lanes - 1, e.index)), tirx.const(0, e.index))
            return loop(left, e.index, lambda lane: store_elements(e, [stage], point(row, start + lane)))

        statements = loop(squares, e.index, square_row)
        if not isinstance(rows, int) or rows % lanes:
            statements += loop(rows - squares * lanes, e.index, row_statements)
        if not isinstance(columns, int) or columns % lanes:
            last = first + beside >= number(blocks, e.index)
            statements.append(tirx.IfThenElse(last, sequence(loop(rows, e.index, remainder_columns)), None))
        return statements

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: panel(unravel_index(begin + i, extents, e.index)))

    return shared_loop(
        volume(extents), stage.work, e.threads, e.index, part, lambda: nested_loops(extents, e.index, panel)
    )


def _full_piece_count(e: Emission, extent: Extent, size: int) -> Extent:
    """The number of whole pieces."""
    if isinstance(extent, int):
        return extent // size
    return tirx.indexdiv(number(extent, e.index), tirx.const(size, e.index))


def _square(e: Emission, turned: TransposedAccess, first: Sequence[Expression]) -> list[Statement]:
    """The square from these indices on."""
    lanes, index = turned.lanes, turned.indices
    statements: list[Statement] = []
    registers_: list[tuple[Any, list[Any]]] = []
    for load in turned.loads:
        dtype = str(load.ty)
        buffers = [e.local_elements(dtype, lanes) for _ in range(lanes)]
        statements += [statement for _, made in buffers for statement in made]

        def vector(column: int, load: Any = load) -> Expression:
            at = {**dict(zip(index, first, strict=True)), index[-1]: first[-1] + column}
            return tirx.BufferLoad(load.source, [run(substitute_variables(load.indices[0], at), lanes)])

        def keep(row: int, columns: Expression, buffers: Any = buffers) -> Statement:
            return tirx.BufferStore(buffers[row][0], columns, [run(tirx.const(0, e.index), lanes)])

        statements += transpose_square(dtype, lanes, vector, keep)
        registers_.append((load, [buffer for buffer, _ in buffers]))
    place = e.places[turned.stage.op, 0]
    for row in range(lanes):
        here = [at + row if n == turned.rows else at for n, at in enumerate(first)]

        def store(lane: Expression, row: int = row, here: Sequence[Expression] = here) -> list[Statement]:
            def read(found: Any) -> Any:
                own = next((buffers for load, buffers in registers_ if load.same_as(found)), None)
                return found if own is None else tirx.BufferLoad(own[row], [lane])

            element = structural_map(turned.element, ((TensorLoad, read),))
            at = [*here[:-1], here[-1] + lane]
            value = substitute_variables(element, dict(zip(index, at, strict=True)))
            return [tirx.BufferStore(place.buffer, value, [e.offset(at[place.skipped :], place.dims)])]

        statements += loop(lanes, e.index, store, "VECTORIZED")
    return statements


__all__ = ["TransposedAccess", "recognize", "share"]


RULE = Rule("transposed_access", 10, match)
