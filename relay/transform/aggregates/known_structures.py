"""Partially static data: values whose constructors are known at compile time, and loops over them.

    xs = Cons(a, Cons(b, Nil)); y = loop 'l (r = xs, s = x) {          s1 = s * a; s2 = s1 * b; y = s2
      match r { Nil -> exit 'l(s)  Cons(h, t) -> s' = s * h; next 'l(t, s') } }

A round becomes straight-line code where it takes apart known constructors and leads to one next round or to the end of
the loop. A loop that known constructors do not end keeps the rest of its rounds.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TypeAlias

import attrs

from relay.ir.expr import (
    Atom,
    BindDim,
    Binding,
    Block,
    Constant,
    Construct,
    Dead,
    Exit,
    Loop,
    MakeTuple,
    Match,
    Next,
    Project,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_block, map_terminator
from relay.ir.traverse import all_blocks, blocks, count_bindings, walk
from relay.ir.types import DataDefinition, DataType, Type

MOST = 32
"""The most constructors of one value that are looked at."""

Known: TypeAlias = "MutableMapping[Var, Construct | MakeTuple]"
"""The expressions that variables are bound to."""


@attrs.frozen
class KnownConstructor:
    """A constructor with its known fields; None: known only at run time."""

    definition: DataDefinition
    constructor: str
    fields: tuple[KnownConstructor | None, ...]

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the fields."""
        return self.definition.constructors[self.definition.index(self.constructor)].fields


def structure_of(value: Atom, known: Known) -> KnownConstructor | None:
    """The constructors of a value; None where they are not known, or too many."""
    count = 0

    def content(atom: Atom) -> KnownConstructor | None:
        nonlocal count
        made = known.get(atom) if isinstance(atom, Var) else None
        if not isinstance(made, Construct):
            return None
        count += 1
        if count > MOST:
            return None
        return KnownConstructor(made.definition, made.constructor, tuple(map(content, made.arguments)))

    found = content(value)
    return found if count <= MOST else None


def is_embedded(left: KnownConstructor | None, right: KnownConstructor | None) -> bool:
    """True if the left structure is the right one without some of its constructors."""
    if left is None or right is None:
        return left is None
    same = left.constructor == right.constructor and left.definition is right.definition
    if same and all(map(is_embedded, left.fields, right.fields)):
        return True
    return any(field is not None and is_embedded(left, field) for field in right.fields)


def unknown_parts(value: Atom, content: KnownConstructor | None, known: Known) -> Iterator[Atom]:
    """The parts of a value that are known only at run time, in order."""
    if content is None:
        yield value
    elif isinstance(value, Var):
        made = known[value]
        assert isinstance(made, Construct)
        for field, inside in zip(made.arguments, content.fields, strict=True):
            yield from unknown_parts(field, inside, known)


def rebuilt_value(structure: KnownConstructor, name: str, parameters: list[Var], out: list[Binding]) -> Var:
    """A value of this structure, made of new parameters for the parts that are known only at run time."""
    fields: list[Atom] = []
    for field, type_ in zip(structure.fields, structure.types, strict=True):
        if isinstance(field, KnownConstructor):
            fields.append(rebuilt_value(field, name, parameters, out))
        else:
            parameters.append(Var(name, type_))
            fields.append(parameters[-1])
    whole = Var(name, DataType(structure.definition))
    out.append(Binding((whole,), Construct(structure.definition, structure.constructor, tuple(fields))))
    return whole


def unroll_over_structure(loop: Loop, targets: Sequence[Var], known: Known, budget: int) -> list[Binding] | None:
    """Bindings in place of a loop that goes through something known, whose rounds have at most `budget` bindings; None
    where no round is known. `known` learns of what they bind."""
    if loop.counter is not None or any(isinstance(b.value, BindDim) for b in walk(loop.body)):
        return None
    values: tuple[Atom, ...] = loop.initial
    out: list[Binding] = []
    learned: Known = {}
    size = 0
    while any(isinstance(v, Var) and isinstance(known.get(v) or learned.get(v), Construct) for v in values):
        one = _UnrolledRound(loop, values, ChainMap(learned, known))
        end = one.splice(loop.body)
        if not isinstance(end, Next | Exit):
            break
        out += one.out
        learned.update(one.learned)
        size += sum(1 + sum(map(count_bindings, blocks(b.value))) for b in one.out)
        if size > budget:
            return None
        values = end.values
        if isinstance(end, Exit):
            known.update(learned)
            for target, value in zip(targets, values, strict=True):
                if isinstance(value, Var) and value in known:
                    known[target] = known[value]
            return [*out, *(Binding((t,), v) for t, v in zip(targets, values, strict=True))]
    if values is loop.initial:
        return None
    known.update(learned)
    return [*out, Binding(tuple(targets), attrs.evolve(loop, initial=values))]  # type: ignore[misc]


class _UnrolledRound:
    """One round: `out` are its bindings, `learned` what they bind."""

    def __init__(self, loop: Loop, values: Sequence[Atom], known: Known) -> None:
        self.loop = loop
        self.known = known
        self.learned: Known = {}
        self.out: list[Binding] = []
        self.values: dict[Var, Atom] = dict(zip(loop.parameters, values, strict=True))

    def atom(self, atom: Atom) -> Atom:
        return self.values.get(atom, atom) if isinstance(atom, Var) else atom

    def bound_construct(self, atom: Atom) -> Construct | MakeTuple | None:
        """The constructor or tuple that a value is bound to; None for others."""
        value = self.atom(atom)
        return (self.learned.get(value) or self.known.get(value)) if isinstance(value, Var) else None

    def splice(self, block: Block) -> Terminator | None:
        """Append a block's bindings; returns how it ends, or None where that is not known."""
        for binding in block.bindings:
            match binding.value:
                case Match(subject, arms) if isinstance(made := self.bound_construct(subject), Construct):
                    arm = next(a for a in arms if a.constructor == made.constructor)
                    self.values.update(zip(arm.fields, made.arguments, strict=True))
                    end = self.splice(arm.body)
                    if not isinstance(end, Yield):
                        return end
                    self.values.update(zip(binding.targets, end.values, strict=True))
                case Project(whole, index) if isinstance(made := self.bound_construct(whole), MakeTuple):
                    self.values[binding.targets[0]] = made.items[index]
                case Var() | Constant() as atom:
                    self.values[binding.targets[0]] = self.atom(atom)
                case _:
                    if self._leaves(binding):
                        return None
                    self._append(binding)
        end = block.terminator
        is_known = isinstance(end, Yield) or (isinstance(end, Next | Exit) and end.label is self.loop.label)
        return map_terminator(end, self.atom) if is_known else None

    def _leaves(self, binding: Binding) -> bool:
        """True if a part of a binding leaves the round."""
        ends = (b.terminator for inner in blocks(binding.value) for b in all_blocks(inner))
        return any(
            isinstance(end, Dead) or (isinstance(end, Next | Exit) and end.label is self.loop.label) for end in ends
        )

    def _append(self, binding: Binding) -> None:
        (copy,) = copy_block(Block((binding,), Yield(binding.targets)), self.values).bindings
        self.out.append(copy)
        self.values.update(zip(binding.targets, copy.targets, strict=True))
        if isinstance(copy.value, Construct | MakeTuple):
            self.learned[copy.targets[0]] = copy.value
