"""Type constructors in the notation of Relay's original design (2018)."""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.types import BASE_TYPES, BOOL, BaseType, FunctionType, QuantifiedType, Type, TypeId


def FloatType(bits: int) -> BaseType:
    """The floating-point base type with 16, 32 or 64 bits."""
    return BASE_TYPES[f"float{bits}"]


def IntType(bits: int) -> BaseType:
    """The signed integer base type with 8, 16, 32 or 64 bits."""
    return BASE_TYPES[f"int{bits}"]


def UIntType(bits: int) -> BaseType:
    """The unsigned integer base type with 8, 16, 32 or 64 bits."""
    return BASE_TYPES[f"uint{bits}"]


def BoolType() -> BaseType:
    """The base type of booleans."""
    return BOOL


def mk_arrow(inputs: Sequence[Type], output: Type) -> FunctionType:
    """The type of functions from `inputs` to `output`."""
    return FunctionType(tuple(inputs), output)


def mk_quant(identifier: TypeId, body: Type) -> QuantifiedType:
    """forall identifier. body"""
    if isinstance(body, QuantifiedType):
        return QuantifiedType((identifier, *body.identifiers), body.body)
    return QuantifiedType((identifier,), body)
