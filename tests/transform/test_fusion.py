"""Which calls are fused."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import relay.ops  # noqa: F401
from relay.ir.expr import Assert, Binding, Block, Exit, LoopLabel, OpCall, Var
from relay.ir.types import BOOL, FLOAT32, INT32, TensorType, scalar
from relay.operator import Emitter, Value
from relay.transform.fusion.fusion_groups import LIMIT, FusionGroup, plan
from relay.transform.fusion.multi_output import OPERANDS, RESULTS


def planned(body: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> dict[int, FusionGroup]:
    """The groups of a function of tensors that gives a tensor or a tuple of them."""
    emitter = Emitter()
    values = [emitter.value(Var(f"x{i}", TensorType(FLOAT32, shape))) for i, shape in enumerate(shapes)]
    result = body(*values)
    results = result if isinstance(result, tuple) else (result,)
    return plan(Block(tuple(emitter.bindings), Exit(LoopLabel("f"), tuple(value.atom for value in results))))


def groups(body: Callable[..., Any], *shapes: tuple[int, ...]) -> list[list[str]]:
    """The operators of each group, in the order in which the groups run."""
    made = planned(body, shapes)
    return [[c.value.operator for c in made[at].bindings if isinstance(c.value, OpCall)] for at in sorted(made)]


def counts(body: Callable[..., Any], *shapes: tuple[int, ...]) -> list[int]:
    """How many results each group has, in the order in which the groups run."""
    made = planned(body, shapes)
    return [len(made[at].outputs) for at in sorted(made)]


S = (4, 8)
WIDE = (64, 8)  # more elements than merging leaves alone


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
        (lambda x: x.op("exp").op("tanh"), (S,), [["exp", "tanh"]]),
        (lambda x: (x + 1.0).op("exp").op("tanh").op("squeeze"), ((1, 8),), [["add", "exp", "tanh", "squeeze"]]),
        (lambda x: x.op("exp").op("tanh").op("exp"), (WIDE,), [["exp"], ["tanh"], ["exp"]]),  # exp is shared
        (lambda x: x.op("exp").op("tanh").op("exp"), ((1 << 20,),), [["exp", "tanh", "exp"]]),
        (lambda x, y: (x.op("exp") + y).op("tanh"), (WIDE, (8,)), [["exp", "add"], ["tanh"]]),
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
    centerd = x - (mean if keepdims else mean.op("expand_dims", axis=-1))
    variance = (centerd * centerd).op("mean", axis=-1, keepdims=True)
    return centerd * (variance + 1e-5).op("rsqrt") * gain


@pytest.mark.parametrize(
    ("body", "shapes", "count"),
    [
        (softmax, (S,), 1),
        (softmax, ((2, 3, 5),), 1),
        (lambda x: softmax(x.op("exp")).op("exp"), (S,), 1),
        (lambda x: softmax(x, axis=0), (S,), 3),  # no rows: what is reduced comes first, and exp with its sum
        (lambda x: softmax(x, axis=1), ((3, 5, 7),), 1),
        (layer_norm, (S, (8,)), 1),
        (lambda x, g: layer_norm(x, g, keepdims=False), (S, (8,)), 1),
        (lambda x, g: layer_norm(x, g, keepdims=False), ((8, 8), (8,)), 1),
        (lambda x: x - x.op("mean", axis=0), ((8, 8),), 2),  # aligned at the last axis, which is not a row
        (lambda x: x - x.op("mean", axis=1), ((8, 8),), 2),
        (lambda x: x - x.op("mean", axis=1, keepdims=True).op("transpose"), ((8, 8),), 2),
        (lambda x: x - x.op("mean", axis=1, keepdims=True).op("flip", axis=0), ((8, 8),), 2),
        (lambda x: x - x.op("mean", axis=1, keepdims=True).op("reshape", shape=(1, 8)), ((8, 8),), 2),
        (lambda x: x / x.op("sum"), (S,), 2),
        (softmax, ((2, 1 << 20),), 3),  # two rows, which are longer than a cache
        (softmax, ((1 << 12, 1 << 11),), 1),
        (softmax, ((2, 1 << 17),), 3),
        (lambda x, w: softmax(x @ w), (S, (8, 3)), 2),
        (lambda x, w: softmax(x) @ w, (S, (8, 3)), 2),
    ],
)
def test_what_is_computed_row_by_row_is_one_group(
    body: Callable[..., Value], shapes: tuple[tuple[int, ...], ...], count: int
) -> None:
    assert len(groups(body, *shapes)) == count


def test_parts_of_rows_that_others_read_are_results_of_the_kernel() -> None:
    def body(x: Value, w: Value) -> Value:
        e = (x - x.op("max", axis=1, keepdims=True)).op("exp")
        return (e / e.op("sum", axis=1, keepdims=True)) @ w + e @ w

    assert groups(body, S, (8, 3))[0] == ["max", "subtract", "exp", "sum", "divide"]


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
    (whole,) = planned(tree, (WIDE,)).values()
    sizes_of: dict[Var, int] = {}
    for binding in whole.bindings:
        (target,) = binding.targets
        assert isinstance(binding.value, OpCall)
        size = 1 + sum(sizes_of.get(a, 0) for a in binding.value.arguments if isinstance(a, Var))
        assert size <= LIMIT
        sizes_of[target] = 0 if target in whole.kept else size
    assert len(whole.bindings) == 20 and len(whole.kept) == 3


def test_a_group_runs_behind_the_assertions_before_its_members() -> None:
    emitter = Emitter()
    x, y = (emitter.value(Var(n, TensorType(INT32, (4,)))) for n in "xy")
    first = x + 1
    condition = emitter.value(Var("c", scalar(BOOL)))
    before = len(emitter.bindings)
    emitter.bindings.append(Binding((), Assert(condition.atom, "no")))
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


# ---- several results


def stored_and_summed(x: Value) -> tuple[Value, ...]:
    e = x.op("exp")
    return e, e * 2.0, e.op("sum")


def dense(x: Value, w: Value, b: Value) -> tuple[Value, ...]:
    p = x @ w + b
    return p, p.op("relu"), p.op("greater", 0.0)


def waits_for_its_reader(x: Value, w: Value) -> tuple[Value, ...]:
    """The second product stands between what reads the first result and what makes it."""
    e = x.op("exp")
    return e @ w, e * 2.0


@pytest.mark.parametrize(
    ("body", "shapes", "expected"),
    [
        (stored_and_summed, (S,), [3]),
        (stored_and_summed, ((1 << 20,),), [3]),
        (lambda x: (x.op("sum", axis=1), (x * x).op("sum", axis=1)), (S,), [2]),
        (lambda x: (x.op("sum", axis=0), x.op("max", axis=0)), (S,), [2]),
        (lambda x: (x.op("sum", axis=1), x.op("sum", axis=0)), (S,), [1, 1]),  # other rows
        (lambda x: (x.op("sum", axis=1), x.op("mean", axis=-1)), (S,), [2]),
        (lambda x, y: (x.op("sum"), y.op("sum")), (S, S), [1, 1]),  # nothing in common
        (lambda x, y: (x * y, x + y), (WIDE, WIDE), [2]),
        (lambda x, y: (x * y, x + y), (S, S), [1, 1]),  # small: little to gain, and equal kernels are shared
        (lambda x, y: (x * 2.0, y * 2.0), (S, S), [1, 1]),
        (lambda x, y: (x * 2.0, x.op("transpose") * 2.0), ((8, 8), S), [1, 1]),
        (lambda x: (x * 2.0, (x * 2.0).op("transpose")), ((8, 8),), [1, 1]),
        (dense, ((16, 8), (8, 4), (4,)), [3]),
        (lambda x, w: (x @ w, x.op("relu")), (S, (8, 4)), [1, 1]),
        (waits_for_its_reader, (WIDE, (8, 4)), [2, 1]),
        (lambda x: (x.op("exp"), x.op("tanh")), (S,), [1, 1]),
        (lambda x: (x.op("exp"), x.op("tanh")), (WIDE,), [2]),  # a loop for each, block by block
        (lambda a, b: (a + b, a * b, a - b), ((), ()), [1, 1, 1]),  # single numbers are in registers anyway
    ],
)
def test_what_goes_over_the_same_elements_has_several_results(
    body: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], expected: list[int]
) -> None:
    assert counts(body, *shapes) == expected


def test_results_and_operands_are_bounded() -> None:
    def many_results(x: Value) -> tuple[Value, ...]:
        return tuple(x + float(i) for i in range(20))

    def many_operands(x: Value, *others: Value) -> tuple[Value, ...]:
        return tuple(x + y for y in others)

    assert counts(many_results, WIDE) == [4, RESULTS, RESULTS]
    made = planned(lambda x, *ys: tuple((x + y) * z for y, z in itertools.pairwise(ys)), [WIDE] * 60)
    for group in made.values():
        inner = {b.targets[0] for b in group.bindings}
        read = {a for b in group.bindings for a in b.value.arguments if isinstance(a, Var)}  # type: ignore[union-attr]
        assert len(read - inner) <= OPERANDS
    assert max(counts(many_operands, *([S] * 30))) <= RESULTS


def test_a_group_of_several_results_runs_before_all_that_read_them() -> None:
    """The last reader of x cannot run where the first one does: it needs what is made of that one's result."""

    def body(x: Value, w: Value) -> tuple[Value, ...]:
        first = x * 2.0
        return first, x + (first @ w)

    assert counts(body, (8, 8), (8, 8)) == [1, 1]


def test_nothing_that_may_fail_moves_before_its_assertion() -> None:
    """Both divisions read x, and the second one stands behind an assertion; the first one is needed before it."""
    emitter = Emitter()
    x, y = (emitter.value(Var(n, TensorType(INT32, (4,)))) for n in "xy")
    condition = emitter.value(Var("c", scalar(BOOL)))
    first = x // 2
    pair = emitter.bind(first.atom, first.type)
    emitter.bindings.append(Binding((), Assert(condition.atom, "no")))
    second = x // y
    made = plan(Block(tuple(emitter.bindings), Exit(LoopLabel("f"), (pair.atom, second.atom))))
    assert [len(group.outputs) for group in made.values()] == [1, 1]


# ---- cheap calls in several groups


@pytest.mark.parametrize(
    ("body", "shapes", "expected"),
    [
        # what reads x anyway makes x + 1 for itself
        (
            lambda x, y: (((x + 1.0) * y).op("sum", axis=0), ((x + 1.0) * x).op("transpose")),
            (S, S),
            [["add", "multiply", "sum"], ["add", "multiply", "transpose"]],
        ),
    ],
)
def test_calls_as_they_stand(
    body: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], expected: list[list[str]]
) -> None:
    assert groups(body, *shapes) == expected


def shared(x: Value, make: Callable[[Value], Value]) -> tuple[Value, ...]:
    """A value that two kernels of other spaces read."""
    h = make(x)
    return (h * h).op("sum", axis=0), h.op("transpose") * 2.0


@pytest.mark.parametrize(
    ("make", "times"),
    [
        (lambda x: x + 1.0, 2),
        (lambda x: x.op("greater", 0.0).op("cast", dtype=FLOAT32), 2),
        (lambda x: x.op("exp"), 1),  # takes longer than reading it
        (lambda x: x @ x, 1),
    ],
)
def test_what_is_cheap_is_computed_where_it_is_read(make: Callable[[Value], Value], times: int) -> None:
    made = groups(lambda x: shared(x, make), (8, 8))
    last = planned(lambda x: make(x), ((8, 8),))
    (name,) = [b.value.operator for b in last[max(last)].bindings[-1:] if isinstance(b.value, OpCall)]
    assert sum(group.count(name) for group in made) == times


def test_what_reads_much_more_than_it_makes_is_stored() -> None:
    """Two kernels would each read four tensors instead of one."""

    def body(a: Value, b: Value, c: Value, d: Value) -> tuple[Value, ...]:
        return shared(a + b + c + d, lambda h: h)

    assert sum(group.count("add") for group in groups(body, *([(8, 8)] * 4))) == 3


def test_what_is_tested_for_equality_is_computed_by_one_kernel() -> None:
    """Another kernel might round a product and a difference together."""

    def winners(x: Value, y: Value, z: Value) -> tuple[Value, ...]:
        difference = x * y - z
        least = difference.op("min", axis=0)
        return least, difference == least.op("reshape", shape=(1, 8))

    computing = [names for names in groups(winners, WIDE, (8,), (64, 1)) if "subtract" in names]
    assert len(computing) == 1
