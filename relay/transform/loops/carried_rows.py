"""Loops in other forms, which the same rounds have, for loop vectorization.

Rows that a loop carries in whole arrays, each round of which changes one row, the same in all rounds:

    loop (a = b) { r = index(a, i); s = index_update(r, j, y); c = index_update(a, i, s); next c }

    loop (r = index(b, i)) { s = index_update(r, j, y); next s };  a = index_update(b, i, r)

Loops around loops, of which the inner one has the independent rounds:

    loop i { loop j { a[j] = f(a[j], i) } }             loop j { loop i { a[j] = f(a[j], i) } }

Rounds that end in several places:

    if c { next a } else { next b }                     x = if c { yield a } else { yield b }; next x
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.ir.dims import ANY, add
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Dead,
    Expr,
    If,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    Var,
    Yield,
)
from relay.ir.rebuild import substitute
from relay.ir.traverse import free_variables, operands
from relay.ir.types import TensorType
from relay.operator import Emitter
from relay.transform.analysis.loop_analysis import bound_in
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.loops.invariants import without_invariants

# ---- rows


@attrs.frozen(eq=False)
class CarriedRows:
    """A loop that carries rows, with its results, and what stands before and after it."""

    loop: Loop
    rows: list[Var]
    before: list[Binding]
    after: list[Binding]


def with_carried_rows(loop: Loop, targets: Sequence[Var], integers: ValueRanges) -> CarriedRows | None:
    """A loop each round of which changes one row of a whole array, the same in all rounds, as one that carries this
    row; None where it is not such a loop. It has to have a round."""
    if not isinstance(loop.body.terminator, Next):
        return None
    inside = bound_in(loop)
    before = Emitter(loop.span)
    parameters, initial, passed = list(loop.parameters), list(loop.initial), list(loop.body.terminator.values)
    bindings = _with_updates_after_branches(loop.body.bindings, integers)
    indices: dict[int, Atom] = {}
    for number, parameter in enumerate(loop.parameters):
        found = _carried_row(bindings, parameter, passed[number], inside)
        if found is None:
            continue
        index, row, read, update = found
        bindings = [b for b in bindings if b is not read and b is not update]
        parameters[number], passed[number] = row, update.value.arguments[2]  # type: ignore[union-attr]
        start = before.value(loop.initial[number])
        initial[number] = start.op("index", before.value(index)).atom
        indices[number] = index
    if not indices:
        return None
    end = Next(loop.label, tuple(passed), loop.body.terminator.span)
    carried = Loop(loop.label, tuple(parameters), tuple(initial), Block(tuple(bindings), end), loop.counter, loop.span)
    rows, after = list(targets), []
    for number, index in indices.items():
        rows[number] = Var(parameters[number].name, parameters[number].type, loop.span)
        written = OpCall("index_update", (loop.initial[number], index, rows[number]), {}, loop.span)
        after.append(Binding((targets[number],), written))
    return CarriedRows(carried, rows, before.bindings, after)


def _with_updates_after_branches(bindings: Sequence[Binding], integers: ValueRanges) -> list[Binding]:
    """The bindings of a round where an array is written at the same place after a branch, which its arms either do or
    leave it as it is.

    b = if c { yield index_update(a, i, x) } else { yield a }

    r = index(a, i);  s = if c { yield x } else { yield r };  b = index_update(a, i, s)
    """
    made: list[Binding] = []
    for binding in bindings:
        changed = _update_after_branch(binding, integers) if isinstance(binding.value, If) else None
        made += [binding] if changed is None else changed
    return made


def _update_after_branch(binding: Binding, integers: ValueRanges) -> list[Binding] | None:
    branch = binding.value
    if not isinstance(branch, If) or len(binding.targets) != 1:
        return None
    bodies = [*(arm.body for arm in branch.arms), branch.orelse]
    ends = [body.terminator.values[0] for body in bodies if isinstance(body.terminator, Yield)]
    array = next((a for a, body in zip(ends, bodies, strict=False) if not body.bindings), None)
    if not isinstance(array, Var) or len(ends) < len(bodies):
        return None
    updates = [_update_of(array, body, end) for body, end in zip(bodies, ends, strict=True)]
    places = {u.value.arguments[1] for u in updates if u is not None}  # type: ignore[union-attr]
    if len(places) != 1 or any(u is None and end is not array for u, end in zip(updates, ends, strict=True)):
        return None
    (place,) = places
    if any(place in b.targets for body in bodies for b in body.bindings) or not _is_there(array, place, integers):
        return None
    out = Emitter(branch.span)
    row = out.value(array).op("index", out.value(place))
    changed = [_with_row(body, array, place, row.atom, update) for body, update in zip(bodies, updates, strict=True)]
    if any(body is None for body in changed):
        return None
    found = [body for body in changed if body is not None]
    arms = tuple(Arm(arm.condition, body) for arm, body in zip(branch.arms, found[:-1], strict=True))
    chosen = Var("row", row.type, branch.span)
    written = OpCall("index_update", (array, place, chosen), {}, branch.span)
    return [*out.bindings, Binding((chosen,), If(arms, found[-1], branch.span)), Binding(binding.targets, written)]


def _update_of(array: Var, body: Block, end: Atom) -> Binding | None:
    """The binding that makes what an arm yields, if it writes a row of an array."""
    found = next((b for b in body.bindings if end in b.targets), None)
    call = None if found is None else found.value
    return (
        found if isinstance(call, OpCall) and call.operator == "index_update" and call.arguments[0] is array else None
    )


def _is_there(array: Var, place: Atom, integers: ValueRanges) -> bool:
    dim = integers.scalar_dim(place)
    extent = array.type.shape[0] if isinstance(array.type, TensorType) and array.type.shape else ANY
    if dim is None or extent is ANY:
        return False
    return integers.at_least(dim, 0) is True and integers.at_least(extent, add(dim, 1)) is True


def _with_row(body: Block, array: Var, place: Atom, row: Atom, update: Binding | None) -> Block | None:
    """An arm that yields the row of an array; None if it uses the array otherwise."""
    reads = {
        b.targets[0]: row
        for b in body.bindings
        if isinstance(b.value, OpCall) and b.value.operator == "index" and b.value.arguments == (array, place)
    }
    kept = tuple(b for b in body.bindings if b is not update and reads.keys().isdisjoint(b.targets))
    new = row if update is None else update.value.arguments[2]  # type: ignore[union-attr]
    made = substitute(Block(kept, Yield((new,))), reads)
    return None if array in free_variables(made) else made


def _carried_row(
    bindings: Sequence[Binding], parameter: Var, passed: Atom, inside: set[Var]
) -> tuple[Atom, Var, Binding, Binding] | None:
    """The index of the only row that a loop's round reads and changes, the variable and the binding that reads it, and
    the binding that writes it."""
    read = update = None
    for binding in bindings:
        value = binding.value
        if isinstance(value, OpCall) and value.operator == "index" and value.arguments[0] is parameter:
            if read is not None:
                return None
            read = binding
        elif isinstance(value, OpCall) and value.operator == "index_update" and value.arguments[0] is parameter:
            if update is not None or binding.targets[0] is not passed:
                return None
            update = binding
        elif parameter in _mentioned_variables(binding):
            return None
    if read is None or update is None:
        return None
    index = read.value.arguments[1]  # type: ignore[union-attr]
    same = update.value.arguments[1]  # type: ignore[union-attr]
    if not (index is same or _same_constant(index, same)) or (isinstance(index, Var) and index in inside):
        return None
    if any(update.targets[0] in _mentioned_variables(b) for b in bindings):
        return None
    return index, read.targets[0], read, update


def _mentioned_variables(binding: Binding) -> Mapping[Var, None]:
    return free_variables(Block((binding,), Yield(())))


def _same_constant(a: Atom, b: Atom) -> bool:
    return isinstance(a, Constant) and isinstance(b, Constant) and a.value.ndim == 0 and bool(a.value == b.value)


# ---- loops around loops


def exchanged_loops(loop: Expr) -> Loop | None:
    """A loop whose rounds are those of one loop, as that loop around it; None where they are not, or depend on
    each other's number. It is for loops whose outer rounds are independent then: each keeps the order of its own."""
    if not isinstance(loop, Loop) or loop.counter is None or not isinstance(loop.body.terminator, Next):
        return None
    if not loop.body.bindings:
        return None
    *before, last = loop.body.bindings
    inner, end = last.value, loop.body.terminator
    if not isinstance(inner, Loop) or inner.counter is None or not isinstance(inner.body.terminator, Next):
        return None
    if inner.initial != loop.parameters or end.values != last.targets:
        return None
    if not all(isinstance(b.value, OpCall) for b in before) or {*operands_of(before)} & {*loop.parameters}:
        return None
    if inner.counter.count in bound_in(loop):
        return None
    labels = LoopLabel(inner.label.name), LoopLabel(loop.label.name)
    body = Block((*before, *inner.body.bindings), Next(labels[1], inner.body.terminator.values))
    carried = tuple(Var(p.name, p.type, p.span) for p in loop.parameters)
    results = tuple(Var(t.name, t.type, t.span) for t in last.targets)
    same, rounds = without_invariants(Loop(labels[1], inner.parameters, carried, body, loop.counter, loop.span))
    around = Block((*same, Binding(results, rounds)), Next(labels[0], results))
    return Loop(labels[0], carried, loop.initial, around, inner.counter, inner.span)


def operands_of(bindings: Sequence[Binding]) -> list[Atom]:
    """The operands of some bindings."""
    return [a for b in bindings for a in operands(b.value)]


# ---- ends


def with_one_end(loop: Loop) -> Loop:
    """A loop whose rounds end in one place, where they end in branches at the end of its body."""
    body = _with_one_end(loop.body, loop)
    return loop if body is None or body is loop.body else _with_end(loop, body)


def _with_end(loop: Loop, body: Block) -> Loop:
    assert isinstance(body.terminator, Yield)
    block = Block(body.bindings, Next(loop.label, body.terminator.values, body.terminator.span))
    return Loop(loop.label, loop.parameters, loop.initial, block, loop.counter, loop.span)


def _with_one_end(block: Block, loop: Loop) -> Block | None:
    """A block that yields what the next round begins with; None where it does something else."""
    match block.terminator:
        case Next(label, values, span) if label is loop.label:
            return block if block is loop.body else Block(block.bindings, Yield(values, span))
        case Dead() if block.bindings and isinstance(block.bindings[-1].value, If):
            last = block.bindings[-1]
            branch = block.bindings[-1].value
            bodies = [_with_one_end(body, loop) for body in (*(arm.body for arm in branch.arms), branch.orelse)]
            if last.targets or any(body is None for body in bodies):
                return None
            found = [body for body in bodies if body is not None]
            arms = tuple(Arm(arm.condition, body) for arm, body in zip(branch.arms, found[:-1], strict=True))
            results = tuple(Var(p.name, p.type, p.span) for p in loop.parameters)
            joined = Binding(results, If(arms, found[-1], branch.span))
            return Block((*block.bindings[:-1], joined), Yield(results))
        case _:
            return None
