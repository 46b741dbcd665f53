"""Unboxed sums: data types of statically known size become tuples of a tag and slots (`flat_types.py`).

Left as they are: types that contain themselves or references, whose
values lie in memory of their own, those of what the program takes and returns, those with more than DEEPEST levels of
others inside, whose parts each level would pass on one by one, those with more than LARGEST parts, and what all these
contain. After it, loops with `break`, early returns, chosen closures and the tapes of branches are numbers and tensors
like all others.
"""

from __future__ import annotations

from collections.abc import Mapping

from relay.ir.analysis.data_types import contains_itself, definition_graph
from relay.ir.dims import ANY
from relay.ir.expr import (
    Binding,
    Block,
    Construct,
    Derivative,
    Function,
    Loop,
    Match,
    Module,
    Yield,
)
from relay.ir.traverse import bound_variables, free_variables, walk
from relay.ir.types import (
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
)
from relay.transform.aggregates.flat_types import (
    Flattening,
    FlatTypeMap,
    module_types,
)
from relay.transform.aggregates.tuples import flatten_bindings
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
    types = FlatTypeMap(_sums(module))
    functions: dict[str, Function | Derivative] = dict(module.functions)
    if types.flattened:
        functions = {n: Flattening(types).function(f) for n, f in functions.items() if isinstance(f, Function)}
    made = Module(functions, module.entry, module.data, module.where)
    used = _definition_graph(made)
    return Module(functions, module.entry, tuple(d for d in module.data if d in used), module.where)


def flatten_sums_within(binding: Binding) -> list[Binding]:
    """A loop whose rounds use data types of a known size only between their beginning and their end, without these, and
    without the tuples in their place among what branches and loops pass on. Others stay."""
    loop = binding.value
    assert isinstance(loop, Loop)
    inside = list(walk(loop.body))
    if not any(isinstance(b.value, Construct | Match) for b in inside):
        return [binding]
    around = (*free_variables(Block((binding,), Yield(()))), *binding.targets, *loop.parameters)
    variables = (v for b in inside for v in (*b.targets, *bound_variables(b.value)))
    mentioned = definition_graph(mentioned_definitions(v.type for v in variables if v.type is not None))
    kept = set(definition_graph(mentioned_definitions(v.type for v in around if v.type is not None)))
    found = _of_known_size(mentioned, kept)
    if not found:
        return [binding]
    return flatten_bindings(Flattening(FlatTypeMap(found)).block(Block((binding,), Yield(()))).bindings)


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
    return _of_known_size(mentioned, set(definition_graph(mentioned_definitions(t for t in border if t is not None))))


def _of_known_size(
    mentioned: Mapping[DataDefinition, set[DataDefinition]], kept: set[DataDefinition]
) -> set[DataDefinition]:
    """Those of the data types that become tuples, if some are kept."""
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
