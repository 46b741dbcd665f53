"""The operator calls of a block as fusion sees them: their readers, patterns, sizes and in-place updates."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from relay.ir.dims import Dim, add, multiply, product
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Expr,
    Extent,
    Loop,
    MakeTuple,
    OpCall,
    Project,
    Var,
)
from relay.ir.sizes.facts import facts
from relay.ir.traverse import blocks, free_variables, operands, terminator_operands
from relay.ir.types import BFLOAT16, BaseType, Shape, TensorType
from relay.operator import IndexKind, Operator, Pattern, lookup

ARITHMETIC = (Pattern.ELEMENTWISE, Pattern.BROADCAST)
INJECTIVE = (*ARITHMETIC, Pattern.INJECTIVE)
ANCHOR = (Pattern.REDUCTION, Pattern.OUTPUT_FUSABLE)

_AXIS_BY_AXIS = (IndexKind.PERMUTE, IndexKind.SLICE)
"""Calls whose operand is read at one index for each axis."""


def in_place_operands(binding: Binding) -> tuple[Atom, ...]:
    """The operand that an operator call can update in place, if there is one."""
    if isinstance(binding.value, OpCall):
        in_place = lookup(binding.value.operator).memory.in_place
        if in_place is not None:
            return (binding.value.arguments[in_place.operand],)
    return ()


def _overwritten_variables(binding: Binding) -> set[Var]:
    """The variables whose memory a binding may take for an update, also inside its blocks."""
    found = {a for a in in_place_operands(binding) if isinstance(a, Var)}
    for block in blocks(binding.value):
        for inner in block.bindings:
            found |= _overwritten_variables(inner)
    if isinstance(binding.value, Loop):
        pairs = zip(binding.value.parameters, binding.value.initial, strict=True)
        found |= {initial for parameter, initial in pairs if parameter in found and isinstance(initial, Var)}
    return found


class BlockCalls:
    """The operator calls of a block, by their positions."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.position: dict[Var, int] = {}
        self.patterns: dict[int, Pattern] = {}
        self.updated: dict[int, Atom] = {}  # what calls update in place
        self.users: dict[int, set[int]] = {}  # operator calls by the calls of this block that read them
        self.leaving: dict[int, int] = {}  # where calls are first read by something else than a call of this block
        self.made: dict[Var, int] = {}  # where the block's variables are bound
        self.barriers: list[int] = []  # how many bindings before each one may fail, or have blocks or effects
        self._overwritten: dict[Var, int] = {}  # where variables may first be overwritten
        end = len(block.bindings)
        for i, binding in enumerate(block.bindings):
            self.made.update((target, i) for target in binding.targets)
            harmless = isinstance(binding.value, OpCall | MakeTuple | Project | Var | Constant | Extent)
            self.barriers.append((self.barriers[-1] if i else 0) + (not harmless))
            if is_call(binding):
                assert isinstance(binding.value, OpCall)
                self.position[binding.targets[0]] = i
                self.patterns[i] = lookup(binding.value.operator).pattern
                self.users[i] = set()
                self.updated.update((i, atom) for atom in in_place_operands(binding))
            for variable in _overwritten_variables(binding):
                self._overwritten.setdefault(variable, i)
        for i, binding in enumerate(block.bindings):
            for j in set(self._positions(_reads(binding.value))):
                if is_call(binding):
                    self.users[j].add(i)
                else:
                    self.leaving.setdefault(j, i)
        for j in self._positions(terminator_operands(block.terminator)):
            self.leaving.setdefault(j, end)

    def _positions(self, atoms: Iterable[Atom]) -> Iterator[int]:
        return (self.position[a] for a in atoms if isinstance(a, Var) and a in self.position)

    def call(self, i: int) -> OpCall:
        """The call at a position."""
        value = self.block.bindings[i].value
        assert isinstance(value, OpCall)
        return value

    def operator(self, i: int) -> Operator:
        return lookup(self.call(i).operator)

    def target(self, i: int) -> Var:
        return self.block.bindings[i].targets[0]

    def operands(self, i: int) -> list[int]:
        """The calls of this block that a call reads, each as often as it does."""
        return list(self._positions(self.call(i).arguments))

    def bindings(self, positions: Iterable[int]) -> tuple[Binding, ...]:
        return tuple(self.block.bindings[i] for i in sorted(positions))

    def shape(self, i: int) -> Shape:
        return shape_of(self.target(i))

    def bytes(self, i: int) -> Dim:
        """The bytes of a call's result."""
        return bytes_of(self.target(i))

    def index_uses(self, i: int) -> int:
        """The approximate number of times that a call uses an index of its result to compute those of its operands:
        a reshape once for each axis of the operand that it divides the position into, and calls that move, join or
        repeat elements in conditions and remainders, too; all axes as one if none is given."""
        operator, call = self.operator(i), self.call(i)
        if self.patterns[i] is not Pattern.INJECTIVE or operator.indexing.kind in _AXIS_BY_AXIS or not call.arguments:
            return 1
        if operator.indexing.kind is not IndexKind.RESHAPE:
            return 3 * (max(len(self.shape(i)), 1) if call.attributes.get("axis", 0) is None else 1)
        operand = call.arguments[0]
        before, after = ([d for d in shape if d != 1] for shape in (shape_of(operand), self.shape(i)))
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        return max(len(before) - same, 1)

    def is_intricate(self, i: int) -> bool:
        """True if the expression of a call has many named parts, as polynomials do and the conversions of bfloat16."""
        type_ = self.target(i).type
        if isinstance(type_, TensorType) and type_.base == BFLOAT16:
            return True
        return self.operator(i).numerics.expensive_to_recompute

    def is_stored(self, i: int) -> bool:
        """True if a kernel ends with a call."""
        return self.operator(i).memory.stored and not self.is_in_blocks(i)

    def is_in_blocks(self, i: int) -> bool:
        """True if a kernel that reads a call's result may compute it once for each of its blocks."""
        return self.operator(i).memory.stored and self.call(i).attributes.get("in_blocks") is True

    def is_larger(self, i: int, j: int) -> bool | None:
        """True if a call's result has more elements than another's; None if that is data-dependent."""
        a, b = product(self.shape(i)), product(self.shape(j))
        return facts().at_least(a, add(b, 1))

    def updates(self, i: int, operand: int) -> bool:
        """True if a call updates another one's result in place."""
        return i in self.updated and self.updated[i] is self.target(operand)

    def reads_too_early(self, i: int, place: int) -> bool:
        """True if a call reads memory that may be overwritten before this place."""
        return any(
            self._overwritten.get(atom, place) < place for atom in self.call(i).arguments if isinstance(atom, Var)
        )


def is_call(binding: Binding) -> bool:
    """True if a binding is a call that kernels are made of. Composite operators with several results are not: code
    is generated for their bodies."""
    return isinstance(binding.value, OpCall) and isinstance(binding.targets[0].type, TensorType)


def shape_of(atom: Atom) -> Shape:
    """The shape of a tensor."""
    assert isinstance(atom, Var | Constant) and isinstance(atom.type, TensorType)
    return atom.type.shape


def base_of(atom: Atom) -> BaseType:
    """The dtype of a tensor's elements."""
    assert isinstance(atom, Var | Constant) and isinstance(atom.type, TensorType)
    assert isinstance(atom.type.base, BaseType)
    return atom.type.base


def bytes_of(atom: Atom) -> Dim:
    """The bytes of a tensor."""
    return multiply(product(shape_of(atom)), base_of(atom).dtype.itemsize)


def _reads(value: Expr) -> Iterator[Atom]:
    """The atoms that an expression reads of its own block, also inside of its blocks."""
    yield from operands(value)
    for block in blocks(value):
        yield from free_variables(block)


__all__ = [
    *("ANCHOR", "ARITHMETIC", "INJECTIVE", "BlockCalls", "base_of", "bytes_of", "in_place_operands", "is_call"),
    "shape_of",
]
