"""Dead-field elimination: data types lose the fields that nobody reads.

    data D { C(a, unread) }; x = C(s, t); match x { C(a, b) -> .. a .. }
    data D { C(a) }; x = C(s); match x { C(a) -> .. a .. }

A field is read if a case of a `match` reads its variable; that it is handed on to such a field does not count once that
one is gone. Data types that the entry takes or returns, directly or inside of others, and those of functions that are
still to be differentiated or that rules name, keep all their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Construct,
    Derivative,
    Expr,
    Function,
    Match,
    MatchArm,
    Module,
    StackNew,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.traverse import bound_variables, walk
from relay.ir.types import (
    Constructor,
    DataDefinition,
    DataType,
    Type,
    map_type_parts,
    mentioned_definitions,
    prune,
)
from relay.transform.analysis.loop_analysis import uses
from relay.transform.core.rebuilding import select
from relay.transform.module_pass import pass_about

_Kept = dict[tuple[DataDefinition, str], tuple[bool, ...]]


@pass_about(DataDefinition)
def eliminate_dead_fields(module: Module) -> Module:
    """The module without fields of data that nobody reads."""
    while True:
        kept = _live_fields(module)
        if not kept:
            return module
        types = _NarrowedTypes(kept)
        functions = {
            name: _FieldElimination(kept, types).function(f) if isinstance(f, Function) else f
            for name, f in module.functions.items()
        }
        module = Module(functions, module.entry, tuple(map(types.definition, module.data)), module.where)


def _live_fields(module: Module) -> _Kept:
    """The fields that stay, of the constructors that lose some."""
    own = set(_with_fields(_types_in(module))) - set(_with_fields(_exposed_types(module)))
    if not own:
        return {}
    read: dict[tuple[DataDefinition, str], list[bool]] = {
        (d, c.name): [False] * len(c.fields) for d in own for c in d.constructors
    }
    for function in module.functions.values():
        if not isinstance(function, Function):
            continue
        counts = uses(function.body)
        for binding in walk(function.body):
            if isinstance(binding.value, Match):
                definition = _definition(binding.value.value)
                if definition in own:
                    for arm in binding.value.arms:
                        reads = read[definition, arm.constructor]
                        for position, field in enumerate(arm.fields):
                            reads[position] |= field in counts
    return {key: tuple(fields) for key, fields in read.items() if not all(fields)}


def _definition(atom: Atom) -> DataDefinition:
    type_ = prune(atom.type) if isinstance(atom, Var) and atom.type is not None else None
    assert isinstance(type_, DataType)
    return type_.definition


def _exposed_types(module: Module) -> Iterator[Type]:
    """The types whose data keeps its form."""
    fixed = {module.entry}
    for function in module.functions.values():
        if isinstance(function, Derivative):
            fixed |= {function.of, function.name}
        else:
            fixed.update(function.rule_functions)
            if function.rule is not None:
                fixed.add(function.name)
    for name in fixed:
        yield module.functions[name].type


def _types_in(module: Module) -> Iterator[Type]:
    for function in module.functions.values():
        yield function.type
        if isinstance(function, Function):
            for binding in walk(function.body):
                for var in (*binding.targets, *bound_variables(binding.value)):
                    if var.type is not None:
                        yield var.type


def _with_fields(types: Iterable[Type]) -> dict[DataDefinition, None]:
    """The data types in types and in their fields."""
    found: dict[DataDefinition, None] = {}
    pending = mentioned_definitions(types)
    while pending:
        definition = pending.pop()
        if definition not in found:
            found[definition] = None
            pending += mentioned_definitions(t for c in definition.constructors for t in c.fields)
    return found


class _NarrowedTypes:
    """The types with definitions that have fewer fields."""

    def __init__(self, kept: _Kept) -> None:
        self.kept = kept
        self._narrowed = {definition for definition, _ in kept}
        self._definitions: dict[DataDefinition, DataDefinition] = {}
        self._types: dict[Type, Type] = {}

    def definition(self, definition: DataDefinition) -> DataDefinition:
        """The definition with fewer fields; itself if neither it nor what it holds loses any."""
        found = self._definitions.get(definition)
        if found is not None:
            return found
        if definition.parameters or not self._narrowed.intersection(_with_fields([DataType(definition)])):
            self._definitions[definition] = definition
            return definition
        made = self._definitions[definition] = DataDefinition(definition.name, origin=definition.origin)
        constructors = []
        for constructor in definition.constructors:
            keep = self.kept.get((definition, constructor.name), (True,) * len(constructor.fields))
            fields = tuple(map(self.narrow_type, select(constructor.fields, keep)))
            names = select(constructor.names, keep) if constructor.names else constructor.names
            constructors.append(Constructor(constructor.name, fields, names))
        made.constructors = tuple(constructors)
        return made

    def narrow_type(self, type_: Type) -> Type:
        """The type with other definitions."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = self._map(prune(type_))  # type: ignore[arg-type]
        return found

    def _map(self, type_: Type) -> Type:
        match type_:
            case DataType(definition, ()):
                made = self.definition(definition)
                return type_ if made is definition else DataType(made)
            case _:
                return map_type_parts(type_, self.narrow_type)


class _FieldElimination:
    """One function at the new types."""

    def __init__(self, kept: _Kept, types: _NarrowedTypes) -> None:
        self.kept, self.types = kept, types
        self.vars: dict[Var, Var] = {}

    def function(self, source: Function) -> Function:
        assert source.result is not None
        return attrs.evolve(  # type: ignore[misc]
            source,
            parameters=tuple(map(self.var, source.parameters)),
            result=self.types.narrow_type(source.result),
            body=self.block(source.body),
        )

    def var(self, var: Var) -> Var:
        found = self.vars.get(var)
        if found is None:
            assert var.type is not None
            type_ = self.types.narrow_type(var.type)
            found = self.vars[var] = var if type_ == var.type else Var(var.name, type_, var.span)
        return found

    def atom(self, atom: Atom) -> Atom:
        return self.var(atom) if isinstance(atom, Var) else atom

    def block(self, block: Block) -> Block:
        bindings = tuple(
            Binding(tuple(map(self.var, b.targets)), self.expression(b.value)) for b in block.bindings
        )  # fmt: skip
        return Block(bindings, map_terminator(block.terminator, self.atom))

    def expression(self, value: Expr) -> Expr:
        match value:
            case Construct(definition, constructor, arguments, span):
                keep = self.kept.get((definition, constructor), (True,) * len(arguments))
                made = tuple(map(self.atom, select(arguments, keep)))
                return Construct(self.types.definition(definition), constructor, made, span)
            case Match(matched, arms, span):
                definition = _definition(matched)
                made_arms = []
                for arm in arms:
                    keep = self.kept.get((definition, arm.constructor), (True,) * len(arm.fields))
                    fields = tuple(map(self.var, select(arm.fields, keep)))
                    made_arms.append(MatchArm(arm.constructor, fields, self.block(arm.body)))
                return Match(self.atom(matched), tuple(made_arms), span)
            case StackNew(element, span):
                return StackNew(self.types.narrow_type(element), span)
            case _:
                return map_parts(value, atom=self.atom, block=self.block, var=self.var)
