"""Control flow by functions, under JAX's names: `scan`, `fori_loop`, `while_loop`, `cond`, `switch`, `map`.

They are written in the language, where `for`, `while` and `if` say the same.
"""

from __future__ import annotations

import relay


@relay
def fori_loop(lower, upper, body_fun, init_val):
    """The value after `value = body_fun(i, value)` for each i from `lower` up to `upper`, as in JAX."""
    value = init_val
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value


@relay
def while_loop(cond_fun, body_fun, init_val):
    """The value after `value = body_fun(value)` as long as `cond_fun(value)` holds, as in JAX. Unlike there, it has a
    gradient."""
    value = init_val
    while cond_fun(value):
        value = body_fun(value)
    return value


@relay
def cond(pred, true_fun, false_fun, *operands):
    """`true_fun(*operands)` where `pred` holds, else `false_fun(*operands)`; one of them runs, as in JAX."""
    if pred:
        return true_fun(*operands)
    else:
        return false_fun(*operands)


@relay
def scan(
    f,
    init,
    xs=None,
    length=None,  # relay: static
):
    """The pair of the last carry and all results: `carry, y = f(carry, x)` for each x along the first axes of `xs`,
    whose results are stacked, as in JAX. Without `xs` there are `length` rounds, and x is None.

    The carry is of one type, and there is at least one round.
    """
    carry = init
    if xs is None:
        if length is None:
            raise ValueError("scan needs xs, or the number of rounds as length")
        results = []
        for _ in range(length):
            carry, y = f(carry, None)
            results.append(y)
    else:
        results = []
        for i in range(len(relay.tree.leaves(xs)[0])):
            carry, y = f(carry, _row(xs, i))
            results.append(y)
    return carry, _stack_structures(results)


@relay
def map(f, xs):
    """`f(x)` for each x along the first axes of `xs`, stacked, as in JAX."""
    results = []
    for i in range(len(relay.tree.leaves(xs)[0])):
        results.append(f(_row(xs, i)))
    return _stack_structures(results)


@relay
def _row(xs, i):
    """The structure of the i-th parts of the arrays in xs."""
    return relay.tree.map(lambda leaf: leaf[i], xs)


@relay
def _stack_structures(results):
    """A list of structures as the structure of their stacked arrays."""
    first = results[0]
    if first is None:
        return first
    elif isinstance(first, tuple):
        return tuple([_stack_structures([result[i] for result in results]) for i in range(len(first))])
    elif isinstance(first, dict):
        return {key: _stack_structures([result[key] for result in results]) for key in first}
    else:
        return relay.stack(results)
