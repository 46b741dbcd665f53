"""A stand-in for cuBLASLt: it has what its C interface is given, refuses what the library would refuse, and computes
products in the memory of the emulated driver."""

from __future__ import annotations

import ctypes
from typing import Any

import attrs
import ml_dtypes
import numpy as np

from gpu.emulation import EmulatedDriver

NOT_SUPPORTED, INVALID_VALUE = 15, 7

_DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}

_OPERATION = {3: ctypes.c_int32, 4: ctypes.c_int32, 7: ctypes.c_uint32, 8: ctypes.c_void_p}
"""The attributes of operations, and their types."""

_LAYOUT = {5: ctypes.c_int32, 6: ctypes.c_int64}
"""The attributes of layouts: the number of matrices, and the elements from one to the next."""

_PREFERENCE = {1: ctypes.c_size_t, **dict.fromkeys((5, 6, 7, 8), ctypes.c_uint32)}

EPILOGUES = {1: "", 2: "relu", 4: "bias", 6: "relu bias"}


@attrs.define(eq=False)
class Operation:
    """A descriptor of an operation."""

    compute: int
    scale: int
    attributes: dict[int, Any] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Layout:
    """A descriptor of a matrix, column by column."""

    dtype: int
    rows: int
    columns: int
    leading: int
    attributes: dict[int, Any] = attrs.field(factory=dict)

    @property
    def batch(self) -> int:
        return int(self.attributes.get(5, 1))

    @property
    def stride(self) -> int:
        return int(self.attributes.get(6, 0))


@attrs.define(eq=False)
class Multiplication:
    """A product that was started: its epilogue, its factors, and the elements between the matrices of a batch."""

    epilogue: str
    scale: float
    kept: float
    workspace: int
    batch: int = 1
    strides: tuple[int, ...] = ()


class StandIn:
    """The functions of cuBLASLt that are used. `multiplications`: what was started; with `refuses` there is no
    algorithm for anything."""

    def __init__(self, driver: EmulatedDriver, workspace: int = 4096, refuses: bool = False) -> None:
        self.driver, self.workspace, self.refuses = driver, workspace, refuses
        self.multiplications: list[Multiplication] = []
        self.searches = 0
        self._made: dict[int, Any] = {}

    def _create(self, place: Any, made: Any) -> int:
        number = len(self._made) + 1
        self._made[number] = made
        place._obj.value = number
        return 0

    def cublasLtCreate(self, place: Any) -> int:
        return self._create(place, "handle")

    def cublasLtMatmulDescCreate(self, place: Any, compute: Any, scale: Any) -> int:
        assert (compute.value, scale.value) in ((68, 0), (70, 1))
        return self._create(place, Operation(compute.value, scale.value))

    def cublasLtMatmulDescSetAttribute(self, operation: Any, attribute: Any, value: Any, size: Any) -> int:
        return self._set(self._made[operation.value].attributes, _OPERATION, attribute, value, size)

    def cublasLtMatrixLayoutCreate(self, place: Any, dtype: Any, rows: Any, columns: Any, leading: Any) -> int:
        types = [type(part) for part in (rows, columns, leading)]
        assert types == [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64] and leading.value >= rows.value > 0
        return self._create(place, Layout(dtype.value, rows.value, columns.value, leading.value))

    def cublasLtMatrixLayoutSetAttribute(self, layout: Any, attribute: Any, value: Any, size: Any) -> int:
        return self._set(self._made[layout.value].attributes, _LAYOUT, attribute, value, size)

    def cublasLtMatmulPreferenceCreate(self, place: Any) -> int:
        return self._create(place, {})

    def cublasLtMatmulPreferenceSetAttribute(self, preference: Any, attribute: Any, value: Any, size: Any) -> int:
        return self._set(self._made[preference.value], _PREFERENCE, attribute, value, size)

    def cublasLtMatmulPreferenceDestroy(self, preference: Any) -> int:
        del self._made[preference.value]
        self._made[preference.value] = None
        return 0

    def _set(self, into: dict[int, Any], known: dict[int, Any], attribute: Any, value: Any, size: Any) -> int:
        kind = known[attribute.value]
        if type(value._obj) is not kind or size.value != ctypes.sizeof(kind):
            return INVALID_VALUE
        into[attribute.value] = value._obj.value
        return 0

    def cublasLtMatmulAlgoGetHeuristic(
        self, handle: Any, operation: Any, a: Any, b: Any, c: Any, d: Any, preference: Any, wanted: Any, result: Any,
        count: Any,
    ) -> int:  # fmt: skip
        self.searches += 1
        assert self._made[handle.value] == "handle" and wanted.value == 1 and ctypes.sizeof(result._obj) == 96
        given = self._made[preference.value]
        assert set(given) == set(_PREFERENCE) and given[1] >= self.workspace
        assert all(given[n] == 16 for n in (5, 6, 7, 8))
        self._sizes(self._made[operation.value], *(self._made[layout.value] for layout in (a, b, c, d)))
        if self.refuses:
            return NOT_SUPPORTED
        result._obj.algorithm[0], result._obj.workspace, count._obj.value = 77, self.workspace, 1
        return 0

    def _sizes(self, operation: Operation, a: Layout, b: Layout, c: Layout, d: Layout) -> tuple[int, int, int]:
        """The sizes that the descriptors agree on."""
        assert len({(layout.dtype, layout.batch) for layout in (a, b, c, d)}) == 1
        assert all(x.stride in (0, x.rows * x.columns) for x in (a, b)) and c.stride == d.stride
        assert d.batch == 1 or d.stride == d.rows * d.columns
        assert (operation.compute == 70) == (a.dtype == 1)
        turned_a, turned_b = operation.attributes[3], operation.attributes[4]
        rows, terms = (a.columns, a.rows) if turned_a else (a.rows, a.columns)
        terms_of_b, columns = (b.columns, b.rows) if turned_b else (b.rows, b.columns)
        assert terms == terms_of_b and all((x.rows, x.columns) == (rows, columns) for x in (c, d))
        return rows, columns, terms

    def cublasLtMatmul(
        self, handle: Any, operation: Any, alpha: Any, a: Any, a_layout: Any, b: Any, b_layout: Any, beta: Any, c: Any,
        c_layout: Any, d: Any, d_layout: Any, algorithm: Any, workspace: Any, workspace_bytes: Any, stream: Any,
    ) -> int:  # fmt: skip
        described = self._made[operation.value]
        layouts = [self._made[layout.value] for layout in (a_layout, b_layout, c_layout, d_layout)]
        rows = self._sizes(described, *layouts)[0]
        number = ctypes.c_double if described.scale == 1 else ctypes.c_float
        assert type(alpha._obj) is type(beta._obj) is number and algorithm._obj[0] == 77
        assert self._made[handle.value] == "handle" and workspace_bytes.value == self.workspace
        epilogue, factors = EPILOGUES[described.attributes[7]], (alpha._obj.value, beta._obj.value)
        bias = described.attributes.get(8) if "bias" in epilogue else None
        addresses = [part.value for part in (a, b, c, d)]
        if self.workspace:
            self.driver._memory(workspace.value, self.workspace)
        assert all(address % 16 == 0 for address in (*addresses, bias or 0))

        def multiply(number: int) -> None:
            left, right, old, new = (self._matrix(x, y, number) for x, y in zip(addresses, layouts, strict=True))
            wide = np.float64
            factor_a = left.astype(wide).T if described.attributes[3] else left.astype(wide)
            factor_b = right.astype(wide).T if described.attributes[4] else right.astype(wide)
            made = factors[0] * (factor_a @ factor_b) + (factors[1] * old.astype(wide) if factors[1] else 0.0)
            if bias is not None:
                made = made + self._vector(bias, rows, layouts[3].dtype)[:, None].astype(wide)
            new[...] = (np.maximum(made, 0) if "relu" in epilogue else made).astype(new.dtype)

        def multiply_all() -> None:
            for number in range(layouts[3].batch):
                multiply(number)

        strides = tuple(layout.stride for layout in layouts) if layouts[3].batch > 1 else ()
        made = Multiplication(epilogue, *factors, workspace_bytes.value, layouts[3].batch, strides)
        self.multiplications.append(made)
        self.driver._do(stream.value, multiply_all)
        return 0

    def _vector(self, address: int, count: int, dtype: int) -> np.ndarray:
        kind = np.dtype(_DTYPES[dtype])
        return self.driver._memory(address, count * kind.itemsize).view(kind)

    def _matrix(self, address: int, layout: Layout, number: int) -> np.ndarray:
        start = address + number * layout.stride * np.dtype(_DTYPES[layout.dtype]).itemsize
        elements = self._vector(start, layout.leading * layout.columns, layout.dtype)
        return elements.reshape(layout.columns, layout.leading)[:, : layout.rows].T
