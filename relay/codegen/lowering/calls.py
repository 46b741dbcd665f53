"""Calls of native functions: what is passed for arguments and results, and the check of the status."""

from __future__ import annotations

from collections.abc import Iterator

from relay.codegen.lowering.context import EXTERNAL
from relay.codegen.lowering.function_builder import Code
from relay.codegen.lowering.function_state import FunctionState
from relay.codegen.lowering.layout import ROW, TAG, DataLayout, Layout, TensorLayout, TupleLayout, leaves
from relay.codegen.lowering.probes import FunctionCall
from relay.codegen.lowering.values import DataValue, Immediate, Leaf, StackValue, Value, parts
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, integer, tirx
from relay.ir.expr import Call, Global
from relay.ir.types import UINT8, FunctionType, TensorType, TupleType


def emit_call(state: FunctionState, call: Call, target: Value) -> None:
    code, shared, function = state.code, state.shared, call.function
    assert isinstance(function, Global)
    name = function.name
    if name in shared.devices:
        with state.measured_region("device", name, None, call.span):
            _emit_device_call(state, call, target)
        return
    result_leaves = list(parts(target))
    frame = Leaf(TensorLayout(UINT8, (shared.frames[name],)), Immediate(integer(0)))
    if shared.frames[name]:
        frame = code.leaf(frame.layout)
    begin = code.workspace.time
    for leaf in (*result_leaves, frame):
        code.touch(leaf)
    arguments = [
        code.tensor_argument(leaf) if leaf is not None else _absent_argument(layout)
        for atom in call.arguments
        for leaf, layout in _flat(state.value(atom), shared.layouts.atom(atom))
    ]
    arguments += [code.size(dim) for dim in shared.made[name]]
    workspace = code.address(frame) if shared.frames[name] else integer(0)
    results = [code.address(leaf) for leaf in result_leaves]
    code.check(tir.call(shared.names[name], [code.context, workspace, *arguments, *results]))
    if shared.probes is not None:
        shared.probes.calls.append(FunctionCall(state.name, name, begin, code.workspace.time))


def _emit_device_call(state: FunctionState, call: Call, target: Value) -> None:
    """Call what a device computes: tensors in, one tensor out, or a tuple of them."""
    code, function = state.code, call.function
    assert isinstance(function, Global) and isinstance(function.type, FunctionType)
    result = function.type.result
    results = result.items if isinstance(result, TupleType) else (result,)
    types = [t for t in (*function.type.parameters, *results) if isinstance(t, TensorType)]
    written = [leaf for leaf in parts(target) if leaf is not None]
    for leaf in written:
        code.touch(leaf)
    given = [*(code.address(state.leaf(atom)) for atom in call.arguments), *map(code.address, written)]
    device = state.shared.devices[function.name]
    emit_status_check(code, state.shared.externals.device_call(device, types, len(results), given))


def emit_status_check(code: Code, status: Expression) -> None:
    """Leave the function with what Python has raised, if it has."""
    failed = code.bind(status, "int32", "status")
    with code.collect() as statements:
        code.emit(*code.failure(EXTERNAL))
    code.emit_if(tirx.NE(failed, integer(0, "int32")), statements)


def _flat(value: Value, layout: Layout) -> Iterator[tuple[Leaf | None, TensorLayout]]:
    """The leaves of a value, None for absent ones."""
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


def _absent_argument(layout: TensorLayout) -> Expression:
    """The argument for a field of a constructor that is not the active one."""
    return tir.literal(0, layout.base) if tir.by_value(layout.base, layout.elements) else integer(0)
