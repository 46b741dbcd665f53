"""Gradient rules: which of the operators that a program has called has a rule that finite differences contradict.

Of each call the derivative in one direction v is compared: `sum(gradient * v)` with `(f(x + h v) - f(x - h v)) / 2h`,
both times a seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from relay.debug.differences.outcomes import FAILURES
from relay.debug.programs import Program
from relay.debug.watching import Computation, watch
from relay.errors.diagnostic import Span
from relay.eval import interpreter
from relay.eval.values import Closure, GradientFunction
from relay.ir.expr import Binding, Block, Exit, Function, Global, Grad, LoopLabel, Module, OpCall, Var
from relay.ir.types import TensorType, base_of_dtype
from relay.operator import lookup

TOLERANCE = 1e-3
"""The relative error from which a rule counts as wrong."""

MOST_CALLS = 500
"""The largest number of different calls that are checked."""


@attrs.frozen(eq=False)
class WrongRule:
    """A call whose operator has a wrong gradient, as far as finite differences tell."""

    operator: str
    function: str
    span: Span | None
    error: float  # relative


def wrong_rule(program: Program) -> WrongRule | None:
    """The first call of a program whose gradient is clearly wrong, by the interpreter; None if there is none."""
    seen: set[OpCall] = set()
    found: list[WrongRule] = []

    def notice(computation: Computation) -> None:
        call = computation.call
        if found or call in seen or len(seen) >= MOST_CALLS:
            return
        seen.add(call)
        error = _error(computation)
        if error is not None and error > TOLERANCE:
            found.append(WrongRule(call.operator, computation.function, computation.span, error))

    watch(program, notice)
    return found[0] if found else None


def _error(computation: Computation) -> float | None:
    """The relative error of an operator's gradient, in float64; None if there is none, or nothing can be told."""
    operands = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in computation.operands]
    floats = tuple(n for n, a in enumerate(operands) if a.dtype.kind == "f" and a.size)
    if not floats or len(computation.results) != 1 or computation.results[0].dtype.kind != "f":
        return None
    try:
        module = _module(computation.call, operands)
        value = np.asarray(interpreter.run(module, operands))
        rng = np.random.default_rng(0)
        seed = rng.standard_normal(value.shape)
        grad = Grad(Global("called"), wrt=floats, seedable=True)
        gradients = interpreter.call(GradientFunction(Closure(module.main, {}, module), grad), [*operands, seed])
        if not isinstance(gradients, tuple):
            gradients = (gradients,)
        directions = {n: rng.standard_normal(operands[n].shape) * np.maximum(1.0, np.abs(operands[n])) for n in floats}
        slope = sum(float(np.sum(np.asarray(g) * directions[n])) for n, g in zip(floats, gradients, strict=True))
        slopes = []
        for step in (1e-5, 1e-6):
            ends = []
            for sign in (step, -step):
                moved = [a + sign * directions[n] if n in directions else a for n, a in enumerate(operands)]
                ends.append(np.asarray(interpreter.run(module, moved)))
            slopes.append(float(np.sum(seed * (ends[0] - ends[1]))) / (2 * step))
    except (*FAILURES, TypeError, ValueError, ArithmeticError):
        return None
    one, other = slopes
    scale = max(abs(other), abs(slope), 1e-6)
    if not np.isfinite([one, other, slope]).all() or abs(one - other) > TOLERANCE / 10 * scale:
        return None  # a kink is near, or the function is not finite there
    return abs(slope - other) / scale


def _module(call: OpCall, operands: Sequence[np.ndarray]) -> Module:
    """The program of one call."""
    types = [TensorType(base, a.shape) for a in operands if (base := base_of_dtype(a.dtype)) is not None]
    parameters = tuple(Var(f"x{n}", type_) for n, type_ in enumerate(types))
    attributes = dict(call.attributes)
    result = Var("result", lookup(call.operator).infer(types, attributes))
    label = LoopLabel("called")
    body = Block(
        (Binding((result,), OpCall(call.operator, parameters, attributes, call.span)),), Exit(label, (result,))
    )
    return Module({"called": Function("called", parameters, body, label, result.type, span=call.span)}, "called")
