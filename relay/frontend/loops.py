"""Loops: `while` and `for`, `break` and `continue`.

Which variables a loop carries is known before its body is translated, from what it assigns and from what is read later.
"""

from __future__ import annotations

import ast

from relay.errors import FrontendError, InternalError, Label, Span
from relay.frontend.analysis.liveness import bound_at_exits, leaves_by_break
from relay.frontend.analysis.names import Names, assigned_names, is_always_true, read_names, resized_lists
from relay.frontend.assignments import store
from relay.frontend.comprehensions import image, map_or_filter
from relay.frontend.conditions import Conjunction, conjuncts, lower_condition
from relay.frontend.context import UNREAD, Context, Environment, LoopFrame, Unassigned, distinct_captures
from relay.ir.expr import Arm, Atom, Block, Dead, Exit, If, Loop, LoopLabel, Next, Static, Var, Yield
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, ForEach


def lower_while(context: Context, node: ast.While) -> None:
    """`while test: body else: orelse`"""
    live = context.liveness.live_around(node)
    environment = context.block.environment
    everything = assigned_names([node])
    assigned = context.reassigned_names(everything)
    bound = {name for name in assigned if isinstance(environment.lookup(name), Var)}
    wanted = [name for name in assigned if name in live.after]
    if not bound.issuperset(wanted):
        known = bound | bound_at_exits(node, bound)
        wanted = [name for name in wanted if name in known]
    parameters = _parameters(environment, [name for name in assigned if name in bound and name in live.head])
    span = context.file.header(node, node.test)
    resized = resized_lists([node])
    initial = tuple(_initial(context, name, name in resized, span) for name in parameters)
    carried = live.begin | read_names(node.test)
    frame = LoopFrame(LoopLabel("while"), span, parameters, tuple(wanted), everything, carried, _older_cells(context))
    with context.new_block() as body:
        body.environment.states.update(parameters)
        if is_always_true(node.test):
            if node.orelse:
                raise FrontendError("this is never reached", context.span(node.orelse[0]), help="remove the `else`")
            _round(context, frame, node.body)
        else:
            _tested_round(context, frame, node)
    loop = Loop(frame.label, tuple(parameters.values()), initial, body.block(), None, span)
    for name, place in frame.captured.items():
        environment.captured.setdefault(name, place)
    if frame.exits == 0:
        context.emit((), loop)
        context.block.terminator = Dead()
        return
    targets = _parameters(environment, wanted)
    context.emit(tuple(targets.values()), loop)
    _rename_after(context, frame, assigned, targets, live.after, span)


def _round(context: Context, frame: LoopFrame, body: list[ast.stmt]) -> None:
    """The statements of a round, in the current block, then the next round."""
    context.loops.append(frame)
    outer = context.block.environment.parent
    try:
        context.statements(body)
        if context.block.is_open:
            _end_round(context, frame, frame.span)
    finally:
        context.loops.pop()
    _note_captures(frame, context.block.environment, outer)


def _tested_round(context: Context, frame: LoopFrame, node: ast.While) -> None:
    tests = conjuncts(context, node.test)
    if tests is not None:
        ifs = Conjunction(context, tests, lambda: _round(context, frame, node.body))
        context.statements(node.orelse)
        if context.block.is_open:
            _exit(context, frame, frame.span)
        ifs.emit()
        return
    condition = lower_condition(context, node.test)
    span = context.span(node.test)
    with context.new_block() as again:
        _round(context, frame, node.body)
    with context.new_block() as done:
        context.statements(node.orelse)
        if done.is_open:
            _exit(context, frame, frame.span)
    _note_captures(frame, done.environment, context.block.environment.parent)
    arm = Arm(Block((), Yield((condition,), span)), again.block())
    context.emit((), If((arm,), done.block(), frame.span))
    context.block.terminator = Dead()


def lower_for(context: Context, node: ast.For) -> None:
    """`for target in iterable: body else: orelse`"""
    over = map_or_filter(context, node.iter, ("map",))
    function: Atom | None = None
    if over is not None:
        _, function, iterable = over
    else:
        iterable = context.atom(node.iter)
    if node.orelse and leaves_by_break(node.body):
        _lower_for_else(context, node, iterable, function)
    else:
        _lower_rounds(context, node, iterable, function, None)
        context.statements(node.orelse)


def _lower_rounds(
    context: Context, node: ast.For, iterable: Atom, function: Atom | None, left: LoopFrame | None
) -> None:
    """The loop itself. `function`: that of a `map` over the iterable. `left`: the construct that a `break` leaves, if
    it is not the loop."""
    live = context.liveness.live_around(node)
    environment = context.block.environment
    everything = assigned_names([node.target, *node.body])
    assigned = context.reassigned_names(everything)
    read_later = live.head  # `else` may assign what is read after it
    names = [name for name in assigned if name in read_later and isinstance(environment.lookup(name), Var)]
    span = context.file.header(node, node.iter)
    first = [name for name in assigned if left is None and name in live.after & live.head and _is_new(context, name)]
    for name in first:
        made = Apply(Static(Intrinsic("unassigned"), span), (Static(name, span),), (), span)
        environment.states[name] = context.bind(made, name, span)
    names += first
    parameters = _parameters(environment, names)
    context.unsure.update(parameters[name] for name in first)
    lists = resized_lists(node.body)
    resized = tuple(i for i, name in enumerate(parameters) if name in lists and name not in context.cells)
    initial = tuple(_value(environment, name) for name in parameters)
    label = LoopLabel(f"for_{node.target.id}" if isinstance(node.target, ast.Name) else "for")
    frame = LoopFrame(label, span, parameters, tuple(names), everything, live.begin, _older_cells(context), left)
    target_span = context.span(node.target)
    element = Var(node.target.id if isinstance(node.target, ast.Name) else "element", None, target_span)
    with context.new_block() as body:
        body.environment.states.update(parameters)
        value = element
        if function is not None:
            assert isinstance(node.iter, ast.Call)
            value = image(context, function, element, len(node.iter.args) > 2, context.span(node.iter))
        if isinstance(node.target, ast.Name):
            context.rename(node.target.id, value, target_span)
        else:
            store(context, node.target, value)
        _round(context, frame, node.body)
    loop = ForEach(label, element, iterable, tuple(parameters.values()), initial, body.block(), span, resized)
    targets = _parameters(environment, names)
    context.unsure.update(targets[name] for name in names if parameters[name] in context.unsure)
    context.emit(tuple(targets.values()), loop)
    for name, place in frame.captured.items():
        environment.captured.setdefault(name, place)
    _rename_after(context, frame, assigned, targets, read_later, span)


def _is_new(context: Context, name: str) -> bool:
    """True if a loop is the first to assign a name that no other function uses."""
    if name in context.cells or name in context.early or name not in context.locals:
        return False
    return not isinstance(context.block.environment.lookup(name), Var)


def _lower_for_else(context: Context, node: ast.For, iterable: Atom, function: Atom | None) -> None:
    """A loop with `break` and `else`, inside of one that runs once: `break` leaves that one, and so the `else`, too."""
    live = context.liveness.live_around(node)
    environment = context.block.environment
    everything = assigned_names([node.target, *node.body, *node.orelse])
    assigned = context.reassigned_names(everything)
    bound = {name for name in assigned if isinstance(environment.lookup(name), Var)}
    known = bound | bound_at_exits(node, bound)
    wanted = [name for name in assigned if name in live.after and name in known]
    span = context.file.header(node, node.iter)
    left = LoopFrame(LoopLabel("for_else"), span, {}, tuple(wanted), everything, frozenset(), _older_cells(context))
    with context.new_block() as whole:
        _lower_rounds(context, node, iterable, function, left)
        context.statements(node.orelse)
        if whole.is_open:
            _exit(context, left, span)
    for name, place in left.captured.items():
        environment.captured.setdefault(name, place)
    targets = _parameters(environment, wanted)
    context.emit(tuple(targets.values()), Loop(left.label, (), (), whole.block(), None, span))
    if left.exits == 0:
        context.block.terminator = Dead()
        return
    _rename_after(context, left, assigned, targets, live.after, span)


def lower_break(context: Context, node: ast.Break) -> None:
    """Leave the innermost loop."""
    frame = _frame(context, node, "break")
    _exit(context, frame if frame.left is None else frame.left, context.span(node))


def lower_continue(context: Context, node: ast.Continue) -> None:
    """Start the next round of the innermost loop."""
    _end_round(context, _frame(context, node, "continue"), context.span(node))


def _older_cells(context: Context) -> frozenset[str]:
    lookup = context.block.environment.lookup
    return frozenset(name for name in context.cells if isinstance(lookup(name), Var))


def _frame(context: Context, node: ast.stmt, word: str) -> LoopFrame:
    if not context.loops:
        raise FrontendError(f"`{word}` outside of a loop", context.span(node), help="remove it, or write `return`")
    return context.loops[-1]


def _parameters(environment: Environment, names: list[str]) -> dict[str, Var]:
    """New variables for names that go into a loop or come out of it."""
    states = {name: environment.lookup(name) for name in names}
    return {name: Var(name, None, s.span if isinstance(s, Var) else None) for name, s in states.items()}


def _value(environment: Environment, name: str) -> Var:
    state = environment.lookup(name)
    if not isinstance(state, Var):
        raise InternalError(f"`{name}` has no value at the edge of a loop")
    return state


def _end_round(context: Context, frame: LoopFrame, span: Span) -> None:
    """End the block with the next round."""
    environment = context.block.environment
    values: list[Atom] = []
    for name in frame.parameters:
        state = environment.lookup(name)
        if isinstance(state, Unassigned) and state is not UNREAD and name in frame.carried:
            raise FrontendError(state.message, frame.span, labels=state.labels, help=state.help)
        value = _edge_value(frame, environment, name)
        _note_held(context, frame, name, value)
        if name in frame.carried:
            context.outlives(value)
        values.append(value)
    context.block.terminator = Next(frame.label, tuple(values), span)
    _note_captures(frame, environment, None)


def _exit(context: Context, frame: LoopFrame, span: Span) -> None:
    """End the block by leaving the loop."""
    environment = context.block.environment
    values = [_edge_value(frame, environment, name) for name in frame.results]
    for name, value in zip(frame.results, values, strict=True):
        _note_held(context, frame, name, value)
    context.block.terminator = Exit(frame.label, tuple(values), span)
    frame.exits += 1
    _note_captures(frame, environment, None)


def _note_held(context: Context, frame: LoopFrame, name: str, value: Var) -> None:
    if value in context.holds:
        frame.held[name] = distinct_captures((*frame.held.get(name, ()), *context.holds[value]))


def _initial(context: Context, name: str, resized: bool, span: Span) -> Var:
    """The value with which a name enters a `while`; `resized`: the loop may make it a longer or shorter list."""
    value = _value(context.block.environment, name)
    if not resized or name in context.cells:
        return value
    return context.bind(Apply(Static(Intrinsic("growing"), span), (value,), (), span), name, span)


def _edge_value(frame: LoopFrame, environment: Environment, name: str) -> Var:
    """The value of a name where a round ends. One that nobody reads from here on may be anything of its type."""
    state = environment.lookup(name)
    if not isinstance(state, Var) and name in frame.parameters:
        return frame.parameters[name]
    return _value(environment, name)


def _note_captures(frame: LoopFrame, environment: Environment, outer: Environment | None) -> None:
    """Remember what functions have captured on the way to here."""
    inner: Environment | None = environment
    while inner is not None and inner is not outer:
        frame.captured.update(inner.captured)
        inner = inner.parent


def _rename_after(
    context: Context,
    frame: LoopFrame,
    assigned: Names,
    targets: dict[str, Var],
    live: frozenset[str],
    span: Span,
) -> None:
    """Define the meaning of the names that a loop assigns after it."""
    environment = context.block.environment
    for name, target in targets.items():
        if name in frame.held:
            context.holds[target] = frame.held[name]
    for name in assigned:
        if name in targets:
            environment.states[name] = targets[name]
        elif name not in live:
            environment.states[name] = UNREAD
        else:
            environment.states[name] = Unassigned(
                f"`{name}` may have no value here: only the loop assigns it, and the loop may end before that",
                (Label(span, "this loop"),),
                f"give `{name}` a value before the loop",
            )
