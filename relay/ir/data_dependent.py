"""Sizes that the run makes, in code: which of them it mentions, and which it binds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from relay.ir.dims import Dim, DimExpr, MadeDim, TypeId, variables
from relay.ir.expr import (
    BindDim,
    Binding,
    Block,
    Dead,
    Derivative,
    Extent,
    Function,
    Global,
    Module,
    OpCall,
    StackNew,
    Var,
)
from relay.ir.traverse import bound, operands, walk
from relay.ir.types import ANY, TensorType, Type, map_dims


def made_in(part: object) -> Iterator[MadeDim]:
    """The sizes in a dim, or in an attribute, each perhaps several times."""
    match part:
        case MadeDim():
            yield part
        case DimExpr() | TypeId():
            yield from (v for v in variables(part) if isinstance(v, MadeDim))
        case tuple():
            for item in part:
                yield from made_in(item)
        case _:
            pass


def made_in_type(type_: Type | None) -> Iterator[MadeDim]:
    """The sizes in a type, each perhaps several times."""
    if isinstance(type_, TensorType):
        for dim in type_.shape:
            if dim.__class__ is not int:
                yield from made_in(dim)
    elif type_ is not None:
        found: list[MadeDim] = []

        def look(dim: Dim) -> Dim:
            found.extend(made_in(dim))
            return dim

        map_dims(type_, look)
        yield from found


def mentioned_here(binding: Binding) -> Iterator[MadeDim]:
    """The sizes that a binding mentions, without those in its blocks."""
    for var in (*binding.targets, *bound(binding.value)):
        yield from made_in_type(var.type)
    match binding.value:
        case OpCall(_, _, attributes):
            for attribute in attributes.values():
                yield from made_in(attribute)
        case Extent(dim):
            yield from made_in(dim)
        case StackNew(element):
            yield from made_in_type(element)
        case _:
            pass


def mentioned(bindings: Iterable[Binding]) -> dict[MadeDim, None]:
    """The sizes that bindings mention, also in their blocks, in order."""
    found: dict[MadeDim, None] = {}
    for binding in walk(Block(tuple(bindings), Dead())):
        for dim in mentioned_here(binding):
            found[dim] = None
    return found


def made_by(block: Block) -> dict[MadeDim, None]:
    """The sizes that a block and the blocks inside it bind, in order."""
    return {b.value.dim: None for b in walk(block) if isinstance(b.value, BindDim)}


def free_in(function: Function) -> dict[MadeDim, None]:
    """The sizes that a function mentions and does not bind, in order: its callers', without those of functions that it
    calls."""
    found: dict[MadeDim, None] = {}
    for parameter in function.parameters:
        found.update(dict.fromkeys(made_in_type(parameter.type)))
    found.update(mentioned(function.body.bindings))
    own = made_by(function.body)
    return {dim: None for dim in found if dim not in own}


def given_sizes(module: Module) -> dict[str, dict[MadeDim, None]]:
    """The sizes that its callers have made which each function mentions, or one that it names or is a derivative of."""
    own: dict[str, dict[MadeDim, None]] = {}
    found: dict[str, dict[MadeDim, None]] = {}
    users: dict[str, dict[str, None]] = {name: {} for name in module.functions}
    for name, function in module.functions.items():
        own[name] = {} if isinstance(function, Derivative) else made_by(function.body)
        found[name] = {} if isinstance(function, Derivative) else free_in(function)
        for used in (function.of,) if isinstance(function, Derivative) else _named(function):
            users.setdefault(used, {})[name] = None
    pending = [name for name in found if found[name]]
    while pending:
        name = pending.pop()
        for user in users[name]:
            new = [dim for dim in found[name] if dim not in own[user] and dim not in found[user]]
            if new:
                found[user].update(dict.fromkeys(new))
                pending.append(user)
    return found


def _named(function: Function) -> Iterator[str]:
    """The functions of the module that a function names."""
    yield from function.rule_functions
    for binding in walk(function.body):
        yield from (atom.name for atom in operands(binding.value) if isinstance(atom, Global))


def without_made(type_: Type) -> Type:
    """A type with `Any` for sizes that the run makes."""
    return map_dims(type_, lambda dim: ANY if any(True for _ in made_in(dim)) else dim)


def mentions(variables: Iterable[Var]) -> bool:
    """Whether the type of a variable mentions a size that the run makes."""
    return any(True for v in variables for _ in made_in_type(v.type))
