"""Constant results: numbers, booleans, sizes and list lengths in a function's result that the checker knows.

`n, d = x.shape` and `len(x) // 2` mean the same in a function of their own: their values can size an array there, and
where the function is called; `isinstance(x, tuple)` decides there, too. The lengths of lists are known of arguments.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import attrs

from relay.ir.dims import DataDependentDim
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import INT32, BaseType, StackType, TensorType, Type, prune
from relay.typecheck.dims import follows_equal
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    ListLength,
    Number,
    PythonNumber,
    PythonObject,
    Size,
    Tuple,
    dim_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import mentioned_in_number
from relay.typecheck.elaboration.values import range_numbers
from relay.typecheck.elaboration.values.labels import is_label
from relay.typecheck.unification import flat_shape

_UNKNOWN = PythonObject(None)


_COUNT = PythonObject("a count")


def common_constants(
    results: Sequence[AbstractValue], before: Container[DataDependentDim], counts: bool = True
) -> AbstractValue | None:
    """The numbers that all returns of a function give in the same place, and where all are counts; None if there is
    none. Sizes that the function makes are not known to its callers, only those made `before` it is called."""
    if not results:
        return None
    first, *others = results
    if all(isinstance(r, DynamicValue) and range_numbers.is_count(r) for r in results):
        return _COUNT if counts else None
    if isinstance(first, Number):
        same = all(isinstance(o, Number) and same_number(first, o) for o in others)
        outside = all(dim in before for dim in mentioned_in_number(first))
        return first if same and outside else None
    if isinstance(first, DynamicValue) and (decided := is_constant_bool(first)) is not None:
        return first if all(is_constant_bool(o) is decided for o in others) else None
    if isinstance(first, DynamicValue):
        length = length_of(first)
        return first if length is not None and all(length_of(o) == length for o in others) else None
    if isinstance(first, GlobalFunction) or (isinstance(first, PythonObject) and is_label(first.value)):
        return first  # of which there is one where results have labels
    if not isinstance(first, Tuple):
        return None
    columns = []
    for position, item in enumerate(first.items):
        parts = [o.items[position] for o in others if isinstance(o, Tuple) and len(o.items) == len(first.items)]
        columns.append(common_constants([item, *parts], before, counts) if len(parts) == len(others) else None)
    if all(c is None for c in columns):
        return None
    return Tuple(tuple(_UNKNOWN if c is None else c for c in columns), first.form)


def of_counts(result: Type, known: AbstractValue | None) -> AbstractValue | None:
    """The known result of a function that calls itself and takes nothing but counts and numbers: an integer is a
    count, even if the result of the calls inside was not known to be one."""
    type_ = prune(result)
    is_number = isinstance(type_, TensorType) and flat_shape(type_.shape) == () and prune(type_.base) == INT32
    return _COUNT if known is None and is_number else known


def with_known_numbers(result: AbstractValue, known: AbstractValue | None) -> AbstractValue:
    """A result of a call with its known numbers in place of those that are computed at run time."""
    if known is _COUNT and isinstance(result, DynamicValue):
        return range_numbers.of_range(result)
    if isinstance(known, GlobalFunction) or (isinstance(known, PythonObject) and is_label(known.value)):
        return known if isinstance(result, PythonObject) else result
    if isinstance(known, Number) and isinstance(result, DynamicValue):
        type_ = prune(result.type)
        base = prune(type_.base) if isinstance(type_, TensorType) else None
        other = isinstance(base, BaseType) and base.is_float != known.is_float  # an annotation says so
        return result if base is None or other else known
    if isinstance(known, DynamicValue) and (decided := is_constant_bool(known)) is not None:
        return attrs.evolve(result, known=decided) if isinstance(result, DynamicValue) else result
    if isinstance(known, DynamicValue) and isinstance(result, DynamicValue):
        return attrs.evolve(result, length=known.length) if _is_growing(result) else result
    if isinstance(known, Tuple) and isinstance(result, Tuple) and len(known.items) == len(result.items):
        pairs = zip(result.items, known.items, strict=True)
        return Tuple(tuple(with_known_numbers(r, None if k is _UNKNOWN else k) for r, k in pairs), result.form)
    return result


def _is_growing(entity: AbstractValue) -> bool:
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), StackType)


def length_of(entity: AbstractValue) -> ListLength | None:
    """The length of a list that grows, if it is known at each place of the program."""
    length = entity.length if isinstance(entity, DynamicValue) and _is_growing(entity) else None
    return length if length is not None and length.absolute is not None and not _is_made(length) else None


def _is_made(length: ListLength) -> bool:
    return mentions_made(length.more) or (isinstance(length.elements, ListLength) and _is_made(length.elements))


def lengths(entity: AbstractValue) -> object:
    """The lengths of the lists that grow in a value, as a key; None if none is known."""
    if isinstance(entity, Tuple):
        found = tuple(map(lengths, entity.items))
        return None if all(f is None for f in found) else found
    return length_of(entity)


def with_lengths(entity: AbstractValue, known: object) -> AbstractValue:
    """A value with these lengths of its lists."""
    if isinstance(known, ListLength) and isinstance(entity, DynamicValue) and _is_growing(entity):
        return attrs.evolve(entity, length=known)
    if isinstance(known, tuple) and isinstance(entity, Tuple) and len(known) == len(entity.items):
        return Tuple(tuple(map(with_lengths, entity.items, known)), entity.form)
    return entity


def same_number(a: Number, b: Number) -> bool:
    """True if two numbers are known to be one."""
    if isinstance(a, Size) or isinstance(b, Size):
        left, right = dim_of(a), dim_of(b)
        return left is not None and right is not None and follows_equal(left, right) is True
    if not isinstance(a, PythonNumber) or not isinstance(b, PythonNumber):
        return a is b
    return type(a.value) is type(b.value) and a.value == b.value
