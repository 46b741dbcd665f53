"""Equations of operators whose right side is another expression: the notation of `relay.ops.rewrites.equations`.

    @equation("sqrt", "sqrt(x * x) = |x|", Exactness.FAST)
    def _(made_by, x): ...

An equation gets the call's operands, as symbolic values, and its attributes, and returns what the call equals, or None
where it does not fit. With `made_by(value, name)` it looks at the call of an operator that made an operand.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import attrs

from relay.ir.expr import Atom, OpCall
from relay.operator.registry import lookup
from relay.operator.symbolic import Emitter, Value


class Exactness(enum.Enum):
    """The exactness of an equation: what it preserves."""

    EXACT = "exact"  # every bit, but for those that tell NaNs apart, and -0.0 to which zeros of a slice are added
    ROUNDING = "rounding"  # all but the rounding of the result
    FAST = "fast"  # real numbers: infinities, NaNs and the signs of zeros may differ


@attrs.frozen
class Producer:
    """The call that made a value."""

    operands: tuple[Value, ...]
    attributes: Mapping[str, Any]


class ProducerLookup(Protocol):
    """Looks up the call of an operator of this name that made a value."""

    def __call__(self, value: Value, name: str, /) -> Producer | None: ...


Result = Callable[..., "Value | None"]


@attrs.frozen
class Equation:
    """An equation for the calls of an operator: they equal `result`, where it gives something."""

    operator: str
    text: str
    exactness: Exactness
    result: Result


_equations: dict[str, tuple[Equation, ...]] = {}


def equation(operator: str, text: str, exactness: Exactness = Exactness.EXACT) -> Callable[[Result], Result]:
    """Register an equation for the calls of an operator."""

    def register(result: Result) -> Result:
        name = lookup(operator).name
        _equations[name] = (*_equations.get(name, ()), Equation(name, text, exactness, result))
        return result

    return register


_stable_forms: dict[str, tuple[Equation, ...]] = {}


def stable_form(operator: str, text: str) -> Callable[[Result], Result]:
    """Register another form of an operator's calls, equal for real numbers, that loses fewer digits somewhere."""

    def register(result: Result) -> Result:
        name = lookup(operator).name
        _stable_forms[name] = (*_stable_forms.get(name, ()), Equation(name, text, Exactness.FAST, result))
        return result

    return register


def stable_forms() -> list[Equation]:
    """All stable forms, in the order of the table."""
    return [form for of in _stable_forms.values() for form in of]


def stable_forms_of(operator: str) -> tuple[Equation, ...]:
    """The forms for an operator."""
    return _stable_forms.get(operator, ())


def equations(exactness: Iterable[Exactness] = tuple(Exactness)) -> list[Equation]:
    """All equations of these kinds, in the order of the table."""
    wanted = set(exactness)
    return [e for of in _equations.values() for e in of if e.exactness in wanted]


def equations_of(operator: str, exactness: frozenset[Exactness]) -> tuple[Equation, ...]:
    """The equations for an operator of these kinds."""
    return tuple(e for e in _equations.get(operator, ()) if e.exactness in exactness)


class Application:
    """The use of equations on one call. `emitter` has what the last one emitted."""

    def __init__(self, call: OpCall, definition: Callable[[Atom], OpCall | None]) -> None:
        """`definition` looks up the call that an operand was bound to."""
        self.emitter = Emitter(call.span)
        self._definition = definition
        self._attributes = call.attributes
        operands = tuple(map(self.emitter.value, call.arguments))
        self._operands = (operands,) if lookup(call.operator).variadic else operands

    def rewrite_by(self, equation_: Equation) -> Value | None:
        """The result of an equation for the call, emitted; None where it does not fit."""
        self.emitter.bindings.clear()
        return equation_.result(self._producer, *self._operands, **self._attributes)

    def _producer(self, value: Value, name: str) -> Producer | None:
        found = self._definition(value.atom)
        if found is None or lookup(found.operator) is not lookup(name):
            return None
        return Producer(tuple(map(self.emitter.value, found.arguments)), found.attributes)
