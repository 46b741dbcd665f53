"""Decorated functions as the Python that they are: `with relay.as_python():`.

    call of f ─▶ copies of the arguments as `PythonArray`s ─▶ f's own code, run by Python ─▶ `Array`s again

Nothing is compiled or checked before it runs: `pdb`, `print`, tracing and coverage see the function's lines. Operators
run their NumPy reference, functions that are called run as Python, too. Functions that are not Python functions, such
as derivatives, run on the reference interpreter. Differences from the language: docs/debugging.md.
"""

from __future__ import annotations

import contextlib
import os
import pdb
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from relay.api.function import RelayFunction, decorate
from relay.api.plain_functions import from_source
from relay.api.python_arrays import PythonArray, dtype_of, unwrap_arrays, wrap_arrays
from relay.calling.array import Array
from relay.calling.dlpack import array_from_dlpack
from relay.compilation.options import Options
from relay.errors import RelayError, TypeMismatch
from relay.eval.operation import Operations
from relay.ir import tree
from relay.ir.annotations.annotation import Ref
from relay.ir.dims import DimExpr, TypeId, evaluate
from relay.ir.expr import OpCall
from relay.ir.types import BaseType, Kind, TensorType, TupleType, Type, base_of_dtype, prune
from relay.operator import Operator
from relay.operator.definition import literal_array
from relay.support import python_mode

_inside: ContextVar[bool] = ContextVar("relay.as_python.inside", default=False)
"""True while a decorated function is running."""


@contextlib.contextmanager
def as_python() -> Iterator[None]:
    """Run decorated functions as the Python that they are, over arrays of NumPy's: for `pdb`, `print`, coverage.

    It holds for calls in this thread, or task of asyncio. Derivatives, and functions that are given as text, run on the
    reference interpreter. Raises what Python and NumPy raise.
    """
    with python_mode.enter(_MODE):
        yield


class _Python(python_mode.Mode):
    """The meaning of calls, operators and builtins under `relay.as_python()`."""

    def __init__(self) -> None:
        self._operations = Operations()

    def call(self, function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Run a decorated function. The outermost call takes what the caller has, and returns `Array`s."""
        __tracebackhide__ = True
        if _inside.get():
            return _run(
                function, [_argument_copy(a) for a in arguments], {k: _argument_copy(v) for k, v in keywords.items()}
            )
        references: dict[int, tuple[Ref, Any, Any]] = {}
        given = [_program_argument(a, references) for a in arguments]
        named = {k: _program_argument(v, references) for k, v in keywords.items()}
        token = _inside.set(True)
        try:
            return _caller_result(_run(function, given, named))
        finally:
            _inside.reset(token)
            for reference, before, inside in references.values():
                reference.value = before if reference.value is inside else _caller_result(reference.value)

    def apply(self, operator: Operator, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """An operator's reference; of numbers alone it gives a number."""
        __tracebackhide__ = True
        given = [_operand(o) for o in operands]
        known = {name: _attribute(value) for name, value in attributes.items()}
        weak = bool(given) and all(isinstance(o, bool | int | float) for o in given)
        bases = [None if isinstance(o, bool | int | float) else base_of_dtype(o.dtype) for o in given]
        arrays = []
        for position, (operand, base) in enumerate(zip(given, bases, strict=True)):
            if base is None and isinstance(operand, bool | int | float):
                wanted = operator.literal_base(position, operand, bases)
                if weak and not isinstance(operand, bool):
                    wanted = BaseType("float64" if wanted.is_float else "int64")
                operand = literal_array(operand, wanted)
            arrays.append(operand)
        with python_mode.no_mode():
            try:
                result = self._operations.apply(OpCall(operator.name, (), known), arrays, None)
            except RelayError as error:
                raise error.with_traceback(None) from None
        if weak and isinstance(result, np.ndarray) and result.ndim == 0:
            return result.item()
        return wrap_arrays(result)

    def decorated_function(self, function: Any) -> Any:
        """A local Python function or an operator, as one of the language."""
        if isinstance(function, Operator) and not function.variadic:
            names = ", ".join(function.operands)
            return from_source(
                f"def {function.name}({names}):\n    return operator__({names})", {"operator__": function}
            )
        return _as_decorated(function, {}) if isinstance(function, FunctionType) else function

    def checkpointed_function(self, function: Any) -> Any:
        """The function itself: nothing is stored."""
        return function

    def builtin(self, name: str, arguments: Sequence[Any]) -> Any:
        """`read`, `write`, `rename_axes`, `align`, `breakpoint`."""
        match name, arguments:
            case "read", (Ref() as reference,):
                return reference.value
            case "write", (Ref() as reference, value):
                reference.value = value
                return None
            case "rename_axes", (x, _):
                return x
            case "align", (_, _):
                message = "relay.align needs the names of axes, which arrays do not have in plain Python"
                raise TypeMismatch(message, help="call the function outside of relay.as_python()")
            case "breakpoint", ():
                _stop(sys._getframe(2))
                return None
        raise TypeMismatch(f"relay.{name} is called with {len(arguments)} arguments that it does not take")


_MODE = _Python()


def _stop(frame: Any) -> None:
    """Stop in the frame of a program, with what Python's `breakpoint()` starts."""
    if sys.breakpointhook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT"):
        pdb.Pdb().set_trace(frame)
    else:
        sys.breakpointhook()


def _as_decorated(function: FunctionType, made: dict[CodeType, CellType]) -> RelayFunction:
    """A local function as one of the language, and with it the local functions that it calls."""
    own = made[function.__code__] = CellType()
    cells = []
    for cell in function.__closure__ or ():
        inside = cell.cell_contents if _is_set(cell) else None
        if isinstance(inside, FunctionType):
            if inside.__code__ not in made:
                _as_decorated(inside, made)
            cell = made[inside.__code__]
        cells.append(cell)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells))
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    own.cell_contents = decorate(copy, Options())
    found: RelayFunction = own.cell_contents
    return found


# ---- calls


def _run(function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    __tracebackhide__ = True
    python = function.python
    if not isinstance(python, FunctionType):
        return _interpret(function, arguments, keywords)
    sizes: dict[TypeId, Any] = {}
    given, named = list(arguments), dict(keywords)
    for position, parameter in enumerate(function.surface.main.parameters):
        if parameter.type is None:
            continue
        if position < len(given):
            given[position] = _annotated_value(given[position], parameter.type, sizes)
        elif parameter.name in named:
            named[parameter.name] = _annotated_value(named[parameter.name], parameter.type, sizes)
    return _with_values(python, sizes)(*given, **named)


def _interpret(function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function that is not a Python function, by the reference interpreter."""
    __tracebackhide__ = True
    references: dict[int, tuple[Ref, Any, Any]] = {}
    with python_mode.no_mode():
        given = [_for_program(a, references) for a in arguments]
        named = {k: _for_program(v, references) for k, v in keywords.items()}
        result = function.interpret(*given, **named)
    for reference, _, _ in references.values():
        reference.value = _map_leaves(reference.value, wrap_arrays)
    return _map_leaves(result, wrap_arrays)


def _annotated_value(value: Any, type_: Type, sizes: dict[TypeId, Any]) -> Any:
    """A value of an annotated type: a number is an array of its dtype. What the type's variables are is noted."""
    type_ = prune(type_)  # type: ignore[assignment]
    if isinstance(type_, TensorType):
        if isinstance(value, bool | int | float) and isinstance(type_.base, BaseType):
            value = PythonArray(np.asarray(value, type_.base.dtype))
        if isinstance(value, Array):
            _note_sizes(type_, value, sizes)
    elif isinstance(type_, TupleType) and type(value) is tuple and len(value) == len(type_.items):
        return tuple(_annotated_value(part, inside, sizes) for part, inside in zip(value, type_.items, strict=True))
    return value


def _note_sizes(type_: TensorType, value: Array, sizes: dict[TypeId, Any]) -> None:
    if isinstance(type_.base, TypeId) and (base := base_of_dtype(value.dtype)) is not None:
        sizes.setdefault(type_.base, base)
    shape = type_.shape
    if isinstance(shape, TypeId):
        sizes.setdefault(shape, value.shape)
        return
    if not isinstance(shape, tuple):
        return
    several = [i for i, dim in enumerate(shape) if isinstance(dim, TypeId) and dim.kind is Kind.Shape]
    if len(several) > 1 or (not several and len(shape) != value.ndim):
        return
    first = several[0] if several else len(shape)
    last = len(shape) - first - 1
    for position, dim in enumerate(shape):
        if not isinstance(dim, TypeId):
            continue
        if position == first:
            sizes.setdefault(dim, value.shape[first : value.ndim - last])
        else:
            sizes.setdefault(dim, value.shape[position if position < first else position - len(shape)])


def _with_values(python: FunctionType, sizes: Mapping[TypeId, Any]) -> FunctionType:
    """The function with numbers for the variables of types that its code mentions, and arrays that it can assign to
    for those around it. The code is the same object, so what traces it sees its own lines."""
    cells = python.__closure__ or ()
    around = {name: c.cell_contents for name, c in zip(python.__code__.co_freevars, cells, strict=True) if _is_set(c)}
    captured = {name: _replacement(value, sizes) for name, value in around.items() if _is_replaced(value)}
    names = {name for name in _names(python.__code__) if name in python.__globals__}
    found = {name: python.__globals__[name] for name in names}
    replaced = {name: _replacement(value, sizes) for name, value in found.items() if _is_replaced(value)}
    if not captured and not replaced:
        return python
    closure = tuple(
        CellType(captured[name]) if name in captured else cell
        for name, cell in zip(python.__code__.co_freevars, cells, strict=True)
    )
    scope = {**python.__globals__, **replaced} if replaced else python.__globals__
    made = FunctionType(python.__code__, scope, python.__name__, python.__defaults__, closure or None)
    made.__kwdefaults__ = python.__kwdefaults__
    return made


def _is_set(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_replaced(value: Any) -> bool:
    return isinstance(value, np.ndarray | TypeId | DimExpr) or type(value) is Array


def _replacement(value: Any, sizes: Mapping[TypeId, Any]) -> Any:
    if isinstance(value, np.ndarray | Array):
        return PythonArray(np.asarray(value))
    if isinstance(value, DimExpr):
        try:
            return evaluate(value, sizes)
        except KeyError:
            return value
    return sizes.get(value, value)


def _names(code: CodeType) -> Iterator[str]:
    """The names of globals in a function's code, and in that of functions inside of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


# ---- values


def _map_leaves(value: Any, change: Any) -> Any:
    """A structure with other leaves; references stay."""
    leaves, structure = tree.flatten(value, lambda part: isinstance(part, Ref))
    return tree.unflatten(structure, [leaf if isinstance(leaf, Ref) else change(leaf) for leaf in leaves])


def _program_argument(value: Any, references: dict[int, tuple[Ref, Any, Any]]) -> Any:
    """An argument as the program has it. What references hold is noted."""

    def change(leaf: Any) -> Any:
        if type(leaf) is Array:
            return PythonArray(leaf.numpy())
        if isinstance(leaf, np.ndarray | np.generic):
            return PythonArray(np.array(leaf), True)
        if not isinstance(leaf, bool | int | float | Array) and hasattr(leaf, "__dlpack__"):
            return PythonArray(np.array(array_from_dlpack(leaf)), True)
        return leaf

    _in_references(value, references, change)
    return _map_leaves(value, change)


def _in_references(value: Any, references: dict[int, tuple[Ref, Any, Any]], change: Any) -> None:
    pending = [value]
    while pending:
        leaves, _ = tree.flatten(pending.pop(), lambda part: isinstance(part, Ref))
        for leaf in leaves:
            if isinstance(leaf, Ref) and id(leaf) not in references:
                before = leaf.value
                pending.append(before)
                leaf.value = _map_leaves(before, change)
                references[id(leaf)] = leaf, before, leaf.value


def _caller_result(value: Any) -> Any:
    """A result as callers get it: `Array`s."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Array):
            return Array(unwrap_arrays(leaf))
        if isinstance(leaf, bool | float | np.ndarray | np.generic):
            return Array(np.asarray(leaf))
        if isinstance(leaf, int):
            return Array(np.asarray(leaf, np.int32 if -(1 << 31) <= leaf < 1 << 31 else np.int64))
        return leaf

    return _map_leaves(value, change)


def _argument_copy(value: Any) -> Any:
    """An argument of a call inside of a program: assignments in the function do not change the caller's."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, PythonArray):
            return PythonArray(leaf.shared_memory())
        return PythonArray(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf

    return _map_leaves(value, change)


def _for_program(value: Any, references: dict[int, tuple[Ref, Any, Any]]) -> Any:
    """An argument of what the interpreter runs: Python functions are read as programs."""
    if isinstance(value, FunctionType):
        return _MODE.decorated_function(value)

    def change(leaf: Any) -> Any:
        return Array(leaf.shared_memory()) if isinstance(leaf, PythonArray) else leaf

    _in_references(value, references, change)
    return _map_leaves(value, change)


def _operand(value: Any) -> Any:
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        return value
    return np.asarray(unwrap_arrays(value))


def _attribute(value: Any) -> Any:
    """An attribute, with numbers for arrays of one."""
    if isinstance(value, Array | np.generic | np.ndarray) and value.size == 1:
        return np.asarray(value).item()
    if isinstance(value, list | tuple):
        return tuple(map(_attribute, value))
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return base_of_dtype(np.dtype(value)) or value
    return dtype_of(value) if value is None else value
