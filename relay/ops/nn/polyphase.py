"""Polyphase (sub-pixel) transposed convolutions: with a stride, phase by phase.

    forward            y[e] = sum over k of x[stride e + k - low] w[k]
    transposed         x[i] = sum over t of y[m - t] w[p + stride t]     where i + low = stride m + p, 0 <= p < stride

Between the places of y lie stride - 1 zeros, which the sum over all of w would multiply, too. Each phase p reads a part
of w only, so the phases are channels of a convolution of places one apart, and the result is made of them by turns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from relay.ops.notation import Element, Stage
from relay.ops.tir import scalar, stages
from relay.ops.tir.tvm_modules import te, tirx
from relay.typecheck import windows as rules
from relay.typecheck.dims import numbers
from relay.typecheck.windows import Windows


def has_phases(sizes: Sequence[Any], extents: Sequence[Any], over: Windows) -> bool:
    """True if a transposed convolution from places of these extents to these sizes is worth it: it must have a
    stride, and the sizes must be known, since the phases' sizes are computed from them."""
    known = (*sizes, *extents, *over.kernel, *(low for low, _ in over.padding))
    return (
        all(isinstance(number, int) for number in known)
        and any(stride > 1 for stride in over.stride)
        and all(step == 1 for step in over.dilation)
    )


def in_phases(
    source: Callable[..., Element],
    filters: Callable[..., Element],
    channels: tuple[Any, Any, Any],
    extents: Sequence[int],
    sizes: Sequence[int],
    over: Windows,
    dtype: str,
    last: bool,
) -> Stage:
    """The transposed convolution of source(n, o, *place), of these extents, with filters(o, c, *k) to these sizes.
    `channels`: the batch, and how many o and c there are. `last`: whether channels come last."""
    batch, out, inner = channels
    lows, strides, kernels = numbers([low for low, _ in over.padding]), numbers(over.stride), numbers(over.kernel)
    firsts = [low // stride for low, stride in zip(lows, strides, strict=True)]  # the least m
    counts = [
        (size - 1 + low) // stride - first + 1
        for size, low, stride, first in zip(sizes, lows, strides, firsts, strict=True)
    ]
    taps = [-(-kernel // stride) for kernel, stride in zip(kernels, strides, strict=True)]
    phases = functools.reduce(lambda a, b: a * b, strides)
    starts = [first - (tap - 1) for first, tap in zip(firsts, taps, strict=True)]
    zero = scalar.number(0, dtype)

    def layout_index(first: Element, second: Element, places: Sequence[Any]) -> list[Any]:
        return [first, *places, second] if last else [first, second, *places]

    def split_index(index: Sequence[Any]) -> tuple[Any, Any, Sequence[Any]]:
        return (index[0], index[-1], index[1:-1]) if last else (index[0], index[1], index[2:])

    def element(*index: Element) -> Element:
        n, o, place = split_index(index)
        read = [i + start for i, start in zip(place, starts, strict=True)]
        inside = [c for i, extent in zip(read, extents, strict=True) for c in (i >= 0, i < extent)]
        return scalar.guarded_select(functools.reduce(tirx.And, inside), source(n, o, *read), zero)

    def filter_(*index: Element) -> Element:
        o, channel, place = (index[-2], index[-1], index[:-2]) if last else (index[1], index[0], index[2:])
        phase = tirx.floormod(channel, phases)
        parts: list[Element] = []
        for stride in reversed(strides):
            parts.insert(0, tirx.floormod(phase, stride))
            phase = tirx.floordiv(phase, stride)
        at = [p + s * (tap - 1 - t) for p, s, tap, t in zip(parts, strides, taps, place, strict=True)]
        inside = [k < kernel for k, kernel in zip(at, kernels, strict=True)]
        found = filters(o, tirx.floordiv(channel, phases), *at)
        return scalar.guarded_select(functools.reduce(tirx.And, inside), found, zero)

    room = [count + tap - 1 for count, tap in zip(counts, taps, strict=True)]
    padded = te.compute(rules.activation_shape(batch, out, room, last), element, name="padded")
    many = inner * phases
    weight = te.compute((*taps, out, many) if last else (many, out, *taps), filter_, name="phases")

    def terms(index: Sequence[Element], reduced: Sequence[Element]) -> tuple[Element, Element]:
        n, channel, place = split_index(index)
        o, t = (reduced[-1], reduced[:-1]) if last else (reduced[0], reduced[1:])
        read = layout_index(n, o, [i + step for i, step in zip(place, t, strict=True)])
        return padded(*read), weight(*t, o, channel) if last else weight(channel, o, *t)

    reduced = (*taps, out) if last else (out, *taps)
    found = stages.contraction(rules.activation_shape(batch, many, counts, last), reduced, dtype, terms)

    def result(*index: Element) -> Element:
        n, c, place = split_index(index)
        channel, at = c, []
        for i, low, stride, first in zip(place, lows, strides, firsts, strict=True):
            channel = channel * stride + tirx.floormod(i + low, stride)
            at.append(tirx.floordiv(i + low, stride) - first)
        return found(*layout_index(n, channel, at))

    return te.compute(rules.activation_shape(batch, inner, sizes, last), result, name="by_turns")
