"""Conversion of Python arguments to run-time values, and of results to Python values.

References keep their identity: after the call, those that it got hold what it has written to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.calling import marshalling
from relay.calling.array import Array
from relay.calling.devices.device_array import DeviceArray, array_content, from_dlpack
from relay.codegen.cuda.tensors import DeviceTensor
from relay.codegen.runtime.marshalling import same_bytes
from relay.codegen.runtime.result_memory import aligned
from relay.errors import TypeMismatch
from relay.eval.tape import unbox
from relay.eval.values import Data, Reference, Stack
from relay.ir.annotations.annotation import Ref
from relay.ir.literals import holds, misfit_text
from relay.ir.structure import build, split
from relay.ir.types import BaseType, DataType, RefType, StackType, TensorType, TupleType, Type, show

# ---- in


@attrs.frozen(eq=False)
class _PassedReference:
    """A reference among the arguments of a call: its type, and what it held before."""

    outside: Ref
    inside: Reference
    type: Type
    before: object


class Values(list[Any]):
    """The run-time values of a call's arguments, and the references among them."""

    def __init__(self, types: bool = False, device: bool = False) -> None:
        """With `types`, None stands for values of which only the types are known, as `f.compile(..)` is given them.
        With `device`, tensors on a GPU stay there; otherwise they are copied to the host."""
        super().__init__()
        self._types = types
        self._device = device
        self.on_device = False
        """True if there are tensors on a GPU among them."""
        self._passed: dict[int, _PassedReference] = {}
        self._outside: list[Any] = []
        self._pending: list[tuple[Reference, Ref, RefType, str]] = []

    def add(self, value: Any, type_: Type, name: str) -> None:
        """Append the value of the parameter `name`. Raises TypeMismatch for one that is not of its type."""
        self.pass_on(value, self._convert(value, type_, name))
        while self._pending:
            reference, outside, of, name = self._pending.pop()
            reference.content = self._convert(_run_time_value(outside.value), of.content, name)
            self._passed[id(outside)] = _PassedReference(outside, reference, of, reference.content)

    def pass_on(self, value: Any, converted: Any) -> None:
        """Append a value that has been converted."""
        self.append(converted)
        self._outside.append(value)

    def give_back(self, types: Sequence[Type], interpreted: bool = False) -> None:
        """Write the program's contents of references back into them. `types` are the parameters', with the
        structures that their tuples stand for."""
        changed = {i: p for i, p in self._passed.items() if not _is_unchanged(p.before, p.inside.content)}
        if not changed:
            return
        contents = _contents(self._outside, types)
        later: list[tuple[Ref, object, Type]] = []
        for key, passed in changed.items():
            later.append((passed.outside, unbox(passed.inside.content), contents[key]))
        _give(later, interpreted)

    def _convert(self, value: Any, type_: Type, name: str) -> Any:
        if value is None and self._types and not isinstance(type_, TupleType):
            return None
        match type_:
            case DataType() if isinstance(value, Data):  # of a list in a value, where all are converted
                return value
            case DataType():
                value = marshalling.unwrap_closure(value)
                if not marshalling.is_value(value) or not marshalling.may_be(value, type_):
                    raise _mismatch(value, type_, name)
                return marshalling.to_data(
                    value, type_, lambda part, of: self._convert(_run_time_value(part), of, name)
                )
            case TupleType(items):
                value = () if value is None else value
                return tuple(self._convert(v, t, name) for v, t in zip(value, items, strict=True))
            case RefType():
                return self._reference(value, type_, name)
            case StackType(RefType(content)):
                if not isinstance(value, list | tuple):
                    raise _mismatch(value, type_, name)
                cells: list[object] = [Reference(self._convert(_run_time_value(v), content, name)) for v in value]
                return Stack(cells, len(cells))
            case TensorType():
                if isinstance(value, DeviceTensor):
                    if self._device:
                        self.on_device = True
                        return _checked_array(value, type_, name)
                    value = value.numpy()
                return _tensor(value, type_, name)
            case _:
                raise _mismatch(value, type_, name)

    def _reference(self, value: Any, type_: RefType, name: str) -> Reference:
        if not isinstance(value, Ref):
            raise _mismatch(value, type_, name)
        known = self._passed.get(id(value))
        if known is None:
            made = Reference(None, value)
            self._passed[id(value)] = _PassedReference(value, made, type_, None)
            self._pending.append((made, value, type_, name))
            return made
        if known.type != type_:
            raise TypeMismatch(f"argument {name}: one reference is passed as {show(known.type)} and as {show(type_)}")
        return known.inside


def holds_references(type_: Type) -> bool:
    """True if values of a type contain references."""
    pending, seen = [type_], set()
    while pending:
        match pending.pop():
            case RefType():
                return True
            case TupleType(items):
                pending += items
            case StackType(RefType(content)):  # whose cells are its own
                pending.append(content)
            case DataType(definition) if definition not in seen:
                seen.add(definition)
                pending += (field for constructor in definition.constructors for field in constructor.fields)
            case _:
                pass
    return False


def _tensor(value: Any, type_: TensorType, name: str) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool | np.generic):
        assert isinstance(type_.base, BaseType)
        if type_.rank:
            raise _mismatch(value, type_, name)
        if not holds(type_.base, value):
            help = "pass np.int64(n)" if isinstance(value, int) and -(2**63) <= value < 2**63 else None
            raise TypeMismatch(f"argument {name}: {misfit_text(type_.base, value)}", help=help)
        return np.asarray(value, dtype=type_.dtype)
    array = _checked_array(np.asarray(value), type_, name)
    return value if array.dtype.isnative else array.astype(type_.dtype)


def _checked_array(array: Any, type_: TensorType, name: str) -> Any:
    """An array, or a tensor on a GPU. Raises TypeMismatch if it is not of the type."""
    fits = array.dtype.newbyteorder("=") == type_.dtype and array.ndim == type_.rank
    if not fits or any(isinstance(d, int) and d != n for d, n in zip(type_.shape, array.shape, strict=True)):
        raise _mismatch(array, type_, name)
    return array


def _mismatch(value: Any, type_: Type, name: str) -> TypeMismatch:
    found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray | DeviceTensor) else type(value).__name__
    return TypeMismatch(f"argument {name} must be {show(type_)}, found {found}")


def run_time_value(value: Any, type_: Type, name: str) -> Any:
    """An argument as the run-time value of its (known) type, if it holds no references. Raises TypeMismatch."""
    values = Values()
    values.add(value, type_, name)
    return values[0]


def _run_time_value(value: Any) -> Any:
    """The content of a Python object's field, as an array, a number, a tuple, a reference or a value of a data type."""
    if isinstance(value, Array):
        return array_content(value)
    if isinstance(value, bool | np.generic):
        return np.asarray(value)
    structure = split(value)
    if structure is not None:
        return tuple(map(_run_time_value, structure[1]))
    return from_dlpack(value) if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray) else value


def _is_unchanged(before: object, after: object) -> bool:
    """True if a content is the same bit by bit; contents of stacks are not compared."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        return before.dtype == after.dtype and before.shape == after.shape and same_bytes(before, after)
    if isinstance(before, tuple) and isinstance(after, tuple):
        return all(map(_is_unchanged, before, after))
    return before is after and not isinstance(after, Stack)


def _contents(values: Sequence[Any], types: Sequence[Type]) -> dict[int, Type]:
    """The types of the contents of all references in values, by the references' `id`."""
    found: dict[int, Type] = {}
    seen: set[int] = set()
    pending = list(zip(values, types, strict=True))
    while pending:
        value, type_ = pending.pop()
        match type_:
            case RefType(content) if id(value) not in found:
                found[id(value)] = content
                pending.append((value.value, content))
            case TupleType(items) if items:
                structure = split(value)
                assert structure is not None
                pending += zip(structure[1], items, strict=True)
            case StackType(RefType(content)):
                pending += ((item, content) for item in value)
            case DataType() if id(value := marshalling.unwrap_closure(value)) not in seen:
                seen.add(id(value))
                _, constructor, fields = marshalling.fields(type_, type(value).__relay_constructor__)
                pending += ((vars(value)[n], t) for n, t in zip(constructor.names, fields, strict=True))
            case _:
                pass
    return found


# ---- out


def wrap(value: Any, type_: Type, interpreted: bool = False) -> Any:
    """A run-time value as what the caller gets: arrays, Python structures of them. Functions in it run
    on the interpreter if `interpreted`."""
    later: list[tuple[Ref, object, Type]] = []
    result = _wrap(value, type_, later, interpreted)
    _give(later, interpreted)
    return result


def _give(later: list[tuple[Ref, object, Type]], interpreted: bool) -> None:
    """Give references their contents."""
    while later:
        reference, content, type_ = later.pop()
        reference.value = _wrap(content, type_, later, interpreted)


def _wrap(value: Any, type_: Type, later: list[tuple[Ref, object, Type]], interpreted: bool) -> Any:
    """As `wrap`; contents of references that the program has made are converted later."""
    if isinstance(value, tuple) and isinstance(type_, TupleType):
        parts = tuple(_wrap(v, t, later, interpreted) for v, t in zip(value, type_.items, strict=True))
        return build(type_.form, parts)
    if isinstance(value, np.ndarray):
        return Array(aligned(value) if interpreted else value)
    if isinstance(value, DeviceTensor):
        return DeviceArray(value)
    if isinstance(value, Data):
        return marshalling.from_data(value, type_, lambda part, of: _wrap(part, of, later, interpreted), interpreted)
    if isinstance(value, Stack | list) and isinstance(type_, StackType) and isinstance(type_.element, RefType):
        content = type_.element.content  # a list of the language is a stack of cells
        items = value if isinstance(value, list) else [_content(cell) for cell in value.buffer[: value.length]]
        return [_wrap(item, content, later, interpreted) for item in items]
    if isinstance(value, Reference) and isinstance(type_, RefType):
        if value.outside is None:
            made = value.outside = Ref(None)
            later.append((made, value.content, type_.content))
        return value.outside
    return value


def _content(cell: object) -> object:
    """An element of a list, whose cell passes may have left out."""
    return cell.content if isinstance(cell, Reference) else cell
