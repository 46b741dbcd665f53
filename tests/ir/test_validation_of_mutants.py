"""Well-formed modules of the zoo with one thing broken: the check finds it."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator

import attrs
import numpy as np
import pytest
from zoo import Program, programs

import relay as R
from relay.ir.dims import made_dim
from relay.ir.expr import (
    Atom,
    BindDim,
    Binding,
    Block,
    Constant,
    Construct,
    Dead,
    Exit,
    Expr,
    Extent,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    Match,
    Module,
    Next,
    OpCall,
    Print,
    Project,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_atoms, map_blocks
from relay.ir.sizes.data_dependent import dims_of_binding
from relay.ir.traverse import all_blocks, operands, walk
from relay.ir.types import BOOL, FLOAT32, INT32, INT64, RefType, TensorType, TupleType, Type, TypeId, scalar
from relay.ir.types import Kind as KindOfVariable
from relay.ir.validation.check import Stage, Violation, check
from relay.transform.core.specialization import specialize

PROGRAMS = list({p.name: p for p in programs()}.values())[::9]
MUTANTS = 3
"""How many places of a module each mutation is tried at."""


def stages(program: Program) -> Iterator[tuple[Module, Stage]]:
    typed = program.function.typed(*program.arguments)
    yield typed, "typed"
    yield program.function.core(*program.arguments), "core"
    if program.differentiable:
        yield specialize(R.grad(program.function).typed(*program.arguments)), "core"


# ---- one place of a module, and a module with another one there


@attrs.frozen(eq=False)
class Place:
    """A block of a module, by the function's name and its number among the blocks there."""

    function: str
    block: Block


def places(module: Module) -> list[Place]:
    """All blocks, also those of lambdas."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return [Place(f.name, block) for f in functions for block in (f.body, *all_blocks(f.body))]


def replaced(module: Module, place: Place, new: Block) -> Module:
    """The module with another block at a place."""

    def inside(block: Block) -> Block:
        if block is place.block:
            return new
        bindings = tuple(Binding(b.targets, map_blocks(b.value, inside)) for b in block.bindings)
        return Block(bindings, block.terminator)

    function = module.functions[place.function]
    assert isinstance(function, Function)
    changed = attrs.evolve(function, body=inside(function.body))
    return attrs.evolve(module, functions={**module.functions, place.function: changed})


def with_binding(module: Module, place: Place, position: int, *new: Binding) -> Module:
    bindings = place.block.bindings
    block = Block((*bindings[:position], *new, *bindings[position + 1 :]), place.block.terminator)
    return replaced(module, place, block)


def with_value(module: Module, place: Place, position: int, value: Expr) -> Module:
    return with_binding(module, place, position, Binding(place.block.bindings[position].targets, value))


def other(type_: Type | None) -> Type:
    """Another type."""
    match type_:
        case TensorType(base, shape):
            return TensorType(INT32 if base == FLOAT32 else FLOAT32, shape)
        case _:
            return scalar(FLOAT32)


def longer(type_: Type | None) -> Type:
    """A type of another shape."""
    return TensorType(type_.base, (*type_.shape, 2)) if isinstance(type_, TensorType) else TupleType((scalar(BOOL),))


# ---- mutations: the modules that come of breaking one thing


def each(module: Module, wanted: Callable[[Binding], bool]) -> Iterator[tuple[Place, int, Binding]]:
    for place in places(module):
        for position, binding in enumerate(place.block.bindings):
            if wanted(binding):
                yield place, position, binding


def retyped(module: Module, change: Callable[[Type | None], Type]) -> Iterator[Callable[[], Module]]:
    """What makes one variable of another type where it is bound and used: few of those that there might be are made."""
    for place, _, binding in each(module, lambda b: bool(b.targets)):
        target = binding.targets[0]
        new = Var(target.name, change(target.type), target.span)
        yield functools.partial(renamed_in, module, place, target, new)


def renamed_in(module: Module, place: Place, old: Var, new: Var) -> Module:
    """A variable replaced wherever a block and those in it bind or use it."""

    def atom(a: Atom) -> Atom:
        return new if a is old else a

    def inside(block: Block) -> Block:
        bindings = tuple(
            Binding(tuple(new if t is old else t for t in b.targets), map_blocks(map_atoms(b.value, atom), inside))
            for b in block.bindings
        )
        return Block(bindings, leaving(block.terminator, lambda values: tuple(map(atom, values))))

    return replaced(module, place, inside(place.block))


def leaving(terminator: Terminator, change: Callable[[tuple[Atom, ...]], tuple[Atom, ...]]) -> Terminator:
    if isinstance(terminator, Dead):
        return terminator
    return attrs.evolve(terminator, values=change(terminator.values))  # type: ignore[misc]


def another_dtype(module: Module) -> Iterator[Callable[[], Module]]:
    return retyped(module, other)


def another_shape(module: Module) -> Iterator[Callable[[], Module]]:
    return retyped(module, longer)


def a_foreign_dim(module: Module) -> Iterator[Callable[[], Module]]:
    foreign = TypeId("foreign", KindOfVariable.Dim)

    def change(type_: Type | None) -> Type:
        if not isinstance(type_, TensorType):
            return TensorType(FLOAT32, (foreign,))
        return TensorType(type_.base, (foreign, *type_.shape[1:]))

    return retyped(module, change)


def an_unbound_operand(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: any(isinstance(a, Var) for a in operands(b.value))):
        first = next(a for a in operands(binding.value) if isinstance(a, Var))
        yield with_value(module, place, position, reading(binding.value, first, Var("stranger", first.type)))


def reading(value: Expr, old: Var, new: Atom) -> Expr:
    """An expression that reads something else."""
    return map_atoms(value, lambda a: new if a is old else a)


def ending(module: Module, place: Place, change: Callable[[tuple[Atom, ...]], tuple[Atom, ...]]) -> Module:
    """The module with other values at the end of a block."""
    return replaced(module, place, Block(place.block.bindings, leaving(place.block.terminator, change)))


def used_before_it_is_bound(module: Module) -> Iterator[Module]:
    for place in places(module):
        bindings = place.block.bindings
        for position, (one, two) in enumerate(itertools.pairwise(bindings)):
            if set(one.targets) & set(operands(two.value)):
                swapped = (*bindings[:position], two, one, *bindings[position + 2 :])
                yield replaced(module, place, Block(swapped, place.block.terminator))


def used_out_of_scope(module: Module) -> Iterator[Module]:
    for place in places(module):
        inner = [
            (position, v)
            for position, b in enumerate(place.block.bindings)
            if isinstance(b.value, If | Loop | Match)
            for block in nested(b.value)
            for binding in block.bindings
            for v in binding.targets
        ]
        for position, var in inner[:2]:
            after = Binding((Var("copy", var.type),), var)
            bindings = place.block.bindings
            new = (*bindings[: position + 1], after, *bindings[position + 1 :])
            yield replaced(module, place, Block(new, place.block.terminator))


def nested(value: Expr) -> list[Block]:
    found: list[Block] = []

    def note(block: Block) -> Block:
        found.append(block)
        return block

    map_blocks(value, note)
    return found


def bound_twice(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: bool(b.targets) and not nested(b.value)):
        yield with_binding(module, place, position, binding, binding)


def a_target_more(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: not nested(b.value)):  # what never ends binds nothing
        more = Binding((*binding.targets, Var("more", scalar(FLOAT32))), binding.value)
        yield with_binding(module, place, position, more)


def a_target_less(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: bool(b.targets)):
        yield with_binding(module, place, position, Binding(binding.targets[:-1], binding.value))


def without_an_arm(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Match)):
        yield with_value(module, place, position, attrs.evolve(binding.value, arms=binding.value.arms[:-1]))


def an_arm_twice(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Match)):
        arms = binding.value.arms
        yield with_value(module, place, position, attrs.evolve(binding.value, arms=(*arms, arms[0])))


def a_field_less(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Construct) and bool(b.value.arguments)):
        value = attrs.evolve(binding.value, arguments=binding.value.arguments[1:])
        yield with_value(module, place, position, value)


def another_constructor(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Construct)):
        yield with_value(module, place, position, attrs.evolve(binding.value, constructor="Nowhere"))


def an_unknown_operator(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, OpCall)):
        yield with_value(module, place, position, attrs.evolve(binding.value, operator="nowhere"))


def an_unknown_attribute(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, OpCall)):
        attributes = {**binding.value.attributes, "nowhere": 1}
        yield with_value(module, place, position, attrs.evolve(binding.value, attributes=attributes))


def an_axis_out_of_range(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: "axis" in getattr(b.value, "attributes", ())):
        attributes = {**binding.value.attributes, "axis": 17}
        yield with_value(module, place, position, attrs.evolve(binding.value, attributes=attributes))


def a_foreign_dim_in_an_attribute(module: Module) -> Iterator[Module]:
    foreign = TypeId("foreign", KindOfVariable.Dim)

    def has_sizes(b: Binding) -> bool:
        return isinstance(b.value, OpCall) and any(
            isinstance(v, tuple) and v and all(type(x) is int for x in v) for v in b.value.attributes.values()
        )

    for place, position, binding in each(module, has_sizes):
        attributes = {
            k: (foreign, *v[1:]) if isinstance(v, tuple) and v and all(type(x) is int for x in v) else v
            for k, v in binding.value.attributes.items()
        }
        yield with_value(module, place, position, attrs.evolve(binding.value, attributes=attributes))


def an_operand_less(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, OpCall) and len(b.value.arguments) > 1):
        call = binding.value
        if not R.operator.lookup(call.operator).variadic:
            yield with_value(module, place, position, attrs.evolve(call, arguments=call.arguments[1:]))


def a_component_too_far(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Project)):
        yield with_value(module, place, position, attrs.evolve(binding.value, index=40))
        yield with_value(module, place, position, attrs.evolve(binding.value, index=-1))


def a_value_more(module: Module) -> Iterator[Module]:
    for place in places(module):
        if not isinstance(place.block.terminator, Dead):
            yield ending(module, place, lambda values: (*values, Constant(np.float32(1))))


def a_value_of_another_type(module: Module) -> Iterator[Module]:
    for place in places(module):
        if not isinstance(place.block.terminator, Dead) and place.block.terminator.values:
            yield ending(module, place, lambda values: (Constant(np.zeros((7, 7), np.int8)), *values[1:]))


def another_way_out(module: Module) -> Iterator[Module]:
    for place in places(module):
        match place.block.terminator:
            case Yield(values, span):
                end: Terminator = Next(LoopLabel("nowhere"), values, span)
                yield replaced(module, place, Block(place.block.bindings, end))
            case Next(_, values, span) | Exit(_, values, span):
                end = Exit(LoopLabel("nowhere"), values, span)
                yield replaced(module, place, Block(place.block.bindings, end))
            case _:
                pass


def dead_where_it_ends(module: Module) -> Iterator[Module]:
    for place in places(module):
        last = [binding.value for binding in place.block.bindings[-1:]]
        ends = any(nested(value) or (isinstance(value, Print) and value.fails) for value in last)
        if not isinstance(place.block.terminator, Dead) and not ends:
            yield replaced(module, place, Block(place.block.bindings, Dead()))


def another_condition(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, If)):
        arm = binding.value.arms[0]
        condition = Block(arm.condition.bindings, leaving(arm.condition.terminator, lambda v: (Constant(np.int32(1)),)))
        arms = (attrs.evolve(arm, condition=condition), *binding.value.arms[1:])
        if not isinstance(arm.condition.terminator, Dead):
            yield with_value(module, place, position, attrs.evolve(binding.value, arms=arms))


def another_count(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Loop) and b.value.counter is not None):
        counter = attrs.evolve(binding.value.counter, count=Constant(np.float32(3)))
        yield with_value(module, place, position, attrs.evolve(binding.value, counter=counter))


def another_start(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, Loop) and bool(b.value.initial)):
        initial = (Constant(np.zeros((7, 7), np.int8)), *binding.value.initial[1:])
        yield with_value(module, place, position, attrs.evolve(binding.value, initial=initial))
        yield with_value(module, place, position, attrs.evolve(binding.value, initial=binding.value.initial[1:]))


def without_a_function(module: Module) -> Iterator[Module]:
    for name in module.functions:
        left = {n: f for n, f in module.functions.items() if n != name}
        if name == module.entry or any(
            isinstance(a, Global) and a.name == name
            for f in left.values()
            if isinstance(f, Function)
            for b in walk(f.body)
            for a in operands(b.value)
        ):
            yield attrs.evolve(module, functions=left)


def another_result(module: Module) -> Iterator[Module]:
    for name, function in module.functions.items():
        if isinstance(function, Function):
            changed = attrs.evolve(function, result=RefType(scalar(INT64)))
            yield attrs.evolve(module, functions={**module.functions, name: changed})


def a_parameter_twice(module: Module) -> Iterator[Module]:
    for name, function in module.functions.items():
        if isinstance(function, Function) and function.parameters:
            changed = attrs.evolve(function, parameters=(function.parameters[0], *function.parameters))
            yield attrs.evolve(module, functions={**module.functions, name: changed})


def another_name(module: Module) -> Iterator[Module]:
    for name, function in module.functions.items():
        yield attrs.evolve(module, functions={**module.functions, name: attrs.evolve(function, name="nowhere")})


def without_a_data_type(module: Module) -> Iterator[Module]:
    if module.data:
        yield attrs.evolve(module, data=module.data[1:])
        yield attrs.evolve(module, data=(module.data[0], *module.data))


def a_size_of_nobody(module: Module) -> Iterator[Module]:
    foreign = made_dim("nobodys")
    for place, position, binding in each(module, lambda b: bool(b.targets)):
        extent = Binding((Var("size", scalar(INT64)),), Extent(foreign, INT64))
        yield with_binding(module, place, position, extent, binding)


def a_size_made_twice(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, BindDim)):
        yield with_binding(module, place, position, binding, binding)


def without_the_making_of_a_size(module: Module) -> Iterator[Module]:
    for place, position, binding in each(module, lambda b: isinstance(b.value, BindDim)):
        if any(binding.value.dim in dims_of_binding(b) for b in place.block.bindings):
            yield with_binding(module, place, position)


def names_of_axes(module: Module) -> Iterator[Callable[[], Module]]:
    def named(type_: Type | None) -> Type:
        if isinstance(type_, TensorType):
            return attrs.evolve(type_, axes=tuple(f"axis{i}" for i in range(len(type_.shape))))
        return TensorType(FLOAT32, (1,), ("axis",))

    return retyped(module, named)


def a_variable_of_another_kind(module: Module) -> Iterator[Callable[[], Module]]:
    def unknown(type_: Type | None) -> Type:
        shape = type_.shape if isinstance(type_, TensorType) else ()
        return TensorType(TypeId("b", KindOfVariable.BaseType), shape)

    yield from retyped(module, unknown)
    yield from retyped(module, lambda type_: TypeId("A", KindOfVariable.Type))


MUTATIONS = [
    a_size_of_nobody, a_size_made_twice, without_the_making_of_a_size, names_of_axes, a_variable_of_another_kind,
    another_dtype, another_shape, a_foreign_dim, an_unbound_operand, used_before_it_is_bound, used_out_of_scope,
    bound_twice, a_target_more, a_target_less, without_an_arm, an_arm_twice, a_field_less, another_constructor,
    an_unknown_operator, an_unknown_attribute, an_axis_out_of_range, a_foreign_dim_in_an_attribute, an_operand_less,
    a_component_too_far, a_value_more, a_value_of_another_type, another_way_out, dead_where_it_ends, another_condition,
    another_count, another_start, without_a_function, another_result, a_parameter_twice, another_name,
    without_a_data_type,
]  # fmt: skip


@pytest.fixture(scope="module")
def modules() -> list[tuple[str, Module, Stage]]:
    return [(p.name, module, stage) for p in PROGRAMS for module, stage in stages(p)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.__name__)
def test_what_is_broken_is_found(
    mutation: Callable[[Module], Iterator[Module | Callable[[], Module]]], modules: list[tuple[str, Module, Stage]]
) -> None:
    choose = random.Random(mutation.__name__)
    tried = 0
    for name, module, stage in modules:
        mutants = list(mutation(module))
        for mutant in choose.sample(mutants, min(MUTANTS, len(mutants))):
            tried += 1
            mutant = mutant() if callable(mutant) else mutant
            with pytest.raises(R.errors.InternalError):
                check(mutant, stage)
                pytest.fail(f"{name} ({stage}) was accepted:\n{R.to_text(mutant)}")
    assert tried > 0


def test_the_modules_themselves_are_well_formed(modules: list[tuple[str, Module, Stage]]) -> None:
    for _, module, stage in modules:
        check(module, stage)


def test_violation_is_our_mistake() -> None:
    assert issubclass(Violation, R.errors.InternalError)
