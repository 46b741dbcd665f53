"""Common subexpression elimination: what is computed already, in this block or one around it, is not computed again.

Only expressions that always give the same value count: no reads, no effects, no calls, and no allocations (two cells or
two empty stacks are different things).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable
from weakref import WeakSet

from relay.ir.dims import DimExpr, TypeId
from relay.ir.expr import (
    Atom,
    AxisSize,
    Binding,
    Block,
    Constant,
    Construct,
    Expr,
    Extent,
    Global,
    MakeTuple,
    Module,
    OpCall,
    Project,
    Shadow,
    StackGet,
    StackLength,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator, rebind, rebuild_block
from relay.operator import lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass

LARGEST = 64
"""Constants with at most this many elements are compared by their contents."""


@module_pass
def eliminate_common_subexpressions(module: Module) -> Module:
    """The module with equal pure expressions computed once where the first is in scope at the second."""
    return map_bodies(module, lambda function: _ScopedExpressions().block(function.body), _SETTLED)


_SETTLED: WeakSet[Block] = WeakSet()


class _ScopedExpressions:
    def __init__(self) -> None:
        self.same: dict[Var, Atom] = {}
        self.known: ChainMap[Hashable, Var] = ChainMap()

    def atom(self, atom: Atom) -> Atom:
        return self.same.get(atom, atom) if isinstance(atom, Var) else atom

    def block(self, block: Block) -> Block:
        outer, self.known = self.known, self.known.new_child()
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = map_parts(binding.value, atom=self.atom, block=self.block)
            key = _key(value)
            if key is not None:
                found = self.known.get(key)
                if found is not None:
                    self.same[binding.targets[0]] = found
                    continue
                self.known[key] = binding.targets[0]
            bindings.append(rebind(binding, value))
        self.known = outer
        return rebuild_block(block, bindings, map_terminator(block.terminator, self.atom))


def _key(value: Expr) -> Hashable | None:
    """The common key of equal expressions; None if the expression must be computed in its place."""
    match value:
        case OpCall(name, arguments, attributes):
            operator = lookup(name)
            if operator.memory.uninitialized:  # memory that is filled later, like a stack
                return None
            keys = [_atom_key(a) for a in arguments]
            if operator.algebra.commutative:
                keys.sort(key=hash)
            return ("op", operator.name, tuple(keys), tuple(sorted((k, _frozen(v)) for k, v in attributes.items())))
        case MakeTuple(items):
            return ("tuple", *map(_atom_key, items))
        case Project(whole, index):
            return ("project", _atom_key(whole), index)
        case Construct(definition, constructor, arguments):
            return ("construct", definition, constructor, *map(_atom_key, arguments))
        case Shadow(reference, sweep, _, slot):
            return "shadow", _atom_key(reference), _atom_key(sweep), slot
        case StackPush(stack, pushed):
            return ("push", _atom_key(stack), _atom_key(pushed))
        case StackGet(stack, index_atom):
            return ("get", _atom_key(stack), _atom_key(index_atom))
        case StackSet(stack, index_atom, new):
            return ("set", _atom_key(stack), _atom_key(index_atom), _atom_key(new))
        case StackPrefix(stack, index_atom):
            return ("prefix", _atom_key(stack), _atom_key(index_atom))
        case StackLength(stack):
            return ("length", _atom_key(stack))
        case Extent(dim, base):
            return ("extent", dim, base)
        case AxisSize(whole, axis):
            return ("size", _atom_key(whole), axis)
        case _:
            return None


def _frozen(value: object) -> Hashable:
    """An attribute such that 1, 1.0 and True differ. Dims of one name may differ, too."""
    match value:
        case tuple():
            return tuple(map(_frozen, value))
        case TypeId() | DimExpr():
            return value
        case _:
            return repr(value)


def _atom_key(atom: Atom) -> Hashable:
    match atom:
        case Constant(array) if array.size <= LARGEST:
            return (array.dtype.name, array.shape, array.tobytes())
        case Global(name):
            return name
        case Var() | Constant() | Static():
            return atom
