"""Tapes: the residuals that the forward pass hands to the backward pass.

The residuals of a block are the variables that it binds and that its backward code uses. In the body of a derivative
they simply stay in scope. An arm packs its residuals into a constructor of a data type made for its `If` or `Match`, a
round of a loop into an entry of a stack, a function into a data type with one constructor.

An `If` at the end of a loop's body has no result through which its arms could hand anything out. Each path through the
body then packs what its arms left behind, from the innermost to the outermost, where it ends: at a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import attrs

from relay.ad.activity import Activity
from relay.ad.cotangents import Cotangent, Cotangents, type_of
from relay.ad.scopes import Scope
from relay.ad.shadows import Sweep
from relay.ad.sizes import hand_over, handed_type, sizes_made
from relay.ir.analysis.tail_positions import tail_branch
from relay.ir.dims import DataDependentDim
from relay.ir.expr import Atom, Binding, Block, Construct, Dead, Expr, If, Match, Terminator, Var
from relay.ir.rebuild import with_bodies
from relay.ir.traverse import bodies
from relay.ir.types import Constructor, DataDefinition, DataType
from relay.operator import Emitter


@attrs.frozen
class Seeds:
    """The cotangents of the values that a block ends with. `exit` is None where an exit needs no backward part."""

    yields: tuple[Cotangent, ...] = ()
    next: tuple[Cotangent, ...] = ()
    exit: tuple[Cotangent, ...] | None = ()


Leaf: TypeAlias = Callable[[Terminator, list[Binding], Mapping[Var, Var]], Terminator]
"""Ends a path: gets its terminator, a list to append bindings to, and what the variables of the tapes of its tail
constructs are there; returns the new terminator."""


@attrs.define
class Plan:
    """A block whose backward part is written, and that is still to be told how its paths end."""

    forward: list[Binding]
    terminator: Terminator
    tail: Tail | None = None

    def sizes(self) -> dict[DataDependentDim, Atom]:
        """The sizes that are bound there."""
        return sizes_made(self.forward) | ({} if self.tail is None else self.tail.sizes)

    def available_variables(self) -> list[Var]:
        """The variables that are visible wherever backward code for a path through this block may need them."""
        variables = [t for b in self.forward for t in b.targets]
        return variables if self.tail is None else variables + self.tail.available


@attrs.define
class Tail:
    """An `If` or `Match` that ends a block. `tape` is bound at each leaf, to the residuals of the arm taken."""

    expression: If | Match
    arms: list[Plan]
    tape: Tape | None
    available: list[Var]
    sizes: dict[DataDependentDim, Atom] = attrs.field(factory=dict)


@attrs.define
class Tape:
    """A data type with a constructor for each arm that the backward part can meet. `fields` are the arms' residuals."""

    var: Var
    definition: DataDefinition
    constructors: list[str | None]
    fields: list[list[Var]]

    def construct(self, arm: int, bindings: list[Binding], names: Mapping[Var, Var]) -> Construct:
        """The residuals of an arm, packed; what that takes is added to the bindings."""
        constructor = self.constructors[arm]
        assert constructor is not None
        emitter = Emitter()
        values = hand_over(emitter, [names.get(v, v) for v in self.fields[arm]], [type_of(v) for v in self.fields[arm]])
        bindings += emitter.bindings
        return Construct(self.definition, constructor, tuple(values))


def make_tape(name: str, fields: list[list[Var] | None]) -> Tape:
    """A new data type for residuals, and a variable of it. None: an arm that the backward part never meets."""
    definition = DataDefinition(name)
    constructors = [None if f is None else f"{name}_{k}" for k, f in enumerate(fields)]
    definition.constructors = tuple(
        Constructor(constructor, tuple(handed_type(type_of(v)) for v in variables))
        for constructor, variables in zip(constructors, fields, strict=True)
        if constructor is not None and variables is not None
    )
    return Tape(Var("tape", DataType(definition)), definition, constructors, [f or [] for f in fields])


def close(plan: Plan, leaf: Leaf) -> Block:
    """The finished forward block."""
    bindings = list(plan.forward)
    tail = plan.tail
    if tail is None:
        ends = not isinstance(plan.terminator, Dead)
        terminator = leaf(plan.terminator, bindings, {}) if ends else plan.terminator
        return Block(tuple(bindings), terminator)
    blocks = [close(arm, _arm_leaf(tail.tape, k, leaf)) for k, arm in enumerate(tail.arms)]
    bindings.append(Binding((), with_bodies(tail.expression, blocks)))
    return Block(tuple(bindings), plan.terminator)


def _arm_leaf(tape: Tape | None, arm: int, leaf: Leaf) -> Leaf:
    if tape is None or tape.constructors[arm] is None:
        return leaf

    def pack_arm(terminator: Terminator, bindings: list[Binding], names: Mapping[Var, Var]) -> Terminator:
        packed = Var(tape.var.name, tape.var.type)
        made = tape.construct(arm, bindings, names)
        bindings.append(Binding((packed,), made))
        return leaf(terminator, bindings, {**names, tape.var: packed})

    return pack_arm


def plain_plan(block: Block) -> Plan:
    """The plan of a block without a backward part."""
    tail = tail_branch(block)
    if tail is None:
        return Plan(list(block.bindings), block.terminator)
    arms = [plain_plan(b) for b in bodies(tail)]
    return Plan(list(block.bindings[:-1]), block.terminator, Tail(tail, arms, None, []))


class BlockReversal(Protocol):
    """The parts of the transform that the rules for branches and loops need."""

    cotangents: Cotangents
    activity: Activity
    entries: dict[Var, Atom | None]
    paired: set[Atom]  # the variables that hold references with cotangents
    sweep: Sweep | None  # the cotangents of references lie behind them; else they are pairs
    repeated: bool  # whether the function calls itself

    def block(self, block: Block, scope: Scope, seeds: Seeds) -> Plan:
        """Write the backward part of a block into a scope."""
        ...

    def accumulate(self, scope: Scope, atom: Atom, cotangent: Cotangent) -> None:
        """atom' += cotangent, if anyone needs it."""
        ...

    def is_tracked(self, atom: Atom) -> bool:
        """True if a cotangent of the atom is needed."""
        ...

    def is_effect(self, expression: Expr) -> bool:
        """True if an expression of backward code changes a cell."""
        ...

    def has_effect(self, binding: Binding) -> bool:
        """True if a binding involves pairs, so that it changes and its backward part runs without known cotangents."""
        ...

    def fresh_name(self, name: str) -> str:
        """A name for a function or data type that is not taken."""
        ...

    def define(self, definition: DataDefinition) -> None:
        """Add a data type to the module."""
        ...
