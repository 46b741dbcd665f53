"""The rows of a match: cases with the patterns that are still to be tested, and the parts of the value to test."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TypeAlias

import attrs

from relay.errors import TypeCheckError
from relay.ir.expr import Var
from relay.ir.surface import CapturePattern, ClassPattern, OrPattern, Pattern, WildcardPattern
from relay.ir.types import Constructor, Form
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonObject,
    Tuple,
    is_constant_bool,
)

Path: TypeAlias = "tuple[int, ...]"


@attrs.define(eq=False)
class Occurrence:
    """A part of the matched value: where it is, and its components once a pattern has looked inside."""

    entity: AbstractValue
    path: Path
    items: tuple[Occurrence, ...] | None = None


@attrs.frozen(eq=False)
class Row:
    """A case with the patterns that are still to be tested, and the variables that are bound so far."""

    case: int
    patterns: tuple[tuple[Occurrence, Pattern], ...]
    bound: tuple[tuple[Var, Occurrence], ...] = ()

    def pattern_at(self, occurrence: Occurrence) -> Pattern | None:
        """The pattern at an occurrence, if the row has one."""
        return next((p for o, p in self.patterns if o is occurrence), None)

    def replace_pattern(self, occurrence: Occurrence, new: Sequence[tuple[Occurrence, Pattern]]) -> Row:
        """The row with other patterns in place of the one at an occurrence."""
        patterns: list[tuple[Occurrence, Pattern]] = []
        for o, p in self.patterns:
            patterns += new if o is occurrence else [(o, p)]
        return Row(self.case, tuple(patterns), self.bound)


def row_alternatives(row: Row) -> list[Row]:
    """The row without captures, wildcards and alternatives at its head: one row for each alternative."""
    patterns: list[tuple[Occurrence, Pattern]] = []
    bound = list(row.bound)
    pending = list(reversed(row.patterns))
    while pending:
        occurrence, pattern = pending.pop()
        match pattern:
            case WildcardPattern():
                pass
            case CapturePattern(variable, inner):
                bound.append((variable, occurrence))
                pending.append((occurrence, inner))
            case OrPattern(alternatives):
                before, after = tuple(patterns), tuple(reversed(pending))
                return [
                    found
                    for alternative in alternatives
                    for found in row_alternatives(
                        Row(row.case, (*before, (occurrence, alternative), *after), tuple(bound))
                    )
                ]
            case _:
                patterns.append((occurrence, pattern))
    return [Row(row.case, tuple(patterns), tuple(bound))]


def simple_rows(rows: Sequence[Row], occurrence: Occurrence, fits: bool) -> list[Row]:
    """The rows after a test of the first row's pattern at an occurrence, whose outcome is known."""
    first, *others = rows
    wanted = first.pattern_at(occurrence)
    if not fits:
        return list(others)
    same = [row for row in rows if row is first or row.pattern_at(occurrence) is not wanted]
    return [
        r for row in same for r in (row_alternatives(row.replace_pattern(occurrence, ())) if row is first else [row])
    ]


def known_value(entity: AbstractValue) -> tuple[object] | None:
    """The value that the checker knows, or None."""
    match entity:
        case Number():
            return (entity.specialize(),)
        case PythonObject(None | str() as value):
            return (value,)
        case PythonObject(enum.Enum() as member):
            return (int(member) if isinstance(member, int) else member,)
        case DynamicValue():
            known = is_constant_bool(entity)
            return None if known is None else (known,)
        case _:
            return None


def component_patterns(
    items: tuple[Occurrence, ...], parts: tuple[Pattern, ...], star: int | None
) -> list[tuple[Occurrence, Pattern]]:
    """The patterns of a tuple with the components that they stand for."""
    if star is None:
        return list(zip(items, parts, strict=True))
    tail = len(parts) - star - 1
    middle = items[star : len(items) - tail]
    rest = Occurrence(Tuple(tuple(o.entity for o in middle)), (*items[0].path[:-1], -1) if items else (-1,))
    return [
        *zip(items[:star], parts[:star], strict=True),
        (rest, parts[star]),
        *zip(items[len(items) - tail :], parts[star + 1 :], strict=True),
    ]


def mapping_fields(
    pattern: ClassPattern, record: Tuple, items: tuple[Occurrence, ...]
) -> list[tuple[Occurrence, Pattern]] | None:
    """The patterns of `{"key": p, **rest}` with the values that they stand for; None if a key is missing."""
    names = () if record.form is None else record.form.names
    found: list[tuple[Occurrence, Pattern]] = []
    wanted = [name for name, _ in pattern.keywords]
    for name, inner in pattern.keywords:
        if name == "**":
            others = [i for i, n in enumerate(names) if n not in wanted]
            form = Form(dict, tuple(names[i] for i in others))
            path = (*items[0].path[:-1], -1) if items else (-1,)
            found.append((Occurrence(Tuple(tuple(items[i].entity for i in others), form), path), inner))
        elif name in names:
            found.append((items[names.index(name)], inner))
        else:
            return None
    return found


def pattern_fields(
    pattern: ClassPattern, constructor: Constructor, items: tuple[Occurrence, ...]
) -> list[tuple[Occurrence, Pattern]]:
    """The patterns of a constructor with the fields that they stand for. Raises TypeCheckError."""
    if len(pattern.items) > len(items):
        count = f"{len(items)} field{'s' * (len(items) != 1)}"
        raise TypeCheckError(f"{constructor.name} has {count}, the pattern has {len(pattern.items)}", pattern.span)
    found = list(zip(items, pattern.items, strict=False))
    for name, inner in pattern.keywords:
        if name not in constructor.names:
            fields = ", ".join(constructor.names) or "none"
            raise TypeCheckError(
                f"{constructor.name} has no field {name!r}", pattern.span, help=f"its fields are {fields}"
            )
        position = constructor.names.index(name)
        if any(o is items[position] for o, _ in found):
            raise TypeCheckError(f"the field {name!r} is matched twice", pattern.span)
        found.append((items[position], inner))
    return found
