"""Elements of lists that begin with nothing, whose fields are read in the text before anything is appended.

    stack = []
    while ..:
        if stack and stack[-1].cost > limit:    # of what class?
            ..
        stack.append(State(cost, ..))

The reading is left out, as what follows from a mistake is; then the elaboration begins again with what was appended.
"""

from __future__ import annotations

from relay.errors import Span, TypeCheckError
from relay.ir.types import DataType, Kind, RefType, StackType, TupleType, Type, Unknown, prune
from relay.typecheck.elaboration.abstract_values import DependsOnPoison, DynamicValue
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.restarts import ElementsReadEarly
from relay.typecheck.elaboration.values.data import fresh_type


def element_type(checker: Checker, origin: Span) -> Type:
    """The type of the elements of an empty list that is written there: a variable, or its solution."""
    found = checker.decisions.elements.get(origin)
    element = checker.solver.fresh_variable(Kind.Type) if found is None else _structure(checker, found)
    checker.begun_lists.append((element, origin))
    return element


def _structure(checker: Checker, type_: Type) -> Type:
    """A type's structures and data types; the types of its tensors are inferred again."""
    match prune(type_):
        case TupleType(items, form):
            return TupleType(tuple(_structure(checker, item) for item in items), form)
        case DataType(definition):
            return fresh_type(checker, definition)
        case StackType(RefType(content)):
            return StackType(RefType(_structure(checker, content)))
        case _:
            return checker.solver.fresh_variable(Kind.Type)


def read(checker: Checker, value: DynamicValue, what: str, span: Span | None) -> None:
    """Note that `what` of a value is read, which tensors have not.

    Raises DependsOnPoison if the value is an element of a list to which nothing has been appended yet.
    """
    type_ = prune(value.type)
    if checker.generic or not isinstance(type_, Unknown):
        return
    for element, origin in checker.begun_lists:
        if prune(element) is type_:
            error = TypeCheckError(
                f"{what} of an element is read, but no element with it is appended to the list",
                span,
                help="append before, or annotate the list: `stack: list[State] = []`",
            )
            checker.read_early.append((element, origin, error))
            raise DependsOnPoison


def settle(checker: Checker) -> None:
    """Begin again where fields of elements were read before their class was known.

    Raises ElementsReadEarly, or reports the mistake where nothing tells the class.
    """
    found = {origin: element for element, origin, _ in checker.read_early if not isinstance(prune(element), Unknown)}
    if any(origin not in checker.decisions.elements for origin in found):
        raise ElementsReadEarly(found)
    for _, _, error in checker.read_early:
        checker.report(error)
    checker.read_early.clear()
