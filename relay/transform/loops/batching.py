"""GEMM batching: per-round products of a loop-invariant array's rows become one matrix product before the loop.

    loop for t < n { x = index(xs, t); y = matmul(x, w); .. }
    ys = matmul(xs, w); loop for t < n { x = index(xs, t); y = index(ys, t); .. }

The batching rule of an operator makes its calls of many rounds one call; operators that read a row are marked in their
definition. Calls between the row and the product are computed before the loop as well. A loop is changed if it reads
about as many rows as there are, and the number of its rounds is static, or follows from sizes of the arguments.
"""

from __future__ import annotations

import attrs

from relay.errors import RelayError
from relay.ir.dims import ANY, multiply
from relay.ir.expr import Atom, Binding, Block, Expr, Loop, Module, OpCall, Var
from relay.ir.rebuild import map_blocks, rebind, rebuild_block
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.types import TensorType
from relay.operator import LOOP, Emitter, IndexKind, Pattern, Undetermined, Value, batch_call, lookup
from relay.operator.batching import batching_rule
from relay.transform.analysis.loop_analysis import bound_in, is_too_large, with_body_block
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about

MAX_SIZE = 1 << 28
"""The most bytes that an array of all rounds may have."""


@pass_about(Loop)
def batch_products(module: Module, max_size: int = MAX_SIZE) -> Module:
    """The module with products of rows computed before the loop, where all of them have at most `max_size` bytes."""
    return map_bodies(module, lambda function: _block(function.body, ValueRanges(function.body), max_size))


def _block(block: Block, integers: ValueRanges, max_size: int) -> Block:
    bindings: list[Binding] = []
    for binding in block.bindings:
        value: Expr = map_blocks(binding.value, lambda inner: _block(inner, integers, max_size))
        if isinstance(value, Loop) and value.counter is not None and not bound_dims(value.body):
            batching = _ProductBatching(value, integers, max_size)
            value = batching.loop()
            bindings += batching.before.bindings
        bindings.append(rebind(binding, value))
    return rebuild_block(block, bindings, block.terminator)


def is_product(call: OpCall) -> bool:
    """True if an operator is a product of matrices or the like: one that is worth computing for all rounds at once."""
    return lookup(call.operator).pattern is Pattern.OUTPUT_FUSABLE


def batched_call(call: OpCall, values: list[Value], with_rounds: tuple[bool, ...]) -> Value | None:
    """The calls of all rounds as one, where marked values have the rounds as their first axis; None where there is no
    such call, or where it could fail for a round that the loop does not have."""
    operator = lookup(call.operator)
    if operator.requirements:
        return None
    try:
        return batch_call(operator, values, with_rounds, call.attributes, loops=False)
    except (TypeError, RelayError, Undetermined):  # a dim that is not a number
        return None


def _stays_one_product(call: OpCall, values: list[Value], with_rounds: tuple[bool, ...]) -> bool:
    """True if the products of all rounds are one of matrices: their weights are the same in all rounds, or they are
    products of one matrix with vectors. Convolutions gain nothing: one round is a product of matrices already.
    """
    match values, with_rounds:
        case [_, weights], (True, False):
            return weights.ndim <= 2
        case [matrix, vectors], (False, True):
            return matrix.ndim == vectors.ndim == 2
        case _:
            return False


@attrs.frozen
class _RowAccess:
    """The access of a loop's value to rows of an array: the index, and how a row is read."""

    index: Atom
    read: OpCall


class _ProductBatching:
    """The batching of one loop. `before` collects the bindings before it. `before` collects what stands before it."""

    def __init__(self, loop: Loop, integers: ValueRanges, max_size: int) -> None:
        self.original, self.integers, self.max_size = loop, integers, max_size
        self.count = integers.count(loop)
        self.before = Emitter(loop.span)
        self.inside = bound_in(loop)
        self.position: dict[Var, int] = {}
        self.rows: dict[
            Var, _RowAccess
        ] = {}  # values of a round that are rows of something, which may not be there yet
        self.arrays: dict[Var, Value] = {}  # these arrays

    def loop(self) -> Loop:
        body = self.original.body
        if not any(isinstance(b.value, OpCall) and is_product(b.value) for b in body.bindings):
            return self.original
        bindings = [self._binding(position, binding) for position, binding in enumerate(body.bindings)]
        return with_body_block(self.original, Block(tuple(bindings), body.terminator))

    def _binding(self, position: int, binding: Binding) -> Binding:
        call = binding.value
        if not isinstance(call, OpCall):
            return binding
        (target,) = binding.targets
        self.position[target] = position
        rows = self._rows_of(call)
        if rows is None:
            return binding
        self.rows[target] = rows
        if not is_product(call):
            return binding
        array = self._product_array(target)
        if array is None:
            del self.rows[target]
            return binding
        read = OpCall(rows.read.operator, (array.atom, *rows.read.arguments[1:]), rows.read.attributes, call.span)
        return Binding(binding.targets, read)

    def _rows_of(self, call: OpCall) -> _RowAccess | None:
        """The row access of a call, if all its operands are rows at one index or the same in all rounds; else None."""
        operator = lookup(call.operator)
        if operator.indexing.kind is IndexKind.ROW:
            return None if self._changes(call.arguments[0]) else _RowAccess(call.arguments[1], call)
        if operator.requirements or batching_rule(operator) is LOOP:
            return None
        found: _RowAccess | None = None
        for atom in call.arguments:
            if isinstance(atom, Var) and atom in self.inside:
                rows = self.rows.get(atom)
                if rows is None or (found is not None and rows.index is not found.index):
                    return None
                found = found or rows
        return found

    def _changes(self, atom: Atom) -> bool:
        return isinstance(atom, Var) and atom in self.inside

    def _product_array(self, variable: Var) -> Value | None:
        """The array of a product, computed before the loop with all that it needs; None if that does not pay."""
        start, new = len(self.before.bindings), list[Var]()
        bindings = self.original.body.bindings
        for needed in self._required_variables(variable):
            call = bindings[self.position[needed]].value
            assert isinstance(call, OpCall)
            array = self._array(call)
            if array is None or self._costs(array, self.rows[needed]):
                del self.before.bindings[start:]
                for each in new:
                    del self.arrays[each]
                return None
            self.arrays[needed] = array
            new.append(needed)
        return self.arrays[variable]

    def _required_variables(self, variable: Var) -> list[Var]:
        """The variables whose arrays have to be made for one's, in the order of the body."""
        found, pending = {variable}, [variable]
        while pending:
            call = self.original.body.bindings[self.position[pending.pop()]].value
            assert isinstance(call, OpCall)
            if lookup(call.operator).indexing.kind is IndexKind.ROW:
                continue
            for atom in call.arguments:
                if isinstance(atom, Var) and atom in self.inside and atom not in self.arrays and atom not in found:
                    found.add(atom)
                    pending.append(atom)
        return sorted(found, key=self.position.__getitem__)

    def _array(self, call: OpCall) -> Value | None:
        if lookup(call.operator).indexing.kind is IndexKind.ROW:
            return self.before.value(call.arguments[0])
        marked = tuple(isinstance(a, Var) and a in self.arrays for a in call.arguments)
        values = [
            self.arrays[a] if isinstance(a, Var) and a in self.arrays else self.before.value(a) for a in call.arguments
        ]
        extents = {v.tensor.shape[0] for v, with_rounds in zip(values, marked, strict=True) if with_rounds}
        if len(extents) != 1 or (is_product(call) and not _stays_one_product(call, values, marked)):
            return None
        return batched_call(call, values, marked)

    def _costs(self, array: Value, rows: _RowAccess) -> bool:
        """True if an array is too large, or has many more rows than the loop has rounds."""
        assert self.count is not None
        if ANY in array.shape:
            return True
        present = rows.read.arguments[0].type  # type: ignore[union-attr]
        assert isinstance(present, TensorType)
        read = self.integers.at_least(multiply(2, self.count), array.shape[0])
        return read is not True or is_too_large(array.tensor, (present,), self.max_size)
