"""Layouts of convolutional networks: which axis of an activation holds the channels.

    y = conv2d(x, w, layout="NCHW"); z = relu(y); u = conv2d(z, v, layout="NCHW")
    x' = transpose(x); y' = conv2d(x', w', layout="NHWC"); z' = relu(y'); u' = conv2d(z', v', ..); u = transpose(u')

Which layouts an operator's operands and result have is in its definition (`layouts`). A value that was computed in
another layout is transposed back where something needs it as it was, and only there; operators that do the same to all
elements (`is_layout_agnostic`), and transposes, take it as it is. So a chain has one transpose in and one out. Constant
weights are transposed at once. Branches and loops pass values on in their own layout.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import attrs
import numpy as np

from relay.errors import RelayError
from relay.ir.expr import Atom, Binding, Block, Constant, Function, Module, OpCall, Var
from relay.ir.traverse import map_parts, map_terminator, walk
from relay.ir.types import TensorType
from relay.operator import Emitter, Operator, lookup
from relay.transform.functions import map_bodies
from relay.transform.loop_facts import elements, likely

Layout: TypeAlias = Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"]
LAYOUT: Layout = "NHWC"

_Order = tuple[int, ...]


def convert_layout(module: Module, layout: Layout = LAYOUT) -> Module:
    """The module with the operators to which a layout like this one matters computing in it. Raises ValueError for a
    layout that no operator has."""
    if layout not in get_args(Layout):
        raise ValueError(f"a layout is {', '.join(get_args(Layout))}; found {layout!r}")
    return map_bodies(module, lambda function: _Converting((layout,)).block(function.body))


@attrs.frozen
class Target:
    """What layouts cost on a machine: which ones it prefers, how much longer products take in others, how much longer
    those with groups of channels take in the preferred ones, and how many floating-point operations take as long as
    moving an element in a transpose."""

    preferred: tuple[str, ...]
    slowdown: float
    grouped: float
    move: int


CPU = Target(("NWC", "NHWC", "NDHWC"), 1.7, 4.0, 40)
"""Measured on a processor with vectors of 16 floats: the channels of neighbouring weights fill them, if there are as
many in a group."""


def choose_layouts(module: Module, target: Target = CPU) -> Module:
    """The module with the layouts that the target prefers, in those functions where that saves more than transposes
    cost."""

    def change(function: Function) -> Block:
        if not any(isinstance(b.value, OpCall) and lookup(b.value.operator).layouts for b in walk(function.body)):
            return function.body
        converted = _Converting(target.preferred).block(function.body)
        return converted if _cost(converted, target) < _cost(function.body, target) else function.body

    return map_bodies(module, change)


def _cost(body: Block, target: Target) -> float:
    """The time of products and transposes, in floating-point operations."""
    cost = 0.0
    for binding in walk(body):
        call = binding.value
        if not isinstance(call, OpCall):
            continue
        operator = lookup(call.operator)
        size = elements(binding.targets[0])
        if operator.permutes and size is not None:
            cost += target.move * likely(size)
        elif operator.layouts is not None and size is not None and operator.linear:
            layout = call.attributes.get("layout")
            if any(elements(a) is None for a in call.arguments):
                continue
            groups = call.attributes.get("groups", 1)
            factors = (1.0, target.slowdown) if groups == 1 else (target.grouped, 1.0)
            cost += _work(call, binding.targets[0]) * factors[layout not in target.preferred]
    return cost


def _work(call: OpCall, target: Var) -> float:
    """The floating-point operations of a call, with likely sizes."""
    types = [a.type for a in call.arguments if isinstance(a, Var | Constant) and isinstance(a.type, TensorType)]
    assert isinstance(target.type, TensorType)
    sized = [TensorType(t.base, tuple(likely(d) for d in t.shape)) for t in types]
    result = TensorType(target.type.base, tuple(likely(d) for d in target.type.shape))
    return lookup(call.operator).flops(sized, result)


# ---- conversion


@attrs.frozen
class _Moved:
    """A value that is there with its axes in another order: it is transpose(atom, order)."""

    atom: Atom
    order: _Order


class _Converting:
    """One function. `layouts` are those that operators get."""

    def __init__(self, layouts: Sequence[str]) -> None:
        self.layouts = layouts
        self.moved: dict[Var, _Moved] = {}
        self.made: ChainMap[tuple[Var, _Order], Var] = ChainMap()  # transposes that are in scope
        self.out: list[Binding] = []

    def block(self, block: Block) -> Block:
        outer = self.out, self.made
        self.out, self.made = [], self.made.new_child()
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, OpCall) and self._call(binding.targets[0], value):
                continue
            made = map_parts(value, atom=self.original, block=self.block)
            self.out.append(Binding(binding.targets, made))
        end = map_terminator(block.terminator, self.original)
        bindings = tuple(self.out)
        self.out, self.made = outer
        return Block(bindings, end)

    def _call(self, target: Var, call: OpCall) -> bool:
        """Append a call in another layout; False if it stays as it is."""
        operator = lookup(call.operator)
        if not isinstance(target.type, TensorType):
            return False
        if operator.layouts is not None:
            return self._converted(target, target.type, operator, call)
        if operator.permutes:
            return self._transposed(target, target.type, call)
        if operator.is_layout_agnostic and not operator.requirements:
            return self._followed(target, target.type, operator, call)
        return False

    # ---- the three kinds of operators

    def _converted(self, target: Var, type_: TensorType, operator: Operator, call: OpCall) -> bool:
        """An operator to which the layout matters."""
        assert operator.layouts is not None
        attributes = dict(call.attributes)
        attributes.setdefault("layout", operator.attributes.get("layout"))
        layout = attributes["layout"]
        wanted = [w for w in self.layouts if isinstance(layout, str) and sorted(w) == sorted(layout) and w != layout]
        if not wanted:
            return False
        try:
            old = operator.layouts(**attributes)
            attributes["layout"] = wanted[0]
            new = operator.layouts(**attributes)
        except (RelayError, TypeError):  # a layout that it has not
            return False
        if len(old) != len(call.arguments) + 1 or any(letter is None for word in (*old, *new) for letter in word):
            return False
        orders = [tuple(o.index(letter) for letter in n) for o, n in zip(old, new, strict=True)]
        arguments = tuple(self.permuted(a, order) for a, order in zip(call.arguments, orders, strict=False))
        made = OpCall(call.operator, arguments, attributes, call.span)
        return self._bound(target, _permuted_type(type_, orders[-1]), _inverse(orders[-1]), made)

    def _transposed(self, target: Var, type_: TensorType, call: OpCall) -> bool:
        """A transpose of something that is there in another order anyway."""
        (operand,) = call.arguments
        moved = self.moved.get(operand) if isinstance(operand, Var) else None
        axes = call.attributes.get("axes")
        if moved is None:
            return False
        order = range(type_.rank)[::-1] if axes is None else axes
        assert isinstance(order, range | tuple)
        self.moved[target] = _Moved(moved.atom, tuple(moved.order[a] for a in order if isinstance(a, int)))
        return True

    def _followed(self, target: Var, type_: TensorType, operator: Operator, call: OpCall) -> bool:
        """An operator that does the same to all elements, where most of what it reads is there in another order."""
        orders: dict[_Order, int] = {}
        others = 0
        for atom in dict.fromkeys(call.arguments):
            moved = self.moved.get(atom) if isinstance(atom, Var) else None
            size = likely(e) if (e := elements(atom)) is not None else 0
            if moved is not None and len(moved.order) == type_.rank:
                orders[moved.order] = orders.get(moved.order, 0) + size
            elif isinstance(atom, Var) and getattr(atom.type, "rank", 0) == type_.rank:
                others += size
        order, size = max(orders.items(), key=lambda item: item[1], default=((), 0))
        if not order or 2 * size < sum(orders.values()) + others:
            return False
        back = _inverse(order)
        arguments = tuple(self._broadcast(a, type_.rank, back) for a in call.arguments)
        made = OpCall(call.operator, arguments, call.attributes, call.span)
        return self._bound(target, _permuted_type(type_, back), order, made)

    def _bound(self, target: Var, type_: TensorType, order: _Order, call: OpCall) -> bool:
        result = Var(target.name, type_, target.span)
        self.out.append(Binding((result,), call))
        self.moved[target] = _Moved(result, order)
        return True

    # ---- values

    def original(self, atom: Atom) -> Atom:
        """A value as it was."""
        moved = self.moved.get(atom) if isinstance(atom, Var) else None
        return atom if moved is None else self.permuted(atom, tuple(range(len(moved.order))))

    def permuted(self, atom: Atom, order: _Order) -> Atom:
        """transpose(atom, order)"""
        if isinstance(atom, Constant):
            return Constant(np.ascontiguousarray(np.transpose(atom.value, order)), atom.span)
        assert isinstance(atom, Var)
        moved = self.moved.get(atom)
        if moved is not None:
            order = tuple(moved.order[axis] for axis in order)
            if not isinstance(moved.atom, Var):
                return self.permuted(moved.atom, order)
            atom = moved.atom
        if order == tuple(range(len(order))):
            return atom
        found = self.made.get((atom, order))
        if found is None:
            emitter = Emitter(atom.span)
            value = emitter.value(atom)
            sizes = [dim for dim in value.shape if dim != 1]
            # Of one axis nothing is moved; whether a size that the run makes is kept, a reshape does not see.
            if len(sizes) <= 1 and all(isinstance(dim, int) for dim in sizes):
                made = value.op("reshape", shape=tuple(value.shape[axis] for axis in order))
            else:
                made = value.op("transpose", axes=order)
            self.out += emitter.bindings
            assert isinstance(made.atom, Var)
            found = self.made[atom, order] = made.atom
        return found

    def _broadcast(self, atom: Atom, rank: int, order: _Order) -> Atom:
        """An operand, of at most this rank, with its axes in another order."""
        assert isinstance(atom, Var | Constant) and isinstance(atom.type, TensorType)
        if atom.type.rank == 0:
            return atom
        if atom.type.rank < rank:
            emitter = Emitter(atom.span)
            atom = self.original(atom)
            value = emitter.value(atom)
            shape = (*(1,) * (rank - value.ndim), *value.shape)
            if isinstance(atom, Constant):
                array = atom.value.reshape((1,) * (rank - value.ndim) + atom.value.shape)
                return self.permuted(Constant(array, atom.span), order)
            atom = value.op("reshape", shape=shape).atom
            self.out += emitter.bindings
        return self.permuted(atom, order)


def _inverse(order: _Order) -> _Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _permuted_type(type_: TensorType, order: _Order) -> TensorType:
    return TensorType(type_.base, tuple(type_.shape[axis] for axis in order))
