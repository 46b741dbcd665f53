"""Pointwise stages: one vectorized loop over all elements, or the innermost axis vectorized."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.intervals import split_loop
from relay.codegen.kernels.loops import loop, nested_loops, number, shared_loop, vectors
from relay.codegen.kernels.registers import bind_name
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Stage, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx

Element = Callable[[Stage], "tuple[Expression, Expression]"]
"""The position of an element of a stage in memory, and what it is."""


@contextmanager
def computed_elements(
    e: Emission, stages: Sequence[Stage], element: Element, *, read: bool = False
) -> Iterator[list[Statement]]:
    """The statements that compute an element of each stage and store those that have a place in memory. Within the
    context, reads of the stages are these elements.

    All are computed before any is stored: a result may lie where an operand does. Bools and bfloat16 cannot be names in
    vectors: they are computed where they are read, and stored first. `read`: True if other code reads them, too.
    """
    names: list[Statement] = []
    first: list[Statement] = []
    stores: list[Statement] = []
    known: list[Any] = []
    for stage in stages:
        position, value = element(stage)
        place = e.places[stage.op, 0]
        direct = str(value.ty) in ("bool", "bfloat16")
        if not direct and (read or len(stages) > 1):
            name, statement = bind_name(value)
            names.append(statement)
            value = name
        if place.buffer is not None:
            (first if direct else stores).append(tirx.BufferStore(place.buffer, value, [position]))
        e.values[stage.op, 0] = value
        known.append((stage.op, 0))
    yield [*names, *first, *stores]
    for one in known:
        del e.values[one]


def elements_at(e: Emission, indices: Sequence[Any]) -> Element:
    """The elements of stages with these indices."""

    def element(stage: Stage) -> tuple[Expression, Expression]:
        place = e.places[stage.op, 0]
        value = e.element(stage.op.body[0], e.axis_values(stage.axes, indices))
        return e.position(place, indices), value

    return element


def store_elements(e: Emission, stages: Sequence[Stage], indices: Sequence[Any]) -> list[Statement]:
    """Compute and store the elements of stages at these indices."""
    (first, *_) = stages
    if first.op.num_outputs == 1:
        with computed_elements(e, stages, elements_at(e, indices)) as statements:
            return statements
    variables = e.axis_values(first.axes, indices)
    statements = []
    for output, body in enumerate(first.op.body):
        place = e.places[first.op, output]
        position = e.position(place, indices)
        statements.append(tirx.BufferStore(place.buffer, e.element(body, variables), [position]))
    return statements


def flat(e: Emission, stages: Sequence[Stage], fixed: Sequence[Any]) -> Callable[[Expression], list[Statement]] | None:
    """A function that stores the elements of stages by their position among those with the first indices `fixed`;
    None if they also depend on elements at other positions."""
    count = len(fixed)

    def element(stage: Stage, position: Expression) -> tuple[Expression, Expression]:
        place, found = e.places[stage.op, 0], e.flat(stage, fixed)
        assert found is not None
        ahead = count - place.skipped
        if not ahead:
            return position, found(position)
        size = number(volume(stage.extents[count:]), e.index)
        return e.offset(fixed[place.skipped :], place.dims[:ahead]) * size + position, found(position)

    def position_statements(position: Expression) -> list[Statement]:
        with computed_elements(e, stages, lambda stage: element(stage, position)) as statements:
            return statements

    if any(stage.op.num_outputs != 1 or e.flat(stage, fixed) is None for stage in stages):
        return None
    return position_statements


def outer_axes(e: Emission, stages: Sequence[Stage]) -> int:
    """The number of first axes of stages with separate loops, so that the others are one loop, through memory if it
    is more than the last of them."""
    most = len(stages[0].extents) - 1
    for count in range(1, most):
        if flat(e, stages, [tirx.Var("at", e.index) for _ in range(count)]) is not None:
            return count
    return max(most, 0)


def elements(e: Emission, stages: Sequence[Stage], fixed: Sequence[Expression]) -> list[Statement]:
    """All elements with these first indices of stages over the same axes."""
    count, lead = len(fixed), stages[0]
    rest = lead.extents[count:]
    whole = flat(e, stages, fixed) if rest else None
    vectorizes, width = e.vectorizes(lead.op.body), lanes(e, stages)
    if whole is not None:
        total = volume(rest)
        return vectors(total, width, e.index, whole, often=bool(fixed)) if vectorizes else loop(total, e.index, whole)

    def element_statements(indices: Sequence[Expression]) -> list[Statement]:
        return store_elements(e, stages, [*fixed, *indices])

    if not rest:
        return element_statements(())
    last = rest[-1]
    cuts = not any(dtype == "bfloat16" for stage in stages for dtype in stage.dtypes)

    def row(outer: Sequence[Expression]) -> list[Statement]:
        parts = split_loop(last, width, e.index, lambda i: element_statements([*outer, i])) if cuts else None
        if parts is not None:
            return parts
        return (
            vectors(last, width, e.index, lambda i: element_statements([*outer, i]), often=True)
            if vectorizes
            else (loop(last, e.index, lambda i: element_statements([*outer, i])))
        )

    return nested_loops(rest[:-1], e.index, row)


def lanes(e: Emission, stages: Sequence[Stage]) -> int:
    """The number of elements of stages that are computed at once: as many as a vector holds of the longest."""
    return min(e.lanes(dtype) for stage in stages for dtype in stage.dtypes)


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Stages that are one loop over all elements."""
    stages = subject.cluster.whole
    one = flat(e, stages, ()) if not subject.cluster.reductions and stages[0].extents else None
    if one is None:
        return None
    return Plan("each element is made of those at its position: one loop", lambda: _share(e, stages, one))


def _share(e: Emission, stages: Sequence[Stage], one: Callable[[Expression], list[Statement]]) -> list[Statement]:
    """All elements by their positions, shared among threads."""
    total = volume(stages[0].extents)
    width = lanes(e, stages) if e.vectorizes(stages[0].op.body) else 1

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        if width == 1:
            return loop(end - begin, e.index, lambda i: one(begin + i))
        return vectors(end - begin, width, e.index, lambda i: one(begin + i))

    def serial_loop() -> list[Statement]:
        return vectors(total, width, e.index, one) if width > 1 else loop(total, e.index, one)

    return shared_loop(total, total, e.threads, e.index, part, serial_loop, step=width)


RULE = Rule("pointwise", 20, match, contested=False)
