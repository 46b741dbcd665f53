"""Unboxed sums: data types of statically known size become tuples of a tag and slots, which constructors share.

    C_k(a, ..)                          (k, .., a, .., undef, ..)
    v = match x {C_k(f, ..) -> b_k, ..} t = x.0; v = if t == 0 {f = x.i; ..; b_0} elif .. else {..}

A data type with one constructor needs no tag. Left as they are: types that contain themselves or references, whose
values lie in memory of their own, those of what the program takes and returns, those with more than DEEPEST levels of
others inside, whose parts each level would pass on one by one, those with more than LARGEST parts, and what all these
contain. After it, loops with `break`, early returns, chosen closures and the tapes of branches are numbers and tensors
like all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs
import numpy as np

from relay.ir.dims import ANY
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
from relay.ir.traverse import walk
from relay.ir.types import (
    BOOL,
    INT32,
    BaseType,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    mentioned_definitions,
    prune,
    scalar,
)
from relay.operator import Emitter
from relay.transform.aggregates.flat_types import (
    Flattening,
    FlatTypeMap,
    contains_itself,
    definition_graph,
    module_types,
)
from relay.transform.module_pass import pass_about

DEEPEST = 16
"""The largest number of data types inside of each other that become tuples."""

LARGEST = 1024
"""The largest number of parts of a tuple. The tape of a function that calls another one twice has the tape of that one
twice: the parts of a chain of such functions double with each."""


@pass_about(DataDefinition)
def flatten_sums(module: Module) -> Module:
    """The module without data types of a known size, but for what its entry takes and returns. Data types that are not
    mentioned any more are dropped."""
    if any(isinstance(f, Derivative) for f in module.functions.values()):
        return module
    types = _SumTypeMap(_sums(module))
    functions: dict[str, Function | Derivative] = dict(module.functions)
    if types.flattened:
        functions = {n: _SumFlattening(types).function(f) for n, f in functions.items() if isinstance(f, Function)}
    made = Module(functions, module.entry, module.data, module.where)
    used = _definition_graph(made)
    return Module(functions, module.entry, tuple(d for d in module.data if d in used), module.where)


# ---- which


def _definition_graph(module: Module) -> dict[DataDefinition, set[DataDefinition]]:
    """The data types that a module mentions, with those that each mentions."""
    made = [
        b.value.definition
        for f in module.functions.values()
        if isinstance(f, Function)
        for b in walk(f.body)
        if isinstance(b.value, Construct)
    ]
    return definition_graph([*mentioned_definitions(module_types(module)), *made])


def _sums(module: Module) -> set[DataDefinition]:
    """The data types that become tuples."""
    mentioned = _definition_graph(module)
    entry = module.functions[module.entry]
    assert isinstance(entry, Function)
    border = [*(p.type for p in entry.parameters), entry.result]
    kept = set(definition_graph(mentioned_definitions(t for t in border if t is not None)))
    found = {d for d in mentioned if d not in kept and not contains_itself(d, mentioned)}
    found = _small_definitions(_shallow_definitions(found, mentioned))
    while True:
        left = {d for d in found if not all(_has_size(t, found) for c in d.constructors for t in c.fields)}
        left |= {d for other, inside in mentioned.items() if other not in found for d in inside} & found
        if not left:
            return found
        found -= left


def _shallow_definitions(
    found: set[DataDefinition], mentioned: Mapping[DataDefinition, set[DataDefinition]]
) -> set[DataDefinition]:
    """Those of data types that do not contain themselves with at most DEEPEST of them inside of each other."""
    deep = found
    for _ in range(DEEPEST):
        deep = {d for d in deep if not mentioned[d].isdisjoint(deep)}
    return found - deep


def _small_definitions(found: set[DataDefinition]) -> set[DataDefinition]:
    """Those of data types that do not contain themselves whose values have at most LARGEST parts."""
    counts: dict[DataDefinition, int] = {}

    def parts(type_: Type) -> int:
        match prune(type_):
            case TupleType(items):
                return 1 + sum(map(parts, items))
            case StackType(element):
                return parts(element)
            case DataType(definition) if definition in found:
                return count(definition)
            case _:
                return 1

    def count(definition: DataDefinition) -> int:
        if definition not in counts:
            counts[definition] = 1 + sum(parts(t) for c in definition.constructors for t in c.fields)
        return counts[definition]

    return {d for d in found if count(d) <= LARGEST}


def _has_size(type_: Type, sums: set[DataDefinition]) -> bool:
    """True if a type has a value besides the one that stands for none."""
    match prune(type_):
        case TensorType(base, shape):
            return isinstance(base, BaseType) and ANY not in shape
        case TupleType(items):
            return all(_has_size(t, sums) for t in items)
        case StackType(element):
            return _has_size(element, sums)
        case DataType(definition):
            return definition in sums
        case RefType():
            return False
        case _:
            return False


@attrs.frozen
class _TaggedLayout:
    """The items of the tuple, and for each constructor the items that its fields take."""

    items: tuple[Type, ...]
    places: Mapping[str, tuple[int, ...]]
    tagged: bool


class _SumTypeMap(FlatTypeMap):
    """The map of types in which tuples replace these data types."""

    def __init__(self, sums: set[DataDefinition]) -> None:
        super().__init__(sums)
        self._layouts: dict[DataDefinition, _TaggedLayout] = {}

    def flat(self, definition: DataDefinition) -> TupleType:
        return TupleType(self.layout(definition).items)

    def layout(self, definition: DataDefinition) -> _TaggedLayout:
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
            found = self._layouts[definition] = _TaggedLayout(tuple(items), places, tagged)
        return found


# ---- how


class _SumFlattening(Flattening):
    """One function."""

    types: _SumTypeMap

    def function(self, source: Function) -> Function:
        assert source.result is not None
        made = attrs.evolve(  # type: ignore[misc]
            source, parameters=tuple(map(self.var, source.parameters)), result=self.types.flat_type(source.result)
        )
        return attrs.evolve(made, body=self.block(source.body))  # type: ignore[misc]

    def block(self, block: Block, before: Iterable[Binding] = ()) -> Block:
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
        return map_terminator(block.terminator, self.atom)

    def _fields(self, match: Match, arm: MatchArm, layout: _TaggedLayout) -> Iterator[Binding]:
        for field, place in zip(arm.fields, layout.places[arm.constructor], strict=True):
            yield Binding((self.var(field),), Project(self.atom(match.value), place, match.span))

    def _choice(self, match: Match, definition: DataDefinition, layout: _TaggedLayout, out: list[Binding]) -> Expr:
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

    def _tuple(self, construct: Construct, layout: _TaggedLayout, out: list[Binding]) -> Expr:
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
