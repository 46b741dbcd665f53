"""What type a derivative has: shared by the checker, the interpreter and the AD pass.

    CT(Tensor[float, s]) = Tensor[float, s]     CT(Tensor[int or bool, s]) = ()      CT((A, ..)) = (CT(A), ..)
    CT(D) = D' with CT of every field           CT(Ref[T]) = CT(Stack[T]) = ()       CT(function): none, an error

`grad(f)` for f : (P, ..) -> R returns one CT(P_i) for each `wrt`, then the kept components of R, flat; bare when it
is a single gradient and nothing is kept. Unit stands for "no gradient" and becomes None in Python.
"""

from __future__ import annotations

from relay.errors import DifferentiationError
from relay.ir.expr import Grad
from relay.ir.types import (
    UNIT,
    BaseType,
    DataDefinition,
    DataType,
    FunctionType,
    TensorType,
    TupleType,
    Type,
    prune,
    show,
)


def cotangent_type(type_: Type) -> Type:
    """The type of cotangents of values of a type. Raises DifferentiationError for functions."""
    type_ = prune(type_)  # type: ignore[assignment]
    match type_:
        case TensorType(base, _):
            base = prune(base)  # type: ignore[assignment]
            return type_ if isinstance(base, BaseType) and base.is_float else UNIT
        case TupleType(items, form):
            return TupleType(tuple(cotangent_type(t) for t in items), form)
        case FunctionType():
            raise DifferentiationError("a function has no gradient; differentiate with respect to what it captures")
        case _:
            return UNIT


def has_gradient(type_: Type) -> bool:
    """Whether a cotangent of this type holds any tensor."""
    match cotangent_type(type_):
        case TupleType(items):
            return any(has_gradient(t) for t in items)
        case _:
            return True


def output_type(result: Type, grad: Grad) -> TensorType:
    """The type of the result component that is differentiated. Raises DifferentiationError if it has no derivative."""
    output = result
    if isinstance(result, TupleType):
        position = grad.output or 0
        if not -len(result.items) <= position < len(result.items):
            raise DifferentiationError(f"the function has {len(result.items)} results; there is no output {position}")
        output = result.items[position]
    elif grad.output not in (None, 0, -1):
        raise DifferentiationError(f"the function has one result; there is no output {grad.output}")
    if not isinstance(output, TensorType) or not isinstance(output.base, BaseType) or not output.base.is_float:
        raise DifferentiationError(f"only a float tensor can be differentiated; the function returns {show(output)}")
    if not grad.seedable and any(d != 1 for d in output.shape):
        raise DifferentiationError(
            f"the gradient needs a result with one element; the function returns {show(output)}",
            help="sum the result, or use seedable=True and pass the incoming cotangent",
        )
    return output


def gradient_type(function: FunctionType, grad: Grad) -> FunctionType:
    """The type of `grad(f)` for an f of this (known) type. Raises DifferentiationError."""
    output_type(function.result, grad)
    for position in range(len(function.parameters)) if grad.wrt is None else grad.wrt:
        if not 0 <= position < len(function.parameters):
            raise DifferentiationError(
                f"the function has {len(function.parameters)} parameters; there is no {position}"
            )
        if grad.wrt is not None and not has_gradient(function.parameters[position]):
            raise DifferentiationError(
                f"there is no gradient with respect to parameter {position},"
                f" which is {show(function.parameters[position])}"
            )
        if _is_data_with_floats(function.parameters[position]):
            raise DifferentiationError(
                f"there is no gradient yet with respect to data such as parameter {position},"
                f" {show(function.parameters[position])}",
                help="name the parameters to differentiate with wrt=..; pass the weights in a tuple or record",
            )
    return derivative_type(function, grad)


def _is_data_with_floats(type_: Type) -> bool:
    """Whether values of a data type in this type hold float tensors."""
    seen: set[DataDefinition] = set()
    stack: list[tuple[Type, bool]] = [(type_, False)]
    while stack:
        part, inside = stack.pop()
        part = prune(part)  # type: ignore[assignment]
        match part:
            case TensorType(base, _):
                if inside and isinstance(base, BaseType) and base.is_float:
                    return True
            case TupleType(items):
                stack += [(item, inside) for item in items]
            case DataType(definition):
                stack += [(a, True) for a in part.arguments if isinstance(a, TensorType | TupleType | DataType)]
                if definition not in seen:
                    seen.add(definition)
                    stack += [(f, True) for c in definition.constructors for f in c.fields]
            case _:
                pass
    return False


def derivative_type(function: FunctionType, grad: Grad) -> FunctionType:
    """The type of a pending `Derivative` of a function of this type: as `gradient_type`, but `wrt` may also name
    parameters that have no gradient; theirs is unit. Raises DifferentiationError."""
    output = output_type(function.result, grad)
    wrt = range(len(function.parameters)) if grad.wrt is None else grad.wrt
    gradients: list[Type] = [cotangent_type(function.parameters[i]) for i in wrt]
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
    result: Type = gradients[0] if len(gradients) == 1 and not kept else TupleType((*gradients, *kept))
    if grad.with_value:
        result = TupleType((function.result, result))
    seed = (output,) if grad.seedable else ()
    return FunctionType((*function.parameters, *seed), result)
