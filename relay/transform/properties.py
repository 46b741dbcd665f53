"""Properties of modules, which passes need and give.

    pass                 needs          gives             undoes
    specialize                          first_order
    structure            first_order    structured
    expand_composites    structured     expanded
    differentiate        structured     differentiated    expanded
    quantize_weights, quantize_nodes    structured        expanded
    loop_tail_calls      structured     looped
    the others           structured

Every pass but the last may undo `looped`: what it removes may have stood between a call and the end of its function.
A pipeline compares what its passes need with what those before them have given, before it runs; with `checked` it looks
whether the modules have the properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import attrs

from relay.errors import InternalError
from relay.ir.expr import Derivative, Module
from relay.ir.validation.check import Stage, check
from relay.transform.core.composites import expand_composites
from relay.transform.loops.tail_calls import has_tail_calls


def _passes_check(stage: Stage) -> Callable[[Module], bool]:
    def holds(module: Module) -> bool:
        try:
            check(module, stage)
        except InternalError:
            return False
        return True

    return holds


@attrs.frozen
class Property:
    """A property of modules: its name as an adjective, the pass that establishes it, and its test."""

    adjective: str
    given_by: str
    holds: Callable[[Module], bool]


PROPERTIES: Mapping[str, Property] = {
    "first_order": Property("first-order", "specialize", _passes_check("core")),
    "structured": Property("structured", "structure", _passes_check("structured")),
    "expanded": Property("expanded", "expand_composites", lambda module: expand_composites(module) is module),
    "differentiated": Property(
        "differentiated",
        "differentiate",
        lambda module: not any(isinstance(f, Derivative) for f in module.functions.values()),
    ),
    "looped": Property("free of tail calls", "loop_tail_calls", lambda module: not has_tail_calls(module)),
}
"""The properties by name, each after those that it needs."""

CODE = frozenset(PROPERTIES)
"""The properties that code generation needs."""

STAGES: Mapping[Stage, frozenset[str]] = {
    "typed": frozenset(),
    "core": frozenset({"first_order"}),
    "structured": frozenset({"first_order", "structured"}),
}
"""The properties of modules at each stage."""


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


@attrs.frozen
class Contract:
    """The contract of a pass: the properties that it requires, establishes, and may destroy."""

    needs: frozenset[str] = _names("structured")
    gives: frozenset[str] = frozenset()
    undoes: frozenset[str] = _names("looped")


CONTRACTS: Mapping[str, Contract] = {
    "specialize": Contract(needs=_names(), gives=_names("first_order")),
    "structure": Contract(needs=_names("first_order"), gives=_names("structured")),
    "expand_composites": Contract(gives=_names("expanded")),
    "differentiate": Contract(gives=_names("differentiated"), undoes=_names("expanded", "looped")),
    "quantize_weights": Contract(undoes=_names("expanded", "looped")),
    "quantize_nodes": Contract(undoes=_names("expanded", "looped")),
    "loop_tail_calls": Contract(gives=_names("looped"), undoes=_names()),
}
"""The contracts of passes; for others it is `Contract()`."""

UNKNOWN = Contract(needs=_names())
"""The contract of a function that is not one of Relay's passes."""


class Step(Protocol):
    """A pass in a pipeline."""

    @property
    def name(self) -> str:
        """The name by which it was requested."""
        ...

    @property
    def contract(self) -> Contract:
        """The contract of the pass."""
        ...


def properties_after(step: Step, known: frozenset[str]) -> frozenset[str]:
    """The properties of a module after a pass, from those before it."""
    return (known - step.contract.undoes) | step.contract.gives


def check_order(steps: Sequence[Step], known: frozenset[str], wanted: Iterable[str] = ()) -> None:
    """Raise ValueError, in one line, if a pass needs what those before it do not give, or `wanted` is not given."""
    undone: dict[str, str] = {}
    for step in steps:
        _require(f"{step.name} works on", "before it", step.contract.needs, known, undone)
        undone.update((name, f", which {step.name} may undo") for name in known & step.contract.undoes)
        known = properties_after(step, known)
    _require("what follows works on", "at the end", frozenset(wanted), known, undone)


def _require(what: str, place: str, needed: frozenset[str], known: frozenset[str], undone: Mapping[str, str]) -> None:
    missing = [name for name in PROPERTIES if name in needed - known]
    if not missing:
        return
    absent = missing[-1]
    chain: list[str] = []
    pending = [absent]
    while pending:
        giver = PROPERTIES[pending.pop()].given_by
        chain.insert(0, giver)
        pending += [n for n in CONTRACTS[giver].needs if n not in known]
    adjective = PROPERTIES[absent].adjective
    raise ValueError(f"{what} programs that are {adjective}{undone.get(absent, '')}: put {', '.join(chain)} {place}")


def properties_of(module: Module) -> frozenset[str]:
    """The properties that a module has. Raises InternalError if it is not well formed."""
    if not PROPERTIES["structured"].holds(module):
        if PROPERTIES["first_order"].holds(module):
            return STAGES["core"]
        check(module, "typed")
        return STAGES["typed"]
    others = PROPERTIES.keys() - STAGES["structured"]
    return STAGES["structured"] | {name for name in others if PROPERTIES[name].holds(module)}
