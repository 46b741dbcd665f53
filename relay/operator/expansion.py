"""Expanded operators: composites whose body a Python function on symbolic values emits.

Where the attributes decide what is computed (the subscripts of `einsum`, the order of its products), Python is the
better language to say it in; the result is straight-line code of other operators, as for every composite operator.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.errors import InternalError
from relay.ir.expr import (
    Atom,
    AttributeValue,
    Block,
    Constant,
    Exit,
    Function,
    LoopLabel,
    MakeTuple,
    Module,
    OpCall,
    Project,
    Var,
)
from relay.ir.types import TensorType, TupleType, Type
from relay.operator.composition import Body, Composition, attribute_key, settled_attribute
from relay.operator.symbolic import Emitter, Value


class ExpandedBody:
    """Straight-line code for operands of certain types; see `relay.operator.composition.Body`."""

    def __init__(self, name: str, parameters: tuple[Var, ...], emitter: Emitter, made: Value | Sequence[Value]) -> None:
        result = made if isinstance(made, Value) else emitter.tuple(made)
        self.result = result.type
        self.names = None
        self.parameters = parameters
        label = LoopLabel(name)
        block = Block(tuple(emitter.bindings), Exit(label, (result.atom,)))
        self.typed = Module({name: Function(name, parameters, block, label, self.result)}, name)

    @property
    def core(self) -> Module:
        return self.typed

    def run(self, operands: Sequence[np.ndarray]) -> Any:
        """The value on arrays, by the operators' references."""
        from relay.operator.registry import lookup

        variadic = len(self.parameters) == 1 and isinstance(self.parameters[0].type, TupleType)
        given: list[Any] = [tuple(operands)] if variadic else list(operands)
        values: dict[Var, Any] = dict(zip(self.parameters, given, strict=True))

        def value(atom: Atom) -> Any:
            return atom.value if isinstance(atom, Constant) else values[atom]  # type: ignore[index]

        block = self.typed.main.body
        for binding in block.bindings:
            (target,) = binding.targets
            match binding.value:
                case OpCall(name, arguments, attributes):
                    values[target] = lookup(name).evaluate([value(a) for a in arguments], attributes)
                case Project(whole, index):
                    values[target] = value(whole)[index]
                case MakeTuple(items):
                    values[target] = tuple(map(value, items))
                case other:
                    raise InternalError(f"{type(other).__name__} in an expansion")
        assert isinstance(block.terminator, Exit)
        result = value(block.terminator.values[0])
        return (
            tuple(_copy_if_shared(r, operands) for r in result)
            if isinstance(result, tuple)
            else _copy_if_shared(result, operands)
        )


def _copy_if_shared(result: Any, operands: Sequence[np.ndarray]) -> Any:
    """The result in memory of its own."""
    if isinstance(result, np.ndarray) and any(np.shares_memory(result, operand) for operand in operands):
        return result.copy()
    return result


def _erase_axis_names(type_: Type) -> Type:
    """The type without names of axes: the body is for operands of all names, which types that are equal may have."""
    return attrs.evolve(type_, axes=None) if isinstance(type_, TensorType) else type_


@attrs.frozen(eq=False)
class Expansion(Composition):
    """A composition whose function is called with symbolic values, and attributes, and emits the body.

    It returns the result, or a tuple of several.
    """

    bodies: dict[object, ExpandedBody] = attrs.field(factory=dict, repr=False)

    def body(self, types: Sequence[Type], attributes: Mapping[str, AttributeValue]) -> Body:
        """The body for operands of these known types. Raises what the emitted operators' types raise."""
        attributes = {name: settled_attribute(value) for name, value in attributes.items()}
        key = (tuple(types), attribute_key(attributes))
        found = self.bodies.get(key)
        if found is None:
            found = self.bodies[key] = self._expand(tuple(map(_erase_axis_names, types)), attributes)
        return found

    def _expand(self, types: tuple[Type, ...], attributes: Mapping[str, AttributeValue]) -> ExpandedBody:
        emitter = Emitter()
        if self.variadic:
            whole = Var("operands", TupleType(types))
            parameters: tuple[Var, ...] = (whole,)
            items = tuple(emitter.bind(Project(whole, i), type_, "operand") for i, type_ in enumerate(types))
            declared = inspect.signature(self.function).parameters.values()
            if any(p.kind is p.VAR_POSITIONAL for p in declared):
                first = [attributes[p.name] for p in declared if p.kind is p.POSITIONAL_OR_KEYWORD]
                named = {p.name: attributes[p.name] for p in declared if p.kind is p.KEYWORD_ONLY}
                result = self.function(*first, *items, **named)
            else:
                result = self.function(items, **attributes)
        else:
            parameters = tuple(Var(f"x{i}", type_) for i, type_ in enumerate(types))
            values = [emitter.value(p, t) for p, t in zip(parameters, types, strict=True)]
            result = self.function(*values, **attributes)
        return ExpandedBody(self.name, parameters, emitter, result)
