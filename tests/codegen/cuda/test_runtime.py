"""Programs on a GPU as calls see them, on a driver that keeps the GPU's memory in the host's."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation

import relay
from relay import Tensor
from relay.calling.devices.device_array import DeviceArray
from relay.codegen.cuda.driver import Toolchain, open_gpu, use_toolchain
from relay.codegen.cuda.memory import Memory
from relay.codegen.cuda.tensors import DeviceTensor
from relay.errors import CompileError, ExecutionError, TypeMismatch

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


def affine_of(x: Any, w: Any) -> Any:
    return {"y": relay.tanh(x @ w), "s": x.sum()}


affine = relay(affine_of)


@pytest.fixture(scope="module")
def driver() -> Iterator[EmulatedDriver]:
    """One driver for all tests: kernels are built once."""
    made = EmulatedDriver()
    with use_toolchain(emulation(made)):
        yield made


def test_arrays_stay_on_the_device(driver: EmulatedDriver) -> None:
    x, w = relay.device_put(X), relay.device_put(X.T)
    found = affine(x, w)
    assert isinstance(found["y"], DeviceArray) and found["y"].device == "cuda:0" and found["y"].shape == (4, 4)
    assert_agree(found, affine.interpret(X, X.T), rtol=1e-6)
    del found
    driver.calls.clear()
    for _ in range(3):
        found = affine(x, w)
        del found
    copies = {name for name in driver.calls if "Memcpy" in name}
    assert not copies and not driver.calls["cuMemAlloc"]  # nothing is copied, and nothing allocated within a call
    on_host = relay.device_put({"x": x, "n": 2}, "cpu")
    assert type(on_host["x"]) is relay.Array and on_host["x"].device == "cpu" and int(on_host["n"]) == 2
    assert relay.device_put(x) is x


def test_a_target_takes_arrays_of_the_host(driver: EmulatedDriver) -> None:
    on_gpu = relay(target="cuda")(affine_of)
    found = on_gpu(X, X.T)
    assert found["s"].device == "cuda:0"
    assert_agree(found, affine.interpret(X, X.T), rtol=1e-6)
    assert type(affine(X, X.T)["s"]) is relay.Array  # arrays of the host run where they are
    assert_agree(affine.interpret(relay.device_put(X), X.T), affine.interpret(X, X.T), rtol=0)


def test_a_device_array_is_an_array(driver: EmulatedDriver) -> None:
    array = relay.device_put(X)
    assert (array.dtype, array.ndim, array.size, array.nbytes, len(array)) == (np.float32, 2, 24, 96, 4)
    assert_agree(array + 1, X + 1, rtol=0)
    assert_agree(np.asarray(array), X, rtol=0)
    assert float(array[0, 0]) == -1
    with pytest.raises(ValueError, match="read-only"):
        array.numpy()[0] = 1
    assert copy.copy(array).device == copy.deepcopy(array).device == "cuda:0"
    assert_agree(pickle.loads(pickle.dumps(array)), X, rtol=0)
    assert array.block_until_ready() is array
    assert "Array([[-1." in repr(array)


def test_donation(driver: EmulatedDriver) -> None:
    @relay(target="cuda", donate_argnames=("x",))
    def step(x):
        return x * 2.0

    x = relay.device_put(X)
    address = x.tensor.memory.address
    found = step(x)
    assert x.is_deleted()
    with pytest.raises(ExecutionError, match="donated to step"):
        x.numpy()
    found = step(found)
    assert_agree(found, 4 * X, rtol=0)
    assert address == found.tensor.memory.address  # what was donated first is free again for the second result
    with pytest.raises(TypeMismatch, match="shares its memory"):
        relay(target="cuda", donate_argnames=("x",))(lambda x, y: x + y)(found, found)


def test_memory_is_free_after_its_last_use(driver: EmulatedDriver) -> None:
    @relay
    def chain(x):
        for _ in range(50):
            x = relay.tanh(x) * 1.5
        return x

    x = relay.device_put(X)
    compiled = chain.compile(x)  # the first run of a kind, which is no graph
    arena = open_gpu().arena
    gc.collect()
    before = arena.start_peak()
    assert_agree(compiled(x), chain.interpret(X), rtol=1e-4)
    assert arena.peak - before <= 4 * 256  # two of the loop's tensors at once, the result, and a number


def test_memory_that_does_not_suffice() -> None:
    with use_toolchain(emulation(EmulatedDriver(memory=4096))):
        with pytest.raises(ExecutionError, match=r"memory of the GPU does not suffice: 8192 bytes"):
            relay.device_put(np.zeros(2048, np.float32))
        assert_agree(relay.device_put(X), X, rtol=0)


def test_references_and_data(driver: EmulatedDriver) -> None:
    @relay(target="cuda")
    def counted(total, items: list[Tensor[relay.Float32, (3,)]]):
        for item in items:
            total.value = total.value + item
        return len(items)

    total = relay.ref(np.zeros(3, np.float32))
    assert int(counted(total, [np.ones(3, np.float32), np.full(3, 2, np.float32)])) == 2
    assert isinstance(total.value, DeviceArray)
    assert_agree(total.value, np.full(3, 3, np.float32), rtol=0)
    assert int(counted(total, [])) == 0
    assert_agree(total.value, np.full(3, 3, np.float32), rtol=0)


def test_deep_recursion(driver: EmulatedDriver) -> None:
    @relay(target="cuda")
    def down(n, x):
        if n == 0:
            return x
        return down(n - 1, x) + 1.0

    assert float(down(np.int32(1200), np.float32(0))) == 1200


def test_one_program_for_all_sizes(driver: EmulatedDriver) -> None:
    @relay(target="cuda", dynamic=True)
    def normalized(x, w):
        h = relay.softmax(x @ w)
        return h / h.sum(axis=0), relay.max(x, axis=1)

    w = np.linspace(0, 1, 63, dtype=np.float32).reshape(7, 9)
    for rows in (2, 33, 7):
        x = np.sin(np.arange(7 * rows, dtype=np.float32)).reshape(rows, 7)
        assert_agree(normalized(x, w), normalized.interpret(x, w), rtol=1e-5)
    assert len(normalized.programs()) == 1


def test_sizes_that_depend_on_values(driver: EmulatedDriver) -> None:
    @relay(target="cuda")
    def chosen(x):
        positive = x[x > 0]
        return positive * 2.0, positive.sum()

    for sign in (1, -1, 0):
        assert_agree(chosen(sign * X[2]), chosen.interpret(sign * X[2]), rtol=1e-6)


def test_threads(driver: EmulatedDriver) -> None:
    x = relay.device_put(X)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(affine(x, X.T)["s"].numpy())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 and len({float(s) for s in found}) == 1


class Foreign:
    """What another library has on the GPU: it takes a capsule of ours, and hands out one of the same memory."""

    def __init__(self, array: DeviceArray, kind: int = 2) -> None:
        self.array, self.kind, self.streams = array, kind, list[Any]()

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=-1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


def test_dlpack(driver: EmulatedDriver) -> None:
    from relay.codegen.cuda.exchange import _handed_out

    gc.collect()  # arrays of earlier tests that cycles keep
    array = relay.device_put(X)
    other = Foreign(array)
    taken = relay.device_put(other)
    assert taken.tensor.memory.address == array.tensor.memory.address  # without a copy
    assert other.streams == [int(open_gpu().stream)]  # they make their work visible to ours
    assert len(_handed_out) == 1
    assert_agree(affine(other, X.T), affine.interpret(X, X.T), rtol=1e-6)
    address = array.tensor.memory.address
    del array, other
    gc.collect()
    assert_agree(taken, X, rtol=0)  # its memory is kept
    waits = driver.calls["cuCtxSynchronize"]
    del taken
    gc.collect()
    assert not _handed_out
    again = [relay.device_put(X)]
    while again[-1].tensor.memory.address != address:  # the lowest address of this size is first
        again.append(relay.device_put(X))
        assert len(again) < 100
    assert driver.calls["cuCtxSynchronize"] == waits + 1  # others may still have read it


def test_dlpack_of_memory_that_is_not_aligned(driver: EmulatedDriver) -> None:
    """Kernels copy 16 bytes at once: others' memory at other addresses is copied."""
    whole = relay.device_put(np.arange(9, dtype=np.float32)).tensor
    memory = Memory(whole.memory.address + 4, 32)
    taken = relay.device_put(Foreign(DeviceArray(DeviceTensor(whole.gpu, memory, whole.dtype, (8,), whole))))
    assert taken.tensor.memory.address % 16 == 0
    assert_agree(taken, np.arange(1, 9, dtype=np.float32), rtol=0)


def test_dlpack_streams_and_capsules(driver: EmulatedDriver) -> None:
    from relay.codegen.cuda.exchange import _handed_out

    gc.collect()  # arrays of earlier tests that cycles keep
    array = relay.device_put(X)
    driver.calls.clear()
    capsule = array.__dlpack__(stream=7)
    assert driver.calls["cuStreamWaitEvent"] == 1
    array.__dlpack__(stream=-1)
    assert driver.calls["cuStreamWaitEvent"] == 1
    with pytest.raises(ValueError, match="ambiguous"):
        array.__dlpack__(stream=0)
    assert array.__dlpack_device__() == (2, 0)
    assert_agree(np.from_dlpack(array, device="cpu"), X, rtol=0)
    assert "dltensor" in repr(capsule)
    del capsule  # which nobody has taken
    assert not _handed_out
    interface = array.__cuda_array_interface__
    assert interface["shape"] == (4, 6) and interface["typestr"] == "<f4" and interface["version"] == 3
    assert ctypes.c_float.from_address(interface["data"][0]).value == -1
    with pytest.raises(TypeMismatch, match="programs run on the first GPU"):
        relay.device_put(Foreign(array, kind=13))


def test_machines_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDevice(EmulatedDriver):
        def _cuDeviceGetCount(self) -> int:
            return 0

    doubled = relay(target="cuda")(lambda x: 2 * x)
    with (
        use_toolchain(emulation(NoDevice())),
        pytest.raises(CompileError, match="finds no GPU: the driver says there are 0"),
    ):
        doubled(X)
    with (
        use_toolchain(emulation(EmulatedDriver(8, 6))),
        pytest.raises(CompileError, match="sm_86, the program is for sm_90"),
    ):
        doubled(X)

    def missing() -> Any:
        raise CompileError("the target 'cuda' needs the package cuda-bindings, which is missing")

    with use_toolchain(Toolchain(missing, lambda *_: None)), pytest.raises(CompileError, match="needs the package"):  # type: ignore[arg-type, return-value]
        relay.device_put(X)
    with pytest.raises(CompileError, match="there is no device 'cuda:7'"):
        relay.device_put(X, "cuda:7")


@pytest.mark.usefixtures("separate_kernels")
def test_graphs_read_the_same_arguments_where_they_are(driver: EmulatedDriver) -> None:
    """Weights are copied again only where calls pass different ones."""

    @relay
    def model(x, weights):
        for w, b in weights:
            x = relay.tanh(x @ w) + b
            x = x.at[0].set(b)
        return relay.softmax(x), weights[0][1]

    square = [X.T @ X / 10, X.T @ X / 7]
    weights, others = (tuple((w * f, w[0] * f) for w in square) for f in (np.float32(1), np.float32(-2)))
    placed = relay.device_put(weights)

    def copies_in(x: np.ndarray, given: Any, expected: Any) -> int:
        driver.calls.clear()
        found = model(relay.device_put(x), given)
        assert_agree(found, model.interpret(x, expected), rtol=1e-5, atol=1e-6)
        return driver.calls["cuMemcpyDtoDAsync"]

    for n in range(4):
        copies = copies_in(n * X, placed, weights)
    assert driver.calls["cuGraphLaunch"] == 1
    results = 2
    assert copies == 1 + results  # and x
    for n in range(3):
        copies = copies_in(n * X, relay.device_put(others), others)
        assert driver.calls["cuGraphLaunch"] == 1
        assert driver.calls["cuGraphExecDestroy"] == (n == 0)
    assert copies == 1 + results + 4
    for mixed in ((placed[0], relay.device_put(others[1])), (weights[0], placed[1])):
        copies_in(X, mixed, (weights[0], others[1] if mixed[1] is not placed[1] else weights[1]))
    assert_agree(placed, weights, rtol=0)


@pytest.mark.usefixtures("separate_kernels")
def test_calls_as_graphs(driver: EmulatedDriver) -> None:
    @relay
    def repeated(x, rounds):
        for _ in range(rounds):
            x = relay.tanh(x) * 1.5
        return x, (x.sum(), rounds + 1)

    for sign in (1, -1, 1, -1):
        found = repeated(relay.device_put(sign * X), 6)
        assert_agree(found, repeated.interpret(sign * X, 6), rtol=1e-5, atol=1e-6)
    driver.calls.clear()
    kept = repeated(relay.device_put(X), 6)
    again = repeated(relay.device_put(-X), 6)
    assert driver.calls["cuGraphLaunch"] == 2 and not driver.calls["cuLaunchKernel"]
    assert_agree(kept, repeated.interpret(X, 6), rtol=1e-5, atol=1e-6)  # not overwritten by the next call
    assert_agree(again, repeated.interpret(-X, 6), rtol=1e-5, atol=1e-6)
    assert_agree(repeated(relay.device_put(X), 3), repeated.interpret(X, 3), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("separate_kernels")
def test_numbers_of_a_graph_keep_their_memory(driver: EmulatedDriver) -> None:
    """Numbers that the host uploads while a graph is made are not where its kernels compute."""

    @relay
    def counted(x, n):
        for i in range(n):
            x = relay.tanh(x) * (i + 1)
        return x.max() * n, x

    driver.calls.clear()
    for factor in (1, 2, 3, 4, 5):
        x = np.float32(factor) * X
        assert_agree(counted(relay.device_put(x), 5), counted.interpret(x, 5), rtol=1e-5, atol=1e-6)
    assert driver.calls["cuGraphLaunch"] == 4


@pytest.mark.usefixtures("separate_kernels")
def test_what_the_host_has_to_read_is_no_graph(driver: EmulatedDriver) -> None:
    @relay
    def checked(x):
        for _ in range(3):
            x = x * 0.5
        assert x.sum() < 100.0, "too large"
        return x.max(), x

    driver.calls.clear()
    for factor in (1, 4, 0.01, 8):
        x = np.float32(factor) * X
        assert_agree(checked(relay.device_put(x)), checked.interpret(x), rtol=1e-6)
    assert driver.calls["cuStreamBeginCapture"] == driver.calls["cuStreamEndCapture"] == 1  # it was tried once
    assert not driver.calls["cuGraphLaunch"]


@pytest.mark.usefixtures("separate_kernels")
def test_profile(driver: EmulatedDriver) -> None:
    @relay
    def powers(x):
        for _ in range(3):
            x = relay.tanh(x)
        return x.sum()

    found = relay.debug.profile(powers, relay.device_put(X), runs=2)
    first = powers.__relay__.function.span.line
    repeated, total = sorted(found.kernels, key=lambda kernel: -kernel.calls)
    assert (repeated.rule, repeated.calls, repeated.lines) == ("elements", 3, (first + 2,))
    assert (total.calls, total.lines) == (1, (first + 3,))
    assert found.runs == 2 and found.seconds > 0 and found.memory > 0
    assert "on emulated GPU" in str(found) and "elements" in str(found)
    with pytest.raises(CompileError, match="changes its arguments"):
        relay.debug.profile(relay.relay(target="cuda")(lambda r: r.value), relay.ref(X))


@pytest.mark.usefixtures("separate_kernels")
def test_another_shape_is_the_same_memory(driver: EmulatedDriver) -> None:
    """A reshape that nothing is fused with starts no kernel; what it shares stays after the operand has gone."""

    @relay
    def turned(x: Any) -> Any:
        return x.reshape(3, 8), x[None].sum(axis=2)

    x = relay.device_put(X)
    driver.launched.clear()
    shape, total = turned(x)
    assert len(driver.launched) == 1 and shape.shape == (3, 8)
    del x
    gc.collect()
    relay.device_put(np.zeros_like(X))
    assert_agree((shape, total), turned.interpret(X), rtol=1e-6)
