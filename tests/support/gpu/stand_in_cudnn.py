"""A stand-in for cuDNN: it has what its C interface is given, refuses what the library would refuse, and computes
convolutions in the memory of the emulated driver."""

from __future__ import annotations

import ctypes
from typing import Any

import attrs
import ml_dtypes
import numpy as np

from gpu.emulation import EmulatedDriver
from relay.ops.nn.convolution_references import numpy_convolution, numpy_transposed_convolution, numpy_weight_gradient

NOT_SUPPORTED, BAD_PARAMETER = 3000, 2000

_DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 9: ml_dtypes.bfloat16}

RELU, IDENTITY = 1, 5


@attrs.define(eq=False)
class Tensor:
    """A descriptor of a tensor: of a filter, if it has a layout."""

    dtype: int = -1
    dims: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    layout: int | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The axes as they lie in memory, which has to be whole."""
        rank = len(self.dims)
        for order in (tuple(range(rank)), (0, *range(2, rank), 1)):
            if self.strides == _strides(self.dims, order):
                return order
        raise AssertionError(f"{self.strides} are not the strides of one of the layouts")


@attrs.define(eq=False)
class Operation:
    """A descriptor of a convolution."""

    padding: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    compute: int = -1
    groups: int = 1
    math: int = -1


@attrs.define(eq=False)
class Activation:
    """A descriptor of an activation."""

    mode: int = -1


@attrs.define(eq=False)
class Convolution:
    """A convolution that was started. `behind`: what is computed of its result."""

    kind: str
    channels_last: bool
    algorithm: int
    math: int
    workspace: int
    behind: str = ""


@attrs.frozen
class Algorithm:
    """An estimate of an algorithm, as the library gives them."""

    number: int
    status: int = 0
    workspace: int = 4096
    deterministic: int = 1
    math: int | None = None


class StandIn:
    """The functions of cuDNN that are used. `convolutions`: what was started. `algorithms`: the estimates, which have
    the math mode of the descriptor unless they have one; with `refuses` each convolution fails when it is started."""

    def __init__(
        self, driver: EmulatedDriver, algorithms: tuple[Algorithm, ...] = (Algorithm(1),), refuses: bool = False
    ) -> None:
        self.driver, self.algorithms, self.refuses = driver, algorithms, refuses
        self.convolutions: list[Convolution] = []
        self.searches = 0
        self._made: dict[int, Any] = {}
        self._stream: int | None = None

    def _create(self, place: Any, made: Any) -> int:
        number = len(self._made) + 1
        self._made[number] = made
        place._obj.value = number
        return 0

    def _of(self, descriptor: Any) -> Any:
        assert type(descriptor) is ctypes.c_void_p
        return self._made[descriptor.value]

    def cudnnCreate(self, place: Any) -> int:
        return self._create(place, "handle")

    def cudnnCreateTensorDescriptor(self, place: Any) -> int:
        return self._create(place, Tensor())

    def cudnnCreateFilterDescriptor(self, place: Any) -> int:
        return self._create(place, Tensor())

    def cudnnCreateConvolutionDescriptor(self, place: Any) -> int:
        return self._create(place, Operation())

    def cudnnCreateActivationDescriptor(self, place: Any) -> int:
        return self._create(place, Activation())

    def cudnnSetStream(self, handle: Any, stream: Any) -> int:
        assert self._of(handle) == "handle" and type(stream) is ctypes.c_void_p
        self._stream = stream.value
        return 0

    def cudnnSetTensorNdDescriptor(self, tensor: Any, dtype: Any, rank: Any, dims: Any, strides: Any) -> int:
        made = self._of(tensor)
        made.dtype, made.dims, made.strides = dtype.value, _numbers(dims, rank), _numbers(strides, rank)
        return 0 if 4 <= rank.value <= 8 and min(made.dims) > 0 else BAD_PARAMETER

    def cudnnSetFilterNdDescriptor(self, tensor: Any, dtype: Any, layout: Any, rank: Any, dims: Any) -> int:
        made = self._of(tensor)
        made.dtype, made.dims, made.layout = dtype.value, _numbers(dims, rank), layout.value
        order = (0, *range(2, rank.value), 1) if layout.value == 1 else tuple(range(rank.value))
        made.strides = _strides(made.dims, order)
        return 0 if 4 <= rank.value <= 8 and min(made.dims) > 0 and layout.value in (0, 1) else BAD_PARAMETER

    def cudnnSetConvolutionNdDescriptor(
        self, operation: Any, rank: Any, padding: Any, stride: Any, dilation: Any, mode: Any, compute: Any
    ) -> int:
        made = self._of(operation)
        made.padding, made.stride, made.dilation = (_numbers(part, rank) for part in (padding, stride, dilation))
        made.compute = compute.value
        allowed = rank.value >= 2 and min(made.padding) >= 0 and min(*made.stride, *made.dilation) > 0
        return 0 if allowed and mode.value == 1 else BAD_PARAMETER

    def cudnnSetConvolutionGroupCount(self, operation: Any, groups: Any) -> int:
        self._of(operation).groups = groups.value
        return 0

    def cudnnSetConvolutionMathType(self, operation: Any, math: Any) -> int:
        self._of(operation).math = math.value
        return 0 if math.value in range(4) else BAD_PARAMETER

    def cudnnSetActivationDescriptor(self, activation: Any, mode: Any, nan: Any, bound: Any) -> int:
        assert type(bound) is ctypes.c_double and nan.value in (0, 1)
        self._of(activation).mode = mode.value
        return 0

    # ---- algorithms

    def _search(self, kind: str, handle: Any, a: Any, b: Any, operation: Any, c: Any, most: Any, count: Any, made: Any):
        self.searches += 1
        self._check(kind, handle, a, b, operation, c)
        assert ctypes.sizeof(made[0]) == 48 and len(made) == most.value
        for found, known in zip(made, self.algorithms, strict=False):
            found.algorithm, found.status, found.memory = known.number, known.status, known.workspace
            found.determinism = known.deterministic
            found.math = self._of(operation).math if known.math is None else known.math
        count._obj.value = len(self.algorithms)
        return 0

    def _workspace(self, kind: str, handle: Any, a: Any, b: Any, operation: Any, c: Any, number: Any, size: Any) -> int:
        self._check(kind, handle, a, b, operation, c)
        size._obj.value = next(known.workspace for known in self.algorithms if known.number == number.value)
        return 0

    def __getattr__(self, name: str) -> Any:
        for kind in ("BackwardData", "BackwardFilter", "Forward"):
            for start, end, do in (
                ("cudnnGetConvolution", "Algorithm_v7", self._search),
                ("cudnnGetConvolution", "WorkspaceSize", self._workspace),
                ("cudnnConvolution", "", self._start),
            ):
                if name == f"{start}{kind}{end}":
                    return lambda *arguments: do(kind, *arguments)
        raise AttributeError(name)

    def _check(self, kind: str, handle: Any, a: Any, b: Any, operation: Any, c: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The descriptors of x, the filter and y, which have to agree."""
        assert self._of(handle) == "handle"
        first, second, third = map(self._of, (a, b, c))
        x, w, y = {
            "Forward": (first, second, third),
            "BackwardData": (third, first, second),
            "BackwardFilter": (first, third, second),
        }[kind]
        how = self._of(operation)
        assert w.layout is not None and x.layout is None and y.layout is None
        assert len({(part.dtype, part.order) for part in (x, w, y)}) == 1
        assert how.compute == (1 if x.dtype == 1 else 0)  # sums in float64, or float32
        assert how.math in ((0, 1) if x.dtype in (2, 9) else (3,))  # tensor cores round no float32
        assert x.dims[0] == y.dims[0] and y.dims[1] == w.dims[0] and x.dims[1] == w.dims[1] * how.groups
        assert w.dims[0] % how.groups == 0
        for axis, (size, kernel, extent) in enumerate(zip(x.dims[2:], w.dims[2:], y.dims[2:], strict=True)):
            reach = how.dilation[axis] * (kernel - 1) + 1
            assert extent == (size + 2 * how.padding[axis] - reach) // how.stride[axis] + 1
        return x, w, y

    # ---- convolutions

    def _start(
        self, kind: str, handle: Any, alpha: Any, a: Any, p: Any, b: Any, q: Any, operation: Any, number: Any,
        workspace: Any, count: Any, beta: Any, c: Any, r: Any,
    ) -> int:  # fmt: skip
        parts = self._check(kind, handle, a, b, operation, c)
        factor = ctypes.c_double if parts[0].dtype == 1 else ctypes.c_float
        assert type(alpha._obj) is type(beta._obj) is factor and (alpha._obj.value, beta._obj.value) == (1.0, 0.0)
        done = [(self._of(d), address.value) for d, address in ((a, p), (b, q), (c, r))]
        return self._run(kind, done, self._of(operation), number, workspace, count, "", lambda made: made)

    def cudnnConvolutionBiasActivationForward(
        self, handle: Any, alpha: Any, a: Any, p: Any, b: Any, q: Any, operation: Any, number: Any, workspace: Any,
        count: Any, kept: Any, z: Any, addend: Any, bias: Any, vector: Any, activation: Any, c: Any, r: Any,
    ) -> int:  # fmt: skip
        y = self._check("Forward", handle, a, b, operation, c)[2]
        described, mode = self._of(bias), self._of(activation).mode
        assert described.dims == (1, y.dims[1], *(1 for _ in y.dims[2:])) and described.dtype == y.dtype
        assert self._of(z).dims == y.dims and self._of(z).strides == y.strides and addend.value and vector.value
        assert mode in (RELU, IDENTITY) and (mode == RELU or number.value == 1)
        assert kept._obj.value == (0.0 if addend.value == r.value else 1.0)
        assert addend.value % 16 == vector.value % 16 == 0

        def behind(made: np.ndarray) -> np.ndarray:
            added = self._array(self._of(z), addend.value).astype(np.float64) if kept._obj.value else 0.0
            along = self._array(described, vector.value).astype(np.float64)
            made = made + added + along
            return np.maximum(made, 0) if mode == RELU else made

        words = [*(["addend"] if kept._obj.value else []), "bias", *(["relu"] if mode == RELU else [])]
        done = [(self._of(d), address.value) for d, address in ((a, p), (b, q), (c, r))]
        return self._run("Forward", done, self._of(operation), number, workspace, count, " ".join(words), behind)

    def _run(
        self, kind: str, parts: list[tuple[Tensor, int]], how: Operation, number: Any, workspace: Any, count: Any,
        words: str, behind: Any,
    ) -> int:  # fmt: skip
        if self.refuses:
            return NOT_SUPPORTED
        algorithm = next(known for known in self.algorithms if known.number == number.value)
        assert type(count) is ctypes.c_size_t and count.value == algorithm.workspace and self._stream is not None
        if count.value:
            self.driver._memory(workspace.value, count.value)
        assert all(address % 16 == 0 for _, address in parts)
        math, dtype = how.math, parts[0][0].dtype
        assert math in ((0, 1) if dtype in (2, 9) else (3,))
        padding = tuple((low, low) for low in how.padding)

        def compute() -> None:
            first, second, result = (self._array(tensor, address) for tensor, address in parts)
            one, two = first.astype(np.float64), second.astype(np.float64)
            spatial = len(how.stride)
            layout = f"NC{'DHW'[-spatial:]}"
            windows = how.stride, padding
            if kind == "Forward":
                wide = np.dtype(np.float64)
                made = numpy_convolution(one, two, *windows, how.dilation, how.groups, layout, wide)
            elif kind == "BackwardData":
                reach = [d * (k - 1) + 1 for d, k in zip(how.dilation, one.shape[2:], strict=True)]
                left = tuple(
                    (size + 2 * p - r) % s
                    for size, p, r, s in zip(result.shape[2:], how.padding, reach, how.stride, strict=True)
                )
                made = numpy_transposed_convolution(two, one, *windows, left, how.dilation, how.groups, layout)
            else:
                made = numpy_weight_gradient(one, two, result.shape[2:], *windows, how.dilation, how.groups, layout)
            result[...] = behind(made).astype(result.dtype)

        last = parts[0][0].order[-1] == 1
        self.convolutions.append(Convolution(kind, last, number.value, math, count.value, words))
        self.driver._do(self._stream, compute)
        return 0

    def _array(self, tensor: Tensor, address: int) -> np.ndarray:
        kind = np.dtype(_DTYPES[tensor.dtype])
        memory = self.driver._memory(address, int(np.prod(tensor.dims)) * kind.itemsize).view(kind)
        order = tensor.order
        lying = memory.reshape([tensor.dims[axis] for axis in order])
        return lying.transpose([order.index(axis) for axis in range(len(order))])


def _numbers(given: Any, rank: Any) -> tuple[int, ...]:
    assert given._type_ is ctypes.c_int and len(given) == rank.value and type(rank) is ctypes.c_int
    return tuple(given)


def _strides(dims: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    made, step = [0] * len(dims), 1
    for axis in reversed(order):
        made[axis], step = step, step * dims[axis]
    return tuple(made)
