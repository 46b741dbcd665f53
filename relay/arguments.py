"""What Python's arguments are to the compiler, and calls that are like earlier ones.

An argument is an array, a number, a structure of them, a value of a data type, a reference, or something that
specialises the program: None, a string, a dtype, a function, the value of a static parameter. What it adds to a call's
signature is its `key`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from relay import conversion, exchange
from relay.array import Array
from relay.conversion import wrap
from relay.dlpack import imported
from relay.errors import Label, RelayError, TypeMismatch
from relay.ir.annotation import Ref
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function
from relay.ir.structure import field_names, fields_of, form_of, is_record_class
from relay.ir.types import (
    ANY,
    BaseType,
    Form,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    base_of_dtype,
    prune,
)
from relay.operator import Operator
from relay.packing import ROWS, DataCall, Unpackable
from relay.reference_calls import LIST, REFERENCE, ReferenceCall
from relay.returned import ReturnedFunction
from relay.typecheck.elaboration import Argument, Content, Fixed, Items, Returned, Scalar, Structure, holds_returned

if TYPE_CHECKING:
    from relay.codegen.cpu import Program


# ---- calls as before

Run: TypeAlias = "Callable[[list[Any]], list[np.ndarray] | None]"
Repeat: TypeAlias = "Callable[[list[Any]], Any]"


def repeat(program: Program, kinds: Sequence[object], parameters: Sequence[Type], result: Type) -> Repeat:
    """A compiled program for arguments of certain Python types, as `flatten` lists them: what a call runs that is like
    an earlier one.

    Takes a list of the arguments' leaves, which it may change. Gives the result, or MISFIT if the program is not for
    these arguments. Raises Unsuited for programs whose arguments and results are not all arrays and numbers.
    """
    bases = [base for type_ in parameters for base in _bases(type_)]
    leaves = [kind for kind in kinds if type(kind) is type]
    if len(bases) != len(leaves):
        raise Unsuited
    numbers = [i for i, kind in enumerate(leaves) if kind is not np.ndarray]
    run = _finished(program, result)
    return _with_numbers(run, numbers, leaves, bases) if numbers else run


def repeat_with_data(program: Program, kinds: Sequence[object], result: Type) -> tuple[DataCall, Repeat]:
    """As `repeat`, for arguments or results that hold values of data types; also what learns which values it is for.

    Raises Unsuited for what has to be looked at anew in each call.
    """
    leaves = [kind for kind in kinds if type(kind) is type or kind == ROWS]
    try:
        call = DataCall(program, kinds, exchange.classes)
    except Unpackable:
        raise Unsuited from None
    bases = call.bases()
    if len(bases) != len(leaves):
        raise Unsuited

    def run(given: list[Any]) -> Any:
        found = call(given)
        return MISFIT if found is None else wrap(found[0], result)

    numbers = [i for i, kind in enumerate(leaves) if kind is not np.ndarray and kind != ROWS]
    return call, _with_numbers(run, numbers, leaves, bases) if numbers else run


def repeat_with_references(program: Program, kinds: Sequence[object], types: Sequence[Type], result: Type) -> Repeat:
    """As `repeat`, for arguments among which there are references to arrays, numbers and structures of them, or lists
    of arrays and numbers whose length does not matter.

    Raises Unsuited for what has to be looked at anew in each call, and for results with references.
    """
    try:
        call = ReferenceCall(program, kinds, types)
    except Unpackable:
        raise Unsuited from None
    is_plain = _is_plain(result)
    if not is_plain and (program.native.dims or conversion.holds_references(result)):
        raise Unsuited
    is_single = is_plain and isinstance(result, TensorType)

    def finish(outputs: list[np.ndarray], context: Any) -> Any:
        if is_single:
            return Array(outputs[0])
        return wrap(_nested(result, iter(outputs)) if is_plain else program.read(outputs, context), result)

    def run(given: list[Any]) -> Any:
        return call(given, finish, MISFIT)

    numbers = [i for i, k in enumerate(call.kinds) if k is not np.ndarray and k not in (REFERENCE, LIST)]
    return _with_numbers(run, numbers, call.kinds, call.bases) if numbers else run


def _finished(program: Program, type_: Type) -> Repeat:
    """What runs a program and makes the result of its leaves, as `wrap` does."""
    run = program.run
    match type_:
        case TensorType(_, shape) if ANY in shape:
            raise Unsuited
        case TensorType():
            if (alone := program.single(Array, MISFIT)) is not None:
                return alone

            def single(leaves: list[Any]) -> Any:
                outputs = run(leaves)
                return MISFIT if outputs is None else Array(outputs[0])

            return single
        case TupleType(items, None) if items and all(
            isinstance(item, TensorType) and ANY not in item.shape for item in items
        ):

            def several(leaves: list[Any]) -> Any:
                outputs = run(leaves)
                return MISFIT if outputs is None else tuple(map(Array, outputs))

            return several
        case TupleType():

            def nested(leaves: list[Any]) -> Any:
                outputs = run(leaves)
                return MISFIT if outputs is None else wrap(_nested(type_, iter(outputs)), type_)

            for _ in _bases(type_, sized=False):
                pass
            return nested
        case _:
            raise Unsuited


def _with_numbers(run: Repeat, numbers: list[int], leaves: list[Any], bases: list[BaseType]) -> Repeat:
    """`run` with Python's numbers as arrays. They are written into one block of memory, several in one go."""
    if any(bases[i].name not in _FORMATS for i in numbers):
        raise Unsuited
    only = len(numbers) == len(leaves)
    integers = [i for i in numbers if leaves[i] is not float and bases[i].is_float]
    dtypes = [bases[i].dtype for i in numbers]
    pack = Struct("=" + "".join(_FORMATS[bases[i].name] for i in numbers)).pack_into
    blocks: list[tuple[Any, list[np.ndarray]]] = []  # those that no call uses

    def with_numbers(leaves: list[Any]) -> Any:
        for position in integers:
            if not -_EXACT <= leaves[position] <= _EXACT:
                return MISFIT
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
            return MISFIT
        try:
            return run(leaves)
        finally:
            blocks.append(block)

    return with_numbers


def unwrapping(call: Repeat, wrapped: Sequence[int]) -> Repeat:
    """`call` where the leaves at some positions are `Array`s."""

    def unwrapped(leaves: list[Any]) -> Any:
        for position in wrapped:
            leaves[position] = leaves[position].numpy()
        return call(leaves)

    return unwrapped


class Unsuited(Exception):
    """A program that `repeat` is not for."""


MISFIT = object()

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
        elif kind is tuple or kind is list:
            kinds += kind.__name__, len(argument)
            if not flatten(argument, leaves, kinds):
                return False
        elif kind is dict:
            kinds += kind.__name__, tuple(argument)  # two as well: an empty dict is no plain argument
            if not flatten(argument.values(), leaves, kinds):
                return False
        elif is_record_class(kind):
            kinds.append((kind,))
            if not flatten([getattr(argument, name) for name in field_names(kind)], leaves, kinds):
                return False
        elif exchange.is_value(argument):
            owner = kind.__relay_data__
            if exchange.is_recursive(owner):
                leaves.append(argument)
                kinds += ROWS, owner
                continue
            kinds.append((kind,))
            if not flatten([argument.__dict__[name] for name in kind.__match_args__], leaves, kinds):
                return False
        elif _is_function(argument):
            kinds += "function", argument
        elif kind is ReturnedFunction:
            kinds += "returned", argument.node
            if not flatten(argument.values, leaves, kinds):
                return False
        elif hasattr(argument, "__dlpack__") and not isinstance(argument, np.ndarray):
            try:
                leaves.append(imported(argument))
            except TypeMismatch:
                return False  # which tells more where it is described
            kinds.append(np.ndarray)
        else:
            return False
    return True


def flatten_with_static(arguments: Iterable[Any], static: Sequence[bool], leaves: list[Any], kinds: list[Any]) -> bool:
    """As `flatten`, for a function some of whose parameters are static."""
    for argument, is_static in zip(arguments, static, strict=False):
        if is_static:
            key = _static_key(_python_value(argument))
            if key is None:
                return False
            kinds += "static", key
        elif not flatten((argument,), leaves, kinds):
            return False
    return True


DIRECT = frozenset((np.ndarray, Array, float, int, bool))
"""The types of arguments that are leaves by themselves."""


def holds_references(kinds: Sequence[object]) -> bool:
    """Whether there are references in arguments of these kinds."""
    return REFERENCE in kinds


def holds_lists(type_: Type) -> bool:
    """Whether there are lists whose length only the run knows in the structure of a parameter."""
    return isinstance(type_, StackType) or (isinstance(type_, TupleType) and any(map(holds_lists, type_.items)))


def holds_data(kinds: Sequence[object]) -> bool:
    """Whether there are values of data types in arguments of these kinds."""
    return any(
        kind == ROWS or (isinstance(kind, tuple) and hasattr(next(iter(kind), None), "__relay_data__"))
        for kind in kinds
    )


def _bases(type_: Type, sized: bool = True) -> Iterator[BaseType]:
    match type_:
        case TensorType(_, shape) if ANY in shape and not sized:
            raise Unsuited
        case TensorType(BaseType() as base):
            yield base
        case TupleType(items):
            for item in items:
                yield from _bases(item, sized)
        case _:
            raise Unsuited


def _is_plain(type_: Type) -> bool:
    """Whether a result consists of tensors whose sizes the arguments tell."""
    if isinstance(type_, TupleType):
        return all(map(_is_plain, type_.items))
    return isinstance(type_, TensorType) and ANY not in type_.shape


def _nested(type_: Type, leaves: Iterator[np.ndarray]) -> Any:
    return tuple(_nested(t, leaves) for t in type_.items) if isinstance(type_, TupleType) else next(leaves)


# ---- calls with arguments of new types


@attrs.frozen
class Described:
    """An argument to the compiler: its part of the signature, what elaboration knows of it, and the value."""

    key: object
    argument: Argument
    value: Any


def describe(
    value: Any,
    function: Function,
    position: int,
    path: str = "",
    annotation: Type | None = None,
    held: bool = False,
) -> Described:
    """What an argument, or the part of one that `path` reads, is to the compiler.

    `annotation`: what is written of its type; there `list[A]` is a list of any length, and in a reference or such a
    list (`held`), an `Any` is any size. Raises TypeMismatch at the parameter for what Relay cannot take.
    """
    annotation = None if annotation is None else prune(annotation)  # type: ignore[assignment]
    if isinstance(value, TensorType):
        if not isinstance(value.base, BaseType) or not all(isinstance(dim, int) for dim in value.shape):
            raise _bad_argument(function, position, f"is the type {value}, in which something is open", path=path)
        return Described((value.base.name, value.shape), value, None)
    if isinstance(value, RefType | StackType):
        return Described(value, value, None)
    if isinstance(value, Array):
        value = value.numpy()
    if isinstance(value, np.ma.MaskedArray):
        raise _bad_argument(
            function, position, "is a masked array, whose mask would be lost", path=path, help="pass x.filled(0.0)"
        )
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        base = base_of_dtype(array.dtype)
        if base is None:
            text = f"has dtype {array.dtype}, which Relay does not have"
            help = "convert it: x.astype(np.float64)" if array.dtype.kind == "f" else None
            raise _bad_argument(function, position, text, help, path)
        if not array.dtype.isnative:
            array = array.astype(base.dtype)
        shape = _with_any(array.shape, annotation) if held else array.shape
        return Described((base.name, shape), TensorType(base, shape), array)
    if isinstance(value, bool):
        return Described(("bool", ()), TensorType(BaseType("bool"), ()), np.asarray(value))
    if isinstance(value, int | float):
        return Described(type(value), Scalar(value), value)
    if exchange.is_value(value):
        return _describe_data(value, function, position, path)
    if isinstance(value, ReturnedFunction):
        captured = [
            describe(v, function, position, path, type_, held)
            for v, type_ in zip(value.values, value.types, strict=True)
        ]
        own = ("returned", value.node, *(p.key for p in captured))
        held_values = tuple(() if isinstance(p.argument, Fixed) else p.argument for p in captured)
        return Described(own, Returned(value.node, held_values), tuple(p.value for p in captured))
    if isinstance(value, Ref):
        content = annotation.content if isinstance(annotation, RefType) else None
        part = describe(value.value, function, position, path + ".value", content, True)
        _refuse_fixed(part, function, position, path + ".value", "a reference")
        return Described(("reference", part.key), Content(part.argument), value)
    form = form_of(value)
    if isinstance(annotation, StackType) and form is not None and form.cls is list:
        return _describe_items(value, annotation, function, position, path)
    if form is not None or isinstance(value, tuple):
        inside = value if form is None else fields_of(value, form)
        names = _part_names(form, len(inside))
        written: Sequence[Any] = [None] * len(inside)
        if isinstance(annotation, TupleType) and len(annotation.items) == len(inside):
            written = annotation.items
        parts = [
            describe(v, function, position, path + name, type_, held)
            for v, name, type_ in zip(inside, names, written, strict=True)
        ]
        for name, part in zip(names, parts, strict=True):
            _refuse_fixed(part, function, position, path + name, "a structure")
        items = tuple(p.argument for p in parts)
        values = tuple(None if isinstance(p.argument, Fixed) else p.value for p in parts)
        structure = ("tuple", form, *(p.key for p in parts))
        return Described(structure, items if form is None else Structure(form, items), values)
    if isinstance(value, Fixed):
        inner = value.value
        key = (type(inner).__name__, inner) if isinstance(inner, int | float | str | None) else id(inner)
        return Described(("fixed", key), value, None)
    if value is None or isinstance(value, str | BaseType):
        return Described(("fixed", value), Fixed(value), None)
    if _is_function(value):
        return Described(("function", value), Fixed(value), value)  # the key keeps it alive
    if hasattr(value, "__dlpack__"):
        try:
            array = imported(value)
        except TypeMismatch as error:
            raise _bad_argument(function, position, f"is {error.message}", error.help, path) from None
        return describe(array, function, position, path)
    help = "decorate it with @relay" if callable(value) else None
    if isinstance(value, Collection | memoryview) and not isinstance(value, bytes | Mapping):
        help = "pass an array: np.array(x)" if isinstance(value, Sequence | memoryview) else "pass np.array(list(x))"
    if help is None and type(value).__module__ != "builtins":
        help = f"make {type(value).__name__} a data type: decorate the class with @relay.data or @dataclass"
    raise _bad_argument(
        function, position, f"is a Python {type(value).__name__}, which Relay cannot take", path=path, help=help
    )


def _refuse_fixed(part: Described, function: Function, position: int, path: str, holder: str) -> None:
    """Raise TypeMismatch if a part of an argument is no value of the run, nor None."""
    argument = part.argument
    if holder == "a structure" and isinstance(argument, Fixed) and _is_function(argument.value):
        return
    if isinstance(argument, Fixed) or holder != "a structure":
        if not holds_returned(argument):
            return
        found = repr(argument.value) if isinstance(argument, Fixed) else "a function"
        text = f"is {found}, and {holder} holds arrays, numbers and None"
        raise _bad_argument(function, position, text, path=path, help="give it as a static argument of its own")


def _with_any(shape: tuple[int, ...], annotation: Type | None) -> tuple[Any, ...]:
    """The shape with `Any` where the annotation has it."""
    if not isinstance(annotation, TensorType) or len(annotation.shape) != len(shape):
        return shape
    return tuple(ANY if dim is ANY else size for dim, size in zip(annotation.shape, shape, strict=True))


def _describe_items(value: list[Any], annotation: StackType, function: Function, position: int, path: str) -> Described:
    """What a list whose length only the run knows is to the compiler: each kind of its elements once."""
    element = annotation.element.content if isinstance(annotation.element, RefType) else None
    found: dict[object, Argument] = {}
    for index, item in enumerate(value):
        part = describe(item, function, position, f"{path}[{index}]", element, True)
        _refuse_fixed(part, function, position, f"{path}[{index}]", "a list")
        found.setdefault(part.key, part.argument)
    return Described(("list", frozenset(found)), Items(tuple(found.values())), value)


def _part_names(form: Form | None, count: int) -> Sequence[str]:
    """How the parts of a structure are read."""
    if form is None or not form.names:
        return [f"[{index}]" for index in range(count)]
    return [f"[{name!r}]" if form.cls is dict else f".{name}" for name in form.names]


def _describe_data(value: Any, function: Function, position: int, path: str) -> Described:
    """What a value of a data type is to the compiler."""

    def part(field: Any, declared: Type) -> tuple[object, Argument]:
        described = describe(field, function, position, path, declared, True)
        if holds_returned(described.argument):
            text = f"holds {field!r}, and data holds arrays, numbers and None"
            raise _bad_argument(function, position, text, path=path)
        return described.key, () if isinstance(described.argument, Fixed) else described.argument

    key, argument = exchange.describe(value, part)
    return Described(key, argument, value)


def describe_static(value: Any, function: Function, position: int) -> Described:
    """What the argument of a static parameter is to the compiler: a Python value that specialises the program."""
    fixed = value if isinstance(value, Fixed) else Fixed(_python_value(value))
    value = fixed.value
    key: object = ("default",) if fixed.default else _static_key(value)
    if key is None:
        text = (
            "is static, so it must be a Python number, string, None, dtype, function, or a tuple of them;"
            f" found {type(value).__name__}"
        )
        name = function.parameters[position].name
        help = f"keep {name} out of static_argnames and off the lines with `# relay: static`, or give one of these"
        raise _bad_argument(function, position, text, help)
    return Described(("static", key), fixed, None)


def _python_value(value: Any) -> Any:
    """A static argument with NumPy's numbers as Python's, and lists as tuples."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray | Array) and value.ndim == 0):
        return value.item()
    return tuple(map(_python_value, value)) if isinstance(value, list | tuple) else value


def _static_key(value: Any) -> object:
    if isinstance(value, tuple):
        parts = [_static_key(v) for v in value]
        return None if None in parts else tuple(parts)
    if value is None or isinstance(value, int | float | str | BaseType | np.dtype | type):
        return (type(value).__name__, value)
    return ("function", value) if _is_function(value) else None  # the key keeps it alive


def _bad_argument(function: Function, position: int, text: str, help: str | None = None, path: str = "") -> RelayError:
    if position >= len(function.parameters):
        return TypeMismatch(f"the cotangent of {function.name} {text}", function.span, help=help)
    parameter = function.parameters[position]
    labels = (Label(function.span, ""),) if parameter.span is None and function.span is not None else ()
    return TypeMismatch(
        f"argument {parameter.name}{path} of {function.name} {text}", parameter.span, labels=labels, help=help
    )


def _is_function(value: Any) -> bool:
    return isinstance(value, Operator) or isinstance(getattr(value, "__relay__", None), Definition | DerivedDefinition)
