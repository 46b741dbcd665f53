"""Assignments: to names, patterns, items and references."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

from relay.errors import FrontendError, Span
from relay.frontend.analysis.foreign_annotations import meaning
from relay.frontend.analysis.names import changed_list, is_part
from relay.frontend.analysis.ufunc_updates import is_update
from relay.frontend.annotations import AnnotationReader
from relay.frontend.changes.parameters import has_method
from relay.frontend.context import REFERENCE_HELP, Context
from relay.frontend.subscripts import BINARY, lower_items
from relay.ir.expr import Atom, Expr, OpCall, Static, Var
from relay.ir.intrinsic import IN_PLACE, Intrinsic
from relay.ir.surface import Annotated, Apply, Attribute, Index, IndexUpdate, SetAttribute, Slice, Unpack


def lower_assignment(context: Context, node: ast.Assign) -> None:
    """`target = value`, also with several targets."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
            new = _empty_list(context, target, value) or context.expression(value)
            variable = context.assign(name, new, context.span(target))
            if is_update(node):
                context.updated.add(variable)
        case ast.Assign(
            targets=[ast.Tuple(elts=targets) | ast.List(elts=targets) as pattern],
            value=ast.Tuple(elts=values) | ast.List(elts=values),
        ) if not any(isinstance(item, ast.Starred) for item in (*targets, *values)):
            if len(targets) != len(values):
                raise FrontendError(
                    f"{len(values)} values for {len(targets)} names",
                    context.span(pattern),
                    help="write a name for each value, or one star: `a, *rest = ..`",
                )
            atoms = [_assign_value(context, target, value) for target, value in zip(targets, values, strict=True)]
            for part, atom in zip(targets, atoms, strict=True):
                store(context, part, atom)
        case _:
            value = node.value
            if isinstance(value, ast.GeneratorExp) and all(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
                value = ast.copy_location(ast.ListComp(value.elt, value.generators), value)
            whole = context.atom(value)
            for each in node.targets:
                store(context, each, whole)


def _assign_value(context: Context, target: ast.expr, value: ast.expr) -> Atom:
    empty = _empty_list(context, target, value)
    return context.atom(value) if empty is None else context.bind(empty, "items", context.span(value))


def _empty_list(context: Context, target: ast.expr, value: ast.expr) -> Expr | None:
    """`[]` that is assigned to a variable to which the function appends tuples, with the number of their parts."""
    if not isinstance(target, ast.Name) or not isinstance(value, ast.List) or value.elts:
        return None
    parts, span = context.appended_tuples.get(target.id), context.span(value)
    if parts is None:
        return None
    return Apply(Static(Intrinsic("list"), span), (), (("parts", Static(parts, span)),), span)


def lower_annotated_assignment(context: Context, node: ast.AnnAssign) -> None:
    """`name: T = value`"""
    if not isinstance(node.target, ast.Name):
        raise FrontendError(
            "only a variable can be annotated", context.span(node.target), help="assign to a variable first"
        )
    if node.value is None:
        raise FrontendError(
            f"`{node.target.id}` is declared without a value",
            context.span(node),
            help=f"write `{node.target.id}: {ast.unparse(node.annotation)} = ..` where it gets its value",
        )
    value = context.atom(node.value)
    said = meaning(context.scope, node.annotation)
    if said is None:
        context.assign(node.target.id, value, context.span(node.target))
        return
    type_ = AnnotationReader(context.file, context.scope, context.defines, context.sizes).type(said)
    context.assign(node.target.id, Annotated(value, type_, context.span(node.value)), context.span(node.target))


def lower_augmented_assignment(context: Context, node: ast.AugAssign) -> None:
    """`target += value`: the target's old value is read before the value is computed."""
    operator = BINARY[type(node.op)]

    def updated_value(old: Atom) -> Atom:
        value = augmented(old, context.atom(node.value))
        updated = context.bind(value, "updated", context.span(node))
        context.updated.add(updated)
        return updated

    def augmented(old: Atom, more: Atom) -> Expr:
        span = context.span(node)
        if has_method(context.file, context.scope, IN_PLACE[operator]):
            return Apply(Static(Intrinsic("augment"), span), (old, Static(operator, span), more), (), span)
        return OpCall(operator, (old, more), {}, span)

    target = context.span(node.target)
    match node.target:
        case ast.Name(id=name) if _extends(context, name, node):
            more = context.atom(node.value)
            longer = augmented(context.read(name, target), more)
            context.updated.add(context.assign(name, longer, target))
        case ast.Name(id=name):
            old = context.read(name, target)
            value = augmented(old, context.atom(node.value))
            context.updated.add(context.assign(name, value, target))
        case ast.Attribute(value=reference, attr="value" as name) if not is_part(node.target):
            cell = context.atom(reference)
            before = context.bind(Attribute(cell, name, target), name, target)
            context.emit((), SetAttribute(cell, name, updated_value(before), context.span(node)))
        case ast.Subscript() | ast.Attribute() as item:
            update_item(context, item, lambda old: updated_value(old()))


def _extends(context: Context, name: str, node: ast.AugAssign) -> bool:
    """True if `xs += value` is about a list that `value` may change: it then appends to the changed list."""
    return context.is_changed_inside(name) or any(changed_list(part) == name for part in ast.walk(node.value))


def store(context: Context, target: ast.expr, value: Atom) -> None:
    """Give a computed value to a target."""
    match target:
        case ast.Name(id=name):
            context.assign(name, value, context.span(target))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            _unpack(context, target, parts, value)
        case ast.Attribute(value=reference, attr="value" as name) if not is_part(target):
            cell = context.atom(reference)
            context.outlives(value)
            context.emit((), SetAttribute(cell, name, value, context.span(target)))
        case ast.Subscript() | ast.Attribute():
            update_item(context, target, lambda old: value)
        case _:
            raise FrontendError(
                "this is not something that can be assigned", context.span(target), help="assign to a variable"
            )


def _unpack(context: Context, target: ast.expr, parts: list[ast.expr], value: Atom) -> None:
    stars = [i for i, part in enumerate(parts) if isinstance(part, ast.Starred)]
    if len(stars) > 1:
        raise FrontendError("one `*` is enough in an assignment", context.span(parts[stars[1]]), help="name the items")
    if stars:
        position, span = stars[0], context.span(target)
        counts = (Static(position, span), Static(len(parts) - position - 1, span))
        split = Apply(Static(Intrinsic("unpack"), span), (value, *counts), (), span)
        value = context.bind(split, "parts", span)
        parts = [part.value if isinstance(part, ast.Starred) else part for part in parts]
    variables = tuple(Var(p.id if isinstance(p, ast.Name) else "part", None, context.span(p)) for p in parts)
    context.emit(variables, Unpack(value, len(parts), context.span(target)))
    for part, variable in zip(parts, variables, strict=True):
        if isinstance(part, ast.Name):
            context.rename(part.id, variable, context.span(part))
        else:
            store(context, part, variable)


Step: TypeAlias = tuple[tuple[Atom | Slice, ...] | str, Span]
"""One step into a value: the items of a subscript, or the name of a field."""


def update_item(
    context: Context,
    target: ast.Subscript | ast.Attribute,
    new: Callable[[Callable[[], Atom]], Atom],
    inside: bool = False,
) -> None:
    """`x[i] = new`, `x[i][j] = new`, `p.w = new`, `p.w[i] = new`, `r.value[i] = new`: replace it in a copy, inside out,
    and rebind the base. The same for what changes `inside` of the item, `x[i].append(..)`.

    `new` gets a function that reads the item that is replaced. What computes the new one may change the base, too, as
    in `x[i] = x.pop()`: that is read after it.
    """
    place = Place(context, target)
    place.require_place(inside)
    place.store(new(place.read), inside)


class Place:
    """A variable, or a part of one or of what a reference holds, whose keys are computed once. `changes`: it is known
    to change."""

    def __init__(self, context: Context, target: ast.expr, changes: bool = True) -> None:
        path: list[ast.Subscript | ast.Attribute] = []
        base = target
        while is_part(base):
            path.append(base)
            base = base.value
        self._context, self._target, self._base = context, target, base
        self._cell: Atom | None = None
        match base:
            case ast.Name(id=name):
                require_variable(context, base, target)
                if changes:
                    context.change_parameter(name, context.span(target))
                if changes and any(isinstance(step, ast.Attribute) for step in path):
                    context.changed_fields.add(name)
            case ast.Attribute(value=reference, attr="value"):
                self._cell = context.atom(reference)
            case _:
                raise FrontendError(
                    "only an item or a field of a variable can be assigned",
                    context.span(target),
                    help="assign the value to a variable first",
                )
        self._steps: list[Step] = [
            (lower_items(context, node.slice) if isinstance(node, ast.Subscript) else node.attr, context.span(node))
            for node in reversed(path)
        ]
        self._held: list[Atom] = []  # the base, its item, ..

    def _read_around(self) -> Atom:
        """Read what is around the place, unless it is known, and give the base."""
        span = self._context.span(self._base)
        if isinstance(self._base, ast.Name):
            whole = self._context.read(self._base.id, span)
        else:
            assert self._cell is not None
            whole = self._context.bind(Attribute(self._cell, "value", span), "value", span)
        if not self._held or self._held[0] is not whole:
            self._held = [whole]
            for step in self._steps[:-1]:
                self._held.append(_part(self._context, self._held[-1], step, False))
        return whole

    def read(self) -> Atom:
        """The value at the place."""
        whole = self._read_around()
        return _part(self._context, self._held[-1], self._steps[-1], True) if self._steps else whole

    def store(self, value: Atom, inside: bool) -> None:
        """Put a value there."""
        context = self._context
        if self._steps:
            self._read_around()
        elif isinstance(self._base, ast.Name):
            context.assign(self._base.id, value, context.span(self._base))
        for whole, (items, place) in zip(reversed(self._held), reversed(self._steps), strict=bool(self._steps)):
            if isinstance(items, str):
                given = (whole, Static(items, place), value)
                update: Expr = Apply(Static(Intrinsic("set_field"), place), given, (), place)
            else:
                update = IndexUpdate(whole, items, value, place, inside or whole is not self._held[-1])
            if whole is self._held[0] and isinstance(self._base, ast.Name):
                context.updated.add(context.assign(self._base.id, update, place))
            else:
                value = context.bind(update, "updated", place)
                context.updated.add(value)
        if self._cell is not None:
            context.emit((), SetAttribute(self._cell, "value", value, context.span(self._target)))

    def require_place(self, inside: bool) -> None:
        """A check before a change: a slice of a list is a new one, so nothing sees that it changes."""
        last = len(self._steps) - (1 if inside else 2)
        if last < 0:
            return
        items, place = self._steps[last]
        if len(items) == 1 and isinstance(items[0], Slice):
            self._read_around()
            given = (self._held[last], Static("slice", place))
            self._context.bind(Apply(Static(Intrinsic("changed_copy"), place), given, (), place), "changed", place)


def _part(context: Context, whole: Atom, step: Step, updated: bool) -> Atom:
    """The value that a step reads."""
    items, place = step
    if isinstance(items, str):
        return context.bind(Attribute(whole, items, place), items, place)
    return context.bind(Index(whole, items, place, updated), "item", place)


def require_variable(context: Context, base: ast.Name, target: ast.expr) -> None:
    """Only a variable can be rebound by `x[i] = v`. One of a function around this one is kept in a reference."""
    if base.id in context.locals:
        return
    if context.defines(base.id):
        context.change_outer(base.id)
        return
    message = f"`{base.id}` is a global name, whose items cannot be assigned in a function"
    raise FrontendError(message, context.span(target), help=REFERENCE_HELP.format(base.id))
