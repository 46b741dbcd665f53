"""Rounds that a loop over known numbers chooses by a condition on them: it becomes a loop over the numbers chosen.

    for i in range(300):                     for i in range(0, 300, 7):
        if i % 7 == 0:                           xs.append(f(i))
            xs.append(f(i))

So the lengths of the lists that it fills are known, as if its body were copied for each number. The condition stands
before all that changes something; it may also be the one of a `continue`.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span
from relay.ir.expr import Atom, Binding, Block, If, LoopLabel, Next, Var, Yield
from relay.ir.surface import ForEach
from relay.ir.traverse import free_variables
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    PythonNumber,
    Range,
    Tuple,
    TypedBlockBuilder,
    dim_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.known_sequences import counted_numbers
from relay.typecheck.elaboration.control_flow.loop_copies import StaticFlow

MOST_ELABORATED = 16384
"""The largest number of bindings that are elaborated to decide the conditions of all rounds."""


@attrs.frozen
class _Choice:
    """The body of a loop that does nothing but where a condition has a value: what is computed before, the condition,
    the value, and what is done."""

    before: tuple[Binding, ...]
    condition: Block
    value: bool
    chosen: tuple[Binding, ...]


def with_chosen_rounds(
    checker: Checker, context: Context, node: ForEach, iterable: AbstractValue
) -> tuple[ForEach, AbstractValue]:
    """A `for` that fills lists, without the rounds that are known to do nothing."""
    numbers = _numbers(iterable)
    choice = _choice(node) if node.resized and numbers and node.label not in checker.decisions.copied else None
    if choice is None or numbers is None:
        return node, iterable
    prelude = (*choice.before, *choice.condition.bindings)
    if len(numbers) * (1 + len(prelude)) * checker.frame.copies > MOST_ELABORATED:
        return node, iterable
    flow = StaticFlow(context, node, iterable)
    decisive = choice.condition.terminator
    if not isinstance(decisive, Yield) or not all(map(flow.is_known, decisive.values)):
        return node, iterable
    needed = _needed_bindings(prelude, decisive.values)
    if not all(flow.is_known(t) for b in needed for t in b.targets):
        return node, iterable
    chosen: list[int] = []
    for number in numbers:
        holds = _decide(checker, context, node, number, Block(needed, decisive))
        if holds is None:
            return node, iterable
        if holds is choice.value:
            chosen.append(number)
    body = Block((*choice.before, *choice.chosen), node.body.terminator)
    parts = node.label, node.element, node.iterable, node.parameters, node.initial, body, node.span, node.resized
    return ForEach(*parts), counted_numbers(chosen, node.span)


def _numbers(iterable: AbstractValue) -> Sequence[int] | None:
    """The numbers that a loop goes through, if all are known."""
    match iterable:
        case Range(PythonNumber() as start, PythonNumber() as stop, step):
            first, last = dim_of(start), dim_of(stop)
            if not isinstance(first, int) or not isinstance(last, int):
                return None
            found = range(first, last, step)
            return found[::-1] if iterable.backward else found
        case Tuple(items):
            numbers = [i.value for i in items if type(i) is PythonNumber and isinstance(i.value, int)]
            return numbers if len(numbers) == len(items) else None
        case _:
            return None


def _choice(node: ForEach) -> _Choice | None:
    """The condition that decides whether a round does anything, if there is one."""
    bindings, end = node.body.bindings, node.body.terminator
    if not isinstance(end, Next) or end.label is not node.label:
        return None
    place = next((n for n, b in enumerate(bindings) if isinstance(b.value, If)), None)
    while place is not None:  # conditions of conditions yield, and are computed before the one that decides
        branch = bindings[place].value
        assert isinstance(branch, If)
        if len(branch.arms) == 1:
            before, rest = bindings[:place], bindings[place + 1 :]
            condition, body, other = branch.arms[0].condition, branch.arms[0].body, branch.orelse
            if _is_next(body, node.label, node.parameters) and _is_empty(other):
                return _Choice(before, condition, False, rest)
            if not rest and _changes_nothing(bindings[place].targets, other, node, end) and _yields(body):
                named = zip(bindings[place].targets, body.terminator.values, strict=True)  # type: ignore[union-attr]
                return _Choice(before, condition, True, (*body.bindings, *(Binding((t,), v) for t, v in named)))
        place = next((n for n in range(place + 1, len(bindings)) if isinstance(bindings[n].value, If)), None)
    return None


def _is_next(block: Block, label: LoopLabel, parameters: tuple[Var, ...]) -> bool:
    end = block.terminator
    return not block.bindings and isinstance(end, Next) and end.label is label and _same_atoms(end.values, parameters)


def _is_empty(block: Block) -> bool:
    return not block.bindings and isinstance(block.terminator, Yield) and not block.terminator.values


def _same_atoms(values: Sequence[Atom], others: Sequence[Atom]) -> bool:
    return len(values) == len(others) and all(a is b for a, b in zip(values, others, strict=True))


def _yields(block: Block) -> bool:
    return isinstance(block.terminator, Yield) and all(isinstance(v, Var) for v in block.terminator.values)


def _changes_nothing(targets: Sequence[Var], block: Block, node: ForEach, end: Next) -> bool:
    """True if a round ends as it began where `block` gives the targets their values."""
    if block.bindings or not isinstance(block.terminator, Yield):
        return False
    given = dict(zip(targets, block.terminator.values, strict=True))
    return _same_atoms([given.get(v, v) if isinstance(v, Var) else v for v in end.values], node.parameters)


def _needed_bindings(bindings: Sequence[Binding], values: Sequence[Atom]) -> tuple[Binding, ...]:
    """The bindings that values are computed by."""
    wanted = {v for v in values if isinstance(v, Var)}
    found: list[Binding] = []
    for binding in reversed(bindings):
        if wanted.intersection(binding.targets):
            found.append(binding)
            wanted |= free_variables(Block((binding,), Yield(()))).keys()
    return tuple(reversed(found))


def _decide(checker: Checker, context: Context, node: ForEach, number: int, block: Block) -> bool | None:
    """The value of the condition in the round of a number, if that is known."""
    inside = context.child_context()
    inside.environment[node.element] = PythonNumber(number, node.span)
    scratch = TypedBlockBuilder()
    results: list[bool | None] = []

    def note(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        results.extend(map(is_constant_bool, entities))

    checker.engine.elaborate_block(checker, inside, block, scratch, note)
    return results[0] if len(results) == 1 and not scratch.items else None
