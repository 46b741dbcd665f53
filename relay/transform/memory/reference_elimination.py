"""Promotion of references to values (mem2reg): cells that nobody else can see become values.

    r = ref a; b = read r; write r c; d = read r                 b becomes a, d becomes c
    if x { write r c; yield } else { yield }; d = read r         d = if x { yield c } else { yield a }
    loop { .. write r c; next }                                  loop (p = a) { .. next (c) }

A cell is replaced if it is only read and written, in the function that makes it: it is not passed on, returned or
stored, and not written in the condition of a branch. Branches that write it yield its content, loops carry it. Where
branches and loops choose among such cells, numbers take the place of references first (`points_to`).
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Exit,
    Expr,
    If,
    Loop,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    Next,
    RefNew,
    RefRead,
    RefWrite,
    StackNew,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_atoms, map_terminator, with_values
from relay.ir.traverse import all_blocks, blocks, bodies, operands, terminator_operands, walk
from relay.ir.types import RefType
from relay.transform.core.rebuilding import map_bodies
from relay.transform.memory.points_to import number_references
from relay.transform.module_pass import pass_about


@pass_about(RefNew, RefRead, RefWrite, StackNew)
def eliminate_references(module: Module) -> Module:
    """The module without the cells that do not leave the function that makes them."""
    return map_bodies(module, lambda function: _eliminate_cells(function.body))


def _eliminate_cells(body: Block) -> Block:
    while True:
        chosen = number_references(body)
        cells = _private_cells(chosen)
        if not cells:
            return chosen
        body = _ReferenceElimination(cells, chosen).block(chosen, {}, ())  # cells that these held may be next


def _private_cells(body: Block) -> set[Var]:
    """The cells that are only read and written."""
    found = {b.targets[0] for b in walk(body) if isinstance(b.value, RefNew)}
    if not found:
        return found
    for block in all_blocks(body):
        found.difference_update(a for a in terminator_operands(block.terminator) if isinstance(a, Var))
        for binding in block.bindings:
            match binding.value:
                case RefRead():
                    pass
                case RefWrite(_, value):
                    found.difference_update((value,) if isinstance(value, Var) else ())
                case If(arms):
                    for arm in arms:
                        found.difference_update(_written_references(walk(arm.condition)))
                case value:
                    found.difference_update(a for a in operands(value) if isinstance(a, Var))
    return found


def _written_references(bindings: Iterable[Binding]) -> set[Var]:
    return {b.value.reference for b in bindings if isinstance(b.value, RefWrite) and isinstance(b.value.reference, Var)}


class _ReferenceElimination:
    """Rebuilds a body. What a cell holds is known at every point: an atom."""

    def __init__(self, cells: set[Var], body: Block) -> None:
        self.cells = cells
        self.atoms: dict[Var, Atom] = {}  # what stands for the targets of reads
        self.carried: dict[LoopLabel, tuple[Var, ...]] = {}
        self.writes: dict[int, dict[Var, None]] = {}  # the cells that a construct writes, by its identity
        self._measure(body)

    def _measure(self, block: Block) -> dict[Var, None]:
        """The cells that a block writes, in the order of writing."""
        found: dict[Var, None] = {}
        for binding in block.bindings:
            if isinstance(binding.value, RefWrite) and binding.value.reference in self.cells:
                assert isinstance(binding.value.reference, Var)
                found[binding.value.reference] = None
            inner: dict[Var, None] = {}
            for each in blocks(binding.value):
                inner.update(self._measure(each))
            if inner:
                self.writes[id(binding.value)] = inner
                found.update(inner)
        return found

    def atom(self, atom: Atom) -> Atom:
        return self.atoms.get(atom, atom) if isinstance(atom, Var) else atom

    def block(self, block: Block, content: dict[Var, Atom], yields: tuple[Var, ...]) -> Block:
        """A block at whose beginning the cells have a content, which also yields those of `yields`."""
        content = dict(content)
        bindings: list[Binding] = []
        for binding in block.bindings:
            match binding.value:
                case RefNew(value) if binding.targets[0] in self.cells:
                    content[binding.targets[0]] = self.atom(value)
                case RefRead(Var() as cell) if cell in self.cells:
                    self.atoms[binding.targets[0]] = content[cell]
                case RefWrite(Var() as cell, value) if cell in self.cells:
                    content[cell] = self.atom(value)
                case If() | Match() as branch:
                    bindings.append(self._branch(branch, binding.targets, content))
                case Loop() as loop:
                    bindings.append(self._loop(loop, binding.targets, content))
                case value:
                    bindings.append(Binding(binding.targets, map_atoms(value, self.atom)))
        return Block(tuple(bindings), self._terminator(block.terminator, content, yields))

    def _terminator(self, terminator: Terminator, content: dict[Var, Atom], yields: tuple[Var, ...]) -> Terminator:
        made = map_terminator(terminator, self.atom)
        cells = self.carried.get(made.label, ()) if isinstance(made, Next | Exit) else yields
        return with_values(made, (*terminator_operands(made), *(content[c] for c in cells)))

    def _outer_writes(self, construct: Expr, content: dict[Var, Atom]) -> tuple[Var, ...]:
        """The cells made outside of a construct that it writes."""
        return tuple(c for c in self.writes.get(id(construct), ()) if c in content)

    def _branch(self, branch: If | Match, targets: tuple[Var, ...], content: dict[Var, Atom]) -> Binding:
        joins = any(isinstance(b.terminator, Yield) for b in bodies(branch))
        cells = self._outer_writes(branch, content) if joins else ()
        made: If | Match
        if isinstance(branch, If):
            arms = tuple(
                Arm(self.block(a.condition, content, ()), self.block(a.body, content, cells)) for a in branch.arms
            )
            made = If(arms, self.block(branch.orelse, content, cells), branch.span)
        else:
            match_arms = tuple(
                MatchArm(a.constructor, a.fields, self.block(a.body, content, cells)) for a in branch.arms
            )
            made = Match(self.atom(branch.value), match_arms, branch.span)
        return Binding((*targets, *self._fresh_contents(cells, content)), made)

    def _loop(self, loop: Loop, targets: tuple[Var, ...], content: dict[Var, Atom]) -> Binding:
        cells = self._outer_writes(loop, content)
        initial = tuple(content[c] for c in cells)
        self.carried[loop.label] = cells
        inside = dict(content)
        parameters = self._fresh_contents(cells, inside)
        body = self.block(loop.body, inside, ())
        counter = loop.counter
        if counter is not None:
            counter = attrs.evolve(counter, count=self.atom(counter.count))  # type: ignore[misc]
        start = (*map(self.atom, loop.initial), *initial)
        made = Loop(loop.label, (*loop.parameters, *parameters), start, body, counter, loop.span)
        return Binding((*targets, *self._fresh_contents(cells, content)), made)

    def _fresh_contents(self, cells: tuple[Var, ...], content: dict[Var, Atom]) -> tuple[Var, ...]:
        """Variables for the contents of cells, which these have from now on."""
        made: list[Var] = []
        for cell in cells:
            assert isinstance(cell.type, RefType)
            made.append(Var(cell.name, cell.type.content, cell.span))
            content[cell] = made[-1]
        return tuple(made)
