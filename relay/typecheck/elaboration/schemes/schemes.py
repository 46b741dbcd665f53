"""Type schemes: the inferred type of a function from its annotations alone.

    forall (bt: BaseType) (s1: Shape) (s2: Shape). fn(Tensor[bt, s1], Tensor[bt, s2]) -> Tensor[bt, broadcast(s1, s2)]

The body is elaborated once, with variables for what the annotations leave open. What then still waits for them is part
of the type: shape rules of operators, and what a binding gives whose meaning a call decides (`stuck_terms.py`), as
applications of type-level functions. A rule over one shape variable that does not depend on its rank is solved
(`rank_polymorphism.py`); what no parameter decides is refused (`ambiguity.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import attrs

from relay.ir.dims import ANY, DataDependentDim, DimExpr, substitute, variables
from relay.ir.effects import Effects
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import (
    Application,
    AttributeValue,
    BaseClass,
    ClassConstraint,
    Constraint,
    DataType,
    Equation,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    axis_names,
    prune,
    type_variables,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.effects.effect_names import name_effects
from relay.typecheck.elaboration.schemes import ambiguity
from relay.typecheck.elaboration.schemes.stuck_terms import StuckTerm, attribute_items
from relay.typecheck.unification import erase_forms, flat_shape, resolve, unknowns

JOINED_BROADCASTS = 8
"""Of how many shapes a broadcast may be that is joined with those of its result."""

_LETTERS = {Kind.BaseType: "bt", Kind.Shape: "s", Kind.Dim: "n", Kind.Type: "A"}


def generalize(checker: Checker, type_: FunctionType, where: Sequence[DimConstraint]) -> Type:
    """The type with its open variables quantified, under its constraints. Its effects get names."""
    found = _simplify_applications(list(_applications(checker)))
    is_unseen = any(p.force is not None and not p.done for p in checker.pending)  # functions that only a call looks at
    if not checker.is_incomplete and not is_unseen:
        ambiguity.refuse(checker, [*found, *checker.scheme.unseen], type_)
    open_ = _reachable_terms(found, type_)
    constraints: list[Constraint] = list(where)
    used = _values_used(type_, open_)
    implied = {id(o) for o in open_ if o.application.function == "broadcast"} & {
        id(o) for o in open_ if isinstance(_variable_of(o.value), Unknown) and _variable_of(o.value) not in used
    }
    with_argument: dict[object, list[StuckTerm]] = {}
    for o in open_:
        for argument in o.application.arguments if o.application.function == "broadcast" else ():
            with_argument.setdefault(argument, []).append(o)
    for o in open_:
        if id(o) in implied and _is_part_of_another(o, with_argument):
            continue
        lone = _variable_of(o.value)
        is_used = not isinstance(lone, Unknown) or lone in used
        constraints.append(Equation(o.application, o.value if is_used else None))
    body = FunctionType(type_.parameters, type_.result, (), type_.effects)
    named = _name_variables(body, constraints)
    constraints += [ClassConstraint(b, b.classes) for b in named if b.classes and b.classes != frozenset(BaseClass)]
    names = {b: TypeId(b.name, b.kind) for b in named}
    origins = {v: o.application for o in _applications(checker) if isinstance(v := _variable_of(o.value), Unknown)}
    rows = name_effects(checker, type_, constraints, named, origins)
    body = FunctionType(
        tuple(close_type(p, names) for p in type_.parameters),  # type: ignore[misc]
        close_type(type_.result, names),  # type: ignore[arg-type]
        tuple(_closed_constraint(c, names) for c in constraints),
        tuple(type_.effects or ()) or None,
    )
    written = dict.fromkeys(v for v in type_variables((body.parameters, body.result)) if v not in names.values())
    identifiers = (*written, *names.values(), *rows)
    return QuantifiedType(identifiers, body) if identifiers else body


def _applications(checker: Checker) -> Iterator[StuckTerm]:
    for pending in checker.pending:
        if not pending.done and pending.application is not None and pending.result is not None:
            application = pending.application()
            value = (pending.result,) if pending.result.kind is Kind.Shape else pending.result
            yield StuckTerm(
                application, value, pending.span, (*application.arguments, *dict(application.attributes).values())
            )
    yield from checker.scheme.opened


def _simplify_applications(found: list[StuckTerm]) -> list[StuckTerm]:
    """The applications with their variables replaced, broadcasts in broadcasts as one, and none twice."""
    flat: dict[Unknown, tuple[Shape, ...]] = {}
    values: dict[object, Type | Shape] = {}
    result: list[StuckTerm] = []
    for open_ in found:
        value = _resolve_part(open_.value)
        application = attrs.evolve(
            open_.application,
            arguments=tuple(_resolve_part(a) for a in open_.application.arguments),  # type: ignore[misc]
            attributes=attribute_items(dict(open_.application.attributes)),
        )
        variable = _variable_of(value)
        item = _item(application)
        is_open = isinstance(variable, Unknown) and variable.kind is Kind.Type and not variable.rigid
        if item is not None and is_open and variable not in set(unknowns(item)):
            variable.binding = item  # type: ignore[attr-defined]
        if item is not None and _resolve_part(open_.value) == item:
            continue
        if application.function == "broadcast":
            parts = dict.fromkeys(p for a in application.arguments for p in flat.get(_variable_of(a), (a,)))  # type: ignore[call-overload]
            parts.pop((), None)
            application = Application("broadcast", tuple(parts))
            if isinstance(variable, Unknown) and value not in parts and len(parts) <= JOINED_BROADCASTS:
                flat.setdefault(variable, tuple(parts))
        key = (application.function, frozenset(parts)) if application.function == "broadcast" else application
        if key in values:
            if values[key] == value:
                continue
            if isinstance(variable, Unknown) and not variable.rigid and isinstance(value, tuple):
                variable.binding = values[key]  # one application has one value
                continue
        values.setdefault(key, value)  # type: ignore[arg-type]
        result.append(attrs.evolve(open_, application=application, value=value))  # type: ignore[arg-type]
    return result


def _item(application: Application) -> Type | None:
    """The meaning of `index(A, 0)`, where A has become a tuple's type."""
    match application:
        case Application("index", (TupleType(items), int() as position), ()) if -len(items) <= position < len(items):
            found: Type = _resolve_part(items[position])  # type: ignore[assignment]
            return found
        case _:
            return None


def _reachable_terms(found: Sequence[StuckTerm], type_: FunctionType) -> list[StuckTerm]:
    """The applications that depend on the parameters, or that the result depends on, each after those that its
    arguments come from where that is possible."""
    known: set[Unknown] = set()
    kept: list[StuckTerm] = []
    missing = [_unknowns_of(o.application) for o in found]
    waiting: dict[Unknown, list[int]] = {}
    for position, needed in enumerate(missing):
        for unknown in needed:
            waiting.setdefault(unknown, []).append(position)
    ready = deque(position for position, needed in enumerate(missing) if not needed)
    new = list(unknowns(type_.parameters))
    while new or ready:
        for unknown in new:
            known.add(unknown)
            for position in waiting.pop(unknown, ()):
                missing[position].discard(unknown)
                if not missing[position]:
                    ready.append(position)
        new = []
        if ready:
            kept.append(found[ready.popleft()])
            new = [u for u in unknowns(kept[-1].value) if u not in known]
    chosen = set(map(id, kept))
    rest = [o for o in found if id(o) not in chosen]
    makers: dict[Unknown, list[StuckTerm]] = {}
    for o in rest:
        for unknown in unknowns(o.value):
            makers.setdefault(unknown, []).append(o)
    wanted = [u for u in unknowns(type_.result) if u not in known]
    while wanted:  # what the result comes from, where it is not from the parameters alone
        for o in makers.pop(wanted.pop(), ()):
            if id(o) not in chosen:
                chosen.add(id(o))
                kept.append(o)
                wanted += _unknowns_of(o.application)
    return kept


def _unknowns_of(application: Application) -> set[Unknown]:
    return {u for part in (*application.arguments, *(v for _, v in application.attributes)) for u in unknowns(part)}


def _values_used(type_: FunctionType, open_: Sequence[StuckTerm]) -> set[Unknown]:
    """The variables that occur in the type, in an application, or in two constraints."""
    used = {*unknowns(type_.parameters), *unknowns(type_.result)}
    seen: set[Unknown] = set()
    for o in open_:
        used |= _unknowns_of(o.application)
        for unknown in unknowns(o.value):
            (used if unknown in seen else seen).add(unknown)
    return used


def _is_part_of_another(open_: StuckTerm, broadcasts: Mapping[object, Sequence[StuckTerm]]) -> bool:
    """True if another broadcast (they are given by their arguments) includes this one, and so implies that it has a
    value."""
    mine = set(open_.application.arguments)
    fewest = min((broadcasts[a] for a in mine), key=len, default=())
    return any(mine < set(o.application.arguments) for o in fewest)


def _variable_of(value: object) -> object:
    """The variable that a type is, or a shape is alone."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _resolve_part(part: object) -> object:
    part = prune(part)  # type: ignore[arg-type]
    match part:
        case tuple():
            return flat_shape(part)
        case TensorType() | TupleType() | FunctionType() | RefType() | StackType() | DataType():
            return erase_forms(resolve(part))
        case _:
            return part


def _name_variables(type_: FunctionType, constraints: Sequence[Constraint]) -> list[Unknown]:
    """The variables of a type and its constraints, each with its own name."""
    parts: list[object] = [*type_.parameters, type_.result]
    for constraint in constraints:
        if isinstance(constraint, Equation):
            parts += [*constraint.application.arguments, constraint.value]
            parts += [value for _, value in constraint.application.attributes]
    found = list(dict.fromkeys(u for part in parts for u in unknowns(part)))
    used = {v.name for v in type_variables((*type_.parameters, type_.result))}
    for unknown in found:
        unknown.name = unused_name(unknown, used)
        used.add(unknown.name)
    return found


def unused_name(unknown: Unknown, used: set[str]) -> str:
    """A name for a variable that is not among the used ones: its own, or a letter for its kind."""
    first = unknown.name if unknown.name.isidentifier() and unknown.name != "_" else _LETTERS[unknown.kind]
    numbered = unknown.kind is Kind.Shape and first == _LETTERS[Kind.Shape] and unknown.name != first
    candidate, count = (f"{first}1" if numbered else first), 2
    while candidate in used:
        candidate, count = f"{first}{count}", count + 1
    return candidate


def name_the_rest(checker: Checker, named: Sequence[TypeId]) -> None:
    """Name the variables in a scheme's body that do not occur in its type."""
    used = {v.name for v in named}
    for var in checker.module.variables:
        for unknown in unknowns(var.type):
            if unknown.name == "_":
                unknown.name = unused_name(unknown, used)
                used.add(unknown.name)


def close_type(part: object, names: Mapping[Unknown, TypeId]) -> object:
    """A type, shape, base or dim with the variables of the solver replaced. A data-dependent size is any."""
    part = prune(part)  # type: ignore[arg-type]

    def close_part(inner: object) -> object:
        return close_type(inner, names)

    match part:
        case Unknown():
            return names.get(part, part)
        case DataDependentDim() | DimExpr() if any(isinstance(v, DataDependentDim) for v in variables(part)):
            return ANY
        case DimExpr():
            return substitute(part, lambda v: names.get(v, v) if isinstance(v, Unknown) else v)
        case tuple():
            return tuple(map(close_part, flat_shape(part)))
        case TensorType(base, shape):
            return TensorType(close_part(base), close_part(shape), axis_names(part))  # type: ignore[arg-type]
        case TupleType(items, form):
            return TupleType(tuple(map(close_part, items)), form)  # type: ignore[arg-type]
        case FunctionType(parameters, result, where, effects):
            told = effects.names() if isinstance(effects, Effects) else effects
            return FunctionType(tuple(map(close_part, parameters)), close_part(result), where, told)  # type: ignore[arg-type]
        case QuantifiedType(identifiers, body):
            return QuantifiedType(identifiers, close_part(body))  # type: ignore[arg-type]
        case RefType(content):
            return RefType(close_part(content))  # type: ignore[arg-type]
        case StackType(element):
            return StackType(close_part(element))  # type: ignore[arg-type]
        case DataType(definition, arguments):
            return DataType(definition, tuple(map(close_part, arguments)))  # type: ignore[arg-type]
        case _:
            return part


def _closed_constraint(constraint: Constraint, names: Mapping[Unknown, TypeId]) -> Constraint:
    match constraint:
        case Equation(Application(function, arguments, attributes), value):
            told = tuple((name, _closed_attribute(v, names)) for name, v in attributes)
            application = Application(function, tuple(close_type(a, names) for a in arguments), told)  # type: ignore[misc]
            return Equation(application, None if value is None else close_type(value, names))  # type: ignore[arg-type]
        case ClassConstraint(base, classes):
            return ClassConstraint(close_type(base, names), classes)  # type: ignore[arg-type]
        case _:
            return constraint


def _closed_attribute(value: AttributeValue, names: Mapping[Unknown, TypeId]) -> AttributeValue:
    if isinstance(value, tuple):
        return tuple(_closed_attribute(v, names) for v in value)
    return close_type(value, names) if isinstance(value, Unknown | DimExpr) else value  # type: ignore[return-value]
