"""Cotangents as programs see them: what derivatives return, and what custom gradients take and return.

there                     here, while code is generated
a structure of tensors    a tree of atoms, None for zeros          ()  where there is no gradient
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ad.cotangents import Cotangent, Cotangents, type_of
from relay.ir.derivative import cotangent_type
from relay.ir.expr import Atom, MakeTuple, Project
from relay.ir.types import TupleType, Type, prune
from relay.operator import Emitter


def outward(cotangents: Cotangents, emitter: Emitter, type_: Type, cotangent: Cotangent) -> Atom:
    """A cotangent as a program sees it: dense, with unit where there is no gradient."""
    type_ = prune(type_)  # type: ignore[assignment]
    if isinstance(type_, TupleType):
        parts = cotangent if isinstance(cotangent, tuple) else (None,) * len(type_.items)
        return packed(emitter, [outward(cotangents, emitter, t, c) for t, c in zip(type_.items, parts, strict=True)])
    if cotangent_type(type_) == TupleType(()):
        return packed(emitter, [])
    return cotangents.dense(emitter, cotangent, type_, None)[0]


def inward(cotangents: Cotangents, emitter: Emitter, type_: Type, atom: Atom) -> Cotangent:
    """What a program gives as the cotangent of a value of this type."""
    type_ = prune(type_)  # type: ignore[assignment]
    if not cotangents.exists(type_):
        return None
    if isinstance(type_, TupleType):
        parts = [
            inward(cotangents, emitter, t, emitter.bind(Project(atom, i, emitter.span), cotangent_type(t), "part").atom)
            if cotangents.exists(t)
            else None
            for i, t in enumerate(type_.items)
        ]
        return tuple(parts)
    return atom


def packed(emitter: Emitter, items: Sequence[Atom]) -> Atom:
    """A tuple."""
    type_ = TupleType(tuple(type_of(i) for i in items))
    return emitter.bind(MakeTuple(tuple(items), emitter.span), type_, "gradients").atom
