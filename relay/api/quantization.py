"""Post-training quantization: products and convolutions in 8 bits, with scales calibrated on samples.

    y = dense(x, w)       q = quantize(x, s); v = quantize(w, t); y = dequantize(quantized_dense(q, v), s t)

The 8-bit form of a product is in its definition (`quantized`). A scale is a power of two, so that multiplying by it is
a shift on machines that have nothing else (Moreau and others: VTA, 2019), or, with `power_of_two=False`, what fits the
range exactly. There is no zero point: the numbers from -127 to 127 stand for the range [-a, a]. The range that a tensor
had in the samples is chosen by

    max           the largest absolute value
    percentile    the value below which this many percent of the absolute values are: few that are far out do not count
    kl            the range whose 8-bit histogram tells least of the samples' histogram apart (Kullback and Leibler's
                  divergence, after Migacz: 8-bit inference with TensorRT, 2017)

Every product that some sample reaches is quantized, also in branches, loops and functions: its operands' values are
those of all times that it is computed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.api.integer_programs import float_results, to_integers
from relay.api.modules import from_module
from relay.api.templates import definition_of, readable_operand
from relay.calling.executable import Executable
from relay.compilation.stages import DEFAULT_LEVEL, CompiledSignature, check_target
from relay.errors import Span
from relay.eval.watching import watch
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Atom, AttributeValue, Binding, Block, Constant, Expr, Module, OpCall, Var
from relay.ir.rebuild import map_blocks
from relay.ir.types import INT8, INT32, BaseType, TensorType
from relay.operator import Emitter, lookup
from relay.text.display.programs import program_html
from relay.text.printer import to_text
from relay.transform.core.rebuilding import map_bodies
from relay.transform.deployment.nodes import quantized_layers, straight_through_bindings
from relay.transform.deployment.weights import to_8_bits
from relay.transform.pipeline import optimize

Method: TypeAlias = Literal["max", "percentile", "kl"]
LARGEST = 127
_BINS = 2048
_LEVELS = 128  # of an absolute value in 8 bits


@attrs.frozen
class Layer:
    """A product that computes in 8 bits.

    `scales` are those of its operands, `times` says how often the samples computed it. `error` is the error that it
    makes by itself, on the operands that the float program has, and `total` what the quantized program has lost there:
    the root of the mean square of the difference, relative to that of the float program's values. (Where a run-time
    choice falls otherwise in the quantized program, `total` is of those times that both compute the product.)
    """

    operator: str
    span: Span | None
    scales: tuple[float, float]
    error: float
    total: float
    times: int = 1

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        return f"{place}{self.operator}: error {self.error:.2%}, in all {self.total:.2%}"


class QuantizedProgram:
    """A quantized program, which is called with arrays and from other programs, and its layers, in order. `module` is
    in the core; `function` is the program as a decorated function: it is interpreted, differentiated, batched."""

    def __init__(self, module: Module, layers: tuple[Layer, ...]) -> None:
        self.module, self.layers = module, layers

    def __str__(self) -> str:
        return "\n".join(map(str, self.layers))

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled program."""
        return self._program(list(arguments))

    @functools.cached_property
    def function(self) -> RelayFunction:
        """The program as a decorated function. Raises CompileError where `relay.from_module` does."""
        return from_module(self.module)

    @property
    def __relay__(self) -> Definition | DerivedDefinition:
        """The definition that programs call."""
        definition: Definition | DerivedDefinition = self.function.__relay__
        return definition

    @property
    def __relay_function__(self) -> RelayFunction:
        """The function that `relay.vmap`, `relay.grad` and other transformations take in place of it."""
        function: RelayFunction = self.function
        return function

    def interpret(self, *arguments: Any) -> Any:
        """Run the program on the reference interpreter."""
        return self.function.interpret(*arguments)

    def _repr_html_(self) -> str:
        return program_html(self.module.entry, "", to_text(self.module, elide=True))

    def compile(self, *, target: str = "cpu") -> Executable:
        """The compiled program by itself. With `target="vta"` its layers run on the accelerator, if the program is one
        of integers. Raises CompileError for other targets, and what the target does not have."""
        check_target(target)
        main = self.module.main
        assert main.result is not None
        signature = CompiledSignature(self.module, main.result, DEFAULT_LEVEL, target=target)
        signature.take_core(optimize(self.module))
        parameters = [(p.name, p.type) for p in main.parameters if p.type is not None]
        program = signature.program
        return Executable(main.name, program, parameters, main.result)

    @functools.cached_property
    def _program(self) -> Any:
        from relay.codegen.runtime.cpu import compile_module

        return compile_module(optimize(self.module))


def to_int8(
    function: RelayFunction | Module,
    samples: Iterable[Sequence[Any]],
    method: Method = "percentile",
    percentile: float = 99.99,
    *,
    power_of_two: bool = True,
    integer: bool = False,
    straight_through: bool = False,
) -> QuantizedProgram:
    """The function with those products and convolutions in 8 bits that a sample reaches. `samples` are arguments for
    it, each a sequence, of the types that it is to be compiled for. A module is one of the core, with its composite
    operators expanded. With `integer`, what is computed between products is in integers, too: sums and shifts. With
    `straight_through` derivatives are those of the float products, at the values that the operands have; otherwise they
    are those of rounding, 0.

    Raises ValueError without samples, for samples that give a product infinities or NaNs, for another method, a
    percentile that is none, integers with scales that are not powers of two, or integers with derivatives.
    """
    _check_options(method, percentile, power_of_two, integer, straight_through)
    given = [[np.asarray(a) for a in arguments] for arguments in samples]
    if not given:
        raise ValueError("quantization needs samples of the arguments")
    if not isinstance(function, Module):
        function = readable_operand(function)
        definition_of(function, "to_int8")
    module = function if isinstance(function, Module) else function.core(*given[0])
    layers = quantized_layers(module)
    before = _observe_layers(module, layers, given)
    reached = {target: call for target, call in layers.items() if before[target]}
    values = _operand_values(reached, before)
    scales = {
        atom: _scale(seen, "max" if isinstance(atom, Constant) else method, percentile, power_of_two)
        for atom, seen in values.items()
    }
    sums: dict[Var, Var] = {}
    made = map_bodies(
        module, lambda function: _LayerQuantizer(reached, scales, sums, straight_through).block(function.body, {})
    )
    if integer:
        ranges = _observe_layers(module, float_results(module), given)

        def scale_of(value: Var) -> float | None:
            if value in scales:
                return scales[value]
            seen = [one.result for one in ranges.get(value, ())]
            return _scale(seen, method, percentile, True) if seen else None

        made = to_integers(made, scale_of)
    by_sum = _observe_layers(made, sums.values(), given)
    after = {
        target: [attrs.evolve(time, result=_as_floats(time.result, reached[target], scales)) for time in by_sum[total]]
        for target, total in sums.items()
    }
    measured = [_layer(call, scales, before[target], after[target], len(given)) for target, call in reached.items()]
    return QuantizedProgram(made, tuple(measured))


# ---- what is quantized


@attrs.frozen(eq=False)
class _LayerCall:
    """One time that a product was computed: in which run, from what, and what it was."""

    run: int
    operands: Sequence[np.ndarray]
    result: np.ndarray


def _check_options(
    method: Method, percentile: float, power_of_two: bool, integer: bool, straight_through: bool
) -> None:
    if integer and straight_through:
        raise ValueError("a program in integers has no derivatives; leave integer or straight_through out")
    if integer and not power_of_two:
        raise ValueError("a program in integers has scales that are powers of two; leave power_of_two out")
    if method not in get_args(Method):
        raise ValueError(f"the method is {', '.join(get_args(Method))}; found {method!r}")
    if not 0 < percentile <= 100:
        raise ValueError(f"a percentile is above 0 and at most 100, found {percentile}")


def _operand_values(
    reached: Mapping[Var, OpCall], before: Mapping[Var, Sequence[_LayerCall]]
) -> dict[Atom, list[np.ndarray]]:
    """The values that operands of products have had. Raises ValueError for infinities and NaNs."""
    values: dict[Atom, list[np.ndarray]] = {}
    for target, call in reached.items():
        for position, atom in enumerate(call.arguments):
            seen = [one.operands[position] for one in before[target]]
            if not all(np.isfinite(array).all() for array in seen):
                place = f"{call.span}: " if call.span is not None else ""
                what = f"the samples give {call.operator} infinities or NaNs"
                raise ValueError(f"{place}{what}, which 8 bits do not have")
            values.setdefault(atom, []).extend(seen)
    return values


def _layer(
    call: OpCall,
    scales: Mapping[Atom, float],
    before: Sequence[_LayerCall],
    after: Sequence[_LayerCall],
    runs: int,
) -> Layer:
    """A quantized product, and the errors of its results: of the times that it was computed before and after."""
    own = [scales[a] for a in call.arguments]
    exact = [one.result for one in before]
    error = _error([_in_8_bits(call, one.operands, own) for one in before], exact)
    pairs = [
        (new.result, old.result)
        for run in range(runs)
        for new, old in zip(_of_run(after, run), _of_run(before, run), strict=False)
    ]
    total = _error([new for new, _ in pairs], [old for _, old in pairs])
    return Layer(call.operator, call.span, (own[0], own[1]), error, total, len(exact))


def _observe_layers(
    module: Module, targets: Iterable[Var], given: Sequence[Sequence[np.ndarray]]
) -> dict[Var, list[_LayerCall]]:
    """The times that these results are computed, in order."""
    times: dict[Var, list[_LayerCall]] = {target: [] for target in targets}

    def is_layer(binding: Binding) -> bool:
        return bool(binding.targets) and binding.targets[0] in times

    for run, arguments in enumerate(given):

        def notice(binding: Binding, operands: Sequence[np.ndarray], result: np.ndarray, run: int = run) -> None:
            times[binding.targets[0]].append(_LayerCall(run, operands, result))

        watch(module, arguments, notice, is_layer)
    return times


def _of_run(times: Iterable[_LayerCall], run: int) -> list[_LayerCall]:
    return [time for time in times if time.run == run]


# ---- scales


def _scale(values: Sequence[np.ndarray], method: str, percentile: float, power_of_two: bool) -> float:
    """The factor whose product with `LARGEST` covers the range of values: a power of two, if that is wanted."""
    absolute = np.abs(np.concatenate([np.asarray(v, np.float64).ravel() for v in values]))
    largest = float(absolute.max(initial=0.0))
    if largest == 0:
        return 1.0
    limit = largest
    if method == "percentile":
        limit = float(np.percentile(absolute, percentile)) or largest
    elif method == "kl":
        limit = _least_divergence(absolute, largest)
    return float(2.0 ** math.ceil(math.log2(limit / LARGEST))) if power_of_two else limit / LARGEST


def _least_divergence(absolute: np.ndarray, largest: float) -> float:
    """The range whose histogram in `_LEVELS` steps is nearest to that of the values."""
    counts, edges = np.histogram(absolute, _BINS, (0.0, largest))
    best, found = math.inf, largest
    for end in range(_LEVELS, _BINS + 1, _LEVELS // 8):
        inside = counts[:end].astype(np.float64)
        reference = inside.copy()
        reference[-1] += counts[end:].sum()  # what is clipped
        level = np.arange(end) * _LEVELS // end
        filled = inside > 0
        sums = np.bincount(level, inside, _LEVELS)
        sizes = np.bincount(level, filled, _LEVELS)
        spread = np.where(filled, sums[level] / np.maximum(sizes[level], 1), 0.0)
        divergence = _divergence(reference, spread)
        if divergence < best:
            best, found = divergence, float(edges[end])
    return found


def _divergence(one: np.ndarray, other: np.ndarray) -> float:
    """The sum of p log(p / q) of two histograms; a bin that only the first has counts as nearly empty in the other."""
    p, q = one / one.sum(), np.maximum(other / max(other.sum(), 1.0), 1e-12)
    here = p > 0
    return float(np.sum(p[here] * np.log(p[here] / q[here])))


# ---- the program


class _LayerQuantizer:
    """Puts 8-bit products in place of those in `layers`."""

    def __init__(
        self,
        layers: Mapping[Var, OpCall],
        scales: Mapping[Atom, float],
        sums: dict[Var, Var],
        straight_through: bool = False,
    ) -> None:
        """`sums` gets the 32-bit sums by the products' results."""
        self.straight_through = straight_through
        self.layers = layers
        self.scales = scales
        self.sums = sums

    def block(self, block: Block, around: Mapping[Atom, Atom]) -> Block:
        """A block in which the operands `around` are quantized already."""
        bindings: list[Binding] = []
        done = dict(around)
        for binding in block.bindings:
            target = binding.targets[0] if binding.targets else None
            if target is None or target not in self.layers:
                inside: Expr = map_blocks(binding.value, lambda inner: self.block(inner, done))
                bindings.append(Binding(binding.targets, inside))
                continue
            bindings += self._product(target, self.layers[target], done)
        return Block(tuple(bindings), block.terminator)

    def _product(self, target: Var, call: OpCall, done: dict[Atom, Atom]) -> list[Binding]:
        emitter = Emitter(call.span)
        operands = []
        for atom in call.arguments:
            if atom not in done:
                done[atom] = _quantized_operand(emitter, atom, self.scales[atom])
            operands.append(emitter.value(done[atom]))
        product = _product(call, operands)
        self.sums[target] = product.atom
        one, other = (self.scales[a] for a in call.arguments)
        assert isinstance(target.type, TensorType) and isinstance(target.type.base, BaseType)
        scale = emitter.constant(one * other, target.type.base)
        made = emitter.call(lookup("dequantize"), (product, scale, emitter.constant(0, INT32)), {"axis": -1})
        if self.straight_through:
            return [*emitter.bindings, *straight_through_bindings(Binding((target,), call), call, made.atom)]
        *before, last = emitter.bindings
        return [*before, Binding((target,), last.value)]


def _quantized_operand(emitter: Emitter, atom: Atom, scale: float) -> Atom:
    value = emitter.value(atom)
    attributes: dict[str, AttributeValue] = {"axis": -1, "out_dtype": INT8}
    if isinstance(atom, Constant):
        return Constant(to_8_bits(atom.value, scale), atom.span)
    operands = (value, emitter.constant(scale, value.base), emitter.constant(0, INT32))
    return emitter.call(lookup("quantize"), operands, attributes).atom


def _product(call: OpCall, operands: Sequence[Any]) -> Any:
    quantized = lookup(call.operator).numerics.quantized
    assert quantized is not None
    return quantized(*operands, **call.attributes)


# ---- errors


def _as_floats(sums: np.ndarray, call: OpCall, scales: Mapping[Atom, float]) -> np.ndarray:
    """The floats that the 32-bit sums of a product stand for."""
    return np.asarray(sums.astype(np.float64) * math.prod(scales[a] for a in call.arguments))


def _in_8_bits(call: OpCall, arrays: Sequence[np.ndarray], scales: Sequence[float]) -> np.ndarray:
    """The result of a product computed in 8 bits."""
    emitter = Emitter()
    constants = [emitter.value(Constant(to_8_bits(a, s))) for a, s in zip(arrays, scales, strict=True)]
    _product(call, constants)
    values: dict[Atom, np.ndarray] = {}
    result = np.zeros(0)
    for binding in emitter.bindings:
        assert isinstance(binding.value, OpCall)
        operands = [a.value if isinstance(a, Constant) else values[a] for a in binding.value.arguments]
        result = np.asarray(lookup(binding.value.operator).evaluate(operands, binding.value.attributes))
        values[binding.targets[0]] = result
    return np.asarray(result.astype(arrays[0].dtype) * math.prod(scales), arrays[0].dtype)


def _error(found: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    if not found:  # both never compute the product at once
        return 0.0
    one, other = (np.concatenate([np.asarray(a, np.float64).ravel() for a in part]) for part in (found, exact))
    norm = float(np.sqrt(np.mean(other**2))) if other.size else 0.0
    difference = float(np.sqrt(np.mean((one - other) ** 2))) if other.size else 0.0
    return difference / norm if norm else float(difference > 0)
