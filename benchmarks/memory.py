"""Print what calls take of memory, beside what was planned for them before they ran.

    python benchmarks/memory.py

Planned are the bytes of the workspace (`Executable.workspace`) and of the results. Measured is by how much the memory
that the process holds at the most during the first call exceeds what it held before; program and arguments are there
already. Each workload has a process of its own. Needs Linux, which tells such figures.
"""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from models import inputs
from models.relay import lstm_sum, perceptron_step

from relay import relay

WORKLOADS: dict[str, tuple[str, Callable[[], Any], Any]] = {
    "perceptron_step": (
        "training step of 784-512-512-10, batch 64",
        lambda: perceptron_step,
        inputs.perceptron(64),
    ),
    "perceptron_step_large": ("batch 2048", lambda: perceptron_step, inputs.perceptron(2048)),
    "lstm_gradient": (
        "gradient of an LSTM, 1000 steps of 64 units, in its weights",
        lambda: relay.grad(lstm_sum, wrt=(1, 2, 3)),
        inputs.lstm(1000, 64, 1),
    ),
    "lstm_batch_gradient": (
        "1000 steps of 128 units, batch 8",
        lambda: relay.grad(lstm_sum, wrt=(1, 2, 3)),
        inputs.lstm(1000, 128, 8),
    ),
}


def resident(field: str) -> int:
    """The bytes of memory that this process holds (VmRSS), or has held at the most (VmHWM)."""
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def leaves(result: Any) -> Iterator[Any]:
    """The arrays of a result."""
    if isinstance(result, tuple | list):
        for item in result:
            yield from leaves(item)
    else:
        yield result


def measure(name: str) -> None:
    """Print the planned and the measured bytes of one workload."""
    _, function, make = WORKLOADS[name]
    arguments = make(np.random.default_rng(0))
    compiled = function().compile(*arguments)
    ctypes.CDLL(None).malloc_trim(0)  # what compiling has left free would be taken first
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the most so far is forgotten
    result = compiled(*arguments)
    most = resident("VmHWM")
    returned = sum(math.prod(a.shape) * a.dtype.itemsize for a in leaves(result))
    assert compiled.workspace is not None
    print(compiled.workspace + returned, most - before)


def main() -> None:
    """Measure each workload in a process of its own, and print a table."""
    print(f"  {'':<24}{'planned':>12}{'measured':>12}{'ratio':>8}")
    for name, (description, _, _) in WORKLOADS.items():
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
        planned, measured = map(int, done.stdout.split())
        print(f"  {name:<24}{planned / 1e6:>9.3f} MB{measured / 1e6:>9.3f} MB{measured / planned:>8.2f}  {description}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        main()
