"""Methods that Python's syntax calls, `__add__`, `__getitem__`, `__call__`, .., of records and data types."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.definition import data_class
from relay.ir.expr import Expr, OpCall, Static
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, Index, IndexUpdate
from relay.ir.types import DataType, TupleType, prune, show
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    empty_context,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_lists import tables
from relay.typecheck.elaboration.library import overload_calls, overloads
from relay.typecheck.elaboration.members.python_classes import method_overloads
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve

_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv", "mod": "mod",
    "power": "pow", "matmul": "matmul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift",
}  # fmt: skip
METHODS = {name: (f"__{method}__", f"__r{method}__") for name, method in _BINARY.items()} | {
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "negative": ("__neg__", ""),
    "bitwise_not": ("__invert__", ""),
}


def operator(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """An operator of Python's syntax that the class of an operand defines; None if none does."""
    kinds = [prune(o.type) if isinstance(o, DynamicValue) else None for o in operands]
    if not any(isinstance(k, TupleType | DataType) for k in kinds) and not any(isinstance(o, Tuple) for o in operands):
        return None
    values = [
        expand(checker, out, o, span) if isinstance(k, TupleType) else o  # type: ignore[arg-type]
        for k, o in zip(kinds, operands, strict=True)
    ]
    for method, value, others in zip(METHODS.get(name, ()), values, (values[1:], values[:1]), strict=False):
        found = call(checker, out, method, value, others, span) if method else None
        if found is not None:
            return found
    if name == "not_equal":  # as in Python, what `==` is not
        same = operator(checker, out, "equal", operands, span)
        engine = checker.engine
        return None if same is None else engine.apply_operator(checker, out, "logical_not", [same], {}, span, [])
    return None


def require_method(name: str, operands: Sequence[AbstractValue], span: Span | None) -> None:
    """Raise TypeCheckError for an operator on a value of a data type, which does not define it."""
    wanted = METHODS.get(name)
    if wanted is None or name in ("equal", "not_equal"):
        return
    for position, operand in enumerate(operands):
        if (type_ := data.data_type(operand)) is not None:
            raise TypeCheckError(
                f"{show(resolve(type_))} has no method {wanted[min(position, 1)]}", span, help="define it in the class"
            )


def call(
    checker: Checker,
    out: TypedBlockBuilder,
    method: str,
    value: AbstractValue,
    arguments: Sequence[AbstractValue],
    span: Span | None,
    keywords: Sequence[tuple[str, AbstractValue]] = (),
) -> AbstractValue | None:
    """`value.method(..)`; None if its class does not define the method, or for a tensor, if no overload of it is about
    these arguments. Raises TypeCheckError for a method that is not of the language."""
    if isinstance(value, Tuple):
        known = [o for o in method_overloads(value, method) if not o.is_written]
        if known and value.form is not None and tables.kind(value.form.cls) is not None:
            given = overloads.Call(checker, empty_context(), out, None, [value, *arguments], keywords, span)
            return overload_calls.call(known, given)
        own = records.defined_method(value, method, span)
        return (
            None
            if own is None
            else checker.engine.call_function(checker, out, own, [value, *arguments], keywords, span, 1)
        )
    type_ = data.data_type(value)
    if type_ is None:
        found = [o for o in method_overloads(value, method) if o.owner is not None]
        given = overloads.Call(checker, empty_context(), out, None, [value, *arguments], keywords, span)
        return overload_calls.call_first(found, given)
    owner = data_class(type_.definition)
    if owner is None or method not in owner.methods:
        return None
    return checker.engine.call_function(
        checker, out, GlobalFunction(owner.methods[method]()), [value, *arguments], keywords, span, 1
    )


def is_followed(value: Expr) -> bool:
    """True if the check of aliases follows the call of a method that an expression may be, as `x + y`."""
    if isinstance(value, OpCall):
        return value.operator in METHODS
    return isinstance(value, Index | IndexUpdate | Attribute)


def is_followed_call(call: Apply, callee: AbstractValue) -> bool:
    """True if the check of aliases follows a call."""
    match call.function:
        case Static(Intrinsic(name)):
            return name in ("augment", "set_field", "inherited", *records.TAKING, *records.STATEMENTS)
        case Static():
            return False
        case _:
            return not isinstance(callee, PythonObject) or isinstance(callee.value, type)
