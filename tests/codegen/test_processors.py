"""Code for processors with other vector instructions than this one's: the widths are those that they have."""

import platform
from collections.abc import Iterator

import numpy as np
import pytest

from relay import relay
from relay.codegen.lowering.module_builder import listing
from relay.codegen.tvm import tir
from relay.compilation import disk_cache

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the names are x86's")


@pytest.fixture
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Programs are compiled for this processor, and not found on disk."""
    monkeypatch.setenv("RELAY_CACHE_SIZE", "0")
    monkeypatch.setattr(tir.tvm.target.codegen, "llvm_get_system_cpu", lambda: request.param)
    tir._vector_registers.cache_clear()
    yield request.param
    tir._vector_registers.cache_clear()


REGISTERS = {"x86-64": (16, 16), "haswell": (32, 16), "skylake-avx512": (64, 32)}


@pytest.mark.parametrize("processor", REGISTERS, indirect=True)
def test_the_vector_registers_are_those_of_the_target(processor: str) -> None:
    assert tir.vector_registers() == REGISTERS[processor]


@pytest.mark.parametrize("processor", ["x86-64", "haswell"], indirect=True)
def test_programs_for_other_processors(processor: str) -> None:
    if processor == "haswell" and "avx2" not in disk_cache.processor():
        pytest.skip("this processor has no AVX2")

    @relay
    def network(x, w, image, kernel):
        rows = relay.softmax(relay.tanh(x @ w))
        order = relay.argsort(x[:, :9])
        return rows, relay.sum(relay.exp(x), axis=0), relay.sin(x), relay.conv2d(image, kernel, padding=1), order

    random = np.random.default_rng(0)
    shapes = (33, 70), (70, 45), (1, 4, 17, 17), (8, 4, 3, 3)
    arguments = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    compiled = network.compile(*arguments)
    for found, expected in zip(compiled(*arguments), network.interpret(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    assembly = listing(network.core(*arguments), 1)
    assert ("ymm" in assembly) == (processor == "haswell") and "zmm" not in assembly
