"""Scalar replacement of tuples: branches and loops pass tuples on as their components.

    t = if .. yield a ..          t0, t1 = if .. yield a.0, a.1 ..;  t = (t0, t1)
    loop (p = a) .. next L b      loop (p0 = a.0, p1 = a.1) {p = (p0, p1); .. next L b.0, b.1}

so that simplification sees through the tuples, and dead code elimination drops components that nobody uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Exit,
    Function,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Project,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import with_values
from relay.ir.traverse import all_blocks, terminator_operands
from relay.ir.types import TupleType
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about


@pass_about(If, Match, Loop)
def flatten_tuples(module: Module) -> Module:
    """The module without tuples among the targets of branches and the parameters and results of loops."""
    return map_bodies(module, _flatten)


def _flatten(function: Function) -> Block:
    passed = any(isinstance(t.type, TupleType) for b in all_blocks(function.body) for t in _control_flow_targets(b))
    return _TupleFlattening().block(function.body) if passed else function.body


def flatten_bindings(bindings: Sequence[Binding]) -> list[Binding]:
    """Bindings without tuples among the targets of branches and the parameters and results of loops."""
    return list(_TupleFlattening().block(Block(tuple(bindings), Yield(()))).bindings)


def _control_flow_targets(block: Block) -> list[Var]:
    """The variables that the branches and loops of a block bind."""
    found: list[Var] = []
    for binding in block.bindings:
        if isinstance(binding.value, If | Match | Loop):
            found += binding.targets
        if isinstance(binding.value, Loop):
            found += binding.value.parameters
    return found


class TupleComponents:
    """The components of tuples, all the way down. `items` are those of variables that are bound to tuples."""

    def __init__(self) -> None:
        self.items: dict[Var, tuple[Atom, ...]] = {}

    def flatten_atoms(self, values: tuple[Atom, ...], out: list[Binding]) -> tuple[Atom, ...]:
        """The components of atoms, all the way down."""
        found: list[Atom] = []
        for value in values:
            type_ = value.type if isinstance(value, Var | Constant) else None
            if not isinstance(type_, TupleType):
                found.append(value)
                continue
            assert isinstance(value, Var)
            items = self.items.get(value)
            if items is None:
                projected: list[Var] = []
                for index, item in enumerate(type_.items):
                    projected.append(Var(value.name, item, value.span))
                    out.append(Binding((projected[-1],), Project(value, index, value.span)))
                items = tuple(projected)
            found += self.flatten_atoms(items, out)
        return tuple(found)

    def tuple_variables(self, variables: tuple[Var, ...], out: list[Binding]) -> tuple[Var, ...]:
        """Variables for the components of `variables`, which are made of them by bindings in `out`."""
        found: list[Var] = []

        def parts(variable: Var) -> None:
            if not isinstance(variable.type, TupleType):
                found.append(variable)
                return
            items = tuple(Var(variable.name, t, variable.span) for t in variable.type.items)
            for item in items:
                parts(item)
            self.items[variable] = items
            out.append(Binding((variable,), MakeTuple(items, variable.span)))

        for variable in variables:
            parts(variable)
        return tuple(found)


class _TupleFlattening(TupleComponents):
    def __init__(self) -> None:
        super().__init__()
        self.loops: set[LoopLabel] = set()

    def block(self, block: Block, before: Sequence[Binding] = ()) -> Block:
        out = list(before)
        for binding in block.bindings:
            self.binding(binding, out)
        end = self.terminator(block.terminator, out)
        return Block(tuple(out), end)

    def terminator(self, terminator: Terminator, out: list[Binding]) -> Terminator:
        if isinstance(terminator, Exit) and terminator.label not in self.loops:
            return terminator  # a function returns one value
        return with_values(terminator, self.flatten_atoms(terminator_operands(terminator), out))

    def binding(self, binding: Binding, out: list[Binding]) -> None:
        value = binding.value
        after: list[Binding] = []
        match value:
            case If(arms, orelse, span):
                new_arms = tuple(Arm(self.block(a.condition), self.block(a.body)) for a in arms)
                made: If | Match | Loop = If(new_arms, self.block(orelse), span)
            case Match(scrutinee, match_arms, span):
                new_match_arms = tuple(MatchArm(a.constructor, a.fields, self.block(a.body)) for a in match_arms)
                made = Match(scrutinee, new_match_arms, span)
            case Loop(label, parameters, initial, body, counter, span):
                self.loops.add(label)
                start = self.flatten_atoms(initial, out)
                rebuilt: list[Binding] = []
                carried = self.tuple_variables(parameters, rebuilt)
                made = Loop(label, carried, start, self.block(body, rebuilt), counter, span)
            case MakeTuple(items):
                self.items[binding.targets[0]] = items
                out.append(binding)
                return
            case _:
                out.append(binding)
                return
        targets = self.tuple_variables(binding.targets, after)
        out.append(Binding(targets, made))
        out += after
