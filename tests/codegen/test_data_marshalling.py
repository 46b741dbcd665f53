"""Values of data types in calls that are like an earlier one: they go into compiled code's memory in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from zoo import programs

import relay
from relay import Float32, Float64, List, Tensor
from relay.codegen.lowering import module_builder
from relay.errors import RelayError

H = 4


@relay.data
class Branch:
    class Tip:
        x: Tensor[Float32, (H,)]

    class Fork:
        left: Branch
        right: Branch


@relay.relay
def weighed(tree, w):
    match tree:
        case Branch.Tip(x):
            return relay.sum(x * w)
        case Branch.Fork(left, right):
            return weighed(left, w) + 2.0 * weighed(right, w)


def oracle(tree: Any, w: np.ndarray) -> float:
    if isinstance(tree, Branch.Tip):
        return float((np.asarray(tree.x) * w).sum())
    return oracle(tree.left, w) + 2 * oracle(tree.right, w)


W = np.arange(1, H + 1, dtype=np.float32)


def tip(*values: float) -> Any:
    return Branch.Tip(np.resize(np.array(values, np.float32), H))


def random_tree(leaves: int, rng: np.random.Generator) -> Any:
    if leaves == 1:
        return Branch.Tip(rng.standard_normal(H).astype(np.float32))
    left = int(rng.integers(1, leaves))
    return Branch.Fork(random_tree(left, rng), random_tree(leaves - left, rng))


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows with each call that looks at its arguments anew."""
    found: list[object] = []
    lower = relay.api.function.RelayFunction._lower

    def counted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        found.append(self)
        return lower(self, *arguments, **keywords)

    monkeypatch.setattr(relay.api.function.RelayFunction, "_lower", counted)
    return found


def check(tree: Any) -> None:
    np.testing.assert_allclose(float(weighed(tree, W)), oracle(tree, W), rtol=1e-4, atol=1e-4)


def test_other_trees_take_the_short_way(slow_calls: list[object]) -> None:
    rng = np.random.default_rng(0)
    check(random_tree(3, rng))
    check(random_tree(200, rng))  # the first call with many objects chooses the form of the program
    del slow_calls[:]
    for leaves in (2, 31, 7, 300, 3):
        check(random_tree(leaves, rng))
    assert not slow_calls


def test_other_constructors_are_looked_at_once(slow_calls: list[object]) -> None:
    check(Branch.Fork(tip(1), tip(2)))
    check(tip(3))
    check(Branch.Fork(tip(1), tip(2)))
    del slow_calls[:]
    check(tip(4))
    check(Branch.Fork(tip(5), tip(2)))
    assert not slow_calls


def test_a_changed_array_is_seen() -> None:
    leaf = np.ones(H, np.float32)
    tree = Branch.Fork(Branch.Tip(leaf), tip(2))
    check(tree)
    leaf[:] = 7
    check(tree)


def test_arrays_of_any_kind() -> None:
    check(Branch.Fork(tip(1), tip(2)))
    wide = np.arange(2 * H, dtype=np.float32)
    check(Branch.Fork(Branch.Tip(wide[::2]), Branch.Tip(wide[::-2])))
    check(Branch.Fork(Branch.Tip(relay.Array(wide[:H])), tip(1)))
    swapped = wide[:H].astype(wide.dtype.newbyteorder())
    check(Branch.Fork(Branch.Tip(swapped), tip(1)))


def test_what_does_not_fit_is_refused() -> None:
    check(Branch.Fork(tip(1), tip(2)))
    for wrong in (np.ones(H + 1, np.float32), np.ones(H), "text", tip(1), None):
        with pytest.raises(RelayError):
            weighed(Branch.Fork(tip(1), Branch.Tip(wrong)), W)
    for wrong in (np.ones(H, np.float32), "text", None, (tip(1),)):
        with pytest.raises(RelayError):
            weighed(Branch.Fork(tip(1), wrong), W)
    check(Branch.Fork(tip(1), tip(2)))


def test_shared_parts_are_passed_once(slow_calls: list[object]) -> None:
    check(Branch.Fork(tip(1), tip(2)))
    tree: Any = tip(1)
    for _ in range(12):
        tree = Branch.Fork(tree, tree)  # 8191 paths, 13 objects
    del slow_calls[:]
    check(tree)
    assert not slow_calls


def test_deep_values(slow_calls: list[object]) -> None:
    @relay.relay
    def total(xs, start):
        result = start
        while True:
            match xs:
                case List.Nil():
                    return result
                case List.Cons(head, tail):
                    result, xs = result + head, tail

    def chain(count: int) -> Any:
        xs = List.Nil()
        for k in range(count):
            xs = List.Cons(np.float64(k), xs)
        return xs

    start = np.float64(0)
    assert float(total(chain(10), start)) == 45
    assert float(total(chain(200), start)) == 19900  # the first call with many objects chooses the form of the program
    del slow_calls[:]
    assert float(total(chain(100_000), start)) == 4999950000
    assert not slow_calls


def test_numbers_in_data() -> None:
    @relay.data
    class Step:
        class Stop:
            pass

        class More:
            value: Tensor[Float32, ()]
            then: Step

    @relay.relay
    def run(step, scale):
        match step:
            case Step.Stop():
                return scale
            case Step.More(value, then):
                return run(then, scale) + value

    one = Step.More(1.5, Step.Stop())
    for value, expected in ((1.5, 2.5), (2.25, 3.25), (np.float32(4), 5.0), (np.array(3, np.float32), 4.0)):
        assert float(run(Step.More(value, Step.Stop()), np.float32(1))) == expected
        assert float(run(Step.More(value, one), np.float32(1))) == expected + 1.5
    with pytest.raises(RelayError):
        run(Step.More(1e300, Step.Stop()), np.float32(1))


def test_records_and_lists_of_them(slow_calls: list[object]) -> None:
    @relay.data
    class Point:
        x: Tensor[Float64, ()]
        y: Tensor[Float64, (2,)]

    @relay.relay
    def far(points, one):
        result = one.x
        for p in points:
            result = result + p.x * relay.sum(p.y)
        return result

    def points(scale: float) -> list[Any]:
        return [Point(np.float64(k * scale), np.full(2, float(k))) for k in range(5)]

    for scale in (1.0, 2.0, 3.0):
        found = far(points(scale), Point(np.float64(1), np.zeros(2)))
        assert float(found) == 1 + scale * 2 * (0 + 1 + 4 + 9 + 16)
    assert len(slow_calls) == 1


def test_gradients_with_respect_to_data(slow_calls: list[object]) -> None:
    slope = relay.grad(weighed, wrt=0)
    slope(Branch.Fork(tip(1), tip(2)), W)
    del slow_calls[:]
    found = slope(Branch.Fork(Branch.Fork(tip(1), tip(3)), tip(2)), W)
    assert not slow_calls
    np.testing.assert_allclose(np.asarray(found.left.right.x), 2 * W)
    np.testing.assert_allclose(np.asarray(found.right.x), 2 * W)


def test_two_data_types_in_each_other() -> None:
    @relay.data
    class Rose:
        value: Tensor[Float32, ()]
        below: Garden

    @relay.data
    class Garden:
        class Empty:
            pass

        class Beds:
            rose: Rose
            rest: Garden

    @relay.relay
    def sum_rose(rose):
        return rose.value + sum_garden(rose.below)

    @relay.relay
    def sum_garden(garden):
        match garden:
            case Garden.Empty():
                return 0.0
            case Garden.Beds(rose, rest):
                return sum_rose(rose) * 2.0 + sum_garden(rest)

    def rose(value: float, *below: Any) -> Any:
        garden = Garden.Empty()
        for each in below:
            garden = Garden.Beds(each, garden)
        return Rose(np.float32(value), garden)

    assert float(sum_rose(rose(1, rose(2)))) == 5
    assert float(sum_rose(rose(1, rose(2, rose(3)), rose(4)))) == 1 + 2 * (2 + 6) + 8


@pytest.mark.parametrize("with_tree", [False, True])
def test_structures_take_the_short_way(with_tree: bool, slow_calls: list[object]) -> None:
    @relay.relay
    def plain(x, p):
        return relay.sum(x * p["w"]) + p["more"]["b"]

    @relay.relay
    def data(tree, p):
        return weighed(tree, p["w"]) + p["more"]["b"]

    p = {"w": W, "more": {"b": np.float32(1), "none": None}, "nothing": {}}
    function, argument = (data, Branch.Fork(tip(1), tip(2))) if with_tree else (plain, W)
    first = float(function(argument, p))
    del slow_calls[:]
    assert float(function(argument, p)) == first
    assert not slow_calls
    assert float(function(argument, {**p, "nothing": None})) == first  # another structure
    assert slow_calls


def test_the_code_of_several_pools_is_the_same_each_time() -> None:
    """Their order is not that of addresses."""

    program = next(p for p in programs() if p.name == "sums_of_given")  # of a list of lists
    core = program.function.lower(*program.arguments).core
    texts, between = set(), []
    for number in range(12):
        texts.add(module_builder.text(core, 1))
        between.append([bytearray(size) for size in range(64, 700, 8 + number)])  # other addresses
    assert len(texts) == 1
