"""Points-to analysis: references that branches and loops choose become numbers of the cells that they may be.

    c = if x { yield a } else { yield b }        c = if x { yield 0 } else { yield 1 }
    v = read c                                   v = if c == 0 { yield read a } else { yield read b }
    write c v                                    if c == 0 { write a v } else { write b v }

The cells are then only read and written, so that they can become values (`reference_elimination`). A cell that an arm
makes is made before the branch, without content, and written in the arm. References stay as they are if one of the
cells is passed on, stored or returned, or created in the rounds of a loop that passes them on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from relay.errors import Span
from relay.ir.dims import ANY
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Exit,
    Expr,
    If,
    Loop,
    Match,
    RefNew,
    RefRead,
    RefWrite,
    Var,
    Yield,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.sizes.data_dependent import mentions
from relay.ir.traverse import all_blocks, blocks, bodies, bound_variables, moves, operands, walk
from relay.ir.types import INT32, RefType, TensorType, scalar
from relay.operator import Emitter
from relay.transform.aggregates.flat_types import undef


def number_references(body: Block) -> Block:
    """A function's body with numbers instead of the references that are chosen among cells that it makes itself."""
    flow = _PointsTo(body)
    chosen = flow.number_cells()
    return _ReferenceNumbering(chosen).block(body) if chosen.numbers else body


@attrs.define(eq=False)
class _BlockPlace:
    """The place of a block: the block around it and the binding of that block in which it is. `repeated`: the body
    of a loop; `tests`: a condition."""

    around: _BlockPlace | None
    binding: Binding | None
    repeated: bool = False
    tests: bool = False


@attrs.define
class _CellNumbering:
    """The numbering of cells: the cells that each variable may be, their numbers, and the cells to create before a
    binding."""

    cells: dict[Var, tuple[Var, ...]]
    numbers: dict[Var, int]
    hoisted: dict[Binding, list[Var]]
    written: set[Var]  # the cells that were hoisted


class _PointsTo:
    """The cells that each variable that holds a reference may be, within one function."""

    def __init__(self, body: Block) -> None:
        self.cells: dict[Var, Binding] = {}
        self.places: dict[Var, _BlockPlace] = {}
        self.sources: dict[Var, dict[Var, None]] = {}  # of the variables that branches and loops bind
        self.seen: set[Var] = set()  # references that something else than a read, a write or a choice has
        self._block(body, _BlockPlace(None, None))
        for values, targets in moves(body):
            for value, target in zip(values, targets, strict=True):
                self._flow(value, target)
        loops = {b.value.label for b in walk(body) if isinstance(b.value, Loop)}
        for end in (block.terminator for block in all_blocks(body)):
            if isinstance(end, Exit) and end.label not in loops:
                self._escape(end.values)

    def _block(self, block: Block, place: _BlockPlace) -> None:
        for binding in block.bindings:
            self._binding(binding, place)

    def _binding(self, binding: Binding, place: _BlockPlace) -> None:
        for target in binding.targets:
            self.places[target] = place
        match binding.value:
            case RefNew(value):
                self.cells[binding.targets[0]] = binding
                self._escape((value,))
            case RefRead():
                self._escape(binding.targets)
            case RefWrite(_, value):
                self._escape((value,))
            case If() | Match() as branch:
                self._escape(t for t in bound_variables(branch))
                self._escape(operands(branch))
                self._note(binding.targets)
                if isinstance(branch, If):
                    for arm in branch.arms:
                        self._block(arm.condition, _BlockPlace(place, binding, tests=True))
                for body in bodies(branch):
                    self._block(body, _BlockPlace(place, binding))
            case Loop(_, parameters, _, body):
                self.places.update(dict.fromkeys(parameters, place))
                self._note((*parameters, *binding.targets))
                self._block(body, _BlockPlace(place, binding, repeated=True))
            case Var() as other:
                self._flow(other, binding.targets[0])
            case value:
                self._escape(operands(value))
                self._escape(binding.targets)

    def _flow(self, value: Atom, target: Var) -> None:
        if isinstance(target.type, RefType):
            assert isinstance(value, Var)
            self._note((target,))
            self.sources[target][value] = None

    def _note(self, targets: Iterable[Var]) -> None:
        self.sources.update((t, {}) for t in targets if isinstance(t.type, RefType) and t not in self.sources)

    def _escape(self, atoms: Iterable[Atom]) -> None:
        self.seen.update(a for a in atoms if isinstance(a, Var) and isinstance(a.type, RefType))

    # ---- what can be numbered

    def number_cells(self) -> _CellNumbering:
        """The variables whose references can be numbers."""
        groups = self._groups()
        chosen = _CellNumbering({}, {}, {}, set())
        for group in groups:
            flows = [v for v in group if v in self.sources]
            cells = [v for v in group if v in self.cells]
            if not flows or not cells or len(flows) + len(cells) < len(group) or any(v in self.seen for v in group):
                continue
            reached = self._points_to_sets(flows)
            hoists = self._hoists(flows, reached)
            if hoists is None:
                continue
            chosen.numbers.update({cell: number for number, cell in enumerate(cells)})
            chosen.cells.update({v: tuple(c for c in cells if c in reached[v]) for v in flows})
            for cell, binding in hoists.items():
                chosen.hoisted.setdefault(binding, []).append(cell)
                chosen.written.add(cell)
        return chosen

    def _groups(self) -> list[list[Var]]:
        """The variables that are connected by choices."""
        neighbors: dict[Var, list[Var]] = {}
        for target, sources in self.sources.items():
            for source in sources:
                neighbors.setdefault(target, []).append(source)
                neighbors.setdefault(source, []).append(target)
        groups, grouped = [], set()
        for start in self.sources:
            if start in grouped:
                continue
            group = [start]
            grouped.add(start)
            for var in group:
                for other in neighbors.get(var, ()):
                    if other not in grouped:
                        grouped.add(other)
                        group.append(other)
            groups.append(group)
        return groups

    def _points_to_sets(self, flows: list[Var]) -> dict[Var, set[Var]]:
        """The cells that each variable may be."""
        reached: dict[Var, set[Var]] = {v: set() for v in flows}
        changed = True
        while changed:
            changed = False
            for var in flows:
                found: set[Var] = set()
                for source in self.sources[var]:
                    found |= reached.get(source, {source})
                if found - reached[var]:
                    reached[var] |= found
                    changed = True
        return reached

    def _hoists(self, flows: list[Var], reached: Mapping[Var, set[Var]]) -> dict[Var, Binding] | None:
        """The cells to create before the branches in which they are created now; None if a cell is not visible to
        all."""
        hoists: dict[Var, Binding] = {}
        depths: dict[Var, int] = {}
        for var in flows:
            for cell in reached[var]:
                steps: list[_BlockPlace] = []
                place: _BlockPlace | None = self.places[cell]
                while (
                    place is not None and place is not self.places[var] and not self._contains(place, self.places[var])
                ):
                    steps.append(place)
                    place = place.around
                if not steps:
                    continue
                assert isinstance(cell.type, RefType)
                content = cell.type.content
                movable = isinstance(content, TensorType) and ANY not in content.shape and not mentions((cell,))
                if not movable or any(s.repeated or s.tests for s in steps):
                    return None
                if len(steps) > depths.get(cell, 0):
                    binding = steps[-1].binding
                    assert binding is not None
                    depths[cell], hoists[cell] = len(steps), binding
        return hoists

    @staticmethod
    def _contains(outer: _BlockPlace, inner: _BlockPlace) -> bool:
        place: _BlockPlace | None = inner
        while place is not None:
            if place is outer:
                return True
            place = place.around
        return False


class _ReferenceNumbering:
    def __init__(self, chosen: _CellNumbering) -> None:
        self.chosen = chosen
        self.tags = {v: Var(v.name, scalar(INT32), v.span) for v in chosen.cells}

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            for cell in self.chosen.hoisted.get(binding, ()):
                emitter = Emitter(cell.span)
                assert isinstance(cell.type, RefType)
                empty = undef(emitter, cell.type.content)
                bindings += [*emitter.bindings, Binding((cell,), RefNew(empty, cell.span))]
            bindings += self._binding(binding)
        return Block(tuple(bindings), map_terminator(block.terminator, self._atom))

    def _binding(self, binding: Binding) -> list[Binding]:
        match binding.value:
            case RefNew(value, span) if binding.targets[0] in self.chosen.written:
                return [Binding((), RefWrite(binding.targets[0], value, span))]
            case RefRead(Var() as reference, span) if reference in self.tags:
                target = binding.targets[0]

                def read(cell: Var) -> Block:
                    inner = Var(target.name, target.type, target.span)
                    return Block((Binding((inner,), RefRead(cell, span)),), Yield((inner,)))

                return self._dispatch_on_cell(
                    reference, binding.targets, {c: read(c) for c in self.chosen.cells[reference]}, span
                )
            case RefWrite(Var() as reference, value, span) if reference in self.tags:
                writes = {
                    c: Block((Binding((), RefWrite(c, value, span)),), Yield(())) for c in self.chosen.cells[reference]
                }
                return self._dispatch_on_cell(reference, (), writes, span)
            case value:
                targets = tuple(self.tags.get(t, t) for t in binding.targets)
                return [Binding(targets, self._expression(value))]

    def _dispatch_on_cell(
        self, reference: Var, targets: tuple[Var, ...], choices: dict[Var, Block], span: Span | None
    ) -> list[Binding]:
        """Do what belongs to the cell that the reference is."""
        *first, last = choices.values()
        if not first:
            bindings, yielded = last.bindings, last.terminator
            assert isinstance(yielded, Yield)
            return [*bindings, *(Binding((t,), v) for t, v in zip(targets, yielded.values, strict=True))]
        arms = []
        for cell, block in zip(choices, first, strict=False):
            test = Emitter(span)
            same = (test.value(self.tags[reference]) == self.chosen.numbers[cell]).atom
            arms.append(Arm(Block(tuple(test.bindings), Yield((same,))), block))
        return [Binding(targets, If(tuple(arms), last, span))]

    def _expression(self, expression: Expr) -> Expr:
        if not any(True for _ in blocks(expression)) and not isinstance(expression, Var):
            return expression
        return map_parts(expression, atom=self._atom, block=self.block, var=lambda v: self.tags.get(v, v))

    def _atom(self, atom: Atom) -> Atom:
        if not isinstance(atom, Var):
            return atom
        if atom in self.tags:
            return self.tags[atom]
        number = self.chosen.numbers.get(atom)
        return atom if number is None else Constant(np.asarray(number, np.int32), atom.span)
