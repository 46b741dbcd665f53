"""What Python's syntax calls (`relay/ir/intrinsic.py` lists it): stars, comprehensions, growing lists, `is None`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.facts import facts
from relay.ir.types import Form, Kind
from relay.typecheck.elaboration.abstract_values import (
    Context,
    Entity,
    Method,
    Number,
    Object,
    Output,
    Range,
    Tuple,
    Typed,
    Zip,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, refuse_many
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items, list_methods, list_reductions
from relay.typecheck.elaboration.expressions import comparisons
from relay.typecheck.elaboration.instances import expand
from relay.typecheck.elaboration.library import formatting
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.tensors import index, tensor_type

CHANGES = ("append", "insert", "clear", "reverse", "update", "sort", "remove")
"""The methods that change a list, if it is one."""

Keywords = Sequence[tuple[str, Entity]]
Rule = Callable[[Session, Output, Sequence[Entity], "Span | None"], Entity]


def elements(session: Session, out: Output, entity: Entity, span: Span | None) -> list[Entity] | None:
    """The elements of what can be iterated over, one by one; None where their number is not known."""
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    match entity:
        case Tuple():
            return list(records.iterated(entity, span))
        case Range(Number(int(start)), Number(int(stop)), step):
            numbers = range(start, stop, step)
            refuse_many(max(0, -((start - stop) // step)), span)
            return [Number(i, span) for i in numbers]
        case Typed() if dynamic_lists.is_growing(entity):
            if dynamic_lists.count(entity) is None:
                return None
            return list(list_reductions.stacked(session, out, entity, span).items)
        case Typed():
            known = tensor_type(entity)
            count = facts().number(known.shape[0]) if known is not None and known.shape else None
            if count is None:
                return None
            refuse_many(count, span)
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
        from relay.typecheck.elaboration.control_flow.loop_copies import count_of

        counts = [count_of(a) for a in arguments]
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
        return formatting.print_(session, out, arguments, keywords, span)
    if name in CHANGES and data.data_type(arguments[0]) is not None:
        data.call_method(session, out, Method(arguments[0], name), arguments[1:], keywords, span)
        return arguments[0]  # a method of the user's, which may write to references
    if name in ("sort", "remove"):
        from relay.typecheck.elaboration.library import ordering

        if name == "remove":
            return ordering.remove(session, out, arguments, span)
        return ordering.sort(session, context, out, arguments[0], keywords, span)
    if name == "list":
        return _list(arguments, keywords)
    return _RULES[name](session, out, arguments, span)


def _known(session: Session, out: Output, entity: Entity, what: str, span: Span | None) -> list[Entity]:
    found = elements(session, out, entity, span)
    if found is None and session.is_open(entity):
        raise SchemeOnly(span, f"the length that {what} needs")
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
    if isinstance(whole, Typed):
        whole = expand(session, out, whole, span)
    if isinstance(whole, Typed) and dynamic_lists.is_growing(whole) and dynamic_lists.count(whole) is None:
        return Tuple(list_items.unpacked(session, out, whole, first, last, True, span))
    items = _known(session, out, whole, "unpacking with `*`", span)
    if len(items) < first + last:
        raise TypeCheckError(f"expected at least {first + last} values to unpack, found {len(items)}", span)
    end = len(items) - last
    return Tuple((*items[:first], Tuple(tuple(items[first:end]), Form(list)), *items[end:]))


def _spread(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    from relay.typecheck.elaboration.control_flow import loop_copies
    from relay.typecheck.elaboration.library import ordering

    grows = any(map(dynamic_lists.is_growing, arguments))
    arguments = [
        a
        if isinstance(a, Tuple) or not (grows or loop_copies.count_of(a) is None)
        else ordering.values(session, out, a, span)
        for a in arguments
    ]
    if any(map(dynamic_lists.is_growing, arguments)):
        return dynamic_lists.concatenated(session, out, arguments, span)
    items = [item for a in arguments for item in _known(session, out, a, "`*`", span)]
    first = arguments[0] if arguments else None
    grown = isinstance(first, Tuple) and first.form is not None and first.form.cls is list and len(arguments) == 2
    return Tuple(tuple(items), Form(list) if grown else None)


def _list(items: Sequence[Entity], keywords: Keywords) -> Tuple:
    parts = dict(keywords).get("parts")
    return Tuple(tuple(items), Form(list), int(parts.value) if isinstance(parts, Number) else None)


def _each(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    return Tuple(tuple(_known(session, out, arguments[0], "a dict comprehension", span)))


def _growing(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    """The list that a `while` or a cell changes."""
    (entity,) = arguments
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    return dynamic_lists.given_as_list(session, out, entity, span)


def _keep(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    from relay.typecheck.elaboration.values.objects import object_entity

    (condition,) = arguments
    known = bool(condition.value) if isinstance(condition, Number) else is_constant_bool(condition)
    return condition if known is None else object_entity(known, span)


def _append(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    items, value = arguments
    if isinstance(items, Typed):
        items = expand(session, out, items, span)
    if isinstance(items, Typed) and dynamic_lists.is_growing(items):
        return dynamic_lists.push(session, out, items, value, span)
    if session.is_open(items):
        raise SchemeOnly(span, "whether this is a list")
    if not isinstance(items, Tuple) or (items.form is not None and items.form.cls is not list):
        raise TypeCheckError("only a list can be appended to", span, help="start with `xs = []`")
    return Tuple((*items.items, value), items.form)


def _extend(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    record, key, value = arguments
    assert isinstance(record, Tuple)
    return records.with_item(record, records.key_of(key, span), value)


def _is_none(session: Session, out: Output, arguments: Sequence[Entity], span: Span | None) -> Entity:
    from relay.typecheck.elaboration.values.objects import object_entity

    (entity,) = arguments
    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    if session.is_open(entity):
        return conditional_types.condition(session, span)
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
    from relay.typecheck.elaboration.expressions import calls

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


_RULES: dict[str, Rule] = {
    "unpack": _unpack,
    "spread": _spread,
    "each": _each,
    "growing": _growing,
    "unset": lambda session, out, _, span: dynamic_lists.empty(session, out, session.solver.fresh(Kind.Type), span),
    "pop": list_methods.pop,
    "insert": list_methods.insert,
    "clear": list_methods.clear,
    "update": lambda session, out, arguments, span: records.make_dict(session, out, arguments, (), span),
    "reverse": list_methods.reverse,
    "keep": _keep,
    "append": _append,
    "extend": _extend,
    "is_none": _is_none,
    "contains": comparisons.contains,
    "format": formatting.make_text,
    "assert": formatting.assert_,
}
