"""A convolutional network for handwritten digits, trained here, quantized, and run on the accelerator VTA.

    python examples/vta_digits.py [EPOCHS [FOLDER]]

All but the first layer run on the simulator. Writes timeline.svg, timeline.json (for Perfetto) and roofline.svg.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from relay import relay
from relay.codegen.vta.simulator.cycles import estimate, section_timings
from relay.codegen.vta.simulator.roofline import roofline_svg
from relay.codegen.vta.simulator.timeline import to_perfetto, to_svg

BATCH = 40
SHAPES = [(16, 1, 3, 3), (16, 1, 1), (16, 16, 3, 3), (16, 1, 1), (32, 16, 3, 3), (32, 1, 1), (32, 10)]


@relay
def scores(params, x):
    """x: (n, 1, 8, 8) -> (n, 10)."""
    k1, b1, k2, b2, k3, b3, w = params
    h = relay.relu(relay.conv2d(x, k1, padding=1) + b1)
    h = relay.relu(relay.conv2d(h, k2, padding=1) + b2) + h
    h = relay.max_pool2d(relay.relu(relay.conv2d(h, k3, padding=1) + b3), 2)
    return relay.mean(h, axis=(2, 3)) @ w


@relay
def loss(params, x, y):
    return relay.cross_entropy(scores(params, x), y)


def train(params, x, y, epochs, random):
    """Gradient descent with momentum."""
    velocities, step = [np.zeros_like(p) for p in params], relay.value_and_grad(loss, wrt="params")
    for epoch in range(epochs):
        for rows in random.permutation(len(x))[: len(x) // BATCH * BATCH].reshape(-1, BATCH):
            value, gradients = step(tuple(params), x[rows], y[rows])
            velocities = [0.9 * v - 0.05 * np.asarray(g) for v, g in zip(velocities, gradients, strict=True)]
            params = [p + v for p, v in zip(params, velocities, strict=True)]
        print(f"epoch {epoch + 1:2}  loss {float(value):.4f}")
    return tuple(params)


def main(epochs=20, folder="build/vta_digits"):
    random, data = np.random.default_rng(0), load_digits()
    x, y = (data.images[:, None] / 16).astype(np.float32), data.target.astype(np.int32)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    scale = [np.sqrt(2 / np.prod(s[1:])) if len(s) > 3 else 0.0 if len(s) > 2 else 0.3 for s in SHAPES]
    params = [(random.standard_normal(s) * a).astype(np.float32) for s, a in zip(SHAPES, scale, strict=True)]
    params = train(params, train_x, train_y, int(epochs), random)
    network = relay(lambda x: scores(params, x))
    quantized = relay.to_int8(network, [[train_x[n : n + BATCH]] for n in (0, BATCH)], "max", integer=True)
    on_vta = quantized.compile(target="vta")
    batches = [(test_x[n : n + BATCH], test_y[n : n + BATCH]) for n in range(0, len(test_x) - BATCH + 1, BATCH)]
    for name, run in (("float", network), ("vta  ", on_vta)):
        print(f"{name} accuracy {np.mean([np.asarray(run(x)).argmax(1) == y for x, y in batches]):.2%}")
    same = np.array_equal(on_vta(batches[0][0]), quantized.interpret(batches[0][0]))
    print(f"the interpreter, which runs the quantized program, gives {'the same' if same else 'other'} numbers")
    streams = list(on_vta.vta_program().values())
    layers = {name: timing for stream in streams for name, timing in section_timings(stream).items()}
    for name, timing in layers.items():
        print(f"{name}: {timing.cycles} cycles, utilization {timing.utilization:.2f}, {timing.bound} bounds it")
    whole = [estimate(stream.instructions, stream.config) for stream in streams]
    cycles, steps = sum(t.cycles for t in whole), sum(t.gemm_steps for t in whole)
    print(f"{len(streams)} streams for {BATCH} images: {cycles} cycles, utilization {steps / cycles:.2f}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "timeline.svg").write_text(to_svg(whole[0]))
    Path(folder, "timeline.json").write_text(to_perfetto(whole[0], streams[0].instructions))
    Path(folder, "roofline.svg").write_text(roofline_svg({"two virtual threads": list(layers.items())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
