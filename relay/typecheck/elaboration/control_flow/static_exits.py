"""Static exits: `while` loops that types alone end, as `while x.ndim > 1`, found from their text before inference.

Such a loop would have no end if its variables kept their types, so each round is typed for itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from relay.ir.expr import (
    Arm,
    Atom,
    Block,
    Constant,
    Exit,
    Expr,
    Global,
    If,
    Lambda,
    Loop,
    LoopLabel,
    OpCall,
    Static,
    Var,
    Yield,
)
from relay.ir.sizes.facts import mentions_made
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, Index, Unpack
from relay.ir.traverse import blocks, bodies, walk
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple
from relay.typecheck.elaboration.values.tensors import is_sized, tensor_type


def deciding_parameters(loop: Loop) -> frozenset[int]:
    """The positions of the parameters whose rank, shape or number of items decides, and nothing else, when a loop
    ends; none if something else decides it, or nothing does."""
    origins = {target: (b.value, i) for b in walk(loop.body) for i, target in enumerate(b.targets)}
    positions = {parameter: i for i, parameter in enumerate(loop.parameters)}
    found: set[int] = set()
    pending = list(_exit_conditions(loop.body, (), frozenset()))
    while pending:
        atom = pending.pop()
        if atom is None:
            return frozenset()
        value, position = origins.get(atom, (None, 0)) if isinstance(atom, Var) else (atom, 0)
        match value:
            case Static() | Constant():
                pass
            case Attribute(Var() as read, "ndim" | "shape") | Apply(Global("len"), (Var() as read,), ()) if (
                read in positions
            ):
                found.add(positions[read])
            case OpCall(_, arguments):
                pending += arguments
            case If(arms):
                ends = [b.terminator for b in bodies(value)]
                pending += [end.values[position] if isinstance(end, Yield) else None for end in ends]
                pending += map(_condition, arms)
            case Var() | Annotated() | Unpack() | Index() as expression:
                pending += _parts(expression)
            case _:
                return frozenset()
    return frozenset(found)


def _parts(expression: Expr) -> list[Atom | None]:
    match expression:
        case Var():
            return [expression]
        case Annotated(value) | Unpack(value):
            return [value]
        case Index(value, items):
            return [value, *(item if isinstance(item, Static) else None for item in items)]
        case _:
            return [None]


def _condition(arm: Arm) -> Atom | None:
    yielded = arm.condition.terminator
    return yielded.values[0] if isinstance(yielded, Yield) else None


def _exit_conditions(
    block: Block, around: tuple[Atom | None, ...], inner: frozenset[LoopLabel]
) -> Iterator[Atom | None]:
    """The conditions of the branches around each exit of a loop; None where there is no branch, or one that is not
    an `if`. `inner`: the loops inside it."""
    if isinstance(block.terminator, Exit) and block.terminator.label not in inner:
        yield from around or (None,)
    for binding in block.bindings:
        if isinstance(binding.value, If):
            conditions = around
            for arm in binding.value.arms:
                conditions = (*conditions, _condition(arm))
                yield from _exit_conditions(arm.body, conditions, inner)
            yield from _exit_conditions(binding.value.orelse, conditions, inner)
        elif not isinstance(binding.value, Lambda):  # whose exits are its own
            within = {binding.value.label} if isinstance(binding.value, Loop | ForEach) else set()
            for nested in blocks(binding.value):
                yield from _exit_conditions(nested, (*around, None), inner | within)


def is_of_known_structure(entity: AbstractValue) -> bool:
    """True if the rank, extents or number of items of a value are known at compile time."""
    if isinstance(entity, Tuple):
        return True
    known = tensor_type(entity) if isinstance(entity, DynamicValue) else None
    return known is not None and all(isinstance(d, int) or (is_sized(d) and not mentions_made(d)) for d in known.shape)
