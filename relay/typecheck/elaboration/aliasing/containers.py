"""Containers: lists, tuples and records that a program makes, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.expr import Atom, Var
from relay.typecheck.elaboration.aliasing.objects import Object, Objects, Step
from relay.typecheck.elaboration.aliasing.walk import Walker


def elements(walker: Walker, atom: Atom) -> Objects:
    """The objects that a container holds."""
    return walker.contents(walker.objects(atom), walker.any_step())


def make_container(walker: Walker, target: Var, items: Sequence[Atom], names: Sequence[object] = ()) -> None:
    """A new list, tuple or record of these items."""
    made = Object()
    for position, item in enumerate(items):
        key = names[position] if position < len(names) else position
        made.hold(Step(key), walker.objects(item))
    walker.bind(target, frozenset({made}))


def copy_container(walker: Walker, target: Var, objects: Objects) -> None:
    """A new container of the same elements."""
    made = Object()
    for one in objects:
        for step, held in one.edges.items():
            for item, count in held.items():
                if item.parent is not one:
                    made.hold(step, {item}, count)
        if one.given:
            made.hold(walker.any_step(), {one.part(walker.any_step())})
    walker.bind(target, frozenset({made}))
