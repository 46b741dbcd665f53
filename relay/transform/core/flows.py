"""Flows: the sets of functions that may meet at run time, and the data types that stand for them.

A *flow* is a set of functions that meet: those chosen by a branch, carried by a loop, stored in a cell. Its values are
those of a data type with one constructor for each function, whose fields are the captured variables. Flows that meet
are merged (union-find), and with them the flows of their arguments, results and captured variables.

    converted(fn(A, ..) -> R)   =  a new flow of  converted(A), .. -> converted(R)
    converted(D)                =  D with converted fields: one flow for each function type in the definition of D
    converted((A, ..), Ref[A], Stack[A])  component by component
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import attrs

from relay.errors import InternalError
from relay.ir.dims import DataDependentDim
from relay.ir.expr import Atom, Function, Grad, Static, Var
from relay.ir.sizes.data_dependent import without_made
from relay.ir.types import (
    INT64,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    QuantifiedType,
    RefType,
    StackType,
    TupleType,
    Type,
    scalar,
)
from relay.transform.core.captured_dims import sizes_in, with_sizes
from relay.transform.core.static_values import Closure, Gradient, ModuleFunction, StaticValue

Origin: TypeAlias = "Function | Grad | str"
"""The origin of a constructor: the code of a lambda, the request for a derivative, the name of a module function."""

NEVER = "Never"
"""The constructor of a flow without functions."""

Known: TypeAlias = Closure | ModuleFunction | Gradient
"""A function that is known at compile time."""


@attrs.define(eq=False)
class FlowMember:
    """One function of a flow: its constructor, and such a value to make others like."""

    name: str
    like: Known
    fields: tuple[Type, ...]
    sizes: tuple[DataDependentDim, ...] = ()  # the data-dependent ones that the function mentions: its first fields


@attrs.define(eq=False)
class Flow:
    """Functions that meet. `type` is theirs in the typed program."""

    type: FunctionType
    parameters: tuple[Type, ...]
    result: Type
    definition: DataDefinition
    alternatives: dict[Origin, FlowMember] = attrs.field(factory=dict)
    parent: Flow | None = None


def atom_type(atom: Atom) -> Type:
    """The type of an atom of typed IR."""
    if isinstance(atom, Static) or atom.type is None:
        raise InternalError(f"{atom!r} has no type")
    return atom.type


def contents(type_: Type) -> tuple[Type, ...]:
    """The types directly inside of a tuple, reference, stack or data type."""
    match type_:
        case TupleType(items):
            return items
        case RefType(content):
            return (content,)
        case StackType(element):
            return (element,)
        case DataType(definition):
            return tuple(t for c in definition.constructors for t in c.fields)
        case _:
            return ()


def reachable_types(type_: Type) -> Iterator[Type]:
    """A type and all types inside of it. The inside of a data type comes once."""
    pending, seen = [type_], set[DataDefinition]()
    while pending:
        type_ = pending.pop()
        yield type_
        if isinstance(type_, DataType):
            if type_.definition in seen:
                continue
            seen.add(type_.definition)
        pending += contents(type_)


class Flows:
    """The flows of one module, and its types with them in place of function types."""

    def __init__(self, fresh_name: Callable[[str], str]) -> None:
        self.version = 0
        """Changes whenever flows become one."""
        self._fresh_name = fresh_name
        self._by_definition: dict[DataDefinition, Flow] = {}
        self._converted: dict[DataDefinition, DataDefinition] = {}
        self._mentions: dict[DataDefinition, bool] = {}
        self._names: dict[Origin, str] = {}
        self._copies: dict[
            Function, tuple[Function, Mapping[DataDependentDim, DataDependentDim]]
        ] = {}  # of which, with which sizes

    # ---- types

    def mentions(self, type_: Type | None) -> bool:
        """True if values of this type of the typed program contain functions, in references and data too."""
        match type_:
            case None:
                raise InternalError("a variable without a type reached specialization")
            case FunctionType() | QuantifiedType():
                return True
            case DataType(definition):
                if definition not in self._mentions:
                    inside = reachable_types(type_)
                    self._mentions[definition] = any(isinstance(t, FunctionType | QuantifiedType) for t in inside)
                return self._mentions[definition]
            case _:
                return any(self.mentions(t) for t in contents(type_))

    def carries(self, type_: Type) -> bool:
        """True if values of this converted type are or contain functions, other than in data types of the program."""
        if isinstance(type_, DataType):
            return type_.definition in self._by_definition
        return any(self.carries(t) for t in contents(type_))

    def convert(self, type_: Type) -> Type:
        """The type with a new flow for each function type in it. It is itself if it has none."""
        if not self.mentions(type_):
            return type_
        match type_:
            case FunctionType(parameters, result):
                definition = DataDefinition("function")
                converted = tuple(self.convert(t) for t in parameters)
                self._by_definition[definition] = Flow(type_, converted, self.convert(result), definition)
                return DataType(definition)
            case TupleType(items):
                return TupleType(tuple(self.convert(t) for t in items))
            case RefType(content):
                return RefType(self.convert(content))
            case StackType(element):
                return StackType(self.convert(element))
            case DataType(definition):
                return DataType(self.convert_definition(definition))
            case _:
                raise InternalError(f"a function type that is not known: {type_}")

    def convert_definition(self, definition: DataDefinition) -> DataDefinition:
        """A data type of the program with converted fields."""
        if not self.mentions(DataType(definition)):
            return definition
        found = self._converted.get(definition)
        if found is None:
            found = self._converted[definition] = DataDefinition(definition.name, origin=definition.origin)
            found.constructors = tuple(
                Constructor(c.name, tuple(self.convert(t) for t in c.fields), c.names) for c in definition.constructors
            )
        return found

    def canonical(self, type_: Type) -> Type:
        """The type with the data type of each flow's representative."""
        match type_:
            case DataType(definition):
                flow = self.of_definition(definition)
                return type_ if flow is None else DataType(flow.definition)
            case TupleType(items):
                return TupleType(tuple(self.canonical(t) for t in items))
            case RefType(content):
                return RefType(self.canonical(content))
            case StackType(element):
                return StackType(self.canonical(element))
            case FunctionType(parameters, result, where):
                return FunctionType(tuple(self.canonical(t) for t in parameters), self.canonical(result), where)
            case _:
                return type_

    # ---- flows

    def of_definition(self, definition: DataDefinition) -> Flow | None:
        """The flow whose data type this is."""
        flow = self._by_definition.get(definition)
        return None if flow is None else self.find(flow)

    def function_flow(self, type_: Type) -> Flow:
        """The flow of a function. Raises InternalError for other types."""
        flow = self.of_definition(type_.definition) if isinstance(type_, DataType) else None
        if flow is None:
            raise InternalError(f"{type_} is not the type of a function")
        return flow

    def find(self, flow: Flow) -> Flow:
        """The representative of a flow."""
        root = flow
        while root.parent is not None:
            root = root.parent
        while flow.parent is not None and flow.parent is not root:
            flow.parent, flow = root, flow.parent
        return root

    def unify(self, left: Type, right: Type) -> None:
        """Let the flows of two converted types of the same values become one. Raises InternalError if they differ."""
        pending = [(left, right)]
        while pending:
            a, b = pending.pop()
            if a is b:
                continue
            match a, b:
                case (TupleType(), TupleType()) | (RefType(), RefType()) | (StackType(), StackType()):
                    pending += zip(contents(a), contents(b), strict=True)
                case DataType(), DataType():
                    pending += self._unite(a, b)
                case _:
                    if a != b:
                        raise InternalError(f"{a} meets {b}")

    def _unite(self, a: DataType, b: DataType) -> list[tuple[Type, Type]]:
        if a.definition not in self._by_definition and a == b:
            return []
        kept, other = self.function_flow(a), self.function_flow(b)
        if kept is other:
            return []
        other.parent = kept
        self.version += 1
        follow = [*zip(kept.parameters, other.parameters, strict=True), (kept.result, other.result)]
        for origin, alternative in other.alternatives.items():
            same = kept.alternatives.setdefault(origin, alternative)
            follow += zip(same.fields, alternative.fields, strict=True)
        return follow

    def alternative(self, flow: Flow, known: Known) -> FlowMember:
        """The constructor of a flow for a function."""
        flow = self.find(flow)
        sizes: tuple[DataDependentDim, ...] = ()
        match known:
            case Closure(function, group):
                origin: Origin = self._copies[function][0] if function in self._copies else function
                name, types = function.name, [v.type for v in group.captured]
                if origin not in flow.alternatives:
                    original = {new: old for old, new in self._sizes_of_copy(known).items()}
                    sizes = tuple(original.get(dim, dim) for dim in sizes_in(known, flow.type))
            case ModuleFunction(name):
                origin, types = name, []
            case Gradient(_, options):
                origin, name, types = options, "gradient", [atom_type(options.function)]
        found = flow.alternatives.get(origin)
        if found is None:
            fields = (scalar(INT64),) * len(sizes) + tuple(
                self.convert(without_made(t) if sizes else t) for t in types if t is not None
            )
            if origin not in self._names:
                self._names[origin] = self._fresh_name(f"{name}_closure")
            found = flow.alternatives[origin] = FlowMember(self._names[origin], known, fields, sizes)
        return found

    def copy_with_dims(self, alternative: FlowMember, again: Mapping[DataDependentDim, DataDependentDim]) -> Closure:
        """The function of a constructor with other sizes in its code. It stays the same function to its flow."""
        closure = alternative.like
        assert isinstance(closure, Closure)
        function, group = with_sizes(closure, again)
        for original, copy in zip(closure.group.members.values(), group.members.values(), strict=True):
            origin, before = self._copies.get(original, (original, {}))
            names = {old: again.get(new, new) for old, new in before.items()} | {
                old: new for old, new in again.items() if old not in before.values()
            }
            self._copies[copy] = origin, names
        return attrs.evolve(closure, function=function, group=group)

    def sizes_of(self, alternative: FlowMember, known: Known) -> tuple[DataDependentDim, ...]:
        """The names of the sizes that a function of a constructor mentions."""
        names = self._sizes_of_copy(known)
        return tuple(names.get(dim, dim) for dim in alternative.sizes)

    def _sizes_of_copy(self, known: Known) -> Mapping[DataDependentDim, DataDependentDim]:
        return self._copies[known.function][1] if isinstance(known, Closure) and known.function in self._copies else {}

    def reachable_flows(self, type_: Type) -> list[Flow]:
        """The flows of the functions that a value of this converted type leads to: in it, and in their results."""
        found: dict[Flow, None] = {}
        pending = [type_]
        while pending:
            for inner in reachable_types(pending.pop()):
                flow = self.of_definition(inner.definition) if isinstance(inner, DataType) else None
                if flow is not None and flow not in found:
                    found[flow] = None
                    pending.append(flow.result)
        return list(found)

    # ---- the end

    def finish(self, types: Iterable[Type], made: Mapping[Flow, Collection[str]]) -> list[DataDefinition]:
        """Give the data types of flows the constructors in `made`, and converted ones their final fields. Returns the
        definitions that `types` need.
        """
        for flow in self._by_definition.values():
            if flow.parent is None:
                chosen = [a for a in flow.alternatives.values() if a.name in made.get(flow, ())]
                flow.definition.constructors = tuple(
                    Constructor(a.name, tuple(self.canonical(t) for t in a.fields)) for a in chosen
                ) or (Constructor(NEVER, ()),)
        for definition in self._converted.values():
            definition.constructors = tuple(
                attrs.evolve(c, fields=tuple(self.canonical(t) for t in c.fields)) for c in definition.constructors
            )
        own = {*self._by_definition, *self._converted.values()}
        found: dict[DataDefinition, None] = {}
        for type_ in types:
            for inner in reachable_types(type_):
                if isinstance(inner, DataType) and inner.definition in own:
                    found[inner.definition] = None
        for definition in found:
            if definition in self._by_definition:
                definition.name = self._fresh_name("closure")
        return list(found)


def parts_of(known: Known) -> tuple[StaticValue, ...]:
    """The contents of the fields of a known function's constructor, as static values."""
    match known:
        case Closure(environment=environment):
            return environment
        case ModuleFunction():
            return ()
        case Gradient(function):
            return (function,)


def field_names(known: Known) -> tuple[str, ...]:
    """The names of the fields of a known function's constructor."""
    match known:
        case Closure(group=group):
            return tuple(v.name for v in group.captured)
        case ModuleFunction():
            return ()
        case Gradient():
            return ("function",)


def variables(types: tuple[Type, ...], names: tuple[str, ...]) -> tuple[Var, ...]:
    """Fresh variables."""
    return tuple(Var(n, t) for n, t in zip(names, types, strict=True))
