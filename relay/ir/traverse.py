"""The parts of expressions: where each node has operands, bound variables and blocks.

Everything recurses on nesting and loops on length. `relay.ir.rebuild` makes expressions of other parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

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
    Dead,
    Expr,
    Extent,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Match,
    OpCall,
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Terminator,
    Var,
)
from relay.ir.surface import (
    Annotated,
    Apply,
    Attribute,
    CapturePattern,
    ClassPattern,
    ForEach,
    Index,
    IndexUpdate,
    OrPattern,
    Pattern,
    PatternMatch,
    SetAttribute,
    Slice,
    TuplePattern,
    Unpack,
    ValuePattern,
    WildcardPattern,
)


def operands(expression: Expr) -> Iterable[Atom]:
    """The atoms that an expression reads itself, in order, without those inside its blocks."""
    return expression.arguments if isinstance(expression, OpCall) else _operands(expression)


def _operands(expression: Expr) -> Iterator[Atom]:
    match expression:
        case Var() | Constant() | Global() | Static():
            yield expression
        case OpCall(_, arguments) | Construct(_, _, arguments):
            yield from arguments
        case Call(function, arguments):
            yield function
            yield from arguments
        case MakeTuple(items):
            yield from items
        case If():
            pass
        case Loop(_, _, initial, _, counter):
            yield from initial
            if counter is not None:
                yield counter.count
        case Match(value) | Project(value) | RefNew(value) | Attribute(value) | Annotated(value) | Unpack(value):
            yield value
        case Grad(function):
            yield function
        case Lambda(function):
            yield from (p.default for p in function.signature if p.default is not None)
        case RefRead(reference):
            yield reference
        case RefWrite(reference, value):
            yield reference
            yield value
        case Shadow(reference, sweep, initial):
            yield reference
            yield sweep
            yield initial
        case Assert(condition):
            yield condition
        case Print(_, values):
            yield from values
        case StackNew() | Extent():
            pass
        case StackPush(stack, value):
            yield stack
            yield value
        case StackGet(stack, index) | StackPrefix(stack, index):
            yield stack
            yield index
        case StackSet(stack, index, value):
            yield stack
            yield index
            yield value
        case StackLength(stack):
            yield stack
        case BindDim(_, size):
            yield size
        case AxisSize(value) | Ascribe(value):
            yield value
        case Apply(function, arguments, keywords):
            yield function
            yield from arguments
            yield from (atom for _, atom in keywords)
        case SetAttribute(value, _, new):
            yield value
            yield new
        case Index(value, items):
            yield value
            yield from _item_atoms(items)
        case IndexUpdate(value, items, new):
            yield value
            yield from _item_atoms(items)
            yield new
        case ForEach(_, _, iterable, _, initial):
            yield iterable
            yield from initial
        case PatternMatch(value, cases):
            yield value
            for case in cases:
                yield from pattern_operands(case.pattern)
        case _:
            assert_never(expression)


def pattern_operands(pattern: Pattern) -> Iterator[Atom]:
    """The atoms that a pattern names."""
    match pattern:
        case ValuePattern(value):
            yield value
        case ClassPattern(function, items, keywords):
            yield function
            for item in (*items, *(p for _, p in keywords)):
                yield from pattern_operands(item)
        case TuplePattern(items) | OrPattern(items):
            for item in items:
                yield from pattern_operands(item)
        case CapturePattern(_, inner):
            yield from pattern_operands(inner)
        case WildcardPattern():
            pass
        case _:
            assert_never(pattern)


def pattern_variables(pattern: Pattern) -> Iterator[Var]:
    """The variables that a pattern binds; each alternative lists them."""
    match pattern:
        case CapturePattern(variable, inner):
            yield variable
            yield from pattern_variables(inner)
        case ClassPattern(_, items, keywords):
            for item in (*items, *(p for _, p in keywords)):
                yield from pattern_variables(item)
        case TuplePattern(items) | OrPattern(items):
            for item in items:
                yield from pattern_variables(item)
        case ValuePattern() | WildcardPattern():
            pass
        case _:
            assert_never(pattern)


def _item_atoms(items: tuple[Atom | Slice, ...]) -> Iterator[Atom]:
    for item in items:
        if isinstance(item, Slice):
            yield from (a for a in (item.start, item.stop, item.step) if a is not None)
        else:
            yield item


def blocks(expression: Expr) -> Iterator[Block]:
    """The blocks directly inside an expression, in order. The body of a lambda is one of them."""
    match expression:
        case If(arms, orelse):
            for arm in arms:
                yield arm.condition
                yield arm.body
            yield orelse
        case Match(_, match_arms):
            yield from (arm.body for arm in match_arms)
        case PatternMatch(_, cases):
            for case in cases:
                if case.guard is not None:
                    yield case.guard
                yield case.body
        case Loop(body=body) | ForEach(body=body):
            yield body
        case Lambda(function):
            yield function.body
        case _:
            pass


def bound_variables(expression: Expr) -> Iterator[Var]:
    """The variables that an expression binds for its own blocks: parameters, fields, counters."""
    match expression:
        case Match(_, arms):
            for arm in arms:
                yield from arm.fields
        case Loop(_, parameters, _, _, counter):
            yield from parameters
            if counter is not None:
                yield counter.index
        case Lambda(function):
            yield from function.parameters
        case ForEach(_, element, _, parameters):
            yield element
            yield from parameters
        case PatternMatch(_, cases):
            for case in cases:
                yield from dict.fromkeys(pattern_variables(case.pattern))
        case _:
            pass


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
