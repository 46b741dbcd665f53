"""Data types as tuples: types with tuples in place of data types, and functions at these types.

    C_k(a, ..)                          (k, .., a, .., undef, ..)
    v = match x {C_k(f, ..) -> b_k, ..} t = x.0; v = if t == 0 {f = x.i; ..; b_0} elif .. else {..}

A tuple has a tag and slots, which constructors share. A data type with one constructor needs no tag, and its fields are
the slots. Which data types become tuples is the passes' choice: `records.py`, before AD, and `sums.py`, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs
import numpy as np

from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Construct,
    Derivative,
    Expr,
    Function,
    Global,
    If,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    OpCall,
    Project,
    StackNew,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.traverse import bound_variables, walk
from relay.ir.types import (
    BOOL,
    INT32,
    BaseType,
    DataDefinition,
    DataType,
    StackType,
    TensorType,
    TupleType,
    Type,
    map_type_parts,
    prune,
    scalar,
)
from relay.operator import Emitter


def module_types(module: Module) -> Iterator[Type]:
    """The types of all variables and functions of a module."""
    for function in module.functions.values():
        if isinstance(function, Derivative):
            yield function.type
            continue
        if function.result is not None:
            yield function.result
        yield from (p.type for p in function.parameters if p.type is not None)
        for binding in walk(function.body):
            for var in (*binding.targets, *bound_variables(binding.value)):
                if var.type is not None:
                    yield var.type


@attrs.frozen
class TaggedLayout:
    """The tuple in place of a data type: its items, whether the first is a tag, and for each constructor the items that
    its fields take."""

    items: tuple[Type, ...]
    places: Mapping[str, tuple[int, ...]]
    tagged: bool


class FlatTypeMap:
    """Types with tuples in place of some data types, those in `flattened`."""

    def __init__(self, flattened: set[DataDefinition]) -> None:
        self.flattened = flattened
        self._made: dict[Type, Type] = {}
        self._layouts: dict[DataDefinition, TaggedLayout] = {}

    def flat_type(self, type_: Type) -> Type:
        """The type with tuples in place of data types."""
        found = self._made.get(type_)
        if found is None:
            found = self._made[type_] = self._map(prune(type_))  # type: ignore[arg-type]
        return found

    def layout(self, definition: DataDefinition) -> TaggedLayout:
        """The tuple in place of a data type."""
        found = self._layouts.get(definition)
        if found is None:
            tagged = len(definition.constructors) != 1
            items: list[Type] = [scalar(INT32)] if tagged else []
            places: dict[str, tuple[int, ...]] = {}
            for constructor in definition.constructors:
                taken: list[int] = []
                for type_ in map(self.flat_type, constructor.fields):
                    free = (i for i in range(int(tagged), len(items)) if i not in taken and items[i] == type_)
                    position = next(free, len(items))
                    if position == len(items):
                        items.append(type_)
                    taken.append(position)
                places[constructor.name] = tuple(taken)
            found = self._layouts[definition] = TaggedLayout(tuple(items), places, tagged)
        return found

    def _map(self, type_: Type) -> Type:
        match type_:
            case DataType(definition) if definition in self.flattened:
                return TupleType(self.layout(definition).items)
            case _:
                return map_type_parts(type_, self.flat_type)

    def is_flattened(self, type_: Type | None) -> bool:
        """True if values of this type become tuples themselves."""
        found = None if type_ is None else prune(type_)
        return isinstance(found, DataType) and found.definition in self.flattened

    def atom(self, atom: Atom) -> Atom:
        """A function's name at its new type."""
        if isinstance(atom, Global) and atom.type is not None:
            return Global(atom.name, self.flat_type(atom.type), atom.span)
        return atom


class Flattening:
    """One function at its new types."""

    def __init__(self, types: FlatTypeMap) -> None:
        self.types = types
        self._variables: dict[Var, Var] = {}

    def var(self, var: Var) -> Var:
        """The variable at its new type."""
        if var.type is None or self.types.flat_type(var.type) == var.type:
            return var
        if var not in self._variables:
            self._variables[var] = Var(var.name, self.types.flat_type(var.type), var.span)
        return self._variables[var]

    def atom(self, atom: Atom) -> Atom:
        return self.var(atom) if isinstance(atom, Var) else self.types.atom(atom)

    def function(self, source: Function) -> Function:
        """The function at its new type."""
        assert source.result is not None
        made = attrs.evolve(  # type: ignore[misc]
            source, parameters=tuple(map(self.var, source.parameters)), result=self.types.flat_type(source.result)
        )
        return attrs.evolve(made, body=self.block(source.body))  # type: ignore[misc]

    def block(self, block: Block, before: Iterable[Binding] = ()) -> Block:
        """The block at its new types, with these bindings first."""
        out = list(before)
        end = self._bindings(block, out)
        return Block(tuple(out), end)

    def _bindings(self, block: Block, out: list[Binding]) -> Terminator:
        """Append the block's bindings to `out`, and return how it ends."""
        for binding in block.bindings:
            value, targets = binding.value, tuple(map(self.var, binding.targets))
            match value:
                case Match(Var() as matched, arms) if self.types.is_flattened(matched.type):
                    type_ = prune(matched.type)  # type: ignore[arg-type]
                    assert isinstance(type_, DataType)
                    layout = self.types.layout(type_.definition)
                    if layout.tagged:
                        out.append(Binding(targets, self._choice(value, type_.definition, layout, out)))
                        continue
                    (arm,) = arms
                    out += self._fields(value, arm, layout)
                    end = self._bindings(arm.body, out)
                    if not isinstance(end, Yield):
                        return end
                    out += [Binding((t,), v) for t, v in zip(targets, end.values, strict=True)]
                case Construct(definition) if definition in self.types.flattened:
                    out.append(Binding(targets, self._tuple(value, self.types.layout(definition), out)))
                case StackNew(element, span):
                    out.append(Binding(targets, StackNew(self.types.flat_type(element), span)))
                case _:
                    out.append(Binding(targets, map_parts(value, atom=self.atom, block=self.block, var=self.var)))
        return self.end(map_terminator(block.terminator, self.atom), out)

    def end(self, terminator: Terminator, out: list[Binding]) -> Terminator:
        """The end of a block, whose atoms are at their new types."""
        return terminator

    def _fields(self, match: Match, arm: MatchArm, layout: TaggedLayout) -> Iterator[Binding]:
        for field, place in zip(arm.fields, layout.places[arm.constructor], strict=True):
            yield Binding((self.var(field),), Project(self.atom(match.value), place, match.span))

    def _choice(self, match: Match, definition: DataDefinition, layout: TaggedLayout, out: list[Binding]) -> Expr:
        emitter = Emitter(match.span)
        tag = emitter.bind(Project(self.atom(match.value), 0, match.span), scalar(INT32), "tag").atom
        out += emitter.bindings
        bodies = [self.block(arm.body, self._fields(match, arm, layout)) for arm in match.arms]
        arms = []
        for arm, body in zip(match.arms[:-1], bodies[:-1], strict=True):
            asked = Var("is_" + arm.constructor, scalar(BOOL))
            number = Constant(np.asarray(definition.index(arm.constructor), np.int32), match.span)
            test = Binding((asked,), OpCall("equal", (tag, number), {}, match.span))
            arms.append(Arm(Block((test,), Yield((asked,))), body))
        return If(tuple(arms), bodies[-1], match.span)

    def _tuple(self, construct: Construct, layout: TaggedLayout, out: list[Binding]) -> Expr:
        number = construct.definition.index(construct.constructor)
        given = dict(zip(layout.places[construct.constructor], map(self.atom, construct.arguments), strict=True))
        if layout.tagged:
            given[0] = Constant(np.asarray(number, np.int32), construct.span)
        emitter = Emitter(construct.span)
        items = tuple(given[i] if i in given else undef(emitter, t) for i, t in enumerate(layout.items))
        out += emitter.bindings
        return MakeTuple(items, construct.span)


def undef(emitter: Emitter, type_: Type) -> Atom:
    """Emit a value of a type that nobody reads."""
    match prune(type_):
        case TensorType(BaseType() as base, shape) as tensor:
            if not shape:
                return Constant(np.zeros((), base.dtype), emitter.span)
            call = OpCall("undef", (), {"shape": shape, "dtype": base}, emitter.span)  # type: ignore[dict-item]
            return emitter.bind(call, tensor, "undef").atom
        case TupleType(items) as whole:
            return emitter.bind(MakeTuple(tuple(undef(emitter, t) for t in items)), whole, "undef").atom
        case StackType(element) as stack:
            return emitter.bind(StackNew(element, emitter.span), stack, "undef").atom
        case other:
            raise AssertionError(f"a value of type {other} has no known size")
