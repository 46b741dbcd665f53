"""One contender's process: times its workloads and prints the numbers as one line of JSON.

    python benchmarks/measure.py CONTENDER SECONDS THREADS RESULTS.npz WORKLOAD...

A sample is a number of calls that takes at least 2 ms; samples are taken for SECONDS. The results go to RESULTS.npz.
The process may use as many cores as THREADS: not every framework has a setting that all of its threads heed.
"""

import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from workloads import WORKLOADS, Kind

SAMPLE = 0.002  # seconds


def flatten(result: Any) -> Iterator[np.ndarray]:
    """The arrays of a result, depth first."""
    if isinstance(result, tuple | list):
        for item in result:
            yield from flatten(item)
    else:
        yield np.asarray(result.detach() if hasattr(result, "detach") else result)


def median_time(call: Callable[[], object], seconds: float) -> float:
    """The median time of one call, in seconds."""

    def sample(number: int) -> float:
        started = time.perf_counter()
        for _ in range(number):
            call()
        return time.perf_counter() - started

    number = 1
    while sample(number) < SAMPLE:
        number *= 2
    samples = []
    end = time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        samples.append(sample(number) / number)
    return statistics.median(samples)


def contender_module(contender: str) -> Any:
    """The module of a contender; `torch-compile` is the module of `torch` with its switch set."""
    name, _, mode = contender.partition("-")
    module = importlib.import_module(f"contender_{name}")
    if mode == "compile":
        module.COMPILED = True
    return module


def keep_to_cores(count: int) -> None:
    """Let this process run on this many cores only, where the system has a call for it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def main(contender: str, seconds: str, threads: str, results: str, *names: str) -> None:
    """Measure the named workloads."""
    keep_to_cores(int(threads))  # before a framework asks how many there are
    report: dict[str, dict[str, object]] = {}
    arrays: dict[str, np.ndarray] = {}
    module = contender_module(contender)
    for name in names:
        try:
            inputs = WORKLOADS[name].inputs(np.random.default_rng(0))
            only_first = WORKLOADS[name].kind is not Kind.MANY
            if only_first and WORKLOADS[name].kind is not Kind.FOUND and hasattr(module, "import_compiler"):
                module.import_compiler()
            started = time.perf_counter()
            call = module.prepare(name, inputs)
            result = call()
            first = time.perf_counter() - started
            for number, array in enumerate(flatten(result)):
                arrays[f"{name}.{number}"] = array
            report[name] = {"first": first, "median": first if only_first else median_time(call, float(seconds))}
        except Exception as error:  # whatever a framework raises belongs into the table
            report[name] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    np.savez(results, **arrays)
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
