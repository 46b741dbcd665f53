"""Calls that give back their arguments, with the changes that the function makes in them."""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.types import StackType, TensorType, Unknown, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    Method,
    Tuple,
)
from relay.typecheck.elaboration.library.overloads import Call
from relay.typecheck.elaboration.values.bound_methods import as_function, changing_function
from relay.typecheck.elaboration.values.expansion import expand


def apply(call: Call, callee: AbstractValue, changed: Sequence[int], name: str = "this function") -> Tuple:
    """The tuple of a call's result and of those of its arguments that are asked for: by their numbers, those by keyword
    last, and -1 for the value of a method. `name` is the called function for messages."""
    checker, out, span = call.site
    receiver = [callee.value] if isinstance(callee, Method) else []
    given = [*call.arguments, *(a for _, a in call.keywords), *receiver]
    found = changing_function(callee)
    if found is None:
        arguments, keywords = call.arguments, call.keywords
        result = checker.engine.call(
            checker, call.context, out, callee, arguments, keywords, span, call.described, name
        )
        return Tuple((result, *(given[i] for i in changed)))
    definition, is_method = found
    arguments = [as_function(checker, out, a, span) for a in (*receiver[:is_method], *call.arguments)]
    keywords = [(key, as_function(checker, out, a, span)) for key, a in call.keywords]
    function = GlobalFunction(definition)
    result = checker.engine.call_function(checker, out, function, arguments, keywords, span, int(is_method))
    back: dict[int, AbstractValue] = {}
    if definition.gives_back:
        result, *parts = _components(call, result)
        back |= dict(zip(definition.gives_back, parts, strict=True))
    for position, way in definition.changes.items():
        if way is not None:
            back[position] = _components(call, result)[way[0]] if way else result
    names = [p.name for p in definition.function.parameters]
    for position, value in back.items():
        if position < len(arguments):
            _settle(call, value, arguments[position])
        if position < is_method:
            given[-1] = value
        elif position - is_method < len(call.arguments):
            given[position - is_method] = value
        else:
            for place, (key, _) in enumerate(keywords, start=len(call.arguments)):
                if key == names[position]:
                    given[place] = value
    return Tuple((result, *(given[i] for i in changed)))


def _settle(call: Call, value: AbstractValue, given: AbstractValue) -> None:
    """Let a list or array that a call gives back have the type of the one that it was given, where a function calls
    itself and its result is not known yet."""
    if not isinstance(value, DynamicValue) or not isinstance(given, DynamicValue):
        return
    if isinstance(prune(value.type), Unknown) and isinstance(prune(given.type), StackType | TensorType):
        call.checker.solver.unify(value.type, given.type)


def _components(call: Call, whole: AbstractValue) -> Sequence[AbstractValue]:
    """The items of the tuple that a function gives."""
    if isinstance(whole, DynamicValue):
        whole = expand(call.checker, call.out, whole, call.span)
    assert isinstance(whole, Tuple)
    return whole.items
