"""One process of `gpu_report.py`: it checks programs, or times one framework, and prints a line of JSON for each.

A kernel that goes wrong leaves the process without a GPU, so what comes after it is for another process; and what takes
too long ends it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

MARK = "@@ "
"""What lines for the parent begin with; programs print, too."""

POISONED = 3
"""The status of a process in which a kernel went wrong."""

SECONDS = 300
"""After which a program ends its process."""


def tell(**fields: Any) -> None:
    """A line for the parent."""
    print("\n" + MARK + json.dumps(fields), flush=True)


@contextlib.contextmanager
def toolchain(dry: bool, chunk: int | None) -> Iterator[None]:
    """The GPU, or what stands for it. With `chunk`, the arena takes so little at once that each tensor has memory of
    the driver's own, around which a sanitizer sees what is written beyond."""
    import attrs

    from relay.codegen.cuda.driver import NVIDIA, use_toolchain

    if dry:
        from gpu.emulation import emulation

        with use_toolchain(emulation()):
            yield
    else:
        with use_toolchain(NVIDIA if chunk is None else attrs.evolve(NVIDIA, chunk=chunk)):
            yield


# ---- correctness


def program_keys() -> list[str]:
    """All that is checked: the values of programs, the gradients of those that have some, and programs that are large
    enough for NVIDIA's libraries."""
    from zoo import programs

    found = list(enumerate(programs()))
    keys = [f"value:{n}" for n, _ in found] + [f"gradient:{n}" for n, p in found if p.differentiable]
    return keys + [f"library:{name}" for name in library_programs()]


def library_programs() -> dict[str, tuple[Any, tuple[Any, ...], float]]:
    """Products, convolutions and derivatives that NVIDIA's libraries compute where they are installed, in float32 and
    in half precision: the function, its arguments, and how much the result may differ."""
    from gpu.large_convolutions import CONVOLUTIONS, LOSSES
    from gpu.large_products import BATCHES, PRODUCTS

    import relay
    from relay.ir.types import BaseType

    kinds = {"product": PRODUCTS, "batch": BATCHES, "convolution": CONVOLUTIONS, "derivative": LOSSES}
    found: dict[str, tuple[Any, tuple[Any, ...], float]] = {}
    for kind, forms in kinds.items():
        for name, (function, arguments, *_) in forms.items():
            made = relay.relay(function)
            if kind == "derivative":
                made = relay.grad(made, argnums=(0, 1))
            for dtype, tolerance in (("float32", 2e-3), ("float16", 1e-2), ("bfloat16", 5e-2)):
                given = tuple(array.astype(BaseType(dtype).dtype) for array in arguments)
                found[f"{kind}, {name}, {dtype}"] = made, given, tolerance
    return found


def check(key: str) -> dict[str, Any]:
    """A program's result on the GPU beside the interpreter's."""
    from agreement import assert_agree
    from zoo import programs

    import relay
    from relay.calling.results import wrap
    from relay.errors import CompileError, InternalError

    kind, number = key.split(":")
    tolerance = 1e-4
    if kind == "library":
        name = number
        function, arguments, tolerance = library_programs()[name]
    else:
        program = programs()[int(number)]
        function = program.function if kind == "value" else relay.value_and_grad(program.function)
        name, arguments = program.name, program.arguments
    start = time.perf_counter()
    try:
        expected = function.interpret(*arguments)
        lowered, values = function._lower(arguments, {}, symbolic=False)
        on_gpu = lowered.on_gpu()
        compiled = on_gpu.program
        made = time.perf_counter() - start
        found = wrap(compiled(values), lowered.result)
        # NVIDIA's functions for float32 are right to two units in the last place; sums are in another order.
        assert_agree(found, expected, rtol=tolerance, atol=tolerance / 10)
    except CompileError as error:
        return {"name": name, "outcome": "refused", "text": error.message}
    except AssertionError as error:
        return {"name": name, "outcome": "wrong", "text": str(error)[:400]}
    except InternalError as error:
        poisoned = "the GPU's driver says" in str(error)
        return {"name": name, "outcome": "failed", "text": str(error)[:400], "poisoned": poisoned}
    except Exception as error:
        return {"name": name, "outcome": "failed", "text": f"{type(error).__name__}: {error}"[:400]}
    return {"name": name, "outcome": "right", "seconds": made}


def correctness(keys: list[str]) -> int:
    """Check programs, one after another."""
    for key in keys:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        found = check(key)
        faulthandler.cancel_dump_traceback_later()
        tell(key=key, **found)
        if found.get("poisoned"):
            return POISONED
    return 0


# ---- speed


def _waiting(framework: str) -> Callable[[Any], Any]:
    """What waits for a result."""
    if framework == "relay":
        import relay

        def wait(result: Any) -> None:
            for leaf in relay.tree.leaves(result):
                if hasattr(leaf, "block_until_ready"):
                    leaf.block_until_ready()
                    return

        return wait
    module = importlib.import_module("torch" if framework.startswith("torch") else "jax")
    return (lambda _: module.cuda.synchronize()) if framework.startswith("torch") else module.block_until_ready


def _prepared(framework: str, name: str, dry: bool) -> Callable[[], Any]:
    import gpu_cases

    if name in gpu_cases.CASES:
        case = gpu_cases.CASES[name]
        arrays = case.arrays(case.small if dry else case.size)
        if framework == "relay":
            return gpu_cases.relay_call(name, arrays)
        if framework == "jax":
            return gpu_cases.jax_call(name, arrays)
        return gpu_cases.torch_call(name, arrays, framework == "torch-compile")
    import numpy as np
    from gpu_models import MODELS
    from models.inputs import lstm
    from workloads import WORKLOADS

    if name in MODELS:
        return MODELS[name].prepare(framework, dry)
    random = np.random.default_rng(0)
    name, inputs = ("lstm_batch_gradient", lstm(50, 256, 64)) if name == gpu_cases.LSTM_64 else (name, None)
    given = (inputs or WORKLOADS[name].inputs)(random)
    if framework == "relay":
        import relay

        given = tuple(relay.device_put(a) if isinstance(a, np.ndarray) else a for a in given)
        contender = importlib.import_module("contender_relay")
    else:
        os.environ["TORCH_DEVICE"] = "cuda"
        contender = importlib.import_module("contender_" + framework.split("-")[0])
        if framework == "torch-compile":
            vars(contender)["COMPILED"] = True
    call: Callable[[], Any] = contender.prepare(name, given)
    return call


def time_call(call: Callable[[], Any], wait: Callable[[Any], Any], seconds: float) -> tuple[float, float]:
    """The seconds of the first call, and of one among many, that are started one behind the other."""
    start = time.perf_counter()
    wait(call())
    first = time.perf_counter() - start
    for _ in range(2):
        wait(call())
    best, spent = float("inf"), 0.0
    count = 1
    while spent < seconds:
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        wait(result)
        passed = time.perf_counter() - start
        spent += passed
        best = min(best, passed / count)
        if passed < seconds / 10:
            count *= 2
    return first, best


def speed(framework: str, names: list[str], seconds: float, dry: bool) -> int:
    """Time one framework."""
    try:
        wait = _waiting(framework)
    except ImportError as error:
        tell(missing=str(error))
        return 0
    for name in names:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            first, best = time_call(_prepared(framework, name, dry), wait, seconds)
            tell(key=name, seconds=best, first=first)
        except Exception as error:
            tell(key=name, text=f"{type(error).__name__}: {error}"[:300])
        faulthandler.cancel_dump_traceback_later()
    return 0


def main() -> int:
    """Do what the parent asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("correctness", "relay", "torch", "torch-compile", "jax"))
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--chunk", type=int)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("keys", nargs="*")
    options = parser.parse_intermixed_args()
    os.environ.setdefault("RELAY_CACHE_SIZE", "0")
    with toolchain(options.dry_run, options.chunk):
        if options.what == "correctness":
            return correctness(options.keys)
        return speed(options.what, options.keys, options.seconds, options.dry_run)


if __name__ == "__main__":
    sys.exit(main())
