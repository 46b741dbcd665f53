"""Propagation of axis names through operators.

A shape rule says where each axis of the result comes from, so the rule for names goes with it: `@carries(rule)` above a
shape rule. A rule gets each operand's names, one for each axis and None where there is no name (a variadic operator:
one tuple of them), and the attributes; it returns the result's names, or None if it forgets them. An operator without a
rule forgets names, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from relay.ir.axes import AxisNames

AxisRule: TypeAlias = Callable[..., AxisNames | None]

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class AxesDiffer(Exception):
    """Axes that must be the same have different names: operand `second` has the names `found` where operand `first` has
    `wanted`, or the operator wants them if `first` is None. As far as known, for the whole of both operands."""

    def __init__(self, first: int | None, second: int, found: AxisNames, wanted: AxisNames) -> None:
        super().__init__(first, second, found, wanted)
        self.first, self.second, self.found, self.wanted = first, second, found, wanted


def carries(rule: AxisRule) -> Callable[[_Rule], _Rule]:
    """Mark a shape rule, or an operator's relation that is a function, with its rule for names."""

    def mark(shape_rule: _Rule) -> _Rule:
        shape_rule.__axes__ = rule  # type: ignore[attr-defined]
        return shape_rule

    return mark


def moves(shape_rule: _Rule) -> _Rule:
    """Mark a shape rule that only moves dims: it does the same with names."""
    return carries(shape_rule)(shape_rule)


def of_shapes(rule: _Rule) -> _Rule:
    """Mark a rule for names that needs shapes: it gets `shapes`, the operands' shapes, and `result`, a function that
    gives the result's."""
    rule.__of_shapes__ = True  # type: ignore[attr-defined]
    return rule


def axis_rule(shape_rule: object) -> AxisRule | None:
    """The rule for names of a shape rule; None if it forgets them."""
    while isinstance(shape_rule, functools.partial):
        shape_rule = shape_rule.func
    return getattr(shape_rule, "__axes__", None)
