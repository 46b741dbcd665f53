"""Products in 8 bits without samples: the scale of an operand is found each time, from its largest absolute value.

    y = matmul(x, w)      s = max(abs(x)) / 127; q = quantize(x, s); y = dequantize(quantized_matmul(q, w'), s t)

w' are the 8-bit numbers of a constant and t its scale. What a product is in 8 bits says its definition (`quantized`).
`relay.to_int8` measures the scales on samples instead, which saves finding them, and gives up the numbers out of range.
"""

from __future__ import annotations

import functools

from relay.errors import RelayError
from relay.ir.expr import Atom, AttributeValue, Binding, Block, Constant, Function, Module, OpCall, Var
from relay.ir.rebuild import map_parts, rebind, rebuild_block
from relay.ir.traverse import walk
from relay.ir.types import INT8, INT32, BaseType, TensorType
from relay.operator import Emitter, Value, lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.deployment.weights import LARGEST, is_weight, scale_of, to_8_bits
from relay.transform.module_pass import module_pass

_SMALLEST = 1e-30  # of a scale: zeros have one, too


@module_pass
def quantize_nodes(module: Module, straight_through: bool = False) -> Module:
    """The module with those products and convolutions of floats in 8 bits that have such a form. With
    `straight_through` their derivatives are those of the float products; otherwise they are those of rounding, 0."""
    quantizer = _NodeQuantizer(straight_through)
    return map_bodies(module, lambda function: quantizer.block(function.body, {}))


def quantized_layers(module: Module) -> dict[Var, OpCall]:
    """The products that 8-bit numbers have, too, by their results."""
    return {
        b.targets[0]: b.value
        for function in module.functions.values()
        if isinstance(function, Function)
        for b in walk(function.body)
        if isinstance(b.value, OpCall) and has_quantized_form(b.value)
    }


def has_quantized_form(call: OpCall) -> bool:
    """True if a call is a product of two float tensors that there is in 8 bits."""
    operator = lookup(call.operator)
    types = [a.type if isinstance(a, Var | Constant) else None for a in call.arguments]
    if operator.numerics.quantized is None or len(types) != 2:
        return False
    emitter = Emitter()
    operands = []
    for type_ in types:
        if not isinstance(type_, TensorType) or not _is_float(type_):
            return False
        operands.append(emitter.value(Var("q", TensorType(INT8, type_.shape))))
    try:
        return isinstance(operator.numerics.quantized(*operands, **call.attributes), Value)
    except (RelayError, TypeError):
        return False


def _is_float(type_: TensorType) -> bool:
    return isinstance(type_.base, BaseType) and type_.base.name in ("float32", "float64")


def straight_through_bindings(binding: Binding, call: OpCall, quantized: Atom) -> list[Binding]:
    """The bindings of a product whose value is another one, computed in 8 bits, and whose derivative is its own."""
    (target,) = binding.targets
    exact = Var(target.name, target.type, target.span)
    return [Binding((exact,), call), Binding((target,), OpCall("straight_through", (exact, quantized), {}, call.span))]


class _NodeQuantizer:
    def __init__(self, straight_through: bool) -> None:
        self.straight_through = straight_through

    def block(self, block: Block, around: dict[Atom, tuple[Atom, Value]]) -> Block:
        """A block in which the operands `around` are quantized already: their 8-bit numbers and scales."""
        done = dict(around)
        bindings: list[Binding] = []
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, OpCall) and has_quantized_form(call):
                bindings += self._product(binding, call, done)
            else:
                bindings.append(rebind(binding, map_parts(call, block=functools.partial(self.block, around=done))))
        return rebuild_block(block, bindings, block.terminator)

    def _product(self, binding: Binding, call: OpCall, done: dict[Atom, tuple[Atom, Value]]) -> list[Binding]:
        emitter = Emitter(call.span)
        pairs = []
        for atom in call.arguments:
            if atom not in done:
                done[atom] = _operand(emitter, atom)
            pairs.append((emitter.value(done[atom][0]), emitter.value(done[atom][1].atom)))
        form = lookup(call.operator).numerics.quantized
        assert form is not None
        product = form(*(whole for whole, _ in pairs), **call.attributes)
        zero = emitter.constant(0, INT32)
        made = emitter.call(lookup("dequantize"), (product, pairs[0][1] * pairs[1][1], zero), {"axis": -1})
        if self.straight_through:
            return [*emitter.bindings, *straight_through_bindings(binding, call, made.atom)]
        *before, last = emitter.bindings
        return [*before, Binding(binding.targets, last.value)]


def _operand(emitter: Emitter, atom: Atom) -> tuple[Atom, Value]:
    """An operand in 8 bits, and its scale."""
    value = emitter.value(atom)
    if isinstance(atom, Constant) and is_weight(atom, 1):
        scale = scale_of(atom.value)
        return Constant(to_8_bits(atom.value, scale), atom.span), emitter.constant(scale, value.base)
    largest = value.op("abs").op("max") if value.size != 0 else emitter.constant(0.0, value.base)
    found = (largest * (1 / LARGEST)).op("maximum", _SMALLEST)
    attributes: dict[str, AttributeValue] = {"axis": -1, "out_dtype": INT8}
    return emitter.call(lookup("quantize"), (value, found, emitter.constant(0, INT32)), attributes).atom, found
