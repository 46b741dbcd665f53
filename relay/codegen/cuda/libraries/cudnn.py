"""cuDNN through its C interface: convolutions and their derivatives.

Of its two interfaces this is the older one, whose descriptors are plain values that can be made and checked without a
GPU. The numbers are those of NVIDIA's headers cudnn_graph.h and cudnn_ops.h of version 9.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.compiler import INSTALL
from relay.codegen.cuda.libraries.convolutions import DATA, FILTER, FORWARD, LibraryConvolution
from relay.codegen.cuda.libraries.installed import open_library
from relay.codegen.cuda.memory import Memory
from relay.errors import InternalError

_FLOAT32, _FLOAT64, _FLOAT16, _BFLOAT16 = 0, 1, 2, 9  # cudnnDataType_t

_DTYPES = {"float32": _FLOAT32, "float64": _FLOAT64, "float16": _FLOAT16, "bfloat16": _BFLOAT16}

_DEFAULT_MATH, _TENSOR_CORES, _NO_CONVERSION = 0, 1, 3  # cudnnMathType_t: the last one rounds nothing to TF32

_CROSS_CORRELATION, _RELU, _IDENTITY = 1, 1, 5  # cudnnConvolutionMode_t, cudnnActivationMode_t

_DETERMINISTIC, _CHANNELS_LAST = 1, 1  # cudnnDeterminism_t, cudnnTensorFormat_t

_NOT_SUPPORTED = range(3000, 4000)  # cudnnStatus_t: what the library does not have, for several reasons

_NAMES = {FORWARD: "Forward", DATA: "BackwardData", FILTER: "BackwardFilter"}

_BY_SUMS = {FORWARD: (0, 1, 2), DATA: (1,), FILTER: (1,)}
"""The algorithms that sum up products, by their numbers; others transform the tensors first (Fourier, Winograd)."""

_PRECOMPUTED = 1
"""The algorithm that alone has an epilogue without an activation."""

NAME = "cudnnConvolution"
"""The name that a profile has in place of a kernel's."""

WORKSPACE_BYTES = 256 << 20
"""Memory that a convolution may take beside its operands."""

MISSING = f"cuDNN is not installed, so large convolutions run on Relay's own kernels: {INSTALL}"


class _Performance(ctypes.Structure):
    """The C types cudnnConvolution..AlgoPerf_t."""

    _fields_ = (
        ("algorithm", ctypes.c_int),
        ("status", ctypes.c_int),
        ("time", ctypes.c_float),
        ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int),
        ("math", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
    )


_MOST_ALGORITHMS = 16


@attrs.define(eq=False)
class Plan:
    """The choice of cuDNN for a convolution of known sizes: descriptors of the three tensors, in the order of the
    library's functions, and of the convolution, and the algorithm with its memory. `supported` is False once the
    library has refused it after all."""

    convolution: LibraryConvolution
    tensors: tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    operation: ctypes.c_void_p
    algorithm: int
    workspace: int
    bias: ctypes.c_void_p | None = None
    activation: ctypes.c_void_p | None = None
    supported: bool = True


def installed_library() -> Any:
    """The library; None if it is not installed."""
    return open_library("cudnn", "libcudnn.so.9")


class Cudnn:
    """The library for one GPU, whose context is current in each call."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handle = self._create("cudnnCreate")
        self._plans: dict[LibraryConvolution, Plan | None] = {}

    def plan(self, convolution: LibraryConvolution) -> Plan | None:
        """The plan of a convolution of known sizes; None if the library has no algorithm for it."""
        if convolution not in self._plans:
            self._plans[convolution] = self._new_plan(convolution)
        plan = self._plans[convolution]
        return plan if plan is not None and plan.supported else None

    def launch(
        self, plan: Plan, addresses: Sequence[int | None], stream: int, allocate: Callable[[int], Memory]
    ) -> bool:
        """Start a convolution on its factors, addend, bias and result at these addresses; False if the library does not
        have it after all. `allocate` gives memory that is not used again before it has run."""
        first, second, addend, bias, result = map(ctypes.c_void_p, addresses)
        if plan.convolution.kind == DATA:  # the library takes the weight first
            first, second = second, first
        self._call("cudnnSetStream", self._handle, ctypes.c_void_p(stream))
        workspace = allocate(plan.workspace) if plan.workspace else None
        number = ctypes.c_double if plan.convolution.dtype == "float64" else ctypes.c_float
        one, none = number(1.0), number(0.0)
        d1, d2, d3 = plan.tensors
        factors = self._handle, ctypes.byref(one), d1, first, d2, second, plan.operation, ctypes.c_int(plan.algorithm)
        memory = ctypes.c_void_p(None if workspace is None else workspace.address), ctypes.c_size_t(plan.workspace)
        if plan.activation is None:
            name = f"cudnnConvolution{_NAMES[plan.convolution.kind]}"
            status = getattr(self._library, name)(*factors, *memory, ctypes.byref(none), d3, result)
        else:
            name = "cudnnConvolutionBiasActivationForward"
            kept, other = (none, result) if addend.value is None else (one, addend)
            behind = ctypes.byref(kept), d3, other, plan.bias, bias, plan.activation, d3, result
            status = getattr(self._library, name)(*factors, *memory, *behind)
        plan.supported = status not in _NOT_SUPPORTED
        if status and plan.supported:
            raise InternalError(f"cuDNN gives status {status} to {name}")
        return plan.supported

    def _new_plan(self, convolution: LibraryConvolution) -> Plan | None:
        operation = self._convolution(convolution)
        x, y = (self._tensor(convolution, shape) for shape in (convolution.x, convolution.y))
        weight = self._filter(convolution)
        tensors = {FORWARD: (x, weight, y), DATA: (weight, y, x), FILTER: (x, y, weight)}[convolution.kind]
        found = self._algorithm(convolution, tensors, operation)
        if found is None:
            return None
        self._call("cudnnSetConvolutionMathType", operation, ctypes.c_int(found.math))
        plan = Plan(convolution, tensors, operation, found.algorithm, found.memory)
        if convolution.has_epilogue:
            channels = (1, convolution.y[1], *(1 for _ in convolution.y[2:]))
            plan.bias = self._tensor(convolution, channels)
            plan.activation = self._create("cudnnCreateActivationDescriptor")
            mode = ctypes.c_int(_RELU if convolution.relu else _IDENTITY)
            keep_nan, bound = ctypes.c_int(0), ctypes.c_double(0.0)
            self._call("cudnnSetActivationDescriptor", plan.activation, mode, keep_nan, bound)
        return plan

    def _algorithm(
        self, convolution: LibraryConvolution, tensors: Sequence[ctypes.c_void_p], operation: ctypes.c_void_p
    ) -> _Performance | None:
        """The first algorithm by the library's estimates that gives equal bits for equal calls, adds up as wanted, and
        takes little enough memory; None if there is none."""
        name = f"cudnnGetConvolution{_NAMES[convolution.kind]}"
        first, second, third = tensors
        described = self._handle, first, second, operation, third
        results, count = (_Performance * _MOST_ALGORITHMS)(), ctypes.c_int(0)
        most = ctypes.c_int(_MOST_ALGORITHMS)
        status = getattr(self._library, f"{name}Algorithm_v7")(*described, most, ctypes.byref(count), results)
        if status in _NOT_SUPPORTED:
            return None
        if status:
            raise InternalError(f"cuDNN gives status {status} to {name}Algorithm_v7")
        is_half = convolution.dtype in ("float16", "bfloat16")
        for found in results[: count.value]:
            if found.status or found.determinism != _DETERMINISTIC:
                continue
            if found.math not in ((_DEFAULT_MATH, _TENSOR_CORES) if is_half else (_DEFAULT_MATH, _NO_CONVERSION)):
                continue
            if is_half and found.algorithm not in _BY_SUMS[convolution.kind]:
                continue
            if convolution.has_epilogue and not convolution.relu and found.algorithm != _PRECOMPUTED:
                continue
            needed, algorithm = ctypes.c_size_t(0), ctypes.c_int(found.algorithm)
            status = getattr(self._library, f"{name}WorkspaceSize")(*described, algorithm, ctypes.byref(needed))
            if status or needed.value > WORKSPACE_BYTES:
                continue
            found.memory = needed.value
            found.math = found.math if is_half else _NO_CONVERSION
            return found
        return None

    # ---- descriptors

    def _convolution(self, convolution: LibraryConvolution) -> ctypes.c_void_p:
        made = self._create("cudnnCreateConvolutionDescriptor")
        low = _spatial([low for low, _ in convolution.padding], 0)
        numbers = low, _spatial(convolution.stride, 1), _spatial(convolution.dilation, 1)
        compute = _FLOAT64 if convolution.dtype == "float64" else _FLOAT32
        rank = ctypes.c_int(len(numbers[0]))
        kinds = ctypes.c_int(_CROSS_CORRELATION), ctypes.c_int(compute)
        self._call("cudnnSetConvolutionNdDescriptor", made, rank, *map(_integers, numbers), *kinds)
        self._call("cudnnSetConvolutionGroupCount", made, ctypes.c_int(convolution.groups))
        is_half = convolution.dtype in ("float16", "bfloat16")
        math = ctypes.c_int(_TENSOR_CORES if is_half else _NO_CONVERSION)
        self._call("cudnnSetConvolutionMathType", made, math)
        return made

    def _tensor(self, convolution: LibraryConvolution, shape: Sequence[Any]) -> ctypes.c_void_p:
        """An activation, or what goes along its channels."""
        made = self._create("cudnnCreateTensorDescriptor")
        dims = [*shape[:2], *_spatial(shape[2:], 1)]
        channels = 1 if convolution.channels_last else len(dims)
        order = [0, *range(2, len(dims)), 1] if channels == 1 else [*range(len(dims))]
        strides, step = [0] * len(dims), 1
        for axis in reversed(order):
            strides[axis], step = step, step * dims[axis]
        dtype, rank = ctypes.c_int(_DTYPES[convolution.dtype]), ctypes.c_int(len(dims))
        self._call("cudnnSetTensorNdDescriptor", made, dtype, rank, _integers(dims), _integers(strides))
        return made

    def _filter(self, convolution: LibraryConvolution) -> ctypes.c_void_p:
        made = self._create("cudnnCreateFilterDescriptor")
        dims = [*convolution.weight[:2], *_spatial(convolution.weight[2:], 1)]
        layout = ctypes.c_int(_CHANNELS_LAST if convolution.channels_last else 0)
        dtype, rank = ctypes.c_int(_DTYPES[convolution.dtype]), ctypes.c_int(len(dims))
        self._call("cudnnSetFilterNdDescriptor", made, dtype, layout, rank, _integers(dims))
        return made

    def _create(self, name: str) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made))
        return made

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise InternalError(f"cuDNN gives status {status} to {name}")


def _spatial(numbers: Sequence[Any], fill: int) -> list[Any]:
    """Numbers for spatial axes, of which the library wants two at least."""
    return [*(fill for _ in range(2 - len(numbers))), *numbers]


def _integers(numbers: Sequence[Any]) -> Any:
    return (ctypes.c_int * len(numbers))(*numbers)


__all__ = ["MISSING", "NAME", "WORKSPACE_BYTES", "Cudnn", "Plan", "installed_library"]
