"""Dead code elimination: removal of unused bindings, targets and loop parameters, and of unreachable functions.

What is needed is the least set with

    the values that a function returns, and all operands of effects (assert, write, effectful calls), are needed
    v = e                           v needs the operands of e
    targets = if/match/loop         a target needs its value at every yield or exit, and the construct itself
    loop parameter                  needs its initial value and its value at every next
    a construct                     needs its conditions, count or matched value, and the construct around it
    effect, or a leaf that leaves a needed construct        needs the construct around it

found by one walk over the graph of these needs, so that it is linear also for nested loops.
"""

from __future__ import annotations

from typing import TypeAlias

from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    BindDim,
    Binding,
    Block,
    Call,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    Next,
    Print,
    RefWrite,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import rebuild_block
from relay.ir.traverse import operands
from relay.transform.analysis.effects import effectful
from relay.transform.analysis.graph import call_graph, reachable_functions
from relay.transform.core.rebuilding import map_bodies, select, with_functions
from relay.transform.module_pass import module_pass

_Construct: TypeAlias = If | Match | Loop
Need: TypeAlias = Atom | _Construct | Call | None  # None: what is outside of every construct


@module_pass
def eliminate_dead_code(module: Module) -> Module:
    """The module without what does not contribute to its results and effects."""
    module = drop_unreachable(module)
    effects = effectful(module)

    def change(function: Function) -> Block:
        needs = Needs(effects)
        needs.block(function.body, None, ())
        return Sweep(needs, function.label).block(function.body, ())

    return drop_unreachable(map_bodies(module, change))


def drop_unreachable(module: Module) -> Module:
    """The module with only those functions that its entry leads to."""
    kept = reachable_functions(module, call_graph(module))
    if len(kept) == len(module.functions):
        return module
    return with_functions(module, {name: f for name, f in module.functions.items() if name in kept})


class Needs:
    """The graph of needs of one function."""

    def __init__(self, effects: frozenset[str]) -> None:
        self.effects = effects
        self.edges: dict[Need, list[Need]] = {}
        self.loops: dict[LoopLabel, tuple[Loop, tuple[Var, ...]]] = {}
        self._found: set[Need] | None = None

    def is_effect(self, value: Expr) -> bool:
        """True if an expression has to stay even if its result is not needed."""
        match value:
            case RefWrite() | Assert() | Print() | BindDim():
                return True
            case Call(Global(name)):
                return name in self.effects
            case _:
                return False

    def needs(self, who: Need, *what: Need) -> None:
        self.edges.setdefault(who, []).extend(what)

    def reachable_needs(self) -> set[Need]:
        """Everything needed."""
        if self._found is None:
            self._found = {None}
            pending: list[Need] = [None]
            while pending:
                for need in self.edges.get(pending.pop(), ()):
                    if need not in self._found:
                        self._found.add(need)
                        pending.append(need)
        return self._found

    def block(self, block: Block, owner: _Construct | None, targets: tuple[Var, ...]) -> None:
        """Add the needs in a block of `owner`, whose yields go to `targets`."""
        for binding in block.bindings:
            self.binding(binding, owner)
        match block.terminator:
            case Yield(values):
                for target, value in zip(targets, values, strict=True):
                    self.needs(target, value)
            case Exit(label, values):
                if label not in self.loops:
                    self.needs(None, owner, *values)
                    return
                loop, results = self.loops[label]
                self.needs(loop, owner)
                for target, value in zip(results, values, strict=True):
                    self.needs(target, value)
                if loop.counter is not None:
                    for parameter, value in zip(loop.parameters, values, strict=True):
                        self.needs(parameter, value)
            case Next(label, values):
                loop, _ = self.loops[label]
                self.needs(loop, owner)
                for parameter, value in zip(loop.parameters, values, strict=True):
                    self.needs(parameter, value)

    def binding(self, binding: Binding, owner: _Construct | None) -> None:
        value, targets = binding.value, binding.targets
        match value:
            case If(arms, orelse):
                self._construct(value, owner, targets)
                for arm in arms:
                    self._condition(arm.condition, value)
                    self.block(arm.body, value, targets)
                self.block(orelse, value, targets)
            case Match(scrutinee, match_arms):
                self._construct(value, owner, targets)
                self.needs(value, scrutinee)
                for match_arm in match_arms:
                    for field in match_arm.fields:
                        self.needs(field, value)
                    self.block(match_arm.body, value, targets)
            case Loop(label, parameters, initial, body, counter):
                self._construct(value, owner, targets)
                self.loops[label] = (value, targets)
                for parameter, start in zip(parameters, initial, strict=True):
                    self.needs(parameter, start, value)
                if counter is not None:
                    self.needs(value, counter.count)
                    self.needs(counter.index, value)
                    for target, parameter in zip(targets, parameters, strict=True):
                        self.needs(target, parameter)
                self.block(body, value, ())
            case _:
                if self.is_effect(value):
                    self.needs(None, owner, *operands(value))
                for target in targets:
                    self.needs(target, *operands(value))

    def _construct(self, value: _Construct, owner: _Construct | None, targets: tuple[Var, ...]) -> None:
        self.needs(value, owner)
        for target in targets:
            self.needs(target, value)

    def _condition(self, condition: Block, owner: If) -> None:
        for binding in condition.bindings:
            self.binding(binding, owner)
        if isinstance(condition.terminator, Yield):
            self.needs(owner, *condition.terminator.values)


class Sweep:
    """Rebuilds one function with what is needed."""

    def __init__(self, needs: Needs, label: LoopLabel, needed: set[Need] | None = None) -> None:
        self.graph = needs
        self.needed = needs.reachable_needs() if needed is None else needed
        self.label = label

    def _keep(self, variables: tuple[Var, ...]) -> tuple[bool, ...]:
        return tuple(v in self.needed for v in variables)

    def block(self, block: Block, kept: tuple[bool, ...]) -> Block:
        """The block with what is needed of its bindings, and of the values that it yields those in `kept`."""
        bindings: list[Binding] = []
        for binding in block.bindings:
            made = self.binding(binding)
            if made is not None:
                bindings.append(made)
        return rebuild_block(block, bindings, self.terminator(block.terminator, kept))

    def terminator(self, terminator: Terminator, kept: tuple[bool, ...]) -> Terminator:
        match terminator:
            case Yield(values, span):
                return terminator if all(kept) else Yield(select(values, kept), span)
            case Exit(label, values, span):
                return terminator if label is self.label else Exit(label, select(values, self._results(label)), span)
            case Next(label, values, span):
                return Next(label, select(values, self._keep(self.graph.loops[label][0].parameters)), span)
            case _:
                return terminator

    def _results(self, label: LoopLabel) -> tuple[bool, ...]:
        loop, targets = self.graph.loops[label]
        return self._keep(targets if loop.counter is None else loop.parameters)

    def binding(self, binding: Binding) -> Binding | None:
        value, targets = binding.value, binding.targets
        kept = self._keep(targets)
        match value:
            case If(arms, orelse, span):
                if value not in self.needed:
                    return None
                new_arms = tuple(Arm(self.block(a.condition, (True,)), self.block(a.body, kept)) for a in arms)
                return Binding(select(targets, kept), If(new_arms, self.block(orelse, kept), span))
            case Match(scrutinee, match_arms, span):
                if value not in self.needed:
                    return None
                new_match_arms = tuple(MatchArm(a.constructor, a.fields, self.block(a.body, kept)) for a in match_arms)
                return Binding(select(targets, kept), Match(scrutinee, new_match_arms, span))
            case Loop(label, parameters, initial, body, counter, span):
                if value not in self.needed:
                    return None
                carried = self._keep(parameters)
                made = Loop(
                    label,
                    select(parameters, carried),
                    select(initial, carried),
                    self.block(body, ()),
                    counter,
                    span,
                )
                return Binding(select(targets, self._results(label)), made)
            case _:
                return binding if any(kept) or self.graph.is_effect(value) else None
