"""ResNet-18 with random weights, from floats to streams: the interpreter's bits.

A quarter of the channels; all of them with RELAY_TEST_ALL=1.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import relay
from relay.codegen.vta.program import Role
from relay.codegen.vta.simulator.run import simulate
from relay.eval import interpreter

RANDOM = np.random.default_rng(0)
WIDTH, SIZE = (64, 64) if os.environ.get("RELAY_TEST_ALL") else (16, 32)


def kernel(outs: int, ins: int, size: int, gain: float = 1.0) -> np.ndarray:
    """Random weights that keep the size of activations."""
    return (RANDOM.normal(size=(outs, ins, size, size)) * gain * np.sqrt(2 / (ins * size * size))).astype(np.float32)


def block(outs: int, ins: int) -> tuple[np.ndarray, ...]:
    """Two convolutions and their biases."""
    biases = [(RANDOM.normal(size=(outs, 1, 1)) * 0.1).astype(np.float32) for _ in range(2)]
    return kernel(outs, ins, 3), biases[0], kernel(outs, outs, 3, 0.5), biases[1]


STEM, HEAD = kernel(WIDTH, 3, 7), (RANDOM.normal(size=(8 * WIDTH, 10)) * 0.1).astype(np.float32)
A1, A2 = block(WIDTH, WIDTH), block(WIDTH, WIDTH)
B1, B2, TO_B = block(2 * WIDTH, WIDTH), block(2 * WIDTH, 2 * WIDTH), kernel(2 * WIDTH, WIDTH, 1)
C1, C2, TO_C = block(4 * WIDTH, 2 * WIDTH), block(4 * WIDTH, 4 * WIDTH), kernel(4 * WIDTH, 2 * WIDTH, 1)
D1, D2, TO_D = block(8 * WIDTH, 4 * WIDTH), block(8 * WIDTH, 8 * WIDTH), kernel(8 * WIDTH, 4 * WIDTH, 1)


@relay
def residual(x: Any, parameters: Any) -> Any:
    first, bias, second, other = parameters
    h = relay.relu(relay.conv2d(x, first, padding=1) + bias)
    return relay.relu(relay.conv2d(h, second, padding=1) + other + x)


@relay
def reduction(x: Any, parameters: Any, shortcut: Any) -> Any:
    first, bias, second, other = parameters
    h = relay.relu(relay.conv2d(x, first, padding=1, stride=2) + bias)
    return relay.relu(relay.conv2d(h, second, padding=1) + other + relay.conv2d(x, shortcut, stride=2))


@relay
def resnet(x: Any) -> Any:
    h = relay.max_pool2d(relay.relu(relay.conv2d(x, STEM, stride=2, padding=3)), 3, stride=2, padding=1)
    h = residual(residual(h, A1), A2)
    h = residual(reduction(h, B1, TO_B), B2)
    h = residual(reduction(h, C1, TO_C), C2)
    h = residual(reduction(h, D1, TO_D), D2)
    return relay.mean(h, axis=(2, 3)) @ HEAD


def test_resnet() -> None:
    x = RANDOM.normal(size=(1, 3, SIZE, SIZE)).astype(np.float32)
    quantized = relay.to_int8(resnet, [[x]], "max", integer=True)
    executable = quantized.compile(target="vta")
    found = executable(x)
    np.testing.assert_array_equal(found, interpreter.run(quantized.module, [x]))
    exact = resnet.interpret(x)
    assert np.abs(found - exact).max() < 0.15 * np.abs(exact).max()
    names = [[s.name.rsplit("_", 1)[0] for s in p.sections] for p in executable.vta_program().values()]
    convolutions = ["vta_quantized_conv2d"] * 19  # all but the first one
    assert names == [["vta_max_pool2d", *convolutions], ["vta_quantized_dense"]]
    for program in executable.vta_program().values():
        inputs = {b.name: np.ones(b.shape, np.int8) for b in program.buffers if b.role is Role.INPUT}
        simulate(program, inputs)  # with all rules
