"""Calls whose callers would not see the changes that a function makes in its arguments, as they are not written.

A call that a program writes gets the changed arguments back, or the check of aliases follows it. All other calls, as
`sorted` calls its key, `len(x)` the method of a class, and a value that holds a function calls that, are refused here.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Label, Span, TypeCheckError
from relay.ir.definition import Definition
from relay.ir.structure import is_plain_class, is_record_class
from relay.ir.types import Form, TupleType, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Tuple,
)


def require_seen(
    callee: GlobalFunction | LocalFunction, arguments: Sequence[AbstractValue | None], span: Span | None
) -> None:
    """Raise TypeCheckError for a call that nobody follows of a function that changes objects which it is given, or all
    of whose effect that is."""
    if isinstance(callee, GlobalFunction) and _is_lost(callee.definition, arguments):
        function = callee.definition.function
        label = () if function.span is None else (Label(function.span, "changes what it is given"),)
        raise TypeCheckError(
            f"`{function.name}` is not called by its name here, so that its changes of what it is given are not seen",
            span,
            labels=label,
            help=f"write the call: `{function.name}(..)`",
        )


def _is_lost(definition: Definition, arguments: Sequence[AbstractValue | None]) -> bool:
    if definition.gives_back or None not in definition.changes.values():
        return False
    changed = [arguments[p] for p, way in definition.changes.items() if way is None and p < len(arguments)]
    return definition.lost is not None or any(map(_has_fields, changed))


def _has_fields(value: AbstractValue | None) -> bool:
    """True for an object of a class of the user's."""
    form: Form | None = value.form if isinstance(value, Tuple) else None
    if isinstance(value, DynamicValue) and isinstance(type_ := prune(value.type), TupleType):
        form = type_.form
    return form is not None and (is_plain_class(form.cls) or is_record_class(form.cls))
