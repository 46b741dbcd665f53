"""Ownership of stacks: those that are changed in place, and the points where their rows are free again.

The rows of a stack are a block of its pool (`pools.py`). A block is *alone* if one reference to it is left; a bit
records that at run time, and a second reference clears that bit for good. Here the function's text is read for

    moved      a push, set or prefix is the last to use its stack: if the block is alone, it may change in place
    shared     what is passed on, or put into a tuple, cell or data, and is used again: it is alone no more
    dropped    what is of no more use, so that a block that is alone is free

A stack that comes out of a cell, data or another stack stays there, too, so it is shared; but not if it is

    taken      out of a stack that is alone, in which the place is then overwritten or cut off, as in `xs[i][j] = v`,
               or out of a cell that is written again before anything else reads it, as in `r.value.append(v)`

or if it is only looked into before anything changes, as in `xs[i][j]`. Tuples are taken apart: each stack in one has a
key, which all variables have that hold it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import attrs

from relay.ir.analysis.liveness import Liveness
from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Exit,
    Expr,
    Extent,
    Function,
    If,
    Loop,
    MakeTuple,
    Match,
    Next,
    OpCall,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackGet,
    StackLength,
    StackPrefix,
    StackPush,
    StackSet,
    Var,
)
from relay.ir.traverse import all_blocks, blocks, bound_variables, operands, terminator_operands, walk
from relay.ir.types import StackType, TupleType, Type, prune

Key: TypeAlias = tuple[Var, tuple[int, ...]]
"""A stack: the variable that it is first bound to, and the way to it through tuples."""

Form: TypeAlias = "Key | list[Form] | None"
"""The stacks in a value: a key, those of a tuple's components, or none."""


_HARMLESS = (
    *(OpCall, StackGet, StackLength, Assert, Extent, AxisSize, BindDim, Ascribe, Var, Constant),
    *(MakeTuple, Project, RefNew, RefRead, Construct),
)
"""Expressions that change no stack."""

_UNFAILING = (
    *(StackPush, StackSet, StackPrefix, StackGet, StackLength, MakeTuple, Project, RefRead, RefWrite, Var, Constant),
)
"""Expressions that cannot fail after they have changed something."""

_LOOKING = (*_HARMLESS, If, Loop, Match)
"""These, and what holds blocks of them."""


@attrs.define(eq=False)
class Ownership:
    """The ownership of a function's stacks."""

    moved: set[Expr] = attrs.field(factory=set)
    viewed: dict[Binding, Key] = attrs.field(factory=dict)  # the gets of what is only looked into at once
    taken: set[Binding] = attrs.field(factory=set)  # the gets and reads
    overwriting: set[Expr] = attrs.field(factory=set)  # the changes of the places that something was taken out of
    shared: dict[Binding, list[Key]] = attrs.field(factory=dict)  # before a binding
    received: dict[Binding, list[Key]] = attrs.field(factory=dict)  # shared after it
    dropped: dict[Binding, list[Key]] = attrs.field(factory=dict)  # after it
    entered: dict[Block, list[Key]] = attrs.field(factory=dict)  # shared at the start of a block
    left: dict[Block, list[Key]] = attrs.field(factory=dict)  # dropped there
    passed: dict[Block, list[Key]] = attrs.field(factory=dict)  # shared before its end


def stack_ownership(function: Function) -> Ownership:
    """The stacks of a structured first-order function."""
    forms = _forms(function)
    found = Ownership()
    if not any(True for form in forms.values() for _ in _keys(form)):
        return found

    def keys(variable: Var) -> Iterable[Key]:
        return _keys(forms[variable])

    def defined_keys(variable: Var) -> Iterable[Key]:
        return (k for k in _keys(forms[variable]) if k[0] is variable)

    liveness = Liveness(function, keys, defined_keys)
    uses = _uses(function, liveness)
    for block in liveness.after:
        _find_viewed(block, liveness, uses, found)
    views = frozenset(found.viewed.values())
    made = frozenset(b.targets[0] for b in walk(function.body) if isinstance(b.value, RefNew))
    for block, after in liveness.after.items():
        for binding, live in zip(block.bindings, after, strict=True):
            _binding(binding, live, liveness, found, defined_keys, views)
        _find_taken(block, liveness, found)
        _find_taken_out_of_cells(block, liveness, made, found)
        ending = _key_counts(terminator_operands(block.terminator), liveness)
        _note(found.passed, block, _shared_keys(ending, liveness.leading[block]))
    given = {k for p in function.parameters for k in defined_keys(p)}
    _note(found.left, function.body, given - liveness.before[function.body])
    return found


def _binding(
    binding: Binding,
    live: frozenset[Key],
    liveness: Liveness[Key],
    found: Ownership,
    defined: Callable[[Var], Iterable[Key]],
    views: frozenset[Key],
) -> None:
    value, made = binding.value, {k for t in binding.targets for k in defined(t)}
    read = _key_counts(operands(value), liveness)
    borrowed: set[Key] = set()
    match value:
        case StackPush(stack) | StackSet(stack) | StackPrefix(stack):
            (key,) = liveness.keys_of((stack,)) or (None,)
            assert key is not None
            if key not in live and read[key] == 1:
                found.moved.add(value)
            elif isinstance(value, StackPrefix):
                _note(found.shared, binding, {key})
            read[key] -= 1
            _note(found.shared, binding, _shared_keys(+read, live | {key}))
        case StackGet() | StackLength() | MakeTuple() | Project() | Var():
            borrowed = set(read)
        case Loop(_, parameters, _, body):
            inside = liveness.before[body]
            _note(found.shared, binding, _shared_keys(read, live | inside))
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
            _note(found.shared, binding, _shared_keys(read, live))
    if isinstance(value, StackGet | RefRead):
        _note(found.received, binding, () if binding in found.viewed else made)
        made = set()
    _note(found.dropped, binding, (borrowed | made) - live - views)


def _find_taken(block: Block, liveness: Liveness[Key], found: Ownership) -> None:
    """Note the gets after which nothing uses the stack until its place is changed."""
    latest: dict[Key, Binding] = {}
    for binding in block.bindings:
        value = binding.value
        if isinstance(value, StackSet | StackPrefix) and value in found.moved:
            get = latest.get(next(iter(liveness.keys_of((value.stack,)))))
            place = value.index if isinstance(value, StackSet) else value.length
            if get is not None and isinstance(get.value, StackGet) and _is_same(get.value.index, place):
                found.taken.add(get)
                found.overwriting.add(value)
        if isinstance(value, StackLength):
            continue
        if latest:
            used = liveness.keys_of(operands(value)).union(*(liveness.before.get(b, ()) for b in blocks(value)))
            for key in used & latest.keys():
                del latest[key]
        if isinstance(value, StackGet) and binding not in found.viewed and liveness.keys_of(binding.targets):
            latest[next(iter(liveness.keys_of((value.stack,))))] = binding


def _find_taken_out_of_cells(block: Block, liveness: Liveness[Key], made: frozenset[Var], found: Ownership) -> None:
    """Note the reads of cells that are written later in the block, if nothing can read them before that, also where the
    program fails. `made` are the references to cells of the function's own, no two of which are the same."""
    reads: dict[Atom, tuple[Binding, Key]] = {}
    gone: set[Atom] = set()  # of those, whose content has changed, or is of no more use

    def close(reference: Atom) -> None:
        for other in list(reads):
            assert isinstance(other, Var) and isinstance(reference, Var)
            if other is reference or (prune(other.type) == prune(reference.type) and not {other, reference} <= made):  # type: ignore[arg-type]
                del reads[other]

    for binding, live in zip(block.bindings, liveness.after[block], strict=True):
        value, nested = binding.value, list(blocks(binding.value))
        if reads:
            for inner in (b.value for each in nested for b in walk(each)):
                if isinstance(inner, RefRead | RefWrite | Shadow):
                    close(inner.reference)
                elif isinstance(inner, Call):
                    reads.clear()
            if isinstance(value, Call) or any(map(_leaves, nested)):
                reads.clear()
        match value:
            case RefWrite(reference) if reference in reads:
                found.taken.add(reads[reference][0])
                found.overwriting.add(value)
                close(reference)
            case RefRead(reference) | RefWrite(reference) | Shadow(reference):
                close(reference)
                keys = list(liveness.keys_of(binding.targets))
                if isinstance(value, RefRead) and binding not in found.viewed and len(keys) == 1:
                    reads[reference] = binding, keys[0]
                    gone.discard(reference)
                    continue
            case _:
                pass
        if not isinstance(value, _UNFAILING):
            for reference in gone & reads.keys():
                del reads[reference]
        if reads:
            used = liveness.keys_of(operands(value))
            for reference, (_, key) in list(reads.items()):
                if key in used and nested:
                    del reads[reference]
                elif key not in live or (key in used and not isinstance(value, StackGet | StackLength)):
                    gone.add(reference)


def _leaves(block: Block) -> bool:
    """True if a path leaves the construct that a block is a part of, other than at its end."""
    loops = {b.value.label for b in walk(block) if isinstance(b.value, Loop)}
    inside = all_blocks(block)
    return any(isinstance(b.terminator, Next | Exit) and b.terminator.label not in loops for b in inside)


def _is_same(place: Atom, other: Atom) -> bool:
    """True if two indices are equal whatever happens at run time."""
    if isinstance(place, Constant) and isinstance(other, Constant):
        return int(place.value) == int(other.value)
    return place is other


def _find_viewed(block: Block, liveness: Liveness[Key], uses: Counter[Key], found: Ownership) -> None:
    """Note the gets of stacks of which only elements or lengths are read, before anything can change."""
    open_gets: dict[Key, Binding] = {}
    reads: Counter[Key] = Counter()

    def close() -> None:
        for key, get in open_gets.items():
            if reads[key] == uses[key] and len(liveness.keys_of(get.targets)) == 1:
                found.viewed[get] = key
        open_gets.clear()

    for binding in block.bindings:
        value = binding.value
        inside = [b.value for each in blocks(value) for b in walk(each)] if open_gets else []
        if not all(isinstance(v, _LOOKING) for v in (value, *inside)):
            close()
        for looking in (value, *inside) if open_gets else ():
            if isinstance(looking, StackGet | StackLength):
                reads.update(liveness.keys_of((looking.stack,)))
        if isinstance(value, StackGet | RefRead):
            open_gets.update((key, binding) for key in liveness.keys_of(binding.targets))
    close()


def _uses(function: Function, liveness: Liveness[Key]) -> Counter[Key]:
    """The number of times that each stack is an operand."""
    found: Counter[Key] = Counter()
    for block in all_blocks(function.body):
        found += _key_counts(terminator_operands(block.terminator), liveness)
        for binding in block.bindings:
            found.update(_key_counts(operands(binding.value), liveness))
    return found


def _key_counts(atoms: Iterable[Atom], liveness: Liveness[Key]) -> Counter[Key]:
    """The number of times that each stack is among atoms."""
    return Counter(k for a in atoms for k in liveness.keys_of((a,)))


def _shared_keys(read: Counter[Key], live: Iterable[Key]) -> set[Key]:
    """The keys that occur twice, or are used again."""
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

    def add_fresh(variables: Iterable[Var]) -> None:
        for variable in variables:
            forms[variable] = _fresh_form(variable, variable.type, ())

    def atom_form(atom: Atom) -> Form:
        return forms[atom] if isinstance(atom, Var) else None

    add_fresh(function.parameters)
    for binding in walk(function.body):
        match binding.value:
            case Var() | Constant() as atom:
                forms[binding.targets[0]] = atom_form(atom)
            case MakeTuple(items):
                forms[binding.targets[0]] = [atom_form(i) for i in items]
            case Project(whole, index):
                form = atom_form(whole)
                forms[binding.targets[0]] = form[index] if isinstance(form, list) else None
            case value:
                add_fresh(binding.targets)
                add_fresh(bound_variables(value))
    return forms


def _fresh_form(variable: Var, type_: Type | None, path: tuple[int, ...]) -> Form:
    match None if type_ is None else prune(type_):
        case StackType():
            return variable, path
        case TupleType(items):
            parts = [_fresh_form(variable, t, (*path, i)) for i, t in enumerate(items)]
            return parts if any(p is not None for p in parts) else None
        case _:
            return None


def _keys(form: Form) -> Iterator[Key]:
    if isinstance(form, tuple):
        yield form
    elif form is not None:
        for part in form:
            yield from _keys(part)
