"""Matrix chain ordering: chains of matrix products in the cheapest order.

    (a @ b) @ c        a: (10, 100), b: (100, 5), c: (5, 50): 7,500 multiplications; a @ (b @ c) needs 75,000

An operator that is associative but not commutative makes a chain, of which the products in between are read by nothing
else. The cost of an order is the sum of the operators' own `flops`; the best one is found by dynamic programming (Hu
and Shing have a faster way; chains are short). Matrices in between have two axes, the first and last may be vectors.
The result is summed in another order, so its rounding may differ.
"""

from __future__ import annotations

from relay.errors import RelayError
from relay.ir.expr import Atom, Binding, Block, Constant, Module, OpCall, Var
from relay.ir.rebuild import map_blocks, rebind, rebuild_block
from relay.ir.types import TensorType, Type
from relay.operator import Operator, lookup
from relay.transform.analysis.loop_analysis import uses
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass

LONGEST = 24
"""Longer chains are taken in parts."""


@module_pass
def reorder_products(module: Module) -> Module:
    """The module with chains of matrix products in the order that needs the fewest operations."""

    def change(body: Block) -> Block:
        return _ProductOrdering(uses(body)).block(body)

    return map_bodies(module, lambda function: change(function.body))


class _ProductOrdering:
    def __init__(self, reads: dict[Var, int]) -> None:
        self.reads = reads

    def block(self, block: Block) -> Block:
        calls = {b.targets[0]: b.value for b in block.bindings if isinstance(b.value, OpCall) and _chains(b.value)}
        inner = {
            a
            for call in calls.values()
            for a in call.arguments
            if isinstance(a, Var) and a in calls and self.reads[a] == 1 and calls[a].operator == call.operator
        }
        bindings: list[Binding] = []
        gone: set[Var] = set()
        for binding in reversed(block.bindings):
            target = binding.targets[0] if binding.targets else None
            if target in gone:
                continue
            if target is not None and target in calls and target not in inner:
                found = self._reorder_chain(target, calls, inner)
                if found is not None:
                    made, parts = found
                    gone |= parts
                    bindings += reversed(made)
                    continue
            bindings.append(rebind(binding, map_blocks(binding.value, self.block)))
        return rebuild_block(block, bindings[::-1], block.terminator)

    def _reorder_chain(
        self, root: Var, calls: dict[Var, OpCall], inner: set[Var]
    ) -> tuple[list[Binding], set[Var]] | None:
        """The bindings of a chain in its best order, the last of which is the root's, and the products that it had in
        between; None if it is the best already."""
        leaves: list[Atom] = []
        parts: set[Var] = set()
        pending: list[Atom] = [root]
        while pending:
            atom = pending.pop()
            if isinstance(atom, Var) and (atom is root or atom in inner) and len(parts) < LONGEST:
                if atom is not root:
                    parts.add(atom)
                pending += reversed(calls[atom].arguments)
            else:
                leaves.append(atom)
        call = calls[root]
        if len(leaves) < 3:
            return None
        chain = _Chain(lookup(call.operator), call, leaves)
        try:
            before = sum(chain.flops(calls[p]) for p in (root, *parts))
            if chain.best_cost() >= before:
                return None
        except (TypeError, RelayError):  # a dim that is not a number
            return None
        return chain.bindings(root), parts


def _chains(call: OpCall) -> bool:
    """True if an operator is a product like that of matrices."""
    operator = lookup(call.operator)
    algebra = operator.algebra
    return algebra.associative and not algebra.commutative and len(operator.operands) == 2 and not call.attributes


def _type(atom: Atom) -> Type:
    assert isinstance(atom, Var | Constant) and atom.type is not None
    return atom.type


class _Chain:
    """The orders of a chain of leaves."""

    def __init__(self, operator: Operator, call: OpCall, leaves: list[Atom]) -> None:
        self.operator, self.call, self.leaves = operator, call, leaves
        self.types: dict[tuple[int, int], Type] = {(i, i + 1): _type(leaf) for i, leaf in enumerate(leaves)}
        self.costs: dict[tuple[int, int], int] = {(i, i + 1): 0 for i in range(len(leaves))}
        self.splits: dict[tuple[int, int], int] = {}

    def flops(self, call: OpCall) -> int:
        types = [_type(a) for a in call.arguments]
        return self.operator.flops(types, self.operator.infer(types, {}))

    def best_cost(self) -> int:
        """The cost of the best order. Raises TypeMismatch where a product has no type, TypeError for symbolic dims."""
        count = len(self.leaves)
        for position, leaf in enumerate(self.leaves):
            type_ = _type(leaf)
            ends = position in (0, count - 1)
            if not isinstance(type_, TensorType) or (type_.rank != 2 and not (ends and type_.rank == 1)):
                raise TypeError("no chain of matrices")
        for length in range(2, count + 1):
            for start in range(count - length + 1):
                self._split(start, start + length)
        return self.costs[0, count]

    def _split(self, start: int, end: int) -> None:
        """The best place to take a part of the chain apart."""
        for middle in range(start + 1, end):
            types = [self.types[start, middle], self.types[middle, end]]
            result = self.operator.infer(types, {})
            cost = self.costs[start, middle] + self.costs[middle, end] + self.operator.flops(types, result)
            if (start, end) not in self.costs or cost < self.costs[start, end]:
                self.costs[start, end], self.splits[start, end] = cost, middle
                self.types[start, end] = result

    def bindings(self, root: Var) -> list[Binding]:
        """The products in the best order; the last one is bound to `root`."""
        made: list[Binding] = []

        def product(start: int, end: int) -> Atom:
            if end - start == 1:
                return self.leaves[start]
            middle = self.splits[start, end]
            arguments = (product(start, middle), product(middle, end))
            is_root = (start, end) == (0, len(self.leaves))
            target = root if is_root else Var(root.name, self.types[start, end], self.call.span)
            made.append(Binding((target,), OpCall(self.call.operator, arguments, {}, self.call.span)))
            return target

        product(0, len(self.leaves))
        return made
