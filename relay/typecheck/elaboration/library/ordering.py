"""Ordering: `<` of tuples, `sorted`, `max`, `min`, sort keys, and the index of a value in a list.

What the checker knows is decided at compile time. The rest is done by functions that are written in the language
(`relay/frontend/library.py`), which are called here like the user's own.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Mapping, Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.expr import Assert, Binding
from relay.ir.intrinsic import Intrinsic
from relay.ir.types import Form, TensorType, Type, prune, show
from relay.typecheck.elaboration import constant_results
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    ListLength,
    Method,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    Zip,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.loop_copies import count_of, rounds_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import (
    dynamic_lists,
    hash_tables,
    list_items,
    list_methods,
    list_positions,
)
from relay.typecheck.elaboration.expressions import comparisons, operators
from relay.typecheck.elaboration.library.library_calls import call_library, library_function, list_elements
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.values import data
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import is_known, resolve

FEW = 32
"""The largest number of elements that are compared one by one, each with each."""


def _as_value(checker: Checker, out: TypedBlockBuilder, xs: AbstractValue, span: Span | None) -> AbstractValue:
    """The run-time argument of a function: a range or a zip becomes a list."""
    if not isinstance(xs, Range | Zip | Progression):
        return xs
    return dynamic_lists.given_as_list(checker, out, list_elements(checker, out, xs, span), span)


# ---- comparing


def compare_sequences(
    checker: Checker, out: TypedBlockBuilder, name: str, left: Tuple, right: Tuple, span: Span | None
) -> AbstractValue:
    """`less`, `less_equal`, `greater` or `greater_equal` of tuples and lists: the first components that differ
    decide."""
    if name.startswith("greater"):
        return compare_sequences(checker, out, name.replace("greater", "less"), right, left, span)
    counts = len(left.items), len(right.items)
    result: AbstractValue = operators.bool_value(
        counts[0] < counts[1] or (name == "less_equal" and counts[0] == counts[1]), span
    )
    for a, b in reversed(list(zip(left.items, right.items, strict=False))):
        less = _less_than(checker, out, a, b, span)
        if is_constant_bool(less) is True:
            result = less
            continue
        same = comparisons.equal(checker, out, a, b, span)
        rest = comparisons.combine_conditions(checker, out, [same, result], False, span)
        result = comparisons.combine_conditions(checker, out, [less, rest], True, span)
    return result


# ---- sorted, max and min


@implements(builtins.sorted)
def _sorted(
    call: Call, iterable: AbstractValue, /, *, key: AbstractValue | None = None, reverse: AbstractValue | None = None
) -> AbstractValue:
    reverse = object_entity(False, call.span) if reverse is None else reverse
    by = None if is_none(key) else key
    return sort_elements(call.checker, call.context, call.out, iterable, by, reverse, call.span)


def is_none(entity: AbstractValue | None) -> bool:
    """True if an argument is missing, or None."""
    return entity is None or (isinstance(entity, PythonObject) and entity.value is None)


def _few_elements(
    checker: Checker, out: TypedBlockBuilder, xs: AbstractValue, span: Span | None
) -> list[AbstractValue] | None:
    """The elements one by one, of what has a known length that is not large; None for the rest."""
    return elements(checker, out, xs, span) if _is_few(checker, xs) else None


def _is_few(checker: Checker, xs: AbstractValue) -> bool:
    if dynamic_lists.is_growing(xs) or isinstance(xs, Tuple):
        return isinstance(xs, Tuple)
    if isinstance(xs, PythonObject) and isinstance(xs.value, str | frozenset):
        return len(xs.value) <= FEW
    count = count_of(checker, xs, ask=False)
    return count is not None and count <= FEW


def _key(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    key: AbstractValue | None,
    item: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    return item if key is None else checker.engine.call(checker, context, out, key, [item], (), span, [], "the key")


def sort_elements(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    xs: AbstractValue,
    key: AbstractValue | None,
    reverse: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """`sorted(xs, key=key, reverse=reverse)`: equal elements stay in their order."""
    xs = iterated(checker, out, xs, span, in_any_order=key is None)
    xs = expand(checker, out, xs, span) if isinstance(xs, DynamicValue) else xs
    if isinstance(xs, DynamicValue) and key is None and (type_ := tensor_type(xs)) is not None:
        if type_.rank != 1:
            raise TypeCheckError(
                f"sorted needs a list or a tensor of rank 1, found rank {type_.rank}",
                span,
                help="along an axis: relay.sort(x, axis=0)",
            )
        return call_library(checker, out, "sorted_rows__", [xs, reverse], span)
    items = _few_elements(checker, out, xs, span)
    if items is None:
        xs = _as_value(checker, out, xs, span)
        all_keys = xs if key is None else call_library(checker, out, "keys__", [xs, key], span)
        if dynamic_lists.is_growing(all_keys):
            assert isinstance(all_keys, DynamicValue)
            _require_order(dynamic_lists.element_type(all_keys), span)
        order_ = call_library(checker, out, "order__", [all_keys, reverse], span)
        chosen_ = call_library(checker, out, "chosen__", [xs, order_], span)
        count = rounds_of(xs)
        return chosen_ if count is None else constant_results.with_lengths(chosen_, ListLength(None, count))
    keys = [_key(checker, context, out, key, item, span) for item in items]
    downward = is_constant_bool(reverse)
    order = None if downward is None else _known_order(checker, keys, downward, span)
    if order is not None:
        return Tuple(tuple(items[i] for i in order), Form(list))
    some = [dynamic_lists.as_growing(checker, out, Tuple(tuple(part), Form(list)), span) for part in (keys, items)]
    places = call_library(checker, out, "order__", [some[0], reverse], span)
    assert isinstance(places, DynamicValue)
    chosen = []
    for i in range(len(items)):
        place = list_items.read(checker, out, places, list_positions.number(i), span)
        chosen.append(list_items.item(checker, out, some[1], place, span))
    return Tuple(tuple(chosen), Form(list))


def _known_order(
    checker: Checker, keys: Sequence[AbstractValue], downward: bool, span: Span | None
) -> list[int] | None:
    """The order of keys that the checker knows; None if some are compared at run time."""

    class Undecided(Exception):
        pass

    aside = TypedBlockBuilder()

    def order(a: int, b: int) -> int:
        for first, second, answer in ((a, b, -1), (b, a, 1)):
            known = is_constant_bool(_less_than(checker, aside, keys[first], keys[second], span))
            if known is None:
                raise Undecided
            if known:
                return answer
        return 0

    try:
        return sorted(range(len(keys)), key=functools.cmp_to_key(order), reverse=downward)
    except Undecided:
        return None


def _less_than(
    checker: Checker, out: TypedBlockBuilder, left: AbstractValue, right: AbstractValue, span: Span | None
) -> AbstractValue:
    if isinstance(left, PythonObject) and isinstance(right, PythonObject):
        texts = (left.value, right.value)
        if not all(isinstance(text, str) for text in texts):
            raise TypeCheckError("these Python objects have no order", span)
        return operators.bool_value(str(left.value) < str(right.value), span)
    for side in (left, right):
        if isinstance(side, DynamicValue):
            _require_order(side.type, span)
    return checker.engine.apply_operator(checker, out, "less", [left, right], {}, span, [])


def _require_order(type_: Type, span: Span | None) -> None:
    """Raise TypeMismatch for tensors of a rank above 0: which of two comes first has no single answer."""
    known = resolve(type_)
    if isinstance(known, TensorType) and known.shape != () and is_known(known.shape):
        raise TypeMismatch(
            f"the items to order must be numbers or tuples of them, found {show(known)}",
            span,
            help="order by a number of each: key=lambda v: v.sum()",
        )


def keyed_extremum(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    largest: bool,
    arguments: Sequence[AbstractValue],
    options: Mapping[str, AbstractValue],
    span: Span | None,
) -> AbstractValue | None:
    """`max` and `min` by a key, of tuples, and with a default; None for all others."""
    name = "max" if largest else "min"
    whole: AbstractValue = arguments[0] if len(arguments) == 1 else Tuple(tuple(arguments))
    whole = iterated(checker, out, whole, span, in_any_order="key" not in options)
    whole = expand(checker, out, whole, span) if isinstance(whole, DynamicValue) else whole
    if checker.is_open(whole):
        raise SchemeOnly(span, f"the argument of {name}")
    key, default = options.get("key"), options.get("default")
    if isinstance(whole, PythonObject) and (parts := _few_elements(checker, out, whole, span)) is not None:
        whole = Tuple(tuple(parts))
    if isinstance(whole, Zip) or (key is not None and not _is_few(checker, whole)):
        whole = (
            list_elements(checker, out, whole, span)
            if _is_few(checker, whole)
            else _as_value(checker, out, whole, span)
        )
    if isinstance(whole, DynamicValue) and dynamic_lists.is_growing(whole):
        return _best_of_list(checker, out, name, whole, key, default, span)
    items = _few_elements(checker, out, whole, span) if key is not None or isinstance(whole, Tuple) else None
    if items is None:
        if key is not None and default is None:
            return call_library(checker, out, "best__", [whole, key, object_entity(largest, span)], span)
        if options:
            raise TypeCheckError(
                f"{name} with a key or default needs a list, or a length that is known",
                span,
                help="relay.argmax(x) and relay.argmin(x) give the positions of the largest and smallest elements",
            )
        return None
    if not items and default is not None:
        return default
    if not items or (key is None and not any(_is_structured(i) for i in items)):
        return None
    return _best_of_items(checker, context, out, largest, items, key, span)


def _best_of_list(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    whole: DynamicValue,
    key: AbstractValue | None,
    default: AbstractValue | None,
    span: Span | None,
) -> AbstractValue | None:
    """`max` or `min` of a dynamic list; None where it is that of its elements as one tensor."""
    is_plain = isinstance(prune(dynamic_lists.element_type(whole)), TensorType)
    if key is None and default is None and is_plain:
        return None
    function = key if key is not None else GlobalFunction(library_function("itself__"))
    given = [whole, function, object_entity(name == "max", span)]
    if default is None:
        some = list_positions.is_not_empty(checker, out, whole, span)
        _require(checker, out, some, f"{name} of an empty list", span)
        return call_library(checker, out, "best__", given, span)
    return call_library(checker, out, "best_or__", [*given, default], span)


def _best_of_items(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    largest: bool,
    items: Sequence[AbstractValue],
    key: AbstractValue | None,
    span: Span | None,
) -> AbstractValue:
    """The first of the largest or smallest items, whose number is known."""
    best = items[0]
    score = _key(checker, context, out, key, best, span)
    for item in items[1:]:
        new = _key(checker, context, out, key, item, span)
        better = _less_than(checker, out, *((score, new) if largest else (new, score)), span)
        known = is_constant_bool(better)
        if known is None:
            given = [better, Tuple((item, new)), Tuple((best, score))]
            chosen = call_library(checker, out, "pick__", given, span)
            assert isinstance(chosen, Tuple)
            best, score = chosen.items
        elif known:
            best, score = item, new
    return best


def _is_structured(item: AbstractValue) -> bool:
    return isinstance(item, Tuple | PythonObject) or (
        isinstance(item, DynamicValue) and data.data_type(item) is not None
    )


# ---- places


def list_method(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    xs: AbstractValue,
    value: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """`xs.index(v)` and `xs.count(v)` of a list or tuple."""
    if isinstance(xs, Tuple):
        found = _known_places(checker, xs, value, span)
        if found is not None and name == "count":
            return PythonNumber(len(found), span)
        if found is not None:
            if not found:
                error = TypeCheckError("the value is not in the list", span, help="test before: `if v in xs:`")
                raise error.wherever_it_runs()
            return PythonNumber(found[0], span)
        xs = dynamic_lists.as_growing(checker, out, Tuple(xs.items, Form(list)), span)
    result = call_library(checker, out, f"{name}__", [xs, value], span)
    if name == "index":
        found_ = checker.engine.apply_operator(checker, out, "greater_equal", [result, PythonNumber(0)], {}, span, [])
        _require(checker, out, found_, "the value is not in the list", span)
    return result


def _require(
    checker: Checker, out: TypedBlockBuilder, condition: AbstractValue, message: str, span: Span | None
) -> None:
    out.items.append(Binding((), Assert(checker.materialize(out, condition, span).atom, message, span)))


def _known_places(checker: Checker, xs: Tuple, value: AbstractValue, span: Span | None) -> list[int] | None:
    aside = TypedBlockBuilder()
    answers = [is_constant_bool(comparisons.equal(checker, aside, item, value, span)) for item in xs.items]
    return None if None in answers else [i for i, same in enumerate(answers) if same]


@implements(Intrinsic("sort"), name="sort")
def _sort(call: Call, xs: AbstractValue, /, *given: AbstractValue, **options: AbstractValue) -> AbstractValue:
    """The result of `xs.sort(key=key, reverse=reverse)` for the list xs, or for a tensor, as NumPy's method."""
    checker, out, span = call.site
    if data.data_type(xs) is not None:
        data.call_method(checker, out, Method(xs, "sort"), given, call.keywords, span)
        return xs
    opened = expand(checker, out, xs, span) if isinstance(xs, DynamicValue) else xs
    if isinstance(opened, DynamicValue) and not dynamic_lists.is_growing(opened):
        if any(is_none(axis) for axis in (*given[:1], *(v for k, v in options.items() if k == "axis"))):
            raise TypeCheckError("an array is sorted along an axis, found None", span, help="x.ravel() is flat")
        return checker.engine.call(
            checker, call.context, out, Method(opened, "sort"), given, call.keywords, span, call.described
        )
    if not dynamic_lists.is_list(opened):
        raise TypeCheckError("only a list or a tensor has `sort`", span, help="make a list: `xs = sorted(t)`")
    if given or not options.keys() <= {"key", "reverse"}:
        raise TypeCheckError("sort takes key and reverse, by name", span)
    options = {name: value for name, value in options.items() if not is_none(value)}
    reverse = options.get("reverse", object_entity(False, span))
    return sort_elements(checker, call.context, out, opened, options.get("key"), reverse, span)


@implements(Intrinsic("changed_copy"), name="changed_copy")
def _changed_copy(call: Call, xs: AbstractValue, /, part: AbstractValue | None = None) -> AbstractValue:
    """A check before a change of a list or array that only this statement has: a slice of xs, or xs itself, if there is
    no part. Raises TypeCheckError for one, as nobody would see the change."""
    is_array = part is None and isinstance(xs, DynamicValue) and tensor_type(xs) is not None
    if is_array or dynamic_lists.is_list(xs):
        found = "a slice of a list is a new list" if part is not None else "no variable of this function holds it"
        raise TypeCheckError(
            f"nothing sees this change: {found}", call.span, help="assign it to a variable, and change that"
        )
    return xs


@implements(Intrinsic("remove"), name="remove")
def _remove(call: Call, xs: AbstractValue, *given: AbstractValue) -> AbstractValue:
    """The list after `xs.remove(v)`."""
    checker, out, span = call.site
    if data.data_type(xs) is not None:
        data.call_method(checker, out, Method(xs, "remove"), given, (), span)
        return xs
    if hash_tables.is_changed_set(xs):
        return hash_tables.change_set(checker, out, "remove", xs, given, span)
    if len(given) != 1:
        raise TypeCheckError(f"remove takes the value to remove, found {len(given)} arguments", span)
    (value,) = given
    xs = expand(checker, out, xs, span) if isinstance(xs, DynamicValue) else xs
    if not dynamic_lists.is_list(xs):
        raise TypeCheckError("only a list has `remove`", span, help="start with `xs = []`")
    place = list_method(checker, out, "index", xs, value, span)
    popped = list_methods.pop(checker, out, [xs, place], span)
    assert isinstance(popped, Tuple)
    return popped.items[1]
