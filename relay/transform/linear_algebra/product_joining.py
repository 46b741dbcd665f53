"""Joining of matrix products: products that share an operand become one product.

    y = matmul(x, v); z = matmul(x, w)          yz = matmul(x, concatenate(v, w)); y = yz[:, :m]; z = yz[:, m:]

Which axis of an operand runs along which axis of the result is in the operator's definition (`columns`). Joining pays
where products have too few columns to be fast by themselves, or where together they fill the machine's vectors better:

    saved = sum of ceil(columns / lanes) - ceil(sum of columns / lanes)     vectors of a row that are not computed
    saved * terms > COPY * ceil(sum of columns / lanes)                     more than moving the parts takes

and where the joined operand costs little: it is constant, or the products are in a loop that does not change it, or
the products are much more work. Each element of the result is the same sum as before, but a library may add it up in
another order, so results may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from relay.errors import RelayError
from relay.ir.dims import Dim, product
from relay.ir.expr import Atom, Binding, Block, Constant, Expr, Loop, Module, OpCall, Var
from relay.ir.rebuild import map_blocks
from relay.ir.types import TensorType
from relay.operator import Columns, Emitter, Value, lookup
from relay.transform.analysis.loop_analysis import bound_in, elements, exceeds
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass

MAX_COLUMNS = 31
"""A product with more columns is fast by itself, if they fill vectors."""

_VECTOR = 64
"""The bytes of a vector."""

_COPY = 4
"""The multiplications of a vector that moving one from the joined result to a part of it takes, at most: with 64 terms
and 100 and 28 columns of float32 the joined product takes 0.80 of the time, with 64, 96 and 16 columns 1.14."""

_BATCHED = 3
"""In batches a product is fast by itself with fewer columns by this factor: the joined operand is larger."""

_CHEAP = 16
"""An operand is cheap to join if each of its elements takes part in at least this many multiplications."""


@module_pass
def join_products(module: Module, max_columns: int = MAX_COLUMNS) -> Module:
    """The module with products of one operand with several others computed as one product where that pays: those of
    at most `max_columns` columns, and of any number where vectors are filled better. Linear."""
    return map_bodies(module, lambda function: _block(function.body, None, max_columns))


def _block(block: Block, inside: set[Var] | None, most: int) -> Block:
    """`inside`: the variables that the innermost loop around the block binds; None where there is no loop."""
    groups = _groups(block, inside, most)
    bindings: list[Binding] = []
    parts: dict[Var, Expr] = {}
    for binding in block.bindings:
        target = binding.targets[0] if binding.targets else None
        group = None if target is None else groups.get(target)
        if group is not None and target is group.members[0][0]:
            bindings += group.joint_bindings(parts)
        if target in parts:
            bindings.append(Binding(binding.targets, parts[target]))
            continue
        within = bound_in(binding.value) if isinstance(binding.value, Loop) else inside
        value: Expr = map_blocks(binding.value, lambda inner, within=within: _block(inner, within, most))  # type: ignore[misc]
        bindings.append(Binding(binding.targets, value))
    return Block(tuple(bindings), block.terminator)


@attrs.frozen(eq=False)
class _ProductGroup:
    """Calls that share all operands but the last."""

    position: int  # of the first one
    columns: Columns
    members: list[tuple[Var, OpCall]]

    def worthwhile(self, most: int) -> _ProductGroup | None:
        """The group with the members that are joined, if that are several: all where they fill vectors better, or
        else those of few columns."""
        few = [member for member in self.members if self._extent(member) <= most]
        wide = len(few) < len(self.members)
        members = few if wide and not self._fills_vectors() else self.members
        return attrs.evolve(self, members=members) if len(members) > 1 else None

    def _extent(self, member: tuple[Var, OpCall]) -> int:
        shape = _shape(member[1].arguments[-1])
        assert shape is not None and isinstance(shape[self.columns.axis], int)
        return shape[self.columns.axis]  # type: ignore[return-value]

    def _fills_vectors(self) -> bool:
        """True if together the members have less vectors than each by itself, by more than it takes to move them."""
        target, call = self.members[0]
        shape = _shape(call.arguments[-1])
        if self.columns.batch or shape is None or not isinstance(target.type, TensorType):
            return False
        lanes = max(_VECTOR // target.type.dtype.itemsize, 1)
        extents = [self._extent(member) for member in self.members]
        whole = -(-sum(extents) // lanes)
        saved = sum(-(-extent // lanes) for extent in extents) - whole
        terms = [dim for axis, dim in enumerate(shape) if axis != self.columns.axis]
        return saved > 0 and exceeds(product((saved, *terms)), _COPY * whole)

    def joint_bindings(self, parts: dict[Var, Expr]) -> list[Binding]:
        """The joined product's bindings. `parts` gets what each member is of it."""
        first = self.members[0][1]
        emitter = Emitter(first.span)
        others = [emitter.value(call.arguments[-1]) for _, call in self.members]
        together = _concatenate_operands(emitter, others, self.columns.axis)
        shared = [emitter.value(a) for a in first.arguments[:-1]]
        whole = emitter.call(lookup(first.operator), [*shared, together], first.attributes)
        place = 0
        for (target, _), other in zip(self.members, others, strict=True):
            extent = other.shape[self.columns.axis]
            assert isinstance(extent, int)
            begin = [0] * whole.ndim
            end = list(whole.shape)
            begin[self.columns.result_axis], end[self.columns.result_axis] = place, place + extent
            place += extent
            bounds = {"begin": tuple(begin), "end": tuple(end), "strides": (1,) * whole.ndim}
            parts[target] = OpCall("strided_slice", (whole.atom,), bounds, first.span)  # type: ignore[arg-type]
        return list(emitter.bindings)


def _concatenate_operands(emitter: Emitter, parts: list[Value], axis: int) -> Value:
    """The parts one after the other along an axis: a constant if they are."""
    concatenate = lookup("concatenate")
    constants = [p.atom.value for p in parts if isinstance(p.atom, Constant)]
    if len(constants) < len(parts):
        return emitter.call(concatenate, parts, {"axis": axis})
    array = concatenate.evaluate(constants, {"axis": axis})
    return emitter.value(Constant(array, emitter.span))


def _groups(block: Block, inside: set[Var] | None, most: int) -> dict[Var, _ProductGroup]:
    """The groups worth joining, by their members."""
    positions: dict[Var, int] = {}
    open_groups: dict[Hashable, _ProductGroup] = {}
    for position, binding in enumerate(block.bindings):
        positions.update((target, position) for target in binding.targets)
        call = binding.value
        columns = columns_of(call) if isinstance(call, OpCall) else None
        if not isinstance(call, OpCall) or columns is None or not columns.joins:
            continue
        key = _key(call, columns)
        if key is None or not _pays(call, binding.targets[0], columns, inside):
            continue
        group = open_groups.get(key)
        other = call.arguments[-1]
        if group is not None and (not isinstance(other, Var) or positions.get(other, -1) < group.position):
            group.members.append((binding.targets[0], call))
        elif group is None or len(group.members) == 1:
            open_groups[key] = _ProductGroup(position, columns, [(binding.targets[0], call)])
    chosen = (g.worthwhile(most // _BATCHED if g.columns.batch else most) for g in open_groups.values())
    return {target: g for g in chosen if g is not None for target, _ in g.members}


def columns_of(call: OpCall) -> Columns | None:
    """The common axes of a call's last operand and its result; None for other operators."""
    operator = lookup(call.operator)
    if operator.algebra.columns is None:
        return None
    shapes = [_shape(a) for a in call.arguments]
    if any(s is None for s in shapes):
        return None
    try:
        found = operator.algebra.columns(*shapes, **call.attributes)
    except (TypeError, RelayError):  # a dim that is not a number
        return None
    assert found is None or isinstance(found, Columns)
    return found


def _shape(atom: Atom) -> tuple[Dim, ...] | None:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    return type_.shape if isinstance(type_, TensorType) else None


def _key(call: OpCall, columns: Columns) -> Hashable:
    """The common key of calls that can be joined; None for a call that is not joined."""
    shape = _shape(call.arguments[-1])
    assert shape is not None
    extent = shape[columns.axis]
    variables = all(isinstance(a, Var) for a in call.arguments[:-1])
    if not isinstance(extent, int) or extent < 1 or not variables:
        return None
    rest = tuple(d for axis, d in enumerate(shape) if axis != columns.axis)
    attributes = tuple(sorted((name, repr(value)) for name, value in call.attributes.items()))
    constant = isinstance(call.arguments[-1], Constant)
    return lookup(call.operator).name, call.arguments[:-1], attributes, rest, constant


def _pays(call: OpCall, target: Var, columns: Columns, inside: set[Var] | None) -> bool:
    """True if the last operand is joined once for many products, or cheaply."""
    other = call.arguments[-1]
    if isinstance(other, Constant) or (inside is not None and other not in inside):
        return True
    result, shape = elements(target), _shape(other)
    assert result is not None and shape is not None
    # Each element of the operand is multiplied with as many numbers as a column of the result has in its batch.
    return exceeds(result, product((_CHEAP, shape[columns.axis], *shape[: columns.batch])))
