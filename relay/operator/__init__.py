"""What an operator is, the registry of all of them, and calls on symbolic values."""

from relay.ir.check import use_operators
from relay.ir.metering import use_work
from relay.operator.callback import pure_callback
from relay.operator.composition import Body, Composition, use_composer
from relay.operator.definition import Columns, InPlace, Operator, Pattern, Requirement
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

use_operators(lambda call, types: lookup(call.operator).infer(types, call.attributes))
use_work(lambda call, types, result: lookup(call.operator).flops(types, result))

__all__ = [
    "ADDITION",
    "BaseSignature",
    "Body",
    "Columns",
    "Composition",
    "Emitter",
    "Environment",
    "InPlace",
    "Operator",
    "Pattern",
    "Relation",
    "Requirement",
    "Undetermined",
    "Value",
    "alias",
    "composite",
    "expansion",
    "get_env",
    "lookup",
    "operators",
    "pure_callback",
    "register_op",
    "resolve_name",
    "use_composer",
]
