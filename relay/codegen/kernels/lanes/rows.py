"""Rows of arrays in lanes: lane i has the row of round `base + i`."""

from __future__ import annotations

from typing import Any

import attrs

from relay.codegen.kernels.lanes.vectors import LANES, Operand, Vector, VectorCode, storage
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.ir.types import TensorType


@attrs.frozen(eq=False)
class Rounds:
    """The rounds from `base` on, `rest` of which are meant if that is less than the width."""

    base: Expression
    rest: Expression


def load(code: VectorCode, rounds: Rounds, array: Any, type_: TensorType, extent: Expression) -> Vector:
    """The rows of the rounds, of the last one where there is none; the array has `extent` rows."""
    made, staged = code.vector(type_), code.vector(type_)

    def load_lane(target: Vector, n: int, lane: Expression, row: Expression) -> list[Statement]:
        value = tirx.BufferLoad(array, [row * integer(target.elements) + integer(n)])
        return [code.write(target, n, lane, _vector_element(value, type_))]

    with code.collect() as whole:
        for n in range(made.elements):
            code.each_lane(lambda lane, n=n: load_lane(made, n, lane, rounds.base + lane))  # type: ignore[misc]
    with code.collect() as part:
        last = tirx.min(rounds.base + rounds.rest, extent) - integer(1)
        for n in range(made.elements):
            code.each_lane(
                lambda lane, n=n: load_lane(staged, n, lane, tirx.min(rounds.base + lane, last)),  # type: ignore[misc]
                "SERIAL",
            )
        code.copy(made, staged)
    there = tirx.LE(rounds.base + integer(code.width), extent)
    code.emit_if(tirx.And(tirx.EQ(rounds.rest, integer(code.width)), there), whole, part)
    return made


def gather(code: VectorCode, array: Any, index: Operand, type_: TensorType, extent: Expression) -> Vector:
    """The rows at an index of each lane; the array has `extent` rows."""
    made = code.vector(type_)

    def gather_lane(lane: Expression, n: int) -> list[Statement]:
        at = code.element(index, 0, lane)
        at = at if str(at.ty) == "int64" else tirx.Cast("int64", at)
        at = tirx.Select(tirx.LT(at, integer(0)), at + extent, at)
        at = tirx.max(tirx.min(at, extent - integer(1)), integer(0))
        value = tirx.BufferLoad(array, [at * integer(made.elements) + integer(n)])
        return [code.write(made, n, lane, _vector_element(value, type_))]

    for n in range(made.elements):
        code.each_lane(lambda lane, n=n: gather_lane(lane, n))  # type: ignore[misc]
    return made


def store(code: VectorCode, rounds: Rounds, array: Any, row: Vector, extent: Expression) -> None:
    """Write the rows of the rounds; the array has `extent` rows."""
    staged = code.vector(row.type)
    dtype = str(array.dtype)

    def write(source: Vector, lane: Expression) -> list[Statement]:
        made = []
        for n in range(source.elements):
            value = code.stored_element(source, n, lane)
            place = (rounds.base + lane) * integer(source.elements) + integer(n)
            value = value if str(value.ty) == dtype else tirx.Cast(dtype, value)
            made.append(tirx.BufferStore(array, value, [place]))
        return made

    with code.collect() as whole:
        for n in range(row.elements):
            code.each_lane(lambda lane, n=n: [write(row, lane)[n]])  # type: ignore[misc]
    with code.collect() as part:
        code.copy(staged, row)
        lane = tirx.Var("lane", LANES)
        code.emit(tirx.For(lane, integer(0), rounds.rest, tirx.ForKind.SERIAL, tir.sequence(write(staged, lane))))
    with code.collect() as written:
        code.emit_if(tirx.EQ(rounds.rest, integer(code.width)), whole, part)
    code.emit_if(tirx.LE(rounds.base + rounds.rest, extent), written)


def _vector_element(value: Expression, type_: TensorType) -> Expression:
    """An element of memory as vectors keep it."""
    dtype = storage(type_)
    return value if str(value.ty) == dtype else tirx.Cast(dtype, value)
