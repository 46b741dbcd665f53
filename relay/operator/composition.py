"""Composite operators: operators defined by a function of the language.

A composition keeps the Python function that was given. It is read, typed and lowered at first use, by a composer that
lies above this package; so the operators' files need no front end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from relay.errors import InternalError
from relay.ir.axes import ResultNames
from relay.ir.dims import DimExpr, TypeId, Unknown, resolve_dim
from relay.ir.expr import AttributeValue, Constant, Module
from relay.ir.types import Type


class Body(Protocol):
    """The body of a composition for operands of certain types and certain attributes."""

    @property
    def result(self) -> Type:
        """The type that the body gives."""
        ...

    @property
    def names(self) -> ResultNames:
        """The names of the axes of the results, for operands whose axes have names."""
        ...

    @property
    def typed(self) -> Module:
        """The body as a typed program, whose entry takes the operands (a variadic operator's: the tuple of them)."""
        ...

    @property
    def core(self) -> Module:
        """The same, first-order, structured, and without pending derivatives."""
        ...

    def run(self, operands: Sequence[np.ndarray]) -> Any:
        """The body's value, by the reference interpreter."""
        ...


def settled_attribute(value: AttributeValue) -> AttributeValue:
    """An attribute with the solver's variables replaced by what they were found to be."""
    if isinstance(value, tuple):
        return tuple(map(settled_attribute, value))
    return resolve_dim(value) if isinstance(value, Unknown | DimExpr) else value  # type: ignore[return-value]


def attribute_key(attributes: Mapping[str, AttributeValue]) -> object:
    """Attributes as a part of a key: dims are themselves, and of anything else equality is identity."""

    def exact_key(value: AttributeValue) -> object:
        if isinstance(value, tuple):
            return tuple(map(exact_key, value))
        return value if isinstance(value, TypeId | Unknown | DimExpr) else (type(value).__name__, repr(value))

    return tuple((name, exact_key(value)) for name, value in sorted(attributes.items()))


@attrs.frozen(eq=False)
class Composition:
    """The composition of an operator: a Python function that is a program of the language.

    Its parameters are the operator's operands, then its attributes, whose values specialize the body.
    """

    name: str
    function: Callable[..., Any]
    variadic: bool

    def body(self, types: Sequence[Type], attributes: Mapping[str, AttributeValue]) -> Body:
        """The body for operands of these known types.

        Raises TypeMismatch, without a span, where it has no type for them, and FrontendError for a body that is no
        program of the language.
        """
        return _compose(self, tuple(types), {name: settled_attribute(value) for name, value in attributes.items()})

    def infer(self, *types: Any, **attributes: AttributeValue) -> Type:
        """The result's type, as an operator's `relation`."""
        return self.body(types[0] if self.variadic else types, attributes).result

    def reference(self, *operands: Any, **attributes: AttributeValue) -> Any:
        """The result on arrays, as an operator's `reference`."""
        arrays = operands[0] if self.variadic else operands
        return self.body([Constant(a).type for a in arrays], attributes).run(arrays)


Composer = Callable[[Composition, tuple[Type, ...], Mapping[str, AttributeValue]], Body]


def _no_composer(composition: Composition, types: tuple[Type, ...], attributes: Mapping[str, AttributeValue]) -> Body:
    raise InternalError(f"the composite operator {composition.name} was used before the compiler was loaded")


_compose: Composer = _no_composer


def use_composer(composer: Composer) -> None:
    """Set how bodies are made. The compiler, which lies above this package, does it when it is imported."""
    global _compose
    _compose = composer
