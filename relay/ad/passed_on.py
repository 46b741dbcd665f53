"""Invariant parameters of recursive functions: passed to the backward version instead of taped.

    f(x, w) { .. f(y, w) .. }          f_backward(tape, seed, so_far.., w)

A parameter is passed on if every call in the recursion gives it a constant or a parameter of the caller that is passed
on itself. The backward version of the caller then has what its calls need, so that a tape holds no tensor once for each
call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from relay.ir.expr import Call, Constant, Function, Global
from relay.ir.traverse import walk
from relay.ir.types import TensorType


def invariant_parameters(name: str, function: Callable[[str], Function], component: Iterable[str]) -> tuple[int, ...]:
    """The positions of the tensors that a function of a recursive component gets unchanged in each of its calls.

    `function` finds the functions of the component by their names.
    """
    members = {n: function(n) for n in component}
    unchanged = {p for f in members.values() for p in f.parameters if isinstance(p.type, TensorType)}
    calls = [
        b.value
        for f in members.values()
        for b in walk(f.body)
        if isinstance(b.value, Call) and isinstance(b.value.function, Global) and b.value.function.name in members
    ]
    changed = True
    while changed:
        changed = False
        for call in calls:
            assert isinstance(call.function, Global)
            for parameter, argument in zip(members[call.function.name].parameters, call.arguments, strict=True):
                if parameter in unchanged and not (isinstance(argument, Constant) or argument in unchanged):
                    unchanged.discard(parameter)
                    changed = True
    return tuple(i for i, p in enumerate(members[name].parameters) if p in unchanged)
