"""Names for what the element of a stage uses more than once.

A user's compute function writes `y = y - (y * y - a) / (2.0 * y)`, and again: each y is one object, which is in the
next expression three times. Whatever goes through expressions goes through each occurrence, so these are named first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm.ir import Call

from relay.codegen.kernels.stage import LOAD, is_choice, is_compute, substitute_variables
from relay.codegen.tvm.tir import Expression, tirx
from relay.ops.tir.tvm_modules import te


def with_shared_parts(tensor: Any) -> Any:
    """The tensor, whose element names what it computes in any case and uses more than once."""
    op = tensor.op
    if not is_compute(op) or op.reduce_axis or op.num_outputs > 1:
        return tensor
    body = _named(op.body[0])
    if body is op.body[0]:
        return tensor
    axes = [axis.var for axis in op.axis]

    def element(*index: Expression) -> Expression:
        return substitute_variables(body, dict(zip(axes, index, strict=True)))

    return te.compute(tuple(tensor.shape), element, name=op.name)


def _named(root: Expression) -> Expression:
    uses: dict[Any, int] = {}
    order = list(_postorder(root, _children))
    for node in order:
        for child in _children(node):
            uses[child] = uses.get(child, 0) + 1
    certain = dict.fromkeys(_postorder(root, _certain_children))
    made: dict[Any, Expression] = {}
    names: list[tuple[Any, Expression]] = []
    for node in order:
        children = _children(node)
        changed = [made[child] for child in children]
        same = all(new is old for new, old in zip(changed, children, strict=True))
        made[node] = node if same else _rebuilt(node, changed)
        if uses.get(node, 0) > 1 and node in certain and children and not _is_read(node) and str(node.ty) != "bool":
            name = tirx.Var("shared", node.ty)
            names.append((name, made[node]))
            made[node] = name
    whole = made[root]
    for name, value in reversed(names):
        whole = tirx.Let(name, value, whole)
    return whole


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
    """What is directly in an expression: nothing in those that cannot be made anew here."""
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


def _certain_children(node: Expression) -> Sequence[Expression]:
    """What is computed whenever the expression is."""
    children = _children(node)
    guards = isinstance(node, tirx.And | tirx.Or) or (isinstance(node, Call) and is_choice(node))
    return children[:1] if guards else children


def _is_read(node: Expression) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") == LOAD


def _rebuilt(node: Expression, children: Sequence[Expression]) -> Expression:
    if isinstance(node, tirx.Cast):
        return tirx.Cast(str(node.ty), *children)
    if isinstance(node, Call):
        return Call(node.op, list(children), ret_ty=node.ty)
    return type(node)(*children)


__all__ = ["with_shared_parts"]
