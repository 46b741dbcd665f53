"""Trip counts of `for` loops, with Python's semantics.

    rounds = ceil((stop - start) / step), or 0

of numbers that never wrap around. With 32-bit bounds a difference may take 33 bits, and so may a count: these are
computed in int64, and where more than 2**31 - 1 rounds are possible, the loop's counter is an int64. A number that is
known not to be negative, as a size or the variable of `range(n)`, needs no more than 32 bits. With 64-bit bounds the
distance is an unsigned number of 64 bits; no loop ends after 2**63 rounds, so larger counts are clipped to that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.dims import ANY, Dim, subtract
from relay.ir.expr import Assert, Atom, Binding, Constant, OpCall
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import BOOL, INT32, INT64, BaseType, TensorType, Unknown, prune, scalar, show
from relay.operator import lookup
from relay.typecheck.dims import follows_at_least
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Progression,
    PythonObject,
    Range,
    Size,
    TypedBlockBuilder,
    Zip,
    dim_of,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions
from relay.typecheck.elaboration.expressions import operators, weak_types
from relay.typecheck.elaboration.values import range_numbers, sizes
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.guards import LARGEST, fits_int32
from relay.typecheck.relations import steps
from relay.typecheck.unification import is_known, resolve

UINT64 = BaseType("uint64")

_SHORT = (*(BaseType(name) for name in ("int8", "int16", "uint8", "uint16")),)
_LONG = (INT64, BaseType("uint32"))
_HELD = {INT32: _SHORT, INT64: (*_SHORT, INT32, BaseType("uint32"))}
"""The dtypes whose numbers another one holds."""

_MOST = 2**63 - 1
"""The rounds that stand for more."""

_SURELY_FEW = 3
"""With steps of at least this size a range of 32-bit numbers has a number of them that is one of 32 bits."""


def parts(iterable: AbstractValue) -> list[AbstractValue]:
    """The iterables of a loop: the members of zips, also nested ones. A list, since what a signal's handler raises
    while Python closes a generator is lost."""
    if isinstance(iterable, Zip):
        return [part for item in iterable.items for part in parts(item)]
    return [iterable]


def element_base(checker: Checker, found: Sequence[AbstractValue]) -> BaseType:
    """The dtype of the numbers that a loop over these goes through: int64 if a bound is, or needs to be."""
    return INT64 if any(_is_int64(checker, part) for part in found) else INT32


def counter_base(checker: Checker, found: Sequence[AbstractValue], base: BaseType) -> BaseType:
    """The dtype of the counter of a loop over these, whose numbers are of a base type."""
    return INT64 if base == INT64 or any(_may_be_long(checker, part) for part in found) else INT32


def _is_int64(checker: Checker, part: AbstractValue) -> bool:
    if isinstance(part, DynamicValue):
        type_ = tensor_type(part)
        dim = type_.shape[0] if type_ is not None and is_known(type_.shape) and type_.shape else 0
        return isinstance(dim, int) and dim > LARGEST
    if not isinstance(part, Range | Progression):
        return False
    for bound in (part.start, part.stop, *([part.step] if isinstance(part, Progression) else [])):
        if isinstance(bound, DynamicValue) and (type_ := tensor_type(bound)) is not None and type_.base in _LONG:
            return True
        if isinstance(bound, Size) and not fits_int32(checker.hints, bound.dim):
            return True
        if isinstance(bound, Number) and not isinstance(bound, Size) and not -(2**31) <= bound.specialize() < 2**31:
            return True
    return False


def _may_be_long(checker: Checker, part: AbstractValue) -> bool:
    """True if a range of 32-bit numbers may have more elements than an int32 can count."""
    match part:
        case Range(Number() as start, Number() as stop, step) if not may_run_backward(start, stop):
            return not fits_int32(checker.hints, _step_count(start, stop, step))
        case Range(_, PythonObject(None), _):
            return False
        case Range(start, stop, step):
            near = start if step > 0 else stop
            return abs(step) < _SURELY_FEW and not is_natural(checker, near)
        case Progression():
            return True
        case _:
            return False


def is_natural(checker: Checker, bound: AbstractValue) -> bool:
    """True if a number is known not to be negative."""
    if isinstance(bound, Number):
        dim = dim_of(bound)
        return dim is not None and follows_at_least(dim, 0)
    return isinstance(bound, DynamicValue) and bound.atom in checker.sizes.naturals


def count(
    checker: Checker, out: TypedBlockBuilder, part: AbstractValue, base: BaseType, counter: BaseType, span: Span | None
) -> DynamicValue | None:
    """The number of elements, in the dtype of the counter; None for a range without end. `base`: of its numbers."""
    match part:
        case Range(Number() as start, Number() as stop, step) if not may_run_backward(start, stop):
            return _length(checker, out, _step_count(start, stop, step), counter, span)
        case Range(_, PythonObject(None), _):
            return None
        case Range(start, stop, step):
            near = start if step > 0 else stop
            low, high = (bound_of(checker, out, b, base, span) for b in (start, stop))
            if is_natural(checker, near):
                found = _count_upwards(checker, out, near, (low, high), step, base, span)
            elif base == INT64:
                found = _count_widely(checker, out, low, high, step, span)
            else:
                found = _count_exactly(checker, out, low, high, saturated_integer(step, INT64), span)
            return cast_integer(checker, out, found, counter, span)
        case Progression(start, stop, step):
            low, high, by = (bound_of(checker, out, b, base, span) for b in (start, stop, step))
            if base == INT64:
                found = _count_widely(checker, out, low, high, by, span)
            else:
                found = _count_exactly(checker, out, low, high, by, span)
            return cast_integer(checker, out, found, counter, span)
        case DynamicValue() if dynamic_lists.is_growing(part):
            if part.length is not None and part.length.absolute is not None:
                return _length(checker, out, part.length.absolute, counter, span)
            found = list_positions.length64(checker, out, part, span)
            return operators.apply(checker, out, lookup("cast"), [found], {"dtype": counter}, span, [])
        case DynamicValue():
            return _length(checker, out, _rows(part, span), counter, span)
        case _:
            raise TypeCheckError(
                "this cannot be iterated over", span, help="use range, a tensor, a tuple, zip or enumerate"
            )


def length(checker: Checker, out: TypedBlockBuilder, part: Range | Progression, span: Span | None) -> AbstractValue:
    """`len` of a range."""
    match part:
        case Range(Number() as start, Number() as stop, step) if not may_run_backward(start, stop):
            return size(_step_count(start, stop, step), span)
    base = element_base(checker, [part])
    counter = counter_base(checker, [part], base)
    found = count(checker, out, part, base, counter, span)
    if found is None:
        raise TypeCheckError("an infinite iterable has no length", span)
    return range_numbers.of_range(found)


def _rows(part: DynamicValue, span: Span | None) -> Dim:
    """The extent of the first axis of a tensor."""
    type_ = tensor_type(part)
    if isinstance(prune(part.type), Unknown):
        raise SchemeOnly(span, "the iterable of this loop")
    if type_ is None and not isinstance(prune(part.type), TensorType):
        raise TypeCheckError(f"{show(resolve(part.type))} cannot be iterated over", span)
    if type_ is None or not is_known(type_.shape) or ANY in type_.shape:
        raise SchemeOnly(span, "the length of the iterable of this loop")
    if type_.rank == 0:
        raise TypeCheckError("a scalar cannot be iterated over", span, help="use range(n)")
    return type_.shape[0]


def may_run_backward(start: AbstractValue, stop: AbstractValue) -> bool:
    """True for bounds that are sizes of the run, whose distance may be less than 0: it is no size then."""
    if not isinstance(start, Number) or not isinstance(stop, Number):
        return False
    first, last = dim_of(start), dim_of(stop)
    if first is None or last is None:
        return False
    distance = subtract(last, first)
    return mentions_made(distance) and not (follows_at_least(distance, 0) or follows_at_least(subtract(first, last), 0))


def _step_count(start: Number, stop: Number, step: int) -> Dim:
    first, last = dim_of(start), dim_of(stop)
    assert first is not None and last is not None
    return steps(first, last, step)


def _count_upwards(
    checker: Checker,
    out: TypedBlockBuilder,
    near: AbstractValue,
    bounds: tuple[DynamicValue, DynamicValue],
    step: int,
    base: BaseType,
    span: Span | None,
) -> DynamicValue:
    """The count where the lower bound is not negative: no difference wraps around."""
    low, high = bounds if step > 0 else bounds[::-1]
    top = call(checker, out, "maximum", [high, low], base, span)
    if abs(step) == 1:
        return top if is_zero(near) else call(checker, out, "subtract", [top, low], base, span)
    below = call(checker, out, "subtract", [low, top], base, span)
    quotient = call(checker, out, "floor_divide", [below, saturated_integer(abs(step), base)], base, span)
    return call(checker, out, "negative", [quotient], base, span)


def _count_exactly(
    checker: Checker,
    out: TypedBlockBuilder,
    low: DynamicValue,
    high: DynamicValue,
    step: DynamicValue,
    span: Span | None,
) -> DynamicValue:
    """The count of 32-bit numbers, in int64: the quotient, rounded up."""
    wide = [cast_integer(checker, out, number, INT64, span) for number in (low, high, step)]
    below = call(checker, out, "subtract", wide[:2], INT64, span)
    quotient = call(checker, out, "floor_divide", [below, wide[2]], INT64, span)
    rounds = call(checker, out, "negative", [quotient], INT64, span)
    return call(checker, out, "maximum", [rounds, integer(0, INT64)], INT64, span)


def _count_widely(
    checker: Checker,
    out: TypedBlockBuilder,
    low: DynamicValue,
    high: DynamicValue,
    step: DynamicValue | int,
    span: Span | None,
) -> DynamicValue:
    """The count of 64-bit numbers: the quotient of unsigned numbers, rounded up."""

    def unsigned_op(name: str, *operands: DynamicValue) -> DynamicValue:
        return call(checker, out, name, operands, UINT64, span)

    def distance(first: DynamicValue, last: DynamicValue) -> DynamicValue:
        top = call(checker, out, "maximum", [last, first], INT64, span)
        return unsigned_op("subtract", *(cast_integer(checker, out, n, UINT64, span) for n in (top, first)))

    if isinstance(step, int):
        away, by = distance(*((low, high) if step > 0 else (high, low))), saturated_integer(abs(step), UINT64)
    else:
        upward = checker.bind(
            out, OpCall(lookup("greater").name, (step.atom, integer(0, INT64).atom), {}, span), scalar(BOOL), "up", span
        )
        downward = call(checker, out, "negative", [step], INT64, span)
        by = cast_integer(
            checker, out, call(checker, out, "where", [upward, step, downward], INT64, span), UINT64, span
        )
        away = unsigned_op("where", upward, distance(low, high), distance(high, low))
    if isinstance(step, int) and abs(step) == 1:
        rounds = away
    else:  # one more than the quotient of one less, where there are any
        some = unsigned_op("minimum", away, integer(1, UINT64))
        whole = unsigned_op("floor_divide", unsigned_op("subtract", away, some), by)
        rounds = unsigned_op("add", whole, some)
    return cast_integer(checker, out, unsigned_op("minimum", rounds, integer(_MOST, UINT64)), INT64, span)


def last_number(
    checker: Checker,
    out: TypedBlockBuilder,
    part: Range | Progression,
    rounds: DynamicValue,
    base: BaseType,
    span: Span | None,
) -> DynamicValue:
    """The last number of a range with this many, also of one that has more than its count."""

    def compute(name: str, *operands: DynamicValue) -> DynamicValue:
        return call(checker, out, name, operands, base, span)

    by = wrapped_integer(part.step, base) if isinstance(part, Range) else bound_of(checker, out, part.step, base, span)
    before_stop = compute("subtract", bound_of(checker, out, part.stop, base, span), by)
    if isinstance(part, Range) and abs(part.step) == 1:
        return before_stop
    before = compute("subtract", cast_integer(checker, out, rounds, base, span), integer(1, base))
    found = compute("add", compute("multiply", before, by), bound_of(checker, out, part.start, base, span))
    if isinstance(part, Range):
        return found
    atoms: tuple[Atom, ...] = (compute("multiply", by, by).atom, integer(1, base).atom)
    is_one = checker.bind(out, OpCall(lookup("equal").name, atoms, {}, span), scalar(BOOL), "is_one", span)
    return call(checker, out, "where", [is_one, before_stop, found], base, span)


def is_zero(bound: AbstractValue) -> bool:
    """True if a bound is the number 0."""
    return isinstance(bound, Number) and not isinstance(bound, Size) and bound.specialize() == 0


def _length(checker: Checker, out: TypedBlockBuilder, dim: Dim, base: BaseType, span: Span | None) -> DynamicValue:
    if isinstance(dim, int):
        return integer(min(dim, _MOST), base)
    return sizes.extent(checker, out, dim, base, span)


def integer(value: int, base: BaseType) -> DynamicValue:
    """A number as an atom."""
    constant = Constant(np.asarray(value, dtype=base.dtype))
    return DynamicValue(constant, constant.type)


def saturated_integer(value: int, base: BaseType) -> DynamicValue:
    """A number, or the one nearest to it that a dtype has."""
    limits = np.iinfo(base.name)
    return integer(min(max(value, int(limits.min)), int(limits.max)), base)


def wrapped_integer(value: int, base: BaseType) -> DynamicValue:
    """A number as arithmetic that wraps around has it."""
    size = 1 << (8 * base.dtype.itemsize)
    return integer((value + size // 2) % size - size // 2, base)


def bound_of(
    checker: Checker, out: TypedBlockBuilder, bound: AbstractValue, base: BaseType, span: Span | None
) -> DynamicValue:
    """A bound of a range in the dtype of its numbers."""
    if isinstance(bound, Size):
        return sizes.extent(checker, out, bound.dim, base, span)
    if isinstance(bound, Number):
        return integer(int(bound.specialize()), base)
    assert isinstance(bound, DynamicValue)
    own = tensor_type(bound)
    if own is not None and own.base in _HELD[base] and own == scalar(own.base):
        return operators.apply(checker, out, lookup("cast"), [bound], {"dtype": base}, span, [])
    if base == INT64 and weak_types.is_weak(bound):
        return weak_types.cast_weak(checker, out, bound, base, span)
    bound = weak_types.counting_integer(checker, out, bound)
    checker.unify_at(bound.type, scalar(base), span, "a bound of range")
    return bound


def signed_bound(checker: Checker, out: TypedBlockBuilder, bound: AbstractValue, span: Span | None) -> AbstractValue:
    """A bound of a range; one of uint64 as an int64, which is checked at run time."""
    if not isinstance(bound, DynamicValue) or prune(bound.type) != scalar(UINT64):
        return bound
    found = cast_integer(checker, out, bound, INT64, span)
    atoms: tuple[Atom, ...] = (found.atom, integer(0, INT64).atom)
    holds = checker.bind(out, OpCall(lookup("greater_equal").name, atoms, {}, span), scalar(BOOL), "holds", span)
    out.items.append(Binding((), Assert(holds.atom, "a bound of range must be less than 2**63", span)))
    return found


def cast_integer(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, base: BaseType, span: Span | None
) -> DynamicValue:
    """An integer of a known dtype in another one."""
    if prune(value.type) == scalar(base):
        return value
    if isinstance(value.atom, Constant):
        constant = Constant(value.atom.value.astype(base.dtype))  # what wraps around does so here, too
        return DynamicValue(constant, constant.type)
    atoms: tuple[Atom, ...] = (value.atom,)
    return checker.bind(out, OpCall(lookup("cast").name, atoms, {"dtype": base}, span), scalar(base), "count", span)


def call(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    operands: Sequence[DynamicValue],
    base: BaseType,
    span: Span | None,
) -> DynamicValue:
    """An integer operation that cannot fail, without the run-time requirements of its operator."""
    atoms: tuple[Atom, ...] = tuple(o.atom for o in operands)
    return checker.bind(out, OpCall(lookup(name).name, atoms, {}, span), scalar(base), "count", span)


def minimum(
    checker: Checker, out: TypedBlockBuilder, a: DynamicValue, b: DynamicValue, span: Span | None
) -> DynamicValue:
    """The smaller one of two counts of one dtype."""
    if isinstance(a.atom, Constant) and isinstance(b.atom, Constant):
        return a if a.atom.value <= b.atom.value else b
    type_ = tensor_type(a)
    assert type_ is not None and isinstance(type_.base, BaseType)
    return call(checker, out, "minimum", [a, b], type_.base, span)
