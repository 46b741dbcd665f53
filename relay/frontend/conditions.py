"""Conditionals: `if`, conditional expressions, `and`, `or`, chained comparisons.

All become `If`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from relay.errors import FrontendError, InternalError, Span
from relay.frontend.analysis.names import assigned_names, has_assignment, if_chain
from relay.frontend.context import Context, Environment, SurfaceBlock
from relay.frontend.joins import Branch, join
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Dead,
    Exit,
    Expr,
    If,
    Loop,
    LoopLabel,
    OpCall,
    Static,
    Var,
    Yield,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}


def bool_constant(value: bool, span: Span | None) -> Constant:
    """True or False."""
    return Constant(np.asarray(value), span)


# ---- statements


def lower_if(context: Context, node: ast.If) -> None:
    """`if`, all its `elif`s, and `else`."""
    chain, orelse = if_chain(node)
    _lower_arms(context, chain, orelse, context.liveness.live_around(node).after)


def conjuncts(context: Context, test: ast.expr) -> list[ast.expr] | None:
    """The operands of `a and (b := ..)`, whose new names have a value where all hold; None for other conditions."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            names = assigned_names(values[1:])
            lookup = context.block.environment.lookup
            return values if names and not any(isinstance(lookup(name), Var) for name in names) else None
        case _:
            return None


class Conjunction:
    """`if a: if b: body`, written from outside to inside, and emitted once the body's end is known.

    What follows in the current block runs where one of the tests does not hold.
    """

    def __init__(self, context: Context, tests: Sequence[ast.expr], lower_body: Callable[[], None]) -> None:
        self._around = context.block
        self._levels: list[tuple[Atom, Span, SurfaceBlock]] = []
        self._nest(context, list(tests), lower_body)
        self._place = len(self._around.items)
        # What the following statements assign is not what the body sees.
        self._around.environment = Environment(self._around.environment)

    def _nest(self, context: Context, tests: list[ast.expr], lower_body: Callable[[], None]) -> None:
        condition, span = lower_condition(context, tests[0]), context.span(tests[0])
        with context.new_block() as block:
            self._levels.append((condition, span, block))
            if len(tests) > 1:
                self._nest(context, tests[1:], lower_body)
            else:
                lower_body()
        context.block.environment.captured.update(block.environment.captured)

    def ends(self) -> tuple[SurfaceBlock, SurfaceBlock]:
        """The body, and the block around, each with all that was assigned on the way to its end."""
        first = self._around.environment.parent
        assert first is not None
        for end in (self._levels[-1][2], self._around):
            outer = end.environment.parent
            while outer is not None:
                end.environment.states = {**outer.states, **end.environment.states}
                outer = None if outer is first else outer.parent
        return self._levels[-1][2], self._around

    def emit(self) -> None:
        """Append the Ifs, from inside to outside."""
        for position in range(len(self._levels) - 1, -1, -1):
            condition, span, block = self._levels[position]
            arm = Arm(Block((), Yield((condition,), span)), block.block(Yield((), span)))
            binding = Binding((), If((arm,), Block((), Yield((), span)), span))
            if position:
                self._levels[position - 1][2].items.append(binding)
            else:
                self._around.items.insert(self._place, binding)


def _lower_conjunction(
    context: Context,
    tests: Sequence[ast.expr],
    chain: Sequence[ast.If],
    orelse: Sequence[ast.stmt],
    live: frozenset[str],
) -> None:
    """`if a and (b := ..): body else: orelse`, inside of a loop that runs once, which the body leaves."""
    node, label = chain[0], LoopLabel("if")
    span = context.file.header(node, node.test)
    with context.new_block() as whole:
        ifs = Conjunction(context, tests, lambda: context.statements(node.body))
        if len(chain) > 1:
            _lower_arms(context, chain[1:], orelse, live)
        else:
            context.statements(orelse)
    test, (body, otherwise) = context.span(node.test), ifs.ends()
    branches = [
        Branch(body, test, "not assigned if this holds"),
        Branch(otherwise, test, "not assigned if this does not hold"),
    ]
    targets = join(context, branches, live, span)
    left = False
    for branch in branches:
        end = branch.block.terminator
        if isinstance(end, Yield):
            branch.block.terminator, left = Exit(label, end.values, end.span), True
    ifs.emit()
    context.emit(targets, Loop(label, (), (), whole.block(), None, span))
    if not left:
        context.block.terminator = Dead()


def _lower_arms(context: Context, chain: Sequence[ast.If], orelse: Sequence[ast.stmt], live: frozenset[str]) -> None:
    tests = conjuncts(context, chain[0].test)
    if tests is not None:
        _lower_conjunction(context, tests, chain, orelse, live)
        return
    first_condition = Block((), Yield((lower_condition(context, chain[0].test),), context.span(chain[0].test)))
    span = context.file.header(chain[0], chain[0].test)
    conditions, branches = [first_condition], [_arm(context, chain[0])]
    rest = len(chain)
    for position, arm in enumerate(chain[1:], start=1):
        if has_assignment(arm.test):  # its names must be visible in the arms that follow
            rest = position
            break
        conditions.append(_condition(context, arm.test))
        branches.append(_arm(context, arm))
    with context.new_block() as otherwise:
        if rest < len(chain):
            _lower_arms(context, chain[rest:], orelse, live)
        else:
            context.statements(orelse)
    if orelse:
        branches.append(Branch(otherwise, context.span(orelse[0]), "not assigned on this path"))
    else:
        test = context.span(chain[-1].test)
        branches.append(Branch(otherwise, test, "not assigned if this does not hold"))
    targets = join(context, branches, live, span)
    emit_if(context, targets, conditions, branches, span)


def _arm(context: Context, node: ast.If) -> Branch:
    with context.new_block() as block:
        context.statements(node.body)
    return Branch(block, context.span(node.test), "not assigned if this holds")


def _condition(context: Context, node: ast.expr, lower: Callable[[ast.expr], Atom] | None = None) -> Block:
    """The block of a condition that is computed only if those before it do not hold."""
    with context.new_block() as block:
        value = lower(node) if lower is not None else lower_condition(context, node)
    context.block.environment.captured.update(block.environment.captured)
    return block.block(Yield((value,), context.span(node)))


def emit_if(
    context: Context, targets: tuple[Var, ...], conditions: Sequence[Block], branches: Sequence[Branch], span: Span
) -> None:
    """Append the If of these branches, the last of which is its else. The block ends if none of them yields."""
    *arms, otherwise = (branch.block.block() for branch in branches)
    value = If(tuple(map(Arm, conditions, arms)), otherwise, span)
    context.emit(targets, value)
    if not any(isinstance(branch.block.terminator, Yield) for branch in branches):
        context.block.terminator = Dead()


# ---- expressions


def lower_conditional(context: Context, node: ast.IfExp) -> Expr:
    """`a if c else b`. A chain of them in the last place is one If with several arms."""
    conditions = [Block((), Yield((lower_condition(context, node.test),), context.span(node.test)))]
    branches = [_value_branch(context, node.body)]
    values = [branches[0][1]]
    last = node.orelse
    while isinstance(last, ast.IfExp) and not has_assignment(last.test):
        conditions.append(_condition(context, last.test))
        branches.append(_value_branch(context, last.body))
        values.append(branches[-1][1])
        last = last.orelse
    branches.append(_value_branch(context, last))
    values.append(branches[-1][1])
    return _select_value(context, node, conditions, [b for b, _ in branches], values)


def lower_condition(context: Context, node: ast.expr) -> Atom:
    """An expression of which only the truth matters: the test of an `if`, the operand of `not`."""
    match node:
        case ast.BoolOp():
            return context.bind(lower_boolean(context, node, of_truth=True), "condition", context.span(node))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = OpCall("logical_not", (lower_condition(context, operand),), {}, context.span(node))
            return context.bind(value, "condition", context.span(node))
        case _:
            return context.atom(node)


def lower_boolean(context: Context, node: ast.BoolOp, of_truth: bool = False) -> Expr:
    """`a and b`, `a or b ..`; what is not needed is not computed. The value is that of the operand that decides, or
    whether it is true, where only that matters."""
    is_long = len(node.values) > 2 and not any(map(has_assignment, node.values))
    if is_long and (of_truth or all(map(_is_truth, node.values))):
        return _long_boolean(context, node)
    if is_long and len(node.values) > 8:  # `and` is associative: the depth of the nest is a logarithm
        middle = len(node.values) // 2
        halves = [_joined_operands(node, node.values[:middle]), _joined_operands(node, node.values[middle:])]
        return _nested_boolean(context, node, halves, of_truth)
    return _nested_boolean(context, node, node.values, of_truth)


def _is_truth(node: ast.expr) -> bool:
    """True for an expression that is a bool whatever its operands are."""
    match node:
        case ast.BoolOp(values=values):
            return all(map(_is_truth, values))
        case ast.Compare(ops=[_]) | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(left=left, comparators=others):
            return all(isinstance(part, ast.Name | ast.Constant) for part in (left, *others))
        case _:
            return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _joined_operands(node: ast.BoolOp, operands: list[ast.expr]) -> ast.BoolOp:
    first, last = operands[0], operands[-1]
    place = {"lineno": first.lineno, "col_offset": first.col_offset}
    return ast.BoolOp(node.op, operands, **place, end_lineno=last.end_lineno, end_col_offset=last.end_col_offset)


def _nested_boolean(context: Context, node: ast.BoolOp, operands: Sequence[ast.expr], of_truth: bool) -> Expr:
    """An If for the first operand, which is always computed; the others in its arm or its else."""
    lower, is_and = _operand_translation(context, of_truth), isinstance(node.op, ast.And)
    first = lower(operands[0])
    condition = Block((), Yield((first,), context.span(operands[0])))
    with context.new_block() as rest:
        if len(operands) == 2:
            value = lower(operands[1])
        else:
            nested = _nested_boolean(context, node, operands[1:], of_truth)
            value = context.bind(nested, "condition", context.span(operands[1]))
        rest.last_span = context.span(operands[1])
    known = _empty_block(context)
    known.last_span = context.span(operands[0])
    outcome = bool_constant(not is_and, context.span(operands[0])) if of_truth else first
    rest_branch = Branch(rest, context.span(operands[1]), "")
    known_branch = Branch(known, context.span(operands[0]), "not assigned if this decides alone")
    if is_and:
        return _select_value(context, node, [condition], [rest_branch, known_branch], [value, outcome])
    return _select_value(context, node, [condition], [known_branch, rest_branch], [outcome, value])


def _operand_translation(context: Context, of_truth: bool) -> Callable[[ast.expr], Atom]:
    return (lambda operand: lower_condition(context, operand)) if of_truth else context.atom


def _long_boolean(context: Context, node: ast.BoolOp) -> Expr:
    """An arm for each operand but the last, so that many operands do not nest. All of them are conditions."""
    is_and = isinstance(node.op, ast.And)

    def decides(operand: ast.expr) -> Atom:
        value = lower_condition(context, operand)
        if not is_and:
            return value
        return context.bind(
            OpCall("logical_not", (value,), {}, context.span(operand)), "condition", context.span(operand)
        )

    *early, last = node.values
    first = decides(early[0])
    conditions = [Block((), Yield((first,), context.span(early[0])))]
    conditions += [_condition(context, operand, decides) for operand in early[1:]]
    branches, values = [], []
    for operand in early:
        branches.append(Branch(_empty_block(context), context.span(operand), ""))
        values.append(bool_constant(not is_and, context.span(operand)))
    with context.new_block() as block:
        value = lower_condition(context, last)
        block.last_span = context.span(last)
    branch = Branch(block, context.span(last), "not assigned in this case")
    return _select_value(context, node, conditions, [*branches, branch], [*values, value])


def lower_comparison(context: Context, node: ast.Compare) -> Expr:
    """`a < b`, or `a < b < c ..`, where b is computed once and c only if the first comparison holds."""
    left, span = context.atom(node.left), context.span(node.left)
    return _comparison(context, node, left, span, 0)


def _comparison(context: Context, node: ast.Compare, left: Atom, left_span: Span, position: int) -> Expr:
    operation = type(node.ops[position])
    if operation in (ast.Is, ast.IsNot) and len(node.ops) == 1:
        sides = (node.left, node.comparators[0])
        if any(isinstance(side, ast.Constant) and side.value is None for side in sides):
            return _none_test(context, node, left, operation)
        return _identity_test(context, node, left, operation)
    if operation in (ast.Is, ast.IsNot):
        help = "write `x is y` alone, or compare values with `==`"
        raise FrontendError("`is` in a chain of comparisons is not part of Relay", context.span(node), help=help)
    right_node = node.comparators[position]
    if operation in (ast.In, ast.NotIn) and isinstance(right_node, ast.Set):  # where a set is a tuple
        right_node = ast.copy_location(ast.Tuple(right_node.elts, ast.Load()), right_node)
    right, right_span = context.atom(right_node), context.span(right_node)
    span = Span(left_span.source, left_span.line, left_span.column, right_span.end_line, right_span.end_column)
    value: Expr
    if operation in (ast.In, ast.NotIn):
        value = Apply(Static(Intrinsic("contains"), span), (left, right), (), span)
        if operation is ast.NotIn:
            value = OpCall("logical_not", (context.bind(value, "condition", span),), {}, span)
    else:
        value = OpCall(COMPARISONS[operation], (left, right), {}, span)
    if position == len(node.ops) - 1:
        return value
    condition = Block((), Yield((context.bind(value, "condition", span),), span))
    with context.new_block() as rest:
        nested = _comparison(context, node, right, right_span, position + 1)
        outcome = context.bind(nested, "condition", span)
    known = _empty_block(context)
    branches = [Branch(rest, span, ""), Branch(known, span, "not assigned if this does not hold")]
    return _select_value(context, node, [condition], branches, [outcome, bool_constant(False, span)])


def _none_test(context: Context, node: ast.Compare, left: Atom, operation: type[ast.cmpop]) -> Expr:
    """`x is None`, which the checker decides."""
    span = context.span(node)
    other = node.comparators[0]
    is_left = isinstance(node.left, ast.Constant) and node.left.value is None
    value = context.atom(other) if is_left else left
    test = Apply(Static(Intrinsic("is_none"), span), (value,), (), span)
    if operation is ast.Is:
        return test
    return OpCall("logical_not", (context.bind(test, "condition", span),), {}, span)


def _identity_test(context: Context, node: ast.Compare, left: Atom, operation: type[ast.cmpop]) -> Expr:
    """`x is y`, of objects that the checker knows: enums, types, True and False."""
    span = context.span(node)
    test = Apply(Static(Intrinsic("is_same"), span), (left, context.atom(node.comparators[0])), (), span)
    if operation is ast.Is:
        return test
    return OpCall("logical_not", (context.bind(test, "condition", span),), {}, span)


def _value_branch(context: Context, node: ast.expr) -> tuple[Branch, Atom]:
    with context.new_block() as block:
        value = context.atom(node)
        block.last_span = context.span(node)
    return Branch(block, context.span(node), "not assigned in this case"), value


def _select_value(
    context: Context, node: ast.expr, conditions: Sequence[Block], branches: Sequence[Branch], values: Sequence[Atom]
) -> Expr:
    """An If whose first target is the value of an expression. Names that its parts assign are further targets."""
    span = context.span(node)
    targets = join(context, branches, None, span)
    for branch, value in zip(branches, values, strict=True):
        end = branch.block.terminator
        if not isinstance(end, Yield):
            raise InternalError("a part of an expression that does not yield")
        branch.block.terminator = Yield((value, *end.values), end.span)
    if not targets:
        *arms, otherwise = (branch.block.block() for branch in branches)
        return If(tuple(map(Arm, conditions, arms)), otherwise, span)
    result = Var("chosen" if isinstance(node, ast.IfExp) else "condition", None, span)
    emit_if(context, (result, *targets), conditions, branches, span)
    return result


def _empty_block(context: Context) -> SurfaceBlock:
    """A block without bindings."""
    with context.new_block() as block:
        return block
