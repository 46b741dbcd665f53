"""`match`: the bodies of the cases, at the leaves of the decision tree.

A case that is reached in one place has its body there; one that is reached in several is after a loop that runs once,
which these places leave.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import InternalError, Span
from relay.ir.expr import Dead, Exit, Loop, LoopLabel, Var, Yield
from relay.ir.surface import PatternMatch
from relay.typecheck.elaboration.abstract_values import AbstractValue, Context, DeferredBinding, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.joins import Join, assign_joined
from relay.typecheck.elaboration.patterns.decision_tree import DecisionTree


def elaborate_match(
    checker: Checker, context: Context, targets: tuple[Var, ...], node: PatternMatch, out: TypedBlockBuilder
) -> None:
    """`match`. Raises TypeCheckError for values that no case covers, and for cases that others cover."""
    tree, tests = DecisionTree(checker, context, node), TypedBlockBuilder()
    tree.write(tests)
    bodies = _CaseBodies(checker, context, targets, tree)
    if tree.tests == 0:
        bodies.elaborate_taken_case(out, tests)
    else:
        bodies.elaborate_cases(out, tests)


class _CaseBodies:
    def __init__(self, checker: Checker, context: Context, targets: tuple[Var, ...], tree: DecisionTree) -> None:
        self.checker = checker
        self.context = context
        self.targets = targets
        self.tree = tree
        self.cases = tree.node.cases
        self.span = tree.node.span

    def elaborate_taken_case(self, out: TypedBlockBuilder, tests: TypedBlockBuilder) -> None:
        """The checker knows which case is taken."""
        ((case, ((leaf, entities),)),) = self.tree.leaves.items()
        if leaf is not tests:
            raise InternalError("a decided match with a test")
        out.items.append(tests)
        self._bind(case, entities)

        def on_yield(_: TypedBlockBuilder, values: tuple[AbstractValue, ...], __: Span | None) -> None:
            self.context.assign(self.targets, values)

        self.checker.engine.elaborate_block(self.checker, self.context, self.cases[case].body, out, on_yield)

    def elaborate_cases(self, out: TypedBlockBuilder, tests: TypedBlockBuilder) -> None:
        """Cases that meet after the match."""
        join, failures = Join(self.checker, [t.name for t in self.targets]), self.checker.failures
        leaves = self.tree.leaves
        shared = sorted(case for case, places in leaves.items() if len(places) > 1)
        flat = not shared and self.tree.deepest == 1
        for case, places in sorted(leaves.items()):
            if case not in shared:
                ((leaf, entities),) = places
                self._bind(case, entities)
                self.checker.engine.elaborate_block(self.checker, self.context, self.cases[case].body, leaf, join.add)
        for case in shared:
            tests = self._elaborate_shared(case, tests, join)
        if flat:
            bound, entities = join.close(lambda atoms, at: Yield(atoms, at))
            last = tests.items.pop()
            assert isinstance(last, DeferredBinding)
            out.items += [tests, DeferredBinding(bound, last.build)]
        else:
            label = LoopLabel("match")
            bound, entities = join.close(lambda atoms, at: Exit(label, atoms, at))
            out.items.append(DeferredBinding(bound, lambda: Loop(label, (), (), tests.block(), None, self.span)))
        if not assign_joined(self.checker, self.context, self.targets, join, entities, failures):
            out.terminator = Dead()

    def _elaborate_shared(self, case: int, tests: TypedBlockBuilder, join: Join) -> TypedBlockBuilder:
        """The tests in a loop that the leaves of a case leave, and its body after it."""
        label = LoopLabel("case")
        reached = Join(self.checker, [v.name for v in self.tree.variables(case)])
        for leaf, entities in self.tree.leaves[case]:
            reached.add(leaf, entities, self.cases[case].span)
        bound, merged = reached.close(lambda atoms, at: Exit(label, atoms, at))
        after = TypedBlockBuilder()
        after.items.append(DeferredBinding(bound, lambda: Loop(label, (), (), tests.block(), None, self.span)))
        self._bind(case, merged)
        self.checker.engine.elaborate_block(self.checker, self.context, self.cases[case].body, after, join.add)
        return after

    def _bind(self, case: int, entities: Sequence[AbstractValue]) -> None:
        self.context.assign(self.tree.variables(case), entities)
