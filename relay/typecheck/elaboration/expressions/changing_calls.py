"""Calls that give back their arguments, with the changes that the function makes in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import attrs

from relay.ir.definition import Definition
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    GlobalFunction,
    Method,
    Tuple,
)
from relay.typecheck.elaboration.values.bound_methods import method_function

_made: WeakKeyDictionary[Definition, Definition] = WeakKeyDictionary()


def giving_back(definition: Definition) -> Definition | None:
    """The function whose result is a tuple of its result and the parameters that it changes, but for those that are in
    the result; None if it changes none that its text shows."""
    if definition.changing is None or definition.gradient is not None:
        return None
    if None not in definition.changes.values():
        return definition
    found = _made.get(definition)
    if found is None:
        changing = definition.changing()
        code, said = changing.function, definition.function.signature  # of which some are made static
        signature = tuple(attrs.evolve(p, static=s.static) for p, s in zip(code.signature, said, strict=True))  # type: ignore[misc]
        function = attrs.evolve(code, signature=signature)  # type: ignore[misc]
        found = _made[definition] = attrs.evolve(
            changing, function=function, pure=definition.pure, changes=definition.changes
        )
    return found


def changing_function(callee: AbstractValue) -> tuple[Definition, bool] | None:
    """The function of the user's that is called, which gives back what it changes, and whether the value of a method is
    its first argument; None for other callees."""
    if isinstance(callee, Method):
        own = method_function(callee)
    else:
        own = callee if isinstance(callee, GlobalFunction) else None
    definition = None if own is None else giving_back(own.definition)
    return None if definition is None else (definition, isinstance(callee, Method))


Call = Callable[[AbstractValue, Sequence[AbstractValue]], AbstractValue]


Unpack = Callable[[AbstractValue, int | None], Sequence[AbstractValue]]


def apply(
    callee: AbstractValue,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    changed: Sequence[int],
    call: Call,
    unpack: Unpack,
) -> Tuple:
    """The tuple of a call's result and of those of its arguments that are asked for. `call` calls a function with
    arguments by position, and `unpack` gives the items of a tuple."""
    receiver = [callee.value] if isinstance(callee, Method) else []
    given = [*arguments, *(a for _, a in keywords), *receiver]  # so that -1 is the value of a method
    found = changing_function(callee)
    if found is None:
        return Tuple((call(callee, arguments), *(given[i] for i in changed)))
    definition, is_method = found
    result = call(GlobalFunction(definition), [*receiver, *arguments] if is_method else arguments)
    back: dict[int, AbstractValue] = {}
    if definition.gives_back:
        result, *parts = unpack(result, 1 + len(definition.gives_back))
        back |= dict(zip(definition.gives_back, parts, strict=True))
    for position, way in definition.changes.items():
        if way is not None:
            back[position] = unpack(result, None)[way[0]] if way else result
    names = [p.name for p in definition.function.parameters]
    for position, value in back.items():
        if position < is_method:
            given[-1] = value
        elif position - is_method < len(arguments):
            given[position - is_method] = value
        else:
            for place, (name, _) in enumerate(keywords, start=len(arguments)):
                if name == names[position]:
                    given[place] = value
    return Tuple((result, *(given[i] for i in changed)))
