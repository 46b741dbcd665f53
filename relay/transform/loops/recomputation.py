"""Recomputation of rounds: the derivative of a loop that runs in lanes runs in lanes, too.

    loop for i < n (out = ..) { x = index(xs, i); y = loop .. {..}; out' = index_update(out, i, y); next out' }

    loop for i < n (out = ..) { x = index(xs, i); y = round(x); out' = index_update(out, i, y); next out' }
    fn round(x) recompute { y = loop .. {..}; y }

Tapes of all rounds would be stacks of stacks. The backward part of a function that recomputes has the tape of one round
only, which is as long as its loops run, and in lanes stays near the processor.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    Loop,
    LoopLabel,
    MakeTuple,
    Module,
    Next,
    OpCall,
    Project,
    Recompute,
    Var,
)
from relay.ir.rebuild import map_blocks, rebind, rebuild_block, substitute
from relay.ir.traverse import blocks, free_variables, operands
from relay.ir.types import TupleType, Type
from relay.operator import lookup
from relay.operator.facets import IndexKind
from relay.transform.analysis.lanes import BATCHED, MOST_ELEMENTS, LaneLoop, NoLanes, lane_loop, prefers_lanes
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.module_pass import pass_about

_ROUND = "round"
"""The name of these functions' labels."""


@pass_about(Derivative)
def recompute_rounds(module: Module) -> Module:
    """The module with functions that recompute for the rounds of loops that run in lanes, if there is a derivative to
    be made of it."""
    functions = dict(module.functions)
    for name, function in module.functions.items():
        if isinstance(function, Function):
            rounds = _Rounds(function, functions)
            functions[name] = with_body(function, rounds.block(function.body))
    return with_functions(module, functions)


def is_round(function: Function) -> bool:
    """True if a function is the round of a loop that runs in lanes."""
    return isinstance(function.rule, Recompute) and function.label.name == _ROUND


class _Rounds:
    """The loops of one function. New functions go to `functions`."""

    def __init__(self, function: Function, functions: dict[str, Function | Derivative]) -> None:
        self.function, self.functions = function, functions
        self.ranges = ValueRanges(function.body)

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value: Expr = binding.value
            made = self._loop(value) if isinstance(value, Loop) else None
            bindings.append(rebind(binding, map_blocks(value, self.block) if made is None else made))
        return rebuild_block(block, bindings, block.terminator)

    def _loop(self, loop: Loop) -> Loop | None:
        """A loop that calls a function in each round; None if it does not run in lanes."""
        if loop.counter is not None and (loop.counter.axis or loop.counter.divergence in BATCHED):
            return None
        try:
            plan = lane_loop(loop, self.ranges)
        except NoLanes:
            return None
        parts = _split(plan) if prefers_lanes(plan) else None
        if parts is None:
            return None
        before, inner, after = parts
        if not _has_small_tapes(inner):
            return None  # the backward part would not run in lanes, and compute everything twice
        bound = {t for b in inner for t in b.targets}
        end = loop.body.terminator
        assert isinstance(end, Next)
        used = [a for b in after for a in operands(b.value)] + list(end.values)
        results = list(dict.fromkeys(a for a in used if isinstance(a, Var) and a in bound))
        call, parts_ = self._function(loop, inner, results)
        body = Block((*before, call, *parts_, *after), end)
        return Loop(loop.label, loop.parameters, loop.initial, body, loop.counter, loop.span)

    def _function(self, loop: Loop, inner: Sequence[Binding], results: Sequence[Var]) -> tuple[Binding, list[Binding]]:
        """The call of a new function for bindings, and what takes its results apart."""
        span = loop.span
        label = LoopLabel(_ROUND)
        whole: Atom = results[0]
        type_ = results[0].type
        ending: list[Binding] = []
        if len(results) > 1:
            types: list[Type] = []
            for result in results:
                assert result.type is not None
                types.append(result.type)
            type_ = TupleType(tuple(types))
            whole = Var("results", type_, span)
            ending = [Binding((whole,), MakeTuple(tuple(results), span))]
        body = Block((*inner, *ending), Exit(label, (whole,), span))
        given = tuple(free_variables(body))
        fresh = {v: Var(v.name, v.type, v.span) for v in given}
        # What the loop goes on with has new names, since variables are bound once.
        copies = {r: Var(r.name, r.type, r.span) for r in results}
        body = substitute(_with_names(body, copies), {**fresh, **copies})
        name, number = f"{self.function.name}_round", 1
        while name in self.functions:
            number += 1
            name = f"{self.function.name}_round{number}"
        made = Function(name, tuple(fresh.values()), body, label, type_, span=span, rule=Recompute())
        self.functions[name] = made
        call = Call(Global(name, made.type), given, span)
        if len(results) == 1:
            return Binding((results[0],), call), []
        both = Var("results", type_, span)
        return Binding((both,), call), [Binding((r,), Project(both, n, span)) for n, r in enumerate(results)]


def _has_small_tapes(bindings: Sequence[Binding]) -> bool:
    """True if the tapes of loops inside loops fit in lanes: that of a counted loop is an array in the other's tape."""
    pending = [(b.value, False) for b in bindings]
    while pending:
        value, is_inside = pending.pop()
        if isinstance(value, Loop):
            if is_inside and value.counter is not None:
                count = value.counter.count
                if not isinstance(count, Constant) or int(count.value) > MOST_ELEMENTS:
                    return False
            is_inside = True
        pending += [(b.value, is_inside) for block in blocks(value) for b in block.bindings]
    return True


def _with_names(block: Block, names: dict[Var, Var]) -> Block:
    """A block whose own bindings give other names to some variables."""
    bindings = tuple(Binding(tuple(names.get(t, t) for t in b.targets), b.value) for b in block.bindings)
    return Block(bindings, block.terminator)


def _split(plan: LaneLoop) -> tuple[list[Binding], list[Binding], list[Binding]] | None:
    """The bindings of a round: what reads rows, what computes, and what writes rows; None if these alternate."""
    loop = plan.loop
    bindings = loop.body.bindings
    made = {t: b for b in bindings for t in b.targets}
    end = loop.body.terminator
    arrays: set[Atom] = {loop.parameters[n] for n in plan.arrays}
    sums = {end.values[n] for n in plan.sums}  # type: ignore[union-attr]
    before: set[Binding] = set()
    after: set[Binding] = set()
    written: set[Atom] = set()
    for binding in bindings:
        value, target = binding.value, binding.targets[0] if binding.targets else None
        if isinstance(value, OpCall) and value.arguments and lookup(value.operator).indexing.kind is IndexKind.ROW:
            if value.arguments[0] in written:
                return None
            if target in plan.reads or value.arguments[0] in arrays:
                before.add(binding)
        elif isinstance(value, OpCall) and value.arguments and value.arguments[0] in arrays | written:
            written.add(binding.targets[0])
            after.add(binding)
        elif target is not None and target in sums:
            after.add(binding)
    pending = [a for b in before for a in operands(b.value)]
    while pending:
        atom = pending.pop()
        binding_ = made.get(atom) if isinstance(atom, Var) else None
        if binding_ is None or binding_ in before:
            continue
        if binding_ in after or blocks(binding_.value):
            return None
        before.add(binding_)
        pending += operands(binding_.value)
    inner = [b for b in bindings if b not in before and b not in after]
    if not any(isinstance(b.value, Loop) or blocks(b.value) for b in inner):
        return None
    return [b for b in bindings if b in before], inner, [b for b in bindings if b in after]
