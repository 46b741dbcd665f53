"""Time of the processor for type inference per binding, in blocks of 1,000 to 100,000 bindings: it should not grow.

    python benchmarks/typecheck.py [--quick]

`chain` are elementwise operations on one shape, `products` matrix products, `literals` numbers whose dtype is found at
the end, `symbolic` a chain whose sizes are symbolic.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

from relay.frontend.lower import lower_text
from relay.ir.definition import Definition
from relay.ir.sizes.extents import Place
from relay.ir.types import FLOAT32, TensorType
from relay.typecheck.elaboration import Argument, ScalarArg, elaborate_structured


def _program(lines: list[str], parameters: str) -> Definition:
    body = "\n".join(f"    {line}" for line in lines)
    return lower_text(f"def f({parameters}):\n{body}\n    return x\n", "<benchmark>", {})["f"]


def _chain(count: int) -> tuple[Definition, list[Argument], list[Place]]:
    lines = ["x = x * c + d"] * (count // 2)
    return _program(lines, "x, c, d"), [TensorType(FLOAT32, (4, 5))] * 3, []


def _products(count: int) -> tuple[Definition, list[Argument], list[Place]]:
    return _program(["x = x @ c"] * count, "x, c"), [TensorType(FLOAT32, (4, 4))] * 2, []


def _literals(count: int) -> tuple[Definition, list[Argument], list[Place]]:
    lines = [*["s = s * 0.5 + 1"] * (count // 4), "x = x + s"]  # two operations and two numbers
    return _program(lines, "x, s"), [TensorType(FLOAT32, (4,)), ScalarArg(1.0)], []


def _symbolic(count: int) -> tuple[Definition, list[Argument], list[Place]]:
    definition, types, _ = _chain(count)
    return definition, types, [Place(p, (), axis) for p in range(3) for axis in range(2)]


PROGRAMS: dict[str, Callable[[int], tuple[Definition, list[Argument], list[Place]]]] = {
    "chain": _chain,
    "products": _products,
    "literals": _literals,
    "symbolic": _symbolic,
}


def measure(name: str, count: int) -> float:
    """Seconds of the processor to elaborate a program with about this many bindings."""
    definition, types, places = PROGRAMS[name](count)
    gc.collect()
    start = time.process_time()
    elaborate_structured(definition, types, places)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 bindings")
    counts = [1_000, 10_000] if parser.parse_args().quick else [1_000, 10_000, 100_000]
    print(f"{'microseconds per binding':<26}" + "".join(f"{count:>12,}" for count in counts))
    for name in PROGRAMS:
        times = [measure(name, count) / count * 1e6 for count in counts]
        print(f"{name:<26}" + "".join(f"{t:12.1f}" for t in times))


if __name__ == "__main__":
    main()
