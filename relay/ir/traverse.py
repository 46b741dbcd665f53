"""The parts of expressions: where each node has operands, bound variables and blocks, by its declaration.

Everything recurses on nesting and loops on length. `relay.ir.rebuild` makes expressions of other parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    LoopLabel,
    Match,
    Next,
    OpCall,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.node import ByClass, Items, Role, selector
from relay.ir.surface import ForEach, Pattern, PatternMatch

_ATOMS = (Var, Constant, Global, Static)


def operands(expression: Expr) -> tuple[Atom, ...]:
    """The atoms that an expression reads itself, in order, without those inside its blocks."""
    return expression.arguments if isinstance(expression, OpCall) else _OPERANDS[expression.__class__](expression)


def bound_variables(expression: Expr | Pattern) -> tuple[Var, ...]:
    """The variables that an expression binds for its own blocks, or a pattern: parameters, fields, counters."""
    found: tuple[Var, ...] = _VARIABLES[expression.__class__](expression)
    return found


def blocks(expression: Expr) -> tuple[Block, ...]:
    """The blocks directly inside an expression, in order. The body of a lambda is one of them."""
    found: tuple[Block, ...] = _BLOCKS[expression.__class__](expression)
    return found


_OPERANDS: ByClass[Items] = ByClass(selector(Role.ATOM, lambda part: _OPERANDS[part.__class__](part)))
_VARIABLES: ByClass[Items] = ByClass(selector(Role.VARIABLE, lambda part: _VARIABLES[part.__class__](part)))
_BLOCKS: ByClass[Items] = ByClass(selector(Role.BLOCK, lambda part: _BLOCKS[part.__class__](part)))
_OPERANDS.update(dict.fromkeys(_ATOMS, lambda atom: (atom,)))
_VARIABLES.update(dict.fromkeys(_ATOMS, lambda _: ()))
_BLOCKS.update(dict.fromkeys(_ATOMS, lambda _: ()))


Branch: TypeAlias = If | Match


def bodies(branch: Branch) -> list[Block]:
    """The blocks that a branch chooses from: without the conditions."""
    chosen = [arm.body for arm in branch.arms]
    return [*chosen, branch.orelse] if isinstance(branch, If) else chosen


def yields(branch: Branch) -> list[tuple[Atom, ...]]:
    """The values of each body that yields any: the others leave."""
    ends = [body.terminator for body in bodies(branch)]
    return [end.values for end in ends if isinstance(end, Yield)]


def moves(body: Block) -> Iterator[tuple[tuple[Atom, ...], tuple[Var, ...]]]:
    """The values that control flow moves into variables, in a function's body and inside it, and these variables.

    They are the targets of branches, and the parameters and targets of loops; a loop with a counter gives its last
    parameters to its targets. What conditions yield, and functions return, is in no variable."""
    targets: dict[tuple[type, LoopLabel], tuple[Var, ...]] = {}
    for binding in walk(body):
        value = binding.value
        if value.__class__ not in NESTING:
            continue
        if isinstance(value, Loop):
            targets[Next, value.label], targets[Exit, value.label] = value.parameters, binding.targets
            yield value.initial, value.parameters
            if value.counter is not None:
                yield value.parameters, binding.targets
        elif isinstance(value, If | Match):
            for values in yields(value):
                yield values, binding.targets
        for block in blocks(value):  # what they lead to is around them
            end = block.terminator
            if isinstance(end, Next | Exit) and (end.__class__, end.label) in targets:
                yield end.values, targets[end.__class__, end.label]


def returns(function: Function) -> Iterator[Exit]:
    """The ends of paths that return from a function."""
    for block in all_blocks(function.body):
        if isinstance(block.terminator, Exit) and block.terminator.label is function.label:
            yield block.terminator


def terminator_operands(terminator: Terminator) -> tuple[Atom, ...]:
    """The atoms that a terminator passes on."""
    return () if isinstance(terminator, Dead) else terminator.values


NESTING = frozenset((If, Match, PatternMatch, Loop, ForEach, Lambda))
"""The expressions that have blocks. Most bindings are of others, and need no look inside."""


def walk(block: Block) -> Iterator[Binding]:
    """All bindings of a block and of the blocks inside it, each before those inside it. Linear."""
    pending = [iter(block.bindings)]
    while pending:
        for binding in pending[-1]:
            yield binding
            if binding.value.__class__ in NESTING:
                pending += [iter(b.bindings) for b in reversed(tuple(blocks(binding.value)))]
                break
        else:
            pending.pop()


def all_blocks(block: Block) -> Iterator[Block]:
    """A block and all blocks inside it. Linear."""
    yield block
    for binding in walk(block):
        if binding.value.__class__ in NESTING:
            yield from blocks(binding.value)


def count_bindings(block: Block) -> int:
    """The number of bindings in a block and inside it."""
    return sum(len(inner.bindings) for inner in all_blocks(block))


def free_variables(part: Block | Function) -> dict[Var, None]:
    """The variables that a block or function uses and does not bind, in the order of first use, as an ordered set.

    Linear, since every variable is bound once.
    """
    body = part.body if isinstance(part, Function) else part
    bound_here: set[Var] = set(part.parameters) if isinstance(part, Function) else set()
    used: dict[Var, None] = {}

    def use(atoms: Iterable[Atom]) -> None:
        used.update((a, None) for a in atoms if isinstance(a, Var))

    for binding in walk(body):
        bound_here.update(binding.targets)
        bound_here.update(bound_variables(binding.value))
        use(operands(binding.value))
        for block in blocks(binding.value):
            use(terminator_operands(block.terminator))
    use(terminator_operands(body.terminator))
    return {v: None for v in used if v not in bound_here}
