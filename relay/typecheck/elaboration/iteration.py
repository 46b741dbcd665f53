"""`for`: over a range or a tensor it is a loop with a counter; over a tuple it is unrolled, so that the elements'
types may differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.dims import ANY, Dim, add
from relay.ir.expr import (
    Atom,
    Constant,
    Counter,
    Dead,
    Exit,
    ForEach,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    Var,
)
from relay.ir.traverse import all_blocks
from relay.ir.types import INT32, INT64, BaseType, TensorType, Unknown, axis_names, prune, scalar, show
from relay.operator import Operator, lookup
from relay.typecheck.dims import at_least
from relay.typecheck.elaboration import (
    growing,
    growing_items,
    lists,
    made_sizes,
    operators,
    positions,
    range_numbers,
    sizes,
)
from relay.typecheck.elaboration.blocks import atom_entity, elaborate_block, handed_entities
from relay.typecheck.elaboration.entities import (
    FUNCTIONS,
    Context,
    Entity,
    Handler,
    Later,
    Number,
    Object,
    Output,
    Progression,
    Range,
    Size,
    Tuple,
    Typed,
    Zip,
    dim_of,
    size,
)
from relay.typecheck.elaboration.functions import expand
from relay.typecheck.elaboration.joins import Join, assign, assign_joined
from relay.typecheck.elaboration.loops import Carried, elaborate_round
from relay.typecheck.elaboration.mistakes import SchemeOnly
from relay.typecheck.elaboration.records import iterated
from relay.typecheck.elaboration.session import Session
from relay.typecheck.elaboration.tensors import tensor_type
from relay.typecheck.relations import steps
from relay.typecheck.unification import is_known, resolve

FEW_ROUNDS = 16
"""Of how many rounds a loop is unrolled that makes functions of functions."""


def elaborate_for(session: Session, context: Context, targets: tuple[Var, ...], node: ForEach, out: Output) -> None:
    """A `for` loop."""
    session.rounds.enter(node)
    iterable = atom_entity(context, node.iterable)
    if isinstance(iterable, Typed):
        iterable = expand(session, out, iterable, node.span)
    if isinstance(iterable, Typed) and lists.list_constructors(iterable) is not None:
        lists.elaborate_for_list(session, context, targets, node, iterable, out)
        return
    items = _static_items(session, out, iterable, node.span)
    if items is None and any(map(_is_function, handed_entities(context, node.initial))):
        items = _few_numbers(iterable, node.span)
    if items is not None:
        _unroll(session, context, targets, node, items, out)
    else:
        _counted(session, context, targets, node, iterable, out)


def _is_function(entity: Entity) -> bool:
    """Whether an entity is a function of the program, or has one in it."""
    if isinstance(entity, Tuple):
        return any(map(_is_function, entity.items))
    return isinstance(entity, FUNCTIONS) or (isinstance(entity, Object) and isinstance(entity.value, Operator))


def _few_numbers(iterable: Entity, span: Span | None) -> list[Entity] | None:
    """The numbers of a range that is known and short. Rounds that make new functions of the last one's, as derivatives
    of higher orders, are unrolled: the functions stay known, and may be as many as there are rounds."""
    if (
        not isinstance(iterable, Range)
        or not isinstance(iterable.start, Number)
        or not isinstance(iterable.stop, Number)
    ):
        return None
    start, stop = dim_of(iterable.start), dim_of(iterable.stop)
    if not isinstance(start, int) or not isinstance(stop, int):
        return None
    numbers = range(start, stop, iterable.step)
    return [Number(n, span) for n in numbers] if len(numbers) <= FEW_ROUNDS else None


def _static_items(session: Session, out: Output, iterable: Entity, span: Span | None) -> list[Entity] | None:
    """The elements, if the checker knows them one by one: of a tuple, or a zip with one in it."""
    match iterable:
        case Tuple():
            return list(iterated(iterable, span))
        case Zip(parts):
            parts = tuple(expand(session, out, p, span) if isinstance(p, Typed) else p for p in parts)
            columns = [_static_items(session, out, p, span) for p in parts]
            lengths = [len(c) for c in columns if c is not None]
            if not lengths:
                return None
            count = min(lengths)
            rows: list[Entity] = []
            for position in range(count):
                row = [
                    column[position] if column is not None else _at(session, out, part, position, span)
                    for part, column in zip(parts, columns, strict=True)
                ]
                if any(r is None for r in row):
                    return rows
                rows.append(Tuple(tuple(r for r in row if r is not None)))
            return rows
        case _:
            return None


def _at(session: Session, out: Output, part: Entity, position: int, span: Span | None) -> Entity | None:
    """The element of a range or tensor at a known position, None past its end."""
    from relay.typecheck.elaboration.tensors import index

    if isinstance(part, Range) and isinstance(part.start, Number):
        start = dim_of(part.start)
        assert start is not None
        value = add(start, position * part.step)
        stop = dim_of(part.stop) if isinstance(part.stop, Number) else None
        if stop is not None and (at_least(value, stop) if part.step > 0 else at_least(stop, value)):
            return None
        return size(value, span)
    if isinstance(part, Typed) and growing.is_growing(part) and part.length is not None and part.length.absolute:
        return index(session, out, part, [Number(position, span)], span) if position < part.length.absolute else None
    if isinstance(part, Typed) and (type_ := tensor_type(part)) is not None and type_.rank > 0:
        inside = at_least(type_.shape[0], position + 1)
        return index(session, out, part, [Number(position, span)], span) if inside else None
    if session.is_open(part):
        raise SchemeOnly(span, "what the zip goes through")
    raise TypeCheckError("a zip with a tuple needs lengths that are known before the program runs", span)


def _unroll(
    session: Session, context: Context, targets: tuple[Var, ...], node: ForEach, items: Sequence[Entity], out: Output
) -> None:
    """One copy of the body for each element. `continue` and `break` leave loops that run once."""
    current = handed_entities(context, node.initial)
    leaves = [
        t for block in all_blocks(node.body) if isinstance(t := block.terminator, Next | Exit) and t.label is node.label
    ]
    simple = len(leaves) == 1 and node.body.terminator is leaves[0] and isinstance(leaves[0], Next)
    if simple:
        for item in items:
            if out.terminator is not None:
                return
            current = _simple_round(session, context, node, item, current, out)
        assign(context, targets, current)
        return
    outer = LoopLabel(node.label.name)
    outer_join = Join(session, [t.name for t in targets])
    everything = Output()
    ended, failures = False, session.failures
    with session.scope(everything) as depth:
        for item in items:
            inside = context.inside()
            inside.environment[node.element] = item
            current, ended = elaborate_round(session, inside, node, current, everything, outer_join, depth)
            if ended:
                break
        if not ended:
            session.escaping = session.made_since(depth)
            outer_join.add(everything, current, node.span)
    bound, entities = outer_join.close(lambda atoms, span: Exit(outer, atoms, span))
    out.items.append(Later(bound, lambda: Loop(outer, (), (), everything.block(), None, node.span)))
    entities = tuple(made_sizes.all_opened(session, out, e, node.span) for e in entities)
    if not assign_joined(session, context, targets, outer_join, entities, failures):
        out.terminator = Dead()


def _simple_round(
    session: Session, context: Context, node: ForEach, item: Entity, current: tuple[Entity, ...], out: Output
) -> tuple[Entity, ...]:
    context = context.inside()
    context.environment[node.element] = item
    assign(context, node.parameters, current)
    result = current

    def on_next(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        nonlocal result
        result = entities

    context.handlers[node.label] = Handler(node.label, on_next, on_next, len(session.scopes))
    elaborate_block(session, context, node.body, out, None)
    return result


def _counted(
    session: Session, context: Context, targets: tuple[Var, ...], node: ForEach, iterable: Entity, out: Output
) -> None:
    parts = list(_parts(iterable))
    base = INT64 if any(_is_int64(p) for p in parts) else INT32
    counts = [c for p in parts if (c := _count(session, out, p, base, node.span)) is not None]
    if not counts:
        raise TypeCheckError("this loop has no end", node.span, help="add a range or a tensor to the zip")
    count = counts[0]
    for other in counts[1:]:
        count = _minimum(session, out, count, other, node.span)
    carried = Carried(session, out, node, handed_entities(context, node.initial))
    label = LoopLabel(node.label.name)
    index = session.variable(f"{node.element.name}_index", scalar(base), node.span)
    body = Output()

    def on_next(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        place.terminator = Next(label, carried.fit(place, entities, span), span)

    leaves_early = False

    def on_exit(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        nonlocal leaves_early
        leaves_early = True
        place.terminator = Exit(label, carried.fit(place, entities, span), span)

    context.handlers[node.label] = Handler(label, on_next, on_exit, len(session.scopes))
    with session.where_it_may_not_run(), session.scope(body):
        element = _element(session, body, iterable, Typed(index, scalar(base)), base, node.span)
        context.environment[node.element] = element
        assign(context, node.parameters, carried.inside(body))
        elaborate_block(session, context, node.body, body, None)
    results = [session.variable(p.name, p.type or scalar(base), p.span) for p in carried.parameters]
    renamed = dict(zip(carried.parameters, results, strict=True))
    rounds = int(count.atom.value) if isinstance(count.atom, Constant) and not leaves_early else None
    counter = Counter(index, count.atom)

    def build() -> Loop:
        return Loop(label, tuple(carried.parameters), tuple(carried.initial), body.block(), counter, node.span)

    out.items.append(Later(tuple(results), build))
    after = [rename(carried.settled(e, rounds), renamed) for e in carried.entities]
    assign(context, targets, [made_sizes.all_opened(session, out, e, node.span) for e in after])


def rename(entity: Entity, renamed: dict[Var, Var]) -> Entity:
    """An entity with other variables."""
    match entity:
        case Typed(Var() as var, type_, _, length):
            return Typed(renamed[var], type_, length=length)
        case Tuple(items, form):
            return Tuple(tuple(rename(i, renamed) for i in items), form)
        case _:
            return entity


def _parts(iterable: Entity) -> Iterator[Entity]:
    """What a loop goes through at once: the members of zips, also nested ones."""
    if isinstance(iterable, Zip):
        for item in iterable.items:
            yield from _parts(item)
    else:
        yield iterable


def _is_int64(part: Entity) -> bool:
    if not isinstance(part, Range | Progression):
        return False
    for bound in (part.start, part.stop, *([part.step] if isinstance(part, Progression) else [])):
        if isinstance(bound, Typed) and (type_ := tensor_type(bound)) is not None and type_.base == INT64:
            return True
        if isinstance(bound, Number) and not isinstance(bound, Size) and not -(2**31) <= bound.value < 2**31:
            return True
    return False


def _count(session: Session, out: Output, part: Entity, base: BaseType, span: Span | None) -> Typed | None:
    """The number of elements; None for a range without end."""
    match part:
        case Range(Number() as start, Number() as stop, step):
            first, last = dim_of(start), dim_of(stop)
            assert first is not None and last is not None
            return _length(session, out, steps(first, last, step), base, span)
        case Range(_, Object(None), _):
            return None
        case Range(start, stop, step):
            low, high = (_bound(session, out, b, base, span) for b in (start, stop))
            difference = high if _is_zero(start) else _call(session, out, "subtract", [high, low], base, span)
            if abs(step) != 1:
                offset = _integer(step - (1 if step > 0 else -1), base)
                shifted = _call(session, out, "add", [difference, offset], base, span)
                difference = _call(session, out, "floor_divide", [shifted, _integer(step, base)], base, span)
            elif step == -1:
                difference = _call(session, out, "negative", [difference], base, span)
            return _call(session, out, "maximum", [difference, _integer(0, base)], base, span)
        case Progression(start, stop, step):  # the quotient, rounded up
            low, high, by = (_bound(session, out, b, base, span) for b in (start, stop, step))
            difference = _call(session, out, "subtract", [low, high], base, span)
            quotient = _call(session, out, "floor_divide", [difference, by], base, span)
            count = _call(session, out, "negative", [quotient], base, span)
            return _call(session, out, "maximum", [count, _integer(0, base)], base, span)
        case Typed() if growing.is_growing(part):
            if part.length is not None and part.length.absolute is not None:
                return _integer(part.length.absolute, base)
            count = positions.length64(session, out, part, span)
            return operators.apply(session, out, lookup("cast"), [count], {"dtype": base}, span, [])
        case Typed():
            type_ = tensor_type(part)
            if isinstance(prune(part.type), Unknown):
                raise SchemeOnly(span, "what the loop goes through")
            if type_ is None and not isinstance(prune(part.type), TensorType):
                raise TypeCheckError(f"{show(resolve(part.type))} cannot be iterated over", span)
            if type_ is None or not is_known(type_.shape) or ANY in type_.shape:
                raise SchemeOnly(span, "the length of what the loop goes through")
            if type_.rank == 0:
                raise TypeCheckError("a scalar cannot be iterated over", span, help="use range(n)")
            return _length(session, out, type_.shape[0], base, span)
        case _:
            raise TypeCheckError(
                "this cannot be iterated over", span, help="use range, a tensor, a tuple, zip or enumerate"
            )


def _is_zero(bound: Entity) -> bool:
    return isinstance(bound, Number) and not isinstance(bound, Size) and bound.value == 0


def _length(session: Session, out: Output, dim: Dim, base: BaseType, span: Span | None) -> Typed:
    return _integer(dim, base) if isinstance(dim, int) else sizes.extent(session, out, dim, base, span)


def _integer(value: int, base: BaseType) -> Typed:
    constant = Constant(np.asarray(value, dtype=base.dtype))
    return Typed(constant, constant.type)


def _bound(session: Session, out: Output, bound: Entity, base: BaseType, span: Span | None) -> Typed:
    if isinstance(bound, Size):
        return sizes.extent(session, out, bound.dim, base, span)
    if isinstance(bound, Number):
        return _integer(int(bound.value), base)
    assert isinstance(bound, Typed)
    if base == INT64 and resolve(bound.type) == scalar(INT32):
        return operators.apply(session, out, lookup("cast"), [bound], {"dtype": INT64}, span, [])
    session.unify_at(bound.type, scalar(base), span, "a bound of range")
    return bound


def _call(
    session: Session, out: Output, name: str, operands: Sequence[Typed], base: BaseType, span: Span | None
) -> Typed:
    """An integer operation that cannot fail, without the run-time requirements of its operator."""
    atoms: tuple[Atom, ...] = tuple(o.atom for o in operands)
    return session.bind(out, OpCall(lookup(name).name, atoms, {}, span), scalar(base), "count", span)


def _minimum(session: Session, out: Output, a: Typed, b: Typed, span: Span | None) -> Typed:
    if isinstance(a.atom, Constant) and isinstance(b.atom, Constant):
        return a if a.atom.value <= b.atom.value else b
    type_ = tensor_type(a)
    assert type_ is not None and isinstance(type_.base, BaseType)
    return _call(session, out, "minimum", [a, b], type_.base, span)


def _element(session: Session, body: Output, part: Entity, index: Typed, base: BaseType, span: Span | None) -> Entity:
    match part:
        case Zip(items):
            return Tuple(tuple(_element(session, body, i, index, base, span) for i in items))
        case Range(start, _, step):
            value = index
            if step != 1:
                value = _call(session, body, "multiply", [value, _integer(step, base)], base, span)
            if not _is_zero(start):
                value = _call(session, body, "add", [value, _bound(session, body, start, base, span)], base, span)
            return range_numbers.of_range(value)
        case Progression(start, _, step):
            by = _bound(session, body, step, base, span)
            value = _call(session, body, "multiply", [index, by], base, span)
            return _call(session, body, "add", [value, _bound(session, body, start, base, span)], base, span)
        case Typed() if growing.is_growing(part):
            position = operators.apply(session, body, lookup("cast"), [index], {"dtype": INT64}, span, [])
            return growing_items.read(session, body, part, position, span)
        case Typed():
            type_ = tensor_type(part)
            assert type_ is not None
            names = axis_names(type_)
            row = TensorType(type_.base, type_.shape[1:], None if names is None else names[1:])
            return session.bind(body, OpCall("index", (part.atom, index.atom), {}, span), row, "row", span)
        case _:
            raise TypeCheckError("this cannot be iterated over", span)
