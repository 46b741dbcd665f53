"""Undecided size conditions: both arms are elaborated, each under what the condition implies.

That is so for data-dependent sizes, and in a scheme for annotated ones, as `if n > 3` for
`x: Tensor[Float, (n,)]`, where a call will choose. There what the arms make may differ in its sizes, which are `Any`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import attrs

from relay.ir.dims import add
from relay.ir.sizes.facts import AT_LEAST, DIFFERENT, EQUAL, DimConstraint, Facts, mentions_made
from relay.ir.types import BOOL, TensorType
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonObject,
    dim_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.unification import resolve

MANY_PATHS = 8
"""Of more paths that a boolean comes from, nothing is found that holds on all of them."""


@attrs.frozen
class SizeCondition:
    """The facts about sizes where a condition is true, and where it is false. `decided`: sizes alone decide it."""

    holds: tuple[DimConstraint, ...] = ()
    fails: tuple[DimConstraint, ...] = ()
    decided: bool = True


def note(checker: Checker, name: str, operands: Sequence[AbstractValue], result: AbstractValue) -> None:
    """Record the facts about sizes in a comparison, or in `not`, `&` and `|` of comparisons."""
    if not isinstance(result, DynamicValue):
        return
    found = None
    match name, operands:
        case "logical_not", [DynamicValue() as operand]:
            said = condition_of(checker, operand)
            found = None if said is None else attrs.evolve(said, holds=said.fails, fails=said.holds)
        case (
            ("logical_and" | "bitwise_and" | "logical_or" | "bitwise_or"),
            [DynamicValue() as first, DynamicValue() as second],
        ):
            sides = condition_of(checker, first), condition_of(checker, second)
            if sides != (None, None):
                a, b = (s or SizeCondition(decided=False) for s in sides)
                both = (*a.holds, *b.holds), _common_facts([a.fails, b.fails])
                either = _common_facts([a.holds, b.holds]), (*a.fails, *b.fails)
                found = SizeCondition(*(both if name.endswith("and") else either), a.decided and b.decided)
        case _, [Number() as left, Number() as right]:
            found = _comparison(name, left, right)
    if found is not None:
        checker.sizes.conditions[result.atom] = found


def _comparison(name: str, left: Number, right: Number) -> SizeCondition | None:
    a, b = dim_of(left), dim_of(right)
    if a is None or b is None:
        return None
    at_least = DimConstraint(a, AT_LEAST, b), DimConstraint(b, AT_LEAST, add(a, 1))
    at_most = DimConstraint(b, AT_LEAST, a), DimConstraint(a, AT_LEAST, add(b, 1))
    equal = DimConstraint(a, EQUAL, b), DimConstraint(a, DIFFERENT, b)
    meanings = {
        "greater_equal": at_least,
        "less": at_least[::-1],
        "less_equal": at_most,
        "greater": at_most[::-1],
        "equal": equal,
        "not_equal": equal[::-1],
    }
    if name not in meanings:
        return None
    holds, fails = meanings[name]
    return SizeCondition(_usable_facts(holds), _usable_facts(fails))


def _usable_facts(fact: DimConstraint) -> tuple[DimConstraint, ...]:
    """A fact as an arm may rely on it. Of an equation for a data-dependent size that is its lower bound: types that are
    equal by it alone would not be so for passes, which do not know the condition. Where the arm needs the equation, it
    is checked, and the type says the size."""
    if fact.relation != EQUAL or not (mentions_made(fact.left) or mentions_made(fact.right)):
        return (fact,)
    left, right = (fact.left, fact.right) if mentions_made(fact.left) else (fact.right, fact.left)
    return (DimConstraint(left, AT_LEAST, right),)


def condition_of(checker: Checker, condition: DynamicValue) -> SizeCondition | None:
    """The facts about sizes in a condition; None if there are none."""
    return checker.sizes.conditions.get(condition.atom)


@attrs.frozen
class Path:
    """One path to a boolean: the facts about sizes on it, and the value; `decided`: sizes alone choose it."""

    known: tuple[DimConstraint, ...]
    value: AbstractValue
    decided: bool


def fold_logical(name: str, operands: Sequence[AbstractValue], result: AbstractValue) -> AbstractValue:
    """The result of `&` and `|` with its value, where the checker knows it from the operands'."""
    is_and = name in ("logical_and", "bitwise_and")
    if not isinstance(result, DynamicValue) or not (is_and or name in ("logical_or", "bitwise_or")):
        return result
    if resolve(result.type) != TensorType(BOOL, ()):
        return result
    values = [is_constant_bool(operand) for operand in operands]
    if (not is_and) in values:
        return attrs.evolve(result, known=not is_and)
    return result if None in values else attrs.evolve(result, known=is_and)


def join_truth_values(entity: AbstractValue, paths: Sequence[Path]) -> AbstractValue:
    """A boolean that comes from several paths, with its value if it is the same one on all."""
    values = {is_constant_bool(path.value) for path in paths if isinstance(path.value, DynamicValue)}
    is_known = len(values) == 1 and None not in values and all(isinstance(path.value, DynamicValue) for path in paths)
    return attrs.evolve(entity, known=values.pop()) if is_known and isinstance(entity, DynamicValue) else entity


def note_joined(checker: Checker, result: AbstractValue, paths: Sequence[Path]) -> None:
    """Record the facts about sizes in a boolean that comes from several paths, as those of `a and b` do."""
    if not isinstance(result, DynamicValue) or not all(isinstance(p.value, DynamicValue | PythonObject) for p in paths):
        return
    true: list[tuple[DimConstraint, ...]] = []
    false: list[tuple[DimConstraint, ...]] = []
    decided = True
    for path in paths:
        known = is_constant_bool(path.value)
        said = (condition_of(checker, path.value) if isinstance(path.value, DynamicValue) else None) or SizeCondition(
            decided=known is not None
        )
        decided = decided and path.decided and said.decided
        if known is not False:
            true.append((*path.known, *said.holds))
        if known is not True:
            false.append((*path.known, *said.fails))
    found = SizeCondition(_common_facts(true), _common_facts(false), decided)
    if found.holds or found.fails or decided:
        checker.sizes.conditions[result.atom] = found


def _common_facts(ways: Sequence[Sequence[DimConstraint]]) -> tuple[DimConstraint, ...]:
    """The facts that are true on all of several paths."""
    if len(ways) == 1:
        return tuple(ways[0])
    if len(ways) > MANY_PATHS or not all(ways):
        return ()
    facts = [Facts(way) for way in ways]
    candidates = dict.fromkeys(weaker for way in ways for constraint in way for weaker in _weaker_facts(constraint))
    return tuple(c for c in candidates if all(f.ask(c.left, c.relation, c.right) is True for f in facts))


def _weaker_facts(constraint: DimConstraint) -> tuple[DimConstraint, ...]:
    """A constraint, and for an equation its two inequalities."""
    if constraint.relation != EQUAL:
        return (constraint,)
    left, right = constraint.left, constraint.right
    return constraint, DimConstraint(left, AT_LEAST, right), DimConstraint(right, AT_LEAST, left)


@contextlib.contextmanager
def arm(checker: Checker, known: Sequence[DimConstraint], is_chosen: bool) -> Iterator[None]:
    """While an arm is elaborated in which these hold; `is_chosen`: sizes choose it."""
    frame = checker.frame
    if is_chosen:
        frame = attrs.evolve(frame, chosen_by_sizes=frame.chosen_by_sizes + 1)
    with checker.at_frame(frame), checker.where_it_may_not_run(), checker.hints.where_holds(known):
        yield


def later_arm(
    checker: Checker, known: Sequence[DimConstraint], is_chosen: bool, is_later: bool
) -> contextlib.AbstractContextManager[None]:
    """A context for the condition of an arm, which is evaluated only if the arms before are not taken."""
    return arm(checker, known, is_chosen) if is_later else contextlib.nullcontext()


def is_lenient(checker: Checker) -> bool:
    """True if the place at hand may be reached for some of the annotated sizes only."""
    return checker.generic and checker.frame.chosen_by_sizes > 0
