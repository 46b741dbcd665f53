"""Lifting of recomputed functions that use references of their callers.

What such a function does to a reference must happen once. So its calls hand over what the references hold, and get back
what they are to hold afterwards:

    v = f(r, a..)        c = read r; (v, c') = f_again(c, a..); write r c'
    f_again(c, a..)      r = ref c; v = f(r, a..); (v, read r)

That is the same only where no two of the references are one. They are not if they are of different types, or if the
caller has made each of them itself.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from relay.ad.cotangents import type_of
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Exit,
    Function,
    Global,
    LoopLabel,
    MakeTuple,
    Module,
    Project,
    Recompute,
    RefNew,
    RefRead,
    RefWrite,
    Var,
)
from relay.ir.rebuild import map_blocks
from relay.ir.traverse import walk
from relay.ir.types import DataType, FunctionType, RefType, StackType, TupleType, Type


def lift_references(module: Module) -> Module:
    """The module in which functions that are computed again get and return what references hold, where that is
    possible."""
    taken: dict[str, Function | Derivative] = dict(module.functions)
    lifted: dict[str, Global] = {}
    for name, function in module.functions.items():
        if isinstance(function, Function) and isinstance(function.rule, Recompute) and _is_liftable(module, function):
            again = f"{name}_again"
            while again in taken:
                again += "_"
            taken[again] = made = _recomputed_copy(again, function)
            taken[name] = attrs.evolve(function, rule=None)  # type: ignore[misc]
            lifted[name] = Global(again, made.type)
    if not lifted:
        return module
    for name, found in taken.items():
        if isinstance(found, Function) and name not in {g.name for g in lifted.values()}:
            taken[name] = attrs.evolve(found, body=_redirected_calls(found.body, lifted.get))  # type: ignore[misc]
    return Module(taken, module.entry, module.data, module.where)


def holds_references(type_: Type) -> bool:
    """True if values of a type contain references."""
    match type_:
        case RefType() | StackType():
            return True
        case TupleType(items):
            return any(map(holds_references, items))
        case DataType(definition):
            seen, pending = {definition}, [definition]
            for current in pending:
                for field in (f for c in current.constructors for f in c.fields):
                    if isinstance(field, DataType) and field.definition not in seen:
                        seen.add(field.definition)
                        pending.append(field.definition)
                    elif not isinstance(field, DataType) and holds_references(field):
                        return True
            return False
        case _:
            return False


def _is_liftable(module: Module, function: Function) -> bool:
    """True if the references among a function's parameters are different ones in all calls, and contain no others."""
    types = [type_of(p) for p in function.parameters]
    contents = [t.content for t in types if isinstance(t, RefType)]
    rest = [t for t in types if not isinstance(t, RefType)]
    if not contents or function.result is None or any(map(holds_references, [*contents, *rest, function.result])):
        return False
    if len(set(contents)) == len(contents):
        return True
    return all(
        _are_different(caller, binding.value)
        for caller in module.functions.values()
        if isinstance(caller, Function)
        for binding in walk(caller.body)
        if isinstance(binding.value, Call)
        and isinstance(binding.value.function, Global)
        and binding.value.function.name == function.name
    )


def _are_different(caller: Function, call: Call) -> bool:
    """True if the caller has made each of the references that it passes."""
    made = {b.targets[0] for b in walk(caller.body) if isinstance(b.value, RefNew)}
    references = [a for a in call.arguments if isinstance(type_of(a), RefType)]
    return len(set(references)) == len(references) and all(r in made for r in references)


def _recomputed_copy(name: str, function: Function) -> Function:
    """f_again"""
    assert function.result is not None
    label, span = LoopLabel(name), function.span
    bindings: list[Binding] = []
    parameters: list[Var] = []
    arguments: list[Atom] = []
    references: list[Var] = []
    for parameter in function.parameters:
        type_ = type_of(parameter)
        if isinstance(type_, RefType):
            given, reference = Var(parameter.name, type_.content, span), Var(parameter.name, type_, span)
            bindings.append(Binding((reference,), RefNew(given, span)))
            references.append(reference)
        else:
            given = reference = Var(parameter.name, type_, span)
        parameters.append(given)
        arguments.append(reference)
    result = Var("result", function.result, span)
    bindings.append(Binding((result,), Call(Global(function.name, function.type), tuple(arguments), span)))
    after = [Var(r.name, t.content, span) for r in references if isinstance(t := type_of(r), RefType)]
    bindings += [Binding((a,), RefRead(r, span)) for a, r in zip(after, references, strict=True)]
    both_type = TupleType((function.result, *map(type_of, after)))
    both = Var("both", both_type, span)
    bindings.append(Binding((both,), MakeTuple((result, *after), span)))
    body = Block(tuple(bindings), Exit(label, (both,), span))
    return Function(name, tuple(parameters), body, label, both_type, span=span, rule=Recompute())


def _redirected_calls(block: Block, lifted: Callable[[str], Global | None]) -> Block:
    """The block with calls of f_again in place of those of f."""
    bindings: list[Binding] = []
    for binding in block.bindings:
        call = binding.value
        target = lifted(call.function.name) if isinstance(call, Call) and isinstance(call.function, Global) else None
        if target is None or not isinstance(call, Call):
            value = map_blocks(call, lambda inner: _redirected_calls(inner, lifted))
            bindings.append(binding if value is call else Binding(binding.targets, value))
            continue
        assert isinstance(target.type, FunctionType)
        assert isinstance(target.type.result, TupleType)
        passed: list[Atom] = []
        references: list[Atom] = []
        for argument in call.arguments:
            type_ = type_of(argument)
            if isinstance(type_, RefType):
                content = Var("held", type_.content, call.span)
                bindings.append(Binding((content,), RefRead(argument, call.span)))
                references.append(argument)
                passed.append(content)
            else:
                passed.append(argument)
        both = Var("both", target.type.result, call.span)
        bindings.append(Binding((both,), Call(target, tuple(passed), call.span)))
        bindings.append(Binding(binding.targets, Project(both, 0, call.span)))
        for position, reference in enumerate(references, 1):
            content = Var("held", target.type.result.items[position], call.span)
            bindings.append(Binding((content,), Project(both, position, call.span)))
            bindings.append(Binding((), RefWrite(reference, content, call.span)))
    return Block(tuple(bindings), block.terminator)
