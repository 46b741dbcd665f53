"""The names that every operator's paragraph is written with.

    @register_op(relation=Relation("T:number, T -> T", broadcast), pattern=Pattern.BROADCAST,
                 compute=elementwise(scalar.multiply), gradient=lambda x, y, out, dout: (dout * y, dout * x))
    def multiply(x: Tensor, y: Tensor) -> Tensor: ...

`Tensor` is a NumPy array in a reference, `Value` a symbolic value in a gradient or a requirement, `Stage` a te tensor
in a compute function, where `dims(stage)` is its shape in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from relay.ir.expr import Constant
from relay.ir.types import BaseClass, BaseType
from relay.operator import InPlace, Pattern, Relation, Requirement, Value, alias, expansion, register_op
from relay.ops import scalar
from relay.ops.lazy import te, tirx
from relay.ops.scalar import Element

__all__ = [
    "Element",
    "InPlace",
    "Pattern",
    "Relation",
    "Requirement",
    "Stage",
    "Tensor",
    "Value",
    "alias",
    "broadcast_load",
    "constant_number",
    "dims",
    "elementwise",
    "expansion",
    "is_integer",
    "loops",
    "number_like",
    "register_op",
]

Tensor: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Stage: TypeAlias = Any


# ---- symbolic values


def number_like(value: Value, number: float) -> Value:
    """A number as a rank-0 constant of the value's dtype, where Python's number alone would take another operand's."""
    return value.emitter.constant(number, value.base)


def constant_number(value: Value) -> float | None:
    """The number that a value is known to be: that of a rank-0 constant, otherwise None."""
    if isinstance(value.atom, Constant) and value.atom.value.ndim == 0:
        return value.atom.value.item()
    return None


def is_integer(base: BaseType) -> bool:
    """Whether a base type is a signed or unsigned integer."""
    return base.base_class is BaseClass.INTEGER


# ---- te stages


def loops(extents: Sequence[int], body: Callable[[list[Any]], Any]) -> Any:
    """Nested sequential loops around a statement of their variables."""
    variables = [tirx.Var(f"i{n}", "int32") for n in range(len(extents))]
    statement = body(variables)
    for variable, extent in zip(reversed(variables), reversed(extents), strict=True):
        statement = tirx.For(
            variable, tirx.const(0, "int32"), tirx.const(extent, "int32"), tirx.ForKind.SERIAL, statement
        )
    return statement


def dims(stage: Stage) -> tuple[int, ...]:
    """The shape of a te tensor, in numbers."""
    return tuple(int(dim) for dim in stage.shape)


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
        shape = np.broadcast_shapes(*(dims(stage) for stage in stages))

        def body(*index: Element) -> Element:
            elements = [broadcast_load(stage, index) for stage in stages]
            halved = any(str(e.ty) in ("bfloat16", "float16") for e in elements)
            applied = half if half is not None and halved else function
            narrow = widened and any(str(e.ty) == "bfloat16" for e in elements)
            if narrow:
                elements = [scalar.cast(e, "float32") if str(e.ty) == "bfloat16" else e for e in elements]
            if direct:
                return rounded(applied(*elements, **attributes), narrow)
            # LLVM code generation takes no name for vectors of bools; these are used as they are.
            named = [(element, tirx.Var("x", element.ty)) for element in elements if str(element.ty) != "bool"]
            uses = [next((v for e, v in named if e is element), element) for element in elements]
            result = rounded(applied(*uses, **attributes), narrow)
            for element, variable in reversed(named):
                result = tirx.Let(variable, element, result)
            return result

        return te.compute(shape, body)

    def rounded(result: Element, narrow: bool) -> Element:
        return scalar.cast(result, "bfloat16") if narrow and str(result.ty) == "float32" else result

    return compute


def broadcast_load(stage: Stage, index: tuple[Element, ...]) -> Element:
    """The element of a stage at an index into a shape that it broadcasts to."""
    shape = dims(stage)
    aligned = index[len(index) - len(shape) :]
    return stage(*(0 if dim == 1 else i for dim, i in zip(shape, aligned, strict=True)))
