"""Rules of batching for convolutions; see `relay.operator.batching`.

x batched               the examples are more images:            N = examples N
weight batched          they are more channels of the result:    O = examples O
both                    they are groups of channels, which do not mix: groups = examples groups
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay.ops.batching import merge, split
from relay.ops.notation import Batch, Value


def batched_convolution(result: str) -> Callable[..., Value | None]:
    """The rule of a convolution whose weight has the channels of the result along the axis of the letter `result`: O,
    or I if it is transposed."""

    def rule(batch: Batch, x: Value, weight: Value, groups: int, **attributes: Any) -> Value | None:
        assert batch.operator.layouts is not None
        of_x, of_weight, of_result = batch.operator.layouts(groups=groups, **attributes)
        if not batch.batched[1]:
            made = batch.call(merge(x, of_x.index("N")), weight, groups=groups, **attributes)
            return _split(made, of_result.index("N"), batch)
        if not batch.batched[0] and groups == 1:
            made = batch.call(x, merge(weight, of_weight.index(result)), groups=1, **attributes)
            return _split(made, of_result.index("C"), batch)
        if "c" in of_x or not isinstance(batch.size, int):
            return None  # blocks of channels have no groups, and groups are numbers
        images, kernels = batch.stretch_all((x, weight))
        made = batch.call(
            merge(images, of_x.index("C")), merge(kernels, of_weight.index("O")),
            groups=batch.size * groups, **attributes,
        )  # fmt: skip
        return _split(made, of_result.index("C"), batch)

    return rule


def batched_weight_gradient(batch: Batch, x: Value, y: Value, groups: int, **attributes: Any) -> Value | None:
    """The rule of the cotangent of a convolution's weight, in which the images of a batch are summed over."""
    assert batch.operator.layouts is not None
    of_x, of_y, of_weight = batch.operator.layouts(groups=groups, **attributes)
    channels = of_x.index("C"), of_y.index("C")
    if groups == 1 and batch.batched == (True, False):
        return _split(batch.call(merge(x, channels[0]), y, groups=1, **attributes), of_weight.index("I"), batch)
    if groups == 1 and batch.batched == (False, True):
        return _split(batch.call(x, merge(y, channels[1]), groups=1, **attributes), of_weight.index("O"), batch)
    if not isinstance(batch.size, int):
        return None
    images, cotangents = batch.stretch_all((x, y))
    made = batch.call(
        merge(images, channels[0]), merge(cotangents, channels[1]), groups=batch.size * groups, **attributes
    )
    return _split(made, of_weight.index("O"), batch)


def _split(value: Value, axis: int, batch: Batch) -> Value:
    return split(value, axis, batch, batch.tensor.shape[axis])
