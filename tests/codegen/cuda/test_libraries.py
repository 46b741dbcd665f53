"""Large products by cuBLASLt, for which stands what checks its arguments and computes in the emulated memory."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation
from gpu.large_products import (
    BATCHES,
    PRODUCTS,
    ROWS_OF_STACK,
    STACK,
    B,
    K,
    M,
    Q,
    W,
    X,
    normal,
)
from gpu.stand_in_cublas import NOT_SUPPORTED, StandIn

import relay
from relay.codegen.cuda.driver import use_toolchain
from relay.codegen.cuda.libraries import cublaslt
from relay.codegen.cuda.libraries.products import LibraryProduct
from relay.errors import InternalError, RelayWarning
from relay.ir.types import BaseType

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


def computed(function: Any, *arguments: Any, rtol: float = 1e-5, **options: Any) -> tuple[StandIn, EmulatedDriver]:
    """The library and the driver after a call, whose result is the interpreter's."""
    driver = EmulatedDriver()
    library = StandIn(driver, **options)
    with use_toolchain(emulation(driver, cublas=lambda: library)):
        found = function(*relay.device_put(arguments))
        assert_agree(found, function.interpret(*arguments), rtol=rtol, atol=rtol)
    return library, driver


@pytest.mark.parametrize("form", PRODUCTS)
def test_forms(form: str) -> None:
    function, arguments, expected = PRODUCTS[form]
    library, driver = computed(relay.relay(function), *arguments)
    (made,) = library.multiplications
    assert (made.epilogue, made.scale, made.kept) == expected and made.workspace == 4096
    assert not driver.launched  # nothing else is left to compute


@pytest.mark.parametrize("form", BATCHES)
def test_batches(form: str) -> None:
    """Products of a batch are one call, in which one factor may be the same for all of them."""
    function, arguments, (epilogue, strides) = BATCHES[form]
    library, driver = computed(relay.relay(function), *arguments)
    (made,) = library.multiplications
    result = ROWS_OF_STACK * 192
    assert (made.epilogue, made.batch, made.strides) == (epilogue, STACK, (*strides, result, result))
    assert not driver.launched


def test_batches_of_other_forms() -> None:
    """One shared factor that lies row by row makes one product; factors that are each repeated have our own kernels,
    as have small products."""
    library, _ = computed(relay.relay(lambda q, m: q @ m), Q, M)
    assert [made.batch for made in library.multiplications] == [1]
    outer = relay.relay(lambda q, k: q @ k)
    assert not computed(outer, Q[:, :1].copy(), K[:1].copy())[0].multiplications
    assert not computed(outer, Q[..., :32, :].copy(), K)[0].multiplications
    assert not computed(outer, Q[0, :1].copy(), K[0, :1].copy())[0].multiplications


def test_gradients_of_batches() -> None:
    loss = relay.relay(lambda q, k: ((q @ k) ** 2).sum())
    library, _ = computed(relay.grad(loss, argnums=(0, 1)), Q, K, rtol=1e-4)
    assert [made.batch for made in library.multiplications] == [STACK] * 2  # that of the value is squared at once


def test_batches_of_any_size() -> None:
    library, _ = computed(relay.relay(lambda q, k: q @ k, dynamic=True), Q, K)
    assert [made.batch for made in library.multiplications] == [STACK]


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    layer = relay.relay(lambda x, w, b: relay.relu(x @ w + b))
    # Half precision is rounded once in the library, and after each operator by the interpreter.
    rtol = {"float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    arguments = (array.astype(BaseType(dtype).dtype) for array in (X, W, B))
    library, _ = computed(layer, *arguments, rtol=rtol)
    assert len(library.multiplications) == 1


def test_derivatives() -> None:
    """Those of the derivatives are plain; that of the value has its own kernel, with tanh."""
    loss = relay.relay(lambda w, x: (relay.tanh(x @ w) ** 2).sum())
    library, driver = computed(relay.grad(loss, argnums=(0, 1)), W, X, rtol=1e-4)
    assert len(library.multiplications) == 2 and driver.launched


def test_what_has_its_own_kernels() -> None:
    """Small and skinny products, epilogues that the library has not, and what it has no algorithm for."""

    def product(x, w):
        return x @ w

    assert not computed(relay.relay(product), X[:40], W)[0].multiplications
    assert not computed(relay.relay(product), X[:, :8].copy(), W[:8])[0].multiplications
    assert not computed(relay.relay(lambda x, w: relay.tanh(x @ w)), X, W, rtol=1e-4)[0].multiplications
    assert not computed(relay.relay(lambda x, w: (x @ w) * (x @ w)), X, W, rtol=1e-4)[0].multiplications
    library, driver = computed(relay.relay(product), X, W, rtol=1e-4, refuses=True)
    assert not library.multiplications and library.searches == 1 and len(driver.launched) == 1


def test_repeated_calls() -> None:
    """One search for an algorithm; a graph has the products, too; a profile names them."""

    @relay.relay
    def layers(x, w, b):
        for _ in range(3):
            x = relay.relu(x @ w + b)
        return relay.softmax(x, axis=-1)

    x, w, b = normal(256, 256), normal(256, 256), normal(256)
    driver = EmulatedDriver()
    library = StandIn(driver)
    with use_toolchain(emulation(driver, cublas=lambda: library)):
        for _ in range(4):
            found = layers(*relay.device_put((x, w, b)))
            assert_agree(found, layers.interpret(x, w, b), rtol=1e-4, atol=1e-6)
        assert library.searches == 1 and driver.calls["cuGraphLaunch"] == 3
        assert len(library.multiplications) == 6  # of the first run, and of the one that was captured
        assert "cublasLtMatmul" in str(relay.debug.profile(layers, *relay.device_put((x, w, b))))


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    driver = EmulatedDriver()
    product = relay.relay(lambda x, w: x @ w)
    monkeypatch.setattr(cublaslt.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    assert cublaslt.installed_library() is None
    monkeypatch.undo()
    with use_toolchain(emulation(driver, cublas=lambda: None)):
        with pytest.warns(RelayWarning, match=r"^cuBLASLt is not installed, .*: pip install 'relay-lang\[cuda\]'$"):
            found = product(*relay.device_put((X, W)))
        product(*relay.device_put((X, W)))  # warns once
    assert_agree(found, product.interpret(X, W), rtol=1e-4, atol=1e-5)


def test_the_package_of_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "cu13" / "lib" / "libcublasLt.so.13"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setitem(sys.modules, "nvidia", SimpleNamespace(__path__=[str(tmp_path)]))
    monkeypatch.setattr(cublaslt.ctypes, "CDLL", lambda name: name)
    assert cublaslt.installed_library() == str(file)


def test_what_the_library_refuses() -> None:
    library = SimpleNamespace(cublasLtCreate=lambda place: 1)
    with pytest.raises(InternalError, match="cuBLASLt gives status 1 to cublasLtCreate"):
        cublaslt.CublasLt(library)


@pytest.mark.skipif(cublaslt.installed_library() is None, reason="cuBLASLt is not installed")
def test_descriptors_in_the_library_itself() -> None:
    """It takes them without a GPU, where it is installed; only what chooses an algorithm needs one."""
    found = cublaslt.installed_library()
    refusals = {"cublasLtCreate": 0, "cublasLtMatmulAlgoGetHeuristic": NOT_SUPPORTED}

    class WithoutGpu:
        def __getattr__(self, name: str) -> Any:
            return (lambda *_: refusals[name]) if name in refusals else getattr(found, name)

    product = LibraryProduct("float16", 0, 1, False, True, 0, 0, 0, right_shared=True, bias=2, relu=True)
    assert cublaslt.CublasLt(WithoutGpu()).plan(product, (256, 192, 128, 8)) is None


def test_sizes_that_pay() -> None:
    product = LibraryProduct("float32", 0, 1, False, False, 256, 256, 256)
    assert product.pays(256, 256, 256) and not product.pays(256, 256, 255) and not product.pays(1 << 20, 32, 1 << 10)
