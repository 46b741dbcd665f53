"""Python's operations on dynamic lists, compared with Python's own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay as rl
from relay import relay
from relay.errors import ExecutionError, TypeCheckError, TypeMismatch
from relay.typecheck.elaboration.dynamic_lists import list_positions

PROGRAM = """
def listed(n):
    xs = [(i * 7) % 5 for i in range(n)]
    ys = list(range(n))
    pairs = list(zip(xs, ys))
    pairs.sort()
    order = sorted(enumerate(xs), key=lambda p: -p[1])
    best, _ = max(enumerate(xs), key=lambda p: p[1])
    zs = sorted(zip(ys, xs), key=lambda p: p[1])
    ws = [*range(n), *xs]
    ws.extend(range(2, n + 2))
    ws += [v for v in range(1, n, 2)]
    return [pairs[0][1], best, order[0][0], zs[-1][0], sum(range(n)), len(list(enumerate(xs))), *ws]

def inside_tuples(n):
    pair = ([0.5], {"k": [1, 2]})
    for i in range(n):
        pair[0].append(i * 0.5)
        pair[1]["k"][i % 2] += 3
        pair[-1]["k"] += [i]
    del pair[0][0]
    pair[0].insert(0, float(pair[1]["k"].pop()))
    return [*pair[0], *[float(k) for k in pair[1]["k"]]]

def deleted(n):
    xs = [i for i in range(n + 6)]
    del xs[2]
    del xs[-1]
    xs[1:3] = [50, 60, 70]
    del xs[0:2]
    del xs[5:2]
    xs[:1] = range(3)
    while len(xs) > 5:
        del xs[1]
    table = [[i, 2] for i in range(n)]
    table[0].append(3)
    last = table[0].pop() + table[n - 1].pop(0)
    del table[0][0]
    return xs + [last, len(table[0])]

def repeated(n):
    xs = [i for i in range(n)]
    ys = xs.copy()
    ys[0] = 9
    first, *rest = xs
    *most, end = xs
    a, b = ys[:1] * 2
    same = [int(xs == ys), int(xs != [0]), int(xs == list(range(n)))]
    return (ys * 2) + rest + most + same + [first, end, a, b]

def runs(n):
    out, stack, best = [], [], 0
    for i in range(n):
        x = (i // 3) % 4
        if out and out[-1][0] == x:
            v, c = out[-1]
            out[-1] = (v, c + 1)
        else:
            out.append((x, 1))
        start = i
        while stack and stack[-1][1] >= x:
            j, g = stack.pop()
            best = max(best, g * (i - j))
            start = j
        stack.append((start, x))
    return [best] + [v * c for v, c in out]

def recursive(n):
    def queens(row, columns):
        if row == 4:
            return 1
        count = 0
        for c in range(4):
            if not any(k == c or abs(k - c) == row - r for r, k in enumerate(columns)):
                count += queens(row + 1, columns + [c])
        return count

    def collected(path, pairs, k):
        if k == 0:
            return sum(path) + sum([a * b for a, b in pairs])
        return collected(path + [k], pairs + [(k, k + 1)], k - 1)

    return [queens(0, []), collected([], [], n)]

def in_loops(n):
    t, queue = 0, [i for i in range(n)]
    for _ in range(2 * n):
        queue.append(queue.pop(0))
        t = t * 3 % 101 + queue[0]
    r = [t]
    while len(queue) > 1:
        del queue[len(queue) // 2]
        r.append(queue[-1])
    return r
"""


def test_operations_are_those_of_python() -> None:
    python: dict[str, Any] = {}
    exec(PROGRAM, python)
    program = rl.from_source(PROGRAM)
    assert isinstance(program, dict)
    for name, function in program.items():
        for n in (1, 4, 9):
            assert_modes_agree(function, n, expected=[float(v) for v in python[name](n)], rtol=0.0, atol=0.0)


def swapped(n):
    d = {"a": 1.0, "b": 2.0}
    for _ in range(n):
        d = {"b": d["a"], "a": d["b"] + 1.0}
    e = {"a": 1.0, "b": 2.0}
    while e["a"] < n:
        e = {"b": e["a"], "a": e["b"] + 1.0}
    if n > 3:
        e = {"b": e["a"], "a": e["b"]}
    return [d["a"], d["b"], e["a"], e["b"]]


def test_dicts_with_the_same_keys_in_another_order_are_the_same_in_loops_and_branches() -> None:
    function = relay(swapped)
    for n in (0, 1, 2, 5):
        assert_modes_agree(function, n, expected=swapped(n))


@dataclasses.dataclass
class Point:
    x: float
    y: float


@dataclasses.dataclass
class Flipped:
    y: float
    x: float


def test_loops_keep_the_keys_of_dicts_and_the_classes_of_records() -> None:
    @relay
    def keyed(x, n):
        d = {"a": x}
        for i in range(n):
            d["k"] = i * 1.0
        return d

    @relay
    def renamed(x, n):
        d = {"a": x}
        for _ in range(n):
            d = {"b": x + 1.0}
        return d

    assert {k: float(v) for k, v in keyed(1.0, np.int32(3)).items()} == {"a": 1.0, "k": 2.0}
    assert {k: float(v) for k, v in renamed(1.0, np.int32(3)).items()} == {"b": 2.0}

    @relay
    def given(d, n):
        for i in range(n):
            d["k"] = i * 1.0
        return d

    with pytest.raises(TypeMismatch, match=r"the loop changes the keys of the dict d: it enters the loop as \{a: .*\}"):
        given({"a": 1.0}, np.int32(3))

    @relay
    def flipped(x, n):
        p = Point(x, 2 * x)
        for _ in range(n):
            p = Flipped(x, 2 * x)
        return p.x

    with pytest.raises(TypeMismatch, match="the loop changes the class of p"):
        flipped(1.0, np.int32(3))

    @relay
    def measured(x):
        return len(f"{x}")

    assert measured.interpret(1.0) == 3


@relay
def two_of(xs: list[float]):
    a, b = xs
    return a - b


def test_a_list_of_another_length_is_not_unpacked() -> None:
    assert float(two_of([3.0, 1.0])) == 2.0
    assert_modes_raise(two_of, [1.0, 2.0, 3.0], error=ExecutionError, match="expected 2 values to unpack")


@relay
def zipped(x, n):
    xs = [x * float(i) for i in range(n)]
    total = 0.0
    for i, v in sorted(enumerate(xs), key=lambda p: -p[1]):
        total += float(i) * v
    first, *rest = xs[1:]
    rest[0:1] = [first * x]
    del rest[-1]
    return total + sum(rest)


def test_derivatives() -> None:
    x = np.float64(1.5)
    gradient = rl.grad(zipped, wrt="x")
    step = 1e-6
    ahead, behind = (float(zipped(np.float64(x + h), 5)) for h in (step, -step))
    np.testing.assert_allclose(float(gradient(x, 5)), (ahead - behind) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(float(gradient.interpret(x, 5)), float(gradient(x, 5)), rtol=1e-12)


def test_what_no_list_is() -> None:
    @relay
    def f(n):
        return list(n)

    with pytest.raises(TypeCheckError, match="a scalar cannot be iterated over"):
        f(3)


@relay
def doubled(xs: list[float], k: int) -> list[float]:
    if k == 0:
        return xs
    xs.append(xs[-1] * 2.0)
    return doubled(xs, k - 1)


@relay
def weighted(xs: list[tuple[float, int]]) -> float:
    if not xs:
        return 0.0
    (v, i), *rest = xs
    return v * float(i) + weighted(rest)


@relay
def merged(xs: list[float], ys: list[float]) -> list[float]:
    if not xs:
        return ys
    if not ys:
        return xs
    if xs[0] < ys[0]:
        return [xs[0], *merged(xs[1:], ys)]
    return [ys[0], *merged(xs, ys[1:])]


@relay
def in_a_reference(n):
    r = rl.ref([0.0])
    for i in range(n):
        r.value.append(float(i))
        r.value[i // 2] = 3.0
        if i % 3 == 2:
            r.value.pop()
    return r.value[-1]


@relay
def of_known_lengths(n):
    both = merged([1.0, 3.0], [2.0, 5.0])
    return doubled([1.0, 2.0], 3)[-1] + weighted([(1.0, 2), (3.0, 4)]) + both[2] * in_a_reference(n)


def test_annotated_recursion_and_references_take_lists_of_known_lengths() -> None:
    assert_modes_agree(of_known_lengths, 5, expected=16.0 + 14.0 + 3.0 * 4.0)


@relay
def collects(xs, w):
    h, states = np.zeros(2), []
    for t in range(xs.shape[0]):
        h = np.tanh(w @ h + xs[t])
        states.append(h)
    s = 0.0
    for state in states[1:]:
        s += (state * state).sum()
    return s + rl.stack(states).sum()


def test_a_program_that_collects_states_is_compiled_once_for_all_lengths() -> None:
    gradient = rl.grad(collects, wrt="w")
    for n in (4, 6, 7, 9):
        collects(np.ones((n, 2)), np.eye(2))
        gradient(np.ones((n, 2)), np.eye(2))
    assert len(collects._programs.exact) <= 2
    assert len(gradient._programs.exact) <= 2


def test_len_of_a_list_that_an_int32_does_not_count_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_positions, "LONGEST_LIST", 3)

    @relay
    def countdown(x, gives_length: bool):
        found = []
        while x > 0:
            found.append(x)
            x = x - 1
        if gives_length:
            return len(found), 0.0
        total = 0.0
        while found:  # which is asked in int64
            total += found.pop()
        return 0, total

    assert int(assert_modes_agree(countdown, 3.0, True)[0]) == 3
    assert float(assert_modes_agree(countdown, 5.0, False)[1]) == 15.0
    assert_modes_raise(countdown, 4.0, True, error=ExecutionError, match="a list of more than 3 elements")


# ---- fields of elements are read before the text appends any


@dataclasses.dataclass
class Entry:
    key: float
    place: int


@rl.data
class State:
    position: float
    depth: int


@relay
def sorted_by_heap(n: int):
    heap, keys = [], []
    for i in range(n):
        heap.append(Entry(float(i * 7 % 5), i))
        j = len(heap) - 1
        while j > 0 and heap[(j - 1) // 2].key > heap[j].key:
            heap[j], heap[(j - 1) // 2] = heap[(j - 1) // 2], heap[j]
            j = (j - 1) // 2
    while heap:
        keys.append(heap[0].key)
        last = heap.pop()
        if heap:
            heap[0] = last
            j = 0
            while 2 * j + 1 < len(heap):
                child = 2 * j + 1
                if child + 1 < len(heap) and heap[child + 1].key < heap[child].key:
                    child += 1
                if heap[j].key <= heap[child].key:
                    break
                heap[j], heap[child] = heap[child], heap[j]
                j = child
    return keys


@relay
def read_before_appended(n: int):
    dicts, states, entries, total = [], [], [], 0.0
    for i in range(n):
        if dicts and dicts[-1]["value"] > 3.0:
            break
        if len(states) > 1:
            total += states[0].position + float(states[-1].depth)
        while entries and entries[-1].key > 1.0:
            top = entries.pop()
            entries.append(Entry(top.key - 1.0, top.place))
        dicts.append({"value": i * 1.0})
        states.append(State(i * 2.0, i))
        entries.append(Entry(i * 3.0, i))
    return len(dicts), total, [entry.key for entry in entries]


@relay
def reads_what_nothing_has(n: int):
    states, total = [], 0.0
    for _ in range(n):
        if states:
            total += states[0].speed
        states.append(State(1.0, 2))
    return total


@relay
def reads_of_nothing(n: int):
    states = []
    for i in range(n):
        states.append(states[i].speed)
    return len(states)


def test_fields_are_read_before_anything_is_appended() -> None:
    assert_modes_agree(sorted_by_heap, 9, expected=sorted(float(i * 7 % 5) for i in range(9)))
    count, total, keys = assert_modes_agree(read_before_appended, 9)
    assert (int(count), float(total), [float(key) for key in keys]) == (5, 6.0, [0.0, 1.0, 1.0, 1.0, 12.0])


def test_a_field_that_no_element_has_is_a_mistake() -> None:
    with pytest.raises(TypeCheckError, match="State has no field 'speed'"):
        reads_what_nothing_has(3)
    with pytest.raises(TypeCheckError, match="no element with it is appended to the list"):
        reads_of_nothing(3)


# ---- lists inside of what a function captures


@relay
def recorded(n):
    seen, pair = {"values": [0.0], "none": [], "count": 0.0}, ([1.0], 2.0)

    def go(i):
        if i < 0:
            return 0.0
        seen["values"].append(i * 1.0)
        seen["none"].append(seen["values"][-1])
        seen["count"] += 1.0
        pair[0].append(i * 2.0)
        return go(i - 1) + 1.0

    steps = go(n)
    return seen["values"], seen["none"], seen["count"], pair, steps


def test_a_captured_dict_of_lists_grows() -> None:
    values, none, count, (grown, kept), steps = assert_modes_agree(recorded, 2)
    assert [float(v) for v in values] == [0.0, 2.0, 1.0, 0.0] and [float(v) for v in none] == [2.0, 1.0, 0.0]
    assert [float(v) for v in grown] == [1.0, 4.0, 2.0, 0.0]
    assert (float(count), float(kept), float(steps)) == (3.0, 2.0, 3.0)


@relay
def quicksort(xs):
    if len(xs) <= 1:
        return xs
    first = xs[0]
    below, above = [x for x in xs[1:] if x < first], [x for x in xs[1:] if x >= first]
    return quicksort(below) + [first] + quicksort(above)  # noqa: RUF005


def test_a_list_of_python_numbers_is_sorted_recursively() -> None:
    """The call gets a list of known length, and the recursion lists of any."""
    assert [float(x) for x in assert_modes_agree(quicksort, [3.0, 1.0, 2.0])] == [1.0, 2.0, 3.0]
    assert [float(x) for x in assert_modes_agree(quicksort, [5.0, 4.0, 3.0, 9.0, 1.0])] == [1.0, 3.0, 4.0, 5.0, 9.0]
