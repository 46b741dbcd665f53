"""Weights that take less room: in 8 bits, rounded to few values, and merged where they are equal.

    quantize_weights     w                          dequantize(q, s), q of int8
    round_weights        [0.11, 0.12, .., 0.9]      the nearest of `steps` numbers from the least to the largest
    merge_constants      two equal arrays           one array, which libraries and texts hold once

Weights are the constants of a program that are arrays of floats, of at least `min_size` elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from relay.ir.expr import Atom, Binding, Block, Constant, Module
from relay.ir.rebuild import map_parts, map_terminator, rebind, rebuild_block
from relay.ir.types import INT8, INT32, BaseType
from relay.operator import Emitter, lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass

LARGEST = 127
"""The largest 8-bit number that stands for a weight; so does its negative."""


@module_pass
def quantize_weights(module: Module, min_size: int = 4096) -> Module:
    """The module with weights as 8-bit numbers and a scale for each array, which are made floats where they are read.
    A weight that is not finite keeps its array as it is. Constants of up to 8 KiB are folded again when a program is
    compiled."""

    def change(body: Block) -> Block:
        return _WeightQuantizer(min_size).block(body, {})

    return map_bodies(module, lambda function: change(function.body))


class _WeightQuantizer:
    """One function. `made` are the floats of weights in scope, by the weights' arrays."""

    def __init__(self, min_size: int) -> None:
        self.min_size = min_size

    def block(self, block: Block, around: dict[int, Atom]) -> Block:
        made = dict(around)
        bindings: list[Binding] = []

        def weight(atom: Atom) -> Atom:
            if not isinstance(atom, Constant) or not is_weight(atom, self.min_size):
                return atom
            if id(atom.value) not in made:
                emitter = Emitter(atom.span)
                made[id(atom.value)] = _dequantized(emitter, atom)
                bindings.extend(emitter.bindings)
            return made[id(atom.value)]

        for binding in block.bindings:
            value = map_parts(binding.value, atom=weight)
            value = map_parts(value, block=lambda inner: self.block(inner, made))
            bindings.append(rebind(binding, value))
        return rebuild_block(block, bindings, map_terminator(block.terminator, weight))


def is_weight(constant: Constant, min_size: int) -> bool:
    """True for an array of finite floats of this many elements at least."""
    base = constant.type.base
    is_float = isinstance(base, BaseType) and base.is_float
    return is_float and constant.value.size >= max(min_size, 2) and bool(np.isfinite(constant.value).all())


def scale_of(array: np.ndarray) -> float:
    """The number whose product with `LARGEST` is the largest absolute value of an array; 1 for zeros."""
    return float(np.abs(array.astype(np.float64)).max(initial=0.0)) / LARGEST or 1.0


def to_8_bits(array: np.ndarray, scale: float) -> np.ndarray:
    """An array in 8 bits."""
    operands = [array, np.asarray(scale, array.dtype), np.asarray(0, np.int32)]
    return np.asarray(lookup("quantize").evaluate(operands, {"axis": -1, "out_dtype": INT8}))


def _dequantized(emitter: Emitter, constant: Constant) -> Atom:
    scale = scale_of(constant.value)
    base = constant.type.base
    assert isinstance(base, BaseType)
    whole = emitter.constant(to_8_bits(constant.value, scale), INT8)
    zero = emitter.constant(0, INT32)
    return emitter.call(lookup("dequantize"), (whole, emitter.constant(scale, base), zero), {"axis": -1}).atom


@module_pass
def round_weights(module: Module, steps: int = 256, min_size: int = 16) -> Module:
    """The module with weights rounded to the nearest of `steps` numbers, at equal distances from the least to the
    largest of their array. They take the same room, and much less once a file is compressed. Raises ValueError for
    fewer than 2 steps."""
    if steps < 2:
        raise ValueError(f"weights are rounded to at least 2 numbers, found steps={steps}")

    def round_values(constant: Constant) -> Constant:
        if not is_weight(constant, min_size):
            return constant
        exact = constant.value.astype(np.float64)
        low, high = exact.min(), exact.max()
        width = (high - low) / (steps - 1) or 1.0
        values = low + np.round((exact - low) / width) * width
        return Constant(values.astype(constant.value.dtype), constant.span)

    return _map_constants(module, round_values)


@module_pass
def merge_constants(module: Module) -> Module:
    """The module with equal constant arrays as one."""
    known: dict[Hashable, Constant] = {}

    def representative(constant: Constant) -> Constant:
        array = constant.value
        if array.size < 2:
            return constant
        return known.setdefault((str(array.dtype), array.shape, array.tobytes()), constant)

    return _map_constants(module, representative)


def _map_constants(module: Module, change: Callable[[Constant], Constant]) -> Module:
    made: dict[int, Constant] = {}

    def atom(atom: Atom) -> Atom:
        if not isinstance(atom, Constant):
            return atom
        return made.setdefault(id(atom.value), change(atom)) if id(atom.value) not in made else made[id(atom.value)]

    def block(block_: Block) -> Block:
        bindings = [rebind(b, map_parts(b.value, atom=atom, block=block)) for b in block_.bindings]
        return rebuild_block(block_, bindings, map_terminator(block_.terminator, atom))

    return map_bodies(module, lambda function: block(function.body))
