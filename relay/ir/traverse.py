"""The parts of expressions: where each node has operands, bound variables and blocks, by its declaration.

Everything recurses on nesting and loops on length. `relay.ir.rebuild` makes expressions of other parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Dead,
    Expr,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    Match,
    OpCall,
    Static,
    Terminator,
    Var,
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
