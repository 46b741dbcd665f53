"""Sizes and counts beyond 32 bits: of types, of arrays whose pages nobody touches, and of what no memory holds."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay as R
from relay import Float32, Int8, Tensor, relay
from relay.ir.expr import OpCall, Var
from relay.ir.traverse import walk
from relay.ir.types import FLOAT32, TensorType
from relay.operator import Emitter, lookup
from relay.ops.tir.tvm_modules import te, tirx, wide_indices

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


# ---- data-dependent sizes


def test_bytes_that_wrap_around_are_too_many() -> None:
    """2**29 * 2**29 * 16 numbers of 4 bytes are 2**64."""

    @relay
    def written(n, i):
        x = relay.tanh(relay.full((n, n, 16), n + 0.5))
        x[i, i, 3] = 2.0
        return x[i, i, i]

    @relay
    def returned(n):
        return relay.full((n, n, 16), n + 0.5)

    @relay
    def listed(n, i):
        found = []
        for k in range(i):
            found.append(relay.full((n, n, 16), k * 1.0))
        return found[1][1, 1, 3]

    for n in (2**29, 2**30, 2**31 - 1):
        for call in (lambda n: written(n, 5), returned, lambda n: listed(n, 3)):
            with pytest.raises(R.ExecutionError, match="not enough memory"):
                call(n)
        with pytest.raises(R.ExecutionError, match=r"test_large_sizes.*\n?.*not enough memory for Tensor"):
            returned.interpret(n)


def test_bytes_of_sizes_of_arguments_that_wrap_around_are_too_many() -> None:
    @relay(dynamic=True)
    def written(x, i):
        n = x.shape[0]
        y = relay.tanh(relay.full((n, n, n, n), 0.5) * x[0])
        y[i, i, i, i] = 2.0
        return y[i, i, i, 0]

    @relay(dynamic=True)
    def returned(x, i):
        n = x.shape[0]
        return relay.tanh(relay.full((n, n, n, n), 0.5) * x[i])

    @relay(dynamic=True)
    def listed(x, i):
        found = []
        for k in range(i):
            found.append(relay.full((x.shape[0],) * 4, k * 1.0))
        return found[1][1, 1, 1, 0]

    many = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (2**16,), (0,))
    for function in (written, returned, listed):
        function(np.ones(4, np.float32), 2)
        with pytest.raises(R.ExecutionError, match="not enough memory"):
            function(many, 2)


def test_counts_of_sizes_of_the_run() -> None:
    """An int32 holds one such size, and not the product of two."""

    @relay
    def counts(n, m, large):
        x = relay.ones((n, m))
        whole = relay.sum(x > 0), relay.argmax(x), x.size, relay.argmax(relay.zeros(large))
        return whole, (relay.sum(x > 0, axis=0)[0], relay.argmax(x[0]), x.shape[0], len(x))

    whole, axes = assert_modes_agree(counts, 3, 4, np.int64(5))
    assert [part.dtype for part in whole] == ["int64"] * 4 and [part.dtype for part in axes] == ["int32"] * 4
    assert [int(part) for part in (*whole, *axes)] == [12, 0, 12, 0, 3, 0, 3, 3]
    text = R.to_text(counts.typed(3, 4, np.int64(5)))
    assert "made wide large" in text and R.to_text(R.parse(text)) == text

    @relay
    def ends(n):
        x = relay.zeros(n, dtype=relay.Int8)
        return x[-1], x.shape[0]

    last, size = ends.interpret(np.int64(2**31 + 5))  # pages of zeros are no memory
    assert int(last) == 0 and int(size) == 2**31 + 5
    with pytest.raises(R.ExecutionError, match="a size must be a number from 0 to 70368744177664"):
        ends(np.int64(2**50))

    @relay
    def numbers(n):
        return relay.arange(n)[n - 1 :]

    assert_modes_raise(
        numbers, np.int64(2**31 + 5), error=R.ExecutionError, match="an arange of int32 has 2147483647 numbers at most"
    )


def test_what_is_chosen_of_a_large_array() -> None:
    @relay
    def chosen(x, mask, a):
        return x[mask].shape[0], x[x > 6].size, x[a:].shape[0], x[a:]

    types = chosen.typed(*(Tensor[t, (SIDE * SIDE,)] for t in (Int8, R.Bool)), np.int64(1)).main.result.items
    assert [part.dtype.name for part in types[:3]] == ["int64"] * 3
    chosen.compile(*(Tensor[t, (SIDE * SIDE,)] for t in (Int8, R.Bool)), np.int64(1))


def test_places_on_a_long_axis() -> None:
    count = SIDE * SIDE

    @relay
    def read(x, small, place, large, unsigned, few, many):
        moved = relay.roll(x, 1)[0], relay.flip(x)[0], x[::-1][0], relay.concatenate((x, x))[2 * count - 1]
        longer = relay.repeat(x, 2)[-1], relay.tile(x, 2)[-1], relay.pad(x, ((1, 1),))[-2]
        taken = relay.take(x, many, mode="clip"), relay.take_along_axis(x, many, axis=0), x[many], x[large - 2 :]
        return (*moved, *longer), (x[small], x[place], x[large], x[unsigned]), (x[few], *taken)

    x = np.zeros(count, np.int8)  # untouched pages are no memory
    x[-1] = 7
    places = np.int8(-1), np.int32(-1), np.int64(count - 1), np.uint64(count - 1)
    moved, single, several = read(x, *places, np.array([-1, 0], np.int32), np.array([count - 1, -1, 0]))
    assert [int(n) for n in (*moved, *single)] == [7] * 11
    assert [part.tolist() for part in several] == [[7, 0], [7, 0, 0], [7, 7, 0], [7, 7, 0], [0, 0, 7]]


@pytest.mark.parametrize(
    "body",
    [
        *("relay.argsort(x)", "relay.sort(x)", "relay.topk(x, 2)", "relay.topk_indices(x, 2)", "relay.unique(x, 3)"),
        *("relay.searchsorted(x, x[:3])", "relay.random_permutation(relay.random_key(0), x)"),
        "relay.random_categorical(relay.random_key(0), x)",
    ],
)
def test_places_that_an_int32_does_not_hold_are_refused(body: str) -> None:
    program = R.from_source(f"def program(x):\n    return {body}\n", {"relay": relay})
    with pytest.raises(R.ShapeError, match=r"(?s)<relay>:2:12.*is too long: places along it are int32"):
        program.typed(Tensor[Float32, (SIDE * SIDE,)])


# ---- elements that are known one by one


@pytest.mark.parametrize("body", ["tuple(range(10**9))", "[*range(10**9)]", "(1,) * 10**9"])
def test_elements_that_nobody_writes_out(body: str) -> None:
    program = R.from_source(f"def program(x):\n    return len({body})\n", {"relay": relay})
    with pytest.raises(R.TypeCheckError, match=r"(?s)<relay>:2:.*these are 1000000000 elements"):
        program.typed(Tensor[Int8, (10**9,)])


@pytest.mark.parametrize("body", ["range(10**9)", "enumerate(range(10**9))", "x", "reversed(range(10**9))"])
def test_long_lists_are_filled_by_loops(body: str) -> None:
    program = R.from_source(f"def program(x):\n    return len(list({body}))\n", {"relay": relay})
    bindings = program.typed(Tensor[Int8, (10**9,)]).main.body.bindings
    assert len(bindings) < 20


def test_a_long_list_of_one_value_is_filled_by_a_loop() -> None:
    @relay
    def left():  # type: ignore[no-untyped-def]
        found = [True] * 1_000_000
        found[5] = False
        count = 0
        for one in found:
            if one:
                count += 1
        return count

    assert int(left()) == 999_999


# ---- indices that operators compute


def _integers_of_gradient(name: str, shape: tuple[int, ...], **given: object) -> list[tuple[str, str]]:
    """The operators that an operator's gradient counts places with, and the dtypes of these."""
    operator = lookup(name)
    attributes = {**operator.attributes, **given}
    emitter, type_ = Emitter(), TensorType(FLOAT32, shape)
    x = emitter.value(Var("x", type_))
    out = emitter.call(operator, [x], attributes)
    seed = emitter.value(Var("dout", out.type))
    operator.gradient(x, out, seed, **attributes)
    calls = [(b.value.operator, t.type) for b in emitter.bindings for t in b.targets if isinstance(b.value, OpCall)]
    return [(n, t.base.name) for n, t in calls if isinstance(t, TensorType) and not t.base.is_float and t.shape]


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_the_gradient_of_padding_counts_places_on_a_long_axis_in_int64(mode: str) -> None:
    for extent, dtype in ((40, "int32"), (3_000_000_000, "int64")):
        found = _integers_of_gradient("pad", (extent,), widths=3, mode=mode)
        assert {base for _, base in found} == {dtype}, found


def test_rows_of_many_images_are_counted_in_int64() -> None:
    for batch, dtype in ((2, "int32"), (4000, "int64")):
        types = TensorType(FLOAT32, (batch, 1, 1000, 1000)), TensorType(FLOAT32, (batch, 1, 1, 2))
        operator = lookup("grid_sample")
        assert operator.composition is not None
        body = operator.composition.body(types, operator.attributes).typed.main.body
        takes = [b.value for b in walk(body) if isinstance(b.value, OpCall) and b.value.operator == "take"]
        assert {c.arguments[1].type.base.name for c in takes if c.arguments[1].type.shape} == {dtype}


def test_bins_of_large_axes_have_wide_places() -> None:
    """Where a bin starts is computed from its number, in 64 bits, and may be beyond 32."""
    with wide_indices(True):
        shape = [tirx.const(extent, "int64") for extent in (1, 1, 3 * 10**9)]
        stage = lookup("adaptive_max_pool1d").compute(te.placeholder(shape, "int8"), output_size=(4,), layout="NCW")
    (bins,) = stage.op.input_tensors
    assert "bins" in bins.op.name and "int32" not in str(bins.op.body)
