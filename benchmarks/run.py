"""Time Relay against other frameworks in one run and print medians and ratios. See README.md beside this file."""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from workloads import WORKLOADS

HERE = Path(__file__).resolve().parent
CONTENDERS = {
    "relay": "numpy", "numpy": "numpy", "torch": "torch", "torch-compile": "torch", "jax": "jax", "onnx": "onnxruntime"
}  # fmt: skip
"""Contenders and the package that each needs; the first is what the others are compared with."""

THREAD_VARIABLES = (
    "RELAY_NUM_THREADS",
    "TVM_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)

Report = dict[str, dict[str, Any]]


def measure(contender: str, names: list[str], seconds: float, threads: int, results: Path) -> Report:
    """Run one contender's process once."""
    environment = {**os.environ, **{variable: str(threads) for variable in THREAD_VARIABLES}}
    command = [sys.executable, str(HERE / "measure.py"), contender, str(seconds), str(threads), str(results), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {name: {"error": reason} for name in names}
    report: Report = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def reference(name: str, results: dict[str, Path]) -> str | None:
    """Whose result the others are compared with: NumPy's, else that of the first framework that has one."""
    for contender in sorted(results, key=lambda c: (c != "numpy", c == "relay")):
        if results[contender].exists():
            with np.load(results[contender]) as found:
                if any(key.partition(".")[0] == name for key in found.files):
                    return contender
    return None


def agrees(name: str, results: Path, reference: Path) -> bool:
    """Whether a contender's results are close to the reference's."""
    with np.load(results) as found, np.load(reference) as expected:
        keys = [key for key in expected.files if key.partition(".")[0] == name]
        for key in keys:
            if key not in found.files or found[key].size != expected[key].size:
                return False
            difference = np.max(np.abs(found[key].reshape(-1) - expected[key].reshape(-1)))
            if not difference <= WORKLOADS[name].tolerance * (1e-6 + np.max(np.abs(expected[key]))):
                return False
    return bool(keys)


def duration(seconds: float) -> str:
    """A time with a unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def line(name: str, contender: str, rounds: list[Report], relay_median: float | None, right: bool) -> str:
    """One contender's line under a workload."""
    errors = [report[name]["error"] for report in rounds if "error" in report[name]]
    if errors:
        return f"  {contender:<14} {errors[0]}"
    medians = [report[name]["median"] for report in rounds]
    middle = statistics.median(medians)
    spread = (max(medians) - min(medians)) / 2 / middle
    ratio = f"{middle / relay_median:.2f}" if relay_median else "-"
    first = duration(statistics.median(report[name]["first"] for report in rounds))
    remark = "" if right else "  the result differs from the reference"
    return f"  {contender:<14}{duration(middle):>10}{f'±{spread:.0%}':>7}{ratio:>9}{first:>12}{remark}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time Relay against NumPy, and other frameworks where installed.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each workload in each round")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    names = options.workloads or list(WORKLOADS)
    if unknown := set(names) - set(WORKLOADS):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    chosen = [c for c in options.contenders.split(",") if importlib.util.find_spec(CONTENDERS[c])]

    rounds: dict[str, list[Report]] = {contender: [] for contender in chosen}
    with tempfile.TemporaryDirectory() as folder:
        results = {contender: Path(folder) / f"{contender}.npz" for contender in chosen}
        for number in range(options.rounds):
            for contender in chosen:
                print(f"round {number + 1} of {options.rounds}: {contender}", file=sys.stderr)
                report = measure(contender, names, options.seconds, options.threads, results[contender])
                rounds[contender].append(report)
        right = {
            (contender, name): expected in (None, contender)
            or (results[contender].exists() and agrees(name, results[contender], results[expected]))
            for name in names
            for expected in [reference(name, results)]
            for contender in chosen
        }

    versions = ", ".join(f"{package} {version(package)}" for package in sorted({CONTENDERS[c] for c in chosen}))
    print(
        f"Python {platform.python_version()}, {versions}; {options.threads} threads, {options.rounds} rounds of "
        f"{options.seconds} s.\nRatio: time over Relay's; above 1 Relay is faster, below 1 slower."
    )
    print(f"\n  {'':<14}{'median':>10}{'spread':>7}{'ratio':>9}{'first call':>12}")
    for name in names:
        own = [report[name].get("median") for report in rounds.get("relay", [])]
        relay_median = statistics.median(own) if own and None not in own else None
        print(f"{name}: {WORKLOADS[name].description}")
        for contender in chosen:
            print(line(name, contender, rounds[contender], relay_median, right[contender, name]))


if __name__ == "__main__":
    main()
