"""Recognition of sums of products, such as matrix products and convolutions, with their rows and columns.

Several axes of one kind count as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm_ffi import structural_walk

from relay.codegen.kernels.emission import ConstantOperand, Emission, key
from relay.codegen.kernels.stage import LOAD, Extent, Stage, substitute_variables, volume
from relay.codegen.tvm.tir import Expression, tirx, vector_registers
from relay.ir.types import BaseType

PACKED_ROWS = 64  # rows from which the right operand is packed also where its columns lie next to each other
PARALLEL_PRODUCTS = 1 << 20  # multiplications from which a second thread pays
FEW_ROWS = 4  # rows below which packing the right operand costs more than it saves
NARROW = 24  # columns up to which it pays to pack those of several axes as one


@attrs.frozen(eq=False)
class Axis:
    """An axis of the product: its variable and position in the stage, and its extent."""

    variable: Any
    position: int
    extent: Extent


@attrs.frozen(eq=False)
class Update:
    """The update of a sum: an expression of three variables, the sum so far and two factors."""

    value: Expression
    old: Any
    left: Any
    right: Any


@attrs.frozen(eq=False)
class Product:
    """out[batch, rows, columns] = epilogue(sum over inner of left[batch, rows, inner] * right[batch, inner, columns]).

    Several axes of one kind are counted through as one, row major.
    """

    stage: Stage
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    left: Expression
    right: Expression
    update: Update
    contiguous: bool  # whether columns of the right operand lie next to each other

    @property
    def dtype(self) -> str:
        return self.stage.dtypes[0]


def size(axes: Sequence[Axis]) -> Extent:
    """The product of the extents."""
    return volume([axis.extent for axis in axes])


def registers(dtype: str) -> tuple[int, int]:
    """The number of elements in one of this processor's vectors, and the number of vectors that may serve as
    accumulators. Operands need some registers; of 32 half are enough, since more rows bring nothing, and of 16 three
    quarters."""
    width, count = vector_registers()
    return max(1, width // BaseType(dtype).dtype.itemsize), count // 2 if count > 16 else count * 3 // 4


def recognize(e: Emission, stage: Stage) -> Product | None:
    """A stage as a product; None if it is none, or one that other loops suit better."""
    if not stage.reduced or not stage.extents or stage.op.num_outputs != 1 or 0 in (*stage.extents, *stage.reduced):
        return None
    first = stage.op.body[0]
    (source,), (result,) = first.source, first.combiner.result
    if stage.dtypes[0] in ("int64", "uint64") or not _is_true(first.condition) or not e.vectorizes([source]):
        return None
    old = tirx.Var("old", stage.dtypes[0])
    value = substitute_variables(result, {first.combiner.lhs[0]: old, first.combiner.rhs[0]: source})
    multiplied = _multiplication(value, old)
    if multiplied is None:
        return None
    factors = tuple(_uncast(factor) for factor in (multiplied.a, multiplied.b))
    spatial = [Axis(v, n, d) for n, (v, d) in enumerate(zip(stage.axes, stage.extents, strict=True))]
    inner = tuple(Axis(v, n, d) for n, (v, d) in enumerate(zip(stage.reduced_axes, stage.reduced, strict=True)))
    used = [_variables(factor) for factor in factors]
    last = spatial[-1].variable
    if (last in used[0]) == (last in used[1]):
        return None
    right_at = 0 if last in used[0] else 1
    left, right = factors[1 - right_at], factors[right_at]
    if any(axis.variable not in used[0] or axis.variable not in used[1] for axis in inner):
        return None
    if _at_most(size(inner), 1):  # nothing is added up: panels would only keep memory from being written in order
        return None
    rows = tuple(axis for axis in spatial if axis.variable not in used[right_at])
    outer = [axis for axis in spatial if axis.variable in used[right_at]]
    columns = [outer.pop()]
    contiguous = is_contiguous(e, right, columns[0].variable)
    while (
        outer
        and _at_most(columns[0].extent, NARROW)
        and not _at_most(size(rows), PACKED_ROWS - 1)
        and outer[-1].position == len(spatial) - 1 - len(columns)
        and outer[-1].variable not in used[1 - right_at]
    ):
        columns.insert(0, outer.pop())
        contiguous = False
    if _at_most(size(columns), 3) or (not contiguous and _at_most(size(rows), FEW_ROWS - 1)):
        return None
    update = _update(value, old, multiplied, right_at)
    return Product(stage, tuple(outer), rows, tuple(columns), inner, left, right, update, contiguous)


def _at_most(extent: Extent, limit: int) -> bool:
    """True if an extent is a number up to a limit."""
    return isinstance(extent, int) and extent <= limit


def _is_true(condition: Expression) -> bool:
    return isinstance(condition, tirx.IntImm) and bool(int(condition.value))


def _multiplication(value: Expression, old: Expression) -> Any:
    """The product that is added to `old`, or None."""
    added_up = _uncast(value)
    if not isinstance(added_up, tirx.Add):
        return None
    added = _uncast(added_up.b)
    return added if _uncast(added_up.a).same_as(old) and isinstance(added, tirx.Mul) else None


def _uncast(expression: Expression) -> Expression:
    while isinstance(expression, tirx.Cast):
        expression = expression.value
    return expression


def _cast_as(expression: Expression, inner: Expression) -> Expression:
    """An expression with the casts of another one."""
    return tirx.Cast(expression.ty, _cast_as(expression.value, inner)) if isinstance(expression, tirx.Cast) else inner


def _update(value: Expression, old: Any, product: Any, right_at: int) -> Update:
    """The update of the sum by the factors."""
    sum_ = _uncast(value)
    factors = [tirx.Var("factor", str(_uncast(factor).ty)) for factor in (product.a, product.b)]
    multiplied = tirx.Mul(_cast_as(product.a, factors[0]), _cast_as(product.b, factors[1]))
    added = tirx.Add(_cast_as(sum_.a, old), _cast_as(sum_.b, multiplied))
    return Update(_cast_as(value, added), old, factors[1 - right_at], factors[right_at])


def _variables(expression: Expression) -> set[Any]:
    found: set[Any] = set()
    structural_walk(expression, ((tirx.Var, found.add),))
    return found


def is_contiguous(e: Emission, operand: Expression, variable: Any) -> bool:
    """True if an operand is an array that a variable goes through element by element."""
    if not isinstance(operand, Call) or getattr(operand.op, "name", "") != LOAD:
        return False
    reads = e.memory_reads(operand)
    if len(reads) != 1 or not only_moved(e, operand):
        return False
    *others, last = reads[0][1]
    step = Analyzer().simplify(substitute_variables(last, {variable: variable + 1}) - last)
    return getattr(step, "value", None) == 1 and not any(variable in _variables(index) for index in others)


def only_moved(e: Emission, operand: Expression) -> bool:
    """True if an element is one of memory, or of something computed that is one."""
    while isinstance(operand, Call) and getattr(operand.op, "name", "") == LOAD:
        tensor = operand.args[0]
        if key(tensor) in e.places:
            return True
        operand = tensor.op.body[tensor.value_index] if hasattr(tensor.op, "body") else None
    return False


def constant_right(e: Emission, product: Product) -> ConstantOperand | None:
    """The constant in memory that the right operand's elements are; None if they are something else."""
    if not isinstance(product.right, Call) or not isinstance(size(product.columns), int):
        return None
    reads = e.memory_reads(product.right)
    return e.constants.get(key(reads[0][0])) if len(reads) == 1 and only_moved(e, product.right) else None


def pieces(total: Extent, size: int) -> Extent:
    """The number of pieces of a size, the last one perhaps smaller."""
    if isinstance(total, int):
        return -(-total // size)
    return tirx.indexdiv(total + (size - 1), tirx.const(size, str(total.ty)))


def tile_height(rows: Extent, accumulators: int) -> int:
    """Rows of a tile: as many as leave at least two vectors for each, such that few rows are computed in vain."""
    most = accumulators // 2
    if not isinstance(rows, int):
        return most
    if rows <= most:
        return rows
    return min(range(max(1, most // 2), most + 1), key=lambda height: (int(pieces(rows, height)) * height, -height))
