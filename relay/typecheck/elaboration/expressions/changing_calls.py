"""Calls that give back their arguments, with the changes that the function makes in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    GlobalFunction,
    Method,
    Tuple,
)
from relay.typecheck.elaboration.values.bound_methods import changing_function

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
