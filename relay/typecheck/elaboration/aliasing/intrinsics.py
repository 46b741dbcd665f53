"""Intrinsics: the calls that the front end writes for displays, comprehensions and the methods of lists and dicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.ir.expr import Atom, Static, Var
from relay.ir.surface import Apply
from relay.typecheck.elaboration.aliasing import calls, effects, methods
from relay.typecheck.elaboration.aliasing.containers import elements, make_container
from relay.typecheck.elaboration.aliasing.objects import Generator, Object, Step
from relay.typecheck.elaboration.aliasing.places import Place
from relay.typecheck.elaboration.aliasing.walk import Walker

SHIFTING = ("insert", "remove", "reverse", "sort", "clear", "update")
"""The methods after which an index of a list means another item."""


def apply(walker: Walker, target: Var, name: str, value: Apply) -> None:
    arguments = value.arguments
    rule = _INTRINSICS.get(name)
    walker.prints |= name == "print"
    if name == "augment":
        methods.augment(walker, target, value)
    elif (own := methods.method_of(walker, name, value)) is not None:
        methods.call(walker, target, name, own, value)
    elif name == "call":
        calls.call_with_stars(walker, target, value)
    elif name in ("pop", "popitem", "setdefault", "__next__"):
        _pop(walker, target, value, keeps=name == "setdefault")
    elif target in walker.definition.updated:
        _update(walker, target, name, value)
    elif rule is not None:
        rule(walker, target, arguments)
    else:
        walker.bind_new(target)


def _update(walker: Walker, target: Var, name: str, value: Apply) -> None:
    """A method that changes a list or dict."""
    whole, *given = value.arguments
    slot = place.slot if (place := walker.place(whole)) is not None else None
    objects = effects.change(walker, whole, value.span)
    for one in objects:
        one.sizes += 1
        one.shifts += name in SHIFTING
        for atom in given:
            held = elements(walker, atom) if name in ("spread", "update") else walker.objects(atom)
            walker.state.put(one, walker.any_step(), held)
    walker.bind(target, objects, slot)


def _pop(walker: Walker, target: Var, value: Apply, keeps: bool = False) -> None:
    """`xs.pop(i)`: a pair of the item, which the list does not hold any more, and the list; `d.setdefault(key, value)`
    with the value, which the dict `keeps`."""
    whole = value.arguments[0]
    place = walker.place(whole)
    objects, step = walker.objects(whole), walker.any_step()
    found = walker.contents(objects, step)
    effects.change(walker, whole, value.span)
    for one in objects:
        one.sizes += 1
        one.shifts += not keeps
        if keeps:
            for atom in value.arguments[2:]:
                walker.state.put(one, step, walker.objects(atom))
            continue
        walker.state.take(one, step)  # the part of a list from outside; of another list it may be any item
    if keeps:
        held = walker.contents(objects, step)
    else:
        held = frozenset(o if o.parent in objects else o.twin(objects) for o in found)
    walker.popped[target] = [(None, None), (None if place is None else place.slot, None)]
    pair = Object()
    pair.hold(Step(0), held)
    pair.hold(Step(1), objects)
    walker.places[target] = Place(frozenset({pair}), walker.tick())


def _append(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    """A longer list that the front end makes: of a comprehension, or of a display."""
    objects = walker.objects(arguments[0])
    for one in objects:
        walker.state.put(one, walker.any_step(), walker.objects(arguments[-1]))
    walker.bind(target, objects)


def _spread(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    walker.bind(target, frozenset({Object()}))
    for made in walker.objects(target):
        for atom in arguments:
            made.hold(walker.any_step(), elements(walker, atom))


def _same(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    place = walker.place(arguments[0])
    if place is None:
        walker.places.pop(target, None)
    else:
        walker.places[target] = place


def _generated(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    made, risk = Object(is_iterator=True), arguments[1]
    made.hold(walker.any_step(), elements(walker, arguments[0]))
    made.generator = Generator(walker.definition.function.name, risk.value if isinstance(risk, Static) else None)  # type: ignore[arg-type]
    walker.bind(target, frozenset({made}))


def _rest(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    """`a, *rest = xs`: the parts of which one is a new list."""
    held, made, rest = elements(walker, arguments[0]), Object(), Object()
    rest.hold(walker.any_step(), held)
    made.hold(walker.any_step(), held | {rest})
    walker.bind(target, frozenset({made}))


_INTRINSICS: dict[str, Callable[[Walker, Var, Sequence[Atom]], None]] = {
    "list": make_container,
    "append": _append,
    "extend": _append,
    "spread": _spread,
    "growing": _same,
    "each": _same,
    "assigned": _same,
    "generated": _generated,
    "unpack": _rest,
}
