"""Passes on loops: recurrent nets do their products outside of the loop, and nothing moves that must not."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.expr import Block, Function, Loop, Module, OpCall, Var
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.sizes.facts import assume_facts
from relay.ir.traverse import bound_variables, walk
from relay.operator import Pattern, lookup
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.pipeline import Pipeline


def loops(module: Module) -> list[Loop]:
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return [b.value for f in functions for b in walk(f.body) if isinstance(b.value, Loop)]


def products(block: Block) -> int:
    """The number of products of matrices in a block."""
    calls = [b.value for b in walk(block) if isinstance(b.value, OpCall)]
    return sum(lookup(c.operator).pattern is Pattern.OUTPUT_FUSABLE for c in calls)


@relay
def recurrent(xs, w, u, b, h):  # type: ignore[no-untyped-def]
    for t in range(xs.shape[0]):
        h = relay.tanh(xs[t] @ w + h @ u + b)
    return (h * h).sum()


@relay
def batched(xs, w, u, h):  # type: ignore[no-untyped-def]
    total = 0.0
    for t in range(xs.shape[0]):
        h = relay.sigmoid(relay.dense(relay.tanh(xs[t]), w) + h @ u)
        total += h.mean()
    return total


@relay
def backwards(xs, w, h):  # type: ignore[no-untyped-def]
    n = xs.shape[0]
    for t in range(n):
        h = h * (w @ xs[n - 1 - t])
    return h.sum()


@relay
def normalized(xs, w, u, h):  # type: ignore[no-untyped-def]
    for t in range(xs.shape[0]):
        x = xs[t] - xs[t].mean()
        x = relay.softmax(x / relay.sqrt((x * x).mean() + 0.1))
        h = relay.tanh(x @ w + h @ u)
    return (h * h).sum()


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=shape) * 0.5 for shape in shapes]


CASES = [
    (recurrent, arrays((6, 9), (9, 11), (11, 11), (11,), (11,)), 1, [1, 1]),
    (batched, arrays((6, 2, 9), (11, 9), (11, 11), (2, 11)), 1, [1, 1]),
    (backwards, arrays((6, 9), (9, 9), (9,)), 0, [0, 0]),
    (normalized, arrays((6, 9), (9, 11), (11, 11), (11,)), 1, [1, 1]),
]
NAMES = ["vector", "batch", "rows", "normalized"]


@pytest.mark.parametrize(("function", "arguments", "inside", "inside_gradient"), CASES, ids=NAMES)
def test_products_leave_the_loop(
    function: relay.RelayFunction, arguments: list[np.ndarray], inside: int, inside_gradient: list[int]
) -> None:
    """What stays is the product with the state, and in the backward part the one with its cotangent."""
    core = function.core(*arguments)
    assert [products(loop.body) for loop in loops(core)] == [inside]
    np.testing.assert_allclose(function(*arguments), function.interpret(*arguments), rtol=1e-10)
    derivative = relay.grad(function)
    core = derivative.core(*arguments)
    assert [products(loop.body) for loop in loops(core)] == inside_gradient
    for found, expected in zip(derivative(*arguments), derivative.interpret(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("function", "arguments", "inside", "inside_gradient"), CASES, ids=NAMES)
def test_products_leave_the_loop_at_symbolic_lengths(
    function: relay.RelayFunction, arguments: list[np.ndarray], inside: int, inside_gradient: list[int]
) -> None:
    """The same where the number of rounds is the extent of an argument."""

    def longer(by: int) -> list[np.ndarray]:
        xs = arguments[0]
        return [np.concatenate([xs] + [xs[:1] * 0.5] * by), *arguments[1:]]

    for derivative in (function, relay.grad(function)):
        for change in (0, 1):
            derivative.core(*longer(change))
        core = derivative.core(*longer(2))
        assert symbolic_dims(core)
        assert [products(loop.body) for loop in loops(core)] == (
            [inside] if derivative is function else inside_gradient
        )
        assert "assert" not in relay.to_text(core)
        found, expected = derivative(*longer(2)), derivative.interpret(*longer(2))
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("function", "arguments", "inside", "inside_gradient"), CASES, ids=NAMES)
def test_products_leave_the_loop_where_all_sizes_are_symbolic(
    function: relay.RelayFunction, arguments: list[np.ndarray], inside: int, inside_gradient: list[int]
) -> None:
    """Nothing is known of how much memory the values of all rounds take, but that as much is there already."""
    dynamic = relay.relay(dynamic=True)(function.__wrapped__)
    for derivative, left in ((dynamic, [inside]), (relay.grad(dynamic), inside_gradient)):
        core = derivative.core(*arguments)
        assert len(symbolic_dims(core)) >= 2
        assert [products(loop.body) for loop in loops(core)] == left


def integers(text: str) -> tuple[ValueRanges, dict[str, Var]]:
    module = relay.parse(text)
    variables = {v.name: v for b in walk(module.main.body) for v in (*b.targets, *bound_variables(b.value))}
    with assume_facts(module.where):
        return ValueRanges(module.main.body), variables


def test_comparisons_of_counters_and_sizes() -> None:
    found, names = integers("""
    dims m where m >= 3;
    entry fn f(%x: Tensor[float64, (m,)], %n: Tensor[int32, ()]) -> Tensor[int32, ()] {
      let %size: Tensor[int32, ()] = extent[m, int32];
      let %last: Tensor[int32, ()] = subtract(%size, 1i32);
      let %r: Tensor[int32, ()] = loop 'a for %i: Tensor[int32, ()] < %n (%p: Tensor[int32, ()] = 0i32) {
        let %j: Tensor[int32, ()] = subtract(%last, %i);
        let %q: Tensor[int32, ()] = loop 'b for %k: Tensor[int32, ()] < %i (%s: Tensor[int32, ()] = %p) {
          let %always: Tensor[bool, ()] = less(%k, %n);
          let %before: Tensor[bool, ()] = greater(%k, %i);
          let %open: Tensor[bool, ()] = greater_equal(%j, 0i32);
          let %above: Tensor[int32, ()] = add(%i, 1i32);
          let %fits: Tensor[bool, ()] = less(%k, %above);
          let %wraps: Tensor[int32, ()] = add(%n, 1i32);
          let %unknown: Tensor[bool, ()] = less(%n, %wraps);
          let %three: Tensor[bool, ()] = greater_equal(%size, 3i32);
          let %four: Tensor[bool, ()] = equal(%size, 4i32);
          next 'b(%k)
        };
        next 'a(%q)
      };
      %r
    }
    """)
    answers = {name: found.decided.get(variable) for name, variable in names.items()}
    assert {name: answer for name, answer in answers.items() if answer is not None} == {
        "always": True, "before": False, "fits": True, "three": True,
    }  # fmt: skip


def test_second_derivatives_of_a_recurrent_net() -> None:
    @relay
    def directional(xs, w, u, b, h):  # type: ignore[no-untyped-def]
        du = relay.grad(recurrent, wrt=2)(xs, w, u, b, h)
        return (du * du).sum()

    arguments = arrays((3, 4), (4, 5), (5, 5), (5,), (5,))
    derivative = relay.grad(directional)
    for found, expected in zip(derivative(*arguments), derivative.interpret(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


ROWS = """
entry fn f(%xs: Tensor[float64, (ROWS, 3)], %w: Tensor[float64, (3, 3)]) -> Tensor[float64, (3,)] {
  let %r: Tensor[float64, (3,)] = loop 'l for %t: Tensor[int32, ()] < 4i32
      (%p: Tensor[float64, (3,)] = [0.0, 0.0, 0.0]f64) {
    let %x: Tensor[float64, (3,)] = index(%xs, %t);
    let %y: Tensor[float64, (3,)] = matmul(%x, %w);
    let %q: Tensor[float64, (3,)] = add(%p, %y);
    next 'l(%q)
  };
  %r
}
"""


@pytest.mark.parametrize(("rows", "passes", "left"), [
    (4, "batch-products", 0), (8, "batch-products", 0), (9, "batch-products", 1),
    (4, "batch-products{max_size=96}", 0), (4, "batch-products{max_size=95}", 1),
])  # fmt: skip
def test_only_what_pays_is_batched(rows: int, passes: str, left: int) -> None:
    before = relay.parse(ROWS.replace("ROWS", str(rows)))
    after = Pipeline(passes, checked=True)(before)
    assert [products(loop.body) for loop in loops(after)] == [left]
    values = arrays((rows, 3), (3, 3))
    np.testing.assert_allclose(interpreter.run(after, values), interpreter.run(before, values), rtol=1e-14)


def test_what_may_fail_stays_in_the_loop() -> None:
    """With no rounds nothing fails; with some the output before the failure is there."""
    text = """
    entry fn f(%n: Tensor[int32, ()], %k: Tensor[int32, ()]) -> Tensor[int32, ()] {
      let %r: Tensor[int32, ()] = loop 'l for %i: Tensor[int32, ()] < %n (%p: Tensor[int32, ()] = 0i32) {
        let %d: Tensor[int32, ()] = floor_divide(7i32, %k);
        let %e: Tensor[int32, ()] = floor_divide(%k, 7i32);
        let %s: Tensor[int32, ()] = add(%p, %d);
        let %q: Tensor[int32, ()] = add(%s, %e);
        next 'l(%q)
      };
      %r
    }
    """
    after = relay.transform.hoist_invariants(relay.parse(text))
    (loop,) = loops(after)
    kept = [b.value.operator for b in loop.body.bindings if isinstance(b.value, OpCall)]
    assert kept == ["floor_divide", "add", "add"]
    assert interpreter.run(after, [np.int32(0), np.int32(0)]) == 0
    assert interpreter.run(after, [np.int32(2), np.int32(3)]) == 4


def test_bounds_are_checked_only_where_they_can_be_wrong() -> None:
    @relay
    def total(xs, n):  # type: ignore[no-untyped-def]
        s = 0.0
        for i in range(4):
            s += xs[i] + xs[3 - i]
        for i in range(n):
            s += xs[i]
        return s

    values = [np.arange(4.0), np.int32(3)]
    text = relay.to_text(total.core(*values))
    assert text.count("assert") == 1
    assert float(total(*values)) == float(total.interpret(*values)) == 15.0
    with pytest.raises(relay.ExecutionError, match="out of range"):
        total(np.arange(4.0), np.int32(5))


def test_tiny_loops_are_unrolled_at_level_3() -> None:
    @relay(opt_level=3)
    def power(x):  # type: ignore[no-untyped-def]
        y = x
        for _ in range(3):
            y = y * x
        return y

    assert not loops(power.core(np.float64(2)))
    assert float(power(np.float64(2))) == 16.0
    assert loops(Pipeline("unroll-loops{max_bindings=2}")(relay.parse(ROWS.replace("ROWS", "4"))))


def test_what_trying_all_rounds_shows_decides_further_comparisons() -> None:
    """The square of the only counter is 0, which is in range."""
    before = relay.parse("""
    entry fn f(%x: Tensor[float64, (3,)], %n: Tensor[int32, ()]) -> Tensor[float64, ()] {
      let %r: Tensor[float64, ()] = loop 'l for %i: Tensor[int32, ()] < 1i32 (%p: Tensor[float64, ()] = 0.0f64) {
        let %j: Tensor[int32, ()] = multiply(%i, %i);
        let %c: Tensor[bool, ()] = greater_equal(%j, -3i32);
        assert %c "index out of range";
        let %y: Tensor[float64, ()] = index(%x, %j);
        next 'l(%y)
      };
      %r
    }
    """)
    after = relay.transform.fold_induction_variables(before)
    assert [c.operator for c in (b.value for b in walk(after.main.body)) if isinstance(c, OpCall)] == ["index"]
    assert relay.to_text(relay.transform.fold_induction_variables(after)) == relay.to_text(after)
