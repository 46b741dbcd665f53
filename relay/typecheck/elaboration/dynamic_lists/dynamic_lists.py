"""Dynamic-length lists.

Such a list is a stack of cells: `Stack[Ref[T]]`, which is written `list[T]` to users. A cell is written once, when its
value is appended, so lists that share cells are values like all others; and since the derivative of a cell is a cell,
an element may be read any number of times, in any order, at the same cost backwards.

    append     push                      xs[i]                    get, after a check
    pop        prefix                    xs[i] = v                set, with a new cell
    slices, insert, ..                   a new stack of the same cells: linear in the length

Where nothing else sees the stack, push, prefix and set change it in place.

A list literal has a known length, and is a tuple of its items until that becomes impossible: a loop that appends to it,
or two paths on which it has different lengths. The known length of a stack is kept next to its type (`Length`), so that
`relay.stack` works wherever the number of rounds is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.expr import (
    Counter,
    Loop,
    LoopLabel,
    Next,
    RefNew,
    StackGet,
    StackNew,
    StackPush,
)
from relay.ir.types import (
    INT64,
    Form,
    Kind,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    Unknown,
    prune,
    scalar,
)
from relay.operator import lookup
from relay.typecheck.elaboration import constant_results
from relay.typecheck.elaboration.abstract_values import (
    NOTHING,
    AbstractValue,
    DeferredBinding,
    DynamicValue,
    ListLength,
    Number,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import early_elements, list_positions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion, operators, weak_types
from relay.typecheck.elaboration.restarts import KeysOfRun, ListGrows, Place, RoundsDiffer
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import erase_forms, flat_shape

IN_REFERENCES: Place = (LoopLabel("references"), ())
"""The place that is marked if a list in a reference gets another length."""


def is_growing(entity: AbstractValue) -> bool:
    """True if a value is a dynamic list."""
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), StackType)


def is_list(entity: AbstractValue) -> bool:
    """True if a value is a list of either kind."""
    return is_growing(entity) or is_literal(entity)


def is_literal(entity: AbstractValue) -> bool:
    """True if a value is a list whose items are known one by one."""
    return isinstance(entity, Tuple) and entity.form is not None and entity.form.cls is list


def count(checker: Checker, xs: DynamicValue) -> int | None:
    """The number of elements, if it is known. A symbolic one becomes that of the call at hand."""
    length = xs.length.absolute if xs.length is not None else None
    return checker.hints.number(length) if length is not None else None


def element_type(xs: DynamicValue) -> Type:
    """The type of the elements."""
    stack = prune(xs.type)
    assert isinstance(stack, StackType)
    cell = prune(stack.element)
    assert isinstance(cell, RefType)
    return cell.content


# ---- making


def empty(checker: Checker, out: TypedBlockBuilder, element: Type, span: Span | None) -> DynamicValue:
    """A list of nothing."""
    cell = RefType(element)
    var = checker.variable("list", StackType(cell), span)
    out.items.append(DeferredBinding((var,), lambda: StackNew(erase_forms(checker.final_type(cell)), span)))
    return DynamicValue(var, StackType(cell), length=ListLength(None, 0, NOTHING))


def as_growing(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, written: Type | None = None
) -> DynamicValue:
    """A list, or any tuple, as a dynamic list. Its items must have one type, but for the sizes
    that are `Any` in its `written` type."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if isinstance(entity, DynamicValue) and is_growing(entity):
        return entity
    if checker.generic and isinstance(entity, DynamicValue) and isinstance(prune(entity.type), Unknown):
        raise SchemeOnly(span, "whether this is a list")
    if not isinstance(entity, Tuple):
        raise TypeCheckError("only a list can grow", span, help="start with `xs = []`")
    element: Type = checker.solver.fresh_variable(Kind.Type)
    if entity.parts is not None:
        element = TupleType(tuple(checker.solver.fresh_variable(Kind.Type) for _ in range(entity.parts)))
    elif entity.origin is not None:
        element = early_elements.element_type(checker, entity.origin)
    xs = empty(checker, out, element, span)
    for item in entity.items:
        if isinstance(written, StackType) and isinstance(written.element, RefType):
            item = _of_any_sizes(checker, out, item, written.element.content, span)
        xs = push(checker, out, xs, item, span)
    return xs


def _of_any_sizes(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, written: Type, span: Span | None
) -> AbstractValue:
    """A value that forgets the sizes which are `Any` in its written type."""
    if isinstance(entity, Tuple) and isinstance(written, StackType):
        return as_growing(checker, out, entity, span, written)
    if isinstance(entity, Tuple) and isinstance(written, TupleType) and len(entity.items) == len(written.items):
        parts = zip(entity.items, written.items, strict=True)
        return Tuple(tuple(_of_any_sizes(checker, out, e, w, span) for e, w in parts), entity.form)
    axes = data_dependent.any_axes(written)
    if not axes or not isinstance(entity, DynamicValue) or not _has_rank(entity, written):
        return entity
    return data_dependent.widen_axes(checker, out, entity, axes, span)


def _has_rank(entity: DynamicValue, written: Type) -> bool:
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType) or not isinstance(written, TensorType):
        return False
    return len(flat_shape(type_.shape)) == len(written.shape)


def given_as_list(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """A value where a dynamic list is wanted: a list of a known length becomes one."""
    return as_growing(checker, out, entity, span) if is_literal(entity) else entity


def push(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, value: AbstractValue, span: Span | None
) -> DynamicValue:
    """The list with one more element."""
    cell = new_cell(checker, out, xs, value, span)
    longer = checker.bind(out, StackPush(xs.atom, cell.atom, span), xs.type, "list", span)
    return attrs.evolve(longer, length=None if xs.length is None else xs.length.plus(1).with_elements(cell.length))


def new_cell(
    checker: Checker, out: TypedBlockBuilder, xs: DynamicValue, value: AbstractValue, span: Span | None
) -> DynamicValue:
    """A cell for a list, with a value. Its length is that of the list that it holds."""
    typed = element(checker, out, xs, value, span)
    cell = checker.bind(out, RefNew(typed.atom, span), RefType(element_type(xs)), "cell", span)
    return attrs.evolve(cell, length=constant_results.length_of(typed))


def element(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    value: AbstractValue,
    span: Span | None,
    what: str = "an element of the list",
) -> DynamicValue:
    """A value as an element of a list, `what` in messages."""
    wanted = element_type(xs)
    starts_empty = isinstance(value, Tuple) and not value.items  # `[[], []]` is there to be filled
    if is_literal(value) and (starts_empty or isinstance(prune(wanted), StackType)):
        value = as_growing(checker, out, value, span)
    elif checker.decisions.has_nested_growth:
        value = growing_inside(checker, out, value, span)
    base, made = prune(wanted), value
    if isinstance(value, Number) and isinstance(base, TensorType) and base.shape == ():
        typed = checker.constant(out, value, base.base)
    else:
        made, value = value, data_dependent.pack_sizes(checker, out, value, None, wanted, span)
        value = dtype_promotion.as_element(checker, out, value, wanted, span)
        typed = checker.materialize(out, weak_types.free_count(checker, out, value), span)
    if checker.frame.filling and isinstance(made, DynamicValue):
        _refuse_sizes_of_rounds(checker, made)
    refuse_lengths(checker, typed.type, wanted)
    checker.unify_at(
        typed.type,
        wanted,
        span,
        what,
        help=f"{_SAME_TYPE.get(what, _SAME_TYPES)} must have the same type",
    )
    return typed


def _refuse_sizes_of_rounds(checker: Checker, value: DynamicValue) -> None:
    """Start again with copies of the rounds of loops if the size of an element follows from the number of the round,
    so that each has a known one."""
    if any(dim in checker.sizes.of_rounds for dim in data_dependent.data_dependent_dims(value.type)):
        raise RoundsDiffer(checker.frame.filling)


def growing_inside(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """A value whose lists can grow, also those in tuples."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if is_literal(entity):
        return as_growing(checker, out, entity, span)
    if isinstance(entity, Tuple):
        return Tuple(tuple(growing_inside(checker, out, i, span) for i in entity.items), entity.form)
    return entity


def refuse_lengths(checker: Checker, left: Type, right: Type) -> None:
    """Start again with lists that grow inside of others, if two types differ by the lengths of lists; with hash tables,
    if they differ by the keys of dicts."""
    refuse_keys(left, right)
    if not checker.decisions.has_nested_growth and lengths_differ(left, right):
        raise ListGrows(None)


_SAME_TYPES = "the elements of a list that a loop fills"
_SAME_TYPE = {
    "a run-time key": "the keys of a dict, or elements of a set,",
    "a value of the dict": "the values of a dict",
}


def refuse_keys(left: Type, right: Type) -> None:
    """Start again with hash tables, if two types differ by the keys of dicts that the program makes."""
    if origins := _dicts_that_differ(left, right):
        raise KeysOfRun(origins)


def _dicts_that_differ(left: Type, right: Type) -> set[object]:
    """The places where dicts are made by which two types differ."""
    match prune(left), prune(right):
        case TupleType(items, form), TupleType(others, other):
            if form != other:
                return {f.origin for f in (form, other) if f is not None and f.origin is not None}
            pairs = zip(items, others, strict=False)
            return {origin for a, b in pairs for origin in _dicts_that_differ(a, b)}
        case (StackType(a), StackType(b)) | (RefType(a), RefType(b)):
            return _dicts_that_differ(a, b)
        case _:
            return set()


def lengths_differ(left: Type, right: Type) -> bool:
    """True if two types differ by the lengths of lists."""
    match prune(left), prune(right):
        case TupleType(items, form), TupleType(others, other):
            if len(items) != len(others):
                return form is not None and form == other and form.cls is list
            return any(lengths_differ(a, b) for a, b in zip(items, others, strict=True))
        case (TupleType(_, Form(cls)), StackType()) | (StackType(), TupleType(_, Form(cls))):
            return cls is list
        case (StackType(a), StackType(b)) | (RefType(a), RefType(b)):
            return lengths_differ(a, b)
        case _:
            return False


def extend_list(
    checker: Checker,
    out: TypedBlockBuilder,
    xs: DynamicValue,
    source: DynamicValue,
    span: Span | None,
    start: DynamicValue | None = None,
    count: DynamicValue | None = None,
    step: int = 1,
) -> DynamicValue:
    """The list with cells of another one at its end: `count` of them from `start`, each `step` further (all: int64)."""
    refuse_lengths(checker, source.type, xs.type)
    checker.unify_at(source.type, xs.type, span, "the list")
    whole = start is None and count is None
    if count is None:
        count = list_positions.length64(checker, out, source, span)
    stack, index = checker.variable("list", xs.type, span), checker.variable("i", scalar(INT64), span)
    label, body = LoopLabel("list"), TypedBlockBuilder()
    position = DynamicValue(index, scalar(INT64))
    if step != 1:
        position = list_positions.compute(checker, body, "multiply", position, list_positions.number(step), span)
    if start is not None:
        position = list_positions.compute(checker, body, "add", position, start, span)
    cell = checker.bind(body, StackGet(source.atom, position.atom, span), RefType(element_type(xs)), "cell", span)
    longer = checker.bind(body, StackPush(stack, cell.atom, span), xs.type, "list", span)
    body.terminator = Next(label, (longer.atom,), span)
    result = checker.variable("list", xs.type, span)
    trip, initial = Counter(index, count.atom), (xs.atom,)
    out.items.append(DeferredBinding((result,), lambda: Loop(label, (stack,), initial, body.block(), trip, span)))
    if not whole or source.length is None or source.length.absolute is None or xs.length is None:
        return DynamicValue(result, xs.type)
    return DynamicValue(
        result, xs.type, length=xs.length.plus(source.length.absolute).with_elements(source.length.elements)
    )


def concatenate_lists(
    checker: Checker, out: TypedBlockBuilder, parts: Sequence[AbstractValue], span: Span | None
) -> DynamicValue:
    """`[*xs, *ys]`, `xs + ys`: lists and tuples, of which one at least is growing."""
    result: DynamicValue | None = None
    for part in parts:
        if isinstance(part, DynamicValue):
            part = expand(checker, out, part, span)
        if result is None:
            result = as_growing(checker, out, part, span)
        elif isinstance(part, Tuple):
            for item in part.items:
                result = push(checker, out, result, item, span)
        else:
            result = extend_list(checker, out, result, as_growing(checker, out, part, span), span)
    assert result is not None
    return result


def repeat_list(
    checker: Checker, out: TypedBlockBuilder, items: AbstractValue, count: DynamicValue, span: Span | None
) -> DynamicValue:
    """`xs * n`"""
    checker.unify_at(
        count.type, TensorType(checker.solver.fresh_variable(Kind.BaseType), ()), span, "how often the list is repeated"
    )
    once = as_growing(checker, out, items, span)
    start = empty(checker, out, element_type(once), span)
    stack, index = checker.variable("list", once.type, span), checker.variable("i", scalar(INT64), span)
    label, body = LoopLabel("list"), TypedBlockBuilder()
    longer = extend_list(checker, body, DynamicValue(stack, once.type), once, span)
    body.terminator = Next(label, (longer.atom,), span)
    result = checker.variable("list", once.type, span)
    rounds = operators.apply(checker, out, lookup("cast"), [count], {"dtype": INT64}, span, [])
    trip = Counter(index, list_positions.compute(checker, out, "maximum", rounds, list_positions.number(0), span).atom)
    out.items.append(DeferredBinding((result,), lambda: Loop(label, (stack,), (start.atom,), body.block(), trip, span)))
    return DynamicValue(result, once.type)
