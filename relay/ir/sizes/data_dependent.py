"""Data-dependent dims in code: those that it mentions, and those that it binds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from relay.ir.dims import DataDependentDim, Dim, DimExpr, TypeId, variables
from relay.ir.expr import (
    BindDim,
    Binding,
    Block,
    Constant,
    Dead,
    Derivative,
    Function,
    Global,
    Module,
    Static,
    Var,
)
from relay.ir.node import ByClass, Role, fields
from relay.ir.traverse import bound_variables, operands, walk
from relay.ir.types import ANY, TensorType, Type, map_dims


def data_dependent_dims_in(part: object) -> Iterator[DataDependentDim]:
    """The sizes in a dim, or in an attribute, each perhaps several times."""
    match part:
        case DataDependentDim():
            yield part
        case DimExpr() | TypeId():
            yield from (v for v in variables(part) if isinstance(v, DataDependentDim))
        case tuple():
            for item in part:
                yield from data_dependent_dims_in(item)
        case _:
            pass


def made_in_type(type_: Type | None) -> Iterator[DataDependentDim]:
    """The sizes in a type, each perhaps several times."""
    if isinstance(type_, TensorType):
        for dim in type_.shape:
            if dim.__class__ is not int:
                yield from data_dependent_dims_in(dim)
    elif type_ is not None:
        found: list[DataDependentDim] = []

        def look(dim: Dim) -> Dim:
            found.extend(data_dependent_dims_in(dim))
            return dim

        map_dims(type_, look)
        yield from found


def dims_of_binding(binding: Binding) -> Iterator[DataDependentDim]:
    """The sizes that a binding mentions, without those in its blocks."""
    for var in (*binding.targets, *bound_variables(binding.value)):
        yield from made_in_type(var.type)
    for role, get in _WITH_DIMS[binding.value.__class__]:
        part = get(binding.value)
        if role is Role.TYPE:
            yield from made_in_type(part)
        else:
            for dim in part.values() if role is Role.ATTRIBUTES else (part,):
                yield from data_dependent_dims_in(dim)


def _fields_with_dims(cls: type) -> tuple[tuple[Role, attrgetter[Any]], ...]:
    """The fields in which sizes are mentioned."""
    roles = (Role.TYPE, Role.DIM, Role.ATTRIBUTES)
    return tuple((field.role, attrgetter(field.name)) for field in fields(cls) if field.role in roles)


_WITH_DIMS = ByClass(_fields_with_dims)
_WITH_DIMS.update(dict.fromkeys((Var, Constant, Global, Static), ()))


def mentioned_dims(bindings: Iterable[Binding]) -> dict[DataDependentDim, None]:
    """The sizes that bindings mention, also in their blocks, in order."""
    found: dict[DataDependentDim, None] = {}
    for binding in walk(Block(tuple(bindings), Dead())):
        for dim in dims_of_binding(binding):
            found[dim] = None
    return found


def bound_dims(block: Block) -> dict[DataDependentDim, None]:
    """The sizes that a block and the blocks inside it bind, in order."""
    return {b.value.dim: None for b in walk(block) if isinstance(b.value, BindDim)}


def free_dims(function: Function) -> dict[DataDependentDim, None]:
    """The sizes that a function mentions and does not bind, in order: its callers', without those of functions that it
    calls."""
    found: dict[DataDependentDim, None] = {}
    for parameter in function.parameters:
        found.update(dict.fromkeys(made_in_type(parameter.type)))
    found.update(mentioned_dims(function.body.bindings))
    own = bound_dims(function.body)
    return {dim: None for dim in found if dim not in own}


def given_sizes(module: Module) -> dict[str, dict[DataDependentDim, None]]:
    """The sizes that its callers have made which each function mentions, or one that it names or is a derivative of."""
    own: dict[str, dict[DataDependentDim, None]] = {}
    found: dict[str, dict[DataDependentDim, None]] = {}
    users: dict[str, dict[str, None]] = {name: {} for name in module.functions}
    for name, function in module.functions.items():
        own[name] = {} if isinstance(function, Derivative) else bound_dims(function.body)
        found[name] = {} if isinstance(function, Derivative) else free_dims(function)
        for used in (function.of,) if isinstance(function, Derivative) else _referenced_functions(function):
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


def _referenced_functions(function: Function) -> Iterator[str]:
    """The functions of the module that a function names."""
    yield from function.rule_functions
    for binding in walk(function.body):
        yield from (atom.name for atom in operands(binding.value) if isinstance(atom, Global))


def without_made(type_: Type) -> Type:
    """A type with `Any` for data-dependent sizes."""
    return map_dims(type_, lambda dim: ANY if any(True for _ in data_dependent_dims_in(dim)) else dim)


def mentions(variables: Iterable[Var]) -> bool:
    """True if the type of a variable mentions a data-dependent size."""
    return any(True for v in variables for _ in made_in_type(v.type))
