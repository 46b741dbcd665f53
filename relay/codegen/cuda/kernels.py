"""Groups of operator calls as launches of kernels: functions of TIR for one thread, by the rules of `schedules`.

Equal groups share their kernels. All operands and results are in the GPU's memory, also numbers, and nothing is updated
in place: a group's results are new memory, so a kernel never reads what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from tvm.ir import TensorLoad
from tvm_ffi import structural_map, structural_walk

from relay.codegen.cuda.launches import GENERAL, GroupKernels, Launch, host_calls
from relay.codegen.cuda.rules.attention import NAME as ATTENTION
from relay.codegen.cuda.rules.attention import attention
from relay.codegen.cuda.rules.blocks import Blocks
from relay.codegen.cuda.rules.epilogues import epilogues
from relay.codegen.cuda.rules.schedules import schedule
from relay.codegen.kernels.emission import Decision, Emission, Place, key
from relay.codegen.kernels.kernels import INDEX_LIMIT, Extents, group_stages, in_terms, signature
from relay.codegen.kernels.schedules import materialized_operations
from relay.codegen.kernels.stage import extent, in_order, volume, with_fresh_names
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import tirx
from relay.errors import CompileError, InternalError, refusals_of
from relay.ir.dims import Dim, TypeId, multiply, product
from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType
from relay.ops.tir.tvm_modules import without_vectors
from relay.transform.fusion.fusion_groups import FusionGroup


class DeviceKernels:
    """The kernels of one program."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []  # of different kernels
        self._known: dict[object, GroupKernels] = {}
        self._declined: set[object] = set()  # by `attention`
        self._groups = 0

    def group(self, group: FusionGroup) -> GroupKernels:
        """The kernels of a group. Raises CompileError for one that has none."""
        operands, sizes, found = signature(group, overwrites=False)
        if found not in self._known:
            self._known[found] = self._new_kernels(group, operands, sizes)
            self.launches += self._known[found].launches
        return self._of_group(self._known[found], group, operands, sizes)

    def attention(self, group: FusionGroup) -> GroupKernels | None:
        """The kernels of a group that is attention; None for any other."""
        operands, sizes, key_ = signature(group, overwrites=False)
        zeros = frozenset(n for n, atom in enumerate(operands) if isinstance(atom, Constant) and not atom.value.any())
        found = "attention", key_, zeros
        if found not in self._known and found not in self._declined:
            made = self._new_kernels(group, operands, sizes, zeros)
            if any(launch.rule == ATTENTION for launch in made.launches):
                self._known[found] = made
                self.launches += made.launches
            else:
                self._declined.add(found)
        return self._of_group(self._known[found], group, operands, sizes) if found in self._known else None

    def _new_kernels(
        self, group: FusionGroup, operands: Sequence[Atom], sizes: Sequence[TypeId], zeros: Zeros | None = None
    ) -> GroupKernels:
        calls = _calls(group)
        what = f"a kernel of {', '.join(dict.fromkeys(call.operator for call in calls))}"
        self._groups += 1
        with refusals_of(what, calls[0].span):
            names = "_".join(call.operator for call in calls)[:40]
            return _build(group, operands, sizes, f"relay{self._groups - 1}_{names}", zeros)

    def _of_group(
        self, made: GroupKernels, group: FusionGroup, operands: tuple[Atom, ...], sizes: tuple[TypeId, ...]
    ) -> GroupKernels:
        """The same kernels for a group that is like the one that they were made for."""
        return attrs.evolve(
            made,
            operands=operands,
            outputs=group.outputs,
            results=tuple(map(_type, group.outputs)),
            sizes=sizes,
            calls=host_calls(group),
            lines=tuple(call.span for call in _calls(group) if call.span is not None),
        )


def _calls(group: FusionGroup) -> list[OpCall]:
    return [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


Zeros = frozenset[int]
"""The positions of operands that are constants, 0 everywhere."""


def _build(
    group: FusionGroup, operands: Sequence[Atom], sizes: Sequence[TypeId], name: str, zeros: Zeros | None
) -> GroupKernels:
    """The kernels of a group, which may be attention if the `zeros` among its operands are given."""
    types = [*map(_type, operands), *(_type(binding.targets[0]) for binding in group.bindings)]
    most = max((n for type_ in types if isinstance(n := product(type_.shape), int)), default=0)
    index = "int64" if sizes or most >= FAR else "int32"
    if sizes or most <= INDEX_LIMIT:
        return _build_counting(group, operands, sizes, name, index, bool(sizes), zeros)
    try:
        return _build_counting(group, operands, sizes, name, index, True, zeros)
    except CompileError:  # a compute function may take it that axes of known extents have int32
        if most > 2**31 - 1:
            raise
        return _build_counting(group, operands, sizes, name, index, False, zeros)


FAR = 1 << 30
"""Elements from which positions in memory have 64 bits, with which a GPU divides several times more slowly."""


MANY = 1 << 40
"""The stand-in for the number of elements of a buffer of symbolic size."""


def _build_counting(
    group: FusionGroup,
    operands: Sequence[Atom],
    sizes: Sequence[TypeId],
    name: str,
    index: str,
    wide: bool,
    zeros: Zeros | None,
) -> GroupKernels:
    """The kernels of a group, with positions of this dtype; operators see indices of 64 bits if they are `wide`."""
    extents = Extents(sizes, wide)
    with without_vectors():
        inputs, outputs, tensors = group_stages(group, operands, extents, overwrites=False)
    e = Emission(1, index)
    buffers: list[Any] = []

    def general_dim(size: Any) -> Dim:
        """A size as a dim of GENERAL."""
        return in_terms(extents.dim(size), sizes, GENERAL)

    def keep(tensor: Any) -> Dim:
        """Give a tensor memory; its bytes."""
        dims, dtype = tuple(map(extent, tensor.shape)), str(tensor.dtype)
        elements = volume(dims)
        size = max(elements, 1) if isinstance(elements, int) else MANY  # no variables in types of buffers
        buffers.append(tir.buffer(f"b{len(buffers)}", (size,), dtype))
        e.places[key(tensor)] = Place(buffers[-1], dims)
        return multiply(general_dim(max(elements, 1) if isinstance(elements, int) else elements), _width(buffers[-1]))

    def bytes_of(buffer: Any) -> Dim:
        return multiply(general_dim(volume(tuple(map(extent, buffer.shape)))), _width(buffer))

    results = {output.op: None for output in outputs}
    ops = [op for op in in_order(outputs) if op not in {tensor.op: None for tensor in inputs}]
    for tensor in (*inputs, *outputs):
        keep(tensor)
    kept = materialized_operations(ops, results)
    wanted = [tensors[variable].op for variable in group.kept]
    steps = [op for op in ops if op in kept or any(op.same_as(w) for w in wanted)]
    ends = epilogues(e, steps, results)
    zero_inputs = [tensor for n, tensor in enumerate(inputs) if n in (zeros or ())]
    whole = None if zeros is None else attention(e, ops, results, zero_inputs)
    inside = {end.product for end in ends.values()} | (frozenset() if whole is None else whole.inside)
    in_memory = [op for op in steps if op not in inside]
    temporaries = [keep(op.output(n)) for op in in_memory for n in range(op.num_outputs) if (op, n) not in e.places]
    allocated = len(buffers)
    launches: list[Launch] = []
    for op in in_memory:
        end = ends.get(op)
        start = op if end is None else end.product
        of = whole if whole is not None and start.same_as(whole.output.stage.op) else None
        for made in schedule(e, start, end, of):
            body = _with_memory(made, buffers, bytes_of)
            parameters = [extents.variables[dim] for dim in sizes]
            decision = e.decisions[-1]
            launches.append(
                _launch(made, body, buffers, parameters, f"{name}_{len(launches)}", general_dim(made.blocks), decision)
            )
    memory = tuple(temporaries) + tuple(map(bytes_of, buffers[allocated:]))
    return GroupKernels((), (), (), tuple(sizes), memory, tuple(launches))


def _width(buffer: Any) -> int:
    """The bytes of an element."""
    return BaseType(str(buffer.dtype)).dtype.itemsize


def _with_memory(made: Blocks, buffers: list[Any], bytes_of: Callable[[Any], Dim]) -> Any:
    """The statements of a kernel, where small buffers of a thread are its own memory. Large ones, which only kernels of
    one thread have, are added to `buffers`."""
    small: dict[Any, Any] = {}

    def place(allocation: Any) -> Any:
        buffer = allocation.buffer
        if buffer.scope() in ("local", "shared"):
            return allocation
        count = bytes_of(buffer)
        if isinstance(count, int) and count < tir.STACK_BYTES:
            small[buffer] = tirx.decl_buffer(buffer.shape, str(buffer.dtype), buffer.name, scope="local")
            return tirx.AllocBuffer(small[buffer])
        if made.threads > 1 or made.blocks != 1:
            raise InternalError("threads would share the memory of one")
        buffers.append(buffer)
        return tirx.Evaluate(tir.integer(0, "int32"))

    body = structural_map(with_fresh_names(tir.sequence(made.statements)), ((tirx.AllocBuffer, place),))
    return structural_map(body, ((tirx.Var, lambda variable: small.get(variable, variable)),))


def _launch(
    made: Blocks, body: Any, buffers: Sequence[Any], sizes: Sequence[Any], name: str, blocks: Dim, decision: Decision
) -> Launch:
    """A kernel whose parameters are the pointers that it uses, and the sizes of its group."""
    used = _used_positions(body, buffers)
    pointers = [tirx.Var(f"p{n}", tir.pointer(str(buffers[n].dtype))) for n in used]
    count = tirx.const(made.blocks, "int32") if isinstance(made.blocks, int) else tirx.Cast("int32", made.blocks)
    for variable, tag, number in (
        (made.thread, "threadIdx.x", tirx.const(made.threads, "int32")),
        (made.block, "blockIdx.x", count),
    ):
        axis = tirx.IterVar(None, variable, tirx.IterVar.ThreadIndex, tag)
        body = tirx.AttrStmt(axis, "thread_extent", number, body)
    declared = [tirx.DeclBuffer(buffers[n], data=pointer) for n, pointer in zip(used, pointers, strict=True)]
    function = tirx.PrimFunc([*pointers, *sizes], tir.sequence([*declared, body])).with_attr("s_tir", True)
    return Launch(
        name, tuple(used), len(sizes), blocks, made.threads, decision.rule, decision.subject, decision.reason, function
    )


def _used_positions(body: Any, buffers: Sequence[Any]) -> list[int]:
    """The positions of the buffers that a statement uses."""
    found: list[Any] = []
    walked = (
        (TensorLoad, lambda load: found.append(load.source)),
        (tirx.BufferStore, lambda store: found.append(store.buffer)),
        (tirx.DeclBuffer, lambda declared: structural_walk(declared.data, ((tirx.Var, found.append),))),
    )
    structural_walk(body, walked)
    return [n for n, buffer in enumerate(buffers) if any(buffer.same_as(other) for other in found)]
