"""Methods of data types that Python's operators call: `__add__`, `__getitem__`, `__call__`, .."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.definition import data_class
from relay.ir.types import show
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.values import data
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.records import own_method
from relay.typecheck.unification import resolve

_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv", "mod": "mod",
    "power": "pow", "matmul": "matmul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift",
}  # fmt: skip
_METHODS = {name: (f"__{method}__", f"__r{method}__") for name, method in _BINARY.items()} | {
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "negative": ("__neg__", ""),
    "bitwise_not": ("__invert__", ""),
}


def operator(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """An operator of Python's syntax on values of data types; None if no operand is one."""
    if not any(data.data_type(o) is not None for o in operands):
        return None
    wanted = _METHODS.get(name)
    if wanted is None:
        return None
    found = call(checker, out, wanted[0], operands[0], operands[1:], span)
    if found is None and len(operands) == 2:
        found = call(checker, out, wanted[1], operands[1], operands[:1], span)
    if found is not None:
        return found
    position, type_ = next((i, t) for i, o in enumerate(operands) if (t := data.data_type(o)) is not None)
    raise TypeCheckError(
        f"{show(resolve(type_))} has no method {wanted[min(position, 1)]}", span, help="define it in the class"
    )


def of_record(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """An operator of Python's syntax that the class of a dataclass or named tuple defines, in a method decorated with
    @relay; None if it does not."""

    records = [expand(checker, out, o, span) if isinstance(o, DynamicValue) else o for o in operands]
    for method, value, others in zip(_METHODS.get(name, ()), records, (records[1:], records[:1]), strict=False):
        own = own_method(value, method) if method and isinstance(value, Tuple) and value.form is not None else None
        if own is not None:
            return checker.engine.call_function(checker, out, own, [value, *others], (), span)
    return None


def call(
    checker: Checker,
    out: TypedBlockBuilder,
    method: str,
    value: AbstractValue,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue | None:
    """`value.method(..)`; None if the value is of no data type, or its class does not define the method."""
    type_ = data.data_type(value)
    owner = None if type_ is None else data_class(type_.definition)
    if owner is None or method not in owner.methods:
        return None
    return checker.engine.call_function(
        checker, out, GlobalFunction(owner.methods[method]()), [value, *arguments], (), span
    )
