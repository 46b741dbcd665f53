"""`if`: its arms, and the join of what they give."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from relay.errors import Span, TypeMismatch
from relay.ir.expr import Arm, Block, Dead, If, Var, Yield
from relay.ir.sizes.facts import DimConstraint
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DynamicValue,
    Poison,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import boolean_operators, optionals
from relay.typecheck.elaboration.control_flow.joins import Join
from relay.typecheck.elaboration.dynamic_shapes import data_dependent, size_conditions
from relay.typecheck.elaboration.engine import OnYield
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.schemes import conditional_types


def elaborate_if(
    checker: Checker, context: Context, targets: tuple[Var, ...], node: If, out: TypedBlockBuilder
) -> None:
    """`if`. A condition that the checker knows chooses its arm; the other arms are not checked."""
    branches = _Branches(checker, context, targets, node, out)
    otherwise = next((chosen for arm in node.arms if (chosen := branches.arm(arm)) is not None), node.orelse)
    if branches.arms:
        branches.orelse(otherwise)
    else:
        branches.take(otherwise)


class _Branches:
    """An `if`, arm by arm: what is known where the next one is reached, and what those before it give."""

    def __init__(
        self, checker: Checker, context: Context, targets: tuple[Var, ...], node: If, out: TypedBlockBuilder
    ) -> None:
        self.checker = checker
        self.context = context
        self.targets = targets
        self.node = node
        self.out = out
        self.arms: list[tuple[TypedBlockBuilder, TypedBlockBuilder]] = []  # which stay: conditions, and bodies
        self._join = Join(checker, [t.name for t in targets])
        self._failures = checker.failures
        self._operator = self._join.operator = boolean_operators.boolean_operator(context, node)
        self._is_refused, self._by_sizes, self._by_call, self._decided = False, False, False, True
        self._known_of_sizes: list[DimConstraint] = []  # since the arms before are not taken
        self._not_none: frozenset[Var] = frozenset()  # since the arms before are not taken
        self._paths: list[list[size_conditions.Path]] = [[] for _ in targets]
        self._present: list[tuple[frozenset[Var], tuple[AbstractValue, ...]]] = []  # of the paths that arrive

    def arm(self, arm: Arm) -> Block | None:
        """Elaborate an arm. One whose condition never holds is left out; of one whose condition always holds the block
        is returned, which is the `else` then."""
        checker, is_first = self.checker, not self.arms
        place, failures = self.out if is_first else TypedBlockBuilder(), checker.failures
        behind = size_conditions.later_arm(checker, self._known_of_sizes, self._by_sizes, not is_first)
        narrowed = self._narrow(place, self._not_none, arm.condition)
        with behind, narrowed, conditional_types.arm(checker, self._by_call):
            condition = _condition(checker, self.context, arm.condition, place, self.node.span)
        self._is_refused = self._is_refused or checker.failures > failures
        known = is_constant_bool(condition)
        if known is not None and (is_first or not place.items):
            return arm.body if known else None
        if is_first:  # its condition is computed before the `if`
            place = TypedBlockBuilder()
        place.terminator = Yield((condition.atom,), self.node.span)
        self._conditional(arm, condition, place)
        return None

    def _conditional(self, arm: Arm, condition: DynamicValue, place: TypedBlockBuilder) -> None:
        """Elaborate the body of an arm that stays; its condition is computed at this place."""
        checker, body = self.checker, TypedBlockBuilder()
        self._by_call = self._by_call or conditional_types.decides(checker, arm.condition)
        said = size_conditions.condition_of(checker, condition)
        by_sizes = said is not None and said.decided
        self._decided, self._by_sizes = self._decided and by_sizes, self._by_sizes or by_sizes
        holds = self._known_of_sizes if said is None else [*self._known_of_sizes, *said.holds]
        holding, failing = checker.none_tests.of_condition(condition)
        self._body(arm.body, body, holds, self._not_none | holding)
        self._not_none |= failing
        if said is not None:
            self._known_of_sizes += said.fails
        self.arms.append((place, body))

    def _body(
        self, block: Block, out: TypedBlockBuilder, holds: Sequence[DimConstraint], present: frozenset[Var]
    ) -> None:
        """Elaborate a body, where this holds of sizes, and these variables are not None."""
        checker = self.checker
        arrival = self._on_arrival(block, tuple(holds), self._decided, present)
        narrowed = self._narrow(out, present, block)
        with (
            size_conditions.arm(checker, holds, self._by_sizes),
            conditional_types.arm(checker, self._by_call),
            narrowed,
        ):
            checker.engine.elaborate_block(checker, self.context, block, out, arrival)

    def _narrow(self, out: TypedBlockBuilder, present: frozenset[Var], block: Block) -> AbstractContextManager[None]:
        return optionals.narrowed_variables(self.checker, self.context, out, present, [block])

    def _on_arrival(
        self, body: Block, holds: tuple[DimConstraint, ...], decided: bool, present: frozenset[Var]
    ) -> OnYield:
        def add(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
            if isinstance(body.terminator, Yield):
                for value, entity in zip(body.terminator.values, entities, strict=False):
                    optionals.note_truth(self.checker, entity, value, entity)
            entities = entities if self._operator is None else self._operator.arrivals(body, entities, span)
            self._join.add(place, entities, span)
            self._present.append((present, entities))
            for ways, entity in zip(self._paths, entities, strict=False):
                ways.append(size_conditions.Path(holds, entity, decided))

        return add

    def take(self, block: Block) -> None:
        """Elaborate the block that is taken in any case."""

        def on_yield(_: TypedBlockBuilder, entities: tuple[AbstractValue, ...], __: Span | None) -> None:
            self.context.assign(self.targets, entities)

        self.checker.engine.elaborate_block(self.checker, self.context, block, self.out, on_yield)

    def orelse(self, block: Block) -> None:
        """Elaborate the block that is taken where no arm is, and join what all give."""
        checker, last = self.checker, TypedBlockBuilder()
        self._body(block, last, self._known_of_sizes, self._not_none)
        if self._is_refused:  # what the arms give may be of other types only because the condition is
            self.context.assign(self.targets, [Poison()] * len(self.targets))
            return
        self._join.by_sizes, self._join.by_call = self._by_sizes and checker.generic, self._by_call
        bound, entities = self._join.close(lambda atoms, span: Yield(atoms, span))
        ends = [body.terminator for _, body in self.arms]
        if any(not isinstance(end, Yield) for end in (*ends, last.terminator)):
            checker.may_have_ended = True
        if self._known_of_sizes and all(end is not None and not isinstance(end, Yield) for end in ends):
            checker.keep_knowing(self._known_of_sizes)  # what follows runs only where no arm was taken

        def build() -> If:
            return If(tuple(Arm(c.block(), b.block()) for c, b in self.arms), last.block(), self.node.span)

        self.out.items.append(DeferredBinding(bound, build))
        if self._join.paths:
            self._assign(entities)
        elif checker.failures == self._failures:  # no path arrives
            self.out.terminator = Dead()
        else:
            self.context.assign(self.targets, [Poison()] * len(self.targets))

    def _assign(self, entities: Sequence[AbstractValue]) -> None:
        """Let the targets be what the paths give, and note what is known of each path."""
        checker, paths = self.checker, self._paths
        entities = tuple(size_conditions.join_truth_values(e, ways) for e, ways in zip(entities, paths, strict=True))
        opened = [data_dependent.all_opened(checker, self.out, entity, self.node.span) for entity in entities]
        self.context.assign(self.targets, opened)
        for entity, ways in zip(entities, paths, strict=False):
            size_conditions.note_joined(checker, entity, ways)
        for position, entity in enumerate(entities):
            checker.none_tests.note_choice(entity, [(present, given[position]) for present, given in self._present])
        if len(self._present) <= len(self.arms):  # some arms have left
            present = frozenset.intersection(*(present for present, _ in self._present))
            optionals.narrow(checker, self.context, self.out, present)


def _condition(
    checker: Checker, context: Context, block: Block, out: TypedBlockBuilder, span: Span | None
) -> DynamicValue:
    found: list[DynamicValue] = []

    def on_yield(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], at: Span | None) -> None:
        known = is_constant_bool(entities[0])
        try:
            typed = require_bool(checker, place, entities[0], at or span, "a condition")
            end = block.terminator
            optionals.note_truth(checker, typed, end.values[0] if isinstance(end, Yield) else None, entities[0])
        except (TypeMismatch, DependsOnPoison) as error:  # the arms can be checked all the same
            checker.report(error)
            typed = checker.constant_bool(span)
        found.append(typed if known is None else DynamicValue(typed.atom, typed.type, known))

    checker.engine.elaborate_block(checker, context, block, out, on_yield)
    if not found:
        raise DependsOnPoison
    return found[0]
