"""Lists whose length only the run knows.

Such a list is a stack of cells: `Stack[Ref[T]]`, which is written `list[T]` to users. A cell is written once, when its
value is appended, so lists that share cells are values like all others; and since the derivative of a cell is a cell,
an element may be read any number of times, in any order, at the same cost backwards.

    append     push                      xs[i]                    get, after a check
    pop, xs[i] = v, slices, ..           a new stack of the same cells: linear in the length

A list literal has a known length, and is a tuple of its items until something makes that impossible: a loop that
appends to it, or two paths on which it has different lengths. What is known of the length of a stack travels beside its
type (`Length`), so that `relay.stack` works wherever the number of rounds is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Constant,
    Counter,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    RefNew,
    RefRead,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
)
from relay.ir.types import (
    INT32,
    INT64,
    Form,
    Kind,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    prune,
    scalar,
    show,
)
from relay.operator import lookup
from relay.typecheck.elaboration import operators
from relay.typecheck.elaboration.entities import Entity, Later, Length, Number, Object, Output, Tuple, Typed
from relay.typecheck.elaboration.functions import expand
from relay.typecheck.elaboration.session import ListGrows, Session
from relay.typecheck.unification import is_known, plain, resolve


def is_growing(entity: Entity) -> bool:
    """Whether a value is a list whose length only the run knows."""
    return isinstance(entity, Typed) and isinstance(prune(entity.type), StackType)


def is_list(entity: Entity) -> bool:
    """Whether a value is a list of either kind."""
    return is_growing(entity) or is_literal(entity)


def is_literal(entity: Entity) -> bool:
    """Whether a value is a list whose items are known one by one."""
    return isinstance(entity, Tuple) and entity.form is not None and entity.form.cls is list


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
    return Typed(var, StackType(cell), length=Length(None, 0))


def as_growing(session: Session, out: Output, entity: Entity, span: Span | None) -> Typed:
    """A list, or any tuple, as a list whose length only the run knows. Its items must have one type."""
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    if isinstance(entity, Typed) and is_growing(entity):
        return entity
    if not isinstance(entity, Tuple):
        raise TypeCheckError("only a list can grow", span, help="start with `xs = []`")
    xs = empty(session, out, session.solver.fresh(Kind.Type), span)
    for item in entity.items:
        xs = push(session, out, xs, item, span)
    return xs


def push(session: Session, out: Output, xs: Typed, value: Entity, span: Span | None) -> Typed:
    """The list with one more element."""
    element = element_type(xs)
    starts_empty = isinstance(value, Tuple) and not value.items  # `[[], []]` is there to be filled
    if is_literal(value) and (starts_empty or isinstance(prune(element), StackType)):
        value = as_growing(session, out, value, span)
    elif session.decisions.nested:
        value = _growing_inside(session, out, value, span)
    base = prune(element)
    if isinstance(value, Number) and isinstance(base, TensorType) and base.shape == ():
        typed = session.constant(out, value, base.base)
    else:
        typed = session.materialise(out, value, span)
    refuse_lengths(session, typed.type, element)
    session.unify_at(
        typed.type,
        element,
        span,
        "an element of the list",
        help="the elements of a list that a loop fills have one type",
    )
    cell = session.bind(out, RefNew(typed.atom, span), RefType(element), "cell", span)
    longer = session.bind(out, StackPush(xs.atom, cell.atom, span), xs.type, "list", span)
    return Typed(longer.atom, longer.type, length=None if xs.length is None else xs.length.plus(1))


def _growing_inside(session: Session, out: Output, entity: Entity, span: Span | None) -> Entity:
    """A value whose lists can grow."""
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    if is_literal(entity):
        return as_growing(session, out, entity, span)
    if isinstance(entity, Tuple):
        return Tuple(tuple(_growing_inside(session, out, i, span) for i in entity.items), entity.form)
    return entity


def refuse_lengths(session: Session, left: Type, right: Type) -> None:
    """Begin anew with lists that grow inside of others, if two types differ by the lengths of lists."""
    if not session.decisions.nested and _lengths_differ(left, right):
        raise ListGrows(None)


def _lengths_differ(left: Type, right: Type) -> bool:
    match prune(left), prune(right):
        case TupleType(items, form), TupleType(others, other):
            if len(items) != len(others):
                return form is not None and form == other and form.cls is list
            return any(_lengths_differ(a, b) for a, b in zip(items, others, strict=True))
        case (TupleType(_, Form(cls)), StackType()) | (StackType(), TupleType(_, Form(cls))):
            return cls is list
        case (StackType(a), StackType(b)) | (RefType(a), RefType(b)):
            return _lengths_differ(a, b)
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
        count = length64(session, out, source, span)
    stack, index = session.variable("list", xs.type, span), session.variable("i", scalar(INT64), span)
    label, body = LoopLabel("list"), Output()
    position = Typed(index, scalar(INT64))
    if step != 1:
        position = _compute(session, body, "multiply", position, _number(step), span)
    if start is not None:
        position = _compute(session, body, "add", position, start, span)
    cell = session.bind(body, StackGet(source.atom, position.atom, span), RefType(element_type(xs)), "cell", span)
    longer = session.bind(body, StackPush(stack, cell.atom, span), xs.type, "list", span)
    body.terminator = Next(label, (longer.atom,), span)
    result = session.variable("list", xs.type, span)
    trip, initial = Counter(index, count.atom), (xs.atom,)
    out.items.append(Later((result,), lambda: Loop(label, (stack,), initial, body.block(), trip, span)))
    more = source.length.absolute if whole and source.length is not None else None
    return Typed(result, xs.type, length=xs.length.plus(more) if xs.length is not None and more is not None else None)


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
    trip = Counter(index, _compute(session, out, "maximum", rounds, _number(0), span).atom)
    out.items.append(Later((result,), lambda: Loop(label, (stack,), (start.atom,), body.block(), trip, span)))
    return Typed(result, once.type)


# ---- reading


def length64(session: Session, out: Output, xs: Typed, span: Span | None) -> Typed:
    """The number of elements, int64."""
    if xs.length is not None and xs.length.absolute is not None:
        return _number(xs.length.absolute)
    return session.bind(out, StackLength(xs.atom, span), scalar(INT64), "length", span)


def length(session: Session, out: Output, xs: Typed, span: Span | None) -> Entity:
    """`len(xs)`: int32, as all sizes that are computed."""
    if xs.length is not None and xs.length.absolute is not None:
        return Number(xs.length.absolute, span)
    count = length64(session, out, xs, span)
    return session.bind(out, OpCall("cast", (count.atom,), {"dtype": INT32}, span), scalar(INT32), "length", span)


def is_not_empty(session: Session, out: Output, xs: Typed, span: Span | None) -> Entity:
    """What a list means as a condition."""
    return operators.apply_named(
        session, out, "greater", [length(session, out, xs, span), Number(0, span)], {}, span, []
    )


def read(session: Session, out: Output, xs: Typed, position: Typed, span: Span | None) -> Entity:
    """The element at a position (int64) that is known to be right."""
    element = element_type(xs)
    cell = session.bind(out, StackGet(xs.atom, position.atom, span), RefType(element), "cell", span)
    return expand(session, out, session.bind(out, RefRead(cell.atom, span), element, "element", span), span)


def place(session: Session, out: Output, xs: Typed, index: Entity, span: Span | None, *, end: bool = False) -> Typed:
    """The position (int64) that an index means; a check that there is one. `end`: just after the last is one, too."""
    size = length64(session, out, xs, span)
    match index:
        case Number(int(value)):
            position = _number(value) if value >= 0 else _compute(session, out, "add", size, _number(value), span)
        case Typed(_, type_):
            base = session.solver.fresh(Kind.BaseType)
            session.unify_at(type_, TensorType(base, ()), span, "the index of a list")
            position = _from_end(session, out, index, size, span)
        case _:
            raise TypeCheckError("the index of a list must be an integer or a slice", span)
    upper = _compare(session, out, "less_equal" if end else "less", position, size, span)
    lower = _compare(session, out, "greater_equal", position, _number(0), span)
    inside = operators.apply(session, out, lookup("logical_and"), [lower, upper], {}, span, [])
    out.items.append(Binding((), Assert(inside.atom, "list index out of range", span)))
    return position


def item(session: Session, out: Output, xs: Typed, index: Entity, span: Span | None) -> Entity:
    """`xs[i]`"""
    return read(session, out, xs, place(session, out, xs, index, span), span)


def sliced(
    session: Session,
    out: Output,
    xs: Typed,
    start: Entity | None,
    stop: Entity | None,
    step: Entity | None,
    span: Span | None,
) -> Typed:
    """`xs[start:stop:step]`, clipped as in Python. The step is known."""
    stride = 1
    if isinstance(step, Number) and isinstance(step.value, int) and step.value != 0:
        stride = step.value
    elif step is not None and not (isinstance(step, Object) and step.value is None):
        raise TypeCheckError("the step of a slice of a list must be an integer known before the program runs", span)
    size = length64(session, out, xs, span)
    low, high = (
        (_number(0), size) if stride > 0 else (_number(-1), _compute(session, out, "subtract", size, _number(1), span))
    )
    first = _bound(session, out, start, size, low, high, low if stride > 0 else high, span)
    last = _bound(session, out, stop, size, low, high, high if stride > 0 else low, span)
    distance = _compute(session, out, "subtract", last, first, span)
    shifted = _compute(session, out, "add", distance, _number(stride - (1 if stride > 0 else -1)), span)
    count = _compute(session, out, "floor_divide", shifted, _number(stride), span)
    count = _compute(session, out, "maximum", count, _number(0), span)
    start_ = empty(session, out, element_type(xs), span)
    result = extended(session, out, start_, xs, span, first, count, stride)
    whole = start is None and stop is None and abs(stride) == 1
    return Typed(result.atom, result.type, length=xs.length if whole else None)


def _bound(
    session: Session,
    out: Output,
    bound: Entity | None,
    size: Typed,
    low: Typed,
    high: Typed,
    missing: Typed,
    span: Span | None,
) -> Typed:
    """A slice's bound as a position between `low` and `high`."""
    match bound:
        case None | Object(None):
            return missing
        case Number(int(value)):
            position = _number(value) if value >= 0 else _compute(session, out, "add", size, _number(value), span)
        case Typed(_, type_):
            session.unify_at(type_, TensorType(session.solver.fresh(Kind.BaseType), ()), span, "the bound of a slice")
            position = _from_end(session, out, bound, size, span)
        case _:
            raise TypeCheckError("the bounds of a slice must be integers", span)
    position = _compute(session, out, "maximum", position, low, span)
    return _compute(session, out, "minimum", position, high, span)


# ---- changed lists


def with_item(session: Session, out: Output, xs: Typed, index: Entity, value: Entity, span: Span | None) -> Typed:
    """The list after `xs[i] = value`."""
    position = place(session, out, xs, index, span)
    changed = push(session, out, _first(session, out, xs, position, span), value, span)
    result = _rest(session, out, changed, xs, _compute(session, out, "add", position, _number(1), span), span)
    return Typed(result.atom, result.type, length=xs.length)


def inserted(session: Session, out: Output, xs: Typed, index: Entity, value: Entity, span: Span | None) -> Typed:
    """The list after `xs.insert(i, value)`, where i is clipped as in Python."""
    size = length64(session, out, xs, span)
    position = _bound(session, out, index, size, _number(0), size, size, span)
    changed = push(session, out, _first(session, out, xs, position, span), value, span)
    result = _rest(session, out, changed, xs, position, span)
    return Typed(result.atom, result.type, length=None if xs.length is None else xs.length.plus(1))


def popped(session: Session, out: Output, xs: Typed, index: Entity, span: Span | None) -> tuple[Entity, Typed]:
    """The element that `xs.pop(i)` gives, and the list after it."""
    position = place(session, out, xs, index, span)
    found = read(session, out, xs, position, span)
    changed = _first(session, out, xs, position, span)
    if not (isinstance(index, Number) and index.value == -1):
        changed = _rest(session, out, changed, xs, _compute(session, out, "add", position, _number(1), span), span)
    return found, Typed(changed.atom, changed.type, length=None if xs.length is None else xs.length.plus(-1))


def _first(session: Session, out: Output, xs: Typed, count: Typed, span: Span | None) -> Typed:
    """A list of the first elements."""
    return extended(session, out, empty(session, out, element_type(xs), span), xs, span, None, count)


def _rest(session: Session, out: Output, xs: Typed, source: Typed, start: Typed, span: Span | None) -> Typed:
    """The list with the elements of another one from a position on."""
    count = _compute(session, out, "subtract", length64(session, out, source, span), start, span)
    return extended(session, out, xs, source, span, start, count)


# ---- reductions


def fold(
    session: Session,
    out: Output,
    xs: Typed,
    initial: Typed,
    step: Callable[[Output, Typed, Entity], Typed],
    span: Span | None,
) -> Typed:
    """`for x in xs: value = step(value, x)`"""
    value, index = session.variable("value", initial.type, span), session.variable("i", scalar(INT64), span)
    label, body = LoopLabel("fold"), Output()
    element = read(session, body, xs, Typed(index, scalar(INT64)), span)
    new = step(body, Typed(value, initial.type), element)
    session.unify_at(new.type, initial.type, span, "the sum so far")
    body.terminator = Next(label, (new.atom,), span)
    result = session.variable("value", initial.type, span)
    trip = Counter(index, length64(session, out, xs, span).atom)
    out.items.append(Later((result,), lambda: Loop(label, (value,), (initial.atom,), body.block(), trip, span)))
    return Typed(result, initial.type)


def total(session: Session, out: Output, xs: Typed, span: Span | None) -> Typed:
    """`sum(xs)`: of nothing it is 0."""
    element = resolve(element_type(xs))
    if not isinstance(element, TensorType):
        raise TypeCheckError(f"sum needs a list of tensors, found {show(resolve(xs.type))}", span)
    attributes: dict[str, object] = {"shape": element.shape, "dtype": element.base}
    zero = operators.apply(session, out, lookup("zeros"), [], attributes, span, [])
    return fold(
        session,
        out,
        xs,
        zero,
        lambda body, value, x: operators.apply(session, body, lookup("add"), [value, x], {}, span, []),
        span,
    )


def extreme(session: Session, out: Output, xs: Typed, operator: str, span: Span | None) -> Typed:
    """`max(xs)`, `min(xs)` by the operator of two."""
    some = is_not_empty(session, out, xs, span)
    out.items.append(Binding((), Assert(session.materialise(out, some, span).atom, f"{operator} of nothing", span)))
    first = session.materialise(out, read(session, out, xs, _number(0), span), span)
    return fold(
        session,
        out,
        xs,
        first,
        lambda body, value, x: operators.apply(session, body, lookup(operator), [value, x], {}, span, []),
        span,
    )


def quantified(
    session: Session,
    out: Output,
    xs: Typed,
    condition: Callable[[Output, Entity], Entity],
    decides: bool,
    span: Span | None,
) -> Typed:
    """`any(c(x) for x in xs)` (decides: True) or `all` (decides: False); the conditions have no effects."""
    start = Constant(np.asarray(not decides), span)
    name = "logical_or" if decides else "logical_and"

    def step(body: Output, value: Typed, x: Entity) -> Typed:
        return operators.apply(session, body, lookup(name), [value, condition(body, x)], {}, span, [])

    return fold(session, out, xs, Typed(start, start.type), step, span)


MANY = 64
"""From this length on, a tensor is filled from a list in a loop."""


def stacked(session: Session, out: Output, xs: Typed, span: Span | None) -> Tuple:
    """The elements one by one, as the operators that join tensors want them. Their number must be known."""
    count = xs.length.absolute if xs.length is not None else None
    if count is None:
        raise TypeCheckError(
            "how many elements this list has is only known at run time, and a tensor's shape is known before",
            span,
            help="make the tensor first, `out = relay.zeros((largest, ..))`, write `out[i] = v` and count;"
            " or use the list: sum(xs), xs[i], for x in xs",
        )
    return Tuple(tuple(read(session, out, xs, _number(i), span) for i in range(count)))


def as_tensor(session: Session, out: Output, xs: Typed, span: Span | None) -> Typed | None:
    """`relay.stack(xs)` of a long list, by a loop. None if it is not long, or its elements are no tensors."""
    element = resolve(element_type(xs))
    count = xs.length.absolute if xs.length is not None else None
    if count is None or count < MANY or not isinstance(element, TensorType) or not is_known(element):
        return None
    type_ = TensorType(element.base, (count, *element.shape))
    attributes: dict[str, object] = {"shape": type_.shape, "dtype": type_.base}
    zeros = operators.apply(session, out, lookup("zeros"), [], attributes, span, [])
    whole, index = session.variable("stack", type_, span), session.variable("i", scalar(INT64), span)
    label, body = LoopLabel("stack"), Output()
    row = session.materialise(body, read(session, body, xs, Typed(index, scalar(INT64)), span), span)
    call = OpCall("index_update", (whole, index, row.atom), {}, span)
    body.terminator = Next(label, (session.bind(body, call, type_, "stack", span).atom,), span)
    result = session.variable("stack", type_, span)
    trip = Counter(index, _number(count).atom)
    out.items.append(Later((result,), lambda: Loop(label, (whole,), (zeros.atom,), body.block(), trip, span)))
    return Typed(result, type_)


# ---- numbers


def _from_end(session: Session, out: Output, index: Typed, size: Typed, span: Span | None) -> Typed:
    """An index of the run, to which the length is added if it is negative."""
    position = operators.apply(session, out, lookup("cast"), [index], {"dtype": INT64}, span, [])
    negative = _compare(session, out, "less", position, _number(0), span)
    flag = operators.apply(session, out, lookup("cast"), [negative], {"dtype": INT64}, span, [])
    return _compute(session, out, "add", position, _compute(session, out, "multiply", flag, size, span), span)


def _number(value: int) -> Typed:
    constant = Constant(np.asarray(value, np.int64))
    return Typed(constant, constant.type)


def _compute(session: Session, out: Output, name: str, left: Typed, right: Typed, span: Span | None) -> Typed:
    """An int64 operation that cannot fail, without the run-time requirements of its operator."""
    atoms: tuple[Atom, ...] = (left.atom, right.atom)
    if isinstance(left.atom, Constant) and isinstance(right.atom, Constant):
        value = lookup(name).reference(left.atom.value, right.atom.value)
        return _number(int(value))
    return session.bind(out, OpCall(lookup(name).name, atoms, {}, span), scalar(INT64), "position", span)


def _compare(session: Session, out: Output, name: str, left: Typed, right: Typed, span: Span | None) -> Typed:
    return operators.apply(session, out, lookup(name), [left, right], {}, span, [])
