"""Which calls are fused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import relay.ops  # noqa: F401
from relay.ir.expr import Assert, Block, Exit, LoopLabel, OpCall, Var
from relay.ir.types import BOOL, FLOAT32, INT32, TensorType, scalar
from relay.operator import Emitter, Value
from relay.transform.fusion import LIMIT, plan


def groups(body: Callable[..., Value], *shapes: tuple[int, ...]) -> list[list[str]]:
    """The operators of each group, in the order in which the groups run."""
    emitter = Emitter()
    values = [emitter.value(Var(f"x{i}", TensorType(FLOAT32, shape))) for i, shape in enumerate(shapes)]
    result = body(*values)
    block = Block(tuple(emitter.bindings), Exit(LoopLabel("f"), (result.atom,)))
    made = plan(block)
    return [[c.value.operator for c in made[at].bindings if isinstance(c.value, OpCall)] for at in sorted(made)]


S = (4, 8)


@pytest.mark.parametrize(
    ("body", "shapes", "expected"),
    [
        (lambda x, y: ((x + y) * x).op("exp"), (S, S), [["add", "multiply", "exp"]]),
        (lambda x: (x.op("exp") + 1.0) * (x.op("exp") + 2.0), (S,), [["exp", "add", "exp", "add", "multiply"]]),
        (lambda x, w: (x @ w + 1.0).op("tanh"), (S, (8, 3)), [["matmul", "add", "tanh"]]),
        (lambda x, w: x.op("tanh") @ w, (S, (8, 3)), [["tanh"], ["matmul"]]),
        (lambda x, w, c: x @ w + c.op("exp"), (S, (8, 3), (3,)), [["exp"], ["matmul", "add"]]),
        (lambda x: (x * x).op("sum"), (S,), [["multiply", "sum"]]),
        (lambda x: x.op("sum", axis=1).op("exp"), (S,), [["sum", "exp"]]),
        (lambda x: x - x.op("max", axis=1, keepdims=True), (S,), [["max", "subtract"]]),
        (lambda x, y: x * y.op("exp"), (S, (8,)), [["exp"], ["multiply"]]),
        (lambda x, y: x * y.op("reshape", shape=(1, 8)), (S, (8,)), [["reshape", "multiply"]]),
        (lambda x: x.op("sum", axis=0).op("sum"), (S,), [["sum"], ["sum"]]),
        (lambda x: x.op("zeros_like") + x, (S,), [["zeros_like", "add"]]),
        (lambda x, v: x.op("index_update", 1, v * 2.0), (S, (8,)), [["multiply", "index_update"]]),
        (lambda x, v: x.op("index_update", 1, v) * 2.0, (S, (8,)), [["index_update"], ["multiply"]]),
        (lambda x, v: (x * 2.0).op("index_add", 1, v), (S, (8,)), [["multiply"], ["index_add"]]),
        (lambda x, v: x.op("zeros_like").op("index_add", 1, v), (S, (8,)), [["zeros_like"], ["index_add"]]),
        (lambda x: x.op("index_update", 1, x.op("index", 2) * 2.0), (S,), [["index", "multiply", "index_update"]]),
    ],
)
def test_groups(body: Callable[..., Value], shapes: tuple[tuple[int, ...], ...], expected: list[list[str]]) -> None:
    assert groups(body, *shapes) == expected


def softmax(x: Value, axis: int = -1) -> Value:
    e = (x - x.op("max", axis=axis, keepdims=True)).op("exp")
    return e / e.op("sum", axis=axis, keepdims=True)


def layer_norm(x: Value, gain: Value, *, keepdims: bool = True) -> Value:
    mean = x.op("mean", axis=-1, keepdims=keepdims)
    centred = x - (mean if keepdims else mean.op("expand_dims", axis=-1))
    variance = (centred * centred).op("mean", axis=-1, keepdims=True)
    return centred * (variance + 1e-5).op("rsqrt") * gain


@pytest.mark.parametrize(
    ("body", "shapes", "count"),
    [
        (softmax, (S,), 1),
        (softmax, ((2, 3, 5),), 1),
        (lambda x: softmax(x.op("exp")).op("exp"), (S,), 2),  # only one intricate call in another one
        (lambda x: softmax(x, axis=0), (S,), 4),  # no rows: what is reduced comes first
        (lambda x: softmax(x, axis=1), ((3, 5, 7),), 1),
        (layer_norm, (S, (8,)), 1),
        (lambda x, g: layer_norm(x, g, keepdims=False), (S, (8,)), 1),
        (lambda x, g: layer_norm(x, g, keepdims=False), ((8, 8), (8,)), 1),
        (lambda x: x - x.op("mean", axis=0), ((8, 8),), 2),  # aligned at the last axis, which is no row
        (lambda x: x - x.op("mean", axis=1), ((8, 8),), 2),
        (lambda x: x - x.op("mean", axis=1, keepdims=True).op("transpose"), ((8, 8),), 2),
        (lambda x: x - x.op("mean", axis=1, keepdims=True).op("flip", axis=0), ((8, 8),), 2),
        (lambda x: x - x.op("mean", axis=1, keepdims=True).op("reshape", shape=(1, 8)), ((8, 8),), 2),
        (lambda x: x / x.op("sum"), (S,), 2),
        (softmax, ((2, 1 << 20),), 4),  # two rows, which are longer than a cache
        (softmax, ((1 << 12, 1 << 11),), 1),
        (softmax, ((2, 1 << 17),), 4),
        (lambda x, w: softmax(x @ w), (S, (8, 3)), 2),
        (lambda x, w: softmax(x) @ w, (S, (8, 3)), 2),
    ],
)
def test_what_is_computed_row_by_row_is_one_group(
    body: Callable[..., Value], shapes: tuple[tuple[int, ...], ...], count: int
) -> None:
    assert len(groups(body, *shapes)) == count


def test_parts_of_rows_that_others_read_leave_the_kernel() -> None:
    def body(x: Value, w: Value) -> Value:
        e = (x - x.op("max", axis=1, keepdims=True)).op("exp")
        return (e / e.op("sum", axis=1, keepdims=True)) @ w + e @ w

    assert groups(body, S, (8, 3))[:2] == [["max", "subtract", "exp"], ["sum", "divide"]]


def test_long_groups_of_rows_are_bounded() -> None:
    def body(x: Value) -> Value:
        for _ in range(30):
            x = x - (x * x).op("mean", axis=1, keepdims=True)
        return x

    sizes = [len(group) for group in groups(body, S)]
    assert sum(sizes) == 90 and LIMIT // 2 < max(sizes) <= LIMIT


def test_a_read_stays_before_a_later_update() -> None:
    """If the index joined its only consumer, it would read what the first update has overwritten."""

    def body(x: Value, v: Value) -> Value:
        changed = x.op("index_update", 1, v)
        return changed.op("index_add", 0, x.op("index", 2))

    assert groups(body, S, (8,)) == [["index_update"], ["index"], ["index_add"]]


def test_a_value_with_two_consumers_is_computed_once() -> None:
    def body(x: Value, w: Value) -> Value:
        h = x.op("tanh")
        return (h @ w).op("sum") + h.op("sum")

    assert groups(body, S, (8, 3)) == [["tanh"], ["matmul"], ["sum"], ["sum", "add"]]


def test_a_diamond_is_one_group() -> None:
    def body(x: Value) -> Value:
        h = x + 1.0
        return h.op("exp") * h.op("tanh")

    assert groups(body, S) == [["add", "exp", "tanh", "multiply"]]


def test_long_chains_and_deep_trees_are_cut() -> None:
    def chain(x: Value) -> Value:
        for _ in range(3 * LIMIT):
            x = x + 1.0
        return x

    def tree(x: Value) -> Value:
        for _ in range(20):
            x = x * x
        return x

    sizes = [len(group) for group in groups(chain, S)]
    assert sum(sizes) == 3 * LIMIT and max(sizes) <= LIMIT and len(sizes) <= 4
    assert max(len(group) for group in groups(tree, S)) <= 6  # 2**6 calls written out as a tree


def test_a_group_runs_behind_the_assertions_before_its_members() -> None:
    emitter = Emitter()
    x, y = (emitter.value(Var(n, TensorType(INT32, (4,)))) for n in "xy")
    first = x + 1
    condition = emitter.value(Var("c", scalar(BOOL)))
    before = len(emitter.bindings)
    emitter.bindings.append(type(emitter.bindings[0])((), Assert(condition.atom, "no")))
    result = first // y
    made = plan(Block(tuple(emitter.bindings), Exit(LoopLabel("f"), (result.atom,))))
    assert list(made) == [before + 1] and len(made[before + 1].bindings) == 2


def test_nested_uses_keep_a_value() -> None:
    """A value that a call of another kind reads is an output."""
    emitter = Emitter()
    x = emitter.value(Var("x", TensorType(FLOAT32, S)))
    h = x.op("exp")
    pair = emitter.bind(h.atom, h.type)
    result = h + pair
    made = plan(Block(tuple(emitter.bindings), Exit(LoopLabel("f"), (result.atom,))))
    assert sorted(made) == [0, 2]
