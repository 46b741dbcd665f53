"""Operators: their definition, the registry, and calls on symbolic values."""

from collections.abc import Sequence

from relay.errors import TypeMismatch
from relay.ir.expr import OpCall
from relay.ir.types import Type
from relay.operator.batching import Batch, batch_call
from relay.operator.callback import pure_callback
from relay.operator.composition import Body, Composition
from relay.operator.definition import Operator, Pattern, Requirement
from relay.operator.facets import (
    LOOP,
    UNDEFINED,
    Algebra,
    Batching,
    Columns,
    Indexing,
    IndexKind,
    InPlace,
    Memory,
    Numerics,
)
from relay.operator.registry import (
    Environment,
    alias,
    composite,
    expansion,
    get_env,
    lookup,
    operators,
    register_op,
    resolve_name,
)
from relay.operator.relation import BaseSignature, Relation, Undetermined
from relay.operator.symbolic import ADDITION, Emitter, Value


def type_of(call: OpCall, types: Sequence[Type]) -> Type:
    """The type of a call in a finished module. Raises TypeMismatch, also for attributes that the operator has not."""
    operator = lookup(call.operator)
    unknown = [name for name in call.attributes if name not in operator.attributes]
    if unknown:
        raise TypeMismatch(f"{operator.name} has no attribute {unknown[0]!r}")
    return operator.infer(types, call.attributes)


__all__ = [
    "ADDITION",
    "LOOP",
    "UNDEFINED",
    "Algebra",
    "BaseSignature",
    "Batch",
    "Batching",
    "Body",
    "Columns",
    "Composition",
    "Emitter",
    "Environment",
    "InPlace",
    "IndexKind",
    "Indexing",
    "Memory",
    "Numerics",
    "Operator",
    "Pattern",
    "Relation",
    "Requirement",
    "Undetermined",
    "Value",
    "alias",
    "batch_call",
    "composite",
    "expansion",
    "get_env",
    "lookup",
    "operators",
    "pure_callback",
    "register_op",
    "resolve_name",
    "type_of",
]
