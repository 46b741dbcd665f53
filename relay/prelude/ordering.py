"""Functions of several results over what is sorted."""

from __future__ import annotations

import relay


@relay.relay(static_argnames=("k", "axis", "largest"))
def topk(x, k, axis=-1, largest=True):
    """The k largest (or smallest) elements along an axis, the best first, and their places.
    x: (T, s) -> ((T, s with k along the axis), (int32, the same shape)).
    """
    values = relay.topk_values(x, k, axis=axis, largest=largest)
    return values, relay.topk_indices(x, k, axis=axis, largest=largest)
