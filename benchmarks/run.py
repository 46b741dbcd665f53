"""Time Relay against other frameworks in one session and print medians and ratios. See README.md beside this file."""

import argparse
import compileall
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
from workloads import WORKLOADS, Kind

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


def measure(contender: str, names: list[str], seconds: float, threads: int, folder: Path) -> Report:
    """Run one contender's process once; and for each workload whose first result is timed, one of its own."""
    many = [name for name in names if WORKLOADS[name].kind is Kind.MANY]
    report = process(contender, many, seconds, threads, folder, {"RELAY_CACHE_SIZE": "0"}) if many else {}
    for name in names:
        if WORKLOADS[name].kind is Kind.FIRST:
            report |= process(contender, [name], seconds, threads, folder, {"RELAY_CACHE_SIZE": "0"})
        elif WORKLOADS[name].kind is Kind.FOUND:
            kept = str(folder / "kept")
            for _ in range(2):
                cache = {"RELAY_CACHE_DIR": kept, "RELAY_CACHE_SIZE": str(1 << 30), "JAX_COMPILATION_CACHE_DIR": kept}
                found = process(contender, [name], seconds, threads, folder, cache)
            report |= found
    return report


def process(
    contender: str, names: list[str], seconds: float, threads: int, folder: Path, variables: dict[str, str]
) -> Report:
    """Run one process, in which some variables are set."""
    environment = {**os.environ, **{variable: str(threads) for variable in THREAD_VARIABLES}, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    results = folder / f"{contender}.{names[0]}.npz"
    command = [sys.executable, str(HERE / "measure.py"), contender, str(seconds), str(threads), str(results), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {name: {"error": reason} for name in names}
    report: Report = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def results_of(contender: str, folder: Path) -> dict[str, np.ndarray]:
    """All results of a contender, by the workload's name and a number."""
    found: dict[str, np.ndarray] = {}
    for path in folder.glob(f"{contender}.*.npz"):
        with np.load(path) as arrays:
            found |= {key: arrays[key] for key in arrays.files}
    return found


def reference(name: str, results: dict[str, dict[str, np.ndarray]]) -> str | None:
    """Whose result the others are compared with: NumPy's, else that of the first framework that has one."""
    for contender in sorted(results, key=lambda c: (c != "numpy", c == "relay")):
        if any(key.partition(".")[0] == name for key in results[contender]):
            return contender
    return None


def agrees(name: str, found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> bool:
    """Whether a contender's results are close to the reference's."""
    keys = [key for key in expected if key.partition(".")[0] == name]
    for key in keys:
        if key not in found or found[key].size != expected[key].size:
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


def compile_to_byte_code() -> None:
    """What installing a package does: no first result waits until Python has compiled Relay itself."""
    for folder in (HERE, HERE.parent / "relay"):
        compileall.compile_dir(folder, quiet=2)


def table(names: list[str], chosen: list[str], number_of_rounds: int, seconds: float, threads: int) -> None:
    """Measure with this many threads, and print."""
    rounds: dict[str, list[Report]] = {contender: [] for contender in chosen}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(number_of_rounds):
            for contender in chosen:
                print(f"{threads} threads, round {number + 1} of {number_of_rounds}: {contender}", file=sys.stderr)
                rounds[contender].append(measure(contender, names, seconds, threads, Path(folder)))
        results = {contender: results_of(contender, Path(folder)) for contender in chosen}
    right = {
        (contender, name): expected in (None, contender) or agrees(name, results[contender], results[expected])
        for name in names
        for expected in [reference(name, results)]
        for contender in chosen
    }
    print(f"\n{threads} {'thread' if threads == 1 else 'threads'}")
    print(f"  {'':<14}{'median':>10}{'spread':>7}{'ratio':>9}{'first call':>12}")
    for name in names:
        own = [report[name].get("median") for report in rounds.get("relay", [])]
        relay_median = statistics.median(own) if own and None not in own else None
        print(f"{name}: {WORKLOADS[name].description}")
        for contender in chosen:
            print(line(name, contender, rounds[contender], relay_median, right[contender, name]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time Relay against NumPy, and other frameworks where installed.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each workload in each round")
    parser.add_argument(
        "--threads", default=f"1,{os.cpu_count() or 1}", help="a table for each number; default: %(default)s"
    )
    options = parser.parse_args()
    names = options.workloads or list(WORKLOADS)
    if unknown := set(names) - set(WORKLOADS):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    chosen = [c for c in options.contenders.split(",") if importlib.util.find_spec(CONTENDERS[c])]
    versions = ", ".join(f"{package} {version(package)}" for package in sorted({CONTENDERS[c] for c in chosen}))
    print(
        f"Python {platform.python_version()}, {versions}; {options.rounds} rounds of {options.seconds} s.\n"
        "Ratio: time over Relay's; above 1 Relay is faster, below 1 slower."
    )
    compile_to_byte_code()
    for threads in dict.fromkeys(map(int, options.threads.split(","))):
        table(names, chosen, options.rounds, options.seconds, threads)


if __name__ == "__main__":
    main()
