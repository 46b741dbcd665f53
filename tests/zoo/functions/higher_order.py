"""Functions that are known only at run time: chosen, changed by loops, growing, stored, returned, differentiated."""

import numpy as np

from relay import Float64, Fn, Forall, List, Option, Tensor, ref, relay, shape_var
from zoo import Program

s = shape_var("s")


@relay
def chosen(x, y):
    if x > y:
        f = lambda v: v * x
    else:
        f = lambda v: relay.sin(v) + y
    return f(x) * f(y)


@relay
def chosen_among_known(x, n):
    f = relay.sin if n == 0 else relay.exp if n == 1 else relay.tanh
    return f(f(x))


@relay
def chosen_twice(x, y):
    f = (lambda v: v * x) if x > 0.0 else (lambda v: v + y)
    g = f if y > 0.0 else (lambda v: f(v) * y)
    return g(x) + f(y)


@relay
def chosen_early(x, y):
    def pick():
        if x > 1.0:
            return lambda v: v * x
        if y > 1.0:
            return lambda v: v * y * y
        return relay.cos

    return pick()(x) + pick()(y)


@relay
def changed_by_loop(x, n):
    f = lambda v: v * x
    y = x
    for i in range(n):
        y = f(y) + 0.5
        if i == 1:
            f = relay.sin
    return f(y)


@relay
def swapped_by_loop(x, n):
    f = relay.sin
    g = relay.exp
    for _ in range(n):
        f, g = g, f
        x = f(x) * 0.5
    return x + g(x)


@relay
def at_two_shapes(f: Forall[[s], Fn[[Tensor[Float64, s]], Tensor[Float64, s]]], x, row):
    return f(x) * f(row).sum()


@relay
def polymorphic_arguments(x, row):
    def scaled(v):
        return v * x + 0.5

    return at_two_shapes(scaled, x, row) + at_two_shapes(relay.tanh, x * x, row[1:])


@relay
def compose(f, g):
    return lambda v: f(g(v))


@relay
def growing_in_loop(x, n):
    f = lambda v: v * x
    for _ in range(n):
        f = compose(f, lambda v: relay.sin(v) + x)
    return f(x)


@relay
def growing_in_while(x):
    f = lambda v: v
    y = x
    while y < 10.0:
        f = compose(f, lambda v: v * x)
        y = f(y) + 1.0
    return y


@relay
def iterate(f, n):
    return (lambda v: v) if n == 0 else compose(f, iterate(f, n - 1))


@relay
def iterated(x, n):
    return iterate(lambda v: relay.sin(v) + x, n)(x) + iterate(relay.exp, 2)(x)


@relay
def factorial(n, x, k):
    return k(x) if n == 0 else factorial(n - 1, x, lambda r: k(r * x + 1.0))


@relay
def continuation_passing(n, x):
    return factorial(n, x, lambda r: r * r)


@relay
def tuple_in_loop(x, n):
    state = (lambda v: v * x, x)
    for _ in range(n):
        f, y = state
        state = (compose(f, relay.sin), f(y))
    return state[0](state[1])


@relay
def tuple_kept_in_loop(x, n):
    state = (lambda v: v * x, x)
    for _ in range(n):
        state = (state[0], state[0](state[1]))
    return state[1]


@relay
def in_reference(x, n):
    r = relay.ref(lambda v: v * x)
    y = x
    for i in range(n):
        f = relay.read(r)
        if i == 1:
            relay.write(r, relay.sin)
        y = f(y) + 0.1
    return relay.read(r)(y)


@relay
def returned_pair(x, y):
    def make(c):
        if c:
            return (lambda v: v * x, x)
        return (lambda v: v + y, y * y)

    f, a = make(x > y)
    g, b = make(x < y)
    return f(b) * g(a)


@relay
def gradient_of_chosen(x, y):
    f = (lambda v: v * v * y) if x > 0.0 else (lambda v: relay.sin(v) * y)
    return relay.grad(f)(x) + f(y)


@relay
def second_gradient_of_chosen(x, y):
    f = (lambda v: v * v * v * y) if x > 0.0 else (lambda v: relay.sin(v) * y)
    return relay.grad(relay.grad(f))(x)


@relay
def chosen_gradient(x, y):
    f = lambda v: relay.exp(v * y)
    g = relay.grad(f) if x > 0.0 else f
    return g(x)


@relay
def gradient_of_iterated(x, n):
    return relay.grad(iterate(lambda v: relay.sin(v) * x, n))(x)


@relay
def newton_on_chosen(x, c):
    f = (lambda v: v * v - x) if c > 0.0 else (lambda v: v * v * v - x)
    y = x + 1.0
    for _ in range(4):
        y = y - f(y) / relay.grad(f)(y)
    return y


@relay
def apply_all(f, g, x):
    return f(x) + g(x)


@relay
def chosen_arguments(x, y):
    f = (lambda v: v * x) if x > y else relay.tanh
    return apply_all(f, lambda v: f(v) * y, x)


@relay
def mutual(x, n):
    def even(k, f):
        return f(x) if k == 0 else odd(k - 1, lambda v: f(v) + x)

    def odd(k, f):
        return f(x * x) if k == 0 else even(k - 1, lambda v: f(v) * x)

    return even(n, lambda v: v * 0.5)


@relay
def church(x, n):
    zero = lambda f: lambda v: v

    def successor(m):
        return lambda f: lambda v: f(m(f)(v))

    m = zero
    for _ in range(n):
        m = successor(m)
    return m(lambda v: v * x + 1.0)(x)


@relay
def higher_chosen(x, y):
    twice = lambda f: lambda v: f(f(v))
    thrice = lambda f: lambda v: f(f(f(v)))
    t = twice if x > y else thrice
    return t(lambda v: v * y + x)(x)


@relay
def knot(x, n):
    r = relay.ref(lambda v, m: v)
    relay.write(r, lambda v, m: v if m == 0 else relay.read(r)(v * x, m - 1))
    return relay.read(r)(x, n)


@relay
def default_in_loop(x, n):
    f = lambda v: v
    s = x
    for _ in range(n):
        s = relay.sin(s) + x
        f = compose(f, lambda v, s=s: v * s + 1.0)
    return f(x)


@relay
def defaults_in_unrolled_loop(x):
    functions = ()
    for k in (1.0, 2.0, 3.0):
        functions = (*functions, lambda v, k=k: v * k)
    for f in functions:
        x = f(x) + 1.0
    return x


@relay
def nested_tuples_in_loop(x, n):
    h = (relay.sin, (lambda v: v * x, relay.sin))
    for _ in range(n):
        a, (b, c) = h
        h = (b, (c, compose(a, b)))
    return h[0](h[1][0](h[1][1](x)))


@relay
def in_list(x, n):
    functions = List.Nil()
    for i in range(n):
        functions = List.Cons(relay.sin if i == 1 else (lambda v: v * x), functions)

    def run(rest, v):
        match rest:
            case List.Nil():
                return v
            case List.Cons(f, others):
                return run(others, f(v))

    return run(functions, x)


@relay
def in_option(x, y):
    f = Option.Some(lambda v: v * x) if x > y else Option.Nothing() if y > 3.0 else Option.Some(lambda v: v + y)
    match f:
        case Option.Some(g):
            return g(x) * g(y)
        case Option.Nothing():
            return x


X, Y = np.float64(0.7), np.float64(1.3)


@relay
def chosen_with_arrays(x, y):
    """Functions that have captured an array, a record and a cell, or an array only."""
    r = relay.ref(x * y)
    v = relay.stack([x, y, x + y])
    p = {"a": x, "b": y}
    f = (lambda t: p["b"] - 0.3 * (r.value + v[0])) if x > y else (lambda t: relay.sqrt(1.0 + v[0] * v[0]))
    return x + 0.5 * f(y) * r.value + p["a"] * p["b"] + 0.2 * relay.sum(v * v)


@relay
def above(xs, bound):
    kept = xs[xs > bound]
    return (lambda t: t * (kept * kept).sum()) if bound < 1.0 else (lambda t: t * kept.shape[0])


@relay
def chosen_with_made_sizes(xs, n):
    fs = [lambda t: t]
    for i in range(n):
        fs.append(above(xs, 0.5 * i.astype(Float64)))
    total = xs[0] * 0.0
    for f in fs:
        total = total + f(xs[0])
    return total


@relay
def holding_made_sizes(xs, n):
    def scaled(kept):
        def call(t):
            again = kept[kept < 1.9]
            return t * kept.sum() + again.sum() * kept.shape[0]

        return call

    cell = ref(lambda t: t)
    for i in range(n):
        f = cell.value
        kept = xs[xs > 0.5 * i.astype(Float64)]
        g = scaled(kept) if i % 2 == 0 else (lambda t, f=f: f(t) + 1.0)
        cell.value = compose(g, f) if i < 2 else g
    return cell.value(xs[0])


@relay
def mapped(f, items):
    return tuple(f(item) for item in items)


@relay
def mapped_one_by_one(f, items):
    return () if len(items) == 0 else (f(items[0]), *mapped_one_by_one(f, items[1:]))


@relay
def at_whole_and_sum(f, x):
    return mapped(f, (x, x.sum()))


@relay
def at_several_types(x, c):
    doubled, scalar, count = mapped(lambda v: v * c, (x, c, 2))
    first, second = mapped_one_by_one(lambda v: v + c, (x @ x, x))
    whole, total = at_whole_and_sum(lambda v: relay.sin(v) * c, x)
    return (doubled * first + second).sum() * scalar + count + (whole * total).sum()


PROGRAMS = [
    Program(chosen_with_made_sizes, (np.array([0.2, 0.7, 1.3, 2.1]), 4)),
    Program(holding_made_sizes, (np.array([0.2, 0.7, 1.3, 2.1]), 3)),
    Program(holding_made_sizes, (np.array([0.2, 0.7, 1.3, 2.1]), 4)),
    Program(at_several_types, (np.array([0.5, -0.3, 0.2]), X)),
    Program(chosen_with_arrays, (np.float64(0.7), np.float64(-0.4))),
    Program(chosen_with_arrays, (np.float64(-0.7), np.float64(0.4))),
    Program(polymorphic_arguments, (X, np.array([0.5, -0.3, 0.2]))),
    Program(chosen, (X, Y)),
    Program(chosen_among_known, (X, 1)),
    Program(chosen_twice, (X, -Y)),
    Program(chosen_early, (X, Y)),
    Program(changed_by_loop, (X, 4)),
    Program(swapped_by_loop, (X, 3)),
    Program(growing_in_loop, (X, 3)),
    Program(growing_in_while, (Y,)),
    Program(iterated, (X, 3)),
    Program(continuation_passing, (3, X)),
    Program(tuple_in_loop, (X, 3)),
    Program(tuple_kept_in_loop, (X, 3)),
    Program(in_reference, (X, 4)),
    Program(knot, (X, 3), expected=0.7**4, expected_gradient=(4 * 0.7**3, None)),
    Program(default_in_loop, (X, 3)),
    Program(defaults_in_unrolled_loop, (X,), expected=((0.7 + 1) * 2 + 1) * 3 + 1),
    Program(nested_tuples_in_loop, (X, 3)),
    Program(in_list, (X, 3), expected=np.sin(0.7 * 0.7) * 0.7),
    Program(in_option, (X, Y), expected=2.0 * 2.6),
    Program(returned_pair, (X, Y)),
    Program(gradient_of_chosen, (X, Y)),
    Program(second_gradient_of_chosen, (X, Y)),
    Program(chosen_gradient, (X, Y)),
    Program(gradient_of_iterated, (X, 2)),
    Program(newton_on_chosen, (Y, -X)),
    Program(chosen_arguments, (X, Y)),
    Program(mutual, (X, 3)),
    Program(church, (X, 3)),
    Program(higher_chosen, (X, Y)),
]
