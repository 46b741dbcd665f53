"""Captured dims: data-dependent dims in functions that are selected at run time.

Such a function may be called where the sizes are out of scope that its code mentions. So its constructor holds them, as
numbers, before what the function has captured, whose types say `Any` there. The arm that calls it makes sizes of the
numbers again, and its code is a copy that mentions these:

    C(d, x: Tensor[T, (Any,)])  ->  size d' = d;  x' : Tensor[T, (d',)] = x;  code with d' for d
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from relay.ir.builder import BlockBuilder
from relay.ir.dims import DataDependentDim, made_dim
from relay.ir.expr import Ascribe, Atom, BindDim, Function, MakeTuple, Project, Var
from relay.ir.rebuild import copy_function, renamed_type
from relay.ir.sizes.data_dependent import free_dims, made_in_type
from relay.ir.types import FunctionType, RefType, StackType, TensorType, TupleType, Type
from relay.transform.core.static_values import Closure, LambdaGroup


def sizes_in(closure: Closure, type_: Type) -> tuple[DataDependentDim, ...]:
    """The data-dependent sizes that a function mentions, or one that it calls in its group, in order. Not those in its
    own `type_`, and in that of a function that it has captured: it is called where these are in scope."""
    found: dict[DataDependentDim, None] = {}
    known = {*made_in_type(type_)}
    for variable in closure.group.captured:
        found.update(dict.fromkeys(made_in_type(variable.type)))
        known.update(dim for t in _functions_in(variable.type) for dim in made_in_type(t))
    for function in closure.group.members.values():
        found.update(free_dims(function))
    return tuple(dim for dim in found if dim not in known)


def _functions_in(type_: Type | None) -> Iterator[FunctionType]:
    match type_:
        case FunctionType():
            yield type_
        case TupleType(items):
            for item in items:
                yield from _functions_in(item)
        case RefType(inside) | StackType(inside):
            yield from _functions_in(inside)
        case _:
            return


def made_again(
    out: BlockBuilder, sizes: tuple[DataDependentDim, ...], numbers: tuple[Var, ...]
) -> dict[DataDependentDim, DataDependentDim]:
    """Sizes bound to these numbers, in place of those that functions mention."""
    again = {dim: made_dim(dim.name, dim.is_wide) for dim in sizes}
    for dim, number in zip(again.values(), numbers, strict=True):
        out.perform(BindDim(dim, number))
    return again


def with_sizes(closure: Closure, again: Mapping[DataDependentDim, DataDependentDim]) -> tuple[Function, LambdaGroup]:
    """The code of a function, and its group, with other sizes."""
    group = closure.group
    members = {v: copy_function(f, keep_sizes=False, dims=again) for v, f in group.members.items()}
    (function,) = (members[v] for v, f in group.members.items() if f is closure.function)
    return function, LambdaGroup(members, group.captured)


def ascribe_type(atom: Atom, type_: Type, to: Type, out: BlockBuilder) -> tuple[Atom, Type]:
    """An atom of a type at another, which differs in what dims are called; with its type, which keeps those of the
    functions in it."""
    match type_, to:
        case TensorType(), TensorType() if type_ != to:
            return out.assign(Ascribe(atom), to, "sized"), to
        case TupleType(items), TupleType(wanted) if type_ != to:
            parts = []
            for position, (item, other) in enumerate(zip(items, wanted, strict=True)):
                part = out.assign(Project(atom, position), item, "part")
                parts.append(ascribe_type(part, item, other, out))
            whole = TupleType(tuple(t for _, t in parts))
            return out.assign(MakeTuple(tuple(a for a, _ in parts)), whole, "tuple"), whole
        case _:
            return atom, type_


def captured_at(
    variable: Var, field: Var, again: Mapping[DataDependentDim, DataDependentDim], out: BlockBuilder
) -> Atom:
    """The content of a constructor's field, at the type that the captured variable has with these sizes."""
    assert variable.type is not None and field.type is not None
    return ascribe_type(field, field.type, renamed_type(variable.type, again), out)[0]
