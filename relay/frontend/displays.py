"""Tuples and dicts with `*` and `**` in them, calls with `*` and `**`, and unpacking into `*rest`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from relay.errors import FrontendError
from relay.frontend.comprehensions import lower_comprehension
from relay.frontend.context import Context
from relay.ir.expr import Atom, Expr, MakeTuple, Static
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply


def lower_items(context: Context, items: Sequence[ast.expr], node: ast.expr) -> Expr:
    """`(a, *b, c)`: a tuple of the items and the components of those with a star."""
    span = context.span(node)
    if not any(isinstance(item, ast.Starred) for item in items):
        return MakeTuple(tuple(context.atom(item) for item in items), span)
    parts: list[Atom] = []
    plain: list[Atom] = []
    for item in items:
        if isinstance(item, ast.Starred):
            if plain:
                parts.append(context.bind(MakeTuple(tuple(plain), span), "items", span))
                plain = []
            parts.append(context.atom(item.value))
        else:
            plain.append(context.atom(item))
    if plain:
        parts.append(context.bind(MakeTuple(tuple(plain), span), "items", span))
    return Apply(Static(Intrinsic("spread"), span), tuple(parts), (), span)


def lower_list(context: Context, items: Sequence[ast.expr], node: ast.expr) -> Expr:
    """`[a, *b, c]`: as a tuple, but its items can be assigned."""
    span = context.span(node)
    if any(isinstance(item, ast.Starred) for item in items):
        whole = context.bind(lower_items(context, items, node), "items", span)
        return Apply(Static(list, span), (whole,), (), span)
    return Apply(Static(Intrinsic("list"), span), tuple(context.atom(item) for item in items), (), span)


def lower_set(context: Context, node: ast.Set | ast.SetComp | ast.Call) -> Expr:
    """`{a, b}`, `{f(x) for x in xs}` and `set(xs)`, also of sets that their methods change."""
    span = context.span(node)
    whole: Atom
    if isinstance(node, ast.Set):
        whole = context.bind(lower_items(context, node.elts, node), "items", span)
    elif isinstance(node, ast.SetComp):
        whole = context.atom(ast.copy_location(ast.ListComp(node.elt, node.generators), node))
    else:
        whole = argument(context, node.args[0])
    keywords = (("is_changed", Static(True, span)),) if id(node) in context.changed_sets else ()
    return Apply(Static(set, span), (whole,), keywords, span)


def lower_dict(context: Context, node: ast.Dict) -> Expr | Atom:
    """`{"w": w, **rest}`: a record, whose keys are known."""
    span = context.span(node)
    record: Atom | None = None
    fields: list[tuple[str, Atom]] = []

    def merge_fields() -> Atom:
        merged = Apply(Static(dict, span), () if record is None else (record,), tuple(fields), span)
        return context.bind(merged, "record", span)

    for key, value in zip(node.keys, node.values, strict=True):
        match key:
            case None:
                whole = context.atom(value)
                if fields or record is not None:
                    record, fields = merge_fields(), []
                    whole = context.bind(Apply(Static(dict, span), (record, whole), (), span), "record", span)
                record = whole
            case ast.Constant(value=str(name)):
                if any(name == n for n, _ in fields):
                    raise FrontendError(f"the key {name!r} is given twice", context.span(key), help="remove one")
                fields.append((name, context.atom(value)))
            case _:
                record, fields = merge_fields(), []
                given = (record, context.atom(key), context.atom(value))
                record = context.bind(Apply(Static(Intrinsic("extend"), span), given, (), span), "record", span)
    if record is not None and not fields:
        return record
    return Apply(Static(dict, span), () if record is None else (record,), tuple(fields), span)


def lower_arguments(context: Context, node: ast.Call) -> tuple[list[Atom], list[tuple[str, Atom]]]:
    """The arguments of a call without `*` and `**`."""
    name = node.func.id if isinstance(node.func, ast.Name) else None
    is_python = name is None or (not context.defines(name) and hasattr(builtins, name))
    arguments = [argument(context, a, not is_python) for a in node.args]
    return arguments, [(k.arg, argument(context, k.value, not is_python)) for k in node.keywords if k.arg is not None]


def argument(context: Context, node: ast.expr, is_kept: bool = False) -> Atom:
    """An argument; a generator expression is a list, which can be used once. `is_kept`: of a function that may use it
    twice."""
    if isinstance(node, ast.GeneratorExp):
        span = context.span(node)
        value = lower_comprehension(context, node)
        items = value if isinstance(value, Atom) else context.bind(value, "items", span)
        if not is_kept:
            return items
        return context.bind(Apply(Static(Intrinsic("generated"), span), (items, Static(None)), (), span), "items", span)
    return context.atom(node)


def has_stars(node: ast.Call) -> bool:
    """True if a call has `*x` or `**x` among its arguments."""
    return any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)


def lower_starred_call(context: Context, node: ast.Call) -> Expr:
    """`f(a, *b, k=v, **d)`: call(f, (a, *b), d, k=v)."""
    span = context.span(node)
    function = context.atom(node.func)
    items = lower_items(context, node.args, node)
    positional = items if isinstance(items, Atom) else context.bind(items, "arguments", span)
    parts: list[Atom] = [function, positional]
    keywords: list[tuple[str, Atom]] = []
    for keyword in node.keywords:
        if keyword.arg is not None:
            keywords.append((keyword.arg, context.atom(keyword.value)))
        else:
            parts.append(context.atom(keyword.value))
    return Apply(Static(Intrinsic("call"), span), tuple(parts), tuple(keywords), span)
