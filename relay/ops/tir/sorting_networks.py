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
from relay.ops.tir.tvm_modules import has_vectors, index_dtype, tirx

LANES = 8  # rows that a network sorts at once
LONGEST = 1024  # elements up to which a network is quicker
ALONE = 128  # the same where there are few rows
BITS = 8  # of a digit


def is_short(shape: Sequence[Any]) -> bool:
    """True if rows of a tensor are sorted by a network."""
    *batch, length = shape
    if not isinstance(length, int) or not has_vectors():
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


class _RadixSort:
    """The buffers of a sort of rows of one length, and its steps, as statements of TIR."""

    def __init__(self, length: Any, dtype: str) -> None:
        self.length, self.dtype = length, dtype
        self.passes, self.values = int(dtype.removeprefix("int")) // BITS, 1 << BITS
        self.keys, self.places = _buffer(2 * length, dtype, "keys"), _buffer(2 * length, "int32", "places")
        self.counts = _buffer(self.passes * self.values, "int32", "counts")
        self.total, self.source = (_buffer(1, "int32", name) for name in ("total", "source"))
        self.buffers = [self.keys, self.places, self.counts, self.total, self.source]

    def _count_place(self, number: Element, key: Element) -> list[Element]:
        """The place of the counter of elements with the digit of a key, of this number."""
        lowest = tirx.shift_right(key, tirx.Cast(self.dtype, number * BITS))
        digit = tirx.Cast("int32", tirx.bitwise_and(lowest, tirx.const(self.values - 1, self.dtype)))
        return [number * self.values + digit]

    def _increment(self, place: list[Element]) -> Any:
        return tirx.BufferStore(self.counts, tirx.BufferLoad(self.counts, place) + 1, place)

    def clear_counts(self) -> Any:
        return _loop(self.passes * self.values, lambda i: tirx.BufferStore(self.counts, _number(0), [i]))

    def read(self, element: Element, i: Element, descending: bool) -> Any:
        """Take element i as a key, and count its digits."""
        # the first bit turned round, so that the order is that of numbers without signs
        unsigned = tirx.bitwise_xor(sort_key(element, descending), tirx.min_value(self.dtype))
        key = tirx.Var("key", self.dtype)
        return tirx.SeqStmt(
            [
                tirx.Bind(key, unsigned),
                tirx.BufferStore(self.keys, key, [i]),
                tirx.BufferStore(self.places, i, [i]),
                *(self._increment(self._count_place(_number(number), key)) for number in range(self.passes)),
            ]
        )

    def _start_of(self, number: Element, value: Element) -> Any:
        """The count of a digit's value becomes the place of the first element that has it."""
        each, sum_ = number * self.values + value, tirx.BufferLoad(self.total, [0])
        count = tirx.Var("count", "int32")
        return tirx.SeqStmt(
            [
                tirx.Bind(count, tirx.BufferLoad(self.counts, [each])),
                tirx.BufferStore(self.counts, sum_, [each]),
                tirx.BufferStore(self.total, sum_ + count, [0]),
            ]
        )

    def _move(self, number: Element, old: Element, i: Element) -> Any:
        """Element i goes to its place by the digit of this number, in the other half of the buffers."""
        key, to = tirx.Var("key", self.dtype), tirx.Var("to", "int32")
        target = _number(self.length) - old + to
        return tirx.SeqStmt(
            [
                tirx.Bind(key, tirx.BufferLoad(self.keys, [old + i])),
                tirx.Bind(to, tirx.BufferLoad(self.counts, self._count_place(number, key))),
                self._increment(self._count_place(number, key)),
                tirx.BufferStore(self.keys, key, [target]),
                tirx.BufferStore(self.places, tirx.BufferLoad(self.places, [old + i]), [target]),
            ]
        )

    def scatter_pass(self, number: Element) -> Any:
        """Order by the digit of this number, unless all elements have the same one."""
        old, size = tirx.BufferLoad(self.source, [0]), _number(self.length)
        whole = tirx.SeqStmt(
            [
                tirx.BufferStore(self.total, _number(0), [0]),
                _loop(self.values, lambda value: self._start_of(number, value)),
                _loop(self.length, lambda i: self._move(number, old, i)),
                tirx.BufferStore(self.source, size - old, [0]),
            ]
        )
        first = self._count_place(number, tirx.BufferLoad(self.keys, [old]))
        differ = tirx.IfThenElse(tirx.LT(tirx.BufferLoad(self.counts, first), size), whole, None)
        # a row that turns out to be empty has no first key
        return differ if isinstance(self.length, int) else tirx.IfThenElse(tirx.LT(_number(0), size), differ, None)

    def place(self, i: Element) -> Element:
        """The place of the element that is number i in the order."""
        return tirx.BufferLoad(self.places, [tirx.BufferLoad(self.source, [0]) + i])


def by_digits(result: Any, x: Any, shape: Sequence[Any], descending: bool) -> Any:
    """The same for rows of any length. Digits that all elements of a row have in common are passed over."""
    *batch, length = shape
    dtype = scalar.dtype_of(sort_key(tirx.BufferLoad(x, [tirx.const(0, "int32") for _ in shape]), False))
    sort = _RadixSort(length, dtype)

    def row(at: list[Any]) -> Any:
        return tirx.SeqStmt(
            [
                tirx.BufferStore(sort.source, _number(0), [0]),
                sort.clear_counts(),
                _loop(length, lambda i: sort.read(tirx.BufferLoad(x, [*at, i]), i, descending)),
                _loop(sort.passes, sort.scatter_pass),
                _loop(length, lambda i: tirx.BufferStore(result, sort.place(i), [*at, i])),
            ]
        )

    return tirx.SeqStmt([*(tirx.AllocBuffer(buffer) for buffer in sort.buffers), loops(batch, row)])


__all__ = ["by_digits", "is_short", "network"]
