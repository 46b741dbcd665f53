"""ResNet-18 on the accelerator VTA, from floats to streams: how long each step takes, and whether the numbers are the
interpreter's.

    python benchmarks/vta_resnet.py [SIZE]

The weights are random; SIZE, 224 without one, is that of the image's sides. Times are of the processor, in seconds.
"""

import sys
import time

import numpy as np

import relay as rl
from relay import relay
from relay.codegen.vta.simulator.cycles import estimate

RANDOM = np.random.default_rng(0)
WIDTH = 64


def kernel(outs, ins, size, gain=1.0):
    """Random weights that keep the size of activations."""
    return (RANDOM.normal(size=(outs, ins, size, size)) * gain * np.sqrt(2 / (ins * size * size))).astype(np.float32)


def block(outs, ins):
    """Two convolutions and their biases."""
    biases = [(RANDOM.normal(size=(outs, 1, 1)) * 0.1).astype(np.float32) for _ in range(2)]
    return kernel(outs, ins, 3), biases[0], kernel(outs, outs, 3, 0.5), biases[1]


STEM, HEAD = kernel(WIDTH, 3, 7), (RANDOM.normal(size=(8 * WIDTH, 1000)) * 0.1).astype(np.float32)
FIRST = [block(WIDTH, WIDTH) for _ in range(2)]
STAGES = [(block(2 * n, n), block(2 * n, 2 * n), kernel(2 * n, n, 1)) for n in (WIDTH, 2 * WIDTH, 4 * WIDTH)]


@relay
def residual(x, parameters):
    first, bias, second, other = parameters
    h = rl.relu(rl.conv2d(x, first, padding=1) + bias)
    return rl.relu(rl.conv2d(h, second, padding=1) + other + x)


@relay
def reduction(x, parameters, shortcut):
    first, bias, second, other = parameters
    h = rl.relu(rl.conv2d(x, first, padding=1, stride=2) + bias)
    return rl.relu(rl.conv2d(h, second, padding=1) + other + rl.conv2d(x, shortcut, stride=2))


@relay
def resnet(x):
    h = rl.max_pool2d(rl.relu(rl.conv2d(x, STEM, stride=2, padding=3)), 3, stride=2, padding=1)
    for parameters in FIRST:
        h = residual(h, parameters)
    for first, second, shortcut in STAGES:
        h = residual(reduction(h, first, shortcut), second)
    return rl.mean(h, axis=(2, 3)) @ HEAD


def timed(name, step):
    """The step's result; its time is printed."""
    begin = time.process_time()
    found = step()
    print(f"{name:36}{time.process_time() - begin:7.1f} s", flush=True)
    return found


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 224
    image = RANDOM.normal(size=(1, 3, size, size)).astype(np.float32)
    quantized = timed("quantization to 8 bits", lambda: rl.to_int8(resnet, [[image]], "max", integer=True))
    executable = timed("compilation, streams included", lambda: quantized.compile(target="vta"))
    first = timed("first call on the simulator", lambda: executable(image))
    found = timed("second call", lambda: executable(image))
    wanted = timed("interpreter", lambda: quantized.interpret(image))
    cycles = sum(estimate(p.instructions, p.config).cycles for p in executable.vta_program().values())
    same = np.array_equal(found, wanted) and np.array_equal(first, wanted)
    print(f"{cycles:,} cycles; the numbers are {'' if same else 'NOT '}those of the interpreter")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
