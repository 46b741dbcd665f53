"""Surface nodes: what only the surface IR has, from the front end to elaboration.

e ::= .. | a(a, .., name=a) | a.name | a.name = a | a[i, ..] | a[i, ..] = a | a : type | a, .. = a
    | for v in a block | match a { p if block -> block, .. }
p ::= _ | v | p as v | a | (p, .., *p, ..) | C(p, .., name=p) | p or p
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.ir.expr import Atom, Block, LoopLabel, Var
from relay.ir.node import ALIKE, node
from relay.ir.types import Type


@node
class Apply:
    """A call of anything: an operator, a function, a class, a Python builtin, a bound method.

    `changed`: the arguments that the caller gets back, with the changes that the function makes; the call gives a tuple
    of the result and these. They are numbered, those by keyword last; -1 is the value of a method.
    """

    function: Atom
    arguments: tuple[Atom, ...]
    keywords: tuple[tuple[str, Atom], ...] = ()
    span: Span | None = None
    changed: tuple[int, ...] = ()


@node
class Attribute:
    """`value.name`, of a tensor (`x.shape`), a Python module, or a record."""

    value: Atom
    name: str
    span: Span | None = None


@node(targets=0)
class SetAttribute:
    """`value.name = new`; only `.value` of a reference has a meaning. Binds no target."""

    value: Atom
    name: str
    new: Atom
    span: Span | None = None


@node
class Slice:
    """One slice of a subscript."""

    start: Atom | None
    stop: Atom | None
    step: Atom | None


@node
class Index:
    """`value[items]`. An item is an atom (Static(None) is newaxis, Static(...) the ellipsis) or a slice.

    `updated`: it is the part that `value[items] += ..` changes.
    """

    value: Atom
    items: tuple[Atom | Slice, ...]
    span: Span | None = None
    updated: bool = False


@node
class IndexUpdate:
    """The value of the variable after `value[items] = new`. Binds one target.

    `inside`: no other item is assigned, it has changed inside, as in `value[items].append(..)`; tuples may have it.
    """

    value: Atom
    items: tuple[Atom | Slice, ...]
    new: Atom
    span: Span | None = None
    inside: bool = False


@node
class Annotated:
    """`value` checked against a written type. Binds one target."""

    value: Atom
    annotation: Type
    span: Span | None = None


@node(notation="unpack {value} {count}", targets=None)
class Unpack:
    """`a, b = value`; binds one target for each component."""

    value: Atom
    count: int
    span: Span | None = None


@node
class WildcardPattern:
    """`_`."""

    span: Span | None = None


@node
class CapturePattern:
    """`name`, or `pattern as name`."""

    variable: Var
    pattern: Pattern
    span: Span | None = None


@node
class ValuePattern:
    """A literal or a dotted name."""

    value: Atom
    span: Span | None = None


@node
class TuplePattern:
    """`(p, ..)`; the item at `star`, if any, stands for all those between."""

    items: tuple[Pattern, ...]
    star: int | None = None
    span: Span | None = None


@node
class ClassPattern:
    """`Class(p, .., field=p)`."""

    function: Atom
    items: tuple[Pattern, ...]
    keywords: tuple[tuple[str, Pattern], ...] = ()
    span: Span | None = None


@node
class OrPattern:
    """`p | q`. The alternatives bind the same variables."""

    alternatives: tuple[Pattern, ...] = attrs.field(metadata=ALIKE)
    span: Span | None = None


Pattern: TypeAlias = WildcardPattern | CapturePattern | ValuePattern | TuplePattern | ClassPattern | OrPattern


@node
class PatternCase:
    """One case. The variables of its pattern are bound in its guard, whose block yields one bool, and in its body."""

    pattern: Pattern
    guard: Block | None
    body: Block
    span: Span | None = None


@node(targets=None)
class PatternMatch:
    """`match value`. The first case whose pattern fits and whose guard holds is taken; one has to."""

    value: Atom
    cases: tuple[PatternCase, ...]
    span: Span | None = None


@node(targets=None)
class ForEach:
    """`for element in iterable`. `element` is bound in the body; otherwise as a loop with a counter.
    `resized`: which parameters are lists that the body makes longer or shorter."""

    label: LoopLabel
    element: Var
    iterable: Atom
    parameters: tuple[Var, ...]
    initial: tuple[Atom, ...]
    body: Block
    span: Span | None = None
    resized: tuple[int, ...] = ()


SurfaceExpr: TypeAlias = (
    Apply | Attribute | SetAttribute | Index | IndexUpdate | Annotated | Unpack | ForEach | PatternMatch
)
"""The expressions that only the surface IR has."""
