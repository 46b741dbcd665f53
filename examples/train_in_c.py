"""Train in C: a program without Python runs a training step that Relay has compiled.

    python examples/train_in_c.py [STEPS]

`train` is a training step, with its gradient inside. It is compiled for its argument types and exported, as a shared
library and a header; then `train_in_c.c` is compiled by the system's C compiler, and started. It makes up its data,
trains, and prints the loss. All that it needs to run is the library and TVM's small runtime.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from relay import Float, Tensor, relay

HERE = Path(__file__).resolve().parent


@relay
def loss(w1, b1, w2, x, y):
    """The mean squared error of a network with one hidden layer. x: (64, 2), y: (64,)."""
    return ((relay.tanh(x @ w1 + b1) @ w2 - y) ** 2).mean()


@relay
def train(
    w1: Tensor[Float, (2, 16)],
    b1: Tensor[Float, (16,)],
    w2: Tensor[Float, (16,)],
    x: Tensor[Float, (64, 2)],
    y: Tensor[Float, (64,)],
    rate: Tensor[Float, ()],
):
    """The loss, and the parameters after a step of gradient descent."""
    value, (d1, db, d2) = relay.value_and_grad(loss, wrt=("w1", "b1", "w2"))(w1, b1, w2, x, y)
    return value, w1 - rate * d1, b1 - rate * db, w2 - rate * d2


def runtime_libraries() -> list[Path]:
    """TVM's runtime; finding its files does not load it."""
    ffi, tvm = (Path(find_spec(name).origin).parent / "lib" for name in ("tvm_ffi", "tvm"))
    return [ffi / "libtvm_ffi.so", tvm / "libtvm_runtime.so"]


def main(steps=5000):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.compile().export(folder / "train.so", header=folder / "train.h")
        print("train.so has", (folder / "train.so").stat().st_size // 1024, "KiB")
        source, program = HERE / "train_in_c.c", folder / "train"
        subprocess.run(["cc", "-O2", f"-I{folder}", source, "-o", program, "-lm", "-ldl"], check=True)
        subprocess.run([program, folder / "train.so", str(steps), *runtime_libraries()], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
