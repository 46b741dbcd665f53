"""Transformations in every order: `vmap` inside, between and outside of two others, of programs with loops, with
gradients of their own, and of quantized ones.

    vmap(t(s(f)))(w, xs)     the examples' t(s(f))(w, x), stacked
    t(vmap(s(f)))(w, xs)     these, or their sum where t adds up what w has done: grad, vjp and hessian
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from agreement import at_level

import relay

Transformation: TypeAlias = Callable[[Any], Any]


@relay
def layer(w, x):
    return np.tanh(x @ w)


@relay
def rounds(w, x):
    for _ in range(3):
        x = np.sin(x @ w) if x.sum() > 0.5 else x @ w + 0.25
    return x


@relay
def smooth(x):
    return np.log(1.0 + np.exp(x))


@smooth.def_gradient
def smooth_gradient(saved, seed):
    return seed * (0.5 + 0.25 * saved[0])  # not the derivative, which shows that it is taken


@relay
def ruled(w, x):
    return smooth(x @ w) * x


RANDOM = np.random.default_rng(4)
WEIGHTS, ROWS = RANDOM.normal(size=(2, 2)), RANDOM.normal(size=(3, 2))
PROGRAMS = {
    "layer": layer,
    "rounds": rounds,
    "ruled": ruled,
    "quantized": relay.to_int8(layer, [[WEIGHTS, row] for row in ROWS], straight_through=True),
}


def gradient(f: Any) -> Any:
    @relay
    def total(w, x):
        return f(w, x).sum()

    return relay.grad(total, wrt=0)


def tangent(f: Any) -> Any:
    @relay
    def along(w, x):
        return relay.jvp(f, (w, x), (w * w, x))[1]

    return along


def pulled(f: Any) -> Any:
    @relay
    def back(w, x):
        y, pull = relay.vjp(f, w, x)
        return pull(np.ones_like(y))[0]

    return back


def second(f: Any) -> Any:
    @relay
    def total(w, x):
        return f(w, x).sum()

    return relay.hessian(total, wrt=0)


TRANSFORMATIONS: dict[str, Transformation] = {
    "grad": gradient,
    "jvp": tangent,
    "vjp": pulled,
    "jacobian": lambda f: relay.jacobian(f, wrt=0),
    "hessian": second,
    "checkpoint": relay.checkpoint,
}
PAIRED = tuple(name for name in TRANSFORMATIONS if name != "hessian")  # which is the jacobian of a gradient
ADDING = ("grad", "vjp", "hessian")
PLACES = ("inside", "between", "outside")


def batched(f: Any) -> Any:
    return relay.vmap(f, in_axes=(None, 0))


def check(program: str, names: tuple[str, ...], run: Callable[[Any], Callable[..., Any]]) -> None:
    """The examples are batched at every place among the transformations, the innermost first."""
    f = PROGRAMS[program]
    alone = f
    for name in names:
        alone = TRANSFORMATIONS[name](alone)
    each = np.stack([alone.interpret(WEIGHTS, row) for row in ROWS])
    for place in range(len(names) + 1):
        made = f
        for number, name in enumerate(names):
            made = TRANSFORMATIONS[name](batched(made) if number == place else made)
        made = batched(made) if place == len(names) else made
        adds = any(name in ADDING for name in names[place:])
        expected = each.sum(axis=0) if adds else each
        found = np.asarray(run(made)(WEIGHTS, ROWS))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"{names}, vmap at {place}")


@pytest.mark.parametrize("inner", PAIRED)
@pytest.mark.parametrize("program", ["rounds", "ruled", "quantized"])
def test_two_transformations_and_vmap_in_every_order(program: str, inner: str) -> None:
    for outer in PAIRED:
        check(program, (inner, outer), lambda f: f.interpret)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled_orders(program: str, name: str) -> None:
    """Each program meets each level, as each transformation does."""
    level = (list(PROGRAMS).index(program) + list(TRANSFORMATIONS).index(name)) % 4
    check(program, (name,), lambda f: at_level(f, level))
