"""The intermediate representation: types and nodes. `relay.ir` also holds the constructors of the 2018 presentation."""

from relay.ir.analysis.alpha import alpha_equal, alpha_hash
from relay.ir.analysis.difference import Difference, diff
from relay.ir.analysis.metering import Work, work
from relay.ir.annotations.constructors import BoolType, FloatType, IntType, UIntType, mk_arrow, mk_quant
from relay.ir.types import FunctionType, Kind, QuantifiedType, RefType, TensorType, TupleType, Type, TypeId
from relay.ir.validation.check import check as check  # the function, in the place of its file

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
