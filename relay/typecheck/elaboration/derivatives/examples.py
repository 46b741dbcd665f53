"""Examples of a batch: the structural operations of `relay.vmap`, whose text is in `relay/api/batching.py`.

    front__(x, axis, name)         x with this axis first; `name` is what x is called in errors
    extent__(size, xs, names)      how many examples there are: `size`, and the first axes of all tensors in xs
    row__(x, i)                    the i-th row of x
    blank_rows__(f, n)             f(i), for any i, with zeros of shape (n, *s) in place of tensors of shapes s
    numbered__(f)                  f(), which is not computed, with the numbers 0, 1, .. in place of tensors
    back__(x, axis)                x with its first axis at this place
    within_axis__(f, name, n)      f(), an example along an axis of this name and size
    axis_range__(n, name, way)     range(n), whose rounds are the examples along this axis ("" has no name), and are
                                   batched in this way where they differ

What is known at compile time, a number, a string, None or a function, is the same for all examples and has no axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.definition import complete_definition, data_class, is_optional
from relay.ir.dims import Dim, resolve_dim
from relay.ir.expr import OpCall
from relay.ir.sizes.facts import EQUAL, DimConstraint
from relay.ir.types import INT32, DataType, RefType, StackType, TensorType, Type, Unknown, prune, scalar, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.attributes import open_shape
from relay.typecheck.elaboration.library import trees
from relay.typecheck.elaboration.values import data
from relay.typecheck.elaboration.values.data_construction import construct
from relay.typecheck.elaboration.values.expansion import settle
from relay.typecheck.unification import resolve


def axis_to_front(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, axis: int, name: str, span: Span | None
) -> AbstractValue:
    """A tensor with one axis first. Raises TypeMismatch for what has no such axis."""
    if not isinstance(entity, DynamicValue):
        return entity
    value = settle(checker, out, entity, span)
    assert isinstance(value, DynamicValue)
    type_ = prune(value.type)
    if isinstance(type_, Unknown) or (isinstance(type_, TensorType) and open_shape(type_.shape)):
        raise SchemeOnly(span, f"the shape of {name}")
    if not isinstance(type_, TensorType):
        raise _without_axes(resolve(value.type), name, span)
    if not -type_.rank <= axis < type_.rank:
        found = show(resolve(type_)) if type_.rank else "a scalar"
        raise TypeMismatch(
            f"the examples are along axis {axis} of {name}, which is {found}",
            span,
            help=f"in_axes=None for {name} if it is the same for all examples",
        )
    axis %= type_.rank
    others = [a for a in range(type_.rank) if a != axis]
    return _transpose(checker, out, value, [axis, *others], span)


def axis_from_front(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, axis: int, span: Span | None
) -> AbstractValue:
    """A tensor with its first axis moved. Raises TypeMismatch for a place that it does not have."""
    if not isinstance(entity, DynamicValue):
        return entity
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType):
        raise SchemeOnly(span, "the shape of the result")
    if not -type_.rank <= axis < type_.rank:
        raise TypeMismatch(
            f"out_axes is {axis}; with the axis of the examples the result has {type_.rank} axes, "
            f"as one example's is of {type_.rank - 1}",
            span,
        )
    axis %= type_.rank
    order = list(range(1, type_.rank))
    order.insert(axis, 0)
    return _transpose(checker, out, entity, order, span)


def _transpose(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, order: list[int], span: Span | None
) -> AbstractValue:
    if order == sorted(order):
        return value
    return operators.apply(checker, out, lookup("transpose"), [value], {"axes": tuple(order)}, span, [])


def _without_axes(type_: Type, name: str, span: Span | None) -> TypeMismatch:
    text = show(resolve(type_))
    match type_:
        case RefType():
            message = f"{name} is a reference, which has no axis of examples"
        case StackType():
            message = f"{name} is a list of any length"
        case DataType():
            message = f"{name} is {text}, whose values have no axes"
        case _:
            message = f"{name} is {text}, which has no axis of examples"
    return TypeMismatch(message, span, help=f"in_axes=None for {name} if it is the same for all examples")


def extent(
    checker: Checker,
    out: TypedBlockBuilder,
    count: AbstractValue,
    structures: AbstractValue,
    names: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """The number of examples. Raises TypeMismatch where they differ, TypeCheckError if nothing determines it."""
    assert isinstance(structures, Tuple) and isinstance(names, Tuple)
    found: list[tuple[Dim, str]] = []
    if isinstance(count, Number):
        found.append((_dim(count), "axis_size"))
    for structure, label in zip(structures.items, names.items, strict=True):
        assert isinstance(label, PythonObject)
        for type_ in _tensor_types(structure, str(label.value), span):
            found.append((type_.shape[0], str(label.value)))
    if not found:
        raise TypeCheckError(
            "no argument has an axis of examples", span, help="pass their number: vmap(f, axis_size=n)"
        )
    (dim, first), *others = found
    for other, name in others:
        left, right = resolve_dim(dim), resolve_dim(other)
        if isinstance(left, int) and isinstance(right, int):
            if left != right:
                raise TypeMismatch(
                    f"{first} has {left} examples, {name} has {right}",
                    span,
                    help=f"in_axes=None for {name} if it is the same for all examples",
                )
        else:
            text = f"{first} and {name} have different numbers of examples"
            place = None if span is None or span.is_internal else span
            checker.engine.require(checker, out, DimConstraint(left, EQUAL, right, text, place), place, text)
    return size(dim, span)


def _dim(number: Number) -> Dim:
    return getattr(number, "dim", None) or int(number.specialize())


def _tensor_types(entity: AbstractValue, name: str, span: Span | None) -> Iterator[TensorType]:
    if isinstance(entity, Tuple):
        for item in entity.items:
            yield from _tensor_types(item, name, span)
    elif isinstance(entity, DynamicValue):
        type_ = prune(entity.type)
        if not isinstance(type_, TensorType):
            raise SchemeOnly(span, f"the shape of {name}")
        yield type_


def row(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, index: AbstractValue, span: Span | None
) -> AbstractValue:
    """A row of a tensor."""
    if not isinstance(entity, DynamicValue):
        return entity
    return checker.engine.index(checker, out, entity, [index], span)


def blank_rows(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    function: AbstractValue,
    count: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """The structure that a function of an example's index returns, with zeros for the tensors of all examples. Raises
    TypeCheckError for a shape that may differ between examples."""
    if not isinstance(count, Number):
        raise SchemeOnly(span, "the number of examples")
    aside = TypedBlockBuilder()  # only its types are used
    zero = OpCall("zeros", (), {"shape": (), "dtype": INT32}, span)
    index = checker.bind(aside, zero, scalar(INT32), "index", span)
    value = checker.engine.call(checker, context, aside, function, [index], (), span, [])

    def blank(entity: AbstractValue) -> AbstractValue:
        if isinstance(entity, Number):
            entity = checker.materialize(aside, entity, span)
        elif isinstance(entity, DynamicValue):
            entity = settle(checker, aside, entity, span)
        if isinstance(entity, Tuple):
            return Tuple(tuple(map(blank, entity.items)), entity.form)
        return rows(entity) if isinstance(entity, DynamicValue) else entity

    def rows(value: DynamicValue) -> AbstractValue:
        type_ = resolve(value.type)
        owner = data_class(complete_definition(type_.definition)) if isinstance(type_, DataType) else None
        if owner is not None and len(owner.constructors) == 1:
            assert isinstance(type_, DataType)
            (constructor,) = owner.constructors.values()
            places = range(len(complete_definition(type_.definition).constructors[0].names))
            parts = data.read_fields(checker, aside, value, type_, places, span) if places else ()
            return construct(checker, out, constructor, list(map(blank, parts)), (), span)
        if isinstance(type_, Unknown):
            raise SchemeOnly(span, "the type of the function's result")
        if is_optional(type_):
            help = "return a number instead of None: `return -1.0 if x is None else x`"
            raise TypeCheckError("the results of examples are stacked, and this one may be None", span, help=help)
        if not isinstance(type_, TensorType):
            raise TypeCheckError(f"the results of examples are stacked, and {show(type_)} has no axes", span)
        if data_dependent.data_dependent_dims(type_):
            raise TypeCheckError(
                f"the result of an example is {show(type_)}, whose shape may differ between examples",
                span,
                help="a list takes any: [f(x) for x in xs]",
            )
        attributes: dict[str, object] = {"shape": (_dim(count), *type_.shape), "dtype": type_.base}
        return operators.apply(checker, out, lookup("zeros"), [], attributes, span, [])

    return blank(value)


def numbered_leaves(checker: Checker, context: Context, function: AbstractValue, span: Span | None) -> AbstractValue:
    """The structure that a function returns, with their numbers in place of the tensors."""
    aside = TypedBlockBuilder()  # only its types are used
    value = checker.engine.call(checker, context, aside, function, [], (), span, [])
    leaves, structure = (
        trees.call(checker, context, aside, f"tree.{name}", [value], (), span) for name in ("leaves", "structure")
    )
    assert isinstance(leaves, Tuple)
    numbers = Tuple(tuple(PythonNumber(number, span) for number in range(len(leaves.items))), leaves.form)
    return trees.call(checker, context, aside, "tree.unflatten", [structure, numbers], (), span)


def within_axis(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """A function's result, for an example along an axis of a name and size."""
    function, label, count = arguments
    assert isinstance(label, PythonObject)
    if not isinstance(count, Number):
        raise SchemeOnly(span, "the number of examples")
    axes = (*checker.frame.axes, (str(label.value), _dim(count)))
    with checker.at_frame(attrs.evolve(checker.frame, axes=axes)):
        return checker.engine.call(checker, context, out, function, [], (), span, [])


def apply(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    name: str,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """Call one of the operations of this file."""
    match name:
        case "front__":
            _, axis, label = arguments
            assert isinstance(axis, Number) and isinstance(label, PythonObject)
            return axis_to_front(checker, out, arguments[0], int(axis.specialize()), str(label.value), span)
        case "extent__":
            return extent(checker, out, arguments[0], arguments[1], arguments[2], span)
        case "row__":
            return row(checker, out, arguments[0], arguments[1], span)
        case "within_axis__":
            return within_axis(checker, context, out, arguments, span)
        case "axis_range__":
            count, label, way = arguments
            assert isinstance(label, PythonObject) and isinstance(way, PythonObject)
            return Range(PythonNumber(0, span), count, 1, axis=str(label.value), divergence=str(way.value))
        case "blank_rows__":
            return blank_rows(checker, context, out, arguments[0], arguments[1], span)
        case "numbered__":
            return numbered_leaves(checker, context, arguments[0], span)
        case _:
            _, axis = arguments
            assert name == "back__" and isinstance(axis, Number)
            return axis_from_front(checker, out, arguments[0], int(axis.specialize()), span)


OPERATIONS = ("front__", "extent__", "row__", "blank_rows__", "numbered__", "back__", "within_axis__", "axis_range__")
"""The names of the operations."""
