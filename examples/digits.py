"""Train a network on handwritten digits. The whole training step is one Relay function, compiled to native code.

    python examples/digits.py [--epochs N] [--output FOLDER]

The data are scikit-learn's bundled 8x8 digits: 1,797 pictures, of which a fifth is kept for the test. The network has
64 inputs, 128 hidden units with relu, and 10 outputs with softmax cross-entropy; mini-batches of 64, gradient descent
with momentum. Two pictures are written to the output folder: some predictions, and the course of loss and accuracy.
"""

import argparse
import time
from pathlib import Path

import attrs
import matplotlib
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from relay import relay

CLASSES = 10
HIDDEN = 128
BATCH = 64
WANTED_ACCURACY = 0.96

Arrays = tuple[np.ndarray, ...]


@relay
def scores(params, x):
    """The network's output before softmax. x: (n, 64) -> (n, 10)."""
    w1, b1, w2, b2 = params
    return relay.relu(x @ w1 + b1) @ w2 + b2


@relay
def loss(params, x, y):
    """Mean cross-entropy of the labels y: (n,) int32."""
    log_probabilities = relay.log_softmax(scores(params, x))
    return -relay.mean(relay.sum(relay.one_hot(y, 10) * log_probabilities, axis=1))


@relay
def descend(weight, velocity, gradient):
    """One parameter's update with momentum 0.9 and rate 0.05: the new weight and velocity."""
    velocity = 0.9 * velocity - 0.05 * gradient
    return weight + velocity, velocity


@relay
def step(params, velocities, x, y):
    """A whole training step: the loss before it, the new parameters and the new velocities."""
    value, gradients = relay.value_and_grad(loss, wrt=0)(params, x, y)
    w1, b1, w2, b2 = params
    v1, u1, v2, u2 = velocities
    g1, h1, g2, h2 = gradients
    w1, v1 = descend(w1, v1, g1)
    b1, u1 = descend(b1, u1, h1)
    w2, v2 = descend(w2, v2, g2)
    b2, u2 = descend(b2, u2, h2)
    return value, (w1, b1, w2, b2), (v1, u1, v2, u2)


@relay
def predict(params, x):
    """The most likely digit of each picture. x: (n, 64) -> (n,) int32."""
    return relay.argmax(scores(params, x), axis=1)


@attrs.frozen(eq=False)
class Digits:
    """Pictures (n, 64) float32 in [0, 1] and labels (n,) int32, for training and for the test."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    @staticmethod
    def load() -> "Digits":
        """Scikit-learn's bundled set, split 80 to 20."""
        data = load_digits()
        x = (data.data / 16).astype(np.float32)
        y = data.target.astype(np.int32)
        train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
        return Digits(train_x, train_y, test_x, test_y)


@attrs.frozen
class Epoch:
    """What an epoch reached: its mean loss, and the test accuracy after it."""

    loss: float
    accuracy: float


def initial(random: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Parameters (normal with variance 2 / inputs) and velocities (zero)."""

    def weights(inputs: int, outputs: int) -> np.ndarray:
        return (random.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)).astype(np.float32)

    params = (
        weights(64, HIDDEN),
        np.zeros(HIDDEN, np.float32),
        weights(HIDDEN, CLASSES),
        np.zeros(CLASSES, np.float32),
    )
    return params, tuple(np.zeros_like(p) for p in params)


def difference(first: object, second: object) -> float:
    """The largest absolute difference between two results of the same structure."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return max(difference(a, b) for a, b in zip(first, second, strict=True))
    return float(np.max(np.abs(np.asarray(first) - np.asarray(second))))


def accuracy(params, data: Digits) -> float:
    """The share of test pictures that are predicted right."""
    return float(np.mean(np.asarray(predict(params, data.test_x)) == data.test_y))


def train(params, velocities, data: Digits, epochs: int, random: np.random.Generator):
    """Run all epochs over permuted mini-batches; the last, incomplete one of each epoch is dropped."""
    history = []
    batches = len(data.train_x) // BATCH
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  test accuracy {task.fields[accuracy]:.2%}"),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("", total=epochs * batches, loss=float("nan"), accuracy=accuracy(params, data))
        for _ in range(epochs):
            order = random.permutation(len(data.train_x))[: batches * BATCH].reshape(batches, BATCH)
            losses = []
            for rows in order:
                value, params, velocities = step(params, velocities, data.train_x[rows], data.train_y[rows])
                losses.append(float(value))
                progress.update(task, advance=1)
            history.append(Epoch(float(np.mean(losses)), accuracy(params, data)))
            progress.update(task, loss=history[-1].loss, accuracy=history[-1].accuracy)
    return params, history


def draw(params, data: Digits, history: list[Epoch], folder: Path) -> list[Path]:
    """Write the two pictures; return their files."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    predicted = np.asarray(predict(params, data.test_x))
    wrong = np.flatnonzero(predicted != data.test_y)
    right = np.flatnonzero(predicted == data.test_y)
    shown = np.concatenate([right[: 24 - min(8, len(wrong))], wrong[:8]])
    figure, axes = pyplot.subplots(3, 8, figsize=(8, 3.8))
    for axis, index in zip(axes.flat, shown, strict=True):
        axis.imshow(data.test_x[index].reshape(8, 8), cmap="gray_r")
        mistaken = predicted[index] != data.test_y[index]
        title = f"{predicted[index]}, is {data.test_y[index]}" if mistaken else str(predicted[index])
        axis.set_title(title, color="crimson" if mistaken else "black", fontsize=10)
        axis.axis("off")
    figure.suptitle("Predicted digits (wrong ones in red)")
    figure.tight_layout()
    pictures = [folder / "digits.png", folder / "training.png"]
    figure.savefig(pictures[0], dpi=120)
    pyplot.close(figure)

    figure, axis = pyplot.subplots(figsize=(6, 3.6))
    epochs = np.arange(1, len(history) + 1)
    axis.semilogy(epochs, [epoch.loss for epoch in history], color="C0")
    axis.set_xlabel("epoch")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylabel("training loss", color="C0")
    right_axis = axis.twinx()
    right_axis.plot(epochs, [100 * epoch.accuracy for epoch in history], color="C1")
    right_axis.set_ylabel("test accuracy, %", color="C1")
    figure.tight_layout()
    figure.savefig(pictures[1], dpi=120)
    pyplot.close(figure)
    return pictures


def main() -> None:
    """Train, compare one step with the interpreter, draw; exit with an error below the wanted accuracy."""
    parser = argparse.ArgumentParser(description="Train a network on handwritten digits with Relay.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent.parent / "build" / "digits")
    options = parser.parse_args()

    started = time.perf_counter()
    random = np.random.default_rng(0)
    data = Digits.load()
    params, velocities = initial(random)

    first = (params, velocities, data.train_x[:BATCH], data.train_y[:BATCH])
    compiled = step(*first)
    print(f"compiled the training step in {time.perf_counter() - started:.1f} s")
    near = difference(compiled, step.interpret(*first))
    print(f"one step, compiled against interpreted: largest difference {near:.1e}")
    if not near < 1e-5:
        raise SystemExit("the compiled step and the interpreter disagree")

    params, history = train(params, velocities, data, options.epochs, random)
    reached = accuracy(params, data)
    for picture in draw(params, data, history, options.output):
        print(f"wrote {picture}")
    print(f"test accuracy {reached:.2%} after {options.epochs} epochs, {time.perf_counter() - started:.1f} s in all")
    if reached < WANTED_ACCURACY:
        raise SystemExit(f"the accuracy is below {WANTED_ACCURACY:.0%}")


if __name__ == "__main__":
    main()
