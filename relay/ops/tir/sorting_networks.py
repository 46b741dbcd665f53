"""Sorting of rows in statements on memory: by a network for short rows, by radix passes for long ones.

Elements become integers of the same order (`ordered`), and their places decide among equal ones, so both are stable.

    network   Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2 M) on `LANES` rows at once: each
              comparison takes two vectors with an element of each row. (n / 4) log2(n)**2 comparisons without branches.
    digits    a radix sort from the least significant of `BITS` bits on, which takes time in proportion to the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay.ops.notation import Element, loops
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import index_dtype, tirx

LANES = 8  # rows that a network sorts at once
LONGEST = 1024  # elements up to which a network is quicker
ALONE = 128  # the same where there are few rows
BITS = 8  # of a digit


def is_short(shape: Sequence[Any]) -> bool:
    """Whether rows of a tensor are sorted by a network."""
    *batch, length = shape
    if not isinstance(length, int):
        return False
    rows: Any = 1
    for extent in batch:
        rows = rows * extent if isinstance(extent, int) and isinstance(rows, int) else None
    few = isinstance(rows, int) and 2 * rows <= LANES
    return length <= (ALONE if few else LONGEST)


def sort_key(x: Element, descending: bool) -> Element:
    """An integer, int32 or int64, that is in the order of an element: NaN is the largest, and zeros are equal."""
    dtype = scalar.dtype_of(x)
    if dtype == "bfloat16":  # the upper half of a float32
        pattern = tirx.shift_left(tirx.Cast("int32", tirx.reinterpret("uint16", x)), tirx.const(16, "int32"))
        x, dtype = tirx.reinterpret("float32", pattern), "float32"
    if dtype == "float16":
        x, dtype = tirx.Cast("float32", x), "float32"
    wide = "int64" if dtype in ("float64", "int64", "uint64") else "int32"
    if scalar.is_float(dtype):
        bits = 64 if wide == "int64" else 32
        mantissa = 52 if wide == "int64" else 23
        largest, infinity = (1 << (bits - 1)) - 1, ((1 << (bits - mantissa - 1)) - 1) << mantissa
        pattern = tirx.reinterpret(wide, x)
        size = tirx.bitwise_and(pattern, tirx.const(largest, wide))
        signed = tirx.Select(tirx.LT(pattern, tirx.const(0, wide)), tirx.const(0, wide) - size, size)
        found = tirx.Select(tirx.GT(size, tirx.const(infinity, wide)), tirx.const(largest, wide), signed)
    elif dtype in ("uint32", "uint64"):
        found = tirx.bitwise_xor(tirx.reinterpret(wide, x), tirx.min_value(wide))
    else:
        found = tirx.Cast(wide, tirx.Cast("uint8", x) if dtype == "bool" else x)
    return tirx.bitwise_xor(found, tirx.const(-1, wide)) if descending else found


def _number(value: Any, dtype: str = "int32") -> Element:
    return tirx.const(value, dtype) if isinstance(value, int) else tirx.Cast(dtype, value)


def _loop(extent: Any, body: Callable[[Any], Any]) -> Any:
    return loops((_number(extent) if not isinstance(extent, int) else extent,), lambda i: body(i[0]))


def _buffer(size: Any, dtype: str, name: str) -> Any:
    return tirx.decl_buffer((size,), dtype, name, data_alignment=8 if dtype.endswith("64") else 4)


# ---- networks


def network(result: Any, x: Any, shape: Sequence[Any], descending: bool) -> Any:
    """result[*row, k] := the place of the element number k in the order of the row of x, for rows of known length."""
    *batch, length = shape
    index = index_dtype() if all(isinstance(extent, int) for extent in batch) else "int64"
    rows: Any = _number(1, index)
    for extent in batch:
        rows = rows * _number(extent, index)
    dtype = scalar.dtype_of(sort_key(tirx.BufferLoad(x, [tirx.const(0, "int32") for _ in shape]), False))
    packs = dtype == "int32"  # with their places in one number
    keys, places = (_buffer(length * LANES, "int64", name) for name in ("keys", "places"))
    used = [keys] if packs else [keys, places]

    def element_indices(row: Element, place: Element) -> list[Element]:
        indices = [place]
        for extent in reversed(batch[1:]):
            indices.insert(0, tirx.truncmod(row, _number(extent, index)))  # TVM need not know that row is not negative
            row = tirx.truncdiv(row, _number(extent, index))
        return [row, *indices] if batch else indices

    def block(number: Element) -> Any:
        first = tirx.Cast(index, number) * LANES
        count = tirx.Cast("int32", tirx.min(tirx.const(LANES, index), rows - first))

        def load(i: Element, lane: Element) -> Any:
            row = tirx.min(first + tirx.Cast(index, lane), rows - 1)
            key, place = (
                tirx.Cast("int64", sort_key(tirx.BufferLoad(x, element_indices(row, i)), descending)),
                tirx.Cast("int64", i),
            )
            to = [i * LANES + lane]
            if packs:
                return tirx.BufferStore(keys, tirx.shift_left(key, tirx.const(32, "int64")) + place, to)
            return tirx.SeqStmt([tirx.BufferStore(keys, key, to), tirx.BufferStore(places, place, to)])

        def store(lane: Element, i: Element) -> Any:
            found = tirx.BufferLoad(used[-1], [i * LANES + lane])
            place = tirx.Cast("int32", tirx.bitwise_and(found, tirx.const((1 << 32) - 1, "int64")))
            return tirx.BufferStore(result, place, element_indices(first + tirx.Cast(index, lane), i))

        return tirx.SeqStmt(
            [
                _loop(length, lambda i: _loop(LANES, lambda lane: load(i, lane))),
                *_exchanges(length, lambda i, j: _exchange(used, i, j)),
                _loop(count, lambda lane: _loop(length, lambda i: store(lane, i))),
            ]
        )

    blocks = tirx.indexdiv(rows + (LANES - 1), tirx.const(LANES, index))
    number = tirx.Var("block", index)
    whole = tirx.For(number, tirx.const(0, index), blocks, tirx.ForKind.SERIAL, block(number))
    return tirx.SeqStmt([*(tirx.AllocBuffer(buffer) for buffer in used), whole])


def _exchanges(length: int, exchange: Callable[[Element, Element], Any]) -> list[Any]:
    """exchange(i, j), which is to bring two elements into order, for all that the network compares."""
    rounds = max(length - 1, 0).bit_length()
    statements = []
    for bit in reversed(range(rounds)):
        p = 1 << bit

        def step(s: Element, p: int = p, bit: int = bit) -> Any:
            first = tirx.EQ(s, tirx.const(0, "int32"))
            distance = tirx.Select(first, _number(p), tirx.shift_left(_number(1), rounds - s) - p)
            start = tirx.Select(first, _number(0), _number(p))

            def run(k: Element) -> Any:
                begin = start + k * (2 * p)
                count = tirx.min(_number(p), length - distance - begin)
                if p == 1:
                    return exchange(begin, begin + distance)
                return _loop(count, lambda j: exchange(begin + j, begin + j + distance))

            runs = tirx.indexdiv(length - distance - start + (2 * p - 1), _number(2 * p))
            return _loop(tirx.max(runs, _number(0)), run)

        statements.append(_loop(_number(rounds - bit), step))
    return statements


def _exchange(buffers: Sequence[Any], i: Element, j: Element) -> Any:
    """Rows i and j of vectors, the smaller ones first; with a second buffer, it decides among equal ones."""
    at = [tirx.Ramp(place * LANES, tirx.const(1, "int32"), LANES) for place in (i, j)]
    statements: list[Any] = []
    pairs = []
    for buffer in buffers:
        names = [tirx.Var("element", f"int64x{LANES}") for _ in at]
        statements += [tirx.Bind(name, tirx.BufferLoad(buffer, [where])) for name, where in zip(names, at, strict=True)]
        pairs.append(names)
    (a, b), *others = pairs
    if not others:
        made = [(buffers[0], tirx.Min(a, b), tirx.Max(a, b))]
    else:
        ((c, d),) = others
        swap = tirx.Or(tirx.LT(b, a), tirx.And(tirx.EQ(a, b), tirx.LT(d, c)))
        made = [
            (buffer, tirx.Select(swap, right, left), tirx.Select(swap, left, right))
            for buffer, (left, right) in zip(buffers, pairs, strict=True)
        ]
    for buffer, low, high in made:
        statements += [tirx.BufferStore(buffer, low, [at[0]]), tirx.BufferStore(buffer, high, [at[1]])]
    return tirx.SeqStmt(statements)


# ---- digits


def by_digits(result: Any, x: Any, shape: Sequence[Any], descending: bool) -> Any:
    """The same for rows of any length. Digits that all elements of a row have in common are passed over."""
    *batch, length = shape
    wide = scalar.dtype_of(sort_key(tirx.BufferLoad(x, [tirx.const(0, "int32") for _ in shape]), False))
    bits = int(wide.removeprefix("int"))
    passes, values = bits // BITS, 1 << BITS
    keys, places = (_buffer(2 * length, dtype, name) for dtype, name in ((wide, "keys"), ("int32", "places")))
    counts = _buffer(passes * values, "int32", "counts")
    total, source = (_buffer(1, "int32", name) for name in ("total", "source"))
    size, zero = _number(length), _number(0)

    def digit(key: Element, number: Element) -> Element:
        lowest = tirx.shift_right(key, tirx.Cast(wide, number * BITS))
        return tirx.Cast("int32", tirx.bitwise_and(lowest, tirx.const(values - 1, wide)))

    def count(number: Element, key: Element) -> Element:
        return tirx.BufferLoad(counts, [number * values + digit(key, number)])

    def increment_count(number: Element, key: Element) -> Any:
        at = [number * values + digit(key, number)]
        return tirx.BufferStore(counts, tirx.BufferLoad(counts, at) + 1, at)

    def row(at: list[Any]) -> Any:
        def read(i: Element) -> Any:
            # the first bit turned round, so that the order is that of numbers without signs
            key = sort_key(tirx.BufferLoad(x, [*at, i]), descending)
            unsigned = tirx.bitwise_xor(key, tirx.min_value(wide))
            name = tirx.Var("key", wide)
            return tirx.SeqStmt(
                [
                    tirx.Bind(name, unsigned),
                    tirx.BufferStore(keys, name, [i]),
                    tirx.BufferStore(places, i, [i]),
                    *(increment_count(_number(number), name) for number in range(passes)),
                ]
            )

        def scatter_pass(number: Element) -> Any:
            old = tirx.BufferLoad(source, [0])

            def start(value: Element) -> Any:
                each, sum_ = number * values + value, tirx.BufferLoad(total, [0])
                name = tirx.Var("count", "int32")
                return tirx.SeqStmt(
                    [
                        tirx.Bind(name, tirx.BufferLoad(counts, [each])),
                        tirx.BufferStore(counts, sum_, [each]),
                        tirx.BufferStore(total, sum_ + name, [0]),
                    ]
                )

            def move(i: Element) -> Any:
                key, to = tirx.Var("key", wide), tirx.Var("to", "int32")
                target = size - old + to
                return tirx.SeqStmt(
                    [
                        tirx.Bind(key, tirx.BufferLoad(keys, [old + i])),
                        tirx.Bind(to, count(number, key)),
                        increment_count(number, key),
                        tirx.BufferStore(keys, key, [target]),
                        tirx.BufferStore(places, tirx.BufferLoad(places, [old + i]), [target]),
                    ]
                )

            whole = tirx.SeqStmt(
                [
                    tirx.BufferStore(total, zero, [0]),
                    _loop(values, start),
                    _loop(length, move),
                    tirx.BufferStore(source, size - old, [0]),
                ]
            )
            differ = tirx.LT(count(number, tirx.BufferLoad(keys, [old])), size)
            return tirx.IfThenElse(differ, whole, None)

        return tirx.SeqStmt(
            [
                tirx.BufferStore(source, zero, [0]),
                _loop(passes * values, lambda i: tirx.BufferStore(counts, zero, [i])),
                _loop(length, read),
                _loop(passes, scatter_pass),
                _loop(
                    length,
                    lambda i: tirx.BufferStore(
                        result, tirx.BufferLoad(places, [tirx.BufferLoad(source, [0]) + i]), [*at, i]
                    ),
                ),
            ]
        )

    buffers = [tirx.AllocBuffer(buffer) for buffer in (keys, places, counts, total, source)]
    return tirx.SeqStmt([*buffers, loops(batch, row)])


__all__ = ["by_digits", "is_short", "network"]
