"""Search for the first binding whose value differs, when a program is changed by a pass or compiled.

    in a block      all values of the block are made results, and the first that differs is it; if that hides the
                    difference, as it undoes fusion, each one by itself, by halving, and then back along its operands
    below           a call is its function at the arguments that it had; arms and loops are their blocks, round by
                    round, with the values that the variables had: if a value in there differs already, it is the one

Every step compares the interpreter's run of a piece of the program with one of the same piece changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs

from relay.debug.differences.outcomes import FAILURES, Deviation, Outcome, Tolerance, compare
from relay.debug.differences.pieces import (
    Piece,
    Way,
    has_cells,
    is_copy,
    may_pass,
    piece_of,
    straight_part,
    values_in,
    ways_into,
)
from relay.ir.dims import TypeId
from relay.ir.expr import Atom, Binding, Call, Derivative, Function, Global, Module, Var
from relay.ir.traverse import blocks, free_variables, operands, terminator_operands
from relay.support import progress

MOST_ROUNDS = 1000
"""The number of first rounds of a loop, and of last ones, that are searched."""

MOST_CALLS = 200
"""The largest depth of calls inside of calls."""

Runner: TypeAlias = Callable[[Sequence[object]], Outcome]
Change: TypeAlias = Callable[[Module], Runner]
"""The step before a program is run: a pass, or code generation. It may raise FAILURES. It may raise FAILURES."""


class Comparison:
    """Compares programs with their changed versions, which are cached."""

    def __init__(self, change: Change, tolerance: Tolerance) -> None:
        self.made = 0
        """The number of programs that were changed."""
        self._change = change
        self._tolerance = tolerance
        self._runners: dict[object, Runner] = {}

    def run(self, piece: Piece, key: object = None) -> tuple[Outcome, Outcome] | None:
        """The outcomes of the piece as it is and changed; None if it cannot be run as it is, or only up to an error.
        Pieces with one key are one program."""
        expected = piece.reference()
        if expected.error is not None:
            return None
        runner = None if key is None else self._runners.get(key)
        if runner is None:
            runner = self._make(piece)
            if key is not None:
                self._runners[key] = runner
        return runner(piece.arguments), expected

    def _make(self, piece: Piece) -> Runner:
        self.made += 1
        progress.show_progress(f"program {self.made} of the search for what differs")
        try:
            return self._change(piece.fresh_module())
        except FAILURES as error:
            failed = Outcome(error=error)
            return lambda _: failed

    def deviation(self, piece: Piece, key: object = None) -> Deviation | None:
        """By how much they differ; None if they do not."""
        outcomes = self.run(piece, key)
        if outcomes is None:
            return None
        deviation = compare(*outcomes, self._tolerance)
        return deviation if deviation.differs else None

    def parts(self, piece: Piece, count: int, key: object) -> Iterator[tuple[int, Deviation]]:
        """The components that differ of the tuple that a piece of `count` results gives."""
        outcomes = self.run(piece, key)
        if outcomes is None:
            return
        found, expected = outcomes
        if found.error is not None:
            return  # any of them
        parts = [o.value if count > 1 else (o.value,) for o in (found, expected)]
        for position in range(count):
            one, other = (Outcome(part[position]) for part in parts)  # type: ignore[index]
            deviation = compare(one, other, self._tolerance)
            if deviation.differs:
                yield position, deviation


@attrs.frozen(eq=False)
class FoundBinding:
    """The first binding whose value differs: the `position`-th of the block that the way leads to. `together`: it does
    only where all values before it are results, too."""

    way: Way
    position: int
    deviation: Deviation
    together: bool

    @property
    def binding(self) -> Binding:
        """The binding."""
        return straight_part(self.way.block)[self.position]


class Search:
    """The search in a program; `sizes` are those of its symbolic dims."""

    def __init__(self, module: Module, sizes: dict[TypeId, int], comparison: Comparison) -> None:
        self._module = module
        self._sizes = sizes
        self._comparison = comparison

    def run(self, arguments: Sequence[object]) -> FoundBinding | None:
        """The first binding that differs when the program is run on these arguments; None if that cannot be told."""
        main = self._module.main
        values = dict(zip(main.parameters, arguments, strict=True))
        return self._in_block(Way(main.name, main.body, values), 0)

    def whole_program(self, arguments: Sequence[object]) -> Piece:
        """All of the program."""
        return Piece(self._module, arguments)

    def piece(self, way: Way, position: int, results: Sequence[Var]) -> Piece:
        """The program of a block up to a binding."""
        return piece_of(self._module, self._sizes, way.values, straight_part(way.block)[: position + 1], results)

    def _in_block(self, way: Way, depth: int) -> FoundBinding | None:
        bindings = straight_part(way.block)
        found = self._first_difference(way, bindings)
        if found is not None:
            return self._inner_difference(found, depth) or found
        if len(bindings) < len(way.block.bindings):  # what follows may leave the block
            return self._difference_inside(way, way.block.bindings[: len(bindings) + 1], depth)
        return None

    def _first_difference(self, way: Way, bindings: Sequence[Binding]) -> FoundBinding | None:
        """The first binding of a block that differs."""
        candidates = [
            n
            for n, b in enumerate(bindings)
            if b.targets and not is_copy(b.value) and all(may_pass(t.type) for t in b.targets)
        ]
        if not candidates:
            return None
        owner = [n for n in candidates for _ in bindings[n].targets]
        targets = [t for n in candidates for t in bindings[n].targets]
        whole = self.piece(way, candidates[-1], targets)
        for part, deviation in self._comparison.parts(whole, len(targets), (way.block, "all")):
            position = owner[part]
            alone = self._deviation_alone(way, position)
            if alone is None and has_cells(targets[part].type):
                continue  # what comes later has written into it
            return FoundBinding(way, position, deviation if alone is None else alone, alone is None)
        last = self._last_difference(way, bindings, candidates)
        return None if last is None else self._first_cause(way, bindings, candidates, last)

    def _last_difference(self, way: Way, bindings: Sequence[Binding], candidates: Sequence[int]) -> int | None:
        """A binding of a block that differs, among those that its end reads; if there is none, the last one."""
        read = {a for a in terminator_operands(way.block.terminator) if isinstance(a, Var)}
        made = {t: n for n, b in enumerate(bindings) for t in b.targets}
        wanted: dict[int, None] = {}
        pending = [v for v in read if v in made]
        while pending:  # through what computes nothing
            position = made[pending.pop()]
            if position in candidates:
                wanted[position] = None
            else:
                pending += [a for a in operands(bindings[position].value) if isinstance(a, Var) and a in made]
        for position in sorted(wanted) or candidates[-1:]:
            if self._deviation_alone(way, position) is not None:
                return position
        return None

    def _first_cause(
        self, way: Way, bindings: Sequence[Binding], candidates: Sequence[int], last: int
    ) -> FoundBinding | None:
        """The first binding that differs by itself, of those that a differing binding is computed from."""
        made = {t: n for n, b in enumerate(bindings) for t in b.targets}

        def sources(position: int) -> set[int]:
            read = [a for a in operands(bindings[position].value) if isinstance(a, Var)]
            for block in blocks(bindings[position].value):
                read += free_variables(block)
            return {made[v] for v in read if v in made}

        needed, pending = {last}, [last]
        while pending:
            new = sources(pending.pop()) - needed
            needed |= new
            pending += new
        order = [n for n in candidates if n in needed]
        low, high = -1, order.index(last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._deviation_alone(way, order[middle]) is not None else (middle, high)
        position = order[high]
        while earlier := [
            n for n in sorted(sources(position)) if n in candidates and self._deviation_alone(way, n) is not None
        ]:
            position = earlier[0]
        deviation = self._deviation_alone(way, position)
        return None if deviation is None else FoundBinding(way, position, deviation, False)

    def _deviation_alone(self, way: Way, position: int) -> Deviation | None:
        targets = straight_part(way.block)[position].targets
        return self._comparison.deviation(self.piece(way, position, targets), (way.block, position))

    # ---- what is inside of a binding

    def _inner_difference(self, found: FoundBinding, depth: int) -> FoundBinding | None:
        """The first binding that differs inside of one that does."""
        value = found.binding.value
        if isinstance(value, Call) and isinstance(value.function, Global):
            return self._in_call(found, value, value.function.name, depth)
        if blocks(value):
            return self._difference_inside(found.way, straight_part(found.way.block)[: found.position + 1], depth)
        return None

    def _in_call(self, found: FoundBinding, call: Call, name: str, depth: int) -> FoundBinding | None:
        callee = self._module.functions.get(name)
        while isinstance(callee, Derivative):  # what it differentiates may be changed already
            callee = self._module.functions.get(callee.of)
        if not isinstance(callee, Function) or depth >= MOST_CALLS:
            return None
        way, bindings = found.way, straight_part(found.way.block)
        passed = [a for a in call.arguments if isinstance(a, Var)]
        known = dict(way.values)
        if any(v not in known for v in passed):
            known |= values_in(piece_of(self._module, self._sizes, way.values, bindings[: found.position], passed))
        if any(v not in known for v in passed) or not all(may_pass(p.type) for p in callee.parameters):
            return None
        arguments = [_value(a, known) for a in call.arguments][: len(callee.parameters)]
        words = (*way.words, f"a call of {name}")
        return self._in_block(
            Way(name, callee.body, dict(zip(callee.parameters, arguments, strict=True)), words), depth + 1
        )

    def _difference_inside(self, way: Way, bindings: Sequence[Binding], depth: int) -> FoundBinding | None:
        """The first binding that differs in the blocks of the last one of some bindings."""
        last = bindings[-1].value
        piece = piece_of(self._module, self._sizes, way.values, bindings, bindings[-1].targets)
        for inner in ways_into(piece, blocks(last), way.function, way.words, MOST_ROUNDS):
            found = self._in_block(inner, depth)
            if found is not None:
                return found
        return None


def _value(atom: Atom, known: dict[Var, object]) -> object:
    if isinstance(atom, Var):
        return known[atom]
    return getattr(atom, "value", None)
