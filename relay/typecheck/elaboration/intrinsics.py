"""What Python's syntax calls (`relay/ir/intrinsic.py` lists it): stars, comprehensions, growing lists, `is None`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.facts import facts
from relay.ir.types import Form, TensorType, TupleType, prune
from relay.typecheck.elaboration import comparisons, records, texts
from relay.typecheck.elaboration.entities import (
    Context,
    Entity,
    Number,
    Object,
    Output,
    Range,
    Tuple,
    Typed,
    Zip,
    is_constant_bool,
)
from relay.typecheck.elaboration.functions import expand
from relay.typecheck.elaboration.session import Session
from relay.typecheck.elaboration.tensors import index, tensor_type

UNROLLED = 256
"""The largest number of rounds of a `for` over a range or tensor that is unrolled because it appends to a list."""

Keywords = Sequence[tuple[str, Entity]]


def elements(session: Session, out: Output, entity: Entity, span: Span | None) -> list[Entity] | None:
    """The elements of what can be iterated over, one by one; None where their number is not known."""
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    match entity:
        case Tuple():
            return list(records.iterated(entity, span))
        case Range(Number(int(start)), Number(int(stop)), step):
            return [Number(i, span) for i in range(start, stop, step)]
        case Typed():
            known = tensor_type(entity)
            count = _rows(known)
            if count is None:
                return None
            return [index(session, out, entity, [Number(i, span)], span) for i in range(count)]
        case Zip(parts):
            columns = [_column(session, out, part, span) for part in parts]
            finite = [c for c in columns if not isinstance(c, Range)]
            if not finite or any(c is None for c in finite):
                return None
            count = min(len(c) for c in finite if c is not None)
            return [Tuple(tuple(_row(c, i, span) for c in columns)) for i in range(count)]
        case _:
            return None


def zipped(arguments: Sequence[Entity], keywords: Keywords, span: Span | None) -> Entity:
    """`zip(x, ..)`; with `strict=True` the lengths must be known and equal."""
    if not arguments:
        raise TypeCheckError("zip needs something to go through", span)
    for name, value in keywords:
        strict = is_constant_bool(value)
        if name != "strict" or strict is None:
            raise TypeCheckError(f"zip takes no argument {name!r} but strict, which is True or False", span)
        counts = [_count(a) for a in arguments]
        if strict and None in counts:
            raise TypeCheckError("zip(strict=True) needs lengths that are known", span, help="leave strict out")
        if strict and len(set(counts)) > 1:
            raise TypeCheckError(f"zip(strict=True) of lengths {', '.join(map(str, counts))}", span)
    return Zip(tuple(arguments))


def _column(session: Session, out: Output, part: Entity, span: Span | None) -> list[Entity] | Range | None:
    if isinstance(part, Range) and isinstance(part.stop, Object) and isinstance(part.start, Number):
        return part  # the numbers of an enumerate, without end
    return elements(session, out, part, span)


def _row(column: list[Entity] | Range | None, position: int, span: Span | None) -> Entity:
    if isinstance(column, Range):
        assert isinstance(column.start, Number)
        return Number(column.start.value + position * column.step, span)
    assert column is not None
    return column[position]


def apply(
    session: Session,
    context: Context,
    out: Output,
    name: str,
    arguments: Sequence[Entity],
    keywords: Keywords,
    span: Span | None,
) -> Entity:
    """Call the intrinsic of this name."""
    if name == "call":
        return _call(session, context, out, arguments, keywords, span)
    if name == "print":
        return texts.print_(session, out, arguments, keywords, span)
    return _RULES[name](session, out, arguments, span)


def _known(session: Session, out: Output, entity: Entity, what: str, span: Span | None) -> list[Entity]:
    found = elements(session, out, entity, span)
    if found is None:
        raise TypeCheckError(
            f"{what} needs a length that is known before the program runs",
            span,
            help="write a loop that fills a tensor by `x[i] = v`, or adds up a sum",
        )
    return found


def _unpack(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    whole, before, after = arguments
    assert isinstance(before, Number) and isinstance(after, Number)
    first, last = int(before.value), int(after.value)
    items = _known(session, out, whole, "unpacking with `*`", span)
    if len(items) < first + last:
        raise TypeCheckError(f"expected at least {first + last} values to unpack, found {len(items)}", span)
    end = len(items) - last
    return Tuple((*items[:first], Tuple(tuple(items[first:end]), Form(list)), *items[end:]))


def _spread(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    items = [item for a in arguments for item in _known(session, out, a, "`*`", span)]
    first = arguments[0] if arguments else None
    grown = isinstance(first, Tuple) and first.form is not None and first.form.cls is list and len(arguments) == 2
    return Tuple(tuple(items), Form(list) if grown else None)


def _each(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    return Tuple(tuple(_known(session, out, arguments[0], "a comprehension", span)))


def _unrolled(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    (entity,) = arguments
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    count = _count(entity)
    if count is None or count > UNROLLED:
        return entity
    found = elements(session, out, entity, span)
    return entity if found is None else Tuple(tuple(found))


def _count(entity: Entity) -> int | None:
    """How many rounds a `for` has at most; None if it is not known."""
    match entity:
        case Tuple(items):
            return len(items)
        case Range(Number(int(start)), Number(int(stop)), step):
            return len(range(start, stop, step))
        case Typed(_, type_) if isinstance(prune(type_), TupleType):
            return len(prune(type_).items)  # type: ignore[union-attr]
        case Typed():
            known = tensor_type(entity)
            return _rows(known)
        case Zip(parts):
            return min((c for c in map(_count, parts) if c is not None), default=None)
        case _:
            return None


def _rows(type_: TensorType | None) -> int | None:
    """The number of rows of a tensor; None if it is not known."""
    return facts().number(type_.shape[0]) if type_ is not None and type_.shape else None


def _keep(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    from relay.typecheck.elaboration.objects import object_entity

    (condition,) = arguments
    known = bool(condition.value) if isinstance(condition, Number) else is_constant_bool(condition)
    if known is None:
        raise TypeCheckError(
            "the `if` of a comprehension must be known before the program runs, since it decides the length",
            span,
            help="use relay.where to select values, or a loop",
        )
    return object_entity(known, span)


def _append(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    items, value = arguments
    if isinstance(items, Typed):
        items = expand(session, out, items, span)
    if not isinstance(items, Tuple) or (items.form is not None and items.form.cls is not list):
        raise TypeCheckError("only a list can be appended to", span, help="start with `xs = []`")
    return Tuple((*items.items, value), items.form)


def _extend(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    record, key, value = arguments
    assert isinstance(record, Tuple)
    return records.with_item(record, records.key_of(key, span), value)


def _is_none(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    from relay.typecheck.elaboration.objects import object_entity

    (entity,) = arguments
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    nothing = isinstance(entity, Tuple) and not entity.items and entity.form is None  # that of an empty `return`
    return object_entity(nothing or (isinstance(entity, Object) and entity.value is None), span)


def _call(
    session: Session,
    context: Context,
    out: Output,
    arguments: Sequence[Entity],
    keywords: Keywords,
    span: Span | None,
) -> Entity:
    from relay.typecheck.elaboration import calls

    function, positional, *named = arguments
    given = _known(session, out, positional, "`*` in a call", span)
    words = list(keywords)
    for part in named:
        record = records.as_record(session, out, part, span)
        if record is None or record.form is None or record.form.cls is not dict:
            raise TypeCheckError("`**` in a call needs a dict", span)
        words += zip(record.form.names, record.items, strict=True)
    if len({name for name, _ in words}) < len(words):
        raise TypeCheckError("two values for one keyword argument", span)
    return calls.apply(session, context, out, function, given, words, span, [])


_RULES: dict[str, Callable[[Session, Output, Sequence[Entity], Span | None], Entity]] = {
    "unpack": _unpack,
    "spread": _spread,
    "each": _each,
    "unrolled": _unrolled,
    "keep": _keep,
    "list": lambda session, out, arguments, span: Tuple(tuple(arguments), Form(list)),
    "append": _append,
    "extend": _extend,
    "is_none": _is_none,
    "contains": comparisons.contains,
    "format": texts.make_text,
    "assert": texts.assert_,
}
