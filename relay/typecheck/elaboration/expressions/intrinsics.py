"""Intrinsics of Python's syntax (see `relay/ir/intrinsic.py`): stars, comprehensions, lists, `is None`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.intrinsic import Intrinsic
from relay.ir.types import Form, Kind
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    Zip,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import loop_copies, optionals, unassigned
from relay.typecheck.elaboration.control_flow.loop_copies import count_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, hash_tables, list_items, list_methods, tables
from relay.typecheck.elaboration.expressions import comparisons
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.library import formatting
from relay.typecheck.elaboration.library.library_calls import as_sequence, call_library
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.members import object_methods
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.restarts import KeysOfRun
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import data, records, texts
from relay.typecheck.elaboration.values.expansion import expand, settle
from relay.typecheck.elaboration.values.labels import members_of_run
from relay.typecheck.elaboration.values.objects import object_entity

SET_CHANGES = (
    *("add", "discard", "intersection_update", "difference_update", "symmetric_difference_update"),
    *("remove", "update"),
)
"""The methods that change a set; a list has the last ones, too."""

CHANGES = ("append", "insert", "clear", "reverse", "sort", *SET_CHANGES)
"""The methods that change a list, a dict or a set, if it is one."""

Rule = Callable[[Checker, TypedBlockBuilder, Sequence[AbstractValue], "Span | None"], AbstractValue]


def make_zip(
    checker: Checker, arguments: Sequence[AbstractValue], strict: AbstractValue | None = None, span: Span | None = None
) -> AbstractValue:
    """`zip(x, ..)`; with `strict=True` the lengths must be known and equal."""
    if not arguments:
        raise TypeCheckError("zip needs at least one iterable", span)
    is_strict = False if strict is None else is_constant_bool(strict)
    if is_strict is None:
        raise TypeCheckError("the argument `strict` of zip is True or False", span)
    if is_strict:
        counts = [count_of(checker, a) for a in arguments]
        if None in counts:
            raise TypeCheckError("zip(strict=True) needs lengths that are known", span, help="leave strict out")
        if len(set(counts)) > 1:
            raise TypeCheckError(f"zip(strict=True) of lengths {', '.join(map(str, counts))}", span)
    return Zip(tuple(arguments))


def _implement(name: str, rule: Rule) -> None:
    """Enter the rule for an intrinsic. What changes a list is, for a value of a data type, a method of its class, which
    may write to references."""
    changes = name in CHANGES

    def apply(call: Call, *arguments: AbstractValue) -> AbstractValue:
        whole = arguments[0] if arguments else None
        if changes and whole is not None and data.data_type(whole) is not None:
            data.call_method(call.checker, call.out, Method(arguments[0], name), arguments[1:], (), call.span)
            return arguments[0]
        return rule(call.checker, call.out, arguments, call.span)

    implements(Intrinsic(name), name=name)(apply)


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
    first, last = int(before.specialize()), int(after.specialize())
    if isinstance(whole, DynamicValue):
        whole = expand(checker, out, whole, span)
    if (
        isinstance(whole, DynamicValue)
        and dynamic_lists.is_growing(whole)
        and dynamic_lists.count(checker, whole) is None
    ):
        return Tuple(list_items.unpack_items(checker, out, whole, first, last, True, span))
    items = _known_elements(checker, out, whole, "unpacking with `*`", span)
    if len(items) < first + last:
        message = f"expected at least {first + last} values to unpack, found {len(items)}"
        raise TypeCheckError(message, span).wherever_it_runs()
    end = len(items) - last
    return Tuple((*items[:first], Tuple(tuple(items[first:end]), Form(list)), *items[end:]))


def _spread_items(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    arguments = [iterated(checker, out, a, span) for a in arguments]
    grows = any(map(dynamic_lists.is_growing, arguments))
    arguments = [
        a
        if isinstance(a, Tuple) or not (grows or loop_copies.count_of(checker, a) is None)
        else as_sequence(checker, out, a, span)
        for a in arguments
    ]
    if any(map(dynamic_lists.is_growing, arguments)):
        return dynamic_lists.concatenate_lists(checker, out, arguments, span)
    items = [item for a in arguments for item in _known_elements(checker, out, a, "`*`", span)]
    first = arguments[0] if arguments else None
    grown = isinstance(first, Tuple) and first.form is not None and first.form.cls is list and len(arguments) == 2
    return Tuple(tuple(items), Form(list) if grown else None)


@implements(Intrinsic("given_back"), name="given_back")
def _given_back(call: Call, *items: AbstractValue) -> AbstractValue:
    return Tuple(items)


@implements(Intrinsic("list"), name="list")
def _list(call: Call, *items: AbstractValue, parts: AbstractValue | None = None) -> AbstractValue:
    count = int(parts.specialize()) if isinstance(parts, Number) else None
    return Tuple(items, Form(list), count, None if items else call.span)


def _comprehension_items(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    if span in checker.decisions.tables:
        return arguments[0]
    if elements(checker, out, arguments[0], span) is None and not checker.is_open(arguments[0]):
        raise KeysOfRun([span])
    return Tuple(tuple(_known_elements(checker, out, arguments[0], "a dict comprehension", span)))


def _dynamic_list(
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
    if optionals.may_be_none(condition):
        return require_bool(checker, out, condition, span, "a condition")
    known = bool(condition.specialize()) if isinstance(condition, Number) else is_constant_bool(condition)
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
    if tables.is_dict(record):
        return hash_tables.with_item(checker, out, record, key, value, span)
    return records.with_item(record, records.key_in(checker, record, key, span), value)


def _unassigned_name(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    (name,) = arguments
    assert isinstance(name, PythonObject)
    return unassigned.before_loop(str(name.value), span)


def _assigned_name(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    (entity,) = arguments
    if (lack := unassigned.no_value(entity)) is not None:
        raise lack.error(span)
    return entity


def _set_field(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    whole, name, value = arguments
    assert isinstance(name, PythonObject) and isinstance(name.value, str)
    record = records.as_record(checker, out, whole, span)
    if record is not None and record.form is not None and record.form.cls is not dict:
        if isinstance(records.member(record, name.value), property) and record.field(name.value) is None:
            return object_methods.set_property(checker, out, record, name.value, value, span)
        return records.with_field(record, name.value, value, span)
    if checker.is_open(whole):
        raise SchemeOnly(span, "the record whose field is assigned")
    help = f'write ["{name.value}"]' if record is not None else "build a new value with relay.replace"
    message = f"the attribute {name.value!r} cannot be assigned: only a field of a record can, and `.value`"
    raise TypeCheckError(f"{message} of a reference", span, help=help)


def _is_same(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    one, other = arguments
    if isinstance(one, PythonObject) and isinstance(other, PythonObject):
        same = one.value is other.value or (isinstance(one.value, str) and one.value == other.value)
        return object_entity(same, span)
    one, other = (expand(checker, out, e, span) if isinstance(e, DynamicValue) else e for e in arguments)
    if members_of_run(one) is not None or members_of_run(other) is not None:
        return checker.engine.apply_operator(checker, out, "equal", [one, other], {}, span, [])
    known = is_constant_bool(one), is_constant_bool(other)
    if None not in known:
        return object_entity(known[0] == known[1], span)
    if any(isinstance(e, PythonObject) for e in arguments):
        return object_entity(False, span)
    classes = [_class_of(e) for e in arguments]
    if None not in classes and classes[0] is not classes[1]:
        return object_entity(False, span)
    has_equality = all(cls is None or any("__eq__" in vars(c) for c in cls.__mro__[:-1]) for cls in classes)
    help = "write `==`" if has_equality else "compare a field that tells them apart: `a.number == b.number`"
    raise TypeCheckError("values have no identity: `is` is for None, enums and other objects", span, help=help)


def _class_of(entity: AbstractValue) -> type | None:
    """The class of an object with fields, a list or a dict; None for other values."""
    return entity.form.cls if isinstance(entity, Tuple) and entity.form is not None else None


def _is_none(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    (entity,) = arguments
    if isinstance(entity, DynamicValue):
        entity = settle(checker, out, entity, span)
    if checker.is_open(entity):
        return conditional_types.condition(checker, span)
    if isinstance(entity, DynamicValue) and optionals.may_be_none(entity):
        return optionals.is_nothing(checker, out, entity, span)
    return object_entity(optionals.is_none(entity), span)


@implements(Intrinsic("call"), name="call")
def _call(
    call: Call, function: AbstractValue, positional: AbstractValue, /, *named: AbstractValue, **keywords: AbstractValue
) -> AbstractValue:
    """`f(*positional, **named, key=value)`."""
    checker, out, span = call.site
    if (
        isinstance(function, PythonObject)
        and not named
        and set(keywords) <= {"strict"}
        and function.value in (zip, max, min)
    ):
        is_list = isinstance(positional, DynamicValue) and dynamic_lists.is_growing(positional)
        if is_list and elements(checker, out, positional, span) is None:
            if function.value is zip:
                return call_library(checker, out, "transposed__", [positional], span)
            return checker.engine.call(checker, call.context, out, function, [positional], (), span, [])
    given = _known_elements(checker, out, positional, "`*` in a call", span)
    words = list(keywords.items())
    for part in named:
        record = records.as_record(checker, out, part, span)
        if record is None or record.form is None or record.form.cls is not dict:
            raise TypeCheckError("`**` in a call needs a dict", span)
        words += zip(record.form.names, record.items, strict=True)
    if len({name for name, _ in words}) < len(words):
        raise TypeCheckError("two values for one keyword argument", span)
    return checker.engine.call(checker, call.context, out, function, given, words, span, [])


@implements(Intrinsic("update"), name="update")
def _update(call: Call, record: AbstractValue, /, *others: AbstractValue, **named: AbstractValue) -> AbstractValue:
    if data.data_type(record) is not None:
        data.call_method(call.checker, call.out, Method(record, "update"), others, call.keywords, call.span)
        return record
    if hash_tables.is_changed_set(record):
        return hash_tables.change_set(*call.site[:2], "update", record, others, call.span)
    if tables.is_dict(record):
        return hash_tables.updated(
            call.checker, call.out, record, (*others, *hash_tables.keyword_items(call.keywords)), call.span
        )
    made = records.make_dict(call.checker, call.out, (record, *others), call.keywords, call.span)
    return records.of_origin(made, record)


def _change_set(name: str) -> Rule:
    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        whole, *given = arguments
        if not hash_tables.is_changed_set(whole):
            raise TypeCheckError(f"only a set has `{name}`", span, help="start with `s = set()`")
        return hash_tables.change_set(checker, out, name, whole, given, span)

    return rule


@implements(Intrinsic("print"), name="print")
def _print(call: Call, /, *values: AbstractValue, **options: AbstractValue) -> AbstractValue:
    return formatting.print_(call.checker, call.out, values, call.keywords, call.span)


_RULES: dict[str, Rule] = {
    "unpack": _unpack,
    "spread": _spread_items,
    "each": _comprehension_items,
    "growing": _dynamic_list,
    "unset": lambda checker, out, _, span: dynamic_lists.empty(
        checker, out, checker.solver.fresh_variable(Kind.Type), span
    ),
    "pop": list_methods.pop,
    "__next__": list_methods.next_element,
    "setdefault": list_methods.setdefault,
    "popitem": list_methods.popitem,
    "insert": list_methods.insert,
    "clear": list_methods.clear,
    "reverse": list_methods.reverse,
    "keep": _keep,
    "unassigned": _unassigned_name,
    "assigned": _assigned_name,
    "generated": lambda _checker, _out, given, _span: given[0],
    "append": _append,
    "extend": _extend,
    "set_field": _set_field,
    "is_same": _is_same,
    "is_none": _is_none,
    "contains": comparisons.contains,
    "format": formatting.make_text,
    "error_text": lambda checker, out, given, span: texts.of_codes(checker, out, given[0], span),
    "assert": formatting.assert_,
}

_RULES |= {name: _change_set(name) for name in SET_CHANGES[:-2]}

for _name, _rule in _RULES.items():
    _implement(_name, _rule)
