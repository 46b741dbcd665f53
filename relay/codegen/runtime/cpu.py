"""The CPU target: compiling a program, and calling it.

Everything that the structured first-order core can say is compiled. Function values are not in it: earlier passes
remove them.

What may happen at run time: an assertion that fails, recursion deeper than `limits.stack_size` allows, memory that does
not suffice; they are ExecutionErrors. Memory of recursive data, references and stacks is given back when the call ends,
not before.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from relay.codegen.lowering.context import (
    BUDGET,
    DEPTH,
    EXTERNAL,
    FIRST_FAILURE,
    GUARD_FAILURE,
    HEAD,
    RUNNING_OUT_OF_MEMORY,
    STACK_LIMIT,
    STATUS,
    TOO_DEEP,
    WORKSPACE,
)
from relay.codegen.runtime.marshalling import ArgumentMarshaller, Make, Reference, ResultUnmarshaller
from relay.codegen.runtime.native_stacks import on_large_stack, stack_limit
from relay.codegen.runtime.result_memory import Maker, SmallMaker, maker
from relay.codegen.tiling import Choices
from relay.errors import CompileError, ExecutionError, InternalError
from relay.errors.raised import failure
from relay.ir.dims import Dim, Kind, TypeId, evaluate, substitute, variables
from relay.ir.expr import Module
from relay.ir.sizes.data_dependent import made_in_type
from relay.ir.sizes.extents import Place
from relay.ir.types import DataDefinition
from relay.support import progress
from relay.support.limits import UNLIMITED, memory_limit, number, too_deep, too_large
from relay.support.locks import compiling

if TYPE_CHECKING:
    from relay.codegen.lowering.probes import Probes
    from relay.codegen.runtime.native import NativeModule

_ALIGNMENT = 64


def compile_module(module: Module, *, threads: int | None = None, make: Make | None = None) -> Program:
    """Machine code for a structured first-order module without derivatives.

    `make(definition, constructor, fields)` makes the values of data types in the result; as arguments, values have
    `constructor` and `fields`.
    `threads`: how many a kernel may use; by default RELAY_NUM_THREADS, else the processors that this process may use.
    Raises CompileError for what the module's text lists, InternalError if TVM refuses our code.
    """
    native = compile_native(module, default_threads() if threads is None else threads)
    return Program(native, make or DataResult)


def compile_native(
    module: Module,
    threads: int,
    choices: Choices | None = None,
    donated: frozenset[int] = frozenset(),
    devices: Mapping[str, Callable[..., None]] | None = None,
    probes: Probes | None = None,
) -> NativeModule:
    """As `compile_module`, without what calls it. `choices`: how the loops of some kernels are cut; `donated`: the
    positions of parameters whose memory results may take; `devices`: what computes functions of the module instead of
    native code, on arrays of the operands and then the result; `probes`: what measures the program while it runs."""
    progress.show_progress("loading the code generator")
    with compiling:  # a copy of the process has nothing that is half imported
        from relay.codegen.lowering.module_builder import assemble

    if dims := {str(dim) for dim in made_in_type(module.main.result)}:  # nobody could tell how large the result is
        raise InternalError(f"the type of the result mentions the size {min(dims)} of a block", module.main.span)
    return assemble(module, threads, choices or {}, donated, devices or {}, probes)


def default_threads() -> int:
    """RELAY_NUM_THREADS, else the number of processors that this process may use. Raises CompileError for what is not a
    number of threads."""
    given = number("RELAY_NUM_THREADS")
    if given is not None:
        return given
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@attrs.frozen(eq=False)
class DataResult:
    """A value of a data type that a program returns, unless the caller of `compile_module` makes its own."""

    definition: DataDefinition
    constructor: str
    fields: tuple[Any, ...]


_HOW_TO_SEE = "f.interpret(..) with the same arguments shows the variables, relay.debug.step(f, ..) what led there"
"""The help of an error in a compiled run, which keeps no variables. The program is not run again automatically: it
may have changed references, printed, or taken an hour. The program is not run again unasked: it may have changed
references, printed, or taken an hour."""


class Run(Protocol):
    """The runner of a program; see `Program.run`."""

    def __call__(self, leaves: list[np.ndarray], context: _Context | None = None) -> list[np.ndarray] | None: ...


class Program:
    """A compiled program: call it with one value for each parameter. Calls from several threads may overlap."""

    def __init__(
        self,
        native: NativeModule,
        make: Make,
        reference: Callable[[Any], Any] = Reference,
        uses: list[int] | None = None,
    ) -> None:
        """`make` makes the values of data types in results, `reference` the references that were not passed in. The
        runs are counted in the only item of `uses`."""
        from relay.codegen.lowering.layout import TensorLayout, leaves

        check_heads()
        self.native = native
        self._uses = [0] if uses is None else uses
        self._make, self._reference = make, reference
        self._function = native.function
        self._expected = [(leaf.base.dtype, leaf.dims) for layout in native.parameters for leaf in leaves(layout)]
        results = list(leaves(native.result))
        self._replaced = tuple(native.replaced.items())
        self._outputs: list[Callable[..., np.ndarray]] = [
            _not_made
            if position in native.replaced
            else Maker(leaf.base.dtype)
            if native.dims
            else maker(tuple(int(dim) for dim in leaf.dims if isinstance(dim, int)), leaf.base.dtype)
            for position, leaf in enumerate(results)
        ]
        self._shapes = _shapes([leaf.dims for leaf in results], native.shown) if native.dims else None
        self._result = native.result
        self._recursive = native.recursive
        self._flat = all(isinstance(layout, TensorLayout) for layout in native.parameters)
        self._single = isinstance(native.result, TensorLayout)
        self._contexts: list[_Context] = []  # those that no call uses; popping and appending are atomic
        self.run: Run = self._runner()
        """run(leaves): the leaves of the result for those of the arguments; None if these have other dtypes, shapes or
        memory order. Only for programs without recursive data in parameters and result. Donated arguments are
        overwritten, and are then among the result's leaves, unless they are read-only. Raises ExecutionError."""

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Arrays, tuples, data, references and stacks as the entry's parameter types say; likewise the result, which is
        new memory. References hold afterwards what the program has written, also if it has failed.

        Raises ExecutionError for what is found at run time.
        """
        context = self.take()
        try:
            return self._run_with(context, arguments)
        except MemoryError as error:
            raise too_large("arguments and results", error) from None
        finally:
            self.give(context)

    def _run_with(self, context: _Context, arguments: Sequence[Any]) -> Any:
        sizes = self.sizes(arguments)

        def size(dim: Dim) -> int:
            return dim if isinstance(dim, int) else evaluate(dim, sizes)

        passing = None if self._flat else self._pass(arguments, context, size)
        given = arguments if passing is None else passing.leaves
        inputs = [
            _native_array(array, dtype, tuple(map(size, dims)))
            for array, (dtype, dims) in zip(given, self._expected, strict=True)
        ]
        known = {} if passing is None else passing.references
        reading = ResultUnmarshaller(context.table, self._make, size, known, self._reference)
        if passing is not None and known:
            context.refill = lambda: passing.fill(context.table, self.native.inputs)
        try:
            outputs = self.run(inputs, context)
            if outputs is None:
                raise InternalError("a program does not take the arrays that were made for it")
            return outputs[0] if self._single else reading.read(self._result, iter(outputs))
        finally:
            if passing is not None and known:
                context.refill = None
                reading.give_back(passing)

    def sizes(self, arguments: Sequence[Any]) -> dict[TypeId, int]:
        """The symbolic dims for these arguments."""
        return {dim: _extent(arguments, place) for dim, place in self.native.dims.items()}

    def take(self) -> _Context:
        """A context that no call uses, for one call."""
        try:
            return self._contexts.pop()
        except IndexError:
            return _context(self.native)

    def give(self, context: _Context) -> None:
        """Let further calls use a context. One that has used up the memory is dropped."""
        if context.words[STATUS] != RUNNING_OUT_OF_MEMORY:
            self._contexts.append(context)

    def read(self, outputs: Sequence[np.ndarray], context: _Context, size: Callable[[Dim], int] | None = None) -> Any:
        """The result of a call that has left these leaves, and recursive data in the pools of its context. `size` tells
        symbolic sizes."""
        if self._single:
            return outputs[0]
        return ResultUnmarshaller(context.table, self._make, size or _static_extent, None, self._reference).read(
            self._result, iter(outputs)
        )

    def _runner(self) -> Run:
        """The function `run`. A closure: a call through attributes of `self` takes noticeably longer.

        A program that cannot be started again, since it calls Python or overwrites its arguments, has a large stack
        from the start if it is recursive.
        """
        function, recursive, makers = self._function, self._recursive, self._outputs
        shapes, replaced = self._shapes, self._replaced
        only = makers[0] if len(makers) == 1 and shapes is None else None
        take, give = self._contexts.pop, self._contexts.append
        once = recursive and (self.native.externals is not None or bool(replaced))
        uses = self._uses

        def run(leaves: list[np.ndarray], context: _Context | None = None) -> list[np.ndarray] | None:
            if context is None:
                try:
                    own = take()
                except IndexError:
                    own = _context(self.native)
            else:
                own = context
            words = own.words
            if recursive:
                words[STACK_LIMIT] = stack_limit()
                words[DEPTH] = 0
            try:
                if only is not None:
                    outputs = [only()]
                elif shapes is None:
                    outputs = [make() for make in makers]
                else:
                    try:
                        outputs = [make(dims) for make, dims in zip(makers, shapes(leaves), strict=True)]
                    except (IndexError, ValueError, ZeroDivisionError):  # sizes that the program is not for
                        if context is None:
                            give(own)
                        return None
            except MemoryError as error:
                if context is None:
                    give(own)
                raise too_large("result", error) from None
            for result, argument in replaced:
                if not leaves[argument].flags.writeable:
                    leaves[argument] = leaves[argument].copy()
                outputs[result] = leaves[argument]
            if not once or not self._run_deeply(own, leaves, outputs):
                function(own.address, id(leaves), id(outputs))  # raises what a signal's handler has raised
            status = words[STATUS]
            if status == TOO_DEEP and not once and self._run_deeply(own, leaves, outputs):
                status = words[STATUS]
            depth = words[DEPTH]
            if context is None and status != RUNNING_OUT_OF_MEMORY:
                give(own)
            if not status:
                uses[0] += 1
                return outputs
            if status == GUARD_FAILURE:
                return None
            raise self._error(status, depth)

        return run

    def single_result_runner(
        self, finish: Callable[[np.ndarray], object], misfit: object
    ) -> Callable[[list[np.ndarray]], object] | None:
        """As `run`, for programs whose result is one array: gives `finish` of that array, or `misfit`. None for other
        programs. It does what `run` would do for such a program, and nothing that it would not need."""
        if self._recursive or self._replaced or len(self._outputs) != 1:
            return None
        function, (make,), shapes = self._function, self._outputs, self._shapes
        take, give, uses = self._contexts.pop, self._contexts.append, self._uses
        ready = make.ready if isinstance(make, SmallMaker) else None

        def run(leaves: list[np.ndarray]) -> object:
            try:
                own = take()
            except IndexError:
                own = _context(self.native)
            try:
                outputs = [ready.pop() if ready else make() if shapes is None else make(shapes(leaves)[0])]
            except (IndexError, ValueError, ZeroDivisionError):  # sizes that the program is not for
                give(own)
                return misfit
            except MemoryError as error:
                give(own)
                raise too_large("result", error) from None
            function(own.address, id(leaves), id(outputs))
            status = own.words[STATUS]
            give(own)
            if not status:
                uses[0] += 1
                return finish(outputs[0])
            if status == GUARD_FAILURE:
                return misfit
            raise self._error(status, 0)

        return run

    def _run_deeply(self, context: _Context, leaves: list[np.ndarray], outputs: list[np.ndarray]) -> bool:
        """Run it on a stack for deep recursion; False if the system does not give any. An earlier run has left no
        trace but in references that were passed in."""
        words = context.words
        if context.refill is not None:
            context.refill()

        stopped, externals = False, self.native.externals
        raised: list[BaseException] = []

        def run() -> None:
            words[STACK_LIMIT] = stack_limit()
            words[DEPTH] = 0
            if not stopped:  # before it began
                self._function(context.address, id(leaves), id(outputs))
                if words[STATUS] == EXTERNAL and externals is not None:
                    raised.append(externals.raised.error)

        def stop() -> None:
            nonlocal stopped
            stopped = True
            words[STACK_LIMIT] = UNLIMITED

        did = on_large_stack(run, stop)
        if raised and externals is not None:  # by what the other thread called, for this one to raise
            externals.raised.error = raised[0]
        return did

    def _pass(self, arguments: Sequence[Any], context: _Context, size: Callable[[Dim], int]) -> ArgumentMarshaller:
        """The leaves of the arguments; recursive parts, references and stacks go to the pools of the context."""
        passing = ArgumentMarshaller(size)
        for argument, layout in zip(arguments, self.native.parameters, strict=True):
            passing.add(argument, layout)
        if self.native.inputs:
            passing.fill(context.table, self.native.inputs)
        return passing

    def _error(self, status: int, depth: int) -> BaseException:
        if status == RUNNING_OUT_OF_MEMORY:
            return ExecutionError(
                "there is not enough memory for the data of the program",
                help="RELAY_MEMORY_LIMIT says how many bytes it may take",
            )
        if status == TOO_DEEP:
            return too_deep(depth)
        if status == EXTERNAL:
            assert self.native.externals is not None
            error = self.native.externals.raised.error
            del self.native.externals.raised.error
            assert isinstance(error, BaseException)
            return error
        message, span = self.native.failures[status - FIRST_FAILURE]
        return failure(message, span, help=_HOW_TO_SEE)


def _context(native: NativeModule) -> _Context:
    """A new context. Raises ExecutionError if there is not enough memory for what it computes with."""
    try:
        return _Context(native)
    except MemoryError as error:
        raise too_large("intermediate values", error) from None


class _Context:
    """The memory of one call at a time: the context table, the workspace, and the pools, kept for the next call."""

    def __init__(self, native: NativeModule) -> None:
        self.table = np.zeros(native.table_size, np.int64)
        self.refill: Callable[[], object] | None = None  # passes once more what an earlier start may have changed
        self.columns: dict[int, tuple[bytes, list[np.ndarray]]] = {}  # the pools' memory, as references are passed
        self.words = memoryview(self.table)  # type: ignore[arg-type]  # the same, faster to read
        self.address = self.table.ctypes.data
        self._workspace = np.empty(native.workspace + _ALIGNMENT, np.uint8)
        address = self._workspace.ctypes.data
        self.table[WORKSPACE] = address + -address % _ALIGNMENT
        self.table[HEAD] = object.__basicsize__
        self.table[BUDGET] = memory_limit()
        for place, base in native.dtypes.items():
            self.table[place] = id(base.dtype)
        for place, array in native.constants.items():
            self.table[place] = array.ctypes.data
        self._constants = native.constants
        self._pools = native.pools
        self._arena = native.arena
        self._free = _libc_free()

    def __del__(self) -> None:
        for place, count in getattr(self, "_pools", ()):
            for base in self.table[place + 2 : place + 2 + count]:
                self._free(int(base))
        arena: int | None = getattr(self, "_arena", None)
        if arena is not None:
            chunk = int(self.table[arena + 2])
            while chunk:
                before = ctypes.c_int64.from_address(chunk).value
                self._free(chunk)
                chunk = before


def _static_extent(dim: Dim) -> int:
    """A dim that is a number."""
    assert isinstance(dim, int)
    return dim


def _libc_free() -> Callable[[int], None]:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return lambda address: free(address)


# ---- arguments and results


def _extent(arguments: Sequence[Any], place: Place) -> int:
    """The extent of an axis of an argument, or of a part of one."""
    value = arguments[place.parameter]
    for index in place.path:
        value = value[index] if isinstance(value, tuple) else value.fields[index]
    return int(value.shape[place.axis])


def _shapes(
    dims: Sequence[tuple[Dim, ...]], shown: Mapping[TypeId, tuple[int, int]]
) -> Callable[[Sequence[np.ndarray]], Sequence[tuple[int, ...]]]:
    """A function that computes shapes from the leaves that show the sizes of their dims: Python code, since dims
    print as such."""
    places = {dim: f"leaves[{leaf}].shape[{axis}]" for dim, (leaf, axis) in shown.items()}
    uses = Counter(v for shape in dims for dim in shape for v in variables(dim))
    repeated = {dim: f"d{number}" for number, dim in enumerate(places) if uses[dim] > 1}
    names = {dim: TypeId(repeated.get(dim, place), Kind.Dim) for dim, place in places.items()}

    def text(dim: Dim) -> str:
        return str(dim if isinstance(dim, int) else substitute(dim, lambda v: names[v]))  # type: ignore[index]

    tuples = ", ".join(f"({''.join(f'{text(d)}, ' for d in shape)})" for shape in dims)
    value = f"({tuples}{',' if dims else ''})"
    if repeated:
        value = f"(lambda {', '.join(repeated.values())}: {value})({', '.join(map(places.__getitem__, repeated))})"
    made: Callable[..., Any] = eval(f"lambda leaves: {value}")
    return made


def _not_made(*_: object) -> Any:
    """Stands for the array of a result that takes an argument's memory."""


def _native_array(array: Any, dtype: np.dtype[Any], dims: tuple[int, ...]) -> np.ndarray:
    """An array that compiled code can read: a copy where the given one is not contiguous, aligned and native."""
    given = np.asarray(array)
    if given.dtype is dtype and given.shape == dims and given.flags.c_contiguous and given.flags.aligned:
        return given
    if given.dtype.newbyteorder("=") != dtype or given.shape != dims:
        raise InternalError(f"a program for {dtype} {dims} was called with {given.dtype} {given.shape}")
    if given.flags.c_contiguous and given.flags.aligned and given.dtype.isnative:
        return given.view(dtype)
    return np.array(given, dtype=dtype, order="C")


@functools.cache
def check_heads() -> None:
    """Check the headers of lists and NumPy's arrays, which generated code reads. Raises CompileError if they are not
    as `arrays` assumes."""
    array = np.empty((2, 3), np.float32)
    items = [array]
    listed = (ctypes.c_int64 * 2).from_address(id(items) + object.__basicsize__)
    words = (ctypes.c_int64 * 6).from_address(id(array) + object.__basicsize__)
    expected = 1, 2, array.ctypes.data, id(array.dtype)
    if (listed[0], words[1] & 0xFFFFFFFF, words[0], words[5]) != expected or (
        ctypes.c_int64.from_address(listed[1]).value != id(array)
        or tuple((ctypes.c_int64 * 2).from_address(words[2])) != array.shape
    ):
        raise CompileError(f"arrays do not lie in memory as expected in {sys.implementation.name} {sys.version}")
