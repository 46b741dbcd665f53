"""The examples and the benchmarks run, as a user starts them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(*command: str, timeout: float) -> str:
    """Run a Python command line at the root with warnings as errors; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    environment.pop("RELAY_VERIFY", None)
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


def numbers(pattern: str, printed: str) -> list[float]:
    """The numbers that a pattern finds, at least two."""
    found = [float(number) for number in re.findall(pattern, printed)]
    assert len(found) >= 2, printed
    return found


def test_digits_reaches_its_accuracy_within_a_minute(tmp_path: Path) -> None:
    printed = run("examples/digits.py", "--output", str(tmp_path), timeout=60)
    accuracy = re.search(r"test accuracy ([\d.]+)% after", printed)
    assert accuracy is not None and float(accuracy[1]) >= 96
    difference = re.search(r"compiled against interpreted: largest difference (\S+)", printed)
    assert difference is not None and float(difference[1]) < 1e-5
    for name in ("digits.png", "training.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "count", "pattern"),
    [
        ("ode", "20", r"loss ([\d.]+)"),
        ("physics", "3", r"misses by ([\d.]+)"),
        ("bilateral", "10", r"error ([\d.]+)"),
        ("meta_learning", "40", r"adapting ([\d.]+)"),
        ("custom_operator", "40", r"error ([\d.]+)"),
    ],
)
def test_examples_with_pictures_descend(name: str, count: str, pattern: str, tmp_path: Path) -> None:
    picture = tmp_path / f"{name}.png"
    printed = run(f"examples/{name}.py", count, str(picture), timeout=120)
    found = numbers(pattern, printed)
    assert found[-1] < found[0], printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_samples_have_the_mean_of_their_density(tmp_path: Path) -> None:
    picture = tmp_path / "hmc.png"
    printed = run("examples/hmc.py", "2000", str(picture), timeout=120)
    accepted, mean_x, mean_y = (float(number) for number in re.findall(r"-?\d+\.\d+", printed)[:3])
    assert 80 < accepted < 100
    assert abs(mean_x) < 0.2 and abs(mean_y - 0.5) < 0.18  # four standard errors of 400 independent samples
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "options", "pattern"),
    [
        ("treelstm", ["100"], r"error ([\d.]+)"),
        ("language_model", ["20", "16"], r"([\d.]+) bits"),
        ("orbit", ["500"], r"error ([\d.]+)"),
        pytest.param(
            "train_in_c",
            ["200"],
            r"loss ([\d.]+)",
            marks=pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
        ),
    ],
)
def test_examples_that_train_descend(name: str, options: list[str], pattern: str) -> None:
    printed = run(f"examples/{name}.py", *options, timeout=120)
    found = numbers(pattern, printed)
    assert found[-1] < found[0], printed


def test_beam_search_reads_what_the_best_letter_alone_does_not() -> None:
    text = "the gradient of a program"
    keys, greedy, wide = run("examples/beam_search.py", text, timeout=120).splitlines()
    assert keys.split()[1] == "8430472343680630207764726"
    assert text not in greedy
    assert text in wide


def test_digits_on_the_accelerator(tmp_path: Path) -> None:
    printed = run("examples/vta_digits.py", "4", str(tmp_path), timeout=120)
    floats, vta = (float(found) for found in re.findall(r"accuracy ([\d.]+)%", printed))
    assert floats > 70 and abs(floats - vta) <= 1
    assert "gives the same numbers" in printed
    assert re.findall(r"^(\w+): \d+ cycles, utilization 0\.\d+, (?:GEMM|ALU|DMA) bounds it", printed, re.MULTILINE) == [
        "vta_quantized_conv2d_1",
        "vta_quantized_conv2d_2",
        "vta_quantized_dense_1",
    ]
    assert re.search(r"^2 streams for 40 images: \d+ cycles, utilization 0\.\d+$", printed, re.MULTILINE)
    assert (tmp_path / "timeline.json").exists()
    assert all((tmp_path / f"{name}.svg").read_text().startswith("<svg") for name in ("timeline", "roofline"))


def test_the_roofline_of_the_accelerator(tmp_path: Path) -> None:
    """With two virtual threads each layer reaches at least what is wanted, and what the page on it says."""
    printed = run("benchmarks/vta_roofline.py", str(tmp_path), timeout=120)
    table = {words[0]: words[1:] for line in printed.splitlines() if (words := line.split())[0][0] == "C"}
    page = (EXAMPLES.parent / "docs" / "vta.md").read_text(encoding="utf-8")
    assert all(f"| {name} | {' | '.join((*words[:5], *words[7:]))}" in page for name, words in table.items())
    rows = {name: float(words[3]) for name, words in table.items()}
    wanted = {"C2": 0.88, "C3": 0.72, "C5": 0.93, "C6": 0.67, "C8": 0.95, "C9": 0.54, "C11": 0.90}
    assert len(rows) == 10 and all(rows[name] >= least for name, least in wanted.items())
    assert (tmp_path / "roofline.svg").exists()


def test_examples_are_listed_and_short() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^## \[(\w+\.py)\]\(\1\)", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert listed[-1] == "digits.py" and len(listed) == 13  # the demo, which is longer
    for name in listed[:-1]:
        lines = (EXAMPLES / name).read_text(encoding="utf-8").count("\n")
        assert 30 <= lines <= 80, f"{name} has {lines} lines"


def test_benchmarks_agree_with_numpy() -> None:
    options = ("--contenders", "relay,numpy", "--rounds", "1", "--seconds", "0.01", "--threads", "1")
    small = ("call", "loss_gradient", "chain", "mlp_step", "matmul_odd", "softmax", "lstm", "lstm_gradient", "newton")
    printed = run("benchmarks/run.py", *options, *small, "newton_gradient", "matmul_batch", timeout=120)
    rows = [line for line in printed.splitlines() if line.startswith(("  relay", "  numpy"))]
    assert len(rows) == 22
    for row in rows:
        assert re.search(r"\d (ns|µs|ms|s) +±\d+% +\d+\.\d\d +[\d.e+]+ (ns|µs|ms|s)$", row), row
