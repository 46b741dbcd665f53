"""Schedules of kernels for CPUs: a function of te stages becomes one of loops that vectorise.

Stages without a reduction are inlined into their consumers. Then each stage that is left is scheduled by what it is: a
product of matrices or a convolution (`product`), another reduction (`reduction`), or neither (`elementwise`).
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.ir import Range
from tvm.ir.expr import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm_ffi import structural_walk

from relay.codegen.schedules import elementwise, product, reduction
from relay.codegen.schedules.stage import Stage, stages
from relay.codegen.tir import Statement, outermost, sequence

__all__ = ["schedule"]


def schedule(function: Any, threads: int) -> Any:
    """The function of te stages, scheduled."""
    statements, function = _with_accesses(function)
    if function.body.block.name_hint != "root":
        return function  # nothing but one statement
    s = Schedule(function)
    _inline(s, statements)
    found = [stage for stage in stages(s) if stage.name not in statements]
    written: dict[str, list[Statement]] = {}
    registers: list[Any] = []  # what only the products' epilogues read
    if not statements:
        for stage in found:
            epilogue = _epilogue(s, stage, found)
            recognised = product.recognise(s, stage, epilogue)
            if recognised is not None:
                computed = product.Generator(recognised, threads).statements()
                if epilogue is None:
                    written[stage.name] = computed
                else:
                    written |= {stage.name: [], epilogue.name: computed}
                    registers.append(stage.output)
    handled = set(written)
    for stage in found:
        if stage.is_reduction and stage.vectorises and stage.name not in handled:
            epilogue = _epilogue(s, stage, found)
            attempt = s.copy()
            try:
                handled |= reduction.apply(s, stage, epilogue, threads)
            except RuntimeError:  # of which TVM's errors are
                s = attempt  # plain loops are right, too
    for stage in found:
        if not stage.is_reduction and stage.name not in handled:
            elementwise.apply(s, stage, threads)
    return _replaced(s.mod["main"], written, registers)


def _replaced(function: Any, written: dict[str, list[Statement]], registers: list[Any]) -> Any:
    """The function with these statements in place of the loops of stages. `registers` are buffers not needed then."""
    if not written:
        return function
    root = function.body.block
    parts: list[Statement] = []
    for part in outermost(root.body):
        names: list[str] = []
        structural_walk(part, ((SBlock, lambda block, names=names: names.append(block.name_hint)),))
        parts += written.get(names[0], [part])
    allocated = [buffer for buffer in root.alloc_buffers if not any(buffer.same_as(one) for one in registers)]
    inner = SBlock(root.iter_vars, root.reads, root.writes, "root", sequence(parts), root.init, allocated)
    body = SBlockRealize(function.body.iter_values, function.body.predicate, inner)
    return tirx.PrimFunc(function.params, body, function.ret_type, attrs=function.attrs)


def _with_accesses(function: Any) -> tuple[set[str], Any]:
    """The names of the extern stages, and the function where they declare what they read and write."""
    root = function.body.block
    names: set[str] = set()

    def declared(realized: Any) -> Any:
        block = getattr(realized, "block", None)
        if block is None or len(block.writes):
            return realized
        names.add(block.name_hint)
        loaded: dict[Any, None] = {}
        stored: dict[Any, None] = {}
        own: set[Any] = set()  # of the statement alone, as its registers are
        structural_walk(
            block.body,
            (
                (TensorLoad, lambda load: loaded.setdefault(load.source)),
                (tirx.BufferStore, lambda store: stored.setdefault(store.buffer)),
                (tirx.AllocBuffer, lambda made: own.add(made.buffer)),
            ),
        )
        reads, writes = ([_whole(buffer) for buffer in buffers if buffer not in own] for buffers in (loaded, stored))
        changed = SBlock(block.iter_vars, reads, writes, block.name_hint, block.body)
        return SBlockRealize(realized.iter_values, realized.predicate, changed)

    if root.name_hint != "root":
        body = declared(function.body)
    else:
        inner = sequence([declared(part) for part in outermost(root.body)])
        whole = SBlock(root.iter_vars, root.reads, root.writes, "root", inner, root.init, root.alloc_buffers)
        body = SBlockRealize(function.body.iter_values, function.body.predicate, whole)
    if not names:
        return names, function
    return names, tirx.PrimFunc(function.params, body, function.ret_type, attrs=function.attrs)


def _whole(buffer: Any) -> Any:
    return tirx.BufferRegion(buffer, [Range.from_min_extent(0, dim) for dim in buffer.shape])


def _inline(s: Any, statements: set[str]) -> None:
    """Inline what is computed elementwise, unless reductions would repeat it, or a statement may overwrite what it is
    computed from."""
    found = stages(s)
    for stage in found[:-1]:
        consumers = [c.name for c in found if stage.output in c.inputs]
        repeated = len(consumers) > 1 and any(c.is_reduction for c in found if c.name in consumers)
        if stage.name in statements or not statements.isdisjoint(consumers):
            continue
        if not stage.is_reduction and not repeated:
            try:
                s.compute_inline(s.get_sblock(stage.name))
            except RuntimeError:
                continue


def _epilogue(s: Any, stage: Stage, found: list[Stage]) -> Stage | None:
    """The only consumer of a reduction, if it goes over the same elements one by one."""
    consumers = [c for c in found if stage.output in c.inputs]
    if len(consumers) != 1 or consumers[0].is_reduction or consumers[0].spatial != stage.spatial:
        return None
    return consumers[0] if consumers[0].reads_elementwise(stage.output) and consumers[0].vectorises else None
