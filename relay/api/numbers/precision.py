"""Programs in few bits: products in a format, and the cheapest precision of each value that keeps a bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.api.modules import from_module
from relay.api.numbers.formats import E4M3, E5M2, NumberFormat, as_format
from relay.api.numbers.rewriting import Precision, map_calls, scaled, with_precisions
from relay.errors import Span, TypeMismatch
from relay.eval import interpreter
from relay.ir.expr import Binding, Function, Module, OpCall, Var
from relay.ir.traverse import walk
from relay.ir.types import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, BaseType, TensorType
from relay.operator import Emitter, lookup
from relay.support.tables import aligned_rows
from relay.transform.deployment.nodes import has_quantized_form

FORMATS: tuple[Precision, ...] = (E5M2, E4M3, BFLOAT16, FLOAT16, FLOAT32, FLOAT64)
"""The precisions that are tried; of two with as many bits the first is the cheaper one."""


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
        operands = [scaled(emitter.value(atom), found) for atom in call.arguments]
        made = OpCall(call.operator, tuple(o.atom for o in operands), call.attributes, call.span)
        return [*emitter.bindings, Binding(binding.targets, made)]

    return from_module(map_calls(function.core(*arguments), change))


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
    """The precisions that were found, and the program with them, as a function. `error` is what they make together on
    the samples; `bits` is the average over the elements of the values, and `bits_before` that of the program."""

    function: RelayFunction
    bindings: tuple[BindingPrecision, ...]
    error: float
    bits: float
    bits_before: float

    def __str__(self) -> str:
        rows = [["value", "operator", "precision", "error alone"]]
        rows += [[b.name, b.operator, b.precision, f"{b.error:.1e}"] for b in self.bindings]
        summary = f"error {self.error:.1e}, {self.bits:.1f} bits on average instead of {self.bits_before:.1f}"
        return "\n".join([*aligned_rows(rows, "<<<>"), summary])


def choose_precision(
    function: RelayFunction,
    samples: Iterable[Sequence[Any]],
    *,
    error: float,
    formats: Sequence[NumberFormat | BaseType | str] = FORMATS,
) -> PrecisionChoice:
    """The cheapest precision of each value of floats with which the results on the samples, arguments for the function,
    stay within `error` of the program in float64: the root of the mean square of the difference, relative to that of
    the result. `formats` are tried from the fewest bits to the most: first one for all values, then fewer bits for each
    value, the largest first (a search like that of Precimonious: Rubio-Gonzalez and others, 2013).

    Raises ValueError without samples, for an error that is not above 0, and for one that no format keeps.
    """
    given = [tuple(arguments) for arguments in samples]
    if not given or not error > 0:
        raise ValueError("a precision is chosen on samples of the arguments, and for an error above 0")
    module = function.core(*given[0])
    targets = _float_targets(module)
    measure = _Measure(module, targets, given)
    tried = sorted(map(as_format, formats), key=_bits)
    chosen = _uniform(measure, targets, tried, error)
    for target in sorted(targets, key=lambda t: -_elements(t)):
        for precision in tried:
            if _bits(precision) >= _bits(chosen[target]):
                break
            if measure.error({**chosen, target: precision}) <= error:
                chosen[target] = precision
                break
    rows = tuple(_row(measure, target, call, chosen[target]) for target, call in targets.items())
    total = sum(map(_elements, targets)) or 1
    before, after = (sum(_elements(t) * _bits(p[t]) for t in targets) / total for p in (measure.own, chosen))
    made = from_module(with_precisions(module, chosen))
    return PrecisionChoice(made, rows, measure.error(chosen), after, before)


class _Measure:
    """The errors of a program with some precisions, on samples, from the same program in float64."""

    def __init__(self, module: Module, targets: Mapping[Var, OpCall], samples: Sequence[Sequence[Any]]) -> None:
        self.module, self.samples = module, samples
        self.own: Mapping[Var, Precision] = {target: _base(target) for target in targets}
        self._wanted = self._results(dict.fromkeys(targets, FLOAT64))

    def _results(self, chosen: Mapping[Var, Precision]) -> np.ndarray:
        changed = with_precisions(self.module, chosen)
        with np.errstate(all="ignore"):
            return np.concatenate([_leaves(interpreter.run(changed, arguments)) for arguments in self.samples])

    def error(self, chosen: Mapping[Var, Precision]) -> float:
        """The error with these precisions, infinite where a result is not a number."""
        norm = float(np.sqrt(np.mean(self._wanted**2))) or 1.0
        difference = float(np.sqrt(np.mean((self._results(chosen) - self._wanted) ** 2)))
        return difference / norm if np.isfinite(difference) else float("inf")


def _uniform(
    measure: _Measure, targets: Mapping[Var, OpCall], tried: Sequence[Precision], error: float
) -> dict[Var, Precision]:
    """The first of the precisions, and of the program's own, that keeps the bound if all values have it. Raises
    ValueError."""
    for precision in tried:
        chosen: dict[Var, Precision] = dict.fromkeys(targets, precision)
        if any(_bits(precision) > _bits(p) for p in measure.own.values()):
            break
        if measure.error(chosen) <= error:
            return chosen
    own = dict(measure.own)
    least = measure.error(own)
    if least <= error:
        return own
    for precision in tried:
        if all(_bits(precision) > _bits(p) for p in own.values()):
            chosen = dict.fromkeys(targets, precision)
            if measure.error(chosen) <= error:
                return chosen
    names = ", ".join(p.name for p in tried)
    raise ValueError(
        f"no precision of {names} keeps an error of {error:.1e}: as it is written, the program has {least:.1e}"
    )


def _row(measure: _Measure, target: Var, call: OpCall, precision: Precision) -> BindingPrecision:
    alone = measure.error({**measure.own, target: precision})
    return BindingPrecision(target.name, call.operator, call.span, precision.name, _bits(precision), alone)


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
