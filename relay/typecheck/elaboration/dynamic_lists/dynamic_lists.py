"""Lists whose length only the run knows.

Such a list is a stack of cells: `Stack[Ref[T]]`, which is written `list[T]` to users. A cell is written once, when its
value is appended, so lists that share cells are values like all others; and since the derivative of a cell is a cell,
an element may be read any number of times, in any order, at the same cost backwards.

    append     push                      xs[i]                    get, after a check
    pop        prefix                    xs[i] = v                set, with a new cell
    slices, insert, ..                   a new stack of the same cells: linear in the length

Where nothing else sees the stack, push, prefix and set change it in place.

A list literal has a known length, and is a tuple of its items until something makes that impossible: a loop that
appends to it, or two paths on which it has different lengths. What is known of the length of a stack travels beside its
type (`Length`), so that `relay.stack` works wherever the number of rounds is known.
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
from relay.ir.facts import facts
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
from relay.typecheck.elaboration.abstract_values import NOTHING, Entity, Later, Length, Number, Output, Tuple, Typed
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import list_positions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators, weak_types
from relay.typecheck.elaboration.instances import expand
from relay.typecheck.elaboration.restarts import ListGrows, Place, RoundsDiffer
from relay.typecheck.unification import flat_shape, plain

IN_REFERENCES: Place = (LoopLabel("references"), ())
"""Where lists grow if one that a reference holds gets another length."""


def is_growing(entity: Entity) -> bool:
    """Whether a value is a list whose length only the run knows."""
    return isinstance(entity, Typed) and isinstance(prune(entity.type), StackType)


def is_list(entity: Entity) -> bool:
    """Whether a value is a list of either kind."""
    return is_growing(entity) or is_literal(entity)


def is_literal(entity: Entity) -> bool:
    """Whether a value is a list whose items are known one by one."""
    return isinstance(entity, Tuple) and entity.form is not None and entity.form.cls is list


def count(xs: Typed) -> int | None:
    """The number of elements, if it is known. A symbolic one becomes that of the call at hand."""
    length = xs.length.absolute if xs.length is not None else None
    return facts().number(length) if length is not None else None


def element_type(xs: Typed) -> Type:
    """The type of the elements."""
    stack = prune(xs.type)
    assert isinstance(stack, StackType)
    cell = prune(stack.element)
    assert isinstance(cell, RefType)
    return cell.content


# ---- making


def empty(session: Session, out: Output, element: Type, span: Span | None) -> Typed:
    """A list of nothing."""
    cell = RefType(element)
    var = session.variable("list", StackType(cell), span)
    out.items.append(Later((var,), lambda: StackNew(plain(session.final(cell)), span)))
    return Typed(var, StackType(cell), length=Length(None, 0, NOTHING))


def as_growing(session: Session, out: Output, entity: Entity, span: Span | None, written: Type | None = None) -> Typed:
    """A list, or any tuple, as a list whose length only the run knows. Its items must have one type, but for the sizes
    that are `Any` in its `written` type."""
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    if isinstance(entity, Typed) and is_growing(entity):
        return entity
    if session.generic and isinstance(entity, Typed) and isinstance(prune(entity.type), Unknown):
        raise SchemeOnly(span, "whether this is a list")
    if not isinstance(entity, Tuple):
        raise TypeCheckError("only a list can grow", span, help="start with `xs = []`")
    element: Type = session.solver.fresh(Kind.Type)
    if entity.parts is not None:
        element = TupleType(tuple(session.solver.fresh(Kind.Type) for _ in range(entity.parts)))
    xs = empty(session, out, element, span)
    for item in entity.items:
        if isinstance(written, StackType) and isinstance(written.element, RefType):
            item = _of_any_sizes(session, out, item, written.element.content, span)
        xs = push(session, out, xs, item, span)
    return xs


def _of_any_sizes(session: Session, out: Output, entity: Entity, written: Type, span: Span | None) -> Entity:
    """A value that forgets the sizes which are `Any` in its written type."""
    if isinstance(entity, Tuple) and isinstance(written, StackType):
        return as_growing(session, out, entity, span, written)
    if isinstance(entity, Tuple) and isinstance(written, TupleType) and len(entity.items) == len(written.items):
        parts = zip(entity.items, written.items, strict=True)
        return Tuple(tuple(_of_any_sizes(session, out, e, w, span) for e, w in parts), entity.form)
    axes = data_dependent.any_axes(written)
    if not axes or not isinstance(entity, Typed) or not _has_rank(entity, written):
        return entity
    return data_dependent.widened(session, out, entity, axes, span)


def _has_rank(entity: Typed, written: Type) -> bool:
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType) or not isinstance(written, TensorType):
        return False
    return len(flat_shape(type_.shape)) == len(written.shape)


def given_as_list(session: Session, out: Output, entity: Entity, span: Span | None) -> Entity:
    """What is given where a list whose length only the run knows is wanted: a list of a known length becomes one."""
    return as_growing(session, out, entity, span) if is_literal(entity) else entity


def push(session: Session, out: Output, xs: Typed, value: Entity, span: Span | None) -> Typed:
    """The list with one more element."""
    cell = new_cell(session, out, xs, value, span)
    longer = session.bind(out, StackPush(xs.atom, cell.atom, span), xs.type, "list", span)
    return attrs.evolve(longer, length=None if xs.length is None else xs.length.plus(1).holding(cell.length))


def new_cell(session: Session, out: Output, xs: Typed, value: Entity, span: Span | None) -> Typed:
    """A cell for a list, with a value. Its length is that of the list that it holds."""
    element = element_type(xs)
    starts_empty = isinstance(value, Tuple) and not value.items  # `[[], []]` is there to be filled
    if is_literal(value) and (starts_empty or isinstance(prune(element), StackType)):
        value = as_growing(session, out, value, span)
    elif session.decisions.nested:
        value = growing_inside(session, out, value, span)
    base, made = prune(element), value
    if isinstance(value, Number) and isinstance(base, TensorType) and base.shape == ():
        typed = session.constant(out, value, base.base)
    else:
        made, value = value, data_dependent.packed(session, out, value, None, element, span)
        typed = session.materialise(out, weak_types.freed(session, out, value), span)
    if session.entered and isinstance(made, Typed):
        _refuse_sizes_of_rounds(session, made)
    refuse_lengths(session, typed.type, element)
    session.unify_at(
        typed.type,
        element,
        span,
        "an element of the list",
        help="the elements of a list that a loop fills have one type",
    )
    cell = session.bind(out, RefNew(typed.atom, span), RefType(element), "cell", span)
    return attrs.evolve(cell, length=constant_results.length_of(typed))


def _refuse_sizes_of_rounds(session: Session, value: Typed) -> None:
    """Begin anew with copies of the rounds of loops where the size of an element follows from the number of the round,
    so that each has a known one."""
    if any(dim in session.sizes_of_rounds for dim in data_dependent.mentioned(value.type)):
        raise RoundsDiffer(session.entered)


def growing_inside(session: Session, out: Output, entity: Entity, span: Span | None) -> Entity:
    """A value whose lists can grow, also those in tuples."""
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    if is_literal(entity):
        return as_growing(session, out, entity, span)
    if isinstance(entity, Tuple):
        return Tuple(tuple(growing_inside(session, out, i, span) for i in entity.items), entity.form)
    return entity


def refuse_lengths(session: Session, left: Type, right: Type) -> None:
    """Begin anew with lists that grow inside of others, if two types differ by the lengths of lists."""
    if not session.decisions.nested and lengths_differ(left, right):
        raise ListGrows(None)


def lengths_differ(left: Type, right: Type) -> bool:
    """Whether two types differ by the lengths of lists."""
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


def extended(
    session: Session,
    out: Output,
    xs: Typed,
    source: Typed,
    span: Span | None,
    start: Typed | None = None,
    count: Typed | None = None,
    step: int = 1,
) -> Typed:
    """The list with cells of another one at its end: `count` of them from `start`, each `step` further (all: int64)."""
    refuse_lengths(session, source.type, xs.type)
    session.unify_at(source.type, xs.type, span, "the list")
    whole = start is None and count is None
    if count is None:
        count = list_positions.length64(session, out, source, span)
    stack, index = session.variable("list", xs.type, span), session.variable("i", scalar(INT64), span)
    label, body = LoopLabel("list"), Output()
    position = Typed(index, scalar(INT64))
    if step != 1:
        position = list_positions.compute(session, body, "multiply", position, list_positions.number(step), span)
    if start is not None:
        position = list_positions.compute(session, body, "add", position, start, span)
    cell = session.bind(body, StackGet(source.atom, position.atom, span), RefType(element_type(xs)), "cell", span)
    longer = session.bind(body, StackPush(stack, cell.atom, span), xs.type, "list", span)
    body.terminator = Next(label, (longer.atom,), span)
    result = session.variable("list", xs.type, span)
    trip, initial = Counter(index, count.atom), (xs.atom,)
    out.items.append(Later((result,), lambda: Loop(label, (stack,), initial, body.block(), trip, span)))
    if not whole or source.length is None or source.length.absolute is None or xs.length is None:
        return Typed(result, xs.type)
    return Typed(result, xs.type, length=xs.length.plus(source.length.absolute).holding(source.length.elements))


def concatenated(session: Session, out: Output, parts: Sequence[Entity], span: Span | None) -> Typed:
    """`[*xs, *ys]`, `xs + ys`: lists and tuples, of which one at least is growing."""
    result: Typed | None = None
    for part in parts:
        if isinstance(part, Typed):
            part = expand(session, out, part, span)
        if result is None:
            result = as_growing(session, out, part, span)
        elif isinstance(part, Tuple):
            for item in part.items:
                result = push(session, out, result, item, span)
        else:
            result = extended(session, out, result, as_growing(session, out, part, span), span)
    assert result is not None
    return result


def repeated(session: Session, out: Output, items: Entity, count: Typed, span: Span | None) -> Typed:
    """`xs * n`"""
    session.unify_at(
        count.type, TensorType(session.solver.fresh(Kind.BaseType), ()), span, "how often the list is repeated"
    )
    once = as_growing(session, out, items, span)
    start = empty(session, out, element_type(once), span)
    stack, index = session.variable("list", once.type, span), session.variable("i", scalar(INT64), span)
    label, body = LoopLabel("list"), Output()
    longer = extended(session, body, Typed(stack, once.type), once, span)
    body.terminator = Next(label, (longer.atom,), span)
    result = session.variable("list", once.type, span)
    rounds = operators.apply(session, out, lookup("cast"), [count], {"dtype": INT64}, span, [])
    trip = Counter(index, list_positions.compute(session, out, "maximum", rounds, list_positions.number(0), span).atom)
    out.items.append(Later((result,), lambda: Loop(label, (stack,), (start.atom,), body.block(), trip, span)))
    return Typed(result, once.type)
