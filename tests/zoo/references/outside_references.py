"""Derivatives of functions with references from outside, which may be the same one, hold others, or lie in data and
lists; and derivatives that return such data."""

from __future__ import annotations

import numpy as np

import relay as language
from relay import Float64, Int32, Ref, Tensor, relay
from zoo import Program

Real = Tensor[Float64, ()]


@relay
def exchange(v, a, b):
    """Writes through one reference and reads through the other one."""
    a.value = v * b.value
    b.value = b.value + relay.sin(a.value)
    return a.value * b.value * v


@relay
def given_twice_and_apart(x):
    r, s = relay.ref(x), relay.ref(x * x)
    slope = relay.grad(exchange, wrt=0)
    same = slope(x, r, r)
    apart = slope(x, r, s)
    return same * apart + r.value * s.value


@relay
def aliases_that_a_branch_makes(x):
    r, s = relay.ref(x), relay.ref(x * 2.0)
    t = r if x > 0.0 else s
    value, slope = relay.value_and_grad(exchange, wrt=0)(x, r, t)
    return value + slope * t.value


@relay
def captured_twice(x):
    r = relay.ref(x * 3.0)

    def through(a, b):
        def inner(v):
            a.value = a.value * v
            return relay.sin(b.value) * v

        return relay.grad(inner)(x)

    return through(r, r) * through(r, relay.ref(x))


@relay
def swapped_in_a_loop(x):
    """A reference to a reference."""
    one, two = relay.ref(x), relay.ref(x * x)

    def inner(v, chosen: Ref[Ref[Real]], other: Ref[Ref[Real]]):
        total = v * 0.0
        for i in range(5):
            chosen.value.value = chosen.value.value * v + other.value.value
            chosen.value, other.value = other.value, chosen.value
            total = total + chosen.value.value * float(i)
        return total * v

    slope = relay.grad(inner, wrt=0)
    chosen, other = relay.ref(one), relay.ref(two)
    apart = slope(x, chosen, other)
    return apart + slope(x, chosen, chosen) * one.value + two.value


@language.data
class Chain:
    class Link:
        value: Ref[Real]
        rest: Chain

    class End:
        pass


@relay
def pass_along(v, chain):
    """The sum of a linked list, each cell of which takes over from the one before."""
    match chain:
        case Chain.Link(value, rest):
            value.value = relay.sin(value.value * v)
            return value.value + pass_along(value.value * v, rest)
        case Chain.End():
            return v * v


@relay
def linked_list(x):
    first, second = relay.ref(x), relay.ref(x * 2.0)
    chain = Chain.Link(first, Chain.Link(second, Chain.Link(first, Chain.Link(relay.ref(x + 1.0), Chain.End()))))
    slope = relay.grad(pass_along, wrt=0)
    return slope(x, chain) + first.value * second.value + slope(x * x, chain)


@relay
def grown_list(x):
    """References in a list that a loop has made longer, the first of them twice."""
    first = relay.ref(x)
    cells = [first]
    while len(cells) < 4:
        cells.append(relay.ref(x * float(len(cells))))
    cells.append(first)

    def inner(v):
        total = v * 0.0
        for cell in cells:
            cell.value = relay.sin(cell.value * v)
            total = total * v + cell.value
        return total

    return relay.grad(inner)(x) * first.value


@relay
def in_a_tuple(x):
    r = relay.ref(x)

    def inner(v, pair: tuple[Ref[Real], tuple[Ref[Real], Tensor[Int32, ()]]]):
        one, (two, n) = pair
        for _ in range(n):
            one.value = one.value * v
            two.value = two.value + v
        return one.value * two.value

    slope = relay.grad(inner, wrt=0)
    return slope(x, (r, (r, 3)))


@relay
def recursive(x):
    r, s = relay.ref(x), relay.ref(x * x)

    def down(v, a, b, n):
        if n == 0:
            return a.value * v
        a.value = a.value * v + b.value
        return down(v * b.value, b, a, n - 1) + a.value

    slope = relay.grad(down, wrt=0)
    return slope(x, r, s, 4) + slope(x, r, r, 3)


@language.data
class Pair:
    one: Ref[Real]
    two: Ref[Real]
    scale: Real


@relay
def returned_data(x):
    """Data with references that take part in the derivative, one of them twice."""

    def inner(v):
        r = relay.ref(v * v)
        pair = Pair(r, r, v)
        pair.one.value = pair.one.value * v
        return pair.two.value * v, pair

    slope, pair = relay.grad(inner, output=0, keeping=1)(x)
    before = pair.two.value
    pair.one.value = slope
    return before + pair.two.value * pair.scale


@relay
def returned_by_vjp(x):
    outside = relay.ref(x)

    def inner(v):
        outside.value = outside.value * v
        return Pair(outside, relay.ref(v), v), outside.value * v

    (pair, value), pullback = relay.vjp(inner, x)
    pair.two.value = pair.two.value + outside.value
    return pair.one.value * pair.two.value * pair.scale * value + pullback((Pair(outside, outside, x), x))


@relay
def returned_list(x):
    def inner(v, n):
        cells = [relay.ref(v)]
        while len(cells) < n:
            cells.append(relay.ref(cells[-1].value * v))
        cells.append(cells[0])
        cells[0].value = v * v * v
        return cells[-1].value * cells[1].value, cells

    slope, cells = relay.grad(inner, wrt=0, output=0, keeping=1)(x, 3)
    cells[0].value = slope * cells[2].value
    return cells[-1].value + cells[1].value


@relay
def returned_function(x):
    def inner(v):
        cell = relay.ref(v * v)

        def more(by: Real):
            cell.value = cell.value * by
            return cell.value

        return more(v), more

    slope, more = relay.grad(inner, output=0, keeping=1)(x)
    return more(slope) + more(x)


@relay
def returned_references_in_references(x):
    """What is returned twice stays one reference."""

    def inner(v):
        cell = relay.ref(v * v)
        outer = relay.ref(cell)
        outer.value.value = cell.value * v
        return cell.value * v, cell, outer

    slope, cell, outer = relay.grad(inner, output=0, keeping=[1, 2])(x)
    before = cell.value
    outer.value.value = slope * before
    return cell.value + before


@relay
def derivative_in_a_derivative(x):
    """The inner derivative has references that the outer one has, too."""
    r = relay.ref(x)

    def inner(v, a: Ref[Real], b: Ref[Real]):
        a.value = v * b.value
        return a.value * b.value

    def outer(v, a: Ref[Real], b: Ref[Real]):
        return relay.grad(inner, wrt=0)(v, a, b) * b.value

    return relay.grad(outer, wrt=0)(x, r, r) + r.value


@relay
def checkpoint_with_aliases(x):
    r = relay.ref(x)
    s = relay.ref(x * x)
    step = relay.checkpoint(exchange)
    for t in (r, s):
        x = step(x, r, t) * 0.5
    return x + relay.grad(step, wrt=0)(x, r, r) + r.value * s.value


@relay
def checkpoint_with_a_list(x):
    found = [x]

    def f(v):
        found.append(v * v)
        return found[-1] * found[0] * v

    for _ in range(3):
        x = relay.checkpoint(f)(x)
    return x + found[1]


@relay
def with_a_gradient_of_its_own(x):
    r, s = relay.ref(x), relay.ref(x * 2.0)

    def outer(v, a, b):
        first = with_rule(v, a, b)
        a.value = a.value * v
        return with_rule(first, b, a) + a.value * b.value

    slope = relay.grad(outer, wrt=0)
    return slope(x, r, s) + slope(x, r, r)


@relay
def with_rule(x, r: Ref[Real], s: Ref[Real]):
    r.value = r.value * s.value
    return relay.sin(x) * 3.0


@with_rule.def_gradient
def with_rule_gradient(saved, seed):
    x, r, _ = saved
    return 3.0 * relay.cos(x) * seed * (r.value / r.value), None, None


POINT = (np.float64(0.7),)

PROGRAMS = [
    Program(given_twice_and_apart, POINT),
    Program(aliases_that_a_branch_makes, POINT),
    Program(captured_twice, POINT),
    Program(swapped_in_a_loop, POINT),
    Program(linked_list, POINT),
    Program(grown_list, POINT),
    Program(in_a_tuple, POINT),
    Program(recursive, POINT),
    Program(returned_data, POINT),
    Program(returned_by_vjp, POINT),
    Program(returned_list, POINT),
    # Program(returned_function, POINT),
    Program(returned_references_in_references, POINT),
    Program(derivative_in_a_derivative, POINT),
    Program(checkpoint_with_aliases, POINT),
    Program(checkpoint_with_a_list, POINT),
    Program(with_a_gradient_of_its_own, POINT),
]
