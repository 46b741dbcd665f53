"""Comprehensions: loops over a known number of elements, which build a tuple or a record.

    [e for x in xs if c]      ForEach over xs that carries the items so far; the checker may copy its rounds:
                              items' = If(keep(c)) {yield spread(items, (e,))} else {yield items}
    {k: v for ..}             the same with extend(items, k, v)

Their variables are visible inside only. A generator expression may only be an argument, and is a tuple, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relay.errors import FrontendError, Label, Span
from relay.frontend.analysis.names import changes_inside, target_names
from relay.frontend.assignments import store
from relay.frontend.conditions import bool_constant, lower_condition
from relay.frontend.context import Capture, Context, Unassigned, distinct_captures
from relay.ir.expr import Arm, Atom, Block, Exit, Expr, If, Loop, LoopLabel, Next, Static, Var, Yield
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, ForEach

Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


def lower_comprehension(context: Context, node: Comprehension) -> Expr:
    """The tuple (of a dict comprehension: the record) that a comprehension makes."""
    span = context.span(node)
    assigned = _assigned_inside(context, node)

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
    outer_cells, outer_early = set(context.cells), dict(context.early)
    kept = context.make_early_cells(node, span)
    result = _generators(context, node.generators, start, element, isinstance(node, ast.DictComp), kept)
    context.cells, context.early = outer_cells, outer_early
    if held:
        context.holds[result] = distinct_captures(held)
    context.block.environment.states.update(assigned)
    return result


def map_or_filter(
    context: Context, node: ast.expr, names: tuple[str, ...] = ("map", "filter")
) -> tuple[str, Atom, Atom] | None:
    """`map(f, xs, ..)` or `filter(f, xs)` of Python: which one, f, and what it goes through; None for all else."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[function, *rest], keywords=[]) if name in names:
            is_python = not context.defines(name) and context.scope.resolve(name) in (map, filter)
            if not is_python or any(isinstance(a, ast.Starred) for a in node.args):
                return None
        case _:
            return None
    span = context.span(node)
    if not rest or (name == "filter" and len(rest) > 1):
        raise FrontendError(
            f"`{name}` takes a function and an iterable",
            span,
            help="write a comprehension: `[f(x) for x in xs if c]`",
        )
    if isinstance(function, ast.Constant):
        raise FrontendError(
            f"`{name}` needs a function here", context.span(function), help="write a comprehension: `[x for x in xs]`"
        )
    called = context.atom(function)
    atoms = [context.atom(part) for part in rest]
    if len(atoms) == 1:
        return name, called, atoms[0]
    return name, called, context.bind(Apply(Static(zip, span), tuple(atoms), (), span), "elements", span)


def image(context: Context, function: Atom, element: Var, several: bool, span: Span) -> Var:
    """The result of `map` for an element: f(x), or f(x, y, ..) of several iterables."""
    callee, given = (Static(Intrinsic("call"), span), (function, element)) if several else (function, (element,))
    return context.bind(Apply(callee, given, (), span), "value", span)


def lower_mapped(context: Context, node: ast.Call) -> Expr | None:
    """`map(f, xs, ..)` and `filter(f, xs)`, which are lists here: `[f(x) for x in xs]`. None for other calls."""
    found = map_or_filter(context, node)
    if found is None:
        return None
    name, function, iterable = found
    span = context.span(node)
    start = context.bind(Apply(Static(Intrinsic("list"), span), (), (), span), "items", span)
    label, parameter = LoopLabel(name), Var("items", None, span)
    element, result = Var("element", None, span), Var("items", None, span)

    def longer_list(value: Var) -> Var:
        return context.bind(Apply(Static(Intrinsic("append"), span), (parameter, value), (), span), "items", span)

    with context.new_block() as body:
        value = image(context, function, element, len(node.args) > 2, span)
        if name == "map":
            longest = longer_list(value)
        else:
            kept = context.bind(Apply(Static(Intrinsic("keep"), span), (value,), (), span), "condition", span)
            with context.new_block() as chosen:
                more = longer_list(element)
            longest = Var("items", None, span)
            arm = Arm(Block((), Yield((kept,), span)), chosen.block(Yield((more,), span)))
            context.emit((longest,), If((arm,), Block((), Yield((parameter,), span)), span))
        body.terminator = Next(label, (longest,), span)
    context.emit((result,), ForEach(label, element, iterable, (parameter,), (start,), body.block(), span, (0,)))
    return result


def lower_quantifier(context: Context, node: ast.GeneratorExp, decides: bool) -> Expr:
    """`any(c for x in xs)` (decides: True) or `all(..)`: a loop that the first condition that decides leaves.

    Loop once { for x in xs { if c {exit once True} next }; exit once False }
    """
    span = context.span(node)
    assigned = _assigned_inside(context, node)
    label, result = LoopLabel("any" if decides else "all"), Var("condition", None, span)
    with context.new_block() as whole:
        _search(context, node.generators, node.elt, label, decides)
    for name, place in whole.environment.captured.items():
        context.block.environment.captured.setdefault(name, place)
    body = whole.block(Exit(label, (bool_constant(not decides, span),), span))
    context.emit((result,), Loop(label, (), (), body, None, span))
    context.block.environment.states.update(assigned)
    return result


def _assigned_inside(context: Context, node: Comprehension) -> dict[str, Unassigned]:
    """The names that `:=` assigns in each round of a comprehension, and their state after it.

    Raises FrontendError for those that have a value before, which the rounds would have to pass on.
    """
    first, *others = node.generators
    inside: list[ast.expr] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    inside += [*first.ifs, *(part for generator in others for part in (generator.iter, *generator.ifs))]
    found: dict[str, Unassigned] = {}
    for name, place in changes_inside(inside):
        span = context.span(place)
        if not isinstance(place, ast.NamedExpr):
            method = place.func.attr if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) else ""
            what = "`pop`" if method == "pop" else f"a call that changes `{name}`"
            raise FrontendError(f"{what} in a comprehension is not part of Relay", span, help="write a loop")
        if name in context.cells or isinstance(context.block.environment.lookup(name), Var):
            raise FrontendError(
                f"`{name}` has a value before this comprehension, whose rounds cannot pass a new one on",
                span,
                help="use another name here, or write a loop",
            )
        found[name] = Unassigned(
            f"`{name}` has a value inside of the comprehension only", (Label(span, "assigned here"),), "write a loop"
        )
    return found


def _search(
    context: Context, generators: list[ast.comprehension], condition: ast.expr, label: LoopLabel, decides: bool
) -> None:
    generator, *inner = generators
    span = context.span(generator.iter)
    if generator.is_async:
        raise FrontendError("`async for` is not part of Relay", span, help="write a plain `for`")
    iterable = context.atom(generator.iter)
    variable = Var(generator.target.id if isinstance(generator.target, ast.Name) else "element", None, span)
    round_ = LoopLabel("comprehension")

    def emit_tests(tests: list[ast.expr]) -> None:
        """The rest of the round, if these tests hold."""
        if not tests and inner:
            _search(context, inner, condition, label, decides)
            return
        test = tests[0] if tests else condition
        place = context.span(test)
        kept = context.bind(
            Apply(Static(Intrinsic("keep"), place), (lower_condition(context, test),), (), place), "holds", place
        )
        with context.new_block() as held:
            if tests:
                emit_tests(tests[1:])
            elif decides:
                held.terminator = Exit(label, (bool_constant(True, place),), place)
        with context.new_block() as missed:
            if not tests and not decides:
                missed.terminator = Exit(label, (bool_constant(False, place),), place)
        for block in (held, missed):
            context.block.environment.captured.update(block.environment.captured)
        arm = Arm(Block((), Yield((kept,), place)), held.block(Yield((), place)))
        context.emit((), If((arm,), missed.block(Yield((), place)), place))

    names = target_names(generator.target)
    with context.new_block() as body, _own_names(context, names, set()):
        store(context, generator.target, variable)
        emit_tests(generator.ifs)
        body.terminator = Next(round_, (), span)
    for name, place in body.environment.captured.items():
        if name not in names:
            context.block.environment.captured.setdefault(name, place)
    context.emit((), ForEach(round_, variable, iterable, (), (), body.block(), span))


def _generators(
    context: Context,
    generators: list[ast.comprehension],
    items: Atom,
    element: Callable[[Atom], Expr],
    is_record: bool,
    kept: set[str],
) -> Var:
    """The items after the loops of these generators."""
    generator, *inner = generators
    span = context.span(generator.iter)
    if generator.is_async:
        raise FrontendError("`async for` is not part of Relay", span, help="write a plain `for`")
    iterable = context.atom(generator.iter)
    if is_record:
        iterable = context.bind(Apply(Static(Intrinsic("each"), span), (iterable,), (), span), "elements", span)
    label, parameter = LoopLabel("comprehension"), Var("items", None, span)
    names = target_names(generator.target)

    def rest(sofar: Atom) -> Atom:
        value = _generators(context, inner, sofar, element, is_record, kept) if inner else element(sofar)
        return value if isinstance(value, Atom) else context.bind(value, "items", span)

    with context.new_block() as body, _own_names(context, names, kept):
        target_span = context.span(generator.target)
        name = generator.target.id if isinstance(generator.target, ast.Name) else "element"
        variable = Var(name, None, target_span)
        store(context, generator.target, variable)
        value = _filter_items(context, generator.ifs, parameter, rest)
        body.terminator = Next(label, (value,), span)
    outside = {n: place for n, place in body.environment.captured.items() if n not in names}
    for name, place in outside.items():
        context.block.environment.captured.setdefault(name, place)
    result = Var("items", None, span)
    resized = () if is_record else (0,)
    loop = ForEach(label, variable, iterable, (parameter,), (items,), body.block(), span, resized)
    context.emit((result,), loop)
    return result


def _filter_items(context: Context, tests: list[ast.expr], items: Atom, rest: Callable[[Atom], Atom]) -> Atom:
    """The items after one element, which is left out if a test does not hold."""
    if not tests:
        return rest(items)
    test, *others = tests
    span = context.span(test)
    kept = Apply(Static(Intrinsic("keep"), span), (lower_condition(context, test),), (), span)
    condition = context.bind(kept, "condition", span)
    with context.new_block() as chosen:
        value = _filter_items(context, others, items, rest)
    context.block.environment.captured.update(chosen.environment.captured)
    result = Var("items", None, span)
    arm = Arm(Block((), Yield((condition,), span)), chosen.block(Yield((value,), span)))
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
    """The captures of the functions in an element. They all see the last element, as each variable exists once."""
    names = {name for generator in node.generators for name in target_names(generator.target)}
    held = context.holds.get(value, ()) if isinstance(value, Var) else ()
    for capture in held:
        if capture.owner is context and capture.name in names:
            context.need_early_cell(capture.name, node)
    return held
