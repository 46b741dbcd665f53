"""cuBLASLt through its C interface.

Its matrices are column by column, so that row by row y = left @ right is to it y' = right' @ left', on the same memory.
The numbers are those of NVIDIA's header cublasLt.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.compiler import INSTALL
from relay.codegen.cuda.libraries.installed import open_library
from relay.codegen.cuda.libraries.products import LibraryProduct
from relay.codegen.cuda.memory import Memory
from relay.errors import InternalError

_FLOAT32, _FLOAT64, _FLOAT16, _BFLOAT16 = 0, 1, 2, 14  # cudaDataType

_DTYPES = {"float32": _FLOAT32, "float64": _FLOAT64, "float16": _FLOAT16, "bfloat16": _BFLOAT16}

_COMPUTE_FLOAT32, _COMPUTE_FLOAT64 = 68, 70  # cublasComputeType_t, of which none rounds factors to TF32

_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _BIAS_POINTER = 3, 4, 7, 8  # cublasLtMatmulDescAttributes_t

_BATCH_COUNT, _BATCH_STRIDE = 5, 6  # cublasLtMatrixLayoutAttribute_t

_DEFAULT, _RELU, _BIAS = 1, 2, 4  # cublasLtEpilogue_t: RELU_BIAS is both

_MOST_WORKSPACE, _ALIGNMENT_OF_A = 1, 5  # cublasLtMatmulPreferenceAttributes_t: those of B, C and D follow

NAME = "cublasLtMatmul"
"""The function that a profile names in place of a kernel."""

WORKSPACE_BYTES = 32 << 20
"""Memory that a product may take beside its operands, as NVIDIA advises for the H100."""

ALIGNMENT = 16
"""Bytes by which operands are aligned at least: those that come from other programs, too."""

MISSING = f"cuBLASLt is not installed, so large products run on Relay's own kernels: {INSTALL}"


class _Heuristic(ctypes.Structure):
    """The C type cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@attrs.frozen(eq=False)
class Plan:
    """The choice of cuBLASLt for a product of given sizes: descriptors of the operation and of the matrices, and the
    algorithm."""

    product: LibraryProduct
    operation: ctypes.c_void_p
    layouts: tuple[ctypes.c_void_p, ...]
    heuristic: _Heuristic


def installed_library() -> Any:
    """The library; None if it is not installed."""
    return open_library("cu13", "libcublasLt.so.13")


class CublasLt:
    """The library for one GPU, whose context is current in each call."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handle = self._create("cublasLtCreate")
        self._plans: dict[object, Plan | None] = {}

    def plan(self, product: LibraryProduct, sizes: tuple[int, ...]) -> Plan | None:
        """The plan of a product of (rows, columns, terms, products of a batch); None if the library has no algorithm
        for it."""
        rows, columns, terms, batch = sizes
        of_sizes = attrs.evolve(product, rows=rows, columns=columns, terms=terms, batch=batch)
        key = attrs.astuple(of_sizes)
        if key not in self._plans:
            self._plans[key] = self._new_plan(of_sizes, rows, columns, terms, batch)
        return self._plans[key]

    def launch(
        self, plan: Plan, addresses: Sequence[int], result: int, stream: int, allocate: Callable[[int], Memory]
    ) -> None:
        """Start a product on operands at these addresses. `allocate` gives memory that is not used again before the
        product has run."""
        product = plan.product
        if product.bias is not None:
            bias = ctypes.c_void_p(addresses[product.bias])
            self._set("cublasLtMatmulDescSetAttribute", plan.operation, _BIAS_POINTER, bias)
        number = ctypes.c_double if product.dtype == "float64" else ctypes.c_float
        scale, kept = number(product.scale), number(float(product.addend is not None))
        addend = result if product.addend is None else addresses[product.addend]
        count = int(plan.heuristic.workspace)
        workspace = allocate(count) if count else None
        a, b, c, d = plan.layouts
        self._call(
            NAME,
            *(self._handle, plan.operation, ctypes.byref(scale)),
            *(ctypes.c_void_p(addresses[product.right]), a, ctypes.c_void_p(addresses[product.left]), b),
            *(ctypes.byref(kept), ctypes.c_void_p(addend), c, ctypes.c_void_p(result), d),
            ctypes.byref(plan.heuristic.algorithm),
            *(ctypes.c_void_p(workspace.address if workspace is not None else None), ctypes.c_size_t(count)),
            ctypes.c_void_p(stream),
        )

    def _new_plan(self, product: LibraryProduct, rows: int, columns: int, terms: int, batch: int) -> Plan | None:
        dtype, is_double = _DTYPES[product.dtype], product.dtype == "float64"
        compute, scale = (_COMPUTE_FLOAT64, _FLOAT64) if is_double else (_COMPUTE_FLOAT32, _FLOAT32)
        operation = self._create("cublasLtMatmulDescCreate", ctypes.c_int(compute), ctypes.c_int(scale))
        turned = (_TRANSPOSE_A, product.right_transposed), (_TRANSPOSE_B, product.left_transposed)
        for attribute, value in turned:
            self._set("cublasLtMatmulDescSetAttribute", operation, attribute, ctypes.c_int32(value))
        epilogue = (_RELU * product.relu | _BIAS * (product.bias is not None)) or _DEFAULT
        self._set("cublasLtMatmulDescSetAttribute", operation, _EPILOGUE, ctypes.c_uint32(epilogue))
        if product.bias is not None:  # of which the heuristic reads the alignment alone
            self._set("cublasLtMatmulDescSetAttribute", operation, _BIAS_POINTER, ctypes.c_void_p(ALIGNMENT))
        right = (terms, columns) if product.right_transposed else (columns, terms)
        left = (rows, terms) if product.left_transposed else (terms, rows)
        result = columns, rows, batch, False
        matrices = (*right, batch, product.right_shared), (*left, batch, product.left_shared), result, result
        layouts = tuple(self._layout(dtype, *matrix) for matrix in matrices)
        preference = self._create("cublasLtMatmulPreferenceCreate")
        most = ctypes.c_size_t(WORKSPACE_BYTES)
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _MOST_WORKSPACE, most)
        for n in range(4):
            alignment = ctypes.c_uint32(ALIGNMENT)
            self._set("cublasLtMatmulPreferenceSetAttribute", preference, _ALIGNMENT_OF_A + n, alignment)
        heuristic, found = _Heuristic(), ctypes.c_int(0)
        chosen = ctypes.byref(heuristic), ctypes.byref(found)
        wanted = self._handle, operation, *layouts, preference, ctypes.c_int(1), *chosen
        status = self._library.cublasLtMatmulAlgoGetHeuristic(*wanted)
        self._call("cublasLtMatmulPreferenceDestroy", preference)
        if status or not found.value or heuristic.state:
            return None
        return Plan(product, operation, layouts, heuristic)

    def _layout(self, dtype: int, rows: int, columns: int, batch: int, shared: bool) -> ctypes.c_void_p:
        """Matrices that lie column by column, one after another, or one that is `shared` by the whole batch."""
        sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
        layout = self._create("cublasLtMatrixLayoutCreate", ctypes.c_int(dtype), *sizes)
        if batch > 1:
            self._set("cublasLtMatrixLayoutSetAttribute", layout, _BATCH_COUNT, ctypes.c_int32(batch))
            stride = ctypes.c_int64(0 if shared else rows * columns)
            self._set("cublasLtMatrixLayoutSetAttribute", layout, _BATCH_STRIDE, stride)
        return layout

    def _create(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made), *arguments)
        return made

    def _set(self, name: str, target: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._call(name, target, ctypes.c_int(attribute), ctypes.byref(value), size)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise InternalError(f"cuBLASLt gives status {status} to {name}")


__all__ = ["ALIGNMENT", "MISSING", "WORKSPACE_BYTES", "CublasLt", "Plan", "installed_library"]
