"""Texts about an operator in short, for completion and hover: how it is called, its type, what it computes."""

from __future__ import annotations

from relay.ir.types import FunctionType, QuantifiedType
from relay.operator.definition import REQUIRED, Operator
from relay.operator.relation import Relation


def signature(operator: Operator) -> str:
    """The Python call: `softmax(x, axis=-1)`."""
    operands = [f"*{operator.operands[0]}"] if operator.spread else list(operator.operands)
    attributes = [
        n if value is REQUIRED else f"{n}={value!r}" if isinstance(value, str) else f"{n}={value}"
        for n, value in operator.attributes.items()
    ]
    return f"{operator.name}({', '.join([*attributes, *operands] if operator.spread else [*operands, *attributes])})"


def type_text(operator: Operator) -> str:
    """The type over dtypes, `T:float -> T`, or the quantified type; empty where the operator has its own rule."""
    if isinstance(operator.relation, Relation):
        return operator.relation.base.text
    return str(operator.relation) if isinstance(operator.relation, QuantifiedType | FunctionType) else ""


def summary(operator: Operator) -> str:
    """The call, the type and the first paragraph of the documentation, on a line each."""
    prose = " ".join(operator.documentation.partition("\n\n")[0].split())
    return "\n".join(filter(None, (signature(operator), type_text(operator), prose)))
