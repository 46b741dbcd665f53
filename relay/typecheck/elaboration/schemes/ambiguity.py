"""Ambiguity check: variables of a scheme that no parameter type determines.

    def f(x, k): return f(x, k - 1)[1:]        f : fn(A, ..) -> A2 where index(A2, at="1:") == A2

An application is decided once its arguments are, and then its value is. The closure of the parameters' variables under
that is what a call decides, and nobody has to decide what functions take that nothing calls. All others are ambiguous:
a call would not find them either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from relay.errors import Label, Span, TypeCheckError
from relay.ir.expr import Var
from relay.ir.types import (
    DataType,
    Equation,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    Unknown,
    prune,
    show,
)
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.expressions.atoms import describe
from relay.typecheck.elaboration.schemes.stuck_terms import StuckTerm
from relay.typecheck.type_differences import name_unknowns
from relay.typecheck.unification import outer_unknowns, resolve, unknowns


def determined_variables(found: Iterable[StuckTerm], roots: Iterable[object]) -> tuple[set[Unknown], list[StuckTerm]]:
    """The variables that the types of a call decide, if it gives those in `roots`; and the applications that wait for
    others."""
    known = {u for root in roots for u in unknowns(root)}
    watching: dict[Unknown, list[StuckTerm]] = {}
    ready = list(found)
    while ready:
        o = ready.pop()
        missing = _awaited_variables(o, known)
        for unknown in missing:
            watching.setdefault(unknown, []).append(o)
        if missing:
            continue
        for part in (o.value, o.application.arguments, o.mentioned):
            for unknown in unknowns(part):
                if unknown not in known:
                    known.add(unknown)
                    ready += watching.pop(unknown, ())
    left = {id(o): o for waiting in watching.values() for o in waiting if _awaited_variables(o, known)}
    return known, list(left.values())


def _awaited_variables(o: StuckTerm, known: set[Unknown]) -> list[Unknown]:
    """The variables of which an application awaits one: none if it is decided."""
    missing = []
    for part in o.awaited:
        unknown = next((u for u in unknowns(part) if u not in known and not has_default(u)), None)
        if unknown is not None:
            missing.append(unknown)
        elif o.any_:
            return []
    return missing


def has_default(unknown: Unknown) -> bool:
    """True if a variable is the dtype of numbers only, which has a default."""
    return bool(unknown.literals)


def caller_types(type_: FunctionType) -> Iterator[object]:
    """The parts of a function's type that callers decide: its parameters, and in the result the parameters of
    functions and the contents of data and references."""
    yield from type_.parameters
    yield from _result_caller_types(type_.result)


def _result_caller_types(type_: Type) -> Iterator[object]:
    match prune(type_):
        case FunctionType(parameters, result):
            yield from parameters
            yield from _result_caller_types(result)
        case TupleType(items):
            for item in items:
                yield from _result_caller_types(item)
        case RefType() | StackType() | DataType():
            yield type_
        case _:
            pass


def refuse(checker: Checker, found: Sequence[StuckTerm], type_: FunctionType) -> None:
    """Raise TypeCheckError for the earliest variable of a function's type that no call decides."""
    known, left = determined_variables(found, [*caller_types(type_), *_uncalled_parameter_types(checker)])
    needs = {u: o for o in reversed(left) for u in unknowns(o.awaited) if u not in known}
    for unknown in unknowns(type_.result):
        if unknown not in known and not has_default(unknown):
            needs.setdefault(unknown, None)  # type: ignore[arg-type]
    places = _origins(checker, needs)
    if places:
        unknown = min(places, key=lambda u: _position(places[u].span))
        raise ambiguous(checker, places[unknown], unknown, needs[unknown])


def _uncalled_parameter_types(checker: Checker) -> Iterator[Type]:
    """The parameters of function values that nothing calls, whose types nobody needs."""
    called = {u for type_ in checker.scheme.called_values for u in unknowns(_parameters(type_))}
    for type_ in checker.scheme.function_values:
        yield from (p for p in type_.parameters if called.isdisjoint(unknowns(p)))


def _parameters(type_: Type) -> tuple[Type, ...]:
    known = prune(type_)
    return known.parameters if isinstance(known, FunctionType) else ()


def refuse_results(checker: Checker) -> None:
    """Raise TypeCheckError for the result of a function that calls itself, if it is not known at the end of a call's
    elaboration."""
    wanted = {u for i in checker.used_early for u in outer_unknowns(i.result) if not has_default(u)}
    places = _origins(checker, wanted)
    if places:
        unknown = min(places, key=lambda u: _position(places[u].span))
        needed = next((o for o in checker.scheme.opened if any(u is unknown for u in unknowns(o.awaited))), None)
        raise ambiguous(checker, places[unknown], unknown, needed)


def ambiguous(checker: Checker, place: Var, unknown: Unknown, needed: StuckTerm | None) -> TypeCheckError:
    """The error of a variable that nothing decides. `place`: the variable of the program in whose type it arose."""
    type_ = resolve(place.type)  # type: ignore[arg-type]
    name_unknowns(type_, *(() if needed is None else (*needed.application.arguments, needed.value)))  # type: ignore[arg-type]
    labels: tuple[Label, ...] = ()
    stands = "" if type_ is unknown else f" in {show(type_)}"
    if needed is not None:
        stands = f" in {Equation(needed.application, needed.value)}"
        if needed.span is not None and needed.span != place.span:
            labels = (Label(needed.span, "its type is needed here"),)
    instance = _recursive(checker, unknown)
    if instance is None:
        help = "annotate it, or use it where its type is known"
    else:
        help = f"annotate the result of {instance.name}, or let a path return without another call of it"
    message = f"the type of {_describe_place(place)} is ambiguous: nothing determines {unknown.name}{stands}"
    return TypeCheckError(message, place.span, labels=labels, help=help)


def _origins(checker: Checker, wanted: Collection[Unknown]) -> dict[Unknown, Var]:
    """The variables of the program in whose types variables of the solver arose: the earliest ones, those
    that hold it in something else last."""
    found: dict[Unknown, Var] = {}
    for variable in checker.module.variables if wanted else ():
        if variable.span is not None:
            for unknown in unknowns(variable.type):
                if unknown in wanted and (unknown not in found or _rank(variable) < _rank(found[unknown])):
                    found[unknown] = variable
    return found


def _rank(variable: Var) -> tuple[bool, tuple[int, int, int, int]]:
    return not isinstance(prune(variable.type), Unknown | TensorType), _position(variable.span)  # type: ignore[arg-type]


def _describe_place(place: Var) -> str:
    text = describe(place)
    return place.name if text.startswith(("for ", "while ", "def ")) else text


def _position(span: Span | None) -> tuple[int, int, int, int]:
    return (0, 0, 0, 0) if span is None else (span.line, span.column, span.end_line, span.end_column)


def _recursive(checker: Checker, unknown: Unknown) -> Instance | None:
    """The function that calls itself whose result has a variable."""
    instances = (*checker.used_early, *checker.module.globals.values())
    return next((i for i in instances if any(u is unknown for u in unknowns(i.result))), None)
