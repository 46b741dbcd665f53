"""Type differences: the smallest parts in which two types differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from relay.ir.types import (
    NONE,
    DataType,
    FunctionType,
    Kind,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    Unknown,
    prune,
    show,
    show_argument,
)
from relay.typecheck.unification import flat_shape, resolve, shape_variable, unknowns

SHOWN = 3
"""The number of differing parts that are reported."""

_LETTERS = {Kind.Type: "A", Kind.BaseType: "b", Kind.Shape: "s", Kind.Dim: "n"}


def differences(found: Type, expected: Type) -> tuple[str, ...]:
    """The first parts in which `found` is not what is expected; none where the whole types say it."""
    return tuple(islice(_parts(resolve(found), resolve(expected), ""), SHOWN))


def _parts(found: Type, expected: Type, where: str) -> Iterator[str]:
    match found, expected:
        case TensorType(b1, s1), TensorType(b2, s2):
            base, other = prune(b1), prune(b2)
            if base != other and not isinstance(base, Unknown) and not isinstance(other, Unknown):
                yield f"{where}the dtype is {base}, not {other}"
            mine, wanted = flat_shape(s1), flat_shape(s2)
            if shape_variable(mine) is not None or shape_variable(wanted) is not None:
                return
            if len(mine) != len(wanted):
                yield f"{where}the rank is {len(mine)}, not {len(wanted)}"
                return
            for axis, (a, b) in enumerate(zip(mine, wanted, strict=True)):
                if a != b and not isinstance(a, Unknown) and not isinstance(b, Unknown):
                    yield f"{where}axis {axis} is {a}, not {b}"
        case TupleType(items, form), TupleType(others, _) if len(items) == len(others):
            for position, (x, y) in enumerate(zip(items, others, strict=True)):
                name = form.names[position] if form is not None and form.names else f"item {position}"
                yield from _parts(x, y, f"{where}{name}: ")
        case TupleType(items), TupleType(others) if NONE not in (found, expected):
            yield f"{where}it has {_count(items)}, not {len(others)}"
        case FunctionType(p1, r1), FunctionType(p2, r2) if len(p1) == len(p2):
            for position, (x, y) in enumerate(zip(p1, p2, strict=True)):
                yield from _parts(x, y, f"{where}parameter {position}: ")
            yield from _parts(r1, r2, f"{where}the result: ")
        case FunctionType(p1), FunctionType(p2):
            yield f"{where}it has {len(p1)} parameters, not {len(p2)}"
        case StackType(RefType(x)), StackType(RefType(y)):
            yield from _parts(x, y, f"{where}the elements: ")
        case RefType(x), RefType(y):
            yield from _parts(x, y, f"{where}the content: ")
        case (DataType(d1, a1), DataType(d2, a2)) if d1 is d2 and len(a1) == len(a2):
            for parameter, ours, theirs in zip(d1.parameters, a1, a2, strict=True):
                if parameter.kind is Kind.Type:
                    yield from _parts(ours, theirs, f"{where}{parameter}: ")  # type: ignore[arg-type]
                elif ours != theirs:
                    yield f"{where}{parameter} is {show_argument(ours)}, not {show_argument(theirs)}"
        case _:
            if where and found != expected and not isinstance(found, Unknown) and not isinstance(expected, Unknown):
                yield f"{where}{show(found)}, not {show(expected)}"


def _count(items: Sequence[Type]) -> str:
    return f"{len(items)} item{'s' * (len(items) != 1)}"


def name_unknowns(*types: Type) -> None:
    """Give the variables of types letters, for a message that ends the elaboration."""
    found = [unknown for type_ in types for unknown in unknowns(type_)]
    used = {unknown.name for unknown in found}
    for unknown in found:
        if unknown.name == "_":
            first, count = _LETTERS.get(unknown.kind, "A"), 1
            while (name := first if count == 1 else f"{first}{count}") in used:
                count += 1
            unknown.name = name
            used.add(name)
