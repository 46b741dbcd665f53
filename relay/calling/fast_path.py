"""The dispatch fast path: from argument leaves to a program of an earlier call.

`flatten` lists the arrays and numbers of arguments, and what is quickly seen of the rest; `repeat` and the like make of
a compiled program what takes such lists.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from relay.calling import marshalling, results
from relay.calling.arguments import is_function, python_value, static_key
from relay.calling.array import Array
from relay.calling.closures import ReturnedFunction
from relay.calling.data_calls import LIST_OF_ROWS, ROWS, DataCall
from relay.calling.data_marshalling import Unpackable
from relay.calling.devices.device_array import DeviceArray
from relay.calling.dlpack import array_from_dlpack
from relay.calling.reference_marshalling import LIST, REFERENCE, ReferenceCall
from relay.calling.results import wrap
from relay.codegen.cuda.exchange import is_on_gpu
from relay.errors import TypeMismatch
from relay.ir.annotations.annotation import Ref
from relay.ir.partial_calls import partial_call
from relay.ir.structure import field_names, is_record_class, split
from relay.ir.types import (
    ANY,
    BaseType,
    StackType,
    TensorType,
    TupleType,
    Type,
)
from relay.support.gradients import Gradients
from relay.typecheck.elaboration.closures.returned_closures import holds_closures

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program


Run: TypeAlias = "Callable[[list[Any]], list[np.ndarray] | None]"
Repeat: TypeAlias = "Callable[[list[Any]], Any]"


def repeat(program: Program, kinds: Sequence[object], parameters: Sequence[Type], result: Type) -> Repeat:
    """A compiled program for arguments of certain Python types, as `flatten` lists them: what a call runs that is like
    an earlier one.

    Takes a list of the arguments' leaves, which it may change. Gives the result, or GUARD_FAILURE if the program is
    not for these arguments. Raises Unsuited for programs whose arguments and results are not all arrays and
    numbers.
    """
    bases = [base for type_ in parameters for base in _bases(type_)]
    leaves = [kind for kind in kinds if type(kind) is type]
    if len(bases) != len(leaves):
        raise NotCacheable
    numbers = [i for i, kind in enumerate(leaves) if kind is not np.ndarray]
    run = _result_runner(program, result)
    return _with_numbers(run, numbers, leaves, bases) if numbers else run


def repeat_with_data(program: Program, kinds: Sequence[object], result: Type) -> tuple[DataCall, Repeat]:
    """As `repeat`, for arguments or results that hold values of data types; also the object that learns which values it
    serves.

    Raises Unsuited for arguments that must be described again in each call.
    """
    leaves = [kind for kind in kinds if type(kind) is type or kind in (ROWS, LIST_OF_ROWS)]
    try:
        call = DataCall(program, kinds, marshalling.classes)
    except Unpackable:
        raise NotCacheable from None
    bases = call.bases()
    if len(bases) != len(leaves):
        raise NotCacheable

    def run(given: list[Any]) -> Any:
        found = call(given)
        return GUARD_FAILURE if found is None else wrap(found[0], result)

    numbers = [i for i, kind in enumerate(leaves) if kind is not np.ndarray and kind not in (ROWS, LIST_OF_ROWS)]
    return call, _with_numbers(run, numbers, leaves, bases) if numbers else run


def repeat_with_references(program: Program, kinds: Sequence[object], types: Sequence[Type], result: Type) -> Repeat:
    """As `repeat`, for arguments among which there are references to arrays, numbers and structures of them, or lists
    of arrays and numbers whose length does not matter.

    Raises Unsuited for arguments that must be described again in each call, and for results with references.
    """
    try:
        call = ReferenceCall(program, kinds, types)
    except Unpackable:
        raise NotCacheable from None
    is_plain = _is_plain(result)
    if not is_plain and (program.native.dims or results.holds_references(result)):
        raise NotCacheable
    is_single = is_plain and isinstance(result, TensorType)

    def finish(outputs: list[np.ndarray], context: Any) -> Any:
        if is_single:
            return Array(outputs[0])
        return wrap(_nest_leaves(result, iter(outputs)) if is_plain else program.read(outputs, context), result)

    def run(given: list[Any]) -> Any:
        return call(given, finish, GUARD_FAILURE)

    numbers = [i for i, k in enumerate(call.kinds) if k is not np.ndarray and k not in (REFERENCE, LIST)]
    return _with_numbers(run, numbers, call.kinds, call.bases) if numbers else run


def _result_runner(program: Program, type_: Type) -> Repeat:
    """A function that runs a program and makes the result of its leaves, as `wrap` does."""
    run = program.run
    match type_:
        case TensorType(_, shape) if ANY in shape:
            raise NotCacheable
        case TensorType():
            if (alone := program.single_result_runner(Array, GUARD_FAILURE)) is not None:
                return alone

            def single_leaf(leaves: list[Any]) -> Any:
                outputs = run(leaves)
                return GUARD_FAILURE if outputs is None else Array(outputs[0])

            return single_leaf
        case TupleType(items, None) if items and all(
            isinstance(item, TensorType) and ANY not in item.shape for item in items
        ):

            def leaf_list(leaves: list[Any]) -> Any:
                outputs = run(leaves)
                return GUARD_FAILURE if outputs is None else tuple(map(Array, outputs))

            return leaf_list
        case TupleType():

            def run_nested(leaves: list[Any]) -> Any:
                outputs = run(leaves)
                return GUARD_FAILURE if outputs is None else wrap(_nest_leaves(type_, iter(outputs)), type_)

            for _ in _bases(type_, sized=False):
                pass
            return run_nested
        case _:
            raise NotCacheable


def _with_numbers(run: Repeat, numbers: list[int], leaves: list[Any], bases: list[BaseType]) -> Repeat:
    """`run` with Python's numbers as arrays. They are written into one block of memory, several in one go."""
    if any(bases[i].name not in _FORMATS for i in numbers):
        raise NotCacheable
    only = len(numbers) == len(leaves)
    integers = [i for i in numbers if leaves[i] is not float and bases[i].is_float]
    dtypes = [bases[i].dtype for i in numbers]
    pack = Struct("=" + "".join(_FORMATS[bases[i].name] for i in numbers)).pack_into
    blocks: list[tuple[Any, list[np.ndarray]]] = []  # those that no call uses

    def with_numbers(leaves: list[Any]) -> Any:
        for position in integers:
            if not -_EXACT <= leaves[position] <= _EXACT:
                return GUARD_FAILURE
        try:
            block = blocks.pop()
        except IndexError:
            memory = np.zeros(len(numbers), np.int64)
            block = memory, [memory[i:].view(d)[:1].reshape(()) for i, d in enumerate(dtypes)]
        memory, views = block
        try:
            if only:
                pack(memory, 0, *leaves)
                leaves = views
            else:
                pack(memory, 0, *[leaves[position] for position in numbers])
                for position, view in zip(numbers, views, strict=True):
                    leaves[position] = view
        except (StructError, OverflowError):  # a number that the type does not hold
            blocks.append(block)
            return GUARD_FAILURE
        try:
            return run(leaves)
        finally:
            blocks.append(block)

    return with_numbers


def unwrapping_call(call: Repeat, wrapped: Sequence[int]) -> Repeat:
    """`call` where the leaves at some positions are `Array`s."""

    def unwrap_and_call(leaves: list[Any]) -> Any:
        for position in wrapped:
            leaves[position] = leaves[position].numpy()
        return call(leaves)

    return unwrap_and_call


class NotCacheable(Exception):
    """A program that `repeat` is not for."""


GUARD_FAILURE = object()

_EXACT = 2**11  # integers up to here are exact in every float

_FORMATS = {
    "bool": "?7x", "int8": "b7x", "int16": "h6x", "int32": "i4x", "int64": "q", "uint8": "B7x", "uint16": "H6x",
    "uint32": "I4x", "uint64": "Q", "float16": "e6x", "float32": "f4x", "float64": "d",
}  # fmt: skip


def flatten(arguments: Iterable[Any], leaves: list[Any], kinds: list[Any]) -> bool:
    """Append the arrays and numbers in arguments, and their Python types and structure; False if there is more."""
    for argument in arguments:
        kind = type(argument)
        if kind is np.ndarray or kind is float or kind is int or kind is bool:
            leaves.append(argument)
            kinds.append(kind)
        elif kind is Array:
            leaves.append(argument.numpy())
            kinds.append(np.ndarray)
        elif kind is Ref:
            content: list[Any] = []
            kinds.append(REFERENCE)
            if not flatten((argument.value,), content, kinds):
                return False
            leaves.append((argument, content))
        elif isinstance(argument, np.generic):
            leaves.append(np.asarray(argument))
            kinds.append(np.ndarray)
        elif argument is None:
            kinds += None, None  # two, so that these are more than the arguments
        elif kind is tuple or kind is list or kind is Gradients:
            kinds += "list" if kind is list else "tuple", len(argument)
            if not flatten(argument, leaves, kinds):
                return False
        elif kind is dict:
            kinds += kind.__name__, tuple(argument)  # two as well: an empty dict is not a plain argument
            if not flatten(argument.values(), leaves, kinds):
                return False
        elif is_record_class(kind):
            kinds.append((kind,))
            if not flatten([getattr(argument, name) for name in field_names(kind)], leaves, kinds):
                return False
        elif marshalling.is_value(argument):
            owner = kind.__relay_data__
            if marshalling.is_recursive(owner):
                leaves.append(argument)
                kinds += ROWS, owner
                continue
            kinds.append((kind,))
            if not flatten([argument.__dict__[name] for name in kind.__match_args__], leaves, kinds):
                return False
        elif kind is str or isinstance(argument, enum.Enum):
            kinds += "fixed", (kind, argument)
        elif isinstance(argument, np.ndarray):
            return False  # of a subclass, some of which are refused
        elif (call := partial_call(argument)) is not None:
            if not hasattr(call.function, "__relay__") or not flatten((call,), leaves, kinds):
                return False
        elif is_function(argument):
            kinds += "function", argument
        elif kind is ReturnedFunction:
            if any(map(holds_closures, argument.types)):
                return False
            kinds += "returned", argument.node
            if not flatten(argument.values, leaves, kinds):
                return False
        elif isinstance(argument, DeviceArray) or is_on_gpu(argument):
            return False
        elif hasattr(argument, "__dlpack__"):
            try:
                leaves.append(array_from_dlpack(argument))
            except TypeMismatch:
                return False  # which tells more where it is described
            kinds.append(np.ndarray)
        elif (registered := split(argument)) is not None:
            form, parts = registered
            kinds.append((kind, form))
            if not flatten(parts, leaves, kinds):
                return False
        else:
            return False
    return True


def flatten_with_static(arguments: Iterable[Any], static: Sequence[bool], leaves: list[Any], kinds: list[Any]) -> bool:
    """As `flatten`, for a function some of whose parameters are static."""
    for argument, is_static in zip(arguments, static, strict=False):
        if is_static:
            key = static_key(python_value(argument))
            if key is None:
                return False
            kinds += "static", key
        elif not flatten((argument,), leaves, kinds):
            return False
    return True


def flatten_configured(
    arguments: Iterable[Any], static: Mapping[int, Collection[tuple[int, ...]]], leaves: list[Any], kinds: list[Any]
) -> bool:
    """As `flatten`, for a function some of whose numbers are static: those at these paths, by the parameters."""
    for position, argument in enumerate(arguments):
        paths = static.get(position)
        found = flatten((argument,), leaves, kinds) if paths is None else _flatten_at(argument, paths, leaves, kinds)
        if not found:
            return False
    return True


def _flatten_at(argument: Any, paths: Collection[tuple[int, ...]], leaves: list[Any], kinds: list[Any]) -> bool:
    """One argument with static numbers at some paths."""
    kind = type(argument)
    if () in paths and (kind is int or kind is bool):
        kinds += "static", (kind.__name__, argument)
        return True
    structure = None if () in paths or isinstance(argument, np.ndarray) else split(argument)
    if structure is None:
        return flatten((argument,), leaves, kinds)
    form, parts = structure
    kinds += (kind.__name__, len(parts)) if form is None else (kind.__name__, form)
    for index, part in enumerate(parts):
        inside = [path[1:] for path in paths if path[0] == index]
        if not (_flatten_at(part, inside, leaves, kinds) if inside else flatten((part,), leaves, kinds)):
            return False
    return True


DIRECT = frozenset((np.ndarray, Array, float, int, bool))
"""The types of arguments that are leaves by themselves."""


def holds_references(kinds: Sequence[object]) -> bool:
    """True if arguments of these kinds contain references."""
    return REFERENCE in kinds


def holds_lists(type_: Type) -> bool:
    """True if the structure of a parameter contains dynamic lists."""
    return isinstance(type_, StackType) or (isinstance(type_, TupleType) and any(map(holds_lists, type_.items)))


def holds_data(kinds: Sequence[object]) -> bool:
    """True if arguments of these kinds contain values of data types."""
    return any(
        kind == ROWS or (isinstance(kind, tuple) and hasattr(next(iter(kind), None), "__relay_data__"))
        for kind in kinds
    )


def _bases(type_: Type, sized: bool = True) -> Iterator[BaseType]:
    match type_:
        case TensorType(_, shape) if ANY in shape and not sized:
            raise NotCacheable
        case TensorType(BaseType() as base):
            yield base
        case TupleType(items):
            for item in items:
                yield from _bases(item, sized)
        case _:
            raise NotCacheable


def _is_plain(type_: Type) -> bool:
    """True if a result consists of tensors whose sizes follow from the arguments."""
    if isinstance(type_, TupleType):
        return all(map(_is_plain, type_.items))
    return isinstance(type_, TensorType) and ANY not in type_.shape


def _nest_leaves(type_: Type, leaves: Iterator[np.ndarray]) -> Any:
    return tuple(_nest_leaves(t, leaves) for t in type_.items) if isinstance(type_, TupleType) else next(leaves)
