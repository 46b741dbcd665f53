"""Large convolutions by cuDNN, for which stands what checks its arguments and computes in the emulated memory."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation
from gpu.large_convolutions import BIAS, CONVOLUTIONS, LAST_W, LAST_X, LOSSES, B, W, X, two_layers
from gpu.large_products import normal
from gpu.stand_in_cudnn import Algorithm, StandIn

import relay
from relay.codegen.cuda.driver import use_toolchain
from relay.codegen.cuda.libraries import cudnn
from relay.codegen.cuda.libraries.convolutions import DATA, FILTER, FORWARD, LibraryConvolution
from relay.errors import InternalError, RelayWarning
from relay.ir.types import BaseType

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


def computed(function: Any, *arguments: Any, rtol: float = 1e-5, **options: Any) -> tuple[StandIn, EmulatedDriver]:
    """The library and the driver after a call, whose result is the interpreter's."""
    driver = EmulatedDriver()
    library = StandIn(driver, **options)
    with use_toolchain(emulation(driver, cudnn=lambda: library)):
        found = function(*relay.device_put(arguments))
        assert_agree(found, function.interpret(*arguments), rtol=rtol, atol=rtol)
    return library, driver


@pytest.mark.parametrize("form", CONVOLUTIONS)
def test_forms(form: str) -> None:
    function, arguments, behind = CONVOLUTIONS[form]
    library, _ = computed(relay.relay(function), *arguments, rtol=1e-4)
    (made,) = library.convolutions
    assert (made.kind, made.behind, made.math, made.workspace) == ("Forward", behind, 3, 4096)


def test_layers() -> None:
    """Between layers the channels are last, whatever the program says, and what is behind the first one is computed by
    the library."""
    library, driver = computed(relay.relay(two_layers), X, W, BIAS, normal(64, 64, 3, 3), rtol=1e-4)
    assert [(made.behind, made.channels_last) for made in library.convolutions] == [("bias relu", True), ("", True)]
    assert all("transpose" in name for name in driver.launched)  # copies, and nothing else


def test_what_follows_a_convolution() -> None:
    """What the library does not compute of its result is a kernel behind it, which reads it from memory."""

    def normalized(x, w, scale, shift):
        made = relay.conv2d(x, w, padding=1, layout="NHWC")
        return relay.relu(made * scale + shift)

    def several(x, w, z):
        made = relay.conv2d(x, w, padding=1, layout="NHWC")
        return made, relay.tanh(made), relay.exp(made) * z

    library, driver = computed(relay.relay(normalized), LAST_X, LAST_W, B, B + 1, rtol=1e-4)
    assert [made.behind for made in library.convolutions] == [""] and len(driver.launched) == 2  # a copy of weights
    library, driver = computed(relay.relay(several), LAST_X, LAST_W, normal(2, 32, 32, 64), rtol=1e-4)
    assert [made.behind for made in library.convolutions] == [""]
    gradient = relay.grad(
        relay.relay(lambda x, w, s: (relay.tanh(relay.conv2d(x, w) * s) ** 2).sum()), argnums=(0, 1, 2)
    )
    library, _ = computed(gradient, X, W, BIAS, rtol=2e-3)
    assert {made.kind for made in library.convolutions} == {"Forward", "BackwardData", "BackwardFilter"}


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    """Tensor cores are for half precision, which is added up in float32."""

    def layer(x, w, b):
        return relay.relu(relay.conv2d(x, w, padding=1, layout="NHWC") + b)

    rtol = {"float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    arguments = (array.astype(BaseType(dtype).dtype) for array in (LAST_X, LAST_W, B))
    library, _ = computed(relay.relay(layer), *arguments, rtol=rtol)
    assert [made.math for made in library.convolutions] == [3 if dtype == "float64" else 1]


@pytest.mark.parametrize("form", LOSSES)
def test_derivatives(form: str) -> None:
    """Those by the data and by the filter are the library's, in one layout, like the value's."""
    function, arguments = LOSSES[form]
    library, _ = computed(relay.grad(relay.relay(function), argnums=(0, 1)), *arguments, rtol=2e-3)
    kinds = [made.kind for made in library.convolutions]
    assert {"BackwardData", "BackwardFilter"} <= set(kinds) <= {"Forward", "BackwardData", "BackwardFilter"}


def test_what_has_its_own_kernels() -> None:
    """Small and skinny convolutions, other padding, other epilogues, and what the library has not."""

    def own(function: Any, *arguments: Any, **options: Any) -> bool:
        library, driver = computed(relay.relay(function), *arguments, rtol=1e-4, **options)
        return not library.convolutions and bool(driver.launched)

    assert own(lambda x, w: relay.conv2d(x, w), X[:, :, :8, :8].copy(), W)
    assert own(lambda x, w: relay.conv2d(x, w), normal(2, 3, 64, 64), normal(64, 3, 3, 3))
    assert own(lambda x, w: relay.conv2d(x, w, padding=((1, 0), (1, 1))), X, W)
    assert own(plain_layer, LAST_X, LAST_W, refuses=True)
    assert own(plain_layer, LAST_X, LAST_W, algorithms=())


def plain_layer(x: Any, w: Any) -> Any:
    return relay.conv2d(x, w, layout="NHWC")


def test_algorithms() -> None:
    """The first one by the library's estimates that gives equal bits each time, and takes little memory."""

    def chosen(function: Any, *arguments: Any, rtol: float = 1e-4, of: tuple[Algorithm, ...]) -> list[tuple[int, int]]:
        library, _ = computed(relay.relay(function), *arguments, rtol=rtol, algorithms=of)
        return [(made.algorithm, made.workspace) for made in library.convolutions]

    refused = (
        Algorithm(0, status=3000),
        Algorithm(1, deterministic=0),
        Algorithm(5, workspace=cudnn.WORKSPACE_BYTES + 1),
        Algorithm(2, math=1),
    )
    assert not chosen(plain_layer, LAST_X, LAST_W, of=refused)
    assert chosen(plain_layer, LAST_X, LAST_W, of=(*refused, Algorithm(7), Algorithm(6))) == [(7, 4096)]
    half = [array.astype(np.float16) for array in (LAST_X, LAST_W)]
    assert chosen(plain_layer, *half, rtol=2e-3, of=(Algorithm(7), Algorithm(0, workspace=0))) == [(0, 0)]

    def biased(x, w, b):
        return relay.conv2d(x, w, layout="NHWC") + b

    assert chosen(biased, LAST_X, LAST_W, B, of=(Algorithm(6), Algorithm(1))) == [(1, 4096)]


def test_repeated_calls() -> None:
    """One search for an algorithm; a graph has the convolutions, too; a profile names them; memory is taken once."""
    network = relay.relay(two_layers)
    arguments = X, W, BIAS, normal(64, 64, 3, 3)
    driver = EmulatedDriver()
    library = StandIn(driver, algorithms=(Algorithm(1, workspace=1 << 20),))
    with use_toolchain(emulation(driver, cudnn=lambda: library)):
        for _ in range(4):
            found = network(*relay.device_put(arguments))
            assert_agree(found, network.interpret(*arguments), rtol=1e-4, atol=1e-5)
        assert library.searches == 2 and driver.calls["cuGraphLaunch"] == 3
        assert len(library.convolutions) == 4  # of the first run, and of the one that was captured
        taken = driver.calls["cuMemAlloc"]
        network(*relay.device_put(arguments))
        assert driver.calls["cuMemAlloc"] - taken <= 1  # the arguments' own
        assert "cudnnConvolution" in str(relay.debug.profile(network, *relay.device_put(arguments)))


def test_a_program_in_a_file(tmp_path: Path) -> None:
    network = relay.relay(two_layers)
    arguments = X, W, BIAS, normal(64, 64, 3, 3)
    driver = EmulatedDriver()
    library = StandIn(driver)
    with use_toolchain(emulation(driver, cudnn=lambda: library)):
        digest = network.compile(*arguments, target="cuda").export(tmp_path / "network.gpu")
        loaded = relay.load(tmp_path / "network.gpu", sha256=digest)
        assert_agree(loaded(*arguments), network.interpret(*arguments), rtol=1e-4, atol=1e-5)
    assert len(library.convolutions) == 2


def test_sizes_of_batches() -> None:
    """Programs for any size look at the sizes of each call."""
    plain = relay.relay(lambda x, w: relay.conv2d(x, w, layout="NHWC", padding="same"), dynamic=True)
    driver = EmulatedDriver()
    library = StandIn(driver)
    with use_toolchain(emulation(driver, cudnn=lambda: library)):
        for x in (LAST_X, LAST_X[:, :4].copy(), LAST_X[:, :30].copy()):
            assert_agree(plain(*relay.device_put((x, LAST_W))), plain.interpret(x, LAST_W), rtol=1e-4, atol=1e-5)
    assert len(library.convolutions) == 2 and len(plain.programs()) == 1


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = relay.relay(plain_layer)
    monkeypatch.setattr(cudnn, "open_library", lambda folder, name: None)
    assert cudnn.installed_library() is None
    with use_toolchain(emulation(EmulatedDriver(), cudnn=cudnn.installed_library)):
        with pytest.warns(RelayWarning, match=r"^cuDNN is not installed, .*: pip install 'relay-lang\[cuda\]'$"):
            found = plain(*relay.device_put((LAST_X, LAST_W)))
        plain(*relay.device_put((LAST_X, LAST_W)))  # warns once
    assert_agree(found, plain.interpret(LAST_X, LAST_W), rtol=1e-4, atol=1e-5)


def test_what_the_library_refuses() -> None:
    with pytest.raises(InternalError, match="cuDNN gives status 1001 to cudnnCreate"):
        cudnn.Cudnn(SimpleNamespace(cudnnCreate=lambda place: 1001))


def convolution(kind: str, **changes: Any) -> LibraryConvolution:
    shapes = (2, 64, 32, 32), (64, 64, 3, 3), (2, 64, 16, 16)
    orders = ((0, 1, 2, 3),) * 4
    given = (2, 2), ((1, 1), (1, 1)), (1, 1), 1
    return LibraryConvolution(kind, "float32", (0, 1), *shapes, *given, orders, **changes)


def test_sizes_that_pay() -> None:
    made = convolution(FORWARD)
    assert made.refusal() is None
    few = attrs.evolve(made, x=(2, 31, 32, 32), weight=(64, 31, 1, 1))
    assert "fewer than 32 rows" in str(few.refusal())
    assert "2^24" in str(attrs.evolve(made, weight=(64, 64, 1, 1)).refusal())
    assert "2^31" in str(attrs.evolve(made, x=(1 << 12, 64, 128, 64)).refusal())
    assert "negative" in str(attrs.evolve(made, padding=((-1, -1), (1, 1))).refusal())


@pytest.mark.skipif(cudnn.installed_library() is None, reason="cuDNN is not installed")
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("kind", [FORWARD, DATA, FILTER])
def test_descriptors_in_the_library_itself(kind: str, channels_last: bool) -> None:
    """It takes them without a GPU, where it is installed, and agrees on the result's sizes; only what chooses an
    algorithm needs one."""
    found = cudnn.installed_library()
    refused: list[str] = []
    sizes: list[list[int]] = []

    class WithoutGpu:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("cudnnGet"):
                refused.append(name)
                return self.refuse
            return (lambda place: 0) if name == "cudnnCreate" else getattr(found, name)

        def refuse(self, handle: Any, a: Any, b: Any, operation: Any, c: Any, *_: Any) -> int:
            x, w = {FORWARD: (a, b), DATA: (c, a), FILTER: (a, c)}[kind]
            made = (ctypes.c_int * 4)()
            assert found.cudnnGetConvolutionNdForwardOutputDim(operation, x, w, ctypes.c_int(4), made) == 0
            sizes.append(list(made))
            return 3000

    assert cudnn.Cudnn(WithoutGpu()).plan(convolution(kind, channels_last=channels_last)) is None
    assert len(refused) == 1 and sizes == [[2, 64, 16, 16]]
