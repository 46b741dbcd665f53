"""Which stacks of a function can be changed in place, and when their rows are free again.

The rows of a stack are a block of its pool (`pools.py`). A block is *alone* if one reference to it is left; a bit of it
says so in the run, and whoever makes a second reference clears that bit for good. Here the function's text is read for

    moved      a push, set or prefix is the last to use its stack: if the block is alone, it may change in place
    shared     what is passed on, or put into a tuple, cell or data, and is used again: it is alone no more
    dropped    what is of no more use, so that a block that is alone is free

A stack that comes out of a cell, data or another stack stays there, too, so it is shared. Tuples are taken apart: each
stack in one has a key, which all variables have that hold it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Expr,
    Function,
    If,
    Loop,
    MakeTuple,
    Match,
    Project,
    RefRead,
    StackGet,
    StackLength,
    StackPrefix,
    StackPush,
    StackSet,
    Var,
)
from relay.ir.liveness import Liveness
from relay.ir.traverse import bound, operands, terminator_operands, walk
from relay.ir.types import StackType, TupleType, Type, prune

Key: TypeAlias = tuple[Var, tuple[int, ...]]
"""A stack: the variable that it is first bound to, and the way to it through tuples."""

Form: TypeAlias = "Key | list[Form] | None"
"""The stacks in a value: a key, those of a tuple's components, or none."""


@attrs.define(eq=False)
class Ownership:
    """What is known of a function's stacks."""

    moved: set[Expr] = attrs.field(factory=set)
    shared: dict[Binding, list[Key]] = attrs.field(factory=dict)  # before a binding
    received: dict[Binding, list[Key]] = attrs.field(factory=dict)  # shared after it
    dropped: dict[Binding, list[Key]] = attrs.field(factory=dict)  # after it
    entered: dict[Block, list[Key]] = attrs.field(factory=dict)  # shared at the start of a block
    left: dict[Block, list[Key]] = attrs.field(factory=dict)  # dropped there
    passed: dict[Block, list[Key]] = attrs.field(factory=dict)  # shared before its end


def own(function: Function) -> Ownership:
    """The stacks of a structured first-order function."""
    forms = _forms(function)
    found = Ownership()
    if not any(True for form in forms.values() for _ in _keys(form)):
        return found

    def keys(variable: Var) -> Iterable[Key]:
        return _keys(forms[variable])

    def defined(variable: Var) -> Iterable[Key]:
        return (k for k in _keys(forms[variable]) if k[0] is variable)

    liveness = Liveness(function, keys, defined)
    for block, after in liveness.after.items():
        for binding, live in zip(block.bindings, after, strict=True):
            _binding(binding, live, liveness, found, defined)
        ending = _counted(terminator_operands(block.terminator), liveness)
        _note(found.passed, block, _repeated(ending, liveness.leading[block]))
    given = {k for p in function.parameters for k in defined(p)}
    _note(found.left, function.body, given - liveness.before[function.body])
    return found


def _binding(
    binding: Binding, live: frozenset[Key], liveness: Liveness[Key], found: Ownership, defined: object
) -> None:
    assert callable(defined)
    value, made = binding.value, {k for t in binding.targets for k in defined(t)}
    read = _counted(operands(value), liveness)
    borrowed: set[Key] = set()
    match value:
        case StackPush(stack) | StackSet(stack) | StackPrefix(stack):
            (key,) = liveness.of((stack,)) or (None,)
            assert key is not None
            if key not in live and read[key] == 1:
                found.moved.add(value)
            elif isinstance(value, StackPrefix):
                _note(found.shared, binding, {key})
            read[key] -= 1
            _note(found.shared, binding, _repeated(+read, live | {key}))
        case StackGet() | StackLength() | MakeTuple() | Project() | Var():
            borrowed = set(read)
        case Loop(_, parameters, _, body):
            inside = liveness.before[body]
            _note(found.shared, binding, _repeated(read, live | inside))
            _note(found.left, body, {k for p in parameters for k in defined(p)} - inside)
            borrowed = set(inside) - {k for p in parameters for k in defined(p)} - set(read)
        case If(arms, orelse):
            before: frozenset[Key] | None = None
            for arm in arms:
                if before is not None:
                    _note(found.left, arm.condition, before - liveness.before[arm.condition])
                before = liveness.leading[arm.condition]
                _note(found.left, arm.body, before - liveness.before[arm.body])
            if before is not None:
                _note(found.left, orelse, before - liveness.before[orelse])
        case Match(_, match_arms):
            starts = [liveness.before[each.body] for each in match_arms]
            fields = {k for each in match_arms for f in each.fields for k in defined(f)}
            every = frozenset().union(*starts) - fields
            for match_arm, start in zip(match_arms, starts, strict=True):
                _note(found.left, match_arm.body, every - start)
                _note(found.entered, match_arm.body, {k for f in match_arm.fields for k in defined(f)})
        case _:
            _note(found.shared, binding, _repeated(read, live))
    if isinstance(value, StackGet | RefRead):
        _note(found.received, binding, made)
        made = set()
    _note(found.dropped, binding, (borrowed | made) - live)


def _counted(atoms: Iterable[Atom], liveness: Liveness[Key]) -> Counter[Key]:
    """How often each stack stands among atoms."""
    return Counter(k for a in atoms for k in liveness.of((a,)))


def _repeated(read: Counter[Key], live: Iterable[Key]) -> set[Key]:
    """What is there twice, or is used again."""
    return {k for k, count in read.items() if count > 1} | (set(read) & set(live))


def _note(
    notes: dict[Binding, list[Key]] | dict[Block, list[Key]], place: Binding | Block, keys: Iterable[Key]
) -> None:
    new = sorted(keys, key=lambda k: (k[0].name, k[1]))
    if new:
        notes.setdefault(place, []).extend(new)  # type: ignore[arg-type]


# ---- keys


def _forms(function: Function) -> dict[Var, Form]:
    forms: dict[Var, Form] = {}

    def fresh(variables: Iterable[Var]) -> None:
        for variable in variables:
            forms[variable] = _fresh(variable, variable.type, ())

    def of(atom: Atom) -> Form:
        return forms[atom] if isinstance(atom, Var) else None

    fresh(function.parameters)
    for binding in walk(function.body):
        match binding.value:
            case Var() | Constant() as atom:
                forms[binding.targets[0]] = of(atom)
            case MakeTuple(items):
                forms[binding.targets[0]] = [of(i) for i in items]
            case Project(whole, index):
                form = of(whole)
                forms[binding.targets[0]] = form[index] if isinstance(form, list) else None
            case value:
                fresh(binding.targets)
                fresh(bound(value))
    return forms


def _fresh(variable: Var, type_: Type | None, path: tuple[int, ...]) -> Form:
    match None if type_ is None else prune(type_):
        case StackType():
            return variable, path
        case TupleType(items):
            parts = [_fresh(variable, t, (*path, i)) for i, t in enumerate(items)]
            return parts if any(p is not None for p in parts) else None
        case _:
            return None


def _keys(form: Form) -> Iterator[Key]:
    if isinstance(form, tuple):
        yield form
    elif form is not None:
        for part in form:
            yield from _keys(part)
