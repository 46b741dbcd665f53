"""Batched programs beside JAX's `vmap` and PyTorch's `torch.func.vmap`: per-example gradients, loops that end at
different times, a particle filter, trees, ragged attention. One process for each framework, one thread; the shortest
time of the processor of some calls, which a busy machine disturbs less than that of the clock.

    python benchmarks/batching/run.py relay jax=/path/to/python torch=/path/to/python
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CALLS = 20


def measure(framework: str) -> None:
    """Print the milliseconds of each workload, and a sum of its result."""
    import numpy as np

    sys.path.insert(0, str(FOLDER))
    given: dict[str, Any] = importlib.import_module("inputs").inputs()
    module = importlib.import_module(f"with_{framework}")
    found = {}
    for name, program in module.programs().items():
        arguments = given[name]
        result = module.wait(program(*arguments))
        parts = result if isinstance(result, tuple | list) else [result]
        total = float(sum(np.abs(np.asarray(part, np.float64)).sum() for part in parts))
        times = []
        for _ in range(CALLS):
            start = time.process_time()
            module.wait(program(*arguments))
            times.append(time.process_time() - start)
        found[name] = (min(times) * 1e3, total)
    print(json.dumps(found))


def main(*contenders: str) -> None:
    """Print a table of milliseconds, a column for each framework."""
    one = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **one, "RELAY_NUM_THREADS": "1", "PYTHONPATH": str(FOLDER.parents[1])}
    columns: dict[str, Any] = {}
    for contender in contenders:
        name, _, python = contender.partition("=")
        command = [python or sys.executable, __file__, "--measure", name]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        columns[name] = json.loads(ran.stdout.splitlines()[-1])
    first = next(iter(columns.values()))
    print("|", " | ".join(["workload", *columns]), "|")
    print("|---" * (len(columns) + 1) + "|")
    for workload, (_, expected) in first.items():
        cells = []
        for column in columns.values():
            if workload not in column:
                cells.append("-")
                continue
            milliseconds, total = column[workload]
            wrong = abs(total - expected) > 1e-3 * max(1.0, abs(expected))
            cells.append(f"{milliseconds:.2f}" + (" (another result)" if wrong else ""))
        print("|", " | ".join([f"`{workload}`", *cells]), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        main(*(sys.argv[1:] or ["relay"]))
