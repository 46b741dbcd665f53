"""What the derivatives of recursive functions cost: counted, never timed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree
from zoo.control_flow.tree_recursion import PROGRAMS, WEIGHTS, Branching, encoded_tree, mutual_layers

import relay
from relay import Float64, Tensor
from relay.ad.reverse import differentiate
from relay.codegen.runtime.cpu import compile_module
from relay.eval.interpreter import Machine
from relay.eval.interpreter import run as interpret
from relay.eval.values import Closure
from relay.ir.expr import Function, Module, OpCall, StackPush
from relay.ir.traverse import walk
from relay.ir.types import TensorType, TupleType, Type
from relay.operator import Operator
from relay.transform import BETWEEN, LEVELS, PREPARATION, Pipeline


def tensors(type_: Type) -> list[TensorType]:
    if isinstance(type_, TupleType):
        return [t for item in type_.items for t in tensors(item)]
    return [type_] if isinstance(type_, TensorType) else []


def taped(module: Module) -> list[TensorType]:
    """The tensors in the data types of a module."""
    return [t for d in module.data for c in d.constructors for field in c.fields for t in tensors(field)]


def chain(length: int) -> Any:
    tree = Branching.Tip(np.full(3, 0.1))
    for k in range(length):
        tip = Branching.Tip(np.full(3, 0.1 * k))
        tree = Branching.Fork(tree, tip) if k % 2 else Branching.Fork(tip, tree)
    return tree


def run(monkeypatch: pytest.MonkeyPatch, function: Any, *arguments: Any) -> tuple[int, int]:
    """The interpreter's steps through a transformed program, and the elements that its operators make."""
    core, made = function.core(*arguments), [0]
    values = function.lower(*arguments).values
    evaluate = Operator.evaluate

    def counted(self: Operator, *given: Any, **keywords: Any) -> Any:
        result = evaluate(self, *given, **keywords)
        made[0] += sum(np.size(r) for r in result) if isinstance(result, tuple) else np.size(result)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Operator, "evaluate", counted)
        machine = Machine()
        machine.enter(Closure(core.main, {}, core), values)
        steps = 0
        while machine.frames:
            machine.step()
            steps += 1
    return steps, made[0]


@relay
def two_results_of_which_one_counts(x, n):
    def both(v, m) -> tuple[Tensor[Float64, ()], Tensor[Float64, ()]]:
        if m == 0:
            return v * 3.0, relay.sqrt(v)
        a, b = both(v, m - 1)
        return a * 2.0, relay.log(v) + b

    return both(x, n)[0]


def test_results_of_recursive_functions_that_do_not_count_have_no_backward_part() -> None:
    derivative = relay.grad(two_results_of_which_one_counts, wrt=0)
    assert_modes_agree(derivative, np.float64(0.0), 3, expected=24.0)  # where sqrt and log have none
    core = derivative.core(np.float64(0.0), 3)
    called = {b.value.operator for f in core.functions.values() for b in walk(f.body) if isinstance(b.value, OpCall)}
    assert not called & {"divide", "reciprocal", "rsqrt"}  # the derivatives of log and sqrt


def test_what_recursion_passes_on_is_on_no_tape() -> None:
    for function, arguments in (
        (relay.grad(encoded_tree, wrt=1), (chain(2), WEIGHTS)),
        (relay.grad(mutual_layers), (np.ones(3), np.eye(3), np.eye(3), np.int32(3))),
    ):
        module = function.core(*arguments)
        assert taped(module)
        assert not [t for t in taped(module) if t.rank == 2]


def test_cotangents_of_what_recursion_passes_on_start_once() -> None:
    module = relay.grad(encoded_tree, wrt=1).core(chain(2), WEIGHTS)
    for name, function in module.functions.items():
        assert isinstance(function, Function)
        zeros = [
            b
            for b in walk(function.body)
            if isinstance(b.value, OpCall) and b.value.operator == "zeros" and math.prod(b.targets[0].type.dims) == 9
        ]
        assert not zeros or name == module.entry


@pytest.mark.parametrize("order", [1, 2])
def test_the_gradient_of_a_recursion_grows_linearly(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(tree, weights):
        return relay.sum(relay.sin(relay.grad(encoded_tree, wrt=1)(tree, weights)["tip"]))

    function = relay.grad(encoded_tree if order == 1 else relay.relay(again), wrt=1)
    found = [run(monkeypatch, function, chain(length), WEIGHTS) for length in (8, 16, 24)]
    for a, b, c in zip(*found, strict=True):
        assert c - b <= 1.01 * (b - a)


# ---- sums that are made after the recursion


def collecting(function: Any, *arguments: Any) -> Module:
    """The optimized program, in which sums of any size are made after the recursion."""
    last = ", ".join("sink_accumulators{smallest=1}" if p == "sink_accumulators" else p for p in LEVELS[2])
    prepared = Pipeline(["specialize, structure", *PREPARATION[2]], stage="typed")(function.typed(*arguments))
    derived = differentiate(prepared, lambda module: Pipeline(", ".join(BETWEEN[2]))(module))
    return Pipeline(last, checked=True)(derived)


def instructions(module: Module, kind: type) -> list[Any]:
    return [b.value for f in module.functions.values() for b in walk(f.body) if isinstance(b.value, kind)]


def assert_same(module: Module, function: Any, arguments: tuple[Any, ...]) -> None:
    """The program gives, interpreted and compiled, what the interpreter's own derivative is."""
    values = function.lower(*arguments).values
    plain = interpret(function.typed(*arguments), values)
    for found in (interpret(module, values), compile_module(module)(values)):
        assert_close(found, plain, atol=1e-12)


@relay.data
class Wide:
    class Tip:
        x: relay.Tensor[relay.Float64, (12,)]

    class Fork:
        left: Wide
        right: Wide


@relay.relay
def wide_encode(tree, w, u, b):
    match tree:
        case Wide.Tip(x):
            return relay.tanh(x @ w)
        case Wide.Fork(left, right):
            return relay.tanh(wide_encode(left, w, u, b) @ u + wide_encode(right, w, u, b) @ w + b)


@relay.relay
def wide(tree, w, u, b):
    return relay.sum(wide_encode(tree, w, u, b) ** 2)


def wide_tree(leaves: int, rng: np.random.Generator) -> Any:
    if leaves == 1:
        return Wide.Tip(rng.standard_normal(12))
    left = int(rng.integers(1, leaves))
    return Wide.Fork(wide_tree(left, rng), wide_tree(leaves - left, rng))


SAMPLES = {p.name: p for p in PROGRAMS if len(p.arguments) > 1}  # the first argument is what is recursed on


@pytest.mark.parametrize("name", SAMPLES)
def test_sums_after_the_recursion_are_the_same(name: str) -> None:
    program = SAMPLES[name]
    wrt = [i for i, a in enumerate(program.arguments) if i and np.asarray(a).dtype.kind not in "iu"]
    function = relay.value_and_grad(program.function, wrt=wrt)
    module = collecting(function, *program.arguments)
    assert instructions(module, StackPush)
    assert_same(module, function, program.arguments)


@pytest.mark.parametrize("leaves", [1, 2, 9, 34, 45])
def test_products_after_the_recursion(leaves: int) -> None:
    rng = np.random.default_rng(leaves)
    w, u, b = 0.4 * rng.standard_normal((12, 12)), 0.4 * rng.standard_normal((12, 12)), rng.standard_normal(12)
    arguments = wide_tree(leaves, rng), w, u, b
    function = relay.grad(wide, wrt=(1, 2, 3))
    module = collecting(function, *arguments)
    backward = next(f for n, f in module.functions.items() if "backward" in n)
    assert not [b for b in walk(backward.body) if getattr(b.targets[0].type, "shape", None) == (12, 12)]
    assert_same(module, function, arguments)


def test_the_second_derivative_of_a_sum_after_the_recursion() -> None:
    rng = np.random.default_rng(0)
    w, u, b = 0.4 * rng.standard_normal((12, 12)), 0.4 * rng.standard_normal((12, 12)), rng.standard_normal(12)

    @relay.relay
    def slope(tree, w, u, b):
        return relay.sum(relay.sin(relay.grad(wide, wrt=1)(tree, w, u, b)))

    function = relay.grad(slope, wrt=(1, 2, 3))
    arguments = wide_tree(7, rng), w, u, b
    module = collecting(function, *arguments)
    assert instructions(module, StackPush)
    assert_same(module, function, arguments)


def test_large_terms_are_not_collected() -> None:
    def scaled(n, w):
        return relay.sum(relay.sin(w)) if n <= 0 else scaled(n - 1, w) + scaled(n - 2, w) * 0.5

    scaled = relay.relay(scaled)
    module = relay.grad(scaled, wrt=1).core(np.int32(3), np.ones((80, 80)))
    assert not instructions(module, StackPush)


@relay.relay
def chosen(x, table, n):
    """Reads one row of a table in each call, and one number."""
    if n <= 0:
        return relay.sum(x)
    return relay.sum(table[n] * x) * table[n - 1, 0] + chosen(relay.sin(x), table, n - 1)


def test_reads_of_a_large_array_in_a_recursion_cost_their_own_size() -> None:
    rng = np.random.default_rng(0)
    arguments = rng.standard_normal(3), rng.standard_normal((200, 3)), np.int32(6)
    function = relay.grad(chosen, wrt=1)
    module = function.core(*arguments)
    for name, each in module.functions.items():
        made = [b.targets[0].type for b in walk(each.body) if isinstance(b.value, OpCall)]
        assert name == module.entry or not [t for t in made if t.shape == (200, 3)]
    assert_same(module, function, arguments)
