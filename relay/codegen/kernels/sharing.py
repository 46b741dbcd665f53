"""Names for what the element of a stage uses more than once.

A user's compute function writes `y = y - (y * y - a) / (2.0 * y)`, and again: each y is one object, which is in the
next expression three times. Whatever goes through expressions goes through each occurrence, so these are named first:
where they are computed in any case, which may be in an arm of a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
from tvm.ir import Call

from relay.codegen.kernels.stage import LOAD, is_choice, is_compute, substitute_variables
from relay.codegen.tvm.tir import Expression, tirx
from relay.ops.tir.tvm_modules import te


def with_shared_parts(tensor: Any) -> Any:
    """The tensor, whose element names what it uses more than once."""
    op = tensor.op
    if not is_compute(op) or op.reduce_axis or op.num_outputs > 1:
        return tensor
    body = _named_expression(op.body[0])
    if body is op.body[0]:
        return tensor
    axes = [axis.var for axis in op.axis]

    def element(*index: Expression) -> Expression:
        return substitute_variables(body, dict(zip(axes, index, strict=True)))

    return te.compute(tuple(tensor.shape), element, name=op.name)


_WRITTEN_OUT = 1 << 12
"""The occurrences of parts up to which TVM gets an expression as it is."""

_MOST = 1 << 20


def with_bounded_occurrences(body: Expression) -> Expression:
    """The element of a stage that a user's function computes, with names for what it uses more than once where that
    would be written out very often.

    Raises ValueError if it still is, as inside of a sum.
    """
    if _occurrences(body) <= _WRITTEN_OUT:
        return body
    named = _named_expression(body)
    if (count := _occurrences(named)) > _MOST:
        raise ValueError(
            f"one expression uses its parts {'more than 10^18' if count > 10**18 else count} times: "
            "make a te.compute of its own of what is used several times"
        )
    return named


def _occurrences(root: Expression) -> int:
    """The number of parts of an expression, each as often as it occurs; linear in the number of different ones."""
    counts: dict[Any, int] = {}
    for node in _postorder(root, _all_children):
        counts[node] = 1 + sum(counts[child] for child in _all_children(node))
    return counts[root]


def _all_children(node: Expression) -> Sequence[Expression]:
    if isinstance(node, tirx.Reduce):
        return tuple(node.source)
    if isinstance(node, tirx.Let):
        return node.value, node.body
    return _children(node)


@attrs.frozen(eq=False)
class _Scope:
    """The scope of a name: before the whole element, or before the arm of a choice, or before the right side of
    `and`."""

    choice: Expression | None = None
    arm: int = 0
    parent: _Scope | None = None
    depth: int = 0


def _named_expression(root: Expression) -> Expression:
    order = list(_postorder(root, _children))
    names: dict[_Scope, list[tuple[Any, Expression]]] = {}
    places, arms = _places(root, order)
    made: dict[Any, Expression] = {}
    for node in order:
        children = [
            _with_names(made[child], names.pop(scope, ())) if (scope := arms.get((node, position))) else made[child]
            for position, child in enumerate(_children(node))
        ]
        same = all(new is old for new, old in zip(children, _children(node), strict=True))
        made[node] = node if same else _rebuild(node, children)
        if node in places:
            name = tirx.Var("shared", node.ty)
            names.setdefault(places[node], []).append((name, made[node]))
            made[node] = name
    (whole,) = names.values() if names else ((),)
    return _with_names(made[root], whole)


def _with_names(expression: Expression, names: Sequence[tuple[Any, Expression]]) -> Expression:
    for name, value in reversed(names):
        expression = tirx.Let(name, value, expression)
    return expression


def _places(root: Expression, order: Sequence[Expression]) -> tuple[dict[Any, _Scope], dict[tuple[Any, int], _Scope]]:
    """The scopes in which to name what is used more than once, and those of the arms, by choice and position.

    A part is named in the smallest scope around its uses, if its value is needed there in any case, or is safe to
    compute where nobody needs it. What both arms of a choice need, the choice needs.
    """
    unsafe: dict[Any, bool] = {}
    for node in order:
        unsafe[node] = _is_read(node) or isinstance(node, _DIVISIONS) or any(unsafe[c] for c in _children(node))
    whole = _Scope()
    uses: dict[Any, list[tuple[_Scope, bool]]] = {root: [(whole, True)]}
    copied: dict[Any, bool] = {root: False}
    needed: dict[Any, tuple[_Scope, bool]] = {}
    places: dict[Any, _Scope] = {}
    arms: dict[tuple[Any, int], _Scope] = {}
    for node in reversed(order):  # each after all that it is a part of
        scope, certain = needed[node] = _smallest_scope(uses[node], needed)
        while scope.choice is not None and copied[scope.choice]:  # where a name would be made more than once
            scope, certain = _outer_scope(scope, certain, False, needed)
        several = len(uses[node]) > 1
        nameable = bool(_children(node)) and not _is_read(node) and str(node.ty) != "bool"
        if several and nameable and (certain or not unsafe[node]):
            places[node] = scope
        copied[node] = node not in places and (several or copied[node])
        for position, child in enumerate(_children(node)):
            use = needed[node]
            if position > 0 and _guards(node):
                inner = arms[node, position] = _Scope(node, position, use[0], use[0].depth + 1)
                use = inner, True
            uses.setdefault(child, []).append(use)
            copied[child] = copied.get(child, False) or copied[node]
    return places, arms


def _smallest_scope(uses: Sequence[tuple[_Scope, bool]], needed: dict[Any, tuple[_Scope, bool]]) -> tuple[_Scope, bool]:
    """The smallest scope around all uses, and whether one of them is certain there."""
    found: dict[_Scope, bool] = {}
    for scope, certain in uses:
        found[scope] = found.get(scope, False) or certain
    while len(found) > 1:
        inner = max(found, key=lambda scope: scope.depth)
        certain = found.pop(inner)
        other = next((s for s in found if s.choice is inner.choice and s.arm != inner.arm), None)
        both = certain and other is not None and is_choice(inner.choice) and found[other]
        outer, certain = _outer_scope(inner, certain, both, needed)
        found[outer] = found.get(outer, False) or certain
    return next(iter(found.items()))


def _outer_scope(
    scope: _Scope, certain: bool, both: bool, needed: dict[Any, tuple[_Scope, bool]]
) -> tuple[_Scope, bool]:
    """The scope around one, and whether it needs what that needs: only if the choice's other arm does, too."""
    assert scope.parent is not None
    return scope.parent, both and needed[scope.choice][1]


def _postorder(root: Expression, children: Callable[[Expression], Sequence[Expression]]) -> Iterator[Expression]:
    """Each object once, after what is in it."""
    done: dict[Any, None] = {}
    pending = [(root, iter(children(root)))]
    while pending:
        node, rest = pending[-1]
        following = next((child for child in rest if child not in done), None)
        if following is not None:
            pending.append((following, iter(children(following))))
            continue
        pending.pop()
        if node not in done:
            done[node] = None
            yield node


_BINARY: tuple[Any, ...] = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max, tirx.EQ,
    tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.And, tirx.Or,
)  # fmt: skip


def _children(node: Expression) -> Sequence[Expression]:
    """The direct subexpressions of an expression: none of those that cannot be rebuilt here."""
    if isinstance(node, _BINARY):
        return node.a, node.b
    if isinstance(node, tirx.Cast):
        return (node.value,)
    if isinstance(node, tirx.Not):
        return (node.a,)
    if isinstance(node, tirx.Select):
        return node.condition, node.true_value, node.false_value
    if isinstance(node, Call) and not _is_read(node):
        return tuple(node.args)
    return ()


_DIVISIONS: tuple[Any, ...] = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def _guards(node: Expression) -> bool:
    """True if only the first part of an expression is computed whenever the expression is."""
    return isinstance(node, tirx.And | tirx.Or) or (isinstance(node, Call) and is_choice(node))


def _is_read(node: Expression) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") == LOAD


def _rebuild(node: Expression, children: Sequence[Expression]) -> Expression:
    if isinstance(node, tirx.Cast):
        return tirx.Cast(str(node.ty), *children)
    if isinstance(node, Call):
        return Call(node.op, list(children), ret_ty=node.ty)
    return type(node)(*children)


__all__ = ["with_bounded_occurrences", "with_shared_parts"]
