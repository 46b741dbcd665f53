"""The example and the benchmarks run, as a user starts them."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, timeout: float) -> str:
    """Run a Python command line at the root with warnings as errors; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_digits_reaches_its_accuracy_within_a_minute(tmp_path: Path) -> None:
    printed = run("examples/digits.py", "--output", str(tmp_path), timeout=60)
    accuracy = re.search(r"test accuracy ([\d.]+)% after", printed)
    assert accuracy is not None and float(accuracy[1]) >= 96
    difference = re.search(r"compiled against interpreted: largest difference (\S+)", printed)
    assert difference is not None and float(difference[1]) < 1e-5
    for name in ("digits.png", "training.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_benchmarks_agree_with_numpy() -> None:
    options = ("--contenders", "relay,numpy", "--rounds", "1", "--seconds", "0.01", "--threads", "1")
    small = ("call", "loss_gradient", "chain", "mlp_step", "matmul_odd", "softmax", "lstm", "lstm_gradient", "newton")
    printed = run("benchmarks/run.py", *options, *small, "newton_gradient", "matmul_batch", timeout=120)
    rows = [line for line in printed.splitlines() if line.startswith(("  relay", "  numpy"))]
    assert len(rows) == 22
    for row in rows:
        assert re.search(r"\d (ns|µs|ms|s) +±\d+% +\d+\.\d\d +[\d.e+]+ (ns|µs|ms|s)$", row), row
