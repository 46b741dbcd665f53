"""Programs with a precision for each value: what a value's operator computes in, or what its result is rounded to.

    y = multiply(x, w); z = sum(y)       y in float16, z in float32:
    x' = cast(x); w' = cast(w); y' = multiply(x', w'); y = cast(y'); z = sum(y)

A float dtype is what the operator computes in; formats of fewer bits are simulated, so the result is rounded to one of
their values. What branches, loops, calls and results need keeps its type, as a cast of the value.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import TypeAlias

from relay.api.numbers.formats import NumberFormat
from relay.errors import RelayError
from relay.ir.expr import Atom, Binding, Block, Constant, Module, OpCall, Var
from relay.ir.rebuild import map_parts, map_terminator, rebind, rebuild_block
from relay.ir.types import BaseType, TensorType, Type
from relay.operator import Emitter, Value, lookup
from relay.transform.core.rebuilding import map_bodies

Precision: TypeAlias = NumberFormat | BaseType


def with_precisions(module: Module, chosen: Mapping[Var, Precision]) -> Module:
    """The module with these precisions for values that operators compute; the others stay as they are."""
    return map_bodies(module, lambda function: _Precisions(chosen).block(function.body))


def map_calls(module: Module, change: Callable[[Binding, OpCall], list[Binding] | None]) -> Module:
    """The module with what `change` gives in place of operators' calls, where it gives something."""

    def block(given: Block) -> Block:
        bindings: list[Binding] = []
        for binding in given.bindings:
            value = map_parts(binding.value, block=block)
            made = change(binding, value) if isinstance(value, OpCall) else None
            bindings += [rebind(binding, value)] if made is None else made
        return rebuild_block(given, bindings, given.terminator)

    return map_bodies(module, lambda function: block(function.body))


def scaled(x: Value, format_: NumberFormat) -> Value:
    """x rounded to a format, scaled by a power of two to the range of it."""
    largest = x.op("abs").op("max").op("stop_gradient") if x.size != 0 else x.emitter.constant(1.0, x.base)
    exponent = (largest * (1 / format_.scaled_to)).op("maximum", 1e-30).op("log2").op("ceil")
    scale = x.emitter.constant(2.0, x.base) ** exponent
    return format_.round_value(x / scale) * scale


def base_of(atom: Atom) -> BaseType | None:
    """The base type of an atom, if it is a tensor of float32 or float64."""
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    base = type_.base if isinstance(type_, TensorType) else None
    return base if isinstance(base, BaseType) and base.name in ("float32", "float64") else None


class _Precisions:
    """One function. A value in another dtype is cast to its own where something needs that."""

    def __init__(self, chosen: Mapping[Var, Precision]) -> None:
        self.chosen = chosen
        self.native: dict[Var, Var] = {}  # the variables in another dtype
        self.casts: ChainMap[tuple[Var, BaseType], Var] = ChainMap()  # that are in scope
        self.out: list[Binding] = []

    def block(self, block: Block) -> Block:
        outer = self.out, self.casts
        self.out, self.casts = [], self.casts.new_child()
        for binding in block.bindings:
            if isinstance(binding.value, OpCall):
                self._call(binding.targets[0], binding.value)
            else:
                made = map_parts(binding.value, atom=self._in_own_dtype, block=self.block)
                self.out.append(Binding(binding.targets, made))
        end = map_terminator(block.terminator, self._in_own_dtype)
        bindings = tuple(self.out)
        self.out, self.casts = outer
        return Block(bindings, end)

    def _call(self, target: Var, call: OpCall) -> None:
        precision = self.chosen.get(target) or self._dtype_of_move(target, call)
        if isinstance(precision, BaseType) and precision != base_of(target):
            self._compute(target, call, precision)
            return
        given = OpCall(call.operator, tuple(map(self._in_own_dtype, call.arguments)), call.attributes, call.span)
        if not isinstance(precision, NumberFormat):
            self.out.append(Binding((target,), given))
            return
        whole, emitter = Var(target.name, target.type, target.span), Emitter(call.span)
        value = scaled(emitter.value(whole), precision)
        self.out += [Binding((whole,), given), *emitter.bindings, Binding((target,), value.atom)]

    def _dtype_of_move(self, target: Var, call: OpCall) -> BaseType | None:
        """The dtype of what an operator only moves, if it is another one."""
        floats = [a for a in call.arguments if base_of(a) is not None]
        if base_of(target) is None or not floats or lookup(call.operator).indexing.kind is None:
            return None
        found = {self._base(a) for a in floats}
        return found.pop() if len(found) == 1 else None

    def _compute(self, target: Var, call: OpCall, base: BaseType) -> None:
        """Compute a value in a dtype; where its operator does not have that, cast the result."""
        assert isinstance(target.type, TensorType)
        result = Var(target.name, TensorType(base, target.type.shape), target.span)
        count = len(self.out)
        if not any(isinstance(a, BaseType) for a in call.attributes.values()) and _has_type(call, base, result):
            arguments = tuple(a if base_of(a) is None else self._cast(a, base) for a in call.arguments)
            self.out.append(Binding((result,), OpCall(call.operator, arguments, call.attributes, call.span)))
        else:
            del self.out[count:]
            whole = Var(target.name, target.type, target.span)
            given = OpCall(call.operator, tuple(map(self._in_own_dtype, call.arguments)), call.attributes, call.span)
            self.out += [Binding((whole,), given), _cast(whole, result, base)]
        self.native[target] = result

    def _in_own_dtype(self, atom: Atom) -> Atom:
        """An atom in its own dtype."""
        own = base_of(atom)
        return atom if own is None else self._cast(atom, own)

    def _base(self, atom: Atom) -> BaseType | None:
        return prior.type.base if isinstance(atom, Var) and (prior := self.native.get(atom)) else base_of(atom)  # type: ignore[union-attr,return-value]

    def _cast(self, atom: Atom, base: BaseType) -> Atom:
        if isinstance(atom, Constant):
            return atom if base_of(atom) == base else Constant(atom.value.astype(base.dtype), atom.span)
        assert isinstance(atom, Var)
        there = self.native.get(atom, atom)
        assert isinstance(there.type, TensorType)
        if there.type.base == base:
            return there
        if (atom, base) not in self.casts:
            made = Var(atom.name, TensorType(base, there.type.shape), atom.span)
            self.out.append(_cast(there, made, base))
            self.casts[atom, base] = made
        return self.casts[atom, base]


def _cast(atom: Var, target: Var, base: BaseType) -> Binding:
    return Binding((target,), OpCall("cast", (atom,), {"dtype": base}, atom.span))


def _has_type(call: OpCall, base: BaseType, result: Var) -> bool:
    """True if an operator gives this result for operands of a float dtype."""
    types: list[Type] = []
    for atom in call.arguments:
        type_ = atom.type if isinstance(atom, Var | Constant) else None
        if type_ is None:
            return False
        if isinstance(type_, TensorType) and base_of(atom) is not None:
            type_ = TensorType(base, type_.shape)
        types.append(type_)
    try:
        return bool(lookup(call.operator).infer(types, call.attributes) == result.type)
    except RelayError:
        return False
