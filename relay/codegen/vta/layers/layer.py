"""Layers that the accelerator computes: what they are, and what they compute, in NumPy.

A layer is a product, whose sums are in 32 bits, and an epilogue on these, the low 8 bits of which are its result:

    product    convolution (also dense, in groups, depthwise, 1x1), or transposed convolution
    epilogue   AddBias, AddResidual, ShiftRight, Maximum, Minimum, AddNumber, in any order, and MaxPool as the last one

A dense layer is a convolution of images of one pixel. Layers without weights (residual addition, max pooling, clipping)
have a product by the identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs
import numpy as np

from relay.codegen.vta.layers.packing import block_groups, blocks

BYTES = 4
"""Of a sum."""

# ---- epilogues


@attrs.frozen
class AddBias:
    """x + b: a number for each output channel, of 32 bits; or with `by_product`, which takes half of the time, one that
    is a product of 8-bit weights and a fixed row (`packing.pack_bias_weights`)."""

    by_product: bool = False


@attrs.frozen
class AddResidual:
    """x + (r << shift): a tensor of 8-bit numbers like the product."""

    shift: int = 0


@attrs.frozen
class ShiftRight:
    """x >> bits, to the left if it is negative."""

    bits: int


@attrs.frozen
class AddNumber:
    """x + number, of 16 bits."""

    number: int


@attrs.frozen
class Maximum:
    """max(x, number), of 16 bits."""

    number: int


@attrs.frozen
class Minimum:
    """min(x, number), of 16 bits."""

    number: int


@attrs.frozen
class MaxPool:
    """The largest numbers of windows; what is beyond the border does not count."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right


Step: TypeAlias = AddBias | AddResidual | ShiftRight | AddNumber | Maximum | Minimum | MaxPool


def requantization(shift: int, low: int = -128, high: int = 127) -> tuple[Step, ...]:
    """The steps from sums to 8 bits: the nearest integer to x / 2**shift (a half goes up), kept within the range."""
    rounding: tuple[Step, ...] = ()
    if shift > 0:
        half = 1 << (shift - 1)
        rounding = (AddNumber(half), ShiftRight(shift)) if half < 1 << 15 else (
            ShiftRight(shift - 15), AddNumber(1 << 14), ShiftRight(15)
        )  # fmt: skip
    elif shift < 0:
        rounding = (ShiftRight(shift),)
    return (*rounding, Maximum(low), Minimum(high))


# ---- layers


@attrs.frozen
class Layer:
    """A layer of a network.

    `channels_in`, `channels_out`, `height` and `width` are those of the product's operand and result, `padding` is
    (top, left, bottom, right). In a transposed convolution stride, padding and dilation are those of the convolution
    that it is the transpose of, and `extra` is what is added to the result's height and width. `block` and `batch` are
    those of the configuration. The result of a `wide` layer is its sums of 32 bits: their four bytes, the lowest first.

    Raises ValueError for channels that are not in equal groups, and for a window that does not fit.
    """

    channels_in: int
    channels_out: int
    height: int = 1
    width: int = 1
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    images: int = 1
    epilogue: tuple[Step, ...] = ()
    transposed: bool = False
    extra: tuple[int, int] = (0, 0)
    block: int = 16
    batch: int = 1
    wide: bool = False
    name: str = "layer"

    def __attrs_post_init__(self) -> None:
        block_groups(self.channels_out, self.channels_in, self.groups, self.block)
        if min(*self.product_extents, *self.extents, *self.stride, *self.dilation, *self.kernel, self.images) < 1:
            raise ValueError(f"the windows of {self.name} do not fit {self.height} x {self.width} pixels")
        if self.pool is not None and any(isinstance(step, MaxPool) for step in self.epilogue[:-1]):
            raise ValueError(f"{self.name}: max pooling is the last step of an epilogue")
        if self.wide and self.epilogue:
            raise ValueError(f"{self.name}: the sums of 32 bits have no epilogue")
        if sum(isinstance(step, AddBias) for step in self.epilogue) > 1:
            raise ValueError(f"{self.name}: an epilogue adds one bias")
        if self.transposed and self.dilation != (1, 1):
            raise ValueError(f"{self.name}: transposed convolutions are not dilated")

    # ---- extents

    @property
    def reach(self) -> tuple[int, int]:
        """The distances between the elements of a window."""
        return (self.dilation[0] * (self.kernel[0] - 1) + 1, self.dilation[1] * (self.kernel[1] - 1) + 1)

    @property
    def product_extents(self) -> tuple[int, int]:
        """The height and width of the product."""
        top, left, bottom, right = self.padding
        (kh, kw), (sh, sw) = self.reach, self.stride
        if self.transposed:
            return (
                (self.height - 1) * sh + kh - top - bottom + self.extra[0],
                (self.width - 1) * sw + kw - left - right + self.extra[1],
            )
        return (self.height + top + bottom - kh) // sh + 1, (self.width + left + right - kw) // sw + 1

    @property
    def pool(self) -> MaxPool | None:
        """The pooling that the epilogue ends in."""
        last = self.epilogue[-1] if self.epilogue else None
        return last if isinstance(last, MaxPool) else None

    @property
    def extents(self) -> tuple[int, int]:
        """The height and width of the result."""
        if self.pool is None:
            return self.product_extents
        (h, w), (kh, kw), (sh, sw) = self.product_extents, self.pool.kernel, self.pool.stride
        top, left, bottom, right = self.pool.padding
        return (h + top + bottom - kh) // sh + 1, (w + left + right - kw) // sw + 1

    # ---- blocks

    @property
    def block_groups(self) -> tuple[int, int, int]:
        """The groups of blocks, and for each its blocks of output and of input channels."""
        return block_groups(self.channels_out, self.channels_in, self.groups, self.block)

    @property
    def image_blocks(self) -> int:
        """The batches of images."""
        return blocks(self.images, self.batch)

    @property
    def blocks_in(self) -> int:
        """The blocks of input channels."""
        return blocks(self.channels_in, self.block)

    @property
    def blocks_out(self) -> int:
        """The blocks of output channels."""
        return blocks(self.channels_out, self.block)

    @property
    def products(self) -> int:
        """The products of blocks that the layer needs at least: the cycles that GEMM takes."""
        groups, outs, ins = self.block_groups
        h, w = (self.height, self.width) if self.transposed else self.product_extents
        return self.image_blocks * groups * outs * ins * self.kernel[0] * self.kernel[1] * h * w

    @property
    def residuals(self) -> int:
        """The number of tensors that the epilogue adds."""
        return sum(isinstance(step, AddResidual) for step in self.epilogue)

    @property
    def has_gaps(self) -> bool:
        """True if no product goes into some of the sums: those between the windows of a transposed convolution."""
        return self.transposed and (self.kernel[0] < self.stride[0] or self.kernel[1] < self.stride[1])

    @property
    def bias(self) -> AddBias | None:
        """The step that adds one."""
        return next((step for step in self.epilogue if isinstance(step, AddBias)), None)

    # ---- shapes

    @property
    def operand_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the operands, packed, by their names: inp and wgt, and if there are such, acc or bia for the
        bias and res0, res1 .. for residuals."""
        groups, outs, ins = self.block_groups
        shapes: dict[str, tuple[int, ...]] = {
            "inp": (self.image_blocks, self.blocks_in, self.height, self.width, self.batch, self.block),
            "wgt": (groups, outs, ins, *self.kernel, self.block, self.block),
        }
        if self.bias is not None and self.bias.by_product:
            shapes["bia"] = (self.blocks_out, self.block, self.block)
        elif self.bias is not None:
            shapes["acc"] = (self.blocks_out, self.batch, self.block)
        for number in range(self.residuals):
            shapes[f"res{number}"] = (
                self.image_blocks, self.blocks_out, *self.product_extents, self.batch, self.block
            )  # fmt: skip
        return shapes

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result, packed."""
        packed = (self.image_blocks, self.blocks_out, *self.extents, self.batch, self.block)
        return (BYTES, *packed) if self.wide else packed


def identity_weights(channels: int, scale: int = 1) -> np.ndarray:
    """The weights of a product by the identity, which has a group for each channel."""
    return np.full((channels, 1, 1, 1), scale, np.int8)


# ---- what layers compute


def product(layer: Layer, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sums. x: (int8, (n, c, h, w)), weights: (int8, (o, c / groups, kh, kw)) -> (int32, (n, o, h', w'))."""
    n, o, (h, w) = x.shape[0], layer.channels_out, layer.product_extents
    (kh, kw), (sh, sw), (dh, dw) = layer.kernel, layer.stride, layer.dilation
    top, left, _, _ = layer.padding
    grouped_x = x.astype(np.int32).reshape(n, layer.groups, -1, layer.height, layer.width)
    grouped_w = weights.astype(np.int32).reshape(layer.groups, o // layer.groups, -1, kh, kw)
    reach_h, reach_w = layer.reach
    if layer.transposed:
        full = np.zeros((n, o, (layer.height - 1) * sh + kh + layer.extra[0] + top + h,
                         (layer.width - 1) * sw + kw + layer.extra[1] + left + w), np.int32)  # fmt: skip
        for i in range(kh):
            for j in range(kw):
                term = np.einsum("ngchw,goc->ngohw", grouped_x, grouped_w[..., i, j])
                into = full[:, :, i : i + (layer.height - 1) * sh + 1 : sh, j : j + (layer.width - 1) * sw + 1 : sw]
                into += term.reshape(into.shape)
        return np.ascontiguousarray(full[:, :, top : top + h, left : left + w])
    padded = np.zeros(
        (*grouped_x.shape[:3], (h - 1) * sh + reach_h + layer.height, (w - 1) * sw + reach_w + layer.width), np.int32
    )
    padded[..., top : top + layer.height, left : left + layer.width] = grouped_x
    total = np.zeros((n, o, h, w), np.int32)
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dh, i * dh + (h - 1) * sh + 1, sh)
            columns = slice(j * dw, j * dw + (w - 1) * sw + 1, sw)
            term = np.einsum("ngchw,goc->ngohw", padded[..., rows, columns], grouped_w[..., i, j], optimize=True)
            total += term.reshape(total.shape)
    return total


def apply(
    layer: Layer,
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None = None,
    residuals: tuple[np.ndarray, ...] = (),
) -> np.ndarray:
    """The result of the layer, on tensors that are not packed. x: (int8, (n, c, h, w)), weights as `product`, bias:
    (int32, (o,)), residuals: (int8, (n, o, h', w')) -> (int8, (n, o, h'', w'')), of a wide layer int32."""
    value = product(layer, x, weights)
    if layer.wide:
        return value
    rest = list(residuals)
    for step in layer.epilogue:
        match step:
            case AddBias():
                assert bias is not None
                value = value + bias[:, None, None]
            case AddResidual(shift):
                value = value + (rest.pop(0).astype(np.int32) << shift)
            case ShiftRight(bits):
                value = value >> bits if bits >= 0 else value << -bits
            case AddNumber(number):
                value = value + np.int32(number)
            case Maximum(number):
                value = np.maximum(value, np.int32(number))
            case Minimum(number):
                value = np.minimum(value, np.int32(number))
            case MaxPool():
                value = _max_pool(step, value, layer.extents)
    return value.astype(np.int8)


def _max_pool(step: MaxPool, value: np.ndarray, extents: tuple[int, int]) -> np.ndarray:
    (kh, kw), (sh, sw), (h, w) = step.kernel, step.stride, extents
    top, left, bottom, right = step.padding
    wide = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(value, wide, constant_values=np.iinfo(np.int32).min)
    windows = [
        padded[:, :, i : i + (h - 1) * sh + 1 : sh, j : j + (w - 1) * sw + 1 : sw] for i in range(kh) for j in range(kw)
    ]
    return np.asarray(np.max(windows, axis=0))
