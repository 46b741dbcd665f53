"""te stages that several operators are computed with: constants, reductions, choices between loads.

A reduction over no elements runs no iteration in TVM and leaves its output unwritten, so it becomes a constant here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from relay.ir.types import Dim
from relay.ops.notation import Element, Stage, dims, loops
from relay.ops.tir import scalar
from relay.ops.tir.tvm_modules import te, tirx

ROW_SOFTMAX = "softmax of rows"
"""The tag of a stage that is the softmax along the last axis. It reads exponentials, and these a difference whose first
number is what softmax is of."""


def full(shape: Sequence[Dim], number: float, dtype: str) -> Stage:
    """A stage that is one number everywhere."""
    value = bool(number) if dtype == "bool" else number  # as NumPy: any number but 0 is True
    return te.compute(tuple(shape), lambda *index: scalar.number(value, dtype))


def reduction(
    combine: Callable[[Element, Element], Element],
    identity: float,
    x: Stage,
    axes: Sequence[int],
    keepdims: bool,
    element: Callable[[Element], Element] = lambda e: e,
) -> Stage:
    """`element(x)` combined along the axes (counted from 0), starting with the identity.

    float16 and bfloat16 are combined in float32.
    """
    shape = dims(x)
    result_dtype = scalar.dtype_of(element(_any_element(x)))
    wide = "float32" if result_dtype in ("float16", "bfloat16") else result_dtype
    kept = tuple(1 if i in axes else dim for i, dim in enumerate(shape) if keepdims or i not in axes)
    if any(shape[axis] == 0 for axis in axes):
        return full(kept, identity, result_dtype)

    def load(index: Sequence[Element], reduced: Sequence[Element]) -> Element:
        outer, inner = iter(index), iter(reduced)
        if keepdims:
            places = [next(inner) if i in axes else index[i] for i in range(len(shape))]
        else:
            places = [next(inner) if i in axes else next(outer) for i in range(len(shape))]
        return scalar.cast(element(x(*places)), wide)

    if not axes:
        return te.compute(kept, lambda *index: scalar.cast(load(index, ()), result_dtype))
    reducer = te.comm_reducer(combine, lambda dtype: tirx.const(identity, dtype))
    steps = [te.reduce_axis((0, shape[axis])) for axis in axes]
    stage = te.compute(kept, lambda *index: reducer(load(index, steps), axis=steps))
    if wide == result_dtype:
        return stage
    return te.compute(kept, lambda *index: scalar.cast(stage(*index), result_dtype))


def contraction(
    shape: Sequence[Any],
    extents: Sequence[Any],
    dtype: str,
    terms: Callable[[Sequence[Element], Sequence[Element]], tuple[Element, Element]],
) -> Stage:
    """The sum of the product of the pair `terms(index, reduced)` over all `reduced` within the extents, in `dtype`;
    float16 and bfloat16 are summed in float32."""
    if 0 in extents or 0 in shape:
        return full(shape, 0, dtype)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    steps = [te.reduce_axis((0, extent), name="k") for extent in extents]
    reducer = te.comm_reducer(scalar.add, lambda of: tirx.const(0, of))

    def element(*index: Element) -> Element:
        left, right = terms(index, [step.var for step in steps])
        return reducer(scalar.multiply(scalar.cast(left, wide), scalar.cast(right, wide)), axis=steps)

    stage = te.compute(tuple(shape), element)
    return stage if wide == dtype else te.compute(tuple(shape), lambda *index: scalar.cast(stage(*index), dtype))


def pad_axes(x: Stage, low: Sequence[Any], high: Sequence[Any], number: float = 0) -> Stage:
    """x with a number before and after each axis."""
    shape = dims(x)
    if all(isinstance(width, int) and width == 0 for width in (*low, *high)):
        return x
    result = tuple(before + dim + after for before, dim, after in zip(low, shape, high, strict=True))
    if 0 in shape:
        return full(result, number, str(x.dtype))

    def element(*index: Element) -> Element:
        inside = []
        for i, dim, before, after in zip(index, shape, low, high, strict=True):
            if not isinstance(before, int) or before:
                inside.append(i >= before)
            if not isinstance(after, int) or after:
                inside.append(i < before + dim)
        condition = functools.reduce(tirx.And, inside)
        places = [i - before for i, before in zip(index, low, strict=True)]
        return scalar.guarded_select(condition, x(*places), scalar.number(number, str(x.dtype)))

    return te.compute(result, element, name="padded")


def extern_stage(shape: Sequence[int], inputs: Sequence[Stage], dtype: str, statement: Callable[..., Element]) -> Stage:
    """A stage that `statement(output, *inputs)`, a TIR statement of buffers, writes."""

    # These buffers are at offset 0, which te would leave open.
    return te.extern(
        tuple(shape),
        list(inputs),
        lambda ins, outs: statement(outs[0], *ins),
        name="written",
        in_buffers=[tirx.decl_buffer(x.shape, str(x.dtype), f"input{i}") for i, x in enumerate(inputs)],
        out_buffers=[tirx.decl_buffer(tuple(shape), dtype, "written")],
        dtype=dtype,
    )


def updated_copy(x: Stage, inputs: Sequence[Stage], statement: Callable[..., Any], *, changes: bool) -> Stage:
    """A copy of x on which `statement(result, *inputs)` then runs; just the copy where it changes nothing."""
    shape = dims(x)
    if not changes:
        return te.compute(shape, lambda *index: x(*index))

    def copy_and_update(result: Any, old: Any, *rest: Any) -> Any:
        copy = loops(shape, lambda index: tirx.BufferStore(result, tirx.BufferLoad(old, index), index))
        return tirx.SeqStmt([copy, statement(result, *rest)])

    return extern_stage(shape, [x, *inputs], str(x.dtype), copy_and_update)


class Registers:
    """Names for the values of a long computation, each in a buffer of one element, which LLVM makes a register.

    TVM's analyses put the values of `Let` and `Bind` in place of their names, which takes exponential time where names
    are used more than once and values contain names. They do not look through a buffer.
    """

    def __init__(self) -> None:
        self._statements: list[Any] = []

    def name(self, value: Element) -> Element:
        """The value, computed once."""
        register = tirx.decl_buffer((1,), scalar.dtype_of(value), f"t{len(self._statements)}")
        self._statements += [tirx.AllocBuffer(register), tirx.BufferStore(register, value, [0])]
        return tirx.BufferLoad(register, [0])

    def prepend_definitions(self, statement: Any) -> Any:
        """The statement after the definitions of named values."""
        return tirx.SeqStmt([*self._statements, statement])


def register_stage(
    shape: Sequence[int],
    inputs: Sequence[Stage],
    dtype: str,
    element: Callable[[Registers, Sequence[Element], Sequence[Any]], Element],
) -> Stage:
    """A stage whose element at an index is `element(registers, index, input buffers)`, a long computation."""
    if 0 in shape:
        return full(shape, 0, dtype)

    def statement(output: Any, *buffers: Any) -> Any:
        def store(index: list[Any]) -> Any:
            registers = Registers()
            value = element(registers, index, buffers)
            return registers.prepend_definitions(tirx.BufferStore(output, value, index))

        return loops(shape, store)

    return extern_stage(shape, inputs, dtype, statement)


def _any_element(x: Stage) -> Element:
    """An expression of x's dtype, to find the dtype of expressions made of it."""
    return tirx.Var("x", str(x.dtype))


def total(x: Stage, axes: Sequence[int], keepdims: bool, element: Callable[[Element], Element] = lambda e: e) -> Stage:
    """The sum along axes."""
    return reduction(scalar.add, 0, x, axes, keepdims, element)


def maximum_along(x: Stage, axes: Sequence[int], keepdims: bool) -> Stage:
    """The maximum along axes; NaN if there is one, the lowest number over no elements."""
    return reduction(scalar.maximum, lowest_number(str(x.dtype)), x, axes, keepdims)


def minimum_along(x: Stage, axes: Sequence[int], keepdims: bool) -> Stage:
    """The minimum along axes; NaN if there is one, the highest number over no elements."""
    return reduction(scalar.minimum, highest_number(str(x.dtype)), x, axes, keepdims)


def lowest_number(dtype: str) -> float:
    """The identity of the maximum."""
    return -math.inf if scalar.is_float(dtype) else int(tirx.min_value(dtype).value)


def highest_number(dtype: str) -> float:
    """The identity of the minimum."""
    return math.inf if scalar.is_float(dtype) else int(tirx.max_value(dtype).value)


def choose(position: Element, bounds: Sequence[int], load: Callable[[int], Element]) -> Element:
    """`load(k)` for the k with bounds[k] <= position < bounds[k + 1], by bisection: the expression stays shallow."""

    def bisect_bounds(low: int, high: int) -> Element:
        if high - low == 1:
            return load(low)
        middle = (low + high) // 2
        return scalar.guarded_select(position < bounds[middle], bisect_bounds(low, middle), bisect_bounds(middle, high))

    return bisect_bounds(0, len(bounds) - 1)
