"""What derivatives cost: operations, tapes and steps are counted, never timed."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from matrix import sample
from zoo import Program, programs

import relay
from relay import Float64, Int32, List, Tensor
from relay.eval.interpreter import Machine
from relay.eval.values import Closure
from relay.ir.expr import (
    Call,
    Constant,
    Function,
    If,
    Loop,
    MakeTuple,
    Match,
    Module,
    OpCall,
    Project,
    RefNew,
    StackNew,
    StackPush,
    Var,
)
from relay.ir.traverse import all_blocks, blocks, walk
from relay.ir.types import DataType, RefType, StackType, TensorType
from relay.operator import lookup

X = np.linspace(0.1, 1.0, 64)


def bindings(module: Module) -> list[Any]:
    return [b for f in module.functions.values() if isinstance(f, Function) for b in walk(f.body)]


def operations(module: Module, name: str) -> int:
    return sum(isinstance(b.value, OpCall) and b.value.operator == name for b in bindings(module))


def arithmetic(module: Module) -> int:
    """The elements that arithmetic computes in straight-line code."""
    return sum(
        math.prod(b.targets[0].type.dims)
        for b in bindings(module)
        if isinstance(b.value, OpCall) and lookup(b.value.operator).pattern.value in ("elementwise", "broadcast")
    )


def steps(function: Any, *arguments: Any) -> int:
    """The interpreter's steps through the transformed program."""
    core = function.core(*arguments)
    values = function.lower(*arguments).values
    machine = Machine()
    machine.enter(Closure(core.main, {}, core), values)
    count = 0
    while machine.frames:
        machine.step()
        count += 1
    return count


def in_loops(module: Module) -> list[Any]:
    found = []

    def visit(block: Any, inside: bool) -> None:
        for b in block.bindings:
            if inside:
                found.append(b)
            for inner in blocks(b.value):
                visit(inner, inside or isinstance(b.value, Loop))

    for f in module.functions.values():
        visit(f.body, False)
    return found


def copies(module: Module, size: int) -> list[str]:
    """The operators in loops that write a whole tensor of this many elements."""
    return [
        b.value.operator
        for b in in_loops(module)
        if isinstance(b.value, OpCall)
        and isinstance(b.targets[0].type, TensorType)
        and math.prod(b.targets[0].type.dims) == size
        and lookup(b.value.operator).memory.in_place is None
    ]


# ---- reads of large values in loops


@relay.data
class Weights:
    table: Tensor[Float64, (64,)]
    scale: Tensor[Float64, ()]


@relay
def constant_index(x, n):
    s = x[0]
    for _ in range(n):
        s = s * x[3] + x[-1] if s < 10.0 else s - x[5] * 9.0
    return s


@relay
def dynamic_index(x, n):
    s = 0.0
    for i in range(n):
        s = s * 0.5 + x[i % 64] * x[(i * 7) % 64]
    return s


@relay
def constant_slice(x, n):
    s = 0.1
    for _ in range(n):
        s = relay.sum(x[2:4] * s) + 0.1 if s < 10.0 else relay.sum(relay.sin(x[8:64:8] * s))
    return s


@relay
def rows(x, n):
    s = 0.0
    m = relay.reshape(x, (8, 8))
    for i in range(n):
        s = s + relay.sum(m[i % 8] * s) + m[1, 2]
    return s


@relay
def field(x, n):
    w = Weights(x, x[0])
    s = 0.5
    for i in range(n):
        s = s * w.scale + w.table[i % 64] * w.scale
    return s


@relay
def tuples_of_tensors(x, n):
    p = (x, (x * 2.0, 1.5))
    s = 0.5
    for i in range(n):
        s = s * p[1][1] + p[0][i % 64] * p[1][0][3]
    return s


@relay
def nested(x, n):
    s = 0.0
    for i in range(n):
        for j in range(3):
            s = s * 0.5 + x[i % 64] * x[j]
    return s


@relay
def by_recursion(x, n: Tensor[Int32, ()]) -> Tensor[Float64, ()]:
    if n == 0:
        return x[0]
    return 0.5 * by_recursion(x, n - 1) * x[n % 64] + x[5]


READS = [constant_index, dynamic_index, constant_slice, rows, field, tuples_of_tensors, nested]


@pytest.mark.parametrize("function", READS, ids=lambda f: f.__name__)
def test_a_read_in_a_loop_costs_the_same_however_large_the_tensor(function: Any) -> None:
    derivative = relay.grad(function, wrt=0)
    assert copies(derivative.core(X, 5), 64) == []
    assert copies(relay.grad(lambda_norm(function)).core(X), 64) == []  # nor at the second order
    assert relay.check_gradient(function, X, np.int32(5)) < 1e-6


def lambda_norm(function: Any) -> Any:
    @relay
    def first(x):
        return relay.grad(function, wrt=0)(x, 5)[3]

    return first


@pytest.mark.parametrize("function", [*READS, by_recursion], ids=lambda f: f.__name__)
def test_the_gradient_takes_steps_in_proportion_to_the_rounds(function: Any) -> None:
    derivative = relay.grad(function, wrt=0)
    short, long, longer = (steps(derivative, X, n) for n in (10, 20, 40))
    assert abs((longer - long) - 2 * (long - short)) <= 0.1 * (longer - long)


def test_a_recursion_adds_into_one_cotangent() -> None:
    core = relay.grad(by_recursion, wrt=0).core(X, 5)
    (backward,) = [f for n, f in core.functions.items() if n.endswith("_backward")]
    whole = [
        b.value.operator
        for b in walk(backward.body)
        if isinstance(b.value, OpCall) and getattr(b.targets[0].type, "dims", ()) == (64,)
    ]
    assert set(whole) <= {"index_add", "add_slice"}


@relay
def folded(xs):
    return xs.fold(lambda total, x: total * 0.5 + relay.sum(x * x), 0.0)


@relay
def looped(xs):
    total = 0.0
    for x in xs:
        total = total * 0.5 + relay.sum(x * x)
    return total


@relay
def mapped(xs):
    return xs.map(lambda x: x * x).fold(lambda total, x: total + relay.sum(x), 0.0)


@pytest.mark.parametrize("function", [folded, looped, mapped], ids=lambda f: f.__name__)
def test_a_fold_over_a_list_is_linear(function: Any) -> None:
    def of_length(n: int) -> Any:
        xs = List.Nil()
        for k in range(n):
            xs = List.Cons(np.array([1.0 * k, 2.0]), xs)
        return xs

    derivative = relay.grad(function)
    short, long, longer = (steps(derivative, of_length(n)) for n in (10, 20, 40))
    assert (longer - long) == 2 * (long - short)


# ---- straight-line code


def test_three_products_for_value_and_gradient() -> None:
    @relay
    def s(x, w):
        xy = relay.dense(x, w)
        return relay.sum(xy - relay.sum(xy))

    core = relay.value_and_grad(s).core(np.ones((2, 3)), np.ones((4, 3)))
    assert sum(operations(core, name) for name in ("dense", "matmul")) == 3


@pytest.mark.parametrize("wrt", [0, 1])
def test_gradients_that_are_not_asked_for_are_not_computed(wrt: int) -> None:
    @relay
    def s(x, w):
        return relay.sum(relay.tanh(relay.dense(x, w)))

    core = relay.grad(s, wrt=wrt).core(np.ones((2, 3)), np.ones((4, 3)))
    assert sum(operations(core, name) for name in ("dense", "matmul")) == 2


@relay
def straight(x):
    y = x * x + x
    y = relay.tanh(y) * relay.exp(-y * y)
    y = y / (1.0 + y * y)
    z = relay.sqrt(y * y + 1.0) - relay.log(2.0 + x)
    return relay.sum(z * y + relay.sin(z) * relay.cos(y))


def test_straight_line_derivatives_do_at_most_four_times_the_arithmetic() -> None:
    primal = arithmetic(straight.core(X))
    assert arithmetic(relay.value_and_grad(straight).core(X)) <= 4 * primal


def flops(module: Module) -> int | None:
    """The floating-point operations of straight-line code with known sizes; None for anything else."""
    total = 0
    for b in bindings(module):
        match b.value:
            case OpCall(operator, arguments):
                types = [t.type for t in (*arguments, *b.targets)]
                if any(not isinstance(d, int) for t in types for d in getattr(t, "shape", ())):
                    return None
                total += lookup(operator).flops(types[:-1], types[-1])
            case Var() | Constant() | MakeTuple() | Project():
                pass
            case _:
                return None
    return total


@pytest.mark.parametrize("program", sample([p for p in programs() if p.differentiable], 60), ids=lambda p: p.name)
def test_straight_line_programs_of_the_zoo_cost_at_most_four_times_as_much(program: Program) -> None:
    primal = flops(program.function.core(*program.arguments))
    if not primal:
        pytest.skip("no straight-line code")
    found = flops(relay.value_and_grad(program.function).core(*program.arguments))
    assert found is not None and found <= 4 * primal


@relay
def two_layers(params, x, y):
    h = relay.relu(x @ params["w1"] + params["b1"])
    difference = h @ params["w2"] + params["b2"] - y
    return relay.mean(difference * difference)


@relay
def attention_block(weights, x):
    q, k, v = x @ weights["q"], x @ weights["k"], x @ weights["v"]
    scores = relay.softmax(q @ k.T / 4.0)
    return relay.mean((scores @ v @ weights["o"] + x) ** 2)


@relay
def small_convolutions(weights, x):
    h = relay.relu(relay.conv2d(x, weights["first"], padding=(1, 1)))
    h = relay.max_pool2d(h, (2, 2), stride=(2, 2))
    h = relay.relu(relay.conv2d(h, weights["second"], padding=(1, 1)))
    return relay.mean(relay.mean(h, axis=(2, 3)) @ weights["last"])


def matrix(*shape: int) -> np.ndarray:
    return np.cos(np.arange(math.prod(shape), dtype=np.float64)).reshape(shape)


MODELS = [
    (
        two_layers,
        ({"w1": matrix(32, 64), "b1": matrix(64), "w2": matrix(64, 8), "b2": matrix(8)}, matrix(16, 32), matrix(16, 8)),
    ),
    (attention_block, ({name: matrix(16, 16) for name in "qkvo"}, matrix(24, 16))),
    (
        small_convolutions,
        ({"first": matrix(8, 3, 3, 3), "second": matrix(16, 8, 3, 3), "last": matrix(16, 4)}, matrix(2, 3, 8, 8)),
    ),
]


@pytest.mark.parametrize(("model", "arguments"), MODELS, ids=lambda c: getattr(c, "__name__", ""))
def test_the_gradients_of_models_cost_at_most_four_times_as_much(model: Any, arguments: tuple[Any, ...]) -> None:
    primal = flops(model.core(*arguments))
    with_all = flops(relay.value_and_grad(model).core(*arguments))
    of_weights = flops(relay.value_and_grad(model, wrt=0).core(*arguments))
    assert primal and with_all and of_weights
    assert of_weights <= with_all <= 3.2 * primal  # products dominate, and each has two in the backward part


STEPS = (
    *("relay.sin({a})", "relay.tanh({a})", "{a} * {b}", "{a} + {b}", "{a} - {b}", "relay.exp(-{a})", "w @ {a}"),
    *("{a} / (1.0 + {b} * {b})", "relay.sqrt(1.0 + {a} * {a})", "relay.sigmoid({a})", "relay.log(2.0 + {a} * {a})"),
    *(
        "relay.maximum({a}, {b})",
        "relay.where({a} > 0.0, {a}, {b})",
        "{a} ** 3",
        "relay.softmax({a})",
        "relay.relu({a})",
    ),
)


@pytest.mark.parametrize("seed", range(10))
def test_random_straight_line_code_costs_at_most_four_times_as_much(seed: int) -> None:
    choose, names, lines = random.Random(seed), ["x", "y"], []
    for position in range(14):
        step = choose.choice(STEPS).format(a=choose.choice(names[-4:]), b=choose.choice(names))
        names.append(f"v{position}")
        lines.append(f"    {names[-1]} = {step}")
    text = "\n".join(["def f(x, y, w):", *lines, f"    return relay.sum({' + '.join(names[-3:])})"])
    function = relay.from_source(text, {"relay": relay})
    given = (X, X[::-1].copy(), np.eye(64))
    primal = flops(function.core(*given))
    both = flops(relay.value_and_grad(function).core(*given))
    one = flops(relay.value_and_grad(function, wrt=0).core(*given))
    assert primal and both and one and one <= both <= 4 * primal


def test_derivatives_of_straight_line_code_and_branches_hold_no_data() -> None:
    @relay
    def program(x, k):
        def f(v):
            return v * x if k > 0 else relay.sin(v)

        y = f(x) * x
        if k > 2:
            y = f(y) + x[3]
        p = Weights(x, x[0])
        g = relay.grad(lambda v: relay.sum(v * p.table) * p.scale)
        return relay.sum(y) + relay.sum(g(x)) + (p.scale if k > 1 else relay.sum(x))

    core = relay.grad(program, wrt=0).core(X, 1)
    assert set(core.functions) == {core.entry}
    for b in bindings(core):
        assert not isinstance(b.value, StackNew | RefNew)
        assert not any(isinstance(t.type, DataType | RefType | StackType) for t in b.targets)


@relay
def arms_with_residuals(x, k):
    y = x * 1.5
    if k > 3:
        a = relay.sin(y)
        y = a * a * x
    elif k > 1:
        b = relay.exp(y)
        c = relay.tanh(b)
        y = b * c
    else:
        y = relay.cos(y) * y
    return relay.sum(y * y)


@relay
def branches_in_a_static_loop(x):
    s = x[0]
    for i in range(6):
        if s > 0.5:
            a = relay.sin(s)
            s = a * a * x[i]
        else:
            s = relay.exp(s) * s + 0.3
    return s


def test_arms_hand_out_their_residuals() -> None:
    for k in (1, 2, 4):
        derivative = relay.grad(arms_with_residuals, wrt=0)
        for found, tape in zip(derivative(X, k), derivative.interpret(X, k), strict=True):
            np.testing.assert_allclose(found, tape, rtol=1e-10)
        second = relay.jacobian(derivative, wrt=0)
        small = X[:3]
        np.testing.assert_allclose(second(small, k), second.interpret(small, k), rtol=1e-9)
    for core in (derivative.core(X, 1), relay.grad(branches_in_a_static_loop).core(X)):
        assert set(core.functions) == {core.entry}
        assert not any(isinstance(t.type, DataType | RefType) for b in bindings(core) for t in b.targets)
    assert relay.check_gradient(branches_in_a_static_loop, X) < 1e-7


# ---- tapes


def taped(module: Module) -> list[str]:
    return [str(b.value.value.type) for b in bindings(module) if isinstance(b.value, StackPush)]


def test_only_what_the_backward_part_uses_is_taped() -> None:
    @relay
    def program(x, n):
        for _ in range(n):
            a = x * 3.0 + 1.0
            b = relay.sin(a)
            x = b + a - 2.0
        return x

    assert taped(relay.grad(program, wrt=0).core(np.float64(1.0), 5)) == ["Tensor[float64, ()]"]


def test_a_loop_that_needs_nothing_tapes_nothing() -> None:
    @relay
    def program(x, y, n):
        for _ in range(n):
            x = 2.0 * x - y + relay.stop_gradient(relay.sin(x))
        return relay.sum(x)

    core = relay.grad(program, wrt=(0, 1)).core(X, X, 5)
    assert taped(core) == []
    assert operations(core, "sin") == 0  # and does not even run forward


def test_what_comes_from_outside_of_a_loop_is_not_taped() -> None:
    @relay
    def program(x, w, n):
        h = relay.tanh(w)
        for _ in range(n):
            x = x * h * w
        return relay.sum(x)

    assert taped(relay.grad(program, wrt=0).core(X, X, 5)) == []


def test_integers_and_indices_are_computed_again() -> None:
    @relay
    def program(x):
        s = 0.0
        for i in range(10):
            s = s + x[(3 * i + 1) % 7] * 2.0
        return s

    assert taped(relay.grad(program).core(X)) == []


# ---- depth and length


@relay
def countdown(x: Tensor[Float64, ()], n: Tensor[Int32, ()]) -> Tensor[Float64, ()]:
    if n == 0:
        return x
    return countdown(x * 0.999 + 0.001, n - 1)


def test_tail_recursion_needs_no_stack() -> None:
    derivative = relay.grad(countdown, wrt=0)
    core = derivative.core(np.float64(2.0), 1)
    assert set(core.functions) == {core.entry}  # a loop
    np.testing.assert_allclose(derivative(np.float64(2.0), 1_000_000), 0.0, atol=1e-300)
    np.testing.assert_allclose(derivative(np.float64(2.0), 1_000), 0.999**1000)
    np.testing.assert_allclose(derivative.interpret(np.float64(2.0), 3_000), 0.999**3000)


@relay
def tail_calls_with_two_results(x, n):
    def go(a, b, m) -> tuple[Tensor[Float64, ()], Tensor[Float64, ()]]:
        if m == 0:
            return a, b
        return go(a * 0.999 + b * 0.001, b * 0.9999, m - 1)

    a, b = go(x, x * 2.0, n)
    return a + b


@relay
def tail_calls_of_each_other(x, n):
    def even(v, m) -> Tensor[Float64, ()]:
        if m == 0:
            return v
        return odd(v * 0.999999, m - 1)

    def odd(v, m) -> Tensor[Float64, ()]:
        if m == 0:
            return v * 2.0
        return even(v * 1.000001, m - 1)

    return even(x, n)


@pytest.mark.parametrize("function", [tail_calls_with_two_results, tail_calls_of_each_other])
def test_tail_calls_of_several_forms_need_no_stack(function: Any) -> None:
    derivative = relay.value_and_grad(function, wrt=0)
    core = derivative.core(np.float64(2.0), 1)
    assert set(core.functions) == {core.entry}
    assert not any(isinstance(b.value, Call) for b in bindings(core))
    value, slope = derivative(np.float64(2.0), 1_000_000)
    np.testing.assert_allclose(value, 2.0 * slope, rtol=1e-9)  # linear
    for found, tape in zip(derivative(np.float64(2.0), 501), derivative.interpret(np.float64(2.0), 501), strict=True):
        np.testing.assert_allclose(found, tape, rtol=1e-9)


def test_a_long_chain_is_differentiated_in_linear_size() -> None:
    def text(n: int) -> str:
        lines = [f"    x{i + 1} = relay.sin(x{i}) * x{i}" for i in range(n)]
        return "\n".join(["def chain(x0):", *lines, f"    return x{n}"])

    sizes = []
    for n in (50, 100, 200):
        f = relay.from_source(text(n), {"relay": relay})
        sizes.append(len(bindings(relay.grad(f).core(np.float64(1.0)))))
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_arms_are_visited_by_the_helpers() -> None:
    """The counting above sees inside of branches."""
    core = relay.grad(constant_index, wrt=0).core(X, 5)
    assert any(isinstance(b.value, If | Match) for b in in_loops(core))
    assert sum(1 for _ in all_blocks(core.main.body)) > 4
