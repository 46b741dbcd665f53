"""Whether the parts of an operator's definition fit together, asked before anything is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relay.errors import RegistrationError
from relay.ir.dims import DimExpr
from relay.ir.dims import variables as dims_in
from relay.ir.types import (
    DataType,
    FunctionType,
    QuantifiedType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeId,
)
from relay.operator.relation import Relation


def check_relation(
    name: str, relation: Any, operands: Sequence[str], attributes: Mapping[str, Any], variadic: bool
) -> None:
    """Raises RegistrationError if the type is not that of an operator with these operands and attributes."""
    if isinstance(relation, QuantifiedType | FunctionType):
        _check_function_type(name, relation)
        return
    if isinstance(relation, Relation):
        wanted = len(relation.base.operands)
        if relation.base.variadic is not variadic or (not variadic and wanted != len(operands)):
            raise RegistrationError(f"{name!r}: its relation has {wanted} operands, its reference {len(operands)}")
        _check_result(name, relation, attributes)
    rule = relation.shape if isinstance(relation, Relation) else relation
    if callable(rule):
        what = f"its shape rule does not take {len(operands)} shapes and the attributes {_listed(attributes)}"
        _check_call(name, what, rule, len(operands), attributes)


def _check_result(name: str, relation: Relation, attributes: Mapping[str, Any]) -> None:
    result = relation.base.result
    if result.text.startswith("@") and result.text[1:] not in attributes:
        raise RegistrationError(f"{name!r}: its result's dtype is {result.text}, but it has no such attribute")
    if result.is_variable and result.text not in {token.text for token in relation.base.operands}:
        raise RegistrationError(
            f"{name!r}: its result has the variable {result.text}, which no operand has in {relation.base.text!r}"
        )


def _check_function_type(name: str, type_: QuantifiedType | FunctionType) -> None:
    function = type_.body if isinstance(type_, QuantifiedType) else type_
    if not isinstance(function, FunctionType):
        raise RegistrationError(f"the type of {name!r} must be a (quantified) function type, found {type_!r}")
    known = {v for parameter in function.parameters for v in _variables(parameter)}
    for variable in _variables(function.result):
        if variable not in known:
            raise RegistrationError(
                f"{name!r}: its result mentions the variable {variable.name}, which no parameter of {type_} has"
            )


def _variables(type_: Type) -> list[TypeId]:
    match type_:
        case TypeId():
            return [type_]
        case TensorType(base, shape):
            named = [part for part in (base, *shape) if isinstance(part, TypeId)]
            inside = [v for dim in shape if isinstance(dim, DimExpr) for v in dims_in(dim)]
            return [*named, *(v for v in inside if isinstance(v, TypeId))]
        case TupleType(items):
            return [v for item in items for v in _variables(item)]
        case RefType(content):
            return _variables(content)
        case FunctionType(parameters, result):
            return [v for part in (*parameters, result) for v in _variables(part)]
        case DataType(_, arguments):
            return [a for a in arguments if isinstance(a, TypeId)]
        case _:
            return []


def check_parts(
    name: str, operands: Sequence[str], attributes: Mapping[str, Any], definition: Mapping[str, Any]
) -> None:
    """Raises RegistrationError if a function of the definition does not take what it will be given."""
    count, known = len(operands), _listed(attributes)
    compute = definition.get("compute")
    if compute is not None:
        what = f"`compute` does not take {count} tensors and the attributes {known}"
        _check_call(name, what, compute, count, attributes)
    gradient = definition.get("gradient")
    if gradient is not None:
        what = f"`gradient` does not take {count} operands, `out`, `dout` and the attributes {known}"
        _check_call(name, what, gradient, count, {"out": None, "dout": None, **attributes})
    for requirement in definition.get("requirements", ()):
        what = f"a requirement does not take {count} operands and the attributes {known}"
        _check_call(name, what, requirement.holds, count, attributes)
    if definition.get("layouts") is not None:
        _check_call(name, f"`layouts` does not take the attributes {known}", definition["layouts"], 0, attributes)
    for position in definition.get("linear", ()):
        if not 0 <= position < count:
            raise RegistrationError(f"{name!r}: it is said to be linear in operand {position}, but has {count}")
    for fact in ("commutative", "associative"):
        if definition.get(fact) and count != 2:
            raise RegistrationError(f"{name!r}: only an operator of two operands is {fact}, it has {count}")


def _check_call(
    name: str, what: str, function: Callable[..., Any], count: int, attributes: Mapping[str, Any]
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin that does not tell its parameters
    try:
        signature.bind(*([()] * count), **attributes)
    except TypeError as error:
        raise RegistrationError(f"{name!r}: {what}: {error}") from None


def _listed(attributes: Mapping[str, Any]) -> str:
    return ", ".join(attributes) or "(none)"
