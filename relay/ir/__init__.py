"""The intermediate representation: types and nodes. `relay.ir` also holds the constructors of the 2018 talk."""

from relay.ir.alpha import alpha_equal, alpha_hash
from relay.ir.types import (
    BoolType,
    FloatType,
    FunctionType,
    IntType,
    Kind,
    QuantifiedType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    UIntType,
    mk_arrow,
    mk_quant,
)

__all__ = [
    "BoolType",
    "FloatType",
    "FunctionType",
    "IntType",
    "Kind",
    "QuantifiedType",
    "RefType",
    "TensorType",
    "TupleType",
    "Type",
    "TypeId",
    "UIntType",
    "alpha_equal",
    "alpha_hash",
    "mk_arrow",
    "mk_quant",
]
