"""Transposition of squares of elements in registers.

Memory that is read along another axis than the one that runs through it gives one element of each cache line, and where
the lines are a power of two apart they displace each other before the next one is needed. So `lanes` vectors are read
whole, and as many vectors of the other direction made of them by perfect shuffles:

    after[2 i], after[2 i + 1] = the lower, the upper half of (before[i], before[i + lanes / 2]), element by element

Each of log2(lanes) rounds moves the first bit of an element's row to the end of its column, and the first bit of its
column to the end of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.codegen.tvm.tir import Expression, Statement, tirx


def run(start: Expression, lanes: int) -> Expression:
    """The indices of a vector of neighbors."""
    return tirx.Ramp(start, tirx.const(1, str(start.ty)), lanes)


def transpose_square(
    dtype: str, lanes: int, load: Callable[[int], Expression], store: Callable[[int, Expression], Statement]
) -> list[Statement]:
    """store(c, vector of element c of each row), where load(r) is the vector that is row r."""
    statements: list[Statement] = []

    def bind_row(vector: Expression) -> Expression:
        name = tirx.Var("row", f"{dtype}x{lanes}")
        statements.append(tirx.Bind(name, vector))
        return name

    rows = [bind_row(load(row)) for row in range(lanes)]
    half = lanes // 2
    for _ in range(lanes.bit_length() - 1):
        pairs = [(rows[n], rows[n + half]) for n in range(half)]
        rows = [bind_row(_interleave_halves(pair, upper * half, lanes)) for pair in pairs for upper in range(2)]
    return [*statements, *(store(column, vector) for column, vector in enumerate(rows))]


def halves(source: Expression, lanes: int) -> tuple[Expression, Expression]:
    """The lower and the upper half of a vector of this many lanes; of two lanes numbers."""
    middle = lanes // 2
    lower, upper = (
        tirx.Shuffle([source], [tirx.const(lane, "int32") for lane in range(start, start + middle)])
        for start in (0, middle)
    )
    return lower, upper


def _interleave_halves(pair: Sequence[Expression], first: int, lanes: int) -> Expression:
    """Half of two vectors' elements by turns, from this one on."""
    return tirx.Shuffle(
        list(pair), [tirx.const(at, "int32") for n in range(lanes // 2) for at in (first + n, lanes + first + n)]
    )


__all__ = ["halves", "run", "transpose_square"]
