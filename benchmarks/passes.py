"""What the passes cost, and what they are worth.

    python benchmarks/passes.py cost                    seconds (of the processor) of each pass at 1k, 3k, 10k bindings
    python benchmarks/passes.py worth [--seconds 0.2]   the zoo's models at the levels 0 to 3, and at level 3 with each
                                                        pass left out: time of the processor and bytes of workspace

`cost` takes programs of blocks with branches, loops and calls. A pass that is linear takes 10 times as long for the
last column as for the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import relay
from relay import Tensor
from relay.codegen.runtime import cpu
from relay.transform import LEVELS, Pipeline
from relay.transform.passes import PASSES
from relay.transform.pipeline import count

SIZES = (1_000, 3_000, 10_000)
LEAST = 1e-3  # seconds; less is noise and is not shown
LONG = 0.3  # seconds

PARAGRAPH = """
  let %a{i}: Tensor[float64, (3,)] = multiply(%a{p}, {c}f64);
  let %b{i}: Tensor[float64, (3,)] = add(%a{i}, %x);
  let %c{i}: Tensor[bool, ()] = less(%n, {i}i32);
  let %d{i}: Tensor[float64, (3,)] = if %c{i} then {{
    let %e{i}: Tensor[float64, (3,)] = tanh(%b{i});
    let %f{i}: Tensor[float64, (3,)] = add(%e{i}, -0.0f64);
    yield %f{i}
  }} else {{ yield %b{i} }};
  let %t{i}: (Tensor[float64, (3,)], Tensor[int32, ()]) = (%d{i}, %n);
  let %g{i}: Tensor[float64, (3,)] = %t{i}.0;
  let %h{i}: Tensor[float64, (3,)], %z{i}: Tensor[float64, (3,)] = loop 'l{i} for %k{i}: Tensor[int32, ()] < 9i32
      (%p{i}: Tensor[float64, (3,)] = %g{i}, %q{i}: Tensor[float64, (3,)] = %x) {{
    let %r{i}: Tensor[float64, (3,)] = multiply(%p{i}, %q{i});
    let %s{i}: Tensor[float64, (3,)] = exp(%x);
    let %u{i}: Tensor[float64, (3,)] = add(%r{i}, %s{i});
    next 'l{i}(%u{i}, %q{i})
  }};
  let %v{i}: Tensor[float64, (3,)] = @g(%h{i});
  let %w{i}: Tensor[float64, (3,)] = add(2.0f64, %v{i});
  let %a{j}: Tensor[float64, (3,)] = maximum(%w{i}, %b{i});
"""


def program(bindings: int) -> relay.ir.expr.Module:
    """A program of about this many bindings: paragraphs with a branch, a tuple, a loop and a call."""
    rounds = bindings // 16
    text = "".join(PARAGRAPH.format(i=2 * i + 2, p=2 * i + 1, j=2 * i + 3, c=0.5 + i % 7) for i in range(rounds))
    return relay.parse(f"""
entry fn f(%x: Tensor[float64, (3,)], %a1: Tensor[float64, (3,)], %n: Tensor[int32, ()]) -> Tensor[float64, (3,)] {{
{text}
  %a{2 * rounds + 1}
}}
fn g(%x: Tensor[float64, (3,)]) -> Tensor[float64, (3,)] {{
  let %y: Tensor[float64, (3,)] = sin(%x);
  %y
}}
""")


def cost() -> None:
    """Print the seconds of each pass, and of the pipelines of the levels."""
    modules = [program(size) for size in SIZES]
    print(f"{'pass':34}", *(f"{count(m):>9}" for m in modules), "  last / first")
    for name in (n for n in PASSES if n not in ("specialize", "structure", "differentiate")):
        row(name, [timed(lambda m=m, n=name: Pipeline(n)(m)) for m in modules])
    for level, names in enumerate(LEVELS):
        row(f"level {level}", [timed(lambda m=m, n=names: Pipeline(n)(m)) for m in modules])
    for name, call in (("to_text", relay.to_text), ("alpha_hash", relay.ir.expr.Module.alpha_hash)):
        row(name, [timed(lambda m=m, c=call: c(m)) for m in modules])
    texts = [relay.to_text(m) for m in modules]
    row("parse", [timed(lambda t=t: relay.parse(t)) for t in texts])


def timed(call: Callable[[], object]) -> float:
    """The best of three times of the processor; what takes long is measured once."""
    best, total = float("inf"), 0.0
    for _ in range(3):
        start = time.process_time()
        call()
        seconds = time.process_time() - start
        best, total = min(best, seconds), total + seconds
        if total > LONG:
            break
    return best


def row(name: str, seconds: Sequence[float]) -> None:
    """Print a line of the first table."""
    ratio = f"{seconds[-1] / seconds[0]:8.1f}" if seconds[0] >= LEAST else "       -"
    print(f"{name:34}", *(f"{s:9.4f}" for s in seconds), f"  {ratio}", flush=True)


# ---- what passes are worth


@relay
def recurrent(xs, w, u, b, h):
    """A recurrent net over a sequence."""
    for t in range(xs.shape[0]):
        h = relay.tanh(xs[t] @ w + h @ u + b)
    return (h * h).sum()


@relay
def perceptron(w1, b1, w2, b2, x, y):
    """A perceptron with one hidden layer, and its loss."""
    hidden = relay.tanh(x @ w1 + b1)
    return -(relay.log_softmax(hidden @ w2 + b2) * y).sum()


@relay
def convolutional(x, k1, k2, w):
    """Two convolutions on channels first, and a layer on the means of their channels."""
    hidden = relay.max_pool2d(relay.relu(relay.conv2d(x, k1, padding=1)), 2)
    hidden = relay.relu(relay.conv2d(hidden, k2, padding=1))
    return (relay.mean(hidden, axis=(2, 3)) @ w).sum()


@relay
def power(x, n):
    """x ** n by recursion."""
    return x if n <= 1 else x * power(x, n - 1)


@relay
def newton(x):
    """A square root by iteration."""
    guess = x
    while relay.abs(guess * guess - x) > 1e-9:
        guess = 0.5 * (guess + x / guess)
    return guess


@relay
def moments(x):
    """Elementwise arithmetic with powers, and sums."""
    centerd = (x - x.mean()) / 3.0
    return ((centerd**2.0).sum() + (centerd**3.0).sum() + x.sum()) * 1.0


@relay
def attention(x, q, k, v, scale, a, b, c):
    """Three products of one operand, a factor of the columns of one, and a chain of matrices in the wrong order."""
    weights = relay.softmax((x @ q * scale) @ (x @ k).T)
    return ((weights @ (x @ v)).sum() + (a @ (b @ c)).sum()) * 1.0


@dataclass
class Body:
    """A point that moves."""

    place: Tensor
    speed: Tensor


@relay
def step(body, force, count):
    """`count` steps under a force, by recursion."""
    speed = body.speed + 0.01 * force
    body = Body(body.place + 0.01 * speed, speed)
    return body if count <= 1 else step(body, force, count - 1)


@relay
def falling(place, speed, forces):
    """A record in a loop, with small steps by recursion, and a cell."""
    body, lowest = Body(place, speed), relay.ref(place.sum())
    for i in range(forces.shape[0]):
        body = step(body, forces[i], 4)
        if body.place.sum() < lowest.value:
            lowest.value = body.place.sum()
    return lowest.value + body.place.sum()


def models() -> dict[str, tuple[Any, list[Any]]]:
    """Functions and arguments."""
    rng = np.random.default_rng(1)

    def array(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) * 0.1

    perceptron_arguments = [array(64, 64), array(64), array(64, 10), array(10), array(32, 64), np.abs(array(32, 10))]
    recurrent_arguments = [array(50, 32), array(32, 64), array(64, 64), array(64), array(64)]
    return {
        "perceptron": (relay.grad(perceptron), perceptron_arguments),
        "recurrent": (relay.grad(recurrent), recurrent_arguments),
        "convolutional": (
            relay.grad(convolutional),
            [array(4, 3, 16, 16), array(16, 3, 3, 3), array(32, 16, 3, 3), array(32, 10)],
        ),
        "recursion": (relay.grad(power, wrt=0), [np.float64(1.01), np.int32(20)]),
        "newton": (relay.grad(newton), [np.float64(2)]),
        "moments": (relay.grad(moments), [array(10_000)]),
        "attention": (
            relay.value_and_grad(attention, wrt=(1, 2, 3)),
            [array(128, 64), *(array(64, 16) for _ in "qkv"), array(16), array(8, 500), array(500, 4), array(4, 200)],
        ),
        "falling": (relay.grad(falling, wrt=(0, 1)), [array(4), array(4), array(100, 4)]),
    }


def compiled(module: relay.ir.expr.Module, arguments: list[Any]) -> tuple[Callable[[], object], int]:
    """A call of a module's native program, and the bytes of its workspace."""
    program = cpu.compile_module(module, threads=1)
    values = [np.asarray(a) for a in arguments]
    return lambda: program(values), program.native.workspace


def processor_time(call: Callable[[], object], seconds: float) -> float:
    """The least time of the processor that a call takes, of samples of at least 2 ms."""

    def sample(number: int) -> float:
        start = time.process_time()
        for _ in range(number):
            call()
        return (time.process_time() - start) / number

    number = 1
    while sample(number) * number < 2e-3:
        number *= 2
    end = time.perf_counter() + seconds
    best = sample(number)
    while time.perf_counter() < end:
        best = min(best, sample(number))
    return best


def worth(seconds: float, names: Sequence[str]) -> None:
    """Print times and workspace of the levels and without single passes, relative to level 3. No names: all models."""
    found = {name: model for name, model in models().items() if not names or name in names}
    typed = {name: function.typed(*arguments) for name, (function, arguments) in found.items()}
    best = {name: compiled(Pipeline.for_level(3)(typed[name]), found[name][1]) for name in found}
    print(f"{'time and workspace / level 3':34}", *(f"{name:>16}" for name in found))
    shortest = {name: processor_time(call, seconds) for name, (call, _) in best.items()}
    print(f"{'level 3':34}", *(f"{shortest[n] * 1e6:8.1f}us {best[n][1]:>5}B" for n in found))
    for level in range(3):
        print_ratios(f"level {level}", {n: Pipeline.for_level(level)(typed[n]) for n in found}, found, best, seconds)
    steps = Pipeline.for_level(3).passes
    # A pass that the others need is not left out: derivatives are part of the program.
    needed = {"specialize", "structure", "differentiate", "expand_composites"}
    for left_out in dict.fromkeys(s.name for s in steps if s.name not in needed):
        rest = [s for s in steps if s.name != left_out]
        made = {n: Pipeline(rest, stage="typed")(typed[n]) for n in found}
        print_ratios(f"without {left_out}", made, found, best, seconds)


def print_ratios(
    name: str,
    made: dict[str, relay.ir.expr.Module],
    found: dict[str, tuple[Any, list[Any]]],
    best: dict[str, tuple[Callable[[], object], int]],
    seconds: float,
) -> None:
    """Print a line of the second table. Both programs are measured in turn, since machines are busier at some times."""
    cells = []
    for model, module in made.items():
        (call, workspace), (reference, least) = compiled(module, found[model][1]), best[model]
        times = [(processor_time(call, seconds / 4), processor_time(reference, seconds / 4)) for _ in range(4)]
        ratio = min(t for t, _ in times) / min(t for _, t in times)
        cells.append(f"{ratio:8.2f} {workspace / max(least, 1):7.2f}")
    print(f"{name:34}", *cells, flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description="What the passes cost, and what they are worth.")
    parser.add_argument("table", choices=("cost", "worth"))
    parser.add_argument("--models", default="", help="of `worth`: only these, with commas between them")
    parser.add_argument("--seconds", type=float, default=0.2, help="how long each cell of `worth` is measured")
    options = parser.parse_args()
    if options.table == "cost":
        cost()
    else:
        worth(options.seconds, [name for name in options.models.split(",") if name])


if __name__ == "__main__":
    main()
