"""Sample calls of every registered operator, and what the tests compute from one: reference, gradient, requirement."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import ml_dtypes
import numpy as np
from guarded import guarded
from matrix import SEED, everything

import relay
from relay import RelayFunction
from relay.codegen.runtime import cpu
from relay.errors import TypeMismatch
from relay.eval import interpreter
from relay.ir.expr import Atom, Block, Constant, Exit, Function, LoopLabel, MakeTuple, Module, OpCall, Var
from relay.ir.types import BOOL, BaseType, TensorType, TupleType
from relay.operator import Emitter, Operator, Relation, lookup, operators
from relay.operator.definition import REQUIRED
from relay.operator.page import module_of
from relay.ops.samples import ELEMENTWISE_SHAPES, case, cases
from relay.transform.pipeline import optimize
from relay.typecheck.relations import broadcast, same_shape

Array = np.ndarray[Any, np.dtype[Any]]

OPERATORS = {
    operator.name: operator
    for operator in operators()
    if module_of(operator).startswith("relay.")  # not those of other tests
}
DTYPES = ("float32", "float64", "int32", "uint8", "bool", "float16", "bfloat16", "int64")
COMPILED = 10**9 if everything() else 2
"""How many samples of each operator are compiled, beside that with the corners of a dtype."""

LARGEST = 3000
"""The most elements that a sample made from another one may have."""


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
    def results(self) -> list[TensorType]:
        inferred = self.operator.infer(self.types, self.attributes)
        found = list(inferred.items) if isinstance(inferred, TupleType) else [inferred]
        assert all(isinstance(t, TensorType) for t in found)
        return found  # type: ignore[return-value]

    @property
    def is_typed(self) -> bool:
        """Whether the operator has a type for this call: a number may be none of the dtype, for example."""
        try:
            self.operator.infer(self.types, self.attributes)
        except TypeMismatch:
            return False
        return True

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
        for operands, attributes in sampler(np.random.default_rng(0), BaseType(dtype).dtype):
            _, filled = operator.bind((operands,) if operator.variadic else tuple(operands), attributes)
            key = (tuple((a.dtype.name, a.shape, a.tobytes()) for a in operands), tuple(filled.items()))
            if key not in seen and admits(operator, operands, filled):
                seen.add(key)
                sample = Sample(operator, tuple(operands), filled)
                if sample.is_typed:
                    yield sample
        if is_elementwise(operator):
            corners = corner_operands(dtype, operator)
            if admits(operator, corners, {}):
                yield Sample(operator, tuple(corners), {}, extreme=True)


def is_elementwise(operator: Operator) -> bool:
    """Whether the operator works on single elements and has no attributes, so that it takes any numbers."""
    if operator.attributes or not isinstance(operator.relation, Relation):
        return False
    return (
        operator.relation.shape in (same_shape, broadcast)
        and operator.memory.constant is None
        and bool(operator.operands)
    )


def corner_operands(dtype: str, operator: Operator) -> list[Array]:
    """All combinations of a dtype's special numbers."""
    if dtype == "bool":
        numbers = np.array([False, True])
    elif "float" in dtype:
        limits = ml_dtypes.finfo(dtype)
        tiny, largest = float(limits.tiny), float(limits.max)
        one = [0.0, 1e-30, 1e-8, 0.3, 0.5, 1.0, 2.0, 7.3, 12.0, 88.0, 1e10, tiny, largest, np.inf]
        with np.errstate(all="ignore"):
            numbers = np.array([*one, *(-x for x in one), np.nan, tiny / 8]).astype(BaseType(dtype).dtype)
    else:
        limits_ = np.iinfo(dtype)
        numbers = np.array(
            [limits_.min, limits_.max, 0, 1, 2, 7, limits_.max // 2, *([-1, -5] if limits_.min else [])], dtype
        )
    if len(operator.operands) == 1:
        return [numbers]
    pair = [np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))]
    if operator.requirements:
        pair = [a[pair[1] > 0] for a in pair] if "float" not in dtype else pair
    if len(operator.operands) == 2:
        return pair
    return [np.arange(len(pair[0])) % 2 == 0, *pair]


def resized(sample: Sample, rng: np.random.Generator) -> Sample | None:
    """The sample with other dims: each dim of its float operands replaced by another number, the same one for equal
    dims; None where the operator has no type for that."""
    if sample.extreme or not any(o.shape for o in sample.operands):
        return None
    if any(o.dtype.kind in "iub" for o in sample.operands):
        return None
    found = {dim: int(rng.choice([1, 2, 3, 4, 5, 7])) for o in sample.operands for dim in o.shape}
    operands = []
    for operand in sample.operands:
        shape = tuple(found[dim] for dim in operand.shape)
        if not operand.size or np.prod(shape) > LARGEST:
            return None
        chosen_again = np.asarray(rng.choice(operand.reshape(-1), shape)).astype(operand.dtype)
        # no ties, where derivatives jump, and still away from the integers
        operands.append(apart(np.asarray(chosen_again + rng.uniform(-0.02, 0.02, shape).astype(operand.dtype))))
    made = Sample(sample.operator, tuple(operands), sample.attributes)
    if not made.is_typed or any(t.dims and np.prod(t.dims) > LARGEST for t in made.results):
        return None
    return made


def of_rank_6(sample: Sample, rng: np.random.Generator) -> Sample | None:
    """The sample with axes of extents 2, 1, .. before those of its operands, up to rank 6; None where the operator has
    no type for that. Axes in attributes may mean others then."""
    if sample.extreme or not sample.operands or (sample.operator.requirements and not is_elementwise(sample.operator)):
        return None
    least = max(o.ndim for o in sample.operands)
    if least >= 6 or any(not o.size for o in sample.operands):
        return None
    operands = []
    for operand in sample.operands:
        shape = (*(2, 1, 2, 1, 1, 1)[: 6 - operand.ndim], *operand.shape)
        again = np.asarray(rng.choice(operand.reshape(-1), shape)).astype(operand.dtype)
        if operand.dtype == np.float64:  # no ties, where derivatives jump
            again = apart(again + rng.uniform(-0.01, 0.01, shape))
        operands.append(again)
    made = Sample(sample.operator, tuple(operands), sample.attributes)
    if not made.is_typed or any(t.dims and np.prod(t.dims) > LARGEST for t in made.results):
        return None
    return made


def apart(numbers: Array, least: float = 4e-5) -> Array:
    """Numbers of float64 no two of which are so near that a finite difference steps from one to the other."""
    if numbers.dtype != np.float64:
        return numbers
    flat = numbers.reshape(-1).copy()
    order = np.argsort(flat)
    for before, after in itertools.pairwise(order):
        flat[after] = max(flat[after], flat[before] + least)
    return flat.reshape(numbers.shape)


def all_samples() -> list[Sample]:
    rng, found = np.random.default_rng(SEED), []
    for operator in OPERATORS.values():
        own = list(samples(operator))
        found += own
        sampler = operator.sampler or default_sampler(operator)
        for sample in own if getattr(sampler, "resizable", False) else ():
            other = resized(sample, rng)
            if other is not None:
                found.append(other)
        highest = [s for s in (of_rank_6(s, rng) for s in own if s.types[:1] and takes_numbers(s)) if s is not None]
        found += {s.types[0].base: s for s in highest}.values()  # one for each dtype
    return found


def takes_numbers(sample: Sample) -> bool:
    """Whether any numbers will do in place of the sample's: no keys, and no indices."""
    relation = sample.operator.relation
    return not isinstance(relation, Relation) or all(t.is_variable or t.text == "bool" for t in relation.base.operands)


SAMPLES = all_samples()
OF: dict[str, list[Sample]] = {name: [s for s in SAMPLES if s.operator is o] for name, o in OPERATORS.items()}
"""The samples of each operator."""


def chosen() -> list[Sample]:
    """The samples that are compiled today: some of each operator, and the corners of one dtype."""
    rng, found = np.random.default_rng(SEED), []
    for of_operator in OF.values():
        extreme = [s for s in of_operator if s.extreme]
        for group, count in ((extreme, 1), ([s for s in of_operator if not s.extreme], COMPILED)):
            picked = rng.permutation(len(group))[: max(count, COMPILED // 10**8 * len(group))]
            found += [group[i] for i in sorted(picked)]
    return found


def reference(sample: Sample) -> list[Array]:
    """The results, of which there is mostly one."""
    return as_list(sample.operator.evaluate(sample.operands, sample.attributes))


# ---- compiled code


def compiled(batch: Sequence[Sample]) -> list[list[Array]]:
    """The samples' results, from one native program that computes them all."""
    emitter = Emitter()
    parameters: list[Var] = []
    results = []
    for sample in batch:
        own = [Var(f"x{i}", type_) for i, type_ in enumerate(sample.types)]
        parameters += own
        results.append(emitter.call(sample.operator, [emitter.value(v) for v in own], sample.attributes))
    whole = emitter.bind(MakeTuple(tuple(r.atom for r in results)), TupleType(tuple(r.type for r in results)))
    label = LoopLabel("main")
    body = Block(tuple(emitter.bindings), Exit(label, (whole.atom,)))
    module = optimize(Module({"main": Function("main", tuple(parameters), body, label, whole.type)}, "main"), 0)
    operands = [guarded(o, end=bool(n % 2)) for sample in batch for n, o in enumerate(sample.operands, 1)]
    answers = cpu.compile_module(module)(operands)
    assert isinstance(answers, tuple)
    return [[np.asarray(a) for a in as_list(answer)] for answer in answers]


# ---- gradients


def differentiable(sample: Sample) -> bool:
    """Whether central differences in float64 say what the gradient must be."""
    floats = [operand for operand in sample.operands if operand.dtype == np.float64]
    finite = all(np.isfinite(operand).all() for operand in floats)
    known = sample.operator.composition is not None or sample.operator.gradient is not None
    smooth = any(t.dtype == np.float64 for t in sample.results)
    return known and not sample.extreme and finite and any(o.size for o in floats) and smooth


def floats(sample: Sample) -> list[int]:
    """The positions of the operands that have a gradient."""
    return [i for i, o in enumerate(sample.operands) if o.dtype == np.float64]


def program(sample: Sample, order: int) -> tuple[RelayFunction, list[Array]]:
    """The gradients of sum(seed * op(x..)), over all float results, with respect to the float operands, or for order 2
    those of sum(direction * gradient); and random arguments: the operands, the seeds, the directions."""
    operator, where = sample.operator, floats(sample)
    names = [f"x{i}" for i in range(len(sample.operands))]
    attributes = "".join(f", {name}=given_{name}" for name in sample.attributes)
    operands = f"({', '.join(names)},)" if operator.variadic else ", ".join(names)
    call = f"op({operands}{attributes})" if names else f"op({attributes[2:]})"
    if operator.spread:
        first = [f"given_{n}" for n, default in operator.attributes.items() if default is REQUIRED]
        named = [f"{n}=given_{n}" for n, default in operator.attributes.items() if default is not REQUIRED]
        call = f"op({', '.join([*first, *names, *named])})"
    rng = np.random.default_rng(SEED)
    results = sample.results
    seeds = {f"seed{i}": np.asarray(rng.uniform(0.5, 1.5, results[i].dims)) for i in float_results(sample)}
    several = isinstance(operator.infer(sample.types, sample.attributes), TupleType)
    unpacked = "".join(f"result{i}, " for i in range(len(results))) if several else "result0"
    weighed = " + ".join(f"relay.sum({name.replace('seed', 'result')} * {name})" for name in seeds)
    text = f"def value({', '.join([*names, *seeds])}):\n    {unpacked} = {call}\n    return {weighed}\n"
    wrt = ", ".join(map(str, where))
    arguments = [*sample.operands, *seeds.values()]
    if order == 2:
        directions = [f"u{i}" for i in where]
        parameters = ", ".join([*names, *seeds, *directions])
        gradients_ = ", ".join(f"g{i}" for i in where)
        total = " + ".join(f"relay.sum(g{i} * u{i})" for i in where)
        text += f"def along({parameters}):\n    {gradients_}{',' if len(where) == 1 else ''} = "
        text += f"{'(' if len(where) == 1 else ''}relay.grad(value, wrt=({wrt},))({', '.join([*names, *seeds])})"
        text += f"{',)' if len(where) == 1 else ''}\n    return {total}\n"
        arguments += [np.asarray(rng.uniform(-1, 1, sample.operands[i].shape)) for i in where]
    given = {f"given_{name}": value for name, value in sample.attributes.items()}
    made = relay.from_source(text, {"relay": relay, "op": operator} | given)
    function = made["along"] if isinstance(made, dict) else made
    return relay.grad(function, wrt=tuple(where)), arguments


def as_list(value: object) -> list[Array]:
    return list(value) if isinstance(value, tuple) else [np.asarray(value)]


def float_results(sample: Sample) -> list[int]:
    """The positions of the results that have a gradient."""
    return [i for i, t in enumerate(sample.results) if t.dtype == np.float64]


def finite_difference(
    sample: Sample, position: int, seeds: Sequence[Array], places: Array, step: float = 1e-5
) -> Array:
    """The derivative of sum(seed * result) with respect to the elements of one operand at some places, which count them
    in a row."""
    operand = sample.operands[position]
    derivative = np.zeros(len(places))
    for number, place in enumerate(places):
        sides = []
        for signed in (step, -step):
            moved = operand.copy()
            moved.reshape(-1)[place] += signed
            operands = [*sample.operands[:position], moved, *sample.operands[position + 1 :]]
            results = as_list(sample.operator.evaluate(operands, sample.attributes))
            sides.append(sum(np.sum(s * results[i]) for i, s in zip(float_results(sample), seeds, strict=True)))
        derivative[number] = (sides[0] - sides[1]) / (2 * step)
    return derivative


def evaluate(emitter: Emitter, values: dict[Var, Array]) -> None:
    """Run what was emitted, adding each variable's value."""
    for binding in emitter.bindings:
        call = binding.value
        assert isinstance(call, OpCall)
        operands = [atom_value(argument, values) for argument in call.arguments]
        values[binding.targets[0]] = lookup(call.operator).evaluate(operands, call.attributes)


def atom_value(atom: Atom, values: Mapping[Var, Array]) -> Array:
    if isinstance(atom, Constant):
        return atom.value
    assert isinstance(atom, Var)
    return values[atom]


def gradient_of(name: str, *operands: Any, **attributes: Any) -> list[Array]:
    """The gradient of the sum of an operator's results."""
    operator = OPERATORS[name]
    arrays, filled = operator.bind([np.asarray(operand) for operand in operands], attributes)
    function, arguments = program(Sample(operator, arrays, filled), 1)
    arguments[-1] = np.ones_like(arguments[-1])
    return as_list(interpreter.run(function.core(*arguments), arguments))


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
