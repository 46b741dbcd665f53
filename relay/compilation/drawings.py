"""Drawings of a function: its program at a stage, and that of its derivative beside it."""

from __future__ import annotations

from collections.abc import Sequence

from relay.compilation.stages import at_stage
from relay.errors import FrontendError
from relay.ir.definition import Definition, DerivedDefinition, primal
from relay.ir.expr import Grad, Module, Static
from relay.ir.types import TensorType, prune
from relay.text.display.drawing import Drawing
from relay.text.display.graph import Graph, graph
from relay.typecheck.elaboration import Argument, elaborate_structured

STAGES = ("typed", "core", "optimized", "kernels")
"""The program as it is typed; first-order, before optimization; optimized; with its kernels as functions."""


def drawing(
    definition: Definition | DerivedDefinition, arguments: Sequence[Argument], stage: str, level: int, derivative: bool
) -> Drawing:
    """The drawing of a function for arguments of these types. Raises FrontendError for another stage, and whatever a
    call would raise before it runs."""
    if stage not in STAGES:
        raise FrontendError(f"there is no stage {stage!r}", help=f"one of {', '.join(map(repr, STAGES))}")
    name = primal(definition).function.name
    typed = elaborate_structured(definition, arguments).module
    found = [graph(at_stage(typed, stage, level, isinstance(definition, DerivedDefinition)), name)]
    if derivative:
        found.append(_derivative(definition, arguments, typed, stage, level, f"gradient of {name}", found[0]))
    return Drawing(name, found)


def _derivative(
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    typed: Module,
    stage: str,
    level: int,
    title: str,
    before: Graph,
) -> Graph:
    """The graph of the gradient. For a result that is not a single number it takes the incoming cotangent."""
    result = prune(typed.main.type.result)
    is_number = isinstance(result, TensorType) and result.shape == ()
    grad = Grad(Static(None), seedable=not is_number)
    derived = DerivedDefinition(definition, grad, None)
    given = [*arguments, *([] if is_number else [None])]
    module = at_stage(elaborate_structured(derived, given).module, stage, level, True)
    first = 1 + max((n.number for f in before.functions for n in f.nodes()), default=0)
    return graph(module, title, first + len(before.functions))
