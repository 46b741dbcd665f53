"""Derivatives with respect to all parameters: what they return is not taken for one gradient."""

from __future__ import annotations

from typing import Any

from relay.ir.definition import Definition, DerivedDefinition, primal, seed_count
from relay.support.gradients import Gradients


def gradient_place(definition: Definition | DerivedDefinition) -> tuple[int, ...] | None:
    """The place in the result of a derivative of the gradients of all parameters, as indices; None for other functions,
    and for those of one parameter."""
    if not isinstance(definition, DerivedDefinition) or definition.wrt is not None:
        return None
    if definition.grad.keeping and not definition.grad.has_aux:
        return None
    if len(primal(definition).function.parameters) + seed_count(definition.of) < 2:
        return None
    return (1,) if definition.grad.with_value else (0,) if definition.grad.has_aux else ()


def with_gradients(definition: Definition | DerivedDefinition, result: Any) -> Any:
    """The result of a function, in which a tuple of all gradients is one of `Gradients`."""
    place = gradient_place(definition)
    if place is None or type(result) is not tuple:
        return result
    if place == ():
        return Gradients(*result)
    found = list(result)
    if type(found[place[0]]) is tuple:
        found[place[0]] = Gradients(*found[place[0]])
    return tuple(found)
