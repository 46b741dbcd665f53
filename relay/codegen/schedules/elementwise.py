"""Stages without reductions: one vectorised loop over all elements, or the innermost axis vectorised."""

from __future__ import annotations

from collections.abc import Sequence

from relay.codegen.schedules.emission import Emission
from relay.codegen.schedules.loops import loop, nested, shared, vectors
from relay.codegen.schedules.stage import Stage, volume
from relay.codegen.tir import Expression, Statement, tirx


def elements(e: Emission, stage: Stage, fixed: Sequence[Expression]) -> list[Statement]:
    """All elements with these first indices."""
    count = len(fixed)
    rest = stage.extents[count:]
    flat = e.flat(stage, fixed) if stage.op.num_outputs == 1 else None
    if flat is not None and rest:
        place = e.places[stage.op, 0]
        ahead = count - place.skipped
        start = e.offset(fixed[place.skipped :], place.dims[:ahead]) * product_of(e, rest) if ahead else None

        def whole(i: Expression) -> list[Statement]:
            return [tirx.BufferStore(place.buffer, flat(i), [i if start is None else start + i])]

        if e.vectorises(stage.op.body):
            return vectors(volume(rest), e.lanes(stage.dtypes[0]), e.index, whole)
        return loop(volume(rest), e.index, whole)

    def one(indices: Sequence[Expression]) -> list[Statement]:
        return stored(e, stage, [*fixed, *indices])

    if not rest:
        return one(())
    last = rest[-1]
    if not e.vectorises(stage.op.body):
        return nested(rest, e.index, one)
    width = e.lanes(stage.dtypes[0])
    return nested(rest[:-1], e.index, lambda outer: vectors(last, width, e.index, lambda i: one([*outer, i])))


def product_of(e: Emission, extents: Sequence[object]) -> Expression:
    """The product of extents as an index."""
    from relay.codegen.schedules.loops import number

    return number(volume(extents), e.index)


def stored(e: Emission, stage: Stage, indices: Sequence[Expression]) -> list[Statement]:
    """Compute and store the elements of a stage at these indices."""
    variables = e.bound(stage.axes, indices)
    statements = []
    for output, body in enumerate(stage.op.body):
        place = e.places[stage.op, output]
        at = e.offset(indices[place.skipped :], place.dims)
        statements.append(tirx.BufferStore(place.buffer, e.element(body, variables), [at]))
    return statements


def share_flat(e: Emission, stage: Stage) -> list[Statement] | None:
    """A stage that is one loop over all elements, shared among threads; None if it is not."""
    flat = e.flat(stage, ()) if stage.op.num_outputs == 1 and stage.extents else None
    if flat is None:
        return None
    place, total = e.places[stage.op, 0], volume(stage.extents)
    width = e.lanes(stage.dtypes[0]) if e.vectorises(stage.op.body) else 1

    def one(i: Expression) -> list[Statement]:
        return [tirx.BufferStore(place.buffer, flat(i), [i])]

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        if width == 1:
            return loop(end - begin, e.index, lambda i: one(begin + i))
        return vectors(end - begin, width, e.index, lambda i: one(begin + i))

    def serial() -> list[Statement]:
        return vectors(total, width, e.index, one) if width > 1 else loop(total, e.index, one)

    return shared(total, total, e.threads, e.index, part, serial, step=width)
