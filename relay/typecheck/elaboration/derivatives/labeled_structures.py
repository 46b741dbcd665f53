"""Derivatives by structures that hold strings, members of enumerations and decorated functions beside arrays.

The differentiated function gets the structure without them, and puts them back:

    grad(f)({"w": w, "kind": "relu"})  =  grad(lambda p: f(labeled__(p, {.., "kind": "relu"})))({"w": w, "kind": None})
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DerivativeFunction,
    LocalFunction,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.library.library_calls import written_in_place
from relay.typecheck.elaboration.library.trees import definition
from relay.typecheck.elaboration.values import labels


def with_labels(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: DerivativeFunction,
    entities: Sequence[AbstractValue],
    span: Span | None,
) -> DerivativeFunction:
    """The derivative of the function that puts the labels of these arguments back."""
    like = Tuple(tuple(map(labels.labels_alone, entities)))

    def change(function: AbstractValue) -> AbstractValue:
        if isinstance(function, DerivativeFunction):
            return attrs.evolve(function, of=change(function.of))
        found = written_in_place(checker, out, definition("labeled", len(entities), None), [function, like], span)
        assert isinstance(found, LocalFunction)
        return found

    return attrs.evolve(callee, of=change(callee.of))
