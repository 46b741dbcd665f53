"""Compiling a program for the CPU, and calling it.

Everything that the structured first-order core can say is compiled, with these exceptions, which are CompileErrors:
- parameters and results of the entry that hold references or stacks;
- function values, which earlier passes remove;
- data types that are not recursive but have more than `layout.MAXIMUM_LEAVES` tensors in them.

What the run may find: an assertion that fails, recursion deeper than the thread's C stack allows, memory that does not
suffice; they are ExecutionErrors. Memory of recursive data, references and stacks is given back when the call ends, not
before.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from relay.codegen.exchange import Make, Passing, Reading, storage
from relay.errors import ExecutionError, InternalError
from relay.ir.expr import Module
from relay.ir.types import DataDefinition

if TYPE_CHECKING:
    from relay.codegen.assembly import Native
    from relay.codegen.layout import TensorLayout

# As in relay.codegen.code, which is imported only when something is compiled.
_STATUS, _DEPTH, _STACK_LIMIT, _WORKSPACE = range(4)
_RUNNING_OUT_OF_MEMORY, _TOO_DEEP, _EXTERNAL, _FIRST_FAILURE = range(1, 5)

_ALIGNMENT = 64
_STACK_RESERVE = 768 * 1024  # bytes of C stack that recursion leaves for kernels and callbacks


def compile_module(module: Module, *, threads: int | None = None, make: Make | None = None) -> Program:
    """Machine code for a structured first-order module without derivatives.

    `make(definition, constructor, fields)` makes the values of data types in the result; as arguments, values have
    `constructor` and `fields`.
    `threads`: how many a kernel may use; by default RELAY_NUM_THREADS, else the processors that this process may use.
    Raises CompileError for what the module's text lists, InternalError if TVM refuses our code.
    """
    from relay.codegen.assembly import assemble

    return Program(assemble(module, default_threads() if threads is None else threads), make or DataResult)


def default_threads() -> int:
    """RELAY_NUM_THREADS, else the number of processors that this process may use."""
    given = os.environ.get("RELAY_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@attrs.frozen(eq=False)
class DataResult:
    """A value of a data type that a program returns, unless the caller of `compile_module` makes its own."""

    definition: DataDefinition
    constructor: str
    fields: tuple[Any, ...]


class Program:
    """A compiled program: call it with one value for each parameter. Calls from several threads may overlap."""

    def __init__(self, native: Native, make: Make) -> None:
        from relay.codegen.layout import TensorLayout, leaves

        self.native = native
        self._make = make
        self._function = native.function
        self._expected = [_exchanged(leaf) for layout in native.parameters for leaf in leaves(layout)]
        self._results = [_exchanged(leaf) for leaf in leaves(native.result)]
        self._flat = all(isinstance(layout, TensorLayout) for layout in native.parameters)
        self._single = isinstance(native.result, TensorLayout)
        self._contexts: list[_Context] = []  # those that no call uses; popping and appending are atomic

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Arrays, tuples and data as the entry's parameter types say; likewise the result, which is new memory.

        Raises ExecutionError for what the run finds.
        """
        try:
            context = self._contexts.pop()
        except IndexError:
            context = _Context(self.native)
        flat = arguments if self._flat else self._pass(arguments, context)
        inputs = [
            array
            if array.dtype is dtype and array.shape == dims and array.flags.carray and storage is dtype
            else _normalised(array, storage, dtype, dims)
            for array, (storage, dtype, dims) in zip(flat, self._expected, strict=True)
        ]
        outputs = [np.empty(dims, storage) for storage, _, dims in self._results]
        if self.native.recursive:
            context.table[_STACK_LIMIT] = _stack_limit()
            context.table[_DEPTH] = 0
        self._function(context.tensor, *inputs, *outputs)
        status = context.status[0]
        if status:
            depth = int(context.table[_DEPTH])
            self._contexts.append(context)
            raise self._error(int(status), depth)
        if self._single:
            self._contexts.append(context)
            storage, dtype, _ = self._results[0]
            return outputs[0] if storage is dtype else outputs[0].view(dtype)
        finished = (o if s is d else o.view(d) for o, (s, d, _) in zip(outputs, self._results, strict=True))
        result = Reading(context.table, self._make).read(self.native.result, finished)
        self._contexts.append(context)
        return result

    def _pass(self, arguments: Sequence[Any], context: _Context) -> list[Any]:
        """The leaves of the arguments; recursive parts go to the pools of the context."""
        passing = Passing()
        for argument, layout in zip(arguments, self.native.parameters, strict=True):
            passing.add(argument, layout)
        if self.native.inputs:
            passing.fill(context.table, self.native.inputs)
        return passing.leaves

    def _error(self, status: int, depth: int) -> BaseException:
        if status == _RUNNING_OUT_OF_MEMORY:
            return ExecutionError("there is not enough memory for the data of the program")
        if status == _TOO_DEEP:
            return ExecutionError(
                f"recursion deeper than {depth}: the thread's stack is used up",
                help="use a loop, run it in a thread with a larger stack (threading.stack_size), or raise `ulimit -s`",
            )
        if status == _EXTERNAL:
            error = self.native.externals.raised.error
            del self.native.externals.raised.error
            assert isinstance(error, BaseException)
            return error
        message, span = self.native.failures[status - _FIRST_FAILURE]
        return ExecutionError(message, span)


class _Context:
    """What one call at a time uses: the context table, the workspace, and the pools, kept for the next call."""

    def __init__(self, native: Native) -> None:
        import tvm_ffi

        self.table = np.zeros(native.table_size, np.int64)
        self.status = self.table[:1]
        self.tensor = tvm_ffi.from_dlpack(self.table)
        self._workspace = np.empty(native.workspace + _ALIGNMENT, np.uint8)
        address = self._workspace.ctypes.data
        self.table[_WORKSPACE] = address + -address % _ALIGNMENT
        for place, array in native.constants.items():
            self.table[place] = array.ctypes.data
        self._constants = native.constants
        self._pools = native.pools
        self._free = _libc_free()

    def __del__(self) -> None:
        for place, count in getattr(self, "_pools", ()):
            for base in self.table[place + 2 : place + 2 + count]:
                self._free(int(base))


def _libc_free() -> Callable[[int], None]:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return lambda address: free(address)


# ---- arguments and results


def _exchanged(leaf: TensorLayout) -> tuple[np.dtype[Any], np.dtype[Any], tuple[int, ...]]:
    """The dtype that a leaf's array is exchanged as, its own, and its shape."""
    return storage(leaf.base.dtype), leaf.base.dtype, leaf.dims


def _normalised(array: Any, storage: np.dtype[Any], dtype: np.dtype[Any], dims: tuple[int, ...]) -> np.ndarray:
    """An array that compiled code can read: a copy where the given one is not contiguous, aligned and writeable."""
    given = np.asarray(array)
    if given.dtype.newbyteorder("=") != dtype or given.shape != dims:
        raise InternalError(f"a program for {dtype} {dims} was called with {given.dtype} {given.shape}")
    if not (given.flags.carray and given.dtype.isnative):
        given = np.array(given, dtype=dtype, order="C")
    return given if storage is dtype else given.view(storage)


# ---- the C stack

_thread = threading.local()


def _stack_limit() -> int:
    """The lowest address of this thread's C stack that recursion may reach; 0 if it is not known."""
    limit: int | None = getattr(_thread, "limit", None)
    if limit is None:
        limit = _thread.limit = _find_stack_limit()
    return limit


def _find_stack_limit() -> int:
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None, use_errno=True)
        attributes = (ctypes.c_char * 256)()
        libc.pthread_self.restype = ctypes.c_void_p
        if libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attributes) == 0:
            lowest, size = ctypes.c_void_p(), ctypes.c_size_t()
            libc.pthread_attr_getstack(attributes, ctypes.byref(lowest), ctypes.byref(size))
            libc.pthread_attr_destroy(attributes)
            return (lowest.value or 0) + min(_STACK_RESERVE, size.value // 2)
    return 0
