"""Notation of operator definitions: the names that every operator's paragraph is written with.

    @register_op(relation=Relation("T:number, T -> T", broadcast), pattern=Pattern.BROADCAST,
                 compute=elementwise(scalar.multiply), gradient=lambda x, y, out, dout: (dout * y, dout * x))
    def multiply(x: Tensor, y: Tensor) -> Tensor: ...

`Tensor` is a NumPy array in a reference, `Value` a symbolic value in a gradient or a requirement, `Stage` a te tensor
in a compute function, where `dims(stage)` is its shape in numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np

from relay.ir.expr import Atom, Constant, OpCall
from relay.ir.sizes.facts import facts
from relay.ir.types import FLOAT32, INT32, INT64, BaseClass, BaseType, Dim, TensorType
from relay.operator import (
    LOOP,
    UNDEFINED,
    Algebra,
    Batch,
    Batching,
    Emitter,
    Indexing,
    IndexKind,
    InPlace,
    Memory,
    Numerics,
    Pattern,
    Relation,
    Requirement,
    Value,
    alias,
    expansion,
    lookup,
    register_op,
)
from relay.ops.tir import scalar
from relay.ops.tir.scalar import Element
from relay.ops.tir.tvm_modules import index_dtype, te, tirx
from relay.typecheck.guards import fits_int32

__all__ = [
    "LOOP",
    "UNDEFINED",
    "Algebra",
    "Batch",
    "Batching",
    "Element",
    "InPlace",
    "IndexKind",
    "Indexing",
    "Memory",
    "Numerics",
    "Pattern",
    "Relation",
    "Requirement",
    "Stage",
    "Tensor",
    "Value",
    "alias",
    "broadcast_dims",
    "broadcast_load",
    "constant_number",
    "dims",
    "elementwise",
    "expansion",
    "index_base",
    "integer_range",
    "is_integer",
    "loops",
    "making",
    "number_like",
    "number_or_size",
    "register_op",
    "result_dims",
    "result_dtype",
    "same_dim",
    "table",
]

Tensor: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Stage: TypeAlias = Any


# ---- symbolic values


def number_like(value: Value, number: float) -> Value:
    """A number as a rank-0 constant of the value's dtype, where Python's number alone would take another operand's."""
    return value.emitter.constant(number, value.base)


def index_base(*limits: Dim) -> BaseType:
    """The base type of indices and counts up to these numbers: int64 if an int32 does not hold one of them."""
    return INT32 if all(fits_int32(facts(), limit) for limit in limits) else INT64


def integer_range(emitter: Emitter, start: Dim, stop: Dim, dtype: BaseType | None = None) -> Value:
    """The integers from start up to stop, exclusive; stop may be symbolic."""
    base = index_base(stop) if dtype is None else dtype
    attributes: dict[str, Any] = {"start": start, "stop": stop, "step": 1, "dtype": base}
    return emitter.call(lookup("arange"), (), attributes)


def table(emitter: Emitter, make: Callable[[Emitter], Value]) -> Value:
    """The table that `make` computes from sizes alone: a constant if they are numbers."""
    aside = Emitter(emitter.span)
    result = make(aside)
    known: dict[Atom, np.ndarray] = {}
    for binding in aside.bindings:
        (target,), call = binding.targets, binding.value
        assert isinstance(target.type, TensorType)
        if not isinstance(call, OpCall) or not all(isinstance(dim, int) for dim in target.type.shape):
            emitter.items += aside.items
            return emitter.value(result.atom)
        operands = [a.value if isinstance(a, Constant) else known[a] for a in call.arguments]
        known[target] = lookup(call.operator).evaluate(operands, call.attributes)
    return emitter.value(Constant(known[result.atom], emitter.span) if result.atom in known else result.atom)


def constant_number(value: Value) -> float | None:
    """The number that a value is known to be: that of a rank-0 constant, otherwise None."""
    if isinstance(value.atom, Constant) and value.atom.value.ndim == 0:
        return value.atom.value.item()
    return None


def is_integer(base: BaseType) -> bool:
    """True if a base type is a signed or unsigned integer."""
    return base.base_class is BaseClass.INTEGER


# ---- te stages


def loops(extents: Sequence[int], body: Callable[[list[Any]], Any]) -> Any:
    """Nested sequential loops around a statement of their variables."""
    dtypes = [index_dtype() if isinstance(extent, int) else str(extent.ty) for extent in extents]
    variables = [tirx.Var(f"i{n}", dtype) for n, dtype in enumerate(dtypes)]
    statement = body(variables)
    for variable, extent in zip(reversed(variables), reversed(extents), strict=True):
        dtype = str(variable.ty)
        rounds = tirx.const(extent, dtype) if isinstance(extent, int) else extent
        statement = tirx.For(variable, tirx.const(0, dtype), rounds, tirx.ForKind.SERIAL, statement)
    return statement


def dims(stage: Stage) -> tuple[Any, ...]:
    """The shape of a te tensor: numbers, and expressions of TIR for symbolic dims, which are not 0 or 1."""
    return tuple(int(dim.value) if hasattr(dim, "value") else dim for dim in stage.shape)


_result: ContextVar[tuple[tuple[Any, ...], str] | None] = ContextVar("result", default=None)


@contextlib.contextmanager
def making(shape: tuple[Any, ...], dtype: str) -> Iterator[None]:
    """While a compute function runs: the shape and dtype that its call's type says, for `result_dims` and
    `result_dtype`."""
    token = _result.set((shape, dtype))
    try:
        yield
    finally:
        _result.reset(token)


def result_dtype(otherwise: str) -> str:
    """The dtype of the result in a compute function: that of its type, or, outside of a compilation, another one."""
    known = _result.get()
    return otherwise if known is None else known[1]


def result_dims(rule: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
    """The shape of the result in a compute function: that of its type, or, outside of a compilation, the one of its
    rule."""
    known = _result.get()
    return tuple(rule()) if known is None else known[0]


def same_dim(left: Any, right: Any) -> bool:
    """True if two extents are surely the same."""
    return left is right or (isinstance(left, int) and isinstance(right, int) and left == right) or (
        hasattr(left, "same_as") and not isinstance(right, int) and bool(left.same_as(right))
    )  # fmt: skip


def number_or_size(value: Any, dtype: str) -> Element:
    """A number or symbolic size as an expression."""
    return tirx.const(value, dtype) if isinstance(value, int | float) else tirx.Cast(dtype, value)


def widened_value(x: Value) -> Value:
    """x, in float32 if its dtype is smaller."""
    return x.op("cast", dtype=FLOAT32) if x.base.name in ("float16", "bfloat16") else x


def cast_like(value: Value, x: Value) -> Value:
    """The value in x's dtype."""
    return value if value.base == x.base else value.op("cast", dtype=x.base)


def broadcast_dims(*shapes: Sequence[Any]) -> tuple[Any, ...]:
    """The shape that shapes are broadcast to."""
    rank = max(map(len, shapes), default=0)
    result: list[Any] = []
    for axis in range(rank):
        found = [shape[axis - rank] for shape in shapes if axis - rank >= -len(shape)]
        others = [dim for dim in found if not isinstance(dim, int)]
        numbers = [dim for dim in found if isinstance(dim, int) and dim != 1]
        result.append((numbers + others + [1])[0])
    return tuple(result)


def _bind_elements(
    elements: Sequence[Element], uses: list[Element], body: Callable[[Sequence[Element]], Element]
) -> Element:
    """`body` of names for the elements."""
    if len(uses) == len(elements):
        return body(uses)
    element = elements[len(uses)]
    if str(element.ty) == "bool":
        return _bind_elements(elements, [*uses, element], body)
    return scalar.let(element, lambda name: _bind_elements(elements, [*uses, name], body))


def elementwise(
    function: Callable[..., Element],
    *,
    direct: bool = False,
    widened: bool = True,
    half: Callable[..., Element] | None = None,
) -> Callable[..., Stage]:
    """The compute function that applies `function` to the elements, with operands broadcast; attributes are passed on.

    Each element is bound to a variable, so that fusion does not copy what is inlined there to every use; `direct` is
    for functions that use each operand once.

    TVM computes hardly anything in bfloat16: `widened` gives the function float32 instead, and rounds its result.
    `half` takes the function's place for bfloat16 and float16: long polynomials between conversions take TVM seconds.
    """

    def compute(*stages: Stage, **attributes: Any) -> Stage:
        shape = broadcast_dims(*(dims(stage) for stage in stages))

        def body(*index: Element) -> Element:
            elements = [broadcast_load(stage, index) for stage in stages]
            halved = any(str(e.ty) in ("bfloat16", "float16") for e in elements)
            applied = half if half is not None and halved else function
            narrow = widened and any(str(e.ty) == "bfloat16" for e in elements)
            if narrow:
                elements = [scalar.cast(e, "float32") if str(e.ty) == "bfloat16" else e for e in elements]
            if direct:
                return round_to_bfloat16(applied(*elements, **attributes), narrow)
            # LLVM code generation takes no name for vectors of bools; these are used as they are.
            return _bind_elements(elements, [], lambda uses: round_to_bfloat16(applied(*uses, **attributes), narrow))

        return te.compute(shape, body)

    def round_to_bfloat16(result: Element, narrow: bool) -> Element:
        return scalar.cast(result, "bfloat16") if narrow and str(result.ty) == "float32" else result

    return compute


def broadcast_load(stage: Stage, index: tuple[Element, ...]) -> Element:
    """The element of a stage at an index into a shape that it broadcasts to."""
    shape = dims(stage)
    aligned = index[len(index) - len(shape) :]
    return stage(*(0 if dim == 1 else i for dim, i in zip(shape, aligned, strict=True)))
