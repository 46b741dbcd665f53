"""Mixed precision: operators that gain from it compute in a shorter float, the others in float32.

    y = matmul(x, w)                          x' = cast(x); w' = cast(w); y' = matmul(x', w')
    z = relu(y); s = sum(z)                   z' = relu(y'); z = cast(z'); s = sum(z)

Products of matrices and convolutions compute in the short float (their sums are kept in float32 inside of the kernel).
Reductions, and operators with the property `keep_fp32` (exp, log, powers, softmax), compute in float32. All others
follow their operands: in the short float if all of these that are not constants are there already. Parameters, results,
and values that branches and loops pass on keep their types, so a program's type stays the same.
"""

from __future__ import annotations

from collections import ChainMap
from typing import Literal, TypeAlias, get_args

import numpy as np

from relay.ir.expr import Atom, Binding, Block, Constant, Module, OpCall, Var
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.types import BASE_TYPES, FLOAT32, BaseType, TensorType
from relay.operator import Operator, Pattern, lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass

Short: TypeAlias = Literal["float16", "bfloat16"]
SHORT: tuple[str, ...] = get_args(Short)


@module_pass
def to_mixed_precision(module: Module, dtype: Short = "float16") -> Module:
    """The module with float32 operators in `dtype`, float16 or bfloat16, where that is safe. Raises ValueError for
    another dtype."""
    if dtype not in SHORT:
        raise ValueError(f"mixed precision is in {' or '.join(SHORT)}, found {dtype!r}")
    return map_bodies(module, lambda function: _MixedPrecision(BASE_TYPES[dtype]).block(function.body))


class _MixedPrecision:
    """One function. A value that is computed in the short float has its float32 form made where something needs it."""

    def __init__(self, base: BaseType) -> None:
        self.base = base
        self.native: dict[Var, Var] = {}  # what was float32 and is computed in the short float: its short variable
        self.short: ChainMap[Var, Atom] = ChainMap()  # casts that are in scope
        self.wide: ChainMap[Var, Atom] = ChainMap()
        self.out: list[Binding] = []

    def block(self, block: Block) -> Block:
        outer = self.out, self.short, self.wide
        self.out, self.short, self.wide = [], self.short.new_child(), self.wide.new_child()
        for binding in block.bindings:
            if isinstance(binding.value, OpCall):
                self._call(binding.targets[0], binding.value)
            else:
                made = map_parts(binding.value, atom=self._widen_atom, block=self.block)
                self.out.append(Binding(binding.targets, made))
        end = map_terminator(block.terminator, self._widen_atom)
        bindings = tuple(self.out)
        self.out, self.short, self.wide = outer
        return Block(bindings, end)

    def _call(self, target: Var, call: OpCall) -> None:
        operator = lookup(call.operator)
        if not self._shortens(operator, call, target):
            arguments = tuple(self._widen_atom(a) for a in call.arguments)
            self.out.append(Binding((target,), OpCall(call.operator, arguments, call.attributes, call.span)))
            return
        arguments = tuple(self._narrow_atom(a) for a in call.arguments)
        assert isinstance(target.type, TensorType)
        result = Var(target.name, TensorType(self.base, target.type.shape), target.span)
        self.native[target] = result
        self.out.append(Binding((result,), OpCall(call.operator, arguments, call.attributes, call.span)))

    def _shortens(self, operator: Operator, call: OpCall, target: Var) -> bool:
        """True if an operator computes in the short float."""
        floats = [a for a in call.arguments if _is_wide(a)]
        if not _is_wide(target) or not floats or operator.numerics.keep_fp32 or operator.requirements:
            return False
        if any(isinstance(value, BaseType) for value in call.attributes.values()):
            return False
        if operator.pattern is Pattern.OUTPUT_FUSABLE:
            return True
        if operator.pattern not in (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE):
            return False
        there = [a for a in floats if isinstance(a, Var) and a in self.native]
        return bool(there) and all(a in there or self._fits(a) for a in floats)

    def _fits(self, atom: Atom) -> bool:
        """True if an atom is a constant whose elements the short float holds as well as its own results."""
        if not isinstance(atom, Constant):
            return False
        with np.errstate(over="ignore"):
            short = atom.value.astype(self.base.dtype)
        return bool(np.isfinite(short.astype(np.float32)).all())

    def _narrow_atom(self, atom: Atom) -> Atom:
        """An atom in the short float."""
        if not _is_wide(atom):
            return atom
        if isinstance(atom, Constant):
            return Constant(atom.value.astype(self.base.dtype), atom.span)
        assert isinstance(atom, Var) and isinstance(atom.type, TensorType)
        native = self.native.get(atom)
        if native is not None:
            return native
        if atom not in self.short:
            self.short[atom] = self._cast(atom, Var(atom.name, TensorType(self.base, atom.type.shape), atom.span))
        return self.short[atom]

    def _widen_atom(self, atom: Atom) -> Atom:
        """An atom in float32, if it was that."""
        native = self.native.get(atom) if isinstance(atom, Var) else None
        if native is None or not isinstance(atom, Var):
            return atom
        if atom not in self.wide:
            self.wide[atom] = self._cast(native, Var(atom.name, atom.type, atom.span))
        return self.wide[atom]

    def _cast(self, atom: Var, target: Var) -> Var:
        assert isinstance(target.type, TensorType) and isinstance(target.type.base, BaseType)
        self.out.append(Binding((target,), OpCall("cast", (atom,), {"dtype": target.type.base}, atom.span)))
        return target


def _is_wide(atom: Atom) -> bool:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    return isinstance(type_, TensorType) and type_.base == FLOAT32
