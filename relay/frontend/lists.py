"""List methods that mutate: the variable or place that held the list is assigned the new one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from relay.errors import FrontendError, Span
from relay.frontend.analysis.names import changes_list, is_part, subscripted_name
from relay.frontend.assignments import require_variable, update_item
from relay.frontend.context import Context
from relay.frontend.displays import argument, has_stars, lower_arguments
from relay.ir.expr import Atom, Expr, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, SetAttribute, Unpack


def lower_list_statement(context: Context, node: ast.expr) -> bool:
    """`xs.append(v)`, `d["k"].append(v)`, `r.value.append(v)` and the like, as statements. False for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr=method), args=arguments, keywords=keywords):
            if not changes_list(method, node):
                return False
        case _:
            return False
    if not _is_place(context, held):
        return method == "sort" and _lower_call_of_sort(context, held, node)
    span = context.span(node)
    intrinsic = Intrinsic("spread" if method == "extend" else method)
    options = _options(context, keywords)

    def changed_list(old: Callable[[], Atom]) -> Expr:
        given = tuple(argument(context, a) for a in arguments)  # it may change the list: `xs.append(xs.pop())`
        named = tuple((name, context.atom(value)) for name, value in options)
        return Apply(Static(intrinsic, span), (old(), *given), named, span)

    def new_list(old: Callable[[], Atom]) -> Atom:
        changed = context.bind(changed_list(old), "list", span)
        context.updated.add(changed)
        return changed

    match held:
        case ast.Name(id=name):
            context.change_list(name)
            context.change_parameter(name, span)
            changed = changed_list(lambda: context.read(name, context.span(held)))
            context.updated.add(context.assign(name, changed, span))
        case ast.Subscript() | ast.Attribute():
            _change_place(context, held, new_list)
    return True


def _is_place(context: Context, held: ast.expr) -> bool:
    """True for a variable, an item or a field of one, and what a reference holds."""
    match held:
        case ast.Name(id=name):
            return context.defines(name)
        case ast.Subscript() | ast.Attribute(attr="value"):
            return True
        case ast.Attribute():
            return (base := subscripted_name(held)) is not None and context.defines(base)
        case _:
            return False


def _options(context: Context, keywords: Sequence[ast.keyword]) -> list[tuple[str, ast.expr]]:
    """The named arguments of `xs.sort(..)`. Raises FrontendError for `**options`, unless that is a display."""
    found: list[tuple[str, ast.expr]] = []
    for keyword in keywords:
        match keyword:
            case ast.keyword(arg=str(name), value=value):
                found.append((name, value))
            case ast.keyword(value=ast.Dict(keys=keys, values=values)) if all(map(_is_text, keys)):
                found += [(key.value, value) for key, value in zip(keys, values, strict=True)]  # type: ignore[union-attr]
            case _:
                raise FrontendError(
                    "`**` in a statement that changes its object is not part of Relay",
                    context.span(keyword.value),
                    help="write the arguments by name",
                )
    return found


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _lower_call_of_sort(context: Context, held: ast.expr, node: ast.Call) -> bool:
    """`f(x).sort(..)`: a method of an object; a list or an array that nothing else reads is refused."""
    if has_stars(node):
        raise FrontendError(
            "stars in this call are not part of Relay", context.span(node), help="write the arguments one by one"
        )
    span, value = context.span(node), context.atom(held)
    context.bind(Apply(Static(Intrinsic("changed_copy"), span), (value,), (), span), "changed", span)
    function = context.bind(Attribute(value, "sort", context.span(node.func)), "sort", span)
    arguments, named = lower_arguments(context, node)
    context.bind(Apply(function, tuple(arguments), tuple(named), span), "sorted", span)
    return True


def lower_pop_of_place(context: Context, held: ast.Subscript | ast.Attribute, node: ast.Call) -> Atom:
    """`xs[i].pop(..)` and `r.value.pop(..)`, anywhere, and the like."""
    found: list[Atom] = []

    def rest(old: Callable[[], Atom]) -> Atom:
        given = [context.atom(a) for a in node.args]
        item, left = _pop_item(context, _method(node), old(), given, context.span(node))
        found.append(item)
        return left

    _change_place(context, held, rest)
    return found[0]


def lower_delete_item(context: Context, target: ast.Subscript) -> None:
    """`del xs[i]`, `del xs[i:j]`, `del d[key]`"""
    span = context.span(target)
    if isinstance(target.slice, ast.Slice):
        update_item(context, target, lambda old: context.bind(_list_of_nothing(span), "list", span))
        return
    held = target.value
    call = ast.copy_location(ast.Call(ast.Attribute(held, "pop", ast.Load()), [target.slice], []), target)
    match held:
        case ast.Name():
            require_variable(context, held, target)
            lower_pop(context, held, call)
        case ast.Subscript() | ast.Attribute():
            lower_pop_of_place(context, held, call)
        case _:
            raise FrontendError("only an item of a variable can be deleted", span, help="assign it to a variable first")


def _list_of_nothing(span: Span) -> Expr:
    return Apply(Static(Intrinsic("list"), span), (), (), span)


def _change_place(
    context: Context, held: ast.Subscript | ast.Attribute, new: Callable[[Callable[[], Atom]], Atom]
) -> None:
    """Give an item of a variable, or what a reference holds, a new value."""
    if is_part(held):
        update_item(context, held, new, inside=True)
        return
    span, cell = context.span(held), context.atom(held.value)
    value = new(lambda: context.bind(Attribute(cell, "value", span), "value", span))
    context.emit((), SetAttribute(cell, "value", value, span))


def _method(node: ast.Call) -> Intrinsic:
    assert isinstance(node.func, ast.Attribute)
    return Intrinsic(node.func.attr)


def _pop_item(context: Context, method: Intrinsic, xs: Atom, given: list[Atom], span: Span) -> tuple[Var, Var]:
    """The element that `pop` gives, and the list after it; of another such method likewise."""
    item, rest = Var("item", None, span), Var("list", None, span)
    pair = Apply(Static(method, span), (xs, *given), (), span)
    context.emit((item, rest), Unpack(context.bind(pair, "popped", span), 2, span))
    context.updated.add(rest)
    return item, rest


def lower_pop(context: Context, xs: ast.Name, node: ast.Call) -> Atom:
    """`xs.pop(..)` and the like, anywhere: the element, while the variable gets the rest."""
    span = context.span(node)
    context.change_list(xs.id)
    given = [context.atom(a) for a in node.args]
    pair = Apply(Static(_method(node), span), (context.atom(xs), *given), (), span)
    item, rest = Var("item", None, span), Var(xs.id, None, span)
    context.emit((item, rest), Unpack(context.bind(pair, "popped", span), 2, span))
    context.updated.add(rest)
    context.rename(xs.id, rest, span)
    return item
