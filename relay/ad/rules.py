"""Custom derivative rules: calls of functions with a rule of their own.

    v = f(a..)                                  forward                            backward
    f recomputes                                v = f(a..)                         (v, t) = f_forward(a..)
                                                                                   a' := f_backward(t, v', a'..)
    f has a gradient g                          v = f(a..)                         a' += g((a..), v')
    f has a gradient g and a function s         (v, saved) = s(a..)                a' += g(saved, v')

The arguments are residuals like any others, so that a loop does not store values from outside of it again.

A rule is about the result's cotangent. The contents of references are not arguments: changes that f (or s) makes to
those that it gets are reversed as in any function, as if all else in f were constant. So the forward version of f has a
rule, too, for its first result (`CustomGradient.depth`). A function that recomputes is differentiated as any other if
it has references, since it would find other contents in them later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from relay.ad.cotangents import Cotangent, Cotangents, type_of
from relay.ad.interface import Interface, make_tuple
from relay.ad.scopes import Scope
from relay.ir.derivative import cotangent_type
from relay.ir.expr import (
    Atom,
    Binding,
    Call,
    CustomGradient,
    Function,
    Global,
    MakeTuple,
    OpCall,
    Project,
    Var,
)
from relay.ir.types import BaseType, TensorType, TupleType
from relay.operator import Emitter


class RuleContext(Protocol):
    """The parts of a function's and its module's reversal that the rules need."""

    cotangents: Cotangents
    interface: Interface

    def accumulate(self, scope: Scope, atom: Atom, cotangent: Cotangent) -> None:
        """atom' += cotangent, if anyone needs it."""
        ...

    def effects(self, binding: Binding, seed: Cotangent, scope: Scope) -> list[Binding]:
        """The forward bindings of a call of which only what it does to references is reversed; and what is found there,
        if there is a seed for that."""
        ...


def reverse_custom(
    reversal: RuleContext,
    binding: Binding,
    call: Call,
    rule: CustomGradient,
    seed: Cotangent,
    scope: Scope,
    function: Callable[[str], Function],
) -> list[Binding]:
    """The forward bindings of a call of a function with a custom gradient."""
    emitter, target = scope.emitter, binding.targets[0]
    run = binding
    types = tuple(type_of(a) for a in call.arguments)
    parts: list[Binding] = []
    if rule.forward is None:
        saved = emitter.bind(MakeTuple(call.arguments, call.span), TupleType(types), "saved").atom
    else:
        forward_type = function(rule.forward).type
        assert isinstance(forward_type.result, TupleType)
        both = Var("both", forward_type.result)
        saved = Var("saved", forward_type.result.items[1])
        run = Binding((both,), Call(Global(rule.forward, forward_type), call.arguments, call.span))
        parts = [
            Binding((target,), Project(both, 0, call.span)),
            Binding((saved,), Project(both, 1, call.span)),
        ]
    own, rest = _first_component(seed, rule.depth)
    if own is not None:
        result: Atom = target
        for _ in range(rule.depth):
            type_ = type_of(result)
            assert isinstance(type_, TupleType)
            result = emitter.bind(Project(result, 0, call.span), type_.items[0], "part").atom
        given = reversal.interface.external_cotangent(emitter, type_of(result), own, result)
        backward_type = function(rule.backward).type
        pull = Call(Global(rule.backward, backward_type), (saved, given), call.span)
        found = emitter.bind(pull, backward_type.result, "found").atom
        for position, (argument, type_) in enumerate(zip(call.arguments, types, strict=True)):
            if not reversal.cotangents.exists(type_):
                continue
            part = found
            if len(types) > 1:
                part = emitter.bind(Project(found, position, call.span), cotangent_type(type_), "part").atom
            reversal.accumulate(scope, argument, reversal.interface.internal_cotangent(emitter, type_, part))
    return [*reversal.effects(run, rest, scope), *parts]


def _first_component(seed: Cotangent, depth: int) -> tuple[Cotangent, Cotangent]:
    """The cotangent of a value's first component, or the first one of that, and so on; and that of the rest."""
    if depth == 0:
        return seed, None
    if not isinstance(seed, tuple):
        return None, None
    own, rest = _first_component(seed[0], depth - 1)
    return own, (rest, *seed[1:])


def barrier(emitter: Emitter, atom: Atom, number: int) -> Atom:
    """An argument of what is computed again in the block of the forward part, whose values the optimizer would take."""
    match type_of(atom):
        case TensorType(base) as type_:
            if not isinstance(base, BaseType) or not base.is_float:
                return atom
            call = OpCall("optimization_barrier", (atom,), {"number": number}, emitter.span)
            return emitter.bind(call, type_, "again").atom
        case TupleType(items):
            parts = [emitter.bind(Project(atom, i, emitter.span), t, "part").atom for i, t in enumerate(items)]
            return make_tuple(emitter, [barrier(emitter, p, number) for p in parts])
        case _:
            return atom
