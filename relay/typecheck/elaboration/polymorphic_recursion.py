"""Recursion at other sizes: `half(x[: n // 2])` in the body of `half`.

Where a call's sizes are known, each depth has an instance of its own, until sizes repeat. Two things end what would go
on: in a scheme a function whose parameters and result are annotated is used at its annotation, as polymorphic as that
is; and sizes that are annotated `Any` are known to the run only, if the recursion changes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span
from relay.ir.expr import Function
from relay.ir.types import Type
from relay.typecheck.elaboration.arguments import definition_context, surface_function
from relay.typecheck.elaboration.decisions import Place, SizeVaries
from relay.typecheck.elaboration.entities import GlobalFunction, LocalFunction, Output, Typed
from relay.typecheck.elaboration.session import Instance, Session
from relay.typecheck.unification import resolve


def declared_use(
    session: Session,
    callee: GlobalFunction | LocalFunction,
    running: Instance,
    types: Sequence[Type],
    span: Span | None,
) -> Instance | None:
    """In a scheme, the use of a function in its own body, at types of its own; None if not everything is annotated.

    Raises TypeMismatch for arguments that the annotations do not allow.
    """
    from relay.typecheck.elaboration.functions import annotation_type

    function = surface_function(callee)
    written = [p.type for p in function.parameters]
    if not session.generic or function.result is None or None in written or len(written) != len(types):
        return None
    context = attrs.evolve(definition_context(callee), annotated={})
    parameters = []
    for parameter, found in zip(function.parameters, types, strict=True):
        assert parameter.type is not None
        expected = annotation_type(session, context, parameter.type, span=span)
        session.unify_at(found, expected, span, f"argument {parameter.name} of {function.name}")
        parameters.append(expected)
    result = annotation_type(session, context, function.result, any_stays=True, span=span)
    return attrs.evolve(running, parameters=tuple(map(resolve, parameters)), result=result, known=None)


def refuse_other_sizes(
    session: Session,
    function: Function,
    running: Instance,
    types: Sequence[Type],
    shape: Sequence[bool],
) -> None:
    """Begin anew with sizes of the run where a function calls itself with other sizes at axes that are annotated
    `Any`."""
    from relay.typecheck.elaboration.made_sizes import any_axes, varying_axes

    given = [position for position, is_static in enumerate(shape) if not is_static]
    for position, found, before in zip(given, types, running.parameters, strict=True):
        may = any_axes(function.parameters[position].type)
        place = _place(function, position)
        axes = varying_axes(found, before, may) & set(may) - session.decisions.varying.get(place, set())
        if axes:
            raise SizeVaries(place, axes)


def widened(
    session: Session, out: Output, function: Function, values: Sequence[Typed | None], span: Span | None
) -> list[Typed | None]:
    """The arguments, with `Any` for the sizes that a recursion changes."""
    from relay.typecheck.elaboration import made_sizes

    found = list(values)
    for position, value in enumerate(values):
        axes = session.decisions.varying.get(_place(function, position))
        if value is not None and axes:
            found[position] = made_sizes.widened(session, out, value, axes, span)
    return found


def _place(function: Function, position: int) -> Place:
    return function.label, (-1, position)
