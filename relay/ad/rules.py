"""Calls of functions that say themselves how they are differentiated.

    v = f(a..)                                  forward                            backward
    f recomputes                                v = f(a..)                         (v, t) = f_forward(a..)
                                                                                   a' := f_backward(t, v', a'..)
    f has a gradient g                          v = f(a..)                         a' += g((a..), v')
    f has a gradient g and a function s         (v, saved) = s(a..)                a' += g(saved, v')

The arguments are residuals like any others, so that a loop does not store again what comes from outside of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from relay.ad.cotangents import Cotangent, Cotangents, type_of
from relay.ad.interface import Interface, packed
from relay.ad.scopes import Scope
from relay.errors import DifferentiationError
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


class Ruled(Protocol):
    """What the rules need from the reversal of a function and its module."""

    cotangents: Cotangents
    interface: Interface

    def accumulate(self, scope: Scope, atom: Atom, cotangent: Cotangent) -> None:
        """atom' += cotangent, if anyone needs it."""
        ...


def reverse_custom(
    reversal: Ruled,
    binding: Binding,
    call: Call,
    rule: CustomGradient,
    seed: Cotangent,
    scope: Scope,
    function: Callable[[str], Function],
) -> list[Binding]:
    """The forward bindings of a call of a function with a gradient of its own."""
    emitter, target = scope.emitter, binding.targets[0]
    forward = [binding]
    types = tuple(type_of(a) for a in call.arguments)
    if rule.forward is None:
        saved = emitter.bind(MakeTuple(call.arguments, call.span), TupleType(types), "saved").atom
    else:
        forward_type = function(rule.forward).type
        assert isinstance(forward_type.result, TupleType)
        both = Var("both", forward_type.result)
        saved = Var("saved", forward_type.result.items[1])
        forward = [
            Binding((both,), Call(Global(rule.forward, forward_type), call.arguments, call.span)),
            Binding((target,), Project(both, 0, call.span)),
            Binding((saved,), Project(both, 1, call.span)),
        ]
    given = reversal.interface.outward(emitter, type_of(target), seed, target)
    backward_type = function(rule.backward).type
    pull = Call(Global(rule.backward, backward_type), (saved, given), call.span)
    found = emitter.bind(pull, backward_type.result, "found").atom
    for position, (argument, type_) in enumerate(zip(call.arguments, types, strict=True)):
        if not reversal.cotangents.exists(type_):
            continue
        part = found
        if len(types) > 1:
            part = emitter.bind(Project(found, position, call.span), cotangent_type(type_), "part").atom
        reversal.accumulate(scope, argument, reversal.interface.inward(emitter, type_, part))
    return forward


def barrier(emitter: Emitter, atom: Atom, number: int) -> Atom:
    """An argument of what is computed again in the block of the forward part, whose values the optimiser would take."""
    match type_of(atom):
        case TensorType(base) as type_:
            if not isinstance(base, BaseType) or not base.is_float:
                return atom
            call = OpCall("recomputed", (atom,), {"number": number}, emitter.span)
            return emitter.bind(call, type_, "again").atom
        case TupleType(items):
            parts = [emitter.bind(Project(atom, i, emitter.span), t, "part").atom for i, t in enumerate(items)]
            return packed(emitter, [barrier(emitter, p, number) for p in parts])
        case _:
            return atom


def refuse_references(call: Call, kind: str) -> DifferentiationError:
    """The error for a function with a rule that is given references, or returns them."""
    return DifferentiationError(
        f"{kind} is called with references that take part in the derivative",
        call.span,
        help="two of them may be the same, or they hold others: pass and return the values themselves",
    )
