"""The face of the package: what calls take and return, and that importing it is light."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relay as module
from relay import relay
from relay.ir.protocols import PROTOCOLS


@relay
def scaled(x, factor=2.0):
    return x * factor


@relay
def pair(x):
    return x.sum(), (x, None)


OFFSET = 1.0


@relay
def shifted(x):
    return x + OFFSET


@relay.data
class Scaled:
    weight: float
    name: int


@relay
def apply_scaled(s: Scaled, x):
    return s.weight * x


def test_import_does_not_load_tvm() -> None:
    code = "import sys, relay; sys.exit('tvm' in sys.modules or 'tvm_ffi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_public_function_has_a_submodules_name() -> None:
    submodules = {m.name for m in pkgutil.iter_modules(module.__path__)}
    for name in module.__all__:
        value = getattr(module, name)
        if name in submodules:
            assert inspect.ismodule(value), name


def test_results_are_arrays_with_numpys_operators() -> None:
    result = scaled(np.arange(3.0))
    assert isinstance(result, module.Array)
    np.testing.assert_array_equal(np.asarray(result + 1), [1, 3, 5])
    np.testing.assert_array_equal(np.asarray(2 * result), [0, 4, 8])
    np.testing.assert_array_equal(np.sqrt(result), np.sqrt([0, 2, 4]))
    assert float(scaled(3.0)) == 6.0 and int(scaled(np.int32(3), 2)) == 6
    assert len(result) == 3 and [float(r) for r in result] == [0, 2, 4]
    np.testing.assert_array_equal(np.from_dlpack(result), [0, 2, 4])


def test_structures_come_back() -> None:
    total, (same, nothing) = pair(np.ones(2))
    assert float(total) == 2.0 and same.shape == (2,) and nothing is None


def test_arguments_are_not_changed_and_results_do_not_alias() -> None:
    x = np.arange(3.0)
    _, (same, _) = pair(x)
    same.numpy()[0] = 7.0
    assert x[0] == 0.0


def test_strided_and_misaligned_arguments() -> None:
    raw = np.zeros(8 * 5 + 1, np.uint8)[1:].view(np.float64)
    raw[:] = np.arange(5.0)
    np.testing.assert_array_equal(scaled(raw).numpy(), 2 * np.arange(5.0))
    wide = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(scaled(wide[:, ::2]).numpy(), 2 * wide[:, ::2])
    np.testing.assert_array_equal(scaled(wide.T).numpy(), 2 * wide.T)
    np.testing.assert_array_equal(scaled(np.arange(3.0).astype(">f8")).numpy(), [0, 2, 4])


def test_python_numbers_take_the_programs_dtype() -> None:
    assert scaled(np.float64(2.0), 3.0).dtype == np.float64
    assert scaled(2.0).dtype == np.float32
    with pytest.raises(module.TypeMismatch, match=r"300 is out of range for uint8 \(0 to 255\)"):
        scaled(np.zeros(2, np.uint8), 300)


def test_keywords_and_partial_results() -> None:
    np.testing.assert_array_equal(scaled(x=np.ones(2), factor=5.0).numpy(), [5, 5])
    np.testing.assert_array_equal(
        module.grad(scaled, wrt="x", seedable=True)(np.ones(2), np.full(2, 3.0)).numpy(), [6, 6]
    )


def test_gradient_with_respect_to_data() -> None:
    of_data, _ = module.grad(apply_scaled).interpret(Scaled(2.0, 1), np.float32(3.0))
    assert isinstance(of_data, Scaled)
    assert float(of_data.weight) == 3.0
    assert float(module.grad(apply_scaled, wrt="x").interpret(Scaled(2.0, 1), np.float32(3.0))) == 2.0


def test_a_derivative_is_made_once_for_each_choice_of_options() -> None:
    @relay
    def product(x, y):
        return x * y * FACTOR["now"]

    assert relay.grad(product) is relay.grad(product)
    assert relay.grad(product, wrt=[0]) is relay.grad(product, wrt=(0,))
    assert relay.value_and_grad(product, has_aux=False) is relay.value_and_grad(product)
    different = [
        relay.grad(product),
        relay.grad(product, wrt=0),
        relay.grad(product, wrt="y"),
        relay.grad(product, seedable=True),
        relay.grad(product, memory="recompute"),
        relay.value_and_grad(product),
        relay.grad(relay.grad(product, wrt=0)),
    ]
    assert len({id(f) for f in different}) == len(different)
    assert relay.grad(product, wrt=0)(1.0, 3.0) == 3.0 * FACTOR["now"]


def test_derivatives_are_reloaded_with_their_function(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def scaled(x):
        return x * x * FACTOR["now"]

    second = relay.grad(relay.grad(scaled))
    assert second(1.0) == 4.0
    monkeypatch.setitem(FACTOR, "now", 5.0)
    assert second(1.0) == 4.0
    scaled.reload()
    assert second(1.0) == relay.grad(relay.grad(scaled))(1.0) == 10.0


FACTOR = {"now": 2.0}


def test_reload_reads_captured_values_again() -> None:
    global OFFSET
    x = np.zeros(2)
    np.testing.assert_array_equal(shifted(x).numpy(), [1, 1])
    OFFSET = 5.0
    np.testing.assert_array_equal(shifted(x).numpy(), [1, 1])
    shifted.reload()
    np.testing.assert_array_equal(shifted(x).numpy(), [5, 5])
    OFFSET = 1.0


def test_options_that_there_are_not() -> None:
    with pytest.raises(module.CompileError, match="no target 'rocm'"):
        relay(target="rocm")
    with pytest.raises(module.CompileError, match="no opt_level 7"):
        relay(opt_level=7)
    with pytest.raises(module.CompileError, match="no option 'optlevel'"):
        relay(optlevel=3)  # type: ignore[call-overload]
    with pytest.raises(module.CompileError, match="no option 'fast'"):
        relay(fast=True)  # type: ignore[call-overload]


def test_threads_share_a_function() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def run(size: int) -> bool:
        x = np.full(size % 7 + 1, float(size))
        return bool(np.array_equal(scaled(x).numpy(), 2 * x))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(64)))


def test_dir_shows_what_users_use() -> None:
    names = dir(module)
    assert {"grad", "tanh", "Tensor", "random", "transform", "List", "errors"} <= set(names)
    modules = {name for name in names if inspect.ismodule(getattr(module, name))}
    assert modules == {
        *("amp", "builder", "debug", "errors", "ir", "lax", "nn", "numbers", "params", "prelude", "prob", "random"),
        *("relay", "rng", "testing", "transform", "tree"),
    }
    assert not [name for name in names if name.startswith("_") and name != "__version__"]


def test_every_protocol_of_python_objects_is_listed() -> None:
    used: set[str] = set()
    for path in Path(module.__file__).parent.rglob("*.py"):
        used |= set(re.findall(r"__relay_[a-z]+__|__relay__", path.read_text(encoding="utf-8")))
    assert used - {"__relay_"} == set(PROTOCOLS)


def test_lowering_is_public() -> None:
    x = np.ones(3, np.float32)
    lowering = scaled.lower(x)
    assert lowering.typed is scaled.module(x) and lowering.core is scaled.core(x)
    assert module.ir.alpha_equal(module.parse(lowering.text), lowering.core)
    np.testing.assert_array_equal(lowering.compile()(x), 2 * x)
