"""What must be differentiable: one program for each construct that a derivative has to pass through."""

from __future__ import annotations

import numpy as np

import relay as rl
from relay import Float64, Int32, List, Tensor, Tree, relay
from zoo import Program

Scalar = Tensor[Float64, ()]


@rl.data
class TreeCell:
    """The weights of a tree-structured LSTM: input, output and update, and a forget gate for each child."""

    gates: Tensor[Float64, (3, 2, 4)]
    forget: Tensor[Float64, (2, 2, 4)]
    bias: Tensor[Float64, (3, 2)]
    children: Tensor[Int32, ()]


@relay
def shared(x):
    y = x + x
    return y + y


@relay
def broadcast_sum(x, b):
    return rl.sum((x + b) * x * 2.0 - b)


@relay
def record_of_gradients(p, x):
    h = rl.tanh(p["first"]["w"] @ x + p["first"]["b"])
    return rl.sum(p["second"][0] * h) * p["second"][1]


@relay
def guarded_root(x):
    if x > 0.0:
        y = rl.sqrt(x)
    else:
        y = x * 3.0
    return y


@relay
def squared_until(y):
    while y < 100.0:
        y = y * y
    return y


@relay
def early_exits(xs):
    total = 0.0
    for i in range(6):
        x = xs[i % 4]
        if x < 0.0:
            continue
        total = total + x * x
        if total > 6.0:
            return total * 0.5
        if i == 4:
            break
    return total


@relay
def loops_in_loops(m):
    total = 0.0
    for row in m:
        for j in range(3):
            if row[j] > 0.5:
                total = total * 0.9 + row[j] * row[j]
    return total


@relay
def power_by_recursion(x: Scalar, n: Tensor[Int32, ()]) -> Scalar:
    if n == 0:
        return 1.0
    return x * power_by_recursion(x, n - 1)


@relay
def ping(x: Scalar, n: Tensor[Int32, ()]) -> Scalar:
    return x if n == 0 else rl.sin(pong(x * x, n - 1)) * x


@relay
def pong(x: Scalar, n: Tensor[Int32, ()]) -> Scalar:
    return x if n == 0 else ping(x + 1.0, n - 1) + x


@relay
def tree_lstm(cell, tree):
    def join(left, right):
        hidden = rl.concatenate((left[0], right[0]))
        gates = rl.sigmoid(cell.gates[0] @ hidden + cell.bias[0])
        update = rl.tanh(cell.gates[2] @ hidden + cell.bias[2])
        memory = gates * update
        memory = memory + rl.sigmoid(cell.forget[0] @ hidden) * left[1] + rl.sigmoid(cell.forget[1] @ hidden) * right[1]
        out = rl.sigmoid(cell.gates[1] @ hidden + cell.bias[1]) * rl.tanh(memory)
        return out, memory

    hidden, memory = tree.fold(lambda v: (v, v * 0.5), join)
    return rl.sum(hidden * memory)


@relay
def captured_in_closures(x, y):
    scale = x * y

    def apply(v):
        return v * scale + x

    return apply(y) * apply(x)


@relay
def composed_and_iterated(x, n):
    compose = lambda f, g: lambda v: f(g(v))

    def iterate(f, k):
        result = lambda v: v
        for _ in range(k):
            result = compose(f, result)
        return result

    return iterate(lambda v: rl.sin(v) * x, n)(x)


@relay
def map_and_fold(x, y):
    xs = List.Cons(x, List.Cons(y, List.Cons(x * y, List.Nil())))
    return xs.map(lambda v: v * v * x).fold(lambda total, v: total * 0.5 + v, y)


@relay
def doubled_in_place(x):
    r = rl.ref(x)
    r.value = r.value + r.value
    return r.value


@relay
def aliased_references(x, y):
    a = rl.ref(x * y)
    b = a
    b.value = b.value * x
    c = rl.ref(a.value)
    a.value = y
    return a.value * c.value + b.value * x


@relay
def references_in_loops_and_closures(x, n):
    total = rl.ref(0.0)

    def add(v):
        total.value = total.value * 0.5 + v * x

    for i in range(n):
        add(rl.sin(x * float(i)))
        if i % 2 == 0:
            total.value = total.value * x
    return total.value


@relay
def functional_updates(x, n):
    y = x * 2.0
    for i in range(n):
        y[i % 4] = y[(i + 1) % 4] * x[i % 4]
        y[1:3] = y[1:3] * 0.5 + x[0:2]
    return rl.sum(y * y)


@relay
def gathered(x, indices):
    total = 0.0
    for i in range(5):
        total = total + x[indices[i]] * x[-1]
    return total + rl.sum(rl.take(x, indices) * 2.0)


@relay
def held_noise(x):
    key = rl.random.key(3)
    first, second = rl.random.split(key, 2)
    a = rl.random.normal(first, (3,), dtype=Float64)
    b = rl.random.uniform(second, (3,), dtype=Float64)
    return rl.sum(rl.tanh(x * a + b))


@relay
def integers_between(x, n):
    k = n * 2 - 1
    big = x > float(k)
    rounds = k if big else n
    for _ in range(rounds):
        x = x * 0.5 + float(k)
    return x


@relay
def prints_on_the_way(x):
    y = x * x
    print("squared", y)
    return rl.sin(y) * x


@relay
def grad_of(f):
    return rl.grad(f)


@relay
def gradient_of_an_argument(x):
    return grad_of(lambda v: v * v * x)(x) + grad_of(grad_of(rl.sin))(x)


@relay
def gradient_in_a_loop_over_a_capture(x, n):
    y = x
    for i in range(n):
        f = lambda v, k=i: v * v * x + rl.sin(v) * float(k)
        y = y - 0.1 * rl.grad(f, wrt=0)(y)
    return y


@relay
def gradient_of_a_function_chosen_by_a_branch(x, y):
    f = (lambda v: v * v * y) if x > y else (lambda v: rl.exp(v) * x)
    return rl.grad(f)(x) * rl.grad(rl.grad(f))(y)


@relay
def two_perturbations(x):
    return x * rl.grad(lambda y: x * y)(2.0)


@relay
def vjp_and_jvp_in_a_loop(x, n):
    f = lambda v: rl.sin(v) * v
    for _ in range(n):
        value, pullback = rl.vjp(f, x)
        x = value + 0.1 * pullback(x) + 0.1 * rl.jvp(f, (x,), (value,))[1]
    return x


@relay
def checkpointed_rounds(x, n):
    f = rl.checkpoint(lambda v: rl.sin(v * x) + v)
    y = x
    for _ in range(n):
        y = f(y)
    return y


@relay
def newton_with_hessian(x):
    energy = lambda v: rl.exp(v) - 2.0 * v + v * v
    for _ in range(3):
        x = x - rl.grad(energy)(x) / rl.grad(rl.grad(energy))(x)
    return x


def cell() -> TreeCell:
    rng = np.random.default_rng(4)
    return TreeCell(
        0.5 * rng.standard_normal((3, 2, 4)),
        0.5 * rng.standard_normal((2, 2, 4)),
        0.5 * rng.standard_normal((3, 2)),
        np.int32(2),
    )


def leaf(a: float, b: float) -> object:
    return Tree.Leaf(np.array([a, b]))


TREE = Tree.Node(Tree.Node(leaf(0.5, 1.0), leaf(-1.0, 0.25)), leaf(0.75, -0.5))
X, Y = np.float64(0.7), np.float64(1.3)
VECTOR = np.array([0.6, -0.4, 1.2, 0.9])


@relay
def checkpoints_with_references(x, n):
    r, calls = rl.ref(x), 0

    def step(v):
        nonlocal calls
        calls = calls + 1
        r.value = r.value * v + 0.1
        return rl.sin(r.value) * v

    for _ in range(n):
        x = rl.checkpoint(step)(x)
    return x * r.value * float(calls)


@relay
def tangents_of_lists(x, n):
    def powers(v):
        found = [v]
        for i in range(n):
            found.append(found[i] * v)
        return found

    values, tangents = rl.jvp(powers, (x,), (1.0,))
    s = 0.0
    for value, tangent in zip(values, tangents, strict=False):
        s = s * 0.5 + value * tangent
    return s


@relay
def _squared(x, unused):
    return x * x


@relay
def slope_that_decides_in_a_loop(x):
    """Neither number has a dtype of its own: the slope's is not known before that of the first one."""
    total = x
    for _ in range(2):
        slope = relay.grad(_squared, wrt=0)(total, 2)
        if slope > 0.0:
            total = total + 1.0
    return total


PROGRAMS = [
    Program(checkpoints_with_references, (X, 3)),
    Program(tangents_of_lists, (X, 3)),
    Program(shared, (X,), expected=2.8, expected_gradient=(4.0,)),
    Program(broadcast_sum, (np.arange(6.0).reshape(2, 3), np.array([0.5, -1.0, 2.0]))),
    Program(
        record_of_gradients,
        (
            {"first": {"w": np.arange(6.0).reshape(2, 3) / 9, "b": np.array([0.1, -0.2])}, "second": [VECTOR[:2], X]},
            VECTOR[:3],
        ),
    ),
    Program(guarded_root, (np.float64(-1.0),), expected=-3.0, expected_gradient=(3.0,)),
    Program(squared_until, (np.float64(3.0),), expected=6561.0, expected_gradient=(17496.0,)),
    Program(early_exits, (VECTOR,)),
    Program(early_exits, (VECTOR * 3.0,)),
    Program(loops_in_loops, (np.array([[0.2, 0.7, 1.1], [0.9, 0.1, 0.6]]),)),
    Program(power_by_recursion, (np.float64(2.0), 5), expected=32.0, expected_gradient=(80.0, None)),
    Program(ping, (X, 4)),
    Program(tree_lstm, (cell(), TREE)),
    Program(captured_in_closures, (X, Y)),
    Program(composed_and_iterated, (X, 3)),
    Program(map_and_fold, (X, Y)),
    Program(doubled_in_place, (X,), expected=1.4, expected_gradient=(2.0,)),
    Program(aliased_references, (X, Y)),
    Program(references_in_loops_and_closures, (X, 5)),
    Program(functional_updates, (VECTOR, 6)),
    Program(gathered, (VECTOR, np.array([2, 0, 2, -1, 1], np.int32))),
    Program(held_noise, (VECTOR[:3],)),
    Program(integers_between, (np.float64(9.0), 2)),
    Program(prints_on_the_way, (X,)),
    Program(gradient_of_an_argument, (X,), expected=2 * 0.49 - np.sin(0.7)),
    Program(gradient_in_a_loop_over_a_capture, (X, 3)),
    Program(gradient_of_a_function_chosen_by_a_branch, (X, Y)),
    Program(gradient_of_a_function_chosen_by_a_branch, (Y, X)),
    Program(two_perturbations, (np.float64(1.0),), expected=1.0, expected_gradient=(2.0,)),
    Program(vjp_and_jvp_in_a_loop, (X, 3)),
    Program(checkpointed_rounds, (X, 4)),
    Program(newton_with_hessian, (X,)),
    Program(slope_that_decides_in_a_loop, (X,), expected=2.7),
]
