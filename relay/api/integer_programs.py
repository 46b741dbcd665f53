"""Quantized programs that compute between their products in integers, too, with sums and shifts.

A float in such a program is the integer q times 2^-e. With d = e - f for a number of the other exponent f

    dequantize(q, 2^-e)      q                        relu(q)            max(q, 0), behind the shift
    q + r, both with e       q + r                    q + constant       q + round(constant 2^e)
    q + r, r with f < e      q + (r << d)             max_pool2d(q)      of the 8-bit number
    quantize(q, 2^-f)        min(max((q + 2^(d-1)) >> d, -128), 127) as int8: to the nearest, halves up

What is read more than once, and what other operators read, is kept in 8 bits, with a scale of its own; so is the first
of two products that are added. Results of the program, and what other operators read of dense products, are floats of
the 32-bit sums.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs
import numpy as np

from relay.ir.expr import Atom, AttributeValue, Binding, Block, Constant, Expr, Function, Module, OpCall, Var
from relay.ir.rebuild import map_blocks
from relay.ir.traverse import all_blocks, operands, terminator_operands, walk
from relay.ir.types import INT8, INT32, BaseType, TensorType
from relay.operator import Emitter, IndexKind, Value, lookup
from relay.transform.core.rebuilding import map_bodies

_LARGEST = 2**30


@attrs.frozen(eq=False)
class _Integers:
    """The integers that a variable's floats are, 2^exponent times as large."""

    value: Atom
    exponent: int
    is_kept: bool = False  # in 8 bits
    is_positive: bool = False  # the larger of this and zero, which is still to be computed
    is_sum: bool = False  # nothing but sums since a product of rows


def float_results(module: Module) -> list[Var]:
    """The variables that `to_integers` may ask a scale for."""
    return [
        b.targets[0]
        for function in module.functions.values()
        if isinstance(function, Function)
        for b in walk(function.body)
        if isinstance(b.value, OpCall) and b.targets and _is_float(b.targets[0])
    ]


_Scale: TypeAlias = "Callable[[Var], float | None]"


def to_integers(module: Module, scale: _Scale) -> Module:
    """A quantized core module with integers between its products. `scale` gives the power of two that a variable's
    8-bit numbers count, None where it is not known."""
    return map_bodies(module, lambda function: _IntegerRewriter(function, scale).block(function.body, {}))


def _is_float(atom: object) -> bool:
    type_ = getattr(atom, "type", None)
    return isinstance(type_, TensorType) and isinstance(type_.base, BaseType) and type_.base.is_float


class _IntegerRewriter:
    """One function."""

    def __init__(self, function: Function, scale: _Scale) -> None:
        self.scale = scale
        self.uses: Counter[Var] = Counter()
        self.foreign: Counter[Var] = Counter()  # those by what has no integers, or in another block
        self.returned: Counter[Var] = Counter()
        self.order: dict[Atom, int] = {}
        for block in all_blocks(function.body):
            here = {target for binding in block.bindings for target in binding.targets}
            for binding in block.bindings:
                value = binding.value
                has_rule = isinstance(value, OpCall) and (value.operator in _RULES or _moves(value))
                for atom in operands(value):
                    if isinstance(atom, Var):
                        self.uses[atom] += 1
                        self.foreign[atom] += not has_rule or atom not in here
            for atom in terminator_operands(block.terminator):
                if isinstance(atom, Var):
                    self.uses[atom] += 1
                    self.foreign[atom] += 1
                    self.returned[atom] += block is function.body

    def block(self, block: Block, around: Mapping[Var, _Integers]) -> Block:
        """A block in which variables of those around are integers."""
        known = dict(around)
        out: list[Binding] = []
        pending: dict[Var, _Integers] = {}  # whose floats nobody has asked for
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, OpCall) or len(binding.targets) != 1:
                inside: Expr = map_blocks(call, lambda inner: self.block(inner, known))
                out.append(Binding(binding.targets, inside))
                continue
            target = binding.targets[0]
            emitter = Emitter(call.span)
            rule = _RULES.get(call.operator, _movement if _moves(call) else None)
            made = rule(self, emitter, target, call, known) if rule is not None else None
            if made is None:
                for atom in call.arguments:
                    if isinstance(atom, Var) and atom in pending:
                        before = Emitter(call.span)
                        last = self._as_float(before, atom, pending.pop(atom))
                        out += [*before.bindings, last]
                out.append(binding)
                _note_quantized(target, call, known)
                continue
            out += emitter.bindings
            if isinstance(made, Binding):
                out.append(made)
                continue
            self.order[target] = len(self.order)
            bindings, has_floats = self._define(target, made, known)
            out += bindings
            if not has_floats:
                pending[target] = known[target]
        return Block(tuple(out), block.terminator)

    def _define(self, target: Var, made: _Integers, known: dict[Var, _Integers]) -> tuple[list[Binding], bool]:
        """The bindings for a variable, in 8 bits unless its only reader takes its 32 bits; and True if it has
        floats, too."""
        emitter = Emitter(target.span)
        uses, foreign = self.uses[target], self.foreign[target]
        if foreign and foreign == uses and (made.is_sum or foreign == self.returned[target]):
            last = self._as_float(emitter, target, made)
            return [*emitter.bindings, last], True
        scale = self.scale(target)
        if (uses > 1 or foreign) and not made.is_kept and scale is not None:
            made = _in_8_bits(emitter, made, _exponent(scale))
        known[target] = made
        if foreign:
            last = self._as_float(emitter, target, made)
            return [*emitter.bindings, last], True
        return emitter.bindings, False

    def _as_float(self, emitter: Emitter, target: Var, made: _Integers) -> Binding:
        assert isinstance(target.type, TensorType) and isinstance(target.type.base, BaseType)
        scale = emitter.constant(2.0**-made.exponent, target.type.base)
        zero = emitter.constant(0, INT32)
        emitter.call(lookup("dequantize"), (_in_32_bits(emitter, made, made.exponent), scale, zero), {"axis": -1})
        last = emitter.bindings.pop()
        return Binding((target,), last.value)


def _exponent(scale: float) -> int:
    return -round(math.log2(scale))


def _call(emitter: Emitter, name: str, *given: object, **attributes: AttributeValue) -> Value:
    return emitter.call(lookup(name), given, attributes)


def _in_8_bits(emitter: Emitter, made: _Integers, exponent: int) -> _Integers:
    """The numbers in 8 bits, with another exponent."""
    value = emitter.value(made.value)
    shift = made.exponent - exponent
    wide = value if value.base == INT32 else _call(emitter, "cast", value, dtype=INT32)
    if shift > 0:
        shift = min(shift, 31)
        half = _call(emitter, "add", wide, emitter.constant(1 << (shift - 1), INT32))
        wide = _call(emitter, "right_shift", half, emitter.constant(shift, INT32))
    elif shift < 0:
        wide = _call(emitter, "left_shift", wide, emitter.constant(-shift, INT32))
    low = _call(emitter, "maximum", wide, emitter.constant(0 if made.is_positive else -128, INT32))
    high = _call(emitter, "minimum", low, emitter.constant(127, INT32))
    return _Integers(_call(emitter, "cast", high, dtype=INT8).atom, exponent, is_kept=True)


def _note_quantized(target: Var, call: OpCall, known: dict[Var, _Integers]) -> None:
    """Floats that are quantized are these 8-bit numbers from there on."""
    if call.operator != "quantize" or not isinstance(call.arguments[0], Var):
        return
    size = _power_of_two(call)
    if size is not None:
        known[call.arguments[0]] = _Integers(target, _exponent(size), is_kept=True)


def _in_32_bits(emitter: Emitter, made: _Integers, exponent: int) -> Value:
    """The numbers in 32 bits, with an exponent that is not smaller."""
    value = emitter.value(made.value)
    if value.base != INT32:
        value = _call(emitter, "cast", value, dtype=INT32)
    if made.is_positive:
        value = _call(emitter, "maximum", value, emitter.constant(0, INT32))
    if exponent == made.exponent:
        return value
    return _call(emitter, "left_shift", value, emitter.constant(exponent - made.exponent, INT32))


def _power_of_two(call: OpCall) -> float | None:
    """The scale of a `quantize` to 8 bits without a zero point."""
    _, scale, zero = call.arguments
    size = _number(scale)
    if size is None or _number(zero) != 0 or math.log2(size) % 1 or call.attributes.get("out_dtype") != INT8:
        return None
    return size


# ---- operators: the integers of a result; a binding, where that is one of 8 bits; None for floats

_Known = Mapping[Var, _Integers]


def _form(known: _Known, atom: Atom) -> _Integers | None:
    return known.get(atom) if isinstance(atom, Var) else None


def _number(atom: Atom) -> float | None:
    """A single number."""
    return float(atom.value) if isinstance(atom, Constant) and atom.value.ndim == 0 else None


def _dequantize(
    r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known
) -> _Integers | Binding | None:
    value, scale, zero = call.arguments
    size, offset = _number(scale), _number(zero)
    if size is None or offset != 0 or math.log2(size) % 1 or getattr(value, "type", None) is None:
        return None
    rank = value.type.rank  # type: ignore[union-attr]
    return _Integers(value, _exponent(size), is_sum=rank < 4)


def _quantize(
    r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known
) -> _Integers | Binding | None:
    made, size = _form(known, call.arguments[0]), _power_of_two(call)
    if made is None or size is None:
        return None
    if made.is_kept and made.exponent == _exponent(size):
        return Binding((target,), made.value)
    kept = _in_8_bits(emitter, made, _exponent(size))
    assert kept.value is emitter.bindings[-1].targets[0]
    return Binding((target,), emitter.bindings.pop().value)


def _add(r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known) -> _Integers | Binding | None:
    one, other = call.arguments
    first, second = _form(known, one), _form(known, other)
    if first is None and second is not None:
        one, other, first, second = other, one, second, first
    if first is None:
        return None
    if second is None:
        if not isinstance(other, Constant):
            return None
        scaled = np.round(other.value.astype(np.float64) * 2.0**first.exponent)
        if not np.isfinite(scaled).all() or np.abs(scaled).max(initial=0) > _LARGEST:
            return None
        total = _call(emitter, "add", _in_32_bits(emitter, first, first.exponent), emitter.constant(scaled, INT32))
        return _Integers(total.atom, first.exponent, is_sum=first.is_sum)
    if getattr(one, "type", None) is None or one.type.shape != other.type.shape:  # type: ignore[union-attr]
        return None
    if not first.is_kept and not second.is_kept:  # the one that was there first
        early, late = sorted((one, other), key=lambda atom: r.order.get(atom, -1))
        assert isinstance(early, Var) and isinstance(late, Var)
        scale = r.scale(early)
        if scale is None:
            return None
        second = _in_8_bits(emitter, known[early], _exponent(scale))
        first = known[late]
    exponent = max(first.exponent, second.exponent)
    total = _call(emitter, "add", _in_32_bits(emitter, first, exponent), _in_32_bits(emitter, second, exponent))
    return _Integers(total.atom, exponent, is_sum=first.is_sum and second.is_sum)


def _relu(
    r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known
) -> _Integers | Binding | None:
    made = _form(known, call.arguments[0])
    if made is None:
        return None
    return attrs.evolve(made, is_positive=True, is_kept=False, is_sum=False)


def _extremum_with_number(
    r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known
) -> _Integers | Binding | None:
    """The larger or smaller of a value and a number."""
    one, other = call.arguments
    value, limit = (one, other) if isinstance(other, Constant) else (other, one)
    made, number = _form(known, value), _number(limit)
    if made is None or number is None or abs(number) * 2.0**made.exponent > _LARGEST:
        return None
    scaled = emitter.constant(round(number * 2.0**made.exponent), INT32)
    return _Integers(
        _call(emitter, call.operator, _in_32_bits(emitter, made, made.exponent), scaled).atom, made.exponent
    )


def _max_pool(
    r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known
) -> _Integers | Binding | None:
    (value,) = call.arguments
    made = _form(known, value)
    if made is None:
        return None
    assert isinstance(value, Var)
    scale = r.scale(value)
    if scale is None and not made.is_kept:
        return None
    kept = made if scale is None or made.is_kept else _in_8_bits(emitter, made, _exponent(scale))
    pooled = emitter.call(lookup(call.operator), (emitter.value(kept.value),), call.attributes)
    return _Integers(pooled.atom, kept.exponent, is_kept=True)


def _moves(call: OpCall) -> bool:
    return lookup(call.operator).indexing.kind in (IndexKind.PERMUTE, IndexKind.RESHAPE) and len(call.arguments) == 1


def _movement(
    r: _IntegerRewriter, emitter: Emitter, target: Var, call: OpCall, known: _Known
) -> _Integers | Binding | None:
    """Elements at other places: of the 8-bit numbers."""
    return _max_pool(r, emitter, target, call, known)


_Rule = Callable[[_IntegerRewriter, Emitter, Var, OpCall, _Known], "_Integers | Binding | None"]

_RULES: Mapping[str, _Rule] = {
    "dequantize": _dequantize,
    "quantize": _quantize,
    "add": _add,
    "relu": _relu,
    "maximum": _extremum_with_number,
    "minimum": _extremum_with_number,
    "max_pool2d": _max_pool,
}
"""The operators that integers have."""
