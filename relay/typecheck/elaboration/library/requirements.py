"""Requirements of the library's functions on the shapes of their arguments."""

from __future__ import annotations

from relay.errors import ShapeError
from relay.typecheck.elaboration.abstract_values import AbstractValue, PythonObject, is_constant_bool
from relay.typecheck.elaboration.library import formatting
from relay.typecheck.elaboration.library.overloads import Call, implements


def require_shape(condition: object, message: str, help: str | None = None) -> None:
    """In a function of `relay/library`: a call whose shapes do not meet the condition is a ShapeError. Where the sizes
    are known only at run time, it is an assertion."""
    raise TypeError("require_shape works in functions of the language only")


@implements(require_shape)
def _require_shape(
    call: Call, condition: AbstractValue, message: AbstractValue, help: AbstractValue | None = None
) -> AbstractValue:
    if is_constant_bool(condition) is False:
        advice = None if help is None else formatting.plain_text(help)
        raise ShapeError(formatting.plain_text(message), call.span, help=advice)
    if is_constant_bool(condition) is True:
        return PythonObject(None)
    return formatting.assert_(call.checker, call.out, [condition, message], call.span)
