"""The report of `make test-gpu`, without a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER

import relay

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "benchmarks" / "gpu_report.py"


def report(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(REPORT), *arguments], capture_output=True, text=True, cwd=ROOT)


def test_one_line_without_a_gpu() -> None:
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    try:
        if not int(driver.cuInit(0)[0]):
            pytest.skip("there is a GPU")
    except RuntimeError:
        pass
    done = report()
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("no GPU, so nothing was tested: the target 'cuda' ")


@pytest.mark.skipif(COMPILER is None, reason="there is no g++")
def test_a_dry_run(tmp_path: Path) -> None:
    written = tmp_path / "report.md"
    done = report("--dry-run", "--sample", "1", "--only", "correctness", "--output", str(written))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 values and gradients: 1 right" in written.read_text()


def test_library_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are among what is checked, in each dtype."""
    monkeypatch.syspath_prepend(str(REPORT.parent))
    import gpu_worker

    name = "batch, layer, float16"
    assert f"library:{name}" in gpu_worker.program_keys()
    function, arguments, tolerance = gpu_worker.library_programs()[name]
    assert {str(array.dtype) for array in arguments} == {"float16"}
    small = tuple(array[:1, :1, :8, :8] if array.ndim == 4 else array[:8] for array in arguments)
    monkeypatch.setattr(gpu_worker, "library_programs", lambda: {name: (function, small, tolerance)})
    with gpu_worker.toolchain(True, None):
        assert gpu_worker.check(f"library:{name}")["outcome"] == "right"


def test_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of training that the report times are right, and change the weights."""
    monkeypatch.syspath_prepend(str(REPORT.parent))
    import gpu_models

    for name in ("resnet50_step", "gpt_step"):
        model = gpu_models.MODELS[name].small
        random = np.random.default_rng(0)
        examples = model.examples(random, 2) if isinstance(model, gpu_models.Network) else model.examples(random)
        make = gpu_models.relay_classes_step if isinstance(model, gpu_models.Network) else gpu_models.relay_words_step
        step, weights = make(model), model.weights(random)
        trained = step(weights, *examples)
        assert_agree(trained, step.interpret(weights, *examples), rtol=1e-3, atol=1e-5)
        first, second = (relay.tree.leaves(part) for part in (weights, trained))
        assert any(not np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_process_that_ends_is_one_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs behind the one that ended it are for another process."""
    monkeypatch.syspath_prepend(str(REPORT.parent))
    import gpu_report

    calls: list[list[str]] = []

    def worker(arguments: list[str], prefix: tuple[str, ...] = ()) -> object:
        calls.append(arguments)
        if arguments[-3:] == ["a", "b", "c"]:
            yield {"key": "a", "name": "a", "outcome": "right"}
            yield {"status": -11, "output": ["Segmentation fault"]}
        elif arguments[-1] == "c":
            yield {"key": "c", "name": "c", "outcome": "failed", "text": "the GPU's driver says", "poisoned": True}
            yield {"status": 3, "output": []}

    monkeypatch.setattr(gpu_report, "worker", worker)
    found = gpu_report.checked(["a", "b", "c"], [], lambda line: None)
    assert [(line["key"], line["outcome"]) for line in found] == [("a", "right"), ("b", "failed"), ("c", "failed")]
    assert "-11" in found[1]["text"] and "Segmentation fault" in found[1]["text"] and len(calls) == 2
