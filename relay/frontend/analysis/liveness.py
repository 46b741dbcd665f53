"""Liveness of Python variables: two analyses of a function's statements.

Backward, which names are live:

    live before s  =  reads(s)  |  (live after s  -  assigned by s)
    live before a loop's round, X  =  reads of the condition | live after the loop | the body's reads
                                      | (X - what the body kills)

The last equation has the form X = A | (X - K) with a least solution A, so one pass with X = {} finds it, and a second
pass with the solution records what holds inside. Forward, which names have a value wherever a `while` loop is left
(`bound_at_exits`).

Names are over-approximated: what is called live may be dead, never the other way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

import attrs

from relay.frontend.analysis.names import (
    assigned_names,
    certainly_assigned,
    if_chain,
    is_always_true,
    pattern_names,
    read_names,
    subscripted_name,
    target_names,
)

NOTHING: frozenset[str] = frozenset()


@attrs.frozen(eq=False)
class LiveNames:
    """The live names around a statement, restricted to the names that it assigns.

    `after` it; for a loop also at its `head`, where it is decided whether there is another round, and where a round
    begins.
    """

    after: frozenset[str]
    head: frozenset[str] = NOTHING
    begin: frozenset[str] = NOTHING


class Liveness:
    """The live names around each `if`, `while` and `for` of a function, by the node's identity. `returned`: the
    variables whose values each `return` gives back."""

    def __init__(self, body: Sequence[ast.stmt], returned: Iterable[str] = ()) -> None:
        self._around: dict[int, LiveNames] = {}
        self._after: dict[int, frozenset[str]] = {}  # the names after the last of some statements
        self._after_errors: dict[int, frozenset[str]] = {}
        self._returned = frozenset(returned)  # what each `return` reads, beside its value
        self._final: set[str] = set()  # what the `finally`s around read
        self._block(body, set(self._returned), NOTHING, NOTHING, record=True)

    def live_around(self, node: ast.stmt) -> LiveNames:
        """The live names around a statement that has been analyzed."""
        return self._around[id(node)]

    def names_after(self, final: Sequence[ast.stmt]) -> frozenset[str]:
        """The live names where a `finally` starts without an error."""
        return self._after[id(final[0])]

    def live_after_error(self, protected: Sequence[ast.AST]) -> frozenset[str]:
        """The live names where an error in the body of a `try`, or in one with its handlers, leads."""
        return self._after_errors[id(protected[-1])]

    def _block(
        self,
        statements: Sequence[ast.stmt],
        live: set[str],
        breaks: Iterable[str],
        continues: Iterable[str],
        *,
        record: bool,
    ) -> set[str]:
        """The names that are live before the statements. `live`, the ones after them, is used up."""
        for statement in reversed(statements):
            match statement:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._target(target, live)
                    live |= read_names(value)
                case ast.AnnAssign(target=target, value=value):
                    self._target(target, live)
                    live |= read_names(value)
                case ast.AugAssign(target=target, value=value):
                    live |= read_names(value) | read_names(target) | target_names(target)
                case ast.FunctionDef(name=name):
                    live.discard(name)
                    live |= read_names(statement)
                case ast.Return(value=value):
                    live = read_names(value) | self._final | self._returned
                case ast.Try():
                    live = self._try(statement, live, breaks, continues, record)
                case ast.With(body=body, items=items):
                    live = self._block(body, live, breaks, continues, record=record)
                    live = live.union(*(read_names(item.context_expr) for item in items))
                case ast.Raise():
                    live = read_names(statement)
                case ast.Break():
                    live = set(breaks) | self._final
                case ast.Continue():
                    live = set(continues) | self._final
                case ast.If():
                    live = self._if(statement, live, breaks, continues, record)
                case ast.Match():
                    live = self._match(statement, live, breaks, continues, record)
                case ast.While() | ast.For():
                    live = self._loop(statement, live, breaks, continues, record)
                case _:
                    live |= read_names(statement)
        return live

    def _target(self, target: ast.expr, live: set[str]) -> None:
        live -= target_names(target)
        live |= read_names(target)  # bases and indices; `x[i] = v` reads x
        if isinstance(target, ast.Subscript | ast.Attribute):
            base = subscripted_name(target)
            if base is not None:
                live.add(base)

    def _if(
        self, node: ast.If, after: set[str], breaks: Iterable[str], continues: Iterable[str], record: bool
    ) -> set[str]:
        if record:
            self._around[id(node)] = LiveNames(frozenset(after & assigned_names([node]).keys()))
        chain, orelse = if_chain(node)
        live = self._block(orelse, set(after), breaks, continues, record=record)
        for arm in reversed(chain):
            live |= self._block(arm.body, set(after), breaks, continues, record=record)
            live |= read_names(arm.test)
        return live

    def _try(
        self, node: ast.Try, after: set[str], breaks: Iterable[str], continues: Iterable[str], record: bool
    ) -> set[str]:
        outside = self._final
        finished = self._block(node.finalbody, set(after), breaks, continues, record=record)
        failing = self._block(node.finalbody, set(), breaks, continues, record=False)
        self._final = outside | failing
        caught = set(failing)
        for handler in node.handlers:
            inside = self._block(handler.body, set(finished), breaks, continues, record=record)
            caught |= inside - {handler.name} | read_names(handler.type)
        ended = self._block(node.orelse, set(finished), breaks, continues, record=record)
        live = self._block(node.body, set(ended), breaks, continues, record=record) | caught
        self._final = outside
        if record:
            self._around[id(node)] = LiveNames(frozenset(finished & assigned_names([node]).keys()))
            for part in (*node.body, *node.handlers, *node.orelse):
                self._after_errors[id(part)] = frozenset(failing)
            self._after_errors[id(node.body[-1])] = frozenset(caught if node.handlers else failing)
            if node.finalbody:
                self._after[id(node.finalbody[0])] = frozenset(finished)
        return live

    def _match(
        self, node: ast.Match, after: set[str], breaks: Iterable[str], continues: Iterable[str], record: bool
    ) -> set[str]:
        if record:
            self._around[id(node)] = LiveNames(frozenset(after & assigned_names([node]).keys()))
        live = read_names(node.subject)
        for case in node.cases:
            inside = self._block(case.body, set(after), breaks, continues, record=record) | read_names(case.guard)
            live |= (inside - pattern_names(case.pattern)) | read_names(case.pattern)
        return live

    def _loop(
        self, node: ast.While | ast.For, after: set[str], breaks: Iterable[str], continues: Iterable[str], record: bool
    ) -> set[str]:
        finished = self._block(node.orelse, set(after), breaks, continues, record=record)
        if isinstance(node, ast.While):
            ahead = read_names(node.test) | (set() if is_always_true(node.test) else finished)
            targets: set[str] = set()
        else:
            ahead = finished
            targets = target_names(node.target)
        head = ahead | (self._block(node.body, set(), after, NOTHING, record=False) - targets)
        if record:
            begin = self._block(node.body, set(head), after, head, record=True) - targets
            assigned = assigned_names([node]).keys()
            self._around[id(node)] = LiveNames(
                frozenset(after & assigned), frozenset(head & assigned), frozenset(begin & assigned)
            )
        return head if isinstance(node, ast.While) else head | read_names(node.iter)


def bound_at_exits(loop: ast.While | ast.For, bound: Iterable[str]) -> set[str]:
    """The names that have a value wherever the loop is left, other than by leaving the function or an outer loop."""
    if isinstance(loop, ast.For):
        return _definite_bindings_of_for(loop, set(bound), []) or set()
    return _bound_after_while(loop, set(bound), []) or set()


def leaves_by_break(body: Sequence[ast.stmt]) -> bool:
    """True if a loop with this body can be left by a `break`."""
    stack = list(body)
    while stack:
        match stack.pop():
            case ast.Break():
                return True
            case ast.If(body=inner, orelse=orelse):
                stack += inner + orelse
            case ast.Match(cases=cases):
                for each in cases:
                    stack += each.body
            case ast.Try(body=inner, handlers=handlers, orelse=orelse, finalbody=final):
                stack += inner + orelse + final
                for handler in handlers:
                    stack += handler.body
            case ast.While(orelse=orelse) | ast.For(orelse=orelse):
                stack += orelse
            case _:
                pass
    return False


def _definite_bindings(statements: Sequence[ast.stmt], bound: set[str], breaks: list[set[str]]) -> set[str] | None:
    """The names that are bound after the statements; None if their end is not reached. Collects those at each break."""
    after: set[str] | None = bound
    for statement in statements:
        match statement:
            case ast.Return() | ast.Raise() | ast.Continue():
                return None
            case ast.Break():
                breaks.append(bound)
                return None
            case ast.If():
                after = _bound_after_if(statement, bound, breaks)
            case ast.Match(subject=subject, cases=cases):
                start = bound | certainly_assigned(subject)
                after = _common_names(
                    [_definite_bindings(each.body, start | pattern_names(each.pattern), breaks) for each in cases]
                )
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                ends = [_definite_bindings([*body, *orelse], bound, breaks)]
                ends += [_definite_bindings(handler.body, bound, breaks) for handler in handlers]
                after = _common_names(ends)
                after = after if after is None else _definite_bindings(final, after, breaks)
            case ast.While():
                after = _bound_after_while(statement, bound, breaks)
            case ast.For():
                after = _definite_bindings_of_for(statement, bound, breaks)
            case ast.FunctionDef(name=name):
                after = bound | {name}
            case ast.Assign(targets=targets, value=value):
                after = bound | certainly_assigned(value) | set().union(*map(target_names, targets))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                after = bound | target_names(target) | certainly_assigned(statement)
            case _:
                after = bound | certainly_assigned(statement)
        if after is None:
            return None
        bound = after
    return bound


def _bound_after_if(node: ast.If, bound: set[str], breaks: list[set[str]]) -> set[str] | None:
    chain, orelse = if_chain(node)
    ends: list[set[str] | None] = []
    for arm in chain:
        bound = bound | certainly_assigned(arm.test)
        ends.append(_definite_bindings(arm.body, bound, breaks))
    ends.append(_definite_bindings(orelse, bound, breaks))
    return _common_names(ends)


def _bound_after_while(loop: ast.While, bound: set[str], breaks: list[set[str]]) -> set[str] | None:
    bound = bound | certainly_assigned(loop.test)
    ends: list[set[str] | None] = []
    own: list[set[str]] = []
    _definite_bindings(loop.body, bound, own)
    ends += own
    if not is_always_true(loop.test):
        ends.append(_definite_bindings(loop.orelse, bound, breaks))
    return _common_names(ends)


def _definite_bindings_of_for(loop: ast.For, bound: set[str], breaks: list[set[str]]) -> set[str] | None:
    bound = bound | certainly_assigned(loop.iter)
    ends: list[set[str] | None] = []
    own: list[set[str]] = []
    _definite_bindings(loop.body, bound | target_names(loop.target), own)
    ends += own
    ends.append(_definite_bindings(loop.orelse, bound, breaks))
    return _common_names(ends)


def _common_names(ends: Iterable[set[str] | None]) -> set[str] | None:
    reached = [end for end in ends if end is not None]
    return set.intersection(*reached) if reached else None
