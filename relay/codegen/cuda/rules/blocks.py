"""Blocks of threads: the loops of one kernel, and the statements that all kernels are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import attrs

from relay.codegen.cuda.rules.epilogues import Epilogue
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import unravel_index
from relay.codegen.kernels.rules import Plan
from relay.codegen.kernels.stage import Extent, Stage
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, tirx

if TYPE_CHECKING:
    from relay.codegen.cuda.rules.attention import Attention
    from relay.codegen.cuda.rules.recomputation import Recomputation

THREADS = 256
"""The threads of a block: eight warps, of which several blocks fit each multiprocessor."""

ONE_BLOCK = 512
"""The threads of a block that computes everything: what one multiprocessor has to hide the latency of memory with,
and 128 registers for each."""

Fused: TypeAlias = "Attention | Recomputation"
"""A stage with the products that it reads and that are fused into its kernel."""


@attrs.frozen(eq=False)
class Blocks:
    """The loops of a kernel: what thread `thread` of block `block` does, and how many there are of both."""

    statements: Sequence[Statement]
    thread: Any
    block: Any
    threads: int
    blocks: Extent


@attrs.define(eq=False)
class StageSubject:
    """A stage that is kept in memory, or whose epilogue is, perhaps with the products that it reads. Its kernels
    have `threads` in a block; `made` are they, once a rule has made them."""

    op: Any
    stage: Stage | None  # None for a te.extern
    epilogue: Epilogue | None = None
    fused: Fused | None = None
    threads: int = THREADS
    made: list[Blocks] = attrs.field(factory=list)

    def __str__(self) -> str:
        if self.stage is None:
            return str(self.op.name)
        space = " x ".join(map(str, self.stage.extents)) or "1"
        return f"{space} over {' x '.join(map(str, self.stage.reduced))}" if self.stage.reduced else space


def plan_of(reason: str, subject: StageSubject, make: Callable[[], Blocks]) -> Plan:
    """The plan of one kernel."""

    def emit() -> list[Statement]:
        subject.made = [make()]
        return list(subject.made[0].statements)

    return Plan(reason, emit)


def indices_of_thread() -> tuple[Any, Any]:
    """The variables that are a thread's number and its block's."""
    return tirx.Var("thread", "int32"), tirx.Var("block", "int32")


def element_indices(position: Expression, stage: Stage, e: Emission) -> list[Expression]:
    """The indices of the element at a position of a stage's space."""
    return unravel_index(position, stage.extents, e.index) if stage.extents else []


def store(e: Emission, stage: Stage, indices: Sequence[Expression], values: Sequence[Expression]) -> list[Statement]:
    """The stage's results at these indices."""
    return [
        tirx.BufferStore(e.places[stage.op, n].buffer, value, [e.position(e.places[stage.op, n], indices)])
        for n, value in enumerate(values)
    ]


def finished(e: Emission, subject: StageSubject, indices: Sequence[Expression], value: Expression) -> list[Statement]:
    """A product's result at these indices, once its epilogue is computed."""
    if subject.epilogue is not None:
        return subject.epilogue.statements(e, indices, value)
    assert subject.stage is not None
    return store(e, subject.stage, indices, [value])


def guarded_statement(condition: Expression, statements: Sequence[Statement]) -> Statement:
    """Statements that run where the condition holds."""
    return tirx.IfThenElse(condition, tir.sequence(statements), None)


def barrier() -> Statement:
    """All threads of the block get here before one goes on."""
    return tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))


def parts(count: Extent, size: int) -> Extent:
    """The number of parts of a size that make a whole, of which the last may be smaller."""
    return -(-count // size) if isinstance(count, int) else tirx.truncdiv(count + (size - 1), tir.integer(size))


class TileSize(Protocol):
    """The rows and columns of the part of a product that a block computes."""

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...


_Size = TypeVar("_Size", bound=TileSize)

MANY_TILES = 64
"""Large tiles from which on they keep a GPU busy: it has about a hundred multiprocessors."""


def fitting_tile(sizes: tuple[_Size, _Size, _Size], rows: Extent, columns: Extent, outer: Extent) -> _Size:
    """The small, middle or large tile for a product. Larger ones read each number more often from shared memory and
    registers."""
    small, middle, large = sizes
    if not isinstance(rows, int) or not isinstance(columns, int):
        return middle
    count = parts(rows, large.height) * parts(columns, large.width)
    if min(rows, columns) >= large.height and (not isinstance(outer, int) or count * outer >= MANY_TILES):
        return large
    return middle if min(rows, columns) > small.height else small


def divides(size: int, count: Extent) -> bool:
    """True if parts of a size surely have no rest."""
    return isinstance(count, int) and count % size == 0


def is_below(count: Extent, limit: int) -> bool:
    """True if an extent is surely so small."""
    return isinstance(count, int) and count < limit


def thread_buffer(name: str, elements: int, dtype: str, scope: str) -> Any:
    """Memory of each thread ("local"), or of each block ("shared")."""
    return tirx.decl_buffer((elements,), dtype, name, scope=scope)
