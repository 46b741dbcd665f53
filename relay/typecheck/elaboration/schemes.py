"""The type of a function of whose arguments nothing is known but its annotations.

    forall (bt: BaseType) (s1: Shape) (s2: Shape). fn(Tensor[bt, s1], Tensor[bt, s2]) -> Tensor[bt, broadcast(s1, s2)]

The body is elaborated once, with variables for what the annotations leave open. What then still waits for them is part
of the type: shape rules of operators, and what a binding gives whose meaning a call decides (`x[0]` of a tensor, a
tuple or a dict), as applications of type-level functions. A rule over one shape variable that does not depend on its
rank, as `x @ w` for `(*s, n)` and `(n, m)`, is solved.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from relay.errors import RelayError, TypeMismatch
from relay.ir.dims import ANY, DimExpr, MadeDim, settled, substitute, variables
from relay.ir.effects import Effects
from relay.ir.expr import (
    Apply,
    Atom,
    Attribute,
    Binding,
    Call,
    Constant,
    Expr,
    ForEach,
    Global,
    Index,
    IndexUpdate,
    OpCall,
    PatternMatch,
    Slice,
    Static,
    Unpack,
    Var,
)
from relay.ir.facts import DimConstraint
from relay.ir.traverse import blocks, bound, free_variables, operands
from relay.ir.types import (
    FLOAT32,
    INT32,
    Application,
    AttributeValue,
    Base,
    BaseClass,
    BaseType,
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
from relay.operator import Operator, Undetermined
from relay.typecheck.elaboration.entities import (
    Consequence,
    Context,
    Entity,
    GlobalFunction,
    LocalFunction,
    Method,
    Number,
    Object,
    Size,
    Tuple,
    Typed,
)
from relay.typecheck.elaboration.session import SchemeOnly, Session
from relay.typecheck.unification import flat_shape, plain, resolve, unknowns

TRIED_RANKS = 3
"""For how many ranks of a shape variable a rule is tried, from 0 on."""

JOINED_BROADCASTS = 8
"""Of how many shapes a broadcast may be that is joined with those of its result."""

_NAMES = {"max": "largest", "min": "smallest"}  # which are functions of dims in a type
_LETTERS = {Kind.BaseType: "bt", Kind.Shape: "s", Kind.Dim: "n", Kind.Type: "A"}


# ---- applications


def application_of(
    operator: Operator, rule: Callable[..., object], shapes: Sequence[Shape], attributes: Mapping[str, object]
) -> Application:
    """A shape rule of an operator at shapes: by the rule's name if it has one for users, with the attributes that it
    looks at where they are not its defaults."""
    name = getattr(rule, "__name__", "_")
    try:
        parameters = inspect.signature(rule).parameters
    except ValueError:
        parameters = {}  # type: ignore[assignment]
    is_shared = getattr(rule, "__module__", "").startswith("relay.typecheck.") and not name.startswith("_")
    shown = name.removesuffix("_shape") if is_shared else operator.name
    told = {}
    for key, value in attributes.items():
        default = parameters[key].default if key in parameters else value
        if default is inspect.Parameter.empty and shown == operator.name:
            default = operator.attributes[key]
        if type(value) is not type(default) or value != default:
            told[key] = value
    return Application(shown, tuple(flat_shape(s) for s in shapes), _told(told))


def _told(attributes: Mapping[str, object]) -> tuple[tuple[str, AttributeValue], ...]:
    return tuple((name, _attribute(value)) for name, value in attributes.items())


def _attribute(value: object) -> AttributeValue:
    if isinstance(value, tuple):
        return tuple(map(_attribute, value))
    return prune(value) if isinstance(value, Unknown | DimExpr) else value  # type: ignore[return-value]


def is_open(session: Session, context: Context, binding: Binding, error: RelayError | Consequence) -> bool:
    """Whether a call's types decide what a binding means: it was found to need them, or what is wrong with it may be
    only that the type of an operand is open."""
    if isinstance(error, SchemeOnly):
        return True
    if not session.is_partial or isinstance(error, Consequence):
        return False
    used = [atom for atom in _used(binding.value) if isinstance(atom, Var)]
    return any(v in session.doubtful for v in used) or any(_has_open_type(context.lookup(v)) for v in used)


def _has_open_type(entity: Entity) -> bool:
    """Whether nobody knows of a value what it is, or of which rank."""
    match entity:
        case Typed(_, type_):
            return any(u.kind in (Kind.Type, Kind.Shape) for u in unknowns(type_))
        case Tuple(items):
            return any(map(_has_open_type, items))
        case Method(value):
            return _has_open_type(value)
        case _:
            return False


def doubt(session: Session, binding: Binding) -> None:
    """Note that what a binding makes comes from what is open, if an operand does."""
    if not session.doubtful.isdisjoint(_used(binding.value)):
        session.doubtful.update(binding.targets, bound(binding.value))


def open_binding(session: Session, context: Context, binding: Binding) -> None:
    """A binding whose meaning a call decides: its targets are of types that stand for themselves."""
    from relay.typecheck.elaboration import open_effects

    open_effects.note(session, context, binding)
    arguments = tuple(t for atom in _used(binding.value) if (t := _argument(context, atom)) is not None)
    name = _called(context, binding.value) or _name(binding.value)
    for position, target in enumerate(binding.targets):
        unknown = session.solver.fresh(Kind.Type)
        item: tuple[tuple[str, AttributeValue], ...] = (("item", position),) if len(binding.targets) > 1 else ()
        if subscript := _subscript(context, binding.value):
            arguments = tuple(a for a in arguments if not isinstance(a, int))
            item += subscript
        session.opened.append((unknown, Application(name, arguments, item)))
        context.environment[target] = Typed(session.variable(target.name, unknown, target.span), unknown)
    session.doubtful.update(binding.targets)
    session.is_partial = True


def _subscript(context: Context, expression: Expr) -> tuple[tuple[str, AttributeValue], ...]:
    """What a subscript with slices says of them: `at="1:, 0"`; what the run computes is `?`, and stands before."""
    if not isinstance(expression, Index) or not any(isinstance(i, Slice) for i in expression.items):
        return ()

    def text(atom: Atom | None) -> str:
        if atom is None or isinstance(atom, Static):
            written = "" if atom is None else atom.value
            return "..." if written is Ellipsis else str(written)
        found = _argument(context, atom)
        return str(found) if isinstance(found, int) else "?"

    def whole(item: Atom | Slice) -> str:
        if not isinstance(item, Slice):
            return text(item)
        step = f":{text(item.step)}" if item.step is not None else ""
        return f"{text(item.start)}:{text(item.stop)}{step}"

    return (("at", ", ".join(map(whole, expression.items))),)


def _called(context: Context, expression: Expr) -> str | None:
    """The name of what a call calls, if a variable stands for it."""
    entity = (
        context.lookup(expression.function)
        if isinstance(expression, Apply) and isinstance(expression.function, Var)
        else None
    )
    match entity:
        case Object(value):
            name = getattr(value, "name", None) or getattr(value, "__name__", None)
        case GlobalFunction(definition):
            name = definition.function.name
        case Method(_, name) | LocalFunction(name=name):
            pass
        case _:
            name = None
    return name if isinstance(name, str) and name.isidentifier() else None


def _used(expression: Expr) -> list[Atom]:
    """The operands of an expression, also of what stands in it."""
    found: dict[Atom, None] = dict.fromkeys(operands(expression))
    own = set(bound(expression))
    for block in blocks(expression):
        found.update((v, None) for v in free_variables(block) if v not in own)
    return list(found)


def _argument(context: Context, atom: Atom) -> Type | int | None:
    match atom:
        case Var():
            return _entity_argument(context.lookup(atom))
        case Constant():
            return atom.type if atom.value.ndim or atom.value.dtype.kind != "i" else int(atom.value)
        case Static(int() as value) if not isinstance(value, bool):
            return value
        case _:
            return None


def _entity_argument(entity: Entity) -> Type | int | None:
    match entity:
        case Typed(_, type_):
            return type_
        case Tuple(items):
            parts = [_entity_argument(i) for i in items]
            types = [p for p in parts if p is not None and not isinstance(p, int)]
            return TupleType(tuple(types)) if len(types) == len(parts) else None
        case Size(dim):
            return dim  # type: ignore[return-value]
        case Number(int() as value):
            return value
        case _:
            return None


def _name(expression: Expr) -> str:
    match expression:
        case Index():
            return "index"
        case IndexUpdate():
            return "updated"
        case Attribute(_, name):
            return name
        case ForEach():
            return "loop"
        case PatternMatch():
            return "match"
        case OpCall(name):
            return name
        case Apply(Global(name)) | Call(Global(name)):
            return _NAMES.get(last := name.rpartition(".")[2], last)
        case Unpack():
            return "unpack"
        case _:
            return "call"


# ---- rules at any rank


def solve_at_any_rank(
    session: Session, shapes: Sequence[Shape], rule: Callable[[Sequence[Shape]], object], result: Unknown
) -> bool:
    """Solve a rule over shapes with one variable, if its result is of one form for all ranks: false if it is not."""
    form = _at_any_rank(session, [flat_shape(s) for s in shapes], rule)
    if form is None:
        return False
    session.solver.unify_shape((result,), form)
    return True


def _at_any_rank(session: Session, shapes: Sequence[Shape], rule: Callable[[Sequence[Shape]], object]) -> Shape | None:
    """The result of a rule over shapes with one variable, if it is of the same form for all ranks that are tried, and
    needs nothing of the dims."""
    assumed = len(session.hints.assumed)
    found = {d for shape in shapes for d in shape if isinstance(d, TypeId | Unknown) and d.kind is Kind.Shape}
    makes = any(isinstance(v, MadeDim) for shape in shapes for d in shape for v in variables(settled(d)))
    if len(found) != 1 or makes:  # what is found out of sizes that the run makes stays
        return None
    (variable,) = found
    axes = tuple(TypeId(f"d{axis}", Kind.Dim) for axis in range(TRIED_RANKS - 1))
    results: list[Shape] = []
    for rank in range(TRIED_RANKS):
        tried = [tuple(x for d in s for x in (axes[:rank] if d is variable else (d,))) for s in shapes]
        try:
            results.append(rule(tried))  # type: ignore[arg-type]
        except (Undetermined, TypeMismatch):
            return None
        if len(session.hints.assumed) > assumed:
            del session.hints.assumed[assumed:]
            return None
    return _common_form(results, axes, variable)


def inferred_at_any_rank(
    session: Session, types: Sequence[Type], infer: Callable[[Sequence[Type]], Type]
) -> TensorType | None:
    """The result of an operator whose type is a function of types, for tensors of one open element type and one open
    shape: if it is of that element type for floats and integers, and of the same form for all ranks."""
    tensors = [t for t in map(resolve, types) if isinstance(t, TensorType)]
    bases = {t.base for t in tensors}
    if len(tensors) < len(types) or len(bases) != 1:
        return None
    (base,) = bases
    tried: list[Base] = [base]
    if isinstance(base, Unknown):
        tried = [b for b in (FLOAT32, INT32) if base.classes is None or b.base_class in base.classes]
    forms: list[Shape] = []
    for candidate in tried:

        def rule(shapes: Sequence[Shape], candidate: Base = candidate) -> Shape:
            result = infer([TensorType(candidate, s) for s in shapes])
            if not isinstance(result, TensorType) or result.base != candidate:
                raise Undetermined
            return result.shape

        form = _at_any_rank(session, [flat_shape(t.shape) for t in tensors], rule)
        if form is not None:
            forms.append(form)
    if not forms or len(forms) < len(tried) or any(f != forms[0] for f in forms):
        return None
    session.solver.restrict(base, frozenset(b.base_class for b in tried if isinstance(b, BaseType)))
    return TensorType(base, forms[0])


def _common_form(results: Sequence[Shape], axes: Shape, variable: TypeId | Unknown) -> Shape | None:
    """The shape with the variable that each of these results is for its rank."""
    first = results[0]
    for at in range(len(first) + 1):
        before, behind = first[:at], first[at:]
        if all(r == (*before, *axes[:rank], *behind) for rank, r in enumerate(results)):
            return (*before, variable, *behind)
    if all(r == first for r in results) and not set(type_variables(first)) & set(axes):
        return first
    return None


# ---- the end


@attrs.frozen
class _Open:
    """An application and the value that it has: a type, or a shape."""

    application: Application
    value: Type | Shape


def quantified(session: Session, type_: FunctionType, where: Sequence[DimConstraint]) -> Type:
    """The type with what it leaves open quantified, under the constraints that hold of it. Its effects get names."""
    from relay.typecheck.elaboration.effect_names import name_effects

    open_ = _reachable(_simplified(list(_applications(session))), type_)
    constraints: list[Constraint] = list(where)
    used = _values_used(type_, open_)
    implied = {id(o) for o in open_ if o.application.function == "broadcast"} & {
        id(o) for o in open_ if isinstance(_variable_of(o.value), Unknown) and _variable_of(o.value) not in used
    }
    with_argument: dict[object, list[_Open]] = {}
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
    named = _named(body, constraints)
    constraints += [ClassConstraint(b, b.classes) for b in named if b.classes and b.classes != frozenset(BaseClass)]
    names = {b: TypeId(b.name, b.kind) for b in named}
    origins = {v: o.application for o in _applications(session) if isinstance(v := _variable_of(o.value), Unknown)}
    rows = name_effects(session, type_, constraints, named, origins)
    closed = FunctionType(
        tuple(_closed(p, names) for p in type_.parameters),  # type: ignore[misc]
        _closed(type_.result, names),  # type: ignore[arg-type]
        tuple(_closed_constraint(c, names) for c in constraints),
        tuple(type_.effects or ()) or None,
    )
    written = dict.fromkeys(v for v in type_variables((closed.parameters, closed.result)) if v not in names.values())
    identifiers = (*written, *names.values(), *rows)
    return QuantifiedType(identifiers, closed) if identifiers else closed


def _applications(session: Session) -> Iterator[_Open]:
    for pending in session.pending:
        if not pending.done and pending.application is not None and pending.result is not None:
            is_shape = pending.result.kind is Kind.Shape
            yield _Open(pending.application(), (pending.result,) if is_shape else pending.result)
    for unknown, application in session.opened:
        yield _Open(application, unknown)


def _simplified(found: list[_Open]) -> list[_Open]:
    """The applications with their variables replaced, broadcasts in broadcasts as one, and none twice."""
    flat: dict[Unknown, tuple[Shape, ...]] = {}
    values: dict[object, Type | Shape] = {}
    result: list[_Open] = []
    for open_ in found:
        value = _resolved(open_.value)
        application = attrs.evolve(
            open_.application,
            arguments=tuple(_resolved(a) for a in open_.application.arguments),  # type: ignore[misc]
            attributes=_told(dict(open_.application.attributes)),
        )
        variable = _variable_of(value)
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
        result.append(_Open(application, value))  # type: ignore[arg-type]
    return result


def _reachable(found: Sequence[_Open], type_: FunctionType) -> list[_Open]:
    """Those applications that say something of the parameters, or of the result, in an order in which each stands
    behind those that its arguments come from where that is possible."""
    known: set[Unknown] = set()
    kept: list[_Open] = []
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
    wanted = set(unknowns(type_.result)) - known
    for o in reversed(rest):  # what the result comes from, where it is not from the parameters alone
        if not wanted.isdisjoint(unknowns(o.value)):
            kept.append(o)
            wanted.update(_unknowns_of(o.application))
    return kept


def _unknowns_of(application: Application) -> set[Unknown]:
    return {u for part in (*application.arguments, *(v for _, v in application.attributes)) for u in unknowns(part)}


def _values_used(type_: FunctionType, open_: Sequence[_Open]) -> set[Unknown]:
    """The variables that stand in the type, in an application, or for two of these."""
    used = {*unknowns(type_.parameters), *unknowns(type_.result)}
    seen: set[Unknown] = set()
    for o in open_:
        used |= _unknowns_of(o.application)
        for unknown in unknowns(o.value):
            (used if unknown in seen else seen).add(unknown)
    return used


def _is_part_of_another(open_: _Open, broadcasts: Mapping[object, Sequence[_Open]]) -> bool:
    """Whether another broadcast (they are given by their arguments) includes this one, and so says that it has a
    value."""
    mine = set(open_.application.arguments)
    fewest = min((broadcasts[a] for a in mine), key=len, default=())
    return any(mine < set(o.application.arguments) for o in fewest)


def _variable_of(value: object) -> object:
    """The variable that a type is, or a shape is alone."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _resolved(part: object) -> object:
    part = prune(part)  # type: ignore[arg-type]
    match part:
        case tuple():
            return flat_shape(part)
        case TensorType() | TupleType() | FunctionType() | RefType() | StackType() | DataType():
            return plain(resolve(part))
        case _:
            return part


def _named(type_: FunctionType, constraints: Sequence[Constraint]) -> list[Unknown]:
    """The variables of a type and its constraints, each with a name of its own."""
    parts: list[object] = [*type_.parameters, type_.result]
    for constraint in constraints:
        if isinstance(constraint, Equation):
            parts += [*constraint.application.arguments, constraint.value]
            parts += [value for _, value in constraint.application.attributes]
    found = list(dict.fromkeys(u for part in parts for u in unknowns(part)))
    used = {v.name for v in type_variables((*type_.parameters, type_.result))}
    for unknown in found:
        unknown.name = unused(unknown, used)
        used.add(unknown.name)
    return found


def unused(unknown: Unknown, used: set[str]) -> str:
    """A name for a variable that is not among the used ones: its own, or a letter for its kind."""
    first = unknown.name if unknown.name.isidentifier() and unknown.name != "_" else _LETTERS[unknown.kind]
    numbered = unknown.kind is Kind.Shape and first == _LETTERS[Kind.Shape] and unknown.name != first
    candidate, count = (f"{first}1" if numbered else first), 2
    while candidate in used:
        candidate, count = f"{first}{count}", count + 1
    return candidate


def name_the_rest(session: Session, named: Sequence[TypeId]) -> None:
    """Name the variables in a scheme's body that do not stand in its type."""
    used = {v.name for v in named}
    for var in session.variables:
        for unknown in unknowns(var.type):
            if unknown.name == "_":
                unknown.name = unused(unknown, used)
                used.add(unknown.name)


def _closed(part: object, names: Mapping[Unknown, TypeId]) -> object:
    """A type, shape, base or dim with the variables of the solver replaced. A size that the run makes is any."""
    part = prune(part)  # type: ignore[arg-type]

    def inside(inner: object) -> object:
        return _closed(inner, names)

    match part:
        case Unknown():
            return names.get(part, part)
        case MadeDim() | DimExpr() if any(isinstance(v, MadeDim) for v in variables(part)):
            return ANY
        case DimExpr():
            return substitute(part, lambda v: names.get(v, v) if isinstance(v, Unknown) else v)
        case tuple():
            return tuple(map(inside, flat_shape(part)))
        case TensorType(base, shape):
            return TensorType(inside(base), inside(shape), axis_names(part))  # type: ignore[arg-type]
        case TupleType(items, form):
            return TupleType(tuple(map(inside, items)), form)  # type: ignore[arg-type]
        case FunctionType(parameters, result, where, effects):
            told = effects.names() if isinstance(effects, Effects) else effects
            return FunctionType(tuple(map(inside, parameters)), inside(result), where, told)  # type: ignore[arg-type]
        case QuantifiedType(identifiers, body):
            return QuantifiedType(identifiers, inside(body))  # type: ignore[arg-type]
        case RefType(content):
            return RefType(inside(content))  # type: ignore[arg-type]
        case StackType(element):
            return StackType(inside(element))  # type: ignore[arg-type]
        case DataType(definition, arguments):
            return DataType(definition, tuple(map(inside, arguments)))  # type: ignore[arg-type]
        case _:
            return part


def _closed_constraint(constraint: Constraint, names: Mapping[Unknown, TypeId]) -> Constraint:
    match constraint:
        case Equation(Application(function, arguments, attributes), value):
            told = tuple((name, _closed_attribute(v, names)) for name, v in attributes)
            closed = Application(function, tuple(_closed(a, names) for a in arguments), told)  # type: ignore[misc]
            return Equation(closed, None if value is None else _closed(value, names))  # type: ignore[arg-type]
        case ClassConstraint(base, classes):
            return ClassConstraint(_closed(base, names), classes)  # type: ignore[arg-type]
        case _:
            return constraint


def _closed_attribute(value: AttributeValue, names: Mapping[Unknown, TypeId]) -> AttributeValue:
    if isinstance(value, tuple):
        return tuple(_closed_attribute(v, names) for v in value)
    return _closed(value, names) if isinstance(value, Unknown | DimExpr) else value  # type: ignore[return-value]
