"""Packed tensors in a program: operators between tensors as they are written and as the accelerator has them.

    (n, c, h, w), (n, h, w, c), (n, c)    as they are written
    (n, c / block, h, w, block)           packed, for a batch of 1: what the layout pass calls NCHWc
    (n / batch, c / block, h, w, batch, block)    packed, for larger ones

Channels and images that are missing are zeros. Sums of 32 bits leave the accelerator as four tensors of their bytes,
the lowest first.
"""

from __future__ import annotations

import math

from relay.codegen.vta.config import Config
from relay.codegen.vta.offloading.clusters import AXES, Axes
from relay.ir.types import INT8, INT32, UINT8, TensorType, Type
from relay.operator import Emitter, Value, lookup

BYTES = 4


def pack(emitter: Emitter, value: Value, axes: str, config: Config) -> Value:
    """A tensor whose axes are in the order `axes`, packed; it may be packed already."""
    order, batch = AXES[axes], config.batch
    if order.block is None:
        value = _in_blocks(emitter, value, order, config.block)
    if batch == 1:
        return value
    shape = _numbers(value.tensor)
    missing = -shape[0] % batch
    if missing:
        value = _with_zeros(emitter, value, 0, missing)
    value = _call(emitter, "reshape", value, shape=((shape[0] + missing) // batch, batch, *shape[1:]))
    return _call(emitter, "transpose", value, axes=(0, 2, 3, 4, 1, 5))


def unpack(emitter: Emitter, value: Value, type_: Type | None, axes: str, config: Config) -> Value:
    """The tensor of this type that `pack` has packed."""
    assert isinstance(type_, TensorType)
    order, batch = AXES[axes], config.batch
    if batch > 1:
        whole = _numbers(value.tensor)
        value = _call(emitter, "transpose", value, axes=(0, 4, 1, 2, 3, 5))
        value = _call(emitter, "reshape", value, shape=(whole[0] * batch, *whole[1:4], whole[5]))
        value = _first_elements(emitter, value, (_numbers(type_)[0], *_numbers(value.tensor)[1:]))
    return value if order.block is not None else _without_blocks(emitter, value, _numbers(type_), order, config.block)


def split_bytes(emitter: Emitter, value: Value) -> Value:
    """The bytes of 32-bit numbers as int8, along a first axis."""
    parts = [_call(emitter, "cast", value, dtype=INT8)]
    for byte in range(1, BYTES):
        shifted = emitter.call(lookup("right_shift"), (value, emitter.constant(8 * byte, INT32)), {})
        parts.append(_call(emitter, "cast", shifted, dtype=INT8))
    return emitter.call(lookup("stack"), parts, {"axis": 0})


def join_bytes(emitter: Emitter, value: Value) -> Value:
    """The 32-bit numbers that `split_bytes` has taken apart."""
    shape = _numbers(value.tensor)
    total: Value | None = None
    for byte in range(BYTES):
        bounds = {
            "begin": (byte, *(0 for _ in shape[1:])), "end": (byte + 1, *shape[1:]), "strides": (1,) * len(shape),
        }  # fmt: skip
        part = _call(emitter, "strided_slice", value, **bounds)
        part = _call(emitter, "reshape", part, shape=tuple(shape[1:]))
        if byte < BYTES - 1:
            part = _call(emitter, "cast", part, dtype=UINT8)
        part = _call(emitter, "cast", part, dtype=INT32)
        if byte:
            part = emitter.call(lookup("left_shift"), (part, emitter.constant(8 * byte, INT32)), {})
        total = part if total is None else emitter.call(lookup("add"), (total, part), {})
    assert total is not None
    return total


# ---- blocks of channels


def _in_blocks(emitter: Emitter, value: Value, order: Axes, block: int) -> Value:
    shape = _numbers(value.tensor)
    missing = -shape[order.channel] % block
    if missing:
        value = _with_zeros(emitter, value, order.channel, missing)
        shape[order.channel] += missing
    split = [*shape[: order.channel], shape[order.channel] // block, block, *shape[order.channel + 1 :]]
    if len(shape) == 2:
        return _call(emitter, "reshape", value, shape=(split[0], split[1], 1, 1, block))
    value = _call(emitter, "reshape", value, shape=tuple(split))
    moved = [axis + (axis > order.channel) for axis in order.order()]
    return _call(emitter, "transpose", value, axes=(*moved, order.channel + 1))


def _without_blocks(emitter: Emitter, value: Value, shape: list[int], order: Axes, block: int) -> Value:
    whole = list(shape)
    whole[order.channel] += -whole[order.channel] % block
    if len(shape) == 4:
        places = [*(axis + (axis > order.channel) for axis in order.order()), order.channel + 1]
        value = _call(emitter, "transpose", value, axes=tuple(places.index(axis) for axis in range(5)))
    value = _call(emitter, "reshape", value, shape=tuple(whole))
    return _first_elements(emitter, value, tuple(shape))


def _with_zeros(emitter: Emitter, value: Value, axis: int, count: int) -> Value:
    """This many zeros after the elements along an axis."""
    widths = tuple((0, count if place == axis else 0) for place in range(value.ndim))
    return emitter.call(lookup("pad"), (value,), {"widths": widths, "mode": "constant", "value": 0})


def _first_elements(emitter: Emitter, value: Value, shape: tuple[int, ...]) -> Value:
    """The first elements along each axis; the same value if that is all of them."""
    if math.prod(shape) == math.prod(_numbers(value.tensor)):
        return value
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    return _call(emitter, "strided_slice", value, begin=zeros, end=shape, strides=ones)


def _call(emitter: Emitter, name: str, value: Value, **attributes: object) -> Value:
    return emitter.call(lookup(name), (value,), attributes)  # type: ignore[arg-type]


def _numbers(type_: TensorType) -> list[int]:
    return [d for d in type_.shape if isinstance(d, int)]
