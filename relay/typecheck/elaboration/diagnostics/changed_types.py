"""Errors of loops that change the types of their variables."""

from __future__ import annotations

from relay.errors import Span, TypeMismatch
from relay.ir.types import BaseType, TensorType, Type
from relay.typecheck.elaboration.abstract_values import AbstractValue, Tuple
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of, structure_of
from relay.typecheck.elaboration.expressions import operator_relations
from relay.typecheck.elaboration.restarts import KeysOfRun
from relay.typecheck.unification import resolve

_KEEP_TYPES = "a loop's variables keep their types; start with the final shape and dtype"

START_WITH_ZEROS = (
    "after no round it would be a number, and how many rounds there are is known only at run time: start with an array"
    " of the final shape, as np.zeros(..) or relay.zeros_like(..)"
)


def keeping(found: Type, expected: Type) -> str:
    """The help for a variable that a loop gives another type: of one that differs in sizes also the way to say so."""
    match resolve(found), resolve(expected):
        case TensorType(BaseType() as base, tuple(shape)), TensorType(BaseType() as other, tuple(before)) if (
            base == other and len(shape) == len(before)
        ):
            pairs = zip(shape, before, strict=True)
            sizes = [f"{a}, " if a == b and isinstance(a, int) else "relay.Any, " for a, b in pairs]
            shown = "".join(sizes).rstrip() if len(sizes) == 1 else "".join(sizes).rstrip(", ")
            written = f"relay.Tensor[{operator_relations.spelling(base)}, ({shown})]"
            return f"start with the final shape, or give the array a type without the size: `k: {written} = ..`"
        case _:
            return _KEEP_TYPES


def is_another_record(expected: Tuple, entity: Tuple) -> bool:
    """True if one is a dict, and the other is not, or has other keys; or both are records of different classes."""
    forms = [t.form for t in (expected, entity) if t.form is not None]
    if expected.form == entity.form:
        return False
    return any(f.cls is dict for f in forms) or (len(forms) == 2 and all(f.names for f in forms))


def structure_error(name: str, expected: Tuple, entity: AbstractValue, span: Span | None) -> TypeMismatch:
    """The error of a loop that changes which items a tuple, dict or record has."""
    is_dict = expected.form is not None and expected.form.cls is dict
    others = (t.form for t in (expected, entity) if isinstance(t, Tuple))
    if origins := {f.origin for f in others if f is not None and f.origin is not None}:
        raise KeysOfRun(origins)
    found = f"it enters the loop as {structure_of(expected)} and becomes {structure_of(entity)}"
    if is_dict and isinstance(entity, Tuple):
        help = f"assign all keys before the loop, `{name}[..] = 0.0`, or copy it: `{name} = dict({name})`"
        return TypeMismatch(f"the loop changes the keys of the dict {name}: {found}", span, help=help)
    help = "a tuple or dict keeps its length; a list may grow: `xs.append(v)`"
    if expected.form is not None and expected.form.names:
        return TypeMismatch(f"the loop changes the class of {name}: {found}", span, help=_KEEP_TYPES)
    kind = kind_of(expected).removeprefix("a ")
    return TypeMismatch(f"the loop changes the structure of the {kind} {name}: {found}", span, help=help)
