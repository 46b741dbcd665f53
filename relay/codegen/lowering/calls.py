"""Calls of native functions: what is passed for arguments and results, and the check of the status."""

from __future__ import annotations

from collections.abc import Iterator

from relay.codegen.lowering.function_state import FunctionState
from relay.codegen.lowering.layout import ROW, TAG, DataLayout, Layout, TensorLayout, TupleLayout, leaves
from relay.codegen.lowering.values import DataValue, Immediate, Leaf, StackValue, Value, parts
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, integer
from relay.ir.expr import Call, Global
from relay.ir.types import UINT8


def emit_call(state: FunctionState, call: Call, target: Value) -> None:
    code, shared, function = state.code, state.shared, call.function
    assert isinstance(function, Global)
    name = function.name
    result_leaves = list(parts(target))
    frame = Leaf(TensorLayout(UINT8, (shared.frames[name],)), Immediate(integer(0)))
    if shared.frames[name]:
        frame = code.leaf(frame.layout)
    for leaf in (*result_leaves, frame):
        code.touch(leaf)
    arguments = [
        code.tensor_argument(leaf) if leaf is not None else _absent(layout)
        for atom in call.arguments
        for leaf, layout in _flat(state.value(atom), shared.layouts.atom(atom))
    ]
    arguments += [code.size(dim) for dim in shared.made[name]]
    workspace = code.address(frame) if shared.frames[name] else integer(0)
    results = [code.address(leaf) for leaf in result_leaves]
    code.check(tir.call(shared.names[name], [code.context, workspace, *arguments, *results]))


def _flat(value: Value, layout: Layout) -> Iterator[tuple[Leaf | None, TensorLayout]]:
    """The leaves of a value, None for those that are not there."""
    match value, layout:
        case Leaf(), _:
            yield value, value.layout
        case tuple(), TupleLayout(items):
            for item, inner in zip(value, items, strict=True):
                yield from _flat(item, inner)
        case DataValue(tag, constructors), DataLayout(_, fields):
            yield tag, TAG
            for values, layouts in zip(constructors, fields, strict=True):
                if values is None:
                    yield from ((None, leaf) for inner in layouts for leaf in leaves(inner))
                else:
                    for item, inner in zip(values, layouts, strict=True):
                        yield from _flat(item, inner)
        case StackValue(offset, length), _:
            yield offset, ROW
            yield length, ROW
        case _:
            raise AssertionError("a value that does not fit its layout")


def _absent(layout: TensorLayout) -> Expression:
    """What is passed for a field of a constructor that is not the active one."""
    return tir.literal(0, layout.base) if tir.by_value(layout.base, layout.elements) else integer(0)
