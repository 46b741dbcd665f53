"""Sample calls of every registered operator, and what the tests compute from one: reference, gradient, requirement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import relay.ops  # noqa: F401  registers the operators
from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import BOOL, BaseType, TensorType
from relay.operator import Emitter, Operator, Pattern, Relation, Value, lookup, operators
from relay.ops.samples import ELEMENTWISE_SHAPES, case, cases

Array = np.ndarray[Any, np.dtype[Any]]

OPERATORS = {
    operator.name: operator
    for operator in operators()
    if operator.compute is not None and operator.reference.__module__.startswith("relay.")  # not those of other tests
}
DTYPES = ("float32", "float64", "int32", "uint8", "bool")


# ---- the samples


@attrs.frozen(eq=False)
class Sample:
    """One call of an operator on arrays."""

    operator: Operator
    operands: tuple[Array, ...]
    attributes: Mapping[str, Any]
    extreme: bool = False  # operands at the ends of the dtype's range, where finite differences mean nothing

    @property
    def types(self) -> list[TensorType]:
        return [Constant(operand).type for operand in self.operands]

    @property
    def result(self) -> TensorType:
        result = self.operator.infer(self.types, self.attributes)
        assert isinstance(result, TensorType)
        return result

    def __str__(self) -> str:
        return f"{self.operator.name}({', '.join(map(str, self.types))}, {dict(self.attributes)})"


def admits(operator: Operator, sample: Sequence[Array], attributes: Mapping[str, Any]) -> bool:
    """Whether the operator's base signature takes these dtypes."""
    if isinstance(operator.relation, Relation):
        signature, bound = operator.relation.base, {}
        for position, array in enumerate(sample):
            token, base = signature.token(position), Constant(array).type.base
            assert isinstance(base, BaseType)
            if token.classes is not None and base.base_class not in token.classes:
                return False
            if base != bound.setdefault(token.text, base if token.is_variable else BaseType(token.text)):
                return False
    return True


def default_sampler(operator: Operator) -> Callable[..., Any]:
    return cases(*(case(*shapes) for shapes in ELEMENTWISE_SHAPES[len(operator.operands)]))


def samples(operator: Operator) -> Iterator[Sample]:
    """The operator's samples in every dtype that it admits, and the corners of each dtype for elementwise ones."""
    sampler = operator.sampler or default_sampler(operator)
    seen = set()
    for dtype in DTYPES:
        for operands, attributes in sampler(np.random.default_rng(0), np.dtype(dtype)):
            _, filled = operator.bind((operands,) if operator.variadic else tuple(operands), attributes)
            key = (tuple((a.dtype.name, a.shape, a.tobytes()) for a in operands), tuple(filled.items()))
            if key not in seen and admits(operator, operands, filled):
                seen.add(key)
                yield Sample(operator, tuple(operands), filled)
        if operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST) and not operator.attributes:
            corners = corner_operands(dtype, operator)
            if admits(operator, corners, {}):
                yield Sample(operator, tuple(corners), {}, extreme=True)


def corner_operands(dtype: str, operator: Operator) -> list[Array]:
    """All combinations of a dtype's special numbers."""
    if dtype == "bool":
        numbers = np.array([False, True])
    elif "float" in dtype:
        limits = np.finfo(dtype)
        one = [0.0, 1e-30, 1e-8, 0.3, 0.5, 1.0, 2.0, 7.3, 12.0, 88.0, 1e10, limits.tiny, limits.max, np.inf]
        numbers = np.array([*one, *(-x for x in one), np.nan, limits.tiny / 8], dtype)
    else:
        limits_ = np.iinfo(dtype)
        numbers = np.array(
            [limits_.min, limits_.max, 0, 1, 2, 7, limits_.max // 2, *([-1, -5] if limits_.min else [])], dtype
        )
    if len(operator.operands) == 1:
        return [numbers]
    pair = [np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))]
    if operator.requirements:
        pair = [a[pair[1] > 0] for a in pair] if not dtype.startswith("float") else pair
    if len(operator.operands) == 2:
        return pair
    return [np.arange(len(pair[0])) % 2 == 0, *pair]


SAMPLES = [sample for operator in OPERATORS.values() for sample in samples(operator)]


def reference(sample: Sample) -> Array:
    return sample.operator.evaluate(sample.operands, sample.attributes)


# ---- gradients


def differentiable(sample: Sample) -> bool:
    """Whether central differences in float64 say what the gradient must be."""
    floats = [operand for operand in sample.operands if operand.dtype == np.float64]
    finite = all(np.isfinite(operand).all() for operand in floats)
    return not sample.extreme and finite and bool(floats) and sample.result.dtype == np.float64


def emit_gradient(emitter: Emitter, sample: Sample) -> tuple[list[Var], list[Value | None]]:
    """The gradient expression of a sample's operator: its variables (operands, result, seed) and the cotangents."""
    variables = [Var(f"x{i}", type_) for i, type_ in enumerate(sample.types)]
    variables += [Var("out", sample.result), Var("dout", sample.result)]
    *operands, out, dout = (emitter.value(variable) for variable in variables)
    assert sample.operator.gradient is not None
    first = (tuple(operands),) if sample.operator.variadic else operands
    cotangents = sample.operator.gradient(*first, out=out, dout=dout, **sample.attributes)
    found = list(cotangents) if isinstance(cotangents, tuple) else [cotangents]
    assert len(found) == len(operands), sample
    for position, cotangent in enumerate(found):
        if cotangent is not None and cotangent.shape != sample.operands[position].shape:
            # broadcast axes are summed by whoever asks for the gradient
            assert sample.operator.pattern is Pattern.BROADCAST and cotangent.shape == sample.result.dims, sample
            found[position] = cotangent.op("sum_to", shape=sample.operands[position].shape)
    return variables, found


def gradient(sample: Sample, seed: Array) -> list[Array | None]:
    emitter = Emitter()
    variables, cotangents = emit_gradient(emitter, sample)
    values = dict(zip(variables, (*sample.operands, reference(sample), seed), strict=True))
    evaluate(emitter, values)
    return [None if c is None else atom_value(c.atom, values) for c in cotangents]


def atom_value(atom: Atom, values: Mapping[Var, Array]) -> Array:
    if isinstance(atom, Constant):
        return atom.value
    assert isinstance(atom, Var)
    return values[atom]


def evaluate(emitter: Emitter, values: dict[Var, Array]) -> None:
    """Run what was emitted, adding each variable's value."""
    for binding in emitter.bindings:
        call = binding.value
        assert isinstance(call, OpCall)
        operands = [atom_value(argument, values) for argument in call.arguments]
        values[binding.targets[0]] = lookup(call.operator).evaluate(operands, call.attributes)


def finite_difference(sample: Sample, position: int, seed: Array, step: float = 1e-5) -> Array:
    """The derivative of sum(seed * result) with respect to one operand, element by element."""
    operand = sample.operands[position]
    derivative = np.zeros(operand.shape)
    for index in np.ndindex(*operand.shape):
        sides = []
        for signed in (step, -step):
            moved = operand.copy()
            moved[index] += signed
            operands = [*sample.operands[:position], moved, *sample.operands[position + 1 :]]
            sides.append(np.sum(seed * sample.operator.evaluate(operands, sample.attributes)))
        derivative[index] = (sides[0] - sides[1]) / (2 * step)
    return derivative


def gradient_of(name: str, *operands: Any, **attributes: Any) -> list[Array | None]:
    """The gradient of the sum of an operator's results."""
    operator = OPERATORS[name]
    arrays, filled = operator.bind([np.asarray(operand) for operand in operands], attributes)
    sample = Sample(operator, arrays, filled)
    return gradient(sample, np.ones(sample.result.dims, sample.result.dtype))


# ---- requirements


def requirement_holds(name: str, *operands: Array, **attributes: Any) -> bool | None:
    """What the operator's one requirement says of these operands; None where it asks for nothing."""
    operator = OPERATORS[name]
    arrays, filled = operator.bind(operands, attributes)
    emitter = Emitter()
    variables = [Var("x", Constant(array).type) for array in arrays]
    (requirement,) = operator.requirements
    condition = requirement.holds(*map(emitter.value, variables), **filled)
    if condition is None:
        return None
    assert condition.type == TensorType(BOOL, ())
    values = dict(zip(variables, arrays, strict=True))
    evaluate(emitter, values)
    return bool(atom_value(condition.atom, values))
