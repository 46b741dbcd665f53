"""Scale folding: factors of a product's columns and rows become factors of its weights.

    y = conv2d(x, w); a = add(y, b); z = multiply(a, s)       y = conv2d(x, multiply(w, s')); z = add(y, multiply(b, s))
    a = multiply(x, s); y = matmul(a, w)                      y = matmul(x, multiply(w, s'))

An operator that multiplies is linear in the operand with the product, and the other operand differs along the axis of
the result only that belongs to an axis of the weights (`columns`). Between them may stand operators that are linear in
their operands taken together (`jointly_linear`: sums), whose other operand differs along that axis only, too; so batch
normalization with given statistics goes into the weights before it. relu(y) s is relu(y s) where s is positive, so
constants that are pass such operators (`homogeneous`), and others do not. It pays where there are more results than
weights, where the weights are multiplied once for all rounds of a loop, and where both are constants, which are
multiplied at once. A factor of the first operand that differs along the axis only that is summed up goes into the
weights in the same way (`rows`); unless it is the same in all rounds of a loop, there are to be several times as many
elements as weights, for what made the first operand may multiply them for nothing, and constant weights have been
arranged. The rounding differs, and sums that would have been infinite may be NaN.
"""

from __future__ import annotations

import attrs
import numpy as np

from relay.ir.dims import Dim, multiply
from relay.ir.expr import Atom, Binding, Block, Constant, Expr, Loop, Module, OpCall, Var
from relay.ir.rebuild import map_blocks
from relay.ir.sizes.facts import facts
from relay.ir.types import TensorType
from relay.operator import Columns, Emitter, Pattern, Value, lookup
from relay.transform.analysis.loop_analysis import bound_in, elements, exceeds, uses
from relay.transform.cleanup.constant_folding import folded_constant
from relay.transform.core.rebuilding import map_bodies
from relay.transform.linear_algebra.product_joining import columns_of
from relay.transform.module_pass import module_pass

_LONGEST = 8  # sums between a product and its factor
_SEVERAL = 4  # times as many elements as weights from which factors of operands are multiplied into these
_ANY_SIZE = 1 << 62  # what weights and factors become is no larger than the weights


@module_pass
def fold_scales(module: Module) -> Module:
    """The module with factors of the results of products as factors of their weights where that pays. Linear."""

    def change(body: Block) -> Block:
        return _ScaleFolding(uses(body)).block(body, None)

    return map_bodies(module, lambda function: change(function.body))


@attrs.frozen
class _ProductChain:
    """A product and the sums and homogeneous operators that follow it, each read only by the next one. `places`: the
    position of the previous one among the operands."""

    product: tuple[Var, OpCall]
    columns: Columns
    sums: tuple[tuple[Var, OpCall], ...]
    places: tuple[int, ...]


class _ScaleFolding:
    def __init__(self, reads: dict[Var, int]) -> None:
        self.reads = reads

    def block(self, block: Block, inside: set[Var] | None) -> Block:
        """`inside`: the variables that the innermost loop around the block binds; None where there is no loop."""
        bindings: list[Binding] = []
        calls: dict[Var, OpCall] = {}
        gone: set[Var] = set()
        for binding in block.bindings:
            within = bound_in(binding.value) if isinstance(binding.value, Loop) else inside
            value: Expr = map_blocks(binding.value, lambda inner, within=within: self.block(inner, within))  # type: ignore[misc]
            made = [Binding(binding.targets, value)]
            if isinstance(value, OpCall):
                target = binding.targets[0]
                while (fed := self._fold_operand_scale(target, value, calls, inside)) is not None:
                    before, dropped = fed
                    gone |= dropped
                    made = [*made[:-1], *before]
                    calls.update((b.targets[0], b.value) for b in before if isinstance(b.value, OpCall))
                    self.reads.update((b.targets[0], 1) for b in before[:-1])
                    value = calls[target]
                found = self._fold_result_scale(target, value, calls, inside)
                if found is not None:
                    scaled, dropped = found
                    made = [*made[:-1], *scaled]
                    gone |= dropped
                for each in made:
                    assert isinstance(each.value, OpCall)
                    calls[each.targets[0]] = each.value
                    self.reads.setdefault(each.targets[0], 1)
            bindings += made
        kept = [b for b in bindings if not (b.targets and b.targets[0] in gone)]
        return Block(tuple(kept), block.terminator)

    def _fold_result_scale(
        self, target: Var, call: OpCall, calls: dict[Var, OpCall], inside: set[Var] | None
    ) -> tuple[list[Binding], set[Var]] | None:
        """The bindings that replace a multiplication of a product, and the variables that are not needed any more."""
        operator = lookup(call.operator)
        if operator.pattern is not Pattern.BROADCAST or len(call.arguments) != 2 or operator.requirements:
            return None
        for place in operator.algebra.linear:
            scale = call.arguments[1 - place]
            chain = self._chain(call.arguments[place], calls, target)
            if chain is None or not self._pays(chain, scale, inside):
                continue
            made = _scale_product(chain, call, place, target)
            if made is not None:
                return made, {chain.product[0], *(v for v, _ in chain.sums)}
        return None

    def _fold_operand_scale(
        self, target: Var, call: OpCall, calls: dict[Var, OpCall], inside: set[Var] | None
    ) -> tuple[list[Binding], set[Var]] | None:
        """The bindings that replace a product of a multiplication, and the variables that are not needed any more."""
        columns = columns_of(call)
        if columns is None or columns.rows is None or len(call.arguments) != 2:
            return None
        atom, weights = call.arguments
        between: list[tuple[Var, OpCall]] = []
        while isinstance(atom, Var) and atom in calls and self.reads.get(atom) == 1 and len(between) < _LONGEST:
            each = calls[atom]
            operator = lookup(each.operator)
            if operator.pattern is Pattern.BROADCAST and len(each.arguments) == 2 and not operator.requirements:
                for place in operator.algebra.linear:
                    inner, scale = each.arguments[place], each.arguments[1 - place]
                    if getattr(inner, "type", None) != atom.type or not self._feeds(atom, scale, columns.rows[0]):
                        continue
                    if between and not _is_positive(scale):
                        continue
                    if not self._is_less(elements(atom), weights, scale, inside, _SEVERAL):
                        continue
                    made = _with_rows(call, target, each, place, columns.rows[1], between)
                    if made is not None:
                        return made, {atom, *(variable for variable, _ in between)}
                return None
            if (
                not operator.algebra.homogeneous
                or len(each.arguments) != 1
                or operator.pattern is not Pattern.ELEMENTWISE
            ):
                return None
            between.append((atom, each))
            atom = each.arguments[0]
        return None

    def _feeds(self, product: Var, scale: Atom, axis: int) -> bool:
        """True if a factor of a product's operand differs along an axis of it only."""
        return isinstance(product.type, TensorType) and _is_along(scale, axis, product.type.shape)

    def _is_less(self, larger: Dim | None, weights: Atom, scale: Atom, inside: set[Var] | None, times: int = 1) -> bool:
        """True if it is cheaper to multiply the weights than a tensor with this many elements."""
        if isinstance(weights, Constant) and isinstance(scale, Constant):  # they are multiplied now
            return True
        if inside is not None and weights not in inside and scale not in inside:
            return True
        if times > 1 and isinstance(weights, Constant):
            return False
        made = elements(weights)
        return larger is not None and made is not None and exceeds(larger, multiply(made, times))

    def _chain(self, atom: Atom, calls: dict[Var, OpCall], target: Var) -> _ProductChain | None:
        """The product that an atom is, or is a sum of, of the target's type."""
        sums: list[tuple[Var, OpCall]] = []
        places: list[int] = []
        while isinstance(atom, Var) and atom in calls and self.reads.get(atom) == 1 and atom.type == target.type:
            call = calls[atom]
            columns = columns_of(call)
            if columns is not None:
                chain = _ProductChain((atom, call), columns, tuple(sums), tuple(places))
                steps = zip(sums, places, strict=True)
                others = [a for (_, c), place in steps for i, a in enumerate(c.arguments) if i != place]
                assert isinstance(atom.type, TensorType)
                along = columns.result_axis
                return chain if all(_is_along(o, along, atom.type.shape) for o in others) else None
            if not _carries_factors(call) or len(sums) == _LONGEST:
                return None
            ways = [p for p, a in enumerate(call.arguments) if self._leads_to_product(a, calls, target)]
            if len(ways) != 1:
                return None
            sums.append((atom, call))
            places.append(ways[0])
            atom = call.arguments[ways[0]]
        return None

    def _leads_to_product(self, atom: Atom, calls: dict[Var, OpCall], target: Var) -> bool:
        """True if an operand of a sum may be the one with the product."""
        if not isinstance(atom, Var) or atom.type != target.type or self.reads.get(atom) != 1 or atom not in calls:
            return False
        return _carries_factors(calls[atom]) or columns_of(calls[atom]) is not None

    def _pays(self, chain: _ProductChain, scale: Atom, inside: set[Var] | None) -> bool:
        target, call = chain.product
        type_ = target.type
        if not isinstance(type_, TensorType) or not _is_along(scale, chain.columns.result_axis, type_.shape):
            return False
        if not all(lookup(each.operator).algebra.jointly_linear for _, each in chain.sums) and not _is_positive(scale):
            return False
        return self._is_less(elements(target), call.arguments[-1], scale, inside)


def _carries_factors(call: OpCall) -> bool:
    """True if a factor of a call's result may be one of its operands, of one or two."""
    operator = lookup(call.operator)
    return (operator.algebra.jointly_linear or operator.algebra.homogeneous) and len(call.arguments) in (1, 2)


def _is_positive(atom: Atom) -> bool:
    """True if all elements are known to be positive and finite floats."""
    if not isinstance(atom, Constant) or atom.value.dtype.kind in "biu":
        return False
    return bool(((atom.value > 0) & (atom.value < np.inf)).all())


def _is_along(atom: Atom, along: int, shape: tuple[Dim, ...]) -> bool:
    """True if an operand that is broadcast to a shape differs along one axis only."""
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    if not isinstance(type_, TensorType) or type_.rank > len(shape):
        return False
    first = len(shape) - type_.rank
    return all(
        dim == 1 or (first + axis == along and facts().equal(dim, shape[first + axis]) is True)
        for axis, dim in enumerate(type_.shape)
    )


def _with_rows(
    call: OpCall, target: Var, factor: OpCall, place: int, axis: int, between: list[tuple[Var, OpCall]]
) -> list[Binding] | None:
    """A product of what was multiplied, through what stood between, with weights that are scaled along an axis."""
    emitter = Emitter(factor.span)
    weights = emitter.value(call.arguments[-1])
    scaled = _times(
        emitter, factor, place, weights.atom, _broadcast_scale(emitter, factor.arguments[1 - place], weights, axis)
    )
    if getattr(scaled, "type", None) != weights.type:
        return None
    made, last = list(emitter.bindings), factor.arguments[place]
    for variable, each in reversed(between):
        fresh = Var(variable.name, variable.type, variable.span)
        made.append(Binding((fresh,), OpCall(each.operator, (last,), each.attributes, each.span)))
        last = fresh
    return [*made, Binding((target,), OpCall(call.operator, (last, scaled), call.attributes, call.span))]


def _broadcast_scale(emitter: Emitter, scale: Atom, weights: Value, axis: int) -> Atom:
    """A factor in the form that goes along an axis of the weights."""
    value = emitter.value(scale)
    if not value.ndim:
        return scale
    shape: list[Dim] = [1] * weights.ndim
    shape[axis] = value.size
    if isinstance(scale, Constant):
        return Constant(scale.value.reshape([d for d in shape if isinstance(d, int)]))
    return value.op("reshape", shape=tuple(shape)).atom


def _times(emitter: Emitter, call: OpCall, place: int, atom: Atom, factor: Atom) -> Atom:
    """An atom in place of what a call multiplies, with a factor; a constant if it is one."""
    pair = (atom, factor) if place == 0 else (factor, atom)
    type_ = getattr(atom, "type", None)
    known = folded_constant(OpCall(call.operator, pair, call.attributes, call.span), type_, _ANY_SIZE)
    if known is not None and known.type == type_:
        return known
    operands = [emitter.value(a) for a in pair]
    return emitter.call(lookup(call.operator), operands, call.attributes).atom


def _scale_product(chain: _ProductChain, call: OpCall, place: int, target: Var) -> list[Binding] | None:
    """The product of scaled weights, and the sums of scaled terms, the last of which is bound to the target."""
    emitter = Emitter(call.span)
    scale = call.arguments[1 - place]
    variable, product = chain.product
    weights = emitter.value(product.arguments[-1])
    scaled = _times(emitter, call, place, weights.atom, _broadcast_scale(emitter, scale, weights, chain.columns.axis))
    if getattr(scaled, "type", None) != weights.type:
        return None
    arguments = (*product.arguments[:-1], scaled)
    last: Var = Var(variable.name, variable.type, variable.span)
    made = [*emitter.bindings, Binding((last,), OpCall(product.operator, arguments, product.attributes, product.span))]
    for (variable, each), way in zip(reversed(chain.sums), reversed(chain.places), strict=True):
        emitter.bindings.clear()
        operands = tuple(
            last if i == way else _times(emitter, call, place, a, scale) for i, a in enumerate(each.arguments)
        )
        made += emitter.bindings
        last = Var(variable.name, variable.type, variable.span)
        made.append(Binding((last,), OpCall(each.operator, operands, each.attributes, each.span)))
    return [*made[:-1], Binding((target,), made[-1].value)]
