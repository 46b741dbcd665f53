"""`match`: its patterns, guards and arms.

The classes and values that the patterns name are computed once, before the match. A name that a pattern binds is an
ordinary variable of its case. If a guard does not hold, Python has bound the names of its pattern all the same; reading
such a name in a later case, or afterwards, is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import numpy as np

from relay.errors import FrontendError, InternalError, Label, Span
from relay.frontend.analysis.names import has_assignment
from relay.frontend.conditions import lower_condition
from relay.frontend.context import Context, SurfaceBlock, Unassigned
from relay.frontend.joins import Branch, join
from relay.ir.expr import Block, Constant, Dead, Static, Var, Yield
from relay.ir.surface import (
    CapturePattern,
    ClassPattern,
    OrPattern,
    Pattern,
    PatternCase,
    PatternMatch,
    TuplePattern,
    ValuePattern,
    WildcardPattern,
)


def lower_match(context: Context, node: ast.Match) -> None:
    """`match subject:` and its cases."""
    subject = context.atom(node.subject)
    live = context.liveness.live_around(node).after
    branches: list[Branch] = []
    heads: list[tuple[Pattern, Block | None]] = []
    leaking: dict[str, Unassigned] = {}
    for case in node.cases:
        names: dict[str, Var] = {}
        pattern = _pattern(context, case.pattern, names, set())
        with context.new_block() as block:
            block.environment.states.update(leaking)
            for name, var in names.items():
                assert var.span is not None
                context.rename(name, var, var.span)
            guard = None if case.guard is None else _guard(context, case.guard, block)
            context.statements(case.body)
        heads.append((pattern, guard))
        branches.append(Branch(block, context.file.span(case.pattern), "not assigned in this case"))
        if case.guard is not None:
            for name in names:
                leaking[name] = Unassigned(
                    f"`{name}` may have been bound by a case whose guard did not hold",
                    (Label(context.file.span(case.pattern), "bound here"),),
                    "use another name in one of the cases",
                )
    span = context.file.header(node, node.subject)
    targets = join(context, branches, live, span)
    cases = tuple(
        PatternCase(pattern, guard, branch.block.block(), branch.span)
        for (pattern, guard), branch in zip(heads, branches, strict=True)
    )
    context.emit(targets, PatternMatch(subject, cases, span))
    if not any(isinstance(branch.block.terminator, Yield) for branch in branches):
        context.block.terminator = Dead()


def _guard(context: Context, node: ast.expr, case: SurfaceBlock) -> Block:
    if has_assignment(node):
        raise FrontendError(
            "a guard cannot assign a name", context.span(node), help="assign it before the match, or in the case"
        )
    with context.new_block() as block:
        value = lower_condition(context, node)
    case.environment.captured.update(block.environment.captured)
    return block.block(Yield((value,), context.span(node)))


def _pattern(context: Context, node: ast.pattern, variables: dict[str, Var], seen: set[str]) -> Pattern:
    """A pattern. `variables` are those of the case by name, `seen` the names that the pattern has bound to the left."""
    span = context.file.span(node)

    def nested_pattern(part: ast.pattern) -> Pattern:
        return _pattern(context, part, variables, seen)

    def capture(name: str) -> Var:
        if name in seen:
            raise FrontendError(f"`{name}` is bound twice in this pattern", span)
        seen.add(name)
        return variables.setdefault(name, Var(name, None, span))

    match node:
        case ast.MatchAs(pattern=None, name=None) | ast.MatchStar(name=None):
            return WildcardPattern(span)
        case ast.MatchAs(pattern=inner, name=str(name)):
            pattern = WildcardPattern(span) if inner is None else nested_pattern(inner)
            return CapturePattern(capture(name), pattern, span)
        case ast.MatchStar(name=str(name)):
            return CapturePattern(capture(name), WildcardPattern(span), span)
        case ast.MatchValue(value=value):
            return ValuePattern(context.atom(value), span)
        case ast.MatchSingleton(value=bool(value)):
            return ValuePattern(Constant(np.asarray(value), span), span)
        case ast.MatchSingleton():
            return ValuePattern(Static(None, span), span)
        case ast.MatchSequence(patterns=parts):
            stars = [i for i, part in enumerate(parts) if isinstance(part, ast.MatchStar)]
            return TuplePattern(tuple(map(nested_pattern, parts)), stars[0] if stars else None, span)
        case ast.MatchClass(cls=cls, patterns=parts, kwd_attrs=keys, kwd_patterns=values):
            function = context.atom(cls)
            items = tuple(map(nested_pattern, parts))
            return ClassPattern(function, items, tuple(zip(keys, map(nested_pattern, values), strict=True)), span)
        case ast.MatchOr(patterns=parts):
            return _alternatives(context, parts, variables, seen, span)
        case ast.MatchMapping(keys=keys, patterns=parts, rest=rest):
            fields = tuple(_fields(context, keys, parts, nested_pattern, rest, capture))
            return ClassPattern(Static(dict, span), (), fields, span)
        case _:
            raise InternalError(f"a pattern of class {type(node).__name__}")


def _fields(
    context: Context,
    keys: list[ast.expr],
    parts: list[ast.pattern],
    inside: Callable[[ast.pattern], Pattern],
    rest: str | None,
    capture: Callable[[str], Var],
) -> Iterator[tuple[str, Pattern]]:
    """The keys of a mapping pattern, `{"a": x, **rest}`, with their patterns; the rest has the key `**`."""
    for key, part in zip(keys, parts, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise FrontendError("the keys of a dict must be string literals", context.span(key), help='write "name"')
        yield key.value, inside(part)
    if rest is not None:
        variable = capture(rest)
        yield "**", CapturePattern(variable, WildcardPattern(variable.span), variable.span)


def _alternatives(
    context: Context, parts: list[ast.pattern], variables: dict[str, Var], seen: set[str], span: Span
) -> Pattern:
    """Alternatives bind the same names; a name is one variable, whichever alternative fits."""
    alternatives = []
    bound: list[set[str]] = []
    for part in parts:
        own = set(seen)
        alternatives.append(_pattern(context, part, variables, own))
        bound.append(own)
    for other in bound[1:]:
        if different := sorted(other ^ bound[0]):
            raise FrontendError(
                f"`{different[0]}` is not bound by every alternative", span, help="bind the same names in all of them"
            )
    seen |= bound[0]
    return OrPattern(tuple(alternatives), span)
