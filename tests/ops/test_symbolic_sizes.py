"""Every operator with symbolic sizes: one program for all of them, its gradient too, equal to the interpreter's."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from matrix import SEED
from operator_samples import OF, OPERATORS, Array, Sample, differentiable, program
from symbolic_sizes import elaborated, outcome, resized, values

import relay as R
from relay import RelayFunction, relay
from relay.calling.arguments import describe
from relay.codegen.lowering.module_builder import text
from relay.codegen.runtime.cpu import compile_module
from relay.compilation.stages import to_core
from relay.errors import ExecutionError
from relay.eval import interpreter
from relay.eval.sizes import sizes_of
from relay.eval.values import Data
from relay.ir.expr import Module
from relay.ir.sizes.extents import Place, symbolic_dims
from relay.ir.sizes.facts import assume_facts
from relay.operator.definition import REQUIRED
from relay.typecheck.elaboration import elaborate_structured

COMPILED = 4
"""How many operators are compiled and run today."""


def structure(sample: Sample) -> set[tuple[int, int]]:
    """The axes, by operand, whose extents say what is computed and not how much: those of a kernel, which is unrolled,
    and of an index vector, which has one element for each axis that it names."""
    name, attributes = sample.operator.name, sample.attributes
    ranks = [operand.ndim for operand in sample.operands]
    if name in ("gather_nd", "scatter_nd", "scatter_nd_add"):
        return {(1, ranks[1] - 1)}
    if name == "overlap_add":
        count = 1 if isinstance(attributes["axes"], int) else len(attributes["axes"])
        return {(0, ranks[0] - 1 - k) for k in range(count)}
    if ("conv" in name and "weight_gradient" not in name) or name == "quantized_conv2d":
        layout = attributes["layout"]
        first, behind = (2, 2) if layout.endswith("c") else (0, 2) if layout.endswith("C") else (2, 0)
        return {(1, axis) for axis in range(first, ranks[1] - behind)}
    return set()


def axes_of(sample: Sample) -> list[Place]:
    """The axes that are made symbolic: those of more than 1 element that are no structure."""
    fixed = structure(sample)
    return [
        Place(number, (), axis)
        for number, operand in enumerate(sample.operands)
        for axis, extent in enumerate(operand.shape)
        if extent > 1 and (number, axis) not in fixed
    ]


def chosen(name: str) -> list[Sample]:
    """Of the operator's samples with each number of axes the one in float64 with the most that can be symbolic; today's
    if there are several."""
    rng, best = np.random.default_rng(SEED), dict[Any, tuple[Any, Sample]]()
    for sample in OF[name]:
        if sample.extreme or not axes_of(sample) or not all(o.size for o in sample.operands):
            continue
        if sample.attributes.get("tile"):  # which is of known sizes
            continue
        merit = (any(o.dtype == np.float64 for o in sample.operands), len(axes_of(sample)), rng.random())
        ranks = max(o.ndim for o in sample.operands)
        if ranks <= 5 and (ranks not in best or merit > best[ranks][0]):
            best[ranks] = merit, sample
    return [sample for _, sample in best.values()]


def calling(sample: Sample) -> tuple[RelayFunction, list[Array]]:
    """A function that calls the operator, and its arguments."""
    operator = sample.operator
    names = [f"x{i}" for i in range(len(sample.operands))]
    given = {f"given_{name}": value for name, value in sample.attributes.items()}
    named = [f"{name}=given_{name}" for name in sample.attributes]
    if operator.spread:
        first = [f"given_{n}" for n, default in operator.attributes.items() if default is REQUIRED]
        rest = [f"{n}=given_{n}" for n, default in operator.attributes.items() if default is not REQUIRED]
        arguments = [*first, *names, *rest]
    else:
        arguments = [f"({', '.join(names)},)" if operator.variadic else ", ".join(names), *named]
    source = f"def value({', '.join(names)}):\n    return op({', '.join(arguments)})\n"
    made = R.from_source(source, {"op": operator} | given)
    assert isinstance(made, RelayFunction)
    return made, list(sample.operands)


def symbolic(sample: Sample, gradient: bool) -> tuple[RelayFunction, tuple[Array, ...], Module]:
    """A program of the call at symbolic sizes, which no number stands in for; its function and arguments. Of a gradient
    the seeds' axes are symbolic, too, and those of the operands as before."""
    function, arguments = program(sample, 1) if gradient else calling(sample)
    places = axes_of(sample)
    for number in range(len(sample.operands), len(arguments)):
        places += [Place(number, (), axis) for axis, extent in enumerate(np.shape(arguments[number])) if extent > 1]
    described = [describe(v, function._function, i).argument for i, v in enumerate(function._bind(arguments, {}))]
    made = elaborate_structured(function.__relay__, described, places)
    numbers = [f"{p.name} is {p.value}: {p.reason}" for p in made.pins if p.reason == "its value is needed"]
    assert not numbers, f"{sample}, seed {SEED}"
    return function, tuple(arguments), made.module


WITH_SIZES = [name for name in OPERATORS if chosen(name)]


@pytest.mark.parametrize("name", WITH_SIZES)
def test_code_for_all_sizes(name: str) -> None:
    """No phase needs a number: up to code generation for half of the operators, which change daily. What TVM makes of
    the code is tried for some below."""
    sample = chosen(name)[-1]
    for gradient in (False, True) if differentiable(sample) else (False,):
        _, _, module = symbolic(sample, gradient)
        core = to_core(module, 2)
        if symbolic_dims(core) and (WITH_SIZES.index(name) + SEED) % 2:
            with assume_facts(core.where):
                text(core, 1)


def exactly(function: RelayFunction, arguments: tuple[Array, ...]) -> Any:
    """What the interpreter gives with the program for these very sizes."""
    module = elaborated(function, arguments, [])
    return interpreter.run(module, values(function, arguments, module))


TOLERANCES = {
    name: (error, error)
    for name, error in {"float64": 1e-7, "float32": 1e-4, "float16": 1e-4, "bfloat16": 1e-4}.items()
}


NOT_REPEATED = {"cholesky", "searchsorted"}  # elements of theirs cannot be repeated: they have tests of their own


@pytest.mark.parametrize("number", range(COMPILED))
def test_a_program_for_all_sizes_is_that_of_each(number: int) -> None:
    names = [name for name in WITH_SIZES if name not in NOT_REPEATED]
    name = str(np.random.default_rng(SEED).permutation(names)[number])
    sample = chosen(name)[0]
    for gradient in (False, True) if differentiable(sample) else (False,):
        function, arguments, module = symbolic(sample, gradient)
        if not symbolic_dims(module):
            continue
        compiled = compile_module(to_core(module, 2), make=Data)
        for change in (0, 1, 2, 5, 10):
            others = resized(arguments, module, function, change)
            given = values(function, others, module)
            try:
                sizes_of(module, module.main, given)
            except ExecutionError:
                continue  # sizes that the operator does not take
            what = f"{sample}, {change} longer, seed {SEED}"
            assert_agree(
                outcome(partial(compiled, given)),
                outcome(partial(exactly, function, others)),
                tolerances=TOLERANCES,
                what=what,
            )


# ---- sizes that attributes are made of


random = np.random.default_rng(5)


@relay(dynamic=True)
def sized(x, w):
    n, m = x.shape
    top, places = R.topk(x, m // 2)
    padded = R.pad(R.tile(x, (m, 1)), ((n, 0), (0, m // 2)), mode="edge")
    parts = R.split(R.roll(x, n // 2, axis=0) + R.repeat(w, n, axis=0), (m // 3,), axis=1)
    drawn = R.random.bernoulli(R.random.key(1), 0.25, shape=(m, 2)) | (
        R.random.categorical(R.random.key(2), w, shape=(m, 1)) > 1
    )
    lines = R.linspace(0.0, 1.0, m) + R.linspace(1.0, 2.0, m, endpoint=False)
    return top, places, padded, parts, drawn, lines, R.eye(n, m) + R.tri(n, m), R.unique(x, n + 1)


@relay(dynamic=True)
def images(x):
    _, _, h, w = x.shape
    larger = R.resize2d(x, (2 * h, w + 1)) + R.resize2d(R.upsampling(x), (2 * h, w + 1), method="nearest")
    mean = R.adaptive_avg_pool2d(x, (h // 2, 3))
    return larger, mean, R.adaptive_max_pool2d(x, (2, w // 2)), R.max_pool2d(x, 2, padding="same")


def test_attributes_made_of_sizes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "relay.compile"):
        for n, m in ((3, 7), (2, 5), (5, 11)):
            x, w = random.standard_normal((n, m)), random.standard_normal((1, m))
            assert_agree(unwrapped(sized(x, w)), exactly(sized, (x, w)), tolerances=TOLERANCES, what=f"{n}, {m}")
            image = random.standard_normal((2, 1, n + 1, m))
            assert_agree(unwrapped(images(image)), exactly(images, (image,)), tolerances=TOLERANCES, what=f"{n}, {m}")
    assert sum("with sizes" in record.getMessage() for record in caplog.records) == 2
    assert not [r.getMessage() for r in caplog.records if "its value is needed" in r.getMessage()]


def unwrapped(value: Any) -> Any:
    return tuple(map(unwrapped, value)) if isinstance(value, tuple) else value.numpy()


def test_data_dependent_sizes_are_right(caplog: pytest.LogCaptureFixture) -> None:
    @relay
    def chosen_of(x, k):
        positive = R.sort(x[x > 0.0])
        best = R.topk(positive, 2)[0]
        return best, R.searchsorted(positive, x), R.resize2d(x[None, None, None, :], (1, k)), R.eye(k)

    for length, k in ((6, 3), (9, 4)):
        x = random.standard_normal(length)
        x[:3] = 1.0, 2.0, 0.5
        given = (x, np.int32(k))
        assert_agree(
            unwrapped(chosen_of(*given)),
            unwrapped(chosen_of.interpret(*given)),
            tolerances=TOLERANCES,
            what=f"{length}",
        )


def test_matrices_of_any_size() -> None:
    @relay(dynamic=True)
    def solved(a, b):
        lower = R.cholesky(a)
        return R.sum(R.triangular_solve(lower, b) ** 2) + R.prod(R.diagonal(lower))

    gradient = R.value_and_grad(solved, wrt=(0, 1))
    for size in (3, 2, 7):
        a = random.standard_normal((size, size))
        arguments = a @ a.T + np.eye(size), random.standard_normal((size, 2))
        assert_agree(
            unwrapped(gradient(*arguments)), exactly(gradient, arguments), tolerances=TOLERANCES, what=f"{size}"
        )


def test_places_in_what_is_sorted() -> None:
    places = relay(dynamic=True)(lambda x, y: (R.searchsorted(x, y), R.searchsorted(x, y, side="right")))
    for length in (2, 3, 7, 8, 9, 31, 64, 100, 1, 0):
        x = np.sort(random.integers(-4, 5, length)).astype(np.float32)
        y = np.append(random.integers(-5, 6, 9), np.nan).astype(np.float32)
        expected = [np.searchsorted(x, y, side).astype(np.int32) for side in ("left", "right")]
        assert_agree(unwrapped(places(x, y)), tuple(expected), tolerances=TOLERANCES, what=f"{length}")
