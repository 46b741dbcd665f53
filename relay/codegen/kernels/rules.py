"""Schedule rules: which loops a kernel gets, and why.

A rule looks at what is to be computed. Where it applies, it returns a plan: the reason, and what makes the loops. A
table tries its rules from the highest priority down and takes the first that applies; a tuning record may prefer
another one that does. A new schedule is a file with a rule, and a line in a table of `schedules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import attrs

from relay.codegen.kernels.emission import Decision, Emission
from relay.codegen.tiling import Tilings
from relay.codegen.tvm.tir import Statement
from relay.errors import InternalError

Subject = TypeVar("Subject")


@attrs.frozen(eq=False)
class Plan:
    """The loops of a rule for something: `emit` makes them, `reason` tells why they suit it, and `tilings` are
    alternatives for their tiles."""

    reason: str
    emit: Callable[[], list[Statement]]
    tilings: Callable[[], Tilings | None] = lambda: None


@attrs.frozen(eq=False)
class Rule(Generic[Subject]):
    """A schedule: `match` returns its plan for a subject, or None where it does not apply or would be slower than the
    rules of lower priority. It changes nothing. Where a rule that is not `contested` applies, measuring others would be
    a waste of time."""

    name: str
    priority: int
    match: Callable[[Emission, Subject], Plan | None]
    contested: bool = True


@attrs.frozen(eq=False)
class Family(Generic[Subject]):
    """Rules `about` some subjects only: none of them applies to others. Their files are loaded where there is one."""

    about: Callable[[Subject], bool]
    rules: Callable[[], Sequence[Rule[Subject]]]


class Table(Generic[Subject]):
    """Rules for one kind of subject, by priority."""

    def __init__(self, rules: Sequence[Rule[Subject]], *families: Family[Subject]) -> None:
        self._families = families
        self._general = _by_priority(rules)

    @property
    def rules(self) -> Sequence[Rule[Subject]]:
        """All of them."""
        return _by_priority([*self._general, *(rule for family in self._families for rule in family.rules())])

    def rules_about(self, subject: Subject) -> Sequence[Rule[Subject]]:
        """Those that may apply to a subject."""
        found = [rule for family in self._families if family.about(subject) for rule in family.rules()]
        return _by_priority([*self._general, *found]) if found else self._general

    def emit(self, e: Emission, subject: Subject) -> list[Statement]:
        """The loops of the rule that is chosen. Notes in `e` which it is, and what else might be if `e.explores`."""
        rule, plan = self._choose(e, subject)
        e.decisions.append(Decision(rule.name, str(subject), plan.reason))
        return plan.emit()

    def _choose(self, e: Emission, subject: Subject) -> tuple[Rule[Subject], Plan]:
        rules = self.rules_about(subject)
        if e.explores:
            plans = [(rule, plan) for rule in rules if (plan := rule.match(e, subject)) is not None]
            for rule, plan in plans:
                if len(plans) > 1 and plans[0][0].contested:
                    e.alternatives.setdefault(rule.name)
                tilings = plan.tilings()
                if tilings is not None:
                    e.tilings[rule.name] = tilings
        for rule in sorted(rules, key=lambda rule: rule.name != e.choice.rule):
            plan = rule.match(e, subject)
            if plan is not None:
                return rule, plan
        raise InternalError(f"no schedule rule applies to {subject}")


def _by_priority(rules: Sequence[Rule[Subject]]) -> Sequence[Rule[Subject]]:
    for what in ({rule.name for rule in rules}, {rule.priority for rule in rules}):
        if len(what) < len(rules):
            raise InternalError("two schedule rules of a table have the same name or priority")
    return tuple(sorted(rules, key=lambda rule: -rule.priority))
