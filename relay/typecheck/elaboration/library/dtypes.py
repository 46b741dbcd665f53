"""Questions about dtypes, which are answered at compile time: `np.issubdtype`, `np.finfo`, `np.iinfo`."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np

from relay.errors import TypeCheckError
from relay.ir.types import BaseClass, BaseType, Form, Unknown
from relay.typecheck.elaboration.abstract_values import AbstractValue, PythonNumber, PythonObject, Tuple
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.expressions.attributes import dtype_of, normalize_attribute
from relay.typecheck.elaboration.expressions.operator_relations import decide_dtype
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.values.objects import object_entity


@dataclasses.dataclass
class FloatLimits:
    """The attributes of `np.finfo(dtype)`."""

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float


@dataclasses.dataclass
class IntegerLimits:
    """The attributes of `np.iinfo(dtype)`."""

    bits: int
    max: int
    min: int


_OF_ALL_FLOATS = (np.generic, np.number, np.inexact, np.floating, np.integer, np.signedinteger, np.unsignedinteger)
"""NumPy's classes that have all floats, or none."""


def _dtype(call: Call, entity: AbstractValue, name: str) -> BaseType:
    """An argument as a dtype. Raises TypeCheckError."""
    value = dtype_of(entity.value) if isinstance(entity, PythonObject) else None
    found = decide_dtype(call.checker, normalize_attribute("dtype", value), call.span)
    if not isinstance(found, BaseType):
        if call.checker.generic and isinstance(entity, PythonObject):
            raise SchemeOnly(call.span, f"the dtype that {name} is about")
        raise TypeCheckError(f"{name} is about a dtype", call.span, help="write relay.Float32, or x.dtype")
    return found


@implements(np.issubdtype)
def _issubdtype(call: Call, arg1: AbstractValue, arg2: AbstractValue) -> AbstractValue:
    """`np.issubdtype(x.dtype, np.floating)`: whether a dtype is of a class of NumPy's."""
    wanted = arg2.value if isinstance(arg2, PythonObject) else None
    given = arg1.value if isinstance(arg1, PythonObject) else None
    if isinstance(given, Unknown) and given.classes == frozenset({BaseClass.FLOAT}) and wanted in _OF_ALL_FLOATS:
        return object_entity(issubclass(np.floating, wanted), None)  # whichever of them it will be
    base = _dtype(call, arg1, "np.issubdtype")
    if isinstance(wanted, type) and issubclass(wanted, np.generic):
        scalar = np.float32 if base.name == "bfloat16" else base.dtype.type  # which is none of NumPy's own
        return object_entity(issubclass(scalar, wanted) and (base.name != "bfloat16" or wanted is not np.float32), None)
    return object_entity(dtype_of(wanted) == base, call.span)


@implements(np.finfo)
def _finfo(call: Call, dtype: AbstractValue) -> AbstractValue:
    """`np.finfo(x.dtype)`: the limits of a float dtype."""
    base = _dtype(call, dtype, "np.finfo")
    if not base.is_float:
        raise TypeCheckError(f"np.finfo needs a float dtype, found {base}", call.span, help="np.iinfo(dtype)")
    return _limits(FloatLimits, ml_dtypes.finfo(base.dtype))


@implements(np.iinfo)
def _iinfo(call: Call, dtype: AbstractValue) -> AbstractValue:
    """`np.iinfo(x.dtype)`: the limits of an integer dtype."""
    base = _dtype(call, dtype, "np.iinfo")
    if base.is_float or base.name == "bool":
        raise TypeCheckError(f"np.iinfo needs an integer dtype, found {base}", call.span, help="np.finfo(dtype)")
    return _limits(IntegerLimits, np.iinfo(base.name))


def _limits(cls: type, found: object) -> Tuple:
    names = tuple(field.name for field in dataclasses.fields(cls))
    kinds = {field.name: int if field.type == "int" else float for field in dataclasses.fields(cls)}
    return Tuple(tuple(PythonNumber(kinds[n](getattr(found, n))) for n in names), Form(cls, names))
