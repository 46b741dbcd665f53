"""The engine: who does what elaboration recurses through (`engine.Engine`)."""

from __future__ import annotations

from relay.typecheck.elaboration.dynamic_shapes.data_dependent import require
from relay.typecheck.elaboration.entry import elaborate_program, elaborate_scheme
from relay.typecheck.elaboration.expressions.blocks import elaborate_block
from relay.typecheck.elaboration.expressions.calls import apply as call
from relay.typecheck.elaboration.expressions.operator_calls import call_operator
from relay.typecheck.elaboration.expressions.python_operators import apply_named as apply_operator
from relay.typecheck.elaboration.instances import call_function, instantiate
from relay.typecheck.elaboration.library.creation import array
from relay.typecheck.elaboration.members.subscripts import index
from relay.typecheck.elaboration.values.function_values import function_value
from relay.typecheck.elaboration.values.materialization import materialize

__all__ = [
    "apply_operator",
    "array",
    "call",
    "call_function",
    "call_operator",
    "elaborate_block",
    "elaborate_program",
    "elaborate_scheme",
    "function_value",
    "index",
    "instantiate",
    "materialize",
    "require",
]
