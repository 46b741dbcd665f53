"""Evidence: what handlers of effects give to the functions that are called inside of them (Xie and Leijen, "Effect
handlers, evidently", 2020).

    with_key__(lambda: f(x), key)    =    state = ref(key); f_inside(x)

`f_inside` is f as a function that is defined right after `state`, which it captures as any closure captures variables.
So a handler needs no node: a draw reads and writes `state`, and differentiation, batching, the interpreter and native
code know closures and references. A function is defined once for each handler, and calls others of the same handler.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from relay.errors import Span
from relay.ir.types import TensorType
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    Identity,
    LocalFunction,
    SizesInScope,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.effects.effects import declared_purity
from relay.typecheck.elaboration.frame import Frame

RNG, PARAM = "rng", "param"
"""The effects that have handlers."""


@attrs.frozen(eq=False)
class Initializer:
    """A parameter that a function was found to have: its shape, the function that makes it, and its type."""

    shape: AbstractValue
    make: AbstractValue
    type: TensorType
    span: Span | None


@attrs.frozen(eq=False)
class Evidence:
    """The state of a handler: a reference to the key of the next draw, or the values of parameters, or a table for
    those that are found. `slot` is the place after it, `sizes` are those in scope there."""

    effect: str
    slot: TypedBlockBuilder
    sizes: SizesInScope
    key: DynamicValue | None = None
    values: Mapping[str, AbstractValue] | None = None
    found: dict[str, Initializer] = attrs.field(factory=dict)
    outer: list[Frame] = attrs.field(factory=list)  # before the `with` of this handler
    inside: dict[tuple[Identity, Identity], LocalFunction] = attrs.field(factory=dict)
    """The functions that are called, as they are defined here."""


def with_evidence(checker: Checker, callee: GlobalFunction | LocalFunction) -> GlobalFunction | LocalFunction:
    """A function that is called, or passed on, as one that sees the handlers around. A local function that was defined
    inside of other ones keeps those, and one with a derivative of its own sees none."""
    evidence = checker.frame.evidence
    if not evidence or (isinstance(callee, GlobalFunction) and callee.definition.gradient is not None):
        return callee
    if isinstance(callee, LocalFunction) and (
        len(callee.evidence) >= len(evidence) or callee.evidence != evidence[: len(callee.evidence)]
    ):
        return callee
    code: object = callee.definition if isinstance(callee, GlobalFunction) else callee
    known, key = evidence[-1].inside, (Identity(code), Identity(callee.pure))
    if key not in known:
        known[key] = _defined_inside(callee, evidence)
    return known[key]


def _defined_inside(callee: GlobalFunction | LocalFunction, evidence: tuple[Evidence, ...]) -> LocalFunction:
    """A function as it is defined right after a handler."""
    slot, sizes = evidence[-1].slot, evidence[-1].sizes
    if isinstance(callee, LocalFunction):
        return attrs.evolve(callee, slot=slot, sizes=sizes, evidence=evidence)
    function, pure = callee.definition.function, callee.pure
    if callee.definition.pure:
        pure = declared_purity(function)
    context = Context({}, {}, callee.definition.scope)
    return LocalFunction(function, {}, slot, sizes, context, function.name, pure, evidence=evidence)
