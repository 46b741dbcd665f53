"""Gradients with respect to dynamic-length lists.

    grad(f)(xs)  =  rows of grad(g)(stack(xs)),  g(s) = f(rows of s)

The tensors at one place of all elements are stacked. So they have one shape, and elements are float tensors, and tuples
and lists of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from relay.errors import Span
from relay.ir.expr import Binding, Block, Exit, Function, Global, Grad, LoopLabel, Parameter, Var
from relay.ir.surface import Apply
from relay.ir.types import ANY, BaseType, Form, RefType, StackType, TensorType, TupleType, Type, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    LocalFunction,
    PythonNumber,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.library.library_calls import call_library
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import unknowns


class _StackedLists:
    """The structures of stacked tensors in place of lists."""


_STACKED = Form(_StackedLists, ())


def list_arguments(
    checker: Checker,
    out: TypedBlockBuilder,
    grad: Grad,
    arguments: Sequence[AbstractValue],
    fixed: Collection[int],
    span: Span | None,
) -> frozenset[int]:
    """The arguments that contain lists to differentiate by. The parameters at the positions `fixed` have none.

    Raises SchemeOnly where only a call decides what the elements are.
    """
    positions = [p for p in range(len(arguments) + len(fixed)) if p not in fixed]
    wanted = [i for i, p in enumerate(positions) if grad.wrt is None or p in grad.wrt]
    known = {i: _expand_solved(checker, out, arguments[i]) for i in wanted}
    if checker.generic and any(map(_holds_unknown_list, known.values())):
        raise SchemeOnly(span, "the type of a list's elements")
    return frozenset(i for i, argument in known.items() if _holds_list(argument))


def without_lists(
    checker: Checker,
    out: TypedBlockBuilder,
    function: DynamicValue,
    count: int,
    places: Collection[int],
    span: Span | None,
) -> LocalFunction:
    """A function of this many parameters that calls another one, with stacked tensors for the lists at these places."""
    parameters = tuple(Var(f"x{i}", None, span) for i in range(count))
    bindings, given = [], []
    for place, parameter in enumerate(parameters):
        given.append(parameter)
        if place in places:
            given[-1] = Var(f"list{place}", None, span)
            bindings.append(Binding((given[-1],), Apply(Global("unstacked__"), (parameter,), (), span)))
    result, label = Var("result", None, span), LoopLabel("stacked")
    bindings.append(Binding((result,), Apply(Global("f__"), tuple(given), (), span)))
    body = Block(tuple(bindings), Exit(label, (result,), span))
    signature = tuple(Parameter() for _ in parameters)
    code = Function("stacked", parameters, body, label, None, signature, None, span)
    context = Context({}, {}, TemplateScope({"f__": function}))
    return checker.function_here(out, code, {}, context)


def stack_lists(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """An argument with stacked tensors in place of the lists in it."""
    entity = _expand_solved(checker, out, entity)
    if isinstance(entity, Tuple) and _holds_list(entity):
        return Tuple(tuple(stack_lists(checker, out, item, span) for item in entity.items), entity.form)
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        return Tuple((_columns(checker, out, entity, dynamic_lists.element_type(entity), span),), _STACKED)
    return entity


def rows(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """A structure with lists in place of the stacked tensors in it."""
    entity = _expand_solved(checker, out, entity)
    if not isinstance(entity, Tuple):
        return entity
    if entity.form is not None and entity.form.cls is _StackedLists:
        return _rows(checker, out, _expand_solved(checker, out, entity.items[0]), span)
    return Tuple(tuple(rows(checker, out, item, span) for item in entity.items), entity.form)


def _columns(
    checker: Checker, out: TypedBlockBuilder, xs: AbstractValue, element: Type, span: Span | None
) -> AbstractValue:
    known = prune(element)
    if not isinstance(known, TupleType):
        return checker.engine.call_operator(checker, out, lookup("stack"), [xs], (), span, [])
    parts = []
    for place, item in enumerate(known.items):
        column = call_library(checker, out, "column__", [xs, PythonNumber(place)], span)
        parts.append(_columns(checker, out, column, item, span))
    return Tuple(tuple(parts), known.form)


def _rows(checker: Checker, out: TypedBlockBuilder, whole: AbstractValue, span: Span | None) -> AbstractValue:
    if not isinstance(whole, Tuple):
        return call_library(checker, out, "rows__", [whole], span)
    first, *rest = (_rows(checker, out, _expand_solved(checker, out, item), span) for item in whole.items)
    found = call_library(checker, out, "alone__", [first], span)
    for column in rest:
        found = call_library(checker, out, "joined__", [found, column], span)
    if whole.form is not None:
        found = call_library(checker, out, "as_lists__", [found], span)
    return found


def _expand_solved(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue) -> AbstractValue:
    if not isinstance(entity, DynamicValue):
        return entity
    checker.solver.run()
    return expand(checker, out, entity, entity.atom.span)


def _holds_list(entity: AbstractValue) -> bool:
    """True if a value contains a list by which one can differentiate."""
    if isinstance(entity, Tuple):
        return any(map(_holds_list, entity.items))
    return isinstance(entity, DynamicValue) and _is_list(entity.type)


def _holds_unknown_list(entity: AbstractValue) -> bool:
    """True if a value contains a list whose elements are not known yet."""
    if isinstance(entity, Tuple):
        return any(map(_holds_unknown_list, entity.items))
    if not isinstance(entity, DynamicValue):
        return False
    known = prune(entity.type)
    return isinstance(known, StackType) and any(True for _ in unknowns(known))


def _is_list(type_: Type) -> bool:
    known = prune(type_)
    match known:
        case TupleType(items):
            return any(map(_is_list, items))
        case StackType(element):
            cell = prune(element)
            return isinstance(cell, RefType) and _is_stackable(cell.content)
        case _:
            return False


def _is_stackable(type_: Type) -> bool:
    match prune(type_):
        case TensorType(base, shape):
            known = prune(base)
            return isinstance(known, BaseType) and known.is_float and ANY not in shape
        case TupleType(items, form):
            return bool(items) and (form is None or form.cls is list) and all(map(_is_stackable, items))
        case _:
            return False
