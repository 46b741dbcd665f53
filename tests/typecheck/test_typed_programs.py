"""Every program that is well typed evaluates without an error of types or shapes, to a value of exactly its type."""

from __future__ import annotations

import numpy as np
from generators.typed_programs import ARGUMENTS, CONTEXT, programs
from hypothesis import given, settings

import relay as R
from relay.ir.types import ANY, DataType, QuantifiedType, StackType, TensorType, TupleType, Type, mentioned_definitions
from relay.ir.validation.check import check
from relay.text.type_parser import parse_type


def has_type(value: object, type_: Type) -> bool:
    """Whether a result is of a type: its dtypes, sizes, structure and constructors."""
    match type_:
        case TensorType(base, shape):
            found = np.asarray(value)
            same = len(found.shape) == len(shape) and found.dtype == base.dtype  # type: ignore[union-attr]
            return same and all(wanted in (ANY, size) for size, wanted in zip(found.shape, shape, strict=True))
        case TupleType(items, form):
            parts = list(value.values()) if isinstance(value, dict) else value
            same = form is None or type(value) is form.cls  # programs have no dicts, they are tuples
            return same and len(parts) == len(items) and all(map(has_type, parts, items))  # type: ignore[arg-type]
        case StackType():
            return isinstance(value, list)
        case DataType(definition):
            made = {c.name: c for c in definition.constructors}[type(value).__name__]
            return all(has_type(getattr(value, n), t) for n, t in zip(made.names, made.fields, strict=True))
    raise AssertionError(type_)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_a_well_typed_program_gives_a_value_of_its_type(text: str) -> None:
    program = R.from_source(text, CONTEXT)["program"]  # type: ignore[index]
    module = program.typed(*ARGUMENTS)
    check(module)
    assert has_type(program.interpret(*ARGUMENTS), module.main.result)
    scheme = program.type
    body = scheme.body if isinstance(scheme, QuantifiedType) else scheme
    assert str(parse_type(str(scheme), data=mentioned_definitions([body]))) == str(scheme)
