"""Calls of operators: their operands and attributes from the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.dims import product, resolve_dim
from relay.ir.expr import Assert, Atom, Binding
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import (
    ANY,
    BOOL,
    BaseType,
    TensorType,
    prune,
)
from relay.operator import Operator, lookup
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Size,
    SizeExpression,
    Tuple,
    TypedBlockBuilder,
    Zip,
    dim_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.derivatives import tangents
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_reductions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.attributes import checked_attribute, normalize_attribute, static_value
from relay.typecheck.elaboration.expressions.python_operators import numbers_alone
from relay.typecheck.elaboration.library import creation
from relay.typecheck.elaboration.values import axis_names, range_numbers
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import flat_shape, shape_variable

Keywords = Sequence[tuple[str, AbstractValue]]


def call_operator(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
    described: Sequence[str],
) -> AbstractValue:
    """Call an operator by its Python signature."""
    if operator.algebra.maps_over_tree and len(arguments) == 1 and not keywords:
        parts = tangents.of_parts(checker, out, operator.name, arguments[0], span)
        if parts is not None:
            return parts
    try:
        if operator.variadic and arguments and not operator.spread:
            first = arguments[0]
            if isinstance(first, DynamicValue):
                first = expand(checker, out, first, span)
            if isinstance(first, DynamicValue) and dynamic_lists.is_growing(first):
                whole = list_reductions.as_tensor(checker, out, first, span)
                if whole is not None and operator is lookup("stack"):
                    return _stack_rows(checker, out, whole, arguments[1:], keywords, span)
                if whole is not None and operator is lookup("concatenate"):
                    return _concatenate_rows(checker, out, whole, arguments[1:], keywords, span)
                first = list_reductions.element_tuple(checker, out, first, span)
            if not isinstance(first, Tuple):
                raise TypeMismatch(f"{operator.name} takes a tuple of tensors", help=f"relay.{operator.name}((x, y))")
            operands, named = operator.bind([first.items, *arguments[1:]], dict(keywords))
            if not operands:
                raise TypeMismatch(f"{operator.name} needs at least one tensor, found an empty tuple")
        else:
            arguments = creation.completed_arguments(operator, arguments, dict(keywords))
            operands, named = operator.bind(arguments, dict(keywords))
    except TypeMismatch as error:
        raise error.with_span(span) from None
    if not named and (number := numbers_alone(checker, out, operator.name, operands, span)) is not None:
        return number
    made = creation.run_time_arange(checker, out, operator, named, keywords, span)
    if made is not None:
        return made
    for name in operator.sizes & named.keys():
        if operator.operands:  # the extents of `reshape` have to fit those of its operand
            checker.specialize_arguments(_run_time_atoms(named[name]))
        named[name] = data_dependent.as_sizes(checker, out, named[name], span)
    if operator is lookup("reshape"):
        named["shape"] = with_found_extent(checker, out, operands[0], named["shape"], span)
    made = creation.call_full(checker, out, operator, named, span)
    if made is not None:
        return made
    creation.open_dtype(checker, out, operator, named, len(arguments), dict(keywords), span)
    attributes = {}
    given = (*dict(keywords), *(*operator.operands, *operator.attributes)[: len(arguments)])
    for name, value in named.items():
        static = value
        if _is_entity(value):
            static = static_value(value, name, span, symbolic=name in operator.sizes)
        attributes[name] = normalize_attribute(name, static)
    axis_names.axes_by_name(checker, operator, operands, attributes, span)
    attributes = {name: checked_attribute(operator, name, value, span) for name, value in attributes.items()}
    if "layout" not in given:
        axis_names.followed_layout(operator, operands, attributes)
    result = operators.apply(checker, out, operator, operands, attributes, span, described)
    return expand(checker, out, range_numbers.note(checker, operator.name, operands, result), span)


def _run_time_atoms(entity: AbstractValue) -> list[Atom]:
    """The run-time values in a number or tuple."""
    if isinstance(entity, Tuple):
        return [atom for item in entity.items for atom in _run_time_atoms(item)]
    return [entity.atom] if isinstance(entity, DynamicValue) else []


def cast(
    checker: Checker,
    out: TypedBlockBuilder,
    base: BaseType,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`np.float32(x)`, `relay.Int64(n)`: the value in another dtype."""
    arity(str(base), arguments, 1, span)
    if keywords:
        raise TypeCheckError(f"{base} takes no keyword arguments", span)
    (value,) = arguments
    if isinstance(value, Number) and (base.is_float or not value.is_float) and base != BOOL:
        return checker.constant(
            out, value if isinstance(value, Size | SizeExpression) else PythonNumber(value.specialize(), span), base
        )
    return operators.apply(checker, out, lookup("cast"), [value], {"dtype": base}, span, [])


def _stack_rows(
    checker: Checker,
    out: TypedBlockBuilder,
    whole: DynamicValue,
    rest: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`stack(xs, axis)` of rows that are stacked along the first axis."""
    given = dict(zip(("axis",), rest, strict=False)) | dict(keywords)
    axis = static_value(given["axis"], "axis", span) if "axis" in given else 0
    rank = len(whole.type.shape) if isinstance(whole.type, TensorType) else 0
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise TypeMismatch(f"axis {axis} is out of range for a stack of rank {rank}", span)
    if axis % rank == 0:
        return whole
    order = [*range(1, rank)]
    order.insert(axis % rank, 0)
    return operators.apply(checker, out, lookup("transpose"), [whole], {"axes": tuple(order)}, span, [])


def _concatenate_rows(
    checker: Checker,
    out: TypedBlockBuilder,
    whole: DynamicValue,
    rest: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`concatenate(xs, axis)` of tensors that are stacked along a new first axis."""
    given = dict(zip(("axis",), rest, strict=False)) | dict(keywords)
    axis = static_value(given["axis"], "axis", span) if "axis" in given else 0
    type_ = prune(whole.type)
    assert isinstance(type_, TensorType)
    count, *shape = type_.shape
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise TypeMismatch(f"axis {axis} is out of range for tensors of rank {len(shape)}", span)
    axis %= len(shape)
    if axis:
        order = [*range(1, len(shape) + 1)]
        order.insert(axis, 0)
        whole = operators.apply(checker, out, lookup("transpose"), [whole], {"axes": tuple(order)}, span, [])
    shape[axis] = shape[axis] * count
    return operators.apply(checker, out, lookup("reshape"), [whole], {"shape": tuple(shape)}, span, [])


def _is_entity(value: object) -> bool:
    return isinstance(value, (DynamicValue, Number, Tuple, PythonObject, Method, Range, Progression, Zip, *FUNCTIONS))


def arity(name: str, arguments: Sequence[AbstractValue], count: int, span: Span | None) -> None:
    if len(arguments) != count:
        raise TypeCheckError(f"{name} takes {count} argument{'s' * (count != 1)}, found {len(arguments)}", span)


def with_found_extent(
    checker: Checker, out: TypedBlockBuilder, value: AbstractValue, shape: object, span: Span | None
) -> object:
    """The shape `(n, -1)` of a tensor, where n is computed at run time, with a data-dependent size in place of -1. It
    checks that there is one."""

    known = prune(value.type) if isinstance(value, DynamicValue) else None
    if not isinstance(shape, Tuple) or not isinstance(known, TensorType):
        return shape
    dims = [dim_of(item) if isinstance(item, Number) else None for item in shape.items]
    source = tuple(resolve_dim(dim) for dim in flat_shape(known.shape))
    is_known = shape_variable(source) is None and ANY not in source and None not in dims
    if not is_known or dims.count(-1) != 1 or not any(mentions_made(d) for d in dims if d is not None):
        return shape
    products = (product(source), product(d for d in dims if d is not None and d != -1))
    total, others = (data_dependent.number(checker, out, dim, span) for dim in products)

    def call(name: str, *operands: DynamicValue) -> DynamicValue:
        return operators.apply(checker, out, lookup(name), list(operands), {}, span, [])

    def check(holds: DynamicValue, text: str) -> None:
        out.items.append(Binding((), Assert(holds.atom, text, span)))

    one = data_dependent.number(checker, out, 1, span)
    check(call("greater_equal", others, one), "an extent of the new shape must be at least 1 where another one is -1")
    found = call("floor_divide", total, call("maximum", others, one))
    text = "the elements of the tensor cannot be divided among the extents of the new shape"
    check(call("equal", call("multiply", found, others), total), text)
    extent = Size(data_dependent.make(checker, out, found, "extent", span), span)
    return Tuple(tuple(extent if d == -1 else i for i, d in zip(shape.items, dims, strict=True)), shape.form)
