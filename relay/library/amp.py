"""Loss scaling for half precision, in the language: `relay.amp`.

    scale = amp.dynamic_scale()
    value, gradients, is_finite, scale = amp.value_and_grad(loss, scale, params, x, y)

Gradients that are too small for float16 become zero. So the loss is multiplied by a scale before it is differentiated,
and the gradients, which are float32, are divided by it (Micikevicius and others, "Mixed precision training", 2018).
"""

from __future__ import annotations

import numpy as np

import relay

__all__ = ["LossScale", "all_finite", "dynamic_scale", "static_scale", "value_and_grad"]


@relay.data
class LossScale:
    """A scale, and how it changes: it is halved after a step whose gradients are not finite, and doubled after `period`
    steps in a row whose gradients are; with the period 0 it stays. `steps`: those since the last change."""

    scale: relay.Tensor[relay.Float, ()]
    period: relay.Tensor[relay.Int, ()]
    steps: relay.Tensor[relay.Int, ()]

    def adjusted(self, is_finite):
        """The scale of the next step."""
        if self.period == 0:
            return self
        if not is_finite:
            return LossScale(relay.maximum(self.scale * 0.5, 1.0), self.period, 0)
        if self.steps + 1 == self.period:
            return LossScale(self.scale * 2.0, self.period, 0)
        return LossScale(self.scale, self.period, self.steps + 1)


def static_scale(scale: float) -> LossScale:
    """A scale that stays as it is."""
    return LossScale(np.float32(scale), np.int32(0), np.int32(0))


def dynamic_scale(scale: float = 2.0**15, period: int = 2000) -> LossScale:
    """A scale that is halved when gradients overflow, and doubled after so many steps in which none did."""
    return LossScale(np.float32(scale), np.int32(period), np.int32(0))


@relay.relay
def all_finite(values):
    """True if no float in a structure is infinite or NaN."""
    found = True
    for leaf in relay.tree.leaves(values):
        found = found and relay.isfinite(leaf).all()
    return found


@relay.relay
def value_and_grad(f, scale, params, *arguments):
    """`f(params, *arguments)`, a number; its gradient by params, computed at this scale and divided by it; whether all
    of that is finite; and the scale of the next step. Parameters should change only where it is finite."""

    def scaled(params):
        value = f(params, *arguments)
        return value * scale.scale, value

    gradient, value = relay.grad(scaled, has_aux=True)(params)
    gradient = relay.tree.map(lambda g: g / scale.scale, gradient)
    is_finite = all_finite(gradient)
    return value, gradient, is_finite, scale.adjusted(is_finite)
