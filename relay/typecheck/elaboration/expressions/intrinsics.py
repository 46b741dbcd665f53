"""Intrinsics of Python's syntax (see `relay/ir/intrinsic.py`): stars, comprehensions, lists, `is None`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.sizes.facts import facts
from relay.ir.types import Form, Kind
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    Method,
    Number,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    Zip,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import loop_copies
from relay.typecheck.elaboration.control_flow.loop_copies import count_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, refuse_many
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items, list_methods, list_reductions
from relay.typecheck.elaboration.expressions import comparisons
from relay.typecheck.elaboration.library import formatting
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.subscripts import index
from relay.typecheck.elaboration.values.tensors import tensor_type

CHANGES = ("append", "insert", "clear", "reverse", "update", "sort", "remove")
"""The methods that change a list, if it is one."""

Keywords = Sequence[tuple[str, AbstractValue]]
Rule = Callable[[Checker, TypedBlockBuilder, Sequence[AbstractValue], "Span | None"], AbstractValue]


def elements(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> list[AbstractValue] | None:
    """The elements of what can be iterated over, one by one; None where their number is not known."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    match entity:
        case Tuple():
            return list(records.iteration_items(entity, span))
        case Range(Number(int(start)), Number(int(stop)), step):
            numbers = range(start, stop, step)
            refuse_many(max(0, -((start - stop) // step)), span)
            return [Number(i, span) for i in numbers]
        case DynamicValue() if dynamic_lists.is_growing(entity):
            if dynamic_lists.count(entity) is None:
                return None
            return list(list_reductions.element_tuple(checker, out, entity, span).items)
        case DynamicValue():
            known = tensor_type(entity)
            count = facts().number(known.shape[0]) if known is not None and known.shape else None
            if count is None:
                return None
            refuse_many(count, span)
            return [index(checker, out, entity, [Number(i, span)], span) for i in range(count)]
        case Zip(parts):
            columns = [_column(checker, out, part, span) for part in parts]
            finite = [c for c in columns if not isinstance(c, Range)]
            if not finite or any(c is None for c in finite):
                return None
            count = min(len(c) for c in finite if c is not None)
            return [Tuple(tuple(_row(c, i, span) for c in columns)) for i in range(count)]
        case _:
            return None


def make_zip(arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None) -> AbstractValue:
    """`zip(x, ..)`; with `strict=True` the lengths must be known and equal."""
    if not arguments:
        raise TypeCheckError("zip needs at least one iterable", span)
    for name, value in keywords:
        strict = is_constant_bool(value)
        if name != "strict" or strict is None:
            raise TypeCheckError(f"zip takes no argument {name!r} but strict, which is True or False", span)

        counts = [count_of(a) for a in arguments]
        if strict and None in counts:
            raise TypeCheckError("zip(strict=True) needs lengths that are known", span, help="leave strict out")
        if strict and len(set(counts)) > 1:
            raise TypeCheckError(f"zip(strict=True) of lengths {', '.join(map(str, counts))}", span)
    return Zip(tuple(arguments))


def _column(
    checker: Checker, out: TypedBlockBuilder, part: AbstractValue, span: Span | None
) -> list[AbstractValue] | Range | None:
    if isinstance(part, Range) and isinstance(part.stop, PythonObject) and isinstance(part.start, Number):
        return part  # the numbers of an enumerate, without end
    return elements(checker, out, part, span)


def _row(column: list[AbstractValue] | Range | None, position: int, span: Span | None) -> AbstractValue:
    if isinstance(column, Range):
        assert isinstance(column.start, Number)
        return Number(column.start.value + position * column.step, span)
    assert column is not None
    return column[position]


def apply(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    name: str,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """Call the intrinsic of this name."""
    if name == "call":
        return _call(checker, context, out, arguments, keywords, span)
    if name == "print":
        return formatting.print_(checker, out, arguments, keywords, span)
    if name in CHANGES and data.data_type(arguments[0]) is not None:
        data.call_method(checker, out, Method(arguments[0], name), arguments[1:], keywords, span)
        return arguments[0]  # a method of the user's, which may write to references
    if name in ("sort", "remove"):
        from relay.typecheck.elaboration.library import ordering

        if name == "remove":
            return ordering.remove(checker, out, arguments, span)
        return ordering.sort(checker, context, out, arguments[0], keywords, span)
    if name == "list":
        return _list(arguments, keywords)
    return _RULES[name](checker, out, arguments, span)


def _known_elements(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, what: str, span: Span | None
) -> list[AbstractValue]:
    found = elements(checker, out, entity, span)
    if found is None and checker.is_open(entity):
        raise SchemeOnly(span, f"the length that {what} needs")
    if found is None:
        raise TypeCheckError(
            f"{what} needs a length that is known at compile time",
            span,
            help="write a loop that fills a tensor by `x[i] = v`, or adds up a sum",
        )
    return found


def _unpack(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    whole, before, after = arguments
    assert isinstance(before, Number) and isinstance(after, Number)
    first, last = int(before.value), int(after.value)
    if isinstance(whole, DynamicValue):
        whole = expand(checker, out, whole, span)
    if isinstance(whole, DynamicValue) and dynamic_lists.is_growing(whole) and dynamic_lists.count(whole) is None:
        return Tuple(list_items.unpack_items(checker, out, whole, first, last, True, span))
    items = _known_elements(checker, out, whole, "unpacking with `*`", span)
    if len(items) < first + last:
        raise TypeCheckError(f"expected at least {first + last} values to unpack, found {len(items)}", span)
    end = len(items) - last
    return Tuple((*items[:first], Tuple(tuple(items[first:end]), Form(list)), *items[end:]))


def _spread_items(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    from relay.typecheck.elaboration.library import ordering

    grows = any(map(dynamic_lists.is_growing, arguments))
    arguments = [
        a
        if isinstance(a, Tuple) or not (grows or loop_copies.count_of(a) is None)
        else ordering.values(checker, out, a, span)
        for a in arguments
    ]
    if any(map(dynamic_lists.is_growing, arguments)):
        return dynamic_lists.concatenate_lists(checker, out, arguments, span)
    items = [item for a in arguments for item in _known_elements(checker, out, a, "`*`", span)]
    first = arguments[0] if arguments else None
    grown = isinstance(first, Tuple) and first.form is not None and first.form.cls is list and len(arguments) == 2
    return Tuple(tuple(items), Form(list) if grown else None)


def _list(items: Sequence[AbstractValue], keywords: Keywords) -> Tuple:
    parts = dict(keywords).get("parts")
    return Tuple(tuple(items), Form(list), int(parts.value) if isinstance(parts, Number) else None)


def _comprehension_items(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    return Tuple(tuple(_known_elements(checker, out, arguments[0], "a dict comprehension", span)))


def _growing(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """The list that a `while` or a cell changes."""
    (entity,) = arguments
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    return dynamic_lists.given_as_list(checker, out, entity, span)


def _keep(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    (condition,) = arguments
    known = bool(condition.value) if isinstance(condition, Number) else is_constant_bool(condition)
    return condition if known is None else object_entity(known, span)


def _append(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    items, value = arguments
    if isinstance(items, DynamicValue):
        items = expand(checker, out, items, span)
    if isinstance(items, DynamicValue) and dynamic_lists.is_growing(items):
        return dynamic_lists.push(checker, out, items, value, span)
    if checker.is_open(items):
        raise SchemeOnly(span, "whether this is a list")
    if not isinstance(items, Tuple) or (items.form is not None and items.form.cls is not list):
        raise TypeCheckError("only a list can be appended to", span, help="start with `xs = []`")
    return Tuple((*items.items, value), items.form)


def _extend(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    record, key, value = arguments
    assert isinstance(record, Tuple)
    return records.with_item(record, records.key_of(key, span), value)


def _is_none(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    (entity,) = arguments
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if checker.is_open(entity):
        return conditional_types.condition(checker, span)
    nothing = isinstance(entity, Tuple) and not entity.items and entity.form is None  # that of an empty `return`
    return object_entity(nothing or (isinstance(entity, PythonObject) and entity.value is None), span)


def _call(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    from relay.typecheck.elaboration.expressions import calls

    function, positional, *named = arguments
    given = _known_elements(checker, out, positional, "`*` in a call", span)
    words = list(keywords)
    for part in named:
        record = records.as_record(checker, out, part, span)
        if record is None or record.form is None or record.form.cls is not dict:
            raise TypeCheckError("`**` in a call needs a dict", span)
        words += zip(record.form.names, record.items, strict=True)
    if len({name for name, _ in words}) < len(words):
        raise TypeCheckError("two values for one keyword argument", span)
    return calls.apply(checker, context, out, function, given, words, span, [])


_RULES: dict[str, Rule] = {
    "unpack": _unpack,
    "spread": _spread_items,
    "each": _comprehension_items,
    "growing": _growing,
    "unset": lambda checker, out, _, span: dynamic_lists.empty(checker, out, checker.solver.fresh(Kind.Type), span),
    "pop": list_methods.pop,
    "insert": list_methods.insert,
    "clear": list_methods.clear,
    "update": lambda checker, out, arguments, span: records.make_dict(checker, out, arguments, (), span),
    "reverse": list_methods.reverse,
    "keep": _keep,
    "append": _append,
    "extend": _extend,
    "is_none": _is_none,
    "contains": comparisons.contains,
    "format": formatting.make_text,
    "assert": formatting.assert_,
}
