"""`match`: the bodies of the cases, at the leaves of the decision tree.

A case that is reached in one place has its body there; one that is reached in several stands after a loop that runs
once, which these places leave.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import InternalError, Span
from relay.ir.expr import Dead, Exit, Loop, LoopLabel, PatternMatch, Var, Yield
from relay.typecheck.elaboration.abstract_values import Context, Entity, Later, Output
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.control_flow.joins import Join, assign, assign_joined
from relay.typecheck.elaboration.expressions.blocks import elaborate_block
from relay.typecheck.elaboration.patterns.decision_tree import DecisionTree


def elaborate_match(
    session: Session, context: Context, targets: tuple[Var, ...], node: PatternMatch, out: Output
) -> None:
    """`match`. Raises TypeCheckError for values that no case covers, and for cases that others cover."""
    tree, tests = DecisionTree(session, context, node), Output()
    tree.write(tests)
    bodies = _Bodies(session, context, targets, tree)
    if tree.tests == 0:
        bodies.direct(out, tests)
    else:
        bodies.joined(out, tests)


class _Bodies:
    def __init__(self, session: Session, context: Context, targets: tuple[Var, ...], tree: DecisionTree) -> None:
        self.session = session
        self.context = context
        self.targets = targets
        self.tree = tree
        self.cases = tree.node.cases
        self.span = tree.node.span

    def direct(self, out: Output, tests: Output) -> None:
        """The checker knows which case is taken."""
        ((case, ((leaf, entities),)),) = self.tree.leaves.items()
        if leaf is not tests:
            raise InternalError("a decided match with a test")
        out.items.append(tests)
        self._bind(case, entities)

        def on_yield(_: Output, values: tuple[Entity, ...], __: Span | None) -> None:
            assign(self.context, self.targets, values)

        elaborate_block(self.session, self.context, self.cases[case].body, out, on_yield)

    def joined(self, out: Output, tests: Output) -> None:
        """Cases that meet after the match."""
        join, failures = Join(self.session, [t.name for t in self.targets]), self.session.failures
        leaves = self.tree.leaves
        shared = sorted(case for case, places in leaves.items() if len(places) > 1)
        flat = not shared and self.tree.deepest == 1
        for case, places in sorted(leaves.items()):
            if case not in shared:
                ((leaf, entities),) = places
                self._bind(case, entities)
                elaborate_block(self.session, self.context, self.cases[case].body, leaf, join.add)
        for case in shared:
            tests = self._shared(case, tests, join)
        if flat:
            bound, entities = join.close(lambda atoms, at: Yield(atoms, at))
            last = tests.items.pop()
            assert isinstance(last, Later)
            out.items += [tests, Later(bound, last.build)]
        else:
            label = LoopLabel("match")
            bound, entities = join.close(lambda atoms, at: Exit(label, atoms, at))
            out.items.append(Later(bound, lambda: Loop(label, (), (), tests.block(), None, self.span)))
        if not assign_joined(self.session, self.context, self.targets, join, entities, failures):
            out.terminator = Dead()

    def _shared(self, case: int, tests: Output, join: Join) -> Output:
        """The tests in a loop that the leaves of a case leave, and its body after it."""
        label = LoopLabel("case")
        reached = Join(self.session, [v.name for v in self.tree.variables(case)])
        for leaf, entities in self.tree.leaves[case]:
            reached.add(leaf, entities, self.cases[case].span)
        bound, merged = reached.close(lambda atoms, at: Exit(label, atoms, at))
        after = Output()
        after.items.append(Later(bound, lambda: Loop(label, (), (), tests.block(), None, self.span)))
        self._bind(case, merged)
        elaborate_block(self.session, self.context, self.cases[case].body, after, join.add)
        return after

    def _bind(self, case: int, entities: Sequence[Entity]) -> None:
        assign(self.context, self.tree.variables(case), entities)
