"""Programs in few bits: products in a format, and the cheapest precision of each value that keeps a bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.api.modules import from_module
from relay.api.numbers.formats import E4M3, E5M2, NumberFormat, as_format
from relay.errors import Span, TypeMismatch
from relay.eval import interpreter
from relay.ir.expr import Binding, Block, Function, Module, OpCall, Var
from relay.ir.rebuild import map_parts, rebind, rebuild_block
from relay.ir.traverse import walk
from relay.ir.types import BaseType, TensorType
from relay.operator import Emitter, Value, lookup
from relay.support.tables import aligned_rows
from relay.transform.core.rebuilding import map_bodies
from relay.transform.deployment.nodes import has_quantized_form

Precision: TypeAlias = NumberFormat | BaseType

FORMATS: tuple[Precision, ...] = (E5M2, E4M3, BaseType("bfloat16"), BaseType("float16"))
"""The precisions that are tried, the cheapest first."""


def with_products_in(format_: NumberFormat | str, function: RelayFunction, *arguments: Any) -> RelayFunction:
    """The function at the types of these arguments, with the operands of products and convolutions in a format. Each
    operand is divided by a power of two before, with which its largest element is at most the number that the format's
    tensors are scaled to, and multiplied afterwards. Derivatives are straight through. Raises what a call raises."""
    found = as_format(format_)
    if not isinstance(found, NumberFormat):
        raise TypeMismatch(f"products are in a number format, found {format_!r}")

    def change(binding: Binding, call: OpCall) -> list[Binding] | None:
        if not has_quantized_form(call):
            return None
        emitter = Emitter(call.span)
        operands = [_scaled(emitter.value(atom), found) for atom in call.arguments]
        made = OpCall(call.operator, tuple(o.atom for o in operands), call.attributes, call.span)
        return [*emitter.bindings, Binding(binding.targets, made)]

    return from_module(_map_calls(function.core(*arguments), change))


def _scaled(x: Value, format_: NumberFormat) -> Value:
    largest = x.op("abs").op("max").op("stop_gradient") if x.size != 0 else x.emitter.constant(1.0, x.base)
    exponent = (largest * (1 / format_.scaled_to)).op("maximum", 1e-30).op("log2").op("ceil")
    scale = x.emitter.constant(2.0, x.base) ** exponent
    return format_.round_value(x / scale) * scale


@attrs.frozen
class BindingPrecision:
    """The precision of one value of a program: its name and operator, where it is computed, the precision's name and
    bits, and the error of the result with this value alone in that precision."""

    name: str
    operator: str
    span: Span | None
    precision: str
    bits: int
    error: float


@attrs.frozen(eq=False)
class PrecisionChoice:
    """The precisions that were found, and the program with them, as a function: values are rounded where they are
    computed. `error` is what they make together, `bits` the average over the elements of the values."""

    function: RelayFunction
    bindings: tuple[BindingPrecision, ...]
    error: float
    bits: float

    def __str__(self) -> str:
        rows = [["value", "operator", "precision", "error alone"]]
        rows += [[b.name, b.operator, b.precision, f"{b.error:.1e}"] for b in self.bindings]
        return "\n".join([*aligned_rows(rows, "<<<>"), f"error {self.error:.1e}, {self.bits:.1f} bits on average"])


def choose_precision(
    function: RelayFunction,
    samples: Iterable[Sequence[Any]],
    *,
    error: float,
    formats: Sequence[NumberFormat | BaseType | str] = FORMATS,
) -> PrecisionChoice:
    """The cheapest precision of each value of floats, from the largest value to the smallest, with which the results on
    the samples, arguments for the function, stay within `error`: the root of the mean square of the difference,
    relative to that of the result. `formats` are tried in their order; what none of them keeps stays as it is.

    Raises ValueError without samples, and for an error that is not above 0.
    """
    given = [tuple(arguments) for arguments in samples]
    if not given or not error > 0:
        raise ValueError("a precision is chosen on samples of the arguments, and for an error above 0")
    module = function.core(*given[0])
    tried = [as_format(f) for f in formats]
    exact = [_leaves(interpreter.run(module, arguments)) for arguments in given]
    chosen: dict[Var, Precision] = {}
    rows: dict[Var, BindingPrecision] = {}
    targets = _float_targets(module)
    for target, call in sorted(targets.items(), key=lambda item: -_elements(item[0])):
        for precision in tried:
            if _error(_with_precisions(module, {**chosen, target: precision}), given, exact) <= error:
                alone = _error(_with_precisions(module, {target: precision}), given, exact)
                chosen[target] = precision
                rows[target] = BindingPrecision(
                    target.name, call.operator, call.span, precision.name, _bits(precision), alone
                )
                break
        else:
            base = _base(target)
            rows[target] = BindingPrecision(target.name, call.operator, call.span, base.name, _bits(base), 0.0)
    result = _with_precisions(module, chosen)
    total = sum(map(_elements, targets)) or 1
    average = sum(_elements(t) * rows[t].bits for t in targets) / total
    made = tuple(rows[t] for t in targets)
    return PrecisionChoice(from_module(result), made, _error(result, given, exact), average)


def _float_targets(module: Module) -> dict[Var, OpCall]:
    """The values of floats that operators compute, in order, but those that only move others."""
    return {
        b.targets[0]: b.value
        for function in module.functions.values()
        if isinstance(function, Function)
        for b in walk(function.body)
        if isinstance(b.value, OpCall)
        and b.value.arguments
        and lookup(b.value.operator).indexing.kind is None
        and isinstance(b.targets[0].type, TensorType)
        and isinstance(b.targets[0].type.base, BaseType)
        and b.targets[0].type.base.name in ("float32", "float64")
    }


def _with_precisions(module: Module, chosen: Mapping[Var, Precision]) -> Module:
    def change(binding: Binding, call: OpCall) -> list[Binding] | None:
        target = binding.targets[0]
        precision = chosen.get(target)
        if precision is None:
            return None
        emitter = Emitter(call.span)
        whole = Var(target.name, target.type, target.span)
        value = emitter.value(whole)
        if isinstance(precision, NumberFormat):
            value = _scaled(value, precision)
        else:
            value = value.op("cast", dtype=precision).op("cast", dtype=_base(target))
        return [Binding((whole,), call), *emitter.bindings, Binding((target,), value.atom)]

    return _map_calls(module, change)


def _map_calls(module: Module, change: Any) -> Module:
    def block(given: Block) -> Block:
        bindings: list[Binding] = []
        for binding in given.bindings:
            value = map_parts(binding.value, block=block)
            made = change(binding, value) if isinstance(value, OpCall) else None
            bindings += [rebind(binding, value)] if made is None else made
        return rebuild_block(given, bindings, given.terminator)

    return map_bodies(module, lambda function: block(function.body))


def _base(target: Var) -> BaseType:
    assert isinstance(target.type, TensorType) and isinstance(target.type.base, BaseType)
    return target.type.base


def _bits(precision: Precision) -> int:
    return precision.bits if isinstance(precision, NumberFormat) else precision.dtype.itemsize * 8


def _elements(target: Var) -> int:
    assert isinstance(target.type, TensorType)
    return int(np.prod([d for d in target.type.shape if isinstance(d, int)], initial=1))


def _leaves(result: Any) -> np.ndarray:
    if isinstance(result, tuple):
        return np.concatenate([_leaves(part) for part in result]) if result else np.zeros(0)
    return np.asarray(result, np.float64).ravel()


def _error(module: Module, given: Sequence[Sequence[Any]], exact: Sequence[np.ndarray]) -> float:
    found = np.concatenate([_leaves(interpreter.run(module, arguments)) for arguments in given])
    wanted = np.concatenate(list(exact))
    norm = float(np.sqrt(np.mean(wanted**2))) or 1.0
    difference = float(np.sqrt(np.mean((found - wanted) ** 2)))
    return difference / norm if np.isfinite(difference) else float("inf")
