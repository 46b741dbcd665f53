"""Instances for several calls whose arguments are numbers of the source, or one function, of types that are not known.

    f(x, 1) + f(x, 2)       f(x, lambda v: v + 1.0) + f(x, lambda v: v * 2.0)

The body of a function decides what these types are, and from there on one instance serves all such calls. A weak
integer stays open, as what it meets converts it: it gets instances of its own in the first `MOST` calls, so that they
do not depend on each other. A chain of functions, each of which calls the one before twice with other numbers, would
otherwise have twice as many instances with each.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs

from relay.ir.literals import holds
from relay.ir.types import INT32, BaseType, FunctionType, TensorType, Type, Unknown, prune
from relay.typecheck.elaboration.abstract_values import Number
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.effects import effects
from relay.typecheck.elaboration.instance_bodies import InstanceRequest
from relay.typecheck.unification import flat_shape, is_known, resolve, unknowns

MOST = 8
"""Of how many calls with weak integers each has an instance of its own."""


@attrs.frozen
class Similar:
    """An instance, and whether its body has decided the types that the call left open."""

    instance: Instance
    is_decided: bool


@attrs.frozen
class Likeness:
    """The `key` that calls have in common which are alike but for the types of some arguments: the run-time ones at
    these `positions`, which are open."""

    key: Hashable
    positions: tuple[int, ...]
    fixed: frozenset[Unknown]  # the variables in the types of the others


def likeness(request: InstanceRequest) -> Likeness | None:
    """That of a call; None where other types are open, or none."""
    entities = [e for e, v in zip(request.entities, request.values, strict=True) if v is not None]
    parts: list[object] = []
    positions: list[int] = []
    for position, (type_, entity) in enumerate(zip(request.types, entities, strict=True)):
        base = _open_base(type_)
        if isinstance(type_, FunctionType) and not is_known(type_):
            parts.append(("function", len(type_.parameters)))
        elif base is not None and (base.weak or isinstance(entity, Number)):
            parts.append(("number", base.weak, base.classes))
        else:
            parts.append(type_)
            continue
        positions.append(position)
    if not positions or sum(isinstance(request.types[p], FunctionType) for p in positions) > 1:
        return None
    fixed = {u for p, type_ in enumerate(request.types) if p not in positions for u in unknowns(type_)}
    key = request.key_at(tuple(parts)), frozenset(request.numbers)  # type: ignore[arg-type]
    return Likeness(key, tuple(positions), frozenset(fixed))


def note(checker: Checker, alike: Likeness | None, made: Instance) -> None:
    """Remember an instance that was just made, for calls that are like its own."""
    if alike is not None:
        decided = all(alike.fixed.issuperset(unknowns(made.parameters[p])) for p in alike.positions)
        checker.module.similar_instances.setdefault(alike.key, []).append(Similar(made, decided))


def find(checker: Checker, request: InstanceRequest, alike: Likeness) -> Instance | None:
    """An instance that serves a call as well as a new one would, whose types the arguments get; None if there is
    none."""
    found = checker.module.similar_instances.get(alike.key, [])
    for similar in found:
        instance = similar.instance
        may_share = similar.is_decided or len(found) >= MOST
        if instance.build is not None and not instance.failed and may_share:
            pairs = [(request.types[p], instance.parameters[p]) for p in alike.positions]
            if _fit(checker, pairs, alike):
                return instance
    return None


def _open_base(type_: Type) -> Unknown | None:
    """The base type of a number of which only literals are known."""
    base = prune(type_.base) if isinstance(type_, TensorType) and flat_shape(type_.shape) == () else None
    return base if isinstance(base, Unknown) and base.literals and not base.rigid else None


def _fit(checker: Checker, pairs: Sequence[tuple[Type, Type]], alike: Likeness) -> bool:
    """True if arguments can have the types of an instance's parameters, which they have from now on."""
    if not all(_holds(own, wanted, alike) for own, wanted in pairs if isinstance(own, TensorType)):
        return False
    for own, wanted in pairs:
        if isinstance(own, FunctionType) and not _becomes(checker, own, resolve(wanted), alike):
            return False
    for own, wanted in pairs:
        checker.solver.unify(own, wanted)
        effects.flow(own, wanted)
    checker.solver.run()
    return True


def _holds(own: TensorType, wanted: Type, alike: Likeness) -> bool:
    """True if the base type of a parameter has the literals of an argument, or is as open as its own."""
    expected, base = resolve(wanted), _open_base(own)
    found = prune(expected.base) if isinstance(expected, TensorType) else None
    assert base is not None
    if isinstance(found, Unknown):
        in_class = base.classes is None or found.classes is None or bool(base.classes & found.classes)
        is_small = all(holds(INT32, literal.value) for literal in base.literals)  # others make all of them int64
        return in_class and (found in alike.fixed or (base.weak and found.weak and is_small))
    in_class = isinstance(found, BaseType) and (base.classes is None or found.base_class in base.classes)
    return in_class and all(holds(found, literal.value) for literal in base.literals)  # type: ignore[arg-type]


def _becomes(checker: Checker, own: FunctionType, wanted: Type, alike: Likeness) -> bool:
    """True if a function that takes what a parameter takes gives what it gives. The body of what is called decides
    what it takes."""
    if not isinstance(wanted, FunctionType) or len(own.parameters) != len(wanted.parameters):
        return False
    if not alike.fixed.issuperset(unknowns(wanted)):
        return False
    for found, expected in zip(own.parameters, wanted.parameters, strict=True):
        if is_known(found) and resolve(found) != expected:
            return False
        checker.solver.unify(found, expected)
    checker.solver.run()
    return resolve(own.result) == wanted.result
