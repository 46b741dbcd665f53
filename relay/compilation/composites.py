"""Bodies of composite operators, created at first use: parsed, typed for the operand types, lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.errors import RelayError, TypeCheckError, TypeMismatch
from relay.eval import interpreter
from relay.frontend import lower
from relay.ir.axes import ResultNames
from relay.ir.definition import Definition
from relay.ir.expr import AttributeValue, Module
from relay.ir.types import TupleType, Type, axis_names
from relay.operator import Composition
from relay.operator.composition import attribute_key
from relay.support.locks import Lock
from relay.transform.pipeline import Pipeline
from relay.typecheck.elaboration import Argument, StaticArg, elaborate_structured
from relay.typecheck.elaboration.values.axis_names import all_names
from relay.typecheck.mapping import map_type

_LEVEL = 2  # of the core form: what is inlined and folded here is not again at each call


class ComposedBody:
    """The body of one composition at one choice of types and attributes; see `relay.operator.composition.Body`."""

    def __init__(self, composition: Composition, typed: Module, result: Type, names: ResultNames) -> None:
        self.composition = composition
        self.typed = typed
        self.result = result
        self.names = names
        self._core: Module | None = None

    @property
    def core(self) -> Module:
        if self._core is None:
            self._core = Pipeline.for_level(_LEVEL, exact=True)(self.typed)
        return self._core

    def run(self, operands: Sequence[np.ndarray]) -> Any:
        """Raises ExecutionError without a span: the place is the operator's call."""
        arguments = [tuple(operands)] if self.composition.variadic else list(operands)
        try:
            return interpreter.run(self.typed, arguments)
        except RelayError as error:
            error.span = None
            raise


class Composer:
    """Makes bodies and keeps them."""

    def __init__(self) -> None:
        self._definitions: dict[Composition, Definition] = {}
        self._bodies: dict[object, ComposedBody] = {}
        self._lock = Lock(reentrant=True)  # a body may use further composite operators

    def __call__(
        self, composition: Composition, types: tuple[Type, ...], attributes: Mapping[str, AttributeValue]
    ) -> ComposedBody:
        # Names that are not known yet would be those of one call, and bodies are of all calls with these types.
        types = tuple(map_type(type_, lambda t: attrs.evolve(t, axes=axis_names(t))) for type_ in types)
        key = (composition, types, all_names(types), attribute_key(attributes))
        found = self._bodies.get(key)
        if found is None:
            with self._lock:
                found = self._bodies.get(key)
                if found is None:
                    found = self._bodies[key] = self._make(composition, types, attributes)
        return found

    def _make(
        self, composition: Composition, types: tuple[Type, ...], attributes: Mapping[str, AttributeValue]
    ) -> ComposedBody:
        definition = self._definitions.get(composition)
        if definition is None:
            definition = lower.lower_function(composition.function, annotated=False)
            self._definitions[composition] = definition
        tensors: tuple[Argument, ...] = (TupleType(types),) if composition.variadic else types
        names = [p.name for p in definition.function.parameters]
        fixed = [StaticArg(attributes[name]) for name in names[len(tensors) :]]
        try:
            made = elaborate_structured(definition, [*tensors, *fixed])
        except TypeCheckError as error:
            raise _at_the_call(error, composition) from None
        for effect in made.effects:
            if effect.kind == "io":
                message = f"the operator {composition.name} must be pure, but it {effect.what}"
                raise _at_the_call(TypeCheckError(message, effect.span, help="print where it is called"), composition)
        return ComposedBody(composition, made.module, made.result, made.names)


def _at_the_call(error: TypeCheckError, composition: Composition) -> TypeCheckError:
    """An error in a body, at the place of the operator's call; a place in a body of the user's is a note."""
    notes = list(error.notes)
    if error.span is not None and not str(composition.function.__module__).startswith("relay."):
        notes.append(f"in {composition.name}, at {error.span}")
    kind = type(error) if isinstance(error, TypeMismatch) else TypeMismatch
    return kind(error.message, notes=tuple(notes), help=error.help)
