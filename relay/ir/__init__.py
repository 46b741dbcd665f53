"""The intermediate representation: types and nodes. `relay.ir` also holds the constructors of the 2018 talk."""

from relay.ir.alpha import alpha_equal, alpha_hash
from relay.ir.check import check as check  # the function, in the place of its file
from relay.ir.constructors import BoolType, FloatType, IntType, UIntType, mk_arrow, mk_quant
from relay.ir.difference import Difference, diff
from relay.ir.metering import Work, work
from relay.ir.types import FunctionType, Kind, QuantifiedType, RefType, TensorType, TupleType, Type, TypeId

__all__ = [
    "BoolType",
    "Difference",
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
    "Work",
    "alpha_equal",
    "alpha_hash",
    "check",
    "diff",
    "mk_arrow",
    "mk_quant",
    "work",
]
