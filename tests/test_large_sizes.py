"""Sizes and counts beyond 32 bits: of types, of arrays whose pages nobody touches, and of what no memory holds."""

from __future__ import annotations

import numpy as np
import pytest

import relay as R
from relay import Int8, Tensor, relay

SIDE = 50_000  # a square of these has more than 2**31 elements


@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_and_last_elements_of_a_large_array(dynamic: bool) -> None:
    @relay(dynamic=dynamic)
    def parts(x):  # type: ignore[no-untyped-def]
        whole = x.reshape(-1)
        return x.size, whole.shape, whole[-1], whole[2499999999], len(range(x.size)), x[-1, -1]

    x = np.zeros((SIDE, SIDE), np.int8)  # untouched pages are no memory
    x[-1, -1] = 7
    count = SIDE * SIDE
    size, shape, *numbers = parts(x)
    assert int(size) == int(shape[0]) == count
    assert [int(number) for number in numbers] == [7, 7, count, 7]


def test_indices_and_counts_of_large_arrays_are_int64() -> None:
    @relay
    def found(x):  # type: ignore[no-untyped-def]
        return relay.argmax(x), relay.argmin(x, axis=0), relay.sum(x == 0), relay.sum(x == 0, axis=1)

    for side, dtype in ((SIDE, "int64"), (4, "int32")):
        types = [part.dtype.name for part in found.typed(Tensor[Int8, (side, side)]).main.result.items]
        assert types == [dtype, "int32", dtype, "int32"]


def test_large_types_leave_the_compiler_in_order() -> None:
    @relay
    def last(x):  # type: ignore[no-untyped-def]
        return x.reshape(-1)[-1]

    @relay
    def other(x):  # type: ignore[no-untyped-def]
        return relay.tanh(x).sum()

    last.compile(Tensor[Int8, (SIDE, SIDE)])
    for size in (1, 2):
        other.compile(Tensor[R.Float64, (size,)])


def test_what_no_memory_holds_is_refused_at_its_line() -> None:
    @relay
    def everything(x):  # type: ignore[no-untyped-def]
        return relay.ones((2**31, 2**31)) * x

    with pytest.raises(R.CompileError, match=r"(?s)test_large_sizes.*has 4611686018427387904 elements"):
        everything(2.0)

    @relay
    def much(x):  # type: ignore[no-untyped-def]
        return relay.ones((2**25, 2**25)) * x

    with pytest.raises(R.CompileError, match=r"(?s)test_large_sizes.*takes 4503599627370496 bytes"):
        much(2.0)
