"""Repeated calls of programs for GPUs: arguments like those of an earlier call go to its program at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay.calling.array import Array
from relay.calling.devices.device_array import DeviceArray
from relay.calling.fast_path import GUARD_FAILURE
from relay.calling.results import wrap
from relay.compilation.stages import CompiledSignature


def repeat_on_gpu(arguments: Sequence[Any], lowered: CompiledSignature) -> Callable[[list[Any]], Any] | None:
    """A function of a call's arguments that runs the program for arrays of the same types and shapes, and gives
    GUARD_FAILURE for others; None if some argument is not an array."""
    if not arguments or not {*map(type, arguments)} <= {np.ndarray, Array, DeviceArray}:
        return None
    expected = [(argument.dtype, argument.shape) for argument in arguments]
    program, result = lowered.program, lowered.result

    def call(given: list[Any]) -> Any:
        for position, (argument, (dtype, shape)) in enumerate(zip(given, expected, strict=True)):
            kind = type(argument)
            leaf = argument if kind is np.ndarray else argument.tensor if kind is DeviceArray else argument.numpy()
            if leaf.shape != shape or leaf.dtype != dtype:
                return GUARD_FAILURE
            given[position] = leaf
        return wrap(program(given), result)

    return call


__all__ = ["repeat_on_gpu"]
