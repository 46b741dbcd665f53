"""Functions that are made before the data-dependent sizes of their arguments."""

import numpy as np

import relay as rl
from relay import Any, Float64, Fn, Tensor, relay
from zoo import Program

FOUR = np.array([0.5, 0.2, 0.9, 0.4])


@relay
def local_function(x):
    def doubled(v):
        return v * 2.0

    chosen = x[x > 0.3]
    total = 0.0
    for _ in range(2):
        total += rl.sum(doubled(x[x > 0.45]))
    return rl.sum(doubled(chosen)) * total


@relay
def function_value(x, positive: bool):
    f = (lambda v: v * 2.0) if positive else (lambda v: v + 1.0)
    cell = rl.ref(lambda v, w: v * w)
    chosen = x[x > 0.3]
    return rl.sum(f(chosen) * chosen) + rl.sum(cell.value(chosen, chosen * 2.0))


@relay
def applied_to_chosen(f: Fn[[Tensor[Float64, (Any,)]], Tensor[Float64, ()]], x: Tensor[Float64, (4,)]):
    return f(x[x > 0.3]) * f(x)


@relay
def annotated_function(x: Tensor[Float64, (4,)]):
    return applied_to_chosen(lambda v: rl.sum(v * v), x)


@relay
def applied_to_all(f: Fn[[Tensor[Float64, (Any,)]], Tensor[Float64, (Any,)]], x: Tensor[Float64, (4,)]):
    total = rl.sum(f(x)) + rl.sum(f(x[1:]) * x[:3])
    for _ in range(2):
        x = f(x)
    return total + rl.sum(f(f(x[x > 0.3])))


@relay
def known_size_first(x: Tensor[Float64, (4,)], scale: Tensor[Float64, ()]):
    return applied_to_all(lambda v: v * scale, x) * applied_to_all(rl.sin, x)


@relay
def chosen_before_sizes(x: Tensor[Float64, (4,)], positive: bool):
    return applied_to_all((lambda v: v + 1.0) if positive else (lambda v: v * v), x)


@relay
def doubled_rows(v: Tensor[Float64, (Any,)]):
    return v * 2.0


@relay
def declared_function(x: Tensor[Float64, (4,)]):
    return applied_to_all(doubled_rows, x)


@relay
def pulled_back_twice(x):
    y, pull = rl.vjp(lambda v: v[v > 0.3] * v[0], x)
    return rl.sum(pull(y) + pull(y * 2.0) * pull(x[x > 0.3]))


@relay
def with_pullback(x):
    y, pull = rl.vjp(lambda v: (v[v > 0.3] * v[0], v[v < 0.45]), x)
    return y, pull


@relay
def pullbacks_of_two_calls(x):
    (a, b), first = with_pullback(x)
    other, second = with_pullback(x * 1.3)
    return rl.sum(first((a, b)) * second(other))


@relay
def pullback_that_nobody_calls(x):
    y, _ = rl.vjp(lambda v: v[v > 0.3] * v[0], x)
    return rl.sum(y * y)


@relay
def jacobian_of_chosen(x):
    return rl.sum(rl.jacobian(lambda v: v[v > 0.3] * v[0])(x) ** 2)


@relay
def chosen_and_their_number(x):
    y = x[x > 0.3]
    return y, y.shape[0]


@relay
def sizes_of_two_calls(x):
    """A size that a called function makes is a number for its caller."""
    y, n = chosen_and_their_number(x)
    z, m = chosen_and_their_number(x - 0.15)
    return rl.sum(y) * float(n * 10 + m) + rl.sum(z[: y.shape[0]])


@relay
def growing_rows(x):
    rows, i = [], 0
    while x[i] < 0.8:
        row = []
        for j in range(i + 1):
            row.append(x[j] * 2.0)
        rows.append(row)
        i += 1
    return rows, [i, i], x * 1.5


@relay
def pullback_of_lists_in_lists(x):
    y, pull = rl.vjp(growing_rows, x)
    return rl.sum(pull(y) * x)


PROGRAMS = [
    Program(sizes_of_two_calls, (FOUR,), expected=(1.8 * 32 + 1.1)),
    Program(pullback_of_lists_in_lists, (FOUR,)),
    Program(local_function, (FOUR,), expected=(3.6 * 5.6)),
    Program(function_value, (FOUR, True)),
    Program(annotated_function, (FOUR,), expected=(1.22 * 1.26)),
    Program(known_size_first, (FOUR, np.float64(1.5))),
    Program(chosen_before_sizes, (FOUR, True)),
    Program(declared_function, (FOUR,)),
    Program(pulled_back_twice, (FOUR,)),
    Program(pullbacks_of_two_calls, (FOUR,)),
    Program(pullback_that_nobody_calls, (FOUR,)),
    Program(jacobian_of_chosen, (FOUR,)),
]
