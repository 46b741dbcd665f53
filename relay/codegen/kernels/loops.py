"""Loops: nested, as vectors with what is left over, shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.codegen.kernels.stage import Extent
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx

PARALLEL_WORK = 1 << 17
"""Scalar operations below which starting a second thread does not pay."""

Body = Callable[[Expression], Sequence[Statement]]


def number(value: Extent, dtype: str) -> Expression:
    """An extent as an expression."""
    return tirx.const(value, dtype) if isinstance(value, int) else cast(value, dtype)


def cast(value: Expression, dtype: str) -> Expression:
    return value if str(value.ty) == dtype else tirx.Cast(dtype, value)


def loop(extent: Extent, dtype: str, body: Body, kind: str = "SERIAL") -> list[Statement]:
    """body(0), body(1), .. body(extent - 1)"""
    if isinstance(extent, int) and extent <= 1:
        return list(body(tirx.const(0, dtype))) if extent == 1 else []
    variable = tirx.Var("i", dtype)
    inner = body(variable)
    if kind == "VECTORIZED" and any(_repeats_bfloat16(statement, variable) for statement in inner):
        kind = "SERIAL"
    return [
        tirx.For(variable, tirx.const(0, dtype), number(extent, dtype), tirx.ForKind[kind], sequence(inner))
    ] if inner else []  # fmt: skip


def _repeats_bfloat16(statement: Statement, variable: Expression) -> bool:
    """True if a number of bfloat16 is stored that is the same in all rounds: TVM cannot make vectors of these."""
    if not isinstance(statement, tirx.BufferStore) or str(statement.value.ty) != "bfloat16":
        return False
    return not any(used.same_as(variable) for used in tirx.analysis.undefined_vars(statement.value, []))


def nested_loops(
    extents: Sequence[Extent], dtype: str, body: Callable[[list[Expression]], Sequence[Statement]]
) -> list[Statement]:
    """Loops around body(indices)."""

    def level(position: int, indices: list[Expression]) -> Sequence[Statement]:
        if position == len(extents):
            return body(indices)
        return loop(extents[position], dtype, lambda i: level(position + 1, [*indices, i]))

    return list(level(0, []))


NARROW = 4
"""The width of the vectors of what whole vectors leave over of an axis of symbolic size."""


def vectors(extent: Extent, width: int, dtype: str, body: Body, *, often: bool = False) -> list[Statement]:
    """`loop` in vectors of a width, and what is left over. `often`: it is within another loop, so that it pays to have
    vectors also for what is left over of a symbolic extent."""
    if isinstance(extent, int):
        whole, rest = divmod(extent, width)
        made = loop(whole, dtype, lambda i: loop(width, dtype, lambda v: body(i * width + v), "VECTORIZED"))
        return made + loop(rest, dtype, lambda v: body(v + whole * width), "VECTORIZED")
    statements: list[Statement] = []
    start: Expression | None = None
    left = cast(extent, dtype)
    for lanes in (width, NARROW, 1) if often and width > NARROW else (width, 1):
        count, first = tirx.Var("count", dtype), start
        statements.append(tirx.Bind(count, tirx.truncdiv(left, tirx.const(lanes, dtype)) if lanes > 1 else left))
        left = tirx.truncmod(left, tirx.const(lanes, dtype))  # a difference would not be known not to be negative

        def vector(i: Expression, lanes: int = lanes, first: Expression | None = first) -> list[Statement]:
            at = i * lanes if first is None else i * lanes + first
            return loop(lanes, dtype, lambda v: body(at + v), "VECTORIZED") if lanes > 1 else list(body(at))

        statements += loop(count, dtype, vector)
        start = count * lanes if first is None else first + count * lanes
    return statements


def unravel_index(index: Expression, extents: Sequence[Extent], dtype: str) -> list[Expression]:
    """The indices of nested loops by the number of the round, which is not negative. Where TVM cannot know that, since
    an extent is an expression, it would choose between two quotients for each division: of the quotients of quotients,
    three copies for each axis."""
    known = all(isinstance(size, int) for size in extents)
    divide, remainder = (tirx.indexdiv, tirx.indexmod) if known else (tirx.truncdiv, tirx.truncmod)
    indices: list[Expression] = []
    for position in range(len(extents) - 1, 0, -1):
        size = number(extents[position], dtype)
        indices.insert(0, remainder(index, size))
        index = divide(index, size)
    return [index, *indices]


def shared_loop(
    total: Extent,
    work: Extent,
    threads: int,
    dtype: str,
    part: Callable[[Expression, Expression, Expression], Sequence[Statement]],
    serial: Callable[[], Sequence[Statement]],
    step: int = 1,
    least: int | None = None,
) -> list[Statement]:
    """part(number, begin, end) on each thread if there is enough work, else `serial()`. `begin` is a multiple of
    `step`. `least`: what is enough work, unless it is `PARALLEL_WORK`."""
    least = PARALLEL_WORK if least is None else least
    if threads == 1 or (isinstance(total, int) and total < 2 * step):
        return list(serial())

    def on_thread(number_: Expression) -> list[Statement]:
        steps = tirx.indexdiv(number(total, "int64") + (step - 1), tirx.const(step, "int64"))
        begin, end = tirx.Var("begin", dtype), tirx.Var("end", dtype)
        first = tirx.indexdiv(steps * cast(number_, "int64"), tirx.const(threads, "int64")) * step
        last = tirx.indexdiv(steps * (cast(number_, "int64") + 1), tirx.const(threads, "int64")) * step
        return [
            tirx.Bind(begin, cast(first, dtype)),
            tirx.Bind(end, cast(tirx.min(last, number(total, "int64")), dtype)),
            *part(number_, begin, end),
        ]

    return choose_by_work(work, least, lambda: loop(threads, "int32", on_thread, "PARALLEL"), serial)


def choose_by_work(
    work: Extent, least: int, then: Callable[[], Sequence[Statement]], orelse: Callable[[], Sequence[Statement]]
) -> list[Statement]:
    """One of two, by whether there is so much work: decided now if it is known."""
    if isinstance(work, int):
        return list(then() if work >= least else orelse())
    condition = tirx.GE(number(work, "int64"), tirx.const(least, "int64"))
    return [tirx.IfThenElse(condition, sequence(list(then())), sequence(list(orelse())))]


__all__ = [
    "cast",
    "choose_by_work",
    "loop",
    "nested_loops",
    "number",
    "shared_loop",
    "unravel_index",
    "vectors",
]
