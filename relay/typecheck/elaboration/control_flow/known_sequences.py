"""Sequences of known numbers and texts through which a loop goes: it counts or reads them, where a copy of its body for
each of them would be large.

    for i in list(range(1000)):      a loop over a range
    for c in "a long text":          a loop over a dynamic list of characters, which are run-time values
    for v, s in zip(VALUES, NAMES):  the same of both

If that fails, as the body needs to know the number or text, elaboration starts again with copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import Span
from relay.ir.expr import Constant
from relay.ir.surface import ForEach
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.loop_copies import EVALUATED, StaticFlow, count_of, weight
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.values import texts

SOME_BINDINGS = 256
"""The largest number of bindings in copies of the body of a loop that could count numbers."""

FEW_BINDINGS = 64
"""The same of a loop that could read texts: what is done with a text takes more than a binding says."""

MANY_NUMBERS = 32
"""More numbers than these are counted or read; texts are at any number."""


def as_read(
    checker: Checker, context: Context, node: ForEach, iterable: AbstractValue, out: TypedBlockBuilder
) -> AbstractValue:
    """The iterable of a `for`, where a structure of many numbers, or of texts, becomes something that a loop can count
    or read."""
    if node.label in checker.decisions.copied:
        return iterable
    found = _counted(checker, context, node, iterable)
    if not _holds_texts(found) or not _can_be_read(found) or _is_cheap(checker, context, node, found, FEW_BINDINGS):
        return found
    checker.uncopied.add(node.label)
    return _read(checker, out, found, node.span)


def _counted(checker: Checker, context: Context, node: ForEach, iterable: AbstractValue) -> AbstractValue:
    if isinstance(iterable, Zip):
        return Zip(tuple(_counted(checker, context, node, part) for part in iterable.items))
    if not isinstance(iterable, Tuple) or len(iterable.items) <= MANY_NUMBERS:
        return iterable
    numbers = [i.value for i in iterable.items if type(i) is PythonNumber and isinstance(i.value, int)]
    if len(numbers) < len(iterable.items) or _is_cheap(checker, context, node, iterable, SOME_BINDINGS):
        return iterable
    checker.uncopied.add(node.label)
    return counted_numbers(numbers, node.span)


def counted_numbers(numbers: Sequence[int], span: Span | None) -> AbstractValue:
    """Known numbers as something that a loop counts, or reads."""
    first = numbers[0] if numbers else 0
    step = numbers[1] - first if len(numbers) > 1 else 1
    stop = first + step * len(numbers)
    if step and list(numbers) == list(range(first, stop, step)):
        return Range(PythonNumber(first), PythonNumber(stop), step)
    small = np.array_equal(numbers, np.asarray(numbers, np.int64).astype(np.int32))
    constant = Constant(np.asarray(numbers, np.int32 if small else np.int64), span)
    return DynamicValue(constant, constant.type, of_range=True)


def _is_cheap(checker: Checker, context: Context, node: ForEach, iterable: AbstractValue, most: int) -> bool:
    """True if copies of the body have few bindings, or are computed."""
    count = count_of(checker, iterable, ask=False)
    bindings = (count or 0) * checker.frame.copies * weight(checker, context, node.body)
    return bindings <= (EVALUATED if StaticFlow(context, node, iterable).everything_known else most)


def _is_text(entity: AbstractValue) -> bool:
    return isinstance(entity, PythonObject) and isinstance(entity.value, str)


def _holds_texts(iterable: AbstractValue) -> bool:
    """True if a loop goes through known texts."""
    match iterable:
        case Zip(items):
            return any(map(_holds_texts, items))
        case Tuple((first, *_)):
            return _is_text(first) or (isinstance(first, Tuple) and any(map(_is_text, first.items)))
        case PythonObject(str() as text):
            return text != ""
        case _:
            return False


def _can_be_read(iterable: AbstractValue) -> bool:
    """True if the parts of an iterable have elements of one type each."""
    match iterable:
        case Zip(items):
            return all(map(_can_be_read, items))
        case Tuple(items):
            kinds = {_kind(item) for item in items}
            return len(kinds) <= 1 and None not in kinds
        case PythonObject(value):
            return isinstance(value, str)
        case _:
            return isinstance(iterable, Range | DynamicValue)


def _kind(entity: AbstractValue) -> object:
    """The kind of a known element: "integer", "text", or the kinds of a tuple's items; None for any other."""
    if isinstance(entity, Tuple) and entity.form is None:
        kinds = tuple(map(_kind, entity.items))
        return None if None in kinds else kinds
    if type(entity) is PythonNumber and isinstance(entity.value, int):
        return "integer"
    return "text" if _is_text(entity) else None


def _read(checker: Checker, out: TypedBlockBuilder, iterable: AbstractValue, span: Span | None) -> AbstractValue:
    match iterable:
        case Zip(items):
            return Zip(tuple(_read(checker, out, part, span) for part in items))
        case Tuple():
            items = tuple(texts.of_run(checker, out, item, span) for item in iterable.items)
            return dynamic_lists.as_growing(checker, out, Tuple(items, iterable.form), span)
        case PythonObject():
            return texts.characters(checker, out, iterable, span)
        case _:
            return iterable
