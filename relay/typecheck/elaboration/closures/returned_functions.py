"""Functions in a program's result: their dynamic environment and their static code.

A program whose result holds functions returns the values that these have captured, as a tuple, and the checker knows
the rest: which code it is, and what the other names in it mean. Both together are a function again, in Python or in
another program, where it is elaborated at the types of each call. Functions within the program that return functions
are treated alike, so that it is known which one a call gives.

A function that is selected only at run time has no such form (`ChosenFunctionNode`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import InternalError, Span
from relay.ir.definition import Scope
from relay.ir.expr import (
    Function,
    Grad,
    LoopLabel,
    Var,
)
from relay.ir.traverse import free_variables
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
    AbstractValue,
    Context,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    Identity,
    LocalFunction,
    Method,
    Number,
    Poison,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures.returned_closures import as_function
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import mentioned_in_number
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.restarts import Assumptions, Restart
from relay.typecheck.elaboration.values.labels import is_label
from relay.typecheck.elaboration.values.static_keys import static_key
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import is_known, resolve, resolve_argument

# ---- what is known of a result


@attrs.frozen
class ValueNode:
    """A value that is computed at run time: its position among them."""

    position: int


@attrs.frozen(repr=False)
class ChosenFunctionNode:
    """A function that was selected at run time, by the position of the value that it is (returned_closures.py)."""

    position: int

    def __repr__(self) -> str:
        return "<function selected at run time>"


@attrs.frozen
class StaticNode:
    """A value that is known at compile time: a number, an object, a decorated function."""

    key: object
    entity: AbstractValue = attrs.field(eq=False)


@attrs.frozen(cache_hash=True)
class StructureNode:
    """A tuple, or a structure like it, that holds functions."""

    items: tuple[Node, ...]
    form: Form | None


@attrs.frozen(repr=False, cache_hash=True)
class ClosureNode:
    """A nested function: its code, what the variables that it captures are, and what the names outside mean."""

    number: int  # of the nested functions of one result
    function: Function
    name: str
    captured: tuple[tuple[Var, Node], ...]
    scope: Scope | LinkedScope
    annotated: tuple[tuple[TypeId, object], ...]  # what variables of annotations are

    def __repr__(self) -> str:
        return f"<function {self.name}>"


@attrs.frozen(cache_hash=True)
class LinkedScope:
    """The names that the code of a template sees, of which some are functions of the program."""

    found: tuple[tuple[str, Node], ...]
    others: Mapping[str, object] = attrs.field(eq=False)


@attrs.frozen
class RecursiveClosureNode:
    """A nested function that has been met already: one that calls itself."""

    number: int


@attrs.frozen(repr=False, cache_hash=True)
class GradientNode:
    """A derivative of a function."""

    of: Node
    options: tuple[object, ...]
    grad: Grad = attrs.field(eq=False)

    def __repr__(self) -> str:
        return f"grad({self.of!r})"


@attrs.frozen(cache_hash=True)
class PartNode:
    """Something else that has parts: a method of a value, a range, a zip."""

    kind: type
    parts: tuple[Node, ...]
    rest: tuple[object, ...]


@attrs.frozen(cache_hash=True)
class DeclaredFunctionNode:
    """A function of which the type is written."""

    function: Node
    type: Type


Node: TypeAlias = (
    "ValueNode | ChosenFunctionNode | StaticNode | StructureNode | ClosureNode | RecursiveClosureNode"
    " | GradientNode | PartNode | DeclaredFunctionNode"
)


class FunctionChosenAtRunTime(Exception):
    """A function that is known only at run time."""


class ResultStaysDynamic(Restart):
    """A mark: the result of a function of the program has to stay a run-time value."""

    def __init__(self, label: LoopLabel) -> None:
        super().__init__()
        self.label = label

    def note(self, decisions: Assumptions) -> None:
        decisions.kept.add(self.label)


def holds_functions(type_: Type) -> bool:
    """True if values of a type have functions in them."""
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
class PackedResult:
    """A result, split into the run-time values in it and the static rest."""

    values: Tuple
    node: Node


def pack_result(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    written: Type | None,
    leaves: bool,
    span: Span | None,
) -> PackedResult | None:
    """A result that holds functions; None for one that does not. `written`: the annotation, at this instance's types.
    `leaves`: it leaves the program, so that its sizes are numbers.

    Raises Chosen if it is known only at run time which functions it holds.
    """
    if not has_functions(entity):
        return None
    packer = _ResultPacker(checker, out, leaves, span)
    node = packer.result(entity, written)
    return PackedResult(Tuple(tuple(packer.values)), node)


def has_functions(entity: AbstractValue) -> bool:
    """True if a value, or its abstract value, contains functions, or strings, which are not run-time values either."""
    match entity:
        case Tuple(items):
            return any(map(has_functions, items))
        case PythonObject(value):
            return is_function(value) or is_label(value)
        case DynamicValue():
            return holds_functions(entity.type)
        case _:
            return isinstance(entity, FUNCTIONS)


@attrs.define(eq=False)
class _ResultPacker:
    checker: Checker
    out: TypedBlockBuilder
    leaves: bool
    span: Span | None
    values: list[DynamicValue] = attrs.field(factory=list)
    _positions: dict[object, int] = attrs.field(factory=dict)
    _closures: dict[int, int] = attrs.field(factory=dict)

    def result(self, entity: AbstractValue, written: Type | None) -> Node:
        """The description of a result, or of a part of one, of the written type."""
        wanted: Type | None = None if written is None else prune(written)  # type: ignore[assignment]
        if not has_functions(entity):
            if isinstance(entity, Number) and not self.leaves and wanted is None:
                return self._capture_node(entity)
            value = self.checker.materialize(self.out, entity, self.span)
            if wanted is not None:
                self.checker.unify_at(value.type, wanted, self.span, "the result")
            return self._value(value)
        if isinstance(entity, Tuple):
            parts: Sequence[Type | None] = [None] * len(entity.items)
            if isinstance(wanted, TupleType) and len(wanted.items) == len(entity.items):
                parts = wanted.items
            elif wanted is not None:
                self.checker.unify_at(self.checker.materialize(self.out, entity, self.span).type, wanted, self.span, "")
            items = tuple(self.result(i, t) for i, t in zip(entity.items, parts, strict=True))
            return StructureNode(items, entity.form)
        node = self._capture_node(entity)
        if wanted is None or isinstance(wanted, Unknown):
            return node
        value = self.checker.engine.function_value(self.checker, self.out, entity, self.span)
        without = map_type(wanted, function=lambda f: attrs.evolve(f, effects=None))
        self.checker.unify_at(value.type, without, self.span, "the result")
        return DeclaredFunctionNode(node, wanted)

    def _value(self, value: DynamicValue) -> ValueNode:
        if holds_functions(value.type):
            raise FunctionChosenAtRunTime
        key: object = value.atom if isinstance(value.atom, Var) else len(self.values)
        if key not in self._positions:
            self._positions[key] = len(self.values)
            self.values.append(value)
        return ValueNode(self._positions[key])

    def _capture_node(self, entity: AbstractValue) -> Node:
        """The node of a function's captured variable."""
        match entity:
            case DynamicValue():
                return self._value(entity)
            case Number():
                if mentioned_in_number(entity):
                    return self._value(self.checker.materialize(self.out, entity, self.span))
                number = PythonNumber(entity.specialize(), entity.span) if self.leaves else entity
                return StaticNode(static_key(number), number)
            case PythonObject() | GlobalFunction():
                return StaticNode(static_key(entity), entity)
            case Tuple(items, form):
                return StructureNode(tuple(map(self._capture_node, items)), form)
            case LocalFunction():
                return self._closure(entity)
            case DerivativeFunction(of, grad):
                return GradientNode(self._capture_node(of), grad.options, grad)
            case Method(value, name, described):
                return PartNode(Method, (self._capture_node(value),), (name, described))
            case Range(start, stop, step, backward):
                return PartNode(Range, (self._capture_node(start), self._capture_node(stop)), (step, backward))
            case Progression(start, stop, step, backward):
                return PartNode(Progression, tuple(map(self._capture_node, (start, stop, step))), (backward,))
            case Zip(items):
                return PartNode(Zip, tuple(map(self._capture_node, items)), ())
            case Poison():
                raise DependsOnPoison
            case _:
                raise FunctionChosenAtRunTime

    def _closure(self, entity: LocalFunction) -> Node:
        if id(entity) in self._closures:
            return RecursiveClosureNode(self._closures[id(entity)])
        number = self._closures[id(entity)] = len(self._closures)
        captured = []
        defaults = [p.default for p in entity.function.signature if isinstance(p.default, Var)]
        for variable in (*free_variables(entity.function), *defaults):
            inside = entity.environment.get(variable)
            if inside is None:
                inside = entity.context.lookup(variable)
            captured.append((variable, self._capture_node(inside)))
        scope: Scope | LinkedScope = entity.context.scope
        if isinstance(scope, TemplateScope):
            parts = {
                n: o for n, o in scope.found.items() if isinstance(o, DynamicValue | DerivativeFunction | LocalFunction)
            }
            others = {n: o for n, o in scope.found.items() if n not in parts}
            named = [(n, self._capture_node(o)) for n, o in parts.items()]
            named += [
                (n, StaticNode(("object", Identity(o)), PythonObject(o))) for n, o in others.items() if n == "f__"
            ]
            scope = LinkedScope(tuple(named), others)
        annotated = [(v, resolve_argument(t)) for v, t in entity.context.annotated.items()]
        if self.leaves:  # what the caller does not know is open there
            annotated = [(v, t) for v, t in annotated if is_known(t) and not type_variables(t)]
        return ClosureNode(number, entity.function, entity.name, tuple(captured), scope, tuple(annotated))


def resolve_node(node: Node) -> Node:
    """A node at the end of the elaboration: its types without solver variables."""
    match node:
        case StructureNode(items, form):
            return StructureNode(tuple(map(resolve_node, items)), form)
        case DeclaredFunctionNode(function, type_):
            return DeclaredFunctionNode(
                function, map_type(resolve(type_), function=lambda f: attrs.evolve(f, effects=None))
            )
        case _:
            return node


# ---- and back


def unpack_result(
    checker: Checker, out: TypedBlockBuilder, node: Node, values: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """The functions and other parts of a result in this program; `values` are the run-time ones."""
    return _ResultUnpacker(checker, out, values, span).entity(node)


@attrs.define(eq=False)
class _ResultUnpacker:
    checker: Checker
    out: TypedBlockBuilder
    values: Sequence[AbstractValue]
    span: Span | None
    _closures: dict[int, LocalFunction] = attrs.field(factory=dict)

    def entity(self, node: Node) -> AbstractValue:
        match node:
            case ValueNode(position):
                return self.values[position]
            case ChosenFunctionNode(position):
                return self._chosen_function(self.values[position])
            case StaticNode(_, entity):
                return entity
            case StructureNode(items, form):
                return Tuple(tuple(map(self.entity, items)), form)
            case ClosureNode():
                return self._closure(node)
            case RecursiveClosureNode(number):
                return self._closures[number]
            case GradientNode(of, _, grad):
                return DerivativeFunction(self.entity(of), grad)
            case PartNode(kind, parts, rest):
                inside = tuple(map(self.entity, parts))
                made: AbstractValue = kind(inside) if kind is Zip else kind(*inside, *rest)
                return made
            case DeclaredFunctionNode(function, type_):
                return self._declared_function(self.entity(function), type_)
        raise InternalError(f"{node!r} is not a part of a result")

    def _closure(self, node: ClosureNode) -> LocalFunction:
        environment: dict[Var, AbstractValue] = {}
        annotated = dict(node.annotated)
        names: dict[str, object] = {}
        scope = node.scope if not isinstance(node.scope, LinkedScope) else TemplateScope(names)
        context = Context({}, {}, scope, annotated)
        slot, sizes = self.out.slot(), self.checker.sizes_in_scope()
        evidence = self.checker.frame.evidence
        made = LocalFunction(node.function, environment, slot, sizes, context, node.name, evidence=evidence)
        self._closures[node.number] = made
        if isinstance(node.scope, LinkedScope):
            names.update(node.scope.others)
            names.update((n, self.entity(o)) for n, o in node.scope.found if n not in node.scope.others)
        environment.update((variable, self.entity(inside)) for variable, inside in node.captured)
        return made

    def _chosen_function(self, value: AbstractValue) -> AbstractValue:
        function = as_function(self.checker, self.out, value)
        assert function is not None
        return function

    def _declared_function(self, entity: AbstractValue, type_: Type) -> AbstractValue:
        value = self.checker.engine.function_value(self.checker, self.out, entity, self.span)
        fresh: dict[TypeId, object] = {}
        for variable in type_variables(type_):
            unknown = self.checker.solver.fresh_variable(variable.kind, variable.name)
            fresh[variable] = (unknown,) if variable.kind is Kind.Shape else unknown
        self.checker.unify_at(value.type, substitute(type_, fresh), self.span, "the function")
        return value


def takes_unseen(type_: Type) -> bool:
    """True if there is a function in tuples that nothing calls."""
    match prune(type_):
        case TupleType(items):
            return any(map(takes_unseen, items))
        case FunctionType(parameters, result):
            return any(map(is_unseen, parameters)) or takes_unseen(result)
        case _:
            return False


class _Unseen:
    """The class of what nothing is ever given for."""


UNSEEN = TupleType((), Form(_Unseen))
"""The type of the parameters of functions that nothing calls."""


def is_unseen(type_: Type) -> bool:
    """True if this is the type of the parameters of functions that nothing calls."""
    known = prune(type_)
    return isinstance(known, TupleType) and known.form is not None and known.form.cls is _Unseen
