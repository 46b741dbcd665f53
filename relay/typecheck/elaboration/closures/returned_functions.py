"""Functions in the result of a program: what of them the run computes, and what is known before.

A program whose result holds functions returns the values that these have captured, as a tuple, and the checker knows
the rest: which code it is, and what the other names in it mean. Both together are a function again, in Python or in
another program, where it is elaborated at the types of each call. Functions within the program that return functions
are treated alike, so that it is known which one a call gives.

A function that only the run chooses has no such form (`Chosen`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import InternalError, Span
from relay.ir.definition import Scope
from relay.ir.expr import Function, Grad, LoopLabel, Var
from relay.ir.types import (
    DataDefinition,
    DataType,
    Form,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    StackType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    type_variables,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    OPERATORS,
    Consequence,
    Context,
    Derived,
    Entity,
    Failed,
    GlobalFunction,
    LocalFunction,
    Method,
    Number,
    Object,
    Output,
    Progression,
    Range,
    Tuple,
    Typed,
    Zip,
)
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.restarts import Decisions, StartAnew
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import is_known, resolve, resolve_argument

# ---- what is known of a result


@attrs.frozen
class Value:
    """A value that the run computes: its position among them."""

    position: int


@attrs.frozen(repr=False)
class Applied:
    """A function that the run has chosen, by the position of the value that it is (opened_functions.py)."""

    position: int

    def __repr__(self) -> str:
        return "<a function that a run has chosen>"


@attrs.frozen
class Known:
    """What is known before the run: a number, an object, a decorated function."""

    key: object
    entity: Entity = attrs.field(eq=False)


@attrs.frozen(cache_hash=True)
class Structure:
    """A tuple, or a structure like it, that holds functions."""

    items: tuple[Node, ...]
    form: Form | None


@attrs.frozen(repr=False, cache_hash=True)
class Closure:
    """A nested function: its code, what the variables that it captures are, and what the names outside mean."""

    number: int  # of the nested functions of one result
    function: Function
    name: str
    captured: tuple[tuple[Var, Node], ...]
    scope: Scope | Names
    annotated: tuple[tuple[TypeId, object], ...]  # what variables of annotations are

    def __repr__(self) -> str:
        return f"<function {self.name}>"


@attrs.frozen(cache_hash=True)
class Names:
    """The names that the code of a template sees, of which some are functions of the program."""

    found: tuple[tuple[str, Node], ...]
    others: Mapping[str, object] = attrs.field(eq=False)


@attrs.frozen
class Again:
    """A nested function that has been met already: one that calls itself."""

    number: int


@attrs.frozen(repr=False, cache_hash=True)
class Gradient:
    """A derivative of a function."""

    of: Node
    options: tuple[object, ...]
    grad: Grad = attrs.field(eq=False)

    def __repr__(self) -> str:
        return f"grad({self.of!r})"


@attrs.frozen(cache_hash=True)
class Part:
    """Something else that has parts: a method of a value, a range, a zip."""

    kind: type
    parts: tuple[Node, ...]
    rest: tuple[object, ...]


@attrs.frozen(cache_hash=True)
class Declared:
    """A function of which the type is written."""

    function: Node
    type: Type


Node: TypeAlias = "Value | Applied | Known | Structure | Closure | Again | Gradient | Part | Declared"


class Chosen(Exception):
    """Only the run knows which function it is."""


class Keep(StartAnew):
    """What a function of the program returns has to stay a value of the run."""

    def __init__(self, label: LoopLabel) -> None:
        super().__init__()
        self.label = label

    def note(self, decisions: Decisions) -> None:
        decisions.kept.add(self.label)


def holds_functions(type_: Type) -> bool:
    """Whether values of a type have functions in them."""
    pending, seen = [type_], set[DataDefinition]()
    while pending:
        match prune(pending.pop()):
            case FunctionType() | QuantifiedType():
                return True
            case TupleType(items):
                pending += items
            case RefType(content) | StackType(content):
                pending.append(content)
            case DataType(definition, arguments):
                pending += [a for a in arguments if isinstance(a, Type)]
                if definition not in seen:
                    seen.add(definition)
                    pending += [field for constructor in definition.constructors for field in constructor.fields]
            case _:
                pass
    return False


def effects_of(type_: Type) -> frozenset[str]:
    """The names of the effects of the functions in values of a type."""
    found: set[str] = set()

    def collect(function: FunctionType) -> FunctionType:
        found.update(function.effects or ())
        return function

    map_type(type_, function=collect)
    return frozenset(found)


# ---- from a result to what is known of it


@attrs.frozen(eq=False)
class Packed:
    """A result as the values of the run in it, and the rest."""

    values: Tuple
    node: Node


def packed(
    session: Session, out: Output, entity: Entity, written: Type | None, leaves: bool, span: Span | None
) -> Packed | None:
    """A result that holds functions; None for one that does not. `written`: the annotation, at this instance's types.
    `leaves`: it leaves the program, so that its sizes are numbers.

    Raises Chosen if only the run knows which functions it holds.
    """
    if not has_functions(entity):
        return None
    packer = _Packer(session, out, leaves, span)
    node = packer.result(entity, written)
    return Packed(Tuple(tuple(packer.values)), node)


def has_functions(entity: Entity) -> bool:
    """Whether a value, or what the checker knows of one, has functions in it."""
    match entity:
        case Tuple(items):
            return any(map(has_functions, items))
        case Object(value):
            return isinstance(value, OPERATORS)
        case Typed():
            return holds_functions(entity.type)
        case _:
            return isinstance(entity, FUNCTIONS)


@attrs.define(eq=False)
class _Packer:
    session: Session
    out: Output
    leaves: bool
    span: Span | None
    values: list[Typed] = attrs.field(factory=list)
    _positions: dict[object, int] = attrs.field(factory=dict)
    _closures: dict[int, int] = attrs.field(factory=dict)

    def result(self, entity: Entity, written: Type | None) -> Node:
        """What is known of a result, or a part of one, of the type that is written."""
        from relay.typecheck.elaboration.values.function_values import function_value

        wanted: Type | None = None if written is None else prune(written)  # type: ignore[assignment]
        if not has_functions(entity):
            if isinstance(entity, Number) and not self.leaves and wanted is None:
                return self._captured(entity)
            value = self.session.materialise(self.out, entity, self.span)
            if wanted is not None:
                self.session.unify_at(value.type, wanted, self.span, "the result")
            return self._value(value)
        if isinstance(entity, Tuple):
            parts: Sequence[Type | None] = [None] * len(entity.items)
            if isinstance(wanted, TupleType) and len(wanted.items) == len(entity.items):
                parts = wanted.items
            elif wanted is not None:
                self.session.unify_at(self.session.materialise(self.out, entity, self.span).type, wanted, self.span, "")
            items = tuple(self.result(i, t) for i, t in zip(entity.items, parts, strict=True))
            return Structure(items, entity.form)
        node = self._captured(entity)
        if wanted is None or isinstance(wanted, Unknown):
            return node
        value = function_value(self.session, self.out, entity, self.span)
        without = map_type(wanted, function=lambda f: attrs.evolve(f, effects=None))
        self.session.unify_at(value.type, without, self.span, "the result")
        return Declared(node, wanted)

    def _value(self, value: Typed) -> Value:
        if holds_functions(value.type):
            raise Chosen
        key: object = value.atom if isinstance(value.atom, Var) else len(self.values)
        if key not in self._positions:
            self._positions[key] = len(self.values)
            self.values.append(value)
        return Value(self._positions[key])

    def _captured(self, entity: Entity) -> Node:
        """What a function has captured."""
        from relay.typecheck.elaboration.dynamic_shapes.data_dependent import mentioned_in_number
        from relay.typecheck.elaboration.instances import static_key

        match entity:
            case Typed():
                return self._value(entity)
            case Number():
                if mentioned_in_number(entity):
                    return self._value(self.session.materialise(self.out, entity, self.span))
                number = Number(entity.value, entity.span) if self.leaves else entity
                return Known(static_key(number), number)
            case Object() | GlobalFunction():
                return Known(static_key(entity), entity)
            case Tuple(items, form):
                return Structure(tuple(map(self._captured, items)), form)
            case LocalFunction():
                return self._closure(entity)
            case Derived(of, grad):
                return Gradient(self._captured(of), grad.options, grad)
            case Method(value, name, described):
                return Part(Method, (self._captured(value),), (name, described))
            case Range(start, stop, step, backward):
                return Part(Range, (self._captured(start), self._captured(stop)), (step, backward))
            case Progression(start, stop, step, backward):
                return Part(Progression, tuple(map(self._captured, (start, stop, step))), (backward,))
            case Zip(items):
                return Part(Zip, tuple(map(self._captured, items)), ())
            case Failed():
                raise Consequence
            case _:
                raise Chosen

    def _closure(self, entity: LocalFunction) -> Node:
        from relay.ir.traverse import free_variables
        from relay.typecheck.elaboration.derivatives.templates import Bound

        if id(entity) in self._closures:
            return Again(self._closures[id(entity)])
        number = self._closures[id(entity)] = len(self._closures)
        captured = []
        defaults = [p.default for p in entity.function.signature if isinstance(p.default, Var)]
        for variable in (*free_variables(entity.function), *defaults):
            inside = entity.environment.get(variable)
            if inside is None:
                inside = entity.context.lookup(variable)
            captured.append((variable, self._captured(inside)))
        scope: Scope | Names = entity.context.scope
        if isinstance(scope, Bound):
            parts = {n: o for n, o in scope.found.items() if isinstance(o, Typed | Derived | LocalFunction)}
            others = {n: o for n, o in scope.found.items() if n not in parts}
            named = [(n, self._captured(o)) for n, o in parts.items()]
            named += [(n, Known(("object", id(o)), Object(o))) for n, o in others.items() if n == "f__"]
            scope = Names(tuple(named), others)
        annotated = [(v, resolve_argument(t)) for v, t in entity.context.annotated.items()]
        if self.leaves:  # what the caller does not know is open there
            annotated = [(v, t) for v, t in annotated if is_known(t) and not type_variables(t)]
        return Closure(number, entity.function, entity.name, tuple(captured), scope, tuple(annotated))


def settled(node: Node) -> Node:
    """What is known at the end of the elaboration: the types in it without its variables."""
    match node:
        case Structure(items, form):
            return Structure(tuple(map(settled, items)), form)
        case Declared(function, type_):
            return Declared(function, map_type(resolve(type_), function=lambda f: attrs.evolve(f, effects=None)))
        case _:
            return node


# ---- and back


def unpacked(session: Session, out: Output, node: Node, values: Sequence[Entity], span: Span | None) -> Entity:
    """The functions, and what else a result holds, in this program; `values` are those of the run."""
    return _Unpacker(session, out, values, span).entity(node)


@attrs.define(eq=False)
class _Unpacker:
    session: Session
    out: Output
    values: Sequence[Entity]
    span: Span | None
    _closures: dict[int, LocalFunction] = attrs.field(factory=dict)

    def entity(self, node: Node) -> Entity:
        match node:
            case Value(position):
                return self.values[position]
            case Applied(position):
                return self._applied(self.values[position])
            case Known(_, entity):
                return entity
            case Structure(items, form):
                return Tuple(tuple(map(self.entity, items)), form)
            case Closure():
                return self._closure(node)
            case Again(number):
                return self._closures[number]
            case Gradient(of, _, grad):
                return Derived(self.entity(of), grad)
            case Part(kind, parts, rest):
                inside = tuple(map(self.entity, parts))
                made: Entity = kind(inside) if kind is Zip else kind(*inside, *rest)
                return made
            case Declared(function, type_):
                return self._declared(self.entity(function), type_)
        raise InternalError(f"{node!r} is no part of a result")

    def _closure(self, node: Closure) -> LocalFunction:
        from relay.typecheck.elaboration.derivatives.templates import Bound

        environment: dict[Var, Entity] = {}
        annotated = dict(node.annotated)
        names: dict[str, object] = {}
        scope = node.scope if not isinstance(node.scope, Names) else Bound(names)
        context = Context({}, {}, scope, annotated)
        slot, sizes = self.out.slot(), self.session.sizes_in_scope()
        made = LocalFunction(node.function, environment, slot, sizes, context, node.name)
        self._closures[node.number] = made
        if isinstance(node.scope, Names):
            names.update(node.scope.others)
            names.update((n, self.entity(o)) for n, o in node.scope.found if n not in node.scope.others)
        environment.update((variable, self.entity(inside)) for variable, inside in node.captured)
        return made

    def _applied(self, value: Entity) -> Entity:
        from relay.typecheck.elaboration.closures.returned_closures import as_function

        function = as_function(self.session, self.out, value)
        assert function is not None
        return function

    def _declared(self, entity: Entity, type_: Type) -> Entity:
        from relay.typecheck.elaboration.values.function_values import function_value

        value = function_value(self.session, self.out, entity, self.span)
        fresh: dict[TypeId, object] = {}
        for variable in type_variables(type_):
            unknown = self.session.solver.fresh(variable.kind, variable.name)
            fresh[variable] = (unknown,) if variable.kind is Kind.Shape else unknown
        self.session.unify_at(value.type, substitute(type_, fresh), self.span, "the function")
        return value
