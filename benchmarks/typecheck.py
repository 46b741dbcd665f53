"""Time of the processor for type inference per binding, in blocks of 1,000 to 100,000 bindings: it should not grow.

    python benchmarks/typecheck.py [--quick]

`chain` are elementwise operations on one shape, `products` matrix products, `literals` numbers whose dtype is found at
the end, `symbolic` a chain whose sizes are symbolic. The last line is what a language server does after each pause in
typing: a check of 500 lines of which one has changed.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import numpy as np

import relay
from relay import Float, Tensor, dims
from relay.cli.lsp.analysis import Analyzer
from relay.cli.lsp.documents import Text


def _text(lines: list[str], parameters: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"def f({parameters}):\n{body}\n    return x\n"


def _chain(count: int) -> tuple[str, list[object] | None]:
    return _text(["x = x * c + d"] * (count // 2), "x, c, d"), [np.zeros((4, 5), np.float32)] * 3


def _products(count: int) -> tuple[str, list[object] | None]:
    return _text(["x = x @ c"] * count, "x, c"), [np.zeros((4, 4), np.float32)] * 2


def _literals(count: int) -> tuple[str, list[object] | None]:
    lines = [*["s = s * 0.5 + 1"] * (count // 4), "x = x + s"]  # two operations and two numbers
    return _text(lines, "x, s"), [np.zeros(4, np.float32), 1.0]


def _symbolic(count: int) -> tuple[str, list[object] | None]:
    lines = ["x = x * c + d"] * (count // 2)
    return _text(lines, ", ".join(f"{p}: Tensor[Float, (n, m)]" for p in "xcd")), None


PROGRAMS: dict[str, Callable[[int], tuple[str, list[object] | None]]] = {
    "chain": _chain,
    "products": _products,
    "literals": _literals,
    "symbolic": _symbolic,
}


def measure(name: str, count: int) -> float:
    """Seconds of the processor to elaborate a program of about this many bindings; no arguments: for any sizes."""
    text, arguments = PROGRAMS[name](count)
    n, m = dims("n m")
    function = relay.from_source(text, {"Tensor": Tensor, "Float": Float, "n": n, "m": m})
    gc.collect()
    start = time.process_time()
    _ = function.type if arguments is None else function.lower(*arguments)
    return time.process_time() - start


_LAYER = """@relay
def layer{0}(x: Tensor[Float64, (n, 8)], w: Tensor[Float64, (8, 8)]):
    h = relay.tanh(x @ w + 1.0)
    total = 0.0
    for row in h:
        if row.sum() > 0.5:
            total = total + relay.sqrt((row * row).sum())
        else:
            total = total - row.max()
    m = h.mean(axis=1)
    return h * total + relay.softmax(h, axis=1), m

"""


def second_check() -> float:
    """Seconds of the processor for the check of a changed text of 500 lines, the least of some."""
    text = "from relay import Float64, Tensor, dims, relay\n(n,) = dims('n')\n\n" + "".join(
        _LAYER.format(k) for k in range(42)
    )
    analyzer = Analyzer()
    analyzer.analyze(Text(text), "/layers.py")
    seconds = []
    for count in range(5):
        changed = Text(text.replace("+ 1.0)", f"+ 1.{count + 1})", 1))
        start = time.process_time()
        analyzer.analyze(changed, "/layers.py")
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 bindings")
    counts = [1_000, 10_000] if parser.parse_args().quick else [1_000, 10_000, 100_000]
    print(f"{'microseconds per binding':<26}" + "".join(f"{count:>12,}" for count in counts))
    for name in PROGRAMS:
        times = [measure(name, count) / count * 1e6 for count in counts]
        print(f"{name:<26}" + "".join(f"{t:12.1f}" for t in times))
    print(f"second check of 500 lines: {second_check() * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
