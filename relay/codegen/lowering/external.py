"""External operators bring their own native function: the program calls back into Python with addresses.

Their inputs are copied into arrays of their own, aligned as TVM's functions expect, so that nothing that such a
function keeps can dangle; its output is copied back.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.codegen.runtime.devices import Callbacks, Device, aligned_array
from relay.codegen.tvm.tir import Expression, tirx
from relay.errors import CompileError, ExecutionError, Span
from relay.ir import program_output
from relay.ir.dims import TypeId, evaluate
from relay.ir.expr import OpCall, Print
from relay.ir.types import FunctionType, TensorType, Type
from relay.operator import Operator

log = logging.getLogger("relay.compile")

_numbers = itertools.count()


class Externals(Callbacks):
    """The external functions of one program."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, FunctionType], str] = {}

    def call(
        self,
        operator: Operator,
        call: OpCall,
        type_: FunctionType,
        dims: tuple[TypeId, ...],
        given: Sequence[Expression],
    ) -> Expression:
        """The status of a call of the operator's function on addresses of the operands and the result, and the sizes
        of the symbolic dims in its type. Raises CompileError if the function cannot be made; where there are such dims,
        it is made when the program runs, once for each size."""
        key = (operator.name, type_)
        if key not in self._known:
            callback = _Callback(operator, type_, dims, call.span, self.raised)
            if not dims:
                callback.function(())
            self._known[key] = self._register(callback)
        return tirx.call_packed(self._known[key], *given)

    def device_call(
        self, function: Callable[..., None], types: Sequence[TensorType], results: int, given: Sequence[Expression]
    ) -> Expression:
        """The status of a call of a function on arrays of these types, of operands and then this many results, by
        their addresses."""
        name = f"relay.device.{uuid.uuid4().hex}"  # also in a process that loads it
        self.add_device(Device(name, function, tuple(types), results))
        return tirx.call_packed(name, *given)

    def print(
        self, node: Print, types: Sequence[Type | None], values: Sequence[Expression], sizes: Sequence[Expression]
    ) -> Expression:
        """The status of writing a text with the values at these addresses. `sizes` are all their extents."""
        tensors = [t for t in types if isinstance(t, TensorType)]
        return tirx.call_packed(self._register(_Printer(node, tensors, self.raised)), *values, *sizes)

    def _register(self, callback: Callable[..., int]) -> str:
        self.calls_python = True
        name = f"relay.external.{next(_numbers)}"
        self.register(name, callback)
        return name


@attrs.frozen(eq=False)
class _Callback:
    """The function that compiled code calls: addresses and sizes in, status out. It never raises. It never raises."""

    operator: Operator
    type: FunctionType
    dims: tuple[TypeId, ...]
    span: Span | None
    raised: threading.local
    _made: dict[tuple[int, ...], tuple[Callable[..., Any], list[TensorType]]] = attrs.field(factory=dict, init=False)

    def function(self, sizes: tuple[int, ...]) -> tuple[Callable[..., Any], list[TensorType]]:
        """The operator's function for these sizes of the dims, and the types of what it is called with. Raises
        CompileError."""
        if sizes not in self._made:
            values = dict(zip(self.dims, sizes, strict=True))
            types = [t for t in (*self.type.parameters, self.type.result) if isinstance(t, TensorType)]
            types = [TensorType(t.base, tuple(evaluate(d, values) for d in t.shape)) for t in types]
            type_ = attrs.evolve(self.type, parameters=tuple(types[:-1]), result=types[-1])
            name = self.operator.name
            if sizes:
                log.info("the compiler of %s makes a function of type %s", name, type_)
            assert self.operator.external is not None
            try:
                function = self.operator.external(type_)
            except Exception as error:
                raise CompileError(f"the compiler of {name} failed for {type_}: {error}", self.span) from error
            if not callable(function):
                raise CompileError(f"the compiler of {name} returned {function!r}, not a function", self.span)
            self._made[sizes] = function, types
        return self._made[sizes]

    def __call__(self, *given: int) -> int:
        try:
            count = len(given) - len(self.dims)
            addresses, sizes = given[:count], given[count:]
            function, types = self.function(sizes)
            arrays = [aligned_array(t) for t in types]
            for array, address in zip(arrays[:-1], addresses, strict=False):
                ctypes.memmove(array.ctypes.data, address, array.nbytes)
            function(*arrays)
            ctypes.memmove(addresses[-1], arrays[-1].ctypes.data, arrays[-1].nbytes)
        except CompileError as error:
            self.raised.error = error
            return 1
        except Exception as error:
            failure = ExecutionError(f"the native function of {self.operator.name} failed: {error}", self.span)
            failure.__cause__ = error
            self.raised.error = failure
            return 1
        except BaseException as error:
            self.raised.error = error
            return 1
        return 0


@attrs.frozen(eq=False)
class _Printer:
    """The function that compiled code calls to print: addresses and extents in, status out. It never raises. It
    never raises."""

    node: Print
    types: Sequence[TensorType]
    raised: threading.local

    def __call__(self, *given: int) -> int:
        try:
            addresses, sizes = given[: len(self.types)], iter(given[len(self.types) :])
            arrays = [aligned_array(TensorType(t.base, tuple(next(sizes) for _ in t.shape))) for t in self.types]
            for array, address in zip(arrays, addresses, strict=True):
                ctypes.memmove(array.ctypes.data, address, array.nbytes)
            program_output.write(self.node, arrays)
        except BaseException as error:
            self.raised.error = error
            return 1
        return 0
