"""Comprehensions: loops over elements that are known one by one, which build a tuple or a record.

    [e for x in xs if c]      ForEach over xs, unrolled by the checker where the elements are few and known; carries
                              the items so far:
                              items' = If(keep(c)) {yield spread(items, (e,))} else {yield items}
    {k: v for ..}             the same with extend(items, k, v)

Their variables are seen inside only. A generator expression stands only as an argument, and is a tuple too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relay.errors import FrontendError
from relay.frontend.assignments import store
from relay.frontend.context import Capture, Context
from relay.frontend.names import has_assignment, target_names
from relay.ir.expr import Apply, Arm, Atom, Block, Expr, ForEach, If, LoopLabel, Next, Static, Var, Yield
from relay.ir.intrinsic import Intrinsic

Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


def lower_comprehension(context: Context, node: Comprehension) -> Expr:
    """The tuple (of a dict comprehension: the record) that a comprehension makes."""
    span = context.span(node)
    if has_assignment(node):
        raise FrontendError("`:=` or `pop` in a comprehension is not part of Relay", span, help="write a loop")

    held: list[Capture] = []

    def element(items: Atom) -> Expr:
        if isinstance(node, ast.DictComp):
            key, value = context.atom(node.key), context.atom(node.value)
            held.extend(_note_captured(context, value, node))
            return Apply(Static(Intrinsic("extend"), span), (items, key, value), (), span)
        value = context.atom(node.elt)
        held.extend(_note_captured(context, value, node))
        return Apply(Static(Intrinsic("append"), span), (items, value), (), span)

    if isinstance(node, ast.DictComp):
        start = context.bind(Apply(Static(dict, span), (), (), span), "items", span)
    else:
        start = context.bind(Apply(Static(Intrinsic("list"), span), (), (), span), "items", span)
    if isinstance(node, ast.DictComp):
        kind = "each"
    else:
        kind = "unrolled_few" if any(generator.ifs for generator in node.generators) else "unrolled"
    outer_cells, outer_early = set(context.cells), dict(context.early)
    kept = context.make_early_cells(node, span)
    result = _generators(context, node.generators, start, element, Intrinsic(kind), kept)
    context.cells, context.early = outer_cells, outer_early
    if held:
        context.holds[result] = tuple(held)
    return result


def _generators(
    context: Context,
    generators: list[ast.comprehension],
    items: Atom,
    element: Callable[[Atom], Expr],
    unrolled: Intrinsic,
    kept: set[str],
) -> Var:
    """The items after the loops of these generators."""
    generator, *inner = generators
    span = context.span(generator.iter)
    if generator.is_async:
        raise FrontendError("`async for` is not part of Relay", span, help="write a plain `for`")
    iterable = context.atom(generator.iter)
    each = context.bind(Apply(Static(unrolled, span), (iterable,), (), span), "elements", span)
    items = context.bind(Apply(Static(Intrinsic("growing"), span), (items, each), (), span), "items", span)
    label, parameter = LoopLabel("comprehension"), Var("items", None, span)
    names = target_names(generator.target)

    def rest(sofar: Atom) -> Atom:
        value = _generators(context, inner, sofar, element, unrolled, kept) if inner else element(sofar)
        return value if isinstance(value, Atom) else context.bind(value, "items", span)

    with context.new_block() as body, _own_names(context, names, kept):
        target_span = context.span(generator.target)
        name = generator.target.id if isinstance(generator.target, ast.Name) else "element"
        variable = Var(name, None, target_span)
        store(context, generator.target, variable)
        value = _filtered(context, generator.ifs, parameter, rest)
        body.terminator = Next(label, (value,), span)
    outside = {n: place for n, place in body.environment.captured.items() if n not in names}
    for name, place in outside.items():
        context.block.environment.captured.setdefault(name, place)
    result = Var("items", None, span)
    context.emit((result,), ForEach(label, variable, each, (parameter,), (items,), body.finished(), span))
    return result


def _filtered(context: Context, tests: list[ast.expr], items: Atom, rest: Callable[[Atom], Atom]) -> Atom:
    """The items after one element, which is left out if a test does not hold."""
    if not tests:
        return rest(items)
    test, *others = tests
    span = context.span(test)
    kept = Apply(Static(Intrinsic("keep"), span), (context.atom(test),), (), span)
    condition = context.bind(kept, "condition", span)
    with context.new_block() as chosen:
        value = _filtered(context, others, items, rest)
    context.block.environment.captured.update(chosen.environment.captured)
    result = Var("items", None, span)
    arm = Arm(Block((), Yield((condition,), span)), chosen.finished(Yield((value,), span)))
    context.emit((result,), If((arm,), Block((), Yield((items,), span)), span))
    return result


@contextmanager
def _own_names(context: Context, names: set[str], kept: set[str]) -> Iterator[None]:
    """Let the names of a comprehension be variables of the current block only; those in `kept` have cells."""
    context.block.environment.own = frozenset(names)
    hidden = (context.cells & names) - kept
    shadowed = {name: context.early.pop(name) for name in names - kept if name in context.early}
    context.cells -= hidden
    added = [name for name in names if name not in context.locals]
    context.locals.update(dict.fromkeys(added))
    try:
        yield
    finally:
        context.cells |= hidden
        context.early |= shadowed
        for name in added:
            del context.locals[name]


def _note_captured(context: Context, value: Atom, node: Comprehension) -> tuple[Capture, ...]:
    """What the functions in an element captured. They all see the last element, as each variable exists once."""
    names = {name for generator in node.generators for name in target_names(generator.target)}
    held = context.holds.get(value, ()) if isinstance(value, Var) else ()
    for capture in held:
        if capture.owner is context and capture.name in names:
            context.need_early_cell(capture.name, node)
    return held
