"""Programs of the zoo with symbolic sizes: elaborated once, right at the sizes of that call and at others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_close
from hypothesis import given
from hypothesis import strategies as st
from symbolic_sizes import ALL, all_axes, elaborated, outcome, relay_evaluate, resized, values
from zoo import Program

import relay
from relay.api.function import RelayFunction
from relay.calling.results import wrap
from relay.compilation.stages import to_core
from relay.errors import ExecutionError, TypeCheckError
from relay.eval import interpreter
from relay.eval.sizes import sizes_of
from relay.frontend.lower import lower_text
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.dims import TypeId
from relay.ir.expr import Constant, Module
from relay.ir.sizes.extents import Place, symbolic_dims
from relay.ir.types import FLOAT32, TensorType
from relay.ir.validation.check import check
from relay.text.parser import parse
from relay.typecheck.elaboration import elaborate_structured


def compare(function: RelayFunction, arguments: tuple[Any, ...], module: Module) -> None:
    concrete = outcome(lambda: function.interpret(*arguments))
    found = outcome(lambda: interpreter.run(module, values(function, arguments, module)))
    if isinstance(concrete, str) or isinstance(found, str):
        assert concrete == found
    else:
        assert_close(wrap(found, function.lower(*arguments).result), concrete, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_core_programs_and_gradients_are_right_at_sizes_never_seen(program: Program) -> None:
    axes = all_axes(program.arguments)
    functions = [program.function, *([relay.grad(program.function)] if program.differentiable else [])]
    for function in functions if axes else []:
        module = elaborated(function, program.arguments, axes)
        if not symbolic_dims(module):
            continue
        core = to_core(module, 2)
        check(core, "structured")
        result = function.lower(*program.arguments).result  # of the same structure at all sizes
        for change in (0, 3):
            arguments = resized(program.arguments, module, function, change)
            given = values(function, arguments, module)
            try:
                sizes_of(module, module.main, given)
            except ExecutionError:
                continue
            typed = outcome(lambda: interpreter.run(module, given))  # noqa: B023
            found = outcome(lambda: interpreter.run(core, given))  # noqa: B023
            if isinstance(typed, str):
                assert typed == found
            else:
                assert_close(wrap(found, result), wrap(typed, result), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_symbolic_programs_are_right_at_sizes_never_seen(program: Program) -> None:
    axes = all_axes(program.arguments)
    if not axes:
        return
    module = elaborated(program.function, program.arguments, axes)
    check(module, "typed")
    assert alpha_equal(parse(relay.to_text(module)), module)
    compare(program.function, program.arguments, module)
    for change in (1, 3, 4):
        arguments = resized(program.arguments, module, program.function, change)
        try:
            sizes_of(module, module.main, values(program.function, arguments, module))
        except ExecutionError:
            continue  # the program does not assume to be right here
        if symbolic_dims(module):
            compare(program.function, arguments, module)


# ---- random programs

_LINES = [
    "{0} = {1} + {2}",
    "{0} = {1} * 2.0 - {2}",
    "{0} = {1} @ {2}",
    "{0} = {1}.T",
    "{0} = {1}[1:]",
    "{0} = {1}[:-1] + {1}[1:]",
    "{0} = {1}[::2]",
    "{0} = {1}[::-1]",
    "{0} = {1}[..., None]",
    "{0} = {1}[-1]",
    "{0} = {1}.sum(axis=0)",
    "{0} = {1}.mean(axis=-1, keepdims=True)",
    "{0} = {1}.max()",
    "{0} = {1}.reshape(-1)",
    "{0} = {1}.reshape((2, -1))",
    "{0} = {1}.reshape((-1, {1}.shape[0]))",
    "{0} = relay.concatenate(({1}, {2}))",
    "{0} = relay.concatenate(({1}, {1}), axis=-1)",
    "{0} = relay.stack(({1}, {2}), axis=-1)",
    "{0} = relay.zeros(({1}.shape[0] * 2, len({2}))) + 1.0",
    "{0} = relay.where({1} > 0.5, {1}, {2})",
    "{0} = relay.softmax({1}) / {2}.shape[0]",
    "{0} = {1} * len({2}) if {1}.shape[0] > {2}.shape[0] else {1}",
    "{0} = relay.broadcast_to({1}, (2, *{1}.shape))",
    "for i in range({2}.shape[0]):\n        {0} = {0} + i",
    "for row in {1}:\n        {0} = {0} + row.sum()",
]
_names = st.sampled_from("xyz")


@given(
    st.lists(st.tuples(st.sampled_from(_LINES), _names, _names, _names), min_size=1, max_size=6),
    st.sampled_from([(2, 3), (3, 3), (4, 2), (5, 6)]),
    st.lists(st.integers(2, 7), min_size=5, max_size=5),
)
def test_random_programs_have_the_inferred_types(lines: list[Any], shape: tuple[int, int], others: list[int]) -> None:
    body = "".join(f"    {line.format(*names)}\n" for line, *names in lines)
    definition = lower_text(f"def f(x, y, z):\n{body}    return x, y, z\n", "<random>", {"relay": relay})["f"]
    n, m = shape
    shapes = [(n, m), (m,), (n, 1)]
    types = [TensorType(FLOAT32, s) for s in shapes]
    try:
        expected = elaborate_structured(definition, types).module
    except TypeCheckError:
        with pytest.raises(TypeCheckError):
            elaborate_structured(definition, types, [Place(p, (), a) for p in range(3) for a in range(2)])
        return
    module = elaborate_structured(definition, types, [Place(p, (), a) for p in range(3) for a in range(2)]).module
    check(module, "typed")

    def arguments(typed: Module, sizes: dict[TypeId, int]) -> list[np.ndarray]:
        found = [p.type for p in typed.main.parameters]
        return [np.linspace(0, 1, num, dtype=np.float32).reshape(s) for s, num in _sized(found, sizes)]

    own = arguments(expected, {})
    assert_close(interpreter.run(module, own), interpreter.run(expected, own), rtol=1e-4, atol=1e-5)
    sizes = dict(zip(symbolic_dims(module), others, strict=False))
    given_ = arguments(module, sizes)
    try:
        sizes_of(module, module.main, given_)
    except ExecutionError:
        return  # the program does not assume to be right here
    again = elaborate_structured(definition, [Constant(a).type for a in given_]).module
    assert_close(interpreter.run(module, given_), interpreter.run(again, given_), rtol=1e-4, atol=1e-5)


def _sized(types: list[Any], sizes: dict[TypeId, int]) -> list[tuple[tuple[int, ...], int]]:
    shapes = [tuple(relay_evaluate(d, sizes) for d in t.shape) for t in types]
    return [(s, int(np.prod(s, dtype=np.int64))) for s in shapes]
