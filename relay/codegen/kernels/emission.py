"""Emission of one kernel: the places of its tensors, and their elements as expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.kernels.gemm.packing import Packing
from relay.codegen.kernels.loops import cast, loop, number
from relay.codegen.kernels.stage import (
    CALL,
    CHOICE,
    NAMES,
    Extent,
    Stage,
    equal_expressions,
    extent,
    features,
    has_equal_extents,
    is_one,
    loads,
    mentions,
    substitute_variables,
    volume,
)
from relay.codegen.tiling import DEFAULT, HandSchedule, TilingChoice, Tilings
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import STACK_BYTES, Expression, Statement, tirx
from relay.ir.types import BaseType

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)


@attrs.frozen(eq=False)
class Place:
    """A tensor in memory, row by row. Of a temporary one only the axes after the first `skipped` are kept. `address`:
    of what others have put anywhere in memory; what a kernel makes itself starts at boundaries of vectors. `begins`:
    the indices of the first element, where it holds a part of the tensor."""

    buffer: Any  # of one axis
    dims: tuple[Extent, ...]
    skipped: int = 0
    address: Expression | None = None
    lanes: int = 1  # this many rows are in memory element by element by turns
    begins: tuple[Expression, ...] = ()


def key(tensor: Any) -> tuple[Any, int]:
    """A tensor as a key of dicts."""
    return tensor.op, int(tensor.value_index)


@attrs.frozen(eq=False)
class ConstantOperand:
    """An operand that is a constant: the variable of its address, its dtype, and how many elements it has."""

    address: Any
    dtype: str
    elements: int


@attrs.frozen
class Decision:
    """A schedule rule that was chosen, for what, and why."""

    rule: str
    subject: str
    reason: str


class Emission:
    """`index` is the dtype of indices, `choice` what measurements have found for these loops. `temporaries` are the
    buffers that the caller provides: the variables that take their addresses, and their bytes. `decisions` are the
    schedule rules that were chosen; with `explores`, `alternatives` are all that apply, and `tilings` their tiles."""

    def __init__(self, threads: int, index: str, choice: TilingChoice = DEFAULT, explores: bool = False) -> None:
        self.threads = threads
        self.index = index
        self.choice = choice
        self.schedule: HandSchedule | None = None  # what the program has chosen
        self.in_blocks: Sequence[Any] = ()  # the operations that it wants to be computed in blocks
        self.lane: Expression | None = None  # where several rows are computed at once: which one
        self.explores = explores
        self.decisions: list[Decision] = []
        self.alternatives: dict[str, None] = {}
        self.tilings: dict[str, Tilings] = {}
        self.places: dict[tuple[Any, int], Place] = {}
        self.values: dict[tuple[Any, int], Expression] = {}  # of tensors with one element, or where that is fixed
        self.temporaries: list[tuple[Any, Extent]] = []
        self.constants: dict[tuple[Any, int], ConstantOperand] = {}  # the operands that may be packed at compile time
        self.packings: dict[ConstantOperand, Packing] = {}  # those that are
        self.declarations: list[Statement] = []  # of their buffers
        self._scratch: dict[object, tuple[Any, Extent]] = {}
        self._names = 0
        self._narrowed: dict[Any, Expression] = {}  # indices in the dtype of an axis, and what they were made of

    # ---- elements

    def axis_values(self, axes: Sequence[Any], indices: Sequence[Any]) -> dict[Any, Expression]:
        """Values for axis variables, with their dtypes."""
        values: dict[Any, Expression] = {}
        for axis, index in zip(axes, indices, strict=True):
            if isinstance(index, int):
                values[axis] = tirx.const(index, str(axis.ty))
                continue
            values[axis] = cast(index, str(axis.ty))
            if values[axis] is not index:
                self._narrowed[values[axis]] = index
        return values

    def _widen_index(self, index: Expression) -> Expression | None:
        """Indices of axes in the dtype of indices without a way through a shorter one, in which TVM would not see that
        neighbors are read. An axis holds no index that its dtype does not."""
        if index in self._narrowed:
            return cast(self._narrowed[index], self.index)
        if isinstance(index, tirx.IntImm):
            return number(int(index.value), self.index)
        if isinstance(index, tirx.Cast) and str(index.ty) == self.index:
            return self._widen_index(index.value)
        if isinstance(index, _ARITHMETIC):
            left, right = self._widen_index(index.a), self._widen_index(index.b)
            return None if left is None or right is None else type(index)(left, right)
        if isinstance(index, tirx.Select):
            left, right = self._widen_index(index.true_value), self._widen_index(index.false_value)
            return None if left is None or right is None else tirx.Select(index.condition, left, right)
        return None

    def load(self, tensor: Any, indices: Sequence[Any]) -> Expression:
        """An element of a tensor: from memory, or computed here."""
        known = self.values.get(key(tensor))
        if known is not None:
            return known
        place = self.places.get(key(tensor))
        if place is not None:
            return tirx.BufferLoad(place.buffer, [self.position(place, indices)])
        return self.body_at(tensor.op.body[tensor.value_index], tensor.op.axis, indices)

    def body_at(self, body: Expression, axes: Sequence[Any], indices: Sequence[Any]) -> Expression:
        """The body of a te.compute at these indices."""
        return substitute_variables(body, self.axis_values([a.var for a in axes], indices), self.load)

    def element(self, expression: Expression, variables: Mapping[Any, Expression]) -> Expression:
        """An expression of a stage's axes where they have these values."""
        return substitute_variables(expression, variables, self.load)

    def offset(self, indices: Sequence[Any], dims: Sequence[Extent]) -> Expression:
        """The position of an element in row major order."""
        position: Any = None
        for index, dim in _merge_indices(indices, dims):
            if isinstance(index, int):
                step = number(index, self.index)
            else:
                wide = self._widen_index(index)
                step = cast(index, self.index) if wide is None else wide
            position = step if position is None else position * number(dim, self.index) + step
        return tirx.const(0, self.index) if position is None else position

    def position(self, place: Place, indices: Sequence[Any]) -> Expression:
        """The position in memory of the element of a tensor at these indices."""
        if place.begins:
            indices = [cast(i, self.index) - begin for i, begin in zip(indices, place.begins, strict=True)]
        offset = self.offset(indices[place.skipped :], place.dims)
        return offset if self.lane is None or place.lanes == 1 else offset * place.lanes + self.lane

    def reads(self, stage: Stage) -> list[tuple[Any, tuple[Any, ...]]]:
        """The reads from memory of a stage once others are computed in it: tensors and indices, in its own axes."""
        return [read for body in stage.op.body for read in self.memory_reads(body)]

    def memory_reads(self, expression: Expression) -> list[tuple[Any, tuple[Any, ...]]]:
        """The reads from memory of an expression: tensors and indices."""
        found: list[tuple[Any, tuple[Any, ...]]] = []
        for tensor, indices in loads(expression):
            if key(tensor) in self.places:
                found.append((tensor, indices))
            elif key(tensor) not in self.values:
                variables = self.axis_values([a.var for a in tensor.op.axis], indices)
                for inner, positions in self.memory_reads(tensor.op.body[tensor.value_index]):
                    found.append((inner, tuple(substitute_variables(i, variables) for i in positions)))
        return found

    def vectorizes(self, expressions: Sequence[Expression]) -> bool:
        """True if TVM makes vectors of expressions: not of C's functions, nor, where a condition would split the
        vector again, of expressions with names (it fails with an error)."""
        found = self._features(expressions)
        return CALL not in found and not {CHOICE, NAMES} <= found

    def has_names(self, expressions: Sequence[Expression]) -> bool:
        """True if expressions have names for parts of them, as polynomials do."""
        return NAMES in self._features(expressions)

    def polynomials(self, expressions: Sequence[Expression]) -> int:
        """The number of expressions with names among these and those that are computed where they read them."""
        return sum(NAMES in features(expression) for expression in self._computed_here(expressions))

    def _features(self, expressions: Sequence[Expression]) -> set[str]:
        return {feature for expression in self._computed_here(expressions) for feature in features(expression)}

    def _computed_here(self, expressions: Sequence[Expression]) -> list[Expression]:
        bodies = [tensor.op.body[tensor.value_index] for tensor in self._read_tensors(expressions, places=False)]
        return [*expressions, *bodies]

    def dtypes_behind(self, expressions: Sequence[Expression]) -> set[str]:
        """The dtypes of all elements that expressions read, from memory or computed here."""
        return {str(tensor.dtype) for tensor in self._read_tensors(expressions, places=True)}

    def _read_tensors(self, expressions: Sequence[Expression], places: bool) -> list[Any]:
        """The tensors that expressions read and that are computed where they are read, and what these read; with
        `places` also those in memory."""
        found: dict[Any, Any] = {}
        pending = list(expressions)
        while pending:
            for tensor, _ in loads(pending.pop()):
                name = key(tensor)
                if name in found or name in self.values:
                    continue
                if name not in self.places:
                    pending.append(tensor.op.body[tensor.value_index])
                elif not places:
                    continue
                found[name] = tensor
        return list(found.values())

    def without_reads(self, expression: Expression) -> Expression:
        """An expression with what it reads from memory left out."""

        def load(tensor: Any, indices: Sequence[Any]) -> Expression:
            if key(tensor) in self.places or key(tensor) in self.values:
                return tirx.Var("element", str(tensor.dtype))
            body = tensor.op.body[tensor.value_index]
            return substitute_variables(body, self.axis_values([a.var for a in tensor.op.axis], indices), load)

        return substitute_variables(expression, {}, load)

    def flat(self, stage: Stage, fixed: Sequence[Expression]) -> Callable[[Expression], Expression] | None:
        """A stage's element as a function of its position among those with the first indices `fixed`; None if it is
        not just that of elements at the same position and of what is the same for all."""
        count = len(fixed)
        rest = stage.extents[count:]
        own = [(v, d) for v, d in zip(stage.axes[count:], rest, strict=True) if not is_one(d)]
        position = tirx.Var("position", self.index)
        fits = True

        def load(tensor: Any, indices: Sequence[Any]) -> Expression:
            nonlocal fits
            known = self.values.get(key(tensor))
            if known is not None:
                return known
            place = self.places.get(key(tensor))
            if place is None:
                return substitute_variables(
                    tensor.op.body[tensor.value_index], self.axis_values([a.var for a in tensor.op.axis], indices), load
                )
            if place.buffer is None:  # asked before it is computed at the same position
                return tirx.Var("element", str(tensor.dtype))
            kept = list(indices[place.skipped :])
            pairs = list(zip(kept, place.dims, strict=True))
            ahead = count - place.skipped
            inner = [(i, d) for i, d in pairs[ahead:] if not is_one(d)] if ahead >= 0 else []
            if (
                ahead >= 0
                and len(inner) == len(own)
                and all(i.same_as(v) for (i, _), (v, _) in zip(inner, own, strict=True))
                and has_equal_extents([d for _, d in inner], [d for _, d in own])
                and not any(mentions(i, v) for i, _ in pairs[:ahead] for v, _ in own)
            ):
                start = self.offset([i for i, _ in pairs[:ahead]], [d for _, d in pairs[:ahead]])
                size = number(volume([d for _, d in inner]), self.index)
                return tirx.BufferLoad(place.buffer, [position if ahead == 0 else start * size + position])
            if any(mentions(i, v) for i in kept for v, _ in own):
                fits = False
            return tirx.BufferLoad(place.buffer, [self.offset(kept, place.dims)])

        variables = self.axis_values(stage.axes[:count], fixed)
        variables.update(
            {v: tirx.const(0, str(v.ty)) for v, d in zip(stage.axes[count:], rest, strict=True) if is_one(d)}
        )
        body = substitute_variables(stage.op.body[0], variables, load)
        if not fits or any(mentions(body, v) for v, _ in own):
            return None
        return lambda at: substitute_variables(body, {position: at})

    # ---- memory

    def local_elements(self, dtype: str, width: int) -> tuple[Any, list[Statement]]:
        """A few elements on the stack, and the statement that makes them."""
        self._names += 1
        buffer = tir.buffer(f"local{self._names}", (width,), dtype)
        return buffer, [tirx.AllocBuffer(buffer)]

    def scratch(
        self,
        name: object,
        dtype: str,
        dims: Sequence[Extent],
        part: Expression | None,
        skipped: int,
        on_stack: bool = True,
    ) -> tuple[Place, list[Statement]]:
        """Memory for a temporary tensor, and the statements that declare it. With `part`, each thread has its own.
        `on_stack`: it may be there if it is small; otherwise its place has its address."""
        elements = volume(dims)
        size = BaseType(dtype).dtype.itemsize
        small = isinstance(elements, int) and elements * size < STACK_BYTES
        if (
            on_stack and small and part is not None and dtype != "bfloat16"
        ):  # of these TVM compiles no arrays on the stack
            assert isinstance(elements, int)
            buffer, statements = self.local_elements(dtype, max(elements, 1))
            return Place(buffer, tuple(dims), skipped), statements
        if name not in self._scratch:
            address = tirx.Var("temporary", "int64")
            aligned = tirx.indexdiv(number(elements * size, "int64") + 63, tirx.const(64, "int64")) * 64
            bytes_: Extent = -(-elements * size // 64) * 64 if isinstance(elements, int) else aligned
            self._scratch[name] = address, bytes_
            copies = 1 if part is None else self.threads
            self.temporaries.append((address, bytes_ * copies))
        address, bytes_ = self._scratch[name]
        if part is not None:
            address = address + cast(part, "int64") * number(bytes_, "int64")
        buffer, statements = tir.view("temporary", (number(elements, self.index),), dtype, address)
        return Place(buffer, tuple(dims), skipped, None if on_stack else address), statements

    def pack(self, constant: ConstantOperand, packing: Packing, elements: int) -> Place:
        """Let the caller arrange a constant like this; where its elements are then."""
        self.packings[constant] = packing
        buffer, declared = tir.view("packed", (elements,), constant.dtype, constant.address)
        self.declarations += declared
        return Place(buffer, (elements,))

    def lanes(self, dtype: str) -> int:
        """The number of elements in a 64-byte vector."""
        return max(4, 64 // BaseType(dtype).dtype.itemsize)

    def fill(self, buffer: Any, width: int, element: Callable[[Expression], Expression]) -> list[Statement]:
        """buffer[v] := element(v) as a vector."""
        return loop(width, self.index, lambda v: [tirx.BufferStore(buffer, element(v), [v])], "VECTORIZED")


def _merge_indices(indices: Sequence[Any], dims: Sequence[Extent]) -> list[tuple[Any, Extent]]:
    """The indices of axes of more than one element, with the extents: i // d and i % d of consecutive axes are i
    of one axis, in which TVM sees neighbors."""
    found: list[tuple[Any, Extent]] = []
    for index, dim in zip(indices, dims, strict=True):
        if is_one(dim):
            continue
        remainder = isinstance(index, tirx.FloorMod | tirx.Mod)
        if found and remainder and has_equal_extents([extent(index.b)], [dim]):
            before, size = found[-1]
            divide = tirx.indexdiv if isinstance(index, tirx.FloorMod) else tirx.truncdiv
            if equal_expressions(before, divide(index.a, index.b)):
                found[-1] = index.a, size * dim
                continue
        found.append((index, dim))
    return found
