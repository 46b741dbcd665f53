"""Scalar replacement of records: non-recursive data types with one constructor become tuples.

    C(a, ..)                              (a, ..)
    t = match x {C(f, ..) -> b; yield r}  f = x.0; ..; b; t = r         (`flat_types.py`)

Tuples are passed on component by component, so that a record costs nothing at run time, and the cotangent of a field
that a loop reads is accumulated by itself. A record inside of another data type (the elements of a list) stays, and so
do the types of what the program takes and returns.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from relay.ir.analysis.data_types import contains_itself, definition_graph
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Construct,
    Derivative,
    Exit,
    Expr,
    Function,
    If,
    Loop,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Project,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks, blocks, bound_variables, operands, terminator_operands, walk
from relay.ir.types import DataDefinition, DataType, RefType, StackType, TupleType, Type, mentioned_definitions, prune
from relay.transform.aggregates.flat_types import (
    Flattening,
    FlatTypeMap,
    module_types,
)
from relay.transform.analysis.graph import references
from relay.transform.module_pass import pass_about


@pass_about(MakeTuple, Project, Call, If, Match, Loop, Derivative)
def flatten_records(module: Module) -> Module:
    """The module with tuples in place of records. An entry that is called in the module, too, keeps all of them."""
    entry = module.functions[module.entry]
    called = any(module.entry in references(f) for f in module.functions.values())
    if called or not isinstance(entry, Function):
        return module
    types = FlatTypeMap(_records(module, entry))
    if not types.flattened or _is_flat(module, entry, types):
        return module
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if isinstance(function, Derivative):
            grad = attrs.evolve(function.grad, function=types.atom(function.grad.function))  # type: ignore[misc]
            functions[name] = attrs.evolve(function, type=types.flat_type(function.type), grad=grad)  # type: ignore[misc]
        else:
            flattening = _EntryFlattening(types) if name == module.entry else Flattening(types)
            functions[name] = flattening.function(function)
    return Module(functions, module.entry, module.data, module.where)


# ---- which


def _is_flat(module: Module, entry: Function, types: FlatTypeMap) -> bool:
    """True if records are only taken apart and put together where the entry takes and returns them."""
    others = {n: f for n, f in module.functions.items() if f is not entry}
    if any(types.flat_type(t) != t for t in module_types(attrs.evolve(module, functions=others))):  # type: ignore[misc]
        return False
    for binding in entry.body.bindings:
        match binding.value:
            case Project() | Construct() | MakeTuple():
                continue
            case Match(_, (MatchArm(_, fields, Block((), Yield(values))),)) if fields == values:
                continue
        inside = [b for block in blocks(binding.value) for b in walk(block)]
        ends = [block.terminator for block in blocks(binding.value) for block in all_blocks(block)]
        variables: list[Atom] = [*binding.targets, *operands(binding.value), *bound_variables(binding.value)]
        for inner in inside:
            variables += (*inner.targets, *operands(inner.value), *bound_variables(inner.value))
        variables += (atom for end in ends for atom in terminator_operands(end))
        if any(isinstance(v, Var) and v.type is not None and types.flat_type(v.type) != v.type for v in variables):
            return False
    return True


def _records(module: Module, entry: Function) -> set[DataDefinition]:
    """The data types that become tuples: not those of which the program takes or returns references and lists, whose
    cells are what they are in Python."""
    mentioned = definition_graph(mentioned_definitions(module_types(module)))
    records = {d for d in mentioned if len(d.constructors) == 1 and not contains_itself(d, mentioned)}
    records -= _in_cells((*(p.type for p in entry.parameters), entry.result))
    while True:
        held = {d for other, inside in mentioned.items() if other not in records for d in inside}
        if not records & held:
            return records
        records -= held


def _in_cells(types: Iterable[Type | None]) -> set[DataDefinition]:
    """The data types in the contents of references and lists of these types."""
    found: set[DataDefinition] = set()
    seen: set[tuple[Type, bool]] = set()
    pending: list[tuple[Type, bool]] = [(t, False) for t in types if t is not None]
    while pending:
        type_, inside = pending.pop()
        if (type_, inside) in seen:
            continue
        seen.add((type_, inside))
        match prune(type_):
            case DataType(definition):
                if inside:
                    found.add(definition)
                pending += ((t, inside) for c in definition.constructors for t in c.fields)
            case TupleType(items):
                pending += ((t, inside) for t in items)
            case RefType(content) | StackType(content):
                pending.append((content, True))
    return found


# ---- how


class _EntryFlattening(Flattening):
    """The entry, which takes and returns what it did: there records are taken apart and put together."""

    def function(self, source: Function) -> Function:
        self.source = source
        before: list[Binding] = []
        given_parameters: list[Var] = []
        for parameter in source.parameters:
            assert parameter.type is not None
            if self.types.flat_type(parameter.type) == parameter.type:
                given_parameters.append(parameter)
                continue
            given = Var(parameter.name, parameter.type, parameter.span)
            given_parameters.append(given)
            before.append(Binding((self.var(parameter),), self._unpack_value(given, parameter.type, before)))
        return attrs.evolve(source, parameters=tuple(given_parameters), body=self.block(source.body, before))  # type: ignore[misc]

    def end(self, terminator: Terminator, out: list[Binding]) -> Terminator:
        result = self.source.result
        if not isinstance(terminator, Exit) or terminator.label is not self.source.label or result is None:
            return terminator
        if self.types.flat_type(result) == result:
            return terminator
        whole = Var("result", result, terminator.span)
        out.append(Binding((whole,), self._old_value(terminator.values[0], result, out)))
        return Exit(terminator.label, (whole,), terminator.span)

    def _unpack_value(self, value: Atom, type_: Type, out: list[Binding]) -> Expr:
        """The value of the old type as one of the new type."""
        if self.types.flat_type(type_) == type_:
            return value
        match prune(type_):
            case DataType(definition):
                (constructor,) = definition.constructors
                parts = tuple(Var("field", t) for t in constructor.fields)
                fields = tuple(Var("field", t) for t in constructor.fields)
                arm = MatchArm(constructor.name, fields, Block((), Yield(fields)))
                out.append(Binding(parts, Match(value, (arm,))))
            case TupleType(items):
                parts = tuple(Var("item", t) for t in items)
                out += [Binding((p,), Project(value, i)) for i, p in enumerate(parts)]
            case _:
                return value
        return MakeTuple(tuple(self._bind_part(self._unpack_value(p, p.type, out), p.type, out) for p in parts))  # type: ignore[arg-type]

    def _bind_part(self, expression: Expr, type_: Type, out: list[Binding]) -> Atom:
        target = Var("part", self.types.flat_type(type_))
        out.append(Binding((target,), expression))
        return target

    def _old_value(self, value: Atom, type_: Type, out: list[Binding]) -> Expr:
        """The value of the new type as one of the old type."""
        if self.types.flat_type(type_) == type_:
            return value
        made = self.types.flat_type(type_)
        assert isinstance(made, TupleType)
        found = prune(type_)
        old = found.definition.constructors[0].fields if isinstance(found, DataType) else found.items  # type: ignore[union-attr]
        parts: list[Atom] = []
        for position, (item, old_item) in enumerate(zip(made.items, old, strict=True)):
            part = Var("part", item)
            out.append(Binding((part,), Project(value, position)))
            whole = Var("part", old_item)
            out.append(Binding((whole,), self._old_value(part, old_item, out)))
            parts.append(whole)
        if isinstance(found, DataType):
            return Construct(found.definition, found.definition.constructors[0].name, tuple(parts))
        return MakeTuple(tuple(parts))
