"""`x.at[i].set(v)` and similar methods, as in JAX: a new tensor with other values at some places."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Method,
    Places,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes import masks
from relay.typecheck.elaboration.members.item_updates import add_at, index_update
from relay.typecheck.elaboration.members.subscripts import index

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
    old = masks.masked_elements(checker, out, x, items, span) or index(checker, out, x, items, span)
    new = checker.engine.apply_operator(checker, out, OPERATORS[name], [old, arguments[0]], {}, span, [])
    return index_update(checker, out, x, items, new, span)
