"""Attributes of arrays and references: `x.shape`, `x.T`, `r.value`."""

from __future__ import annotations

import numpy as np

from relay.ir.annotations.annotation import Ref
from relay.ir.expr import RefRead
from relay.ir.types import Kind, RefType, TensorType, prune
from relay.operator import lookup
from relay.typecheck.dims import product
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Places,
    PythonNumber,
    PythonObject,
    Tuple,
    size,
)
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.effects.effect_notes import READS
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.library.overloads import Call, Member, implements
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.tensors import is_sized, tensor_type


def _type_of(call: Call, x: AbstractValue, what: str, *, sized: bool) -> TensorType:
    """The type of a tensor whose rank is known, or, if `sized`, its extents. Raises SchemeOnly if a call tells it."""
    assert isinstance(x, DynamicValue)
    known = tensor_type(x)
    if known is None or (sized and not all(is_sized(d) for d in known.shape)):
        raise SchemeOnly(call.span, f"the {what} of {call.described[0]}")
    return known


@implements(np.ndarray.shape)
def _shape(call: Call, x: AbstractValue, /) -> AbstractValue:
    return Tuple(tuple(size(d, call.span) for d in _type_of(call, x, "shape", sized=True).shape))


@implements(np.ndarray.size)
def _size(call: Call, x: AbstractValue, /) -> AbstractValue:
    return size(product(_type_of(call, x, "size", sized=True).shape), call.span)


@implements(np.ndarray.ndim)
def _ndim(call: Call, x: AbstractValue, /) -> AbstractValue:
    return PythonNumber(_type_of(call, x, "ndim", sized=False).rank, call.span)


@implements(np.ndarray.dtype)
def _dtype(call: Call, x: AbstractValue, /) -> AbstractValue:
    assert isinstance(x, DynamicValue)
    type_ = prune(x.type)
    assert isinstance(type_, TensorType)
    return PythonObject(prune(type_.base))


@implements(np.ndarray.T)
def _transpose(call: Call, x: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    return operators.apply(checker, out, lookup("transpose"), [x], {"axes": None}, span, call.described)


@implements(Member(np.ndarray, "at"))
def _at(call: Call, x: AbstractValue, /) -> AbstractValue:
    """As JAX has it: `x.at[i].set(v)`."""
    assert isinstance(x, DynamicValue)
    return Places(x)


@implements(vars(Ref)["value"])
def _content(call: Call, reference: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    assert isinstance(reference, DynamicValue)
    content = checker.solver.fresh_variable(Kind.Type)
    checker.unify_at(reference.type, RefType(content), span, call.described[0])
    checker.effect("ref", READS, span, reference.atom)
    return expand(checker, out, checker.bind(out, RefRead(reference.atom, span), content, "value", span), span)
