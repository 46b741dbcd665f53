"""Mutual tail-call elimination: functions that call each other in tail position become one loop.

    f(p) = {.. g(a) | .. b}        loop (which, p, q) {
    g(q) = {.. f(c) | .. d}            if which == 0 {.. next (1, p, a) | .. exit b}
                                       else {.. next (0, c, q) | .. exit d} }

f and g are then calls of a function with this loop. Parameters of one type share a parameter of the loop, unless they
are of the same function; those that the next function does not have keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from relay.ir.analysis.tail_positions import tail_branch
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Dead,
    Derivative,
    Exit,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    Module,
    Next,
    Var,
    Yield,
)
from relay.ir.rebuild import substitute
from relay.ir.sizes.data_dependent import mentions
from relay.ir.traverse import bodies
from relay.ir.types import INT32, DataType, FunctionType, RefType, TupleType, Type, prune, scalar
from relay.operator import Emitter
from relay.transform.aggregates.flat_types import undef
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.implicit_dims import given_sizes
from relay.transform.core.rebuilding import with_body

TailCall: TypeAlias = Callable[[Block], "tuple[int, Call] | None"]
Replace: TypeAlias = Callable[[Block, Function, LoopLabel, Callable[[Call], "Block | None"]], Block]


def merge_mutual_functions(module: Module, tail_call: TailCall, replace: Replace) -> dict[str, Function | Derivative]:
    """The functions of a module, with those that call each other in tail position merged into one loop. `tail_call`
    finds the call that a block ends with, `replace` puts something else in the place of such calls.
    """
    functions = dict(module.functions)
    calls = {
        name: [c.function.name for c in _tail_calls(f.body, tail_call) if isinstance(c.function, Global)]
        for name, f in functions.items()
        if isinstance(f, Function) and f.rule is None
    }
    calls = {name: [c for c in called if c in calls] for name, called in calls.items()}
    components = [c for c in strong_components(calls) if len(c) > 1]
    if not components:
        return functions
    given = given_sizes(functions, call_graph(module))
    for component in components:
        members = [f for f in (functions[name] for name in component) if isinstance(f, Function)]
        sized = any(given[f.name] or any(mentions((p,)) for p in f.parameters) for f in members)
        slots = _ParameterSlots.allocate(members)
        if not sized and slots is not None:
            functions |= _join(members, slots, replace, functions)
    return functions


def _tail_calls(block: Block, tail_call: TailCall) -> list[Call]:
    found: list[Call] = []
    pending = [block]
    while pending:
        current = pending.pop()
        branch = tail_branch(current)
        if branch is not None:
            pending += bodies(branch)
        else:
            last = tail_call(current)
            found += [] if last is None else [last[1]]
    return found


@attrs.frozen
class _ParameterSlots:
    """The types of the merged loop's parameters, and the parameters that hold each function's."""

    types: list[Type]
    places: dict[str, tuple[int, ...]]

    @staticmethod
    def allocate(members: Sequence[Function]) -> _ParameterSlots | None:
        """The slots of some functions; None if one has no value for a slot that nothing can be made for."""
        types: list[Type] = []
        places: dict[str, tuple[int, ...]] = {}
        for function in members:
            taken: list[int] = []
            for parameter in function.parameters:
                type_ = _type(parameter)
                free = (i for i, t in enumerate(types) if t == type_ and i not in taken)
                place = next(free, len(types))
                if place == len(types):
                    types.append(type_)
                taken.append(place)
            places[function.name] = tuple(taken)
        for own in places.values():
            if any(not _can_be_unset(t) for i, t in enumerate(types) if i not in own):
                return None
        return _ParameterSlots(types, places)


def _type(variable: Var) -> Type:
    assert variable.type is not None
    return prune(variable.type)  # type: ignore[return-value]


def _can_be_unset(type_: Type) -> bool:
    type_ = prune(type_)  # type: ignore[assignment]
    if isinstance(type_, TupleType):
        return all(map(_can_be_unset, type_.items))
    return not isinstance(type_, DataType | RefType | FunctionType)


def _join(
    members: Sequence[Function], slots: _ParameterSlots, replace: Replace, functions: dict[str, Function | Derivative]
) -> dict[str, Function]:
    """The function with the loop, and what the others become."""
    first = members[0]
    name = "_".join(f.name for f in members[:3])
    while name in functions:
        name += "_loop"
    number = {f.name: i for i, f in enumerate(members)}
    label, own = LoopLabel(name), LoopLabel(name)
    which = Var("which", scalar(INT32))
    parameters = tuple(Var("slot", t) for t in slots.types)
    for function in members:
        for place, parameter in zip(slots.places[function.name], function.parameters, strict=True):
            parameters[place].name = parameter.name

    def step(call: Call) -> Block | None:
        assert isinstance(call.function, Global)
        callee = call.function.name
        if callee not in number:
            return None
        values: list[Atom] = list(parameters)
        for place, argument in zip(slots.places[callee], call.arguments, strict=True):
            values[place] = argument
        return Block((), Next(label, (_number(number[callee]), *values), call.span))

    bodies = []
    for function in members:
        places = zip(slots.places[function.name], function.parameters, strict=True)
        body = replace(function.body, function, label, step)
        bodies.append(substitute(body, {p: parameters[i] for i, p in places}))
    arms = []
    for function, body in zip(members[:-1], bodies, strict=False):
        test = Emitter(function.span)
        running = (test.value(which) == number[function.name]).atom
        arms.append(Arm(Block(tuple(test.bindings), Yield((running,))), body))
    choice = Binding((), If(tuple(arms), bodies[-1], first.span))
    initial = tuple(Var(p.name, p.type) for p in (which, *parameters))
    loop = Loop(label, (which, *parameters), initial, Block((choice,), Dead()), None, first.span)
    result = Var("result", first.result)
    block = Block((Binding((result,), loop),), Exit(own, (result,), first.span))
    made = Function(name, initial, block, own, first.result, span=first.span)
    return {name: made, **{f.name: _loop_call(f, made, number[f.name], slots) for f in members}}


def _loop_call(function: Function, made: Function, number: int, slots: _ParameterSlots) -> Function:
    """The function as a call of the one with the loop."""
    parameters = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
    places = dict(zip(slots.places[function.name], parameters, strict=True))
    emitter = Emitter(function.span)
    values = [places[i] if i in places else undef(emitter, t) for i, t in enumerate(slots.types)]
    result = Var("result", function.result)
    call = Call(Global(made.name, made.type), (_number(number), *values), function.span)
    body = Block((*emitter.bindings, Binding((result,), call)), Exit(function.label, (result,), function.span))
    return attrs.evolve(with_body(function, body), parameters=parameters)  # type: ignore[misc]


def _number(number: int) -> Constant:
    return Constant(np.asarray(number, np.int32))
