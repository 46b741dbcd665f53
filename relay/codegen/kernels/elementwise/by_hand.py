"""Blocks chosen by hand: loops over blocks of the result, and loops over the elements of a block.

schedule(y, tile=(8, 32))       for each block of 8 x 32 elements: 8 rows of vectors; threads share the blocks
schedule(.., cache=True)        the same with copies of what a block reads
schedule(t, in_blocks=True)     where y is computed from t: each block computes what it reads of t first
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.codegen.kernels.clusters import LoneCluster
from relay.codegen.kernels.elementwise.block_copies import Window, block_memory, places_in_blocks, windows
from relay.codegen.kernels.elementwise.pointwise import lanes, store_elements
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import loop, nested_loops, number, shared_loop, unravel_index, vectors
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, Stage, volume
from relay.codegen.tiling import HandSchedule
from relay.codegen.tvm.tir import Expression, Statement, tirx


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Elementwise stages of a kernel with a tile."""
    chosen, stages = e.schedule, subject.cluster.whole
    if chosen is None or not chosen.tile or subject.cluster.reductions:
        return None
    extents = stages[0].extents
    if len(extents) != len(chosen.tile) or not all(isinstance(n, int) for n in extents):
        return None
    found = _windows(e, stages, chosen)
    if found is None:
        return None
    tile = " x ".join(map(str, chosen.tile)) + (" with copies of what they read" if chosen.cache else "")
    count = len(e.in_blocks)
    tile += f", which compute {count} value{'s' * (count > 1)} in their own memory" if count else ""
    return Plan(f"the program asks for blocks of {tile}", lambda: _blocks(e, stages, chosen, found))


def _windows(e: Emission, stages: Sequence[Stage], chosen: HandSchedule) -> list[Window] | None:
    """The windows that each block has in its own memory; None where it cannot have what the program wants there."""
    with places_in_blocks(e, e.in_blocks):
        found = windows(e, stages, e.in_blocks)
    computed = [found.get((op, 0)) for op in e.in_blocks]
    copied = [w for w in found.values() if w is not None and w.tensor.op not in e.in_blocks] if chosen.cache else []
    if None in computed or (chosen.cache and not copied and found):
        return None
    return [*copied, *(w for w in computed if w is not None)]


def _blocks(e: Emission, stages: Sequence[Stage], chosen: HandSchedule, found: Sequence[Window]) -> list[Statement]:
    extents = stages[0].extents
    tile = [min(length, n) for length, n in zip(chosen.tile, extents, strict=True)]
    counts = [-(-n // length) for length, n in zip(tile, extents, strict=True)]

    def block(at: Sequence[Expression], thread: Expression | None = None) -> list[Statement]:
        begins = [i * length for i, length in zip(at, tile, strict=True)]
        sizes: list[Extent] = [
            length if n % length == 0 else tirx.min(number(length, e.index), number(n, e.index) - begin)
            for length, n, begin in zip(tile, extents, begins, strict=True)
        ]
        own = tirx.const(0, "int32") if thread is None else thread
        with places_in_blocks(e, e.in_blocks), block_memory(e, found, begins, tile, own) as made:
            return [*made, *_elements(e, stages, begins, sizes, chosen)]

    def part(number_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: block(unravel_index(begin + i, counts, e.index), number_))

    threads = e.threads if chosen.choice.parallel is not False else 1
    least = 1 if chosen.choice.parallel else None
    work = volume(extents)
    return shared_loop(
        volume(counts), work, threads, e.index, part, lambda: nested_loops(counts, e.index, block), least=least
    )


def _elements(
    e: Emission, stages: Sequence[Stage], begins: Sequence[Expression], sizes: Sequence[Extent], chosen: HandSchedule
) -> list[Statement]:
    """The elements of a block."""
    width = lanes(e, stages) if chosen.vectorize and e.vectorizes(stages[0].op.body) else 1

    def level(position: int, indices: list[Expression]) -> list[Statement]:
        size, begin = sizes[position], begins[position]
        if position == len(sizes) - 1:
            last = lambda i: store_elements(e, stages, [*indices, begin + i])  # noqa: E731
            return vectors(size, width, e.index, last, often=True) if width > 1 else loop(size, e.index, last)
        kind = "UNROLLED" if chosen.unroll and isinstance(size, int) else "SERIAL"
        return loop(size, e.index, lambda i: level(position + 1, [*indices, begin + i]), kind)

    return level(0, [])


RULE = Rule("blocks_by_hand", 100, match, contested=False)
