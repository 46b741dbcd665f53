"""Groups of operator calls as launches of kernels: functions of TIR for one thread, by the rules of `schedules`.

Equal groups share their kernels. All operands and results are in the GPU's memory, also numbers. A group's results are
new memory, so that a kernel never reads what it writes; but an update of a part of a tensor, as `x.at[i].set(y)`, is
the kernel of that part alone, on memory that has the old elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
from tvm.ir import TensorLoad
from tvm_ffi import structural_map, structural_walk

from relay.codegen.cuda.launches import GENERAL, GroupKernels, Launch, Rest, host_calls, is_view, updated_variable
from relay.codegen.cuda.libraries.convolutions import (
    LibraryConvolution,
    Order,
    convolution_and_rest,
    library_convolution,
)
from relay.codegen.cuda.libraries.products import LibraryProduct, library_product
from relay.codegen.cuda.rules.attention import NAME as ATTENTION
from relay.codegen.cuda.rules.attention import attention
from relay.codegen.cuda.rules.blocks import Blocks, Fused
from relay.codegen.cuda.rules.epilogues import Epilogue, epilogues
from relay.codegen.cuda.rules.recomputation import NAME as RECOMPUTATION
from relay.codegen.cuda.rules.recomputation import inside_of, recomputations
from relay.codegen.cuda.rules.schedules import schedule
from relay.codegen.kernels.emission import Decision, Emission, Place, key
from relay.codegen.kernels.kernels import INDEX_LIMIT, Extents, group_stages, in_terms, signature
from relay.codegen.kernels.schedules import materialized_operations
from relay.codegen.kernels.stage import extent, in_order, volume, with_fresh_names
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Statement, tirx
from relay.errors import CompileError, InternalError, refusals_of
from relay.ir.dims import Dim, TypeId, multiply, product
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.types import BaseType, Shape, TensorType
from relay.ops.tir.tvm_modules import without_vectors
from relay.transform.fusion.fusion_groups import FusionGroup


@attrs.frozen(eq=False)
class _Wanted:
    """The condition for a rule that a group has to meet: attention, where the `zeros` among its operands are constants
    that are 0 everywhere, or recomputation of the products at these positions among its bindings."""

    rule: str
    zeros: frozenset[int] = frozenset()
    products: tuple[int, ...] = ()

    @property
    def key(self) -> object:
        return self.rule, self.zeros, self.products


class DeviceKernels:
    """The kernels of one program."""

    def __init__(self) -> None:
        self._known: dict[object, GroupKernels | None] = {}
        self._groups = 0

    def group(self, group: FusionGroup) -> GroupKernels:
        """The kernels of a group. Raises CompileError for one that has none."""
        found = self._kernels(group, None)
        assert found is not None
        return found

    def attention(self, group: FusionGroup) -> GroupKernels | None:
        """The kernels of a group that is attention; None for any other."""
        operands, _, _ = signature(group, overwrites=False)
        zeros = frozenset(n for n, atom in enumerate(operands) if isinstance(atom, Constant) and not atom.value.any())
        return self._kernels(group, _Wanted(ATTENTION, zeros))

    def recomputation(self, group: FusionGroup, products: frozenset[Var]) -> GroupKernels | None:
        """The kernels of a group that computes some products again for each kernel that reads them; None if one of them
        cannot."""
        places = tuple(n for n, binding in enumerate(group.bindings) if binding.targets[0] in products)
        return self._kernels(group, _Wanted(RECOMPUTATION, products=places))

    def _kernels(self, group: FusionGroup, wanted: _Wanted | None) -> GroupKernels | None:
        operands, sizes, found = signature(group, overwrites=wanted is None and updated_variable(group) is not None)
        name = found if wanted is None else (wanted.key, found)
        if name not in self._known:
            self._known[name] = self._new_kernels(group, operands, sizes, wanted)
        made = self._known[name]
        return None if made is None else self._of_group(made, group, operands, sizes)

    def _new_kernels(
        self, group: FusionGroup, operands: Sequence[Atom], sizes: Sequence[TypeId], wanted: _Wanted | None
    ) -> GroupKernels | None:
        calls = _calls(group)
        what = f"a kernel of {', '.join(dict.fromkeys(call.operator for call in calls))}"
        self._groups += 1
        with refusals_of(what, calls[0].span):
            names = "_".join(call.operator for call in calls)[:40]
            return _group_kernels(group, operands, sizes, f"relay{self._groups - 1}_{names}", wanted)

    def _of_group(
        self, made: GroupKernels, group: FusionGroup, operands: tuple[Atom, ...], sizes: tuple[TypeId, ...]
    ) -> GroupKernels:
        """The same kernels for a group that is like the one that they were made for."""
        library: LibraryProduct | LibraryConvolution | str | None = library_product(group, operands)
        rest = None
        if library is None:
            library = library_convolution(group, operands)
        if isinstance(library, str) and (parts := convolution_and_rest(group)) is not None:
            alone, after = parts
            found = library_convolution(alone, operands)
            if isinstance(found, str):
                library = found
            elif found is not None and updated_variable(after) is updated_variable(group):
                library = found
                rest = Rest(alone.outputs[0], self.group(after))
        return attrs.evolve(
            made,
            operands=operands,
            outputs=group.outputs,
            results=tuple(map(_type, group.outputs)),
            sizes=sizes,
            calls=host_calls(group),
            lines=tuple(call.span for call in _calls(group) if call.span is not None),
            library=library,
            copies=self._copies(library) if isinstance(library, LibraryConvolution) else (),
            rest=rest,
            updated=updated_variable(group),
            is_view=is_view(group, operands),
        )

    def _copies(self, convolution: LibraryConvolution) -> tuple[GroupKernels | None, ...]:
        """The kernels that copy tensors from the group's layouts to the library's, and the result back."""
        given, wanted = convolution.orders, convolution.order
        *sources, result = convolution.shapes
        if convolution.addend is None:
            given = *given[:2], wanted, given[-1]
        copies = [
            self._copy(shape, order, wanted, convolution.dtype) for shape, order in zip(sources, given, strict=False)
        ]
        return *copies, self._copy(result, wanted, given[-1], convolution.dtype)

    def _copy(self, shape: Shape, given: Order, wanted: Order, dtype: str) -> GroupKernels | None:
        """The kernel that copies a tensor from one order of its axes to another one; None if they are the same."""
        if given == wanted:
            return None
        source, copy = (
            Var(name, TensorType(BaseType(dtype), tuple(shape[axis] for axis in order)))
            for name, order in (("source", given), ("copy", wanted))
        )
        axes = tuple(given.index(axis) for axis in wanted)
        binding = Binding((copy,), OpCall("transpose", (source,), {"axes": axes}))
        return self.group(FusionGroup((binding,), (copy,)))


def _calls(group: FusionGroup) -> list[OpCall]:
    return [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


_Made = TypeVar("_Made")


def _counted(group: FusionGroup, operands: Sequence[Atom], sizes: bool, build: Callable[[str, bool], _Made]) -> _Made:
    """The result of `build` for a dtype of positions, and for whether operators see indices of 64 bits. With `sizes`
    there are symbolic ones."""
    types = [*map(_type, operands), *(_type(binding.targets[0]) for binding in group.bindings)]
    most = max((n for type_ in types if isinstance(n := product(type_.shape), int)), default=0)
    index = "int64" if sizes or most >= FAR else "int32"
    if sizes or most <= INDEX_LIMIT:
        return build(index, sizes)
    try:
        return build(index, True)
    except CompileError:  # a compute function may take it that axes of known extents have int32
        if most > 2**31 - 1:
            raise
        return build(index, False)


FAR = 1 << 30
"""Elements from which positions in memory have 64 bits, with which a GPU divides several times more slowly."""


MANY = 1 << 40
"""The stand-in for the number of elements of a buffer of symbolic size."""


class _Scheduling:
    """The loops of a group that is being scheduled: its buffers, of operands, results and then of `temporaries`, whose
    bytes these are, in terms of GENERAL."""

    def __init__(
        self,
        group: FusionGroup,
        operands: Sequence[Atom],
        sizes: Sequence[TypeId],
        index: str,
        wide: bool,
        updates: bool,
    ) -> None:
        """`updates`: whether the group writes over the operand that its last call may write over."""
        self.sizes, self.extents, self.e = sizes, Extents(sizes, wide), Emission(1, index)
        self.buffers: list[Any] = []
        self.temporaries: list[Dim] = []
        with without_vectors():
            self.inputs, self.outputs, self.tensors = group_stages(group, operands, self.extents, overwrites=updates)
        for tensor in (*self.inputs, *self.outputs):
            self.keep(tensor)

    def general_dim(self, size: Any) -> Dim:
        """A size as a dim of GENERAL."""
        return in_terms(self.extents.dim(size), self.sizes, GENERAL)

    def keep(self, tensor: Any) -> Dim:
        """Give a tensor memory; its bytes."""
        dims, dtype = tuple(map(extent, tensor.shape)), str(tensor.dtype)
        elements = volume(dims)
        size = max(elements, 1) if isinstance(elements, int) else MANY  # no variables in types of buffers
        self.buffers.append(tir.buffer(f"b{len(self.buffers)}", (size,), dtype))
        self.e.places[key(tensor)] = Place(self.buffers[-1], dims)
        count = self.general_dim(max(elements, 1) if isinstance(elements, int) else elements)
        return multiply(count, _width(self.buffers[-1]))

    def bytes_of(self, buffer: Any) -> Dim:
        return multiply(self.general_dim(volume(tuple(map(extent, buffer.shape)))), _width(buffer))

    def blocks(
        self, group: FusionGroup, wanted: _Wanted | None, one_block: bool
    ) -> list[tuple[Blocks, Statement, Decision]] | None:
        """The kernels, each with the statement of a thread and the rule that made it; None if the group is not what is
        wanted. `one_block`: for one block of threads, which computes all of them."""
        e, results = self.e, {output.op: None for output in self.outputs}
        ops = [op for op in in_order(self.outputs) if op not in {tensor.op: None for tensor in self.inputs}]
        kept = materialized_operations(ops, results)
        computed_once = [self.tensors[variable].op for variable in group.kept]
        steps = [op for op in ops if op in kept or any(op.same_as(other) for other in computed_once)]
        plan = ({}, steps, {}) if one_block else _plan(e, group, self.inputs, self.tensors, steps, results, wanted)
        if plan is None:
            return None
        ends, in_memory, fused = plan
        self.temporaries += [
            self.keep(op.output(n)) for op in in_memory for n in range(op.num_outputs) if (op, n) not in e.places
        ]
        found, allocated = [], len(self.buffers)
        for op in in_memory:
            end = ends.get(op)
            start = op if end is None else end.product
            for made in schedule(e, start, end, fused.get(start), one_block):
                body = _with_memory(made, self.buffers, self.bytes_of)
                found.append((made, body, e.decisions[-1]))
        self.temporaries += map(self.bytes_of, self.buffers[allocated:])
        return found


def _group_kernels(
    group: FusionGroup,
    operands: Sequence[Atom],
    sizes: Sequence[TypeId],
    name: str,
    wanted: _Wanted | None,
) -> GroupKernels | None:
    """The kernels of a group; None if it is not what is wanted."""
    updates = wanted is None and updated_variable(group) is not None

    def build(index: str, wide: bool) -> GroupKernels | None:
        scheduling = _Scheduling(group, operands, sizes, index, wide, updates)
        found = scheduling.blocks(group, wanted, one_block=False)
        if found is None:
            return None
        parameters = [scheduling.extents.variables[dim] for dim in sizes]
        launches = [
            new_launch(
                made, body, scheduling.buffers, parameters, f"{name}_{n}", scheduling.general_dim(made.blocks), why
            )
            for n, (made, body, why) in enumerate(found)
        ]
        return GroupKernels((), (), (), tuple(sizes), tuple(scheduling.temporaries), tuple(launches))

    return _counted(group, operands, bool(sizes), build)


@attrs.frozen(eq=False)
class GroupSteps:
    """A group as one block of threads computes it: the loops of each step and its statement for one thread, on buffers
    for the operands, the results and the temporaries, whose bytes these are. All threads wait for each other between
    steps."""

    operands: tuple[Atom, ...]
    buffers: Sequence[Any]
    temporaries: Sequence[int]
    steps: Sequence[tuple[Blocks, Statement]]


def group_steps(group: FusionGroup, updates: bool) -> GroupSteps:
    """The steps of a group of known sizes, which writes over an operand of its last call if it `updates`: that is the
    result's buffer then, and not among the operands."""
    operands, _, _ = signature(group, overwrites=updates)

    def build(index: str, wide: bool) -> GroupSteps:
        scheduling = _Scheduling(group, operands, (), index, wide, updates)
        found = scheduling.blocks(group, None, one_block=True)
        assert found is not None
        bytes_ = [count for count in scheduling.temporaries if isinstance(count, int)]
        return GroupSteps(operands, scheduling.buffers, bytes_, [(made, body) for made, body, _ in found])

    return _counted(group, operands, False, build)


def _plan(
    e: Emission,
    group: FusionGroup,
    inputs: Sequence[Any],
    tensors: Mapping[Atom, Any],
    steps: Sequence[Any],
    results: Mapping[Any, None],
    wanted: _Wanted | None,
) -> tuple[dict[Any, Epilogue], list[Any], dict[Any, Fused]] | None:
    """The epilogues among the operations of a group, those that have memory, and those with the products that are fused
    into them; None if the group is not what is wanted."""
    if wanted is not None and wanted.rule == RECOMPUTATION:
        products = [_product_behind(tensors[group.bindings[n].targets[0]].op) for n in wanted.products]
        inside = inside_of(steps, results, products)
        kept = [op for op in steps if op not in inside]
        ends = epilogues(e, kept, results)
        found = recomputations(e, kept, ends, products)
        if found is None:
            return None
        return ends, [op for op in kept if op not in {end.product for end in ends.values()}], dict(found)
    ends = epilogues(e, steps, results)
    inside = frozenset(end.product for end in ends.values())
    if wanted is None:
        return ends, [op for op in steps if op not in inside], {}
    zeros = [tensor for n, tensor in enumerate(inputs) if n in wanted.zeros]
    whole = attention(e, in_order([op.output(0) for op in results]), results, zeros)
    if whole is None:
        return None
    return ends, [op for op in steps if op not in inside | whole.inside], {whole.output.stage.op: whole}


def _product_behind(op: Any) -> Any:
    """The operation that sums up a product, whose result another one may only convert."""
    return op if op.reduce_axis else op.input_tensors[0].op


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


def new_launch(
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
