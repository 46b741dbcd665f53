"""Types of derivatives, shared by the checker, the interpreter and the AD pass.

    CT(Tensor[float, s]) = Tensor[float, s]     CT(Tensor[int or bool, s]) = ()      CT((A, ..)) = (CT(A), ..)
    CT(D) = D' with CT of every field           CT(Ref[T]) = CT(Stack[T]) = ()       CT(function): none, an error

`grad(f)` for f : (P, ..) -> R returns one CT(P_i) for each `wrt`, then the kept components of R, flat; bare when it
is a single gradient and nothing is kept. What has no gradient has an empty one: `()` in finished modules, and None
where types have the structures of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from relay.errors import DifferentiationError
from relay.ir.definition import is_optional
from relay.ir.expr import Grad
from relay.ir.types import (
    NONE,
    UNIT,
    BaseType,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    prune,
    show,
)
from relay.support.locks import Lock

Monomorphic: TypeAlias = Callable[[DataType], DataType]
"""Gives a data type without arguments for one that may have some."""


def cotangent_type(type_: Type, monomorphic: Monomorphic = lambda t: t, nothing: TupleType = UNIT) -> Type:
    """The type of cotangents of values of a type; `nothing` is that of what has no gradient, NONE where types have the
    structures of Python. Raises DifferentiationError for functions."""
    type_ = prune(type_)  # type: ignore[assignment]
    match type_:
        case TensorType(base, _):
            base = prune(base)  # type: ignore[assignment]
            return type_ if isinstance(base, BaseType) and base.is_float else nothing
        case TupleType(items, form):
            return TupleType(tuple(cotangent_type(t, monomorphic, nothing) for t in items), form)
        case DataType():
            concrete = monomorphic(type_)
            made = concrete.definition if concrete.arguments else gradient_definition(concrete.definition)
            if made is None:
                return nothing
            return type_ if made is concrete.definition else DataType(made)
        case FunctionType():
            raise DifferentiationError("a function has no gradient; differentiate with respect to what it captures")
        case _:
            return nothing


_lock = Lock()


def gradient_definition(definition: DataDefinition) -> DataDefinition | None:
    """The data type of the gradients of a monomorphic data type, with its constructors: itself if all tensors in it are
    floats, None if none is. Raises DifferentiationError for functions in it."""
    with _lock:
        if definition.gradient is not None:
            return definition.gradient
        group: dict[DataDefinition, tuple[set[DataDefinition], bool, bool]] = {}
        pending = [definition]
        while pending:
            current = pending.pop()
            if current not in group:
                group[current] = _contents(current)
                pending += group[current][0]
        reach = {d: _reachable_definitions(d, group) for d in group}
        floats = {d for d in group if any(group[r][1] for r in reach[d])}
        for current in floats:
            if current.gradient is None:
                plain = not any(group[r][2] or r not in floats for r in reach[current])
                name = f"{current.name}_gradient"
                current.gradient = current if plain else DataDefinition(name, origin=current.origin)
        for current in floats:
            made = current.gradient
            if made is not None and made is not current and not made.constructors:
                made.constructors = tuple(_gradient_constructor(c, floats) for c in current.constructors)
        return definition.gradient


def _gradient_constructor(constructor: Constructor, floats: set[DataDefinition]) -> Constructor:
    fields = tuple(_field(t, floats, UNIT) for t in constructor.fields)
    declared = tuple(_field(t, floats, NONE) for t in constructor.declared or constructor.fields)
    return Constructor(constructor.name, fields, constructor.names, declared)


def _field(type_: Type, floats: set[DataDefinition], nothing: TupleType) -> Type:
    match type_:
        case DataType(definition):
            found = definition.gradient if definition in floats else None
            return nothing if found is None else DataType(found)
        case TupleType(items, form):
            return TupleType(tuple(_field(t, floats, nothing) for t in items), form)
        case _:
            return cotangent_type(type_, nothing=nothing)


def _contents(definition: DataDefinition) -> tuple[set[DataDefinition], bool, bool]:
    """The data types that a definition mentions; whether it has float tensors itself, and anything without gradient."""
    others: set[DataDefinition] = set()
    floats = rest = False
    pending = [t for c in definition.constructors for t in c.fields]
    while pending:
        match pending.pop():
            case DataType(other):
                others.add(other)
            case TupleType(items):
                pending += items
            case TensorType(BaseType() as base) if base.is_float:
                floats = True
            case FunctionType() as function:
                cotangent_type(function)  # raises
            case _:
                rest = True
    return others, floats, rest


def _reachable_definitions(
    start: DataDefinition, group: Mapping[DataDefinition, tuple[set[DataDefinition], bool, bool]]
) -> set[DataDefinition]:
    found, pending = {start}, [start]
    while pending:
        new = group[pending.pop()][0] - found
        found |= new
        pending += new
    return found


def has_gradient(type_: Type, monomorphic: Monomorphic = lambda t: t) -> bool:
    """True if a cotangent of this type contains a tensor."""
    match cotangent_type(type_, monomorphic):
        case TupleType(items):
            return any(has_gradient(t, monomorphic) for t in items)
        case _:
            return True


def list_field(type_: Type, monomorphic: Monomorphic = lambda t: t) -> tuple[str, str] | None:
    """A data type in a type and a field of it that is a list with float tensors, by which nothing is differentiated:
    the gradient would lack it. None if there is none."""
    pending: list[Type] = [type_]
    met: set[DataDefinition] = set()
    while pending:
        match prune(pending.pop()):
            case TupleType(items):
                pending += items
            case DataType() as data:
                definition = monomorphic(data).definition
                if definition in met:
                    continue
                met.add(definition)
                for constructor in definition.constructors:
                    for number, field in enumerate(constructor.fields):
                        if isinstance(field, StackType) and _holds_floats(field.element):
                            names = constructor.names or ()
                            return definition.name, names[number] if number < len(names) else str(number)
                        pending.append(field)
            case _:
                pass
    return None


def _holds_floats(type_: Type) -> bool:
    """True if a type may contain float tensors, as every data type may."""
    match prune(type_):
        case TensorType(base, _):
            base = prune(base)  # type: ignore[assignment]
            return isinstance(base, BaseType) and base.is_float
        case TupleType(items):
            return any(map(_holds_floats, items))
        case StackType(inside) | RefType(inside):
            return _holds_floats(inside)
        case found:
            return isinstance(found, DataType)


def output_type(result: Type, grad: Grad) -> TensorType:
    """The type of the result component that is differentiated. Raises DifferentiationError if it has no derivative."""
    output = result
    if grad.has_aux and (not isinstance(result, TupleType) or len(result.items) != 2):
        raise DifferentiationError(
            f"has_aux is for a function that returns a pair, the value and the rest; it returns {_type_text(result)}",
            help="return two: `return value, auxiliary`; a tuple or dict may be the second",
        )
    if isinstance(result, TupleType):
        if grad.output is None and len(result.items) > 1:
            raise DifferentiationError(
                f"the function returns {len(result.items)} results: say which one is differentiated, by output= or"
                " has_aux=",
                help="output=0 is the first one; with has_aux=True the first of a pair is differentiated and the second"
                " passed on",
            )
        position = grad.output or 0
        if not result.items:
            raise DifferentiationError("the function returns nothing that could be differentiated")
        if not -len(result.items) <= position < len(result.items):
            raise DifferentiationError(f"the function has {len(result.items)} results; there is no output {position}")
        output = result.items[position]
    elif grad.output not in (None, 0, -1):
        raise DifferentiationError(f"the function has one result; there is no output {grad.output}")
    if not isinstance(output, TensorType) or not isinstance(output.base, BaseType) or not output.base.is_float:
        raise DifferentiationError(
            f"only a float tensor can be differentiated; the function returns {_type_text(output)}",
            help=_way_out(output),
        )
    if not grad.seedable and any(d != 1 for d in output.shape):
        raise DifferentiationError(
            f"the gradient needs a result with one element; the function returns {show(output)}",
            help="sum the result, or use seedable=True and pass the incoming cotangent",
        )
    return output


def _type_text(type_: Type) -> str:
    return "a function" if isinstance(type_, FunctionType) else show(type_)


def _way_out(type_: Type) -> str | None:
    """The advice for a value of a type that has no derivative: what to return in its place."""
    match type_:
        case TensorType():
            return "integers and booleans have no gradient: return a float that is computed from floats"
        case DataType() if is_optional(type_):
            return "it may be None: write `assert x is not None` before `return x`, or return a number instead of None"
        case DataType():
            return "return one of its fields, or a sum over them"
        case RefType():
            return "return what it holds: `r.value`"
        case FunctionType():
            return "return the value of a call of it"
        case TupleType() | StackType():
            return "return one of its components, or a sum over them"
        case _:
            return None


def gradient_type(
    function: FunctionType, grad: Grad, monomorphic: Monomorphic = lambda t: t, nothing: TupleType = UNIT
) -> FunctionType:
    """The type of `grad(f)` for an f of this (known) type. Raises DifferentiationError."""
    output_type(function.result, grad)
    for position in range(len(function.parameters)) if grad.wrt is None else grad.wrt:
        if not 0 <= position < len(function.parameters):
            raise DifferentiationError(
                f"the function has {len(function.parameters)} parameters; there is no {position}"
            )
        if grad.wrt is not None and not has_gradient(function.parameters[position], monomorphic):
            raise DifferentiationError(
                f"there is no gradient with respect to parameter {position},"
                f" which is {show(function.parameters[position])}"
            )
    return derivative_type(function, grad, monomorphic, nothing)


def derivative_type(
    function: FunctionType, grad: Grad, monomorphic: Monomorphic = lambda t: t, nothing: TupleType = UNIT
) -> FunctionType:
    """The type of a pending `Derivative` of a function of this type: as `gradient_type`, but `wrt` may also name
    parameters that have no gradient; theirs is empty. Raises DifferentiationError."""
    output = output_type(function.result, grad)
    wrt = range(len(function.parameters)) if grad.wrt is None else grad.wrt
    gradients: list[Type] = [cotangent_type(function.parameters[i], monomorphic, nothing) for i in wrt]
    if grad.keeping and not isinstance(function.result, TupleType):
        if any(k not in (0, -1) for k in grad.keeping):
            raise DifferentiationError("the function has one result; only output 0 can be kept")
        kept: list[Type] = [function.result for _ in grad.keeping]
    elif isinstance(function.result, TupleType):
        for k in grad.keeping:
            if not -len(function.result.items) <= k < len(function.result.items):
                raise DifferentiationError(
                    f"the function has {len(function.result.items)} results; there is no output {k}"
                )
        kept = [function.result.items[k] for k in grad.keeping]
    else:
        kept = []
    if grad.has_aux and len(gradients) > 1:
        gradients = [TupleType(tuple(gradients))]
    result: Type = gradients[0] if len(gradients) == 1 and not kept else TupleType((*gradients, *kept))
    if grad.with_value:
        result = TupleType((function.result, result))
    seed = (output,) if grad.seedable else ()
    return FunctionType((*function.parameters, *seed), result)
