"""Data-dependent sizes in derivatives.

    v = ascribe a          a' += ascribe v', or 0 of the size of a where v' has no elements
    dim k = n              no cotangent; backward code out of its scope that mentions k begins with it again, so n is a
                           residual, and what is handed over has `Any` for k in its type

The cotangent of a tensor of the type `Tensor[B, (Any, ..)]` may also have no elements, and is zero then. So a zero can
be made where the size is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from relay.ir.dims import ANY, DataDependentDim, Dim, made_dim
from relay.ir.expr import (
    Arm,
    Ascribe,
    Atom,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Constant,
    Dead,
    Extent,
    If,
    OpCall,
    Var,
    Yield,
)
from relay.ir.sizes.data_dependent import made_in_type, mentioned_dims, without_made
from relay.ir.traverse import free_variables
from relay.ir.types import INT64, TensorType, Type, prune, scalar
from relay.operator import Emitter, lookup


def has_any(type_: Type | None) -> bool:
    """True if a tensor type leaves a size open."""
    type_ = None if type_ is None else prune(type_)  # type: ignore[assignment]
    return isinstance(type_, TensorType) and ANY in type_.shape


def _type(atom: Atom) -> TensorType:
    assert isinstance(atom, Var | Constant)
    type_ = atom.type
    assert isinstance(type_, TensorType)
    return type_


def ascribe(emitter: Emitter, atom: Atom, type_: Type) -> Atom:
    """Emit the same tensor at another type."""
    if isinstance(atom, Var | Constant) and atom.type == type_:
        return atom
    return emitter.bind(Ascribe(atom, emitter.span), type_, "sized").atom


def no_elements(emitter: Emitter, type_: TensorType) -> Atom:
    """Emit the zero of a type that does not say its size."""
    shape = tuple(0 if dim is ANY else dim for dim in type_.shape)
    call = OpCall(lookup("zeros").name, (), {"shape": shape, "dtype": type_.base}, emitter.span)  # type: ignore[dict-item]
    return ascribe(emitter, emitter.bind(call, TensorType(type_.base, shape), "zero").atom, type_)


def pull_back_ascription(emitter: Emitter, cotangent: Atom, type_: Type) -> Atom:
    """Emit the cotangent of what was ascribed, which has this type, from that of the result."""
    given = _type(cotangent)
    assert isinstance(type_, TensorType)
    unsaid = [axis for axis, (g, w) in enumerate(zip(given.shape, type_.shape, strict=True)) if g is ANY is not w]
    if not unsaid:
        return ascribe(emitter, cotangent, type_)
    asked, there, none = Emitter(emitter.span), Emitter(emitter.span), Emitter(emitter.span)
    fits = [_equality(asked, _size(asked, cotangent, axis), _number(asked, type_.shape[axis])) for axis in unsaid]
    whole = fits[0]
    for other in fits[1:]:
        whole = asked.bind(OpCall(lookup("logical_and").name, (whole, other), {}), _type(whole), "fits").atom
    zero = no_elements(none, type_) if ANY in type_.shape else _zeros(none, type_)
    return _choice(emitter, asked, whole, (there, ascribe(there, cotangent, type_)), (none, zero), type_)


def sum_of(emitter: Emitter, left: Atom, right: Atom) -> Atom:
    """Emit the sum of two cotangents of a type that does not say their size."""
    type_ = _type(left)
    axis = type_.shape.index(ANY)
    asked, none, again = Emitter(emitter.span), Emitter(emitter.span), Emitter(emitter.span)
    zero = Constant(np.zeros((), np.int64))
    only_right = _equality(asked, _size(asked, left, axis), zero)
    only_left = _equality(again, _size(again, right, axis), zero)
    both, alone = Emitter(emitter.span), Emitter(emitter.span)
    dims: list[Dim] = []
    for position, dim in enumerate(type_.shape):
        if dim is ANY:
            made = made_dim("k")
            both.emit((), BindDim(made, _size(both, left, position), emitter.span))
            dims.append(made)
        else:
            dims.append(dim)
    known = TensorType(type_.base, tuple(dims))
    a, b = ascribe(both, left, known), ascribe(both, right, known)
    added = ascribe(both, (both.value(a) + both.value(b)).atom, type_)
    rest = _choice(again, again, only_left, (alone, left), (both, added), type_)
    return _choice(emitter, asked, only_right, (none, right), (again, rest), type_)


def _choice(
    emitter: Emitter,
    asked: Emitter,
    condition: Atom,
    then: tuple[Emitter, Atom],
    orelse: tuple[Emitter, Atom],
    type_: Type,
) -> Atom:
    condition_block = Block(tuple(asked.bindings), Yield((condition,)))
    if asked is emitter:
        condition_block = Block((), Yield((condition,)))
    arms = (Arm(condition_block, Block(tuple(then[0].bindings), Yield((then[1],)))),)
    other = Block(tuple(orelse[0].bindings), Yield((orelse[1],)))
    return emitter.bind(If(arms, other, emitter.span), type_, "sized").atom


def _zeros(emitter: Emitter, type_: TensorType) -> Atom:
    from relay.ad.cotangents import zero_tensor

    return zero_tensor(emitter, type_)


def _size(emitter: Emitter, atom: Atom, axis: int) -> Atom:
    return emitter.bind(AxisSize(atom, axis, emitter.span), scalar(INT64), "size").atom


def _number(emitter: Emitter, dim: Dim) -> Atom:
    if isinstance(dim, int):
        return Constant(np.asarray(dim, np.int64))
    return emitter.bind(Extent(dim, INT64, emitter.span), scalar(INT64), "size").atom


def _equality(emitter: Emitter, left: Atom, right: Atom) -> Atom:
    return (emitter.value(left) == emitter.value(right)).atom


# ---- handing over


def sizes_made(bindings: Iterable[Binding]) -> dict[DataDependentDim, Atom]:
    """The sizes that bindings make, without those in their blocks, and the numbers that they are."""
    return {b.value.dim: b.value.size for b in bindings if isinstance(b.value, BindDim)}


def with_sizes(code: list[Binding], results: Iterable[Atom], made: Mapping[DataDependentDim, Atom]) -> list[Binding]:
    """Backward code that computes the sizes again which it mentions, and which are bound in the forward code."""
    if not made:
        return code
    found = mentioned_dims(code)
    used = [*free_variables(Block(tuple(code), Dead())), *(r for r in results if isinstance(r, Var))]
    for var in used:
        found.update(dict.fromkeys(made_in_type(var.type)))
    again = [Binding((), BindDim(dim, size)) for dim, size in made.items() if dim in found]
    return [*again, *code]


def handed_type(type_: Type) -> Type:
    """The type of a residual where it is handed over."""
    return without_made(type_)


def hand_over(emitter: Emitter, values: Sequence[Atom], types: Sequence[Type]) -> list[Atom]:
    """Emit residuals, of these types, in the form in which they are passed on."""
    return [
        ascribe(emitter, v, handed_type(t)) if handed_type(t) != t else v for v, t in zip(values, types, strict=True)
    ]


def bind_residuals(block: Block, given: Mapping[Var, Var], start: int = 0) -> Block:
    """A block of backward code that gets residuals as they are handed over: for each variable, the one that it gets.
    The variables that the block uses are bound from a position on, after the sizes in their types."""
    while start < len(block.bindings) and isinstance(block.bindings[start].value, BindDim):
        start += 1
    bound = tuple(Binding((var,), Ascribe(handed)) for var, handed in given.items())
    return Block((*block.bindings[:start], *bound, *block.bindings[start:]), block.terminator)
