"""The reversal of `If` and `Match`.

    v = if c {e_1} else {e_2}         each arm's backward part starts with the cotangents known outside. The results of
    v = match x {C_k(f..) -> e_k}     the backward choice are what the arms made of cotangents that some arm changed.

The backward part chooses its arm by the first of these that is possible: the condition again, if the arms have no
residuals; the same value again, if only fields of its constructors are needed; the number of the arm, if the residuals
are tensors that an arm can yield with zeros for those of the others; otherwise a tape, with one constructor for each
arm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from relay.ad.conditions import with_conditions
from relay.ad.cotangents import primed_constructor, type_of, zero_tensor
from relay.ad.scopes import Scope, live_bindings, residuals
from relay.ad.sizes import bind_residuals, handed_type, has_any, with_sizes
from relay.ad.tapes import (
    BlockReversal,
    Plan,
    Seeds,
    Tail,
    Tape,
    close,
    make_tape,
    plain_plan,
)
from relay.errors import InternalError
from relay.ir.analysis.tail_positions import leaves
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Construct,
    If,
    Match,
    MatchArm,
    Next,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import substitute, with_bodies
from relay.ir.sizes.data_dependent import mentions
from relay.ir.traverse import bodies
from relay.ir.types import INT32, DataType, StackType, TensorType, scalar
from relay.operator import Emitter


@attrs.define
class _Arm:
    """One arm: its plan, its scope (None if its end is never differentiated), and its backward part once joined."""

    plan: Plan
    scope: Scope | None
    fields: tuple[Var, ...] = ()
    outputs: list[Atom] = attrs.field(factory=list)
    code: list[Binding] = attrs.field(factory=list)
    residuals: list[Var] = attrs.field(factory=list)

    def block(self) -> Block:
        return Block(tuple(self.code), Yield(tuple(self.outputs)))


def reverse_choice(reversal: BlockReversal, binding: Binding, scope: Scope) -> list[Binding]:
    """The forward bindings of an `If` or `Match` whose arms yield; its backward part goes into the scope."""
    expression = binding.value
    assert isinstance(expression, If | Match)
    expression = with_conditions(reversal, expression)
    seeds = Seeds(yields=tuple(scope.take(t) for t in binding.targets))
    if all(s is None for s in seeds.yields) and not reversal.has_effect(binding):
        return [binding]
    arms = [_reverse_arm(reversal, expression, k, scope, seeds) for k in range(len(bodies(expression)))]
    before, expression, tape, emitted = _join(reversal, expression, arms, scope)
    if not emitted and not reversal.has_effect(binding):
        return [binding]

    def arm_end(arm: int) -> Block:
        def leaf(terminator: Terminator, bindings: list[Binding], names: Mapping[Var, Var]) -> Terminator:
            assert isinstance(terminator, Yield)
            if tape is None:
                return terminator
            if isinstance(tape, _ResidualSlots):
                emitter = Emitter(terminator.span)
                handed = tape.values(emitter, arm, names)
                bindings += emitter.bindings
                return Yield((*terminator.values, *handed), terminator.span)
            packed = Var(tape.var.name, tape.var.type)
            made = tape.construct(arm, bindings, names)
            bindings.append(Binding((packed,), made))
            return Yield((*terminator.values, packed), terminator.span)

        return close(arms[arm].plan, leaf)

    targets = binding.targets
    if tape is not None:
        targets = (*targets, *(tape.variables if isinstance(tape, _ResidualSlots) else (tape.var,)))
    return [*before, Binding(targets, with_bodies(expression, [arm_end(k) for k in range(len(arms))]))]


def reverse_tail(
    reversal: BlockReversal, expression: If | Match, scope: Scope, seeds: Seeds
) -> tuple[list[Binding], Tail]:
    """The forward bindings before an `If` or `Match` that ends a loop's body, and the construct's own plan."""
    expression = with_conditions(reversal, expression)
    choices = bodies(expression)
    reached = [seeds.exit is not None or any(isinstance(t, Next) for t in leaves(b)) for b in choices]
    if sum(reached) == 1:
        # Whenever the end of this block is differentiated, this arm was taken: it continues the block.
        only = reached.index(True)
        fields = expression.arms[only].fields if isinstance(expression, Match) else ()
        scope.local.update(fields, _targets(choices[only]))
        plan = reversal.block(choices[only], scope, seeds)
        _close_fields(reversal, expression, only, scope)
        arms = [plan if k == only else plain_plan(b) for k, b in enumerate(choices)]
        return [], Tail(expression, arms, None, [*fields, *plan.available_variables()], plan.sizes())
    parts = [
        _reverse_arm(reversal, expression, k, scope, seeds) if reached[k] else _Arm(plain_plan(b), None)
        for k, b in enumerate(choices)
    ]
    before, expression, tape, _ = _join(reversal, expression, parts, scope, tail=True)
    assert not isinstance(tape, _ResidualSlots)
    return before, Tail(expression, [a.plan for a in parts], tape, [] if tape is None else [tape.var])


def _arm_variables(arm: _Arm) -> list[Var]:
    """The variables that only the code of an arm can use."""
    assert arm.scope is not None
    return [*arm.fields, *arm.plan.available_variables(), *(t for b in arm.scope.emitter.bindings for t in b.targets)]


def _targets(block: Block) -> list[Var]:
    return [t for b in block.bindings for t in b.targets]


def _reverse_arm(reversal: BlockReversal, expression: If | Match, number: int, outer: Scope, seeds: Seeds) -> _Arm:
    body = bodies(expression)[number]
    fields = expression.arms[number].fields if isinstance(expression, Match) else ()
    scope = Scope(reversal.cotangents, [*fields, *_targets(body)], outer)
    plan = reversal.block(body, scope, seeds)
    _close_fields(reversal, expression, number, scope)
    return _Arm(plan, scope, fields)


def _close_fields(reversal: BlockReversal, expression: If | Match, number: int, scope: Scope) -> None:
    """x' += C'(f'..) at the start of an arm."""
    if not isinstance(expression, Match):
        return
    arm = expression.arms[number]
    parts = [scope.take(f) for f in arm.fields]
    if all(p is None for p in parts) or not reversal.is_tracked(expression.value):
        return
    type_ = type_of(expression.value)
    assert isinstance(type_, DataType)
    primed = reversal.cotangents.cotangent_definition(type_.definition)
    scope.emitter.span = expression.span
    items = [
        leaf
        for part, field in zip(parts, arm.fields, strict=True)
        for leaf in reversal.cotangents.dense(scope.emitter, part, type_of(field), field)
    ]
    whole = Construct(primed, primed_constructor(arm.constructor), tuple(items), expression.span)
    reversal.accumulate(scope, expression.value, scope.emitter.bind(whole, DataType(primed), "whole").atom)


def _join(
    reversal: BlockReversal, expression: If | Match, arms: list[_Arm], scope: Scope, tail: bool = False
) -> tuple[list[Binding], If | Match, Tape | _ResidualSlots | None, bool]:
    """Emit the backward choice, if there is anything to do.

    Returns forward bindings to put before the choice, the choice, the tape it packs, and whether anything was emitted.
    """
    cotangents = reversal.cotangents
    reached = [a for a in arms if a.scope is not None]
    changed = {v: None for a in reached if a.scope is not None for v in a.scope.known}
    targets: list[Var] = []
    inside = {v for a in reached if a.scope is not None for v in _arm_variables(a)}
    for var in changed:
        type_ = type_of(var)
        before = cotangents.flatten(scope.current_cotangent(var), type_)
        ends = [
            cotangents.flatten(a.scope.known[var], type_) if a.scope is not None and var in a.scope.known else before
            for a in reached
        ]
        results: list[Atom | None] = []
        for position, leaf_type in enumerate(cotangents.leaves(type_)):
            candidates = [e[position] for e in ends]
            if candidates[0] not in inside and all(c is candidates[0] for c in candidates):
                results.append(candidates[0])
                continue
            target = Var(f"d_{var.name}", leaf_type)
            targets.append(target)
            results.append(target)
            for arm, atom in zip(reached, candidates, strict=True):
                assert arm.scope is not None
                if isinstance(leaf_type, StackType) and before[position] is not None:
                    raise InternalError("a stack is read twice")
                if atom is None:
                    atom = cotangents.zeros(arm.scope.emitter, type_, var)[position]
                arm.outputs.append(atom)
        scope.known[var] = cotangents.unflatten(results, type_)
    for arm in reached:
        assert arm.scope is not None
        arm.code = live_bindings(arm.scope.emitter.bindings, arm.outputs, reversal.is_effect)
        arm.code = with_sizes(arm.code, arm.outputs, arm.plan.sizes())
        arm.residuals = residuals(arm.code, arm.outputs, [*arm.fields, *arm.plan.available_variables()])
    if not targets and not any(a.code for a in reached):
        return [], expression, None, False
    return *_emit(reversal, expression, arms, tuple(targets), scope, tail), True


def _emit(
    reversal: BlockReversal,
    expression: If | Match,
    arms: list[_Arm],
    targets: tuple[Var, ...],
    scope: Scope,
    tail: bool,
) -> tuple[list[Binding], If | Match, Tape | _ResidualSlots | None]:
    scope.emitter.span = expression.span
    if all(a.scope is not None for a in arms):
        if isinstance(expression, If) and len(arms) == 2 and not any(a.residuals for a in arms):
            condition = expression.arms[0].condition
            assert isinstance(condition.terminator, Yield)
            asked = Arm(Block((), condition.terminator), expression.arms[0].body)
            again = Arm(Block((), condition.terminator), arms[0].block())
            scope.emitter.emit(targets, If((again,), arms[1].block(), expression.span))
            return list(condition.bindings), If((asked,), expression.orelse, expression.span), None
        if isinstance(expression, Match) and all(set(a.residuals) <= set(a.fields) for a in arms):
            choices = [
                unpacking(arm.constructor, list(arm.fields), part.block())
                for arm, part in zip(expression.arms, arms, strict=True)
            ]
            scope.emitter.emit(targets, Match(expression.value, tuple(choices), expression.span))
            return [], expression, None
    if not tail and all(a.scope is not None and _can_hand(reversal, scope, a.residuals) for a in arms):
        handed = _ResidualSlots.from_residuals([a.residuals for a in arms])
        blocks = [
            substitute(arm.block(), {v: handed.variables[s] for v, s in slots.items()})
            for arm, slots in zip(arms, handed.slots, strict=True)
        ]
        which = handed.variables[0]
        choices_again = []
        for number, block in enumerate(blocks[:-1]):
            test = Emitter(expression.span)
            asked_for = (test.value(which) == number).atom
            choices_again.append(Arm(Block(tuple(test.bindings), Yield((asked_for,))), block))
        again_expression = If(tuple(choices_again), blocks[-1], expression.span)
        scope.emitter.emit(targets, again_expression)
        return [], expression, handed
    tape = make_tape(reversal.fresh_name("Arms"), [None if a.scope is None else a.residuals for a in arms])
    reversal.define(tape.definition)
    choices = [
        unpacking(constructor, arm.residuals, arm.block())
        for constructor, arm in zip(tape.constructors, arms, strict=True)
        if constructor is not None
    ]
    scope.emitter.emit(targets, Match(tape.var, tuple(choices), expression.span))
    return [], expression, tape


LARGEST = 64
"""The most elements of the residuals of an arm for which the other arms of a choice that is repeated hand out zeros."""


def _can_hand(reversal: BlockReversal, scope: Scope, variables: list[Var]) -> bool:
    """True if an arm can yield its residuals one by one."""
    total = 0
    for var in variables:
        type_ = type_of(var)
        if not isinstance(type_, TensorType) or has_any(type_) or mentions((var,)):
            return False
        total += math.prod(type_.dims) if all(isinstance(d, int) for d in type_.shape) else LARGEST + 1
    return total <= LARGEST or not (reversal.repeated or scope.in_loop)


@attrs.define
class _ResidualSlots:
    """The residuals of the arms of a choice as further results of it: first the arm's number, then the slots, which
    arms share. `slots` are those of each arm's residuals."""

    variables: list[Var]
    slots: list[dict[Var, int]]

    @staticmethod
    def from_residuals(residuals: list[list[Var]]) -> _ResidualSlots:
        """The slots for these residuals."""
        variables = [Var("arm", scalar(INT32))]
        slots: list[dict[Var, int]] = []
        for own in residuals:
            taken: dict[Var, int] = {}
            for var in own:
                free = (i for i, v in enumerate(variables) if i and i not in taken.values() and v.type == var.type)
                position = next(free, len(variables))
                if position == len(variables):
                    variables.append(Var(var.name, type_of(var), var.span))
                taken[var] = position
            slots.append(taken)
        return _ResidualSlots(variables, slots)

    def values(self, emitter: Emitter, arm: int, names: Mapping[Var, Var]) -> list[Atom]:
        """The values that an arm yields."""
        own = {position: var for var, position in self.slots[arm].items()}
        values: list[Atom] = [Constant(np.asarray(arm, np.int32), emitter.span)]
        for position, variable in enumerate(self.variables[1:], 1):
            if position in own:
                values.append(names.get(own[position], own[position]))
            else:
                values.append(zero_tensor(emitter, type_of(variable)))
        return values


def unpacking(constructor: str, fields: list[Var], block: Block) -> MatchArm:
    """An arm that gives the block fresh variables for its residuals."""
    fresh = {v: Var(v.name, v.type, v.span) for v in fields}
    handed = {v: v if not mentions((v,)) else Var(v.name, handed_type(type_of(v)), v.span) for v in fresh.values()}
    sized = {v: h for v, h in handed.items() if v is not h}
    return MatchArm(constructor, tuple(handed.values()), bind_residuals(substitute(block, fresh), sized))
