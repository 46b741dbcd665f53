"""Tensors as the accelerator has them in DRAM: channels in blocks, the last axis; and back.

    activations  NCHW -> NCHW1n16c    (n, c, h, w)   -> (n / batch, c / block, h, w, batch, block)
    weights      OIHW -> OIHW16o16i   (o, i, kh, kw) -> (groups, o / block, i / block, kh, kw, block, block)
    biases       C    -> C1n16c       (c,)           -> (c / block, batch, block)
    biases       C    -> C16o16i      (c,)           -> (c / block, block, block) as weights of `bias_row`

Channels that are missing in the last block are zeros. Groups whose channels do not fill blocks are put together into
larger ones that do, whose weights are zeros off the diagonal.
"""

from __future__ import annotations

import math

import numpy as np


def blocks(count: int, block: int) -> int:
    """The number of blocks that hold that many channels."""
    return -(-count // block)


def _fill(array: np.ndarray, axis: int, multiple: int) -> np.ndarray:
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, missing)
    return np.pad(array, widths)


def pack_activations(array: np.ndarray, batch: int = 1, block: int = 16) -> np.ndarray:
    """(n, c, h, w) -> (n / batch, c / block, h, w, batch, block), with zeros for what is missing."""
    filled = _fill(_fill(array, 0, batch), 1, block)
    n, c, h, w = filled.shape
    split = filled.reshape(n // batch, batch, c // block, block, h, w)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def unpack_activations(packed: np.ndarray, images: int, channels: int) -> np.ndarray:
    """(n / batch, c / block, h, w, batch, block) -> (images, channels, h, w)."""
    n, c, h, w, batch, block = packed.shape
    array = packed.transpose(0, 4, 1, 5, 2, 3).reshape(n * batch, c * block, h, w)
    return np.ascontiguousarray(array[:images, :channels])


def pack_weights(weights: np.ndarray, groups: int = 1, block: int = 16) -> np.ndarray:
    """(o, i / groups, kh, kw) -> (block groups, o, i, kh, kw, block, block) as `block_groups` counts them."""
    o, i, kh, kw = weights.shape
    count, outs, ins = block_groups(o, i * groups, groups, block)
    together, size = _groups_together(o // groups, i, groups, block), o // groups
    filled = np.zeros((count, outs * block, ins * block, kh, kw), weights.dtype)
    for position in range(groups):
        whole, part = divmod(position, together)
        inside = filled[whole, part * size : (part + 1) * size, part * i : (part + 1) * i]
        inside[:] = weights[position * size : (position + 1) * size]
    split = filled.reshape(count, outs, block, ins, block, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 1, 3, 5, 6, 2, 4))


def block_groups(channels_out: int, channels_in: int, groups: int, block: int = 16) -> tuple[int, int, int]:
    """The groups that blocks are in, and for each of them the blocks of output and of input channels.

    Raises ValueError for channels that are not in equal groups.
    """
    if channels_out % groups or channels_in % groups:
        raise ValueError(f"{channels_in} and {channels_out} channels are not in {groups} equal groups")
    outs, ins = channels_out // groups, channels_in // groups
    together = _groups_together(outs, ins, groups, block)
    return blocks(groups, together), blocks(together * outs, block), blocks(together * ins, block)


def _groups_together(outs: int, ins: int, groups: int, block: int) -> int:
    """The number of groups of this many output and input channels that form one group of blocks: the fewest that
    fill their blocks, so that no block belongs to two. All groups are one if these are not among them."""
    fewest = math.lcm(block // math.gcd(outs, block), block // math.gcd(ins, block))
    fills_one = fewest * outs == fewest * ins == block  # then the last one may have fewer
    return fewest if groups % fewest == 0 or fills_one else groups


def pack_bias(bias: np.ndarray, batch: int = 1, block: int = 16) -> np.ndarray:
    """(c,) -> (c / block, batch, block) of int32, the same for each row of a batch."""
    split = _fill(np.asarray(bias, np.int32), 0, block).reshape(-1, 1, block)
    return np.ascontiguousarray(np.broadcast_to(split, (split.shape[0], batch, block)))


_DIGIT = 64


def bias_row(block: int = 16, batch: int = 1) -> np.ndarray:
    """The activations whose products with weights are biases. -> (int8, (batch, block))."""
    return np.array([[_DIGIT] * (block - 1) + [1]] * batch, np.int8)


def is_product(bias: np.ndarray, block: int = 16) -> bool:
    """True if a bias is a product of 8-bit weights and `bias_row`."""
    limit = _DIGIT * 127 * (block - 1)
    return bool((np.abs(np.asarray(bias, np.int64)) <= limit).all())


def pack_bias_weights(bias: np.ndarray, block: int = 16) -> np.ndarray:
    """(c,) -> (int8, (c / block, block, block)), the weights whose product with `bias_row` is the bias. Raises
    ValueError where there are none."""
    if not is_product(bias, block):
        raise ValueError(f"biases are at most {_DIGIT * 127 * (block - 1)} for {block} channels in a block")
    digits, units = np.divmod(np.asarray(bias, np.int64) + _DIGIT // 2, _DIGIT)
    lanes = np.arange(block - 1)
    share, rest = np.divmod(digits[:, None], block - 1)
    parts = share + (lanes < rest)
    weights = np.concatenate([parts, units[:, None] - _DIGIT // 2], axis=1)
    return _fill(weights.astype(np.int8), 0, block).reshape(-1, block, block)
