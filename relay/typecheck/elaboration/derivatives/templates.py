"""Higher-order functions written in the language: `relay.vjp`, `relay.jacobian` and other templates.

A template makes the surface code for a function with given parameters. In the code `f__` is its operand; the other
names that end in two underscores are the structural operations of this file:

    dot__(a, b)              sum of sum(x * y) over the float tensors x of a and y of b, at the same places
    blank__(f, args)         f(*args) with zeros in place of its float tensors, and None in place of the rest
    pick__(a, k)             the k-th float tensor of a
    leaves__(g, a)           a with g(x, k) in place of its k-th float tensor x, and None in place of the rest
    lists__(g, a)            a with g(xs) in place of dynamic lists
    listed__(g, b, a)        b with g(part) in place of its parts where such a list stands in a
    floats__(a, f)           a, which is what f returns: an error if it holds no float tensor
    often__(f)               f, which must not write references that it is given
    partial__(f)             f, whose derivative leaves out references
    quiet__(f)               the same, and f prints nothing: it is computed again
    axes__(x, a, b)          x with the names of the axes of a and then of b
    tensor__(x)              x as a tensor, if it is a static number
    by__(x, f, k)            x, the k-th argument of f, which has been called: an error if it has no gradient
    unstacked__(a)           a with lists in place of stacked tensors (`list_gradients`)
    labeled__(a, b)         a with the strings and functions of b (`labeled_structures`)
    merge__(g, a, b)         a with g(x, y) in place of its float tensors x, where y is at the same place of b

Tuples, lists, dicts and records are structures. A value of a data type is one thing to `dot__` and `blank__`
(`tangents`), and a record is a dict of its fields to the others. Everything else that is not a float tensor has no
tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import attrs
import numpy as np

from relay.errors import DifferentiationError, InternalError, Span, TypeCheckError
from relay.ir.definition import complete_definition
from relay.ir.derivative import has_gradient
from relay.ir.expr import Constant, Function, Parameter, PrintErased, Static
from relay.ir.types import UNIT, BaseType, DataType, Form, FunctionType, StackType, TensorType, Unknown, prune, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Number,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    surface_function,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.constraints import default_of
from relay.typecheck.elaboration.derivatives import effect_handlers, examples, list_gradients, tangents
from relay.typecheck.elaboration.derivatives.gradient_paths import check_parameters, explain
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope
from relay.typecheck.elaboration.diagnostics.descriptions import structure_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.effects.effects import writing_nothing
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values import data, labels
from relay.typecheck.elaboration.values.axis_names import names_of, with_names
from relay.typecheck.elaboration.values.expansion import settle
from relay.typecheck.unification import is_known, resolve


class Template(Protocol):
    """The template that `relay.vjp` and the like carry as `__relay_template__`."""

    name: str
    called: bool  # the function is called at once, with the arguments that follow f
    options: tuple[str, ...]  # the arguments that follow f, if they have names
    of_gradient: bool  # f is differentiated first
    repeats: bool  # f is evaluated more than once

    def function(self, parameters: Sequence[tuple[str, Parameter]], options: Mapping[str, object]) -> Function:
        """The surface code. Raises TypeCheckError for wrong options."""
        ...

    def globals(self) -> Mapping[str, object]:
        """The objects that its code mentions."""
        ...


def instantiate(
    checker: Checker,
    out: TypedBlockBuilder,
    template: Template,
    function: AbstractValue,
    count: int | None,
    options: Mapping[str, object],
    span: Span | None,
) -> LocalFunction:
    """The function that a template makes of a function. `count`: the number of arguments, if it is called at once."""
    parameters = parameters_of(function, template.name, span) if count is None else _call_parameters(function, count)
    try:
        code = template.function(parameters, options)
    except TypeCheckError as error:
        raise error.with_span(span) from None
    scope = TemplateScope({**template.globals(), "f__": function})
    return checker.function_here(out, code, {}, Context({}, {}, scope))


def positional_parameters(count: int) -> list[tuple[str, Parameter]]:
    """This many parameters."""
    return [(f"x{i}", Parameter()) for i in range(count)]


def static_parameters(count: int, static: Sequence[bool]) -> list[tuple[str, Parameter]]:
    """This many parameters, of which the function `static` decides which are static."""
    return [(f"x{i}", Parameter(static=i < len(static) and static[i])) for i in range(count)]


def _call_parameters(function: AbstractValue, count: int) -> list[tuple[str, Parameter]]:
    """The parameters of a call with this many arguments."""
    known = isinstance(function, GlobalFunction | LocalFunction)
    signature = surface_function(function).signature if known else None  # type: ignore[arg-type]
    return static_parameters(count, [p.static for p in signature or ()])


def parameters_of(function: AbstractValue, name: str, span: Span | None) -> list[tuple[str, Parameter]]:
    """The parameters of a function. Raises TypeCheckError if their number is not known."""
    seeds = 0
    while isinstance(function, DerivativeFunction):
        seeds += function.grad.seedable
        function = function.of
    seed = [(f"seed{i or ''}", Parameter()) for i in range(seeds)]
    if isinstance(function, GlobalFunction | LocalFunction):
        return [*parameters_of_code(surface_function(function)), *seed]
    if isinstance(function, DynamicValue):
        type_ = prune(function.type)
        if isinstance(type_, FunctionType):
            return [*positional_parameters(len(type_.parameters)), *seed]
        if isinstance(type_, Unknown):
            raise TypeCheckError(
                f"the number of parameters of the function must be known where {name} is applied",
                span,
                help="annotate it",
            )
    raise TypeCheckError(f"{name} needs a function", span)


def parameters_of_code(code: Function) -> list[tuple[str, Parameter]]:
    """The names of a function's parameters, with their signature."""
    signature = code.signature or tuple(Parameter() for _ in code.parameters)
    found = []
    for parameter, said in zip(code.parameters, signature, strict=True):
        default = said.default if isinstance(said.default, Static | Constant) else None
        found.append((parameter.name, Parameter(said.kind, default, said.static)))
    return found


# ---- structures


def apply(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    name: str,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """Call a structural operation."""

    def call(*parts: AbstractValue) -> AbstractValue:
        return checker.engine.call(checker, context, out, arguments[0], parts, (), span, [])

    match name:
        case "dot__":
            return _dot(checker, out, arguments[0], arguments[1], span)
        case "blank__":
            return _blank(checker, context, out, arguments[0], arguments[1], span)
        case "unstacked__":
            return list_gradients.rows(checker, out, arguments[0], span)
        case "floats__":
            if not _holds_floats(checker, out, arguments[0], span):
                raise _without_floats(checker, arguments[0], arguments[1], span)
            return arguments[0]
        case "often__":
            return writing_nothing(arguments[0], "jacobian", span)
        case "partial__" | "quiet__":
            (of,) = arguments
            assert isinstance(of, LocalFunction)
            rule = PrintErased() if name == "quiet__" else None
            function = attrs.evolve(of.function, rule=rule)  # type: ignore[misc]
            return attrs.evolve(of, function=function, partial=True)
        case "axes__":
            return _with_operand_names(arguments)
        case "labeled__":
            return labels.put_back(arguments[0], arguments[1])
        case "tensor__":
            return checker.materialize(out, arguments[0], span) if isinstance(arguments[0], Number) else arguments[0]
        case "by__":
            _check_differentiable(checker, arguments[0], arguments[1], _position(arguments[2]), span)
            return arguments[0]
        case "pick__":
            number = _position(arguments[1])
            return list(_leaves(checker, out, arguments[0], span))[number]
        case "leaves__":
            return _map(checker, out, arguments[1], lambda leaf, number: call(leaf, PythonNumber(number)), span)
        case "lists__":
            return _with_lists(checker, out, arguments[1], arguments[1], call, span)
        case "listed__":
            return _with_lists(checker, out, arguments[1], arguments[2], call, span)
        case "merge__":
            others = list(_matching_leaves(checker, out, arguments[1], arguments[2], span))
            return _map(checker, out, arguments[1], lambda leaf, number: call(leaf, others[number]), span)
        case _ if name in examples.OPERATIONS:
            return examples.apply(checker, context, out, name, arguments, span)
        case _ if name in effect_handlers.OPERATIONS:
            return effect_handlers.apply(checker, context, out, name, arguments, span)
        case _:
            raise InternalError(f"{name} is not a structural operation")


def _blank(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    function: AbstractValue,
    arguments: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    opened = _open_structure(checker, out, arguments, span)
    if not isinstance(opened, Tuple):
        raise TypeCheckError("the primals and the tangents are tuples, one component for each argument", span)
    # Of tensors only the type of what is written here is of interest, if it has no data-dependent size.
    aside = TypedBlockBuilder()
    value = checker.engine.call(checker, context, aside, function, opened.items, (), span, [])

    def zeros(leaf: AbstractValue, position: int) -> AbstractValue:
        assert isinstance(leaf, DynamicValue)
        type_ = resolve(leaf.type)
        if isinstance(type_, StackType):
            raise _no_list(type_, span)
        if (isinstance(type_, DataType) or data_dependent.data_dependent_dims(type_)) and aside not in out.items:
            out.items.append(aside)
        if isinstance(type_, DataType):
            return tangents.blank(checker, out, leaf, span)
        assert isinstance(type_, TensorType)
        attributes: dict[str, object] = {"shape": type_.shape, "dtype": type_.base}
        made = operators.apply(checker, out, lookup("zeros"), [], attributes, span, [])
        return with_names(made, names_of(leaf))

    return _map(checker, aside, value, zeros, span, _open_structure)


def _check_differentiable(
    checker: Checker, argument: AbstractValue, function: AbstractValue, position: int, span: Span | None
) -> None:
    """Raises DifferentiationError if an argument that a function is differentiated by has no gradient."""
    if not isinstance(argument, DynamicValue):
        return
    _is_still_integer(checker, argument)
    if is_known(type_ := resolve(argument.type)):
        parameters = FunctionType((type_,) * (position + 1), UNIT)
        place = surface_function(function).span if isinstance(function, GlobalFunction | LocalFunction) else span
        check_parameters(checker, function, parameters, [position], frozenset(), place)


def _with_operand_names(arguments: Sequence[AbstractValue]) -> AbstractValue:
    """A derivative of one tensor by another with the names of the axes of both."""
    found, *parts = arguments
    if not isinstance(found, DynamicValue):
        return found
    names: list[str | None] = []
    for part in parts:
        type_ = resolve(part.type) if isinstance(part, DynamicValue) else None
        rank = len(type_.shape) if isinstance(type_, TensorType) else 0
        names += (names_of(part) if isinstance(part, DynamicValue) else None) or (None,) * rank
    return with_names(found, tuple(names) if any(names) else None)


def _position(entity: AbstractValue) -> int:
    assert isinstance(entity, Number)
    return int(entity.specialize())


def _operator(
    checker: Checker, out: TypedBlockBuilder, name: str, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    return checker.engine.call_operator(checker, out, lookup(name), arguments, (), span, [])


def _open_structure(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> AbstractValue:
    """A structure as a Tuple; a float tensor, or a value of a data type with some, as Typed; Object(None) for the
    rest."""
    if isinstance(entity, Number):
        entity = checker.materialize(out, entity, span)
    if isinstance(entity, DynamicValue):
        entity = settle(checker, out, entity, span)
    match entity:
        case Tuple():
            return entity
        case DynamicValue():
            type_ = prune(entity.type)
            if isinstance(type_, Unknown):
                raise SchemeOnly(span, "the type of the function's result")
            if isinstance(type_, DataType):
                return entity if tangents.has_tangents(checker, resolve(type_)) else PythonObject(None)
            if isinstance(type_, StackType):
                return entity
            if not isinstance(type_, TensorType):
                return PythonObject(None)
            base = prune(type_.base)
            return PythonObject(None) if isinstance(base, BaseType) and not base.is_float else entity
        case PythonObject(None):
            return entity
        case _:
            raise TypeCheckError("a function has no tangent", span, help="differentiate what it captures")


def _record(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """As `_opened`, but a record is a Tuple, too, with its fields' names, and a static number,
    as a parameter's default, is nothing that a derivative is by. Raises TypeCheckError for other data."""
    if isinstance(entity, Number):
        return PythonObject(None)
    entity = _open_structure(checker, out, entity, span)
    if isinstance(entity, DynamicValue) and _is_still_integer(checker, entity):
        return PythonObject(None)
    if isinstance(entity, DynamicValue) and isinstance(stack := prune(entity.type), StackType):
        raise _no_list(stack, span)
    type_ = data.data_type(entity)
    if type_ is None:
        return entity
    assert isinstance(entity, DynamicValue)
    definition = complete_definition(type_.definition)
    if len(definition.constructors) != 1:
        raise TypeCheckError(
            f"all elements are those of tensors, structures and records; this is {show(resolve(type_))}",
            span,
            help="relay.vjp and relay.jvp take any data type; a List becomes a list by `[x for x in xs]`",
        )
    (constructor,) = definition.constructors
    fields = data.read_fields(checker, out, entity, type_, range(len(constructor.names)), span)
    return Tuple(fields, Form(dict, constructor.names))


def _is_still_integer(checker: Checker, value: DynamicValue) -> bool:
    """True if a tensor is of integers from Python that the function, which has been called, has not mixed with
    floats."""
    type_ = prune(value.type)
    base = prune(type_.base) if isinstance(type_, TensorType) and not checker.generic else None
    if not isinstance(base, Unknown) or not base.literals or default_of(base).is_float:
        return False
    checker.default_literal(base)
    return True


def _no_list(type_: StackType, span: Span | None) -> TypeCheckError:
    return TypeCheckError(
        f"there is no derivative of all elements of a dynamic list without tensors, {show(resolve(type_))}",
        span,
        help="return lists of tensors, or use relay.vjp",
    )


def _leaves(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> Iterator[AbstractValue]:
    entity = _record(checker, out, entity, span)
    if isinstance(entity, Tuple):
        for item in entity.items:
            yield from _leaves(checker, out, item, span)
    elif isinstance(entity, DynamicValue):
        yield entity


def _holds_floats(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> bool:
    """True if a structure contains a float tensor, or may contain one."""
    entity = _open_structure(checker, out, entity, span)
    match entity:
        case Tuple(items):
            return any(_holds_floats(checker, out, item, span) for item in items)
        case DynamicValue() if isinstance(prune(entity.type), StackType):
            element = resolve(dynamic_lists.element_type(entity))
            return has_gradient(element, checker.monomorphic_type) if is_known(element) else True
        case _:
            return isinstance(entity, DynamicValue) and not _is_still_integer(checker, entity)


def _without_floats(
    checker: Checker, value: AbstractValue, function: AbstractValue, span: Span | None
) -> DifferentiationError:
    """The mistake of asking for the derivatives of a function that returns no floats."""
    error = DifferentiationError(
        f"only float tensors can be differentiated; the function returns {structure_of(value)}",
        help="integers and booleans have no gradient: return a float that is computed from floats",
    )
    if isinstance(function, GlobalFunction | LocalFunction):
        error.with_span(surface_function(function).span)
    error.with_span(span)
    return explain(error, checker, function, None)


def _matching_leaves(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, other: AbstractValue, span: Span | None
) -> Iterator[AbstractValue]:
    """The values at the places of a structure's leaves in another structure of the same form."""
    entity = _record(checker, out, entity, span)
    if isinstance(entity, Tuple):
        others = _record(checker, out, other, span)
        assert isinstance(others, Tuple)
        for item, beside in zip(entity.items, others.items, strict=True):
            yield from _matching_leaves(checker, out, item, beside, span)
    elif isinstance(entity, DynamicValue):
        yield other


def _map(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    change: Callable[[AbstractValue, int], AbstractValue],
    span: Span | None,
    opened: Callable[[Checker, TypedBlockBuilder, AbstractValue, Span | None], AbstractValue] = _record,
) -> AbstractValue:
    position = 0

    def visit(part: AbstractValue) -> AbstractValue:
        nonlocal position
        part = opened(checker, out, part, span)
        if isinstance(part, Tuple):
            return Tuple(tuple(map(visit, part.items)), part.form)
        if isinstance(part, DynamicValue):
            position += 1
            return change(part, position - 1)
        return part

    return visit(entity)


def _with_lists(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    like: AbstractValue,
    change: Callable[[AbstractValue], AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """The structure with `change` of its parts where the other one has dynamic lists."""
    like = _open_structure(checker, out, like, span)
    if isinstance(like, Tuple):
        entity = _open_structure(checker, out, entity, span)
        if not isinstance(entity, Tuple):  # there is no tangent here
            return entity
        items = (
            _with_lists(checker, out, e, part, change, span) for e, part in zip(entity.items, like.items, strict=True)
        )
        return Tuple(tuple(items), entity.form)
    if isinstance(like, DynamicValue) and isinstance(type_ := prune(like.type), StackType):
        if not isinstance(prune(dynamic_lists.element_type(like)), TensorType):
            raise _no_list(type_, span)
        return change(entity)
    return entity


def _dot(
    checker: Checker, out: TypedBlockBuilder, left: AbstractValue, right: AbstractValue, span: Span | None
) -> AbstractValue:
    total: AbstractValue | None = None
    pending = [(left, right)]
    while pending:
        one, other = pending.pop()
        one, other = _open_structure(checker, out, one, span), _open_structure(checker, out, other, span)
        if isinstance(one, Tuple):
            if isinstance(other, Tuple) and len(one.items) == len(other.items):
                pending += reversed(list(zip(one.items, other.items, strict=True)))
                continue
            if _is_none(other) or not list(_leaves(checker, out, one, span)):
                continue  # no tangent is a tangent of zero
            raise TypeCheckError(f"a tangent of {len(one.items)} components was expected", span)
        if isinstance(one, PythonObject):
            continue
        assert isinstance(one, DynamicValue)
        if isinstance(prune(one.type), StackType) and not isinstance(other, PythonObject):
            part = tangents.dot_of_lists(checker, out, one, dynamic_lists.as_growing(checker, out, other, span), span)
            if part is not None:
                total = part if total is None else _operator(checker, out, "add", [total, part], span)
            continue
        if not isinstance(other, DynamicValue):
            if not _is_none(other):
                raise TypeCheckError(f"a tangent of type {show(resolve(one.type))} was expected, found a tuple", span)
            continue
        if isinstance(prune(one.type), DataType):
            part = tangents.dot(checker, out, one, other, span)
            if part is not None:
                total = part if total is None else _operator(checker, out, "add", [total, part], span)
            continue
        if data_dependent.common_type(other.type, one.type) is None:  # or the product checks that they are equal
            checker.unify_at(other.type, one.type, span, "the tangent or cotangent")
        product = _operator(checker, out, "multiply", [one, other], span)
        part = _operator(checker, out, "sum", [product], span)
        total = part if total is None else _operator(checker, out, "add", [total, part], span)
    if total is None:
        constant = Constant(np.zeros((), np.float32), span)
        return DynamicValue(constant, constant.type)
    return total


def _is_none(entity: AbstractValue) -> bool:
    return isinstance(entity, PythonObject) or (isinstance(entity, Tuple) and not entity.items)
