"""Names of axes during elaboration: propagation through operators, and axes that are given by name.

Names come from annotations and go with the types of values. A value without names agrees with every other one. They
only decide which axes and layouts are meant, and are dropped from the finished program.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

import attrs

from relay.errors import FrontendError, Label, ShapeError, Span, TypeMismatch
from relay.ir.axes import NAMES_HELP, AxisNames, ResultNames, axes_text, order, position, read_names
from relay.ir.expr import Atom, Constant, Exit, MakeTuple, Module, OpCall, Project, Var
from relay.ir.types import (
    DataType,
    FunctionType,
    Kind,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    Unknown,
    axis_names,
    prune,
)
from relay.operator import Operator, Relation, lookup
from relay.operator.axes import AxesDiffer, AxisRule, axis_rule
from relay.operator.expansion import Expansion
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, PythonObject, Tuple
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import operator_name
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import Solver, flat_shape, is_known, resolve, shape_variable

AXIS_ATTRIBUTES = ("axis", "axes", "axis1", "axis2", "source", "destination", "start_axis", "end_axis")
"""Attributes of operators that tell axes, which may be given by name."""

LONGEST = 30
"""The longest text of an operand that messages repeat."""


def names_of(typed: DynamicValue) -> AxisNames | None:
    """The names of a tensor's axes; None if it has none."""
    type_ = prune(typed.type)
    return axis_names(type_) if isinstance(type_, TensorType) else None


def with_names(typed: DynamicValue, names: AxisNames | None) -> DynamicValue:
    """The tensor with its axes named so."""
    type_ = prune(typed.type)
    if not isinstance(type_, TensorType):
        return typed
    return attrs.evolve(typed, type=attrs.evolve(type_, axes=names))


def with_annotated_names(entity: AbstractValue, annotation: Type) -> AbstractValue:
    """The value with the names that an annotation gives its axes, as far as it has none."""
    expected = prune(annotation)
    match entity:
        case DynamicValue() if isinstance(expected, TensorType):
            names = axis_names(expected)
            return entity if names is None or names_of(entity) is not None else with_names(entity, names)
        case Tuple(items, form) if isinstance(expected, TupleType) and len(expected.items) == len(items):
            return Tuple(tuple(with_annotated_names(i, t) for i, t in zip(items, expected.items, strict=True)), form)
        case _:
            return entity


def rename_axes(checker: Checker, typed: DynamicValue, given: AbstractValue, span: Span | None) -> DynamicValue:
    """A tensor with other names for its axes: a layout, a tuple of names and None, or None for no names.

    Raises TypeMismatch for names that are none, or not one for each axis.
    """
    type_ = prune(typed.type)
    if isinstance(type_, Unknown) or (
        isinstance(type_, TensorType) and shape_variable(flat_shape(type_.shape)) is not None
    ):
        raise SchemeOnly(span, "the rank of the tensor")
    if not isinstance(type_, TensorType):
        raise TypeMismatch("only the axes of a tensor have names", span)
    items = given.items if isinstance(given, Tuple) else (given,)
    if not all(isinstance(i, PythonObject) and isinstance(i.value, str | None) for i in items):
        raise TypeMismatch("the names of axes must be known at compile time", span, help=NAMES_HELP)
    values = tuple(i.value for i in items if isinstance(i, PythonObject))
    try:
        names = read_names(values if isinstance(given, Tuple) else values[0], len(flat_shape(type_.shape)))
    except FrontendError as error:
        raise TypeMismatch(error.message, span, help=error.help) from None
    return with_names(typed, names)


def open_axis_names(type_: Type, solver: Solver) -> Type:
    """A written type in which tensors without names may have any."""
    return map_type(
        type_, lambda t: t if t.axes is not None else attrs.evolve(t, axes=solver.fresh_variable(Kind.Shape))
    )


def all_names(types: Sequence[Type]) -> tuple[AxisNames, ...]:
    """The names in types, which distinguish instances of functions as the types do."""
    found: list[AxisNames] = []
    pending = list(types)
    while pending:
        match prune(pending.pop()):
            case TensorType() as tensor:
                found.append(axis_names(tensor) or ())
            case TupleType(items):
                pending += items
            case FunctionType(parameters, result):
                pending += (*parameters, result)
            case RefType(inner) | StackType(inner):
                pending.append(inner)
            case DataType(_, arguments):
                pending += (a for a in arguments if isinstance(a, Type | Unknown))
            case _:
                pass
    return tuple(found) if any(found) else ()


# ---- operators


def common_names(values: Sequence[DynamicValue]) -> AxisNames | None:
    """The names of values of one shape, which is not known yet, if they are all the same."""
    found = {names for names in map(names_of, values) if names is not None}
    return found.pop() if len(found) == 1 else None


def result_names(
    operator: Operator,
    values: Sequence[DynamicValue],
    attributes: dict[str, object],
    described: Sequence[str],
    span: Span | None,
    result: Callable[[], object],
) -> ResultNames:
    """The names of the axes of the result, or of each one. The operands' ranks are known, `result` gives the shape.

    Raises TypeMismatch where two names differ.
    """
    if all(names_of(value) is None for value in values):
        return None
    shapes = [flat_shape(prune(v.type).shape) for v in values]  # type: ignore[union-attr]
    names = [names_of(v) or (None,) * len(shape) for v, shape in zip(values, shapes, strict=True)]
    try:
        if not _is_composed(operator):
            return _by_rule(operator, names, shapes, attributes, result)
        types = [resolve(value.type) for value in values]
        if operator.composition is None or not all(map(is_known, types)):
            return None
        body = operator.composition.body(types, attributes)  # type: ignore[arg-type]
        return _body_result_names(body.typed, names) if isinstance(operator.composition, Expansion) else body.names
    except AxesDiffer as error:
        raise _mismatch(operator, values, described, error, span) from None


def _shape_rule(operator: Operator) -> AxisRule | None:
    relation = operator.relation
    return axis_rule(relation.shape if isinstance(relation, Relation) else relation)


def _is_composed(operator: Operator) -> bool:
    """True if an operator has no rule for names, but a body whose operators have."""
    return operator.layouts is None and operator.composition is not None and _shape_rule(operator) is None


def _by_rule(
    operator: Operator,
    names: Sequence[AxisNames],
    shapes: Sequence[Shape],
    attributes: Mapping[str, object],
    result: Callable[[], object],
) -> AxisNames | None:
    """The axis names of a result by an operator's own rule. Raises AxesDiffer."""
    if operator.layouts is not None:
        return _in_layouts(names, operator.layouts(**attributes))
    rule = _shape_rule(operator)
    if rule is None:
        return None
    given = dict(attributes)
    if getattr(rule, "__of_shapes__", False):
        given.update(shapes=shapes, result=result)
    found = rule(*((tuple(names),) if operator.variadic else names), **given)
    return found if found is not None and any(found) else None


def _body_result_names(body: Module, operands: Sequence[AxisNames]) -> ResultNames:
    """The axis names of an expansion's result by the operators in its body."""
    function = body.main
    known: dict[object, ResultNames] = {}
    if len(function.parameters) == len(operands) and not isinstance(function.parameters[0].type, TupleType):
        known.update(zip(function.parameters, operands, strict=True))
    else:
        known[function.parameters[0]] = list(operands)
    for binding in function.body.bindings:
        match binding.value:
            case OpCall(name, arguments, attributes):
                found = _of_call(lookup(name), arguments, attributes, binding.targets[0].type, known, operands)
            case MakeTuple(items):
                found = [known.get(item) for item in items]
            case Project(atom, index):
                whole = known.get(atom)
                found = whole[index] if isinstance(whole, list) else None
            case _:
                found = None
        known[binding.targets[0]] = found
    end = function.body.terminator
    return known.get(end.values[0]) if isinstance(end, Exit) else None


def _of_call(
    operator: Operator,
    arguments: Sequence[Atom],
    attributes: Mapping[str, object],
    result: Type | None,
    known: Mapping[object, ResultNames],
    operands: Sequence[AxisNames],
) -> ResultNames:
    types = [a.type for a in arguments if isinstance(a, Var | Constant)]
    shapes = [t.shape for t in types if isinstance(t, TensorType)]
    given = [known.get(a) for a in arguments]
    if len(shapes) < len(arguments) or not any(given):
        return None
    names = [n if isinstance(n, tuple) else (None,) * len(s) for n, s in zip(given, shapes, strict=True)]
    if _is_composed(operator):
        assert operator.composition is not None
        inner = operator.composition.body(types, attributes)  # type: ignore[arg-type]
        return _body_result_names(inner.typed, names) if isinstance(operator.composition, Expansion) else inner.names
    try:
        return _by_rule(operator, names, shapes, attributes, lambda: getattr(result, "shape", ()))
    except AxesDiffer as error:
        places = {operand: position for position, operand in reversed([*enumerate(operands)])}
        if error.found in places and error.wanted in places:  # operands of the whole are what differs
            raise AxesDiffer(places[error.wanted], places[error.found], error.found, error.wanted) from None
        return None


def _in_layouts(names: Sequence[AxisNames], layouts: Sequence[Sequence[str | None]]) -> AxisNames | None:
    """The result's names of an operator that wants its operands in layouts; other names of the first operand stay at
    its axes."""
    for operand, (own, wanted) in enumerate(zip(names, layouts[:-1], strict=False)):
        if len(own) != len(wanted):
            return None  # which the shape rule refuses
        if any(name in wanted and name != letter for name, letter in zip(own, wanted, strict=True)):
            raise AxesDiffer(None, operand, own, tuple(wanted))
    first = dict(zip(layouts[0], names[0], strict=True))
    found = tuple(first.get(letter) if letter is not None else None for letter in layouts[-1])
    return found if any(found) else None


def _mismatch(
    operator: Operator, values: Sequence[DynamicValue], described: Sequence[str], error: AxesDiffer, span: Span | None
) -> TypeMismatch:
    def text(operand: int) -> str:
        given = described[operand] if operand < len(described) and not operator.variadic else ""
        return given if given and len(given) <= LONGEST else f"operand {operand + 1}"

    x = text(error.second)
    found, wanted = axes_text(error.found), axes_text(error.wanted)
    if error.first is None:
        message = f"{x} is {found}, {operator.name} wants {wanted}"
    else:
        other = text(error.first)
        name = operator_name(operator)
        message = f"{name} of tensors whose axes have different names: {x} is {found}, {other} is {wanted}"
    way = order(error.found, error.wanted)
    help = None if way is None else f"write relay.transpose({'x' if x.startswith('operand') else x}, {way})"
    shown = [error.second] if error.first is None else [error.first, error.second]
    places = [(values[i].atom, f"{text(i)} is {axes_text(names_of(values[i]) or ())}") for i in shown]
    labels = tuple(Label(a.span, t) for a, t in places if isinstance(a, Var) and a.span is not None)
    return TypeMismatch(message, span, help=help, labels=labels)


def followed_layout(operator: Operator, operands: Sequence[AbstractValue], attributes: dict[str, object]) -> None:
    """Let an operator whose call gives no layout take its first operand's, if it can."""
    first = operands[0] if operands else None
    names = names_of(first) if isinstance(first, DynamicValue) else None
    if operator.layouts is None or names is None or "layout" not in attributes:
        return
    own = {**attributes, "layout": axes_text(names)}
    try:
        operator.layouts(**own)
    except ShapeError:
        return  # it has no such layout, which is an error where it is applied
    attributes.update(own)


# ---- axes by name


def axes_by_name(
    checker: Checker,
    operator: Operator,
    operands: Sequence[AbstractValue],
    attributes: dict[str, object],
    span: Span | None,
) -> None:
    """Replace names of axes in an operator's attributes by their numbers. Raises TypeMismatch for one that is not the
    name of just one axis."""
    given = [name for name in AXIS_ATTRIBUTES if _has_names(attributes.get(name))]
    if not given or operator.layouts is not None or not operands:
        return
    first = operands[0]
    names = names_of(first) if isinstance(first, DynamicValue) else None
    for attribute in given:
        value = attributes[attribute]
        if names is None and checker.generic and may_get_names(first):
            raise SchemeOnly(span, f"the axis {value!r}")
        if isinstance(value, str):
            is_word = len(value) > 1 and set(value) <= set(names or ()) - {value}
            found = tuple(_axis(a, names, span) for a in value) if is_word else _axis(value, names, span)
            attributes[attribute] = found
        elif isinstance(value, tuple):
            attributes[attribute] = tuple(_axis(a, names, span) if isinstance(a, str) else a for a in value)


def _has_names(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and any(isinstance(item, str) for item in value))


def may_get_names(operand: AbstractValue) -> bool:
    """True for a value of whose rank, and so of whose names, nothing is known yet."""
    type_ = prune(operand.type) if isinstance(operand, DynamicValue) else None
    return isinstance(type_, Unknown) or (
        isinstance(type_, TensorType) and shape_variable(flat_shape(type_.shape)) is not None
    )


def _axis(name: str, names: AxisNames | None, span: Span | None) -> int:
    found = position(name, names)
    if found is not None:
        return found
    if names is None:
        message = f"there is no axis {name!r}: the axes of this tensor have no names"
        raise TypeMismatch(message, span, help=f"name them where it comes from: Tensor[Float, dict({name}=n, ..)]")
    several = names.count(name) > 1
    close = difflib.get_close_matches(name, [n for n in names if n is not None], n=1)
    raise TypeMismatch(
        f"{'several axes are' if several else 'no axis is'} called {name!r}; the axes are {axes_text(names)}",
        span,
        help=f"did you mean {close[0]!r}?" if close and not several else None,
    )
