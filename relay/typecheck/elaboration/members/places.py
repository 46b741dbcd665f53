"""`x.at[i].set(v)` and similar methods, as in JAX: a new tensor with other values at some places."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.dims import product
from relay.ir.types import INT64
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    Places,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes import masks
from relay.typecheck.elaboration.expressions import operators, weak_types
from relay.typecheck.elaboration.library.library_calls import call_library
from relay.typecheck.elaboration.members import index_arrays
from relay.typecheck.elaboration.members.item_updates import add_at, index_update, known_places
from relay.typecheck.elaboration.members.subscripts import index, ranked_type
from relay.typecheck.unification import flat_shape

OPERATORS = {
    "multiply": "multiply",
    "mul": "multiply",
    "divide": "divide",
    "power": "power",
    "min": "minimum",
    "max": "maximum",
}
METHODS = ("set", "add", "get", *OPERATORS)


def method(places: Places, name: str, span: Span | None) -> Method:
    """`x.at[items].name`. Raises TypeCheckError for a name that is not a method."""
    if places.items is None:
        raise TypeCheckError(f"`x.at` has no attribute {name!r}", span, help="write x.at[i].set(v)")
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1) or ["set"]
        raise TypeCheckError(f"`x.at[..]` has no method {name!r}", span, help=f"write x.at[i].{close[0]}(v)")
    return Method(places, name)


def call(
    checker: Checker,
    out: TypedBlockBuilder,
    places: Places,
    name: str,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    """`x.at[items].name(value)`. Raises TypeCheckError for other arguments, among them JAX's `mode`."""
    assert places.items is not None
    if keywords:
        help = "leave it out: an index out of range is an error here"
        raise TypeCheckError(f"x.at[..].{name} has no argument {keywords[0][0]!r}", span, help=help)
    wanted = 0 if name == "get" else 1
    if len(arguments) != wanted:
        raise TypeCheckError(f"x.at[..].{name} takes {wanted} arguments, found {len(arguments)}", span)
    x, items = places.value, list(places.items)
    if name == "get":
        return index(checker, out, x, items, span)
    if name == "set":
        return index_update(checker, out, x, items, arguments[0], span)
    if name == "add":
        return add_at(checker, out, x, items, arguments[0], span)
    if _may_repeat(items):
        return _updated_one_by_one(checker, out, x, items, OPERATORS[name], arguments[0], span)
    old = masks.masked_elements(checker, out, x, items, span) or index(checker, out, x, items, span)
    new = checker.engine.apply_operator(checker, out, OPERATORS[name], [old, arguments[0]], {}, span, [])
    return index_update(checker, out, x, items, new, span)


def _may_repeat(items: Sequence[AbstractValue | SliceItem]) -> bool:
    """True if arrays or lists among the items may name a place twice."""
    lists, has_arrays = [item for item in items if isinstance(item, Tuple)], index_arrays.count_of_arrays(items) > 0
    if masks.mask_of(items) is not None or not (lists or has_arrays):
        return False
    places = known_places(lists[0]) if len(lists) == 1 and not has_arrays else None
    return places is None or min(places) < 0 or len(set(places)) < len(places)


def _updated_one_by_one(
    checker: Checker,
    out: TypedBlockBuilder,
    x: DynamicValue,
    items: Sequence[AbstractValue | SliceItem],
    operator: str,
    new: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """x with one element after the other combined with a new value, so that a place that is named twice gets both."""
    x = weak_types.loosen_base(checker, out, x)
    shape = ranked_type(x, span).shape
    steps: dict[str, object] = {"start": 0, "stop": product(flat_shape(shape)), "step": 1, "dtype": INT64}
    numbers = operators.apply(checker, out, lookup("arange"), [], steps, span, [])
    numbered = operators.apply(checker, out, lookup("reshape"), [numbers], {"shape": shape}, span, [])
    places = index(checker, out, numbered, list(items), span)
    if isinstance(new, Number):
        new = checker.constant(out, new, ranked_type(x, span).base)
    given = [x, places, new, PythonObject(lookup(operator))]
    return call_library(checker, out, "updated_one_by_one__", given, span)
